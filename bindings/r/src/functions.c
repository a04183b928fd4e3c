/* functions.c: R functions that libtorch calls: gradients of functions of the user's own, and hooks on gradients.
 * On a CPU libtorch calls them in the thread that asked for gradients, which is R's; in any other they fail. */
#include "bridge.h"

#include <pthread.h>

static pthread_t r_thread;

void remember_thread(void) { r_thread = pthread_self(); }
bool in_r_thread(void) { return pthread_equal(pthread_self(), r_thread); }

static tn_status wrong_thread(void) {
    return tn_fail("an R function runs in R's own thread alone, and this gradient is computed in another");
}

/* What is no longer called from libtorch. In another thread R's list of what to keep must not be touched. */
static void forget(void *kept) {
    if (in_r_thread()) R_ReleaseObject((SEXP)kept);
}

/* An R function that is called where no jump may pass, and the places that its results are shared into. */
typedef struct {
    SEXP function;
    tn_tensor **outputs;
    int64_t outputs_count;
    bool done;
} r_call;

static SEXP shared(const tn_tensor *const *tensors, int64_t count) {
    SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
    for (int64_t i = 0; i < count; i++) {
        if (tensors[i] != NULL) SET_VECTOR_ELT(list, i, give(tn_tensor_share(tensors[i])));
    }
    UNPROTECT(1);
    return list;
}

static void take_results(r_call *call, SEXP results) {
    if (TYPEOF(results) != VECSXP || Rf_xlength(results) != call->outputs_count) return;
    for (int64_t i = 0; i < call->outputs_count; i++) {
        SEXP each = VECTOR_ELT(results, i);
        if (each != R_NilValue && (!is_tensor(each) || handle_address(each) == NULL)) return;
    }
    for (int64_t i = 0; i < call->outputs_count; i++) {
        SEXP each = VECTOR_ELT(results, i);
        if (each != R_NilValue) call->outputs[i] = tn_tensor_share(handle_address(each));
    }
    call->done = true;
}

/* ---- hooks ---- */

typedef struct {
    r_call call;
    const tn_tensor *gradient;
} hook_call;

static void run_hook(void *given) {
    hook_call *hook = given;
    SEXP list = PROTECT(shared(&hook->gradient, 1));
    SEXP expression = PROTECT(Rf_lang2(hook->call.function, list));
    take_results(&hook->call, PROTECT(Rf_eval(expression, R_GlobalEnv)));
    UNPROTECT(3);
}

static tn_status hook_callback(const tn_tensor *gradient, tn_tensor **out, void *user) {
    if (!in_r_thread()) return wrong_thread();
    hook_call hook = {{VECTOR_ELT((SEXP)user, 0), out, 1, false}, gradient};
    if (!R_ToplevelExec(run_hook, &hook)) return tn_fail("the R function was left by a jump");
    return hook.call.done ? TN_OK : tn_fail("a hook failed, or gave neither a tensor nor NULL");
}

/* The graph that a hook hung on is gone, or the hook was removed: its handle goes with it. */
static void forget_hook(void *kept) {
    if (!in_r_thread()) return;
    SEXP handle = VECTOR_ELT((SEXP)kept, 1);
    if (handle != R_NilValue) tf_close(handle);
    R_ReleaseObject((SEXP)kept);
}

SEXP tf_hook(SEXP tensor, SEXP function) {
    SEXP holder = PROTECT(Rf_allocVector(VECSXP, 2));
    SET_VECTOR_ELT(holder, 0, function);
    R_PreserveObject(holder);
    tn_hook *hook = tn_hook_new(tensor_of(tensor), hook_callback, holder, forget_hook);
    if (hook == NULL) {
        R_ReleaseObject(holder);
        raise_last();
    }
    SEXP handle = give_handle(hook, HOOK);
    SET_VECTOR_ELT(holder, 1, handle);
    UNPROTECT(1);
    return handle;
}

/* ---- functions with a gradient of their own ---- */

