// Tensors whose elements do not simply lie in memory. Whether the indices of a sparse one lie in it: of one
// that libtorch left unwritten, or whose indices were written by themselves, they may be any numbers.
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/Tensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_validate_sparse_coo_tensor_args.h>

#include "internal.h"

namespace tenfold {
namespace {

void check(bool fulfilled, const char *what) {
    if (!fulfilled) fail(TN_ERROR_ARGUMENT, what);
}

// Rows of entries, or columns, or either of blocks, for each batch. That a row's entries are in order, each
// once, is not asked for: kernels read no memory by it, and some leave them otherwise.
void check_compressed(const at::Tensor &sparse, const at::SparseCsrTensorImpl &parts) {
    const at::Tensor &starts = parts.compressed_indices(), &places = parts.plain_indices(),
                     &values = parts.values();
    const int64_t batches = starts.dim() - 1, dims = sparse.dim();
    const bool blocks = sparse.layout() == c10::kSparseBsr || sparse.layout() == c10::kSparseBsc;
    const bool by_columns = sparse.layout() == c10::kSparseCsc || sparse.layout() == c10::kSparseBsc;
    check(batches >= 0 && dims >= batches + 2 && places.dim() == batches + 1 &&
              values.dim() >= batches + (blocks ? 3 : 1),
          "the parts do not fit together");
    const auto of_batches = sparse.sizes().slice(0, batches);
    check(starts.sizes().slice(0, batches) == of_batches && places.sizes().slice(0, batches) == of_batches &&
              values.sizes().slice(0, batches) == of_batches && values.size(batches) == places.size(-1),
          "the parts have other batches, or other numbers of entries");
    int64_t counted[2];  // rows and columns, of blocks
    for (int64_t k = 0; k < 2; k++) {
        const int64_t block = blocks ? values.size(batches + 1 + k) : 1;
        check(block > 0 || sparse.size(batches + k) == 0, "a block has no elements");
        counted[k] = block > 0 ? sparse.size(batches + k) / block : 0;
    }
    check(starts.size(-1) == counted[by_columns] + 1, "there is another number of rows");
    if (starts.numel() > 0) {
        const at::Tensor next = starts.slice(-1, 1), start = starts.slice(-1, 0, -1);
        check(starts.select(-1, 0).eq(0).all().item<bool>() &&
                  starts.select(-1, -1).eq(places.size(-1)).all().item<bool>() &&
                  next.ge(start).all().item<bool>(),
              "its rows are not one after another");
    }
    if (places.numel() > 0) {
        const int64_t most = counted[!by_columns];
        check(places.ge(0).logical_and(places.lt(most)).all().item<bool>(), "an entry lies outside");
    }
}

void check_parts(const at::Tensor &sparse) {
    at::AutoDispatchBelowADInplaceOrView without_autograd;
    const c10::TensorImpl *impl = sparse.unsafeGetTensorImpl();
    if (sparse.layout() == c10::kSparse) {
        const auto &parts = static_cast<const at::SparseTensorImpl &>(*impl);
        at::_validate_sparse_coo_tensor_args(parts.indices(), parts.values(), sparse.sizes());
    } else {
        check_compressed(sparse, static_cast<const at::SparseCsrTensorImpl &>(*impl));
    }
}

[[noreturn]] void fail_indices(const char *argument, const std::string &reason) {
    fail(TN_ERROR_ARGUMENT, argument,
         " is a sparse tensor whose indices were not written, or lie outside of it: ", reason);
}

}  // namespace

void check_indices(const at::Tensor &sparse, const char *argument) {
    if (sparse.is_meta() || has_form(sparse, own_forms)) return;  // which have none
    try {
        check_parts(sparse);
    } catch (const Failure &failure) {
        fail_indices(argument, failure.message);
    } catch (const c10::Error &error) {
        fail_indices(argument, error.what_without_backtrace());
    }
}

const char *name_of_form(const at::Tensor &tensor) {
    return tensor.is_nested() ? "nested" : tensor.is_quantized() ? "quantized" : "in oneDNN's own form";
}

void check_form(const at::Tensor &tensor, const char *argument) {
    if (has_form(tensor, own_forms))
        fail(
            TN_ERROR_ARGUMENT, argument, " is ", name_of_form(tensor),
            ": call the operator by its name, as tn_call does, which knows whether it has a kernel for that");
    check_indices(tensor, argument);
}

}  // namespace tenfold
