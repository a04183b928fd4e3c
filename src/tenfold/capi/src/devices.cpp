// Devices: copies between them, streams, memory statistics, seeds and thread counts. All of it is reached
// through libtorch's interfaces for any accelerator, so that it builds without CUDA's own headers.
#include <dlfcn.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "internal.h"
#include "scopes.h"

// As torch/csrc/cuda/memory_snapshot.h declares them. Libtorch's library for CUDA defines them; without it their
// addresses are null.
namespace torch::cuda {
[[gnu::weak, gnu::visibility("default")]] void _record_memory_history(
    std::optional<std::string> enabled, std::optional<std::string> context, const std::string &stacks,
    size_t max_entries, bool clear_history, bool compile_context, bool global_record_allocations,
    const std::vector<std::string> &skip_actions);
[[gnu::weak, gnu::visibility("default")]] std::string _memory_snapshot_pickled();
}  // namespace torch::cuda

namespace tenfold {

OPAQUE(tn_stream, c10::Stream, stream)

namespace {

[[noreturn]] void fail_without_cuda() {
    fail(TN_ERROR_NOT_AVAILABLE, "this libtorch was built without CUDA");
}

// CUDA's runtime, or the reason why there is none.
c10::impl::VirtualGuardImpl cuda() {
    if (!c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) fail_without_cuda();
    if (!at::hasCUDA()) fail(TN_ERROR_NOT_AVAILABLE, "this machine has no CUDA device that libtorch can use");
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA);
}

// A CUDA device by its number; -1 is the current one of this thread.
c10::Device cuda_device(tn_device given) {
    const c10::Device asked = device(given, "device");
    if (!asked.is_cuda())
        fail(TN_ERROR_ARGUMENT, "this is for CUDA devices, and the device is ", asked.str());
    auto runtime = cuda();
    if (asked.index() >= runtime.deviceCount()) {
        fail(TN_ERROR_INDEX, "there is no ", asked.str(), ": this machine has ", int{runtime.deviceCount()});
    }
    return asked.has_index() ? asked : runtime.getDevice();
}

c10::CachingDeviceAllocator::DeviceStats statistics(tn_device device) {
    const c10::Device place = cuda_device(device);
    return c10::getDeviceAllocator(c10::DeviceType::CUDA)->getDeviceStats(place.index());
}

// A word that may be left out; another than those is refused.
std::optional<std::string> one_of(const char *given, const char *argument,
                                  std::initializer_list<std::string_view> words) {
    if (given == nullptr) return std::nullopt;
    if (std::find(words.begin(), words.end(), given) == words.end()) {
        fail(TN_ERROR_ARGUMENT, argument, " is \"", given, "\", and PyTorch knows no such thing");
    }
    return given;
}

using Statistics = c10::CachingDeviceAllocator::DeviceStats;
using Pools = c10::CachingAllocator::StatArray Statistics::*;

// One number of the allocator's, by the name that PyTorch's memory_stats gives it: "allocated_bytes.all.peak".
int64_t statistic(const Statistics &all, std::string_view name) {
    static const std::unordered_map<std::string_view, int64_t Statistics::*> counts = {
        {"num_alloc_retries", &Statistics::num_alloc_retries},
        {"num_ooms", &Statistics::num_ooms},
        {"num_sync_all_streams", &Statistics::num_sync_all_streams},
        {"num_device_alloc", &Statistics::num_device_alloc},
        {"num_device_free", &Statistics::num_device_free},
        {"max_split_size", &Statistics::max_split_size},
    };
    static const std::unordered_map<std::string_view, c10::CachingAllocator::Stat Statistics::*> totals = {
        {"oversize_allocations", &Statistics::oversize_allocations},
        {"oversize_segments", &Statistics::oversize_segments},
    };
    static const std::unordered_map<std::string_view, Pools> pooled = {
        {"allocation", &Statistics::allocation},
        {"segment", &Statistics::segment},
        {"active", &Statistics::active},
        {"inactive_split", &Statistics::inactive_split},
        {"allocated_bytes", &Statistics::allocated_bytes},
        {"reserved_bytes", &Statistics::reserved_bytes},
        {"active_bytes", &Statistics::active_bytes},
        {"inactive_split_bytes", &Statistics::inactive_split_bytes},
        {"requested_bytes", &Statistics::requested_bytes},
    };
    static const std::unordered_map<std::string_view, size_t> pools = {
        {"all", 0}, {"small_pool", 1}, {"large_pool", 2}};
    static const std::unordered_map<std::string_view, int64_t c10::CachingAllocator::Stat::*> metrics = {
        {"current", &c10::CachingAllocator::Stat::current},
        {"peak", &c10::CachingAllocator::Stat::peak},
        {"allocated", &c10::CachingAllocator::Stat::allocated},
        {"freed", &c10::CachingAllocator::Stat::freed},
    };
    if (const auto count = counts.find(name); count != counts.end()) return all.*count->second;
    const size_t dot = name.find('.'), last = name.rfind('.');
    if (dot != name.npos) {
        const auto metric = metrics.find(name.substr(last + 1));
        const auto total = totals.find(name.substr(0, last));
        const auto array = pooled.find(name.substr(0, dot));
        const auto pool = dot < last ? pools.find(name.substr(dot + 1, last - dot - 1)) : pools.end();
        if (metric != metrics.end() && total != totals.end()) return all.*total->second.*metric->second;
        if (metric != metrics.end() && array != pooled.end() && pool != pools.end())
            return (all.*array->second)[pool->second].*metric->second;
    }
    fail(TN_ERROR_ARGUMENT, "the allocator keeps no statistic '", std::string(name),
         "': an example is allocated_bytes.all.peak");
}

// An attribute of a device as CUDA's driver numbers them: libtorch's interfaces for any accelerator lack them.
int64_t attribute(int number, int ordinal) {
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    const auto named = [&](const char *name) { return driver == nullptr ? nullptr : dlsym(driver, name); };
    auto *find = reinterpret_cast<int (*)(int *, int)>(named("cuDeviceGet"));
    auto *ask = reinterpret_cast<int (*)(int *, int, int)>(named("cuDeviceGetAttribute"));
    int place = 0, value = 0;
    if (find == nullptr || ask == nullptr || find(&place, ordinal) != 0 || ask(&value, number, place) != 0)
        fail(TN_ERROR_NOT_AVAILABLE, "CUDA's driver does not tell of device ", ordinal);
    return value;
}

// OpenMP ends the process where the system refuses it a thread.
void check_threads(int64_t threads) {
    const int64_t most = std::max<int64_t>(256, 4 * int64_t{std::thread::hardware_concurrency()});
    if (threads < 1 || threads > most)
        fail(TN_ERROR_ARGUMENT, "there can be 1 to ", most, " threads here, not ", threads);
}

constexpr auto ALL = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

// This thread's work goes to a stream, whose device is the current one meanwhile.
struct StreamGuard : Guard {
    explicit StreamGuard(c10::Stream stream)
        : runtime(stream.device_type()), device(runtime.exchangeDevice(stream.device())),
          before(runtime.exchangeStream(stream)) {}
    ~StreamGuard() override {
        runtime.exchangeStream(before);
        runtime.setDevice(device);
    }
    c10::impl::VirtualGuardImpl runtime;
    c10::Device device;
    c10::Stream before;
};

}  // namespace
}  // namespace tenfold

