"""Random call sequences with good and bad arguments, by ctypes: `python -m tests.capi.fuzzer CALLS SEED`.

Every function of tenfold.h, some typed ones and some operators by name are called with handles that live, of
odd tensors too, NULL, and numbers and counts of all sizes. In checked mode handles that were freed, and
numbers that are none, are passed as well. Nothing may crash; at the end all that was made is freed, and
nothing is left. With `--fenced` a read or a write behind a tensor's end crashes where it is made, and with
`--trace` each call is printed before it is.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tenfold.capi.binding import Device, Library, Scalar
from tenfold.capi.build import build
from tenfold.capi.compilers import compiler
from tenfold.capi.describe import Description, Function, Parameter, describe
from tests.capi.by_name import NamedCalls, named_operators
from tests.capi.odd_tensors import odd_tensors

NUMBERS = [0, 1, 2, -1, -2, 3, 7, 255, 1 << 31, -(1 << 31), 1 << 62, -(1 << 63), (1 << 63) - 1]
SMALL = [0, 1, 2, 3, -1]
FAR = [255, -(1 << 31), 1 << 62, -(1 << 63), (1 << 63) - 1]  # what an operator finds no memory for, but one
MOST_BYTES = 1 << 20  # larger tensors are freed at once: what comes of them would take all day
TEXTS = [
    b"",
    b"a",
    b"aten::add.Tensor",
    b"aten::relu",
    b"aten::sum",
    b"aten::nope",
    b"::",
    b"\xff\xfe",
    b"sum",
    b"lr",
    b"mse_loss",
    b"x" * 5000,
]
NAMES = [
    "aten::add.Tensor",
    "aten::relu",
    "aten::sum",
    "aten::cat",
    "aten::mm",
    "aten::view",
    "aten::topk",
    "aten::mul.Scalar",
]
# What does not belong into a random walk: it ends the process's use, writes files, waits, calls back the host
# or takes the address of an object of C++.
LEFT_OUT = (
    "tn_save", "tn_load", "tn_module", "tn_package", "tn_set_pressure", "tn_debug_fail",
    "tn_tensor_from_dlpack", "tn_torch_get", "tn_torch_set", "tn_torch_wrap", "tn_free_all", "tn_function",
    "tn_hook", "tn_context", "tn_train", "tn_step", "tn_set_threads", "tn_thread", "tn_set_interop",
)  # fmt: skip

# Of any degree, squared as often as a norm is large, drawn until one fits, summed from a number on until it
# is positive: they may take hours.
ENDLESS = ("polynomial", "matrix_exp", "binomial", "zeta", "polygamma")
TYPED = 125  # functions for each seed: twenty seeds, one after another, come by all of them
NAMED = 60  # operators without a typed function: so do they


def typed_functions(description: Description) -> list[Function]:
    """Those that end, in an order that is the same for all seeds."""
    typed = [f for f in description.functions if f.op is not None]
    typed = [f for f in typed if not any(word in f.name for word in ENDLESS)]
    random.Random(0).shuffle(typed)
    return typed


def share(all: list[Any], seed: int, count: int) -> list[Any]:
    """What a seed calls: that after the ones of the seed before."""
    first = seed * count % len(all)
    return (all + all)[first : first + count]


class Fuzzer:
    def __init__(self, library: Library, description: Description, seed: int):
        self.lib, self.random = library, random.Random(seed)
        self.checked = library.tn_checked() == 1
        written = [f for f in description.functions if f.op is None and not f.name.startswith(LEFT_OUT)]
        typed = share(typed_functions(description), seed, TYPED)
        self.functions = [f for f in written if self.callable(f)] + typed
        named = share(named_operators(library, description), seed, NAMED)
        self.named = NamedCalls(library, named, self.random, lambda: self.handle("tn_tensor", False))
        self.raw = {f.name: self.bind(f) for f in self.functions}
        self.alive: dict[str, list[int]] = {
            "tn_tensor": [],
            "tn_value": [],
            "tn_stack": [],
            "tn_generator": [],
            "tn_stream": [],
            "tn_optimizer": [],
        }
        self.scopes: list[int] = []  # that are open, innermost last
        self.freed: list[int] = []
        self.odd = odd_tensors(library)
        self.memory = (ctypes.c_int64 * 4096)()  # what tensors borrow, for as long as they live
        self.calls = self.failures = 0
        self.trace = False  # print each call before it is made

    def callable(self, function: Function) -> bool:
        return all(p.role not in ("callback", "user") or p.optional for p in function.parameters)

    def bind(self, function: Function) -> Any:
        bound = self.lib.library[function.name]  # an object of its own, unlike the attribute
        kinds = {"tn_scalar": Scalar, "tn_device": Device, "double": ctypes.c_double, "bool": ctypes.c_bool}
        plain = {"int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "int": ctypes.c_int, "void": None}
        small = dict.fromkeys(
            ("tn_dtype", "tn_status", "tn_layout", "tn_memory_format", "tn_tag", "int32_t"), ctypes.c_int32
        )
        types = {**kinds, **plain, **small}
        bound.restype = types.get(function.returns, ctypes.c_void_p)
        bound.argtypes = [types.get(p.ctype, ctypes.c_void_p) for p in function.parameters]
        return bound

    def step(self) -> None:
        if self.random.random() < 0.02:
            self.alive["tn_tensor"].append(self.odd_one())
        if self.random.random() < 0.2:
            self.call_by_name()
            return
        function = self.random.choice(self.functions)
        kept: list[Any] = []
        arguments = self.arguments(function, kept)
        for argument, parameter in zip(arguments, function.parameters, strict=True):
            # A handle of another kind is refused, and stays.
            kind = self.alive.get(parameter.ctype.rstrip(" *"), [])
            if parameter.ownership == "consumed" and argument in kind:
                kind.remove(argument)
                self.freed.append(argument)
        self.tell(function.name, arguments, kept)
        result = self.raw[function.name](*arguments)
        self.calls += 1
        if (function.errors == "null" and result is None) or (function.errors == "status" and result):
            self.failures += 1
        if function.ownership == "owned" and result:
            self.own(function.returns.removesuffix(" *"), result)
        if function.name.endswith("_begin") and result > 0:
            self.scopes.append(result)
        if function.name == "tn_scope_end" and result == 0:
            self.scopes.pop()
        if function.name == "tn_tensor_to_dlpack" and result:
            self.delete_dlpack(result)
        if function.errors == "status" and result == 0:
            self.take(function, kept)
        self.forget()

    def call_by_name(self) -> None:
        stack = self.lib.tn_stack_new()
        name = self.named.fill(stack)
        self.tell(name, self.named.given)
        failed = self.lib.raw("tn_call")(name.encode(), stack) != 0
        self.calls += 1
        self.failures += failed
        for i in range(0 if failed else self.lib.tn_stack_count(stack)):
            result = self.lib.raw("tn_stack_tensor_at")(stack, i)
            if result:
                self.own("tn_tensor", result)
        self.lib.tn_stack_free(stack)
        self.forget()

    def tell(self, name: str, *arguments: list[Any]) -> None:
        if self.trace:
            print(name, *map(self.told, arguments), file=sys.stderr, flush=True)

    def told(self, argument: Any) -> Any:
        """An argument as the trace has it: of tensors what they are, of arrays what begins them."""
        if isinstance(argument, (list, ctypes.Array)):
            return [self.told(each) for each in argument[:8]]
        if isinstance(argument, Scalar):
            return f"<tag {argument.tag}, {argument.as_.i}, {argument.as_.d}>"
        if argument not in self.alive["tn_tensor"]:
            return argument
        found, device = (ctypes.c_int64 * 16)(), Device()
        strides = list(found[: max(self.lib.raw("tn_tensor_strides")(argument, found, 16), 0)])
        shape = list(found[: max(self.lib.raw("tn_tensor_shape")(argument, found, 16), 0)])
        self.lib.raw("tn_tensor_device")(argument, ctypes.addressof(device))
        dtype, layout = self.lib.raw("tn_tensor_dtype")(argument), self.lib.raw("tn_tensor_layout")(argument)
        needs_gradient = self.lib.raw("tn_requires_grad")(argument)
        kind = f"dtype {dtype}, layout {layout}, device {device.type}, gradient {needs_gradient}"
        return f"<{argument}: {shape} by {strides}, {kind}>"

    def own(self, kind: str, handle: int) -> None:
        """Keep a handle that a call gave; a large tensor's goes at once."""
        if kind == "tn_tensor" and self.raw["tn_tensor_bytes"](handle) > MOST_BYTES:
            self.free(kind, handle)
        elif kind in self.alive:
            self.alive[kind].append(handle)

    def forget(self) -> None:
        """Free the oldest of too many."""
        for kind in self.alive:
            if len(self.alive[kind]) > 40:
                self.free(kind, self.alive[kind].pop(0))

    def odd_one(self) -> int:
        """A handle of an odd tensor. A call may have left a sparse one without indices: then all are new."""
        shared = self.raw["tn_tensor_share"](self.random.choice(self.odd))
        if shared is None:
            for each in self.odd:
                self.lib.tn_free(each)
            self.odd = odd_tensors(self.lib)
        return shared or self.lib.tn_tensor_share(self.odd[0])

    def take(self, function: Function, kept: list[Any]) -> None:
        """Tensors that a call wrote: into a given array, or as an array of their own."""
        out = [each.ctype.count("*") for each in function.parameters if each.ownership == "owned"]
        if out == [2]:
            for each in filter(None, kept[-1]):
                self.own("tn_tensor", each)
        elif out == [3]:
            self.lib.tn_free_all(kept[-2].value, kept[-1].value)

    def delete_dlpack(self, managed: int) -> None:
        """A DLManagedTensor ends with its deleter, which takes it."""
        deleter = ctypes.cast(managed + 56, ctypes.POINTER(ctypes.c_void_p))[0]
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(managed)

    def free(self, kind: str, handle: int) -> None:
        name = "tn_free" if kind == "tn_tensor" else f"{kind}_free"
        getattr(self.lib, name)(handle)
        self.freed.append(handle)
        del self.freed[:-50]

    def arguments(self, function: Function, kept: list[Any]) -> list[Any]:
        made: list[Any] = []
        counts: dict[str, int] = {}
        for parameter in function.parameters:
            if parameter.role == "count":
                # Never more than the array has: a count that is too large cannot be told from a right one.
                known = min((counts.get(name, 0) for name in parameter.count_of), default=0)
                made.append(self.random.choice([known, known, known, -1, -(1 << 63)]))
            elif parameter.role == "size":
                made.append(
                    self.random.choice([0, 1, 5, 4096, -1])
                    if counts.get("buffer")
                    else self.random.choice([0, -5, 7])
                )
            else:
                made.append(self.argument(function, parameter, counts, kept))
        return made

    def handle(self, kind: str, optional: bool) -> int | None:
        chance = self.random.random()
        if chance < 0.05 or not self.alive.get(kind):
            return None
        if self.checked and chance < 0.1 and self.freed:
            return self.random.choice(self.freed)
        if self.checked and chance < 0.12:
            return self.random.choice([1, 16, 12345, (1 << 47) + 1])
        if chance < 0.14 and self.checked:
            other = self.random.choice(list(self.alive))
            return self.random.choice(self.alive[other]) if self.alive[other] else None
        chosen = self.random.choice(self.alive[kind])  # which may have grown where it was written
        if kind == "tn_tensor" and self.raw["tn_tensor_bytes"](chosen) > MOST_BYTES:
            self.alive[kind].remove(chosen)
            self.free(kind, chosen)
            return None
        return chosen

    def argument(
        self, function: Function, parameter: Parameter, counts: dict[str, int], kept: list[Any]
    ) -> Any:
        ctype = parameter.ctype
        base = ctype.replace("const ", "").rstrip(" *")
        if parameter.role in ("callback", "user"):
            return None
        if parameter.name == "scope" and self.scopes:
            return self.random.choice([self.scopes[-1], self.scopes[-1], self.scopes[0], 1 << 62])
        if ctype == "tn_scalar":
            scalar = Scalar.of(self.random.choice([0, 1, -3, 0.5, True, 1j, 1 << 40]))
            scalar.tag = scalar.tag if self.random.random() < 0.9 else self.random.choice([0, 9, -1])
            return scalar
        if ctype == "tn_device":
            return Device(*self.random.choice([(0, -1), (0, 0), (1, 0), (99, 0), (-1, -1), (0, 5)]))
        if ctype == "double":
            return self.random.choice([0.0, 0.5, -1.0, float("nan"), float("inf"), 1e308])
        if ctype == "bool":
            return self.random.random() < 0.5
        if "*" not in ctype:
            few = ctype in (
                "tn_dtype",
                "tn_layout",
                "tn_memory_format",
                "int32_t",
                "tn_tag",
                "int",
                "tn_status",
            )
            of_operators = FAR if self.random.random() < 0.02 else SMALL
            return self.random.choice(
                [0, 4, 6, 7, 9, 11, -1, 99] if few else of_operators if function.op else NUMBERS
            )
        if ctype == "const char *":
            return (
                ctypes.cast(self.text(kept), ctypes.c_void_p).value if self.random.random() < 0.95 else None
            )
        if ctype == "const tn_op *":
            return (
                self.lib.raw("tn_find")(self.random.choice(NAMES).encode())
                if self.random.random() < 0.9
                else None
            )
        if base in self.alive and ctype.count("*") == 1:
            return self.handle(base, parameter.optional)
        if self.random.random() < 0.05:
            counts[parameter.name] = 0
            return None
        if function.name == "tn_tensor_wrap_data" and parameter.name == "data":
            return ctypes.addressof(self.memory)
        if base in self.alive and parameter.role != "out":
            given = [self.handle(base, False) for _ in range(3)]
            counts[parameter.name] = 3
            array = (ctypes.c_void_p * 3)(*given)
        elif ctype == "const char *const *":
            counts[parameter.name] = 2
            array = (ctypes.c_char_p * 2)(b"a", None if self.random.random() < 0.2 else b"b")
        elif parameter.role == "out" and ctype.count("*") == 3:
            array = ctypes.c_void_p()
        elif parameter.role in ("out", "buffer"):
            counts[parameter.name] = 512
            single = parameter.name in ("out_count", "results_count")
            array = ctypes.c_int64() if single else (ctypes.c_int64 * 512)()
        elif base == "int64_t":
            counts[parameter.name] = 3
            array = (ctypes.c_int64 * 3)(*[self.random.choice(SMALL) for _ in range(3)])
        else:
            counts[parameter.name] = 3
            array = (ctypes.c_int64 * 64)()
        kept.append(array)
        return ctypes.addressof(array)

    def text(self, kept: list[Any]) -> Any:
        buffer = ctypes.create_string_buffer(self.random.choice([*TEXTS, *(n.encode() for n in NAMES)]))
        kept.append(buffer)
        return buffer

    def close(self) -> None:
        while self.scopes:
            self.lib.tn_scope_end(self.scopes.pop())
        for kind, handles in self.alive.items():
            for each in handles:
                self.free(kind, each)
        for each in self.odd:
            self.free("tn_tensor", each)


