"""libtenfold_rt: tensors for runtimes that pass 64-bit handles and plain numbers, over libtenfold.

The table below is the whole of it: each row names a function, its parameters and its result, and what it
calls: an operator with its arguments, or, after `c`, an expression of C over src/rt/calls.h. After `~` stands
what is known of the result without libtorch: its shape, by src/rt/shapes.h and src/rt/layers.h. Handles are
int64_t, 0 for no tensor; a list is a pointer and a count; truth is int32_t; text is NUL-terminated and the
library's. A row that gives a number has a sibling, its name and `_tensor`, that gives the tensor which holds
it: gradients flow through that one.
"""

from __future__ import annotations

import copy
import hashlib
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tenfold.base.errors import EngineError
from tenfold.capi.sonames import link_names, soname

__all__ = ["Function", "add", "functions", "header", "source"]

SOURCES = Path(__file__).with_name("src") / "rt"
PREFIX = "rt_torch_"

# `tensor?` may be 0. An `index` is a tensor of whole numbers in any dtype: such runtimes make floats only.
# A row goes on in lines that are indented.
TABLE = """
# The library
available() -> bool = c tn_available()
version() -> text = c tn_torch_version()
cuda_available() -> bool = c tn_cuda_available()

# Making tensors, of float32
tensor_zeros(dims: [i64]) -> tensor = aten::zeros(dims) ~ made(dims, dims_count)
tensor_ones(dims: [i64]) -> tensor = aten::ones(dims) ~ made(dims, dims_count)
tensor_randn(dims: [i64]) -> tensor = aten::randn(dims) ~ made(dims, dims_count)
tensor_rand(dims: [i64]) -> tensor = aten::rand(dims) ~ made(dims, dims_count)
tensor_full(dims: [i64], value: f64) -> tensor = aten::full(dims, value) ~ made(dims, dims_count)
tensor_from_data(data: [f64], dims: [i64]) -> tensor
    = c from_data(data, data_count, dims, dims_count) ~ filled(data_count, dims, dims_count)
tensor_arange(start: f64, end: f64, step: f64) -> tensor
    = aten::arange.start_step(start, end, step) ~ counted(start, end, step)
tensor_linspace(start: f64, end: f64, steps: i64) -> tensor
    = aten::linspace(start, end, steps) ~ vector(steps)
tensor_eye(n: i64) -> tensor = aten::eye(n) ~ matrix(n)
tensor_empty(dims: [i64]) -> tensor = aten::empty.memory_format(dims) ~ made(dims, dims_count)

# Elementwise arithmetic
torchtensor_add(handle: tensor, other: tensor) -> tensor
    = aten::add.Tensor(handle, other) ~ broadcast(handle, other)
torchtensor_sub(handle: tensor, other: tensor) -> tensor
    = aten::sub.Tensor(handle, other) ~ broadcast(handle, other)
torchtensor_mul(handle: tensor, other: tensor) -> tensor
    = aten::mul.Tensor(handle, other) ~ broadcast(handle, other)
torchtensor_div(handle: tensor, other: tensor) -> tensor
    = aten::div.Tensor(handle, other) ~ broadcast(handle, other)
torchtensor_pow(handle: tensor, exponent: f64) -> tensor
    = aten::pow.Tensor_Scalar(handle, exponent) ~ like(handle)
torchtensor_neg(handle: tensor) -> tensor = aten::neg(handle) ~ like(handle)
torchtensor_abs(handle: tensor) -> tensor = aten::abs(handle) ~ like(handle)
torchtensor_sqrt(handle: tensor) -> tensor = aten::sqrt(handle) ~ like(handle)
torchtensor_exp(handle: tensor) -> tensor = aten::exp(handle) ~ like(handle)
torchtensor_log(handle: tensor) -> tensor = aten::log(handle) ~ like(handle)
torchtensor_add_scalar(handle: tensor, scalar: f64) -> tensor
    = aten::add.Scalar(handle, scalar) ~ like(handle)
torchtensor_mul_scalar(handle: tensor, scalar: f64) -> tensor
    = aten::mul.Scalar(handle, scalar) ~ like(handle)

# Activations
torchtensor_relu(handle: tensor) -> tensor = aten::relu(handle) ~ like(handle)
torchtensor_sigmoid(handle: tensor) -> tensor = aten::sigmoid(handle) ~ like(handle)
torchtensor_tanh(handle: tensor) -> tensor = aten::tanh(handle) ~ like(handle)
torchtensor_leaky_relu(handle: tensor, negative_slope: f64) -> tensor
    = aten::leaky_relu(handle, negative_slope) ~ like(handle)
torchtensor_gelu(handle: tensor) -> tensor = aten::gelu(handle) ~ like(handle)
torchtensor_softmax(handle: tensor, dim: i64) -> tensor = aten::softmax.int(handle, dim) ~ along(handle, dim)
torchtensor_log_softmax(handle: tensor, dim: i64) -> tensor
    = aten::log_softmax.int(handle, dim) ~ along(handle, dim)

# Linear algebra; svd gives the singular values, eig the eigenvalues; svd_full and eig_full the vectors too
torchtensor_matmul(handle: tensor, other: tensor) -> tensor
    = aten::matmul(handle, other) ~ product(handle, other)
torchtensor_dot(handle: tensor, other: tensor) -> tensor
    = aten::dot(handle, other) ~ inner_product(handle, other)
torchtensor_transpose(handle: tensor, dim0: i64, dim1: i64) -> tensor
    = aten::transpose.int(handle, dim0, dim1) ~ swapped(handle, dim0, dim1)
torchtensor_t(handle: tensor) -> tensor = aten::t(handle) ~ turned(handle)
torchtensor_norm(handle: tensor) -> f64 = aten::linalg_vector_norm(handle) ~ scalar(handle)
torchtensor_det(handle: tensor) -> f64 = aten::linalg_det(handle) ~ determinant(handle)
torchtensor_inverse(handle: tensor) -> tensor = aten::linalg_inv(handle) ~ inverted(handle)
torchtensor_svd(handle: tensor) -> tensor = aten::linalg_svdvals(handle) ~ singular(handle)
torchtensor_eig(handle: tensor) -> tensor = aten::linalg_eigvals(handle) ~ eigenvalues(handle)
torchtensor_svd_full(handle: tensor) -> [results] = aten::linalg_svd(handle)
torchtensor_eig_full(handle: tensor) -> [results] = aten::linalg_eig(handle)

# Reductions; of max and min along a dimension the values, of which argmax and argmin give the places
torchtensor_sum(handle: tensor) -> f64 = aten::sum(handle) ~ scalar(handle)
torchtensor_sum_dim(handle: tensor, dim: i64, keepdim: bool) -> tensor
    = aten::sum.dim_IntList(handle, [dim], keepdim) ~ reduced(handle, dim, keepdim)
torchtensor_mean(handle: tensor) -> f64 = aten::mean(handle) ~ scalar(handle)
torchtensor_mean_dim(handle: tensor, dim: i64, keepdim: bool) -> tensor
    = aten::mean.dim(handle, [dim], keepdim) ~ reduced(handle, dim, keepdim)
torchtensor_max(handle: tensor) -> f64 = aten::max(handle) ~ extreme(handle)
torchtensor_max_dim(handle: tensor, dim: i64, keepdim: bool) -> tensor
    = aten::max.dim(handle, dim, keepdim) ~ extreme_along(handle, dim, keepdim)
torchtensor_min(handle: tensor) -> f64 = aten::min(handle) ~ extreme(handle)
torchtensor_min_dim(handle: tensor, dim: i64, keepdim: bool) -> tensor
    = aten::min.dim(handle, dim, keepdim) ~ extreme_along(handle, dim, keepdim)
torchtensor_argmax(handle: tensor, dim: i64, keepdim: bool) -> tensor
    = aten::argmax(handle, dim, keepdim) ~ extreme_along(handle, dim, keepdim)
torchtensor_argmin(handle: tensor, dim: i64, keepdim: bool) -> tensor
    = aten::argmin(handle, dim, keepdim) ~ extreme_along(handle, dim, keepdim)
torchtensor_std(handle: tensor) -> f64 = aten::std(handle) ~ scalar(handle)
torchtensor_var(handle: tensor) -> f64 = aten::var(handle) ~ scalar(handle)

# Shapes
torchtensor_ndim(handle: tensor) -> i64 = c tn_tensor_dim(handle) ~ rank_of(handle)
torchtensor_numel(handle: tensor) -> i64 = c tn_tensor_numel(handle) ~ numel_of(handle)
torchtensor_shape(handle: tensor) -> [i64] = c shape(handle, count) ~ sizes_of(handle, count)
torchtensor_item(handle: tensor) -> f64 = c number_in(tn_tensor_share(handle))
torchtensor_data(handle: tensor) -> [f64] = c elements(handle, count)
torchtensor_reshape(handle: tensor, dims: [i64]) -> tensor
    = aten::reshape(handle, dims) ~ reshaped(handle, dims, dims_count)
torchtensor_view(handle: tensor, dims: [i64]) -> tensor
    = aten::view(handle, dims) ~ reshaped(handle, dims, dims_count)
torchtensor_permute(handle: tensor, dims: [i64]) -> tensor
    = aten::permute(handle, dims) ~ permuted(handle, dims, dims_count)
torchtensor_squeeze(handle: tensor) -> tensor = aten::squeeze(handle) ~ squeezed(handle)
torchtensor_squeeze_dim(handle: tensor, dim: i64) -> tensor
    = aten::squeeze.dim(handle, dim) ~ squeezed_at(handle, dim)
torchtensor_unsqueeze(handle: tensor, dim: i64) -> tensor
    = aten::unsqueeze(handle, dim) ~ unsqueezed(handle, dim)
torchtensor_flatten(handle: tensor) -> tensor = aten::flatten.using_ints(handle) ~ flat(handle)
torchtensor_contiguous(handle: tensor) -> tensor = aten::contiguous(handle) ~ like(handle)

# Indexing and joining
torchtensor_slice(handle: tensor, dim: i64, start: i64, end: i64, step: i64) -> tensor
    = aten::slice.Tensor(handle, dim, start, end, step) ~ sliced(handle, dim, start, end, step)
torchtensor_index_select(handle: tensor, dim: i64, indices: index) -> tensor
    = aten::index_select(handle, dim, indices) ~ selected(handle, dim, indices)
torchtensor_gather(handle: tensor, dim: i64, indices: index) -> tensor
    = aten::gather(handle, dim, indices) ~ picked(handle, dim, indices)
torchtensor_cat(tensors: [tensor], dim: i64) -> tensor
    = aten::cat(tensors, dim) ~ joined(tensors, tensors_count, dim)
torchtensor_stack(tensors: [tensor], dim: i64) -> tensor
    = aten::stack(tensors, dim) ~ stacked(tensors, tensors_count, dim)
torchtensor_chunk(handle: tensor, chunks: i64, dim: i64) -> [tensor] = aten::chunk(handle, chunks, dim)

# Neural networks
nn_conv2d(input: tensor, weight: tensor, bias: tensor?, stride: [i64], padding: [i64], dilation:
        [i64], groups: i64) -> tensor
    = aten::conv2d(input, weight, bias, stride, padding, dilation, groups)
    ~ convolved(input, weight, bias, PAIR_OF(stride), PAIR_OF(padding), PAIR_OF(dilation), groups)
nn_max_pool2d(input: tensor, kernel_size: [i64], stride: [i64], padding: [i64]) -> tensor
    = aten::max_pool2d(input, kernel_size, stride, padding)
    ~ windowed(input, PAIR_OF(kernel_size), PAIR_OF(stride), PAIR_OF(padding), NO_PAIR, -1)
nn_avg_pool2d(input: tensor, kernel_size: [i64], stride: [i64], padding: [i64]) -> tensor
    = aten::avg_pool2d(input, kernel_size, stride, padding)
    ~ windowed(input, PAIR_OF(kernel_size), PAIR_OF(stride), PAIR_OF(padding), NO_PAIR, -1)
nn_batch_norm(input: tensor, running_mean: tensor?, running_var: tensor?, weight: tensor?, bias:
        tensor?, training: bool, momentum: f64, eps: f64) -> tensor
    = aten::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, true)
    ~ batch_normalized(input, running_mean, running_var, weight, bias, training)
nn_layer_norm(input: tensor, normalized_shape: [i64], weight: tensor?, bias: tensor?, eps: f64) ->
        tensor
    = aten::layer_norm(input, normalized_shape, weight, bias, eps)
    ~ normalized(input, normalized_shape, normalized_shape_count, weight, bias)
nn_dropout(input: tensor, p: f64, training: bool) -> tensor
    = aten::dropout(input, p, training) ~ dropped(input, p)
nn_linear(input: tensor, weight: tensor, bias: tensor?) -> tensor
    = aten::linear(input, weight, bias) ~ linear_of(input, weight, bias)
nn_embedding(input: index, weight: tensor) -> tensor
    = aten::embedding(weight, input) ~ embedded(input, weight)

# Losses, averaged, as numbers
nn_mse_loss(input: tensor, target: tensor) -> f64 = aten::mse_loss(input, target) ~ mean_loss(input, target)
nn_cross_entropy(input: tensor, target: tensor) -> f64
    = c number_in(cross_entropy(input, target)) ~ classified(input, target)
nn_binary_cross_entropy(input: tensor, target: tensor) -> f64
    = aten::binary_cross_entropy(input, target) ~ mean_loss(input, target)
nn_nll_loss(input: tensor, target: index) -> f64 = aten::nll_loss_nd(input, target) ~ scalar(input)

# Gradients; grad is 0 where none was collected, and that is no error
autograd_set_requires_grad(handle: tensor, requires_grad: bool) -> void
    = c tn_set_requires_grad(handle, requires_grad) ~ set_grad(handle, requires_grad)
autograd_requires_grad(handle: tensor) -> bool = c tn_requires_grad(handle) ~ has_grad(handle)
autograd_grad(handle: tensor) -> tensor = c gradient(handle)
autograd_backward(handle: tensor) -> void = c tn_backward(handle)
autograd_zero_grad(handle: tensor) -> void = c tn_zero_grad(handle)
autograd_detach(handle: tensor) -> tensor = aten::detach(handle) ~ like(handle)
autograd_no_grad_begin() -> void = c no_grad_begin()
autograd_no_grad_end() -> void = c no_grad_end()

# Devices: -1 is the CPU, and other numbers are CUDA's
torchtensor_cuda(handle: tensor, device_id: i32) -> tensor = c tn_to_device(handle, cuda(device_id), false)
torchtensor_cpu(handle: tensor) -> tensor = c tn_to_device(handle, CPU, false) ~ like(handle)
torchtensor_is_cuda(handle: tensor) -> bool = c is_cuda(handle) ~ 0
torchtensor_device(handle: tensor) -> i32 = c device_of(handle) ~ no_device(handle)
torchtensor_to_stream(handle: tensor, device_id: i32, stream: stream) -> tensor
    = c to_stream(handle, device_id, stream)
torchtensor_clone(handle: tensor) -> tensor = aten::clone(handle) ~ like(handle)
stream_create(device_id: i32) -> stream = c tn_stream_new(cuda(device_id))
torchstream_sync(handle: stream) -> void = c tn_stream_synchronize(handle)
torchstream_query(handle: stream) -> bool = c tn_stream_query(handle)
torchstream_free(handle: stream) -> void = c tn_stream_free(handle)

# Memory
torchtensor_free(handle: tensor?) -> void = c tn_free(handle) ~ let_go(handle)
cuda_memory_allocated(device_id: i32) -> i64 = c tn_memory_allocated(cuda(device_id))
cuda_max_memory_allocated(device_id: i32) -> i64 = c tn_memory_peak(cuda(device_id))
cuda_empty_cache() -> void = c tn_empty_cache()
"""

