"""`torch.torch_version`: versions compare by their numbers, as PyTorch's do."""

from __future__ import annotations

import itertools
import operator

import pytest
from packaging.version import Version
from torch.torch_version import TorchVersion as Theirs

from tenfold.compat import install
from tenfold.compat.private.torch_version import TorchVersion

VERSIONS = [
    "2.13.0+tenfold",
    "2.13.0",
    "2.13",
    "2.9.1",
    "2.9.1.post1",
    "2.9.1.dev20240101",
    "2.10.0a0+git1234",
    "2.10.0rc1",
    "2.10.0b2.dev3",
    "1.13",
    "2.13.0+cpu",
    "2.13.0+2",
    "2.13.0-1",
    "v2.13.1",
    "nightly",
    "2",
]
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.gt, operator.ge]


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda each: each.__name__)
def test_all_pairs_compare_as_in_pytorch(compare):
    for one, other in itertools.product(VERSIONS, repeat=2):
        assert compare(TorchVersion(one), other) == compare(Theirs(one), other), (one, other)


def test_versions_differ_exactly_where_they_are_not_equal():
    for one, other in itertools.product(VERSIONS, repeat=2):
        assert (TorchVersion(one) != other) is not (TorchVersion(one) == other)


def test_a_version_compares_with_numbers_and_with_packagings():
    assert TorchVersion("2.13.0") >= (2, 9)
    assert TorchVersion("2.13.0") < (2, 14, 0)
    assert TorchVersion("2.13.0") > Version("2.9")
    assert TorchVersion("2.13.0") != 3


def test_the_installed_version_is_later_than_one_of_fewer_digits():
    assert install.VERSION >= "2.9"
    assert install.VERSION.split("+")[0] == "2.13.0"
    assert {install.VERSION: 1}[str(install.VERSION)] == 1
