"""A GPT of four layers, trained for twenty steps on eight devices in each way to shard it."""

import pytest

from tests.distributed import gpt


@pytest.mark.parametrize("way", ["data", "tensor", "2x4", "4x2"])
def test_gpt_trains_as_on_one_device(way):
    gpt.compare(way)


def test_fully_sharded_gpt_trains_as_on_one_device_in_an_eighth_of_the_memory():
    assert gpt.compare("fully sharded") <= 1.1 / 8
