// Values and stacks inside: a tn_value is an IValue, a tn_stack a vector of them.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include "internal.h"

namespace tenfold {

OPAQUE(tn_value, c10::IValue, value)
OPAQUE(tn_stack, torch::jit::Stack, stack)

inline tn_value *own_value(c10::IValue value) { return own_as<tn_value>(std::move(value)); }
tn_tag tag_of(const c10::IValue &value);
const char *tag_name(tn_tag tag);
[[noreturn]] void fail_tag(const char *needed, const c10::IValue &value);
// What libtorch does with values is recursive, freeing them too, and would run out of stack where they nest
// without bound.
void check_nesting(const c10::IValue &value);
// Free a value without calling itself for what lies in it: TorchScript may have nested it as deep as it likes.
void let_go(c10::IValue value);
int64_t in_range(int64_t index, int64_t count, const char *what);  // a negative index counts from the end
c10::IValue int_list(const int64_t *numbers, int64_t count);
c10::IValue tensor_list(const tn_tensor *const *handles, int64_t count);

// The body of an entry that makes a value.
template <class Body>
[[gnu::always_inline]] inline tn_value *make(const char *entry, Body &&body) {
    return guarded(entry, (tn_value *)nullptr, [&] { return own_value(body()); });
}

}  // namespace tenfold
