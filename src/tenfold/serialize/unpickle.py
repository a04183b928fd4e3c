"""An interpreter of pickles that knows data, tensors and nothing else.

Python's own would import what a file names and call it. This one has a list of names; each stands for a
function of ours that builds plain data, and only these can be called. What a file can make it do and hold is
bounded by the file's length.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import FormatError, TenfoldError, UnsafePickle
from tenfold.base.size import Size
from tenfold.serialize import sparse
from tenfold.serialize.sparse import PlacedSparse
from tenfold.serialize.storages import META, OWN, STORAGES, Placed, PlacedMeta, Storage
from tenfold.tensor import Tensor

MAX_DEPTH = 100
CROWDED = 100  # keys with one hash
_MAX_INT_BYTES = 1024
_HASHABLE = (str, bytes, bool, int, float, complex, type(None), DType, Device)


class Builder:
    """A name of the list: the function that stands for it, and whether it copies its arguments."""

    __slots__ = ("build", "name")

    def __init__(self, name: str, build: Callable[..., Any]):
        self.name = name
        self.build = build


class StorageKind:
    """The class of a storage: its dtype, or None of an untyped one."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: DType | None):
        self.dtype = dtype


def _ordered(pairs: Any = ()) -> OrderedDict[Any, Any]:
    made: OrderedDict[Any, Any] = OrderedDict()
    hashes: Counter[int] = Counter()
    for pair in pairs:
        key, value = pair
        require_spread([key], hashes)
        made[_key(key)] = value
    return made


def _counter(counts: Any = ()) -> Counter[Any]:
    if type(counts) is not dict or not all(type(count) is int for count in counts.values()):
        raise FormatError("a Counter of the file does not count")
    return Counter(counts)


def _set(members: Any = ()) -> set[Any]:
    if type(members) not in (list, tuple):
        raise FormatError("a set of the file is not made of a list")
    require_spread(members, Counter())
    return {_key(member) for member in members}


