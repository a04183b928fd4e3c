"""Samples of the table as calls in R, beside PyTorch's results of the same calls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from tenfold.base import dtypes
from tenfold.capi.bindings_r import ROperator, argument_names, operators
from tenfold.capi.describe import describe
from tenfold.capi.locate import find_libtorch
from tenfold.capi.r_by_hand import changed_signatures
from tenfold.capi.r_places import counts_from_one, result_places
from tenfold.ops.schema import Argument, Schema
from tenfold.ops.table import all_rows
from tests.bindings.sweep import SHADOWED
from tests.ops import generate, golden
from tests.ops.golden import Call

SAMPLES = 3  # of each overload and dtype
PRELUDE = """library(tenfold)
given <- torch_load(commandArgs(TRUE)[1])
results <- list()
problems <- character()
run <- function(id, code) {
  torch_manual_seed(0)
  tryCatch({
    found <- eval(substitute(code))
    found <- if (is.list(found)) found else list(found)
    found <- found[!vapply(found, is.null, TRUE)]
    for (i in seq_along(found)) {
      part <- found[[i]]
      if (is.logical(part)) part <- torch_tensor(part)
      if (is.numeric(part)) part <- torch_tensor(part, dtype = "float64")
      if (grepl("complex", format(part$dtype))) part <- torch_view_as_real(torch_resolve_conj(part))
      results[[paste0(id, ".", i)]] <<- torch_contiguous(torch_clone(part))
    }
    results[[paste0(id, ".n")]] <<- torch_tensor(length(found))
  }, error = function(e) {
    problems <<- c(problems, paste0(id, "\\t", gsub("[\\n\\t]", " ", conditionMessage(e))))
  })
}
"""
EPILOGUE = """torch_save(results, commandArgs(TRUE)[2])
writeLines(problems, commandArgs(TRUE)[3])
"""


def real(value: Any) -> Any:
    """Complex elements as pairs, since files of tensors hold none."""
    complex_ = isinstance(value, torch.Tensor) and value.dtype.is_complex
    return torch.view_as_real(value.resolve_conj()).clone() if complex_ else value


class Untold(Exception):
    """A value that R has no way of saying, or that means something else there."""


@dataclass
class Sweep:
    """Calls by their number: what to say when one is wrong, and what PyTorch gave."""

    tensors: dict[str, torch.Tensor]
    lines: list[str]
    labels: list[str]
    expected: list[list[Any]]
    overloads: set[str]

    @classmethod
    def collected(cls, letters: str) -> Sweep:
        sweep = cls({}, [], [], [], set())
        own = {row.qualified for row in all_rows() if row.name in changed_signatures()}
        by_overload = {
            form.schema.qualified: (op, form)
            for op in operators(describe(find_libtorch()).functions)
            for form in op.forms
        }
        for row in all_rows():
            if row.qualified[0] in letters and row.qualified in by_overload.keys() - SHADOWED - own:
                op, form = by_overload[row.qualified]
                for dtype in (dtypes.float32, dtypes.int64, dtypes.complex64):
                    for number, sample in generate.for_dtype(row, dtype)[:SAMPLES]:
                        call = Call(row, number, sample, dtype)
                        sweep.add(op, form.schema, argument_names(form), call)
                        name, dot, overload = row.qualified.partition(".")
                        written = by_overload.get(f"{name}_{dot}{overload}")
                        if written is not None and written[1].schema.qualified not in sweep.overloads:
                            sweep.add(written[0], written[1].schema, argument_names(written[1]), call)
        return sweep

    def add(self, op: ROperator, schema: Schema, names: list[str], call: Call) -> None:
        torch.manual_seed(0)
        try:
            expected = golden.flattened(self.theirs(schema, call))
        except (RuntimeError, IndexError, NotImplementedError, ValueError, TypeError):
            return
        id = len(self.labels)
        if set(own := {a.name: a for a in schema.arguments}) < {
            a.name for a, _ in (*call.positional, *call.named)
        }:
            return
        slots = dict(zip([a.name for a in schema.arguments], names, strict=True))
        try:
            arguments = [
                f"{slots[a.name]} = {self.told(schema, own[a.name], v)}"
                for a, v in (*call.positional, *call.named)
            ]
        except Untold:
            return
        self.lines.append(f"run({id}, {op.r_name}({', '.join(arguments)}))")
        self.labels.append(f"{schema.qualified}: {call}")
        self.overloads.add(schema.qualified)
        places = range(len(expected)) if self.listed(schema) else result_places(schema)
        counted = [real(each + 1 if i in places else each) for i, each in enumerate(expected)]
        self.expected.append([each for each in counted if each is not None])

    @staticmethod
    def theirs(schema: Schema, call: Call) -> Any:
        """PyTorch's results of tensors in row-major order, as R is given them."""
        overload = getattr(getattr(torch.ops.aten, schema.name), schema.overload or "default")

        def contiguous(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value.contiguous().clone()
            return [contiguous(each) for each in value] if isinstance(value, (list, tuple)) else value

        given = {a.name: contiguous(golden.as_torch(a, v)) for a, v in (*call.positional, *call.named)}
        return golden.quietly(overload, **given)

    @staticmethod
    def listed(schema: Schema) -> bool:
        return bool(result_places(schema)) and schema.returns[0].type.is_list

    def told(self, schema: Schema, argument: Argument, value: Any) -> str:
        """A value as R writes it."""
        if value is None:
            if argument.default is not None and not argument.type.optional:
                raise Untold
            return "NULL"
        counted = counts_from_one(schema, argument)
        if isinstance(value, np.ndarray):
            tensor = golden.to_torch(value)
            if counted and tensor.dtype in (torch.int64, torch.int32):
                if tensor.numel() and int(tensor.min()) < 0:
                    raise Untold
                tensor = tensor + 1
            name = f"t{len(self.tensors)}"
            self.tensors[name] = real(tensor.contiguous().clone())
            if tensor.dtype.is_complex:
                return f"torch_clone(torch_view_as_complex(given${name}))"
            return f"torch_clone(given${name})" if argument.type.is_written else f"given${name}"
        if isinstance(value, (tuple, list)):
            entries = [self.told(schema, argument, each) for each in value]
            if argument.type.kind == "Tensor":
                return f"list({', '.join(entries)})"
            return f"c({', '.join(entries)})" if entries else "integer(0)"
        return self.plain(value, counted)

    def plain(self, value: Any, counted: bool) -> str:
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            value = value + 1 if counted and value >= 0 else value
            if abs(value) > 2**53:
                raise Untold
            return f"{value}L" if abs(value) < 2**31 else repr(float(value))
        if isinstance(value, float):
            if math.isnan(value):
                return "NaN"
            return {math.inf: "Inf", -math.inf: "-Inf"}.get(value) or repr(value)
        if isinstance(value, str):
            return f'"{value}"'
        if isinstance(value, dtypes.DType):
            return f'"{value.name}"'
        if isinstance(value, complex):
            return f"complex(real = {value.real!r}, imaginary = {value.imag!r})"
        raise Untold

    def write(self, folder: Path) -> Path:
        save_file(self.tensors, str(folder / "given.safetensors"))
        script = folder / "sweep.R"
        script.write_text(PRELUDE + "\n".join(self.lines) + "\n" + EPILOGUE, encoding="utf-8")
        return script

    def differences(self, folder: Path) -> list[str]:
        found = load_file(str(folder / "results.safetensors"))
        problems = dict(
            line.split("\t", 1) for line in (folder / "problems.txt").read_text(encoding="utf-8").splitlines()
        )
        wrong = []
        for id, (label, expected) in enumerate(zip(self.labels, self.expected, strict=True)):
            if (
                str(id) in problems
                and "libtorch 2" in problems[str(id)]
                and "has no aten::" in problems[str(id)]
            ):
                continue  # the typed function of an operator that only TorchScript has
            if str(id) in problems:
                wrong.append(f"{label}: R says {problems[str(id)]}")
                continue
            count = int(found[f"{id}.n"].item())
            ours = [found[f"{id}.{i + 1}"] for i in range(count)]
            if label.split(":")[0].split(".")[0] in golden.UNINITIALISED:
                ours, expected = [torch.zeros_like(t) for t in ours], [torch.zeros_like(t) for t in expected]
            if len(ours) != len(expected) or not all(map(self.same, ours, expected)):
                wrong.append(f"{label}: gave {ours}, PyTorch {expected}"[:400])
        return wrong

    @staticmethod
    def same(ours: torch.Tensor, theirs: Any) -> bool:
        if not isinstance(theirs, torch.Tensor):
            return ours.item() == theirs or (ours.item() != ours.item() and theirs != theirs)
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return False
        rtol, atol = golden.usual_tolerance(str(ours.dtype).removeprefix("torch."))
        return torch.allclose(ours.double(), theirs.double(), rtol=rtol, atol=atol, equal_nan=True)
