"""Writes through views of views, on the engines that run them one by one and as whole programs."""

from __future__ import annotations

import pytest

import tenfold as tn
from tests.engines.alias_programs import difference


@pytest.fixture
def libtorch():
    tn.set_engine("libtorch")
    yield
    tn.set_engine("xla")


def test_random_alias_programs_agree_with_pytorch_on_libtorch(libtorch):
    assert [told for seed in range(300) if (told := difference(seed))] == []


@pytest.mark.slow
def test_ten_thousand_alias_programs_agree_with_pytorch_on_libtorch(libtorch):
    assert [told for seed in range(1000, 11_000) if (told := difference(seed))] == []


@pytest.mark.slow
def test_random_alias_programs_agree_with_pytorch_on_xla():
    assert [told for seed in range(200) if (told := difference(seed))] == []


def test_a_write_through_what_unfolds_a_view_arrives(libtorch):
    x = tn.zeros(4, 4)
    x[2:].unfold(0, 2, 2)[0].add_(3)
    assert x.sum().item() == 24
    x = tn.zeros(4, 4)
    x.diagonal().unfold(0, 2, 2)[1].add_(3)
    assert x.sum().item() == 6
