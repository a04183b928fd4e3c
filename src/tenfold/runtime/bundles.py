"""Small inputs that stay the same from call to call, such as a model's biases, bundled in one array for each
dtype: what a call costs on the host grows with the number of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenfold import flat
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.engines import xla
from tenfold.flat.data_ops import BroadcastInDim, Reshape, Transpose
from tenfold.flat.elementwise import Add, Convert
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.structured import DotGeneral
from tenfold.flat.windows import Convolution
from tenfold.mlir import stablehlo
from tenfold.ops.tile_runs import read_in_place

FEW = 8  # inputs for which it does not pay
ALIGNED = 128  # bytes at which a part starts, which is what a GPU reads together


LIBRARY = DotGeneral, Convolution  # what XLA leaves to a library, with a bias that is added to its result
FORMS = BroadcastInDim, Convert, Reshape, Transpose


def taken_whole(function: Function) -> set[Value]:
    """The parameters that XLA would copy out of a bundle, because a library takes them: factors and biases of
    products and convolutions."""
    results: set[Value] = set()
    taken: set[Value] = set()
    for op in function.ops:
        if isinstance(op, LIBRARY):
            results.update(op.results)
            taken.update(map(_formed_from, op.operands))
        elif isinstance(op, FORMS) and op.operands[0] in results:
            results.update(op.results)
        elif isinstance(op, Add) and not results.isdisjoint(op.operands):
            taken.update(map(_formed_from, op.operands))
    return taken.intersection(function.params)


def _formed_from(value: Value) -> Value:
    """What a value has the elements of, in another shape or dtype."""
    while isinstance(value.op, FORMS):
        value = value.op.operands[0]
    return value


class Bundle(NamedTuple):
    """Inputs of one dtype: their places, where each starts in the bundle, and its size."""

    places: tuple[int, ...]
    starts: tuple[int, ...]
    type: TensorType


def bundles_of(params: Sequence[Value], places: Sequence[int]) -> list[Bundle]:
    """How the parameters at these places are bundled."""
    by_dtype: dict[DType, list[int]] = {}
    for place in places:
        by_dtype.setdefault(params[place].dtype, []).append(place)
    return [_bundle(dtype, params, group) for dtype, group in by_dtype.items() if len(group) > FEW]


def _bundle(dtype: DType, params: Sequence[Value], places: Sequence[int]) -> Bundle:
    each = ALIGNED // dtype.itemsize
    starts, size = [], 0
    for place in places:
        starts.append(size)
        size += -(-params[place].numel // each) * each
    return Bundle(tuple(places), tuple(starts), TensorType(dtype, (size,)))


class Bundled:
    """A program with bundles as its last parameters in place of their parts, and what makes its arguments."""

    def __init__(self, function: Function, bundles: Sequence[Bundle]):
        self.bundles = bundles
        taken = {place for bundle in bundles for place in bundle.places}
        self.alone = [i for i in range(len(function.params)) if i not in taken]
        arguments = list(function.params)
        vectors = [Value(bundle.type) for bundle in bundles]
        for bundle, vector in zip(bundles, vectors, strict=True):
            for place, start in zip(bundle.places, bundle.starts, strict=True):
                type = arguments[place].type
                part = flat.slice(vector, (start,), (start + type.numel,))
                arguments[place] = flat.reshape(part, type.shape)
        params = [*[function.params[i] for i in self.alone], *vectors]
        results = function.inline(arguments, whole=True)
        self.function = read_in_place(Function(params, results, function.name))
        self._types = {place: function.params[place].type for place in taken}

    def donated(self, donated: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(self.alone.index(place), result) for place, result in donated]

    def arguments(self, device: Device) -> Callable[[Sequence[Any]], list[Any]]:
        """What makes the arguments of a call from those that there would be without bundles."""
        alone = _getter(self.alone)
        gathered = [_Gathered(bundle, self._types, device) for bundle in self.bundles]
        return lambda buffers: [*alone(buffers), *[each.take(buffers) for each in gathered]]


class _Gathered:
    """A bundle on a device, made anew when one of its parts is another array than at the last call, and at
    each call if another library sees the memory of one."""

    def __init__(self, bundle: Bundle, types: dict[int, TensorType], device: Device):
        self._parts = _getter(bundle.places)
        self._last: tuple[Any, ...] = ()
        self._times = -1  # that arrays had been shared when these were looked at
        self._shared = False
        self._vector: Any = None
        self._device = device
        params = [Value(types[place]) for place in bundle.places]
        ends = [*bundle.starts[1:], bundle.type.numel]
        pieces = []
        for param, start, end in zip(params, bundle.starts, ends, strict=True):
            pieces.append(flat.reshape(param, (param.numel,)))
            if room := end - start - param.numel:
                pieces.append(flat.full((room,), 0, param.dtype))
        self._function = Function(params, [flat.concatenate(pieces, 0)], "bundle")
        self._program: xla.Executable | None = None

    def take(self, buffers: Sequence[Any]) -> Any:
        parts = self._parts(buffers)
        same = len(parts) == len(self._last) and all(map(operator.is_, parts, self._last))
        if not same or self._times != xla.shared.times:
            self._times = xla.shared.times
            self._shared = any(part in xla.shared for part in parts)
        if not same or self._shared:
            if self._program is None:
                self._program = xla.compile(stablehlo.emit(self._function, ()), self._device)
            (self._vector,) = self._program(parts)
            self._last = parts
        return self._vector


def _getter(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What takes the elements at these places of a list."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda buffers: tuple([buffers[place] for place in places])
