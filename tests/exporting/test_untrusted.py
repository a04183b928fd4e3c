"""Damaged and hostile program files: refused by an error of Tenfold's, whatever MLIR, XLA and IREE do."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

import tenfold as tn
from tenfold import nn
from tenfold.base import digests
from tenfold.exporting import untrusted


@pytest.fixture(scope="module")
def exported() -> tn.exporting.Exported:
    tn.manual_seed(0)
    return tn.export(nn.Linear(3, 2), (tn.ones(1, 3),), dialect="stablehlo", parameters="literals")


@pytest.fixture(scope="module")
def vmfb() -> bytes:
    pytest.importorskip("iree.compiler")
    return tn.export(lambda x: x * 2, (tn.ones(3),)).build()


def damaged(data: bytes, seed: int) -> bytes:
    chance = random.Random(seed)
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]


def without_digest(data: bytes) -> bytes:
    return digests._DIGEST.sub(b"x" * len(digests.BLANK), data)


def test_every_damaged_byte_of_a_saved_file_is_found_before_it_is_parsed(exported, monkeypatch):
    for data in (exported.portable(), exported.bytecode()):
        monkeypatch.setattr(untrusted, "_ask", lambda *_: pytest.fail("parsed"))
        inside = [seed for seed in range(60) if b"tenfold-sha256:" in damaged(data, seed)]
        for seed in inside:
            with pytest.raises(tn.FormatError, match="damaged"):
                tn.load_stablehlo(damaged(data, seed))
        assert len(inside) > 50


def test_every_damaged_byte_of_a_built_file_is_found_before_it_is_loaded(vmfb):
    for seed in range(60):
        data = damaged(vmfb, seed)
        if b"tenfold-sha256:" in data:
            with pytest.raises(tn.FormatError, match="damaged"):
                tn.load_vmfb(data)


def test_damaged_machine_code_in_a_file_that_iree_wrote_is_found_before_it_is_loaded(monkeypatch):
    """A relocation that points elsewhere writes into memory that is not its own, and may crash much later."""
    tools = pytest.importorskip("iree.compiler.tools")
    text = tn.export(lambda x: x * 2, (tn.ones(3),)).text(whole=True)
    data = tools.compile_str(text, target_backends=["llvm-cpu"], input_type="torch")
    assert tn.load_vmfb(data)(tn.ones(3)).tolist() == [2, 2, 2]
    monkeypatch.setattr(untrusted, "_ask", lambda *_: pytest.fail("loaded"))
    code, disk = data.index(b"\x7fELF"), data.rindex(b"PK\6\7") + 4
    for place in (disk, *range(code, code + 0x600, 29)):
        changed = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
        with pytest.raises(tn.FormatError, match="damaged: its contents do not match their checksums"):
            tn.load_vmfb(changed)


@pytest.mark.parametrize("form", ["portable", "bytecode"])
def test_files_of_others_that_are_damaged_do_not_end_the_process(exported, form):
    data = without_digest(getattr(exported, form)())
    tn.load_stablehlo(data)
    refused = 0
    for seed in range(40):
        try:
            tn.load_stablehlo(damaged(data, seed))(tn.ones(1, 3))
        except tn.TenfoldError:
            refused += 1
    assert refused


def test_text_that_is_damaged_does_not_end_the_process(exported):
    text = exported.text(whole=True).encode()
    for seed in range(40):
        try:
            tn.load_stablehlo(damaged(text, seed))(tn.ones(1, 3))
        except tn.TenfoldError:
            continue


def test_a_file_that_kills_its_reader_is_refused(monkeypatch):
    monkeypatch.setattr(
        untrusted, "COMMAND", "import os; print('ready', flush=True); os.read(0, 1); os.abort()"
    )
    untrusted._stop()
    with pytest.raises(tn.FormatError, match="died of it \\(SIGABRT\\)"):
        tn.load_stablehlo(b"module { func.func @main() { return } }")


def test_a_file_that_takes_its_reader_forever_is_refused(monkeypatch):
    monkeypatch.setattr(untrusted, "COMMAND", "import time; print('ready', flush=True); time.sleep(100)")
    monkeypatch.setattr(untrusted, "SECONDS", 0.2)
    untrusted._stop()
    with pytest.raises(tn.FormatError, match="takes over"):
        tn.load_stablehlo(b"module { func.func @main() { return } }")


def test_a_reader_whose_parent_was_killed_ends_by_itself():
    program = (
        "from tenfold.exporting import untrusted; untrusted.portable.read = lambda _: {}; untrusted.serve()"
    )
    forever = program.format("exec('while True: pass')")
    with subprocess.Popen([sys.executable, "-c", forever], stdin=-1, stdout=-1) as child:
        assert child.stdout.readline() == b"ready\n"
        untrusted.write(child.stdin, {"do": "read", "seconds": 0}, b"")
        assert untrusted.receive(child.stdout)[0]["died"] == "SIGALRM"
        child.stdin.close()
        assert child.wait(60) == 0


DEADLY = """
import os
from tenfold.exporting import untrusted

