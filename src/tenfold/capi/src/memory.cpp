// Host memory: an allocator of our own that counts it, asks the host for some when it runs out or grows past
// a mark, and fails on demand.
#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include "internal.h"
#include "memory.h"
#include "scopes.h"

namespace tenfold {

namespace {

std::atomic<int64_t> peak_bytes{0}, allocations{0}, failing{0};
// Whether anyone wants allocations counted: each would cost a locked instruction.
std::atomic<bool> watched{false};

struct Pressure {
    std::mutex mutex;
    int64_t bytes = 0;
    tn_pressure_fn fn = nullptr;
    void *user = nullptr;
};
Pressure pressure;
constexpr int64_t never = std::numeric_limits<int64_t>::max();
std::atomic<int64_t> mark{never};   // call the host when live bytes are above
std::atomic<int64_t> lowest{never};  // where the mark returns to once they fell below
thread_local bool in_callback = false;  // what the callback itself allocates does not call it again

// Whether random numbers are being drawn just now. Kernels allocate while they hold the generator, for which
// a callback that draws some would wait: in this thread for ever, so that the host is asked another time.
bool drawing() {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    if (!generator.mutex().try_lock()) return true;
    generator.mutex().unlock();
    return false;
}

// Whether there was a callback to call.
bool call_host() {
    if (in_callback) return false;
    tn_pressure_fn fn;
    void *user;
    {
        std::lock_guard<std::mutex> lock(pressure.mutex);
        fn = pressure.fn, user = pressure.user;
    }
    if (fn == nullptr || drawing()) return false;
    {
        struct Inside {
            Inside() { in_callback = true; }
            ~Inside() { in_callback = false; }  // a host in C++ may have thrown
            HostsTurn turn;
        } inside;
        fn(live_bytes(), user);
    }
    int64_t live = live_bytes();
    std::lock_guard<std::mutex> lock(pressure.mutex);  // the callback may have set another mark, or none
    const int64_t bytes = pressure.bytes;
    if (pressure.fn != nullptr) mark.store(std::max(bytes, live + bytes / 2), std::memory_order_relaxed);
    return true;
}

bool next_fails() {
    if (__builtin_expect(!watched.load(std::memory_order_relaxed), true)) return false;
    allocations.fetch_add(1, std::memory_order_relaxed);
    return failing.load(std::memory_order_relaxed) > 0 &&
           failing.fetch_sub(1, std::memory_order_relaxed) == 1;
}

// Each block starts with its size, in a header that keeps the alignment; blocks come from the
// allocator before us.
constexpr size_t header = 64;
static_assert(header >= c10::gAlignment, "elements stay aligned");

// Tensors of so few bytes have blocks of one size, which a thread keeps for its next ones.
constexpr size_t small = 64;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool keeping = false;  // a sanitizer is to see each block come and go
#else
constexpr bool keeping = true;
#endif

class CountingAllocator final : public c10::Allocator {
  public:
    explicit CountingAllocator(c10::Allocator *before)
        : before_(before), free_(before->raw_deleter()), plain_(before == c10::GetDefaultCPUAllocator()),
          keeps_(keeping && plain_ && !checked) {
        TORCH_CHECK(free_ != nullptr, "the CPU allocator in use has no plain deleter");
        instance_ = this;
    }

    c10::DataPtr allocate(size_t bytes) override {
        const auto cpu = c10::Device(c10::DeviceType::CPU);
        if (bytes == 0) return {nullptr, nullptr, &forget, cpu};
        auto *block = static_cast<char *>(next_fails() ? nullptr : take(bytes));
        if (__builtin_expect(block == nullptr, false)) block = static_cast<char *>(take_with_host(bytes));
        *reinterpret_cast<size_t *>(block) = bytes;
        char *data = block + header;
        int64_t live = count_bytes(static_cast<int64_t>(bytes));
        int64_t peak = peak_bytes.load(std::memory_order_relaxed);
        while (live > peak && !peak_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
        }
        c10::DataPtr result(data, data, &forget, cpu);
        int64_t above = mark.load(std::memory_order_relaxed);
        if (__builtin_expect(live > above, false)) {
            call_host();
        } else if (__builtin_expect(above != never, false) && live < lowest.load(std::memory_order_relaxed)) {
            mark.store(lowest.load(std::memory_order_relaxed), std::memory_order_relaxed);
        }
        return result;
    }

