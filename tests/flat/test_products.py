"""The products in a FlatIR function: their sizes, what they are computed from, how often they run."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold import flat
from tenfold.base import dtypes
from tenfold.compat.flop_counter import FlopCounterMode
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.products import products, work
from tenfold.flat.windows import ConvDimensions


def found(lowering, *shapes):
    """The products of a function of values with these shapes."""
    params = [Value(TensorType(dtypes.float32, shape)) for shape in shapes]
    return products(Function(params, [lowering(*params)]))


def counted(program):
    with FlopCounterMode(display=False) as counter:
        program()
    return counter.get_total_flops()


def test_rows_columns_and_batches_are_told_apart():
    (product,) = found(lambda x, y: flat.dot_general(x, y, ((2,), (1,)), ((1,), (0,))), (3, 2, 4), (2, 4, 5))
    assert (product.x, product.y, product.out) == ((2, 3, 4), (2, 4, 5), (2, 3, 5))
    assert work([product]) == 2 * 3 * 4 * 5


def test_a_convolution_has_its_channels_before_its_places():
    last = ConvDimensions(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))
    (product,) = found(lambda x, w: flat.convolution(x, w, last), (2, 8, 3), (5, 3, 4))
    assert (product.is_convolution, product.x, product.y, product.out) == (
        True, (2, 3, 8), (4, 3, 5), (2, 4, 4),
    )  # fmt: skip
    assert work([product]) == 2 * 4 * 4 * 3 * 5


def test_each_operand_tells_the_parameters_that_it_comes_from():
    def chain(x, y, z):
        return flat.dot_general(flat.tanh(flat.dot_general(x, y, ((1,), (0,)))), z, ((1,), (0,)))

    first, second = found(chain, (2, 3), (3, 4), (4, 5))
    assert (first.from_x, first.from_y) == (1, 2)
    assert (second.from_x, second.from_y) == (3, 4)


def test_a_loop_counts_each_round():
    def scanned():
        tn.func.scan(lambda carry, y: (carry @ y, carry), tn.ones(3, 3), tn.ones(5, 3, 3))

    assert counted(scanned) == 5 * 2 * 3**3


def test_of_branches_the_one_with_most_work_counts():
    x = tn.ones(3, 3)
    assert counted(lambda: tn.cond(x.sum() > 0, lambda y: y @ y @ y, lambda y: y @ y, (x,))) == 4 * 3**3
    assert counted(lambda: tn.cond(x.sum() > 0, lambda y: y @ y, lambda y: y @ y @ y, (x,))) == 4 * 3**3


def test_a_loop_of_unknown_length_counts_as_one_round_and_warns():
    with pytest.warns(UserWarning, match="counted as one round"):
        total = counted(lambda: tn.while_loop(lambda x: x.sum() < 100, lambda x: (x @ x,), (tn.ones(3, 3),)))
    assert total == 2 * 3**3
