// The scopes of threads, and those that say how gradients are recorded. devices.cpp has that of a stream.
#include "scopes.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include "internal.h"

namespace tenfold {
namespace {

struct Scope {
    int64_t number;
    std::unique_ptr<Guard> guard;
};

thread_local bool over = false;  // whether this thread ends, and its scopes are gone

// The open scopes of a thread, innermost last. A thread that ends closes what it left open in
// that order, too; it may call the host and be called by it still later, when it frees its last tensors.
struct Scopes {
    std::vector<Scope> open;
    size_t around = 0;  // how many were open when the host was called back

    void close_to(size_t count) {
        while (open.size() > count) open.pop_back();
    }
    ~Scopes() {
        close_to(0);
        over = true;
    }
};

thread_local Scopes scopes;
std::atomic<int64_t> last_number{0};

struct GradientGuard : Guard {
    explicit GradientGuard(bool enabled) : mode(enabled) {}
    c10::AutoGradMode mode;
};

struct InferenceGuard : Guard {
    c10::InferenceMode mode;
};

// What autocast did on devices of a type is put back; tensors that it converted are kept while any is open.
struct AutocastGuard : Guard {
    AutocastGuard(c10::DeviceType device, c10::ScalarType type, bool enabled)
        : device(device), was_enabled(at::autocast::is_autocast_enabled(device)),
          was_type(at::autocast::get_autocast_dtype(device)) {
        at::autocast::set_autocast_enabled(device, enabled);
        at::autocast::set_autocast_dtype(device, type);
        at::autocast::increment_nesting();
    }
    ~AutocastGuard() override {
        if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
        at::autocast::set_autocast_enabled(device, was_enabled);
        at::autocast::set_autocast_dtype(device, was_type);
    }
    c10::DeviceType device;
    bool was_enabled;
    c10::ScalarType was_type;
};

struct AnomalyGuard : Guard {
    torch::autograd::DetectAnomalyGuard mode;
};

}  // namespace

int64_t open_scope(std::unique_ptr<Guard> guard) {
    if (over) fail(TN_ERROR_ARGUMENT, "this thread ends, and no scope can be opened in it");
    scopes.open.push_back(Scope{++last_number, std::move(guard)});
    return scopes.open.back().number;
}

HostsTurn::HostsTurn() : around_(over ? 0 : std::exchange(scopes.around, scopes.open.size())) {}

HostsTurn::~HostsTurn() {
    if (over) return;
    scopes.close_to(scopes.around);
    scopes.around = around_;
}

}  // namespace tenfold

using namespace tenfold;

int64_t tn_no_grad_begin(void) {
    return guarded("tn_no_grad_begin", int64_t{-1},
                   [&] { return open_scope(std::make_unique<GradientGuard>(false)); });
}

int64_t tn_enable_grad_begin(void) {
    return guarded("tn_enable_grad_begin", int64_t{-1},
                   [&] { return open_scope(std::make_unique<GradientGuard>(true)); });
}

int64_t tn_inference_begin(void) {
    return guarded("tn_inference_begin", int64_t{-1},
                   [&] { return open_scope(std::make_unique<InferenceGuard>()); });
}

int64_t tn_detect_anomaly_begin(void) {
    return guarded("tn_detect_anomaly_begin", int64_t{-1},
                   [&] { return open_scope(std::make_unique<AnomalyGuard>()); });
}

int64_t tn_autocast_begin(tn_device given, tn_dtype type, bool enabled) {
    return guarded("tn_autocast_begin", int64_t{-1}, [&] {
        const c10::DeviceType on = device(given, "device").type();
        const c10::ScalarType to = dtype(type, "type");
        if (on != c10::kCPU && on != c10::kCUDA) fail(TN_ERROR_ARGUMENT, "device is cpu or cuda");
        if (to != c10::kBFloat16 && to != c10::kHalf) fail(TN_ERROR_ARGUMENT, "type is bfloat16 or float16");
        return open_scope(std::make_unique<AutocastGuard>(on, to, enabled));
    });
}

tn_status tn_scope_end(int64_t scope) {
    return guarded_status("tn_scope_end", [&] {
        if (over || scopes.open.size() == scopes.around) {
            const bool called_back = !over && scopes.around > 0;
            fail(TN_ERROR_ARGUMENT, "no scope is open in this ", called_back ? "callback" : "thread");
        }
        if (scopes.open.back().number != scope) {
            fail(TN_ERROR_ARGUMENT, "scope ", scope, " is not the innermost of this thread, which is ",
                 scopes.open.back().number, ": scopes end in reverse order");
        }
        scopes.open.pop_back();
    });
}

int tn_grad_enabled(void) {
    return guarded("tn_grad_enabled", -1, [&] { return c10::GradMode::is_enabled() ? 1 : 0; });
}

int tn_inference_enabled(void) {
    return guarded("tn_inference_enabled", -1, [&] { return c10::InferenceMode::is_enabled() ? 1 : 0; });
}
