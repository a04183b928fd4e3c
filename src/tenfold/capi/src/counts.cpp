// The counts of all threads together.
#include "counts.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include <c10/core/impl/alloc_cpu.h>

namespace tenfold {

__thread Counts *counts = nullptr;
std::atomic<int64_t> settled_tensors{0}, settled_bytes{0};

namespace {

struct Threads {
    std::mutex mutex;
    std::vector<const Counts *> counts;
};

Threads &threads() {
    static auto *all = new Threads;  // outlives every thread that may still count
    return *all;
}

// A thread's own counts, which join the others' when the thread ends.
struct OwnCounts {
    Counts own;
    bool over = false;
    OwnCounts() {
        std::lock_guard<std::mutex> lock(threads().mutex);
        threads().counts.push_back(&own);
    }
    ~OwnCounts() {
        counts = nullptr;
        over = true;
        while (own.kept_count > 0) c10::free_cpu(own.kept[--own.kept_count]);
        std::lock_guard<std::mutex> lock(threads().mutex);
        auto &all = threads().counts;
        all.erase(std::find(all.begin(), all.end(), &own));
        settled_tensors += own.tensors.load(std::memory_order_relaxed);
        settled_bytes += own.bytes.load(std::memory_order_relaxed);
    }
};

int64_t sum(const std::atomic<int64_t> &settled, std::atomic<int64_t> Counts::*of) {
    std::lock_guard<std::mutex> lock(threads().mutex);
    int64_t total = settled.load(std::memory_order_relaxed);
    for (const Counts *each : threads().counts) total += (each->*of).load(std::memory_order_relaxed);
    return total;
}

}  // namespace

Counts *start_counts() try {
    static thread_local OwnCounts own;
    if (own.over) return nullptr;
    return counts = &own.own;
} catch (const std::bad_alloc &) {
    return nullptr;  // memory may just be being freed, which must not fail: the sum of all counts it
}

int64_t live_tensors() { return sum(settled_tensors, &Counts::tensors); }
int64_t live_bytes() { return sum(settled_bytes, &Counts::bytes); }

}  // namespace tenfold
