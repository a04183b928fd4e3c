// Gradients: which tensors have them, and taking them.
#include "callbacks.h"

#include <utility>
#include <vector>

#include <ATen/Tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

using namespace tenfold;

namespace {

// What backward starts from: an undefined gradient stands for one.
std::vector<at::Tensor> starts(const tn_tensor *const *gradients, int64_t count, size_t roots) {
    if (gradients == nullptr && count == 0) return {};
    check_count(gradients, count, "gradients");
    if (static_cast<size_t>(count) != roots) {
        fail(TN_ERROR_ARGUMENT, "there are ", count, " gradients for ", roots, " tensors");
    }
    std::vector<at::Tensor> found;
    for (int64_t i = 0; i < count; ++i) {
        found.push_back(optional_tensor(gradients[i], "gradients").value_or(at::Tensor()));
    }
    return found;
}

}  // namespace

int tn_requires_grad(const tn_tensor *tensor) {
    return guarded("tn_requires_grad", -1,
                   [&] { return Asked(tensor, "tensor")->requires_grad() ? 1 : 0; });
}

tn_status tn_set_requires_grad(tn_tensor *tensor, bool requires_grad) {
    return guarded_status("tn_set_requires_grad", [&] {
        Borrowed leaf(tensor, "tensor");
        if (!requires_grad && !leaf->is_leaf()) {
            fail(TN_ERROR_ARGUMENT,
                 "only a leaf can stop requiring gradients: use tn_detach for this tensor");
        }
        leaf->set_requires_grad(requires_grad);
    });
}

int64_t tn_grad_fn_name(const tn_tensor *tensor, char *buffer, int64_t size) {
    return guarded("tn_grad_fn_name", int64_t{-1}, [&] {
        const auto &made_by = Asked(tensor, "tensor")->grad_fn();
        return write_text(made_by ? made_by->name() : std::string(), buffer, size);
    });
}

int64_t tn_grad_fn_next(const tn_tensor *tensor, const int64_t *path, int64_t path_count, char *buffer,
                        int64_t size) {
    return guarded("tn_grad_fn_next", int64_t{-1}, [&] {
        auto function = Asked(tensor, "tensor")->grad_fn();
        for (int64_t position : array(path, path_count, "path")) {
            auto next = function ? function->next_edges() : torch::autograd::edge_list();
            if (position < 0 || position >= static_cast<int64_t>(next.size()))
                fail(TN_ERROR_INDEX, "position ", position, " is out of range for ", next.size(),
                     " functions");
            function = next[position].function;
        }
        std::string names;
        if (function)
            for (const auto &edge : function->next_edges())
                names += (edge.function ? edge.function->name() : std::string()) + "\n";
        return write_text(names, buffer, size);
    });
}

int tn_is_leaf(const tn_tensor *tensor) {
    return guarded("tn_is_leaf", -1, [&] { return Asked(tensor, "tensor")->is_leaf() ? 1 : 0; });
}

tn_status tn_retain_grad(tn_tensor *tensor) {
    return guarded_status("tn_retain_grad", [&] { Borrowed(tensor, "tensor")->retain_grad(); });
}

namespace {

// The gradient that a leaf, or a tensor that retains it, collected. Others have none, and
// libtorch would warn.
at::Tensor collected(const at::Tensor &tensor) {
    return tensor.is_leaf() || tensor.retains_grad() ? tensor.grad() : at::Tensor();
}

}  // namespace

int tn_has_grad(const tn_tensor *tensor) {
    return guarded("tn_has_grad", -1,
                   [&] { return collected(Borrowed(tensor, "tensor")).defined() ? 1 : 0; });
}

tn_tensor *tn_grad(const tn_tensor *tensor) {
    return guarded("tn_grad", static_cast<tn_tensor *>(nullptr), [&] {
        at::Tensor gradient = collected(Borrowed(tensor, "tensor"));
        if (!gradient.defined()) fail(TN_ERROR_NOT_FOUND, "no gradient was collected for this tensor");
        return own(std::move(gradient));
    });
}

tn_status tn_set_grad(tn_tensor *tensor, const tn_tensor *gradient) {
    return guarded_status("tn_set_grad", [&] {
        Borrowed holder(tensor, "tensor");
        at::Tensor given = optional_tensor(gradient, "gradient").value_or(at::Tensor());
        if (given.defined() && (given.sizes() != holder->sizes() || given.device() != holder->device() ||
                                given.scalar_type() != holder->scalar_type())) {
            fail(TN_ERROR_ARGUMENT, "a gradient has the shape, dtype and device of its tensor");
        }
        if (given.is_same(*holder)) fail(TN_ERROR_ARGUMENT, "a tensor cannot be its own gradient");
        holder->mutable_grad() = std::move(given);
    });
}

tn_status tn_zero_grad(tn_tensor *tensor) {
    return guarded_status("tn_zero_grad", [&] {
        Borrowed holder(tensor, "tensor");
        at::Tensor gradient = collected(holder);
        if (!gradient.defined()) return;
        if (gradient.requires_grad()) {
            holder->mutable_grad() = at::zeros_like(gradient.detach());
        } else {
            gradient.zero_();
        }
    });
}

tn_status tn_backward(const tn_tensor *tensor) {
    return guarded_status("tn_backward", [&] {
        Borrowed root(tensor, "tensor");
        torch::autograd::backward({*root});
    });
}

tn_status tn_backward_with(const tn_tensor *tensor, const tn_tensor *gradient, bool retain_graph,
                           bool create_graph) {
    return guarded_status("tn_backward_with", [&] {
        Borrowed root(tensor, "tensor");
        std::vector<at::Tensor> given;
        if (gradient != nullptr) given.push_back(tenfold::tensor(gradient, "gradient"));
        torch::autograd::backward({*root}, given, retain_graph || create_graph, create_graph);
    });
}

tn_status tn_backward_all(const tn_tensor *const *tensors, int64_t tensors_count,
                          const tn_tensor *const *gradients, int64_t gradients_count, bool retain_graph,
                          bool create_graph) {
    return guarded_status("tn_backward_all", [&] {
        auto roots = tenfold::tensors(tensors, tensors_count, "tensors");
        auto given = starts(gradients, gradients_count, roots.size());
        torch::autograd::backward(roots, given, retain_graph || create_graph, create_graph);
    });
}

tn_status tn_gradients(const tn_tensor *const *outputs, int64_t outputs_count, const tn_tensor *const *inputs,
                       int64_t inputs_count, const tn_tensor *const *gradients, int64_t gradients_count,
                       bool retain_graph, bool create_graph, bool allow_unused, tn_tensor **out,
                       int64_t out_count) {
    return guarded_status("tn_gradients", [&] {
        check_count(out, out_count, "out");
        auto roots = tenfold::tensors(outputs, outputs_count, "outputs");
        auto leaves = tenfold::tensors(inputs, inputs_count, "inputs");
        if (out_count != inputs_count) {
            fail(TN_ERROR_ARGUMENT, "there is room for ", out_count, " gradients of ", inputs_count,
                 " inputs");
        }
        auto given = starts(gradients, gradients_count, roots.size());
        auto found = torch::autograd::grad(roots, leaves, given, retain_graph || create_graph, create_graph,
                                           allow_unused);
        own_each_defined(found, out);
    });
}
