"""Bad input, by the error's text: what was wrong, the user's line, where operands were made, what to do."""

from pathlib import Path

import pytest

import tenfold as tn

HERE = Path(__file__).name


def message(kind: type[Exception], call) -> list[str]:
    """The lines of the error's text, with line numbers taken out."""
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, tn.TenfoldError)
    lines = str(caught.value).splitlines()
    assert any(line.startswith(f"  --> {HERE}:") for line in lines), lines
    return lines


def test_shapes_that_do_not_broadcast_in_full():
    x = tn.ones(2, 3)
    b = tn.zeros(4)
    with pytest.raises(ValueError) as caught:
        x + b
    first = caught.value.__traceback__.tb_lineno
    assert str(caught.value) == (
        "add: cannot broadcast f32[2,3] with f32[4]: 3 and 4 differ in the last dimension\n"
        f"  --> {HERE}:{first}   x + b\n"
        f"      {' ' * len(f'{HERE}:{first}')}   ^^^^^\n"
        f"      x: f32[2,3] made at {HERE}:{first - 3}   x = tn.ones(2, 3)\n"
        f"      b: f32[4]   made at {HERE}:{first - 2}   b = tn.zeros(4)\n"
        "  help: unsqueeze or slice one operand so that the trailing dimensions agree"
    )


