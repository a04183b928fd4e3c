// The checks of shapes that kernels of gradients take for granted, and those of attention.
#include <ATen/ExpandUtils.h>
#include <ATen/Tensor.h>

#include "internal.h"
#include "needs.h"
#include "needs_kinds.h"

namespace tenfold {

void same_shapes(Stack &arguments) {
    need(arguments[0].toTensor().sizes() == arguments[1].toTensor().sizes(),
         "grad_output has the shape of the tensor after it");
}

// oneDNN's kernel takes both to have one shape; the others broadcast.
void shapes_of_gelu(Stack &arguments) {
    const at::Tensor &self = arguments[1].toTensor();
    const bool broadcasts =
        self.scalar_type() == c10::kDouble || self.numel() == 1 || arguments[2].toStringRef() != "none";
    if (self.is_cpu() && !broadcasts) same_shapes(arguments);
}

template <int64_t pooled>
void same_channels(Stack &arguments) {
    const at::Tensor &grad_output = arguments[0].toTensor(), &self = arguments[1].toTensor();
    const int64_t before = self.dim() - pooled;
    need(before > 0 && grad_output.dim() == self.dim(), "grad_output and self have a dimension of channels");
    need(grad_output.sizes().slice(0, before) == self.sizes().slice(0, before),
         "grad_output has the batch and the channels of self");
}

// What `unfold` gives: a window of so many entries, at every so many, as the last dimension. A number is one
// entry.
void unfolded(Stack &arguments) {
    auto sizes = arguments[1].toIntVector();
    const bool number = sizes.empty();
    if (number) sizes.push_back(1);
    const int64_t size = arguments[3].toInt(), step = arguments[4].toInt();
    const auto rank = static_cast<int64_t>(sizes.size());
    const int64_t dim = arguments[2].toInt() + (arguments[2].toInt() < 0 ? rank : 0);
    need(dim >= 0 && dim < rank, "dim is one of input_sizes");
    need(step > 0 && size >= 0 && size <= sizes[dim], "step is positive, and size lies in the dimension");
    sizes[dim] = (sizes[dim] - size) / step + 1;
    if (number) sizes.clear();
    sizes.push_back(size);
    need(arguments[0].toTensor().sizes() == c10::IntArrayRef(sizes),
         "grad_in has the shape of what was unfolded");
}

// Whole vectors are divided by beta, also where the quotient is not used.
void whole_beta(Stack &arguments) {
    const bool whole = of_integers(arguments[0].toTensor()) && of_integers(arguments[1].toTensor()) &&
                       of_integers(arguments[2].toTensor());
    need(!whole || arguments[4].toDouble() >= 1, "beta is at least 1 for tensors of integers");
}

template void same_channels<1>(Stack &);
template void same_channels<2>(Stack &);
template void same_channels<3>(Stack &);

// ---- attention
// -----------------------------------------------------------------------------------------------

static void attended(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                     const c10::IValue &mask) {
    need(query.dim() == 4 && key.dim() == 4, "query, key and value have four dimensions");
    need(key.sizes() == value.sizes(), "key and value have one shape");
    need(query.sizes().slice(0, 2) == key.sizes().slice(0, 2) && query.size(3) == key.size(3),
         "query and key have the same batches and heads, and heads of one size");
    need(!given(mask) || at::is_expandable_to(mask.toTensor().sizes(),
                                              {query.size(0), query.size(1), query.size(2), key.size(2)}),
         "attn_mask expands to batches, heads, queries and keys");
}

void attention(Stack &arguments) {
    attended(arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toTensor(), arguments[5]);
}

// The heads of queries are divided by those of keys and of values.
template <size_t place>
void grouped_heads(Stack &arguments) {
    if (!arguments[place].toBool()) return;
    for (size_t i = 1; i < 3; i++) {
        const at::Tensor &each = arguments[i].toTensor();
        need(each.dim() > 2 && each.size(-3) > 0, "key and value have heads where enable_gqa is true");
    }
}
template void grouped_heads<7>(Stack &);
template void grouped_heads<8>(Stack &);

void attention_backward(Stack &arguments) {
    const at::Tensor &query = arguments[1].toTensor();
    attended(query, arguments[2].toTensor(), arguments[3].toTensor(), arguments[8]);
    need(arguments[0].toTensor().sizes() == query.sizes() && arguments[4].toTensor().sizes() == query.sizes(),
         "grad_out and out have the shape of query");
    need(arguments[5].toTensor().sizes() == query.sizes().slice(0, 3),
         "logsumexp has a number for each query");
}

}  // namespace tenfold
