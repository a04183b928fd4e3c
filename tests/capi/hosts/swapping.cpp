// A host whose operators put another tensor into the reference that they are to write through, as some of
// libtorch's do: the tensor that was given holds what they wrote, or the call fails.
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <torch/library.h>

#undef CHECK  // which libtorch has too
#include "check.h"

static at::Tensor &fill(at::Tensor &self, const at::Scalar &value) {
    return self = at::full(self.sizes(), value, self.options());
}
static at::Tensor &lose(at::Tensor &self) { return self = at::Tensor(); }
static at::Tensor &asin_out(const at::Tensor &, at::Tensor &out) {
    return out = at::full({3}, 5, at::TensorOptions(at::kDouble));
}
// What comes back is not the first that is written.
static at::Tensor &fill_second(at::Tensor &first, at::Tensor &second) {
    first.zero_();
    return fill(second, 1);
}

TORCH_LIBRARY(swapping, m) {
    m.def("fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)", fill);
    m.def("lose_(Tensor(a!) self) -> Tensor(a!)", lose);
    m.def("second_(Tensor(a!) first, Tensor(b!) second) -> Tensor(b!)", fill_second);
}
TORCH_LIBRARY_IMPL(aten, CPU, m) { m.impl("asin.out", asin_out); }

static double sum_of(const tn_tensor *x) {
    tn_tensor *sum = tn_sum(x);
    const double found = number(sum);
    tn_free(sum);
    return found;
}

int main() {
    tn_tensor *x = numbers(0, 3), *y = numbers(0, 3);
    tn_stack *stack = tn_stack_new();
    CHECK(tn_stack_push_tensor(stack, x) == TN_OK && tn_stack_push_int(stack, 4) == TN_OK);
    CHECK(tn_call("swapping::fill_", stack) == TN_OK);
    CHECK(sum_of(x) == 12);
    tn_tensor *result = tn_stack_pop_tensor(stack);
    CHECK(tn_tensor_is_same(x, result) == 1);
    tn_free(result);

    CHECK(tn_stack_push_tensor(stack, x) == TN_OK && tn_stack_push_tensor(stack, y) == TN_OK);
    CHECK(tn_call("swapping::second_", stack) == TN_OK && tn_stack_clear(stack) == TN_OK);
    CHECK(sum_of(x) == 0 && sum_of(y) == 3);

    CHECK(tn_stack_push_tensor(stack, y) == TN_OK);
    FAILS(TN_ERROR_TORCH, tn_call("swapping::lose_", stack));
    CHECK(sum_of(y) == 3);
    tn_stack_free(stack);

    // Typed: a tensor of another size and dtype takes what it can hold.
    tn_tensor *smaller = numbers(0, 1);
    const int64_t bytes = tn_live_bytes();
    CHECK(tn_asin_out(x, smaller) == TN_OK);
    CHECK(tn_tensor_numel(smaller) == 3 && tn_tensor_dtype(smaller) == TN_FLOAT32 && sum_of(smaller) == 15);
    CHECK(tn_live_bytes() == bytes + 2 * 4);
    const tn_dtype integer = TN_INT64;
    const int64_t shape[1] = {3};
    tn_tensor *whole = tn_zeros_with(shape, 1, &integer, nullptr, nullptr, nullptr);
    FAILS(TN_ERROR_TORCH, tn_asin_out(x, whole));
    tn_free(whole);
    tn_free(smaller);
    tn_free(y);
    tn_free(x);
    return tn_live_tensors() != 0 || tn_live_objects() != 0;
}