_ROW = re.compile(r"(\w+)\((.*?)\) -> (\S+)\s+= (?:c (.*?)|(aten::[\w.]+)\((.*?)\))(?:\s+~ (.*))?")
_WORD = re.compile(r"[A-Za-z_]\w*")

# What a type is in C: of a parameter, of a result, and (for handles) what it is inside.
_PARAMETERS = {"f64": "double", "i32": "int32_t", "bool": "int32_t"}
_LISTS = {"[i64]": "int64_t", "[f64]": "double", "[tensor]": "int64_t", "[results]": "int64_t"}
_RESULTS = {"f64": "double", "i32": "int32_t", "bool": "int32_t", "void": "void", "text": "const char *"}
_INSIDE = {"tensor": "TENSOR", "tensor?": "TENSOR", "index": "TENSOR", "stream": "STREAM", "bool": "TRUTH"}


class Function:
    """A row: its name, its parameters with their types, its result's type, and what the table has it call."""

    def __init__(self, line: str):
        row = _ROW.fullmatch(line)
        if row is None:
            raise ValueError(f"not a row of the table: {line}")
        name, parameters, self.result, self.expression, self.op, arguments, self.shape = row.groups()
        self.name = PREFIX + name
        named = [each.partition(": ") for each in parameters.split(", ")] if parameters else []
        self.parameters = {name: type for name, _, type in named}
        self.arguments: list[str] = arguments.split(", ") if arguments else []

    @property
    def prototype(self) -> str:
        given = []
        for name, type in self.parameters.items():
            if type in _LISTS:
                given += [f"const {_LISTS[type]} *{name}", f"int64_t {name}_count"]
            else:
                given.append(f"{_PARAMETERS.get(type, 'int64_t')} {name}")
        if self.result in _LISTS:
            given.append("int64_t *count")
        result = (
            f"const {_LISTS[self.result]} *"
            if self.result in _LISTS
            else _RESULTS.get(self.result, "int64_t")
        )
        return f"{result}{'' if result.endswith('*') else ' '}{self.name}({', '.join(given) or 'void'})"

    @property
    def body(self) -> list[str]:
        """The lines of the function: without libtorch it gives what its rule knows of shapes."""
        if self.shape is None or self.result == "f64":
            return self._computed
        known = f"{{ {self.shape}; return; }}" if self.result == "void" else f"return {self.shape};"
        return [f"if (WITHOUT_TORCH()) {known}", *self._computed]

    @property
    def _computed(self) -> list[str]:
        if self.expression is not None:
            return [self._returned(_WORD.sub(self._inside, self.expression))]
        pushes = [self._push(argument) for argument in self.arguments]
        kind = {"[tensor]": "tensors", "[results]": "results", "f64": "number"}.get(self.result, "tensor")
        count = ", count" if self.result in _LISTS else ""
        found = f"RUN_{kind.upper()}(call{count})"
        return [
            "static const tn_op *op;",
            f'CALL call = START(&op, "{self.op}");',
            *pushes,
            f"return {found};",
        ]

    def _inside(self, word: re.Match[str]) -> str:
        name = word.group()
        cast = _INSIDE.get(self.parameters.get(name, ""))
        return f"{cast}({name})" if cast else name

    def _returned(self, expression: str) -> str:
        if self.result == "void":
            return f"{expression};"
        return (
            f"return (int64_t)(intptr_t){expression};"
            if self.result in ("tensor", "stream")
            else f"return {expression};"
        )

    def _push(self, argument: str) -> str:
        if argument == "true":
            return "PUSH_BOOL(&call, true);"
        if argument.startswith("["):
            return f"PUSH_INTS(&call, &{argument[1:-1]}, 1);"
        type = self.parameters[argument]
        if type in _LISTS:
            return f"PUSH_{'TENSORS' if type == '[tensor]' else 'INTS'}(&call, {argument}, {argument}_count);"
        kind = {"tensor?": "OPTIONAL", "i64": "INT", "f64": "DOUBLE", "bool": "BOOL", "index": "INDEX"}
        return f"PUSH_{kind.get(type, 'TENSOR')}(&call, {argument});"


