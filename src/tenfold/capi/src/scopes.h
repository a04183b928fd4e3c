// Scopes of a thread that nest: without gradients, for inference, on a stream. `tn_scope_end` closes them.
#pragma once

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

}  // namespace tenfold
