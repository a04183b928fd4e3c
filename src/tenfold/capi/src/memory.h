// What starting the library, freeing tensors, and copying and printing their elements take; see
// handles.cpp, memory.cpp, tensors.cpp.
#pragma once

#include <iosfwd>

#include "internal.h"

namespace tenfold {

void start_handles();
void start_memory();
void release_tensor(tn_tensor *handle);
at::Tensor packed(const at::Tensor &tensor);  // its elements on the host, in row-major order
void print(std::ostream &stream, const at::Tensor &tensor);

// While a lock is held that a callback may want: what is allocated meanwhile does not call the host.
class Undisturbed {
  public:
    Undisturbed();
    Undisturbed(const Undisturbed &) = delete;
    Undisturbed &operator=(const Undisturbed &) = delete;
    ~Undisturbed();

  private:
    bool before_;
};

}  // namespace tenfold
