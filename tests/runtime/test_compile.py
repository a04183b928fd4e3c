"""Compiled functions: signatures, containers, what is read and written outside, and refusals."""

import threading
from collections import Counter, OrderedDict, deque, namedtuple
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

import tenfold as tn
from tenfold.base.errors import ArgumentError, ShapeError, TraceError
from tenfold.runtime.executables import counting_compiles


def test_it_is_recorded_once_for_each_signature():
    calls = []

    @tn.compile
    def f(x):
        calls.append(x.shape)
        return x * 2 + 1

    for _ in range(3):
        assert f(tn.ones(2).eval()).tolist() == [3.0, 3.0]
        assert f(tn.ones(3).eval()).tolist() == [3.0, 3.0, 3.0]
    assert f(tn.ones(2, dtype=tn.int64)).dtype is tn.int64
    assert len(calls) == 3


def test_calls_after_the_first_compile_nothing():
    f = tn.compile(lambda x, y: (x @ y).relu().sum())
    x, y = tn.ones(3, 3).eval(), tn.ones(3, 3).eval()
    f(x, y).item()
    with counting_compiles() as compiles:
        for _ in range(4):
            assert f(x, y).item() == 27.0
    assert compiles == 0


Point = namedtuple("Point", "x y")


def test_containers_go_in_and_come_out():
    @tn.compile
    def f(batch, *, scale):
        x, y = batch["point"]
        return {"sum": x + y, "parts": [x * scale, (y, None)], "point": Point(y, x), "note": "static", "n": 3}

    result = f({"point": Point(tn.ones(2), tn.zeros(2))}, scale=2.0)
    assert list(result) == ["sum", "parts", "point", "note", "n"]
    assert result["sum"].tolist() == [1.0, 1.0]
    assert result["parts"][0].tolist() == [2.0, 2.0]
    assert result["parts"][1][1] is None
    assert type(result["point"]) is Point and result["point"].x.tolist() == [0.0, 0.0]
    assert result["note"] == "static" and result["n"] == 3
    ordered = tn.compile(lambda d: d)(OrderedDict(b=tn.ones(1), a=tn.zeros(1)))
    assert type(ordered) is OrderedDict and list(ordered) == ["b", "a"]


def test_python_numbers_and_strings_are_static():
    seen = []

    @tn.compile
    def f(x, power, mode):
        seen.append((power, mode))
        return x**power if mode == "pow" else x

    assert f(tn.tensor([3.0]), 2, "pow").tolist() == [9.0]
    assert f(tn.tensor([4.0]), 2, "pow").tolist() == [16.0]
    assert f(tn.tensor([3.0]), 3, "pow").tolist() == [27.0]
    assert f(tn.tensor([3.0]), 3, "none").tolist() == [3.0]
    assert len(seen) == 3


def test_1_and_true_are_different_static_arguments():
    f = tn.compile(lambda x, n: x * n)
    assert f(tn.tensor([True]), 1).dtype is tn.int64
    assert f(tn.tensor([True]), True).dtype is tn.bool


def test_tensors_that_it_writes_are_updated():
    count = tn.zeros(2)
    history = tn.zeros(3, 2)

    @tn.compile
    def step(x, i):
        count.add_(x)
        history[i] = count
        return count * 10

    for i in range(3):
        assert step(tn.tensor([1.0, 2.0]), i).tolist() == [10.0 * (i + 1), 20.0 * (i + 1)]
    assert count.tolist() == [3.0, 6.0]
    assert history.tolist() == [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]


def test_views_of_written_tensors_see_the_write():
    base = tn.zeros(2, 2)
    row = base[1]
    f = tn.compile(lambda: base.add_(1).sum())
    assert f().item() == 4.0
    assert row.tolist() == [1.0, 1.0]
    assert f().item() == 8.0
    assert row.tolist() == [2.0, 2.0]
    g = tn.compile(lambda: row.mul_(10).sum())
    assert g().item() == 40.0
    assert base.tolist() == [[2.0, 2.0], [20.0, 20.0]]


