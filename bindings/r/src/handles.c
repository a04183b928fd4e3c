/* handles.c: libtenfold's handles as external pointers, which R's collector frees, and `close` sooner. */
#include "bridge.h"

#include <string.h>

static const char *const class_names[KINDS] = {"torch_tensor", "torch_generator", "script_handle",
                                               "optimizer_handle", "torch_hook"};
static SEXP tags[KINDS], classes[KINDS];

static void release(void *handle, handle_kind kind) {
    switch (kind) {
    case TENSOR: tn_free(handle); break;
    case GENERATOR: tn_generator_free(handle); break;
    case MODULE: tn_module_free(handle); break;
    case OPTIMIZER: tn_optimizer_free(handle); break;
    default: tn_hook_free(handle); break;
    }
}

static void finalize(SEXP x) {
    void *handle = R_ExternalPtrAddr(x);
    if (handle == NULL) return;
    R_ClearExternalPtr(x);
    for (int kind = 0; kind < KINDS; kind++) {
        if (R_ExternalPtrTag(x) == tags[kind]) release(handle, (handle_kind)kind);
    }
}

static void prepare_handles(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        tags[kind] = Rf_install(class_names[kind]);
        classes[kind] = Rf_mkString(class_names[kind]);
        R_PreserveObject(classes[kind]);
        MARK_NOT_MUTABLE(classes[kind]);
    }
}

SEXP tf_setup(SEXP environment) {
    prepare_handles();
    remember_thread();
    package_env = environment;
    R_PreserveObject(environment);
    callback_error = Rf_allocVector(VECSXP, 1);
    R_PreserveObject(callback_error);
    return R_NilValue;
}

void adopt_handle(SEXP x, void *handle) {
    R_SetExternalPtrAddr(x, handle);
    R_RegisterCFinalizerEx(x, finalize, FALSE);
    make_savable(x);
}

SEXP give_handle(void *handle, handle_kind kind) {
    if (handle == NULL) raise_last();
    SEXP x = PROTECT(R_MakeExternalPtr(handle, tags[kind], R_NilValue));
    if (kind != HOOK) adopt_handle(x, handle); /* a hook stays until it is removed */
    Rf_setAttrib(x, R_ClassSymbol, classes[kind]);
    UNPROTECT(1);
    return x;
}

SEXP give(tn_tensor *tensor) { return give_handle(tensor, TENSOR); }

SEXP give_or_null(tn_tensor *tensor) {
    if (tensor != NULL && tn_tensor_is_defined(tensor) == 0) {
        tn_free(tensor);
        return R_NilValue;
    }
    return give(tensor);
}

SEXP give_place(tn_tensor *tensor) {
    if (tensor == NULL) raise_last();
    if (tn_tensor_is_defined(tensor) == 0) return give_or_null(tensor);
    tn_tensor *counted = tn_add_Scalar(tensor, tn_int(1), tn_int(1));
    tn_free(tensor);
    return give(counted);
}

SEXP give_all(tn_tensor **tensors, int64_t count, const char *const *names, unsigned places) {
    SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
    for (int64_t i = 0; i < count; i++) {
        if (tensors[i] == NULL) continue;
        SET_VECTOR_ELT(list, i, places >> i & 1 ? give_place(tensors[i]) : give_or_null(tensors[i]));
    }
    if (names != NULL) {
        SEXP labels = PROTECT(Rf_allocVector(STRSXP, count));
        for (int64_t i = 0; i < count; i++) SET_STRING_ELT(labels, i, Rf_mkChar(names[i]));
        Rf_setAttrib(list, R_NamesSymbol, labels);
        UNPROTECT(1);
    }
    UNPROTECT(1);
    return list;
}

static SEXP give_array(tn_tensor **tensors, int64_t count, bool places) {
    SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
    for (int64_t i = 0; i < count; i++) {
        tn_tensor *each = tensors[i];
        tensors[i] = NULL;
        SET_VECTOR_ELT(list, i, places ? give_place(each) : give_or_null(each));
    }
    tn_free_all(tensors, count);
    UNPROTECT(1);
    return list;
}

SEXP give_list(tn_tensor **tensors, int64_t count) { return give_array(tensors, count, false); }
SEXP give_places(tn_tensor **tensors, int64_t count) { return give_array(tensors, count, true); }

bool is_handle(SEXP x, handle_kind kind) {
    return TYPEOF(x) == EXTPTRSXP && R_ExternalPtrTag(x) == tags[kind];
}

void *handle_of(SEXP x, handle_kind kind) {
    if (!is_handle(x, kind)) {
        fail_with(TN_ERROR_TYPE, "a %s is needed, not %s", class_names[kind], describe_value(x));
    }
    void *handle = open_handle(x);
    if (handle == NULL) fail_with(TN_ERROR_HANDLE, "this %s was closed, or comes from another session", class_names[kind]);
    return handle;
}

SEXP tf_close(SEXP x) {
    if (TYPEOF(x) != EXTPTRSXP) fail_with(TN_ERROR_TYPE, "%s cannot be closed", describe_value(x));
    finalize(x);
    R_SetExternalPtrProtected(x, R_NilValue);
    return R_NilValue;
}

SEXP tf_is_open(SEXP x) { return Rf_ScalarLogical(TYPEOF(x) == EXTPTRSXP && open_handle(x) != NULL); }
