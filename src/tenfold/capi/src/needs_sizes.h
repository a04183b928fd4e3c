// The needs of operators that give a tensor other sizes, or see its memory by others.
#pragma once

#include <ATen/core/stack.h>

namespace tenfold {

void within_storage(torch::jit::Stack &arguments);   // views of what lies there
void new_size(torch::jit::Stack &arguments);         // self, and what is written, take a size
void size_of_another(torch::jit::Stack &arguments);  // or that of a tensor

}  // namespace tenfold