def test_arguments_that_it_writes_are_the_callers():
    @tn.compile
    def f(x):
        x[0] = 7.0
        x.add_(1)
        return x.sum()

    mine = tn.zeros(3)
    assert f(mine).item() == 10.0
    assert mine.tolist() == [8.0, 1.0, 1.0]
    assert f(mine).item() == 12.0


def test_random_state_moves_on():
    f = tn.compile(lambda: tn.rand(4))
    tn.manual_seed(3)
    first, second = f().tolist(), f().tolist()
    assert first != second
    tn.manual_seed(3)
    assert f().tolist() == first
    tn.manual_seed(3)
    assert tn.rand(4).tolist() == first


def test_an_exception_leaves_everything_as_it_was():
    state = tn.zeros(2)

    @tn.compile
    def f(x):
        state.add_(1)
        return x + tn.ones(5)

    with pytest.raises(ShapeError):
        f(tn.ones(2))
    assert state.tolist() == [0.0, 0.0]
    assert (tn.ones(2) + 1).tolist() == [2.0, 2.0]


def test_asking_for_a_value_says_where_and_what_instead():
    @tn.compile(fullgraph=True)
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(TraceError) as caught:
        f(tn.ones(3))
    text = str(caught.value)
    assert "if x.sum() > 0:" in text and "test_compile.py" in text and "tn.where" in text


@pytest.mark.parametrize(
    "ask", [lambda x: x.item(), lambda x: x.tolist(), lambda x: x.numpy(), lambda x: int(x)]
)
def test_every_way_to_ask_is_refused_in_a_full_graph(ask):
    with pytest.raises(TraceError):
        tn.compile(lambda x: x + ask(x.sum()), fullgraph=True)(tn.ones(3))


@dataclass
class Batch:
    data: object
    factor: object = 1

    def scaled(self):
        return self.data * self.factor * FACTOR


@dataclass(slots=True)
class SlottedBatch(Batch):
    pass


FACTOR = 2


@pytest.mark.parametrize(
    "function, make",
    [
        (lambda x, taken: x[taken], lambda n: slice(n, n + 2)),
        (lambda x, taken: x[taken[0]], lambda n: [slice(None, n)]),
        (lambda x, batch: batch.scaled() + x, lambda n: Batch(tn.full((6,), n), n)),
        (lambda x, batch: batch.scaled() + x, lambda n: SlottedBatch(tn.full((6,), n), n)),
        (lambda x, batch: Batch(x, batch.data["k"].data), lambda n: Batch({"k": Batch(tn.full((6,), n))})),
        (lambda x, numbers: x * len(numbers) + sum(numbers), lambda n: {n, 2.5}),
        (lambda x, words: x + len(words), lambda n: {"word": set("abcd"[:n])}),
        (lambda x, tensors: x + sum(tensors), lambda n: {tn.full((6,), n)}),
        (lambda x, queue: deque([queue[0] * x], queue.maxlen), lambda n: deque([tn.ones(6), 1], n)),
        (lambda x, space: x * space.k, lambda n: SimpleNamespace(k=tn.full((6,), n))),
        (lambda x, counts: x * counts["k"], lambda n: Counter(k=n)),
        (lambda x, mapping: x * mapping["k"], lambda n: MappingProxyType({"k": n})),
    ],
)
def test_containers_of_every_kind_are_arguments_and_results(function, make):
    compiled = tn.compile(function, fullgraph=True)
    x = tn.arange(6.0).eval()
    for n in (2, 3, 2, 4):
        assert repr(compiled(x, make(n))) == repr(function(x, make(n)))


def test_a_dataclass_of_other_tensors_needs_no_other_program():
    calls = []

    @tn.compile
    def f(batch):
        calls.append(batch)
        return batch.data * batch.factor

    for kind in (Batch, SlottedBatch):
        for n in range(4):
            assert f(kind(tn.full((2,), n), 3)).tolist() == [3 * n] * 2
    assert len(calls) == 2


def test_what_methods_of_a_dataclass_reach_is_compared(monkeypatch):
    f = tn.compile(lambda batch: batch.scaled())
    assert f(Batch(tn.ones(1))).item() == 2
    monkeypatch.setitem(globals(), "FACTOR", 5)
    assert f(Batch(tn.ones(1))).item() == 5


