"""tn_call reaches every overload of the dispatcher, and does there what PyTorch does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.capi.bridge import Bridge, built, nothing_left

ROOT = Path(__file__).parents[2]


def test_every_overload_gives_what_pytorch_gives_or_its_error() -> None:
    built()
    command = [sys.executable, "-W", "ignore", "-m", "tests.capi.dispatcher_sweep"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for line in done.stdout.splitlines():
        if line.startswith('{"name"'):
            told = json.loads(line)
            found[told["outcome"]].append((told["name"], told["detail"]))
    counts = {outcome: len(each) for outcome, each in found.items()}
    fine = {
        "equal",
        "same error",
        "refused earlier",
        "no plain arguments",
        "unsafe",
        "done",
    }
    assert set(found) <= fine, {outcome: each[:10] for outcome, each in found.items() if outcome not in fine}
    assert counts.get("refused earlier", 0) <= 60, counts
    assert counts["equal"] + counts["same error"] >= 2900, counts
    assert counts["equal"] >= 2000, counts
    assert found["done"] == [("", [0, 0])]  # live tensors and objects


def test_missing_arguments_take_their_defaults() -> None:
    tn = Bridge()
    with nothing_left(tn):
        assert tn.array(tn.call("add.Tensor", tn.tensor([1.0]), tn.tensor([2.0]))) == [3.0]
        total = tn.call("sum.dim_IntList", tn.tensor([[1.0, 2.0]]), [1])
        assert tn.array(total).tolist() == [3.0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aten::nope", "has no operator aten::nope"),
        ("aten::add", "its overloads are aten::add.Scalar"),
        ("add", "is no operator's name"),
        ("aten::", "is no operator's name"),
        ("aten::add.", "is no operator's name"),
        ("aten::add.Tensor(", "is no operator's name"),
        ("::add", "is no operator's name"),
        ("\x01\xff", "is no operator's name"),
        ("a" * 100000, "is no operator's name"),
    ],
)
def test_a_wrong_name_is_an_error(name: str, message: str) -> None:
    lib = Bridge().lib
    assert lib.raw("tn_find")(name.encode("latin-1")) is None
    assert message in lib.tn_error_message().decode("utf-8", "replace")


def test_arguments_are_checked_against_the_schema() -> None:
    tn = Bridge()
    with nothing_left(tn):
        stack = tn.tn_stack_new()
        cases = [
            (["text"], "self takes Tensor, and was given a string"),
            ([], "self is missing"),
            ([tn.tensor([1.0]), None], "other takes Tensor, and was given None"),
            ([tn.tensor([1.0]), tn.tensor([1.0]), 1, 2], "takes 3 arguments, and was given 4"),
            ([tn.tensor([1.0]), tn.tensor([1.0]), "x"], "alpha takes"),
        ]
        for arguments, message in cases:
            for each in arguments:
                if each is None:
                    tn.tn_stack_push_none(stack)
                elif isinstance(each, str):
                    tn.tn_stack_push_string(stack, each.encode())
                else:
                    tn.push(stack, each)
            assert tn.raw("tn_call")(b"aten::add.Tensor", stack) != 0
            assert message in tn.tn_error_message().decode(), (message, tn.tn_error_message())
            assert tn.tn_stack_count(stack) == 0
        tn.tn_stack_free(stack)


def test_an_enumeration_out_of_range_does_not_reach_libtorch() -> None:
    tn = Bridge()
    with nothing_left(tn):
        stack = tn.tn_stack_new()
        tn.push(stack, [2])
        tn.push(stack, 999)
        assert tn.raw("tn_call")(b"aten::zeros", stack) == 1
        assert "which is no ScalarType" in tn.tn_error_message().decode()
        tn.tn_stack_free(stack)


def test_every_operator_is_found_by_its_number_and_its_name() -> None:
    tn = Bridge()
    count = tn.tn_op_count()
    found = [tn.lib.text("tn_op_schema", tn.tn_op_at(i)).split("(")[0] for i in range(count)]
    assert len(set(found)) == count > 3000
    assert all(tn.tn_find(name.encode()) for name in found)


def test_operators_of_other_libraries_that_take_tensors_by_value_are_called() -> None:
    tn = Bridge()
    with nothing_left(tn):
        quantized = tn.call("quantize_per_tensor", tn.tensor([1.0, 2.0]), 0.5, 0, 13)
        stack = tn.tn_stack_new()
        tn.tn_stack_push_tensor(stack, quantized)
        tn.tn_stack_push_double(stack, 3.0)
        tn.tn_call(b"quantized::mul.Scalar", stack)
        tripled = tn.keep(tn.tn_stack_tensor_at(stack, 0))
        tn.tn_stack_free(stack)
        assert tn.array(tn.call("dequantize.self", tripled)).tolist() == [3.0, 6.0]