using namespace tenfold;

int64_t tn_device_count(int32_t type) {
    return guarded("tn_device_count", int64_t{-1}, [&]() -> int64_t {
        const auto asked = device({type, -1}, "type");
        if (asked.is_cpu()) return 1;
        if (!asked.is_cuda())
            fail(TN_ERROR_ARGUMENT, "the devices that can be counted are TN_CPU and TN_CUDA");
        return at::hasCUDA() ? c10::impl::VirtualGuardImpl(asked.type()).deviceCount() : 0;
    });
}

tn_tensor *tn_to_device(const tn_tensor *tensor, tn_device device, bool non_blocking) {
    return guarded("tn_to_device", static_cast<tn_tensor *>(nullptr), [&] {
        Borrowed moved(tensor, "tensor");
        c10::Device place = tenfold::device(device, "device");
        if (place.is_cuda()) place = cuda_device(device);
        return own(moved->to(moved->options().device(place), non_blocking));
    });
}

tn_tensor *tn_pin_memory(const tn_tensor *tensor) {
    return guarded("tn_pin_memory", static_cast<tn_tensor *>(nullptr), [&] {
        Borrowed pinned(tensor, "tensor");
        cuda();
        return own(pinned->pin_memory());
    });
}

tn_status tn_synchronize(tn_device device) {
    return guarded_status("tn_synchronize", [&] {
        if (tenfold::device(device, "device").is_cpu()) return;
        const c10::Device place = cuda_device(device);
        cuda().synchronizeDevice(place.index());
    });
}