@pytest.mark.parametrize("first", ["parameter", "plain"])
def test_without_gradients_a_parameter_and_a_plain_tensor_are_told_apart(first):
    f = tn.compile(lambda p: p * 1 if p.grad is None else p - p.grad)
    parameter, plain = tn.nn.Parameter(tn.ones(2)), tn.ones(2)
    parameter.grad = tn.ones(2) * 3
    expected = {"parameter": (parameter, [-2, -2]), "plain": (plain, [1, 1])}
    with tn.no_grad():
        for name, (tensor, values) in sorted(expected.items(), key=lambda each: each[0] != first):
            assert f(tensor).tolist() == values, name


def test_an_argument_that_contains_itself_is_refused():
    batch = Batch(tn.ones(1))
    batch.factor = [batch]
    with pytest.raises(ArgumentError, match="contains itself"):
        tn.compile(lambda x: x.data)(batch)


def test_unhashable_static_arguments_are_refused():
    with pytest.raises(ArgumentError, match="hashable"):
        tn.compile(lambda x, options: x)(tn.ones(2), bytearray(2))


def test_a_function_that_does_nothing_to_tensors_is_refused():
    with pytest.raises(TraceError, match="neither returns nor changes"):
        tn.compile(lambda x: 3)(tn.ones(2))


def test_compiled_functions_nest_and_are_methods():
    class Model:
        def __init__(self):
            self.weight = tn.full((2,), 3.0)

        @tn.compile
        def forward(self, x):
            return inner(x) * self.weight

    inner = tn.compile(lambda x: x + 1)
    assert Model().forward(tn.ones(2)).tolist() == [6.0, 6.0]


def test_results_of_one_call_are_arguments_of_the_next():
    f = tn.compile(lambda x, y: x + y)
    x, y = tn.ones(3), tn.full((3,), 0.5)
    for _ in range(10):
        x = f(x, y)
    assert x.tolist() == [6.0, 6.0, 6.0]
    assert f(x, x).tolist() == [12.0, 12.0, 12.0]


def test_the_default_dtype_is_part_of_the_signature():
    f = tn.compile(lambda x: x / 2)
    assert f(tn.tensor([1])).dtype is tn.float32
    tn.set_default_dtype(tn.float64)
    try:
        assert f(tn.tensor([1])).dtype is tn.float64
    finally:
        tn.set_default_dtype(tn.float32)


def test_other_threads_compute_while_one_records():
    started, finished = threading.Event(), threading.Event()
    results = []

    def other():
        started.wait(10)
        results.append((tn.ones(3) * 5).sum().item())
        finished.set()

    thread = threading.Thread(target=other)
    thread.start()

    @tn.compile
    def f(x):
        started.set()
        assert finished.wait(30)
        return x + 1

    assert f(tn.ones(2)).tolist() == [2.0, 2.0]
    thread.join()
    assert results == [15.0]


def test_a_tensor_that_gains_views_while_it_is_written_is_put_back():
    w = tn.zeros(2)

    @tn.compile
    def f(x):
        w.add_(1)
        w[0].add_(x)
        return w * 1

    assert f(tn.tensor(5.0)).tolist() == [6.0, 1.0]
    assert w.tolist() == [6.0, 1.0]
    assert f(tn.tensor(5.0)).tolist() == [12.0, 2.0]


@pytest.mark.parametrize(
    "change",
    [
        lambda w, x: w.t_(),
        lambda w, x: w.squeeze_(),
        lambda w, x: setattr(w, "data", x),
        lambda w, x: tn.add(x, 1, out=w),
    ],
)
def test_another_shape_for_a_tensor_from_outside_is_refused(change):
    w = tn.zeros(1, 3).eval()
    with pytest.raises(TraceError, match="another shape or memory"):
        tn.compile(lambda x: (change(w, x), x * 2)[1])(tn.ones(2))
    assert w.tolist() == [[0.0, 0.0, 0.0]]


