// Handles as the objects of libtorch that they are, for C++ that links the same libtorch, and back.
#include "modules.h"
#include "values.h"

using namespace tenfold;
using c10::IValue;
using torch::jit::Module;
using torch::jit::Stack;

extern "C" {

tn_status tn_torch_get_tensor(const tn_tensor *tensor, void *out) {
    return guarded_status("tn_torch_get_tensor", [&] {
        at::Tensor &place = non_null(static_cast<at::Tensor *>(out), "out");
        place = *Passed(tensor, "tensor");
    });
}

tn_tensor *tn_torch_wrap_tensor(const void *object) {
    return guarded("tn_torch_wrap_tensor", (tn_tensor *)nullptr, [&] {
        const at::Tensor &given = non_null(static_cast<const at::Tensor *>(object), "object");
        if (!given.defined()) fail(TN_ERROR_ARGUMENT, "object is an undefined tensor");
        return own(given);
    });
}

tn_status tn_torch_get_value(const tn_value *value, void *out) {
    return guarded_status("tn_torch_get_value", [&] {
        IValue &place = non_null(static_cast<IValue *>(out), "out");
        place = *borrow(value, "value");
    });
}

tn_value *tn_torch_wrap_value(const void *object) {
    return make("tn_torch_wrap_value", [&]() -> IValue {
        const IValue &given = non_null(static_cast<const IValue *>(object), "object");
        check_nesting(given);
        return given;
    });
}

tn_status tn_torch_get_stack(const tn_stack *stack, void *out) {
    return guarded_status("tn_torch_get_stack", [&] {
        Stack &place = non_null(static_cast<Stack *>(out), "out");
        place = *borrow(stack, "stack");
    });
}

tn_status tn_torch_set_stack(tn_stack *stack, const void *object) {
    return guarded_status("tn_torch_set_stack", [&] {
        auto held = borrow(stack, "stack");
        const Stack &given = non_null(static_cast<const Stack *>(object), "object");
        for (const IValue &each : given) check_nesting(each);
        Stack copy = given;
        std::swap(*held, copy);
        for (IValue &each : copy) let_go(std::move(each));
    });
}

tn_status tn_torch_get_module(const tn_module *module, void *out) {
    return guarded_status("tn_torch_get_module", [&] {
        Module &place = non_null(static_cast<Module *>(out), "out");
        place = *borrow(module, "module");
    });
}

tn_module *tn_torch_wrap_module(const void *object) {
    return guarded("tn_torch_wrap_module", (tn_module *)nullptr, [&] {
        return own_as<tn_module>(non_null(static_cast<const Module *>(object), "object"));
    });
}
}
