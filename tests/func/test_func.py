"""Functions of functions agree with PyTorch's, alone and nested in each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.runtime.executables import counting_compiles
from tests.func.cases import BATCH, MATRIX, VECTOR, same


class Library:
    """One of the two libraries, so that a case can be written once."""

    def __init__(self, module: Any):
        self.lib = module
        self.f = module.func
        self.matrix, self.batch, self.vector = (module.tensor(each) for each in (MATRIX, BATCH, VECTOR))

    def layer(self, x: Any) -> Any:
        return (self.matrix @ x).tanh()


CASES: dict[str, Callable[[Library], Any]] = {
    "vmap": lambda t: t.f.vmap(t.layer)(t.batch),
    "vmap by in_dims": lambda t: t.f.vmap(lambda a, b: a * b.sum(), in_dims=(1, None))(t.batch, t.vector),
    "vmap by negative dims": lambda t: t.f.vmap(lambda a: a * 2, in_dims=-1, out_dims=-1)(t.batch),
    "vmap of nested arguments": lambda t: t.f.vmap(
        lambda d, n: {"y": d["a"] * n, "z": [d["b"].sum()]},
        in_dims=({"a": 0, "b": 1}, None),
        out_dims={"y": 1, "z": [0]},
    )({"a": t.batch, "b": t.batch.T}, t.lib.tensor(2.0)),
    "vmap of keywords": lambda t: t.f.vmap(lambda a, b: a * b)(t.batch, b=t.batch + 1),
    "vmap of several results": lambda t: t.f.vmap(lambda a: (a, a.sum(), t.vector), out_dims=(1, 0, 0))(
        t.batch
    ),
    "vmap whose result is not mapped": lambda t: t.f.vmap(lambda a: (a, t.vector), out_dims=(0, None))(
        t.batch
    ),
    "vmap in chunks": lambda t: t.f.vmap(lambda a: a.cumsum(0), chunk_size=2)(t.batch),
    "vmap of writes in place": lambda t: t.f.vmap(lambda a: a.clone().add_(1).mul_(a))(t.batch),
    "vmap of views": lambda t: t.f.vmap(lambda a: a.reshape(2, 2).T[0].flip(0))(t.batch),
    "vmap of an index": lambda t: t.f.vmap(lambda a, i: a[i], in_dims=(0, None))(
        t.batch, t.lib.tensor([2, 0])
    ),
    "vmap of a condition": lambda t: t.f.vmap(lambda a: t.lib.where(a > 0, a, -a).sort().values)(t.batch),
    "vmap of vmap": lambda t: t.f.vmap(
        t.f.vmap(lambda a, b: a * b + 1, in_dims=(0, None)), in_dims=(None, 0)
    )(t.vector, t.matrix[0]),
    "vmap of attention, which draws nothing": lambda t: t.f.vmap(
        lambda a: t.lib.nn.functional.scaled_dot_product_attention(a[None], a[None], a[None])
    )(t.batch[:, :, None]),
    "jvp of one tensor given twice": lambda t: t.f.jvp(
        lambda a, b: a * b, (t.vector, t.vector), (t.vector, t.vector * 0)
    ),
    "vmap of vmap over the same": lambda t: t.f.vmap(t.f.vmap(lambda a: a.sin() * t.vector[1]))(t.batch),
    "grad": lambda t: t.f.grad(lambda a: (a**3).sum())(t.batch),
    "grad of a tree": lambda t: t.f.grad(lambda d, x: (d["w"] @ x + d["b"]).pow(2).sum())(
        {"w": t.matrix, "b": t.matrix[:, 0]}, t.vector
    ),
    "grad by two arguments": lambda t: t.f.grad(lambda a, b: (a * b.exp()).sum(), argnums=(1, 0))(
        t.batch, t.batch
    ),
    "grad by the last argument": lambda t: t.f.grad(lambda a, b: (a * b).sum(), argnums=-1)(
        t.batch, t.batch + 1
    ),
    "grad with aux": lambda t: t.f.grad(lambda a: ((a * a).sum(), {"s": a.sin()}), has_aux=True)(t.batch),
    "grad and value": lambda t: t.f.grad_and_value(lambda a: (a * a).sum())(t.batch),
    "grad and value with aux": lambda t: t.f.grad_and_value(lambda a: ((a * a).sum(), a), has_aux=True)(
        t.batch
    ),
    "grad of what does not depend": lambda t: t.f.grad(lambda a, b: (b * b).sum())(t.batch, t.vector),
    "grad of grad": lambda t: t.f.grad(t.f.grad(lambda x: x**3 * x.sin()))(t.lib.tensor(1.5)),
    "grad of grad of grad": lambda t: t.f.grad(t.f.grad(t.f.grad(lambda x: x**4 * x.sin())))(
        t.lib.tensor(1.5)
    ),
    "grad of a product of grads": lambda t: t.f.grad(lambda x: t.f.grad(lambda y: (x * y) ** 2)(x * 2) * x)(
        t.lib.tensor(1.5)
    ),
    "vmap of grad": lambda t: t.f.vmap(t.f.grad(lambda x: t.layer(x).sum()))(t.batch),
    "vmap of grad by shared weights": lambda t: t.f.vmap(
        t.f.grad(lambda w, x: (w @ x).tanh().sum()), in_dims=(None, 0)
    )(t.matrix, t.batch),
    "grad of vmap": lambda t: t.f.grad(lambda w: t.f.vmap(lambda x: (w @ x).tanh().sum())(t.batch).sum())(
        t.matrix
    ),
    "grad of vmap of grad": lambda t: t.f.grad(
        lambda w: t.f.vmap(t.f.grad(lambda x: (w @ x).tanh().sum()))(t.batch).pow(2).sum()
    )(t.matrix),
    "vjp": lambda t: t.f.vjp(lambda a, b: (a * b).sum(0), t.batch, t.batch * 2)[1](t.vector),
    "vjp of a tree": lambda t: t.f.vjp(lambda d: {"y": d["a"].sin(), "z": d["a"].sum()}, {"a": t.vector})[1](
        {"y": t.vector, "z": t.lib.tensor(2.0)}
    ),
    "vjp's output and aux": lambda t: (lambda out, pull, aux: (out, aux, pull(t.matrix[:, 0])))(
        *t.f.vjp(lambda x: (t.layer(x), x * 2), t.vector, has_aux=True)
    ),
    "jvp": lambda t: t.f.jvp(lambda a, b: (a * b, a.sin()), (t.batch, t.batch * 2), (t.batch + 1, t.batch)),
    "jvp with aux": lambda t: t.f.jvp(lambda a: (a.sin(), a.cos()), (t.batch,), (t.batch + 1,), has_aux=True),
    "jvp of jvp": lambda t: t.f.jvp(
        lambda a: t.f.jvp(lambda b: b**3, (a,), (a.sin(),))[1], (t.vector,), (t.vector + 1,)
    ),
    "grad of jvp": lambda t: t.f.grad(lambda a: t.f.jvp(lambda b: (b**3).sum(), (a,), (t.vector.sin(),))[1])(
        t.vector
    ),
    "vmap of jvp": lambda t: t.f.vmap(lambda d: t.f.jvp(t.layer, (t.vector,), (d,))[1])(t.batch),
    "jvp of vmap": lambda t: t.f.jvp(t.f.vmap(t.layer), (t.batch,), (t.batch + 1,)),
    "linearize": lambda t: t.f.linearize(t.layer, t.vector)[1](t.vector + 1),
    "jacrev": lambda t: t.f.jacrev(t.layer)(t.vector),
    "jacrev in chunks": lambda t: t.f.jacrev(t.layer, chunk_size=2)(t.vector),
    "jacrev with aux": lambda t: t.f.jacrev(lambda x: (t.layer(x), x.sum()), has_aux=True)(t.vector),
    "jacrev of trees": lambda t: t.f.jacrev(
        lambda d, x: {"y": d["w"] @ x, "s": (d["w"] * 2).sum()}, argnums=(0, 1)
    )({"w": t.matrix}, t.vector),
    "jacfwd": lambda t: t.f.jacfwd(t.layer)(t.vector),
    "jacfwd with aux": lambda t: t.f.jacfwd(lambda x: (t.layer(x), x.sum()), has_aux=True)(t.vector),
    "jacfwd by two arguments": lambda t: t.f.jacfwd(lambda w, x: w @ x, argnums=(0, 1))(t.matrix, t.vector),
    "jacfwd of jacrev": lambda t: t.f.jacfwd(t.f.jacrev(t.layer))(t.vector),
    "jacrev of jacfwd": lambda t: t.f.jacrev(t.f.jacfwd(t.layer))(t.vector),
    "jacrev of jacrev": lambda t: t.f.jacrev(t.f.jacrev(t.layer))(t.vector),
    "jacfwd of jacfwd": lambda t: t.f.jacfwd(t.f.jacfwd(t.layer))(t.vector),
    "hessian": lambda t: t.f.hessian(lambda x: t.layer(x).sum())(t.vector),
    "hessian by two arguments": lambda t: t.f.hessian(lambda a, b: (a * b.sin()).sum(), argnums=(0, 1))(
        t.vector, t.vector + 1
    ),
    "vmap of hessian": lambda t: t.f.vmap(t.f.hessian(lambda x: t.layer(x).sum()))(t.batch),
    "vmap of jacrev": lambda t: t.f.vmap(t.f.jacrev(t.layer))(t.batch),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_pytorchs(name):
    same(CASES[name](Library(tn)), CASES[name](Library(torch)))


@pytest.mark.parametrize("name", ["vmap of grad", "hessian", "jvp of vmap", "grad of vmap of grad"])
def test_they_can_be_compiled(name):
    t = Library(tn)
    same(tn.compile(lambda: CASES[name](t))(), CASES[name](Library(torch)))


def test_a_loop_compiles_once():
    step = tn.func.vmap(tn.func.grad(lambda x: (x**3).sum()))
    step(tn.tensor(BATCH)).eval()
    with counting_compiles() as compiles:
        for i in range(4):
            step(tn.tensor(BATCH * i)).eval()
    assert compiles == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda library: library.tensor(MATRIX).requires_grad_(),
        lambda library: library.nn.Parameter(library.tensor(MATRIX)),
        lambda library: library.nn.Parameter(library.tensor(MATRIX).reshape(12).view(3, 4)),
    ],
    ids=["a tensor", "a parameter", "a parameter made of a view"],
)
def test_gradients_flow_through_to_tensors_outside(make):
    weights = [make(library) for library in (tn, torch)]
    for weight, library in zip(weights, (tn, torch), strict=True):
        batch = library.tensor(BATCH)
        slopes = library.func.vmap(library.func.grad(lambda x, w=weight: (w @ x).tanh().sum()))(batch)
        moved = library.func.jvp(lambda x, w=weight: (w @ x).sin(), (batch[0],), (batch[1],))[1]
        (slopes.pow(2).sum() + moved.sum()).backward()
    np.testing.assert_allclose(weights[0].grad.numpy(), weights[1].grad.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_parameters_that_are_parts_of_others_are_trained_inside_a_transformation(compiled):
    def losses(inside: bool) -> list[float]:
        whole = tn.ones(6).eval()
        weights = [tn.nn.Parameter(whole[:3]), tn.nn.Parameter(whole[3:])]
        optimizer = tn.optim.SGD(weights, lr=0.1)

        def layer(x):
            return x * weights[0] * weights[1]

        def step(x):
            optimizer.zero_grad()
            loss = (tn.func.vmap(layer)(x) if inside else layer(x)).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        run = tn.compile(step) if compiled else step
        return [run(tn.ones(2, 3)).item() for _ in range(4)]

    assert losses(True) == pytest.approx(losses(False))


# Errors


def double(x):
    return x * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: tn.func.vmap(3), "takes a function, not int"),
        (lambda x: tn.func.vmap(double, randomness="some"), "randomness is 'error', 'different' or 'same'"),
        (lambda x: tn.func.vmap(double, chunk_size=0), "chunk_size is a positive number"),
        (lambda x: tn.func.vmap(double, in_dims=2)(x), "in_dims has 2 for a tensor of 2 dimensions"),
        (lambda x: tn.func.vmap(double, in_dims=(0, 0))(x), "in_dims has 2 entries for 1 arguments"),
        (lambda x: tn.func.vmap(double, in_dims=(None,))(x), "no argument is mapped"),
        (lambda x: tn.func.vmap(double, in_dims="0")(x), "in_dims is an int or a tuple"),
        (lambda x: tn.func.vmap(lambda a, n: a * n)(x, 3), "which has no dimensions"),
        (lambda x: tn.func.vmap(lambda a, b: a)(x, x.T), r"differ in size: \[5, 4\]"),
        (lambda x: tn.func.vmap(lambda a: 3)(x), "returns a int where a Tensor is needed"),
        (lambda x: tn.func.vmap(double, out_dims=None)(x), "differs between the elements"),
        (lambda x: tn.func.vmap(double, out_dims=(0, 1))(x), "out_dims has"),
        (
            lambda x: tn.func.vmap(lambda a: a.sum().item() + a)(x),
            "tenfold.vmap records f once, without data",
        ),
        (lambda x: tn.func.vmap(lambda a: a if a.sum() > 0 else -a)(x), "tenfold.vmap records f once"),
        (lambda x: tn.func.vmap(lambda a: a.nonzero())(x), "tenfold.vmap records f once"),
        (lambda x: tn.func.jvp(lambda a: a.tolist(), (x,), (x,)), "tenfold.jvp records f once"),
        (lambda x: tn.func.grad(double)(x), "the gradient is of a single number"),
        (lambda x: tn.func.grad(lambda a: 3)(x), "returns a int, not a Tensor"),
        (
            lambda x: tn.func.grad(lambda a: a.sum(), argnums=1)(x),
            "argnums is 1 for a function of 1 arguments",
        ),
        (lambda x: tn.func.grad(lambda a: a)(x.long()), "not by int64"),
        (lambda x: tn.func.grad(lambda a: a)(3.0), "derivatives are by Tensors, not by a float"),
        (lambda x: tn.func.grad(lambda a: a.sum(), has_aux=True)(x), r"returns a tuple \(output, aux\)"),
        (lambda x: tn.func.vjp(double, x)[1](x[0]), "the cotangent of"),
        (lambda x: tn.func.vjp(double, x)[1]((x, x)), "not nested as the output"),
        (lambda x: tn.func.jvp(double, (x,), (x[0],)), "the tangent of"),
        (lambda x: tn.func.jvp(double, x, x), "primals and tangents are tuples"),
    ],
)
def test_mistakes_are_explained(call, message):
    with pytest.raises(tn.TenfoldError, match=message):
        call(tn.tensor(BATCH))


def test_a_functionalized_function_gives_what_it_gave():
    def write(x):
        y = x.clone()
        y[0] = 5
        return y

    assert tn.func.functionalize(write)(tn.ones(2)).tolist() == [5, 1]
    with pytest.raises(tn.ArgumentError):
        tn.func.functionalize(write, remove="all")
