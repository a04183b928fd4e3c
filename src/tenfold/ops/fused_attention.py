"""Attention of half-precision heads as one kernel: on CUDA through cuDNN's fused call, which XLA knows;
elsewhere as products and a softmax. The scores are never kept: the gradient computes them again from the
logarithm of each row's sum, as the kernel does.

Operands are (batch, heads, length, width); cuDNN wants the heads beside the width, which is how models have
them before they transpose, so that XLA drops both transpositions. Several heads of the query may share one of
key and value, which cuDNN reads for each of them; elsewhere it is repeated.
"""

from __future__ import annotations

from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import UnsupportedError
from tenfold.flat import TensorType, Value
from tenfold.flat.remat import derived

NAMES = {dtypes.bfloat16: "BF16", dtypes.float16: "F16"}
WIDEST = 128  # of heads that cuDNN takes on every GPU with this kernel
BESIDE = (3, 1, 2, 0)  # in memory (batch, length, heads, width), from the nearest to the farthest


def fits(query: Value, key: Value, value: Value, group: int) -> bool:
    """Whether the kernel takes these: four dimensions, half precision, one width, a multiple of 8; and
    `group` heads of the query for each of key and value."""
    width = query.shape[-1]
    return (
        query.dtype in NAMES
        and query.rank == key.rank == value.rank == 4
        and query.shape[:2] == (key.shape[0], key.shape[1] * group)
        and key.shape == value.shape
        and 0 < width <= WIDEST
        and width % 8 == 0
        and query.numel > 0
        and key.numel > 0
    )


def _rule(
    cotangents: Any, results: Any, query: Value, key: Value, value: Value, scale: float, causal: bool
) -> Any:
    out, log_sums = results
    to_out, to_sums = cotangents
    if to_sums is not None:
        raise UnsupportedError("the logarithms of the sums are for the gradient alone")
    return attention_gradient(query, key, value, out, log_sums, to_out, scale, causal)


def _on_cuda(query: Value, key: Value, value: Value, scale: float, causal: bool) -> tuple[Value, ...]:
    batch, heads, length, _ = query.shape
    results = (query.type, TensorType(dtypes.float32, (batch, heads, length)))
    return _call("__cudnn$fmhaSoftmax", [query, key, value], results, query, key, scale, causal)


@flat.differentiated(_rule, elsewhere={"cuda": _on_cuda})
def fused_attention(
    query: Value, key: Value, value: Value, scale: float, causal: bool
) -> tuple[Value, Value]:
    """softmax(query · keyᵀ · scale) · value, and the logarithm of each row's sum of exponentials."""
    key, value = (_repeated(shared, query.shape[1]) for shared in (key, value))
    scores = _scores(query, key, scale, causal)
    largest = flat.reduce(scores, "max", (-1,), keepdim=True)
    powers = flat.exp(scores - largest)
    total = flat.sum(powers, (-1,), keepdim=True)
    out = _product(flat.convert(powers / total, query.dtype), value, 3, 2)
    return flat.convert(out, query.dtype), flat.squeeze(flat.log(total) + largest, -1)


def _gradient_on_cuda(
    query: Value,
    key: Value,
    value: Value,
    out: Value,
    log_sums: Value,
    to_out: Value,
    scale: float,
    causal: bool,
) -> tuple[Value, ...]:
    results = (query.type, key.type, value.type)
    inputs = [query, key, value, log_sums, to_out, out]
    return _call("__cudnn$fmhaSoftmaxBackward", inputs, results, query, key, scale, causal)


def _attention_gradient(
    query: Value,
    key: Value,
    value: Value,
    out: Value,
    log_sums: Value,
    to_out: Value,
    scale: float,
    causal: bool,
) -> tuple[Value, Value, Value]:
    heads = key.shape[1]
    key, value = (_repeated(shared, query.shape[1]) for shared in (key, value))
    chances = flat.exp(_scores(query, key, scale, causal) - flat.unsqueeze(log_sums, -1))
    narrow = flat.convert(chances, query.dtype)
    wide = flat.convert(to_out, dtypes.float32)
    share = flat.sum(wide * flat.convert(out, dtypes.float32), (-1,), keepdim=True)
    to_scores = chances * (_product(to_out, value, 3, 3) - share) * scale
    to_scores = flat.convert(to_scores, query.dtype)
    found = (
        _product(to_scores, key, 3, 2),
        _added_up(_product(to_scores, query, 2, 2), heads),
        _added_up(_product(narrow, to_out, 2, 2), heads),
    )
    to_query, to_key, to_value = [flat.convert(each, query.dtype) for each in found]
    return to_query, to_key, to_value


