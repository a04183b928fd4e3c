/* saving.c: handles in R's own streams, as saveRDS and serialize write them. R writes what an external pointer protects, so
 * each handle protects an object that tells, when it is asked for its state, what the handle's object can be made from again. */
#include "bridge.h"

#include <R_ext/Altrep.h>

static R_altrep_class_t saved_class;

/* The handle that an object stands for: R's package writes its bytes, NULL for what has none. */
static SEXP bytes_of_handle(SEXP object) {
    SEXP handle = R_altrep_data1(object);
    if (R_ExternalPtrAddr(handle) == NULL) return Rf_allocVector(RAWSXP, 0);
    SEXP bytes = Rf_eval(PROTECT(Rf_lang2(Rf_install("bytes_of_handle"), handle)), package_env);
    UNPROTECT(1);
    return bytes == R_NilValue ? Rf_allocVector(RAWSXP, 0) : bytes;
}

/* In another session the bytes themselves are what the handle protects, until it is used. */
static SEXP keep_bytes(SEXP class, SEXP bytes) {
    (void)class;
    return bytes;
}

static R_xlen_t no_elements(SEXP object) {
    (void)object;
    return 0;
}

void register_saving(DllInfo *info) {
    saved_class = R_make_altraw_class("torch_handle", "tenfold", info);
    R_set_altrep_Serialized_state_method(saved_class, bytes_of_handle);
    R_set_altrep_Unserialize_method(saved_class, keep_bytes);
    R_set_altrep_Length_method(saved_class, no_elements);
}

void make_savable(SEXP handle) { R_SetExternalPtrProtected(handle, R_new_altrep(saved_class, handle, R_NilValue)); }

static bool is_saved(SEXP handle) {
    SEXP bytes = R_ExternalPtrProtected(handle);
    return R_ExternalPtrAddr(handle) == NULL && TYPEOF(bytes) == RAWSXP && !ALTREP(bytes) && Rf_xlength(bytes) > 0;
}

/* What was saved becomes a handle again when it is first used. */
void *open_handle(SEXP handle) {
    if (is_saved(handle)) {
        SEXP bytes = R_ExternalPtrProtected(handle);
        SEXP made = PROTECT(Rf_eval(PROTECT(Rf_lang3(Rf_install("handle_from_bytes"), bytes, handle)), package_env));
        void *address = R_ExternalPtrAddr(made);
        R_ClearExternalPtr(made);
        adopt_handle(handle, address);
        UNPROTECT(2);
    }
    return R_ExternalPtrAddr(handle);
}

static void open_quietly(void *handle) { open_handle((SEXP)handle); }

/* The same where R may not jump: NULL where it cannot be made. */
void *handle_address(SEXP handle) {
    if (is_saved(handle)) R_ToplevelExec(open_quietly, handle);
    return R_ExternalPtrAddr(handle);
}
