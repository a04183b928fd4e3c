/* Callbacks that leave things in disorder: scopes open, scopes of others closed, a trace inside a trace, an
 * operator that fails while it is traced, parameters that change their size under an optimizer. */
#include "check.h"

enum disorder { OPENS_NO_GRAD, OPENS_INFERENCE, CLOSES_OTHERS, TRACES, FAILS_AND_GOES_ON, NOTHING };

struct plan {
    enum disorder disorder;
    int64_t outer;
};

static tn_status traced(const tn_tensor *const *inputs, int64_t inputs_count, tn_tensor **outputs,
                        int64_t outputs_count, void *user);

static void disturb(const struct plan *plan, const tn_tensor *x) {
    tn_tensor *other;
    struct plan none = {NOTHING, 0};
    switch (plan->disorder) {
        case OPENS_NO_GRAD: CHECK(tn_no_grad_begin() > 0); break;
        case OPENS_INFERENCE: CHECK(tn_inference_begin() > 0); break;
        case CLOSES_OTHERS: FAILS(TN_ERROR_ARGUMENT, tn_scope_end(plan->outer)); break;
        case TRACES: FAILS(TN_ERROR_ARGUMENT, tn_module_trace(traced, &x, 1, 1, &none)); break;
        case FAILS_AND_GOES_ON:
            other = numbers(1, 7);
            FAILS(TN_ERROR_TORCH, tn_add(x, other));
            tn_free(other);
            break;
        case NOTHING: break;
    }
}

static tn_status traced(const tn_tensor *const *inputs, int64_t inputs_count, tn_tensor **outputs,
                        int64_t outputs_count, void *user) {
    (void)inputs_count, (void)outputs_count;
    disturb(user, inputs[0]);
    outputs[0] = tn_neg(inputs[0]);
    return outputs[0] == NULL ? tn_error_code() : TN_OK;
}

static tn_status forward(tn_context *context, const tn_tensor *const *inputs, int64_t inputs_count,
                         tn_tensor **outputs, int64_t outputs_count, void *user) {
    (void)context;
    return traced(inputs, inputs_count, outputs, outputs_count, user);
}

static tn_status backward(tn_context *context, const tn_tensor *const *gradients, int64_t gradients_count,
                          tn_tensor **outputs, int64_t outputs_count, void *user) {
    (void)context;
    return traced(gradients, gradients_count, outputs, outputs_count, user);
}

static bool destroyed;
static void destroy(void *user) {
    (void)user;
    destroyed = true;
    CHECK(tn_no_grad_begin() > 0);
}

static tn_hook *own;
static tn_status free_itself(const tn_tensor *gradient, tn_tensor **out, void *user) {
    (void)gradient, (void)out, (void)user;
    tn_hook_free(own);
    CHECK(!destroyed); /* not before its callback returned */
    return TN_OK;
}

int main(void) {
    for (int disorder = OPENS_NO_GRAD; disorder <= NOTHING; disorder++) {
        struct plan plan = {(enum disorder)disorder, tn_enable_grad_begin()};
        tn_tensor *x = numbers(2, 2), *y = NULL;
        CHECK(tn_set_requires_grad(x, true) == TN_OK);
        tn_function *function = tn_function_new("disorder", forward, backward, 1, &plan, NULL);
        if (disorder != TRACES) { /* forward is not recorded, so there it may trace */
            CHECK(tn_function_call(function, (const tn_tensor *const *)&x, 1, &y, 1) == TN_OK);
            CHECK(tn_grad_enabled() == 1 && tn_inference_enabled() == 0);
            tn_tensor *sum = tn_sum(y);
            CHECK(sum != NULL && (disorder == OPENS_INFERENCE || tn_backward(sum) == TN_OK));
            CHECK(tn_grad_enabled() == 1 && tn_inference_enabled() == 0);
            tn_free(sum);
            tn_free(y);
        }
        tn_function_free(function);
        CHECK(tn_set_requires_grad(x, false) == TN_OK);
        tn_module *module = tn_module_trace(traced, (const tn_tensor *const *)&x, 1, 1, &plan);
        CHECK(disorder == FAILS_AND_GOES_ON ? tn_error_code() == TN_ERROR_CALLBACK : module != NULL);
        if (module != NULL) {
            y = tn_module_forward(module, (const tn_tensor *const *)&x, 1);
            CHECK(y != NULL);
            tn_free(y);
        }
        tn_module_free(module);
        tn_free(x);
        CHECK(tn_scope_end(plan.outer) == TN_OK && tn_grad_enabled() == 1);
    }

    tn_tensor *x = numbers(1, 2), *sum;
    CHECK(tn_set_requires_grad(x, true) == TN_OK);
    own = tn_hook_new(x, free_itself, NULL, destroy);
    sum = tn_sum(x);
    CHECK(tn_backward(sum) == TN_OK && destroyed && tn_grad_enabled() == 1);
    tn_free(sum);
    tn_free(x);

    const int64_t larger[1] = {100000};
    tn_tensor *(*const fill)(const int64_t *, int64_t) = tn_ones;
    for (int with_state = 0; with_state < 2; with_state++) {
        tn_tensor *parameter = numbers(1, 4), *gradient = numbers(1, 4);
        tn_optimizer *adam = tn_optimizer_adam((const tn_tensor *const *)&parameter, 1, 0.1);
        CHECK(tn_set_grad(parameter, gradient) == TN_OK && tn_optimizer_step(adam) == TN_OK);
        CHECK(tn_resize_(parameter, larger, 1) == TN_OK);
        tn_tensor *other = fill(larger, 1);
        if (with_state) CHECK(tn_set_grad(parameter, other) == TN_OK);
        FAILS(TN_ERROR_ARGUMENT, tn_optimizer_step(adam));
        tn_optimizer_free(adam);
        tn_free(other);
        tn_free(gradient);
        tn_free(parameter);
    }
    return tn_live_tensors() != 0 || tn_live_objects() != 0;
}
