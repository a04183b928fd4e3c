// Scopes of a thread that nest: without gradients, for inference, on a stream. `tn_scope_end` closes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tenfold {

// Changes something for this thread when made, and puts it back when destroyed.
struct Guard {
    Guard() = default;
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;
    virtual ~Guard() = default;
};

// The number by which `tn_scope_end` knows it.
int64_t open_scope(std::unique_ptr<Guard> guard);

// While the host is called back: scopes that it opens end with the callback, and those around it are
// not its to end. What a scope puts back is what it found, so one that lived on would bring the
// inside of libtorch out.
class HostsTurn {
  public:
    HostsTurn();
    HostsTurn(const HostsTurn &) = delete;
    HostsTurn &operator=(const HostsTurn &) = delete;
    ~HostsTurn();

  private:
    size_t around_;
};

}  // namespace tenfold
