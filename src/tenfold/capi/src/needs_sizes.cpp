// The checks of sizes that a tensor is given: none is negative, and what lies in memory goes on to fit.
#include <algorithm>
#include <set>

#include <ATen/EmptyTensor.h>
#include <ATen/Tensor.h>
#include <ATen/ops/zeros.h>

#include "internal.h"
#include "needs.h"
#include "needs_kinds.h"

namespace tenfold {
namespace {

bool is_compressed(const at::Tensor &tensor) {
    const c10::Layout layout = tensor.layout();
    return layout == c10::kSparseCsr || layout == c10::kSparseCsc || layout == c10::kSparseBsr ||
           layout == c10::kSparseBsc;
}

// libtorch gives a compressed tensor indices for other batches, and leaves them unwritten.
void keeps_batches(const at::Tensor &tensor, c10::IntArrayRef sizes) {
    if (!tensor.defined() || !is_compressed(tensor)) return;
    const int64_t rank = static_cast<int64_t>(sizes.size()), batches = tensor.dim() - 2 - tensor.dense_dim();
    need(rank == tensor.dim() && tensor.sizes().slice(0, batches) == sizes.slice(0, batches),
         "a compressed sparse tensor keeps its dimensions and its batches");
}

void resized(const Stack &arguments, c10::IntArrayRef sizes) {
    need(std::none_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; }),
         "size is not negative");
    for (const c10::IValue &each : arguments)
        if (each.isTensor()) keeps_batches(each.toTensor(), sizes);
}

}  // namespace

at::Tensor resolved(const at::Tensor &tensor) {
    if (tensor._is_zerotensor()) return at::zeros(tensor.sizes(), tensor.options());
    return tensor.resolve_conj().resolve_neg();
}

void within_storage(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor();
    const auto sizes = arguments[1].toIntVector(), strides = arguments[2].toIntVector();
    need(self.has_storage() && sizes.size() == strides.size(),
         "self has memory, and size and stride are of one length");
    for (size_t i = 0; i < sizes.size(); i++)
        need(sizes[i] >= 0 && strides[i] >= 0, "size and stride are not negative");
    need(at::detail::computeStorageNbytes(sizes, strides, self.itemsize(), self.storage_offset()) <=
             self.storage().nbytes(),
         "what size and stride reach lies in the memory of self");
}

// A copy is made of what is yet to be conjugated, negated or filled with zeros as it then is, and has no more
// memory.
void within_storage_copied(Stack &arguments) {
    arguments[0] = resolved(arguments[0].toTensor());
    within_storage(arguments);
}

void new_size(Stack &arguments) { resized(arguments, arguments[1].toIntVector()); }

void size_of_another(Stack &arguments) { resized(arguments, arguments[1].toTensor().sizes()); }

void source_with_memory(Stack &arguments) {
    need(!arguments[1].toTensor()._is_zerotensor(), "source has memory, and is no mere zero");
}

void batch_dims(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor(), &other = arguments[1].toTensor();
    need(arguments[2].toInt() >= 0 && arguments[2].toInt() <= self.dim(),
         "self_num_batch_dims is not negative, and no more than self has");
    need(other.layout() == c10::kStrided && other.has_storage(), "other has memory, and strides");
}

void no_lazy_copy(Stack &) {
    fail(TN_ERROR_ARGUMENT, "libtorch's copies on writing lose count of who has them: use aten::clone");
}

void no_vmap(Stack &) { fail(TN_ERROR_ARGUMENT, "it is a part of vmap, and means nothing outside of it"); }

void strided(Stack &arguments) {
    for (size_t i = 0; i < 2; i++)
        need(given(arguments[i]) && arguments[i].toTensor().layout() == c10::kStrided,
             "self and src are tensors with strides");
}

void compressed_dims(Stack &arguments) {
    const int64_t dense = arguments[1].toInt();
    const auto sizes = static_cast<int64_t>(arguments[2].toIntVector().size());
    const size_t blocks = arguments[3].toIntVector().size();
    need(arguments[0].toInt() >= 0 && dense >= 0 && dense <= sizes - 2,
         "nnz and dense_dim are not negative, and size has two more dimensions than are dense");
    need(blocks == 0 || blocks == 2, "blocksize has two entries, or none");
}

void some_batches(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor();
    need(!is_compressed(self) || self.numel() > 0, "a compressed sparse tensor has elements");
}

void all_strided(Stack &arguments) {
    for (const c10::IValue &each : arguments)
        need(!given(each) || each.toTensor().layout() == c10::kStrided, "all tensors have strides");
}

// Kernels for a device that some tensors are on follow the pointers of all.
void one_device(Stack &arguments) {
    const auto on_cuda = [](const c10::IValue &each) { return given(each) && each.toTensor().is_cuda(); };
    const auto elsewhere = [](const c10::IValue &each) { return given(each) && !each.toTensor().is_cuda(); };
    need(std::none_of(arguments.begin(), arguments.end(), on_cuda) ||
             std::none_of(arguments.begin(), arguments.end(), elsewhere),
         "all tensors are on one device");
}