def functions() -> list[Function]:
    """The rows of the table, in order, each with its sibling."""
    return [made for line in _lines() if not line.startswith("#") for made in _with_sibling(Function(line))]


def _with_sibling(row: Function) -> list[Function]:
    """A row, and where it gives the number in a tensor, one that gives this tensor."""
    inner = re.fullmatch(r"number_in\((.*)\)", row.expression or "")
    if row.result != "f64" or row.name.endswith("_item") or (row.op is None and inner is None):
        return [row]
    sibling = copy.copy(row)
    sibling.name, sibling.result = f"{row.name}_tensor", "tensor"
    sibling.expression = inner[1] if inner else None
    return [row, sibling]


def add(include: Path, lib: Path, compiler: str, flags: Sequence[str] = ()) -> Path:
    """libtenfold_rt.so and tenfold_rt.h beside a built libtenfold; compiled unless this very text was."""
    library, stamp = lib / soname("libtenfold_rt"), lib / "libtenfold_rt.key"
    written = {"rt.c": source(), **{each.name: each.read_text("utf-8") for each in sorted(SOURCES.iterdir())}}
    key = hashlib.sha256("\0".join([header(), *written.values(), compiler, *flags]).encode()).hexdigest()
    if library.exists() and stamp.exists() and stamp.read_text("utf-8") == key:
        return library
    (include / "tenfold_rt.h").write_text(header(), "utf-8")
    with tempfile.TemporaryDirectory(dir=lib) as folder:
        for name, text in written.items():
            Path(folder, name).write_text(text, "utf-8")
        made = Path(folder, library.name)
        command = [compiler, "-std=gnu99", "-O2", "-fPIC", "-shared", *flags]
        command += [f"-I{include}", f"{folder}/rt.c", f"-L{lib}", "-ltenfold", "-lpthread"]
        command += ["-Wl,-rpath,$ORIGIN", f"-Wl,-soname,{library.name}"]
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True)
        if done.returncode:
            raise EngineError(
                f"compiling libtenfold_rt.so failed\n{done.stderr[:2000]}", help=" ".join(command)
            )
        made.rename(library)
    link_names(library)
    stamp.write_text(key, "utf-8")
    return library


