"""Distributions beside PyTorch's: what they tell, their divergences, their draws, what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tests.nn.test_layer_use import example, run_example

# Each by how it is made of `t`, which makes a tensor, and by values that it has.
CASES: dict[str, tuple[str, Any]] = {
    "normal": ("Normal(t([0.5, -1.0]), t([1.5, 0.3]))", [[0.3, -1.2], [2.0, 0.0]]),
    "normal by numbers": ("Normal(0.0, 2.0)", [0.3, -1.2]),
    "laplace": ("Laplace(t([0.5, -1.0]), t([1.5, 0.3]))", [[0.3, -1.2], [2.0, 0.0]]),
    "cauchy": ("Cauchy(t([0.5, -1.0]), t([1.5, 0.3]))", [0.3, -1.2]),
    "gumbel": ("Gumbel(t([0.5, -1.0]), t([1.5, 0.3]))", [0.3, -1.2]),
    "half normal": ("HalfNormal(t([1.5, 0.3]))", [0.3, 1.2]),
    "half Cauchy": ("HalfCauchy(t([1.5, 0.3]))", [0.3, 1.2]),
    "exponential": ("Exponential(t([1.5, 0.3]))", [0.3, 1.2]),
    "uniform": ("Uniform(t([-1.0, 0.0]), t([1.5, 0.3]))", [0.3, 0.2]),
    "bernoulli": ("Bernoulli(t([0.2, 0.7]))", [[1.0, 0.0], [0.0, 1.0]]),
    "bernoulli by logits": ("Bernoulli(logits=t([-2.0, 0.7]))", [1.0, 0.0]),
    "geometric": ("Geometric(t([0.2, 0.7]))", [3.0, 0.0]),
    "poisson": ("Poisson(t([1.5, 4.0]))", [3.0, 0.0]),
    "categorical": ("Categorical(t([[1.0, 2.0, 3.0], [4.0, 1.0, 1.0]]))", [[2.0, 0.0], [1.0, 1.0]]),
    "categorical by logits": ("Categorical(logits=t([0.3, -1.0, 2.0]))", [2.0, 0.0]),
    "one of several": ("OneHotCategorical(t([[1.0, 2.0, 3.0]]))", [[0.0, 1.0, 0.0]]),
    "independent": ("Independent(Normal(t([[0.5, -1.0]]), t([[1.5, 0.3]])), 1)", [[0.3, -1.2]]),
    "by covariance": ("MultivariateNormal(t([0.5, -1.0]), t([[2.0, 0.3], [0.3, 1.0]]))", [[0.3, -1.2]]),
    "by precision": (
        "MultivariateNormal(t([0.5, -1.0]), precision_matrix=t([[2.0, 0.3], [0.3, 1.0]]))",
        [[0.3, -1.2]],
    ),
    "gamma": ("Gamma(t([1.5, 0.5]), t([2.0, 3.0]))", [[0.3, 1.2], [2.0, 0.1]]),
    "chi-squared": ("Chi2(t([1.5, 5.0]))", [0.3, 1.2]),
    "beta": ("Beta(t([1.5, 0.5]), t([2.0, 3.0]))", [[0.3, 0.2], [0.9, 0.1]]),
    "dirichlet": ("Dirichlet(t([[1.5, 0.5, 3.0]]))", [[0.3, 0.2, 0.5]]),
    "student": ("StudentT(t([5.5, 6.5]), t([0.5, -1.0]), t([1.5, 0.3]))", [0.3, -1.2]),
    "fisher": ("FisherSnedecor(t([3.0, 4.0]), t([12.0, 15.0]))", [0.3, 1.2]),
    "inverse gamma": ("InverseGamma(t([5.5, 6.5]), t([2.0, 3.0]))", [0.3, 1.2]),
    "binomial": ("Binomial(5, t([0.2, 0.7]))", [[1.0, 0.0], [5.0, 4.0]]),
    "binomial by logits": ("Binomial(5, logits=t([0.2, -0.7]))", [1.0, 0.0]),
    "negative binomial": ("NegativeBinomial(t([5.0, 2.0]), t([0.2, 0.7]))", [[1.0, 0.0], [5.0, 4.0]]),
    "multinomial": ("Multinomial(6, t([0.2, 0.3, 0.5]))", [[1.0, 2.0, 3.0], [6.0, 0.0, 0.0]]),
    "log normal": ("LogNormal(t([0.5, -1.0]), t([0.5, 0.3]))", [0.3, 1.2]),
    "logistic normal": ("LogisticNormal(t([0.5, -1.0]), t([0.5, 0.3]))", [[0.3, 0.2, 0.5]]),
    "weibull": ("Weibull(t([1.5, 0.5]), t([2.0, 3.0]))", [0.3, 0.4]),
    "pareto": ("Pareto(t([1.5, 0.5]), t([5.0, 6.0]))", [1.8, 0.6]),
    "kumaraswamy": ("Kumaraswamy(t([0.5, 2.5]), t([2.0, 0.5]))", [0.3, 0.4]),
    "relaxed bernoulli": ("RelaxedBernoulli(t([0.7]), t([0.2, 0.7]))", [0.3, 0.4]),
    "relaxed choice": ("RelaxedOneHotCategorical(t([0.7]), t([0.2, 0.3, 0.5]))", [[0.3, 0.2, 0.5]]),
    "transformed": (
        "TransformedDistribution(Normal(t([0.5, -1.0]), 1.5), [AffineTransform(1.0, -2.0), ExpTransform()])",
        [0.3, 1.2],
    ),
    "mixture": (
        "MixtureSameFamily(Categorical(t([0.3, 0.7])), Normal(t([0.5, -1.0]), t([1.5, 0.3])))",
        [0.3, -1.2],
    ),
    "mixture of vectors": (
        "MixtureSameFamily(Categorical(t([0.3, 0.7])), Independent(Normal(t([[0.5, -1], [0, 1]]), 1.5), 1))",
        [[0.3, -1.2]],
    ),
    "von mises": ("VonMises(t([0.5, -1.0]), t([1.5, 0.3]))", [0.3, -1.2]),
    "low rank": (
        "LowRankMultivariateNormal(t([0.5, -1.0]), t([[2.0], [0.3]]), t([0.5, 1.5]))",
        [[0.3, -1.2]],
    ),
    "by factor": ("MultivariateNormal(t([0.5, -1.0]), scale_tril=t([[2.0, 0.0], [0.3, 1.0]]))", [0.3, -1.2]),
}
TOLD = ("mean", "mode", "variance", "stddev")
ASKED = ("entropy", "perplexity")


def made(xp: Any, call: str) -> tuple[Any, list[Any]]:
    """A distribution, and the parameters that it was made of."""
    leaves: list[Any] = []

    def t(numbers: Any) -> Any:
        leaves.append(xp.tensor(numbers, dtype=xp.float64, requires_grad=True))
        return leaves[-1]

    return eval(call, vars(xp.distributions) | {"t": t}), leaves


def findings(xp: Any, call: str, values: Any) -> dict[str, Any]:
    """All that a distribution tells, where PyTorch's does; with gradients of its density."""
    found: dict[str, Any] = {}
    each, leaves = made(xp, call)
    value = xp.tensor(values, dtype=xp.float64)
    theirs, _ = made(torch, call)

    def has(ask: Any) -> bool:
        try:
            ask()
        except NotImplementedError:
            return False
        return True

    for name in TOLD:
        if has(lambda name=name: getattr(theirs, name)):
            found[name] = getattr(each, name)
    for name in ASKED:
        if has(lambda name=name: getattr(theirs, name)()):
            found[name] = getattr(each, name)()
    for name in ("cdf", "icdf"):
        inside = values if name == "cdf" else [0.3, 0.9]
        if has(lambda name=name, inside=inside: getattr(theirs, name)(torch.tensor(inside).double())):
            found[name] = getattr(each, name)(xp.tensor(inside, dtype=xp.float64))
    found["log_prob"] = each.log_prob(value)
    if leaves:
        gradients = xp.autograd.grad(found["log_prob"].sum(), leaves)
        found |= {f"gradient {i}": gradient for i, gradient in enumerate(gradients)}
    if each.has_enumerate_support:
        found["all values"] = each.enumerate_support()
        found["all values once"] = each.enumerate_support(expand=False)
    larger = each.expand((3, 2, *each.batch_shape))
    found["expanded"] = larger.log_prob(value)
    if "mean" in found:
        found["expanded mean"] = larger.mean
    return found


