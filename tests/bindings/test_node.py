"""The Node binding in real node processes: operators, learning, script functions, mistakes, memory, types."""

from __future__ import annotations

import fcntl
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

from tenfold.capi import bindings_node
from tenfold.ops.fitting import STANDS_FOR
from tests.bindings import learning, networks, optimizers
from tests.bindings.sweep import UNCALLED, Case, Sweep, Tensor, library

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
node, npm = shutil.which("node"), shutil.which("npm")
pytestmark = pytest.mark.skipif(
    not node or not npm, reason="there is no node, or no npm: apt-get install nodejs npm"
)


@pytest.fixture(scope="session")
def modules() -> Path:
    """Where koffi and TypeScript are, installed once."""
    folder = ROOT / "build" / "node-modules"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not (folder / "node_modules" / "koffi").exists():
            wanted = json.loads((ROOT / "bindings/node/package.json").read_text())["dependencies"]["koffi"]
            command = [
                str(npm),
                "install",
                "--no-audit",
                "--no-fund",
                f"koffi@{wanted}",
                "typescript",
                "@types/node",
            ]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
            if done.returncode:
                pytest.skip(f"koffi cannot be installed: {done.stderr[-300:]}")
    return folder / "node_modules"


@pytest.fixture(scope="session")
def package(modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole package in a folder, as `make node` leaves it."""
    folder = tmp_path_factory.mktemp("package") / "tenfold"
    shutil.copytree(ROOT / "bindings" / "node", folder)
    bindings_node.write(folder, library())
    (folder / "node_modules").symlink_to(modules)
    return folder


def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    command = [str(node), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def js(package: Path, program: str, **variables: str) -> Any:
    """What a program's `answer` is."""
    begin = f"const tn = require({json.dumps(str(package))}); let answer"
    text = f"{begin}\n{program}\n;console.log(JSON.stringify(answer))"
    done = run("-e", text, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


# ---- operators ----------------------------------------------------------------------------------------


def written(value: Any) -> Any:
    """A value as sweep.js reads it."""
    if isinstance(value, Tensor):
        return {"tensor": value.name}
    if isinstance(value, complex):
        return {"double": str(value.real).replace("inf", "Infinity")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value).replace("inf", "Infinity")}
    if isinstance(value, list):
        return [written(each) for each in value]
    return value


def case_in_json(case: Case) -> str:
    given = [written(each) for each in case.positional]
    if case.named:
        given.append({name: written(value) for name, value in case.named.items()})
    return json.dumps({"number": case.number, "op": case.operator, "given": given})


def sweep(package: Path, folder: Path, step: int) -> Sweep:
    cases = Sweep(step)
    cases.save(folder, case_in_json)
    done = run(HERE / "sweep.js", package, folder)
    assert done.stdout.endswith("0 failed, 0 tensors left\n"), done.stdout[-4000:] + done.stderr
    wrong = list(cases.differences(folder))
    assert not wrong, "\n".join([f"{len(wrong)} differ", *wrong[:20]])
    return cases


def test_operators_give_what_pytorch_gives(package: Path, tmp_path: Path) -> None:
    sweep(package, tmp_path, step=5)


@pytest.mark.slow
def test_every_operator_gives_what_pytorch_gives(package: Path, tmp_path: Path) -> None:
    assert sweep(package, tmp_path, step=1).uncalled == UNCALLED


def test_functions_and_hooks_of_javascript_take_part_in_gradients(package: Path) -> None:
    program = """
        const w = tn.tensor([1, 2], { dtype: 'float32' }).requires_grad_()
        const told = (fn) => { try { return fn() } catch (error) { return error.code ?? error.message } }
        const cube = tn.autograd_function({
          forward(context, x) {
            context.save_for_backward(x)
            return x.pow(3)
          },
          backward: (context, gradient) => gradient.mul(3).mul(context.saved_tensors[0].pow(2)),
        })
        cube(w).sum().backward()
        const cubed = w.grad.tolist()
        w.grad = null
        const doubled = w.register_hook((gradient) => gradient.mul(2))
        w.mul(3).sum().backward()
        const hooked = w.grad.tolist()
        doubled.remove()
        const failing = tn.autograd_function({
          results: 2, forward: (context, x) => [x.mul(1), x.mul(2)],
          backward() { throw new RangeError('mine') },
        })
        const odd = tn.autograd_function({ forward: () => 3, backward: () => null })
        answer = [
          cubed, hooked, tn.grad(w.mul(3).sum(), w)[0].tolist(), told(() => failing(w)[1].sum().backward()),
          told(() => odd(w)), told(() => tn.stream('cuda')),
        ]
        """
    assert js(package, program) == [
        *([3, 12], [6, 6], [3, 3], "mine"),
        *("TN_ERROR_ARGUMENT", "TN_ERROR_NOT_AVAILABLE"),
    ]


def test_arguments_go_by_order_or_by_name(package: Path) -> None:
    program = """
        const x = tn.arange(6).view(2, 3)
        const [values, places] = x.max(1)
        answer = [
          x.sum(1).tolist(), x.sum({ dim: [0], keepdim: false }).tolist(),
          x.add(x, { alpha: 2 }).sum().item(), tn.zeros(2, 3, { dtype: 'float64' }).dtype, values.dtype,
          places.tolist(), x.add(tn.double(1)).dtype,
        ]
        """
    assert js(package, program) == [[3, 12], [3, 5, 7], 45, "float64", "int64", [2, 2], "float32"]


def test_numbers_stand_for_arguments_as_in_pytorch(package: Path) -> None:
    program = (
        f"const {{ complex, is }} = require({json.dumps(str(package / 'lib' / 'convert'))})"
        + """
        const x = tn.tensor([1, 3])
        answer = [
          [true, 2, 2n, 2.5, complex(1, 2)].map((x) => [is.bool(x), is.int(x), is.float(x), is.Scalar(x)]),
          x.isclose(tn.tensor([2, 1]), true).tolist(),
          tn.tensor([NaN, 2]).nan_to_num({ nan: true }).tolist(),
        ]
        """
    )
    values = [["bool"], ["int", "float"], ["int"], ["float"], ["complex"]]
    fits = [
        [any(kind in STANDS_FOR[type] for kind in kinds) for type in ("bool", "int", "float", "Scalar")]
        for kinds in values
    ]
    assert js(package, program) == [fits, [True, False], [1, 2]]


def test_elements_are_read_and_written(package: Path) -> None:
    program = """
        const x = tn.tensor([[1, 2], [3, 4]])
        x.set(0, [7, 7]).at(1).set(0, 9)
        const picked = x.at(x.gt(6)).sum().item()
        x.set(x.gt(8), 0)
        answer = [picked, x.tolist(), Array.from(x.data()), x.shape, x.device, x.T.tolist()]
        """
    assert js(package, program) == [23, [[7, 7], [0, 4]], [7, 7, 0, 4], [2, 2], "cpu", [[7, 0], [7, 4]]]


def test_integers_beyond_numbers_are_bigints(package: Path) -> None:
    program = """
        const x = tn.tensor([9007199254740993n, -3n])
        answer = [x.dtype, ...x.tolist().map((each) => `${typeof each} ${each}`), `${x.at(0).item()}`]
        """
    assert js(package, program) == ["int64", "bigint 9007199254740993", "number -3", "9007199254740993"]


def test_a_layer_may_have_no_inputs(package: Path) -> None:
    program = "answer = new tn.nn.Linear(0, 2).forward(tn.ones(3, 0)).abs().sum().item()"
    assert js(package, program) == 0


def test_tensors_are_iterated_and_written_as_json(package: Path) -> None:
    program = """
        const x = tn.tensor([[1, 2], [3, 4]])
        const y = tn.zeros(2)
        y.free()
        answer = [[...x].map((row) => row.sum().item()), JSON.stringify({ x }), String(y)]
        """
    assert js(package, program) == [[3, 7], '{"x":[[1,2],[3,4]]}', "a freed tensor"]


def test_typed_arrays_go_in_and_out(package: Path) -> None:
    program = """
        const x = tn.tensor(new BigInt64Array([1n, 2n, 3n, 4n]), { shape: [2, 2] })
        const truths = tn.tensor([true, false])
        answer = [x.dtype, x.tolist(), String(x.data()[3]), truths.tolist(), tn.tensor([]).shape]
        """
    assert js(package, program) == ["int64", [[1, 2], [3, 4]], "4", [True, False], [0]]


# ---- learning -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [learning.xor, learning.digits], ids=["xor", "digits"])
def test_losses_are_those_of_python(package: Path, tmp_path: Path, task: Any) -> None:
    expected = task(tmp_path / "weights.safetensors")
    done = run(HERE / "learning.js", package, task.__name__, tmp_path / "weights.safetensors")
    losses = [float(each) for each in done.stdout.split()]
    assert len(losses) == len(expected) == 100, done.stderr
    assert max(abs(a - b) for a, b in zip(losses, expected, strict=True)) < 1e-4


def test_gradients_of_gradients(package: Path) -> None:
    program = """
        const x = tn.tensor(3, { requires_grad: true })
        const [first] = tn.grad(x.pow(3), x, { create_graph: true })
        answer = [
          first.item(), tn.grad(first, x)[0].item(), x.grad, tn.no_grad(() => x.mul(2).requires_grad),
          x.mul(2).requires_grad,
        ]
        """
    assert js(package, program) == [27, 18, None, False, True]


def test_optimizers_end_where_pytorchs_do(package: Path) -> None:
    cases = ", ".join(
        f'["{name}", {optimizers.written(options, ":")}]' for name, options in optimizers.OPTIMIZERS
    )
    found = js(
        package,
        f"""
        answer = [{cases}].map(([name, options]) => {{
          const w = tn.tensor({optimizers.START}).requires_grad_(), goal = tn.tensor({optimizers.GOAL})
          const optimizer = new tn.optim[name]([w], options)
          for (let step = 0; step < {optimizers.STEPS}; step += 1) {{
            optimizer.zero_grad()
            w.sub(goal).mul(w.sub(goal)).add(w.sin()).sum().backward()
            optimizer.step()
          }}
          return w.detach().tolist()
        }})
        """,
    )
    for (name, options), reached in zip(optimizers.OPTIMIZERS, found, strict=True):
        expected = optimizers.expected_parameters(name, options)
        assert reached == pytest.approx(expected, abs=2e-6), (name, options)


def test_schedules_set_pytorchs_learning_rates(package: Path) -> None:
    cases = ", ".join(f'["{name}", {given}]' for name, given, _ in optimizers.SCHEDULES)
    found = js(
        package,
        f"""
        const tried = (name, given) => {{
          const schedule = tn.lr_scheduler[name](new tn.optim.SGD([tn.ones(1)], {{ lr: 0.1 }}), ...given)
          return Array.from({{ length: {optimizers.STEPS} }}, () => {{
            const rate = schedule.get_last_lr()
            schedule.step()
            return rate
          }})
        }}
        answer = [...[{cases}].map((each) => tried(...each)), tried('LambdaLR', [(i) => 1 / (2 + i)])]
        """,
    )
    *rates, by_function = found
    for (name, given, schedule), reached in zip(optimizers.SCHEDULES, rates, strict=True):
        assert reached == pytest.approx(optimizers.expected_rates(schedule), rel=1e-9), (name, given)
    assert by_function == pytest.approx([0.1 / (2 + i) for i in range(optimizers.STEPS)])


# ---- script -------------------------------------------------------------------------------------------


def test_functions_are_traced_saved_and_called_from_python(package: Path, tmp_path: Path) -> None:
    path = tmp_path / "traced.pt"
    program = f"""
        const x = tn.tensor([1, -2, 3])
        const traced = tn.jit.trace((a, b) => a.mul(b).add(1).relu(), [x, x])
        traced.save({json.dumps(str(path))})
        answer = [tn.jit.load({json.dumps(str(path))}).forward(x, x.mul(2)).tolist(), traced.methods()]
        """
    assert js(package, program) == [[3, 9, 19], ["forward"]]
    x = torch.tensor([1.0, -2, 3])
    assert torch.jit.load(path)(x, x).tolist() == [2, 5, 10]


class Containers(torch.nn.Module):
    def forward(self, numbers: list[int], named: dict[str, float], text: str) -> tuple[int, str, list[float]]:
        return sum(numbers), text + text, [named["a"], named["b"]]


def test_script_methods_take_and_give_objects(package: Path, tmp_path: Path) -> None:
    torch.jit.script(Containers()).save(tmp_path / "containers.pt")
    program = f"""
        const module = tn.jit.load({json.dumps(str(tmp_path / "containers.pt"))})
        answer = module.forward([1, 2, 3], {{ a: 1.5, b: 2.5 }}, 'ab')
        """
    assert js(package, program) == [6, "abab", [1.5, 2.5]]


def test_scripts_are_compiled_and_anomalies_detected(package: Path) -> None:
    program = """
        const unit = tn.jit.compile('def twice(x):\\n  return x * 2\\ndef more(x):\\n  return twice(x) + 1')
        const x = tn.tensor([-1]).requires_grad_()
        x.sqrt().sum().backward()
        answer = [unit.call('more', tn.tensor([3])).item()]
        try {
          tn.detect_anomaly(() => x.sqrt().sum().backward())
        } catch (error) {
          answer.push(error.message)
        }
        """
    found, message = js(package, program)
    assert found == 7 and "nan values" in message


def test_a_step_of_training_is_one_call(package: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.jit.script(torch.nn.Linear(2, 1)).save(tmp_path / "linear.pt")
    program = f"""
        const module = tn.jit.load({json.dumps(str(tmp_path / "linear.pt"))})
        const sgd = new tn.optim.SGD(Object.values(module.parameters()), {{ lr: 0.1, momentum: 0.9 }})
        const [x, y] = [tn.tensor([[1, 2], [3, 4]]), tn.tensor([[1], [2]])]
        const step = () => tn.train_step(module, sgd, 'mse_loss', [x], y).item()
        const losses = Array.from({{ length: 62 }}, step)
        answer = [losses[0], losses.at(-1), sgd.get('momentum')]
        """
    first, last, momentum = js(package, program)
    assert last < first / 5 and momentum == 0.9


# ---- mistakes -----------------------------------------------------------------------------------------

MISTAKES = [
    ("x.add('a')", "TN_ERROR_ARGUMENT", "add: cannot be called with (tensor, string)"),
    ("x.sum(0.5)", "TN_ERROR_ARGUMENT", "number with a fraction"),
    ("x.relu(1)", "TN_ERROR_ARGUMENT", "relu: cannot be called with"),
    ("x.sum({ dims: 1 })", "TN_ERROR_ARGUMENT", "has no argument dims"),
    ("tn.zeros(2, { dtype: 'float31' })", "TN_ERROR_ARGUMENT", "dtype is a ScalarType"),
    ("tn.tensor([[1, 2], [3]])", "TN_ERROR_ARGUMENT", "ragged"),
    ("tn.tensor([1, 'two'])", "TN_ERROR_ARGUMENT", "an element is a string"),
    ("tn.tensor([1, undefined])", "TN_ERROR_ARGUMENT", "an element is a undefined"),
    ("tn.tensor([1.5], { dtype: 'int64' })", "TN_ERROR_ARGUMENT", "1.5 is no int64"),
    ("tn.tensor(new Float32Array(3), { shape: [2, 2] })", "TN_ERROR_ARGUMENT", "do not fill"),
    ("tn.save({ x }, '/tmp/x')", "TN_ERROR_ARGUMENT", "a path, and tensors by name"),
    ("tn.save('/tmp/x', null)", "TN_ERROR_ARGUMENT", "a path, and tensors by name"),
    ("tn.save('/tmp/x\\0y', { x })", "TN_ERROR_ARGUMENT", "a path, and tensors by name"),
    ("tn.load('/tmp/x\\0y')", "TN_ERROR_ARGUMENT", "zero bytes"),
    ("tn.jit.load('/tmp/x\\0y')", "TN_ERROR_ARGUMENT", "zero bytes"),
    ("tn.call('aten::relu\\0', x)", "TN_ERROR_ARGUMENT", "zero bytes"),
    ("tn.call('aten::einsum', 'ij\\0', [x])", "TN_ERROR_ARGUMENT", "zero byte"),
    ("tn.einsum('ij\\0', [x])", "TN_ERROR_ARGUMENT", "einsum: cannot be called with"),
    ("new tn.nn.Linear('a', 2)", "TN_ERROR_ARGUMENT", "Linear: a is no size"),
    ("new tn.nn.Linear(2, 2).load_state_dict(null)", "TN_ERROR_ARGUMENT", "an object of tensors by name"),
    (
        "(() => { x.requires_grad_().register_hook(() => 'a'); x.sum().backward() })()",
        "TN_ERROR_ARGUMENT",
        "a hook returns a tensor or nothing",
    ),
    ("x.at(5)", "TN_ERROR_INDEX", "index 5 out of range"),
    ("x + 1", "TN_ERROR_TYPE", "x.add(y)"),
    ("x.matmul(tn.zeros(3, 3))", "TN_ERROR_TORCH", "mat1 and mat2 shapes"),
    ("(() => { const y = x.add(1); y.free(); return y.add(x) })()", "TN_ERROR_ARGUMENT", "self was freed"),
    ("(() => { const y = x.add(1); y.free(); return tn.cat([x, y]) })()", "TN_ERROR_ARGUMENT", "freed"),
    ("tn.jit.load('/nowhere.pt')", "TN_ERROR_NOT_FOUND", "/nowhere.pt"),
    ("tn.call('aten::nothing', x)", "TN_ERROR_NOT_FOUND", "nothing"),
    ("tn.call('aten::relu', 'text')", "TN_ERROR_TYPE", ""),
    ("new tn.optim.SGD([x], { lr: 'fast' })", "TN_ERROR_ARGUMENT", "number"),
    ("x.add(1).backward()", "TN_ERROR_TORCH", ""),
    ("(() => { const all = []; all.push(all); return tn.tensor(all) })()", "TN_ERROR_ARGUMENT", "64 deep"),
    ("tn.zeros(1e30)", "TN_ERROR_ARGUMENT", "zeros: cannot be called with"),
    ("new tn.Tensor(8)", "TN_ERROR_ARGUMENT", "not by new"),
    ("new x.constructor(1, 8, 0)", "TN_ERROR_ARGUMENT", "not by new"),
    ("new tn.optim.SGD([x]).set_state({ handle: 8 })", "TN_ERROR_ARGUMENT", "set_state takes what state()"),
    (
        "x.requires_grad_().sum().backward({ gradient: 'x' })",
        "TN_ERROR_ARGUMENT",
        "a tensor is needed, not a",
    ),
    ("tn.zeros(2n ** 70n)", "TN_ERROR_ARGUMENT", "zeros: cannot be called with"),
    ("x.add(2n ** 64n)", "TN_ERROR_ARGUMENT", "add: cannot be called with"),
    ("tn.tensor([300], { dtype: 'uint8' })", "TN_ERROR_ARGUMENT", "300 is no uint8"),
    ("tn.tensor([2n ** 63n])", "TN_ERROR_ARGUMENT", "9223372036854775808 is no int64"),
    ("tn.scope(async () => x.add(1))", "TN_ERROR_ARGUMENT", "must not be async"),
]


@pytest.fixture(scope="session")
def raised(package: Path) -> list[list[str]]:
    """For each mistake, all made in one process, the error's code and message."""
    attempts = ",\n".join(f"(x) => {expression}" for expression, _, _ in MISTAKES)
    program = f"""
        answer = [{attempts}].map((mistake) => {{
          const x = tn.tensor([[1, 2], [3, 4]])
          try {{
            mistake(x)
          }} catch (error) {{
            if (!(error instanceof tn.TenfoldError) || x.add(1).sum().item() !== 14) throw error
            return [error.code, error.message]
          }}
          return ['nothing', 'was thrown']
        }})
        """
    return js(package, program)


def test_a_tensor_keeps_its_handle_whatever_is_assigned_to_it(package: Path) -> None:
    assert js(package, "const x = tn.ones(3); x.handle = 8; answer = x.sum().item(); x.free()") == 3


FORGERIES = [
    "Object.defineProperty(tn.ones(3), 'handle', { value: 8 }).sum().item() === 3",
    "Object.create(tn.Tensor.prototype).sum()",
    "Object.defineProperty(Object.create(tn.Tensor.prototype), 'handle', { value: 8 }).item()",
    "Object.assign(tn.ones(3), { numel: () => 1 }).data()",
    "new tn.jit.Module(8).code()",
    "tn.jit.Module.prototype.code.call(Object.setPrototypeOf(tn.generator(1), tn.jit.Module.prototype))",
    "new (Object.getPrototypeOf(tn.jit.Module))(8, (handle) => handle).handle",
    "new (Object.getPrototypeOf(tn.optim.SGD))(() => 8, [tn.ones(1)], {}, 1).step()",
    "new (new tn.optim.SGD([x]).state().constructor)(8, (handle) => handle).handle",
    "tn.randn(3, { generator: Object.setPrototypeOf(new tn.optim.SGD([x]), generators) })",
    "f(x)",
]


def test_handles_cannot_be_forged(package: Path) -> None:
    program = """
      const x = tn.ones(3).requires_grad_()
      const generators = Object.getPrototypeOf(tn.generator(1))
      const forward = (context) => new context.constructor(8, 1)
      const f = tn.autograd_function({ forward, backward: () => null })
      answer = FORGERIES.map((forge) => {
        try { return forge() } catch (error) { return error.code ?? `${error}` }
      })"""
    program = program.replace("FORGERIES", "[" + ", ".join(f"() => {text}" for text in FORGERIES) + "]")
    assert js(package, program) == [True] + ["TN_ERROR_ARGUMENT"] * (len(FORGERIES) - 1)


@pytest.mark.parametrize("number", range(len(MISTAKES)), ids=[each[0] for each in MISTAKES])
def test_mistakes_are_errors(raised: list[list[str]], number: int) -> None:
    _, code, message = MISTAKES[number]
    assert raised[number][0] == code and message in raised[number][1], raised[number]


def test_an_error_in_a_traced_function_comes_through(package: Path) -> None:
    program = """
        const [x, mine] = [tn.ones(2), new Error('mine')]
        const caught = []
        for (const each of [() => tn.jit.trace(() => { throw mine }, [x]),
                            () => tn.scope(() => { x.add(1); throw mine })]) {
          try { each() } catch (error) { caught.push(error === mine) }
        }
        tn.collect()
        answer = [caught, tn.live_tensors()]
        """
    assert js(package, program) == [[True, True], 1]


def test_a_missing_library_is_told(package: Path, tmp_path: Path) -> None:
    bare = tmp_path / "tenfold"
    shutil.copytree(package, bare, symlinks=True)
    (bare / "generated" / "location.json").write_text('"/nowhere/libtenfold.so"')
    program = (
        f"try {{ require({json.dumps(str(bare))}) }} catch (e) {{ console.log(e.name, e.code, e.message) }}"
    )
    done = run("-e", program, TENFOLD_LIBRARY="/nowhere/else.so")
    assert (
        done.stdout.startswith("TenfoldError TN_ERROR_NOT_AVAILABLE") and "tenfold capi build" in done.stdout
    )


# ---- memory -------------------------------------------------------------------------------------------

RESIDENT = "/VmHWM:\\s*(\\d+)/.exec(require('fs').readFileSync('/proc/self/status', 'utf8'))[1] * 1024"


@pytest.mark.parametrize("count", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_loop_of_large_tensors_stays_small(package: Path, count: int) -> None:
    program = (
        f"for (let i = 0; i < {count}; i += 1) tn.zeros(512, 512)\nanswer = [tn.peak_bytes(), {RESIDENT}]"
    )
    peak, resident = js(package, program)
    assert peak < 300e6 and resident < 500e6


def test_a_loop_of_small_tensors_stays_small(package: Path) -> None:
    program = """
        const x = tn.ones(1)
        answer = 0
        for (let i = 0; i < 100000; i += 1) {
          x.add(x)
          if (i % 100 === 0) answer = Math.max(answer, tn.live_tensors())
        }
        """
    assert js(package, program) < 30_000


def test_tensors_go_between_turns_of_the_event_loop(package: Path) -> None:
    program = f"""
        const tn = require({json.dumps(str(package))})
        const turn = () => new Promise((resolve) => setTimeout(resolve, 20))
        async function main() {{
          for (let i = 0; i < 1000; i += 1) tn.ones(1)
          for (let i = 0; i < 20 && tn.live_tensors() > 10; i += 1) {{
            await turn()
            global.gc()
          }}
          console.log(tn.live_tensors())
        }}
        main()
        """
    assert int(run("--expose-gc", "-e", program).stdout) <= 10


def test_scopes_free_what_is_not_returned(package: Path) -> None:
    program = """
        const x = tn.ones(2)
        const [y, more] = tn.scope(() => {
          const inner = tn.scope(() => x.add(1))
          return [inner.mul(2), { sum: inner.sum() }]
        })
        const left = tn.live_tensors()
        answer = [left, y.sum().item(), more.sum.item()]
        """
    assert js(package, program) == [3, 8, 4]


def test_memory_that_ran_out_is_looked_for_again(package: Path) -> None:
    program = f"""
        const {{ C }} = require({json.dumps(str(package / "lib" / "core.js"))})
        const x = tn.ones(4)
        C.tn_debug_fail_allocation(1)
        answer = x.add(x).sum().item()
        """
    assert js(package, program) == 8


def test_handles_are_right_in_checked_mode(package: Path) -> None:
    program = """
        let x = tn.ones(2)
        for (let i = 0; i < 30000; i += 1) x = x.mul(1)
        const y = x.add(1)
        y.free()
        y.free()
        answer = x.sum().item()
        """
    assert js(package, program, TENFOLD_CHECKED="1") == 2


# ---- the package --------------------------------------------------------------------------------------

TYPED = """
import tn = require('tenfold')

const x = tn.randn(2, 3, { dtype: 'float64' })
const y: number[] = x.add(1).relu().sum({ dim: [1], keepdim: true }).shape
const [values, places] = x.max(1)
const traced = tn.jit.trace((a, b) => a.mul(b), [x, x])
const adam = new tn.optim.Adam([x], { lr: 0.1 })
tn.scope(() => tn.cat([values, places.float()]).add_(tn.double(2)))
adam.step()
traced.save('x.pt')
// @ts-expect-error: a string is no tensor
x.matmul('x')
// @ts-expect-error: there is no such operator
tn.nothing(x)
console.log(y)
"""


def test_typescript_checks_programs(package: Path, modules: Path, tmp_path: Path) -> None:
    compiler = modules / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        pytest.skip("there is no TypeScript: npm install typescript")
    (tmp_path / "program.ts").write_text(TYPED)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "tenfold").symlink_to(package)
    (tmp_path / "node_modules" / "@types").symlink_to(modules / "@types")
    options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--types", "node"]
    done = subprocess.run(
        [str(node), compiler, *options, "program.ts"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_npm_packs_and_installs_it(package: Path, tmp_path: Path) -> None:
    packed = subprocess.run(
        [str(npm), "pack", "--json", "--pack-destination", str(tmp_path)],
        cwd=package,
        capture_output=True,
        text=True,
    )
    assert packed.returncode == 0, packed.stderr
    files = {each["path"] for each in json.loads(packed.stdout)[0]["files"]}
    assert {
        "index.js",
        "index.d.ts",
        "lib/core.js",
        "generated/operators.json",
        "generated/operators.d.ts",
    } <= files


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples" / "node").glob("*.js")), ids=lambda path: path.stem
)
def test_examples_run(package: Path, path: Path, tmp_path: Path) -> None:
    learning.all_digits(tmp_path / "digits.safetensors")
    done = run(path, tmp_path, NODE_PATH=str(package.parent))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_documented_program_runs(package: Path) -> None:
    text = (ROOT / "docs" / "bindings.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```js\n(.*?)```", text, re.DOTALL)
    done = run("-e", program, NODE_PATH=str(package.parent))
    assert done.returncode == 0 and "TN_ERROR_TORCH" in done.stdout, done.stdout + done.stderr


# ---- networks -----------------------------------------------------------------------------------------


def test_layers_give_what_pytorchs_give(package: Path, tmp_path: Path) -> None:
    given, expected = networks.asked()
    save_file(given, str(tmp_path / "given.safetensors"))
    layers = json.dumps({name: arguments for name, (arguments, _) in networks.LAYERS.items()})
    losses = json.dumps([*networks.LOSSES])
    files = [tmp_path / "given.safetensors", layers, losses, tmp_path / "found.safetensors"]
    done = run(HERE / "networks.js", package, *files)
    assert done.returncode == 0, done.stderr
    found = load_file(str(tmp_path / "found.safetensors"))
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, msg=lambda text, name=name: f"{name}: {text}")


NETWORK = """
class Net extends tn.nn.Module {
  constructor() {
    super()
    this.body = new tn.nn.Sequential(new tn.nn.Linear(2, 3), new tn.nn.BatchNorm1d(3))
    this.head = new tn.nn.Linear(3, 1, { bias: false })
  }
  forward(x) { return this.head.call(this.body.call(x).tanh()) }
}
const net = new Net()
"""


def test_modules_have_names_states_and_modes(package: Path, tmp_path: Path) -> None:
    path = json.dumps(str(tmp_path / "net.safetensors"))
    program = f"""{NETWORK}
    tn.save({path}, net.state_dict())
    const other = new Net().load_state_dict(tn.load({path})).eval()
    const x = tn.randn(4, 2)
    answer = [Object.keys(net.named_parameters()), Object.keys(net.state_dict()).length, other.head.training,
              tn.equal(net.eval().call(x), other.call(x)), net.parameters().length]
    """
    names, states, training, same, count = js(package, program)
    assert names == ["body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias", "head.weight"]
    assert (states, training, same, count) == (7, False, True, 5)


def test_a_network_learns_from_batches_with_a_scheduler(package: Path) -> None:
    program = """
    tn.manual_seed(0)
    const x = tn.randn(64, 2), y = x.mm(tn.tensor([[1], [-2]])).add(0.5)
    const net = new tn.nn.Linear(2, 1), loss = new tn.nn.MSELoss()
    const optimizer = new tn.optim.SGD(net.parameters(), { lr: 0.2 })
    const schedule = tn.lr_scheduler.StepLR(optimizer, 10, 0.5)
    const loader = tn.DataLoader([x, y], { batch_size: 20, shuffle: true })
    let last
    for (let epoch = 0; epoch < 20; epoch += 1) {
      for (const [a, b] of loader) {
        optimizer.zero_grad()
        last = loss.call(net.call(a), b)
        last.backward()
        optimizer.step()
      }
      schedule.step()
    }
    answer = [loader.length, last.item() < 1e-3, schedule.get_last_lr()]
    """
    batches, learned, rate = js(package, program)
    assert (batches, learned) == (4, True) and math.isclose(rate, 0.05)


def test_wrong_options_of_layers_are_refused(package: Path) -> None:
    program = """
    const told = (make) => { try { make(); return 'fine' } catch (error) { return error.message } }
    answer = [told(() => new tn.nn.Linear(3)), told(() => new tn.nn.Linear(3, 2, { biass: true })),
              told(() => new tn.nn.ReLU().call(1)),
              told(() => new tn.nn.Linear(2, 2).load_state_dict({ weight: tn.ones(2, 2) })),
              told(() => tn.lr_scheduler.StepLR({}, 3)),
              told(() => tn.lr_scheduler.ExponentialLR(new tn.optim.SGD([tn.ones(1)]))),
              told(() => tn.lr_scheduler.LambdaLR(new tn.optim.SGD([tn.ones(1)]), 3)),
              told(() => tn.lr_scheduler.CosineAnnealingLR(new tn.optim.SGD([tn.ones(1)]), 3, 'x')),
              ...[0, 1.5].map((size) => told(() => tn.DataLoader([tn.ones(3)], { batch_size: size })))]
    """
    needs, unknown, called, state, whose, gamma, factor, least, *batches = js(package, program)
    assert "needs out_features" in needs and "biass" in unknown and "called with input" in called
    assert "differ in bias" in state and "takes an optimizer" in whose and "eta_min" in least
    assert [each.partition("more, not ")[2] for each in batches] == ["0", "1.5"]
    assert (
        "gamma of a scheduler is a number above 0, not undefined" in gamma
        and "function of the step" in factor
    )