    c10::DeleterFnPtr raw_deleter() const override { return &forget; }
    void copy_data(void *to, const void *from, std::size_t bytes) const override {
        default_copy_data(to, from, bytes);
    }

  private:
    // A block for so many bytes of elements, or NULL.
    void *take(size_t bytes) {
        void *block = nullptr;
        if (!plain_) return try_allocate([&] { return before_->raw_allocate(bytes + header); }, bytes);
        if (keeps_ && bytes <= small) {
            Counts *own = own_counts();
            block = own != nullptr && own->kept_count > 0
                        ? own->kept[--own->kept_count]
                        : try_allocate([] { return c10::alloc_cpu(small + header); }, bytes);
        } else {
            block = try_allocate([&] { return c10::alloc_cpu(bytes + header); }, bytes);
        }
        if (block != nullptr) c10::profiledCPUMemoryReporter().New(block, bytes + header);
        return block;
    }

    template <class Allocate>
    static void *try_allocate(Allocate allocate, size_t bytes) {
        if (bytes > std::numeric_limits<size_t>::max() / 2) return nullptr;
        try {
            return allocate();
        } catch (const c10::Error &) {
            return nullptr;
        } catch (const std::bad_alloc &) {
            return nullptr;
        }
    }

    // Where there is no memory: ask the host for some, once.
    [[gnu::noinline, gnu::cold]] void *take_with_host(size_t bytes) {
        void *block = call_host() ? take(bytes) : nullptr;
        if (block == nullptr) {
            C10_THROW_ERROR(OutOfMemoryError,
                            text_of("out of memory: ", bytes, " bytes were asked for while ", live_bytes(),
                                    " are in use"));
        }
        return block;
    }

    static void forget(void *data) {
        if (data == nullptr) return;
        char *block = static_cast<char *>(data) - header;
        const size_t bytes = *reinterpret_cast<size_t *>(block);
        count_bytes(-static_cast<int64_t>(bytes));
        if (!instance_->plain_) return instance_->free_(block);
        c10::profiledCPUMemoryReporter().Delete(block);
        Counts *own = instance_->keeps_ && bytes <= small ? own_counts() : nullptr;
        if (own != nullptr && own->kept_count < Counts::most_kept)
            own->kept[own->kept_count++] = block;
        else
            c10::free_cpu(block);
    }

    c10::Allocator *before_;
    c10::DeleterFnPtr free_;
    bool plain_, keeps_;
    static CountingAllocator *instance_;
};
CountingAllocator *CountingAllocator::instance_ = nullptr;

}  // namespace

Undisturbed::Undisturbed() : before_(std::exchange(in_callback, true)) {}
Undisturbed::~Undisturbed() { in_callback = before_; }

void allocation_point() {
    if (next_fails()) throw std::bad_alloc();
}

void start_memory() {
    auto *counting = new CountingAllocator(c10::GetAllocator(c10::DeviceType::CPU));
    c10::SetAllocator(c10::DeviceType::CPU, counting, std::numeric_limits<uint8_t>::max());
}

}  // namespace tenfold

// ---- entries ----------------------------------------------------------------------------------------------

using namespace tenfold;

extern "C" {

int64_t tn_live_bytes(void) { return live_bytes(); }
int64_t tn_peak_bytes(void) { return peak_bytes.load(); }
void tn_reset_peak_bytes(void) { peak_bytes.store(live_bytes()); }
int64_t tn_debug_allocations(void) {
    watched.store(true);
    return allocations.load();
}

tn_status tn_set_pressure_callback(int64_t bytes, tn_pressure_fn fn, void *user) {
    return guarded_status("tn_set_pressure_callback", [&] {
        if (bytes < 0) fail(TN_ERROR_ARGUMENT, "bytes is negative: ", bytes);
        std::lock_guard<std::mutex> lock(pressure.mutex);
        pressure.bytes = bytes, pressure.fn = fn, pressure.user = user;
        lowest.store(fn ? bytes : never);
        mark.store(fn ? bytes : never);
    });
}

tn_status tn_debug_fail_allocation(int64_t n) {
    return guarded_status("tn_debug_fail_allocation", [&] {
        if (n < 0) fail(TN_ERROR_ARGUMENT, "n is negative: ", n);
        failing.store(n);
        watched.store(true);
    });
}

}
