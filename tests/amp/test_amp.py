"""Mixed precision: ops run in the precision that PyTorch's autocast gives them, and gradients that overflow
change no parameter."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.amp import GradScaler, autocast
from tenfold.amp.autocast_mode import policies
from tenfold.ops.table import TABLE
from tenfold.runtime.executables import counting_compiles
from tenfold.trace.context import context

SQUARE = (4, 4)
CALLS: dict[str, tuple[str, list[Any]]] = {
    **{name: (name, [SQUARE, SQUARE]) for name in ("mm", "matmul", "inner", "add", "mul", "atan2", "cdist")},
    **{
        name: (name, [SQUARE])
        for name in ("exp", "log1p", "softmax of", "sum", "prod", "trace", "tanh", "cumsum of")
    },
    "bmm": ("bmm", [(2, 3, 4), (2, 4, 3)]),
    "addmm": ("addmm", [SQUARE, SQUARE, SQUARE]),
    "addmv": ("addmv", [(4,), SQUARE, (4,)]),
    "linear": ("nn.functional.linear", [(3, 4), (2, 4), (2,)]),
    "conv1d": ("conv1d", [(2, 3, 8), (4, 3, 3)]),
    "conv_transpose2d": ("conv_transpose2d", [(1, 2, 4, 4), (2, 3, 2, 2)]),
    "mse_loss": ("nn.functional.mse_loss", [SQUARE, SQUARE]),
    "layer_norm": ("nn.functional.layer_norm", [(3, 4), [4]]),
    "softmax of": ("softmax", [SQUARE, -1]),
    "cumsum of": ("cumsum", [SQUARE, 0]),
    "avg_pool3d": ("nn.functional.avg_pool3d", [(1, 1, 4, 4, 4), 2]),
}


def called(library: Any, name: str, arguments: list[Any], narrow: list[bool]) -> Any:
    function = library
    for part in name.split("."):
        function = getattr(function, part)
    given = []
    for each, is_narrow in zip(arguments, narrow, strict=True):
        if isinstance(each, tuple):
            made = library.ones(each)
            each = made.to(library.bfloat16) if is_narrow else made
        given.append(each)
    return function(*given)


# Of operands of two dtypes, which autocast leaves alone there, PyTorch computes nothing.
REFUSED = {("inner", "first"), ("addmv", "first")}
CHOICES = [(case, narrow) for case in CALLS for narrow in ("none", "first", "all")]


@pytest.mark.parametrize(("case", "narrow"), [each for each in CHOICES if each not in REFUSED])
def test_results_have_the_dtype_of_pytorchs(case, narrow):
    name, arguments = CALLS[case]
    chosen = [narrow == "all" or (narrow == "first" and i == 0) for i in range(len(arguments))]
    with torch.autocast("cpu", torch.bfloat16):
        expected = str(called(torch, name, arguments, chosen).dtype)
    with autocast("cpu", tn.bfloat16):
        found = called(tn, name, arguments, chosen)
    assert f"torch.{found.dtype.name}" == expected


def test_joined_tensors_take_the_widest():
    narrow, wide = tn.ones(2, dtype=tn.bfloat16), tn.ones(2)
    with autocast("cpu"):
        assert tn.cat([narrow, wide]).dtype is tn.float32
        assert tn.stack([narrow, narrow]).dtype is tn.bfloat16


def test_float64_and_integers_are_left_alone():
    with autocast("cpu"):
        assert tn.mm(tn.ones(2, 2, dtype=tn.float64), tn.ones(2, 2, dtype=tn.float64)).dtype is tn.float64
        assert tn.mm(tn.ones(2, 2, dtype=tn.int64), tn.ones(2, 2, dtype=tn.int64)).dtype is tn.int64


def test_blocks_nest_and_end():
    x = tn.ones(2, 2)
    assert not tn.is_autocast_enabled("cpu")
    with autocast("cpu", tn.float16):
        assert tn.is_autocast_enabled("cpu") and tn.get_autocast_dtype("cpu") is tn.float16
        assert (x @ x).dtype is tn.float16
        with autocast("cpu", enabled=False):
            assert (x @ x).dtype is tn.float32
        assert (x @ x).dtype is tn.float16
    assert (x @ x).dtype is tn.float32 and tn.get_autocast_dtype("cpu") is tn.bfloat16
    assert context.autocast is None


def test_it_decorates_functions():
    @autocast("cpu", dtype=tn.bfloat16)
    def product(x):
        return x @ x

    assert product(tn.ones(2, 2)).dtype is tn.bfloat16


def test_an_error_inside_ends_the_block():
    with pytest.raises(tn.ShapeError), autocast("cpu"):
        tn.ones(2, 3) @ tn.ones(2, 3)
    assert context.autocast is None


def test_another_device_is_not_affected():
    with autocast("cuda"):
        assert (tn.ones(2, 2) @ tn.ones(2, 2)).dtype is tn.float32


def test_gradients_come_back_in_the_parameters_dtype():
    weight = tn.ones(3, 3).requires_grad_()
    with autocast("cpu"):
        loss = (tn.ones(2, 3) @ weight).sum()
    loss.backward()
    assert weight.grad.dtype is tn.float32 and weight.grad.tolist() == [[2.0] * 3] * 3


@pytest.mark.parametrize("dtype", [tn.float32, tn.int8])
def test_only_narrow_floats_are_a_lower_precision(dtype):
    with pytest.raises(tn.ArgumentError, match="in bfloat16 or float16, not in"):
        autocast("cpu", dtype)


def test_unknown_devices_are_refused():
    with pytest.raises(tn.ArgumentError, match="'cpu' or 'cuda', not 'tpu'"):
        autocast("tpu")


def test_rows_state_known_policies_and_one_for_all_overloads_of_a_name():
    known = {"lower", "float32", "float32 result", "widest"}
    for name, rows in TABLE.items():
        stated = {row.autocast for row in rows}
        assert len(stated) == 1, name
        by_device = policies(stated.pop() or "lower")
        assert by_device.keys() <= {"cpu", "cuda"} and set(by_device.values()) <= known, name


def test_a_function_of_the_users_chooses_its_precision():
    seen = []

    class Double(tn.autograd.Function):
        @staticmethod
        @tn.amp.custom_fwd(device_type="cpu", cast_inputs=tn.float32)
        def forward(ctx, x):
            seen.append((x.dtype, tn.is_autocast_enabled("cpu")))
            return x * 2

        @staticmethod
        @tn.amp.custom_bwd(device_type="cpu")
        def backward(ctx, gradient):
            seen.append(tn.is_autocast_enabled("cpu"))
            return gradient * 2

    x = tn.ones(2, dtype=tn.bfloat16).requires_grad_()
    with autocast("cpu"):
        y = Double.apply(x)
    y.sum().backward()
    assert seen == [(tn.float32, False), False]


# Gradient scaling


class Twins:
    """One training of ours and one of PyTorch's, with scaled gradients; some of them overflow."""

    def __init__(self, kind: str = "Adam", **options: Any):
        start = np.linspace(-1, 1, 6, dtype=np.float32)
        options = {"init_scale": 8.0, "growth_interval": 2, **options}
        self.params = tn.tensor(start).requires_grad_(), torch.tensor(start, requires_grad=True)
        self.optimizers = (
            getattr(tn.optim, kind)([self.params[0]], lr=0.1),
            getattr(torch.optim, kind)([self.params[1]], lr=0.1),
        )
        self.scalers = GradScaler("cpu", **options), torch.amp.GradScaler("cpu", **options)

    def train(self, factors: list[float], unscale: bool = False) -> None:
        for factor in factors:
            for param, optimizer, scaler in zip(self.params, self.optimizers, self.scalers, strict=True):
                optimizer.zero_grad()
                scaler.scale((param * param * factor).sum()).backward()
                if unscale:
                    scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()

    def compare(self) -> None:
        np.testing.assert_allclose(
            self.params[0].detach().numpy(), self.params[1].detach().numpy(), rtol=1e-6
        )
        assert self.scalers[0].state_dict() == self.scalers[1].state_dict()


