/* script.c: TorchScript modules, tracing R functions into them, optimizers, and one step of training in one call. */
#include "bridge.h"

#include <string.h>

/* ---- tracing ---- */

/* An R function of a list of values, for a value; it stores its condition and gives NULL on failure. */
typedef struct {
    SEXP function;
    tn_stack *stack;
    bool done;
} traced_call;

static void run_traced(void *given) {
    traced_call *call = given;
    int64_t count = tn_stack_count(call->stack);
    SEXP inputs = PROTECT(Rf_allocVector(VECSXP, count));
    for (int64_t i = 0; i < count; i++) SET_VECTOR_ELT(inputs, i, value_to_r(tn_stack_at(call->stack, i)));
    SEXP expression = PROTECT(Rf_lang2(call->function, inputs));
    SEXP result = PROTECT(Rf_eval(expression, R_GlobalEnv)); /* NULL where it failed */
    if (result != R_NilValue) {
        tn_value *value = value_of(result);
        call->done = tn_stack_clear(call->stack) == TN_OK && tn_stack_push(call->stack, value) == TN_OK;
        tn_value_free(value);
    }
    UNPROTECT(3);
}

/* No jump of R's may cross libtorch: R_ToplevelExec stops it here. */
static tn_status trace_callback(tn_stack *stack, void *user) {
    traced_call call = {(SEXP)user, stack, false};
    if (!R_ToplevelExec(run_traced, &call)) return tn_fail("the R function was left by a jump");
    return call.done ? TN_OK : tn_fail("the R function failed");
}

/* Have a module keep, as a method, what an R function computes from example inputs, a list of values. */
SEXP tf_trace_method(SEXP module, SEXP method, SEXP function, SEXP inputs, SEXP strict) {
    tn_module *into = handle_of(module, MODULE);
    const char *name = text_of(method);
    bool strictly = bool_of(strict);
    tn_stack *stack = stack_of(inputs);
    SET_VECTOR_ELT(callback_error, 0, R_NilValue);
    tracing++;
    tn_status status = tn_module_trace_method(into, name, trace_callback, stack, strictly, function); /* no jump crosses it */
    tracing--;
    tn_stack_free(stack);
    check(status);
    return module;
}

/* ---- modules made part by part ---- */

SEXP tf_module_new(SEXP name) { return give_handle(tn_module_new(text_of(name)), MODULE); }

SEXP tf_module_set(SEXP module, SEXP name, SEXP part, SEXP parameter) {
    tn_module *m = handle_of(module, MODULE);
    if (!is_tensor(part)) check(tn_module_set_child(m, text_of(name), handle_of(part, MODULE)));
    else if (bool_of(parameter)) check(tn_module_set_parameter(m, text_of(name), tensor_of(part)));
    else check(tn_module_set_buffer(m, text_of(name), tensor_of(part)));
    return module;
}

SEXP tf_module_add_child(SEXP module, SEXP name) {
    return give_handle(tn_module_add_child(handle_of(module, MODULE), text_of(name)), MODULE);
}

SEXP tf_module_child(SEXP module, SEXP name) {
    return give_handle(tn_module_child(handle_of(module, MODULE), text_of(name)), MODULE);
}

SEXP tf_module_arity(SEXP module, SEXP method) {
    int64_t count = tn_module_arity(handle_of(module, MODULE), text_of(method));
    if (count < 0) raise_last();
    return Rf_ScalarInteger((int)count);
}

SEXP tf_store_condition(SEXP condition) {
    SET_VECTOR_ELT(callback_error, 0, condition);
    return R_NilValue;
}

/* ---- modules ---- */

SEXP tf_module_load(SEXP source, SEXP device) {
    tn_device where;
    if (device != R_NilValue) where = device_of(device);
    const tn_device *given = device == R_NilValue ? NULL : &where;
    if (TYPEOF(source) == RAWSXP) return give_handle(tn_module_load_data(RAW(source), Rf_xlength(source), given), MODULE);
    return give_handle(tn_module_load(R_ExpandFileName(text_of(source)), given), MODULE);
}

SEXP tf_module_compile(SEXP source) { return give_handle(tn_module_compile(text_of(source)), MODULE); }

SEXP tf_module_save(SEXP module, SEXP path) {
    check(tn_module_save(handle_of(module, MODULE), R_ExpandFileName(text_of(path))));
    return R_NilValue;
}

SEXP tf_module_save_for_mobile(SEXP module, SEXP path) {
    check(tn_module_save_for_mobile(handle_of(module, MODULE), R_ExpandFileName(text_of(path))));
    return R_NilValue;
}

/* The module's file as raw bytes. */
SEXP tf_module_save_data(SEXP module) {
    SEXP bytes = PROTECT(give(tn_module_save_data(handle_of(module, MODULE))));
    int64_t count = tn_tensor_numel(tensor_of(bytes));
    SEXP out = PROTECT(Rf_allocVector(RAWSXP, count));
    memcpy(RAW(out), tn_tensor_data(tensor_of(bytes)), count);
    UNPROTECT(2);
    return out;
}

