"""Memory that tensors share: random programs of views, in-place ops and reads, step for step as PyTorch runs them."""

from __future__ import annotations

import gc
import random
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.errors import ShapeError, TenfoldError

BATCHES = 12
PROGRAMS = 30
STEPS = 12


class Pair:
    """One tensor in both worlds. `recoded`: reached through a change of dtype or a conjugation."""

    def __init__(self, ours: tn.Tensor, theirs: torch.Tensor, recoded: bool = False):
        self.ours = ours
        self.theirs = theirs
        self.recoded = recoded


class Refused(Exception):
    """A step that both worlds refuse."""


class Program:
    """Live tensors that a random program works on, and what they were at each step."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.live = [self.base()]
        self.lines: list[str] = []
        self.seen: list[tuple[tn.Tensor, np.ndarray, str]] = []

    def base(self) -> Pair:
        shape = self.draw.choice([(3, 4), (2, 3, 4), (6,), (4, 1, 3), (2, 2, 2, 2), (8,), (1, 6), ()])
        dtype = self.draw.choice([np.float64, np.float64, np.int64, np.complex128])
        array = np.asarray(self.numbers.integers(-9, 9, shape)).astype(dtype)
        if dtype is np.complex128:
            array = array + 1j * self.numbers.integers(-9, 9, shape)
        return Pair(tn.tensor(array), torch.tensor(array))

    def run(self) -> None:
        for _ in range(STEPS):
            pair = self.draw.choice(self.live)
            kind = self.draw.choices(["view", "write", "compute", "forget"], [6, 5, 1, 1])[0]
            try:
                getattr(self, kind)(pair)
            except Refused:
                self.lines[-1] += "  # refused"
            self.look()

    def look(self) -> None:
        """Note all live tensors: ours as lazy copies, so that later writes must not reach them."""
        for pair in self.live:
            where = "\n".join(self.lines)
            assert tuple(pair.ours.shape) == tuple(pair.theirs.shape), where
            assert pair.ours.stride() == pair.theirs.stride(), where
            assert pair.ours.storage_offset() == pair.theirs.storage_offset(), where
            assert pair.ours.is_contiguous() == pair.theirs.is_contiguous(), where
            self.seen.append((pair.ours.clone(), pair.theirs.resolve_conj().resolve_neg().numpy().copy(), where))

    def both(self, pair: Pair, text: str, *functions: Any) -> tuple[Any, Any]:
        """The step in both worlds; what PyTorch refuses, we must."""
        self.lines.append(f"{list(pair.theirs.shape)}, {pair.theirs.stride()}: {text}")
        run = [function() for function in functions] if len(functions) == 2 else []
        ours, theirs = run or (self.call(pair.ours, functions[0]), self.call(pair.theirs, functions[0]))
        where = "\n".join(self.lines)
        assert isinstance(ours, Exception) == isinstance(theirs, Exception), f"{where}\n{ours!r}\n{theirs!r}"
        if isinstance(theirs, Exception):
            raise Refused
        return ours, theirs

    @staticmethod
    def call(x: Any, function: Any) -> Any:
        try:
            return function(x)
        except (TenfoldError if isinstance(x, tn.Tensor) else (RuntimeError, IndexError)) as error:
            return error

    def view(self, pair: Pair) -> None:
        name, text, function, recodes = self.view_op(pair)
        ours, theirs = self.both(pair, text, function)
        if name.endswith("_"):
            return
        if isinstance(theirs, tuple):
            assert len(ours) == len(theirs)
            if not theirs:
                return
            at = self.draw.randrange(len(theirs))
            ours, theirs = ours[at], theirs[at]
        self.live.append(Pair(ours, theirs, pair.recoded or recodes))

    def view_op(self, pair: Pair) -> tuple[str, str, Any, bool]:
        draw, x = self.draw, pair.theirs
        rank, dim, other = x.dim(), self.dim(x.dim()), self.dim(x.dim())
        extent = x.shape[dim] if rank else 1
        names = [
            "view", "reshape", "permute", "transpose", "t", "squeeze", "squeeze_dim", "unsqueeze", "expand", "select",
            "narrow", "slice", "diagonal", "unfold", "split", "chunk", "unbind", "tensor_split", "flatten", "ravel",
            "contiguous", "detach", "movedim", "mT", "unflatten", "expand_as", "view_as", "T", "unsqueeze_", "t_",
            "transpose_", "squeeze_", "data",
        ]  # fmt: skip
        if not pair.recoded:
            names.append("as_strided")
        if not (x.is_conj() or x.is_neg()):
            names += ["view_dtype", "view_as_complex", "view_as_real"]
        if x.is_complex() and not x.is_conj():
            names += ["real", "imag", "conj", "mH", "adjoint"]
        name = draw.choice(names)
        shape = self.factors(x.numel())
        order = draw.sample(range(rank), rank)
        start = draw.randint(-extent, extent)
        length = draw.randint(0, extent + 1)
        step = draw.randint(1, 3)
        if name == "slice":
            where = (slice(None),) * (dim % max(rank, 1)) + (slice(start, start + length, step),)
            return name, f"x[{where}]", lambda x: x[where], False
        if name == "view_dtype":
            kind = draw.choice(["int64", "float64", "int32", "uint8", "complex128", "int16"])
            return name, f"x.view({kind})", lambda x: x.view(getattr(MODULES[type(x)], kind)), True
        if name in ("view_as_real", "view_as_complex"):
            return name, f"{name}(x)", lambda x: getattr(MODULES[type(x)], name)(x), True
        if name in ("real", "imag", "mT", "mH", "T", "data"):
            recodes = name in ("real", "imag", "mH")
            return name, f"x.{name}", lambda x: getattr(x, name), recodes and x.is_complex()
        if name in ("expand_as", "view_as"):
            target = (2, *x.shape) if name == "expand_as" else shape
            return name, f"x.{name}(zeros({target}))", lambda x: getattr(x, name)(MODULES[type(x)].zeros(target)), False
        size = draw.choice([(2, 2), (2,), (3, 2), ()])
        arguments: tuple[Any, ...] = {
            "view": (shape,),
            "reshape": (shape,),
            "permute": (order,),
            "transpose": (dim, other),
            "transpose_": (dim, other),
            "squeeze_dim": (dim,),
            "unsqueeze": (draw.randint(-rank - 1, rank),),
            "unsqueeze_": (draw.randint(-rank - 1, rank),),
            "expand": (tuple([draw.choice([n, 3]) if n == 1 else n for n in x.shape]),),
            "select": (dim, draw.randint(-extent, extent)),
            "narrow": (dim, start, length),
            "diagonal": (draw.randint(-2, 2), dim, other),
            "unfold": (dim, draw.randint(0, extent), step),
            "split": (draw.randint(1, 3), dim),
            "chunk": (draw.randint(1, 4), dim),
            "unbind": (dim,),
            "tensor_split": (draw.choice([2, 3, [1], [2, 1], [-1]]), dim),
            "flatten": (dim, other),
            "movedim": (dim, other),
            "unflatten": (dim, self.factors(extent)),
            "as_strided": (size, tuple([draw.randint(1, 2) for _ in size]), draw.choice([None, 0, 1])),
        }.get(name, ())
        method = "squeeze" if name == "squeeze_dim" else name
        recodes = name in ("conj", "adjoint")
        return name, f"x.{method}{arguments}", lambda x: getattr(x, method)(*arguments), recodes

    def dim(self, rank: int) -> int:
        return self.draw.randint(-max(rank, 1), max(rank, 1) - 1)

    def factors(self, count: int) -> tuple[int, ...]:
        found, left = [], count
        for _ in range(self.draw.randint(0, 2)):
            divisors = [d for d in range(1, left + 1) if left % d == 0]
            if divisors:
                found.append(self.draw.choice(divisors))
                left //= found[-1]
        found.append(self.draw.choice([left, -1]) if count else left)
        self.draw.shuffle(found)
        return tuple(found)

    def write(self, pair: Pair) -> None:
        x = pair.theirs
        if overlaps(x):
            return  # the order of PyTorch's writes is not defined
        k = self.draw.randint(2, 5)
        other = self.draw.choice(self.live)
        ours, theirs = other.ours.clone(), other.theirs.resolve_conj().resolve_neg().clone()
        name = self.draw.choice(["add_", "mul_", "fill_", "zero_", "copy_", "add_tensor", "iadd", "item"])
        if name in ("copy_", "add_tensor"):
            method = name if name == "copy_" else "add_"
            if theirs.is_complex() and not x.is_complex():
                return  # PyTorch warns
            self.both(
                pair,
                f"x.{method}({list(theirs.shape)} {theirs.dtype})",
                lambda: self.call(pair.ours, lambda x: getattr(x, method)(ours)),
                lambda: self.call(pair.theirs, lambda x: getattr(x, method)(theirs)),
            )
        elif name == "item" and x.dim():
            at = (0,) * self.draw.randint(1, x.dim())

            def put(x: Any) -> None:
                x[at] = k

            self.both(pair, f"x[{at}] = {k}", put)
        elif name == "iadd":

            def add(x: Any) -> None:
                x += k

            self.both(pair, f"x += {k}", add)
        elif name in ("zero_", "item"):
            self.both(pair, "x.zero_()", lambda x: x.zero_())
        else:
            method = "fill_" if name == "add_tensor" else name
            self.both(pair, f"x.{method}({k})", lambda x: getattr(x, method)(k))

    def compute(self, pair: Pair) -> None:
        self.lines.append(f"{list(pair.theirs.shape)}: x + x")
        self.live.append(Pair(pair.ours + pair.ours, (pair.theirs + pair.theirs).contiguous()))

    def forget(self, pair: Pair) -> None:
        if len(self.live) > 1:
            self.lines.append(f"{list(pair.theirs.shape)}: del x")
            self.live.remove(pair)


MODULES = {tn.Tensor: tn, torch.Tensor: torch}


def overlaps(x: torch.Tensor) -> bool:
    """Whether elements share memory without a stride of zero to tell."""
    if any(n > 1 and s == 0 for n, s in zip(x.shape, x.stride(), strict=True)):
        return False
    places = np.zeros(tuple(x.shape), np.int64)
    for dim, (n, s) in enumerate(zip(x.shape, x.stride(), strict=True)):
        places += (np.arange(n) * s).reshape([-1 if d == dim else 1 for d in range(x.dim())])
    return len(np.unique(places)) < places.size


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_programs_agree_with_pytorch_at_every_step(batch: int) -> None:
    programs = [Program(batch * PROGRAMS + i) for i in range(PROGRAMS)]
    for program in programs:
        program.run()
    seen = [each for program in programs for each in program.seen]
    tn.eval(*[ours for ours, _, _ in seen])
    for ours, theirs, where in seen:
        np.testing.assert_array_equal(ours.numpy(), theirs, err_msg=where)


def test_random_programs_agree_when_evaluated_on_the_way() -> None:
    for seed in range(10_000, 10_008):
        program = Program(seed)
        for _ in range(3):
            program.run()
            for ours, theirs, where in program.seen:
                np.testing.assert_array_equal(ours.numpy(), theirs, err_msg=where)
            for pair in program.live:
                now = pair.theirs.resolve_conj().resolve_neg().numpy()
                np.testing.assert_array_equal(pair.ours.numpy(), now)
            program.seen.clear()