INFINITY = float("inf")


@pytest.mark.parametrize("unscale", [False, True])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_steps_and_scales_are_pytorchs(kind, unscale):
    twins = Twins(kind)
    twins.train([1.0, 2.0, INFINITY, 1.0, 1.0, 3.0, INFINITY, INFINITY, 1.0], unscale)
    twins.compare()


def test_scaling_reads_no_value_and_compiles_once():
    weight = tn.ones(3).requires_grad_()
    optimizer, scaler = tn.optim.SGD([weight], lr=0.1, momentum=0.9), GradScaler("cpu", growth_interval=2)

    @tn.compile
    def step(x):
        optimizer.zero_grad()
        loss = (weight * x).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    tn.eval(weight)
    with counting_compiles() as compiles:
        for factor in (1.0, 1.0, INFINITY, 1.0):
            step(tn.tensor([factor] * 3))
    # Steps of 0.1, 0.19, none, and 0.271: the momentum too is as it was.
    np.testing.assert_allclose(weight.detach().numpy(), [1 - 0.1 - 0.19 - 0.271] * 3, rtol=1e-6)
    assert compiles == 1 and scaler.get_scale() == 2.0**16


def test_an_optimizer_of_the_users_skips_on_the_host():
    class Plain(tn.optim.Optimizer):
        def step(self, closure=None):
            for each in self.param_groups[0]["params"]:
                with tn.no_grad():
                    each -= each.grad

    weight = tn.ones(2).requires_grad_()
    optimizer, scaler = Plain([weight], {}), GradScaler("cpu", init_scale=4.0)
    for factor, expected in ((0.25, 0.75), (INFINITY, 0.75)):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert weight.tolist() == [expected] * 2


