// Tensors lent to callbacks and taken from them.
#include "callbacks.h"

namespace tenfold {
namespace {

void free_each(const std::vector<tn_tensor *> &handles) {
    for (tn_tensor *each : handles) tn_free(each);
}

std::vector<tn_tensor *> own_all(const std::vector<at::Tensor> &tensors) {
    std::vector<tn_tensor *> handles;
    handles.reserve(tensors.size());
    try {
        for (const at::Tensor &each : tensors) handles.push_back(each.defined() ? own(each) : nullptr);
    } catch (...) {
        free_each(handles);
        throw;
    }
    return handles;
}

}  // namespace

Lent::Lent(const std::vector<at::Tensor> &tensors) : handles_(own_all(tensors)) {}

Lent::~Lent() { free_each(handles_); }

Given::~Given() { free_each(handles_); }

std::vector<at::Tensor> Given::take(const std::string &who, bool all_needed) const {
    std::vector<at::Tensor> taken;
    taken.reserve(handles_.size());
    for (size_t i = 0; i < handles_.size(); ++i) {
        if (handles_[i] != nullptr) {
            taken.push_back(tensor(handles_[i], "outputs"));
        } else if (all_needed) {
            fail(TN_ERROR_CALLBACK, who, " left result ", i, " NULL");
        } else {
            taken.emplace_back();
        }
    }
    return taken;
}

void own_each_defined(const std::vector<at::Tensor> &tensors, tn_tensor **out) {
    const auto handles = own_all(tensors);
    for (size_t i = 0; i < handles.size(); ++i) out[i] = handles[i];
}

}  // namespace tenfold
