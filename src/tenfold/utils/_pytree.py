"""`tenfold.utils._pytree`: nested containers taken apart and put together again, by PyTorch's names.

A node is a list, tuple, named tuple, dict, ordered or defaulting dict, deque, or an object of a class that
was registered; everything else is a leaf. Keys of a dict keep their order."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

from tenfold.base.errors import ArgumentError, located

__all__ = [
    "GetAttrKey", "LeafSpec", "MappingKey", "SequenceKey", "TreeSpec", "arg_tree_leaves", "key_get", "keystr",
    "register_constant", "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only",
    "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_",
    "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_leaf", "treespec_pprint",
]  # fmt: skip

PyTree = Context = Any
Leaf = Callable[[Any], bool] | None


@dataclass(frozen=True)
class SequenceKey:
    """A place in a list or tuple, as in `x[1]`."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A place in a dict, as in `x["a"]`."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A place in an object, as in `x.a`."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


class NodeDef(NamedTuple):
    """How nodes of a type come apart and together."""

    type: type
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[Any], Any]] | None = None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, Any] = {}


@located
def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Any, Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Make objects of a class nodes: `flatten_fn` gives the children and what else there is to know, from
    which
    `unflatten_fn` makes the object again."""
    if cls in SUPPORTED_NODES:
        raise ArgumentError(f"{cls} is already registered as pytree node")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def register_constant(cls: type) -> None:
    """Make objects of a class nodes without children: they are part of the structure."""
    register_pytree_node(cls, lambda x: ([], x), lambda _, context: context)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    **names: Any,
) -> None:
    """Make objects of a dataclass nodes, with their fields as children."""
    if not is_dataclass(cls):
        raise ArgumentError(f"{cls} is not a dataclass")
    kept = [f.name for f in fields(cls) if f.init] if field_names is None else field_names
    kept = [name for name in kept if name not in (drop_field_names or ())]
    register_pytree_node(
        cls,
        lambda x: ([getattr(x, name) for name in kept], kept),
        lambda values, context: cls(**dict(zip(context, values, strict=True))),
        flatten_with_keys_fn=lambda x: ([(GetAttrKey(name), getattr(x, name)) for name in kept], kept),
    )


def is_namedtuple(obj: Any) -> bool:
    """Whether it is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether this is the class of a C structure sequence, such as `os.stat_result`."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, name, None), int) for name in ("n_fields", "n_sequence_fields"))
    )


def is_structseq_instance(obj: Any) -> bool:
    return is_structseq_class(type(obj))


is_structseq = is_structseq_instance


def is_namedtuple_class(cls: type) -> bool:
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


is_namedtuple_instance = is_namedtuple


def _kind(tree: Any) -> Any:
    """The type by which a tree's node is registered."""
    return namedtuple_ if is_namedtuple(tree) else type(tree)


_get_node_type = _kind


class namedtuple_:
    """Stands for every class of named tuples."""


def _sequence(kind: Any) -> NodeDef:
    keys = lambda x: ([(SequenceKey(i), each) for i, each in enumerate(x)], None)
    return NodeDef(kind, lambda x: (list(x), None), lambda values, _: kind(values), keys)


def _mapping(kind: Any) -> NodeDef:
    keys = lambda x: ([(MappingKey(key), each) for key, each in x.items()], list(x))
    return NodeDef(
        kind,
        lambda x: (list(x.values()), list(x)),
        lambda values, names: kind(zip(names, values, strict=True)),
        keys,
    )


SUPPORTED_NODES |= {
    list: _sequence(list),
    tuple: _sequence(tuple),
    dict: _mapping(dict),
    OrderedDict: _mapping(OrderedDict),
    defaultdict: NodeDef(
        defaultdict,
        lambda x: (list(x.values()), [x.default_factory, list(x)]),
        lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
        lambda x: ([(MappingKey(k), v) for k, v in x.items()], [x.default_factory, list(x)]),
    ),
    deque: NodeDef(
        deque,
        lambda x: (list(x), x.maxlen),
        lambda values, maxlen: deque(values, maxlen=maxlen),
        lambda x: ([(SequenceKey(i), each) for i, each in enumerate(x)], x.maxlen),
    ),
    namedtuple_: NodeDef(
        namedtuple_,
        lambda x: (list(x), type(x)),
        lambda values, kind: kind(*values),
        lambda x: ([(GetAttrKey(n), getattr(x, n)) for n in x._fields], type(x)),
    ),
}
BUILTIN_TYPES = frozenset(SUPPORTED_NODES)


_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = SUPPORTED_NODES[dict][1:]
_list_flatten, _list_unflatten, _list_flatten_with_keys = SUPPORTED_NODES[list][1:]
_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = SUPPORTED_NODES[tuple][1:]


