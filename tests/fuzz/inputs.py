"""What is fuzzed: for each format a valid input, hostile ones made by its grammar, and what reads it."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import math
import os
import random
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import tenfold as tn
from tenfold import nn
from tenfold.base import digests
from tenfold.compat import export
from tenfold.purple.emit_c import deep
from tenfold.purple.interpret import expand_program
from tenfold.runtime import cache
from tests.fuzz.modules import hostile_program

EXTREMES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1]


class Format(NamedTuple):
    valid: Callable[[], bytes]
    read: Callable[[bytes], object]
    grammar: Callable[[random.Random], bytes] | None = None
    share: float = 0.3  # of the inputs that the grammar makes


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The data with a few of its bytes flipped, cut, doubled, moved, or made extreme numbers."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 4, 16])):
        if not changed:
            return b""
        place = chance.randrange(len(changed))
        other = chance.randrange(len(changed))
        size = chance.choice([1, 2, 4, 8, 64])
        match chance.randrange(7):
            case 0:
                changed[place] ^= 1 << chance.randrange(8)
            case 1:
                changed[place] = chance.randrange(256)
            case 2:
                del changed[place : place + size]
            case 3:
                changed[place:place] = changed[other : other + size]
            case 4:
                number = struct.pack("<Q", chance.choice(EXTREMES))[: min(size, 8)]
                changed[place : place + len(number)] = number
            case 5:
                changed[place : place + size] = changed[other : other + size]
            case 6:
                del changed[max(place, 1) :]
    return bytes(changed)


def attempt(format: Format, seed: int) -> None:
    """Read the input of one seed; errors of Tenfold's are its right answer."""
    chance = random.Random(seed)
    by_grammar = format.grammar is not None and chance.random() < format.share
    data = format.grammar(chance) if by_grammar and format.grammar else mutated(format.valid(), chance)
    try:
        format.read(data)
    except tn.TenfoldError:
        return


