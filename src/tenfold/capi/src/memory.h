// The library's own allocator of host memory: starting it, and keeping it from calling the host.
#pragma once

#include "internal.h"

namespace tenfold {

void start_memory();

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