def agree(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    tn.eval(list(ours.values()))
    assert list(ours) == list(theirs)
    for name, expected in theirs.items():
        array = expected.detach().numpy()
        np.testing.assert_allclose(ours[name].detach().numpy(), array, rtol=2e-6, atol=1e-7, err_msg=name)
        assert str(ours[name].dtype).split(".")[-1] == str(expected.dtype).split(".")[-1], name


def test_what_distributions_tell_is_pytorchs():
    ours, theirs = (
        {
            f"{key}: {name}": found
            for key, case in CASES.items()
            for name, found in findings(xp, *case).items()
        }
        for xp in (tn, torch)
    )
    agree(ours, theirs)


@pytest.mark.parametrize("name", CASES)
def test_shapes_and_texts_are_pytorchs(name):
    (ours, _), (theirs, _) = (made(xp, CASES[name][0]) for xp in (tn, torch))
    for key in ("batch_shape", "event_shape"):
        assert tuple(getattr(ours, key)) == tuple(getattr(theirs, key))
    assert ours.has_rsample == theirs.has_rsample
    assert ours.support.event_dim == theirs.support.event_dim
    assert ours.support.is_discrete == theirs.support.is_discrete
    assert repr(ours).split("(")[0] == repr(theirs).split("(")[0]


# Distributions of one kind, and of others, that diverge.
PAIRS = [
    *[(CASES[name][0],) * 2 for name in ("normal", "independent", "by covariance", "by precision")],
    ("Normal(t([0.5, -1.0]), t([1.5, 0.3]))", "Normal(t([0.0, 1.0]), t([0.5, 2.0]))"),
    ("Laplace(t([0.5, -1.0]), t([1.5, 0.3]))", "Laplace(t([0.0, 1.0]), t([0.5, 2.0]))"),
    ("Cauchy(t([0.5, -1.0]), t([1.5, 0.3]))", "Cauchy(t([0.0, 1.0]), t([0.5, 2.0]))"),
    ("Exponential(t([0.5, 1.0]))", "Exponential(t([2.0, 0.3]))"),
    ("Uniform(t([0.5, 1.0]), t([1.0, 4.0]))", "Uniform(t([0.0, 2.0]), t([2.0, 5.0]))"),
    ("Uniform(t([0.5, 1.0]), t([1.0, 4.0]))", "Normal(t([0.0, 1.0]), t([0.5, 2.0]))"),
    ("Normal(t([0.0, 1.0]), t([0.5, 2.0]))", "Uniform(t([0.5, 1.0]), t([1.0, 4.0]))"),
    ("Bernoulli(t([0.2, 1.0, 0.5]))", "Bernoulli(t([0.7, 0.5, 0.0]))"),
    ("Geometric(t([0.2, 0.5]))", "Geometric(t([0.7, 0.5]))"),
    ("Poisson(t([0.2, 1.0]))", "Poisson(t([0.7, 0.5]))"),
    ("Gamma(t([0.2, 1.0]), t([2.0, 3.0]))", "Gamma(t([0.7, 0.5]), t([1.0, 4.0]))"),
    ("Exponential(t([0.2, 1.0]))", "Gamma(t([0.7, 0.5]), t([1.0, 4.0]))"),
    ("Gamma(t([0.7, 0.5]), t([1.0, 4.0]))", "Exponential(t([0.2, 1.0]))"),
    ("Beta(t([0.2, 1.0]), t([2.0, 3.0]))", "Beta(t([0.7, 0.5]), t([1.0, 4.0]))"),
    ("Dirichlet(t([0.2, 1.0]))", "Dirichlet(t([0.7, 0.5]))"),
    ("Binomial(5, t([0.2, 0.9]))", "Binomial(5, t([0.7, 0.5]))"),
    ("Gumbel(t([0.2, 1.0]), t([2.0, 3.0]))", "Gumbel(t([0.7, 0.5]), t([1.0, 4.0]))"),
    ("Pareto(t([0.2, 1.0]), t([2.0, 3.0]))", "Pareto(t([0.7, 0.5]), t([1.0, 4.0]))"),
    ("LogNormal(t([0.2, 1.0]), t([2.0, 3.0]))", "LogNormal(t([0.7, 0.5]), t([1.0, 4.0]))"),
    ("HalfNormal(t([0.2, 1.0]))", "HalfNormal(t([0.7, 0.5]))"),
    ("Categorical(t([0.2, 0.0, 0.8]))", "Categorical(t([0.5, 0.2, 0.3]))"),
    ("OneHotCategorical(t([0.2, 0.3, 0.5]))", "OneHotCategorical(t([0.5, 0.2, 0.3]))"),
    (
        "MultivariateNormal(t([0.5, -1.0]), t([[2.0, 0.3], [0.3, 1.0]]))",
        "MultivariateNormal(t([0.0, 1.0]), scale_tril=t([[2.0, 0.0], [0.3, 1.0]]))",
    ),
]


def test_divergences_are_pytorchs():
    ours, theirs = (
        {f"{p} {q}": xp.distributions.kl_divergence(made(xp, p)[0], made(xp, q)[0]) for p, q in PAIRS}
        for xp in (tn, torch)
    )
    agree(ours, theirs)


def test_a_rule_of_ones_own_is_found_by_the_nearest_class():
    class Peaked(tn.distributions.Normal):
        pass

    @tn.distributions.register_kl(Peaked, tn.distributions.Normal)
    def rule(p, q):
        return p.loc + 7

    one, other = Peaked(0.0, 1.0), tn.distributions.Normal(0.0, 1.0)
    assert tn.distributions.kl_divergence(one, other).item() == 7
    assert tn.distributions.kl_divergence(other, one).item() == 0
    with pytest.raises(tn.UnsupportedError, match="no rule"):
        tn.distributions.kl_divergence(one, tn.distributions.Poisson(1.0))


def test_draws_have_the_mean_and_spread_that_are_told():
    tn.manual_seed(3)
    untold = ("auchy", "logistic", "relaxed", "transformed", "von mises")
    every = {name: made(tn, CASES[name][0])[0] for name in CASES if not any(each in name for each in untold)}
    drawn = {name: each.sample((20, 500)) for name, each in every.items()}
    told = {name: (e.mean, e.variance) for name, e in every.items() if not name.startswith("categorical")}
    tn.eval(drawn, told)
    for name, each in every.items():
        assert tuple(drawn[name].shape) == (20, 500, *each.batch_shape, *each.event_shape), name
        assert not drawn[name].requires_grad
        numbers = drawn[name].numpy().reshape(10_000, *drawn[name].shape[2:])
        if name not in told:
            shares = np.stack([(numbers == k).mean(0) for k in range(3)], -1)
            np.testing.assert_allclose(shares, each.probs.detach().numpy(), atol=0.03)
            continue
        mean, variance = (every.detach().numpy() for every in told[name])
        assert (np.abs(numbers.mean(0) - mean) < 0.05 * np.sqrt(variance)).all(), name
        np.testing.assert_allclose(numbers.std(0), np.sqrt(variance), rtol=0.1, err_msg=name)


def test_angles_are_drawn_around_their_mean():
    tn.manual_seed(3)
    each = tn.distributions.VonMises(tn.tensor([0.5, -3.0]), tn.tensor([1.5, 30.0]))
    angles, spread = each.sample((10_000,)), each.variance
    tn.eval(angles, spread)
    assert (angles.abs() <= np.pi).all()
    middle = np.exp(1j * angles.numpy()).mean(0)
    np.testing.assert_allclose(np.angle(middle), [0.5, -3.0], atol=0.05)
    np.testing.assert_allclose(1 - np.abs(middle), spread.numpy(), rtol=0.1)


def test_gradients_flow_through_draws():
    for call, by in [
        ("Normal(m, s)", 1.0),
        ("Laplace(m, s)", 1.0),
        ("Gumbel(m, s)", 1.0),
        ("Uniform(m, m + s)", 1.0),
    ]:
        m, s = (tn.tensor([each], requires_grad=True) for each in (0.5, 2.0))
        drawn = eval(call, vars(tn.distributions) | {"m": m, "s": s}).rsample((50,))
        of_m, of_s = tn.autograd.grad(drawn.sum(), [m, s])
        assert of_m.item() == pytest.approx(50 * by)
        # A draw is m + s z, where z does not depend on them.
        assert of_s.item() == pytest.approx((drawn.detach() - 0.5).sum().item() / 2.0, rel=1e-4)
    probs = tn.tensor([0.2, 0.8], requires_grad=True)
    straight = tn.distributions.OneHotCategoricalStraightThrough(probs).rsample()
    assert sorted(straight.tolist()) == [0.0, 1.0]
    assert tn.autograd.grad(straight[0], probs)[0].shape == (2,)


BAD = [
    ("Normal(0.0, -1.0)", "scale"),
    ("Normal(0.0, float('nan'))", "scale"),
    ("Bernoulli(1.5)", "probs"),
    ("Bernoulli()", "either"),
    ("Bernoulli(0.5, 0.5)", "either"),
    ("Uniform(1.0, 0.0)", "high"),
    ("Geometric(0.0)", "probs"),
    ("Exponential('one')", "numbers"),
    ("Independent(Normal(0.0, 1.0), 1)", "batch"),
    ("Normal(0.0, 1.0).log_prob(0.5)", "is a tensor"),
    ("Bernoulli(0.5).log_prob(x)", "support"),
    ("Poisson(1.0).rsample()", "rsample"),
]


@pytest.mark.parametrize(("call", "says"), BAD)
def test_what_is_wrong_is_refused(call, says):
    with pytest.raises(tn.TenfoldError, match=says):
        eval(call, vars(tn.distributions) | {"x": tn.tensor(0.25)})


def test_arguments_are_not_checked_unless_asked_for():
    each = tn.distributions.Bernoulli(1.5, validate_args=False)
    assert each.log_prob(tn.tensor(0.25)).item() != 0


def test_a_compiled_function_makes_distributions():
    @tn.compile
    def loss(mean, x):
        return -tn.distributions.Normal(mean, 1.0).log_prob(x).sum()

    found = loss(tn.zeros(3), tn.ones(3)).item()
    expected = -torch.distributions.Normal(torch.zeros(3), 1.0).log_prob(torch.ones(3)).sum().item()
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("made", "parameter"),
    [
        ("Categorical(logits=p)", [0.3, -1.0, 2.0]),
        ("Bernoulli(logits=p)", [0.3, -1.0, 2.0]),
        ("Bernoulli(probs=p)", [0.3, 0.1, 0.8]),
        ("MultivariateNormal(p[0], covariance_matrix=p)", [[2.0, 0.3], [0.3, 1.0]]),
    ],
)
def test_gradients_flow_through_what_a_draw_computed_first(made: str, parameter: Any) -> None:
    found = []
    for library in (tn, torch):
        p = library.tensor(parameter, dtype=library.float64, requires_grad=True)
        distribution = eval(made, {**vars(library.distributions), "p": p}, {})
        distribution.sample()
        (distribution.entropy().sum() + distribution.log_prob(library.ones_like(p[0])).sum()).backward()
        found.append(p.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-12)


