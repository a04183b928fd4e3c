// The checks of sizes that a tensor is given: none is negative, and what lies in memory goes on to fit.
#include "needs_sizes.h"

#include <algorithm>

#include <ATen/EmptyTensor.h>
#include <ATen/Tensor.h>

#include "internal.h"
#include "needs.h"

namespace tenfold {
namespace {

using torch::jit::Stack;

bool is_compressed(const at::Tensor &tensor) {
    const c10::Layout layout = tensor.layout();
    return layout == c10::kSparseCsr || layout == c10::kSparseCsc || layout == c10::kSparseBsr || layout == c10::kSparseBsc;
}

// libtorch gives a compressed tensor indices for other batches, and leaves them unwritten.
void keeps_batches(const at::Tensor &tensor, c10::IntArrayRef sizes) {
    if (!tensor.defined() || !is_compressed(tensor)) return;
    const int64_t rank = static_cast<int64_t>(sizes.size()), batches = tensor.dim() - 2 - tensor.dense_dim();
    need(rank == tensor.dim() && tensor.sizes().slice(0, batches) == sizes.slice(0, batches),
         "a compressed sparse tensor keeps its dimensions and its batches");
}

void resized(const Stack &arguments, c10::IntArrayRef sizes) {
    need(std::none_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; }), "size is not negative");
    for (const c10::IValue &each : arguments)
        if (each.isTensor()) keeps_batches(each.toTensor(), sizes);
}

}  // namespace

void within_storage(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor();
    const auto sizes = arguments[1].toIntVector(), strides = arguments[2].toIntVector();
    need(self.has_storage() && sizes.size() == strides.size(), "self has memory, and size and stride are of one length");
    for (size_t i = 0; i < sizes.size(); i++) need(sizes[i] >= 0 && strides[i] >= 0, "size and stride are not negative");
    need(at::detail::computeStorageNbytes(sizes, strides, self.itemsize(), self.storage_offset()) <= self.storage().nbytes(),
         "what size and stride reach lies in the memory of self");
}

void new_size(Stack &arguments) { resized(arguments, arguments[1].toIntVector()); }

void size_of_another(Stack &arguments) { resized(arguments, arguments[1].toTensor().sizes()); }

}  // namespace tenfold
