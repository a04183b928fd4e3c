"""Forward mode, tensors that carry tangents: as PyTorch follows them, errors included."""

from __future__ import annotations

import pytest
import torch

import tenfold as tn
from tests.autograd.cases import DATA, agree, refused


def moving(case):
    """The case of a module and a dual tensor, as one that gives values and tangents of what it returns."""

    def run(m):
        forward = m.autograd.forward_ad
        with forward.dual_level():
            x = forward.make_dual(m.tensor(DATA), m.arange(6.0).reshape(2, 3))
            found = []
            for each in case(m, x):
                primal, tangent = forward.unpack_dual(each)
                found += [primal, m.zeros_like(primal) if tangent is None else tangent]
        return found

    return run


def written(m, x):
    y = x.clone()
    y.add_(x).mul_(2)
    y[0] = x[1]
    row = y[1]
    y.mul_(x)
    later = row + 1
    y[:, 1:].sub_(x[:, :2])
    buffer = m.zeros(3, 3)
    buffer[1] = x[0]
    buffer.diagonal().mul_(3)
    buffer[:2, 0] = x[:, 2]
    return y, row, later, buffer, buffer.t(), x.clone().fill_(3.0)


def without_gradients(m, x):
    y = x * 2
    y.detach().mul_(3)
    with m.no_grad():
        z = y * x
    return y, z, x.detach() * 2


def gradients_of_moving(m, x):
    w = m.tensor(DATA, requires_grad=True)
    loss = (w * x).pow(2).sum()
    (kept,) = m.autograd.grad(loss, w, create_graph=True)
    (second,) = m.autograd.grad(kept.sum(), w)
    return loss, kept, second


def ops(m, x):
    chosen = x[m.tensor([1, 0, 1])]
    return (
        *(x[x > 0.6], chosen.sort(1)[0], m.where(x > 1, x.exp(), x * x), x.softmax(1), x @ x.t()),
        *(m.nn.functional.layer_norm(x, (3,)), x.cumsum(0), m.stack([x, x.sin()]), (x > 0).float() * x),
        *(m.complex(x, x * 2).abs(), x.double() * 2, m.linalg.inv(x @ x.t())),
    )


@pytest.mark.parametrize("case", [written, without_gradients, gradients_of_moving, ops])
def test_tangents_follow_what_tensors_do(case):
    agree(moving(case))


def test_a_tangent_has_gradients():
    def case(m):
        forward = m.autograd.forward_ad
        x, along = m.tensor([1.0, 2.0], requires_grad=True), m.tensor([1.0, 0.5], requires_grad=True)
        with forward.dual_level():
            tangent = forward.unpack_dual((forward.make_dual(x, along) ** 3).sum()).tangent
            tangent.backward()
        return [tangent, x.grad, along.grad]

    agree(case)


def test_tangents_end_with_their_level():
    def case(m):
        forward = m.autograd.forward_ad
        x = m.tensor([1.0, 2.0])
        with forward.dual_level():
            y = forward.make_dual(x, x) * 2
        after = forward.unpack_dual(y).tangent
        with forward.dual_level():
            primal, tangent = forward.unpack_dual(y * forward.make_dual(x, m.tensor([3.0, 3.0])))
        return [after, primal, tangent]

    agree(case)


def scaled(m, own_jvp):
    """A Function that squares, and moves ten times as fast as it should."""

    class Scaled(m.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, factor):
            return x * x * factor, x + 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]
            ctx.save_for_forward(inputs[0])

        if own_jvp:

            @staticmethod
            def jvp(ctx, tangent, factor):
                (x,) = ctx.saved_tensors
                return 20 * x * tangent * ctx.factor, tangent

    return Scaled


def test_a_function_moves_by_its_own_jvp():
    agree(moving(lambda m, x: scaled(m, True).apply(x, 2)))

    def case(m):
        x = m.tensor([0.5, 2.0])
        outputs, tangents = m.func.jvp(lambda x: scaled(m, True).apply(x, 2), (x,), (m.tensor([1.0, 3.0]),))
        return [*outputs, *tangents, *m.func.jacfwd(lambda x: scaled(m, True).apply(x, 2))(x)]

    agree(case)


def nested(m):
    with m.autograd.forward_ad.dual_level(), m.autograd.forward_ad.dual_level():
        pass


def outside_of_a_level(m):
    m.autograd.forward_ad.make_dual(m.ones(2), m.ones(2))


def of_another_shape(m):
    with m.autograd.forward_ad.dual_level():
        m.autograd.forward_ad.make_dual(m.ones(2), m.ones(3))


@pytest.mark.parametrize("case", [nested, outside_of_a_level, of_another_shape])
def test_forward_mode_refuses_as_pytorch_does(case):
    refused(case)
    refused(moving(lambda m, x: scaled(m, False).apply(x, 2)))


def test_transformed_and_compiled_functions_move_with_what_they_take():
    forward = tn.autograd.forward_ad
    with forward.dual_level():
        x = forward.make_dual(tn.tensor([1.0, 2.0]), tn.ones(2))
        cube = lambda x: x**3
        slope = tn.func.grad(lambda x: cube(x).sum())(x)
        assert forward.unpack_dual(tn.vmap(cube)(x)).tangent.tolist() == [3, 12]
        assert forward.unpack_dual(tn.compile(cube)(x)).tangent.tolist() == [3, 12]
        assert forward.unpack_dual(slope).tangent.tolist() == [6, 12]


def flat_functions(m, x):
    halves = x * 0 + 0.5
    return (
        *(x.sign(), x.floor(), x.round(decimals=1), x.trunc(), m.div(x, 0.3, rounding_mode="floor")),
        *((x * 1).zero_(), (x * 1).fill_(2.0), x.clamp(90, 91), x.detach(), m.zeros_like(x), x > 1),
        *(m.bernoulli(halves) * 0, (x * 1).uniform_() * 0, m.normal(x, 1.0) * 0, m.rand_like(x) * 0),
    )


def test_what_gradients_flow_to_has_a_tangent_of_zeros():
    def which(m):
        forward = m.autograd.forward_ad
        with forward.dual_level():
            x = forward.make_dual(m.tensor(DATA), m.ones(2, 3))
            return [forward.unpack_dual(each).tangent is None for each in flat_functions(m, x)]

    agree(moving(flat_functions))
    assert which(tn) == which(torch)