tn_stream *tn_stream_new(tn_device device) {
    return guarded("tn_stream_new", static_cast<tn_stream *>(nullptr), [&] {
        const c10::Device place = cuda_device(device);
        return own_as<tn_stream>(cuda().getNewStream(place));
    });
}

void tn_stream_free(tn_stream *stream) {
    freeing("tn_stream_free", [&] { release(stream); });
}

int64_t tn_stream_begin(const tn_stream *stream) {
    return guarded("tn_stream_begin", int64_t{-1},
                   [&] { return open_scope(std::make_unique<StreamGuard>(*borrow(stream, "stream"))); });
}

tn_status tn_stream_synchronize(const tn_stream *stream) {
    return guarded_status("tn_stream_synchronize", [&] { borrow(stream, "stream")->synchronize(); });
}

int tn_stream_query(const tn_stream *stream) {
    return guarded("tn_stream_query", -1, [&] { return borrow(stream, "stream")->query() ? 1 : 0; });
}

tn_status tn_stream_wait(const tn_stream *stream, const tn_stream *other) {
    return guarded_status("tn_stream_wait", [&] {
        const c10::Stream waiting = *borrow(stream, "stream");
        c10::impl::VirtualGuardImpl runtime(waiting.device_type());
        const c10::Stream awaited =
            other == nullptr ? runtime.getDefaultStream(waiting.device()) : *borrow(other, "other");
        void *event = nullptr;
        runtime.record(&event, awaited, awaited.device_index(), c10::EventFlag::BACKEND_DEFAULT);
        runtime.block(event, waiting);
        runtime.destroyEvent(event, awaited.device_index());
    });
}

tn_status tn_stream_record(const tn_stream *stream, const tn_tensor *tensor) {
    return guarded_status("tn_stream_record",
                          [&] { Borrowed(tensor, "tensor")->record_stream(*borrow(stream, "stream")); });
}

int64_t tn_memory_allocated(tn_device device) {
    return guarded("tn_memory_allocated", int64_t{-1},
                   [&] { return statistics(device).allocated_bytes[ALL].current; });
}

int64_t tn_memory_peak(tn_device device) {
    return guarded("tn_memory_peak", int64_t{-1},
                   [&] { return statistics(device).allocated_bytes[ALL].peak; });
}

int64_t tn_memory_reserved(tn_device device) {
    return guarded("tn_memory_reserved", int64_t{-1},
                   [&] { return statistics(device).reserved_bytes[ALL].current; });
}

int64_t tn_memory_statistic(tn_device device, const char *name) {
    return guarded("tn_memory_statistic", int64_t{-1}, [&] {
        const std::string_view asked = text(name, "name");
        return statistic(statistics(device), asked);
    });
}

tn_status tn_memory_reset_peak(tn_device device) {
    return guarded_status("tn_memory_reset_peak", [&] {
        const c10::Device place = cuda_device(device);
        c10::getDeviceAllocator(c10::DeviceType::CUDA)->resetPeakStats(place.index());
    });
}

tn_status tn_memory_record_history(const char *enabled, const char *context, const char *stacks,
                                   int64_t entries) {
    return guarded_status("tn_memory_record_history", [&] {
        const auto events = one_of(enabled, "enabled", {"all", "state"});
        const auto kept = one_of(context, "context", {"all", "alloc", "state"});
        const auto frames = one_of(text(stacks, "stacks"), "stacks", {"all", "python"});
        if (entries < 1) fail(TN_ERROR_ARGUMENT, "entries is ", entries, ", and at least one event is kept");
        if (torch::cuda::_record_memory_history == nullptr) fail_without_cuda();
        torch::cuda::_record_memory_history(events, kept, *frames, static_cast<size_t>(entries), false, false,
                                            false, {});
    });
}