def test_a_coin_of_large_logits_keeps_its_digits() -> None:
    for logits in (15.0, -15.0, 30.0):
        ours, theirs = (each.distributions.Bernoulli(logits=each.tensor(logits)) for each in (tn, torch))
        assert ours.log_prob(tn.tensor(1.0)).item() == pytest.approx(
            theirs.log_prob(torch.tensor(1.0)).item(), rel=1e-5
        )
        # Of a probability next to 1 the last bit decides.
        last = abs(logits) * float(np.spacing(np.float32(1)))
        assert ours.entropy().item() == pytest.approx(theirs.entropy().item(), abs=last)


def test_draws_of_laplace_are_finite() -> None:
    tn.manual_seed(0)
    drawn = tn.distributions.Laplace(tn.zeros(1), tn.ones(1)).sample((5_000_000,))
    assert drawn.isfinite().all().item()


def test_one_matrix_serves_a_batch_of_means():
    loc, root = np.arange(6.0).reshape(3, 2), np.array([[2.0, 0.0], [0.5, 1.0]])
    given = [package.distributions.MultivariateNormal(package.tensor(loc), scale_tril=package.tensor(root))
             for package in (tn, torch)]  # fmt: skip
    for name in ("variance", "covariance_matrix", "precision_matrix", "scale_tril"):
        mine, theirs = [getattr(each, name).numpy() for each in given]
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    for name in ("entropy", "sample"):
        mine, theirs = [getattr(each, name)() for each in given]
        assert tuple(mine.shape) == tuple(theirs.shape)
    value = np.ones((5, 1, 2))
    mine, theirs = [
        each.log_prob(p.tensor(value)).numpy() for each, p in zip(given, (tn, torch), strict=True)
    ]
    np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_a_normal_of_ones_own_may_keep_its_covariance_elsewhere():
    class Scaled(tn.distributions.MultivariateNormal):
        def __init__(self, factor):
            self.loc, self.factor = tn.zeros(2), factor
            tn.distributions.Distribution.__init__(self, (), (2,), validate_args=False)

        @property
        def _unbroadcasted_scale_tril(self):
            return self.factor * tn.eye(2)

        @property
        def covariance_matrix(self):
            return self.factor**2 * tn.eye(2)

    value = tn.tensor([1.0, -1.0])
    expected = tn.distributions.MultivariateNormal(tn.zeros(2), 4 * tn.eye(2)).log_prob(value)
    assert Scaled(2.0).log_prob(value).item() == pytest.approx(expected.item())
    assert Scaled(2.0).covariance_matrix.tolist() == [[4, 0], [0, 4]]


