"""Every optimizer takes the steps that PyTorch's takes, as one program that no change of an option compiles
again, and stores them as PyTorch does."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.runtime.executables import counting_compiles

SHAPES = ((3, 4), (4,), (), (2, 3, 2))
CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"weight_decay": 0.1, "maximize": True}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "dampening": 0.4, "weight_decay": 0.01}),
    ("SGD", {"momentum": 0.8, "nesterov": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("Adam", {"maximize": True, "eps": 1e-3}),
    ("AdamW", {}),
    ("AdamW", {"amsgrad": True, "weight_decay": 0.2}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"betas": (0.9, 0.7), "weight_decay": 0.1}),
    ("RAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"weight_decay": 0.1}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("ASGD", {"t0": 5, "lambd": 0.1, "weight_decay": 0.1}),
    ("Adafactor", {}),
    ("Adafactor", {"weight_decay": 0.1, "d": 1.5, "eps": (1e-4, 1e-2)}),
]
NAMES = sorted({name for name, _ in CASES})


def title(case: Any) -> str:
    return case if isinstance(case, str) else ",".join(f"{k}={v}" for k, v in case.items())


class Pair:
    """One optimizer of ours and one of PyTorch's, on equal parameters and gradients."""

    def __init__(self, name: str, dtype: Any = np.float32, seed: int = 0, **options: Any):
        self.draws = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        options.setdefault("lr", 0.05)
        arrays = [self.draw(shape) for shape in SHAPES]
        self.ours = [tn.tensor(each).requires_grad_() for each in arrays]
        self.theirs = [torch.tensor(each, requires_grad=True) for each in arrays]
        self.our = getattr(tn.optim, name)(self.ours, **options)
        self.their = getattr(torch.optim, name)(self.theirs, **options)

    def draw(self, shape: tuple[int, ...]) -> Any:
        drawn = self.draws.normal(size=shape)
        return (drawn + 1j * self.draws.normal(size=shape) if self.dtype.kind == "c" else drawn).astype(
            self.dtype
        )

    def step(self, times: int = 20, lr: Any = lambda i: None, without: Any = lambda i: None) -> None:
        for i in range(times):
            for place, (our, their) in enumerate(zip(self.ours, self.theirs, strict=True)):
                gradient = self.draw(tuple(their.shape))
                our.grad = None if without(i) == place else tn.tensor(gradient)
                their.grad = None if without(i) == place else torch.tensor(gradient)
            if lr(i) is not None:
                for group in (*self.our.param_groups, *self.their.param_groups):
                    group["lr"] = lr(i)
            self.our.step()
            self.their.step()
            tn.eval(*self.ours)

    def compare(self, rtol: float = 1e-6) -> None:
        for our, their in zip(self.ours, self.theirs, strict=True):
            close(our.detach(), their.detach(), rtol)
        states = self.our.state_dict()["state"], self.their.state_dict()["state"]
        assert set(states[0]) == set(states[1])
        for place, kept in states[1].items():
            assert set(states[0][place]) == set(kept)
            for name, each in kept.items():
                close(states[0][place][name], each, rtol, name)


def close(our: Any, their: Any, rtol: float, name: str = "") -> None:
    """Equal to `rtol` of the largest element: a small one may be what large ones have left, rounded."""
    expected = their.numpy()
    largest = float(np.abs(expected).max())
    np.testing.assert_allclose(our.numpy(), expected, rtol=0, atol=rtol * largest, err_msg=name)


@pytest.mark.parametrize(("name", "options"), CASES, ids=title)
def test_twenty_steps_are_pytorchs_and_one_program(name, options):
    pair = Pair(name, **options)
    with counting_compiles() as compiles:
        pair.step(20, lr=lambda i: 0.05 * (1 - 0.03 * i))
    pair.compare()
    assert compiles <= 1


