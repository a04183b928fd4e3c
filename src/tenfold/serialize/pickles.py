"""Writes plain data and tensors as a pickle of PyTorch's dialect, of instructions that it reads safely."""

from __future__ import annotations

import functools
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError
from tenfold.base.size import Size
from tenfold.serialize import sparse
from tenfold.serialize.safe import Tensors
from tenfold.serialize.storages import META, STORAGES, Saved, attributes
from tenfold.serialize.unpickle import MAX_DEPTH
from tenfold.tensor import Tensor
from tenfold.tensor.parameter import Parameter

_NUMBERS = (bool, int, float, complex)
# The function that makes a tensor when it is read, and what writes its arguments.
_Rebuilding = tuple[str, Callable[[], None]]
_STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}
_KINDS = (
    "tensors, numbers, strings, bytes, None, dtypes, devices, Sizes, sets, dicts, lists and tuples of them"
)


class NotPlain(ArgumentError):
    """Something other than tensors and plain data."""


def survey(obj: Any) -> list[Tensor]:
    """The tensors in the data, each once. What cannot be saved is refused before anything is written."""
    found: dict[int, Tensor] = {}
    done: set[int] = set()
    open_: set[int] = set()
    alive: list[Any] = []  # what is known by its identity

    def visit_tensor(item: Tensor, where: str, depth: int) -> None:
        held = attributes(item)
        if item.device.type != "meta":
            found[id(item)] = item
        if held and id(item) not in done:
            if id(item) in open_:
                raise NotPlain(f"{where or 'the tensor'} cannot be saved: it has itself as an attribute")
            open_.add(id(item))
            alive.append(held)
            visit(held, where, depth + 1)
            open_.remove(id(item))
            done.add(id(item))

    def visit(item: Any, where: str, depth: int) -> None:
        if isinstance(item, Tensor):
            if item.layout == "strided":
                visit_tensor(item, where, depth)
            else:
                found.update({id(part): part for part in sparse.held_by(item)})
        elif _is_leaf(item) or id(item) in done:
            return
        elif id(item) in open_ or depth > MAX_DEPTH:
            raise NotPlain(
                f"{where or 'the data'} cannot be saved: it holds itself, or is nested over {MAX_DEPTH} deep"
            )
        elif type(item) in (set, Counter):
            for each in item:
                _check_key(each, where)
            if type(item) is Counter and not all(type(each) is int for each in item.values()):
                raise NotPlain(f"a Counter{f' at {where}' if where else ''} counts with other than ints")
        elif type(item) in (list, tuple, dict) or isinstance(item, (OrderedDict, Tensors)):
            open_.add(id(item))
            if isinstance(item, dict):
                for key, each in item.items():
                    _check_key(key, where)
                    visit(each, f"{where}[{key!r}]", depth + 1)
            else:
                for i, each in enumerate(item):
                    visit(each, f"{where}[{i}]", depth + 1)
            open_.remove(id(item))
            done.add(id(item))
        else:
            place = f" at {where}" if where else ""
            raise NotPlain(
                f"a {type(item).__module__}.{type(item).__qualname__}{place} cannot be saved",
                help="save what its state_dict() returns, and load that with load_state_dict()"
                if hasattr(item, "state_dict")
                else f"what can be saved is {_KINDS}",
            )

    visit(obj, "", 0)
    return list(found.values())


def _is_leaf(item: Any) -> bool:
    if isinstance(item, int) and not isinstance(item, bool) and item.bit_length() > 8 * 254:
        raise NotPlain("an int of more than 254 bytes cannot be saved")
    return item is None or isinstance(item, (*_NUMBERS, str, bytes, DType, Device, Size))


def _check_key(key: Any, where: str) -> None:
    members = key if type(key) is tuple else (key,)
    if not all(_is_leaf(member) and not isinstance(member, Size) for member in members):
        raise NotPlain(
            f"the key {key!r} of {where or 'the dict'} cannot be saved",
            help="keys are strings, numbers and tuples of these",
        )