DOCUMENTED = {
    name: each
    for name, each in vars(tn.distributions).items()
    if isinstance(each, type) and issubclass(each, tn.distributions.Distribution)
}


@pytest.mark.parametrize("name", sorted(DOCUMENTED.keys() - {"Distribution", "ExponentialFamily"}))
def test_every_distribution_has_an_example_that_runs(name):
    code = example(DOCUMENTED[name])
    assert f"tn.distributions.{name}(" in code
    run_example(code, {"tn": tn})


def test_binomial_has_half_the_gradient_at_even_odds():
    logits = tn.tensor(0.0, requires_grad=True)
    tn.distributions.Binomial(1.0, logits=logits).log_prob(tn.tensor(0.0)).backward()
    assert logits.grad.item() == -0.5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_beta_of_small_concentrations_draws_numbers_near_both_ends(dtype):
    tn.manual_seed(0)
    small = tn.tensor(0.01, dtype=getattr(tn, dtype))
    drawn = tn.distributions.Beta(small, small).sample((20000,)).numpy()
    assert drawn.min() > 0 and drawn.max() < 1
    assert abs((drawn < 0.1).mean() - 0.5) < 0.05 and abs((drawn > 0.9).mean() - 0.5) < 0.05


def test_mixtures_check_values_against_every_component():
    def made(package):
        d, t = package.distributions, package.tensor
        parts = d.Binomial(t([10.0, 20.0]), t([0.3, 0.6]))
        return d.MixtureSameFamily(d.Categorical(t([0.4, 0.6])), parts).log_prob(t([3.0, 7.0, 9.0]))

    np.testing.assert_allclose(made(tn).numpy(), made(torch).numpy(), rtol=1e-5)


