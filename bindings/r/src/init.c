/* init.c: what R may call, and what the library as a whole can be asked: memory, threads, seeds, files. */
#define _GNU_SOURCE
#include "bridge.h"

#include <stdio.h>
#include <R_ext/Rdynload.h>
#include <stdlib.h>

/* ---- memory: R does not see what tensors hold, so libtenfold says when to collect ---- */

static bool collecting = false;

static void collect(int64_t live_bytes, void *user) {
    if (collecting || !in_r_thread()) return;
    collecting = true;
    R_gc();
    collecting = false;
}

SEXP tf_set_pressure(SEXP bytes) {
    int64_t mark = (int64_t)double_of(bytes);
    check(tn_set_pressure_callback(mark, mark > 0 ? collect : NULL, NULL));
    return R_NilValue;
}

SEXP tf_memory(void) {
    SEXP out = PROTECT(Rf_allocVector(REALSXP, 4));
    SEXP names = PROTECT(Rf_allocVector(STRSXP, 4));
    const char *labels[] = {"tensors", "objects", "bytes", "peak_bytes"};
    int64_t numbers[] = {tn_live_tensors(), tn_live_objects(), tn_live_bytes(), tn_peak_bytes()};
    for (int i = 0; i < 4; i++) {
        SET_STRING_ELT(names, i, Rf_mkChar(labels[i]));
        REAL(out)[i] = (double)numbers[i];
    }
    Rf_setAttrib(out, R_NamesSymbol, names);
    UNPROTECT(2);
    return out;
}

SEXP tf_available(void) {
    int found = tn_available();
    return Rf_ScalarLogical(found == 1);
}

SEXP tf_versions(void) {
    SEXP out = PROTECT(Rf_allocVector(STRSXP, 2));
    SET_STRING_ELT(out, 0, Rf_mkChar(tn_version()));
    const char *torch = tn_torch_version();
    SET_STRING_ELT(out, 1, torch ? Rf_mkChar(torch) : NA_STRING);
    UNPROTECT(1);
    return out;
}

SEXP tf_cuda_available(void) { return Rf_ScalarLogical(tn_cuda_available() == 1); }

SEXP tf_device_count(void) {
    int64_t count = tn_device_count(TN_CUDA);
    if (count < 0) raise_last();
    return Rf_ScalarInteger((int)count);
}

SEXP tf_has_backend(SEXP name) {
    int found = tn_has_backend(text_of(name));
    if (found < 0) raise_last();
    return Rf_ScalarLogical(found);
}

SEXP tf_backend_version(SEXP name) {
    int64_t version = tn_backend_version(text_of(name));
    if (version < 0) raise_last();
    return Rf_ScalarInteger((int)version);
}

SEXP tf_device_capability(SEXP device) {
    int64_t major, minor;
    check(tn_device_capability(device_of(device), &major, &minor));
    SEXP out = PROTECT(Rf_allocVector(INTSXP, 2));
    INTEGER(out)[0] = (int)major;
    INTEGER(out)[1] = (int)minor;
    UNPROTECT(1);
    return out;
}

SEXP tf_memory_statistic(SEXP device, SEXP name) {
    int64_t count = tn_memory_statistic(device_of(device), text_of(name));
    if (count < 0) raise_last();
    return Rf_ScalarReal((double)count);
}

SEXP tf_memory_record_history(SEXP enabled, SEXP context, SEXP stacks, SEXP entries) {
    const char *events = enabled == R_NilValue ? NULL : text_of(enabled), *kept = context == R_NilValue ? NULL : text_of(context);
    check(tn_memory_record_history(events, kept, text_of(stacks), int_of(entries)));
    return R_NilValue;
}

SEXP tf_memory_snapshot(void) { return give(tn_memory_snapshot()); }

SEXP tf_synchronize(SEXP device) {
    check(tn_synchronize(device_of(device)));
    return R_NilValue;
}

