// Sources of random numbers that a host makes, seeds and keeps.
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include "memory.h"

using namespace tenfold;

namespace {

at::Generator make_generator(c10::Device place) {
    if (place.is_cpu()) return at::detail::createCPUGenerator();
    if (!at::globalContext().hasCUDA() || !place.is_cuda())
        fail(TN_ERROR_NOT_AVAILABLE, "no generator for ", place, ": this libtorch cannot compute there");
    return at::globalContext().getAcceleratorHooksInterface(place.type()).getNewGenerator(place.index());
}

// Whether the numbers that a state has left lie in it. libtorch looks at where the next is and at how many
// are left, but not at both together.
bool stays_inside(const at::Generator &generator) {
    if (!generator.device().is_cpu()) return true;
    const auto engine = at::check_generator<at::CPUGeneratorImpl>(generator)->engine().data();
    return engine.next_ + static_cast<uint32_t>(engine.left_) <= engine.state_.size() + 1;
}

}  // namespace

extern "C" {

tn_generator *tn_generator_new(tn_device place, uint64_t seed) {
    return guarded("tn_generator_new", (tn_generator *)nullptr, [&] {
        at::Generator made = make_generator(device(place, "device"));
        made.set_current_seed(seed);
        return own_as<tn_generator>(std::move(made));
    });
}

tn_generator *tn_generator_default(tn_device place) {
    return guarded("tn_generator_default", (tn_generator *)nullptr, [&] {
        auto where = device(place, "device");
        make_generator(where);  // refuses a device that has none
        return own_as<tn_generator>(at::Generator(at::globalContext().defaultGenerator(where)));
    });
}

void tn_generator_free(tn_generator *generator) {
    freeing("tn_generator_free", [&] { release(generator); });
}

tn_status tn_generator_set_seed(tn_generator *generator, uint64_t seed) {
    return guarded_status("tn_generator_set_seed", [&] {
        auto held = borrow(generator, "generator");
        std::lock_guard<std::mutex> lock(held->mutex());
        held->set_current_seed(seed);
    });
}

tn_status tn_generator_seed(const tn_generator *generator, uint64_t *seed) {
    return guarded_status("tn_generator_seed", [&] {
        auto held = borrow(generator, "generator");
        if (seed == nullptr) fail_null("seed");
        std::lock_guard<std::mutex> lock(held->mutex());
        *seed = held->current_seed();
    });
}

tn_tensor *tn_generator_state(const tn_generator *generator) {
    return guarded("tn_generator_state", (tn_tensor *)nullptr, [&] {
        auto held = borrow(generator, "generator");
        std::lock_guard<std::mutex> lock(held->mutex());
        Undisturbed meanwhile;
        return own(held->get_state());
    });
}

tn_status tn_generator_set_state(tn_generator *generator, const tn_tensor *state) {
    return guarded_status("tn_generator_set_state", [&] {
        auto held = borrow(generator, "generator");
        Borrowed given(state, "state");
        std::lock_guard<std::mutex> lock(held->mutex());
        Undisturbed meanwhile;
        const at::Tensor before = held->get_state();
        held->set_state(*given);
        if (!stays_inside(*held)) {
            held->set_state(before);
            fail(TN_ERROR_ARGUMENT, "state is none that tn_generator_state gave: it leads outside of itself");
        }
    });
}
}
