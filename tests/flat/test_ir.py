"""The shape of FlatIR: interned types, ops and their operands, functions that inline, builders, text."""

from __future__ import annotations

import copy
import pickle

import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, IndexOutOfRange, ShapeError
from tenfold.flat import (
    collectives,
    data_ops as movement,
    elementwise,
    indexed,
    ir as graph,
    sharding,
    structured,
    windows,
)
from tenfold.flat.ir import Function, Op, TensorType, Value, in_order
from tenfold.flat.printer import print_flat
from tests.flat.machine import params

F32, I64 = dtypes.float32, dtypes.int64
CLASSES = [
    each
    for module in (collectives, elementwise, indexed, movement, sharding, structured, windows)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Op) and each.__dict__.get("name")
]


def test_types_are_interned():
    assert TensorType(F32, (2, 3)) is TensorType(F32, (2, 3))
    assert TensorType(F32, (2, 3)) is not TensorType(F32, (3, 2))
    for other in (copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        assert other(TensorType(I64, (4,))) is TensorType(I64, (4,))
    assert [str(TensorType(F32, shape)) for shape in ((), (2,), (0, 3))] == ["f32[]", "f32[2]", "f32[0,3]"]
    assert [TensorType(F32, shape).numel for shape in ((), (2,), (0, 3), (2, 3))] == [1, 2, 0, 6]


def test_a_negative_extent_is_refused_every_time():
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"no negative extents: \[2, -3\]"):
            TensorType(F32, (2, -3))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_op_is_named_after_stablehlos_and_its_fields_are_declared(kind):
    dialect, _, name = kind.name.partition(".")
    assert dialect in ("stablehlo", "chlo", "sdy", "tenfold")
    assert kind.__name__.lower() == name.replace("_", "")
    assert kind.fields or kind.operand_fields == ()
    assert {field for field, _ in kind.operand_fields} <= set(kind.fields)
    with pytest.raises((TypeError, ValueError)):
        kind(*[None] * (len(kind.fields) + 1))


def test_operands_and_attributes_are_told_apart():
    x, y = params((F32, (2,)), (F32, (3,)))
    op = movement.Concatenate((x, y), 0)
    assert op.operands == (x, y) and op.attributes == {"dimension": 0}
    padded = flat.pad(x, (1,), (0,)).op
    assert padded.operands[0] is x and set(padded.attributes) == {
        "edge_padding_low",
        "edge_padding_high",
        "interior_padding",
    }


def test_ops_come_in_an_order_that_respects_their_operands():
    (x,) = params((F32, ()))
    a = flat.add(x, x)
    b = flat.mul(a, a)
    c = flat.sub(b, a)
    assert [op.name.split(".")[1] for op in in_order([c, a])] == ["add", "multiply", "subtract"]
    assert in_order([x]) == []
    deep = x
    for _ in range(50_000):
        deep = flat.add(deep, x)
    assert len(in_order([deep])) == 50_000


def test_a_function_is_inlined_with_new_ops_at_a_new_place():
    function = flat.function(lambda a, b: (flat.add(a, b), a), [TensorType(F32, ())] * 2)
    x, y = params((F32, ()), (F32, ()))
    total, same = function.inline([x, y], source="here")
    assert same is x
    assert (
        total.op is not function.results[0].op and total.op.operands == (x, y) and total.op.source == "here"
    )
    assert function.results[0].op.source is None
    function.expect("it", [TensorType(F32, ())] * 2, [TensorType(F32, ())] * 2)
    with pytest.raises(
        ArgumentError, match=r"it must turn \[f32\[\]\] into \[\], not \[f32\[\], f32\[\]\] into"
    ):
        function.expect("it", [TensorType(F32, ())], [])


def test_an_inlined_function_keeps_what_it_reads_from_outside():
    x, y, other = params((F32, (2,)), (F32, (2,)), (F32, (2,)))
    joined, smallest = flat.concatenate([x, other], 0), flat.sort([x, other], 0, lambda a, b, *_: a < b)[0]
    function = Function([x], [joined, smallest, other])
    for _ in range(2):
        again, least, outside = function.inline([y])
        assert again.op.operands == (y, other) and outside is other and least.op.operands == (y, other)
        assert [each.index for each in least.op.results] == [0, 1] and least is least.op.results[0]
        assert again.op.pattern is joined.op and joined.op.pattern is joined.op
    (copy, *_) = Function([y], [again]).inline([x])
    assert copy.op.operands == (x, other) and copy.op.pattern is joined.op
    with pytest.raises(ArgumentError, match="a function of 1 parameters is given 2 values"):
        function.inline([x, y])


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(2, 3), (3,)], (2, 3)),
        ([(2, 1), (1, 3)], (2, 3)),
        ([(), (0,)], (0,)),
        ([(1,), (0, 2)], (0, 2)),
        ([(4, 1, 3), (2, 1), ()], (4, 2, 3)),
        ([], ()),
    ],
)
def test_shapes_broadcast_as_in_numpy(shapes, expected):
    assert flat.broadcast_shapes(*shapes) == expected