def _encoded(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise FormatError("bytes of the file are in an encoding other than latin1")
    return text.encode("latin-1")


def _size(numbers: Any) -> Size:
    if not isinstance(numbers, tuple) or not all(type(number) is int for number in numbers):
        raise FormatError("a Size of the file is not made of numbers")
    return Size(numbers)


def _device(kind: Any, index: Any = None) -> Device:
    if type(kind) is not str or len(kind) > 40 or not (index is None or type(index) is int):
        raise FormatError("a device of the file is not made of a name and a number")
    return Device(kind, index)


def _complex(real: Any, imaginary: Any) -> complex:
    if type(real) is not float or type(imaginary) is not float:
        raise FormatError("a complex number of the file is not made of two floats")
    return complex(real, imaginary)


def _tensor(
    storage: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    requires_grad: Any = False,
    hooks: Any = None,
    metadata: Any = None,
) -> Placed:
    return Placed(storage, offset, shape, strides, requires_grad, None, metadata)


def _tensor_of_dtype(
    storage: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Placed:
    return Placed(storage, offset, shape, strides, requires_grad, dtype, metadata)


def _meta(dtype: Any, shape: Any, strides: Any, requires_grad: Any) -> PlacedMeta:
    return PlacedMeta(dtype, shape, strides, bool(requires_grad))


def _parameter(placed: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Placed | PlacedMeta:
    if isinstance(placed, PlacedMeta):
        meta = PlacedMeta(placed.dtype, placed.shape, placed.strides, bool(requires_grad), True)
        return _with_attributes(meta, state)
    if not isinstance(placed, Placed):
        raise FormatError("a parameter of the file is no tensor")
    made = Placed(
        placed.storage,
        placed.offset,
        placed.shape,
        placed.strides,
        requires_grad,
        placed.dtype,
        placed.metadata,
        parameter=True,
    )
    return _with_attributes(made, state)


def _of_type(build: Any, kind: Any, arguments: Any, state: Any) -> Placed | PlacedMeta:
    """A tensor and its attributes."""
    if not isinstance(build, Builder) or kind is not _TENSOR or type(arguments) is not tuple:
        raise FormatError("a tensor of the file is made in a way that Tenfold does not know")
    placed = build.build(*arguments)
    if not isinstance(placed, (Placed, PlacedMeta)):
        raise FormatError("what the file gives attributes is no tensor")
    return _with_attributes(placed, state)


def _with_attributes(placed: Any, state: Any) -> Any:
    if type(state) is tuple and len(state) == 2 and not state[1]:  # those of slots come second
        state = state[0]
    if state is not None and type(state) is not dict:
        raise FormatError("attributes of a tensor of the file are no dict")
    placed.attributes = state or {}
    return placed


def _sparse(layout: Any, arguments: Any) -> PlacedSparse:
    return sparse.placed(layout, arguments, Placed)


def _no_tensor(*arguments: Any) -> Any:
    raise FormatError("the file calls the class of tensors")


_BUILDERS: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": _ordered,
    "collections.Counter": _counter,
    "__builtin__.set": _set,
    "builtins.set": _set,
    "_codecs.encode": _encoded,
    "__builtin__.bytes": lambda: b"",  # how protocol 2 has bytes of no length
    "__builtin__.complex": _complex,
    "builtins.complex": _complex,
    "torch.Size": _size,
    "torch.device": _device,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor_of_dtype,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    f"torch._utils.{META}": _meta,
    "torch._tensor._rebuild_from_type_v2": _of_type,
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch.serialization._get_layout": sparse.layout,
}
_NAMES: dict[str, Any] = {name: Builder(name, build) for name, build in _BUILDERS.items()}
_TENSOR = _NAMES["torch.Tensor"] = Builder("torch.Tensor", _no_tensor)
_NAMES |= {f"torch.{name}": dtype for name, dtype in dtypes.BY_NAME.items()}
_NAMES |= {f"torch.{name}": StorageKind(dtype) for name, dtype in STORAGES.items()}
_NAMES |= {f"torch.{where}UntypedStorage": StorageKind(None) for where in ("", "storage.")}


class Unpickler:
    """Reads pickles that follow each other in `contents`: each `load` gives the next one's object.

    Tensors in it are still `Placed`: `tensors_in` lists them, `finished` puts real ones in their place.
    """

    def __init__(self, contents: bytes):
        self.contents = contents
        self.position = 0
        self.storages: dict[str, Storage] = {}
        self.hashes: dict[int, Counter[int]] = {}  # by the dict or set that is filled: of its keys
        # How much may be copied: a pickle that copies one long string many times would outgrow its file.
        self.allowance = 2 * len(contents)

    def load(self) -> Any:
        self.stack: list[Any] = []
        self.marked: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        try:
            while (code := self.take(1)[0]) != _STOP:
                step = _STEPS.get(code)
                if step is None:
                    raise FormatError(
                        f"the file has the pickle instruction {bytes([code])!r}, which is no data"
                    )
                step(self)
            return self.stack.pop()
        except TenfoldError:
            raise
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, struct.error) as error:
            raise UnsafePickle(f"the file is damaged: its pickle makes no sense ({error})") from None

    def take(self, count: int) -> bytes:
        taken = self.contents[self.position : self.position + count]
        if len(taken) != count:
            raise FormatError(
                "the file is cut short: its pickle ends too early", help="save or copy it again, whole"
            )
        self.position += count
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def line(self) -> str:
        end = self.contents.find(b"\n", self.position, self.position + 1000)
        if end < 0:
            raise FormatError("the file is damaged: a name in its pickle has no end")
        return self.take(end + 1 - self.position)[:-1].decode()

    def spend(self, amount: int) -> None:
        self.allowance -= amount
        if self.allowance < 0:
            raise FormatError("the file would unfold to much more than its own length")

    def mark(self) -> None:
        self.marked.append(self.stack)
        self.stack = []

    def pop_marked(self) -> list[Any]:
        items, self.stack = self.stack, self.marked.pop()
        return items

    def push_name(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise FormatError("the file is damaged: a name in its pickle is no string")
        full = f"{module}.{name}"
        found = _NAMES.get(full)
        if found is None:
            raise UnsafePickle(
                f"the file holds a {full[:100]}, which is neither a tensor nor plain data; it was not run",
                help="save model.state_dict(), or plain data, instead of the object: "
                "torch.save(model.state_dict(), file)",
            )
        self.stack.append(found)

    def call(self) -> None:
        """REDUCE and NEWOBJ: build what a name of the list stands for."""
        arguments, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, Builder) or type(arguments) is not tuple:
            raise FormatError("the file is damaged: its pickle calls what cannot be called")
        for argument in arguments:
            if isinstance(argument, (str, tuple, list, dict)):
                self.spend(len(argument))
        self.stack.append(function.build(*arguments))

    def build(self) -> None:
        """BUILD: attributes of an OrderedDict, which a state_dict has and nobody needs."""
        self.stack.pop()
        if type(self.stack[-1]) is not OrderedDict:
            raise FormatError("the file is damaged, or hostile: it sets attributes of what has none")

    def storage(self) -> None:
        """BINPERSID: a storage, by its class, key, device and size."""
        identity = self.stack.pop()
        if type(identity) is not tuple or len(identity) not in (5, 6) or identity[0] != "storage":
            raise FormatError("the file is damaged: it refers to something other than a storage")
        _, kind, key, location, size = identity[:5]
        if identity[5:] not in ((), (None,)):
            raise FormatError("the file has views of storages, as only very old ones have")
        if not isinstance(kind, StorageKind) or type(size) is not int or not 0 <= size < 1 << 60:
            raise FormatError("the file is damaged: a storage has no dtype or no size")
        if type(key) is not str or type(location) is not str:
            raise FormatError("the file is damaged: a storage has no key or no device")
        made = Storage(kind.dtype, key, location, size)
        known = self.storages.setdefault(key, made)
        if not known.same(made):
            raise FormatError(f"the file is damaged: storage {key[:40]!r} is described in two ways")
        self.stack.append(known)

    def append(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise FormatError("the file is damaged: its pickle appends to what is no list")
        self.stack[-1].extend(items)

    def add(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not set:
            raise FormatError("the file is damaged: its pickle adds to what is no set")
        require_spread(items, self.hashes.setdefault(id(self.stack[-1]), Counter()))
        for item in items:
            if type(item) is tuple:
                self.spend(len(item))
            self.stack[-1].add(_key(item))

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict) or len(items) % 2:
            raise UnsafePickle("the file is damaged: its pickle fills what is no dict")
        require_spread(items[::2], self.hashes.setdefault(id(target), Counter()))
        for key, value in zip(items[::2], items[1::2]):
            if type(key) is tuple:
                self.spend(len(key))
            target[_key(key)] = value


def _key(key: Any) -> Any:
    """A dict's key: something whose hash takes no longer to compute than the file is long."""
    if type(key) is tuple and all(type(each) in _HASHABLE for each in key):
        return key
    if type(key) not in _HASHABLE:
        raise FormatError(f"a dict of the file has a {type(key).__name__} as a key")
    return key


def require_spread(keys: Iterable[Any], counts: Counter[int]) -> None:
    """Refuse keys that were chosen to have one hash: to fill a dict with them takes the square of their
    number. Strings hash by a secret of this process's, so only numbers, and tuples of them, can be chosen
    so."""
    for key in keys:
        if type(key) in (int, float, complex, tuple):
            code = hash(_key(key))
            counts[code] += 1
            if counts[code] > CROWDED:
                raise FormatError("keys of a dict of the file collide: they were chosen to take long to read")


def require_own_names(attributes: dict[Any, Any]) -> None:
    """Refuse attributes that would stand before what every tensor has."""
    for name in attributes:
        if type(name) is not str:
            raise FormatError("attributes of a tensor of the file have no names")
        if name in OWN or hasattr(Tensor, name):
            raise FormatError(f"a tensor of the file has an attribute in the place of Tensor.{name}")


def tensors_in(item: Any) -> list[Placed]:
    """The tensors of what was read, each once; what is no data, or has no end, is refused."""
    found: dict[Placed, None] = {}
    seen: set[Any] = set()
    done: set[int] = set()
    open_: set[int] = set()

    def visit(item: Any, depth: int) -> None:
        kind = type(item)
        if kind in (Placed, PlacedMeta):
            if item in seen:
                return
            seen.add(item)
            if kind is Placed:
                found[item] = None
            require_own_names(item.attributes)
            visit(item.attributes, depth + 1)
        elif kind is PlacedSparse:
            found.update(dict.fromkeys(item.parts))
        elif kind in _HASHABLE or kind in (Size, set, Counter) or id(item) in done:
            return  # of the last two what is in them is
        elif kind not in (list, tuple, dict, OrderedDict):
            raise FormatError(f"the file has a {_named(item)} in the place of data")
        elif id(item) in open_ or depth > MAX_DEPTH:
            raise FormatError(f"containers of the file hold themselves, or are nested over {MAX_DEPTH} deep")
        else:
            open_.add(id(item))
            for each in item.values() if isinstance(item, dict) else item:
                visit(each, depth + 1)
            open_.remove(id(item))
            done.add(id(item))

    visit(item, 0)
    return list(found)


def finished(item: Any, tensors: dict[Placed, Any]) -> Any:
    """What was read, with its tensors; objects that were shared in it stay shared."""
    made: dict[int, Any] = {}

    def finish(item: Any) -> Any:
        kind = type(item)
        if kind in (Placed, PlacedMeta):
            if id(item) not in made:
                tensor = made[id(item)] = tensors[item] if kind is Placed else item.finished()
                vars(tensor).update(finish(item.attributes))
            return made[id(item)]
        if kind not in (list, tuple, dict, OrderedDict, PlacedSparse):
            return item
        if id(item) not in made:
            if kind is PlacedSparse:
                made[id(item)] = item.finished(tensors.__getitem__)
            elif issubclass(kind, dict):
                made[id(item)] = kind(zip(item, map(finish, item.values())))
            else:
                made[id(item)] = kind(map(finish, item))
        return made[id(item)]

    return finish(item)


def _named(item: Any) -> str:
    if isinstance(item, Builder):
        return item.name
    return "bare storage" if isinstance(item, (Storage, StorageKind)) else type(item).__name__


_STOP = ord(".")
_STEPS: dict[int, Callable[[Unpickler], Any]] = {}


def _steps() -> None:
    """One line for each instruction: what it does to the stack."""

    def on(code: bytes, step: Callable[[Unpickler], Any]) -> None:
        _STEPS[code[0]] = step

    def constant(code: bytes, make: Callable[[Unpickler], Any]) -> None:
        def push(u: Unpickler) -> None:
            item = make(u)  # first: this may change which list is the stack
            u.stack.append(item)

        on(code, push)

    constant(b"N", lambda u: None)
    constant(b"\x88", lambda u: True)
    constant(b"\x89", lambda u: False)
    constant(b"K", lambda u: u.number(1))
    constant(b"M", lambda u: u.number(2))
    constant(b"J", lambda u: struct.unpack("<i", u.take(4))[0])
    constant(b"\x8a", lambda u: int.from_bytes(u.take(u.number(1)), "little", signed=True))
    constant(b"\x8b", lambda u: int.from_bytes(u.take(_short(u.number(4))), "little", signed=True))
    constant(b"G", lambda u: struct.unpack(">d", u.take(8))[0])
    constant(b"X", lambda u: _text(u.take(u.number(4))))
    constant(b"\x8c", lambda u: _text(u.take(u.number(1))))
    constant(b"\x8d", lambda u: _text(u.take(u.number(8))))
    constant(b"C", lambda u: u.take(u.number(1)))
    constant(b"B", lambda u: u.take(u.number(4)))
    constant(b"\x8e", lambda u: u.take(u.number(8)))
    constant(b"U", lambda u: u.take(u.number(1)).decode("latin-1"))
    constant(b"T", lambda u: u.take(u.number(4)).decode("latin-1"))
    constant(b"]", lambda u: [])
    constant(b"}", lambda u: {})
    constant(b"\x8f", lambda u: set())
    constant(b")", lambda u: ())
    constant(b"h", lambda u: u.memo[u.number(1)])
    constant(b"j", lambda u: u.memo[u.number(4)])
    constant(b"\x85", lambda u: (u.stack.pop(),))
    constant(b"\x86", lambda u: (u.stack.pop(), u.stack.pop())[::-1])
    constant(b"\x87", lambda u: (u.stack.pop(), u.stack.pop(), u.stack.pop())[::-1])
    constant(b"t", lambda u: tuple(u.pop_marked()))
    on(b"(", Unpickler.mark)
    on(b"0", lambda u: u.stack.pop())
    on(b"1", lambda u: u.pop_marked())
    on(b"q", lambda u: u.memo.__setitem__(u.number(1), u.stack[-1]))
    on(b"r", lambda u: u.memo.__setitem__(u.number(4), u.stack[-1]))
    on(b"\x94", lambda u: u.memo.__setitem__(len(u.memo), u.stack[-1]))
    on(b"a", lambda u: u.append([u.stack.pop()]))
    on(b"e", lambda u: u.append(u.pop_marked()))
    on(b"\x90", lambda u: u.add(u.pop_marked()))
    on(b"s", lambda u: u.set_items([u.stack.pop(), u.stack.pop()][::-1]))
    on(b"u", lambda u: u.set_items(u.pop_marked()))
    on(b"c", lambda u: u.push_name(u.line(), u.line()))
    on(b"\x93", lambda u: u.push_name(*(u.stack.pop(), u.stack.pop())[::-1]))
    on(b"R", Unpickler.call)
    on(b"\x81", Unpickler.call)
    on(b"b", Unpickler.build)
    on(b"Q", Unpickler.storage)
    on(b"\x80", lambda u: _known_protocol(u.number(1)))
    on(b"\x95", lambda u: u.take(8))  # a frame's length: the frame itself follows


def _text(encoded: bytes) -> str:
    return encoded.decode("utf-8", "surrogatepass")


def _short(count: int) -> int:
    if count > _MAX_INT_BYTES:
        raise FormatError(f"the file has an integer of {count} bytes")
    return count


def _known_protocol(number: int) -> None:
    if number > 5:
        raise FormatError(f"the file is a pickle of protocol {number}, and 5 is the newest known")


_steps()
