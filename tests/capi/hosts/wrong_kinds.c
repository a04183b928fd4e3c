/* Tags, counts and handles that are none, as far as they can be told without checked mode and with it. */
#include "check.h"

static const int64_t huge = INT64_MAX;

int main(void) {
    int64_t shape[2] = {2, 2};
    tn_scalar bad = tn_int(1);
    tn_tensor *x = numbers(1, 4);
    tn_value *value = tn_value_int(1);
    tn_stack *stack = tn_stack_new();
    tn_scalar got;
    bad.tag = 77;
    FAILS(TN_ERROR_ARGUMENT, tn_value_scalar(bad));
    FAILS(TN_ERROR_ARGUMENT, tn_add_Scalar(x, bad, tn_int(1)));
    FAILS(TN_ERROR_ARGUMENT, tn_tensor_set(x, shape, 1, bad));
    FAILS(TN_ERROR_ARGUMENT, tn_zeros(shape, huge));
    FAILS(TN_ERROR_ARGUMENT, tn_zeros(shape, -1));
    FAILS(TN_ERROR_ARGUMENT, tn_value_int_list(shape, huge));
    FAILS(TN_ERROR_ARGUMENT, tn_stack_push_ints(stack, shape, huge));
    FAILS(TN_ERROR_ARGUMENT, tn_tensor_get(x, shape, huge, &got));
    FAILS(TN_ERROR_ARGUMENT, tn_cat((const tn_tensor *const *)&x, huge, 0));
    FAILS(TN_ERROR_HANDLE, tn_stack_count((const tn_stack *)value));
    FAILS(TN_ERROR_HANDLE, tn_value_tag((const tn_value *)stack));
    FAILS(TN_ERROR_HANDLE, tn_generator_set_seed((tn_generator *)value, 1));
    FAILS(TN_ERROR_HANDLE, tn_optimizer_step((tn_optimizer *)stack));
    FAILS(TN_ERROR_HANDLE, tn_call_op((const tn_op *)(const void *)value, stack));
    FAILS(TN_ERROR_HANDLE, tn_value_free((tn_value *)stack));
    FAILS(TN_ERROR_TYPE, tn_value_to_tensor(value));
    FAILS(TN_ERROR_INDEX, tn_stack_pop(stack));
    FAILS(TN_ERROR_INDEX, tn_op_at(huge));
    FAILS(TN_ERROR_INDEX, tn_tensor_size(x, -huge));
    FAILS(TN_ERROR_ARGUMENT, tn_tensor_print(x, NULL, 10));
    FAILS(TN_ERROR_ARGUMENT, tn_tensor_print(x, (char *)shape, -huge));
    FAILS(TN_ERROR_ARGUMENT, tn_call("aten", stack));
    FAILS(TN_ERROR_ARGUMENT, tn_call("\xff::\xfe", stack));
    FAILS(TN_ERROR_ARGUMENT, tn_scope_end(huge));
    if (tn_checked()) {
        tn_tensor *gone = numbers(1, 1);
        tn_free(gone);
        FAILS(TN_ERROR_HANDLE, tn_add(gone, x));
        FAILS(TN_ERROR_HANDLE, tn_free(gone));
        FAILS(TN_ERROR_HANDLE, tn_add((tn_tensor *)value, x));
        FAILS(TN_ERROR_HANDLE, tn_free((tn_tensor *)(uintptr_t)12345));
    }
    tn_stack_free(stack);
    tn_value_free(value);
    tn_free(x);
    return tn_live_tensors() != 0 || tn_live_objects() != 0;
}