class TreeSpec:
    """The structure of a tree: what its node is, and the structures of its children."""

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]):
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        self.num_nodes: int = 1 + sum([children_spec.num_nodes for children_spec in self.children_specs])
        self.num_leaves: int = sum([children_spec.num_leaves for children_spec in self.children_specs])
        self.num_children = len(self.children_specs)

    def is_leaf(self) -> bool:
        return False

    def children(self) -> list[TreeSpec]:
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of a tree that stand where this structure has leaves."""
        if self.is_leaf():
            return [tree]
        if tree_is_leaf(tree) or _kind(tree) is not self.type:
            raise ValueError(f"Type mismatch: expected {self.type}, got {type(tree)}")
        children, context = SUPPORTED_NODES[self.type].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch: expected {self.num_children}, got {len(children)}")
        if self.type in (dict, OrderedDict):
            if set(context) != set(self.context):
                raise ValueError(f"Node keys mismatch: {self.context} and {context}")
            children = [tree[key] for key in self.context]
        return [
            each for spec, child in zip(self.children_specs, children) for each in spec.flatten_up_to(child)
        ]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        mine, theirs = [(each.type, each.context, each.children_specs) for each in (self, other)]
        return mine == theirs

    def __hash__(self) -> int:
        return hash((self.type, self.num_nodes, self.num_leaves))

    def __repr__(self) -> str:
        children = ", ".join(map(repr, self.children_specs))
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.num_leaves = 1

    def is_leaf(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "*"


_LEAF = LeafSpec()


def treespec_leaf() -> LeafSpec:
    return _LEAF


def treespec_pprint(treespec: TreeSpec) -> str:
    return repr(treespec)


def tree_is_leaf(tree: Any, is_leaf: Leaf = None) -> bool:
    """Whether a tree is a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _kind(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def tree_flatten(tree: Any, is_leaf: Leaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree in order, and its structure."""
    leaves: list[Any] = []

    def walk(node: Any) -> TreeSpec:
        if tree_is_leaf(node, is_leaf):
            leaves.append(node)
            return _LEAF
        kind = _kind(node)
        children, context = SUPPORTED_NODES[kind].flatten_fn(node)
        return TreeSpec(kind, context, [walk(child) for child in children])

    spec = walk(tree)
    return leaves, spec


def tree_iter(tree: Any, is_leaf: Leaf = None) -> Iterator[Any]:
    return iter(tree_leaves(tree, is_leaf))


def tree_leaves(tree: Any, is_leaf: Leaf = None) -> list[Any]:
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of the arguments of a call, those given by name last."""
    return tree_leaves((args, kwargs))


def tree_structure(tree: Any, is_leaf: Leaf = None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


@located
def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of this structure with these leaves."""
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise ArgumentError(f"{len(values)} leaves do not fit a structure with {treespec.num_leaves}")
    rest = iter(values)

    def build(spec: TreeSpec) -> Any:
        if spec.is_leaf():
            return next(rest)
        return SUPPORTED_NODES[spec.type].unflatten_fn(
            [build(children_spec) for children_spec in spec.children_specs], spec.context
        )

    return build(treespec)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Leaf = None) -> Any:
    """A tree of the same structure, with the function's results on its leaves; further trees give further
    arguments."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Leaf = None) -> Any:
    """Call a function on the leaves; the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]), maxlen=0)
    return tree


def _only(types: Any) -> Callable[[Any], bool]:
    if isinstance(types, (type, tuple)) or not callable(types):
        return lambda x: isinstance(x, types)
    return types


def map_only(types: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function on values of these types, and any other value as it is."""
    test = _only(types)
    return lambda func: functools.wraps(func)(lambda x: func(x) if test(x) else x)


def tree_map_only(
    type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Leaf = None
) -> Any:
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Leaf = None
) -> Any:
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Leaf = None) -> bool:
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Leaf = None) -> bool:
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Leaf = None) -> bool:
    return all(
        pred(tree_leaf) for tree_leaf in tree_leaves(tree, is_leaf) if isinstance(tree_leaf, type_or_types)
    )


def tree_any_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Leaf = None) -> bool:
    return any(
        pred(tree_leaf) for tree_leaf in tree_leaves(tree, is_leaf) if isinstance(tree_leaf, type_or_types)
    )


def tree_leaves_with_path(tree: Any, is_leaf: Leaf = None) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves, each with the keys that lead to it."""
    found: list[tuple[tuple[Any, ...], Any]] = []

    def walk(node: Any, path: tuple[Any, ...]) -> None:
        if tree_is_leaf(node, is_leaf):
            found.append((path, node))
            return
        definition = SUPPORTED_NODES[_kind(node)]
        if definition.flatten_with_keys_fn is None:
            raise ArgumentError(f"{definition.type} was registered without flatten_with_keys_fn")
        for key, child in definition.flatten_with_keys_fn(node)[0]:
            walk(child, (*path, key))

    walk(tree, ())
    return found


def tree_flatten_with_path(tree: Any, is_leaf: Leaf = None) -> tuple[list[Any], TreeSpec]:
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Leaf = None) -> Any:
    """As `tree_map`, with the keys that lead to a leaf as the function's first argument."""
    located_leaves, spec = tree_flatten_with_path(tree, is_leaf)
    others = zip(*[spec.flatten_up_to(rest) for rest in rests]) if rests else iter(())
    results = [func(path, leaf, *next(others, ())) for path, leaf in located_leaves]
    return spec.unflatten(results)


def keystr(kp: Iterable[Any]) -> str:
    """The keys as Python would write them, such as `[0].a`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """What the keys lead to."""
    for key in kp:
        obj = key.get(obj)
    return obj
