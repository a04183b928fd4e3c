// What some of libtorch's kernels take for granted, and crash without: checked before they are called, by
// name or typed.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

namespace tenfold {

using Needs = void (*)(torch::jit::Stack &arguments);

// The check of an overload's arguments, such as "aten::native_group_norm"; NULL for most, which check for
// themselves. It fails, or gives an argument that is right but not as the kernel takes it for one that is.
Needs needs_of(const std::string &op);

// Check the arguments of an overload that has needs, and call it; its results replace them.
void call_checked(const std::string &op, torch::jit::Stack &arguments);

// What checks are made of.
void need(bool fulfilled, const char *what);
bool given(const c10::IValue &value);  // a tensor that is there
bool of_integers(const at::Tensor &tensor);
bool lies_in_memory(
    const at::Tensor &tensor);  // the processor's, with strides: what kernels follow pointers into

}  // namespace tenfold