void rows_on_one_device(Stack &arguments) {
    one_device(arguments);
    const at::Tensor &input = arguments[0].toTensor();
    need(!input.is_cuda() || (input.dim() > 0 && arguments[1].toTensor().dim() == 2),
         "input has rows, and weight is a matrix");
}

// The operator calls the processor's kernel, wherever out is.
void out_in_memory(Stack &arguments) {
    need(lies_in_memory(arguments.back().toTensor()), "out lies in memory, and has strides");
}

void shape_in_memory(Stack &arguments) {
    const at::Tensor &shape = arguments[1].toTensor();
    need(!shape.is_cuda() && (shape.is_cpu() || shape.scalar_type() != c10::kLong), "shape lies in memory");
}

// The kernel for sparse matrices takes what it is to write for large enough.
void rows_to_write(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor(), &out = arguments[2].toTensor();
    if (arguments[1].toTensor().dim() != 1) return;  // matrices get their size
    const bool fits = self.dim() == 2 && out.sizes() == self.sizes().slice(0, 1);
    need(self.layout() == c10::kStrided || fits, "out has an entry for each row of a sparse self");
}

void dtype_of_self(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor(), &out = arguments.back().toTensor();
    need(self.scalar_type() == out.scalar_type(), "out has the dtype of self");
}

// The kernel takes the elements along dim to lie one after another: where one is repeated it gets a copy.
void unrepeated(Stack &arguments) {
    arguments[0] = resolved(arguments[0].toTensor());  // zeros are one zero, repeated
    const at::Tensor &self = arguments[0].toTensor();
    const int64_t dim = arguments[1].toInt() + (arguments[1].toInt() < 0 ? self.dim() : 0);
    if (lies_in_memory(self) && dim >= 0 && dim < self.dim() && self.stride(dim) == 0)
        arguments[0] = self.clone(at::MemoryFormat::Contiguous);
}

void some_tensors(Stack &arguments) {
    need(arguments[0].toListRef().size() > 0, "at least one tensor is needed");
}

void chunked_dim(Stack &arguments) {
    some_tensors(arguments);
    for (const at::Tensor &each : arguments[0].toTensorVector())
        need(arguments[1].toInt() >= 0 && arguments[1].toInt() < each.dim(),
             "dim is a dimension of each tensor, and not negative");
}

// A scale that is given is followed, whatever the sizes are: also to where the input has nothing. Most
// kernels then take what is nearest, if a number says where that is; those that look at some entries on each
// side take the first of them.
template <int sides>
void scales_of_sizes(Stack &arguments) {
    const auto output = arguments[1].toIntVector();
    const bool backward = arguments[2].isIntList();
    const auto sizes = backward ? arguments[2].toIntVector() : arguments[0].toTensor().sizes().vec();
    if (sizes.size() != output.size() + 2) return;  // which the kernel refuses
    size_t dim = 0;
    for (size_t i = 2; i < arguments.size() && dim < output.size(); i++) {
        if (arguments[i].isBool() && arguments[i].toBool())
            return;  // corners are aligned, and scales not looked at
        if (!arguments[i].isDouble() && !arguments[i].isNone()) continue;
        const double scale = arguments[i].isDouble() ? arguments[i].toDouble() : 0;
        const double last = (static_cast<double>(output[dim]) - 0.5) / scale;  // in the input
        const double first = last - sides * std::max(1 / scale, 1.0) + 0.5;
        const double limit = sides > 0 ? static_cast<double>(sizes[dim + 2]) : 1e9;
        need(!(scale > 0) || first < limit, "scales lead from the input to all of output_size");
        dim++;
    }
}
template void scales_of_sizes<0>(Stack &);
template void scales_of_sizes<1>(Stack &);
template void scales_of_sizes<2>(Stack &);
template void scales_of_sizes<3>(Stack &);

// ---- Fourier transforms
// --------------------------------------------------------------------------------------

void transformed_dims(Stack &arguments) {
    const int64_t rank = arguments[0].toTensor().dim();
    std::set<int64_t> dims;
    for (int64_t dim : arguments[1].toIntVector()) {
        if (dim < 0 || dim >= rank)
            fail(TN_ERROR_INDEX, "dim ", dim, " is out of range for ", rank, " dimensions");
        need(dims.insert(dim).second, "dim names each dimension once");
    }
}

void some_dims(Stack &arguments) {
    transformed_dims(arguments);
    need(!arguments[1].toIntVector().empty(), "at least one dim is needed");
}

void half_of_last_dim(Stack &arguments) {
    some_dims(arguments);
    const int64_t half = arguments[0].toTensor().size(arguments[1].toIntVector().back()),
                  last = arguments[3].toInt();
    need(last > 0 && last / 2 + 1 <= half, "last_dim_size is positive, and half of it lies in self");
}

}  // namespace tenfold
