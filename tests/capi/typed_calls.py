"""One sample of a row through its typed functions, beside PyTorch's own call of the same overload."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import torch

from tenfold.capi.typed import TypedForm
from tenfold.ops.schema import MISSING, Argument
from tests.capi.bridge import library
from tests.capi.exchange import Frame, array_of, fetch, same
from tests.ops import golden
from tests.ops.golden import Call

# Overloads whose results hold what was in memory before; the out forms of batch_norm do by a defect of
# libtorch's.
UNINITIALISED_OUT = {
    "native_batch_norm.out",
    "_native_batch_norm_legit.out",
    "_native_batch_norm_legit.no_stats_out",
}
RESULTS = {"bool": ctypes.c_bool, "int": ctypes.c_int64, "float": ctypes.c_double}


class Refused(Exception):
    """A typed function failed, with this thread's message."""


def type_names(message: str) -> str:
    """A message with the types of tensors as Python calls them: without Python libtorch says CPUFloatType."""
    return re.sub(r"CPU(\w+?)Type", r"torch.\1Tensor", message)


class Comparison:
    """A form called with a sample's arguments, and PyTorch likewise; tensors are drawn anew for each side."""

    def __init__(self, form: TypedForm, call: Call, without_keywords: bool = False):
        self.form, self.call = form, call
        self.outs: list[tuple[torch.dtype, tuple[int, ...]]] = []
        # An in-place or out form may call an argument otherwise than the row does.
        ours = [a.name for a in form.schema.positional]
        renamed = dict(zip([a.name for a in form.row.schema.positional], ours, strict=False))
        pairs = [*call.positional, *call.named]
        taken = {a.name for a in form.given}
        self.values = {
            renamed.get(a.name, a.name): v
            for a, v in pairs
            if not (without_keywords and a.keyword_only and a.name not in taken)
        }

    @property
    def applies(self) -> bool:
        """Whether the form takes all that the sample gives: the plain form has no keyword-only arguments."""
        return set(self.values) <= {a.name for a in self.form.given}

    def difference(self) -> str | None:
        golden_results, refusal = self.theirs()
        torch.manual_seed(0)
        try:
            ours = self.ours()
        except Refused as error:
            if refusal is None:
                return f"PyTorch runs it, {self.form.name} says: {error}"
            first = type_names(str(refusal)).splitlines()[0][:80]
            return (
                None if first in type_names(str(error)) else f"says {str(error)[:200]!r}, PyTorch {first!r}"
            )
        if refusal is not None:
            return f"runs it, PyTorch says: {str(refusal).splitlines()[0]}"
        if self.call.row.name in golden.UNINITIALISED or self.form.schema.qualified in UNINITIALISED_OUT:
            equal = all(
                f.shape == g.shape and f.dtype == g.dtype for f, g in zip(ours, golden_results, strict=True)
            )
        else:
            equal = same(ours, golden_results)
        return None if equal else f"gave {ours}, PyTorch {golden_results}"

    def theirs(self) -> tuple[list[Any], Exception | None]:
        schema = self.form.schema
        overload = getattr(getattr(torch.ops.aten, schema.name), schema.overload or "default")
        arguments = {a.name: golden.as_torch(a, v) for a, v in self.given()}
        torch.manual_seed(0)
        try:
            if self.form.form == "out":
                outs = self.empty_outs()
                torch.manual_seed(0)
                golden.quietly(overload, **arguments, **outs)
                results = golden.flattened(list(outs.values()))
            else:
                results = golden.flattened(golden.quietly(overload, **arguments))
        except (RuntimeError, IndexError, NotImplementedError, ValueError, TypeError) as error:
            return [], error
        return [each.clone() if isinstance(each, torch.Tensor) else each for each in results], None

    def empty_outs(self) -> dict[str, Any]:
        """Tensors for an out form to fill, as many and of such dtypes as the plain call gives."""
        names = [a for a in self.form.given if a.keyword_only and a.type.is_written]
        try:
            self.outs = [(each.dtype, tuple(each.shape)) for each in golden.flattened(self.call.theirs())]
        except (RuntimeError, IndexError, NotImplementedError, ValueError, TypeError):
            self.outs = [(torch.float32, (0,))] * len(names)
        if names[0].type.is_list:
            return {names[0].name: [torch.zeros(shape, dtype=dtype) for dtype, shape in self.outs]}
        return {a.name: torch.zeros(0, dtype=dtype) for a, (dtype, _) in zip(names, self.outs, strict=True)}

    def given(self) -> list[tuple[Argument, Any]]:
        by_name = {a.name: a for a in self.form.given}
        return [(by_name[name], value) for name, value in self.values.items()]

    def ours(self) -> list[Any]:
        frame = Frame()
        try:
            return self._ours(frame)
        finally:
            frame.close()

    def _ours(self, frame: Frame) -> list[Any]:
        form, parameters, written = self.form, [], []
        outs = iter(self.outs)
        for argument in form.given:
            if argument.keyword_only and argument.type.is_written:
                if argument.type.is_list:
                    made = [frame.fresh(dtype, shape) for dtype, shape in outs]
                    parameters += [array_of(ctypes.c_void_p, made), len(made)]
                    written += made
                else:
                    dtype, _ = next(outs)
                    parameters.append(frame.fresh(dtype, [0]))
                    written.append(parameters[-1])
                continue
            value = self.values.get(argument.name, None if argument.keyword_only else argument.default)
            assert value is not MISSING, argument.name
            if isinstance(value, (np.ndarray, tuple)):
                value = golden.as_torch(argument, value)
            before = len(parameters)
            parameters += self.encode(frame, argument, value)
            if argument.type.is_written:
                written.append(parameters[before])
        return self.run(frame, parameters, written)

    def encode(self, frame: Frame, argument: Argument, value: Any) -> list[Any]:
        type = argument.type
        kind = type.kind
        nullable = type.optional or (argument.keyword_only and argument.default is not MISSING)
        if value is None:
            return [None, 0] if type.is_list else [None]
        if kind == "ScalarType" and not isinstance(value, str):
            value = str(getattr(value, "name", value)).removeprefix("torch.")
        if type.is_list:
            entries = (
                list(value) if isinstance(value, (list, tuple)) else [value] * max(type.list_size or 1, 1)
            )
            if kind == "Tensor":
                made = [None if each is None else frame.tensor(each) for each in entries]
                return [array_of(ctypes.c_void_p, made), len(made)]
            pairs = [frame.plain(kind, each) for each in entries]
            ctype = pairs[0][0] if pairs else ctypes.c_int64
            return [array_of(ctype, [each for _, each in pairs]), len(pairs)]
        if kind == "Tensor":
            return [frame.tensor(value)]
        if kind == "str":
            return [value.encode()]
        ctype, plain = frame.plain(kind, value)
        if nullable:
            return [frame.pointer(ctype, plain)]
        return [plain if isinstance(plain, ctypes.Structure) else ctype(plain)]

    def run(self, frame: Frame, parameters: list[Any], written: list[int]) -> list[Any]:
        lib, form = library(), self.form
        function = getattr(lib.library, form.name)
        function.restype = ctypes.c_void_p if form.result == "tensor" else ctypes.c_int32
        converted = [ctypes.c_void_p(p) if p is None else p for p in parameters]
        converted = [
            ctypes.c_void_p(p) if type(p) is int and q.ctype != "int64_t" else p
            for p, q in zip(converted, form.parameters, strict=False)
        ]
        converted = [ctypes.c_int64(p) if type(p) is int else p for p in converted]
        if form.result == "tensor":
            handle = function(*converted)
            if handle is None:
                raise Refused(lib.tn_error_message().decode())
            return [fetch(frame.own(handle))]
        if form.result == "tensors":
            out = (ctypes.c_void_p * len(form.schema.returns))()
            self.check(function(*converted, out))
            return [fetch(frame.own(each)) for each in out]
        if form.result == "list":
            many, count = ctypes.c_void_p(), ctypes.c_int64()
            self.check(function(*converted, ctypes.byref(many), ctypes.byref(count)))
            found = ctypes.cast(many, ctypes.POINTER(ctypes.c_void_p))
            results = [fetch(found[i]) for i in range(count.value)]
            lib.tn_free_all(many, count)
            return results
        if form.result == "number":
            number = RESULTS[form.schema.returns[0].type.kind]()
            self.check(function(*converted, ctypes.byref(number)))
            return [number.value]
        self.check(function(*converted))
        return [fetch(each) for each in written]

    def check(self, status: int) -> None:
        if status:
            raise Refused(library().tn_error_message().decode())
