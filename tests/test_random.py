"""Random numbers: their distributions, their ranges, and that a seed gives the same numbers in every run."""

import math
import threading

import numpy as np
import pytest

import tenfold as tn
from tenfold.tensor import generators

MANY = 100_000


@pytest.fixture(autouse=True)
def seeded():
    tn.manual_seed(1234)


def distance(sample, distribution):
    """The Kolmogorov-Smirnov statistic: the largest gap between a sample's distribution and the exact one."""
    ordered = np.sort(np.asarray(sample, np.float64))
    exact = distribution(ordered)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return max(np.max(steps[1:] - exact), np.max(exact - steps[:-1]))


# Under the right distribution the statistic exceeds this once in ten thousand samples of MANY.
LIMIT = 2.23 / math.sqrt(MANY)

normal_cdf = np.vectorize(lambda z: 0.5 * math.erfc(-z / math.sqrt(2)))

CONTINUOUS = {
    "rand": (lambda: tn.rand(MANY), lambda x: x),
    "rand, float64": (lambda: tn.rand(MANY, dtype=tn.float64), lambda x: x),
    "randn": (lambda: tn.randn(MANY), normal_cdf),
    "randn, float64": (lambda: tn.randn(MANY, dtype=tn.float64), normal_cdf),
    "normal_": (lambda: tn.empty(MANY).normal_(3, 2), lambda x: normal_cdf((x - 3) / 2)),
    "normal": (
        lambda: tn.normal(tn.full((MANY,), 3.0), tn.full((MANY,), 2.0)),
        lambda x: normal_cdf((x - 3) / 2),
    ),
    "uniform_": (lambda: tn.empty(MANY).uniform_(-2, 5), lambda x: (x + 2) / 7),
    "exponential_": (lambda: tn.empty(MANY).exponential_(0.5), lambda x: 1 - np.exp(-0.5 * x)),
    "cauchy_": (lambda: tn.empty(MANY).cauchy_(1, 2), lambda x: 0.5 + np.arctan((x - 1) / 2) / math.pi),
    "log_normal_": (lambda: tn.empty(MANY).log_normal_(0, 0.5), lambda x: normal_cdf(np.log(x) / 0.5)),
    "gamma of shape 1": (lambda: tn._standard_gamma(tn.ones(MANY)), lambda x: 1 - np.exp(-x)),
    "gamma of shape 1/2": (
        lambda: tn._standard_gamma(tn.full((MANY,), 0.5)),
        lambda x: np.vectorize(math.erf)(np.sqrt(x)),
    ),
    "gamma of shape 3": (
        lambda: tn._standard_gamma(tn.full((MANY,), 3.0)),
        lambda x: 1 - np.exp(-x) * (1 + x + x * x / 2),
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_draws_follow_their_distribution(name):
    draw, distribution = CONTINUOUS[name]
    drawn = draw().numpy()
    assert np.isfinite(drawn).all()
    assert distance(drawn, distribution) < LIMIT


def poisson_pmf(rate):
    return lambda k: math.exp(k * math.log(rate) - rate - math.lgamma(k + 1))


def binomial_pmf(n, p):
    return lambda k: math.comb(n, k) * p**k * (1 - p) ** (n - k)


DISCRETE = {
    "randint": (lambda: tn.randint(-3, 7, (MANY,)), lambda k: 0.1, range(-3, 7)),
    "randint, wide": (lambda: tn.randint(0, 1 << 40, (MANY,)) // (1 << 37), lambda k: 0.125, range(8)),
    "random_": (lambda: tn.empty(MANY, dtype=tn.int32).random_(5), lambda k: 0.2, range(5)),
    "bernoulli": (lambda: tn.bernoulli(tn.full((MANY,), 0.3)), lambda k: (0.7, 0.3)[k], range(2)),
    "bernoulli_": (lambda: tn.empty(MANY, dtype=tn.uint8).bernoulli_(0.3), lambda k: (0.7, 0.3)[k], range(2)),
    "geometric_": (lambda: tn.empty(MANY).geometric_(0.3), lambda k: 0.3 * 0.7 ** (k - 1), range(1, 12)),
    "poisson of a small rate": (lambda: tn.poisson(tn.full((MANY,), 2.5)), poisson_pmf(2.5), range(9)),
    "poisson of a large rate": (lambda: tn.poisson(tn.full((MANY,), 40.0)), poisson_pmf(40), range(25, 56)),
    "binomial of few": (
        lambda: tn.binomial(tn.full((MANY,), 12.0), tn.full((MANY,), 0.7)),
        binomial_pmf(12, 0.7), range(4, 13),
    ),
    "binomial of many": (
        lambda: tn.binomial(tn.full((MANY,), 100.0), tn.full((MANY,), 0.3)),
        binomial_pmf(100, 0.3), range(18, 43),
    ),
    "multinomial": (
        lambda: tn.multinomial(tn.tensor([1.0, 0.0, 3.0, 4.0]), MANY, True),
        lambda k: (1, 0, 3, 4)[k] / 8, range(4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DISCRETE)
def test_counts_follow_their_distribution(name):
    draw, probability, values = DISCRETE[name]
    drawn = draw().numpy()
    for k in values:
        p = probability(k)
        # Five standard deviations: one value in two million goes beyond.
        assert abs(np.mean(drawn == k) - p) <= 5 * math.sqrt(p * (1 - p) / MANY), k


def test_ranges_leave_out_their_upper_end():
    for dtype in (tn.float16, tn.bfloat16, tn.float32, tn.float64):
        drawn = tn.rand(MANY, dtype=dtype).to(tn.float64)
        assert drawn.min().item() >= 0
        assert drawn.max().item() < 1
    # So narrow a range that half of all draws would be rounded to its end.
    narrow = tn.empty(MANY).uniform_(1, 1.0000002)
    assert narrow.max().item() < np.float32(1.0000002)
    assert set(tn.randint(2, 5, (MANY,)).tolist()) == {2, 3, 4}


def test_moments_of_a_million_normals():
    drawn = tn.randn(1_000_000).numpy().astype(np.float64)
    assert abs(drawn.mean()) < 0.005
    assert abs(drawn.var() - 1) < 0.01
    assert abs((drawn**3).mean()) < 0.02
    assert abs((drawn**4).mean() - 3) < 0.05


def test_neighbours_are_not_correlated():
    drawn = tn.randn(2, MANY).numpy().astype(np.float64)
    assert abs(np.corrcoef(drawn[0], drawn[1])[0, 1]) < 0.016
    assert abs(np.corrcoef(drawn[0, 1:], drawn[0, :-1])[0, 1]) < 0.016


def test_a_draw_has_no_gradient_by_what_it_was_drawn_from():
    mean = tn.ones(3, requires_grad=True)
    drawn = tn.normal(mean, tn.full((3,), 2.0))
    assert drawn.requires_grad
    drawn.sum().backward()
    assert mean.grad.tolist() == [0, 0, 0]


def test_complex_normals_have_variance_one():
    drawn = tn.randn(MANY, dtype=tn.complex64).numpy()
    assert abs(np.mean(np.abs(drawn) ** 2) - 1) < 0.02
    assert abs(np.mean(drawn.real * drawn.imag)) < 0.01


def test_a_permutation_has_every_number_once():
    first, second = tn.randperm(1000), tn.randperm(1000)
    assert sorted(first.tolist()) == list(range(1000))
    assert first.tolist() != second.tolist()
    assert tn.randperm(0).tolist() == []
    assert tn.randperm(1).tolist() == [0]


def test_all_permutations_are_equally_likely():
    drawn = [tn.randperm(3).tolist() for _ in range(1200)]
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 6
    assert (abs(counts - 200) < 5 * math.sqrt(200)).all()


def test_choices_without_replacement_are_distinct_and_possible():
    weights = tn.tensor([[0.0, 1.0, 2.0, 3.0], [4.0, 0.0, 1.0, 1.0]])
    for row, possible in zip(tn.multinomial(weights, 3).tolist(), ({1, 2, 3}, {0, 2, 3})):
        assert set(row) == possible


def test_dropout_zeroes_and_scales():
    x = tn.ones(MANY)
    dropped = tn.dropout(x, 0.25, True).numpy()
    assert set(np.unique(dropped)) == {0, np.float32(1 / 0.75)}
    assert abs((dropped == 0).mean() - 0.25) < 0.01
    assert tn.dropout(x, 0.25, False).tolist() == x.tolist()
    channels = tn.feature_dropout(tn.ones(50, 40, 3, 3), 0.5, True).numpy()
    assert all(len(np.unique(channel)) == 1 for channel in channels.reshape(-1, 9))
    kept = tn.alpha_dropout(tn.randn(MANY), 0.3, True).numpy()
    assert abs(kept.mean()) < 0.02
    assert abs(kept.std() - 1) < 0.02


def test_streams_do_not_change():
    """The numbers of a seed: whoever changes them changes every user's experiments."""
    tn.manual_seed(0)
    assert tn.rand(3).tolist() == [0.8805201649665833, 0.6054818034172058, 0.362091064453125]
    assert tn.randn(2).tolist() == pytest.approx([1.4994734525680542, 1.0215387344360352], rel=1e-6)
    assert tn.randint(1000, (4,)).tolist() == [415, 426, 693, 916]
    assert tn.randperm(6).tolist() == [0, 3, 4, 1, 5, 2]


def test_a_seed_starts_anew_and_draws_differ():
    tn.manual_seed(7)
    first, second = tn.rand(8), tn.rand(8)
    assert first.tolist() != second.tolist(), "two draws of one program are the same"
    tn.manual_seed(7)
    assert tn.rand(8).tolist() == first.tolist()
    tn.manual_seed(8)
    assert tn.rand(8).tolist() != first.tolist()


def test_generators_are_streams_of_their_own():
    one, two = tn.Generator().manual_seed(3), tn.Generator().manual_seed(3)
    tn.manual_seed(3)
    expected = tn.rand(4).tolist()
    assert tn.rand(4, generator=one).tolist() == expected
    tn.rand(4)
    assert tn.rand(4, generator=two).tolist() == expected
    assert one.initial_seed() == 3
    assert tn.rand(4, generator=one).tolist() != expected


def test_state_can_be_kept_and_put_back():
    state = tn.get_rng_state()
    drawn = tn.rand(4).tolist()
    tn.set_rng_state(state)
    assert tn.rand(4).tolist() == drawn
    with tn.fork_rng():
        tn.manual_seed(99)
        tn.rand(10)
    tn.set_rng_state(state)
    assert tn.rand(4).tolist() == drawn


def test_state_is_bytes_that_survive_copies_files_and_conversions(tmp_path):
    state = tn.get_rng_state()
    assert state.dtype is tn.uint8
    drawn = tn.rand(4).tolist()
    tn.save({"rng": state}, tmp_path / "state.pt")
    for kept in (state, state.byte(), state.clone(), tn.load(tmp_path / "state.pt")["rng"]):
        tn.set_rng_state(kept)
        assert tn.rand(4).tolist() == drawn
    generator = tn.Generator().manual_seed(3)
    before = generator.get_state()
    first = tn.rand(4, generator=generator).tolist()
    assert tn.rand(4, generator=generator.set_state(before)).tolist() == first


def test_seeds_are_whatever_int_takes():
    tn.manual_seed("7")
    assert tn.initial_seed() == 7
    tn.manual_seed(1.5)
    assert tn.initial_seed() == 1


def test_drawing_inside_fork_rng_leaves_the_stream_alone():
    tn.manual_seed(5)
    expected = [tn.rand(2).tolist(), tn.rand(2).tolist()]
    tn.manual_seed(5)
    first = tn.rand(2).tolist()
    with tn.fork_rng(devices=[], enabled=True, device_type="cuda"):
        tn.rand(100)
    assert [first, tn.rand(2).tolist()] == expected
    tn.manual_seed(5)
    with tn.random.fork_rng(enabled=False):
        tn.rand(2)
    assert tn.rand(2).tolist() == expected[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tn.rand(2, dtype=tn.int32), "floating-point"),
        (lambda: tn.randint(5, 5, (2,)), "no integer lies between"),
        (lambda: tn.randint(0, 300, (2,), dtype=tn.uint8), "299 is out of bounds for uint8"),
        (lambda: tn.empty(2).uniform_(2, 1), "empty"),
        (lambda: tn.empty(2).exponential_(0), "no rate of 0"),
        (lambda: tn.empty(2).geometric_(1.5), "no probability of 1.5"),
        (lambda: tn.empty(2).normal_(0, -1), "standard deviation of -1"),
        (lambda: tn.bernoulli(tn.tensor([0.5, 1.5])).tolist(), "not between 0 and 1"),
        (lambda: tn.normal(tn.zeros(2), tn.tensor([1.0, -1.0])).tolist(), "standard deviation is negative"),
        (lambda: tn.multinomial(tn.tensor([1.0, -1.0]), 1).tolist(), "negative"),
        (lambda: tn.multinomial(tn.tensor([1.0, 0.0]), 2).tolist(), "fewer than 2 weights"),
        (lambda: tn.multinomial(tn.tensor([1.0, 1.0]), 3), "without replacement"),
        (lambda: tn.poisson(tn.tensor([-1.0])).tolist(), "rate is negative"),
        (lambda: tn.dropout(tn.ones(2), 1.5, True), "not a probability"),
        (lambda: tn.randperm(-1), "no permutation"),
        (lambda: tn.rand(2, -1), "negative"),
        (lambda: tn.Generator().manual_seed(1 << 64), "64 bits"),
        (lambda: tn.set_rng_state(tn.zeros(3)), "u8\\[16\\]"),
        (lambda: tn.manual_seed("seven"), "the seed is an int"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises(tn.TenfoldError, match=message):
        call()


def test_a_refused_draw_leaves_the_generator_usable():
    for wrong in (tn.poisson(tn.tensor([-1.0])), tn.binomial(tn.tensor([5.0]), tn.tensor([2.0]))):
        with pytest.raises(tn.ArgumentError):
            wrong.tolist()
        assert 0 <= tn.rand(1).item() < 1


def test_parameters_at_the_edge_end_the_loops():
    drawn = tn._standard_gamma(tn.tensor([0.0, math.inf, math.nan])).tolist()
    assert drawn[0] == pytest.approx(0, abs=1e-30)
    assert drawn[1] == math.inf
    assert math.isnan(drawn[2])
    assert tn.poisson(tn.zeros(3)).tolist() == [0.0] * 3
    assert tn.binomial(tn.tensor([7.0, 7.0, 0.0]), tn.tensor([0.0, 1.0, 0.5])).tolist() == [0.0, 7.0, 0.0]
    assert tn.poisson(tn.zeros(0, 2)).shape == (0, 2)
    assert tn._standard_gamma(tn.zeros(0)).shape == (0,)


def test_threads_draw_different_numbers():
    drawn: list[float] = []

    def draw() -> None:
        drawn.extend(tn.rand(1).item() for _ in range(40))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(drawn)) == 160


def test_a_function_that_is_recorded_before_a_device_has_drawn_does_not_seed_it_at_each_call(monkeypatch):
    monkeypatch.setattr(generators, "_generators", {})
    tn.manual_seed(5)
    generators._generators.clear()
    attend = tn.compile(lambda x: tn.nn.functional.scaled_dot_product_attention(x, x, x))
    x = tn.ones(1, 1, 4, 8)
    attend(x)
    first = tn.rand(3).tolist()
    attend(x)
    assert tn.rand(3).tolist() != first
