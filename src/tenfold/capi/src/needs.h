// What some of libtorch's kernels take for granted, and crash without: checked before they are called, by name or typed.
#pragma once

#include <string>

#include <ATen/core/stack.h>

namespace tenfold {

using Needs = void (*)(const torch::jit::Stack &arguments);

// The check of an overload's arguments, such as "aten::native_group_norm"; NULL for most, which check for themselves.
Needs needs_of(const std::string &op);

}  // namespace tenfold