/* Forward ran in R before this call: `holder` has its results and what it keeps. */
static tn_status forward_callback(tn_context *context, const tn_tensor *const *inputs, int64_t inputs_count,
                                  tn_tensor **outputs, int64_t outputs_count, void *user) {
    SEXP results = VECTOR_ELT((SEXP)user, 0), kept = VECTOR_ELT((SEXP)user, 1);
    int64_t count = Rf_xlength(kept);
    const tn_tensor *saved[64];
    if (count > 64) return tn_fail("more than 64 tensors cannot be kept for backward");
    for (int64_t i = 0; i < count; i++) saved[i] = handle_address(VECTOR_ELT(kept, i));
    tn_status status = tn_context_save(context, saved, count);
    for (int64_t i = 0; status == TN_OK && i < outputs_count; i++) {
        outputs[i] = tn_tensor_share(handle_address(VECTOR_ELT(results, i)));
        if (outputs[i] == NULL) status = tn_error_code();
    }
    return status;
}

typedef struct {
    r_call call;
    tn_context *context;
    const tn_tensor *const *gradients;
    int64_t gradients_count;
} backward_call;

static void run_backward(void *given) {
    backward_call *backward = given;
    SEXP gradients = PROTECT(shared(backward->gradients, backward->gradients_count));
    int64_t count = tn_context_saved_count(backward->context);
    SEXP saved = PROTECT(Rf_allocVector(VECSXP, count));
    for (int64_t i = 0; i < count; i++) SET_VECTOR_ELT(saved, i, give_or_null(tn_context_saved(backward->context, i)));
    SEXP expression = PROTECT(Rf_lang3(backward->call.function, gradients, saved));
    take_results(&backward->call, PROTECT(Rf_eval(expression, R_GlobalEnv)));
    UNPROTECT(4);
}

static tn_status backward_callback(tn_context *context, const tn_tensor *const *gradients, int64_t gradients_count,
                                   tn_tensor **outputs, int64_t outputs_count, void *user) {
    if (!in_r_thread()) return wrong_thread();
    backward_call backward = {{VECTOR_ELT((SEXP)user, 2), outputs, outputs_count, false}, context,
                              gradients, gradients_count};
    if (!R_ToplevelExec(run_backward, &backward)) return tn_fail("the R function was left by a jump");
    return backward.call.done ? TN_OK : tn_fail("backward failed, or did not give a gradient or NULL for each input");
}

/* The results of forward, joined to a graph whose gradient `backward` computes from gradients and what was kept. */
SEXP tf_function(SEXP inputs, SEXP results, SEXP kept, SEXP backward) {
    SEXP holder = PROTECT(Rf_allocVector(VECSXP, 3));
    SET_VECTOR_ELT(holder, 0, results);
    SET_VECTOR_ELT(holder, 1, kept);
    SET_VECTOR_ELT(holder, 2, backward);
    int64_t count, outputs_count = Rf_xlength(results);
    tensor_array given = tensors_of(inputs, &count);
    for (int64_t i = 0; i < outputs_count; i++) tensor_of(VECTOR_ELT(results, i));
    for (int64_t i = 0; i < Rf_xlength(kept); i++) tensor_of(VECTOR_ELT(kept, i));
    tn_tensor **out = (tn_tensor **)R_alloc(outputs_count + 1, sizeof *out);
    for (int64_t i = 0; i < outputs_count; i++) out[i] = NULL;
    R_PreserveObject(holder);
    tn_function *function =
        tn_function_new("an R function", forward_callback, backward_callback, outputs_count, holder, forget);
    if (function == NULL) {
        R_ReleaseObject(holder);
        raise_last();
    }
    tn_status status = tn_function_call(function, given, count, out, outputs_count);
    tn_function_free(function);
    /* The results now know the graph that holds them: nothing here may, or none would ever be freed. */
    SET_VECTOR_ELT(holder, 0, R_NilValue);
    SET_VECTOR_ELT(holder, 1, R_NilValue);
    check(status);
    SEXP made = give_all(out, outputs_count, NULL, 0);
    UNPROTECT(1);
    return made;
}
