"""ATen schema strings, read whole and printed back.

`parse` turns `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor` into a `Schema`, whose
`str` is the canonical text again: no `aten::` prefix, strings and floats as Python writes them, lists as
`[0,1]`, one number for a fixed-size list whose entries are all equal, a reduction by its number, other
enumerations by their words (`long`). How values are matched against a schema lives in `resolve.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from tenfold.base.errors import FormatError, did_you_mean

__all__ = ["MISSING", "Argument", "Return", "Schema", "Type", "parse"]


class _Missing:
    """The type of `MISSING`, the default of an argument that has none."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class Schema:
    """One operator overload: what it is called, what it takes, what it gives back."""

    __slots__ = (
        "arguments",
        "keyword_only",
        "name",
        "namespace",
        "overload",
        "positional",
        "returns",
        "variadic",
    )

    def __init__(
        self,
        name: str,
        overload: str,
        arguments: tuple[Argument, ...],
        returns: tuple[Return, ...],
        *,
        namespace: str = "aten",
        variadic: bool = False,
    ):
        self.name = name
        self.overload = overload
        self.arguments = arguments
        self.returns = returns
        self.namespace = namespace
        self.variadic = variadic  # the arguments end in `...`
        self.positional = tuple([a for a in arguments if not a.keyword_only])
        self.keyword_only = arguments[len(self.positional) :]

    @property
    def qualified(self) -> str:
        """`add.Tensor`, or `relu` where the overload has no name."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def is_view(self) -> bool:
        """Whether a result shares memory with an argument that is not written to."""
        read: set[str] = set()
        for argument in self.arguments:
            if not argument.type.is_written:
                read |= argument.type.alias_sets
        return any(not r.type.is_written and r.type.alias_sets & read for r in self.returns)

    @property
    def is_inplace(self) -> bool:
        """Whether the first argument is written to and is what comes back."""
        if not self.positional or not self.returns:
            return False
        first, result = self.positional[0].type, self.returns[0].type
        return first.is_written and result.is_written and first.alias_sets == result.alias_sets

    def __str__(self) -> str:
        namespace = "" if self.namespace == "aten" else f"{self.namespace}::"
        arguments = [str(a) for a in self.positional]
        if self.variadic:
            arguments.append("...")
        if self.keyword_only:
            arguments += ["*", *map(str, self.keyword_only)]
        returns = ", ".join(map(str, self.returns))
        if len(self.returns) != 1 or returns.startswith("("):
            returns = f"({returns})"
        return f"{namespace}{self.qualified}({', '.join(arguments)}) -> {returns}"

    def __repr__(self) -> str:
        return f"<Schema {self}>"

    def __reduce__(self) -> tuple[Callable[[str], Schema], tuple[str]]:
        return parse, (str(self),)


class Argument:
    """A parameter. `default` is `MISSING` where the caller must give a value."""

    __slots__ = ("default", "keyword_only", "name", "type")

    def __init__(self, name: str, type: Type, default: Any = MISSING, keyword_only: bool = False):
        self.name = name
        self.type = type
        self.default = default
        self.keyword_only = keyword_only

    def __str__(self) -> str:
        text = f"{self.type} {self.name}"
        return text if self.default is MISSING else f"{text}={_print_default(self.default, self.type)}"

    def __repr__(self) -> str:
        return f"<Argument {self}>"


class Return:
    """A result; `name` is empty where the schema gives none."""

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: Type):
        self.name = name
        self.type = type

    def __str__(self) -> str:
        return f"{self.type} {self.name}" if self.name else str(self.type)

    def __repr__(self) -> str:
        return f"<Return {self}>"


class Type:
    """The type of an argument or a result. Types with the same text are the same object.

    `list_size` is None for no list, -1 for `int[]`, 2 for `int[2]`. `element_optional` is the first mark of
    `Tensor?[]?` and `optional` the second. `alias` annotates the value or the elements, `Tensor(a!)[]`, and
    `list_alias` the list itself, `t[](a!)`. `kind` is `base`, but what is passed as a plain number reads as
    one: a `SymInt` is an `int`.
    """

    __slots__ = (
        "alias",
        "alias_sets",
        "base",
        "element_optional",
        "is_written",
        "kind",
        "list_alias",
        "list_size",
        "optional",
        "text",
    )

    def __init__(
        self,
        base: str,
        optional: bool = False,
        list_size: int | None = None,
        element_optional: bool = False,
        alias: str | None = None,
        list_alias: str | None = None,
    ):
        self.base = base
        self.optional = optional
        self.list_size = list_size
        self.element_optional = element_optional
        self.alias = alias
        self.list_alias = list_alias
        self.kind = _NUMBERS.get(base, base)
        annotation = f"{alias or ''} {list_alias or ''}"
        self.is_written = "!" in annotation
        # `a -> *`: the value moves from set a to an unknown one, so only a is shared with the results.
        self.alias_sets = frozenset(re.findall(r"\w+", annotation.replace("!", " ").split("->")[0]))
        self.text = "".join(
            (
                base,
                f"({alias})" if alias else "",
                "?" if element_optional else "",
                "" if list_size is None else "[]" if list_size < 0 else f"[{list_size}]",
                f"({list_alias})" if list_alias else "",
                "?" if optional else "",
            )
        )

    @property
    def is_list(self) -> bool:
        return self.list_size is not None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Type {self.text}>"


def parse(text: str) -> Schema:
    """Read one schema, as `native_functions.yaml` or PyTorch's `str(schema)` writes it."""
    head = _HEAD.match(text)
    if head is None:
        _fail(text, 0, "a schema starts with a name and '(', as in 'add.Tensor('")
    namespace, name, overload = head.groups()
    position = head.end()

    arguments: list[Argument] = []
    keyword_only = variadic = False
    closed = text[position : position + 1] == ")"
    if closed:
        position += 1
    while not closed:
        match = _ARGUMENT.match(text, position)
        if match is None:
            _explain(text, position)
        type_text, argument_name, default_text, mark, separator = match.groups()
        closed = separator == ")"
        if mark is None:
            type = _TYPES.get(type_text) or _type(type_text, text, position)
            default = MISSING
            if default_text is not None:
                default = _read_default(default_text, type, text, match.start(3))
            arguments.append(Argument(argument_name, type, default, keyword_only))
        elif mark == "...":
            if keyword_only or not closed:
                _fail(text, position, "'...' comes last, and not after '*'")
            variadic = True
        elif keyword_only or closed:
            _fail(text, position, "'*' comes once, before the keyword-only arguments")
        else:
            keyword_only = True
        position = match.end()
    names = [a.name for a in arguments]
    if len(set(names)) < len(names):
        _fail(text, head.end(), f"two arguments are called '{max(names, key=names.count)}'")

    return Schema(
        name,
        overload or "",
        tuple(arguments),
        _returns(text, position),
        namespace=namespace or "aten",
        variadic=variadic,
    )