X = tn.ones(2, 3)
CASES = {
    "product": (ValueError, lambda: X @ tn.ones(4), "matmul: cannot multiply f32[2,3] and f32[4]"),
    "join": (ValueError, lambda: tn.cat([X, tn.ones(2, 4)]), "cat: cannot join f32[2,3] and f32[2,4]"),
    "view": (ValueError, lambda: X.view(7), "view: cannot reshape f32[2,3] to [7]: 6 elements and 7"),
    "two unknowns": (ValueError, lambda: X.reshape(-1, -1), "only one dimension can be inferred"),
    "expand": (
        ValueError,
        lambda: X.expand(5, 3),
        "expand: cannot broadcast f32[2,3] to [5, 3]: 2 and 5 differ",
    ),
    "negative size": (ValueError, lambda: tn.zeros(-1), "-1 is negative"),
    "nothing to join": (ValueError, lambda: tn.cat([]), "cat: expected a non-empty list of Tensors"),
    "nothing to stack": (ValueError, lambda: tn.hstack(()), "hstack: expected a non-empty list of Tensors"),
    "ragged": (ValueError, lambda: tn.tensor([[1, 2], [3]]), "the data is ragged"),
    "dtypes": (TypeError, lambda: tn.mm(X, X.double().T), "mm: cannot multiply f32[2,3] and f64[3,2]"),
    "bool minus bool": (TypeError, lambda: X.bool() - X.bool(), "subtraction is not defined for bool"),
    "mean of integers": (TypeError, lambda: X.long().mean(), "not int64"),
    "narrowing write": (TypeError, lambda: X.long().add_(0.5), "cannot write a float32 result into a int64"),
    "no such device": (ValueError, lambda: tn.ones(2, device="gpu"), "unknown device 'gpu'"),
    "argument type": (TypeError, lambda: X.softmax("a"), "argument 'dim' takes an int, not str"),
    "missing": (TypeError, lambda: X.softmax(), "missing the argument 'dim'"),
    "too many": (TypeError, lambda: X.tanh(1, 2), "tanh:"),
    "keyword": (TypeError, lambda: X.softmax(dmi=1), "unexpected keyword argument 'dmi'"),
    "dimension": (
        IndexError,
        lambda: X.sum(dim=5),
        "sum: dimension 5 is out of range for a tensor of 2 dimensions",
    ),
    "negative dimension": (IndexError, lambda: X.sum(dim=-3), "dimension -3 is out of range"),
    "index": (IndexError, lambda: X[5], "index 5 is out of range for dimension 0"),
    "column": (IndexError, lambda: X[0, -4], "index -4 is out of range"),
    "too many indices": (
        IndexError,
        lambda: X[0, 0, 0],
        "an index of 3 dimensions into f32[2,3], which has 2",
    ),
    "index tensor": (
        IndexError,
        lambda: X[:, tn.tensor([9])].tolist(),
        "out of range for dimension 1 of size 3",
    ),
    "ambiguous": (TypeError, lambda: bool(X), "the truth of a tensor of 6 elements is ambiguous"),
    "item": (ValueError, lambda: X.item(), "item() needs a tensor of one element, this one is f32[2,3]"),
    "twice": (ValueError, lambda: X.permute(0, 0), "dimension 0 appears twice"),
    "empty maximum": (IndexError, lambda: tn.max(tn.ones(0)), "no elements"),
    "size": (IndexError, lambda: X.size(5), "size: dimension 5 is out of range"),
    "size of none": (IndexError, lambda: tn.tensor(1).size(0), "size: dimension 0 is out of range"),
    "stride": (IndexError, lambda: X.stride(-3), "stride: dimension -3 is out of range"),
    "no dimension": (TypeError, lambda: X.size(1.0), "size: a dimension is an int, not float"),
    "numel": (TypeError, lambda: tn.numel(5), "numel: takes a Tensor, not int"),
    "is_floating_point": (TypeError, lambda: tn.is_floating_point(5), "takes a Tensor, not int"),
    "is_complex": (TypeError, lambda: tn.is_complex(5), "takes a Tensor, not int"),
    "is_signed": (TypeError, lambda: tn.is_signed(5), "takes a Tensor, not int"),
    "is_same_size": (TypeError, lambda: tn.is_same_size(X, 5), "takes a Tensor, not int"),
    "split": (TypeError, lambda: tn.split(5, 2), "split: takes a Tensor, not int"),
    "promote_types": (TypeError, lambda: tn.promote_types(1, 2), "promote_types: expected a dtype, not 1"),
    "no promotion": (TypeError, lambda: tn.promote_types(tn.uint16, tn.int8), "no common dtype"),
    "can_cast": (TypeError, lambda: tn.can_cast(1, 2), "can_cast: expected a dtype, not 1"),
    "special": (AttributeError, lambda: tn.special.foo, "tenfold.special has no 'foo'"),
    "linalg": (AttributeError, lambda: tn.linalg.foo, "tenfold.linalg has no 'foo'"),
    "fft": (AttributeError, lambda: tn.fft.foo, "tenfold.fft has no 'foo'"),
    "seed": (TypeError, lambda: tn.manual_seed("a"), "manual_seed: the seed is an int: invalid literal"),
    "seed's fraction": (TypeError, lambda: tn.Generator().manual_seed(1.5), "not float"),
    "seed's size": (TypeError, lambda: tn.manual_seed(1 << 64), "does not fit 64 bits"),
    "generator": (ValueError, lambda: tn.Generator("x"), "Generator: unknown device 'x'"),
    "frombuffer": (TypeError, lambda: tn.frombuffer(5, dtype=tn.int8), "takes a bytes-like object"),
    "its gradient": (
        TypeError,
        lambda: tn.frombuffer(b"a", dtype=tn.int8, requires_grad=True),
        "only tensors of float and complex dtypes have gradients, not int8",
    ),
    "tensordot": (TypeError, lambda: tn.tensordot(X, X, dims="a"), "dims is a number of dimensions or two"),
    "cdist": (TypeError, lambda: tn.cdist(X, X, p="a"), "cdist: argument 'p' takes a float, not str"),
    "show": (TypeError, lambda: tn.show(5), "show: takes a function, not int"),
    "compile": (TypeError, lambda: tn.compile(5), "compile: takes a function, not int"),
    "nothing returned": (TypeError, lambda: tn.compile(lambda: 5)(), "neither returns nor changes"),
    "stage": (TypeError, lambda: tn.show(tn.tanh, X, stage="zz"), "show: there is no stage 'zz'"),
    "tensor's stage": (TypeError, lambda: X.show(5), "show: the stage is a name, not int"),
    "default dtype": (TypeError, lambda: tn.set_default_dtype(tn.int64), "set_default_dtype: only floating"),
    "default device": (ValueError, lambda: tn.set_default_device("zz"), "set_default_device: unknown device"),
    "finfo": (TypeError, lambda: tn.finfo(tn.int8), "finfo: int8 is not a floating-point dtype"),
    "iinfo": (TypeError, lambda: tn.iinfo(tn.float32), "iinfo: float32 is not an integer dtype"),
    "layout": (NotImplementedError, lambda: tn.ones(2, layout="sparse_coo"), "ones: layout='sparse_coo' is"),
    "format": (
        ValueError,
        lambda: X.clone(memory_format="channels_last"),
        "clone: memory_format='channels_last' is of tensors of 4 dimensions, not of 2",
    ),
    "format of to": (
        NotImplementedError,
        lambda: X.to(tn.int8, memory_format="zigzag"),
        "to: memory_format='zigzag' is not supported",
    ),
    "format of half": (ValueError, lambda: X.half(memory_format="channels_last"), "half: memory"),
    "format asked for": (
        ValueError,
        lambda: X.is_contiguous(memory_format="preserve_format"),
        "is not stored",
    ),
    "number for a tensor": (TypeError, lambda: tn.atan2(2, X), "atan2: argument 'input' takes a Tensor, not"),
    "number beside a tensor": (
        TypeError,
        lambda: tn.maximum(X, 2),
        "maximum: argument 'other' takes a Tensor",
    ),
    "embedding of a number": (
        ValueError,
        lambda: tn.nn.functional.embedding(tn.tensor([0]), tn.tensor(1.0)),
        "embedding: weight is a matrix",
    ),
    "gradients": (
        TypeError,
        lambda: tn.ones(2, dtype=tn.int32, requires_grad=True),
        "only tensors of float and complex dtypes have gradients, not int32",
    ),
    "no gradients": (
        TypeError,
        lambda: tn.add(X, X, requires_grad=False),
        "add: unexpected keyword argument 'requires_grad'",
    ),
    "out": (TypeError, lambda: tn.add(X, X, out=5), "add: out= takes a Tensor, not int"),
    "out's dtype": (
        TypeError,
        lambda: tn.add(X, X, out=tn.ones(1, dtype=tn.int32)),
        "add: out= of dtype int32 cannot hold a float32 result",
    ),
    "out's device": (
        ValueError,
        lambda: tn.add(X, X, out=tn.ones(2, 3, device="cpu:1")),
        "add: out= is on cpu:1, the result on cpu",
    ),
    "out of another dtype than told": (
        TypeError,
        lambda: tn.zeros(2, dtype=tn.int32, out=tn.ones(2)),
        "zeros: dtype=int32 is not that of out=, float32",
    ),
    "one out": (TypeError, lambda: tn.sort(X, out=X), "sort: out= takes a tuple of 2 tensors"),
    "few outs": (TypeError, lambda: tn.sort(X, out=(X,)), "sort: out= takes a tuple of 2 tensors"),
    "unravel_index": (TypeError, lambda: tn.unravel_index(X, 6), "indices are integers, not float32"),
    "fill_diagonal_": (ValueError, lambda: tn.ones(3).fill_diagonal_(1), "takes a matrix"),
    "sum_to_size": (ValueError, lambda: X.sum_to_size(2, 2), "f32[2,3] is not [2, 2] stretched"),
    "einsum": (TypeError, lambda: tn.einsum("ij,kl->im", X, X), "'m' is in the result but in no operand"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_explained(name):
    kind, call, text = CASES[name]
    lines = message(kind, call)
    assert text in lines[0], lines
    assert "^" in lines[2]


@pytest.mark.parametrize(
    ("call", "suggestion"),
    [
        (lambda: X.sun(), "did you mean sum?"),
        (lambda: tn.sofmax(X, 1), "did you mean softmax?"),
        (lambda: tn.special.erff(X), "did you mean erf?"),
        (lambda: X.softmax(dmi=1), "did you mean dim?"),
        (lambda: tn.ones(2, device="gpu"), "did you mean cuda?"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(call, suggestion):
    assert suggestion in message(Exception, call)[-1]


def test_a_missing_cuda_says_how_to_get_it():
    from tenfold.engines import xla

    if xla.find_cuda_plugin():
        return  # this machine has one: the error cannot arise
    lines = message(tn.DeviceError, lambda: tn.ones(2, device="cuda"))
    assert "CUDA plugin, which is not installed" in lines[0] and "pip install" in lines[-1]


def test_probing_for_an_attribute_is_quiet():
    assert not hasattr(X, "no_such_thing")
    assert getattr(tn, "no_such_thing", None) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: tn.cat([]),
        lambda: tn.stack([]),
        lambda: tn.sin(1.0),
        lambda: tn.meshgrid(),
    ],
)
def test_no_tensor_at_all_is_explained(call):
    assert "tensor" in message(TypeError, call)[0].lower()
