"""`mode="reduce-overhead"`: small inputs and results have places that stay, and nobody sees a difference. The
CPU has no use for it, but runs it for these tests as a GPU does."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold import nn
from tenfold.engines import xla
from tenfold.runtime import checks, executables, reduced_overhead

CACHE = (2, 4, 256, 16)


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch):
    monkeypatch.setattr(reduced_overhead, "PLATFORMS", reduced_overhead.PLATFORMS)
    reduced_overhead.PLATFORMS.add("cpu")
    yield
    reduced_overhead.PLATFORMS.discard("cpu")


def executable(compiled):
    (variants,) = compiled.programs._recorded.values()
    found = variants[0].loaded.executable
    assert isinstance(found, reduced_overhead.Steady)
    return found


def pointers(buffers):
    return [each.unsafe_buffer_pointer() for each in buffers]


def test_results_stay_as_they_are_when_the_next_call_runs():
    step = tn.compile(lambda x: (x + 1, x * 2), mode="reduce-overhead")
    first = step(tn.ones(3))
    second = step(tn.full((3,), 5.0))
    assert [each.tolist() for each in first] == [[2] * 3, [2] * 3]
    assert [each.tolist() for each in second] == [[6] * 3, [10] * 3]


def test_inputs_and_results_keep_their_places():
    step = tn.compile(lambda x, y: x @ y, mode="reduce-overhead")
    y = tn.eye(8).eval()
    inputs = [
        tn.full((8, 8), float(i)).eval() for i in range(3)
    ]  # all there at once, so at places of their own
    for i, x in enumerate(inputs):
        assert step(x, y).sum().item() == 64 * i
    found = executable(step)
    assert found._varying == [0]  # y is the same at every call
    before = pointers(found._slots), pointers(found._places)
    held = [step(tn.full((8, 8), float(i)), y) for i in range(4)]
    assert (pointers(found._slots), pointers(found._places)) == before
    assert [each[0, 0].item() for each in held] == [0, 1, 2, 3]


def test_memory_of_results_that_nobody_holds_is_used_again():
    step = tn.compile(lambda x: x * 2, mode="reduce-overhead")
    for i in range(4):
        step(tn.full((3,), float(i)))
    places = {step(tn.full((3,), float(i))).data_ptr() for i in range(6)}
    assert len(places) <= 2
    held = [step(tn.full((3,), float(i))) for i in range(12)]
    assert len({each.data_ptr() for each in held}) == 12
    assert [each[0].item() for each in held] == [2 * i for i in range(12)]


def test_a_token_may_be_fed_back_and_the_cache_is_written_in_place():
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("cache", tn.zeros(CACHE))

        def forward(self, token, position):
            self.cache.index_copy_(2, position, token.float().expand(2, 4, 1, 16))
            return token + self.cache.amax().long(), position + 1

    model = Decoder()
    step = tn.compile(model, mode="reduce-overhead")
    token, position = tn.ones(1, dtype=tn.int64), tn.zeros(1, dtype=tn.int64)
    tokens = []
    for _ in range(6):
        token, position = step(token, position)
        tokens.append(token)
    assert [each.item() for each in tokens] == [2, 4, 8, 16, 32, 64]
    assert model.cache[0, 0, :7, 0].tolist() == [1, 2, 4, 8, 16, 32, 0]


def test_a_loop_that_passes_on_what_it_was_given_copies_nothing(monkeypatch):
    step = tn.compile(lambda x, y: (x + y, y * 1), mode="reduce-overhead")
    x, y = tn.zeros(3).eval(), tn.ones(3).eval()
    kept = []
    for i in range(40):
        x, y = step(x, y)
        if i == 20:
            kept.append(x)  # from now on its memory is not used again
        if i == 30:
            found = executable(step)
            assert 0 < len(found._bound) <= reduced_overhead.GRAPHS
            monkeypatch.setattr(found, "_copying", None)
    assert x.tolist() == [40.0] * 3 and kept[0].tolist() == [21.0] * 3


def test_a_loop_comes_back_to_its_graphs_after_results_were_held_for_a_while(monkeypatch):
    step = tn.compile(lambda x, y: (x + y, y * 1), mode="reduce-overhead")
    x, y = tn.zeros(3).eval(), tn.ones(3).eval()
    kept = []
    for i in range(40):
        x, y = step(x, y)
        if 15 <= i < 20:
            kept.append((x, y))
        if i == 20:
            kept.clear()
        if i == 25:
            monkeypatch.setattr(executable(step), "_copying", None)
    assert x.tolist() == [40.0] * 3


def test_nothing_is_kept_of_calls_without_small_results():
    state = tn.zeros(600, 600)

    def update():
        state.add_(1.0)

    step = tn.compile(update, mode="reduce-overhead")
    for _ in range(12):
        step()
    assert executable(step)._given == [] and state[0, 0].item() == 12


def test_a_program_from_disk_serves_a_loop_too(monkeypatch, tmp_path):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path))
    for _ in range(2):  # the second time from disk
        step = tn.compile(lambda x: x * 3 + 1, mode="reduce-overhead")
        x = tn.zeros(3).eval()
        for _ in range(8):
            x = step(x)
        assert x.tolist() == [3280.0] * 3
        executables.forget("cpu")


def test_a_check_that_fails_raises_and_leaves_the_state():
    cache = tn.zeros(CACHE)
    row = tn.ones(2, 4, 1, 16)
    step = tn.compile(lambda p, row: cache.index_copy_(2, p, row).sum(), mode="reduce-overhead")
    assert step(tn.tensor([1]), row).item() == row.numel()
    with pytest.raises(IndexError):
        step(tn.tensor([300]), row).item()
    assert step(tn.tensor([2]), row).item() == 2 * row.numel()


def writer(cache):
    step = tn.compile(lambda place, row: cache.index_copy_(0, place, row), mode="reduce-overhead")
    return lambda place, value: step(tn.tensor([place]), tn.full((1, 500), float(value)))


def test_after_a_check_that_failed_nothing_is_written_until_its_error_is_raised():
    cache = tn.zeros(64, 500)
    write = writer(cache)
    write(1, 7)
    write(99, 8)
    later = []
    with pytest.raises(IndexError):
        for _ in range(2 * checks.RUNS):
            write(2, 9)
            later.append(1)
    assert len(later) <= checks.RUNS + checks.AHEAD
    assert cache[:6, 0].tolist() == [0, 7, 0, 0, 0, 0]
    write(3, 5)
    assert cache[:6, 0].tolist() == [0, 7, 0, 5, 0, 0]


def test_reading_state_tells_of_a_check_that_failed_in_the_last_run():
    cache = tn.zeros(64, 500)
    write = writer(cache)
    for place in (0, 1, 2, -65):
        write(place, place)
    with pytest.raises(IndexError):
        cache.tolist()
    assert cache[:6, 0].tolist() == [0, 1, 2, 0, 0, 0]


def test_few_verdicts_are_read(monkeypatch):
    cache = tn.zeros(64, 500)
    write = writer(cache)
    write(0, 1)
    cache.tolist()
    reads = []
    number = xla.number
    monkeypatch.setattr(xla, "number", lambda *arguments: reads.append(1) or number(*arguments))
    for place in range(4 * checks.RUNS):
        write(place, place)
    assert len(reads) == 3  # the last is on its way
    assert cache[:, 0].tolist() == [*range(32), *[0] * 32]


def test_a_loop_with_checks_copies_nothing(monkeypatch):
    table = tn.arange(512.0).eval()
    step = tn.compile(lambda place: (place + 1, table[place]), mode="reduce-overhead")
    place = tn.zeros(1, dtype=tn.int64).eval()
    for i in range(300):
        place, value = step(place)
        if i == 150:
            found = executable(step)
            assert 0 < len(found._bound) <= reduced_overhead.GRAPHS
            monkeypatch.setattr(found, "_copying", None)
    assert (place.item(), value.item()) == (300, 299)


def test_large_arrays_are_passed_as_they_are():
    x = tn.ones(600, 600)
    step = tn.compile(lambda x: x * 2, mode="reduce-overhead")
    for _ in range(3):
        assert step(x + 0).sum().item() == 720_000
    assert executable(step)._varying == []


def test_on_other_devices_the_mode_changes_nothing():
    reduced_overhead.PLATFORMS.discard("cpu")
    step = tn.compile(lambda x: x * 2, mode="reduce-overhead")
    assert step(tn.ones(2)).tolist() == [2, 2]
    (variants,) = step.programs._recorded.values()
    assert not isinstance(variants[0].loaded.executable, reduced_overhead.Steady)