@pytest.mark.parametrize(
    "options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}], ids=title
)
def test_muon_turns_matrices_as_pytorchs(options, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SHAPES", ((3, 4), (6, 2)))
    pair = Pair("Muon", **options)
    with counting_compiles() as compiles:
        pair.step(10, lr=lambda i: 0.05 * (1 - 0.03 * i))
    pair.compare(rtol=2e-3)  # it is computed in bfloat16
    assert compiles <= 1


@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {"weight_decay": 0.1}), ("AdamW", {}), ("RMSprop", {"momentum": 0.5})],
    ids=title,
)
def test_a_differentiable_step_is_part_of_what_gradients_flow_through(name, options):
    def trained(lib):
        start = lib.tensor([0.5, -0.3, 1.2], dtype=lib.float64, requires_grad=True)
        param = start.clone()
        optimizer = getattr(lib.optim, name)([param], lr=0.1, differentiable=True, **options)
        for _ in range(2):
            here = param.clone()
            (slope,) = lib.autograd.grad((here**3).sum(), here, create_graph=True)
            param.grad = slope
            optimizer.step()
        return lib.autograd.grad((param**2).sum(), start)[0]

    # PyTorch then takes powers of a step's number in float32.
    np.testing.assert_allclose(trained(tn).numpy(), trained(torch).numpy(), rtol=2e-5)


def test_a_differentiable_step_writes_to_no_leaf():
    param = tn.ones(2, requires_grad=True)
    param.grad = tn.ones(2)
    with pytest.raises(tn.GradientError, match="a leaf that requires gradients"):
        tn.optim.SGD([param], differentiable=True).step()


@pytest.mark.parametrize("name", NAMES)
def test_double_precision(name):
    pair = Pair(name, np.float64)
    pair.step(5)
    pair.compare(rtol=1e-12)


@pytest.mark.parametrize("name", [each for each in NAMES if each != "Adafactor"])
def test_complex_parameters_are_pairs_of_real_ones(name):
    pair = Pair(name, np.complex64)
    pair.step(5)
    pair.compare()


def test_complex_parameters_have_no_adafactor():
    weight = tn.ones(2, dtype=tn.complex64).requires_grad_()
    weight.grad = tn.ones(2, dtype=tn.complex64)
    with pytest.raises(tn.DTypeError, match="Adafactor has no steps for complex"):
        tn.optim.Adafactor([weight]).step()


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_narrow_parameters_are_updated_in_float32(name):
    ours = tn.full((64,), 1.0, dtype=tn.bfloat16).requires_grad_()
    wide = tn.full((64,), 1.0).requires_grad_()
    optimizers = [getattr(tn.optim, name)([each], lr=0.25) for each in (ours, wide)]
    for optimizer, each in zip(optimizers, (ours, wide), strict=True):
        each.grad = tn.linspace(-1, 1, 64).to(each.dtype)
        optimizer.step()
    assert ours.dtype is tn.bfloat16
    np.testing.assert_allclose(ours.detach().float().numpy(), wide.detach().numpy(), rtol=2**-7)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "NAdam"])
def test_a_parameter_without_gradient_takes_no_step(name):
    pair = Pair(name, **({"momentum": 0.9} if name == "SGD" else {}))
    pair.step(6, without=lambda i: i % 3)
    pair.compare()


def test_state_travels_from_pytorch_and_back():
    for name, options in (
        ("Adam", {"amsgrad": True}),
        ("SGD", {"momentum": 0.9, "dampening": 0.5}),
        ("NAdam", {}),
    ):
        pair = Pair(name, **options)
        pair.step(3)
        other = Pair(name, **options)
        other.our.load_state_dict(copy.deepcopy(pair.their.state_dict()))
        file = io.BytesIO()
        tn.save(pair.our.state_dict(), file)
        file.seek(0)
        other.their.load_state_dict(torch.load(file))
        other.step(3)
        other.compare()


def test_the_step_after_loading_is_the_same_program():
    pair = Pair("Adam")
    pair.step(2)
    with counting_compiles() as compiles:
        pair.our.load_state_dict(pair.our.state_dict())
        pair.step(2)
    assert compiles == 0
    pair.compare()


