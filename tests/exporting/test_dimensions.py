"""Types with named extents, and whether tensors are of them."""

import pytest

import tenfold as tn
from tenfold.base.dim import Dim
from tenfold.base.errors import FormatError, ShapeError
from tenfold.exporting.dimensions import SymbolicType, check, read_type
from tenfold.flat.ir import TensorType


def types(*shapes):
    return [TensorType(tn.float32, shape) for shape in shapes]


@pytest.mark.parametrize("text", ["f32[n,3]", "bf16[]", "i64[2,m,n*2]", "bool[?]", "c64[10]"])
def test_a_type_is_read_as_it_is_written(text):
    read = read_type(text)
    assert repr(read) == text and read == read_type(text) and hash(read) == hash(read_type(text))
    assert read.rank == (0 if text.endswith("[]") else text.count(",") + 1)
    assert read != read_type("f64[n]") and read != text


def test_extents_are_numbers_or_names():
    assert read_type("f32[n,30]").shape == ("n", 30) and read_type("f32[n,30]").dtype is tn.float32
    assert read_type("f32[\N{SUPERSCRIPT TWO}]").shape == ("\N{SUPERSCRIPT TWO}",)


@pytest.mark.parametrize(
    "text", ["f32", "g32[2]", "f32[2", "f32[2]x", "", f"f32[{'9' * 20}]", f"f32[{'9' * 5000}]"]
)
def test_other_texts_are_refused(text):
    with pytest.raises(FormatError, match="is no type of a tensor"):
        read_type(text)


def test_each_name_has_one_size_in_all_arguments():
    expected = [SymbolicType(tn.float32, ("n", 3)), SymbolicType(tn.float32, ("m", "n"))]
    assert check(expected, types((5, 3), (2, 5)), {}) == {"n": 5, "m": 2}
    with pytest.raises(ShapeError, match="n is 5 in argument 0 and 4 in 1"):
        check(expected, types((5, 3), (2, 4)), {})
    for shapes in (((5, 4), (2, 5)), ((5,), (2, 5)), ((5, 3, 1), (2, 5))):
        with pytest.raises(ShapeError, match=r"argument 0 of the module is f32\[n,3\], not f32"):
            check(expected, types(*shapes), {})
    with pytest.raises(ShapeError, match=r"argument 0 .* not f16\[5,3\]"):
        check(expected, [TensorType(tn.float16, (5, 3)), *types((2, 5))], {})


def test_a_size_outside_of_what_was_exported_is_refused_with_the_way_out():
    expected, dims = [SymbolicType(tn.float32, ("n",))], {"n": Dim("n", min=2, max=8)}
    for size in (2, 8):
        assert check(expected, types((size,)), dims) == {"n": size}
    for size in (1, 9):
        with pytest.raises(ShapeError, match=f"not {size} .argument 0.") as raised:
            check(expected, types((size,)), dims)
        assert "Dim('n', min=…, max=…)" in str(raised.value)
