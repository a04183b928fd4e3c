"""How deep TorchScript sources may go: what libtorch's compiler could not follow is refused before."""

from __future__ import annotations

import threading

import pytest

from tenfold.base.errors import TenfoldError
from tests.capi.bridge import Bridge

DEEP = {
    "brackets": lambda n: "return " + "(" * n + "x" + ")" * n,
    "brackets after some in a comment": lambda n: f"# {')' * n}\n  return " + "(" * n + "x" + ")" * n,
    "brackets after some in text": lambda n: f"'{')' * n}'\n  return " + "(" * n + "x" + ")" * n,
    "sums": lambda n: "return x" + "+x" * n,
    "sums over lines": lambda n: "return (x\n" + "+x\n" * n + ")",
    "signs": lambda n: "return " + "-" * n + "x",
    "not": lambda n: "return " + "not " * n + "c",
    "and": lambda n: "return c" + " and c" * n,
    "powers": lambda n: "return x" + "**x" * n,
    "choices": lambda n: "return " + "x if c else " * n + "x",
    "entries": lambda n: "return x" + "[0]" * n,
    "methods": lambda n: "return x" + ".abs()" * n,
    "branches": lambda n: "if c:\n    x = x\n" + "  elif c:\n    x = x\n" * n + "  return x",
    "blocks": lambda n: "".join(" " * (i and i + 2) + "if c:\n" for i in range(n)) + " " * (n + 3) + "pass",
}


def source(name: str, levels: int) -> bytes:
    return f"def f(x, c: bool):\n  {DEEP[name](levels)}\n".encode()


@pytest.mark.parametrize("name", DEEP)
def test_a_source_that_goes_too_deep_is_an_error(tn: Bridge, name: str) -> None:
    with pytest.raises(TenfoldError, match="400 levels deep"):
        tn.tn_module_compile(source(name, 3000 if name == "blocks" else 10**5))


def test_what_is_taken_fits_the_stack_of_a_small_thread(tn: Bridge) -> None:
    most: dict[str, int] = {}

    def compile_each() -> None:
        for name in DEEP:
            for levels in (390, 195, 130, 95):
                try:
                    tn.tn_module_free(tn.tn_module_compile(source(name, levels)))
                except TenfoldError:
                    continue
                most[name] = levels
                break

    before = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=compile_each)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert most.keys() == DEEP.keys() and most["sums"] == most["signs"] == 390 and most["brackets"] == 195


def test_a_long_source_need_not_be_deep(tn: Bridge) -> None:
    numbers = "[" + ", ".join(["1.5 + 0.5"] * 2000) + "]"
    lines = [f"y = {numbers}", f"z = '{'(' * 300}'  # {'[' * 300}", *["x = x * 2"] * 600, "return x"]
    module = tn.tn_module_compile("\n  ".join(["def f(x):", *lines]).encode())
    tn.tn_module_free(module)


@pytest.mark.parametrize("name", DEEP)
def test_what_is_taken_is_saved_and_loads_again(tn: Bridge, name: str) -> None:
    for levels in range(400, 0, -1):
        try:
            module = tn.tn_module_compile(source(name, levels))
        except TenfoldError as error:
            assert "levels deep" in str(error)
            continue
        break
    saved = tn.array(tn.keep(tn.tn_module_save_data(module))).tobytes()
    tn.tn_module_free(module)
    tn.tn_module_free(tn.tn_module_load_data(saved, len(saved), None))