SEXP tf_empty_cache(void) {
    check(tn_empty_cache());
    return R_NilValue;
}

SEXP tf_manual_seed(SEXP seed) {
    check(tn_manual_seed((uint64_t)int_of(seed)));
    return R_NilValue;
}

SEXP tf_generator(SEXP seed, SEXP device) {
    return give_handle(tn_generator_new(device_of(device), (uint64_t)int_of(seed)), GENERATOR);
}

SEXP tf_default_generator(SEXP device) { return give_handle(tn_generator_default(device_of(device)), GENERATOR); }

SEXP tf_generator_state(SEXP generator) { return give(tn_generator_state(handle_of(generator, GENERATOR))); }

/* A seed has more digits than R's numbers: it goes as text. */
SEXP tf_generator_seed(SEXP generator) {
    uint64_t seed;
    check(tn_generator_seed(handle_of(generator, GENERATOR), &seed));
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    return Rf_mkString(text);
}

SEXP tf_generator_set_seed(SEXP generator, SEXP digits) {
    check(tn_generator_set_seed(handle_of(generator, GENERATOR), strtoull(text_of(digits), NULL, 10)));
    return R_NilValue;
}

SEXP tf_generator_set_state(SEXP generator, SEXP state) {
    check(tn_generator_set_state(handle_of(generator, GENERATOR), tensor_of(state)));
    return R_NilValue;
}

SEXP tf_threads(SEXP threads) {
    if (threads != R_NilValue) check(tn_set_threads(int_of(threads)));
    return Rf_ScalarInteger((int)tn_threads());
}

SEXP tf_interop_threads(SEXP threads) {
    if (threads != R_NilValue) check(tn_set_interop_threads(int_of(threads)));
    return Rf_ScalarInteger((int)tn_interop_threads());
}

SEXP tf_save(SEXP path, SEXP names, SEXP tensors) {
    int64_t count;
    tensor_array given = tensors_of(tensors, &count);
    const char **labels = (const char **)R_alloc(count + 1, sizeof *labels);
    for (int64_t i = 0; i < count; i++) labels[i] = Rf_translateCharUTF8(STRING_ELT(names, i));
    check(tn_save_safetensors(R_ExpandFileName(text_of(path)), labels, given, count));
    return R_NilValue;
}

SEXP tf_load(SEXP path) { return value_to_r(tn_load_safetensors(R_ExpandFileName(text_of(path)))); }

/* ---- registration ---- */

extern void register_callables(void); /* callables.c */

extern const R_CallMethodDef operator_methods[]; /* operators.c */

