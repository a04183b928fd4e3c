"""The names of PyTorch's that Tenfold refuses, and why: docs/unsupported.md lists them. Each is a function
that raises `UnsupportedError`, so that a program which uses one is told the reason and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from tenfold.base.errors import UnsupportedError
from tenfold.base.source import capture


class Refusal(NamedTuple):
    """Why names are refused, and what to do instead; the names of functions, and of Tensor's methods."""

    reason: str
    help: str
    functions: str = ""
    methods: str = ""
    ops: str = ""  # of ATen's, that are no function of PyTorch's
    layers: str = ""  # functions of nn.functional
    linear: str = ""  # functions of linalg


REFUSALS = (
    Refusal(
        "it needs a sparse layout or a sparse operation that Tenfold does not have",
        "use sparse_coo_tensor or sparse_csr_tensor, and the functions of tenfold.sparse",
        "ccol_indices_copy col_indices_copy crow_indices_copy hspmm indices_copy native_norm"
        " resize_as_sparse_ row_indices_copy sparse_bsc_tensor sparse_bsr_tensor sspaddmm values_copy",
        "resize_as_sparse_ sparse_resize_ sparse_resize_and_clear_ sspaddmm to_sparse_bsc to_sparse_bsr",
    ),
    Refusal(
        "nothing is computed with quantized tensors",
        "dequantize first, or keep integers and scales apart as tenfold.ops.quantized_decomposed does",
        "choose_qparams_optimized empty_quantized fused_moving_avg_obs_fake_quant"
        " quantize_per_tensor_dynamic quantized_batch_norm quantized_gru quantized_gru_cell quantized_lstm"
        " quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d"
        " quantized_rnn_relu_cell quantized_rnn_tanh_cell",
        "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme",
    ),
    Refusal(
        "it is a kernel of one vendor's library, which XLA chooses itself",
        "call the op without the prefix, such as convolution for cudnn_convolution",
        "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats"
        " batch_norm_gather_stats_with_counts batch_norm_stats cudnn_affine_grid_generator"
        " cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu"
        " cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable fbgemm_linear_fp16_weight"
        " fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight"
        " fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight"
        " fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix miopen_batch_norm miopen_convolution"
        " miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss"
        " miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution"
        " mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer",
        "to_mkldnn",
        "",
        "scaled_grouped_mm",
    ),
    Refusal(
        "it is a device, a stream or a dtype that XLA does not have",
        "use the CPU or CUDA, and dtypes that tenfold.base.dtypes names",
        "get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_ipu_enabled is_autocast_xla_enabled"
        " set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled",
        "chalf ipu mtia record_stream xpu",
    ),
    Refusal(
        "memory is not shared between processes, and no object gives write access to it",
        "use threads, .numpy(), or DLPack",
        "",
        "share_memory_ storage storage_type",
    ),
    Refusal(
        "PyTorch removed it",
        "use its successor in tenfold.linalg: eig, eigh, lstsq, matrix_rank, solve",
        "eig lstsq matrix_rank solve symeig",
        "eig lstsq solve symeig",
    ),
    Refusal(
        "it belongs to TorchScript, or to how PyTorch itself is built and profiled",
        "use tenfold.compile, tenfold.export or tenfold.cond",
        "autocast_decrement_nesting autocast_increment_nesting classproperty compiled_with_cxx11_abi fork"
        " get_file_path import_ir_module import_ir_module_from_buffer init_num_threads"
        " merge_type_from_type_comment parse_ir parse_schema parse_type_comment"
        " prepare_multiprocessing_environment profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 slice_inverse"
        " sym_fresh_size thread_safe_generator unify_type_list wait",
        "index reinforce slice_inverse",
        "",
        "assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function"
        " has_torch_function_unary has_torch_function_variadic",
    ),
    Refusal(
        "nested tensors, whose pieces differ in length, are not supported",
        "pad them to one length: tenfold.nn.utils.rnn.pad_sequence",
        "",
        "to_padded_tensor",
    ),
)


def _named(field: str) -> dict[str, Refusal]:
    return {name: refusal for refusal in REFUSALS for name in getattr(refusal, field).split()}


FUNCTIONS, METHODS, OPS = _named("functions"), _named("methods"), _named("ops")
_BY_MODULE = {
    "torch": FUNCTIONS,
    "torch.Tensor": METHODS,
    "torch.nn.functional": _named("layers"),
    "torch.linalg": _named("linear"),
}


def of(module: str) -> dict[str, Refusal]:
    """The names that are refused of a module of PyTorch's."""
    return _BY_MODULE.get(module, {})


def function(module: str, name: str) -> Callable[..., NoReturn] | None:
    """The function that refuses a name of a module of PyTorch's; None if it is not one of those."""
    refusal = of(module).get(name)
    return None if refusal is None else refusing(name, refusal)


def refusing(name: str, refusal: Refusal) -> Callable[..., NoReturn]:
    """The function of a name that is refused."""

    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(refusal.reason, help=refusal.help).located(name, capture())

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Not supported: {refusal.reason}."
    return call


def install(tensor: type) -> None:
    """Give Tensor the methods that are refused."""
    for name, refusal in METHODS.items():
        setattr(tensor, name, refusing(name, refusal))


_TITLES = {
    "functions": "Functions",
    "methods": "Methods of Tensor",
    "ops": "Ops of `aten`",
    "layers": "Functions of `nn.functional`",
    "linear": "Functions of `linalg`",
}


def as_markdown() -> str:
    """What is refused, as the sections of docs/unsupported.md."""
    sections = []
    for refusal in REFUSALS:
        lines = [f"## {refusal.reason[0].upper()}{refusal.reason[1:]}", f"Instead, {refusal.help}."]
        for field, title in _TITLES.items():
            names = getattr(refusal, field).split()
            lines += [f"{title}: {', '.join(f'`{name}`' for name in names)}."] if names else []
        sections.append("\n\n".join(lines))
    return "\n\n".join(sections)