def test_shapes_that_do_not_broadcast_say_where():
    x, y = params((F32, (2, 3)), (F32, (4,)))
    with pytest.raises(ShapeError) as raised:
        flat.add(x, y)
    message = "cannot broadcast f32[2,3] with f32[4]: 3 and 4 differ in the last dimension"
    assert raised.value.message == message
    assert "unsqueeze" in raised.value.help
    x, y = params((F32, (2, 3)), (F32, (5, 3)))
    with pytest.raises(ShapeError, match="2 and 5 differ in dimension -2"):
        flat.mul(x, y)


def test_dimensions_count_from_either_end():
    assert [flat.axis(d, 3) for d in (0, 2, -1, -3)] == [0, 2, 2, 0]
    assert [flat.axis(d, 0) for d in (0, -1)] == [0, 0]
    assert flat.axes(None, 3) == flat.axes((), 3) == (0, 1, 2)
    assert flat.axes((-1, 0), 3) == (2, 0) and flat.axes(0, 0) == ()
    for dim in (3, -4):
        with pytest.raises(
            IndexOutOfRange, match=f"dimension {dim} is out of range .* 3 dimensions"
        ) as raised:
            flat.axis(dim, 3)
        assert raised.value.help == "use -3 to 2"
    with pytest.raises(ShapeError, match=r"dimension 1 appears twice in \[1, 1\]"):
        flat.axes((1, -2), 3)


def test_numbers_take_the_dtype_of_the_values_beside_them():
    (x,) = params((dtypes.uint8, (2,)))
    assert (x + 1).type is (1 + x).type is flat.where(flat.eq(x, 1), x, 0).type is x.type
    assert (x - 1).op.y.op.x.op.value == 1 and (3 - x).op.x.op.x.op.value == 3


def test_functions_print_with_the_names_of_their_values():
    x, y = params((F32, (2,)), (I64, ()))
    x.name, y.name = "p0", "p1"
    total = flat.reduce(x, "add")
    total.name = "t0"
    (chosen,) = flat.case(flat.constant(1, dtypes.int32), [lambda a: a, lambda a: a + 1], [total])
    assert print_flat(Function([x, y], [chosen, y]), "cpu").splitlines() == [
        "==== Flat IR ====",
        "inputs:",
        "    p0: [shape=(2,), dtype=(float32), loc=(cpu)]",
        "    p1: [shape=(), dtype=(int64), loc=(cpu)]",
        "t_inter1: [shape=(), dtype=(int32), loc=(cpu)] = ConstantOp(value=1)",
        "t_inter2: [shape=(), dtype=(float32), loc=(cpu)] = ConstantOp(value=0.0)",
        "t0: [shape=(), dtype=(float32), loc=(cpu)] = ReduceOp(p0, t_inter2, dimensions=(0,), body=add)",
        "t_inter3: [shape=(), dtype=(float32), loc=(cpu)] = "
        "CaseOp(t_inter1, t0, branches=(<0 ops>, <2 ops>))",
        "outputs:",
        "    t_inter3: [shape=(), dtype=(float32), loc=(cpu)]",
        "    p1: [shape=(), dtype=(int64), loc=(cpu)]",
    ]


def test_a_name_that_was_inlined_twice_is_written_once():
    function = flat.function(lambda a: flat.tanh(a), [TensorType(F32, ())])
    function.results[0].name = "t9"
    (x,) = params((F32, ()))
    for value in (first := function.inline([x])) + function.inline(first):
        value.name = "t9"
    text = print_flat(Function([x], function.inline(first)), "cpu")
    names = [line.split(":")[0] for line in text.splitlines() if "TanhOp" in line]
    assert len(names) == len(set(names)) == 2
    assert isinstance(x, Value) and graph.in_order([x]) == []