def header() -> str:
    """The text of tenfold_rt.h."""
    return _HEADER.format(declarations="\n".join(_declarations()))


def source() -> str:
    """The text of the C file behind it."""
    written = ['#include "calls.h"\n#include "shapes.h"\n#include "layers.h"\n']
    for function in functions():
        body = "\n".join(f"    {line}" for line in function.body)
        written.append(f"{function.prototype} {{\n{body}\n}}\n")
    return "\n".join(written)


def _lines() -> list[str]:
    """The table's rows and headings, a line each."""
    return [line for line in re.sub(r"\n +", " ", TABLE).splitlines() if line]


def _declarations() -> list[str]:
    lines = []
    for line in _lines():
        if line.startswith("#"):
            lines.append(f"\n/* {line[2:]} */")
        else:
            lines += [f"{each.prototype};" for each in _with_sibling(Function(line))]
    return lines


_HEADER = """/* tenfold_rt.h: tensors for runtimes that pass 64-bit handles, over libtenfold.
 * A call that fails gives 0 for a handle, NaN for a double, -1 for a count, a number or a truth (-2 for a
 * device), NULL for text, and NULL with a count of -1 for a list; tn_error_message() says why. Every handle
 * that is returned is the caller's to free; text and lists are the library's, a list until the thread's next
 * call that gives one. Where rt_torch_available() is 0, handles know their shapes and nothing else. */
#ifndef TENFOLD_RT_H
#define TENFOLD_RT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif
{declarations}

#ifdef __cplusplus
}}
#endif

#endif
"""
