// The checks of operators whose kernels divide by an argument, or read what is not there, without looking: most are
// parts of others that look first. The names in the table are read by `arguments.py` too.
#include "needs.h"

#include <limits>
#include <set>
#include <unordered_map>

#include <ATen/ExpandUtils.h>
#include <ATen/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/result_type.h>

#include "internal.h"
#include "needs_indices.h"
#include "needs_sizes.h"

namespace tenfold {

void need(bool fulfilled, const char *what) {
    if (!fulfilled) fail(TN_ERROR_ARGUMENT, what);
}

bool of_integers(const at::Tensor &tensor) { return c10::isIntegralType(tensor.scalar_type(), true); }

bool lies_in_memory(const at::Tensor &tensor) { return tensor.is_cpu() && tensor.layout() == c10::kStrided; }

namespace {

using torch::jit::Stack;

bool given(const c10::IValue &value) { return value.isTensor() && value.toTensor().defined(); }

// ---- Fourier transforms --------------------------------------------------------------------------------------

void transformed_dims(Stack &arguments) {
    const int64_t rank = arguments[0].toTensor().dim();
    std::set<int64_t> dims;
    for (int64_t dim : arguments[1].toIntVector()) {
        if (dim < 0 || dim >= rank) fail(TN_ERROR_INDEX, "dim ", dim, " is out of range for ", rank, " dimensions");
        need(dims.insert(dim).second, "dim names each dimension once");
    }
}

void some_dims(Stack &arguments) {
    transformed_dims(arguments);
    need(!arguments[1].toIntVector().empty(), "at least one dim is needed");
}

void half_of_last_dim(Stack &arguments) {
    some_dims(arguments);
    const int64_t half = arguments[0].toTensor().size(arguments[1].toIntVector().back()), last = arguments[3].toInt();
    need(last > 0 && last / 2 + 1 <= half, "last_dim_size is positive, and half of it lies in self");
}

// ---- norms ---------------------------------------------------------------------------------------------------

void groups(Stack &arguments) {
    need(arguments[6].toInt() > 0, "group is a positive number");
    for (size_t i = 3; i < 6; i++) need(arguments[i].toInt() >= 0, "N, C and HxW are not negative");
}

// What a batch norm's kernel would get as far as reading; others it refuses in its own words.
bool is_normed(const at::Tensor &input) { return input.dim() > 1 && input.is_floating_point(); }

// Weight, bias and statistics: one number for each channel, or none of them.
void of_channels(const Stack &arguments, const at::Tensor &input, size_t first, size_t last) {
    for (size_t i = first; i < last; i++)
        need(!given(arguments[i]) || arguments[i].toTensor().numel() == input.size(1),
             "weight, bias and statistics have a number for each channel");
}

void statistics(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    if (!is_normed(input)) return;
    of_channels(arguments, input, 1, 5);
    need(arguments[5].toBool() || (given(arguments[3]) && given(arguments[4])),
         "running_mean and running_var are needed where training is false");
}

void no_statistics(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    if (!is_normed(input)) return;
    of_channels(arguments, input, 1, 3);
    need(arguments[3].toBool(), "training is true where there is no running_mean");
}

void running_statistics(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    if (is_normed(input)) of_channels(arguments, input, 1, 3);
}

void statistics_in_use(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    if (is_normed(input)) of_channels(arguments, input, 1, 5);
}

void statistics_of_gradient(Stack &arguments) {
    const at::Tensor &input = arguments[1].toTensor();
    need(input.dim() > 1 && input.size(1) > 0, "input has channels");
    need(arguments[0].toTensor().sizes() == input.sizes(), "grad_out has the shape of input");
    of_channels(arguments, input, 2, 7);
    const size_t used = arguments[7].toBool() ? 5 : 3;
    need(given(arguments[used]) && given(arguments[used + 1]),
         "the saved statistics are needed where train is true, and the running ones where it is false");
}

void norms(Stack &arguments) {
    const at::Tensor &weight = arguments[0].toTensor(), &norm = arguments[1].toTensor();
    const int64_t dim = arguments[2].toInt();
    need(dim >= 0 && dim < weight.dim(), "dim is one of v's dimensions");
    need(weight.numel() > 0 && norm.numel() >= weight.size(dim), "g has a number for each entry of v along dim");
}

// `_weight_norm` gives it no others.
void norms_of_rows(Stack &arguments) {
    norms(arguments);
    const at::Tensor &weight = arguments[0].toTensor(), &norm = arguments[1].toTensor();
    const int64_t dim = arguments[2].toInt();
    need(dim == 0 || dim == weight.dim() - 1, "dim is the first or the last of v's dimensions");
    need(norm.numel() == weight.size(dim), "g has a number for each entry of v along dim, and no more");
    need(weight.is_contiguous() && norm.is_contiguous(), "v and g are contiguous");
}

void norms_where_fused(Stack &arguments) {
    const at::Tensor &weight = arguments[0].toTensor();
    const int64_t dim = arguments[2].toInt();
    if (dim != 0 && dim != weight.dim() - 1) return;
    norms(arguments);
    need(arguments[1].toTensor().numel() == weight.size(dim), "g has a number for each entry of v along dim, and no more");
}

// ---- gradients -----------------------------------------------------------------------------------------------

void same_shapes(Stack &arguments) {
    need(arguments[0].toTensor().sizes() == arguments[1].toTensor().sizes(), "grad_output has the shape of the tensor after it");
}

// oneDNN's kernel takes both to have one shape; the others broadcast.
void shapes_of_gelu(Stack &arguments) {
    const at::Tensor &self = arguments[1].toTensor();
    const bool broadcasts = self.scalar_type() == c10::kDouble || self.numel() == 1 || arguments[2].toStringRef() != "none";
    if (self.is_cpu() && !broadcasts) same_shapes(arguments);
}

template <int64_t pooled>
void same_channels(Stack &arguments) {
    const at::Tensor &grad_output = arguments[0].toTensor(), &self = arguments[1].toTensor();
    const int64_t before = self.dim() - pooled;
    need(before > 0 && grad_output.dim() == self.dim(), "grad_output and self have a dimension of channels");
    need(grad_output.sizes().slice(0, before) == self.sizes().slice(0, before), "grad_output has the batch and the channels of self");
}

// Whole vectors are divided by beta, also where the quotient is not used.
void whole_beta(Stack &arguments) {
    const bool whole = of_integers(arguments[0].toTensor()) && of_integers(arguments[1].toTensor()) && of_integers(arguments[2].toTensor());
    need(!whole || arguments[4].toDouble() >= 1, "beta is at least 1 for tensors of integers");
}

// ---- attention -----------------------------------------------------------------------------------------------

void attended(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const c10::IValue &mask) {
    need(query.dim() == 4 && key.dim() == 4, "query, key and value have four dimensions");
    need(key.sizes() == value.sizes(), "key and value have one shape");
    need(query.sizes().slice(0, 2) == key.sizes().slice(0, 2) && query.size(3) == key.size(3),
         "query and key have the same batches and heads, and heads of one size");
    need(!given(mask) || at::is_expandable_to(mask.toTensor().sizes(), {query.size(0), query.size(1), query.size(2), key.size(2)}),
         "attn_mask expands to batches, heads, queries and keys");
}

void attention(Stack &arguments) {
    attended(arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toTensor(), arguments[5]);
}

void attention_backward(Stack &arguments) {
    const at::Tensor &query = arguments[1].toTensor();
    attended(query, arguments[2].toTensor(), arguments[3].toTensor(), arguments[8]);
    need(arguments[0].toTensor().sizes() == query.sizes() && arguments[4].toTensor().sizes() == query.sizes(),
         "grad_out and out have the shape of query");
    need(arguments[5].toTensor().sizes() == query.sizes().slice(0, 3), "logsumexp has a number for each query");
}

// ---- others --------------------------------------------------------------------------------------------------

void whole_step(Stack &arguments) {
    if (!arguments[3].isInt()) return;
    const bool whole = c10::isIntegralType(static_cast<c10::ScalarType>(arguments[3].toInt()), true);
    need(!whole || arguments[2].toScalar().toDouble() >= 1 || arguments[2].toScalar().toDouble() <= -1,
         "step is no whole number but 0, which the numbers of this dtype never get on by");
}

void whole_step_into(Stack &arguments) {
    const auto type = static_cast<int64_t>(arguments[3].toTensor().scalar_type());
    Stack same{arguments[0], arguments[1], arguments[2], type};
    whole_step(same);
}

void absolute_power(Stack &arguments) {
    need(arguments[1].toInt() != std::numeric_limits<int64_t>::min(), "n has an absolute value of 64 bits");
}

// A processor stops the program that divides the smallest integer by -1.
void no_overflow(Stack &arguments) {
    if (!arguments[2].isString() || arguments[2].toStringRef() != "trunc") return;
    const at::Tensor &self = arguments[0].toTensor();
    const c10::IValue &other = arguments[1];
    const c10::ScalarType type =
        other.isTensor() ? at::result_type(self, other.toTensor()) : at::result_type(self, other.toScalar());
    if (!lies_in_memory(self) || (type != c10::kInt && type != c10::kLong)) return;
    if (other.isTensor() ? !lies_in_memory(other.toTensor()) : !other.toScalar().equal(-1)) return;
    const int64_t smallest = type == c10::kInt ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
    at::Tensor overflows = self.to(type).eq(smallest);
    if (other.isTensor()) overflows = overflows.logical_and(other.toTensor().eq(-1));
    need(!overflows.any().item<bool>(), "the smallest integer cannot be divided by -1");
}

void strided(Stack &arguments) {
    for (size_t i = 0; i < 2; i++)
        need(given(arguments[i]) && arguments[i].toTensor().layout() == c10::kStrided, "self and src are tensors with strides");
}

// The kernel takes the elements along dim to lie one after another: where one is repeated it gets a copy.
void unrepeated(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor();
    const int64_t dim = arguments[1].toInt() + (arguments[1].toInt() < 0 ? self.dim() : 0);
    if (lies_in_memory(self) && dim >= 0 && dim < self.dim() && self.stride(dim) == 0)
        arguments[0] = self.clone(at::MemoryFormat::Contiguous);
}

void some_tensors(Stack &arguments) { need(arguments[0].toListRef().size() > 0, "at least one tensor is needed"); }

void chunked_dim(Stack &arguments) {
    some_tensors(arguments);
    for (const at::Tensor &each : arguments[0].toTensorVector())
        need(arguments[1].toInt() >= 0 && arguments[1].toInt() < each.dim(), "dim is a dimension of each tensor, and not negative");
}

void contiguous_rows(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor();
    need(self.dim() == 2 && self.is_contiguous(), "self is a contiguous matrix");
}

// LAPACK's balancing writes outside of its memory for others.
void finite(Stack &arguments) {
    const at::Tensor &given = arguments[0].toTensor();
    if (!lies_in_memory(given)) return;
    need(at::isfinite(given).all().item<bool>(), "self has no infinities and no NaNs");
}

}  // namespace

Needs needs_of(const std::string &op) {
    static const std::unordered_map<std::string, Needs> needs = {
        {"aten::_adaptive_avg_pool2d_backward", same_channels<2>},
        {"aten::_adaptive_avg_pool2d_backward.out", same_channels<2>},
        {"aten::_adaptive_avg_pool3d_backward", same_channels<3>},
        {"aten::_adaptive_avg_pool3d_backward.out", same_channels<3>},
        {"aten::_chunk_cat", chunked_dim},
        {"aten::_chunk_cat.out", chunked_dim},
        {"aten::_ctc_loss", labels_of_targets},
        {"aten::_ctc_loss.Tensor", labels_of_targets},
        {"aten::_ctc_loss.Tensor_out", labels_of_targets},
        {"aten::_ctc_loss.out", labels_of_targets},
        {"aten::_ctc_loss_backward", labels_backward},
        {"aten::_ctc_loss_backward.Tensor", labels_backward},
        {"aten::_ctc_loss_backward.out", labels_backward},
        {"aten::_fft_c2c", transformed_dims},
        {"aten::_fft_c2c.out", transformed_dims},
        {"aten::_fft_c2r", half_of_last_dim},
        {"aten::_fft_c2r.out", half_of_last_dim},
        {"aten::_fft_r2c", some_dims},
        {"aten::_fft_r2c.out", some_dims},
        {"aten::_linalg_eigvals", finite},
        {"aten::_log_softmax_backward_data", same_shapes},
        {"aten::_log_softmax_backward_data.out", same_shapes},
        {"aten::_native_batch_norm_legit", statistics},
        {"aten::_native_batch_norm_legit_functional", statistics},
        {"aten::_native_batch_norm_legit_no_training", statistics_in_use},
        {"aten::_native_batch_norm_legit_no_training.out", statistics_in_use},
        {"aten::_native_batch_norm_legit.no_stats", no_statistics},
        {"aten::_native_batch_norm_legit.no_stats_out", no_statistics},
        {"aten::_native_batch_norm_legit.out", statistics},
        {"aten::_pdist_forward", contiguous_rows},
        {"aten::_pdist_forward.out", contiguous_rows},
        {"aten::_reshape_alias", within_storage},
        {"aten::_reshape_alias_copy", within_storage},
        {"aten::_reshape_alias_copy.out", within_storage},
        {"aten::_resize_output", new_size},
        {"aten::_resize_output.out", new_size},
        {"aten::_resize_output_", new_size},
        {"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
        {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward},
        {"aten::_segment_reduce_backward", segments_backward},
        {"aten::_segment_reduce_backward.out", segments_backward},
        {"aten::_softmax_backward_data", same_shapes},
        {"aten::_softmax_backward_data.out", same_shapes},
        {"aten::_stack", some_tensors},
        {"aten::_stack.out", some_tensors},
        {"aten::_weight_norm", norms_where_fused},
        {"aten::_weight_norm_interface", norms_of_rows},
        {"aten::_weight_norm_interface.out", norms_of_rows},
        {"aten::adaptive_max_pool2d_backward", indices_of_pooling<2, 2>},
        {"aten::adaptive_max_pool2d_backward.grad_input", indices_of_pooling<2, 2>},
        {"aten::adaptive_max_pool3d_backward", indices_of_pooling<3, 2>},
        {"aten::adaptive_max_pool3d_backward.grad_input", indices_of_pooling<3, 2>},
        {"aten::batch_norm_backward", statistics_of_gradient},
        {"aten::batch_norm_update_stats", running_statistics},
        {"aten::batch_norm_update_stats.out", running_statistics},
        {"aten::concat.out", some_tensors},
        {"aten::concatenate.out", some_tensors},
        {"aten::copy", strided},
        {"aten::copy.out", strided},
        {"aten::ctc_loss.IntList", labels_of_targets},
        {"aten::ctc_loss.Tensor", labels_of_targets},
        {"aten::div.Scalar_mode", no_overflow},
        {"aten::div.Scalar_mode_out", no_overflow},
        {"aten::div.Tensor_mode", no_overflow},
        {"aten::div.out_mode", no_overflow},
        {"aten::div_.Scalar_mode", no_overflow},
        {"aten::div_.Tensor_mode", no_overflow},
        {"aten::divide.Scalar_mode", no_overflow},
        {"aten::divide.Tensor_mode", no_overflow},
        {"aten::divide.out_mode", no_overflow},
        {"aten::divide_.Scalar_mode", no_overflow},
        {"aten::divide_.Tensor_mode", no_overflow},
        {"aten::embedding_backward", indices_of_weights},
        {"aten::embedding_dense_backward", indices_of_weights},
        {"aten::embedding_dense_backward.out", indices_of_weights},
        {"aten::fractional_max_pool2d_backward", indices_of_pooling<2, 4>},
        {"aten::fractional_max_pool2d_backward.grad_input", indices_of_pooling<2, 4>},
        {"aten::fractional_max_pool3d_backward", indices_of_pooling<3, 4>},
        {"aten::fractional_max_pool3d_backward.grad_input", indices_of_pooling<3, 4>},
        {"aten::gelu_backward", shapes_of_gelu},
        {"aten::gelu_backward.grad_input", shapes_of_gelu},
        {"aten::grid_sampler", grid_with_gradient},
        {"aten::grid_sampler_2d", grid_with_gradient},
        {"aten::grid_sampler_2d.out", grid_with_gradient},
        {"aten::grid_sampler_2d_backward", grid_with_gradient},
        {"aten::grid_sampler_2d_backward.out", grid_with_gradient},
        {"aten::linalg_eigvals", finite},
        {"aten::linalg_eigvals.out", finite},
        {"aten::linalg_matrix_power", absolute_power},
        {"aten::linalg_matrix_power.out", absolute_power},
        {"aten::matrix_power", absolute_power},
        {"aten::matrix_power.out", absolute_power},
        {"aten::max_pool2d_with_indices_backward", indices_of_pooling<2, 7>},
        {"aten::max_pool2d_with_indices_backward.grad_input", indices_of_pooling<2, 7>},
        {"aten::max_pool3d_with_indices_backward", indices_of_pooling<3, 7>},
        {"aten::max_pool3d_with_indices_backward.grad_input", indices_of_pooling<3, 7>},
        {"aten::median.dim", unrepeated},
        {"aten::median.dim_values", unrepeated},
        {"aten::nanmedian.dim", unrepeated},
        {"aten::nanmedian.dim_values", unrepeated},
        {"aten::native_batch_norm", statistics},
        {"aten::native_batch_norm.out", statistics},
        {"aten::native_batch_norm_backward", statistics_of_gradient},
        {"aten::native_batch_norm_backward.out", statistics_of_gradient},
        {"aten::native_group_norm", groups},
        {"aten::native_group_norm.out", groups},
        {"aten::nll_loss2d_backward", classes_of_targets},
        {"aten::nll_loss2d_backward.grad_input", classes_of_targets},
        {"aten::nll_loss_backward", classes_of_targets},
        {"aten::nll_loss_backward.grad_input", classes_of_targets},
        {"aten::range.out", whole_step_into},
        {"aten::range.step", whole_step},
        {"aten::resize", new_size},
        {"aten::resize.out", new_size},
        {"aten::resize_", new_size},
        {"aten::resize_as", size_of_another},
        {"aten::resize_as.out", size_of_another},
        {"aten::resize_as_", size_of_another},
        {"aten::segment_reduce", segments},
        {"aten::segment_reduce.out", segments},
        {"aten::smooth_l1_loss_backward", whole_beta},
        {"aten::smooth_l1_loss_backward.grad_input", whole_beta},
    };
    auto found = needs.find(op);
    return found == needs.end() ? nullptr : found->second;
}

void call_checked(const std::string &op, Stack &arguments) {
    needs_of(op)(arguments);
    const size_t dot = op.find('.');
    const std::string overload = dot == std::string::npos ? "" : op.substr(dot + 1);
    c10::Dispatcher::singleton().findSchemaOrThrow(op.substr(0, dot).c_str(), overload.c_str()).callBoxed(arguments);
}

}  // namespace tenfold
