"""Autocast is asked of devices that are not here, and is off there."""

import pytest

import tenfold as tn


@pytest.mark.parametrize("device", ["mps", "xpu", "xla", "meta"])
def test_a_program_may_ask_whether_ops_of_another_device_are_cast(device):
    assert tn.is_autocast_enabled(device) is False


def test_a_device_that_pytorch_does_not_know_is_refused():
    with pytest.raises(tn.ArgumentError, match="the type of a device is"):
        tn.is_autocast_enabled("gpu")
