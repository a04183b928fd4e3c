// The checks of operators whose kernels divide by an argument, or read what is not there, without looking: most are
// parts of others that look first. The names in the table are read by `arguments.py` too.
#include "needs.h"

#include <unordered_map>

#include <ATen/Tensor.h>
#include <ATen/ops/isfinite.h>

#include "internal.h"

namespace tenfold {
namespace {

using torch::jit::Stack;

void need(bool fulfilled, const char *what) {
    if (!fulfilled) fail(TN_ERROR_ARGUMENT, what);
}

bool given(const c10::IValue &value) { return value.isTensor() && value.toTensor().defined(); }

void dims_in_range(const Stack &arguments) {
    const int64_t rank = arguments[0].toTensor().dim();
    for (int64_t dim : arguments[1].toIntVector()) {
        if (dim < -rank || dim >= rank) fail(TN_ERROR_INDEX, "dim ", dim, " is out of range for ", rank, " dimensions");
    }
}

void groups(const Stack &arguments) {
    need(arguments[6].toInt() > 0, "group is a positive number");
    for (size_t i = 3; i < 6; i++) need(arguments[i].toInt() >= 0, "N, C and HxW are not negative");
}

// What a batch norm's kernel would get as far as reading; others it refuses in its own words.
bool is_normed(const at::Tensor &input) { return input.dim() > 1 && input.is_floating_point(); }

// Weight, bias, running_mean and running_var: one number for each channel, or none of them.
void of_channels(const Stack &arguments, size_t first, size_t last) {
    const int64_t channels = arguments[0].toTensor().size(1);
    for (size_t i = first; i < last; i++)
        need(!given(arguments[i]) || arguments[i].toTensor().numel() == channels,
             "weight, bias, running_mean and running_var have a number for each channel");
}

void statistics(const Stack &arguments) {
    if (!is_normed(arguments[0].toTensor())) return;
    of_channels(arguments, 1, 5);
    need(arguments[5].toBool() || (given(arguments[3]) && given(arguments[4])),
         "running_mean and running_var are needed where training is false");
}

void no_statistics(const Stack &arguments) {
    if (!is_normed(arguments[0].toTensor())) return;
    of_channels(arguments, 1, 3);
    need(arguments[3].toBool(), "training is true where there is no running_mean");
}

void running_statistics(const Stack &arguments) {
    if (!is_normed(arguments[0].toTensor())) return;
    of_channels(arguments, 1, 3);
}

void whole_step(const Stack &arguments) {
    if (!arguments[3].isInt()) return;
    const bool whole = c10::isIntegralType(static_cast<c10::ScalarType>(arguments[3].toInt()), true);
    need(!whole || arguments[2].toScalar().toDouble() >= 1 || arguments[2].toScalar().toDouble() <= -1,
         "step is no whole number but 0, which the numbers of this dtype never get on by");
}

void whole_step_into(const Stack &arguments) {
    const auto type = static_cast<int64_t>(arguments[3].toTensor().scalar_type());
    whole_step({arguments[0], arguments[1], arguments[2], type});
}

void strided(const Stack &arguments) {
    for (size_t i = 0; i < 2; i++)
        need(given(arguments[i]) && arguments[i].toTensor().layout() == c10::kStrided, "self and src are tensors with strides");
}

void some_tensors(const Stack &arguments) { need(arguments[0].toListRef().size() > 0, "at least one tensor is needed"); }

// LAPACK's balancing writes outside of its memory for others.
void finite(const Stack &arguments) {
    const at::Tensor &given = arguments[0].toTensor();
    if (!given.is_cpu() || given.layout() != c10::kStrided) return;
    need(at::isfinite(given).all().item<bool>(), "self has no infinities and no NaNs");
}

void norms(const Stack &arguments) {
    const at::Tensor &weight = arguments[0].toTensor(), &norm = arguments[1].toTensor();
    const int64_t dim = arguments[2].toInt();
    need(dim >= 0 && dim < weight.dim(), "dim is one of v's dimensions");
    need(weight.numel() > 0 && norm.numel() >= weight.size(dim), "g has a number for each entry of v along dim");
}

}  // namespace

Needs needs_of(const std::string &op) {
    static const std::unordered_map<std::string, Needs> needs = {
        {"aten::_fft_c2c", dims_in_range},
        {"aten::_fft_c2c.out", dims_in_range},
        {"aten::_fft_c2r", dims_in_range},
        {"aten::_fft_c2r.out", dims_in_range},
        {"aten::_fft_r2c", dims_in_range},
        {"aten::_fft_r2c.out", dims_in_range},
        {"aten::_native_batch_norm_legit.no_stats", no_statistics},
        {"aten::_linalg_eigvals", finite},
        {"aten::_native_batch_norm_legit", statistics},
        {"aten::_native_batch_norm_legit.out", statistics},
        {"aten::_stack", some_tensors},
        {"aten::_stack.out", some_tensors},
        {"aten::_weight_norm_interface", norms},
        {"aten::_weight_norm_interface.out", norms},
        {"aten::batch_norm_update_stats", running_statistics},
        {"aten::batch_norm_update_stats.out", running_statistics},
        {"aten::concat.out", some_tensors},
        {"aten::concatenate.out", some_tensors},
        {"aten::copy", strided},
        {"aten::copy.out", strided},
        {"aten::linalg_eigvals", finite},
        {"aten::linalg_eigvals.out", finite},
        {"aten::native_batch_norm", statistics},
        {"aten::native_batch_norm.out", statistics},
        {"aten::native_group_norm", groups},
        {"aten::native_group_norm.out", groups},
        {"aten::range.step", whole_step},
        {"aten::range.out", whole_step_into},
    };
    auto found = needs.find(op);
    return found == needs.end() ? nullptr : found->second;
}

}  // namespace tenfold