def _returns(text: str, position: int) -> tuple[Return, ...]:
    arrow = _ARROW.match(text, position)
    if arrow is None:
        _fail(text, position, "the arguments are followed by ' -> ' and the results")
    position = arrow.end()
    single = _RETURN.match(text, position)
    if single is not None and single.end() == len(text) and text[position] != "(":
        type_text, name = single.groups()
        return (Return(name or "", _TYPES.get(type_text) or _type(type_text, text, position)),)
    if not text.startswith("(", position):
        _fail(text, position, "expected a type, or several in parentheses, and nothing after")
    position += 1
    returns: list[Return] = []
    closed = text.startswith(")", position)
    while not closed:
        match = _RETURN.match(text, position)
        if match is None:
            _fail(text, position, "expected the type of a result")
        type_text, name = match.groups()
        returns.append(Return(name or "", _TYPES.get(type_text) or _type(type_text, text, position)))
        position = match.end()
        closed = text.startswith(")", position)
        if not closed:
            comma = _COMMA.match(text, position)
            if comma is None:
                _fail(text, position, "expected ',' or ')' after a result")
            position = comma.end()
    if text[position + 1 :].strip():
        _fail(text, position + 1, "nothing may follow the results")
    return tuple(returns)


_NUMBERS = {"SymInt": "int", "SymBool": "bool", "SymFloat": "float", "DeviceIndex": "int"}

_KNOWN = {
    *("Tensor", "int", "SymInt", "float", "SymFloat", "bool", "SymBool", "str", "complex", "Scalar"),
    *("ScalarType", "Layout", "Device", "DeviceIndex", "MemoryFormat", "Generator", "Dimname", "QScheme"),
    *("Storage", "Stream", "ConstQuantizerPtr", "Any", "AnyEnumType"),
    *("t", "t1", "t2", "tVal"),  # the type variables of TorchScript's containers
}
_GENERIC = ("Dict", "Future", "RRef")

