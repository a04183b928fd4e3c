"""What operators need of their arguments, where libtorch does not look: C++ that checks it, from the table.

A row states it as `needs=`: conditions on arguments by name, `groups > 0`, `some tensors` (a list that is not
empty), `grad_output like output` (of one shape), joined by `and`; or the name of a check in
`src/needs_kinds.h` that does more. It holds for the form in place and those with `out` as well, unless
another is stated for them: `counted; out: counted_into`. Overloads that libtorch has and the table has not
are listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tenfold.base.errors import FormatError
from tenfold.capi.locate import Installed
from tenfold.ops.schema import Schema
from tenfold.ops.table import PLACEMENT, Row, all_rows

__all__ = ["header", "needs_of", "without_row"]

# Operators without a row, by what they need.
ELSEWHERE = """
batch_dims: _new_zeros_with_same_feature_meta _new_zeros_with_same_feature_meta.out
combined: _compute_linear_combination _compute_linear_combination.out
complex_as_self: linalg__powsum
compressed_dims: _sparse_compressed_tensor_with_dims
compressed_rows: _convert_indices_from_csr_to_coo _convert_indices_from_csr_to_coo.out
convolved_dims<0, 1>: cudnn_convolution cudnn_convolution.out cudnn_convolution_add_relu
    cudnn_convolution_add_relu.out cudnn_convolution_relu cudnn_convolution_relu.out
    cudnn_convolution_transpose cudnn_convolution_transpose.out
convolved_dims<5, 4>: _convolution_double_backward
convolved_images: _nnpack_spatial_convolution _nnpack_spatial_convolution.out
copied_lists: _foreach_copy _foreach_copy.out
distances: _cdist_backward _cdist_backward.out
distances_of_pairs: _pdist_backward _pdist_backward.out
elements_in_memory: _saturate_weight_to_fp16 fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight.out
    fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_fp16_weight_fp32_activation.out
    fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
ellipsis: align_to.ellipsis_idx
gru_cell_backward: _thnn_differentiable_gru_cell_backward
indices_of_pooling<3, 2>: adaptive_max_pool3d_backward adaptive_max_pool3d_backward.grad_input
jagged: _jagged_to_padded_dense_forward _padded_dense_to_jagged_forward
labels_backward: _ctc_loss_backward.Tensor
labels_of_targets: _ctc_loss.Tensor _ctc_loss.Tensor_out
linear_weight: mkldnn_linear mkldnn_linear.out
lstm_cell_backward: _thnn_differentiable_lstm_cell_backward
lstm_layer: mkldnn_rnn_layer mkldnn_rnn_layer.out
nested_sizes: _nested_compute_contiguous_strides_offsets
new_size: _resize_output _resize_output.out _resize_output_
no_address: _quantized::_wrapped_linear_prepack _quantized::linear_prepack_fp16_legacy
    _quantized::linear_prepack_legacy _quantized::wrapped_fbgemm_pack_gemm_matrix_fp16
    _wrapped_linear_prepack fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix
    fbgemm_pack_quantized_matrix.KN quantized::linear_prepack_fp16_legacy quantized::linear_prepack_legacy
no_lazy_copy: _lazy_clone
no_vmap: _add_batch_dim _remove_batch_dim
noise_of_self: rrelu_with_noise rrelu_with_noise.out rrelu_with_noise_
norms_backward: _weight_norm_interface_backward _weight_norm_interface_backward.out
nothing_fits: mkldnn_rnn_layer_backward mkldnn_rnn_layer_backward.out
one_device: _sparse_semi_structured_addmm _sparse_semi_structured_apply
    _sparse_semi_structured_apply_dense _sparse_semi_structured_mm _sparse_semi_structured_tile
packed_weights: _dyn_quant_matmul_4bit
padded_sizes: _nested_from_padded _nested_from_padded.out
padded_steps: _pad_packed_sequence
padded_steps_backward: _pack_padded_sequence_backward
powers_of_lists: _foreach_powsum.Scalar _foreach_powsum.Scalar_out
quantized_range: choose_qparams_optimized
recurrent<1, true>: rnn_relu.data rnn_tanh.data
recurrent<3, true>: gru.data
recurrent<4, true>: lstm.data
rescaled_heads: _transform_bias_rescale_qkv _transform_bias_rescale_qkv.out
rows_on_one_device: _sparse_semi_structured_linear
rows_to_compress: _convert_indices_from_coo_to_csr _convert_indices_from_coo_to_csr.out
running_extremes: _cummax_helper _cummin_helper
running_statistics: batch_norm_update_stats batch_norm_update_stats.out
segments_backward: _segment_reduce_backward _segment_reduce_backward.out
shape_in_memory: _reshape_from_tensor
size_of_another: resize_as resize_as.out resize_as_
sobol_begun: _sobol_engine_initialize_state_
sobol_drawn: _sobol_engine_draw _sobol_engine_ff_
sobol_scrambled: _sobol_engine_scramble_
solved: _cholesky_solve_helper _cholesky_solve_helper.out
some_tensors: align_tensors
some_batches: _to_sparse_bsc _to_sparse_bsc.out _to_sparse_bsr _to_sparse_bsr.out _to_sparse_csc
    _to_sparse_csc.out _to_sparse_csr _to_sparse_csr.out to_sparse_bsc to_sparse_bsr to_sparse_csc
    to_sparse_csr
some_channels: batch_norm_stats batch_norm_stats.out
source_with_memory: set.source_Tensor set.source_Tensor_out set_.source_Tensor
    set_.source_Tensor_storage_offset
