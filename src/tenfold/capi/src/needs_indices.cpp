// The checks of indices that kernels follow without looking: of embeddings, poolings, targets of losses,
// segments.
#include <ATen/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/isfinite.h>

#include "internal.h"
#include "needs.h"
#include "needs_kinds.h"

namespace tenfold {
namespace {

bool all_within(const at::Tensor &indices, int64_t limit) {
    if (!lies_in_memory(indices) || indices.numel() == 0 || !of_integers(indices))
        return true;  // the kernel refuses it, or has none
    auto [least, largest] = at::aminmax(indices);
    return least.item<int64_t>() >= 0 && largest.item<int64_t>() < limit;
}

// Lengths come as a list of numbers or as a tensor of them.
std::vector<int64_t> lengths_of(const c10::IValue &given) {
    if (!given.isTensor()) return given.toIntVector();
    const at::Tensor lengths = given.toTensor().to(c10::kCPU, c10::kLong).contiguous();
    return {lengths.const_data_ptr<int64_t>(), lengths.const_data_ptr<int64_t>() + lengths.numel()};
}

// Targets of one sequence after another, or a row for each that may have any number behind its length.
void labels(const at::Tensor &log_probs, const at::Tensor &given, const std::vector<int64_t> &lengths) {
    if (!lies_in_memory(given) || !of_integers(given) || log_probs.dim() == 0 || given.dim() > 2) return;
    const at::Tensor targets = given.to(c10::kLong).contiguous();
    const int64_t labels = log_probs.size(-1), *entries = targets.const_data_ptr<int64_t>();
    const int64_t rows = targets.dim() == 2 ? targets.size(0) : 0, row = rows > 0 ? targets.size(1) : 0;
    int64_t start = 0;
    for (size_t i = 0; i < lengths.size(); i++) {
        if (rows > 0) start = static_cast<int64_t>(i) * row;
        const int64_t most = rows == 0 ? targets.numel() - start : static_cast<int64_t>(i) < rows ? row : 0;
        need(lengths[i] >= 0 && lengths[i] <= most, "target_lengths are not negative, and lie in targets");
        for (int64_t k = start; k < start + lengths[i]; k++)
            need(entries[k] >= 0 && entries[k] < labels, "targets are labels of log_probs");
        start += lengths[i];
    }
}

// Each row of offsets, or of lengths, divides the data along axis, for itself where there are dimensions
// before it.
void divided(const at::Tensor &data, const c10::IValue &lengths, const c10::IValue &offsets, int64_t axis) {
    const int64_t dim = axis + (axis < 0 ? data.dim() : 0);
    if (dim < 0 || dim >= data.dim()) return;  // which the kernel refuses
    for (const c10::IValue *each : {&lengths, &offsets}) {
        if (!each->isTensor() || !each->toTensor().defined()) continue;
        const at::Tensor &rows = each->toTensor();
        need(rows.dim() == dim + 1 && rows.sizes().slice(0, dim) == data.sizes().slice(0, dim),
             "lengths and offsets have the dimensions of data before axis, and one more");
        need(each == &lengths || rows.size(dim) > 0, "offsets begin with that of the first segment");
        need(all_within(rows, data.size(dim) + 1),
             "lengths and offsets are not negative, and none is outside of data");
        if (!lies_in_memory(rows) || rows.numel() == 0) continue;
        if (each == &lengths)
            need(rows.sum(dim).le(data.size(dim)).all().item<bool>(),
                 "lengths add up to no more than data has");
        else need(rows.slice(dim, 1).ge(rows.slice(dim, 0, -1)).all().item<bool>(), "offsets do not fall");
    }
}

}  // namespace

// The kernel counts how often each index comes in an array of num_weights.
void indices_of_weights(Stack &arguments) {
    const bool counts = arguments[4].toBool();
    need(!counts || all_within(arguments[1].toTensor(), arguments[2].toInt()),
         "indices are less than num_weights");
}

// Bags begin with the first index, and each where the one before ends; the kernel looks at the first and the
// last.
void bags(Stack &arguments) {
    const at::Tensor &weight = arguments[0].toTensor(), &indices = arguments[1].toTensor();
    const at::Tensor &offsets = arguments[2].toTensor();
    need(weight.dim() == 2 && indices.dim() == 1 && offsets.dim() == 1,
         "weight is a matrix, and indices and offsets have one dimension");
    need(arguments[4].toInt() >= 0 && arguments[4].toInt() <= 2, "mode is 0, 1 or 2");
    need(!given(arguments[6]) || arguments[6].toTensor().sizes() == indices.sizes(),
         "per_sample_weights has the shape of indices");
    need(!arguments[7].toBool() || offsets.size(0) > 0,
         "offsets has the last one where it is to be included");
    need(all_within(indices, weight.size(0)), "indices are those of rows of weight");
    need(all_within(offsets, indices.size(0) + 1),
         "offsets are not negative, and none is outside of indices");
    if (lies_in_memory(offsets) && offsets.size(0) > 1)
        need(offsets.slice(0, 1).ge(offsets.slice(0, 0, -1)).all().item<bool>(), "offsets do not fall");
}

template <size_t pooled, size_t indices>
void indices_of_pooling(Stack &arguments) {
    const at::Tensor &grad_output = arguments[0].toTensor(), &self = arguments[1].toTensor(),
                     &given = arguments[indices].toTensor();
    const auto sizes = self.sizes();
    need(sizes.size() > pooled && grad_output.sizes() == given.sizes() && given.dim() == self.dim(),
         "indices have the shape of grad_output, and self as many dimensions");
    need(grad_output.sizes().slice(0, sizes.size() - pooled) == sizes.slice(0, sizes.size() - pooled),
         "grad_output has the batch and the channels of self");
    const auto places = c10::multiply_integers(sizes.slice(sizes.size() - pooled, pooled));
    need(all_within(given, places), "indices are those of what was pooled");
}
template void indices_of_pooling<2, 2>(Stack &);
template void indices_of_pooling<3, 2>(Stack &);
template void indices_of_pooling<2, 4>(Stack &);
template void indices_of_pooling<3, 4>(Stack &);
template void indices_of_pooling<2, 7>(Stack &);
template void indices_of_pooling<3, 7>(Stack &);

void classes_of_targets(Stack &arguments) {
    const at::Tensor &self = arguments[1].toTensor(), &target = arguments[2].toTensor();
    if (!lies_in_memory(target) || !of_integers(target) || self.dim() == 0) return;
    const int64_t classes = self.dim() == 1 ? self.size(0) : self.size(1), ignored = arguments[5].toInt();
    const at::Tensor outside = target.lt(0).logical_or(target.ge(classes)).logical_and(target.ne(ignored));
    need(!outside.any().item<bool>(), "target has classes of self, or ignore_index");
}

void labels_of_targets(Stack &arguments) {
    labels(arguments[0].toTensor(), arguments[1].toTensor(), lengths_of(arguments[3]));
}

void labels_backward(Stack &arguments) {
    const at::Tensor &log_probs = arguments[1].toTensor(), &log_alpha = arguments[6].toTensor();
    const auto lengths = lengths_of(arguments[4]), times = lengths_of(arguments[3]);
    need(log_probs.dim() == 3 && log_alpha.dim() == 3, "log_probs and log_alpha have three dimensions");
    need(arguments[2].toTensor().dim() == 1 || arguments[2].toTensor().dim() == 2,
         "targets have one dimension or two");
    need(arguments[7].toInt() >= 0 && arguments[7].toInt() < log_probs.size(2),
         "blank is a label of log_probs");
    const int64_t batch = log_probs.size(1);
    need(log_alpha.size(0) == batch && arguments[0].toTensor().numel() == batch &&
             arguments[5].toTensor().numel() == batch && lengths.size() == static_cast<size_t>(batch) &&
             times.size() == static_cast<size_t>(batch),
         "grad, lengths, neg_log_likelihood and log_alpha have an entry for each sequence");
    for (int64_t i = 0; i < batch; i++)
        need(lengths[i] >= 0 && lengths[i] < (log_alpha.size(2) + 1) / 2 && times[i] >= 0 &&
                 times[i] <= log_alpha.size(1) && times[i] <= log_probs.size(0),
             "lengths are those that log_alpha was computed for");
    labels(log_probs, arguments[2].toTensor(), lengths);
}

// Forward NaNs and infinities are fine; it is the gradient that follows them, whoever asks for it.
void grid_with_gradient(Stack &arguments) {
    const bool backward = arguments[2].isTensor();  // of (grad_output, input, grid, ...)
    const at::Tensor &input = arguments[backward ? 1 : 0].toTensor(),
                     &grid = arguments[backward ? 2 : 1].toTensor();
    const bool recorded = at::GradMode::is_enabled() && (input.requires_grad() || grid.requires_grad());
    const bool padded_by_zeros = arguments[backward ? 4 : 3].toInt() == 0;
    if (!(backward || recorded) || padded_by_zeros || !lies_in_memory(grid) || !grid.is_floating_point())
        return;
    need(at::isfinite(grid).all().item<bool>(),
         "grid has no infinities and no NaNs where a gradient is taken and padding_mode is not zeros");
}

void grid_backward(Stack &arguments) {
    const auto grad_output = arguments[0].toTensor().sizes(), input = arguments[1].toTensor().sizes();
    const auto grid = arguments[2].toTensor().sizes();
    const size_t rank = input.size();
    need(rank > 2 && grad_output.size() == rank && grid.size() == rank,
         "grad_output, input and grid have as many dimensions");
    need(grad_output.slice(0, 2) == input.slice(0, 2) && grid[0] == input[0] &&
             grad_output.slice(2) == grid.slice(1, rank - 2),
         "grad_output has the batch and the channels of input, and the places of grid");
    grid_with_gradient(arguments);
}

// Where each row of a compressed matrix begins among its columns, and last where they end.
void compressed_rows(Stack &arguments) {
    const at::Tensor &rows = arguments[0].toTensor(), &columns = arguments[1].toTensor();
    const int64_t rank = rows.dim();
    need(rank > 0 && columns.dim() == rank && rows.size(-1) > 0 &&
             rows.sizes().slice(0, rank - 1) == columns.sizes().slice(0, rank - 1),
         "crow_indices and col_indices are of the same batches");
    if (!lies_in_memory(rows) || !of_integers(rows)) return;
    const bool begin = rows.select(-1, 0).eq(0).all().item<bool>(),
               end = rows.select(-1, -1).eq(columns.size(-1)).all().item<bool>();
    need(begin && end && rows.slice(-1, 1).ge(rows.slice(-1, 0, -1)).all().item<bool>(),
         "crow_indices begin with 0, do not fall, and end with the number of col_indices");
}

// LAPACK follows the pivots of a factorization, which are counted from one; those of blocks are negative.
template <size_t factors, size_t pivots>
void pivots_of_rows(Stack &arguments) {
    const at::Tensor &matrix = arguments[factors].toTensor(), &rows = arguments[pivots].toTensor();
    if (matrix.dim() < 2 || !lies_in_memory(rows) || rows.scalar_type() != c10::kInt) return;
    const at::Tensor places = rows.abs().sub(1);
    need(all_within(places, matrix.size(-2)), "pivots are those of rows, counted from one");
}
template void pivots_of_rows<0, 1>(Stack &);
template void pivots_of_rows<1, 2>(Stack &);

void rows_to_compress(Stack &arguments) {
    need(arguments[1].toInt() >= 0 && all_within(arguments[0].toTensor(), arguments[1].toInt()),
         "self has rows of a matrix of size");
}

// Lengths or offsets are looked at unless it is said that this is not needed.
void segments(Stack &arguments) {
    divided(arguments[0].toTensor(), arguments[2], arguments[4], arguments[5].toInt());
    arguments[6] = false;
}

void segments_backward(Stack &arguments) {
    const at::Tensor &grad = arguments[0].toTensor(), &output = arguments[1].toTensor(),
                     &data = arguments[2].toTensor();
    const int64_t axis = arguments[6].toInt(), dim = axis + (axis < 0 ? data.dim() : 0);
    divided(data, arguments[4], arguments[5], axis);
    need(dim >= 0 && dim < data.dim() && grad.sizes() == output.sizes(),
         "grad has the shape of output, and axis is one of data's");
    auto sizes = data.sizes().vec();
    if (arguments[4].isTensor()) sizes[dim] = arguments[4].toTensor().size(dim);
    else if (arguments[5].isTensor()) sizes[dim] = arguments[5].toTensor().size(dim) - 1;
    need(output.sizes() == c10::IntArrayRef(sizes),
         "output has the shape of data, with an entry for each segment along axis");
}

}  // namespace tenfold
