"""Calls of every operator for the bindings to make, and what PyTorch gives for them.

A case names an operator and its arguments; tensors go to and fro in safetensors files. `Sweep` writes the
cases for a language, and compares what that language left in its results.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from tenfold.base import dtypes
from tenfold.capi.bindings_ops import Operator, Overload, operators
from tenfold.capi.build import build
from tenfold.capi.describe import describe
from tenfold.capi.locate import find_libtorch
from tenfold.ops.table import TABLE, Row
from tests.ops import generate, golden

# What PyTorch leaves in these is whatever was in memory.
UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_strided",
    "empty_permuted",
    "new_empty",
    "new_empty_strided",
    "resize",
}
UNINITIALISED |= {
    "resize_",
    "empty_out",
    "resize_out",
    "empty_like_out",
    "new_empty_out",
    "native_batch_norm_out",
}
UNINITIALISED |= {
    "new_empty_strided_out",
    "empty_strided_out",
    "empty_permuted_out",
    "_native_batch_norm_legit_out",
}
KEPT = {
    torch.float32,
    torch.float64,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
}
KEPT |= {torch.float16, torch.bfloat16, torch.complex64}  # what every safetensors file can hold
# Operators that no case calls, beside out forms: their samples do not fit the in-place form, whose
# arguments have other names; float8 and uint64 are not kept; this libtorch lacks the last.
UNCALLED = {
    "alpha_dropout_",
    "dropout_",
    "feature_alpha_dropout_",
    "feature_dropout_",
}
UNCALLED |= {"_scaled_mm", "_scaled_mm_v2", "hash_tensor", "__interpolate"}
# What one function for all overloads of a name never means: stft.center has the same arguments and more.
SHADOWED = {"stft"}


@functools.cache
def library() -> Path:
    """The libtenfold.so that bindings load: one that TENFOLD_LIBRARY names, or the one of these sources."""
    named = os.environ.get("TENFOLD_LIBRARY")
    return Path(named) if named else build().library


@functools.cache
def every_operator() -> dict[str, Operator]:
    return {each.name: each for each in operators(describe(find_libtorch()))}


@dataclass(frozen=True)
class Tensor:
    """A tensor of the file of inputs."""

    name: str


@dataclass(frozen=True)
class Case:
    number: int
    operator: str
    positional: list[Any]
    named: dict[str, Any]
    expected: list[Any] = field(compare=False)


class Sweep:
    """Cases of all operators whose row's number modulo `step` is 0."""

    def __init__(self, step: int = 1):
        self.inputs: dict[str, torch.Tensor] = {}
        self.cases: list[Case] = []
        self.called: set[str] = set()
        for number, row in enumerate(row for rows in TABLE.values() for row in rows):
            if number % step == 0 and row.qualified not in SHADOWED:
                for operator, overload in forms(row):
                    self._add(row, operator, overload)

    def _add(self, row: Row, operator: str, overload: Overload) -> None:
        made = 0
        for dtype in (dtypes.float32, dtypes.int64, dtypes.complex64):
            for number, sample in generate.for_dtype(row, dtype)[:8]:
                if made < (2 if operator == row.name else 1):
                    made += self._try(golden.Call(row, number, sample, dtype), operator, overload)

    def _try(self, call: golden.Call, operator: str, overload: Overload) -> bool:
        """Keep a call that PyTorch makes and whose tensors a file can hold."""
        schema = overload.schema
        function = getattr(getattr(torch.ops.aten, schema.name), schema.overload or "default")
        arguments = {a.name: golden.as_torch(a, v) for a, v in (*call.positional, *call.named)}
        known = {each.name for each in overload.arguments}
        if not set(arguments) <= known:
            return False
        torch.manual_seed(0)
        try:
            if operator.endswith("_out"):
                plain = golden.flattened(call.theirs())
                outs = [each for each in overload.arguments if each.type.is_written]
                if len(outs) != len(plain) or outs[0].type.is_list:
                    return False
                for each, result in zip(outs, plain, strict=True):
                    arguments[each.name] = torch.empty(0, dtype=result.dtype)
            given = {name: _copied(value) for name, value in arguments.items()}
            torch.manual_seed(0)
            expected = golden.flattened(golden.quietly(function, **given))
        except (RuntimeError, IndexError, NotImplementedError, ValueError, TypeError):
            return False
        tensors = golden.flattened(list(arguments.values())) + expected
        if any(isinstance(each, torch.Tensor) and each.dtype not in KEPT for each in tensors):
            return False
        order = [each.name for each in overload.positional]
        values = {
            name: self._stored(next(each for each in overload.arguments if each.name == name).code, value)
            for name, value in arguments.items()
        }
        last = max((order.index(name) for name in values if name in order), default=-1)
        positional = [values.get(name) for name in order[: last + 1]]
        named = {name: value for name, value in values.items() if name not in order and value is not None}
        kept = [each.clone() if isinstance(each, torch.Tensor) else each for each in expected]
        self.cases.append(Case(len(self.cases), operator, positional, named, kept))
        self.called.add(operator)
        return True

    def _stored(self, code: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            name = f"t{len(self.inputs)}"
            self.inputs[name] = value.detach().clone(memory_format=torch.contiguous_format)
            return Tensor(name)
        if isinstance(value, (list, tuple)):
            return [self._stored(code.partition("[")[0], each) for each in value]
        if isinstance(value, torch.dtype):
            return str(value).removeprefix("torch.")
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and code == "Scalar":
            return complex(value, np.nan)  # a number that has to be a double, see the writers
        return value

    @property
    def uncalled(self) -> set[str]:
        """Operators without a case, out forms aside."""
        return {name for name in set(every_operator()) - self.called if not name.endswith("_out")}

    def save(self, folder: Path, write: Callable[[Case], str]) -> None:
        save_file(self.inputs, str(folder / "inputs.safetensors"))
        (folder / "cases").write_text("\n".join(write(each) for each in self.cases) + "\n")

    def differences(self, folder: Path) -> Iterator[str]:
        """What the results of a language have else than PyTorch's."""
        found = load_file(str(folder / "results.safetensors"))
        for case in self.cases:
            ours = [found[name] for name in (f"{case.number}.{i}" for i in range(99)) if name in found]
            theirs = [torch.as_tensor(each) for each in case.expected]
            told = f"{case.number} {case.operator}({case.positional}, {case.named})"
            if len(ours) != len(theirs):
                yield f"{told}: {len(ours)} results, PyTorch {len(theirs)}"
                continue
            for mine, golden_one in zip(ours, theirs, strict=True):
                if mine.dtype != golden_one.dtype or mine.shape != golden_one.shape:
                    yield f"{told}: {mine.dtype}{mine.shape}, PyTorch {golden_one.dtype}{golden_one.shape}"
                elif case.operator not in UNINITIALISED:
                    try:
                        torch.testing.assert_close(mine, golden_one, equal_nan=True)
                    except AssertionError as error:
                        yield f"{told}: {error}"


def forms(row: Row) -> Iterator[tuple[str, Overload]]:
    """The operators that a row gives: its own, in place, into given tensors; none if this libtorch lacks
    it."""
    if row.qualified not in find_libtorch().schemas:
        return
    mine = [(a.name, a.type.kind, a.type.is_list) for a in row.schema.arguments]
    for name in (row.name, f"{row.name}_", f"{row.name}_out"):
        for overload in every_operator()[name].overloads if name in every_operator() else ():
            taken = [a for a in overload.arguments if not a.type.is_written or a.name == "self"]
            theirs = [(a.name, a.type.kind, a.type.is_list) for a in taken]
            if overload.schema.qualified == row.qualified if name == row.name else theirs == mine:
                yield name, overload
                break


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone(memory_format=torch.contiguous_format)
    return [_copied(each) for each in value] if isinstance(value, list) else value
