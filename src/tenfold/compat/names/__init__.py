"""Names of the package that stand in modules which are loaded when one of them is first asked for: which they
are, and the module of each. In this folder are those that have no other home."""

from tenfold.base import named_dtypes
from tenfold.ops.table import with_form
from tenfold.storage import CLASSES as STORAGES
from tenfold.tensor.conversions import TYPES

AUTOCAST = """
    autocast clear_autocast_cache get_autocast_dtype is_autocast_cache_enabled is_autocast_enabled
    set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled
""".split()  # noqa: SIM905

SETTINGS = """
    are_deterministic_algorithms_enabled default_generator get_autocast_cpu_dtype get_autocast_gpu_dtype
    get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads get_num_threads
    is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_cpu_enabled
    is_deterministic_algorithms_warn_only_enabled is_inference_mode_enabled is_vulkan_available
    is_warn_always_enabled set_anomaly_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled
    set_autocast_gpu_dtype set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision
    set_flush_denormal set_num_interop_threads set_num_threads set_warn_always use_deterministic_algorithms
""".split()  # noqa: SIM905

QUESTIONS = """
    get_device get_device_module is_conj is_distributed is_inference is_neg is_storage sym_constrain_range
    sym_constrain_range_for_size sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum to_dlpack
    typename
""".split()  # noqa: SIM905

QUANTIZED = """
    dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point
    quantize_per_channel quantize_per_tensor _make_per_channel_quantized_tensor
    _make_per_tensor_quantized_tensor
""".split()  # noqa: SIM905
QUANTIZED_DTYPES = """
    per_channel_affine per_channel_symmetric per_tensor_affine per_tensor_symmetric qint32 qint8 qscheme
    quint8
""".split()  # noqa: SIM905

CHECKS = """
    _assert_async _check _check_index _check_is_size _check_not_implemented _check_tensor_all
    _check_tensor_all_with _check_type _check_value _check_with
""".split()  # noqa: SIM905

NORMS = ("batch_norm", "batch_norm_update_stats", "instance_norm", "native_batch_norm")

# The functions that write to their first argument. Two do more than write a result of an op.
INPLACE = [name + "_" for name in with_form("function_")] + ["detach_", "resize_as_"]

# The functions on lists of tensors: with a form that writes to them, and without; then those of no op.
FOREACH = [f"_foreach_{name}{form}" for name in with_form("foreach") for form in ("", "_")]
FOREACH += ["_foreach_clone", "_foreach_copy_", "_foreach_max", "_foreach_norm", "_foreach_zero_"]

SPARSE = """
    sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor
    _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo
""".split()  # noqa: SIM905

MODULE_OF = {
    **dict.fromkeys(AUTOCAST, "amp.autocast_mode"),
    "GradScaler": "amp",
    **dict.fromkeys(("compile", "show"), "compiler"),
    "vmap": "func",
    **dict.fromkeys(("cond", "while_loop"), "func.control_flow"),
    **dict.fromkeys(("Dim", "export", "load_stablehlo", "load_vmfb"), "exporting"),
    **dict.fromkeys(("load", "save"), "serialize"),
    **dict.fromkeys(CHECKS, "functional"),
    "profile": "profiler",
    **dict.fromkeys(("Event", "Stream"), "cuda.streams"),
    **dict.fromkeys(("SymBool", "SymFloat", "SymInt"), "compat.names.symbols"),
    **dict.fromkeys(("install_as_torch", "uninstall_as_torch"), "compat.install"),
    **dict.fromkeys(QUANTIZED, "tensor.quantized"),
    **dict.fromkeys(QUANTIZED_DTYPES, "base.quantized_dtypes"),
    **dict.fromkeys(named_dtypes.NAMES, "base.named_dtypes"),
    **dict.fromkeys((*STORAGES, "UntypedStorage"), "storage"),
    **dict.fromkeys(TYPES, "tensor.typed"),
    **dict.fromkeys(SPARSE, "sparse"),
    "smm": "sparse.products",
    **dict.fromkeys(("lobpcg", "pca_lowrank", "svd_lowrank"), "compat.names.low_rank"),
    "histogramdd": "compat.names.histograms",
    **dict.fromkeys(NORMS, "compat.names.norms"),
    **dict.fromkeys(SETTINGS, "compat.names.settings"),
    **dict.fromkeys(QUESTIONS, "compat.names.questions"),
    **dict.fromkeys(INPLACE, "compat.names.inplace"),
    **dict.fromkeys(FOREACH, "compat.names.foreach"),
}