def test_values_of_tensors_from_outside_are_not_frozen_into_the_program():
    mask = tn.tensor([1, 0, 1])
    with pytest.raises(TraceError, match="the value of a traced tensor was asked for"):
        tn.compile(lambda x: x * mask.sum().item(), fullgraph=True)(tn.ones(3))
    scaled = tn.compile(lambda x: x * mask.sum().item())
    with pytest.warns(UserWarning, match="runs as it is written"):
        assert scaled(tn.ones(3)).tolist() == [2, 2, 2]
    mask[1] = 1
    assert scaled(tn.ones(3)).tolist() == [3, 3, 3]
    assert "runs as it is written because" in scaled.guards()


@pytest.mark.filterwarnings("ignore:compile")
def test_a_function_that_came_to_need_a_value_is_not_recorded_at_each_call():
    needs, calls = [False], []

    @tn.compile
    def scaled(x):
        calls.append(1)
        return x * x.sum().item() if needs[0] else x * 2

    scaled(tn.ones(3))
    needs[0] = True
    scaled(tn.ones(3))
    calls.clear()
    assert [scaled(tn.ones(3)).tolist() for _ in range(3)] == [[3, 3, 3]] * 3
    assert len(calls) == 3


@pytest.mark.filterwarnings("ignore:compile")
def test_a_function_that_decides_by_a_value_runs_as_it_is_written():
    weight = tn.ones(2, requires_grad=True)
    count = tn.zeros(1)

    @tn.compile
    def step(x):
        count.add_(1)
        if x.sum() > 0:
            (weight * x).sum().backward()
            return x[int(x.argmax()) :]
        return -x

    assert step(tn.tensor([1.0, 3.0])).tolist() == [3]
    assert step(tn.tensor([-1.0, -3.0])).tolist() == [1, 3]
    assert step(tn.tensor([5.0, 3.0])).tolist() == [5, 3]
    assert count.tolist() == [3] and weight.grad.tolist() == [6, 6]


@pytest.mark.filterwarnings("ignore:compile")
def test_sizes_by_tensors_from_outside_are_not_frozen_into_the_program():
    mask = tn.tensor([1, 0, 1])
    counted = tn.compile(lambda x: x + len(mask.nonzero()))
    assert counted(tn.ones(2)).tolist() == [3, 3]
    mask[1] = 1
    assert counted(tn.ones(2)).tolist() == [4, 4]


def test_a_mask_from_outside_is_looked_at_in_each_call():
    mask = tn.tensor([True, False, True])
    chosen = tn.compile(lambda x: x[mask])
    assert chosen(tn.tensor([1, 2, 3])).tolist() == [1, 3]
    mask[0] = False
    assert chosen(tn.tensor([1, 2, 3])).tolist() == [3]


def test_negative_zero_is_another_static_argument():
    f = tn.compile(lambda x, n: x * n)
    assert (1 / f(tn.ones(1), 0.0)).tolist() == [float("inf")]
    assert (1 / f(tn.ones(1), -0.0)).tolist() == [float("-inf")]


def test_threads_lose_no_update_of_a_compiled_function():
    count = tn.zeros(1)

    @tn.compile
    def step(x):
        count.add_(1)
        return x + count

    step(tn.ones(1))
    threads = [threading.Thread(target=lambda: [step(tn.ones(1)) for _ in range(25)]) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert count.item() == 101.0


def test_a_tensor_that_leaks_out_of_the_recording_says_so():
    leaked = set()

    @tn.compile
    def f(x):
        leaked.add(x * 2)
        return x + 1

    f(tn.ones(2))
    with pytest.raises(TraceError, match="has no value outside of it"):
        leaked.pop().tolist()


@pytest.mark.usefixtures("on_xla")
def test_a_modules_settings_and_parts_are_part_of_what_is_compiled():
    x = tn.tensor([-1.0, 2.0])
    model = tn.nn.Sequential(tn.nn.LeakyReLU(0.5), tn.nn.Identity())
    f = tn.compile(lambda x: model(x))
    assert f(x).tolist() == [-0.5, 2.0]
    model[0].negative_slope = 0.25
    assert f(x).tolist() == [-0.25, 2.0]
    model[1] = tn.nn.Sigmoid()
    assert f(x).tolist() == model(x).tolist()


def test_an_optimizers_state_may_be_cleared_or_replaced():
    def trained(wrap):
        w = tn.nn.Parameter(tn.ones(2))
        optimizer = tn.optim.SGD([w], lr=0.1, momentum=0.9)

        def step():
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()

        run = wrap(step)
        for i in range(6):
            if i == 2:
                optimizer.state.clear()
            if i == 4:
                optimizer.state[w]["momentum_buffer"] = tn.full((2,), 5.0)
            run()
        return w.tolist()

    np.testing.assert_allclose(trained(tn.compile), trained(lambda step: step), rtol=1e-6)


def test_threads_may_read_what_another_writes():
    w = tn.ones(64, 64)
    grow = tn.compile(lambda: w.mul_(1.0))
    read = tn.compile(lambda x: (x @ w).sum())
    x = tn.ones(2, 64)
    failures = []

    def reader():
        try:
            for _ in range(200):
                read(x).item()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=reader) for _ in range(2)]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        grow()
    assert failures == []


