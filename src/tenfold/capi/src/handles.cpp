// Handles: how tensors and objects are known outside. In checked mode a table knows each, what made
// it and where.
#include <dlfcn.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <unordered_map>

#include <ATen/core/List.h>

#include "internal.h"

namespace tenfold {

bool checked = false;
std::atomic<int64_t> live_objects{0};

// ---- checked mode -----------------------------------------------------------------------------------------

namespace {

using Pointer = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

// Where this thread is. It has no destructor: handles are freed up to the thread's very end.
thread_local struct {
    const char *entry = "?";
    void *caller = nullptr;
    char place[256] = "";
} here;

// Where a thread was when it made or freed a handle.
struct Origin {
    const char *entry = here.entry;
    void *caller = here.caller;
    std::string place = here.place;
};

std::string describe(const Origin &origin) {
    if (!origin.place.empty()) return text_of(origin.entry, " at ", origin.place);
    Dl_info info;
    if (origin.caller == nullptr || !dladdr(origin.caller, &info)) return origin.entry;
    const char *file = info.dli_fname ? info.dli_fname : "?";
    char offset[160];
    if (info.dli_sname != nullptr) {
        auto from = static_cast<char *>(origin.caller) - static_cast<char *>(info.dli_saddr);
        std::snprintf(offset, sizeof offset, "%.100s+0x%" PRIxPTR, info.dli_sname,
                      static_cast<uintptr_t>(from));
    } else {
        auto from = static_cast<char *>(origin.caller) - static_cast<char *>(info.dli_fbase);
        std::snprintf(offset, sizeof offset, "0x%" PRIxPTR, static_cast<uintptr_t>(from));
    }
    return text_of(origin.entry, " at ", offset, " in ", file);
}

const char *kind_name(Kind kind) {
    static const char *const names[] = {"?",      "tensor",    "value",  "stack", "generator", "module",
                                        "function", "optimizer", "stream", "hook",  "package",   "context"};
    auto number = static_cast<size_t>(kind);
    return names[number < sizeof names / sizeof *names ? number : 0];
}

struct Entry {
    Kind kind;
    at::Tensor tensor;
    std::shared_ptr<void> box;
    Origin made = {};
};
struct Gone {
    Kind kind;
    Origin made, freed = {};
};

// Ids are counted up and never come back, so a freed handle is known for what it is. How it was freed is kept
// for the latest of them only.
struct Handles {
    std::mutex mutex;
    uint64_t next = 1;
    std::unordered_map<uint64_t, Entry> alive;
    std::unordered_map<uint64_t, Gone> gone;
    std::deque<uint64_t> order;
    static constexpr size_t remembered = 100000;

    void *add(Entry entry) {
        std::lock_guard<std::mutex> lock(mutex);
        uint64_t id = next++ * 16 + static_cast<uint64_t>(entry.kind);
        alive.emplace(id, std::move(entry));
        return reinterpret_cast<void *>(id);
    }

    Entry get(Kind kind, const void *handle, const char *argument) {
        std::lock_guard<std::mutex> lock(mutex);
        auto found = alive.find(reinterpret_cast<uint64_t>(handle));
        if (found == alive.end() || found->second.kind != kind) refuse(kind, handle, argument);
        return found->second;
    }

    Entry remove(Kind kind, const void *handle) {
        std::lock_guard<std::mutex> lock(mutex);
        auto found = alive.find(reinterpret_cast<uint64_t>(handle));
        if (found == alive.end() || found->second.kind != kind) refuse(kind, handle, "the handle to free");
        Entry entry = std::move(found->second);
        gone.emplace(found->first, Gone{kind, entry.made});
        order.push_back(found->first);
        alive.erase(found);
        if (order.size() > remembered) {
            gone.erase(order.front());
            order.pop_front();
        }
        return entry;
    }

    [[noreturn]] void refuse(Kind kind, const void *handle, const char *argument) {
        auto id = reinterpret_cast<uint64_t>(handle);
        if (auto other = alive.find(id); other != alive.end())
            fail(TN_ERROR_HANDLE, argument, " is a ", kind_name(other->second.kind), " made by ",
                 describe(other->second.made), ", not a ", kind_name(kind));
        if (auto freed = gone.find(id); freed != gone.end())
            fail(TN_ERROR_HANDLE, argument, " was freed by ", describe(freed->second.freed), "; this ",
                 kind_name(freed->second.kind), " was made by ", describe(freed->second.made));
        if (id / 16 > 0 && id / 16 < next) fail(TN_ERROR_HANDLE, argument, " was freed long ago");
        fail(TN_ERROR_HANDLE, argument, " is no handle: ", handle);
    }

