// What a tn_function is: a function that gradients flow through, called with tensors or with a stack.
#pragma once

#include <ATen/core/stack.h>
#include <torch/custom_class.h>

#include "internal.h"

namespace tenfold {

struct Callable : torch::CustomClassHolder {
    // Results for a caller that has room for so many.
    virtual std::vector<at::Tensor> call(const std::vector<at::Tensor> &inputs, int64_t room) = 0;
    virtual c10::IValue run(torch::jit::Stack arguments) = 0;
};

OPAQUE(tn_function, c10::intrusive_ptr<Callable>, function)

}  // namespace tenfold
