"""The tiers at work: cold programs run at once, hot ones are compiled in the background."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import torch

import tenfold as tn
from tenfold.runtime import executables, lazy_sizes, runs, tiers
from tenfold.runtime.background import background
from tenfold.runtime.executables import counting_compiles

pytestmark = pytest.mark.usefixtures("on_all_tiers")


@pytest.fixture(autouse=True)
def nothing_seen_before(monkeypatch):
    background.wait()
    for name in ("_seen", "_records"):
        monkeypatch.setattr(runs, name, type(getattr(runs, name))())
    monkeypatch.setattr(lazy_sizes, "_families", type(lazy_sizes._families)())
    monkeypatch.setattr(executables, "_executables", {})
    monkeypatch.setattr(executables, "_opened", {})
    monkeypatch.setattr(tiers, "PATIENCE", 0)  # what is seen twice is compiled
    yield
    background.wait()


def steps(x, count=40):
    """A program that is not small: so many ops, each on the result of the last."""
    for _ in range(count // 2):
        x = (x * x).cos()
    return x


def test_a_program_that_is_seen_for_the_first_time_is_not_compiled():
    with counting_compiles() as compiles:
        assert steps(tn.zeros(3)).tolist() == pytest.approx(steps(torch.zeros(3)).tolist(), 1e-6)
    assert compiles == 0
    assert "it is seen for the first time" in tn.explain_runs()


def test_a_small_program_is_never_compiled():
    x = tn.ones(3).eval()
    with counting_compiles() as compiles:
        for _ in range(50):
            assert (x * 2).sum().item() == 6
    assert compiles == 0
    assert "small programs, op by op" in tn.explain_runs()


def test_tier_0_runs_other_sizes_until_one_program_for_all_is_compiled():
    with counting_compiles() as compiles:
        for size in (20, 25, 31, 18, 29, 24):
            assert steps(tn.ones(size)).sum().item() == pytest.approx(steps(torch.ones(size)).sum().item())
            background.wait()
    assert compiles == 1
    assert "its sizes change" in tn.explain_runs()


def test_new_sizes_at_every_iteration_compile_nothing():
    with counting_compiles() as compiles:
        for n in range(1, 20):
            assert (tn.ones(n, 3) * 2).sum().item() == 6 * n
        background.wait()
    assert compiles == 0


def test_a_long_chain_of_ops_is_no_small_program():
    x = tn.zeros(2)
    for _ in range(5000):
        x = x + 1
    assert x.tolist() == [5000, 5000]


def test_workers_of_a_loader_that_read_numbers_lead_to_no_compile_after_the_first_epochs():
    class Rows(tn.utils.data.Dataset):
        def __init__(self):
            self.x = tn.randn(128, 8).eval()

        def __len__(self):
            return 128

        def __getitem__(self, place):
            row = self.x[place]
            return row * row.sum().item(), row.mean()

    model = tn.nn.Sequential(tn.nn.Linear(8, 16), tn.nn.Tanh(), tn.nn.Linear(16, 1))
    optimizer = tn.optim.Adam(model.parameters())
    counts = []  # by epoch: when a step is worth compiling depends on how long it takes
    for _ in range(4):
        with counting_compiles() as compiles:
            for x, y in tn.utils.data.DataLoader(Rows(), batch_size=16, num_workers=4):
                optimizer.zero_grad()
                loss = (model(x).squeeze(1) - y).square().mean()
                loss.backward()
                optimizer.step()
                loss.item()
        counts.append(int(compiles))
    assert sum(counts) <= 3 and not any(counts[2:])


def test_a_program_that_is_seen_again_is_compiled_in_the_background():
    def twice(x):
        return steps(x).sum().item()

    x = tn.linspace(0, 1, 7).eval()
    first = twice(x)
    with counting_compiles() as compiles:
        assert twice(x) == first
        background.wait()
        assert compiles == 1
        assert twice(x) == pytest.approx(first, rel=1e-6)
    assert compiles == 1
    assert "it is seen again" in tn.explain_runs()


def test_a_program_is_not_compiled_before_it_has_taken_a_part_of_the_time_that_takes(monkeypatch):
    monkeypatch.setattr(tiers, "PATIENCE", 0.05)
    x = tn.linspace(0, 1, 7).eval()
    with counting_compiles() as compiles:
        for _ in range(5):
            steps(x).sum().item()
    assert compiles == 0
    with counting_compiles() as compiles:
        for _ in range(100):
            steps(x).sum().item()
    assert compiles == 1


def test_a_loop_over_numbers_is_compiled_once_for_all_of_them():
    x = tn.ones(4).eval()
    with counting_compiles() as compiles:
        for i in range(6):
            expected = steps(torch.full((4,), i + 0.5)).sum().item()
            assert steps(x * (i + 0.5)).sum().item() == pytest.approx(expected, 1e-5)
            background.wait()
    assert compiles == 1


def test_a_program_that_repeats_itself_is_compiled_with_its_numbers(monkeypatch):
    opened = []
    submit = lambda trace, device, donated, opens: opened.append(opens) or ""
    monkeypatch.setattr(executables, "build_in_background", submit)
    x = tn.ones(4).eval()
    for number in (2.5, 2.5, 3.5):
        steps(x * number).eval()
    assert opened == [False, True]


def test_work_that_takes_longer_than_to_compile_is_compiled_at_once():
    x = tn.ones(1500, 1500).eval()
    with counting_compiles() as compiles:
        (x @ x @ x).sum().item()
    assert compiles == 1
    assert "one run on tier 0 would take longer" in tn.explain_runs()


def test_training_is_the_same_on_all_tiers(choose_tier):
    def losses():
        tn.manual_seed(0)
        model = tn.nn.Sequential(tn.nn.Linear(4, 8), tn.nn.Tanh(), tn.nn.Dropout(0.2), tn.nn.Linear(8, 1))
        optimizer = tn.optim.Adam(model.parameters(), lr=0.01)
        x, found = tn.randn(16, 4), []
        for i in range(6):
            optimizer.zero_grad()
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
            if i == 2:
                background.wait()
        return found

    mixed = losses()
    assert {"numpy", "background"} <= {line.split()[2] for line in tn.explain_runs().splitlines()}
    choose_tier("xla")
    assert losses() == pytest.approx(mixed, rel=1e-5)


def test_a_check_that_fails_on_tier_0_is_the_error_that_it_is_elsewhere():
    with pytest.raises(IndexError, match="index"):
        tn.ones(3)[tn.tensor([5])].eval()


def test_a_write_in_place_is_seen_by_every_view_on_tier_0():
    x = tn.zeros(4)
    view = x[1:3]
    x.add_(1)
    view.mul_(3)
    assert x.tolist() == [1, 3, 3, 1]
    held = x.numpy()
    x.add_(1)
    assert x.tolist() == [2, 4, 4, 2]
    assert held.tolist() in ([1, 3, 3, 1], [2, 4, 4, 2])


def test_a_tier_can_be_forced(choose_tier):
    choose_tier("numpy")
    with counting_compiles() as compiles:
        for _ in range(4):
            tn.ones(3).sum().item()
        background.wait()
    assert compiles == 0
    choose_tier("quick")
    with pytest.raises(ValueError, match="names no tier"):
        tn.ones(3).cos().eval()


def test_other_threads_compute_while_a_program_is_compiled():
    x, failed = tn.linspace(0, 1, 9).eval(), []

    def work(k):
        for _ in range(30):
            if abs((x * k).sum().item() - 4.5 * k) > 1e-4:
                failed.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed


@pytest.mark.parametrize("import_blocked", [True, False])
def test_small_programs_need_no_jaxlib(import_blocked):
    code = (
        "import sys\n"
        + ("sys.modules['jaxlib'] = None\n" if import_blocked else "")
        + "import tenfold as tn\n"
        "print((tn.ones(2, 3) @ tn.ones(3, 2)).sum().item(), 'jaxlib.mlir' in sys.modules)"
    )
    environment = {"PATH": "/usr/bin", "PYTHONPATH": ":".join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert found.stdout.split() == ["12.0", "False"], found.stderr


@pytest.fixture
def deterministic():
    tn.use_deterministic_algorithms(True)
    yield
    tn.use_deterministic_algorithms(False)


def test_deterministic_programs_run_on_one_tier_at_every_size(deterministic):
    """A result has the same bits whatever ran before it: nothing is open, and nothing runs on tier 0."""
    alone = steps(tn.linspace(0, 1, 25)).sum().item()
    executables._executables.clear()
    for size in (20, 31, 18, 29, 25):
        last = steps(tn.linspace(0, 1, size)).sum().item()
    assert last == alone
    assert not any(family.programs for family in lazy_sizes._families.values())
    assert {record.reason for record, _ in runs.records()} == {
        "use_deterministic_algorithms keeps to one tier"
    }


def test_deterministic_compiled_functions_open_no_sizes(deterministic):
    function = tn.compile(lambda x: steps(x).sum())
    alone = tn.compile(lambda x: steps(x).sum())(tn.linspace(0, 1, 25)).item()
    for size in (20, 31, 25):
        last = function(tn.linspace(0, 1, size)).item()
    assert last == alone
    assert "any size" not in function.guards()


def test_programs_that_were_compiled_before_are_compiled_anew_when_results_must_be_deterministic():
    function = tn.compile(lambda x: steps(x).sum())
    x = tn.ones(9).eval()
    function(x)
    with counting_compiles() as compiles:
        tn.use_deterministic_algorithms(True)
        try:
            function(x)
        finally:
            tn.use_deterministic_algorithms(False)
    assert compiles == 1