def test_what_is_loaded_is_a_copy():
    pair = Pair("Adam")
    pair.step(1)
    state = pair.their.state_dict()
    other = Pair("Adam")
    other.our.load_state_dict(state)
    before = other.our.state[other.ours[0]]["exp_avg"].clone().eval()
    state["state"][0]["exp_avg"].zero_()
    assert (other.our.state[other.ours[0]]["exp_avg"] == before).all()


@pytest.mark.parametrize("counted", ["numbers", "tensors"])
def test_an_optimizer_that_counts_in_python_goes_on_after_loading(counted):
    def counts(lib):
        class Counting(lib.optim.Optimizer):
            def step(self, closure=None):
                for group in self.param_groups:
                    for param in group["params"]:
                        state = self.state[param]
                        if not state:
                            state["step"] = 0 if counted == "numbers" else lib.tensor(0.0)
                        state["step"] += 1

        optimizer = Counting([lib.ones(2), lib.ones(3)], {})
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.step()
        return [state["step"] for state in optimizer.state.values()]

    ours, theirs = counts(tn), counts(torch)
    assert [float(each) for each in ours] == [float(each) for each in theirs] == [2.0, 2.0]
    assert [isinstance(each, int) for each in ours] == [isinstance(each, int) for each in theirs]


def test_sparse_adam_goes_on_after_loading():
    def steps(lib):
        params = [lib.ones(3, 2).requires_grad_(), lib.ones(3, 2).requires_grad_()]
        optimizer = lib.optim.SparseAdam(params, lr=0.1)
        for _ in range(3):
            for param in params:
                param.grad = lib.sparse_coo_tensor(
                    lib.tensor([[0, 2]]), lib.tensor([[1.0, 2], [3, 4]]), (3, 2)
                )
            optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
        return [param.detach().numpy() for param in params]

    for ours, theirs in zip(steps(tn), steps(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_compiled_step_follows_the_options_and_the_loaded_state():
    def trained(compiled: bool) -> list[Any]:
        weight = tn.arange(6.0).reshape(2, 3).eval().requires_grad_()
        optimizer = tn.optim.AdamW([weight], lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = ((weight * x) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        run = tn.compile(step) if compiled else step
        losses = []
        for i in range(4):
            losses.append(run(tn.full((2, 3), 1.0 + i)).item())
            optimizer.param_groups[0].update(lr=0.1 / (i + 1), betas=(0.5, 0.9), weight_decay=0.3 * i)
        saved = copy.deepcopy(optimizer.state_dict())
        for i in range(2):
            losses.append(run(tn.full((2, 3), 1.0 + i)).item())
        optimizer.load_state_dict(saved)
        for i in range(2):
            losses.append(run(tn.full((2, 3), 1.0 + i)).item())
        return [*losses, *weight.detach().numpy().ravel()]

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-6)


@pytest.mark.usefixtures("on_xla")
@pytest.mark.parametrize("twice", [False, True], ids=["a step", "two steps in one"])
def test_a_compiled_step_counts_for_each_parameter(twice, compiled_as_by_users):
    def steps(compiled: bool) -> list[Any]:
        weights = [tn.ones(3).eval().requires_grad_() for _ in range(2)]
        optimizer = tn.optim.Adam(weights, lr=0.1)
        chosen = [weights]

        def step(x):
            for each in [weights, chosen[0]] if twice else [chosen[0]]:
                optimizer.zero_grad()
                sum((weight * x).sum() for weight in each).backward()
                optimizer.step()

        run = tn.compile(step) if compiled else step
        found = []
        for i in range(6):
            chosen[0] = weights[:1] if 1 < i < 4 else weights
            run(tn.full((3,), 1.0 + i))
            found += [optimizer.state[each]["step"].item() for each in weights]
        return [*found, *weights[0].tolist(), *weights[1].tolist()]

    assert steps(True) == pytest.approx(steps(False))


def test_a_learning_rate_may_be_a_tensor():
    weight = tn.ones(3).requires_grad_()
    rate = tn.tensor(0.5)
    optimizer = tn.optim.SGD([weight], lr=rate)
    for expected in (0.5, 0.25):
        weight.grad = tn.ones(3)
        optimizer.step()
        assert weight.tolist() == [expected] * 3
        rate.fill_(0.25)
    with pytest.raises(ValueError, match="one number, not a tensor of 2"):
        tn.optim.SGD([weight], lr=tn.ones(2))


def test_groups_have_options_of_their_own():
    first, second = tn.ones(2).requires_grad_(), tn.ones(2).requires_grad_()
    optimizer = tn.optim.SGD([{"params": [first]}, {"params": second, "lr": 0.5}], lr=0.25)
    for each in (first, second):
        each.grad = tn.ones(2)
    optimizer.step()
    assert first.tolist() == [0.75, 0.75] and second.tolist() == [0.5, 0.5]
    optimizer.zero_grad()
    assert first.grad is None
    first.grad = tn.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert first.grad is not None and first.grad.tolist() == [0.0, 0.0]


def test_a_closure_computes_gradients_first():
    weight = tn.tensor([3.0]).requires_grad_()
    optimizer = tn.optim.SGD([weight], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    with tn.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert weight.tolist() == [1.5] and weight.requires_grad and weight.is_leaf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: tn.optim.SGD([p], lr=-1), "lr must not be negative: -1"),
        (lambda p: tn.optim.SGD([p], nesterov=True), "nesterov needs a momentum"),
        (lambda p: tn.optim.Adam([p], betas=(1.0, 0.5)), r"betas\[0\] must lie in"),
        (lambda p: tn.optim.Adam([]), "the list of parameters is empty"),
        (lambda p: tn.optim.Adam(p), "not one Tensor"),
        (lambda p: tn.optim.Adam([p, 3]), "updates Tensors, not a int"),
        (lambda p: tn.optim.Adam([p * 2]), "computed from others cannot be optimized"),
        (lambda p: tn.optim.Adam([{"params": [p]}, {"params": [p]}]), "in more than one group"),
        (lambda p: tn.optim.Adam([{"params": {p}}]), "order of a set"),
        (lambda p: tn.optim.Adam([("w", p), tn.ones(1)]), "some have none"),
        (lambda p: tn.optim.Adam([p], differentiable=True, fused=True), "cannot both be True"),
        (lambda p: tn.optim.Muon([p]), "Muon is for matrices"),
        (lambda p: tn.optim.Muon([tn.ones(2, 2)], adjust_lr_fn="x"), "adjust_lr_fn is one of"),
        (lambda p: tn.optim.Adam([p], foreach=True, fused=True), "cannot both be True"),
        (lambda p: tn.optim.Rprop([p], etas=(2, 3)), "etas are a factor below 1"),
        (lambda p: tn.optim.Adafactor([p], d=0.5), "d must be at least 1"),
    ],
)
def test_wrong_options_are_refused(make, message):
    with pytest.raises(tn.TenfoldError, match=message):
        make(tn.ones(2).requires_grad_())


def test_parameters_may_have_names():
    weight, bias = tn.ones(2).requires_grad_(), tn.ones(2).requires_grad_()
    optimizer = tn.optim.Adam([("weight", weight), ("bias", bias)])
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_a_repr_tells_the_options():
    def text(m: Any) -> str:
        first, second = m.ones(2).requires_grad_(), m.ones(3).requires_grad_()
        return repr(m.optim.SGD([{"params": first}, {"params": second, "lr": 0.1}], lr=0.5))

    assert text(tn) == text(torch)


def test_hooks_run_around_a_step():
    weight = tn.ones(1).requires_grad_()
    optimizer = tn.optim.SGD([weight], lr=0.5)
    weight.grad = tn.ones(1)
    seen = []
    pre = optimizer.register_step_pre_hook(
        lambda opt, args, kwargs: seen.append(("pre", opt.state_dict() and weight.tolist()))
    )
    optimizer.register_step_post_hook(lambda opt, args, kwargs: seen.append(("post", weight.tolist())))
    optimizer.step()
    pre.remove()
    optimizer.step()
    assert seen == [("pre", [1.0]), ("post", [0.5]), ("post", [0.0])]


def test_a_subclass_has_hooks_and_state_too():
    class Signed(tn.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for each in group["params"]:
                    self.state[each]["count"] = self.state[each].get("count", 0) + 1
                    with tn.no_grad():
                        each -= group["lr"] * each.grad.sign()

    weight = tn.ones(2).requires_grad_()
    weight.grad = tn.tensor([-3.0, 3.0])
    optimizer = Signed([weight], 0.5)
    calls = []
    optimizer.register_step_post_hook(lambda *given: calls.append(1))
    optimizer.step()
    assert weight.tolist() == [1.5, 0.5] and calls == [1]
    assert optimizer.state_dict()["state"] == {0: {"count": 1}}


def test_an_optimizer_can_be_pickled_with_its_parameters():
    weight = tn.ones(2).requires_grad_()
    weight.grad = tn.ones(2)
    optimizer = tn.optim.Adam([weight])
    optimizer.step()
    copied = pickle.loads(pickle.dumps(optimizer))
    (other,) = copied.param_groups[0]["params"]
    for each, its in ((optimizer, weight), (copied, other)):
        its.grad = tn.ones(2)
        each.step()
    assert other.tolist() == weight.tolist() and copied.state[other]["step"].item() == 2


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_lbfgs_goes_where_pytorchs_goes(line_search):
    def loss(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    start = np.array([-1.2, 1.0, 0.5, 2.0])
    ours, theirs = tn.tensor(start).requires_grad_(), torch.tensor(start, requires_grad=True)
    options = {"lr": 1 if line_search else 1e-3, "history_size": 3, "line_search_fn": line_search}
    optimizers = tn.optim.LBFGS([ours], **options), torch.optim.LBFGS([theirs], **options)
    for _ in range(3):
        for optimizer, x in zip(optimizers, (ours, theirs), strict=True):

            def closure(optimizer=optimizer, x=x):
                optimizer.zero_grad()
                value = loss(x)
                value.backward()
                return value

            optimizer.step(closure)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-7)
    states = optimizers[0].state[ours], optimizers[1].state[theirs]
    for name in ("n_iter", "func_evals"):
        assert states[0][name] == states[1][name]


def test_lbfgs_needs_a_closure():
    with pytest.raises(tn.ArgumentError, match="computes the loss several times"):
        tn.optim.LBFGS([tn.ones(2).requires_grad_()]).step()


def test_a_state_dict_follows_the_optimizer_and_saves_a_counter_for_each_parameter(tmp_path):
    steps = {}
    for lib in (tn, torch):
        params = [lib.ones(2, requires_grad=True), lib.ones(3, requires_grad=True)]
        optimizer = lib.optim.Adam(params, lr=0.1)

        state = None
        for turn in range(3):
            optimizer.zero_grad()
            sum((each**2).sum() for each in params).backward()
            optimizer.step()
            state = state or optimizer.state_dict()
            if turn == 1:
                optimizer.load_state_dict(state)
        steps[lib] = [each["step"].item() for each in optimizer.state_dict()["state"].values()]
        final = [each.detach().numpy() for each in params]
        if lib is tn:
            ours = final
            lib.save(optimizer.state_dict(), tmp_path / "state.pt")
    assert steps[tn] == steps[torch] == [3, 3]
    for mine, theirs in zip(ours, final, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    loaded = torch.load(tmp_path / "state.pt")["state"]
    assert len({each["step"].data_ptr() for each in loaded.values()}) == 2


def test_betas_that_want_gradients_are_refused():
    beta = tn.tensor(0.9, requires_grad=True)
    with pytest.raises(tn.UnsupportedError, match="no gradients reach betas"):
        tn.optim.AdamW([tn.ones(2).requires_grad_()], betas=(beta, 0.99), differentiable=True)
