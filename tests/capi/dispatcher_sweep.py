"""Every schema of the dispatcher called through tn_call with made arguments, beside PyTorch's own call.

Run as a program it prints one JSON line for each overload: its name and what became of it. Some operators of
libtorch crash on arguments that they do not expect, called from Python too: each runs in a process that may
end.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tenfold.capi.binding import Device, Scalar
from tests.capi.bridge import DTYPES, library
from tests.capi.exchange import Frame, array_of, fetch, same
from tests.capi.fitting import FITTING
from tests.capi.typed_calls import type_names

# Not called: it makes a file or waits for one, changes the process for good, means something inside vmap
# alone, reads memory of another library's own, gives addresses, or loses count.
UNSAFE = {
    "_add_batch_dim",
    "_lazy_clone",
    "_remove_batch_dim",
    "_wrapped_linear_prepack",
    "fbgemm_pack_gemm_matrix_fp16",
    "fbgemm_pack_quantized_matrix",
    "from_file",
    "mkldnn_rnn_layer_backward",
    "record_stream",
}
UNINITIALISED = ("empty", "new_empty", "resize", "_resize", "_empty", "_make_dep_token")
GARBAGE = {"mkldnn_rnn_layer"}  # some of its memory is for training alone
SHAPES = [(3, 3), (2, 3, 4, 4), (4,), (2, 3, 4), (), (2, 3, 4, 4, 4)]
MADE = [torch.float32, torch.int64, torch.bool]


def schemas() -> list[Any]:
    """The dispatcher's schemas of ATen, in the order of names."""
    names = sorted(name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::"))
    by_name = {}
    for schema in torch._C._jit_get_all_schemas():
        by_name[f"{schema.name}.{schema.overload_name}".rstrip(".")] = schema
    return [by_name[name] for name in names if name in by_name]


class NoArguments(Exception):
    """A type that no plain argument has: a stream, a storage, a quantizer."""


def make(type: str, name: str, shape: tuple[int, ...], dtype: torch.dtype, size: int | None = None) -> Any:
    """A plain argument of a schema's type."""
    if type.startswith("Optional["):
        return None
    if type == "Tensor":
        if dtype.is_floating_point:
            return torch.linspace(0.1, 0.9, max(1, torch.Size(shape).numel()), dtype=dtype).reshape(shape)
        return torch.ones(shape, dtype=dtype)
    if type == "List[Tensor]":
        return [make("Tensor", name, shape, dtype), make("Tensor", name, shape, dtype)]
    if type == "List[Optional[Tensor]]":
        return [torch.zeros(2, dtype=torch.int64)]
    if type in ("int", "SymInt"):
        return {"dtype": 6, "self_ty": 6, "reduction": 1, "groups": 1, "dim": 0}.get(name, 1)
    if type in ("float", "SymFloat"):
        return 0.5
    if type == "bool":
        return False
    if type in ("number", "Scalar"):
        return 2
    if type == "str":
        return {"reduce": "sum", "approximate": "none", "mode": "constant", "indexing": "ij"}.get(name, "sum")
    if type in ("List[int]", "List[SymInt]"):
        if size is not None and size > 1:
            return [1] * size
        rank = max(len(shape) - 2, 1)
        return list(shape) if name in ("size", "shape", "sizes", "input_size", "input_sizes") else [1] * rank
    if type in ("List[float]", "List[number]"):
        return [0.5, 0.5]
    if type == "List[bool]":
        return [True, True, True]
    if type == "Device":
        return torch.device("cpu")
    raise NoArguments(type)


def candidates(schema: Any) -> Iterator[dict[str, Any]]:
    """Arguments to try, in turn; whatever has a default keeps it."""
    fitting = FITTING.get(schema.name.removeprefix("aten::"))
    if fitting is not None:
        yield {a.name: fits(fitting, a) for a in schema.arguments if a.name in fitting or is_written(a)}
        return
    for dtype in MADE:
        for shape in SHAPES:
            yield {
                a.name: make(str(a.type), a.name, shape, dtype, a.N)
                for a in schema.arguments
                if not a.has_default_value() or is_written(a)
            }


def is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def fits(fitting: dict[str, Any], argument: Any) -> Any:
    """An argument of those that fit together; lengths and rates are plain or tensors, as the overload has
    them."""
    found = fitting.get(argument.name)
    if found is None and is_written(argument):
        return torch.zeros(0)
    plain = isinstance(found, (list, float)) and str(argument.type) == "Tensor"
    return torch.tensor(found) if plain else found


def copied(arguments: dict[str, Any]) -> dict[str, Any]:
    copy = lambda value: value.clone() if isinstance(value, torch.Tensor) else value
    return {k: [copy(e) for e in v] if isinstance(v, list) else copy(v) for k, v in arguments.items()}


def push(frame: Frame, stack: int, value: Any) -> None:
    lib = library()
    if value is None:
        lib.tn_stack_push_none(stack)
    elif isinstance(value, torch.Tensor):
        # A copy of the library's own, so that it may be resized like PyTorch's.
        shape = array_of(ctypes.c_int64, value.shape)
        code = DTYPES[str(value.dtype).removeprefix("torch.")]
        made = lib.tn_tensor_from_data(value.data_ptr() or None, code, shape, value.dim(), None, 0)
        lib.tn_stack_push_tensor(stack, frame.own(made))
    elif isinstance(value, (bool, int, float)):
        lib.tn_stack_push_scalar(stack, Scalar.of(value))
    else:
        made = value_of(frame, value)
        lib.tn_stack_push(stack, made)
        lib.tn_value_free(made)


def value_of(frame: Frame, value: Any) -> int:
    lib = library()
    if isinstance(value, str):
        return lib.tn_value_string(value.encode())
    if isinstance(value, torch.device):
        return lib.tn_value_device(Device(0, -1))
    if isinstance(value, torch.Tensor):
        return lib.tn_value_tensor(frame.tensor(value))
    if isinstance(value, list):
        items = [value_of(frame, each) for each in value]
        made = lib.tn_value_list(array_of(ctypes.c_void_p, items), len(items))
        for each in items:
            lib.tn_value_free(each)
        return made
    return lib.tn_value_scalar(Scalar.of(value))


def read(value: int) -> Any:
    """What a value holds, as Python has it."""
    lib = library()
    tag = lib.tn_value_tag(value)
    if tag == 0:
        return None
    if tag == 1:
        handle = lib.tn_value_to_tensor(value)
        found = fetch_any(handle)
        lib.tn_free(handle)
        return found
    if tag in (2, 3, 4, 5):
        scalar = Scalar()
        lib.tn_value_to_scalar(value, ctypes.byref(scalar))
        return scalar.number
    if tag == 6:
        return lib.text("tn_value_to_string", value)
    if tag in (9, 10):
        found = []
        for i in range(lib.tn_value_count(value)):
            entry = lib.tn_value_at(value, i)
            found.append(read(entry))
            lib.tn_value_free(entry)
        return found
    return f"tag {tag}"


def fetch_any(handle: int) -> Any:
    """A tensor's elements; of one that has none to copy, such as a sparse one, what it is."""
    try:
        return fetch(handle)
    except Exception:
        return "a tensor without strides"


def through_tn_call(name: str, schema: Any, arguments: dict[str, Any]) -> tuple[list[Any], str | None]:
    lib, frame = library(), Frame()
    stack = lib.tn_stack_new()
    try:
        for argument in schema.arguments:
            if argument.name in arguments:
                push(frame, stack, arguments[argument.name])
            else:
                push_default(frame, stack, argument)
        if lib.raw("tn_call")(name.encode(), stack):
            return [], lib.tn_error_message().decode("utf-8", "replace")
        results = []
        for i in range(lib.tn_stack_count(stack)):
            value = lib.tn_stack_at(stack, i)
            results.append(read(value))
            lib.tn_value_free(value)
        return results, None
    finally:
        lib.tn_stack_free(stack)
        frame.close()


def push_default(frame: Frame, stack: int, argument: Any) -> None:
    push(frame, stack, argument.default_value)


def comparable(theirs: Any) -> Any:
    if isinstance(theirs, torch.Tensor):
        if theirs.layout is not torch.strided or theirs.is_quantized or theirs.is_nested:
            return "a tensor without strides"
        return theirs.detach()
    if isinstance(theirs, (list, tuple)):
        return [comparable(each) for each in theirs]
    return theirs


def examine(schema: Any, told: Callable[[str], None]) -> tuple[str, str]:
    """What became of an overload: equal, same error, differs, other error, or why it was not called."""
    name = full_name(schema)
    plain = schema.name.removeprefix("aten::")
    if plain in UNSAFE:
        return "unsafe", ""
    overload = getattr(getattr(torch.ops.aten, plain), schema.overload_name or "default")
    refusal: Exception | None = None
    chosen: dict[str, Any] = {}
    results: list[Any] = []
    try:
        for chosen in candidates(schema):
            refusal = None
            torch.manual_seed(0)
            try:
                given = overload(**copied(chosen))
                results = list(given) if isinstance(given, tuple) else [] if given is None else [given]
                break
            except Exception as error:
                refusal = error
    except NoArguments as error:
        return "no plain arguments", str(error)
    told("tn_call crashes")
    torch.manual_seed(0)
    found, message = through_tn_call(name, schema, copied(chosen))
    if refusal is not None:
        if message is None:
            return "differs", f"runs, PyTorch says {refusal}"
        if "entries, and was given" in message:
            return "refused earlier", ""  # a list of a fixed length is checked before the call
        first = type_names(str(refusal)).splitlines()[0][:60].rstrip()
        return (
            ("same error", "")
            if first in type_names(message)
            else ("other error", f"{message[:200]} | {first}")
        )
    if message is not None:
        return "differs", f"says {message[:200]}, PyTorch runs"
    if plain.startswith(UNINITIALISED) or plain in GARBAGE:
        equal = [getattr(each, "shape", None) for each in found] == [
            getattr(each, "shape", None) for each in results
        ]
        return ("equal", "in shape") if equal else ("differs", "in shape")
    golden = [comparable(each) for each in results]
    return ("equal", "") if same(found, golden) else ("differs", f"gave {found}, PyTorch {golden}"[:300])


def work(names: list[Any], start: int, pipe: int) -> None:
    """Examine schemas from one on, telling the parent what comes next: it may be the last that is heard."""
    with os.fdopen(pipe, "w", encoding="utf-8") as out:
        for number, schema in enumerate(names[start:], start):
            told = lambda stage, number=number: print(json.dumps([number, stage, ""]), file=out, flush=True)
            told("PyTorch crashes")
            outcome, detail = examine(schema, told)
            print(json.dumps([number, outcome, detail]), file=out, flush=True)
        lib = library()
        left = [lib.tn_live_tensors(), lib.tn_live_objects()]
        print(json.dumps([len(names), "done", left]), file=out, flush=True)


def sweep(wanted: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Each overload's name, outcome and detail; a crash ends a child, and the next goes on after it."""
    found = [each for each in schemas() if not wanted or full_name(each) in wanted]
    start = 0
    while start <= len(found):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some operators print
            work(found, start, writing)
            os._exit(0)
        os.close(writing)
        last: list[Any] = [start, "crashes at the start", ""]
        with os.fdopen(reading, encoding="utf-8") as lines:
            for line in lines:
                number, outcome, detail = json.loads(line)
                if number != last[0]:
                    yield full_name(found[last[0]]), last[1], last[2]
                last = [number, outcome, detail]
        os.waitpid(child, 0)
        yield (full_name(found[last[0]]) if last[0] < len(found) else ""), last[1], last[2]
        start = last[0] + 1


def full_name(schema: Any) -> str:
    return f"{schema.name}.{schema.overload_name}".rstrip(".")


def main() -> None:
    torch.set_num_threads(1)  # a fork takes no threads along
    library().tn_available()
    for name, outcome, detail in sweep(sys.argv[1:]):
        print(json.dumps({"name": name, "outcome": outcome, "detail": detail}), flush=True)


if __name__ == "__main__":
    main()
