"""Memory that tensors share: views, in-place ops and reads, as PyTorch has them."""

from __future__ import annotations

import copy
import gc
import math
import random
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ShapeError, TenfoldError

BATCHES = 10
PROGRAMS = 20
STEPS = 12


class Pair:
    """One tensor in both worlds. `recoded`: reached through a change of dtype or a conjugation."""

    def __init__(self, ours: tn.Tensor, theirs: torch.Tensor, recoded: bool = False):
        self.ours = ours
        self.theirs = theirs
        self.recoded = recoded


class Refused(Exception):
    """A step that both worlds refuse."""


class Trace:
    """Live tensors that a random program works on, and what they were at each step."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.live = [self.base()]
        self.lines: list[str] = []
        # Whether bits were read as other numbers: there are NaNs and denormals then, so no arithmetic.
        self.bits = False
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
            self.seen.append(
                (pair.ours.clone(), pair.theirs.resolve_conj().resolve_neg().numpy().copy(), where)
            )

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
        except (RuntimeError, IndexError) as error:
            assert isinstance(error, TenfoldError) == isinstance(x, tn.Tensor)
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
            "view", "reshape", "permute", "transpose", "t", "squeeze", "squeeze_dim", "unsqueeze", "expand",
            "select", "narrow", "slice", "diagonal", "unfold", "split", "chunk", "unbind", "tensor_split",
            "mT", "flatten", "ravel", "contiguous", "detach", "movedim", "unflatten", "expand_as",
            "view_as", "T", "unsqueeze_", "t_", "transpose_", "squeeze_", "data",
        ]  # fmt: skip
        if not pair.recoded:
            names.append("as_strided")
        if expanded(x):
            pass  # a part of another dtype's view of it cannot be written
        elif not (x.is_conj() or x.is_neg()):
            names += ["view_dtype", "view_as_complex", "view_as_real"]
        if x.is_complex() and not x.is_conj() and not expanded(x):
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
            self.bits = True
            kind = draw.choice(["int64", "float64", "int32", "uint8", "complex128", "int16"])
            return name, f"x.view({kind})", lambda x: x.view(getattr(MODULES[type(x)], kind)), True
        if name in ("view_as_real", "view_as_complex"):
            return name, f"{name}(x)", lambda x: getattr(MODULES[type(x)], name)(x), True
        if name in ("real", "imag", "mT", "mH", "T", "data"):
            recodes = name in ("real", "imag", "mH")
            return name, f"x.{name}", lambda x: getattr(x, name), recodes and x.is_complex()
        if name in ("expand_as", "view_as"):
            target = (2, *x.shape) if name == "expand_as" else shape
            return (
                name,
                f"x.{name}(zeros({target}))",
                lambda x: getattr(x, name)(MODULES[type(x)].zeros(target)),
                False,
            )
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
        if expanded(x) and x.is_conj():
            return  # PyTorch refuses what it allows for other expanded tensors
        k = self.draw.randint(2, 5)
        other = self.draw.choice(self.live)
        ours, theirs = other.ours.clone(), other.theirs.resolve_conj().resolve_neg().clone()
        names = ["fill_", "zero_", "copy_", "item", "add_", "mul_", "add_tensor", "iadd"]
        name = self.draw.choice(names[: 4 if self.bits else None])
        if name in ("copy_", "add_tensor"):
            method = name if name == "copy_" else "add_"
            if (theirs.is_complex() and not x.is_complex()) or (self.bits and theirs.dtype != x.dtype):
                return
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
        self.lines.append(f"{list(pair.theirs.shape)}: {'x.clone()' if self.bits else 'x + x'}")
        if self.bits:
            ours, theirs = pair.ours.clone(), pair.theirs.resolve_conj().resolve_neg().clone()
        else:
            ours, theirs = pair.ours + pair.ours, pair.theirs + pair.theirs
        self.live.append(Pair(ours, theirs.clone(memory_format=torch.contiguous_format)))

    def forget(self, pair: Pair) -> None:
        if len(self.live) > 1:
            self.lines.append(f"{list(pair.theirs.shape)}: del x")
            self.live.remove(pair)


MODULES = {tn.Tensor: tn, torch.Tensor: torch}


def expanded(x: torch.Tensor) -> bool:
    return any(n > 1 and s == 0 for n, s in zip(x.shape, x.stride(), strict=True))


def overlaps(x: torch.Tensor) -> bool:
    """Whether elements share memory without a stride of zero to tell."""
    if expanded(x):
        return False
    places = np.zeros(tuple(x.shape), np.int64)
    for dim, (n, s) in enumerate(zip(x.shape, x.stride(), strict=True)):
        places += (np.arange(n) * s).reshape([-1 if d == dim else 1 for d in range(x.dim())])
    return len(np.unique(places)) < places.size


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_programs_agree_with_pytorch_at_every_step(batch: int) -> None:
    programs = [Trace(batch * PROGRAMS + i) for i in range(PROGRAMS)]
    for program in programs:
        program.run()
    seen = [each for program in programs for each in program.seen]
    tn.eval(*[ours for ours, _, _ in seen])
    for ours, theirs, where in seen:
        np.testing.assert_array_equal(ours.numpy(), theirs, err_msg=where)


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_random_programs_agree_when_evaluated_on_the_way() -> None:
    for seed in range(10_000, 10_008):
        program = Trace(seed)
        for _ in range(3):
            program.run()
            for ours, theirs, where in program.seen:
                np.testing.assert_array_equal(ours.numpy(), theirs, err_msg=where)
            for pair in program.live:
                now = pair.theirs.resolve_conj().resolve_neg().numpy()
                np.testing.assert_array_equal(pair.ours.numpy(), now)
            program.seen.clear()


def grid() -> tn.Tensor:
    return tn.tensor(np.arange(12.0).reshape(3, 4))


def test_a_write_to_the_base_is_seen_through_a_view_of_a_view() -> None:
    base = grid()
    inner = base[1:].t()[2]
    base += 10
    assert inner.tolist() == [16, 20]


def test_a_write_through_a_view_of_a_view_is_seen_in_the_base_and_its_other_views() -> None:
    base = grid()
    row, column = base[1], base[:, 2]
    base[1:].t()[2].fill_(-1)
    assert base.tolist() == [[0, 1, 2, 3], [4, 5, -1, 7], [8, 9, -1, 11]]
    assert row.tolist() == [4, 5, -1, 7]
    assert column.tolist() == [2, -1, -1]


@pytest.mark.usefixtures("collects_quickly")
def test_views_outlive_their_base() -> None:
    base = grid()
    row, column = base[1], base[:, 2]
    del base
    gc.collect()
    row.mul_(2)
    assert column.tolist() == [2, 12, 10]


@pytest.mark.parametrize("evaluated", [False, True])
def test_a_read_recorded_before_a_write_keeps_the_old_value(evaluated: bool) -> None:
    base = grid()
    if evaluated:
        base.eval()
    row = base[0]
    before, total = row + 0, base.sum()
    row.zero_()
    after = base.sum()
    assert before.tolist() == [0, 1, 2, 3]
    assert (total.item(), after.item()) == (66, 60)


def test_a_write_between_evaluations_is_seen_after_each() -> None:
    base = grid()
    row = base[0]
    for count in range(1, 4):
        row += 1
        assert base[0].tolist() == [count, 1 + count, 2 + count, 3 + count]
        assert base.sum().item() == 66 + 4 * count


@pytest.mark.parametrize(
    "write", [lambda x: x.add_(1), lambda x: x.copy_(tn.ones(2, 4)), lambda x: x.tanh_()]
)
def test_a_write_to_an_expanded_tensor_is_refused(write: Any) -> None:
    base = tn.ones(4)
    with pytest.raises(ShapeError, match=r"share one memory location.*\n(.*\n)*.*clone"):
        write(base.expand(2, 4))
    assert base.tolist() == [1, 1, 1, 1]


def test_an_expanded_tensor_without_elements_can_be_written() -> None:
    x = tn.zeros(0, 3).expand(2, 0, 3)
    x.add_(1)
    assert tuple(x.shape) == (2, 0, 3)


def test_a_dimension_of_one_may_have_any_stride_in_a_complex_view() -> None:
    x = tn.zeros(2, 4).unfold(-1, 2, 3)
    tn.view_as_complex(x).add_(1j)
    np.testing.assert_array_equal(x.numpy()[:, 0], [[0, 1], [0, 1]])


def test_an_expanded_tensor_can_be_filled_and_a_row_of_it_written() -> None:
    base = tn.ones(4)
    wide = base.expand(2, 4)
    wide.fill_(3)
    wide[1].add_(2)
    assert base.tolist() == [5, 5, 5, 5]
    assert wide.tolist() == [[5, 5, 5, 5], [5, 5, 5, 5]]


def test_view_refuses_what_needs_a_copy_and_reshape_copies() -> None:
    turned = grid().t()
    with pytest.raises(ShapeError, match=r"strides \[1, 4\] has no view.*\n(.*\n)*.*help: use reshape"):
        turned.view(12)
    turned.reshape(12).zero_()
    assert turned.sum().item() == 66


def test_reshape_flatten_and_contiguous_share_memory_where_pytorch_does() -> None:
    base = grid()
    for shared in (base.reshape(4, 3), base.flatten(), base.contiguous(), base.ravel(), base.view(-1)):
        assert shared.data_ptr() == base.data_ptr()
        shared.view(-1)[0].add_(1)
    assert base[0, 0].item() == 5
    assert base.contiguous() is base
    turned = base.t()
    for other in (turned.reshape(12), turned.flatten(), turned.contiguous(), turned.ravel()):
        assert other.data_ptr() != base.data_ptr()
        assert other.is_contiguous()
        other.zero_()
    assert base.sum().item() == 71


def test_the_address_of_a_view_lies_in_its_base() -> None:
    base = grid()
    assert base[1].data_ptr() == base.data_ptr() + 4 * 8
    assert base[1:, 2].data_ptr() == base.data_ptr() + 6 * 8
    complex_base = tn.tensor([1 + 2j, 3 + 4j])
    assert complex_base.imag.data_ptr() == complex_base.data_ptr() + complex_base.itemsize // 2
    assert base.clone().data_ptr() != base.data_ptr()


def test_views_of_one_tensor_have_one_base_also_when_nothing_else_holds_it() -> None:
    x = tn.ones(2, 3).t()
    assert x[1:]._base is x._base and x._base.shape == (2, 3)


def test_a_tensor_without_elements_lies_nowhere() -> None:
    assert tn.empty(2, 2).resize_(0, 2).data_ptr() == 0 == tn.ones(3)[3:].data_ptr()


def test_a_tensor_cannot_be_resized_beyond_what_64_bits_count() -> None:
    with pytest.raises(RuntimeError, match="64 bits"):
        tn.zeros(1).resize_(8, 8, 2**29, 2**29)


def test_parts_of_complex_numbers_are_assigned() -> None:
    results = []
    for t in (tn, torch):
        x = t.tensor([1 + 2j, 3 + 4j], requires_grad=True)
        y = x * 1
        y.real = t.tensor([5.0, 6.0])
        y.imag = 7
        z = t.zeros(2)
        z.real = t.tensor([1, 2])
        y.abs().sum().backward()
        with pytest.raises((RuntimeError, ValueError)):
            z.real = 3 + 4j
        results.append([y.tolist(), z.tolist(), x.grad.tolist()])
    assert results[0] == results[1]


def test_parts_of_complex_numbers_are_written_in_place() -> None:
    base = tn.tensor([1 + 2j, 3 + 4j])
    base.real.add_(10)
    base.imag.zero_()
    assert base.tolist() == [11, 13]
    tn.view_as_real(base)[0].fill_(5)
    assert base.tolist() == [5 + 5j, 13]
    base.conj().add_(1j)
    assert base.tolist() == [5 + 4j, 13 - 1j]
    base.reshape(2, 1).mH.mul_(1j)
    assert base.tolist() == [4 - 5j, -1 - 13j]


def test_bytes_viewed_as_another_dtype_are_written_in_place() -> None:
    base = tn.tensor([1.0, 2.0])
    bits = base.view(tn.int32)
    assert bits.tolist() == [0x3F800000, 0x40000000]
    bits[0] = 0x40400000
    assert base.tolist() == [3, 2]
    base.view(tn.uint8)[7] = 0x41
    assert base.tolist() == [3, 8]


def test_in_place_changes_of_shape_keep_the_memory() -> None:
    base = grid()
    other = base.view(-1)
    base.t_().unsqueeze_(0)
    assert base.shape == (1, 4, 3) and base.stride() == (4, 1, 4)
    other[1] = -1
    assert base[0, 1, 0].item() == -1


def test_assigning_data_makes_a_tensor_share_another_ones_memory() -> None:
    first, second = grid(), tn.ones(2)
    first.data = second
    second.add_(1)
    assert first.tolist() == [2, 2]
    second.data.mul_(3)
    assert first.tolist() == [6, 6]


def test_a_shallow_copy_shares_memory() -> None:
    base = grid()
    row, twin = base[0], copy.copy(base[0])
    row.add_(1)
    assert twin.tolist() == [1, 2, 3, 4]
    twin.zero_()
    assert (row.sum() + base.sum()).item() == 60


def test_views_of_many_rows_are_followed_one_by_one() -> None:
    base = tn.tensor(np.zeros((300, 2)))
    rows = list(base)
    rows[7].add_(1)
    base.mul_(2)
    rows[8].copy_(rows[7])
    assert base[6:10].tolist() == [[0, 0], [2, 2], [2, 2], [0, 0]]
    assert rows[8].tolist() == [2, 2]


def test_a_failed_write_leaves_all_as_it_was() -> None:
    base = grid()
    row = base[0]
    with pytest.raises(ShapeError):
        row.copy_(tn.ones(5))
    with pytest.raises(TenfoldError):
        base.view(tn.int64).add_(0.5)
    assert base.tolist() == grid().tolist() and row.tolist() == [0, 1, 2, 3]


def test_as_strided_sees_the_memory_behind_a_view() -> None:
    base = grid()
    window = base[1].as_strided((2, 2), (4, 1))
    assert window.tolist() == [[4, 5], [8, 9]]
    window.zero_()
    assert base[1:, :2].sum().item() == 0 and base.sum().item() == 66 - 26
    scattered = base.t().as_strided_scatter(tn.ones(2), (2,), (1,), 0)
    assert scattered.tolist() == [[1, 0, 0], [1, 0, 0], [2, 6, 10], [3, 7, 11]]


def test_a_tensor_knows_its_base_and_how_often_its_memory_was_written() -> None:
    def told(m):
        x = m.ones(3, 4)
        versions = [x._version]
        x.add_(1)
        row = x[0]
        row.mul_(2)
        versions += [x._version, row._version]
        x.detach()[1] = 5
        versions += [x._version, x.clone()._version]
        bases = [row._base is x, row[1:]._base is x, x._base is None, x.detach()._base is None]
        return versions, bases, [each._is_view() for each in (x, row, x.t(), x + 1)]

    assert told(tn) == told(torch)


def test_as_strided_of_a_detached_leaf_leads_gradients_to_it() -> None:
    leaf = tn.ones(3, 2).detach().requires_grad_()
    window = leaf.as_strided((2, 2), (1, 2), 1)
    assert window.requires_grad
    (3 * window).sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [[0, 3], [3, 3], [3, 0]]


@pytest.mark.parametrize("part", [lambda x: x[1:], lambda x: x.t(), lambda x: x.view(-1)[2:]])
def test_as_strided_of_a_view_of_a_detached_leaf_leads_gradients_to_it(part) -> None:
    def run(L):
        leaf = L.arange(12.0).reshape(3, 4).detach().requires_grad_()
        view = part(leaf)
        window = view.as_strided((2, 2), (1, 2))
        (gradient,) = L.autograd.grad((window * window).sum(), leaf)
        return window.tolist(), gradient.tolist()

    assert run(tn) == run(torch)


def test_an_out_that_is_a_view_of_another_shape_is_resized_in_its_memory():
    results = []
    for t in (tn, torch):
        base = t.zeros(8)
        values, indices = base[::2], t.zeros(6, dtype=t.int64)[::2]
        with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
            t.sort(t.tensor([3.0, 1.0, 2.0, 0.0, 5.0]), out=(values, indices))
        results.append([base.tolist(), values.tolist(), indices.tolist(), values.stride()])
    assert results[0] == results[1]


def test_an_operand_that_shares_memory_is_read_before_the_write():
    x = tn.arange(9.0).reshape(3, 3)
    assert x.clone().copy_(x[0]).tolist() == [[0, 1, 2]] * 3
    y = x.clone()
    assert y.copy_(y[0]).tolist() == [[0, 1, 2]] * 3
    y = x.clone()
    y[1:] += y[:-1]
    assert y.tolist() == [[0, 1, 2], [3, 5, 7], [9, 11, 13]]


@pytest.mark.parametrize("source", [(), (1,), (3,), (1, 3), (3, 1), (2, 3), (1, 1, 3), (0,), (3, 3, 1), (9,)])
@pytest.mark.parametrize("target", [(), (3,), (1, 3), (3, 3), (2, 3), (0, 3), (1,)])
def test_what_is_copied_has_a_shape_that_pytorch_takes(target, source):
    def held(L, write):
        x = L.zeros(target)
        try:
            write(x, L.arange(10, 10 + math.prod(source)).reshape(source))
        except (RuntimeError, TenfoldError):
            return "refused"
        return x.tolist()

    for write in (lambda x, values: x.copy_(values), lambda x, values: x.__setitem__(..., values)):
        assert held(tn, write) == held(torch, write)


@pytest.mark.parametrize("write", (lambda x, y: x.copy_(y), lambda x, y: x.__setitem__(slice(None), y)))
def test_elements_that_share_memory_are_copied_from_themselves(write):
    def written(lib):
        base = lib.tensor([1.0, 2.0, 3.0])
        seen = base.expand(2, 3)
        target = seen.transpose(0, 1)
        write(target, seen.t())
        write(target, seen.detach().mT)
        return target.tolist(), base.tolist()

    assert written(tn) == written(torch)


def test_elements_that_share_memory_are_not_copied_from_others():
    for lib in (tn, torch):
        base = lib.tensor([1.0, 2.0])
        seen = base.expand(2, 2)
        with pytest.raises(RuntimeError):
            seen.copy_(seen.t())
        with pytest.raises(RuntimeError):
            seen.copy_(base.clone().expand(2, 2))
