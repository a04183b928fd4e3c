"""Several processes: what they compute together, and what happens when one fails."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "processes"
EXAMPLES = Path(__file__).parents[2] / "examples" / "distributed"


def launched(script, *arguments, processes=2, devices=1, flags=(), environment=()):
    command = [sys.executable, "-m", "tenfold", "launch", "--nproc-per-node", str(processes), *flags]
    command.append(str(script))
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=1200,
        env={
            **os.environ,
            "TENFOLD_CPU_DEVICES": str(devices),
            "PYTHONPATH": os.pathsep.join(sys.path),
            **dict(environment),
        },
    )


def alone(script, *arguments, rank, port, seconds=3):
    """One process of two, which waits for the other."""
    text = f"import tenfold.distributed as d; from datetime import timedelta as t\n{script}"
    return subprocess.run(
        [sys.executable, "-c", text.replace("SECONDS", str(seconds))],
        capture_output=True,
        text=True,
        timeout=100,
        env={
            **os.environ,
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_PORT": str(port),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    ).stderr


JOIN = "d.init_process_group('gloo', timeout=t(seconds=SECONDS))"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_collectives_give_what_pytorchs_give():
    done = launched(SCRIPTS / "collectives.py", devices=2)
    assert done.stdout.count("passed") == 2, done.stdout + done.stderr


@pytest.mark.slow
def test_ddp_sync_batch_norm_and_fully_shard_keep_pytorchs_rules():
    done = launched(SCRIPTS / "details.py")
    assert done.stdout.count("passed") == 2, done.stdout + done.stderr


@pytest.mark.slow
def test_ddp_and_fully_shard_train_as_one_process_does():
    done = launched(SCRIPTS / "data_parallel.py")
    assert done.stdout.count("passed") == 2, done.stdout + done.stderr


@pytest.mark.slow
def test_fully_sharded_data_parallel_trains_as_one_process_does():
    done = launched(SCRIPTS / "fully_sharded.py")
    assert done.stdout.count("passed") == 2, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("way", "processes"), [("split", 2), ("mixed", 4), ("hybrid", 4)])
def test_layers_split_over_processes_train_on_plain_tensors_as_in_pytorch(way, processes):
    printed = {}
    for package in ("tenfold", "torch"):
        done = launched(SCRIPTS / "tensor_parallel.py", package, way, processes=processes)
        printed[package] = sorted(re.findall(r"rank \d: .*", done.stdout))
        assert len(printed[package]) == processes, done.stdout + done.stderr
    assert printed["tenfold"] == printed["torch"]


@pytest.mark.parametrize(
    ("what", "who", "message"),
    [
        ("differ", 1, r"rank 0 runs another program than rank 1: here one on \[8xf32\], there .*10xf32"),
        pytest.param(
            # distribute_tensor begins with the data of both, one after the other.
            *("elsewhere", 1, r"rank 0 runs another program than rank 1: here .*\[8xf32.*, there .*\[16xf32"),
            marks=pytest.mark.slow,
        ),
        ("die", 0, "rank 0 has died"),
        pytest.param("die", 1, "rank 1 has died", marks=pytest.mark.slow),
        pytest.param("stop", 1, "rank 1 is stopped", marks=pytest.mark.slow),
        pytest.param("sleep", 1, "rank 0 waited 8 s for rank 1", marks=pytest.mark.slow),
    ],
)
def test_failed_process_is_named_and_no_other_aborts(what, who, message):
    port = free_port()
    command = [sys.executable, str(SCRIPTS / "faults.py"), what, str(who)]
    environment = {**os.environ, "WORLD_SIZE": "2", "MASTER_PORT": str(port)}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    environment["TENFOLD_CPU_DEVICES"] = "2" if what == "elsewhere" else "1"
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**environment, "RANK": str(rank)})
        for rank in range(2)
    ]
    other = running[1 - who] if what != "differ" else running[0]
    try:
        output = other.communicate(timeout=100)[0]
    finally:
        for each in running:
            each.kill()
            each.wait()
    assert other.returncode == 7, output
    assert re.search(message, output), output
    assert int(re.search(r"after (\d+) s", output).group(1)) <= 30


def test_process_that_never_comes_is_named():
    error = alone(JOIN, rank=0, port=free_port(), seconds=1)
    assert "DistributedError: init_process_group: rank 1 did not come to 127.0.0.1" in error
    error = alone(JOIN, rank=1, port=free_port(), seconds=1)
    assert "rank 1 waited 1 s" in error and "rank 0 was not there" in error


def test_processes_meet_by_a_file(tmp_path):
    text = "d.init_process_group('gloo', 'file://{}', rank={}, world_size=2); d.barrier(); print('met')"
    command = [sys.executable, "-c"]
    running = [
        subprocess.Popen(
            [*command, "import tenfold.distributed as d; " + text.format(tmp_path / "meeting", rank)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for rank in range(2)
    ]
    assert [process.communicate(timeout=100)[0].count("met") for process in running] == [1, 1]
    assert list(tmp_path.iterdir()) == []


def test_taken_port_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = alone(JOIN, rank=0, port=taken.getsockname()[1])
    assert "DistributedError: init_process_group: rank 0 cannot listen at 127.0.0.1" in error


def test_group_is_joined_before_anything_is_computed():
    error = alone("import tenfold; tenfold.ones(2).eval()\n" + JOIN, rank=0, port=free_port())
    assert "call init_process_group before anything is computed" in error


def test_program_without_a_launcher_is_told_what_to_do():
    text = "import tenfold.distributed as d; d.init_process_group()"
    names = ("RANK", "WORLD_SIZE", "SLURM_PROCID")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment)
    assert "RANK is not set" in done.stderr and "tenfold launch" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ddp.py", "fsdp.py"])
def test_example_written_for_torchrun_runs(name):
    done = launched(EXAMPLES / name)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(each) for each in re.findall(r"loss ([\d.]+)", done.stdout)]
    assert len(losses) >= 3 and losses[-1] < losses[0]


@pytest.mark.slow
def test_killed_training_goes_on_from_its_last_checkpoint(tmp_path):
    totals = {}
    for what in ("nothing", "step", "save"):
        done = launched(SCRIPTS / "restarted.py", what, tmp_path / what, flags=("--max-restarts", "3"))
        found = re.search(r"total ([\d.]+) after restart (\d)", done.stdout)
        assert found, done.stdout + done.stderr
        totals[what] = found.group(1)
        assert found.group(2) == ("0" if what == "nothing" else "1")
        assert ("rank 1 was killed by SIGKILL; starting all 2 again" in done.stderr) is (what != "nothing")
    assert totals["step"] == totals["save"] == totals["nothing"]


@pytest.mark.slow
def test_gpt_over_two_processes_of_four_devices_trains_as_on_one_device():
    done = launched(SCRIPTS / "training.py", "data", "fully sharded", "tensor", "2x4", "4x2", devices=4)
    assert done.stdout.count("passed") == 2, done.stdout + done.stderr


@pytest.mark.slow
def test_processes_that_slurm_starts_work_together():
    job = {"SLURM_NTASKS": "2", "SLURM_JOB_ID": str(free_port() - 20000), "MASTER_ADDR": "127.0.0.1"}
    environment = {**os.environ, **job, "PYTHONPATH": os.pathsep.join(sys.path), "TENFOLD_CPU_DEVICES": "2"}
    running = [
        subprocess.Popen(
            [sys.executable, str(SCRIPTS / "collectives.py")],
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)},
        )
        for rank in range(2)
    ]
    try:
        assert all("passed" in each.communicate(timeout=300)[0] for each in running)
    finally:
        for each in running:
            each.kill()
            each.wait()