read = untrusted.portable.read
untrusted.portable.read = lambda data: os.abort() if b"deadly" in data else read(data)
untrusted.serve()
"""


def test_a_file_that_kills_its_reader_does_not_end_the_process_that_reads_the_next(monkeypatch):
    monkeypatch.setattr(untrusted, "COMMAND", DEADLY)
    untrusted._stop()
    module = b"module { func.func @main() { return } }"
    tn.load_stablehlo(module + b"// before\n")
    before = untrusted._child
    with pytest.raises(tn.FormatError, match="died of it \\(SIGABRT\\)"):
        tn.load_stablehlo(module + b"// deadly\n")
    tn.load_stablehlo(module + b"// after\n")
    assert untrusted._child is before
    untrusted._stop()


SLOW = """
from tenfold.exporting import untrusted

def endless(data):
    while True:
        pass

untrusted.portable.read, untrusted.PROCESSOR_SECONDS = endless, 0.1
untrusted.serve()
"""


def test_a_file_that_its_reader_computes_on_for_long_is_refused(monkeypatch):
    monkeypatch.setattr(untrusted, "COMMAND", SLOW)
    untrusted._stop()
    with pytest.raises(tn.FormatError, match="too long for its length"):
        tn.load_stablehlo(b"module { func.func @main() { return } }")


COMPILING = """
import time
from tenfold.exporting import untrusted

def endless(module, device):
    while not {idle}:
        pass
    time.sleep(100)