    std::string report() {
        std::lock_guard<std::mutex> lock(mutex);
        std::vector<uint64_t> ids;
        for (auto &each : alive) ids.push_back(each.first);
        std::sort(ids.begin(), ids.end());
        std::string lines;
        for (auto id : ids) {
            const Entry &entry = alive.at(id);
            lines += text_of(kind_name(entry.kind), " ", id / 16);
            if (entry.kind == Kind::tensor && entry.tensor.defined())
                lines += text_of(" ", entry.tensor.dtype().name(), " ", entry.tensor.sizes());
            lines += text_of(", made by ", describe(entry.made), "\n");
        }
        return lines;
    }
};

Handles &handles() {
    static auto *table = new Handles;  // outlives every static destructor that may still free a handle
    return *table;
}

void report_leaks() {
    int64_t left = live_tensors() + live_objects.load();
    if (left == 0) return;
    std::string lines = handles().report();
    std::fprintf(stderr, "tenfold: %" PRId64 " handles were never freed:\n%s", left, lines.c_str());
}

}  // namespace

void tell_wrong_free() noexcept {
    if (checked) std::fprintf(stderr, "tenfold: %s\n", error_message());
}

void enter(const char *entry, void *caller) noexcept {
    here.entry = entry;
    here.caller = caller;
}

tn_tensor *own_checked(c10::TensorImpl *counted) {
    auto tensor = at::Tensor(Pointer::reclaim(counted));
    auto *handle = static_cast<tn_tensor *>(handles().add({Kind::tensor, std::move(tensor), nullptr}));
    count_tensors(1);
    return handle;
}

void Asked::look_up(const char *argument) {
    if (handle_ == nullptr) fail_null(argument);
    new (&tensor_) at::Tensor(handles().get(Kind::tensor, handle_, argument).tensor);
}

void Asked::let_go() noexcept { tensor_.~Tensor(); }

void *own_object(Kind kind, std::shared_ptr<void> box) {
    void *handle = handles().add({kind, {}, std::move(box)});
    live_objects.fetch_add(1, std::memory_order_relaxed);
    return handle;
}

std::shared_ptr<void> find_object(Kind kind, const void *handle, const char *argument) {
    return handles().get(kind, handle, argument).box;
}

void remove_object(Kind kind, const void *handle) {
    const Entry entry = handles().remove(kind, handle);  // which goes when the table is no longer locked
    live_objects.fetch_sub(1, std::memory_order_relaxed);
}

static void release_tensor(tn_tensor *handle) {
    if (handle == nullptr) return;
    if (checked) {
        handles().remove(Kind::tensor, handle);
    } else {
        Pointer::reclaim(reinterpret_cast<c10::TensorImpl *>(handle));
    }
    count_tensors(-1);
}

void start_handles() {
    const char *wanted = std::getenv("TENFOLD_CHECKED");
    checked = wanted != nullptr && *wanted != 0 && !(wanted[0] == '0' && wanted[1] == 0);
    if (checked) std::atexit(report_leaks);
}

// ---- argument and result lists ----------------------------------------------------------------------------

at::Tensor tensor(const tn_tensor *handle, const char *argument) { return *Borrowed(handle, argument); }

std::optional<at::Tensor> optional_tensor(const tn_tensor *handle, const char *argument) {
    if (handle == nullptr) return std::nullopt;
    return tensor(handle, argument);
}

std::vector<at::Tensor> tensors(const tn_tensor *const *given, int64_t count, const char *argument) {
    check_count(given, count, argument);
    std::vector<at::Tensor> list;
    list.reserve(count);
    for (int64_t i = 0; i < count; i++) list.push_back(tensor(given[i], argument));
    return list;
}

c10::List<std::optional<at::Tensor>> optional_tensors(
    const tn_tensor *const *given, int64_t count, const char *argument) {
    check_count(given, count, argument);
    c10::List<std::optional<at::Tensor>> list;
    list.reserve(count);
    for (int64_t i = 0; i < count; i++) list.push_back(optional_tensor(given[i], argument));
    return list;
}

void own_each(at::Tensor *list, int64_t count, tn_tensor **out) {
    non_null(out, "out");
    std::fill(out, out + count, nullptr);
    try {
        for (int64_t i = 0; i < count; i++) out[i] = own(std::move(list[i]));
    } catch (...) {
        for (int64_t i = 0; i < count; i++) {
            release_tensor(out[i]);
            out[i] = nullptr;
        }
        throw;
    }
}

void own_list(const std::vector<at::Tensor> &list, tn_tensor ***out, int64_t *count) {
    non_null(out, "out");
    non_null(count, "out_count");
    allocation_point();
    auto size = static_cast<int64_t>(list.size());
    auto **array =
        static_cast<tn_tensor **>(std::malloc(std::max<size_t>(list.size(), 1) * sizeof(tn_tensor *)));
    if (array == nullptr) throw std::bad_alloc();
    std::vector<at::Tensor> moved = list;
    try {
        own_each(moved.data(), size, array);
    } catch (...) {
        std::free(array);
        throw;
    }
    *out = array;
    *count = size;
}

}  // namespace tenfold

// ---- entries ----------------------------------------------------------------------------------------------

using namespace tenfold;

extern "C" {

void tn_free(tn_tensor *tensor) {
    freeing("tn_free", [&] { release_tensor(tensor); });
}

void tn_free_all(tn_tensor **tensors, int64_t count) {
    freeing("tn_free_all", [&] {
        if (tensors == nullptr) return;
        check_count(tensors, count, "tensors");
        // A wrong handle among them is told of, and the others are freed all the same.
        for (int64_t i = 0; i < count; i++) freeing("tn_free_all", [&] { release_tensor(tensors[i]); });
        std::free(tensors);
    });
}

int64_t tn_live_tensors(void) { return live_tensors(); }
int64_t tn_live_objects(void) { return live_objects.load(); }
int tn_checked(void) { return checked; }

tn_status tn_set_place(const char *place) {
    return guarded_status("tn_set_place", [&] {
        std::snprintf(here.place, sizeof here.place, "%s", place ? place : "");
    });
}

int64_t tn_report_live(char *buffer, int64_t size) {
    return guarded("tn_report_live", int64_t{-1}, [&] {
        if (!checked)
            fail(TN_ERROR_NOT_AVAILABLE, "handles are listed in checked mode only: set TENFOLD_CHECKED=1");
        return write_text(handles().report(), buffer, size);
    });
}
}
