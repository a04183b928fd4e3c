// What calls leave of the tensors that they write.
#include "written.h"

#include <algorithm>
#include <exception>

#include <ATen/EmptyTensor.h>
#include <c10/core/ScalarType.h>

namespace tenfold {

void fail_immutable(const char *argument) {
    fail(TN_ERROR_ARGUMENT, argument, " is known to be zero and has no memory to write: use tn_clone first");
}

static bool exceeds_memory(const at::Tensor &tensor) {
    const auto sizes = tensor.sizes();  // and not numel, which is that of the old ones where the new overflow
    if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; })) return true;
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return false;
    try {
        return at::detail::computeStorageNbytes(sizes, tensor.strides(), tensor.itemsize(),
                                                static_cast<size_t>(tensor.storage_offset())) >
               tensor.storage().nbytes();
    } catch (...) {
        return true;  // more than a size can say
    }
}

void settle(const at::Tensor &tensor) noexcept {
    try {
        if (!tensor.defined() || tensor.is_nested() || !tensor.has_storage() || !exceeds_memory(tensor))
            return;
        auto *impl = tensor.unsafeGetTensorImpl();
        impl->set_storage_offset(0);
        impl->set_sizes_contiguous({0});
    } catch (...) {  // a kind of tensor that has no sizes, or keeps them: nothing was to be settled
    }
}

void write_into(const at::Tensor &wanted, const at::Tensor &put, const char *argument) {
    if (!put.defined()) fail(TN_ERROR_TORCH, "the operator left no tensor in ", argument);
    if (!c10::canCast(put.scalar_type(), wanted.scalar_type()))
        fail(TN_ERROR_TORCH, "the operator gives ", c10::toString(put.scalar_type()), ", which ", argument,
             " of type ", c10::toString(wanted.scalar_type()), " cannot hold");
    const bool shared = put.has_storage() && wanted.has_storage() && put.is_alias_of(wanted);
    const at::Tensor elements = shared ? put.clone() : put;
    if (wanted.sizes() != elements.sizes()) wanted.resize_(elements.sizes());
    wanted.copy_(elements);
}

Written::Written(const tn_tensor *handle, const char *argument)
    : Borrowed(handle, argument), counted_(Borrowed::operator*()) {
    if (counted_._is_zerotensor()) fail_immutable(argument);
}

Written::~Written() {
    if (std::uncaught_exceptions() > 0) settle(Borrowed::operator*());
}

void Written::finish(const char *argument) {
    if (!counted_.is_same(Borrowed::operator*())) write_into(Borrowed::operator*(), counted_, argument);
}

WrittenEach::~WrittenEach() {
    if (std::uncaught_exceptions() > 0)
        for (const at::Tensor &each : list_) settle(each);
}

WrittenOnStack::WrittenOnStack(const c10::FunctionSchema &schema, const torch::jit::Stack &arguments)
    : schema_(schema) {
    for (size_t i = 0; i < schema.arguments().size(); i++) {
        const c10::Argument &argument = schema.arguments()[i];
        if (argument.alias_info() == nullptr || !argument.alias_info()->isWrite()) continue;
        if (arguments[i].isTensorList())
            for (at::Tensor &each : arguments[i].toTensorVector()) tensors_.emplace_back(i, std::move(each));
        if (!arguments[i].isTensor()) continue;
        tensors_.emplace_back(i, arguments[i].toTensor());
        if (tensors_.back().second._is_zerotensor()) fail_immutable(argument.name().c_str());
    }
}

WrittenOnStack::~WrittenOnStack() {
    if (std::uncaught_exceptions() > 0)
        for (const auto &each : tensors_) settle(each.second);
}

void WrittenOnStack::finish(torch::jit::Stack &results) const {
    const auto &returns = schema_.returns();
    if (results.size() != returns.size()) return;
    for (const auto &[place, wanted] : tensors_) {
        const c10::Argument &argument = schema_.arguments()[place];
        for (size_t i = 0; i < returns.size(); i++) {
            const c10::AliasInfo *alias = returns[i].alias_info();
            const bool is_it = alias != nullptr && alias->beforeSets() == argument.alias_info()->beforeSets();
            if (!is_it || !results[i].isTensor() || results[i].toTensor().is_same(wanted)) continue;
            write_into(wanted, results[i].toTensor(), argument.name().c_str());
            results[i] = wanted;
        }
    }
}

}  // namespace tenfold
