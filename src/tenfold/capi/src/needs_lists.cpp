// The checks of nested tensors, of lists of tensors, and of optimizers' steps, which take several.
#include <optional>

#include <ATen/Tensor.h>

#include "internal.h"
#include "needs.h"
#include "needs_kinds.h"

namespace tenfold {

// ---- nested and named tensors ----------------------------------------------------------------------------

void nested_sizes(Stack &arguments) {
    const at::Tensor &sizes = arguments[0].toTensor();
    need(lies_in_memory(sizes) && sizes.dim() == 2 && sizes.size(0) > 0 &&
             sizes.scalar_type() == c10::kLong && sizes.is_contiguous(),
         "nested_size is a contiguous matrix of integers of 64 bits, with at least one row");
}

// Each row of the example has the sizes of a tensor that lies, padded, in the batch.
void padded_sizes(Stack &arguments) {
    const at::Tensor &padded = arguments[0].toTensor(), &example = arguments[1].toTensor();
    auto sizes = padded.sizes().vec();
    if (arguments[2].toBool()) {
        need(sizes.size() == 4, "padded has four dimensions where they are to be transposed");
        sizes = {sizes[0], sizes[2], sizes[1] * sizes[3]};
    }
    need(sizes.size() > 1 && sizes[0] > 0, "padded has a batch of tensors");
    const auto each = static_cast<int64_t>(sizes.size()) - 1;
    whole_numbers(example, {sizes[0], each},
                  "cpu_nested_shape_example has the sizes of each tensor in padded");
    const at::Tensor rows = example.contiguous();
    const int64_t *entries = rows.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < rows.numel(); i++)
        need(entries[i] >= 0 && entries[i] <= sizes[i % each + 1],
             "no size is negative, or larger than it is in padded");
}

void ellipsis(Stack &arguments) {
    const int64_t place = arguments[2].toInt(), names = static_cast<int64_t>(arguments[1].toListRef().size());
    need(place >= 0 && place <= names, "ellipsis_idx is a place in order");
}

// Where each row of a batch begins among the values, and last where they end, for each dimension that is
// ragged.
void jagged(Stack &arguments) {
    const auto offsets = arguments[1].toTensorVector();
    need(!offsets.empty(), "offsets has those of at least one dimension");
    need(!arguments[2].isIntList() || arguments[2].toIntVector().size() == offsets.size(),
         "max_lengths has one for each of offsets");
    for (const at::Tensor &each : offsets)
        need(each.dim() == 1 && each.size(0) > 0 && of_integers(each),
             "offsets are integers, of one dimension");
}

// ---- lists of tensors ------------------------------------------------------------------------------------

// Gradients are recorded for each tensor before anybody looks how many there are in the other lists.
void lists_of_one_length(Stack &arguments) {
    std::optional<size_t> count;
    for (const c10::IValue &each : arguments) {
        if (!each.isList()) continue;
        if (!count) count = each.toListRef().size();
        need(each.toListRef().size() == *count, "all lists have as many entries");
    }
}

// Of powers, of complex numbers where there are some.
void powers_of_lists(Stack &arguments) {
    lists_of_one_length(arguments);
    for (const at::Tensor &each : arguments[0].toTensorVector()) {
        Stack same{each, arguments[1], {}, {}, arguments[2]};
        complex_as_self(same);
    }
}

void copied_lists(Stack &arguments) {
    lists_of_one_length(arguments);
    for (size_t list = 0; list < 2; list++)
        for (const at::Tensor &each : arguments[list].toTensorVector())
            need(each.layout() == c10::kStrided, "self and src are tensors with strides");
}

// The lists of an optimizer's step, after that of the weights, have a tensor for each of them: SGD's are
// gradients and momenta, Adagrad's gradients, sums and steps, Adam's gradients, two averages, maxima and
// steps.
void fused_step(Stack &arguments) {
    const auto weights = arguments[0].toTensorVector();
    need(!weights.empty(), "there is at least one weight");
    size_t lists = 1;
    while (lists < arguments.size() && arguments[lists].isTensorList()) lists++;
    const bool momentum = lists != 3 || arguments[4].toDouble() != 0,
               maxima = lists != 6 || arguments[11].toBool();
    for (size_t list = 1; list < lists; list++) {
        const auto tensors = arguments[list].toTensorVector();
        const bool used = lists == 3 ? list != 2 || momentum : list != 4 || maxima;
        const bool steps = lists > 3 && list == lists - 1;
        need(tensors.size() == weights.size() || (tensors.empty() && !used),
             "there is a tensor for each weight");
        for (size_t i = 0; i < tensors.size(); i++)
            need(steps ? tensors[i].numel() == 1
                       : tensors[i].sizes() == weights[i].sizes() &&
                             tensors[i].strides() == weights[i].strides(),
                 "what belongs to a weight has its shape and its strides, and steps are one number each");
    }
    const c10::IValue &last = arguments.back();  // what is written, if anything is
    need(!last.isTensorList() || last.toListRef().size() == weights.size(),
         "out has a tensor for each weight");
    for (const at::Tensor &each : weights)
        need(each.layout() == c10::kStrided && each.is_non_overlapping_and_dense(),
             "each element of a weight has memory of its own");
}

}  // namespace tenfold