class Pickler:
    """One pickle. `places` says where each tensor, by its identity, lies in the file's storages."""

    def __init__(self, places: dict[int, Saved], sizes: list[int]):
        self.places = places
        self.sizes = sizes
        self.out = bytearray(b"\x80\x02")
        self.memo: dict[Any, int] = {}

    def dump(self, obj: Any) -> bytes:
        self.write(obj)
        return bytes(self.out + b".")

    def write(self, obj: Any) -> None:
        if obj is None:
            self.out += b"N"
        elif isinstance(obj, bool):
            self.out += b"\x88" if obj else b"\x89"
        elif isinstance(obj, int):
            self.integer(int(obj))
        elif isinstance(obj, float):
            self.out += b"G" + struct.pack(">d", obj)
        elif isinstance(obj, complex):
            self.reduce("__builtin__ complex", obj.real, obj.imag)
        elif isinstance(obj, str):
            self.once(("text", str(obj)), lambda: self.text(obj))
        elif isinstance(obj, bytes):
            self.reduce("_codecs encode", obj.decode("latin-1"), "latin1")
        elif isinstance(obj, DType):
            self.name(f"torch {obj.name}")
        elif isinstance(obj, Device):
            self.reduce("torch device", obj.type, *(() if obj.index is None else (obj.index,)))
        elif isinstance(obj, Size):
            self.name("torch Size")
            self.out += b"("
            self.tuple(tuple(obj))
            self.out += b"tR"
        elif isinstance(obj, Parameter):
            self.once(id(obj), lambda: self.parameter(obj))
        elif isinstance(obj, Tensor) and obj.layout != "strided":
            self.once(id(obj), lambda: self.sparse(obj))
        elif isinstance(obj, Tensor):
            self.once(id(obj), lambda: self.tensor(obj))
        elif isinstance(obj, tuple):
            self.once(id(obj), lambda: self.tuple(obj))
        elif isinstance(obj, list):
            self.once(id(obj), lambda: self.list(obj))
        elif isinstance(obj, set):
            self.once(
                id(obj), lambda: self.made_of("__builtin__ set", lambda: self.list(sorted(obj, key=repr)))
            )
        elif isinstance(obj, Counter):
            self.once(id(obj), lambda: self.made_of("collections Counter", lambda: self.dict(dict(obj))))
        else:
            self.once(id(obj), lambda: self.dict(obj))

    def made_of(self, name: str, write: Callable[[], Any]) -> None:
        """Something that is made of one plain container."""
        self.name(name)
        self.out += b"("
        write()
        self.out += b"tR"

    def once(self, identity: Any, write: Callable[[], Any]) -> None:
        """Write an object, or refer to it if it was written before."""
        known = self.memo.get(identity)
        if known is None:
            write()
            number = self.memo[identity] = len(self.memo)
            self.out += b"q" + bytes([number]) if number < 256 else b"r" + struct.pack("<I", number)
        else:
            self.out += b"h" + bytes([known]) if known < 256 else b"j" + struct.pack("<I", known)

    def name(self, name: str) -> None:
        self.once(("name", name), lambda: self.out.extend(b"c%s\n" % name.replace(" ", "\n").encode()))

    def reduce(self, name: str, *arguments: Any) -> None:
        self.name(name)
        self.tuple(arguments)
        self.out += b"R"

    def integer(self, number: int) -> None:
        if 0 <= number < 256:
            self.out += b"K" + bytes([number])
        elif -(1 << 31) <= number < 1 << 31:
            self.out += b"J" + struct.pack("<i", number)
        else:
            encoded = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
            self.out += b"\x8a" + bytes([len(encoded)]) + encoded

    def text(self, text: str) -> None:
        encoded = text.encode("utf-8", "surrogatepass")
        self.out += b"X" + struct.pack("<I", len(encoded)) + encoded

    def tuple(self, items: tuple[Any, ...]) -> None:
        self.out += b"("
        for item in items:
            self.write(item)
        self.out += b"t"

    def list(self, items: list[Any]) -> None:
        self.out += b"]("
        for item in items:
            self.write(item)
        self.out += b"e"

    def dict(self, items: dict[Any, Any]) -> None:
        if isinstance(items, OrderedDict):
            self.reduce("collections OrderedDict")
        else:
            self.out += b"}"
        self.out += b"("
        for key, item in items.items():
            self.write(key)
            self.write(item)
        self.out += b"u"

    def parameter(self, parameter: Parameter) -> None:
        held = attributes(parameter)
        self.name(f"torch._utils _rebuild_parameter{'_with_state' if held else ''}")
        self.out += b"("
        self.call(*self.rebuilding(parameter, False))
        self.write(parameter.requires_grad)
        self.reduce("collections OrderedDict")  # of hooks: none
        if held:
            self.dict(held)
        self.out += b"tR"

    def sparse(self, tensor: Tensor) -> None:
        layout, arguments = sparse.described(tensor)
        self.name(f"torch._utils {sparse.REBUILD}")
        self.out += b"("
        self.reduce("torch.serialization _get_layout", layout)
        self.out += b"("
        for argument in arguments:
            if isinstance(argument, Tensor):
                self.once(
                    ("part", id(argument)),
                    functools.partial(self.call, *self.rebuilding(argument, False)),
                )
            else:
                self.write(argument)
        self.out += b"ttR"

    def tensor(self, tensor: Tensor) -> None:
        rebuild, arguments = self.rebuilding(tensor, tensor.requires_grad)
        held = attributes(tensor)
        if not held:
            self.call(rebuild, arguments)
            return
        self.name("torch._tensor _rebuild_from_type_v2")
        self.out += b"("
        self.name(rebuild)
        self.name("torch Tensor")
        arguments()
        self.dict(held)
        self.out += b"tR"

    def call(self, function: str, arguments: Callable[[], None]) -> None:
        self.name(function)
        arguments()
        self.out += b"R"

    def rebuilding(self, tensor: Tensor, requires_grad: bool) -> _Rebuilding:
        if tensor.device.type == "meta":

            def described() -> None:
                self.out += b"("
                self.write(tensor.dtype)
                self.tuple(tuple(tensor.shape))
                self.tuple(tuple(tensor.stride()))
                self.write(requires_grad)
                self.out += b"t"

            return f"torch._utils {META}", described
        saved, dtype = self.places[id(tensor)], tensor.dtype
        typed = _STORAGE_OF.get(dtype)

        def arguments() -> None:
            self.out += b"(("
            self.write("storage")
            self.name(f"torch {typed}" if typed else "torch.storage UntypedStorage")
            size = self.sizes[saved.key]
            for each in (str(saved.key), _location(tensor), size // (dtype.itemsize if typed else 1)):
                self.write(each)
            self.out += b"tQ"
            self.integer(saved.offset)
            self.tuple(tuple(tensor.shape))
            self.tuple(saved.strides)
            self.write(requires_grad)
            self.reduce("collections OrderedDict")  # of hooks: none
            if not typed:
                self.write(dtype)
            self.out += b"t"

        return f"torch._utils _rebuild_tensor_v{2 if typed else 3}", arguments


def _location(tensor: Any) -> str:
    """The device that a file names: of a tensor on a mesh, which is saved whole, one of its kind."""
    place = tensor.device.resolved
    return str(place if place.mesh is None else Device(place.type).resolved)
