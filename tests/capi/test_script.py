"""TorchScript modules, traced callbacks, compiled packages and whole training steps through libtenfold."""

from __future__ import annotations

import ctypes
import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.jit.mobile import _load_for_lite_interpreter

from tenfold.base.errors import EngineError, TenfoldError, UnknownName
from tests.capi.bridge import Bridge, Handle, handles

TRACED = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_int64,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_int64,
    ctypes.c_void_p,
)
INPUT = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        self.norm = torch.nn.BatchNorm1d(2)
        self.scale = 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.layer(x))

    @torch.jit.export
    def pair(self, x: torch.Tensor, times: int = 2) -> tuple[torch.Tensor, int]:
        return x * times, times


@pytest.fixture(scope="module")
def scripted() -> torch.jit.ScriptModule:
    torch.manual_seed(4)
    return torch.jit.script(Small())


@pytest.fixture(scope="module")
def saved(scripted: torch.jit.ScriptModule) -> bytes:
    buffer = io.BytesIO()
    torch.jit.save(scripted, buffer)
    return buffer.getvalue()


def load(tn: Bridge, data: bytes) -> int:
    return tn.tn_module_load_data(data, len(data), None)


def test_a_module_runs_as_in_pytorch(tn: Bridge, scripted: Any, saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "small.pt"
    path.write_bytes(saved)
    module = tn.tn_module_load(str(path).encode(), None)
    tn.tn_module_train(module, False)
    assert tn.tn_module_is_training(module) == 0
    reference = torch.jit.load(io.BytesIO(saved)).eval()
    result = tn.keep(tn.tn_module_forward(module, *handles([tn.tensor(INPUT)])))
    np.testing.assert_allclose(tn.array(result), reference(torch.tensor(INPUT)).detach().numpy(), rtol=1e-5)
    tn.tn_module_free(module)


def test_methods_take_a_stack_and_have_defaults(tn: Bridge, saved: bytes) -> None:
    module = load(tn, saved)
    stack = tn.tn_stack_new()
    tn.tn_stack_push_tensor(stack, tn.tensor(INPUT))
    tn.tn_module_call(module, b"pair", stack)
    assert tn.tn_stack_count(stack) == 1
    pair = tn.tn_stack_at(stack, 0)
    assert tn.text("tn_value_type", pair) == "(Tensor, int)"
    first = tn.tn_value_at(pair, 0)
    np.testing.assert_array_equal(tn.array(tn.keep(tn.tn_value_to_tensor(first))), INPUT * 2)
    for name, message in ((b"nothing", "no method nothing: it has .*forward"), (b"pair", "Expected a value")):
        tn.tn_stack_clear(stack)
        tn.tn_stack_push_string(stack, b"no tensor")
        with pytest.raises(TenfoldError, match=message):
            tn.tn_module_call(module, name, stack)
        assert tn.tn_stack_count(stack) == 0
    for each in (first, pair):
        tn.tn_value_free(each)
    tn.tn_stack_free(stack)
    tn.tn_module_free(module)


def test_functions_of_a_source_become_methods(tn: Bridge) -> None:
    source = b"def twice(x):\n  return x * 2\n\ndef forward(x, by: int = 1):\n  return twice(x) + by"
    module = tn.tn_module_compile(source)
    result = tn.keep(tn.tn_module_forward(module, *handles([tn.tensor(INPUT)])))
    np.testing.assert_allclose(tn.array(result), INPUT * 2 + 1)
    tn.tn_module_free(module)
    for wrong, message in ((b"def f(x) return", "expected"), (b"", "no function")):
        with pytest.raises(TenfoldError, match=message):
            tn.tn_module_compile(wrong)


def test_a_list_that_lies_in_itself_is_told_of(tn: Bridge) -> None:
    module = tn.tn_module_compile(b"def f(x: List[Any]):\n  x.append(x)\n")
    endless, stack = tn.tn_value_list(None, 0), tn.tn_stack_new()
    tn.tn_stack_push(stack, endless)
    tn.tn_module_call(module, b"f", stack)
    assert tn.tn_value_count(endless) == 1
    for use, arguments in (
        (tn.tn_value_print, (endless, None, 0)),
        (tn.tn_value_equal, (endless, endless)),
        (tn.tn_value_list, handles([endless])),
    ):
        with pytest.raises(TenfoldError, match="nest at most 1000 deep"):
            use(*arguments)
    clear = tn.tn_module_compile(b"def f(x: List[Any]):\n  x.clear()\n")
    tn.tn_stack_clear(stack)
    tn.tn_stack_push(stack, endless)
    tn.tn_module_call(clear, b"f", stack)  # or nobody would free it
    tn.tn_stack_free(stack)
    tn.tn_value_free(endless)
    for each in (module, clear):
        tn.tn_module_free(each)


def test_what_a_module_holds_is_found_by_name(tn: Bridge, scripted: Any, saved: bytes) -> None:
    module = load(tn, saved)
    weight = tn.keep(tn.tn_module_parameter(module, b"layer.weight"))
    np.testing.assert_array_equal(tn.array(weight), scripted.layer.weight.detach().numpy())
    assert tn.tn_requires_grad(weight) == 1
    tn.keep(tn.tn_module_buffer(module, b"norm.running_mean"))
    for function, expected in (
        ("tn_module_parameters", [name for name, _ in scripted.named_parameters()]),
        ("tn_module_buffers", [name for name, _ in scripted.named_buffers()]),
    ):
        found = getattr(tn, function)(module)
        keys = [tn.tn_value_key_at(found, i) for i in range(tn.tn_value_count(found))]
        assert [tn.text("tn_value_to_string", each) for each in keys] == expected
        for each in (*keys, found):
            tn.tn_value_free(each)
    methods, scale = tn.tn_module_methods(module), tn.tn_module_attribute(module, b"scale")
    assert "forward" in tn.text("tn_value_print", methods)
    assert tn.text("tn_value_print", scale) == "3"
    assert 'prim::CallMethod[name="forward"]' in tn.text("tn_module_graph", module, b"forward")
    assert "def forward" in tn.text("tn_module_code", module)
    for function in (tn.tn_module_parameter, tn.tn_module_buffer, tn.tn_module_attribute):
        with pytest.raises(UnknownName, match="missing"):
            function(module, b"missing")
    for each in (methods, scale):
        tn.tn_value_free(each)
    tn.tn_module_to_dtype(module, 7)
    assert tn.tn_tensor_dtype(tn.keep(tn.tn_module_parameter(module, b"layer.weight"))) == 7
    tn.tn_module_free(module)


def test_what_is_saved_loads_again(tn: Bridge, saved: bytes, tmp_path: Path) -> None:
    module = load(tn, saved)
    path = tmp_path / "again.pt"
    tn.tn_module_save(module, str(path).encode())
    data = tn.array(tn.keep(tn.tn_module_save_data(module))).tobytes()
    for again in (torch.jit.load(str(path)), torch.jit.load(io.BytesIO(data))):
        assert set(dict(again.named_parameters())) == {
            "layer.weight",
            "layer.bias",
            "norm.weight",
            "norm.bias",
        }
    lite = tmp_path / "again.ptl"
    tn.tn_module_save_for_mobile(module, str(lite).encode())
    assert _load_for_lite_interpreter(str(lite)) is not None
    for save in (tn.tn_module_save, tn.tn_module_save_for_mobile):
        with pytest.raises(TenfoldError):
            save(module, b"/nowhere/at/all.pt")
    tn.tn_module_free(module)


def traced(tn: Bridge, body: Any, inputs: list[Handle], results: int) -> int:
    def run(given: Any, count: int, outputs: Any, room: int, user: int) -> int:
        kept = Bridge.__new__(Bridge)
        kept.lib, kept.made = tn.lib, []
        try:
            for i, each in enumerate(body(kept, [Handle(given[i]) for i in range(count)])):
                outputs[i] = tn.tn_tensor_share(each)
        except TenfoldError as error:
            return tn.lib.raw("tn_fail")(str(error).encode())
        finally:
            kept.close()
        return 0

    return tn.tn_module_trace(TRACED(run), *handles(inputs), results, None)


def test_a_callback_is_traced_called_and_saved(tn: Bridge) -> None:
    x, y = tn.tensor(INPUT), tn.tensor(INPUT + 1)

    def body(kept: Bridge, given: list[Handle]) -> list[Handle]:
        return [kept.call("tanh", kept.call("add.Tensor", *given)), kept.call("sum", given[0])]

    module = traced(tn, body, [x, y], 2)
    graph = tn.text("tn_module_graph", module, b"forward")
    assert "aten::tanh" in graph and "aten::add" in graph and "aten::sum" in graph
    again = torch.jit.load(io.BytesIO(tn.array(tn.keep(tn.tn_module_save_data(module))).tobytes()))
    other = torch.tensor(INPUT * 3)
    first, second = again(other, other)
    torch.testing.assert_close(first, torch.tanh(other * 2))
    torch.testing.assert_close(second, other.sum())
    with pytest.raises(TenfoldError, match="use tn_module_call"):
        tn.tn_module_forward(module, *handles([x, y]))
    tn.tn_module_free(module)
    single = traced(tn, lambda kept, given: [kept.call("exp", given[0])], [x], 1)
    result = tn.keep(tn.tn_module_forward(single, *handles([tn.tensor(INPUT * 2)])))
    np.testing.assert_allclose(tn.array(result), np.exp(INPUT * 2), rtol=1e-6)
    tn.tn_module_free(single)


def test_a_trace_that_fails_leaves_tracing_off(tn: Bridge) -> None:
    x = tn.tensor(INPUT)

    def body(kept: Bridge, given: list[Handle]) -> list[Handle]:
        return [kept.call("mm", given[0], given[0])]

    with pytest.raises(EngineError, match="the traced function failed: .*mat1 and mat2"):
        traced(tn, body, [x], 1)
    with pytest.raises(EngineError, match="left result 0 NULL"):
        traced(tn, lambda kept, given: [], [x], 1)
    module = traced(tn, lambda kept, given: [kept.call("exp", given[0])], [x], 1)
    tn.tn_module_free(module)


def test_hostile_files_are_errors(tn: Bridge, saved: bytes, tmp_path: Path) -> None:
    chance = random.Random(11)
    files = [
        b"",
        b"PK",
        b"\x00" * 100,
        b"not a module at all" * 50,
        saved[:100],
        saved[:-1],
        saved[: len(saved) // 2],
    ]
    for _ in range(60):
        changed = bytearray(saved)
        for _ in range(chance.choice((1, 4, 64))):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        files.append(bytes(changed))
    refused = 0
    for each in files:
        try:
            tn.tn_module_free(load(tn, each))  # a changed byte may be one that nothing reads
        except TenfoldError:
            refused += 1
    assert refused >= 7
    with pytest.raises(UnknownName, match="cannot be opened"):
        tn.tn_module_load(str(tmp_path / "none.pt").encode(), None)
    for path in (b"", str(tmp_path).encode(), None):
        with pytest.raises(TenfoldError):
            tn.tn_module_load(path, None)
    (tmp_path / "bad.pt2").write_bytes(b"no package")
    with pytest.raises(TenfoldError):
        tn.tn_package_load(str(tmp_path / "bad.pt2").encode(), None)


def test_one_call_trains(tn: Bridge, saved: bytes) -> None:
    module = load(tn, saved)
    tn.tn_module_train(module, True)
    reference = torch.jit.load(io.BytesIO(saved)).train()
    names = [name for name, _ in reference.named_parameters()]
    parameters = [tn.keep(tn.tn_module_parameter(module, name.encode())) for name in names]
    optimizer = tn.tn_optimizer_adam(*handles(parameters), 0.05)
    golden = torch.optim.Adam(reference.parameters(), lr=0.05)
    target = np.array([0, 1, 1])
    x, labels = tn.tensor(INPUT), tn.tensor(target, "int64")
    losses = []
    for _ in range(10):
        loss = tn.keep(tn.tn_train_step(module, optimizer, b"cross_entropy", *handles([x]), labels))
        golden.zero_grad()
        expected = torch.nn.functional.cross_entropy(reference(torch.tensor(INPUT)), torch.tensor(target))
        expected.backward()
        golden.step()
        assert tn.array(loss) == pytest.approx(expected.item(), rel=1e-4, abs=1e-5)
        assert tn.tn_requires_grad(loss) == 0
        losses.append(tn.array(loss))
    assert losses[-1] < losses[0]
    with pytest.raises(UnknownName, match="there is no loss cleverness: there are binary_cross_entropy"):
        tn.tn_train_step(module, optimizer, b"cleverness", *handles([x]), labels)
    tn.tn_optimizer_free(optimizer)
    tn.tn_module_free(module)


@pytest.mark.filterwarnings("ignore:.*batchmean")
@pytest.mark.parametrize(
    ("name", "input", "target"),
    [
        ("mse_loss", [[0.1, 0.9]], [[0.0, 1.0]]),
        ("l1_loss", [[0.1, 0.9]], [[0.0, 1.0]]),
        ("huber_loss", [[0.1, 5.0]], [[0.0, 1.0]]),
        ("smooth_l1_loss", [[0.1, 5.0]], [[0.0, 1.0]]),
        ("soft_margin_loss", [[0.1, 5.0]], [[-1.0, 1.0]]),
        ("kl_div", [[-1.0, -0.5]], [[0.3, 0.7]]),
        ("binary_cross_entropy", [[0.1, 0.9]], [[0.0, 1.0]]),
        ("binary_cross_entropy_with_logits", [[0.1, 0.9]], [[0.0, 1.0]]),
        ("cross_entropy", [[0.1, 0.9]], [1]),
        ("nll_loss", [[-0.1, -0.9]], [1]),
    ],
)
def test_losses_by_name_are_pytorchs(tn: Bridge, name: str, input: list, target: list) -> None:
    dtype = "int64" if isinstance(target[0], int) else "float32"
    x, y = tn.tensor(input, requires_grad=True), tn.tensor(target, dtype)
    loss = tn.keep(tn.tn_loss(name.encode(), x, y))
    expected = getattr(torch.nn.functional, name)(torch.tensor(input), torch.tensor(target))
    assert tn.array(loss) == pytest.approx(expected.item(), rel=1e-5)
    tn.tn_backward(loss)
    assert tn.tn_has_grad(x) == 1


@pytest.mark.slow
def test_a_compiled_package_runs(tn: Bridge, tmp_path: Path) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.tanh(x) * 2, x.sum()

    exported = torch.export.export(Model(), (torch.tensor(INPUT),))
    path = torch._inductor.aoti_compile_and_package(exported, package_path=str(tmp_path / "model.pt2"))
    package = tn.tn_package_load(path.encode(), None)
    out, count = ctypes.c_void_p(), ctypes.c_int64()
    tn.tn_package_run(package, *handles([tn.tensor(INPUT)]), ctypes.byref(out), ctypes.byref(count))
    assert count.value == 2
    results = ctypes.cast(out, ctypes.POINTER(ctypes.c_void_p))
    np.testing.assert_allclose(tn.array(results[0]), np.tanh(INPUT) * 2, rtol=1e-5)
    np.testing.assert_allclose(tn.array(results[1]), INPUT.sum(), atol=1e-5)
    tn.tn_free_all(out, count.value)
    metadata = tn.tn_package_metadata(package)
    assert "AOTI_DEVICE_KEY" in tn.text("tn_value_print", metadata)
    tn.tn_value_free(metadata)
    tn.tn_package_free(package)