def test_a_compiled_function_sees_whether_gradients_are_followed() -> None:
    doubled = tn.compile(lambda x: x * 2 if tn.is_grad_enabled() else x * 3)
    x = tn.ones(2).eval()
    assert [doubled(x)[0].item() for _ in range(2)] == [2, 2]
    with tn.no_grad():
        assert [doubled(x)[0].item() for _ in range(2)] == [3, 3]
    assert doubled(x)[0].item() == 2


class Settings(tn.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.divisor: float = 2
        self.sizes = [2]
        self.options = {"scale": 1.0}
        self.pair = (tn.ones(2), 2.0)

    def forward(self, x):
        divided = x / self.divisor if isinstance(self.divisor, float) else x // self.divisor
        return divided * self.sizes[0] * self.options["scale"] + self.pair[0] * self.pair[1]


def test_attributes_of_a_module_are_compared_exactly_and_with_what_is_in_them() -> None:
    module = Settings()
    compiled, x = tn.compile(module), tn.tensor([3.0, 5.0])
    compiled(x)
    for change in (
        lambda: setattr(module, "divisor", 2.0),
        lambda: setattr(module, "divisor", -0.0),
        lambda: setattr(module, "divisor", 0.0),
        lambda: module.sizes.__setitem__(0, 3),
        lambda: module.options.update(scale=5.0),
        lambda: setattr(module, "pair", (tn.ones(2) * 2, 2.0)),
        lambda: setattr(module, "pair", (module.pair[0], 4.0)),
    ):
        change()
        assert compiled(x).tolist() == module(x).tolist()


def test_attributes_of_an_object_that_is_an_argument_are_compared() -> None:
    class Holder:
        tensor, factor = tn.ones(2), 2.0

    holder = Holder()
    holder.tensor, holder.factor = tn.ones(2), 2.0
    scaled = tn.compile(lambda each: each.tensor * each.factor)
    assert scaled(holder).tolist() == [2, 2]
    holder.tensor = tn.ones(2) * 10
    assert scaled(holder).tolist() == [20, 20]
    holder.factor = 3.0
    assert scaled(holder).tolist() == [30, 30]


def test_keys_of_dicts_are_told_apart_by_type() -> None:
    function = tn.compile(lambda named: named[1] * (2 if next(iter(named)) is True else 3))
    x = tn.ones(1)
    assert [function({key: x}).item() for key in (1, True, 1)] == [3, 2, 3]


def test_a_loop_over_numbers_does_not_fill_the_memory() -> None:
    scaled = tn.compile(lambda x, factor: x * factor)
    x = tn.ones(2)
    for i in range(1200):
        scaled(x, i * 0.5)
    assert scaled(x, 4.0).tolist() == [4, 4]
    assert len(scaled.programs._recorded) <= 512


SCALE = 2.0


def test_variables_that_the_code_reads_are_compared(monkeypatch) -> None:
    offset, sizes = 1, [3.0]
    function = tn.compile(lambda x: x * SCALE + offset + sizes[0])
    x = tn.ones(1)
    assert function(x).item() == 6
    offset = 5
    assert function(x).item() == 10
    sizes[0] = 0.0
    assert function(x).item() == 7
    monkeypatch.setitem(globals(), "SCALE", 10.0)
    assert function(x).item() == 15
