// What each thread counts for itself, and the small blocks of memory that it keeps for its next tensors: a
// locked instruction costs a hundredth of an `add`, and aligned memory from the system a tenth.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenfold {

struct Counts {
    std::atomic<int64_t> tensors{0};  // handles that it made, less those that it freed
    std::atomic<int64_t> bytes{0};    // of tensors, alike; large numbers move on to the sum of all threads
    static constexpr int most_kept = 32;
    int kept_count = 0;
    void *kept[most_kept];
};

extern __thread Counts *counts __attribute__((tls_model("initial-exec")));
Counts *start_counts();  // of a thread that did not count before; NULL while it ends
inline Counts *own_counts() { return __builtin_expect(counts != nullptr, true) ? counts : start_counts(); }

// Only the thread itself writes its counts, so that a load and a store are enough.
inline void add_alone(std::atomic<int64_t> &count, int64_t change) {
    count.store(count.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
}

extern std::atomic<int64_t> settled_tensors, settled_bytes;  // of threads that ended, and what moved on

inline void count_tensors(int64_t change) {
    if (Counts *own = own_counts())
        add_alone(own->tensors, change);
    else
        settled_tensors.fetch_add(change, std::memory_order_relaxed);
}

// The bytes that all tensors hold now, as far as this thread knows: each other one may have a batch that is
// not in it.
constexpr int64_t batch = 64 << 10;
inline int64_t count_bytes(int64_t change) {
    Counts *own = own_counts();
    if (own == nullptr) return settled_bytes.fetch_add(change, std::memory_order_relaxed) + change;
    const int64_t mine = own->bytes.load(std::memory_order_relaxed) + change;
    if (mine < -batch || mine > batch) {
        own->bytes.store(0, std::memory_order_relaxed);
        return settled_bytes.fetch_add(mine, std::memory_order_relaxed) + mine;
    }
    own->bytes.store(mine, std::memory_order_relaxed);
    return settled_bytes.load(std::memory_order_relaxed) + mine;
}

int64_t live_tensors();
int64_t live_bytes();

}  // namespace tenfold
