"""Devices: those that are missing, and several at once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tenfold as tn
from tenfold.base.devices import Device
from tenfold.base.errors import DeviceError
from tenfold.engines import xla
from tenfold.engines.xla import clients

CPU = Device("cpu")


def test_a_device_that_is_not_there():
    with pytest.raises(DeviceError, match=r"there is no cpu:3: this machine has 1 cpu device\(s\)") as raised:
        xla.put(np.ones(1), Device("cpu:3"))
    assert "tenfold doctor" in raised.value.help
    with pytest.raises(DeviceError, match="there is no cpu:3"):
        tn.ones(2, device="cpu:3").eval()


def test_cuda_without_its_plugin_says_what_to_install(monkeypatch):
    monkeypatch.setattr(clients, "find_cuda_plugin", lambda: None)
    monkeypatch.setattr(clients, "started", {})
    with pytest.raises(DeviceError, match="needs XLA's CUDA plugin, which is not installed") as raised:
        tn.ones(2, device="cuda")
    assert "pip install jax-cuda13-plugin" in raised.value.help


TWO_DEVICES = """
    import numpy as np
    import tenfold as tn

    there = tn.tensor([1.0, 2.0], device="cpu:1")
    here = tn.tensor([3.0, 4.0])
    assert str(there.device) == "cpu:1" and str(here.device) == "cpu"
    total = (there * 2).sum()
    assert str(total.device) == "cpu:1" and total.item() == 6.0
    assert (there.to("cpu") + here).tolist() == [4.0, 6.0]
    assert (here.to("cpu:1") + there).tolist() == [4.0, 6.0]
    assert str(tn.ones(2, device="cpu:1").eval().device) == "cpu:1"
    assert (there + tn.tensor(5.0)).tolist() == [6.0, 7.0]
    buffer = (there + 1).eval()._buffer()
    assert buffer._sharding._device.id == 1
    with tn.device("cpu:1"):
        assert str(tn.zeros(2).device) == "cpu:1"
    tn.eval(there + 1, here + 1)
    try:
        there + here
    except tn.DeviceError as error:
        print(error.message, "|", error.help)
    try:
        tn.ones(1, device="cpu:2").eval()
    except tn.DeviceError as error:
        print(error.message)
"""


def test_two_cpu_devices():
    environment = os.environ | {"TENFOLD_CPU_DEVICES": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(TWO_DEVICES)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "operands are on cpu:1 and cpu | move one with .to('cpu:1')",
        "there is no cpu:2: this machine has 2 cpu device(s)",
    ]


def test_the_cuda_plugin_is_found_where_jax_installs_it(tmp_path, monkeypatch):
    plugin = tmp_path / "jax_plugins" / "xla_cuda13" / "xla_cuda_plugin.so"
    plugin.parent.mkdir(parents=True)
    plugin.touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "jax_plugins", raising=False)
    assert clients.find_cuda_plugin() == str(plugin)