_NESTED = r"\((?:[^()]|\([^()]*\))*\)"
_TYPE_TEXT = rf"(?:[A-Za-z_][\w.]*|{_NESTED})(?:{_NESTED}|\[\d*\]|\?)*"
_DEFAULT_TEXT = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|\[[^\]]*\]|[^\s,()\[\]"\']+'
_HEAD = re.compile(r"\s*(?:(\w+)::)?(\w+)(?:\.(\w+))?\(\s*")
_ARGUMENT = re.compile(
    rf"(?:({_TYPE_TEXT})\s+(\w+)(?:\s*=\s*({_DEFAULT_TEXT}))?|(\*|\.\.\.))\s*(,|\))\s*",
)
_ARROW = re.compile(r"\s*->\s*")
_COMMA = re.compile(r",\s*")
_RETURN = re.compile(rf"({_TYPE_TEXT})(?:\s+(\w+))?\s*")
_TYPE = re.compile(
    rf"""(?P<base>(?:{"|".join(_GENERIC)}){_NESTED}|{_NESTED}|[\w.]+)
         (?:\((?P<alias>[^()]+)\))?
         (?:(?P<element_optional>\?)?\[(?P<size>\d*)\](?:\((?P<list_alias>[^()]+)\))?)?
         (?P<optional>\?)?""",
    re.VERBOSE,
)
_ALIAS = re.compile(r"(?:\*|\w+(?:\|\w+)*)!?(?: ?-> ?(?:\*|\w+(?:\|\w+)*))?")

_TYPES: dict[str, Type] = {}  # one object a type, by every text it was written as


def _type(type_text: str, text: str, position: int) -> Type:
    match = _TYPE.fullmatch(type_text)
    if match is None:
        _fail(text, position, f"'{type_text}' is not a type: marks go as in 'Tensor(a!)?[2]?'")
    base, alias, element_optional, size, list_alias, optional = match.groups()
    plain = re.match(r"[\w.]*", base).group()  # type: ignore[union-attr]  # matches nothing too
    if plain not in _KNOWN and plain not in _GENERIC and plain and not plain.startswith("__torch__."):
        _fail(text, position, f"unknown type '{plain}'", help=did_you_mean(plain, sorted(_KNOWN)))
    for annotation in (alias, list_alias):
        if annotation and not _ALIAS.fullmatch(annotation):
            _fail(text, position, f"'({annotation})' is not an alias such as (a), (a!) or (a -> *)")
    list_size = None if size is None else int(size) if size else -1
    if list_size == 0:
        _fail(text, position, "a list's fixed size is at least 1")
    made = Type(base, bool(optional), list_size, bool(element_optional), alias, list_alias)
    made = _TYPES.setdefault(made.text, made)
    _TYPES[type_text] = made
    return made


# native_functions.yaml writes enumerations as words, PyTorch's printer as numbers. An operator takes an
# `at::Reduction` as an int; the others stay words, in the spelling of the Python names.
_REDUCTION = {"Mean": 1, "Sum": 2}
_WORDS = {
    "ScalarType": ("uint8", "int8", "short", "int", "long", "half", "float", "double"),
    "MemoryFormat": ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"),
    "Layout": ("strided", "sparse_coo", "sparse_csr"),
}


def _read_default(default: str, type: Type, text: str, position: int) -> Any:
    if default == "None":
        if not type.optional:
            _fail(text, position, f"None is no default for {type}: write {type}?")
        return None
    try:
        if not type.is_list:
            return _read_value(default, type.kind)
        if default[0] == "[":
            entries = default[1:-1].strip()
            return tuple(_read_value(e.strip(), type.kind) for e in entries.split(",")) if entries else ()
        if type.list_size == -1:
            raise ValueError
        return (_read_value(default, type.kind),) * type.list_size  # type: ignore[operator]  # is_list
    except (ValueError, LookupError):
        _fail(text, position, f"{default} is no default for {type}")


def _read_value(value: str, kind: str) -> Any:
    if kind == "int":
        return _REDUCTION[value] if value in _REDUCTION else int(value)
    if kind == "bool":
        return {"True": True, "False": False}[value]
    if kind == "float":
        return float(value)
    if kind == "str":
        if len(value) < 2 or value[0] != value[-1] or value[0] not in "'\"":
            raise ValueError
        return value[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
    if kind == "Scalar":
        return {"True": True, "False": False}[value] if value[0] in "TF" else _read_number(value)
    if kind == "complex":
        return complex(value)
    words = _WORDS[kind]
    if value.isdigit():
        return words[int(value)]
    if not value.isidentifier():
        raise ValueError
    return value


def _read_number(value: str) -> int | float:
    try:
        return int(value)
    except ValueError:
        return float(value)


def _print_default(value: Any, type: Type) -> str:
    if isinstance(value, tuple):
        if value and len(value) == type.list_size and len(set(value)) == 1:
            value = value[0]
        else:
            return f"[{','.join(_print_value(v, type) for v in value)}]"
    return _print_value(value, type)


def _print_value(value: Any, type: Type) -> str:
    return value if type.kind in _WORDS and value is not None else repr(value)


def _explain(text: str, position: int) -> NoReturn:
    """Say why no argument could be read at this position."""
    pattern = rf"(?:({_TYPE_TEXT})(?:\s+(\w+)(?:\s*=\s*({_DEFAULT_TEXT}))?)?)?\s*"
    partial = re.compile(pattern).match(text, position)
    assert partial is not None, "every part of the pattern is optional"
    type_text, name, default = partial.groups()
    end = partial.end()
    if end >= len(text):
        _fail(text, end, "the arguments end without ')'")
    if type_text is None:
        _fail(text, end, "expected an argument: a type and a name, as in 'Tensor self'")
    if name is None:
        _fail(text, end, f"the argument of type '{type_text}' has no name")
    if default is None and text[end] == "=":
        _fail(text, end + 1, f"the default of '{name}' is missing or never closed")
    _fail(text, end, f"expected ',' or ')' after the argument '{name}'")


def _fail(text: str, position: int, problem: str, *, help: str | None = None) -> NoReturn:
    raise FormatError(f"schema: {problem}\n    {text}\n    {' ' * position}^", help=help)
