// What starting the library and freeing tensors take; see handles.cpp and memory.cpp.
#pragma once

#include "internal.h"

namespace tenfold {

void start_handles();
void start_memory();
void release_tensor(tn_tensor *handle);

}  // namespace tenfold
