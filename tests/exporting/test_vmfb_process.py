"""Files that IREE compiled for others run in a process of their own, and end that alone."""

from __future__ import annotations

import io
import os
import signal
import struct
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pytest

import tenfold as tn
from tenfold.base import forking
from tenfold.exporting import untrusted, vmfb_process

pytest.importorskip("iree.compiler")


def compiled(function, *arguments):
    """A file as IREE writes it, without a digest of Tenfold's."""
    from iree.compiler.tools import compile_str

    text = tn.export(function, arguments).text(whole=True)
    flags = ["--iree-llvmcpu-target-cpu=generic"]
    return compile_str(text, target_backends=["llvm-cpu"], input_type="torch", extra_args=flags)


@pytest.fixture(scope="module")
def foreign() -> bytes:
    return compiled(lambda x: x * 2 + 1, tn.ones(3))


@pytest.fixture
def run(foreign, tmp_path, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path))
    return tn.load_vmfb(foreign)


def repacked(data: bytes, part: zipfile.ZipInfo, changed: bytes) -> bytes:
    start = part.header_offset + data[part.header_offset :].index(zip_of(data).read(part))
    data = data[:start] + changed + data[start + len(changed) :]
    return data.replace(struct.pack("<I", part.CRC), struct.pack("<I", zlib.crc32(changed)))


def zip_of(data: bytes) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(data))


def test_a_file_of_others_computes_in_another_process(run):
    assert isinstance(run._executable, vmfb_process.Apart)
    for n in range(3):
        assert run(tn.full((3,), float(n))).tolist() == [2 * n + 1] * 3
    with pytest.raises(tn.EngineError, match="shape rank mismatch"):
        run(tn.ones(3, 3))
    assert run(tn.zeros(3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int64", "int8", "bool"])
def test_arrays_of_every_dtype_go_there_and_come_back(dtype):
    given = [tn.tensor([[1, 0]]).to(getattr(tn, dtype)), tn.zeros(0, 2), tn.tensor(1.5)]
    header, data = vmfb_process._packed([each.numpy() for each in given])
    for ours, theirs in zip(given, vmfb_process._unpacked(header, data), strict=True):
        assert theirs.dtype == ours.numpy().dtype
        np.testing.assert_array_equal(theirs, ours.numpy())


def test_a_file_that_the_user_wrote_or_trusts_runs_here(foreign):
    own = tn.export(lambda x: x * 2, (tn.ones(3),)).build()
    assert not isinstance(tn.load_vmfb(own)._executable, vmfb_process.Apart)
    with tn.serialize.trusting_files():
        assert not isinstance(tn.load_vmfb(foreign)._executable, vmfb_process.Apart)


def test_machine_code_that_crashes_ends_its_own_process_alone(run):
    os.kill(run._executable._process.pid, signal.SIGSEGV)
    for _ in range(2):
        with pytest.raises(tn.EngineError, match=r"the \.vmfb ran has ended \(SIGSEGV\)"):
            run(tn.ones(3))


@pytest.mark.parametrize("field", [0x18, 0x20, 0x28, 0x36, *range(0x48, 0x120, 0x18), 0x1A0, 0x1B8])
def test_damaged_machine_code_with_the_right_checksum_is_refused_or_runs_apart(foreign, field):
    """Where it relocates itself to decides whether it crashes: nothing that was tried before tells."""
    code = zip_of(foreign).infolist()[1]
    changed = bytearray(zip_of(foreign).read(code))
    changed[field : field + 8] = struct.pack("<Q", (1 << 64) - 4096)
    data = repacked(foreign, code, bytes(changed))
    try:
        assert isinstance(tn.load_vmfb(data)._executable, vmfb_process.Apart)
    except tn.FormatError:
        return


@pytest.mark.parametrize(("offset", "length"), [(-(1 << 40), 1 << 40), (-4096, 4096), (1 << 63, 1 << 63)])
def test_offsets_of_64_bits_that_overflow_are_refused(foreign, offset, length):
    module, code = zip_of(foreign).infolist()[:2]
    inside = zip_of(foreign).read(module)
    place = inside.index(struct.pack("<Q", code.file_size)) - 8  # the offset lies before the length
    changed = bytearray(inside)
    changed[place : place + 16] = struct.pack("<QQ", offset % (1 << 64), length)
    with pytest.raises(tn.FormatError):
        tn.load_vmfb(repacked(foreign, module, bytes(changed)))


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError, ValueError])
def test_a_call_that_is_interrupted_ends_the_process(run, error, monkeypatch):
    def interrupted(stream):
        raise error

    with monkeypatch.context() as patch, pytest.raises(error):
        patch.setattr(untrusted, "receive", interrupted)
        run(tn.ones(3))
    with pytest.raises(tn.EngineError, match="interrupted"):
        run(tn.ones(3))


def test_a_process_that_was_forked_is_told_to_load_the_file_itself(run, monkeypatch):
    monkeypatch.setattr(run._executable, "_owner", os.getpid() + 1)
    with pytest.raises(tn.EngineError, match="belongs to the process that loaded it"):
        run(tn.ones(3))


FORKED = """
import os, sys, threading, time
import tenfold as tn
from tenfold.base import forking
from tenfold.exporting import untrusted
data = open(sys.argv[1], "rb").read()
run = tn.load_vmfb(data)
threading.Thread(target=run._executable._lock.acquire).start()  # as a call does while it computes
time.sleep(0.1)
start = time.monotonic()
child = os.fork()
if child == 0:
    try:
        run(tn.ones(3))
    except tn.EngineError as error:
        print(error.message, flush=True)
    print(tn.load_vmfb(data)(tn.ones(3)).tolist(), flush=True)
    untrusted._stop()
    os._exit(0)
assert time.monotonic() - start < 1, "the fork waited for the file"
os.waitpid(child, 0)
run._executable._lock.release()
print(run(tn.ones(3)).tolist())
"""


def test_a_fork_waits_for_no_file_and_may_load_it_itself(foreign, tmp_path):
    path = tmp_path / "x.vmfb"
    path.write_bytes(foreign)
    command = [sys.executable, "-c", FORKED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    refusal = "the .vmfb runs in a process of its own, which belongs to the process that loaded it"
    assert done.stdout.splitlines() == [refusal, "[3.0, 3.0, 3.0]", "[3.0, 3.0, 3.0]"], done.stderr


def test_its_process_ends_with_the_module_and_leaves_no_lock(foreign):
    tn.load_vmfb(foreign)
    locks = len(forking._locks)
    module = tn.load_vmfb(foreign)
    process = module._executable._process
    del module
    assert process.poll() is not None
    assert len(forking._locks) == locks


@pytest.mark.parametrize("reply", [b"[]\n", b"{}\n", b'{"bytes": 0, "arrays": [["float32", [4]]]}\n', b"x\n"])
def test_a_reply_that_makes_no_sense_ends_the_process(run, reply, monkeypatch):
    monkeypatch.setattr(run._executable._process, "stdout", io.BytesIO(reply))
    with pytest.raises(tn.EngineError, match="its reply makes no sense"):
        run(tn.ones(3))
    assert run._executable._process.poll() is not None


ENDLESS = """
from tenfold.exporting import vmfb_process
with vmfb_process._ending_with_the_other():
    print("computing", flush=True)
    while True:
        pass
"""


def test_what_computes_for_ever_ends_when_nobody_waits_for_it():
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdin=-1, stdout=-1) as process:
        assert process.stdout.readline() == b"computing\n"
        process.stdin.close()
        assert process.wait(60) == -signal.SIGIO
