// What starting the library, freeing tensors and copying their elements out take; see
// handles.cpp, memory.cpp, tensors.cpp.
#pragma once

#include "internal.h"

namespace tenfold {

void start_handles();
void start_memory();
void release_tensor(tn_tensor *handle);
at::Tensor packed(const at::Tensor &tensor);  // its elements on the host, in row-major order

}  // namespace tenfold