SEXP tf_module_names(SEXP module, SEXP what) {
    const tn_module *m = handle_of(module, MODULE);
    switch (text_of(what)[0]) {
    case 'm': return value_to_r(tn_module_methods(m));
    case 'p': return value_to_r(tn_module_parameters(m));
    case 'c': return value_to_r(tn_module_children(m));
    default: return value_to_r(tn_module_buffers(m));
    }
}

SEXP tf_module_attribute(SEXP module, SEXP name) {
    return value_to_r(tn_module_attribute(handle_of(module, MODULE), text_of(name)));
}

SEXP tf_module_train(SEXP module, SEXP training) {
    check(tn_module_train(handle_of(module, MODULE), bool_of(training)));
    return module;
}

SEXP tf_module_is_training(SEXP module) { return Rf_ScalarLogical(tn_module_is_training(handle_of(module, MODULE)) == 1); }

SEXP tf_module_to(SEXP module, SEXP device, SEXP dtype) {
    tn_module *m = handle_of(module, MODULE);
    if (device != R_NilValue) check(tn_module_to(m, device_of(device)));
    if (dtype != R_NilValue) check(tn_module_to_dtype(m, dtype_of(dtype)));
    return module;
}

static int64_t write_graph(const void *module, char *buffer, int64_t size) { return tn_module_graph(module, "forward", buffer, size); }
static int64_t write_code(const void *module, char *buffer, int64_t size) { return tn_module_code(module, buffer, size); }

SEXP tf_module_text(SEXP module, SEXP what) {
    return text_to_r(text_of(what)[0] == 'g' ? write_graph : write_code, handle_of(module, MODULE));
}

/* ---- optimizers ---- */

SEXP tf_optimizer(SEXP kind, SEXP parameters, SEXP lr, SEXP options) {
    int64_t count;
    tensor_array given = tensors_of(parameters, &count);
    static const struct {
        const char *name;
        tn_optimizer *(*make)(const tn_tensor *const *, int64_t, double);
    } kinds[] = {{"sgd", tn_optimizer_sgd}, {"adam", tn_optimizer_adam}, {"adamw", tn_optimizer_adamw},
                 {"rmsprop", tn_optimizer_rmsprop}, {"adagrad", tn_optimizer_adagrad}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, text_of(kind)) == 0) {
            SEXP made = PROTECT(give_handle(kinds[i].make(given, count, double_of(lr)), OPTIMIZER));
            SEXP names = Rf_getAttrib(options, R_NamesSymbol);
            for (R_xlen_t j = 0; j < Rf_xlength(options); j++) {
                check(tn_optimizer_set(handle_of(made, OPTIMIZER), CHAR(STRING_ELT(names, j)), double_of(VECTOR_ELT(options, j))));
            }
            UNPROTECT(1);
            return made;
        }
    }
    fail_with(TN_ERROR_NOT_FOUND, "there is no optimizer %s", text_of(kind));
}

SEXP tf_optimizer_step(SEXP optimizer) {
    check(tn_optimizer_step(handle_of(optimizer, OPTIMIZER)));
    return R_NilValue;
}

SEXP tf_optimizer_zero_grad(SEXP optimizer) {
    check(tn_optimizer_zero_grad(handle_of(optimizer, OPTIMIZER)));
    return R_NilValue;
}

SEXP tf_optimizer_get(SEXP optimizer, SEXP option) {
    double value;
    check(tn_optimizer_get(handle_of(optimizer, OPTIMIZER), text_of(option), &value));
    return Rf_ScalarReal(value);
}

SEXP tf_optimizer_set(SEXP optimizer, SEXP option, SEXP value) {
    check(tn_optimizer_set(handle_of(optimizer, OPTIMIZER), text_of(option), double_of(value)));
    return R_NilValue;
}

SEXP tf_optimizer_state(SEXP optimizer) { return value_to_r(tn_optimizer_state(handle_of(optimizer, OPTIMIZER))); }

SEXP tf_optimizer_set_state(SEXP optimizer, SEXP state) {
    tn_optimizer *o = handle_of(optimizer, OPTIMIZER);
    tn_value *value = value_of(state);
    tn_status status = tn_optimizer_set_state(o, value);
    tn_value_free(value);
    check(status);
    return R_NilValue;
}

SEXP tf_train_step(SEXP module, SEXP optimizer, SEXP loss, SEXP inputs, SEXP target) {
    const char *name = text_of(loss);
    if (strcmp(name, "cross_entropy") == 0 || strcmp(name, "nll_loss") == 0) target = place_of(target);
    PROTECT(target);
    int64_t count;
    tensor_array given = tensors_of(inputs, &count);
    SEXP out = give(tn_train_step(handle_of(module, MODULE), handle_of(optimizer, OPTIMIZER), name, given, count, tensor_of(target)));
    UNPROTECT(1);
    return out;
}
