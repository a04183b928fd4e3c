"""Tensors as ordinary values: literals, indices, operators, every row of the table, gradients, files,
random numbers.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.ops import TABLE
from tenfold.purple import names
from tenfold.purple.interpret import Session
from tenfold.purple.prims.rows import row_function


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("(tensor '((1 2) (3 4)))", "tensor([[1, 2],\n        [3, 4]])"),
        ("(tensor 5)", "tensor(5)"),
        ("(tensor #(1.5 2))", "tensor([1.5000, 2.0000])"),
        ("(tensor '(1 2) :dtype :float64)", "tensor([1., 2.], dtype=tenfold.float64)"),
        ("(tensor '(#t #f))", "tensor([ True, False])"),
        ("(tensor nil)", "tensor([])"),
        ("(+ (tensor '(1 2)) 1)", "tensor([2, 3])"),
        ("(- 1 (tensor '(1 2)))", "tensor([ 0, -1])"),
        ("(* 2 (tensor '(1 2)) (tensor '(1.0 2)))", "tensor([2., 8.])"),
        ("(/ (tensor '(1 2)) 2)", "tensor([0.5000, 1.0000])"),
        ("(- (tensor '(1 2)))", "tensor([-1, -2])"),
        ("(< (tensor '(1 2)) 2)", "tensor([ True, False])"),
        ("(< 1 (tensor '(1 2)))", "tensor([False,  True])"),
        ("(= (tensor '(1 2)) (tensor '(1 3)))", "tensor([ True, False])"),
        ("(if (< (tensor '(1)) 0) 'true 'false)", "false"),
        ("(tensor-ref (tensor '((1 2) (3 4))) 0 1)", "2"),
        ("(tensor-ref (tensor '((1 2) (3 4))) -1)", "tensor([3, 4])"),
        ("(tensor-ref (tensor '((1 2) (3 4))) :all 0)", "tensor([1, 3])"),
        ("(tensor-ref (tensor '(0 1 2 3 4)) '(1 3))", "tensor([1, 2])"),
        ("(tensor-ref (tensor '(0 1 2 3 4)) '(() () 2))", "tensor([0, 2, 4])"),
        ("(tensor-ref (tensor '(5 6 7)) (tensor '(2 0)))", "tensor([7, 5])"),
        ("(let ((x (tensor-zeros 2 2))) (tensor-set! x 5 "
        "0 1) (set! (tensor-ref x 1) (tensor '(7 8))) x)", "tensor([[0., 5.],\n        [7., 8.]])"),
        ("(tensor->list (tensor '((1 2) (3 4))))", "((1 2) (3 4))"),
        ("(tensor->list (tensor 1.5))", "1.5"),
        ("(tensor-item (tensor '(2.5)))", "2.5"),
        ("(let ((x (tensor-ones '(2 3)))) (list (tensor-shape x) "
        "(tensor-rank x) (tensor-count x) "
        "(tensor-dtype x) (tensor-device x)))", '((2 3) 2 6 :float32 "cpu")'),
        ("(tensor-to (tensor '(1.7)) :int64)", "tensor([1])"),
        ("(tensor-sum (tensor '((1 2) (3 4))) :dim 0)", "tensor([4, 6])"),
        ("(tensor-sum (tensor '((1 2) (3 4))) '(1) :keepdim #t)", "tensor([[3],\n        [7]])"),
        ("(tensor-cat (list (tensor '(1)) (tensor '(2 3))))", "tensor([1, 2, 3])"),
        ("(tensor-view (tensor '(1 2 3 4)) 2 2)", "tensor([[1, 2],\n        [3, 4]])"),
        ("(tensor-reshape (tensor '(1 2 3 4)) '(2 2))", "tensor([[1, 2],\n        [3, 4]])"),
        ("(tensor-clamp (tensor '(1 5 9)) nil 6)", "tensor([1, 5, 6])"),
        ("(tensor-log-softmax (tensor '(0.0 0.0)) -1)", "tensor([-0.6931, -0.6931])"),
        ("(tensor-mse-loss (tensor '(1.0 3)) (tensor '(0.0 0)) :reduction :sum)", "tensor(10.)"),
        ("(tensor-max (tensor '((1 9) (3 4))) 1)", "(tensor([9, 4]) tensor([1, 1]))"),
        ("(let ((x (tensor '(1 2)))) (tensor-add! x 1) x)", "tensor([2, 3])"),
        ("(tensor-full '(2) 7)", "tensor([7, 7])"),
        ("(tensor-arange 3)", "tensor([0, 1, 2])"),
        ("(tensor-eye 2)", "tensor([[1., 0.],\n        [0., 1.]])"),
        ("(tensor-zeros 2 :dtype :int32)", "tensor([0, 0], dtype=tenfold.int32)"),
        ("(tensor? (tensor 1))", "#t"),
        ("(with-device \"cpu\" (tensor-device (tensor-ones 1)))", '"cpu"'),
        ("(tensor-randn 2 :requires-grad t)", None),
    ],
)  # fmt: skip
def test_tensors_are_values(value, program, shown):
    found = value(program)
    if shown is not None:
        assert found == shown


def test_every_row_of_the_table_is_a_primitive():
    spelled = {names.aten_name(name) for name in names.row_names()}
    by_prelude = {names.aten_name(name) for name in names.defined_by_prelude()}
    assert spelled | by_prelude == set(TABLE) and not spelled & by_prelude
    assert {"rand", "randint", "normal", "dropout"} <= by_prelude
    for name in names.row_names():
        assert callable(row_function(name))


def test_what_prints_is_pytorchs_text(value):
    numbers = [[1.5, -2.25, 1000.0], [0.001, 3.0, 4e6]]
    rows = " ".join(f"({' '.join(map(str, row))})" for row in numbers)
    assert value(f"(tensor '({rows}))") == repr(torch.tensor(numbers))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("(tensor-matmul (tensor-ones 2 3) (tensor-ones 2 3))", "inner dimensions 3 and 2 differ"),
        ("(tensor '((1 2) (3)))", "ragged"),
        ("(tensor 'a)", "tensor: expected a number, got a"),
        ("(tensor-ref (tensor '(1 2)) 5)", "index 5 is out of range"),
        ("(tensor-ref (tensor '(1 2)) 'x)", "tensor-ref: expected an index, got x"),
        ("(tensor-shape 5)", "tensor-shape: expected a tensor, got 5"),
        ("(tensor-sum (tensor 1) :nosuch 1)", "nosuch"),
        ("(tensor-to (tensor 1) :nosuch)", "tensor-to: there is no dtype :nosuch"),
        ("(backward (tensor 1.0))", "grad"),
        ("(with-device \"nowhere\" (tensor-ones 1))", "nowhere"),
        ("(tensor-load \"/no/such.safetensors\")", "No such file"),
        ("(tensor-load \"/no/such.bin\")", "does not end in .safetensors"),
        ("(tensor-add (tensor 1) car)", "expected a number or a tensor"),
    ],
)  # fmt: skip
def test_errors_of_tensors_are_located(failure, program, message):
    error = failure("(define (f)\n  " + program + ")\n(list (f))")
    assert message in f"{error.message} {error.help}"
    assert error.place.line == 2
    assert error.stack[0][0] == "f"


def test_gradients_are_those_of_pytorch():
    session = Session()
    x = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)
    session.run_text(
        "(define x (requires-grad! (tensor '((0.5 -1.0) (2.0 "
        "0.25))))) (backward (tensor-sum (* (tensor-tanh x) (* x x))))",
        "g",
    )
    reference = torch.tensor(x, requires_grad=True)
    (reference.tanh() * reference * reference).sum().backward()
    np.testing.assert_allclose(
        session.run_text("(tensor-grad x)", "g").numpy(), reference.grad.numpy(), rtol=1e-6
    )
    assert session.run_text("(clear-grad! x) (null? (tensor-grad x))", "g") is True


def test_gradients_can_be_turned_off_and_on(value):
    program = """(define x (tensor '(1.0) :requires-grad t))
      (list (requires-grad? (* x 2)) (no-grad (requires-grad? (* x 2))) (no-grad (with-grad
        (requires-grad? (* x 2))))
            (requires-grad? (detach x)) (requires-grad? (requires-grad! x #f)))"""
    assert value(program) == "(#t #f #t #f #f)"


def test_tensors_are_saved_and_loaded(value, tmp_path):
    path = tmp_path / "t.safetensors"
    program = (
        f'(tensor-save "{path}" (hash-table "a" (tensor \'(1 2)) "b" (tensor 1.5))) (tensor-load "{path}")'
    )
    assert value(program) == '#<table ("a" . tensor([1, 2])) ("b" . tensor(1.5000))>'
    assert tn.load(str(path))["a"].tolist() == [1, 2]


def splitmix(seed: int, count: int) -> list[int]:
    """SplitMix64, written as its author gives it."""
    words = []
    for _ in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        word = seed
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        words.append(word ^ (word >> 31))
    return words


def test_random_tensors_are_drawn_from_splitmix():
    session = Session()
    drawn = session.run_text("(manual-seed 42) (tensor-rand 2 3)", "r")
    expected = np.array([word >> 40 for word in splitmix(42, 6)], np.float32) * np.float32(2**-24)
    np.testing.assert_array_equal(drawn.numpy(), expected.reshape(2, 3))
    uniform = np.array([word >> 11 for word in splitmix(42, 4)]) * 2.0**-53
    radius = np.sqrt(-2 * np.log(1 - uniform[0::2]))
    normal = np.stack(
        [radius * np.cos(2 * np.pi * uniform[1::2]), radius * np.sin(2 * np.pi * uniform[1::2])], 1
    )
    np.testing.assert_allclose(
        session.run_text("(manual-seed 42) (tensor-randn 3)", "r").numpy(), normal.reshape(-1)[:3], rtol=1e-6
    )
    order = session.run_text("(manual-seed 42) (tensor-randperm 10)", "r").tolist()
    assert order == sorted(range(10), key=lambda i: splitmix(42, 10)[i])


def test_random_tensors_are_distributed_as_they_should_be():
    session = Session()
    normal = session.run_text("(tensor-randn 200 100)", "r").numpy()
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.03
    uniform = session.run_text("(tensor-rand 200 100)", "r").numpy()
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.02
    integers = session.run_text("(tensor-randint -2 3 '(1000))", "r").numpy()
    assert set(integers.tolist()) == {-2, -1, 0, 1, 2} and integers.dtype == np.int64
    dropped = session.run_text("(tensor-dropout (tensor-ones 1000) 0.25 #t)", "r").numpy()
    assert (
        set(np.round(dropped, 4).tolist()) == {0.0, np.float32(1.3333).item()}
        or len(set(dropped.tolist())) == 2
    )
    assert abs((dropped == 0).mean() - 0.25) < 0.05


def test_a_torchscript_file_is_loaded_and_called(value, failure, tmp_path):
    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * 2 + y

    path = tmp_path / "twice.pt"
    torch.jit.script(Twice()).save(str(path))
    assert value(f'((jit-load "{path}") (tensor \'(1.0 2.0)) (tensor 1.0))') == "tensor([3., 5.])"
    assert failure(f'(list ((jit-load "{path}") 5))').message == "module: expected a tensor, got 5"
    assert failure('(jit-load "/no/such.pt")').kind == "file"