state_and_cells: quantized_lstm_cell
statistics: _native_batch_norm_legit _native_batch_norm_legit.out
statistics_by_index: _batch_norm_impl_index_backward
statistics_in_use: _batch_norm_with_update _batch_norm_with_update.out _batch_norm_with_update_functional
statistics_kept: _batch_norm_no_update _batch_norm_no_update.out
statistics_of_gradient: batch_norm_backward
weights_to_pack: _dyn_quant_pack_4bit_weight
within_storage: _reshape_alias
"""


def needs_of(schemas: Mapping[str, Installed]) -> dict[str, str]:
    """The needs of overloads, by their full names, as they are stated."""
    found: dict[str, str] = {}
    by_name: dict[str, list[Schema]] = {}
    for installed in schemas.values():
        by_name.setdefault(installed.schema.name, []).append(installed.schema)
    for row in all_rows():
        if row.needs:
            found.update(_forms(row, by_name))
    return dict(sorted((found | without_row()).items()))


def without_row() -> dict[str, str]:
    """The needs of overloads that the table does not have, by their full names."""
    found: dict[str, str] = {}
    for line in re.sub(r"\n +", " ", ELSEWHERE.strip()).splitlines():
        need, _, names = line.partition(": ")
        found.update((f"aten::{name}" if "::" not in name else name, need) for name in names.split())
    return found


def _forms(row: Row, schemas: Mapping[str, list[Schema]]) -> Iterator[tuple[str, str]]:
    """The overloads that compute what a row computes: those that take its arguments, and tensors to write."""
    stated = _stated(row)
    taken = _taken(row.schema)
    for schema in (*schemas.get(row.name, ()), *schemas.get(f"{row.name}_", ())):
        if _taken(schema) == taken:
            need = stated.get(_form(schema), stated.get("", ""))
            if need and need != "nothing":
                yield f"aten::{schema.qualified}", need


def _stated(row: Row) -> dict[str, str]:
    """What a row states, by form: "", `out` or `inplace`."""
    parts = [part.rpartition(": ") for part in row.needs.split("; ")]
    return {form: need for form, _, need in parts}


def _form(schema: Schema) -> str:
    if any(argument.keyword_only and argument.type.is_written for argument in schema.arguments):
        return "out"
    return "inplace" if schema.is_inplace else ""


def _taken(schema: Schema) -> list[tuple[object, ...]]:
    """The arguments that are read, without those about placement: with `out`, there is no need of them."""
    read = [
        argument
        for argument in schema.arguments
        if not (argument.keyword_only and (argument.type.is_written or argument.name in _PLACED))
    ]
    return [(each.name, each.type.kind, each.type.is_list, each.type.optional) for each in read]


_PLACED = (*PLACEMENT, "dtype")


# C++


def header(schemas: Mapping[str, Installed]) -> str:
    """needs_table.h: the checks that conditions amount to, and which overload has which."""
    needs = needs_of(schemas)
    functions: dict[tuple[str, ...], str] = {}
    bodies: list[str] = []
    entries: list[str] = []
    for name, need in needs.items():
        if re.fullmatch(r"\w+(<[\w, ]+>)?", need):
            entries.append(f'    {{"{name}", {need}}},')
            continue
        lines = tuple(
            _check(condition, schemas[name.removeprefix("aten::")].schema)
            for condition in need.split(" and ")
        )
        if lines not in functions:
            functions[lines] = f"need_{len(functions)}"
            bodies += [
                f"void {functions[lines]}(Stack &arguments) {{",
                *[f"    {line}" for line in lines],
                "}",
                "",
            ]
        entries.append(f'    {{"{name}", {functions[lines]}}},')
    head = [
        "// needs_table.h: by `tenfold capi build` from the op table.",
        "namespace tenfold {",
        "namespace {",
        "",
    ]
    table = ["const std::unordered_map<std::string, Needs> needs_table = {", *entries, "};"]
    return "\n".join([*head, *bodies, *table, "", "}  // namespace", "}  // namespace tenfold"]) + "\n"


def _check(condition: str, schema: Schema) -> str:
    places = {argument.name: f"arguments[{i}]" for i, argument in enumerate(schema.arguments)}

    def place(name: str) -> str:
        if name not in places:
            raise FormatError(f"{schema.qualified}: the need {condition!r} names no argument of it")
        return places[name]

    match condition.split():
        case [name, sign, number] if sign in _SIGNS and re.fullmatch(r"-?\d+", number):
            words = _SPECIAL.get(f"{sign} {number}", f"{_SIGNS[sign]} {number}")
            return f'need({place(name)}.toInt() {sign} {number}, "{name} is {words}");'
        case ["some", name]:
            test = f"!{place(name)}.toListRef().empty()"
            kind = next(argument.type.kind for argument in schema.arguments if argument.name == name)
            element = "tensor" if kind == "Tensor" else f"element of {name}"
            return f'need({test}, "at least one {element} is needed");'
        case [name, "like", other]:
            test = f"{place(name)}.toTensor().sizes() == {place(other)}.toTensor().sizes()"
            return f'need({test}, "{name} has the shape of {other}");'
    raise FormatError(f"{schema.qualified}: a need cannot be read: {condition!r}")


# What an error says of a comparison.
_SIGNS = {">": "more than", ">=": "at least", "<": "less than", "<=": "at most", "!=": "not"}
_SPECIAL = {"> 0": "positive", ">= 0": "not negative"}