def test_steps_out_of_order_are_refused():
    weight = tn.ones(2).requires_grad_()
    optimizer, scaler = tn.optim.SGD([weight]), GradScaler("cpu")
    with pytest.raises(tn.TenfoldError, match="no parameter of the optimizer has a gradient"):
        scaler.step(optimizer)
    with pytest.raises(tn.TenfoldError, match="no gradients were unscaled"):
        GradScaler("cpu").update()
    scaler = GradScaler("cpu")
    weight.grad = tn.ones(2)
    scaler.unscale_(optimizer)
    with pytest.raises(tn.TenfoldError, match="already called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(tn.TenfoldError, match=r"step\(\) was already called"):
        scaler.step(optimizer)
    with pytest.raises(tn.TenfoldError, match=r"between update\(\) and the next step"):
        pickle.dumps(scaler)


def test_a_scaler_that_is_off_does_nothing():
    weight = tn.ones(2).requires_grad_()
    optimizer, scaler = tn.optim.SGD([weight], lr=0.5), GradScaler("cpu", enabled=False)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.5, 0.5] and scaler.get_scale() == 1.0 and scaler.state_dict() == {}


def test_a_scaler_is_stored_and_loaded():
    twins = Twins()
    twins.train([1.0, INFINITY, 1.0])
    other = Twins()
    other.scalers[0].load_state_dict(twins.scalers[1].state_dict())
    assert other.scalers[0].state_dict() == twins.scalers[0].state_dict()
    assert pickle.loads(pickle.dumps(twins.scalers[0])).state_dict() == twins.scalers[0].state_dict()


def test_several_losses_are_scaled_together():
    scaler = GradScaler("cpu", init_scale=4.0)
    scaled = scaler.scale([tn.tensor(1.0), (tn.tensor(2.0),)])
    assert scaled[0].item() == 4.0 and scaled[1][0].item() == 8.0
    with pytest.raises(tn.ArgumentError, match="not a int"):
        scaler.scale(3)


def test_a_compiled_function_follows_autocast():
    product = tn.compile(lambda x: x @ x)
    x = tn.ones(4, 4)
    assert product(x).dtype is tn.float32
    with tn.autocast("cpu"):
        assert product(x).dtype is tn.bfloat16
        assert product(x).dtype is tn.bfloat16
    assert product(x).dtype is tn.float32