extern SEXP tf_setup(SEXP);
extern SEXP tf_arith(SEXP, SEXP, SEXP);
extern SEXP tf_close(SEXP);
extern SEXP tf_is_open(SEXP);
extern SEXP tf_from_vector(SEXP, SEXP, SEXP, SEXP);
extern SEXP tf_from_buffer(SEXP, SEXP, SEXP);
extern SEXP tf_to_vector(SEXP);
extern SEXP tf_int64_text(SEXP);
extern SEXP tf_shape(SEXP);
extern SEXP tf_strides(SEXP);
extern SEXP tf_dtype(SEXP);
extern SEXP tf_dtype_name(SEXP);
extern SEXP tf_device(SEXP);
extern SEXP tf_numel(SEXP);
extern SEXP tf_item(SEXP);
extern SEXP tf_to(SEXP, SEXP, SEXP, SEXP, SEXP);
extern SEXP tf_address(SEXP);
extern SEXP tf_is_same(SEXP, SEXP);
extern SEXP tf_is_contiguous(SEXP);
extern SEXP tf_requires_grad(SEXP);
extern SEXP tf_is_leaf(SEXP);
extern SEXP tf_set_requires_grad(SEXP, SEXP);
extern SEXP tf_retain_grad(SEXP);
extern SEXP tf_grad(SEXP);
extern SEXP tf_set_grad(SEXP, SEXP);
extern SEXP tf_backward(SEXP, SEXP, SEXP, SEXP);
extern SEXP tf_gradients(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
extern SEXP tf_hook(SEXP, SEXP);
extern SEXP tf_function(SEXP, SEXP, SEXP, SEXP);
extern SEXP tf_scope_begin(SEXP);
extern SEXP tf_autocast_begin(SEXP, SEXP, SEXP);
extern SEXP tf_default_dtype(SEXP);
extern SEXP tf_grad_fn(SEXP);
extern SEXP tf_grad_fn_next(SEXP, SEXP);
extern SEXP tf_scope_end(SEXP);
extern SEXP tf_grad_enabled(void);
extern SEXP tf_index(SEXP, SEXP, SEXP);
extern SEXP tf_index_put(SEXP, SEXP, SEXP);
extern SEXP tf_stack(SEXP);
extern SEXP tf_call(SEXP, SEXP);
extern SEXP tf_operator_names(void);
extern SEXP tf_module_call(SEXP, SEXP, SEXP);
extern SEXP tf_trace_method(SEXP, SEXP, SEXP, SEXP, SEXP);
extern SEXP tf_module_new(SEXP);
extern SEXP tf_module_set(SEXP, SEXP, SEXP, SEXP);
extern SEXP tf_module_add_child(SEXP, SEXP);
extern SEXP tf_module_child(SEXP, SEXP);
extern SEXP tf_module_arity(SEXP, SEXP);
extern SEXP tf_layout_name(SEXP);
extern SEXP tf_library_path(SEXP);
extern SEXP tf_data_address(SEXP);
extern SEXP tf_store_condition(SEXP);
extern SEXP tf_module_load(SEXP, SEXP);
extern SEXP tf_module_compile(SEXP);
extern SEXP tf_module_save(SEXP, SEXP);
extern SEXP tf_module_save_for_mobile(SEXP, SEXP);
extern SEXP tf_module_save_data(SEXP);
extern SEXP tf_module_names(SEXP, SEXP);
extern SEXP tf_module_attribute(SEXP, SEXP);
extern SEXP tf_module_train(SEXP, SEXP);
extern SEXP tf_module_is_training(SEXP);
extern SEXP tf_module_to(SEXP, SEXP, SEXP);
extern SEXP tf_module_text(SEXP, SEXP);
extern SEXP tf_optimizer(SEXP, SEXP, SEXP, SEXP);
extern SEXP tf_optimizer_step(SEXP);
extern SEXP tf_optimizer_zero_grad(SEXP);
extern SEXP tf_optimizer_get(SEXP, SEXP);
extern SEXP tf_optimizer_set(SEXP, SEXP, SEXP);
extern SEXP tf_optimizer_state(SEXP);
extern SEXP tf_optimizer_set_state(SEXP, SEXP);
extern SEXP tf_train_step(SEXP, SEXP, SEXP, SEXP, SEXP);

#define ENTRY(name, count) {#name, (DL_FUNC)&name, count}
static const R_CallMethodDef written_methods[] = {
    ENTRY(tf_setup, 1), ENTRY(tf_arith, 3), ENTRY(tf_close, 1), ENTRY(tf_is_open, 1), ENTRY(tf_from_vector, 4), ENTRY(tf_from_buffer, 3),
    ENTRY(tf_to_vector, 1), ENTRY(tf_int64_text, 1), ENTRY(tf_shape, 1), ENTRY(tf_strides, 1), ENTRY(tf_dtype, 1),
    ENTRY(tf_dtype_name, 1), ENTRY(tf_device, 1), ENTRY(tf_numel, 1), ENTRY(tf_item, 1), ENTRY(tf_to, 5),
    ENTRY(tf_address, 1), ENTRY(tf_is_same, 2), ENTRY(tf_is_contiguous, 1), ENTRY(tf_requires_grad, 1), ENTRY(tf_is_leaf, 1),
    ENTRY(tf_set_requires_grad, 2), ENTRY(tf_retain_grad, 1), ENTRY(tf_grad, 1), ENTRY(tf_set_grad, 2),
    ENTRY(tf_backward, 4), ENTRY(tf_gradients, 6), ENTRY(tf_hook, 2), ENTRY(tf_function, 4), ENTRY(tf_scope_begin, 1), ENTRY(tf_autocast_begin, 3), ENTRY(tf_default_dtype, 1), ENTRY(tf_grad_fn, 1), ENTRY(tf_grad_fn_next, 2), ENTRY(tf_interop_threads, 1), ENTRY(tf_scope_end, 1),
    ENTRY(tf_grad_enabled, 0), ENTRY(tf_index, 3), ENTRY(tf_index_put, 3), ENTRY(tf_stack, 1),
    ENTRY(tf_call, 2), ENTRY(tf_operator_names, 0), ENTRY(tf_module_call, 3), ENTRY(tf_trace_method, 5),
    ENTRY(tf_module_new, 1), ENTRY(tf_module_set, 4), ENTRY(tf_module_add_child, 2), ENTRY(tf_module_child, 2),
    ENTRY(tf_module_arity, 2), ENTRY(tf_layout_name, 1), ENTRY(tf_library_path, 1), ENTRY(tf_data_address, 1), ENTRY(tf_generator_seed, 1),
    ENTRY(tf_generator_set_seed, 2), ENTRY(tf_store_condition, 1),
    ENTRY(tf_module_load, 2), ENTRY(tf_module_compile, 1), ENTRY(tf_module_save, 2), ENTRY(tf_module_save_for_mobile, 2), ENTRY(tf_module_save_data, 1), ENTRY(tf_module_names, 2),
    ENTRY(tf_module_attribute, 2), ENTRY(tf_module_train, 2), ENTRY(tf_module_is_training, 1),
    ENTRY(tf_module_to, 3), ENTRY(tf_module_text, 2), ENTRY(tf_optimizer, 4),
    ENTRY(tf_optimizer_step, 1), ENTRY(tf_optimizer_zero_grad, 1), ENTRY(tf_optimizer_get, 2),
    ENTRY(tf_optimizer_set, 3), ENTRY(tf_optimizer_state, 1), ENTRY(tf_optimizer_set_state, 2),
    ENTRY(tf_train_step, 5), ENTRY(tf_set_pressure, 1), ENTRY(tf_memory, 0), ENTRY(tf_available, 0),
    ENTRY(tf_versions, 0), ENTRY(tf_cuda_available, 0), ENTRY(tf_device_count, 0), ENTRY(tf_has_backend, 1),
    ENTRY(tf_backend_version, 1), ENTRY(tf_device_capability, 1), ENTRY(tf_memory_statistic, 2),
    ENTRY(tf_memory_record_history, 4), ENTRY(tf_memory_snapshot, 0),
    ENTRY(tf_synchronize, 1), ENTRY(tf_empty_cache, 0), ENTRY(tf_manual_seed, 1),
    ENTRY(tf_default_generator, 1), ENTRY(tf_generator_state, 1), ENTRY(tf_generator_set_state, 2),
    ENTRY(tf_generator, 2), ENTRY(tf_threads, 1), ENTRY(tf_save, 3), ENTRY(tf_load, 1),
};

void R_init_tenfold(DllInfo *info) {
    size_t own = sizeof written_methods / sizeof *written_methods, all = own;
    while (operator_methods[all - own].name != NULL) all++;
    R_CallMethodDef *methods = calloc(all + 1, sizeof *methods);
    if (methods == NULL) Rf_error("memory ran out");
    for (size_t i = 0; i < all; i++) methods[i] = i < own ? written_methods[i] : operator_methods[i - own];
    R_registerRoutines(info, NULL, methods, NULL, NULL);
    R_useDynamicSymbols(info, FALSE);
    R_forceSymbols(info, TRUE);
    free(methods);
    register_saving(info);
    register_callables();
}
