/* Tensors whose new size finds no memory: the call fails, and the tensor is one that can be used. */
#include "check.h"

static void still_usable(tn_tensor *x) {
    CHECK(tn_tensor_numel(x) == 0 && tn_tensor_dim(x) == 1 && tn_tensor_size(x, 0) == 0);
    tn_tensor *sum = tn_sum(x);
    CHECK(number(sum) == 0);
    tn_free(sum);
    const int64_t small[1] = {3};
    CHECK(tn_resize_(x, small, 1) == TN_OK && tn_fill_Scalar_(x, tn_double(2)) == TN_OK);
    sum = tn_sum(x);
    CHECK(number(sum) == 6);
    tn_free(sum);
    tn_free(x);
}

static tn_status by_name(const char *name, tn_tensor *x, const int64_t *sizes, int64_t count) {
    tn_stack *stack = tn_stack_new();
    CHECK(tn_stack_push_tensor(stack, x) == TN_OK && tn_stack_push_ints(stack, sizes, count) == TN_OK);
    tn_status status = tn_call(name, stack);
    tn_stack_free(stack);
    return status;
}

int main(void) {
    const int64_t huge[1] = {(int64_t)1 << 50}, more[2] = {(int64_t)1 << 40, (int64_t)1 << 40};
    tn_tensor *x = numbers(1, 4);
    FAILS(TN_ERROR_MEMORY, tn_resize_(x, huge, 1));
    still_usable(x);
    x = numbers(1, 4);
    FAILS(TN_ERROR_TORCH, tn_resize_(x, more, 2));
    still_usable(x);
    x = numbers(1, 0);
    FAILS(TN_ERROR_TORCH, tn_resize_(x, more, 2));
    still_usable(x);
    x = numbers(1, 4);
    FAILS(TN_ERROR_MEMORY, tn_arange_out(tn_int(huge[0]), x));
    still_usable(x);
    x = numbers(1, 4);
    FAILS(TN_ERROR_MEMORY, by_name("aten::resize_", x, huge, 1));
    still_usable(x);

    /* What failed for another reason is as it was. */
    tn_tensor *y = numbers(1, 3);
    x = numbers(1, 4);
    FAILS(TN_ERROR_TORCH, tn_add_(x, y));
    CHECK(tn_tensor_numel(x) == 4);
    tn_free(y);
    tn_free(x);

    /* A tensor that is known to be zero has no memory to write. */
    tn_stack *stack = tn_stack_new();
    CHECK(tn_stack_push_ints(stack, (const int64_t[]){2}, 1) == TN_OK);
    CHECK(tn_call("aten::_efficientzerotensor", stack) == TN_OK);
    tn_tensor *zero = tn_stack_pop_tensor(stack);
    tn_stack_free(stack);
    x = numbers(1, 2);
    FAILS(TN_ERROR_ARGUMENT, tn_kron_out(x, x, zero));
    FAILS(TN_ERROR_ARGUMENT, tn_add_(zero, x));
    tn_free(zero);
    tn_free(x);
    return tn_live_tensors() != 0 || tn_live_objects() != 0;
}
