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
    "empty maximum": (ValueError, lambda: tn.max(tn.ones(0)), "no elements"),
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
