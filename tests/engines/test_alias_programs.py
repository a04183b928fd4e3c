"""Writes through views of views, on the engines that run them one by one and as whole programs."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.runtime import tiers
from tests.engines.alias_programs import difference


@pytest.fixture
def on():
    """Chooses an engine for a test."""
    yield tn.set_engine
    tn.set_engine("xla")


@pytest.mark.parametrize("engine", ["libtorch", "numpy"])
def test_random_alias_programs_agree_with_pytorch(engine, on):
    on(engine)
    assert [told for seed in range(300) if (told := difference(seed))] == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["libtorch", "numpy"])
def test_ten_thousand_alias_programs_agree_with_pytorch(engine, on):
    on(engine)
    assert [told for seed in range(1000, 11_000) if (told := difference(seed))] == []


@pytest.mark.parametrize("count", [30, pytest.param(10_000, marks=pytest.mark.slow)])
def test_random_alias_programs_agree_with_pytorch_by_the_policy_of_tiers(count, monkeypatch):
    monkeypatch.setattr(tiers, "setting", lambda: "")
    assert [told for seed in range(20_000, 20_000 + count) if (told := difference(seed))] == []


@pytest.mark.slow
def test_random_alias_programs_agree_with_pytorch_on_xla():
    assert [told for seed in range(200) if (told := difference(seed))] == []


def test_a_write_through_what_unfolds_a_view_arrives(on):
    on("libtorch")
    x = tn.zeros(4, 4)
    x[2:].unfold(0, 2, 2)[0].add_(3)
    assert x.sum().item() == 24
    x = tn.zeros(4, 4)
    x.diagonal().unfold(0, 2, 2)[1].add_(3)
    assert x.sum().item() == 6
