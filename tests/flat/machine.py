"""How FlatIR is put to the test: many ops in one program, run by XLA, by StableHLO's interpreter and by
tier 0, checked against NumPy; and single ops, judged by StableHLO's verifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.meshes import Mesh, Sharding
from tenfold.engines import numpy as tier0, xla
from tenfold.flat import collectives as c
from tenfold.flat.ir import Function, Op, TensorType, Value
from tenfold.mlir import stablehlo

CPU = Device("cpu")
# The interpreter hands these over as bits.
BITS = {dtypes.bfloat16: dtypes.uint16, dtypes.float8_e4m3fn: dtypes.uint8, dtypes.float8_e5m2: dtypes.uint8}


class Machine:
    """Cases that share one program: `expect` notes what a value must be, `run` compares all at once."""

    def __init__(self) -> None:
        self.params: list[Value] = []
        self.arrays: list[np.ndarray] = []
        self.cases: list[tuple[str, Value, np.ndarray, float]] = []

    def input(self, array: Any, dtype: DType | None = None) -> Value:
        array = np.asarray(array) if dtype is None else np.asarray(array).astype(dtype.numpy)
        param = Value(TensorType(dtypes.from_numpy(array.dtype), array.shape))
        self.params.append(param)
        self.arrays.append(array)
        return param

    def expect(self, name: str, value: Value, expected: Any, tolerance: float = 0.0) -> None:
        """`tolerance` is relative, absolute below 1; the expected array is rounded to the value's dtype."""
        expected = np.asarray(expected)
        assert value.shape == expected.shape, f"{name}: {value.type}, expected shape {expected.shape}"
        if value.dtype.is_complex:  # the interpreter cannot hand complex numbers over
            self.expect(f"{name}, real part", flat.real(value), expected.real, tolerance)
            self.expect(f"{name}, imaginary part", flat.imag(value), np.imag(expected), tolerance)
            return
        with np.errstate(all="ignore"):
            self.cases.append((name, value, expected.astype(value.dtype.numpy), tolerance))

    def run(self, interpreter: bool = True) -> None:
        results = [
            flat.bitcast(value, BITS[value.dtype]) if value.dtype in BITS else value
            for _, value, _, _ in self.cases
        ]
        function = Function(self.params, results)
        module = stablehlo.emit(function)
        assert module.module.operation.verify()
        buffers = [xla.put(each, CPU) for each in self.arrays]
        wrong = self.wrong("XLA", [xla.fetch(each) for each in xla.compile(module, CPU)(buffers)])
        if interpreter:
            wrong += self.wrong("the interpreter", stablehlo.interpret(module, self.arrays))
        wrong += self.wrong("tier 0", tier0.run(function, self.arrays))
        assert self.cases and not wrong, "\n".join(wrong)

    def wrong(self, engine: str, found: list[np.ndarray]) -> list[str]:
        lines = []
        for (name, value, expected, tolerance), array in zip(self.cases, found, strict=True):
            array = np.asarray(array).view(expected.dtype)
            assert array.shape == expected.shape
            if not same(array, expected, tolerance):
                lines.append(f"{engine}: {name} ({value.type}): {array.tolist()}, NumPy: {expected.tolist()}")
        return lines


def same(array: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    if expected.dtype.kind in "biu":
        return np.array_equal(array, expected)
    array, expected = array.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(array - expected) <= tolerance * np.maximum(np.abs(expected), 1)
    both_nan = np.isnan(array) & np.isnan(expected)
    return bool(np.all((array == expected) | both_nan | (close & np.isfinite(expected))))


def params(*types: tuple[DType, tuple[int, ...]]) -> list[Value]:
    return [Value(TensorType(dtype, shape)) for dtype, shape in types]


def on_one_device(dim: int) -> Sharding:
    """A matrix whose dimension `dim` is split over a mesh of one device."""
    mesh = Mesh("cpu", (("data", 1),), (0,))
    return Sharding(mesh, [(mesh.axis("data"),) if each == dim else () for each in range(2)])


ALONE = ((0,),)  # the groups of a mesh of one device


def by_one_device(x: Value) -> Value:
    """The squares of a matrix by code for one device."""
    placed, part = on_one_device(0), Value(x.type)
    body = Function([part], [part * part], "squares")
    return c.ManualComputation((x,), body, (placed,), (placed,)).result


def collectives() -> dict[str, Any]:
    """Each collective, by its name, as a function of a matrix on a mesh of one device."""
    return {
        "manual computation": by_one_device,
        "all-reduce": lambda x: c.all_reduce(x, "add", ALONE),
        "all-reduce of maxima": lambda x: c.all_reduce(x, "max", ALONE),
        "all-gather": lambda x: c.AllGather(x, 1, ALONE).result,
        "reduce-scatter": lambda x: c.ReduceScatter(x, 0, ALONE).result,
        "all-to-all": lambda x: c.AllToAll(x, 0, 1, ALONE).result,
        "permute": lambda x: c.CollectivePermute(x, ((0, 0),)).result,
        "partition": lambda x: x * flat.convert(c.PartitionId().result + 1, x.dtype),
    }


def verdict(op: Op) -> str:
    """What StableHLO's verifier says of the op: "" if it accepts it, else its complaint."""
    module = stablehlo.emit(Function(list(dict.fromkeys(op.operands)), op.results))
    try:
        module.module.operation.verify()
    except Exception as error:
        return str(error).splitlines()[1]
    return ""


def unchecked(kind: type[Op], *fields: Any, results: list[TensorType]) -> Op:
    """An op that was not asked whether it is right."""
    op = object.__new__(kind)
    op.__dict__.update(zip(kind.fields, fields, strict=True), source=None)
    op.__dict__["results"] = tuple(Value(each, op, i) for i, each in enumerate(results))
    return op


def only_the_result_is_wrong(complaint: str) -> bool:
    return "inferred type" in complaint


def check_inference(op: Op, own: bool = True, dtype: bool = True) -> None:
    """StableHLO accepts the op with the types that we infer; and, where it infers them too, no others."""
    assert verdict(op) == "", f"{op.name}: {[each.type for each in op.results]}: {verdict(op)}"
    if own:
        for place, result in enumerate(op.results):
            for other in wrong_types(result.type, dtype):
                types = [other if i == place else each.type for i, each in enumerate(op.results)]
                fields = [op.__dict__[field] for field in op.fields]
                wrong = unchecked(type(op), *fields, results=types)
                assert verdict(wrong), f"{op.name}: StableHLO accepts {other} as well as {result.type}"


def wrong_types(type: TensorType, dtype: bool) -> list[TensorType]:
    """Types of other shapes and, if `dtype`, of another dtype."""
    shapes = [(*type.shape, 2), *((*type.shape[:-1], type.shape[-1] + 1) for _ in type.shape[:1])]
    found = [TensorType(type.dtype, shape) for shape in shapes]
    other = dtypes.float64 if type.dtype is not dtypes.float64 else dtypes.float32
    return [*found, TensorType(other, type.shape)] if dtype else found