tn_tensor *tn_memory_snapshot(void) {
    return guarded("tn_memory_snapshot", static_cast<tn_tensor *>(nullptr), [&] {
        if (torch::cuda::_memory_snapshot_pickled == nullptr) fail_without_cuda();
        std::string bytes = torch::cuda::_memory_snapshot_pickled();
        return own(at::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, c10::kByte).clone());
    });
}

tn_status tn_empty_cache(void) {
    return guarded_status("tn_empty_cache", [&] {
        cuda();
        c10::getDeviceAllocator(c10::DeviceType::CUDA)->emptyCache();
    });
}

tn_status tn_manual_seed(uint64_t seed) {
    return guarded_status("tn_manual_seed", [&] { at::manual_seed(seed); });
}

int64_t tn_threads(void) {
    return guarded("tn_threads", int64_t{-1}, [&] { return static_cast<int64_t>(at::get_num_threads()); });
}

tn_status tn_set_threads(int64_t threads) {
    return guarded_status("tn_set_threads", [&] {
        check_threads(threads);
        at::set_num_threads(static_cast<int>(threads));
    });
}

int64_t tn_interop_threads(void) {
    return guarded("tn_interop_threads", int64_t{-1},
                   [&] { return static_cast<int64_t>(at::get_num_interop_threads()); });
}

tn_dtype tn_default_dtype(void) {
    return guarded("tn_default_dtype", -1, [&] { return tn_dtype(c10::get_default_dtype_as_scalartype()); });
}

tn_status tn_set_default_dtype(tn_dtype type) {
    return guarded_status("tn_set_default_dtype", [&] {
        const c10::ScalarType to = dtype(type, "type");
        if (!c10::isFloatingType(to)) fail(TN_ERROR_ARGUMENT, "type is one of floats, not ", c10::toString(to));
        c10::set_default_dtype(c10::scalarTypeToTypeMeta(to));
    });
}

tn_status tn_set_interop_threads(int64_t threads) {
    return guarded_status("tn_set_interop_threads", [&] {
        check_threads(threads);
        at::set_num_interop_threads(static_cast<int>(threads));
    });
}

int tn_has_backend(const char *name) {
    return guarded("tn_has_backend", -1, [&] {
        static const std::unordered_map<std::string_view, bool (*)()> backends = {
            {"cuda", at::Context::hasCUDA},     {"cudnn", at::Context::hasCuDNN},
            {"lapack", at::Context::hasLAPACK}, {"magma", at::Context::hasMAGMA},
            {"mkl", at::Context::hasMKL},       {"mkldnn", at::Context::hasMKLDNN},
            {"mps", at::Context::hasMPS},       {"openmp", at::Context::hasOpenMP},
        };
        const auto backend = backends.find(text(name, "name"));
        if (backend == backends.end()) {
            fail(TN_ERROR_ARGUMENT, "'", name, "' is no backend: ",
                 "cuda, cudnn, lapack, magma, mkl, mkldnn, mps and openmp are");
        }
        return backend->second() ? 1 : 0;
    });
}

int64_t tn_backend_version(const char *name) {
    return guarded("tn_backend_version", int64_t{-1}, [&]() -> int64_t {
        const std::string_view asked = text(name, "name");
        if (asked != "cuda" && asked != "cudnn")
            fail(TN_ERROR_ARGUMENT, "the backends that tell their version are cuda and cudnn");
        cuda();
        if (asked == "cuda") return at::Context::versionCUDART();
        if (!at::Context::hasCuDNN()) fail(TN_ERROR_NOT_AVAILABLE, "this libtorch was built without cuDNN");
        return at::Context::versionCuDNN();
    });
}

tn_status tn_device_capability(tn_device device, int64_t *major, int64_t *minor) {
    return guarded_status("tn_device_capability", [&] {
        if (major == nullptr) fail_null("major");
        if (minor == nullptr) fail_null("minor");
        const c10::Device place = cuda_device(device);
        *major = attribute(75, place.index());  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        *minor = attribute(76, place.index());  // ... and _MINOR
    });
}