def _saved(write: Callable[[io.BytesIO], None]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


@functools.cache
def checkpoint() -> bytes:
    state = {"weight": tn.ones(2, 3), "steps": [1, 2.5, None], ("a", 1): {"k": tn.zeros(2, dtype=tn.int64)}}
    state |= {"leaf": nn.Parameter(tn.ones(2)), "nowhere": tn.ones(2, device="meta"), "tagged": tn.ones(3)}
    state |= {"sparse": tn.eye(2).to_sparse(), "bytes": tn.zeros(2, dtype=tn.uint16)}
    for name in ("leaf", "nowhere", "tagged"):
        state[name].tag = {"of": state["weight"]}
    return _saved(lambda file: tn.save(state, file))


@functools.cache
def legacy() -> bytes:
    import torch

    state = {"weight": torch.ones(2, 3), "steps": [1, 2.5]}
    return _saved(lambda file: torch.save(state, file, _use_new_zipfile_serialization=False))


@functools.cache
def script() -> bytes:
    import torch

    return _saved(lambda file: torch.jit.save(torch.jit.script(torch.nn.Linear(2, 3)), file))


@functools.cache
def safetensors() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.safetensors")
        tn.save({"weight": tn.ones(2, 3), "bias": tn.zeros(3)}, path)
        return path.read_bytes()


@functools.cache
def _exported() -> tn.exporting.Exported:
    tn.manual_seed(0)
    model = lambda x: tn.linalg.solve(x, nn.functional.relu(x @ x)).sort(-1).values
    return tn.export(model, (tn.eye(3),), dialect="stablehlo", parameters="literals")


@functools.cache
def graph() -> dict[str, object]:
    """What a file of `export.save` holds."""
    tn.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    batch = export.Dim("batch", min=2, max=64)
    program = export.export(model, (tn.ones(2, 3),), dynamic_shapes=({0: batch},))
    return tn.load(io.BytesIO(_saved(lambda file: export.save(program, file))))


def hostile_graph(chance: random.Random) -> bytes:
    """A file of `export.save` whose graph has other words and numbers in some places."""
    about = json.loads(graph()["program"])
    for _ in range(chance.choice([0, 1, 1, 2, 3])):
        place = about
        while isinstance(place, (list, dict)) and place:
            key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if not isinstance(place[key], (list, dict)) or not place[key] or chance.random() < 0.2:
                place[key] = copy.deepcopy(chance.choice(STRANGE))
                break
            place = place[key]
    held = {**graph(), "program": json.dumps(about)}
    if chance.random() < 0.2:
        held[chance.choice(["state", "constants", "example"])] = chance.choice(
            [{}, [], 1, {"x": 1}, [tn.ones(2)]]
        )
    return _saved(lambda file: tn.save(held, file))


CODE = "__import__('os')._exit(7)"
STRANGE = [
    None, 1, -1, 1.5, "x", "", [], {}, [[]], {"node": "x"}, {"value": []}, "aten::add.Tensor", "call_method",
    "getitem", "aten::__class__.__subclasses__", "getattr", "*", "**x", f"x={CODE}", f"x); {CODE} #",
    f'"); {CODE}; ("', "weight", "__class__", "0.weight.data", "class", 1 << 70, {"tuple": ["*"]},
    "f32[batch,3]",
]  # fmt: skip


def run_graph(data: bytes) -> None:
    module = export.load(io.BytesIO(data)).module()
    with contextlib.suppress(TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        module(tn.ones(2, 3))  # a graph that was read may make no sense


def _foreign(data: bytes) -> bytes:
    return digests._DIGEST.sub(b"x" * len(digests.BLANK), data)


@functools.cache
def stablehlo() -> bytes:
    return _foreign(_exported().portable())


@functools.cache
def bytecode() -> bytes:
    return _foreign(_exported().bytecode())


@functools.cache
def text() -> bytes:
    return _exported().text(whole=True).encode()


@functools.cache
def vmfb() -> bytes:
    """A file as IREE writes it, without a digest of Tenfold's."""
    from iree.compiler.tools import compile_str

    text = tn.export(lambda x: x * 2 + 1, (tn.ones(3),)).text(whole=True)
    return compile_str(text, target_backends=["llvm-cpu"], input_type="torch")


def repacked(whole: bytes, chance: random.Random) -> bytes:
    """An archive of which one part is damaged and has the right checksum: the pickle of a checkpoint, or the
    module or the machine code of a `.vmfb`, which then does what it does in a process of its own."""
    data = bytearray(whole)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        part = chance.choice([each for each in archive.infolist() if each.file_size])
        inside = archive.read(part)
    changed = mutated(inside, chance)[: len(inside)].ljust(len(inside), b"\0")
    start = data.index(inside)
    data[start : start + len(inside)] = changed
    checksum, written = (struct.pack("<I", each) for each in (zlib.crc32(changed), part.CRC))
    return bytes(data.replace(written, checksum))


LOOPING = "loops"  # printed before a program that may never end is run


def run_machine_code(data: bytes) -> None:
    module = tn.load_vmfb(data)
    print(LOOPING, flush=True)
    module(tn.ones(3))


def run_module(data: bytes) -> None:
    module = tn.load_stablehlo(data)
    shapes = [[extent if isinstance(extent, int) else 4 for extent in each.shape] for each in module.inputs]
    if sum(math.prod(shape) for shape in shapes) < 10_000:
        types = zip(shapes, module.inputs, strict=True)
        if "stablehlo.while" in module.text():
            print(LOOPING, flush=True)
        module(*[tn.zeros(shape, dtype=each.dtype) for shape, each in types])


TYPES = [
    "tensor<4xf32>",
    "tensor<f32>",
    "tensor<4x4xf64>",
    "tensor<0xi8>",
    "tensor<?xf32>",
    "tensor<9999999999xi1>",
]
OPS = [
    "add tanh negate sort while case custom_call infeed outfeed send recv dynamic_slice gather scatter iota",
    "reshape transpose concatenate pad reduce reduce_window convolution dot_general fft cholesky constant",
    "triangular_solve rng rng_bit_generator all_reduce partition_id set_dimension_size composite select",
    "dynamic_reshape dynamic_broadcast_in_dim dynamic_iota real_dynamic_slice get_dimension_size",
]


def hostile_module(chance: random.Random) -> bytes:
    """Text that is nearly StableHLO: real ops on the wrong things, calls in circles, odd attributes."""
    type = chance.choice(TYPES)
    lines = []
    for i in range(chance.randrange(1, 6)):
        op = chance.choice(" ".join(OPS).split())
        operands = ", ".join(chance.choices(["%a", *[f"%v{j}" for j in range(i)]], k=chance.randrange(4)))
        count = operands.count("%")
        attributes = chance.choice(
            [
                "",
                "{dimension = 0 : i64}",
                f'{{call_target_name = "{chance.choice(["TopK", "lapack_sgetrf_ffi", "x"])}"}}',
                f"{{dimensions = array<i64: {chance.choice(EXTREMES) - (1 << 63)}>}}",
                "{iota_dimension = 7 : i64}",
                "{value = dense<1.0> : tensor<4xf32>}",
            ]
        )
        result = chance.choice(TYPES)
        takes = ", ".join([chance.choice([type, type, chance.choice(TYPES)]) for _ in range(count)])
        lines.append(f'%v{i} = "stablehlo.{op}"({operands}) {attributes} : ({takes}) -> {result}')
    called = chance.choice(["", f"%c = call @{chance.choice(['main', 'f'])}(%a) : ({type}) -> {type}"])
    more = chance.choice(["", f"func.func private @f({type}) -> {type}", "module {" * chance.randrange(2000)])
    body = "\n".join([*lines, called, f"return %a : {type}"])
    return f"module {{ func.func @main(%a: {type}) -> {type} {{ {body} }} {more} }}".encode()


PURPLE = """(define (f x) (let ((y (* x 2))) (if (> y 3) (tensor-sum (tensor y)) '(a . b))))
(define-syntax m (syntax-rules () ((_ x ...) (list x ... `(,f ,@(list 1))))))
(print (m 1 "two" #\\c 3.5 #(1 2)))
"""
WORDS = [
    "(",
    ")",
    "[",
    "]",
    "'",
    "`",
    ",",
    ",@",
    ".",
    "...",
    "#(",
    "#t",
    "#|",
    "|#",
    "#;",
    '"',
    "|",
    "define",
    "lambda",
    "let",
    "if",
    "quote",
    "define-syntax",
    "syntax-rules",
    "_",
    "x",
]


def hostile_source(chance: random.Random) -> bytes:
    words = chance.choices(
        [*WORDS, "1e999", "-0", "#\\x110000", "(m", "(define (f . x) x)"], k=chance.randrange(200)
    )
    return " ".join(words).encode() * chance.choice([1, 1, 1, 500])


def read_source(data: bytes) -> None:
    deep(lambda: expand_program(data.decode("utf-8", "replace"), "fuzzed.purple"))


PAYLOAD = b"the machine code of a program" * 20


@functools.cache
def entry() -> bytes:
    os.environ["TENFOLD_CACHE_DIR"] = tempfile.mkdtemp(prefix="tenfold-fuzz-")
    cache.store("name", PAYLOAD)
    return Path(os.environ["TENFOLD_CACHE_DIR"], "name.xla").read_bytes()


def read_entry(data: bytes) -> None:
    whole = entry()
    path = Path(os.environ["TENFOLD_CACHE_DIR"], "name.xla")
    path.write_bytes(data)
    found = cache.load("name")
    assert found is None or (data == whole and found == PAYLOAD)


def _load(data: bytes) -> object:
    return tn.load(io.BytesIO(data))


def random_instructions(chance: random.Random) -> bytes:
    """A pickle of random instructions."""
    codes = b"().0125NKMJIGTUVX]}ahl edtscbiRQqrpghj\x80\x81\x85\x86\x87\x88\x89\x8a\x93\x94\x95"
    return b"\x80\x02" + bytes(chance.choices(codes, k=chance.randrange(60))) + b"."


FORMATS = {
    "pt": Format(checkpoint, _load, lambda chance: repacked(checkpoint(), chance), share=0.8),
    "legacy": Format(legacy, _load, random_instructions),
    "script": Format(script, _load),
    "safetensors": Format(safetensors, _load),
    "export": Format(
        lambda: _saved(lambda file: tn.save(graph(), file)), run_graph, hostile_graph, share=0.9
    ),
    "stablehlo": Format(stablehlo, run_module),
    "mlirbc": Format(bytecode, run_module),
    "mlir": Format(text, run_module, hostile_module),
    "program": Format(text, run_module, hostile_program, share=0.9),
    "vmfb": Format(vmfb, run_machine_code, lambda chance: repacked(vmfb(), chance)),
    "purple": Format(lambda: PURPLE.encode(), read_source, hostile_source),
    "cache": Format(entry, read_entry),
}