def test_gamma_takes_plain_numbers_as_values():
    assert tn.distributions.Gamma(1.0, 2.0).log_prob(0).item() == pytest.approx(np.log(2))


def test_wishart_takes_a_precision_matrix_of_small_numbers():
    root = tn.randn(10, 10, generator=tn.Generator().manual_seed(3)) * 1e-3
    precision = root @ root.mT + 1e-7 * tn.eye(10)
    made = tn.distributions.Wishart(tn.tensor(10.0), precision_matrix=precision)
    scale = made.scale_tril
    found = (scale @ scale.mT).double() @ precision.double()
    assert (found - tn.eye(10, dtype=tn.float64)).abs().max().item() < 0.05


def test_what_a_support_depends_on_is_not_known_of_the_class():
    for package in (tn, torch):
        with pytest.raises(NotImplementedError, match="event_dim cannot be determined statically"):
            _ = package.distributions.Independent.support.event_dim
        assert package.distributions.Uniform.support.event_dim == 0
    with pytest.raises(NotImplementedError, match="same total_count"):
        tn.distributions.Binomial(tn.tensor([1.0, 2.0]), tn.tensor([0.5, 0.5])).entropy()


@pytest.mark.parametrize("df", [0.0, -2.0])
def test_degrees_of_freedom_of_chi2_are_positive(df):
    for t in (tn, torch):
        with pytest.raises(ValueError):
            t.distributions.Chi2(t.tensor([1.0, df]), validate_args=True)
        assert t.distributions.Chi2(t.tensor([df]), validate_args=False).df.tolist() == [df]


def test_probabilities_of_continuous_bernoulli_stay_off_both_ends():
    made = [t.distributions.ContinuousBernoulli(t.tensor([0.0, 0.5, 1.1])) for t in (tn, torch)]
    assert made[0].probs.tolist() == made[1].probs.tolist()
    for t in (tn, torch):
        with pytest.raises(ValueError):
            t.distributions.ContinuousBernoulli(t.tensor([1.1]), validate_args=True)


def test_kumaraswamy_tells_places_of_values_within_its_support():
    for t in (tn, torch):
        with pytest.raises(ValueError):
            t.distributions.Kumaraswamy(1.0, 2.0, validate_args=True).cdf(t.tensor(-1.0))
