/* Callbacks that call back: backward inside a hook, a hook that frees itself, functions in
 * functions, and failures. */
#include "check.h"

static tn_status deeper(const tn_tensor *gradient, tn_tensor **out, void *user) {
    int *depth = user;
    (void)gradient, (void)out;
    if (--*depth == 0) return tn_fail("at the bottom");
    int64_t scope = tn_enable_grad_begin();
    tn_tensor *x = numbers(1, 1);
    tn_set_requires_grad(x, true);
    tn_hook *hook = tn_hook_new(x, deeper, depth, NULL);
    tn_tensor *y = tn_mul(x, x);
    tn_status status = tn_backward(y);
    tn_scope_end(scope);
    tn_hook_free(hook);
    tn_free(y);
    tn_free(x);
    return status;
}

static tn_hook *own;
static tn_status free_itself(const tn_tensor *gradient, tn_tensor **out, void *user) {
    (void)gradient, (void)out, (void)user;
    tn_hook_free(own);
    own = NULL;
    return TN_OK;
}

static tn_status forward(tn_context *context, const tn_tensor *const *inputs, int64_t inputs_count,
                         tn_tensor **outputs, int64_t outputs_count, void *user) {
    tn_function **again = user;
    (void)context, (void)inputs_count, (void)outputs_count;
    if (*again != NULL) {
        tn_function *function = *again;
        *again = NULL; /* once more, and no further */
        return tn_function_call(function, inputs, 1, outputs, 1);
    }
    outputs[0] = tn_mul(inputs[0], inputs[0]);
    return outputs[0] == NULL ? tn_error_code() : TN_OK;
}

static tn_status backward(tn_context *context, const tn_tensor *const *gradients, int64_t gradients_count,
                          tn_tensor **outputs, int64_t outputs_count, void *user) {
    (void)context, (void)gradients_count, (void)outputs_count, (void)user;
    outputs[0] = tn_tensor_share(gradients[0]);
    return TN_OK;
}

int main(void) {
    int depth = 100;
    tn_tensor *x = numbers(3, 1);
    CHECK(tn_set_requires_grad(x, true) == TN_OK);
    tn_hook *hook = tn_hook_new(x, deeper, &depth, NULL);
    tn_tensor *y = tn_mul(x, x);
    FAILS(TN_ERROR_CALLBACK, tn_backward(y));
    CHECK(strstr(tn_error_message(), "at the bottom") != NULL && depth == 0);
    tn_hook_free(hook);
    tn_free(y);

    own = tn_hook_new(x, free_itself, NULL, NULL);
    y = tn_mul(x, x);
    CHECK(tn_backward(y) == TN_OK && own == NULL);
    tn_free(y);

    tn_function *again = NULL;
    tn_function *function = tn_function_new("square", forward, backward, 1, &again, NULL);
    again = function;
    CHECK(tn_function_call(function, (const tn_tensor *const *)&x, 1, &y, 1) == TN_OK && number(y) == 9);
    CHECK(tn_backward(y) == TN_OK);
    tn_free(y);
    tn_function_free(function);
    tn_free(x);
    return tn_live_tensors() != 0 || tn_live_objects() != 0;
}