untrusted.xla.compile = endless
untrusted.serve()
"""


@pytest.mark.parametrize(("idle", "limit"), [(False, "1 seconds of processor time"), (True, "2 seconds")])
def test_a_module_that_is_compiled_for_long_is_refused(idle, limit, monkeypatch, tmp_path):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TENFOLD_COMPILE_SECONDS", "1")
    monkeypatch.setattr(untrusted, "BUSY", 2.0 if idle else 100.0)
    monkeypatch.setattr(untrusted, "COMMAND", COMPILING.format(idle=idle))
    untrusted._stop()
    run = tn.load_stablehlo(b"module { func.func @main() { return } } // compiled for long")
    with pytest.raises(tn.FormatError, match=f"takes over {limit}: it is refused") as told:
        run()
    assert "set TENFOLD_COMPILE_SECONDS" in str(told.value)
    untrusted._stop()


def test_a_module_of_thousands_of_constants_is_read_in_its_time():
    body = " ".join(f"%{i} = stablehlo.constant dense<{i}> : tensor<i32>" for i in range(12_000))
    tn.load_stablehlo(f"module {{ func.func @main() {{ {body} return }} }}".encode())


HUNGRY = """
from tenfold.exporting import untrusted
untrusted.portable.read = lambda data: bytearray(2 * untrusted.READING_MEMORY)
untrusted.serve()
"""


def test_a_file_that_its_reader_takes_much_memory_for_is_refused(monkeypatch):
    monkeypatch.setattr(untrusted, "COMMAND", HUNGRY)
    untrusted._stop()
    with pytest.raises(tn.OutOfMemoryError, match="no memory to read the file"):
        tn.load_stablehlo(b"module { func.func @main() { return } }")


def test_an_interpreter_that_does_not_start_is_said(monkeypatch):
    monkeypatch.setattr(untrusted, "COMMAND", "raise SystemExit(3)")
    untrusted._stop()
    with pytest.raises(tn.EngineError, match="exit status 3"):
        tn.load_stablehlo(b"module { func.func @main() { return } }")


def test_what_was_saved_here_or_tried_before_is_not_tried_again(exported, tmp_path, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path / "cache"))
    foreign = exported.text(whole=True).encode() + b"// by hand\n"
    tn.load_stablehlo(foreign)(tn.ones(1, 3))
    exported.save(tmp_path / "model.stablehlo")
    monkeypatch.setattr(untrusted, "_known", {})  # as in another process
    monkeypatch.setattr(untrusted, "_ask", lambda *_: pytest.fail("tried again"))
    tn.load_stablehlo(foreign)(tn.ones(1, 3))
    tn.load_stablehlo(tmp_path / "model.stablehlo")(tn.ones(1, 3))


OPEN = """module {{ func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {{
    %size = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %by = stablehlo.constant dense<{by}> : tensor<i32>
    %other = stablehlo.{op} %size, %by : tensor<i32>
    %sizes = stablehlo.reshape %other : (tensor<i32>) -> tensor<1xi32>
    %0 = stablehlo.dynamic_iota %sizes, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    return %0 : tensor<?xf32> }} }}"""


@pytest.mark.parametrize("op", ["divide", "remainder"])
def test_sizes_that_kill_who_computes_them_are_refused(op):
    """MLIR divides numbers that it knows, by zero too."""
    assert tn.load_stablehlo(OPEN.format(op=op, by=3).encode())(tn.ones(5)).shape == (
        5 // 3 if op == "divide" else 5 % 3,
    )
    run = tn.load_stablehlo(OPEN.format(op=op, by=0).encode())
    with pytest.raises(tn.FormatError, match=r"died of it \(SIGFPE\)"):
        run(tn.ones(4))


def test_sizes_that_were_fixed_before_are_not_fixed_again(tmp_path, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path / "cache"))
    text = OPEN.format(op="multiply", by=3).encode()
    tn.load_stablehlo(text)(tn.ones(2))
    monkeypatch.setattr(untrusted, "_known", {})  # as in another process
    monkeypatch.setattr(untrusted, "_ask", lambda *_: pytest.fail("tried again"))
    assert tn.load_stablehlo(text)(tn.ones(2)).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_file_of_others_may_have_open_sizes():
    text = b"""module { func.func @main(%a: tensor<?x3xf32>) -> tensor<?x3xf32> {
        %0 = stablehlo.add %a, %a : tensor<?x3xf32> return %0 : tensor<?x3xf32> } }"""
    run = tn.load_stablehlo(text)
    assert run(tn.ones(2, 3)).shape == (2, 3) and run(tn.ones(5, 3)).shape == (5, 3)


@pytest.mark.parametrize("load", [tn.load_stablehlo, tn.load_vmfb])
def test_a_pipe_or_a_device_in_the_place_of_a_program_is_not_waited_for(load, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(tn.FormatError, match="no regular file"):
            load(path)
    with pytest.raises(tn.FormatError, match="null byte"):
        load("a\0b")


UNHEARD = """
import signal
import tenfold as tn
from tenfold.exporting import untrusted
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGCHLD})
readers = []
for comment in (b"one", b"two"):
    tn.load_stablehlo(b"module { func.func @main() { return } } // " + comment)
    readers.append(untrusted._child)
print(readers[0] is readers[1])
"""


def test_one_reader_serves_where_the_program_ignores_or_blocks_signals(tmp_path, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", UNHEARD], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n", done.stderr