FENCE = Path(__file__).with_name("fence.c")
FENCED_BYTES = 16 << 30  # of addresses


def begin_fenced() -> None:
    """Begin this program again, behind the fence of fence.c."""
    name = f"tenfold-fence-{hashlib.sha256(FENCE.read_bytes()).hexdigest()[:12]}.so"
    library = Path(tempfile.gettempdir()) / name
    if os.environ.get("LD_PRELOAD") == str(library):
        return
    if not library.exists():
        partly = library.with_suffix(f".{os.getpid()}")
        flags = ["-O1", "-shared", "-fPIC", str(FENCE), "-o", str(partly)]
        subprocess.run([compiler("CC", "gcc", "cc"), *flags], check=True)
        partly.rename(library)
    again = [sys.executable, "-X", "faulthandler", "-m", "tests.capi.fuzzer", *sys.argv[1:]]
    os.execve(sys.executable, again, {**os.environ, "LD_PRELOAD": str(library)})


def main() -> None:
    calls, seed, fenced = int(sys.argv[1]), int(sys.argv[2]), "--fenced" in sys.argv
    built = build()
    if fenced:
        begin_fenced()
        if not getattr(ctypes.CDLL(None), "fence_is_up", lambda: 0)():
            raise RuntimeError("there is no fence: fence.c was not preloaded, or found no memory")
    most = (64 if built.libtorch.cuda else 8) << 30  # CUDA takes addresses for all that its devices have
    most += FENCED_BYTES if fenced else 0
    resource.setrlimit(resource.RLIMIT_AS, (most, most))  # whatever is asked for, others go on
    library = Library(str(built.library))
    fuzzer = Fuzzer(library, describe(built.libtorch), seed)
    fuzzer.trace = "--trace" in sys.argv
    for _ in range(calls):
        fuzzer.step()
    fuzzer.close()
    left = library.tn_live_tensors(), library.tn_live_objects()
    print(f"{fuzzer.calls} calls of {len(fuzzer.functions)} functions, {fuzzer.failures} errors, {left} left")
    sys.exit(left != (0, 0))


if __name__ == "__main__":
    main()