attention_gradient = flat.differentiated(derived(_attention_gradient), elsewhere={"cuda": _gradient_on_cuda})(
    _attention_gradient
)


def _repeated(x: Value, heads: int) -> Value:
    """Heads that are shared, once for each of the `heads` that share them."""
    batch, shared, length, width = x.shape
    if shared == heads:
        return x
    apart = flat.broadcast_to(flat.unsqueeze(x, 2), (batch, shared, heads // shared, length, width))
    return flat.reshape(apart, (batch, heads, length, width))


def _added_up(x: Value, shared: int) -> Value:
    """The cotangent of heads that were repeated."""
    batch, heads, length, width = x.shape
    if shared == heads:
        return x
    return flat.sum(flat.reshape(x, (batch, shared, heads // shared, length, width)), (2,))


def _product(x: Value, y: Value, over_x: int, over_y: int) -> Value:
    """Products of the matrices of each head, summed in float32."""
    return flat.dot_general(x, y, ((over_x,), (over_y,)), ((0, 1), (0, 1)), dtypes.float32)


def _scores(query: Value, key: Value, scale: float, causal: bool) -> Value:
    scores = _product(query, key, 3, 3) * scale
    if not causal:
        return scores
    shape = scores.shape[-2:]
    return flat.where(flat.ge(flat.iota(shape, 0), flat.iota(shape, 1)), scores, float("-inf"))


def _call(
    target: str,
    inputs: list[Value],
    results: tuple[TensorType, ...],
    query: Value,
    key: Value,
    scale: float,
    causal: bool,
) -> tuple[Value, ...]:
    """The kernel on operands with the heads beside the width; its last result, room to work, is dropped."""
    beside = [flat.transpose(each, (0, 2, 1, 3)) if each.rank == 4 else each for each in inputs]
    room = TensorType(dtypes.uint8, (0,))
    layouts = [
        *[tuple(reversed(range(each.rank))) for each in beside],
        *[BESIDE if result.rank == 4 else tuple(reversed(range(result.rank))) for result in results],
        (0,),
    ]
    config = _config(query, key, scale, causal, backward=len(inputs) > 3)
    return flat.custom_call(target, beside, (*results, room), config, (), layouts)[:-1]


# Which dimensions each product of the kernel sums over and runs along, for heads beside the width.
FORWARD = {"bmm1": ((3, 3), ((0, 2), (0, 2))), "bmm2": ((3, 1), ((0, 1), (0, 2)))}
BACKWARD = {
    "bmm1_grad_gemm1": ((2, 1), ((0, 1), (0, 2))),
    "bmm1_grad_gemm2": ((3, 1), ((0, 1), (0, 2))),
    "bmm2_grad_gemm1": ((2, 1), ((0, 1), (0, 2))),
    "bmm2_grad_gemm2": ((3, 3), ((0, 2), (0, 2))),
}


def _config(query: Value, key: Value, scale: float, causal: bool, backward: bool) -> str:
    """The kernel's options in XLA's own form, protocol buffers as JSON, where whole numbers are texts."""
    batch, heads, length, _ = query.shape
    products = {
        f"{name}_dot_dimension_numbers": {
            "lhs_contracting_dimensions": [str(over[0])],
            "rhs_contracting_dimensions": [str(over[1])],
            "lhs_batch_dimensions": [str(each) for each in along[0]],
            "rhs_batch_dimensions": [str(each) for each in along[1]],
        }
        for name, (over, along) in (BACKWARD if backward else FORWARD).items()
    }
    options = {
        "algorithm": {
            "algo_id": "0",
            "math_type": "TENSOR_OP_MATH",
            "tuning_knobs": {"17": "1", "24": "0"},
            "is_cudnn_frontend": True,
            "workspace_size": "0",
        },
        "fmha_scale": scale,
        "intermediate_tensor_shape": {
            "element_type": NAMES[query.dtype],
            "dimensions": [str(each) for each in (batch, heads, length, key.shape[2])],
            "tuple_shapes": [],
            "layout": {"minor_to_major": ["3", "2", "1", "0"]},
            "is_dynamic_dimension": [False] * 4,
        },
        "is_flash_attention": True,
        "mask_type": "CAUSAL" if causal else "NO_MASK",
        "dropout_rate": 0.0,
        "seed": 42,
        "sliding_window_length": 0,
        "max_seg_per_batch": 1,
        "is_paged_attention": False,
        **products,
    }
    import json  # slow to load, and needed on GPUs alone

    return json.dumps({"operation_queue_id": "0", "cudnn_fmha_backend_config": options})
