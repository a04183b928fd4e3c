// Stacks: the arguments of a call by name, and its results.
#include <ATen/core/List.h>

#include "values.h"

using namespace tenfold;
using c10::IValue;

namespace {

template <class Body>
tn_status push(const char *entry, tn_stack *stack, Body &&body) {
    return guarded_status(entry, [&] {
        auto held = borrow(stack, "stack");
        allocation_point();
        held->push_back(body());
    });
}

void empty(torch::jit::Stack &stack) {
    while (!stack.empty()) {
        IValue last = std::move(stack.back());
        stack.pop_back();
        let_go(std::move(last));
    }
}

}  // namespace

extern "C" {

tn_stack *tn_stack_new(void) {
    return guarded("tn_stack_new", (tn_stack *)nullptr, [] { return own_as<tn_stack>(torch::jit::Stack()); });
}
void tn_stack_free(tn_stack *stack) {
    freeing("tn_stack_free", [&] {
        if (stack == nullptr) return;
        empty(*borrow(stack, "stack"));
        release(stack);
    });
}
int64_t tn_stack_count(const tn_stack *stack) {
    return guarded("tn_stack_count", int64_t{-1}, [&] { return int64_t(borrow(stack, "stack")->size()); });
}
tn_status tn_stack_clear(tn_stack *stack) {
    return guarded_status("tn_stack_clear", [&] { empty(*borrow(stack, "stack")); });
}
tn_status tn_stack_push(tn_stack *stack, const tn_value *value) {
    return push("tn_stack_push", stack, [&]() -> IValue { return *borrow(value, "value"); });
}
tn_status tn_stack_push_none(tn_stack *stack) {
    return push("tn_stack_push_none", stack, [] { return IValue(); });
}
tn_status tn_stack_push_tensor(tn_stack *stack, const tn_tensor *handle) {
    return push("tn_stack_push_tensor", stack, [&] { return IValue(*Passed(handle, "tensor")); });
}
tn_status tn_stack_push_int(tn_stack *stack, int64_t number) {
    return push("tn_stack_push_int", stack, [&] { return IValue(number); });
}
tn_status tn_stack_push_double(tn_stack *stack, double number) {
    return push("tn_stack_push_double", stack, [&] { return IValue(number); });
}
tn_status tn_stack_push_bool(tn_stack *stack, bool truth) {
    return push("tn_stack_push_bool", stack, [&] { return IValue(truth); });
}
tn_status tn_stack_push_scalar(tn_stack *stack, tn_scalar given) {
    return push("tn_stack_push_scalar", stack, [&] { return IValue(scalar(given, "scalar")); });
}
tn_status tn_stack_push_string(tn_stack *stack, const char *given) {
    return push("tn_stack_push_string", stack, [&] { return IValue(std::string(text(given, "text"))); });
}
tn_status tn_stack_push_ints(tn_stack *stack, const int64_t *numbers, int64_t count) {
    return push("tn_stack_push_ints", stack, [&] { return int_list(numbers, count); });
}
tn_status tn_stack_push_tensors(tn_stack *stack, const tn_tensor *const *handles, int64_t count) {
    return push("tn_stack_push_tensors", stack, [&] { return tensor_list(handles, count); });
}

tn_value *tn_stack_pop(tn_stack *stack) {
    return guarded("tn_stack_pop", (tn_value *)nullptr, [&] {
        auto held = borrow(stack, "stack");
        if (held->empty()) fail(TN_ERROR_INDEX, "the stack is empty");
        tn_value *last = own_value(held->back());
        held->pop_back();
        return last;
    });
}

tn_tensor *tn_stack_pop_tensor(tn_stack *stack) {
    return guarded("tn_stack_pop_tensor", (tn_tensor *)nullptr, [&] {
        auto held = borrow(stack, "stack");
        if (held->empty()) fail(TN_ERROR_INDEX, "the stack is empty");
        if (!held->back().isTensor()) fail_tag("a tensor", held->back());
        tn_tensor *last = own(held->back().toTensor());
        held->pop_back();
        return last;
    });
}

tn_value *tn_stack_at(const tn_stack *stack, int64_t index) {
    return make("tn_stack_at", [&]() -> IValue {
        auto held = borrow(stack, "stack");
        return (*held)[in_range(index, static_cast<int64_t>(held->size()), "a stack")];
    });
}

tn_tensor *tn_stack_tensor_at(const tn_stack *stack, int64_t index) {
    return guarded("tn_stack_tensor_at", (tn_tensor *)nullptr, [&] {
        auto held = borrow(stack, "stack");
        const IValue &found = (*held)[in_range(index, static_cast<int64_t>(held->size()), "a stack")];
        if (!found.isTensor()) fail_tag("a tensor", found);
        return own(found.toTensor());
    });
}

tn_status tn_stack_set(tn_stack *stack, int64_t index, const tn_value *value) {
    return guarded_status("tn_stack_set", [&] {
        auto held = borrow(stack, "stack");
        IValue replacement = *borrow(value, "value");
        (*held)[in_range(index, static_cast<int64_t>(held->size()), "a stack")] = std::move(replacement);
    });
}
}
