"""`tenfold launch` itself: how many processes it starts, and how they end."""

import argparse
import importlib
import os
import signal
import subprocess
import sys
import time

import pytest

import tenfold as tn

launch = importlib.import_module("tenfold.distributed.launch")
group = importlib.import_module("tenfold.distributed.group")

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


@pytest.fixture
def bare_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("SLURM_") or name in (
            "RANK",
            "WORLD_SIZE",
            "LOCAL_RANK",
            "MASTER_ADDR",
            "MASTER_PORT",
        ):
            monkeypatch.delenv(name)
    return monkeypatch


def test_slurm_says_who_a_process_is_and_where_all_meet(bare_environment):
    told = {"PROCID": "5", "NTASKS": "8", "LOCALID": "1", "JOB_ID": "40123", "JOB_NODELIST": "gpu[03-07,12]"}
    for name, value in told.items():
        bare_environment.setenv(f"SLURM_{name}", value)
    assert group._rendezvous(None, -1, -1) == ("gpu03:20123", 5, 8)
    assert group.get_node_local_rank() == 1
    bare_environment.setenv("SLURM_LAUNCH_NODE_IPADDR", "10.0.0.7")
    assert group._rendezvous(None, -1, -1)[0] == "10.0.0.7:20123"
    bare_environment.setenv("MASTER_ADDR", "10.0.0.9")
    bare_environment.setenv("MASTER_PORT", "1234")
    assert group._rendezvous("env://", -1, -1) == ("10.0.0.9:1234", 5, 8)
    bare_environment.setenv("RANK", "0")  # torchrun's words come before SLURM's
    bare_environment.setenv("WORLD_SIZE", "2")
    assert group._rendezvous(None, -1, -1)[1:] == (0, 2)
    assert group._rendezvous("tcp://host:99", 1, 4) == ("host:99", 1, 4)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("a1", "a1"), ("a1,b2", "a1"), ("n[1-3]", "n1"), ("n[07,09]", "n07"), ("x,n[1-3]", "x"), ("", "")],
)
def test_first_node_of_slurms_list(nodes, first):
    assert group._first_node(nodes) == first


def test_a_flag_with_one_spelling_is_listed_once():
    listed = launch.add_arguments(argparse.ArgumentParser()).format_help()
    assert "--node-rank NODE_RANK, --node_rank NODE_RANK" in listed
    assert "--nnodes NNODES, --nnodes" not in listed


def arguments(*given: str) -> argparse.Namespace:
    return launch.add_arguments(argparse.ArgumentParser()).parse_args([*given, "train.py", "--lr", "3"])


@pytest.fixture
def watched(monkeypatch):
    """Runs no processes: says how each start of them ends, and keeps the environments that they got."""
    ends: list[tuple[int, int] | None] = []
    starts: list[list[dict[str, str]]] = []

    def watch(command, environments):
        starts.append(environments)
        return ends.pop(0)

    monkeypatch.setattr(launch, "_watch", watch)
    return ends, starts


def test_the_launcher_ends_with_what_its_processes_ended_with(watched, capsys):
    ends, starts = watched
    ends.append(None)
    assert launch._run(arguments("--nproc-per-node", "3")) == 0
    assert [each["RANK"] for each in starts[0]] == ["0", "1", "2"] and not capsys.readouterr().err
    ends.append((1, 7))
    assert launch._run(arguments("--nproc-per-node", "2")) == 7
    assert "rank 1 ended with status 7; ended the others" in capsys.readouterr().err
    ends.append((0, -signal.SIGKILL))
    assert launch._run(arguments("--nnodes", "2", "--node-rank", "1", "--rdzv-endpoint", "here:1")) == 1
    assert "rank 1 was killed by SIGKILL" in capsys.readouterr().err


def test_processes_are_started_again_as_often_as_is_asked_for(watched, capsys):
    ends, starts = watched
    ends += [(0, 1), (1, 1), None]
    given = arguments("--nproc-per-node", "2", "--max-restarts", "2", "--rdzv-endpoint", "here:5000")
    assert launch._run(given) == 0
    lines = capsys.readouterr().err.splitlines()
    assert "starting all 2 again (2 restarts left)" in lines[0] and "(1 restarts left)" in lines[1]
    assert [each[0]["TORCHELASTIC_RESTART_COUNT"] for each in starts] == ["0", "1", "2"]
    assert [each[1]["MASTER_PORT"] for each in starts] == ["5000", "5001", "5002"]
    ends += [(0, 1), (0, 5)]
    assert launch._run(arguments("--max-restarts", "1")) == 5
