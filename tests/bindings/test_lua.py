"""The Lua binding in real luajit processes: every operator, learning, script functions, mistakes, memory."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tenfold.capi import bindings_lua
from tenfold.ops.fitting import STANDS_FOR
from tests.bindings import learning, networks, optimizers
from tests.bindings.sweep import UNCALLED, Case, Sweep, Tensor, library

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
luajit = shutil.which("luajit")
pytestmark = pytest.mark.skipif(luajit is None, reason="there is no luajit: apt-get install luajit")


@pytest.fixture(scope="session")
def rock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole binding in a folder, as `make lua` leaves it."""
    folder = tmp_path_factory.mktemp("rock")
    shutil.copytree(ROOT / "bindings" / "lua", folder, dirs_exist_ok=True)
    bindings_lua.write(folder, library())
    return folder


def run(rock: Path, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{rock}/?.lua;{rock}/?/init.lua;;"
    environment = {**os.environ, "LUA_PATH": path, "OMP_NUM_THREADS": "1", **variables}
    command = [str(luajit), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def lua(rock: Path, program: str, **variables: str) -> str:
    """What a program prints."""
    done = run(rock, "-e", f'local tn = require("tenfold")\n{program}', **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# ---- operators ----------------------------------------------------------------------------------------


def written(value: Any) -> str:
    """A value in Lua's words."""
    if isinstance(value, Tensor):
        return f't("{value.name}")'
    if value is None:
        return "nil"
    if isinstance(value, complex):
        return f"d({written(value.real)})"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return "0/0" if math.isnan(value) else "1/0" if value > 0 else "-1/0"
    if isinstance(value, list):
        return "{ " + ", ".join("none" if each is None else written(each) for each in value) + " }"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def case_in_lua(case: Case) -> str:
    values = [written(each) for each in case.positional]
    if case.named:
        values.append("{ " + ", ".join(f"[{name!r}] = {written(v)}" for name, v in case.named.items()) + " }")
    fields = [f"number = {case.number}", f"op = {case.operator!r}", f"n = {len(values)}", *values]
    return "{ " + ", ".join(fields) + " }"


def sweep(rock: Path, folder: Path, step: int) -> Sweep:
    cases = Sweep(step)
    cases.save(folder, case_in_lua)
    done = run(rock, HERE / "sweep.lua", folder)
    assert done.stdout.endswith("0 failed, 0 tensors left\n"), done.stdout[-4000:] + done.stderr
    wrong = list(cases.differences(folder))
    assert not wrong, "\n".join([f"{len(wrong)} differ", *wrong[:20]])
    return cases


def test_operators_give_what_pytorch_gives(rock: Path, tmp_path: Path) -> None:
    sweep(rock, tmp_path, step=5)


@pytest.mark.slow
def test_every_operator_gives_what_pytorch_gives(rock: Path, tmp_path: Path) -> None:
    assert sweep(rock, tmp_path, step=1).uncalled == UNCALLED


def test_an_argument_that_stands_alone_is_what_pytorch_takes_it_for(rock: Path) -> None:
    program = "local x = tn.zeros(100):random_(3); print(x:min():item(), x:max():item())"
    assert lua(rock, f"tn.manual_seed(0); {program}").split() == ["0", "2"]


def test_arithmetic_reads_like_lua(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local x = tn.tensor({ 1, 2, 4 })
        local y = { x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 * x, x / 2, 2 / x, x % 2, x ^ 2, 2 ^ x, -x, x + x }
        for _, each in ipairs(y) do print(unpack(each:tolist())) end
        """,
    )
    rows = [[float(each) for each in line.split()] for line in printed.splitlines()]
    x = torch.tensor([1.0, 2, 4])
    y = [x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 * x, x / 2, 2 / x, x % 2, x**2, 2**x, -x, x + x]
    assert rows == [each.tolist() for each in y]


def test_functions_and_hooks_of_lua_take_part_in_gradients(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local w = tn.tensor({ 1, 2 }):requires_grad_()
        local cube = tn.autograd_function({
          forward = function(context, x)
            context:save_for_backward(x)
            return x ^ 3
          end,
          backward = function(context, gradient) return gradient * 3 * context.saved_tensors[1] ^ 2 end,
        })
        for _ = 1, 100 do cube(w):sum():backward() end  -- often enough to be compiled, were it allowed
        print(unpack(w.grad:tolist()))
        w.grad = nil
        local doubled = w:register_hook(function(gradient) return gradient * 2 end)
        for _ = 1, 100 do (w * 3):sum():backward() end
        print(unpack(w.grad:tolist()))
        doubled:remove()
        print(unpack(tn.grad((w * 3):sum(), w)[1]:tolist()))
        local failing = tn.autograd_function({
          forward = function(_, x) return x * 1, x * 2 end, results = 2,
          backward = function() error({ mine = "kept" }) end,
        })
        local _, problem = pcall(function() select(2, failing(w)):sum():backward() end)
        local odd = tn.autograd_function({ forward = function() return 3 end, backward = function() end })
        print(problem.mine, select(2, pcall(odd, w)).name, select(2, pcall(tn.stream, "cuda")).name)
        """,
    )
    assert printed.split() == [
        *("300", "1200", "600", "600", "3", "3"),
        *("kept", "TN_ERROR_ARGUMENT", "TN_ERROR_NOT_AVAILABLE"),
    ]


def test_arguments_go_by_order_or_by_name(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local x = tn.arange(6):view(2, 3)
        print(unpack(x:sum(1):tolist()))
        print(unpack(x:sum({ dim = { 0 }, keepdim = false }):tolist()))
        print(x:add(x, { alpha = 2 }):sum():item(), tn.zeros(2, 3, { dtype = "float64" }).dtype)
        local values, places = x:max(1)
        print(values.dtype, unpack(places:tolist()))
        """,
    )
    assert printed.split() == ["3", "12", "3", "5", "7", "45", "float64", "int64", "2", "2"]


def test_numbers_stand_for_arguments_as_in_pytorch(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local is = require("tenfold.core").is
        for _, x in ipairs({ true, 2, 2LL, 2.5, tn.complex_number(1, 2) }) do
          print(is.bool(x), is.int(x), is.float(x), is.scalar(x))
        end
        local x, y = tn.tensor({ 1, 3 }), tn.tensor({ 2, 1 })
        print(unpack(x:isclose(y, true):tolist()))
        print(unpack(tn.tensor({ 0 / 0, 2 }):nan_to_num({ nan = true }):tolist()))
        """,
    )
    values = [["bool"], ["int", "float"], ["int"], ["float"], ["complex"]]
    fits = [
        str(any(kind in STANDS_FOR[type] for kind in kinds)).lower()
        for kinds in values
        for type in ("bool", "int", "float", "Scalar")
    ]
    assert printed.split() == [*fits, "true", "false", "1", "2"]


def test_a_freed_tensor_prints(rock: Path) -> None:
    assert lua(rock, "local x = tn.ones(2); x:free(); print(x)").strip() == "a freed tensor"


def test_elements_are_read_and_written(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local x = tn.tensor({ { 1, 2 }, { 3, 4 } })
        x[0] = 7
        x[1][0] = 9
        print(x[-1][1]:item(), x[x:gt(6)]:sum():item(), #x, x.shape[2], x.dtype, x.device)
        x[x:gt(8)] = 0
        print(x:sum():item())
        """,
    )
    assert printed.split() == ["4", "23", "2", "2", "float32", "cpu", "18"]


def test_integers_beyond_numbers_stay_as_they_are(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local x = tn.tensor({ 9007199254740993LL, -3LL })
        print(x.dtype, x:tolist()[1], x:tolist()[2], x[0]:item(), x[0]:add(1LL):item())
        local most = tn.tensor({ 18446744073709551615ULL })
        print(most.dtype, most:tolist()[1], type(tn.tensor({ 9007199254740992LL })[0]:item()))
        """,
    )
    assert printed.split() == [
        *("int64", "9007199254740993LL", "-3", "9007199254740993LL", "9007199254740994LL"),
        *("uint64", "18446744073709551615ULL", "number"),
    ]


def test_a_layer_may_have_no_inputs(rock: Path) -> None:
    assert lua(rock, "print(tn.nn.Linear(0, 2)(tn.ones(3, 0)):abs():sum():item())").strip() == "0"


# ---- learning -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [learning.xor, learning.digits], ids=["xor", "digits"])
def test_losses_are_those_of_python(rock: Path, tmp_path: Path, task: Any) -> None:
    expected = task(tmp_path / "weights.safetensors")
    done = run(rock, HERE / "learning.lua", task.__name__, tmp_path / "weights.safetensors")
    losses = [float(each) for each in done.stdout.split()]
    assert len(losses) == len(expected) == 100, done.stderr
    assert max(abs(a - b) for a, b in zip(losses, expected, strict=True)) < 1e-4


def test_optimizers_end_where_pytorchs_do(rock: Path) -> None:
    cases = ", ".join(
        f'{{ "{name}", {optimizers.written(options, " =")} }}' for name, options in optimizers.OPTIMIZERS
    )
    printed = lua(
        rock,
        f"""
        for _, case in ipairs({{ {cases} }}) do
          local w = tn.tensor({{ {str(optimizers.START)[1:-1]} }}, {{ requires_grad = true }})
          local goal = tn.tensor({{ {str(optimizers.GOAL)[1:-1]} }})
          local optimizer = tn.optim[case[1]]({{ w }}, case[2])
          for _ = 1, {optimizers.STEPS} do
            optimizer:zero_grad();
            ((w - goal) * (w - goal) + w:sin()):sum():backward()
            optimizer:step()
          end
          local found = w:detach():tolist()
          print(string.format("%.9g %.9g %.9g", found[1], found[2], found[3]))
        end
        """,
    )
    for (name, options), line in zip(optimizers.OPTIMIZERS, printed.splitlines(), strict=True):
        expected = optimizers.expected_parameters(name, options)
        assert [float(each) for each in line.split()] == pytest.approx(expected, abs=2e-6), (name, options)


def test_schedules_set_pytorchs_learning_rates(rock: Path) -> None:
    cases = ", ".join(f'{{ "{name}", {str(given)[1:-1]} }}' for name, given, _ in optimizers.SCHEDULES)
    printed = lua(
        rock,
        f"""
        local function tried(schedule)
          for _ = 1, {optimizers.STEPS} do
            io.write(string.format("%.12g ", schedule:get_last_lr()))
            schedule:step()
          end
          print()
        end
        for _, case in ipairs({{ {cases} }}) do
          local optimizer = tn.optim.SGD({{ tn.ones(1) }}, {{ lr = 0.1 }})
          tried(tn.lr_scheduler[case[1]](optimizer, case[2], case[3]))
        end
        local optimizer = tn.optim.SGD({{ tn.ones(1) }}, {{ lr = 0.1 }})
        tried(tn.lr_scheduler.LambdaLR(optimizer, function(i) return 1 / (2 + i) end))
        """,
    )
    *rates, by_function = [[float(each) for each in line.split()] for line in printed.splitlines()]
    for (name, given, schedule), found in zip(optimizers.SCHEDULES, rates, strict=True):
        assert found == pytest.approx(optimizers.expected_rates(schedule), rel=1e-9), (name, given)
    assert by_function == pytest.approx([0.1 / (2 + i) for i in range(optimizers.STEPS)])


def test_gradients_of_gradients(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local x = tn.tensor(3, { requires_grad = true })
        local first = tn.grad(x ^ 3, x, { create_graph = true })[1]
        print(first:item(), tn.grad(first, x)[1]:item(), x.grad)
        print(tn.no_grad(function() return (x * 2).requires_grad end), (x * 2).requires_grad)
        """,
    )
    assert printed.split() == ["27", "18", "nil", "false", "true"]


# ---- script -------------------------------------------------------------------------------------------


def test_lua_functions_are_traced_saved_and_called_from_python(rock: Path, tmp_path: Path) -> None:
    path = tmp_path / "traced.pt"
    printed = lua(
        rock,
        f"""
        local x = tn.tensor({{ 1, -2, 3 }})
        local traced = tn.jit.trace(function(a, b) return (a * b + 1):relu() end, {{ x, x }})
        traced:save("{path}")
        print(unpack(tn.jit.load("{path}")(x, x * 2):tolist()))
        print(unpack(traced:methods()))
        """,
    )
    assert printed.split() == ["3", "9", "19", "forward"]
    x = torch.tensor([1.0, -2, 3])
    assert torch.jit.load(path)(x, x).tolist() == [2, 5, 10]


class Containers(torch.nn.Module):
    def forward(self, numbers: list[int], named: dict[str, float], text: str) -> tuple[int, str, list[float]]:
        return sum(numbers), text + text, [named["a"], named["b"]]


def test_script_methods_take_and_give_tables(rock: Path, tmp_path: Path) -> None:
    torch.jit.script(Containers()).save(tmp_path / "containers.pt")
    printed = lua(
        rock,
        f"""
        local module = tn.jit.load("{tmp_path / "containers.pt"}")
        local result = module({{ 1, 2, 3 }}, {{ a = 1.5, b = 2.5 }}, "ab")
        print(result[1], result[2], unpack(result[3]))
        """,
    )
    assert printed.split() == ["6", "abab", "1.5", "2.5"]


def test_scripts_are_compiled_and_anomalies_detected(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local unit = tn.jit.compile("def twice(x):\\n  return x * 2\\ndef more(x):\\n  return twice(x) + 1")
        print(unit:call("more", tn.tensor({ 3 })):item())
        local x = tn.tensor({ -1 }):requires_grad_()
        x:sqrt():sum():backward()
        print(pcall(tn.detect_anomaly, function() x:sqrt():sum():backward() end))
        """,
    )
    assert printed.split()[:2] == ["7", "false"] and "nan values" in printed


def test_a_step_of_training_is_one_call(rock: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.jit.script(torch.nn.Linear(2, 1)).save(tmp_path / "linear.pt")
    printed = lua(
        rock,
        f"""
        local module = tn.jit.load("{tmp_path / "linear.pt"}")
        local parameters = module:parameters()
        local sgd = tn.optim.SGD({{ parameters.weight, parameters.bias }}, {{ lr = 0.1, momentum = 0.9 }})
        local x, y = tn.tensor({{ {{ 1, 2 }}, {{ 3, 4 }} }}), tn.tensor({{ {{ 1 }}, {{ 2 }} }})
        local first = tn.train_step(module, sgd, "mse_loss", {{ x }}, y):item()
        for i = 1, 60 do tn.train_step(module, sgd, "mse_loss", {{ x }}, y) end
        print(first, tn.train_step(module, sgd, "mse_loss", {{ x }}, y):item(), sgd:get("momentum"))
        """,
    )
    first, last, momentum = map(float, printed.split())
    assert last < first / 5 and momentum == 0.9


# ---- mistakes -----------------------------------------------------------------------------------------

MISTAKES = [
    ('x + "a"', "TN_ERROR_ARGUMENT", "add: cannot be called with (tensor, string)"),
    ("x:sum(0.5)", "TN_ERROR_ARGUMENT", "number with a fraction"),
    ("x:relu(1)", "TN_ERROR_ARGUMENT", "relu: cannot be called with"),
    ("x:sum({ dims = 1 })", "TN_ERROR_ARGUMENT", "has no argument dims"),
    ("tn.zeros(2, { dtype = 'float31' })", "TN_ERROR_ARGUMENT", "dtype is a ScalarType"),
    ("tn.tensor({ { 1, 2 }, { 3 } })", "TN_ERROR_ARGUMENT", "ragged"),
    ("tn.tensor({ 1, 'two' })", "TN_ERROR_ARGUMENT", "an element is a string"),
    ("tn.tensor({ 1.5 }, { dtype = 'int64' })", "TN_ERROR_ARGUMENT", "1.5 is no int64"),
    ("tn.tensor({ 300 }, { dtype = 'uint8' })", "TN_ERROR_ARGUMENT", "300 is no uint8"),
    ("tn.tensor({ -1 }, { dtype = 'uint64' })", "TN_ERROR_ARGUMENT", "-1 is no uint64"),
    ("tn.tensor({ 1, nil, 3 })", "TN_ERROR_ARGUMENT", "a hole"),
    ("tn.tensor({ 1, 2, x = 3 })", "TN_ERROR_ARGUMENT", "no position"),
    ("tn.tensor({ 1LL, 1.5 })", "TN_ERROR_ARGUMENT", "1.5 is no int64"),
    ("tn.save({ x = x }, '/tmp/x')", "TN_ERROR_ARGUMENT", "a path, and tensors by name"),
    ("tn.save('/tmp/x\\0y', { x = x })", "TN_ERROR_ARGUMENT", "a path, and tensors by name"),
    ("tn.load('/tmp/x\\0y')", "TN_ERROR_ARGUMENT", "zero bytes"),
    ("tn.jit.load('/tmp/x\\0y')", "TN_ERROR_ARGUMENT", "zero byte"),
    ("tn.call('aten::relu\\0', x)", "TN_ERROR_ARGUMENT", "zero bytes"),
    ("tn.call('aten::einsum', 'ij\\0', { x })", "TN_ERROR_ARGUMENT", "zero byte"),
    ("tn.einsum('ij\\0', { x })", "TN_ERROR_ARGUMENT", "einsum: cannot be called with"),
    ("tn.nn.Linear('a', 2)", "TN_ERROR_ARGUMENT", "Linear: a is no size"),
    ("tn.nn.Linear(2, 2):load_state_dict(nil)", "TN_ERROR_ARGUMENT", "a table of tensors by name"),
    (
        "(function() x:requires_grad_():register_hook(function() return 'a' end); x:sum():backward() end)()",
        "TN_ERROR_ARGUMENT",
        "a hook returns a tensor or nothing",
    ),
    ("x[5]", "TN_ERROR_INDEX", "index 5 out of range"),
    ("x.nothing", "TN_ERROR_NOT_FOUND", 'no method or property "nothing"'),
    ("x:matmul(tn.zeros(3, 3))", "TN_ERROR_TORCH", "mat1 and mat2 shapes"),
    ("(function() local y = x + 1; y:free(); return y + x end)()", "TN_ERROR_ARGUMENT", "self was freed"),
    ("(function() local y = x + 1; y:free(); return tn.cat({ x, y }) end)()", "TN_ERROR_ARGUMENT", "freed"),
    ("tn.jit.load('/nowhere.pt')", "TN_ERROR_NOT_FOUND", "/nowhere.pt"),
    ("tn.call('aten::nothing', x)", "TN_ERROR_NOT_FOUND", "nothing"),
    ("tn.call('aten::relu', 'text')", "TN_ERROR_TYPE", ""),
    ("tn.optim.SGD({ x }, { lr = 'fast' })", "TN_ERROR_ARGUMENT", "number"),
    ("(x + 1):backward()", "TN_ERROR_TORCH", ""),
    (
        "(function() local all = {}; all[1] = all; return tn.tensor(all) end)()",
        "TN_ERROR_ARGUMENT",
        "64 deep",
    ),
]


@pytest.fixture(scope="session")
def raised(rock: Path) -> list[str]:
    """For each mistake, all made in one process, the error's name and message in a line."""
    attempts = [f"attempt(function(x) return {expression} end)" for expression, _, _ in MISTAKES]
    program = """
        local function attempt(mistake)
          local x = tn.tensor({ { 1, 2 }, { 3, 4 } })
          local succeeded, e = pcall(mistake, x)
          assert(not succeeded and getmetatable(e) == tn.Error and tostring(e):find(e.message, 1, true))
          assert((x + 1):sum():item() == 14)
          print(e.name .. "|" .. e.message:gsub("\\n", " "))
        end
        """
    return lua(rock, "\n".join([program, *attempts])).splitlines()


@pytest.mark.parametrize("number", range(len(MISTAKES)), ids=[each[0] for each in MISTAKES])
def test_mistakes_are_lua_errors(raised: list[str], number: int) -> None:
    _, name, message = MISTAKES[number]
    assert raised[number].startswith(f"{name}|") and message in raised[number]


def test_an_error_in_a_traced_function_comes_through(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local x = tn.ones(2)
        local mine = { "mine" }
        local _, e = pcall(tn.jit.trace, function() error(mine) end, { x })
        print(e == mine, pcall(tn.scope, function() tn.ones(2); error("out") end))
        tn.collect()
        print(tn.live_tensors())
        """,
    )
    assert printed.split()[:2] == ["true", "false"] and printed.split()[-1] == "1"


def test_a_missing_library_is_told(rock: Path, tmp_path: Path) -> None:
    bare = tmp_path / "rock"
    shutil.copytree(rock, bare)
    (bare / "tenfold" / "location.lua").write_text('return "/nowhere/libtenfold.so"\n')
    program = 'local ok, e = pcall(require, "tenfold"); print(ok, e.name, e.message)'
    done = run(bare, "-e", program, TENFOLD_LIBRARY="/nowhere/else.so")
    assert done.stdout.startswith("false\tTN_ERROR_NOT_AVAILABLE") and "tenfold capi build" in done.stdout


# ---- memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_loop_of_large_tensors_stays_small(rock: Path, count: int) -> None:
    printed = lua(
        rock,
        f"""
        for i = 1, {count} do local x = tn.zeros(512, 512) end
        local status = io.open("/proc/self/status"):read("*a")
        print(tn.peak_bytes(), status:match("VmHWM:%s*(%d+)"))
        """,
    )
    peak, resident = map(int, printed.split())
    assert peak < 300e6 and resident * 1024 < 500e6


def test_a_loop_of_small_tensors_stays_small(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local x, most = tn.ones(1), 0
        for i = 1, 100000 do
          local y = x + x
          most = math.max(most, tn.live_tensors())
        end
        print(most)
        """,
    )
    assert int(printed) < 30_000


def test_scopes_free_what_is_not_returned(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local x = tn.ones(2)
        local y, more = tn.scope(function()
          local inner = tn.scope(function() return x + 1 end)
          return inner * 2, { sum = inner:sum() }
        end)
        print(tn.live_tensors(), y:sum():item(), more.sum:item())
        """,
    )
    assert printed.split() == ["3", "8", "4"]


def test_memory_that_ran_out_is_looked_for_again(rock: Path) -> None:
    printed = lua(
        rock,
        """
        local C, x = require("tenfold.core").C, tn.ones(4)
        C.tn_debug_fail_allocation(1)
        print((x + x):sum():item())
        """,
    )
    assert printed.split() == ["8"]


def test_handles_are_right_in_checked_mode(rock: Path) -> None:
    program = """
        local x = tn.ones(2)
        for i = 1, 20000 do x = x * 1 end
        local y = x + 1
        y:free(); y:free()
        print(x:sum():item())
        """
    assert lua(rock, program, TENFOLD_CHECKED="1").split() == ["2"]


# ---- the package --------------------------------------------------------------------------------------


def test_the_rockspec_names_every_module(rock: Path) -> None:
    spec = (rock / "tenfold-0.1.0-1.rockspec").read_text()
    named = set(re.findall(r'= "(tenfold/\w+\.lua)"', spec))
    assert named == {f"tenfold/{path.name}" for path in (rock / "tenfold").iterdir()}


@pytest.mark.skipif(shutil.which("luarocks") is None, reason="there is no luarocks: apt-get install luarocks")
def test_luarocks_installs_it(rock: Path, tmp_path: Path) -> None:
    command = ["luarocks", "--lua-version", "5.1", "--tree", str(tmp_path / "tree"), "make"]
    done = subprocess.run(command, cwd=rock, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "tree/share/lua/5.1/tenfold/operators.lua").exists()


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples" / "lua").glob("*.lua")), ids=lambda path: path.stem
)
def test_examples_run(rock: Path, path: Path, tmp_path: Path) -> None:
    learning.all_digits(tmp_path / "digits.safetensors")
    done = run(rock, path, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_documented_program_runs(rock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # it writes a file
    text = (ROOT / "docs" / "bindings.md").read_text(encoding="utf-8")
    programs = re.findall(r"```lua\n(.*?)```", text, re.DOTALL)
    assert len(programs) == 2  # the second goes on where the first ends
    done = run(rock, "-e", "\n".join(programs))
    assert done.returncode == 0 and "TN_ERROR_TORCH" in done.stdout, done.stdout + done.stderr


def test_safetensors_go_to_and_fro(rock: Path, tmp_path: Path) -> None:
    save_file({"x": torch.arange(4.0)}, tmp_path / "a.safetensors")
    lua(rock, f'tn.save("{tmp_path}/b.safetensors", {{ y = tn.load("{tmp_path}/a.safetensors").x * 2 }})')
    assert load_file(tmp_path / "b.safetensors")["y"].tolist() == [0, 2, 4, 6]


def in_lua(value: Any) -> str:
    """A list, a dict or a plain value in Lua's words."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {in_lua(each)}" for name, each in value.items()) + "}"
    return "{" + ", ".join(map(in_lua, value)) + "}" if isinstance(value, list) else json.dumps(value)


# ---- networks -----------------------------------------------------------------------------------------


def test_layers_give_what_pytorchs_give(rock: Path, tmp_path: Path) -> None:
    given, expected = networks.asked()
    save_file(given, str(tmp_path / "given.safetensors"))
    layers = in_lua({name: arguments for name, (arguments, _) in networks.LAYERS.items()})
    program = f"LAYERS = {layers}\nLOSSES = {in_lua([*networks.LOSSES])}\n"
    program += (HERE / "networks.lua").read_text()
    (tmp_path / "networks.lua").write_text(program)
    files = [tmp_path / "given.safetensors", tmp_path / "found.safetensors"]
    done = run(rock, tmp_path / "networks.lua", *files)
    assert done.returncode == 0, done.stderr
    found = load_file(str(tmp_path / "found.safetensors"))
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, msg=lambda text, name=name: f"{name}: {text}")


NETWORK = """
local Net = tn.nn.module({
  init = function(self)
    self.body = tn.nn.Sequential(tn.nn.Linear(2, 3), tn.nn.BatchNorm1d(3))
    self.head = tn.nn.Linear(3, 1, { bias = false })
  end,
  forward = function(self, x) return self.head(self.body(x):tanh()) end,
})
"""


def test_modules_have_names_states_and_modes(rock: Path, tmp_path: Path) -> None:
    path = json.dumps(str(tmp_path / "net.safetensors"))
    program = f"""{NETWORK}
    local net = Net()
    tn.save({path}, net:state_dict())
    local other = Net():load_state_dict(tn.load({path})):eval()
    local x, names = tn.randn(4, 2), {{}}
    for name in pairs(net:named_parameters()) do names[#names + 1] = name end
    table.sort(names)
    print(table.concat(names, " "), other.head.training, tn.equal(net:eval()(x), other(x)), #net:parameters())
    """
    names = "body.0.bias body.0.weight body.1.bias body.1.weight head.weight"
    assert lua(rock, program).split("\t") == [names, "false", "true", "5\n"]


def test_a_network_learns_from_batches_with_a_scheduler(rock: Path) -> None:
    program = """
    tn.manual_seed(0)
    local x = tn.randn(64, 2)
    local y = x:mm(tn.tensor({ { 1 }, { -2 } })) + 0.5
    local net, loss = tn.nn.Linear(2, 1), tn.nn.MSELoss()
    local optimizer = tn.optim.SGD(net:parameters(), { lr = 0.2 })
    local schedule, batches, last = tn.lr_scheduler.StepLR(optimizer, 10, 0.5), 0, nil
    for epoch = 1, 20 do
      for a, b in tn.DataLoader({ x, y }, { batch_size = 20, shuffle = true }) do
        optimizer:zero_grad()
        last = loss(net(a), b)
        last:backward()
        optimizer:step()
        batches = batches + 1
      end
      schedule:step()
    end
    print(batches, last:item() < 1e-3, string.format("%.3f", schedule:get_last_lr()))
    """
    assert lua(rock, program).split() == ["80", "true", "0.050"]


def test_wrong_options_of_layers_are_refused(rock: Path) -> None:
    program = """
    for _, make in ipairs({
      function() tn.nn.Linear(3) end,
      function() tn.nn.Linear(3, 2, { biass = true }) end,
      function() tn.nn.ReLU()(1) end,
      function() tn.nn.Linear(2, 2):load_state_dict({ weight = tn.ones(2, 2) }) end,
      function() tn.lr_scheduler.StepLR({}, 3) end,
      function() tn.lr_scheduler.StepLR(tn.optim.SGD({ tn.ones(1) }), 0) end,
      function() tn.lr_scheduler.LambdaLR(tn.optim.SGD({ tn.ones(1) }), 3) end,
      function() tn.lr_scheduler.CosineAnnealingLR(tn.optim.SGD({ tn.ones(1) }), 3, "x") end,
      function() tn.DataLoader({ tn.ones(3) }, { batch_size = 0 }) end,
      function() tn.DataLoader({ tn.ones(3) }, { batch_size = 1.5 }) end,
    }) do
      local fine, failed = pcall(make)
      print(fine, failed.message)
    end
    """
    needs, unknown, called, state, whose, size, factor, least, *batches = lua(rock, program).splitlines()
    assert "needs out_features" in needs and "biass" in unknown and "called with 1 tensors" in called
    assert "has no bias" in state and "takes an optimizer" in whose and "eta_min" in least
    assert [each.partition("more, not ")[2] for each in batches] == ["0", "1.5"]
    assert (
        "step_size of a scheduler is a number above 0, not 0" in size and "a function of the step" in factor
    )
