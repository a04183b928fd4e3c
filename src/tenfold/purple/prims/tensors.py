"""Tensors: making them, looking inside, gradients, files; the random numbers that both ways to run share."""

from __future__ import annotations

import math
import weakref
from fractions import Fraction
from typing import Any

import numpy as np

import tenfold
from tenfold.base import dtypes
from tenfold.purple import messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.numerals import to_float
from tenfold.purple.prims.registry import (
    is_machine_int,
    primitive,
    want,
    want_int,
    want_list,
    want_string,
    wrong_type,
)
from tenfold.purple.prims.rows import to_purple
from tenfold.purple.prims.truth import is_true
from tenfold.purple.values import NIL, UNSPECIFIED, Keyword, Pair, Table, is_list, list_of
from tenfold.tensor import Tensor


def want_tensor(name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        wrong_type(name, "tensor", value)
    return value


def dtype_of(name: str, value: Any) -> Any:
    if value is None or value is NIL:
        return None
    want(name, "keyword", Keyword, value)
    found = dtypes.BY_NAME.get(value.name)
    if found is None:
        raise PurpleError(f"{name}: there is no dtype :{value.name}", "tensor")
    return found


def is_device(value: Any) -> bool:
    """Whether a value names a device: "cuda:1", :cuda."""
    return type(value) is str or (type(value) is Keyword and value.name.startswith(("cpu", "cuda")))


def want_device(name: str, value: Any) -> str:
    return value.name if type(value) is Keyword else want_string(name, value)


@primitive("cuda-available?")
def cuda_available() -> bool:
    return tenfold.cuda.is_available()


@primitive("tensor")
def make_tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Tensor:
    return tenfold.tensor(
        _nested(data),
        dtype=dtype_of("tensor", dtype),
        device=None if device is None or device is NIL else want_device("tensor", device),
        requires_grad=is_true(requires_grad),
    )


def _nested(data: Any) -> Any:
    kind = type(data)
    if kind in (float, bool) or isinstance(data, Tensor):
        return data
    if kind is int:
        return want_int("tensor", data)
    if kind is Fraction:
        return to_float(data)
    if data is NIL:
        return []
    if kind is Pair and is_list(data):
        return [_nested(each) for each in data]
    if kind is list:
        return [_nested(each) for each in data]
    wrong_type("tensor", "number", data)


primitive("tensor?")(lambda value: isinstance(value, Tensor))


def _is_place(value: Any) -> bool:
    return type(value) is int and is_machine_int(value)


def _index(name: str, value: Any) -> Any:
    """An index: an integer, a tensor, a slice `(start end [step])` with nil for an open end, or `:all`."""
    if _is_place(value) or isinstance(value, Tensor):
        return value
    if type(value) is Keyword and value.name == "all":
        return slice(None)
    if type(value) is Pair:
        parts = want_list(name, value)
        if len(parts) in (2, 3) and all(_is_place(part) or part is NIL for part in parts):
            return slice(*[None if part is NIL else part for part in parts])
    wrong_type(name, "index", value)


@primitive("tensor-ref")
def tensor_ref(tensor: Any, *indices: Any) -> Any:
    want_tensor("tensor-ref", tensor)
    found = tensor[tuple(_index("tensor-ref", index) for index in indices)]
    if len(indices) == tensor.ndim and all(type(index) is int for index in indices):
        return to_purple(found.item())
    return found


@primitive("tensor-set!")
def tensor_set(tensor: Any, value: Any, *indices: Any) -> Any:
    want_tensor("tensor-set!", tensor)
    if type(value) is Fraction:
        value = to_float(value)
    if type(value) not in (int, float, bool) and not isinstance(value, Tensor):
        wrong_type("tensor-set!", "number*", value)
    if type(value) is int:
        want_int("tensor-set!", value)
    tensor[tuple(_index("tensor-set!", index) for index in indices)] = value
    return UNSPECIFIED


@primitive("tensor->list")
def tensor_to_list(tensor: Any) -> Any:
    return to_purple(want_tensor("tensor->list", tensor).tolist())


@primitive("tensor-item")
def tensor_item(tensor: Any) -> Any:
    count = want_tensor("tensor-item", tensor).numel()
    if count != 1:
        raise PurpleError(messages.no_number(count), "tensor", help=messages.NO_NUMBER_HELP)
    return to_purple(tensor.item())


@primitive("tensor-shape")
def tensor_shape(tensor: Any) -> Any:
    return list_of(list(want_tensor("tensor-shape", tensor).shape))


@primitive("tensor-rank")
def tensor_rank(tensor: Any) -> int:
    return want_tensor("tensor-rank", tensor).ndim


@primitive("tensor-count")
def tensor_count(tensor: Any) -> int:
    return math.prod(want_tensor("tensor-count", tensor).shape)


@primitive("tensor-dtype")
def tensor_dtype(tensor: Any) -> Keyword:
    return Keyword(want_tensor("tensor-dtype", tensor).dtype.name)


@primitive("tensor-device")
def tensor_device(tensor: Any) -> str:
    return str(want_tensor("tensor-device", tensor).device)


@primitive("tensor-to")
def tensor_to(tensor: Any, target: Any) -> Tensor:
    want_tensor("tensor-to", tensor)
    if is_device(target):
        return tensor.to(want_device("tensor-to", target))
    return tensor.to(dtype_of("tensor-to", target))


@primitive("tensor-load")
def tensor_load(path: Any) -> Table:
    want_string("tensor-load", path)
    _require_safetensors("tensor-load", path)
    try:
        loaded = tenfold.load(path)
    except OSError as problem:
        raise PurpleError(f"tensor-load: {path}: {problem.strerror}", "file") from None
    table = Table()
    for name, tensor in sorted(loaded.items()):  # a file keeps them in an order of its own
        table.entries[name] = (name, tensor)
    return table


@primitive("tensor-save")
def tensor_save(path: Any, tensors: Any) -> Any:
    want_string("tensor-save", path)
    _require_safetensors("tensor-save", path)
    if isinstance(tensors, Tensor):
        contents = {"tensor": tensors}
    else:
        entries = want("tensor-save", "table", Table, tensors).entries.values()
        contents = {
            want_string("tensor-save", key): want_tensor("tensor-save", value) for key, value in entries
        }
    try:
        tenfold.save(contents, path)
    except OSError as problem:
        raise PurpleError(f"tensor-save: {path}: {problem.strerror}", "file") from None
    return UNSPECIFIED


def _require_safetensors(name: str, path: str) -> None:
    if not path.endswith(".safetensors"):
        raise PurpleError(f"{name}: {path} does not end in .safetensors", "file")


# Gradients

_latest_loss: weakref.ReferenceType[Tensor] | None = None


@primitive("backward")
def backward(tensor: Any, gradient: Any = None) -> Any:
    want_tensor("backward", tensor)
    if gradient is None and tensor.numel() != 1:
        raise PurpleError(messages.no_gradient(tensor.numel()), "tensor", help=messages.NO_GRADIENT_HELP)
    if not tensor.requires_grad:
        raise PurpleError(messages.UNASKED, "tensor", help=messages.UNASKED_HELP)
    global _latest_loss
    _latest_loss = weakref.ref(tensor)
    tensor.backward(None if gradient is None else want_tensor("backward", gradient))
    return UNSPECIFIED


@primitive("tensor-grad")
def tensor_grad(tensor: Any) -> Any:
    found = want_tensor("tensor-grad", tensor).grad
    return NIL if found is None else found


@primitive("requires-grad!")
def requires_grad(tensor: Any, wanted: Any = True) -> Tensor:
    want_tensor("requires-grad!", tensor).requires_grad_(is_true(wanted))
    return tensor


@primitive("requires-grad?")
def requires_grad_p(tensor: Any) -> bool:
    return want_tensor("requires-grad?", tensor).requires_grad


@primitive("detach")
def detach(tensor: Any) -> Tensor:
    return want_tensor("detach", tensor).detach()


@primitive("clear-grad!")
def clear_grad(tensor: Any) -> Any:
    want_tensor("clear-grad!", tensor).grad = None
    return UNSPECIFIED


@primitive("evaluate!")
def evaluate(value: Any) -> Any:
    tensors = [value] if isinstance(value, Tensor) else want_list("evaluate!", value)
    # A loss is asked for after the step that it led to: computed with that, its forward pass runs once.
    loss = _latest_loss() if _latest_loss is not None else None
    tenfold.eval(*[want_tensor("evaluate!", tensor) for tensor in tensors], *([] if loss is None else [loss]))
    return value


primitive("live-tensors")(lambda: -1)


# Random numbers: SplitMix64 counted from the seed, so that a whole tensor is drawn at once

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


class Generator:
    """The state is the count of 64-bit words drawn so far, in steps of GOLDEN from the seed."""

    def __init__(self) -> None:
        self.state = 0

    def words(self, count: int) -> np.ndarray:
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
        word = steps + np.uint64(self.state)
        self.state = (self.state + count * GOLDEN) & MASK
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return word ^ (word >> np.uint64(31))

    def uniform(self, count: int) -> np.ndarray:
        """float64 from 0 up to 1: the upper 53 bits of each word."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def normal(self, count: int) -> np.ndarray:
        """Box–Muller: each two uniform numbers give two normal ones, by cosine and then by sine."""
        pairs = self.uniform((count + 1) // 2 * 2).reshape(-1, 2)
        radius = np.sqrt(-2.0 * np.log(1.0 - pairs[:, 0]))
        angle = 2.0 * math.pi * pairs[:, 1]
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:count]


generator = Generator()


@primitive("manual-seed")
def manual_seed(seed: Any) -> Any:
    generator.state = want_int("manual-seed", seed) & MASK
    tenfold.manual_seed(seed)
    return UNSPECIFIED


@primitive("random")
def random(limit: Any = None) -> int | float:
    drawn = float(generator.uniform(1)[0])
    if limit is None:
        return drawn
    if want_int("random", limit) <= 0:
        raise PurpleError(f"random: {limit} is not above 0", "index")
    return min(int(drawn * limit), limit - 1)


def _sizes(name: str, sizes: Any) -> list[int]:
    found = want_list(name, sizes)
    for each in found:
        if want_int(name, each) < 0:
            raise PurpleError(f"{name}: sizes cannot be negative", "tensor")
    return found


def _placed(array: np.ndarray) -> Tensor:
    device = tenfold.get_default_device()
    tensor = tenfold.from_numpy(array)
    return tensor if tensor.device == device else tensor.to(device)


@primitive("%uniform")
def uniform(sizes: Any) -> Tensor:
    shape = _sizes("tensor-rand", sizes)
    # float32 holds 24 bits: the upper ones of each word, so that no number rounds up to 1.
    words = generator.words(math.prod(shape)) >> np.uint64(40)
    return _placed((words.astype(np.float32) * np.float32(2.0**-24)).reshape(shape))


@primitive("%normal")
def normal(sizes: Any) -> Tensor:
    shape = _sizes("tensor-randn", sizes)
    return _placed(generator.normal(math.prod(shape)).astype(np.float32).reshape(shape))


@primitive("%permutation")
def permutation(count: Any) -> Tensor:
    if want_int("tensor-randperm", count) < 0:
        raise PurpleError(f"tensor-randperm: {count} is no count", "tensor")
    return _placed(np.argsort(generator.words(count), kind="stable").astype(np.int64))
