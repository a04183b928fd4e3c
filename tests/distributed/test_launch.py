"""`tenfold launch` itself: how many processes it starts, and how they end."""

import importlib
import os
import signal
import subprocess
import sys
import time

import pytest

import tenfold as tn

launch = importlib.import_module("tenfold.distributed.launch")

SLEEPER = """
import os, time
open(os.path.join({folder!r}, os.environ["RANK"]), "w").write(str(os.getpid()))
time.sleep(60)
"""


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP])
def test_processes_end_when_the_launcher_is_told_to(tmp_path, told):
    script = tmp_path / "sleeper.py"
    script.write_text(SLEEPER.format(folder=str(tmp_path)))
    command = [sys.executable, "-m", "tenfold", "launch", "--nproc-per-node", "2", str(script)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    launcher = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        pids = [_written(tmp_path / rank) for rank in ("0", "1")]
        launcher.send_signal(told)
        error = launcher.communicate(timeout=30)[1]
    finally:
        launcher.kill()
    assert launcher.returncode == 128 + told
    assert f"ended all processes after {told.name}" in error
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def _written(path):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.05)
    raise AssertionError(f"{path} was not written")


def test_auto_counts_the_devices_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name in ("nvidia0", "nvidia1", "nvidia2", "nvidiactl"):
        (tmp_path / name).touch()
    assert launch._cuda_devices(str(tmp_path / "nvidia[0-9]*")) == 3
    for visible, count in {"0,2": 2, "1": 1, "": 0, "-1": 0, "0,-1,1": 1, "GPU-ab,GPU-cd": 2}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert launch._cuda_devices() == count, visible
    monkeypatch.setattr(launch, "_cuda_devices", lambda: 3)
    assert launch._count("auto") == launch._count("gpu") == 3
    monkeypatch.setattr(launch, "_cuda_devices", lambda: 0)
    assert launch._count("auto") == launch._count("cpu") == os.cpu_count()
    with pytest.raises(tn.ArgumentError, match="there is no CUDA device"):
        launch._count("gpu")
