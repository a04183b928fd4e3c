/* bridge.h: what the C files of the package share: handles as external pointers, R values as libtenfold's arguments,
 * and errors as R conditions. An R error jumps, so a tn_ handle that is not yet R's is freed before one is raised. */
#ifndef TENFOLD_R_BRIDGE_H
#define TENFOLD_R_BRIDGE_H

#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>
#include <R_ext/Rdynload.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenfold.h>

/* ---- errors (errors.c) ---- */
void raise_last(void) __attribute__((noreturn));                     /* this thread's error of libtenfold */
void fail_with(int code, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
const char *as_r_writes(double number); /* for a message: NaN, Inf, 1e+20 */
static inline void check(tn_status status) {
    if (status != TN_OK) raise_last();
}
extern SEXP package_env;     /* the package's namespace */
extern int tracing;          /* how many R functions are being traced */
extern SEXP callback_error;  /* a list whose entry is the condition that a callback ended with, or NULL */

/* ---- handles (handles.c) ---- */
typedef enum { TENSOR, GENERATOR, MODULE, OPTIMIZER, HOOK, KINDS } handle_kind;
SEXP give(tn_tensor *tensor);             /* R's own from now on; NULL raises the last error */
SEXP give_or_null(tn_tensor *tensor);     /* the same, R's NULL for an undefined tensor */
SEXP give_place(tn_tensor *tensor);       /* positions, which R counts from 1 */
SEXP give_all(tn_tensor **tensors, int64_t count, const char *const *names, unsigned places);
SEXP give_list(tn_tensor **tensors, int64_t count); /* also frees the array */
SEXP give_places(tn_tensor **tensors, int64_t count);
SEXP give_handle(void *handle, handle_kind kind);
bool is_handle(SEXP x, handle_kind kind);
void *handle_of(SEXP x, handle_kind kind);
static inline bool is_tensor(SEXP x) { return TYPEOF(x) == EXTPTRSXP && is_handle(x, TENSOR); }
static inline tn_tensor *tensor_of(SEXP x) { return (tn_tensor *)handle_of(x, TENSOR); }

SEXP tf_close(SEXP x);
void adopt_handle(SEXP x, void *handle);  /* an external pointer owns a handle from now on */

/* ---- handles in R's own streams (saving.c) ---- */
void register_saving(DllInfo *info);
void make_savable(SEXP handle);
void *open_handle(SEXP handle);           /* its address, NULL where it is closed; what was saved is made again */
void *handle_address(SEXP handle);        /* the same without a jump */

/* ---- R values as arguments (arguments.c); R's NULL is the default ---- */
typedef const tn_tensor *const *tensor_array;
const tn_tensor *tensor_or_null(SEXP x);
SEXP place_of(SEXP x);                    /* a tensor of positions, or a list of them, now from 0 */
tensor_array tensors_of(SEXP x, int64_t *count);
bool is_wide(SEXP x);                     /* whole numbers of package bit64 */
int64_t wide_at(SEXP x, R_xlen_t i);      /* NA is refused */
int64_t int_of(SEXP x);
int64_t dim_of(SEXP x);                   /* from 1, or from the end when negative */
double double_of(SEXP x);
bool bool_of(SEXP x);
const char *text_of(SEXP x);
tn_scalar scalar_of(SEXP x);
tn_dtype dtype_of(SEXP x);
tn_device device_of(SEXP x);
int64_t word_of(SEXP x, char kind);       /* a layout, memory format or reduction */
const int64_t *ints_of(SEXP x, int size, bool dims, const int64_t *otherwise, int64_t otherwise_count, int64_t *count);
const double *doubles_of(SEXP x, int size, int64_t *count);
const bool *bools_of(SEXP x, int size, int64_t *count);
const tn_scalar *scalars_of(SEXP x, int size, int64_t *count);

/* ---- calling operators (dispatch.c), described by the generated ops.c ---- */
enum { OPTIONAL = 1, DIMENSION = 2, PLACE = 4, REDUCTION = 8, HAS_DEFAULT = 16, KEYWORD = 32, NONE_ENTRIES = 64 };
enum { BOOLS = 1, INTS = 2, FLOATS = 4, COMPLEXS = 8 }; /* kinds of numbers */
int numbers_for(char kind);  /* those that stand for a parameter, in the generated operators.c */
typedef struct {
    unsigned char slot;  /* which argument of the R function */
    char kind;           /* T i d b S s D(type) V(device) L M G, small; lists carry a size */
    unsigned char flags;
    short size;          /* 0 no list, -1 a list, n a list of n which one value fills */
} parameter;
typedef struct {
    const char *schema;
    SEXP (*call)(SEXP *values);
    const parameter *parameters;
    int count;
} overload;
typedef struct {
    const char *name;
    const overload *overloads;
    int count;
    int slots;
} operator_entry;
SEXP call_operator(const operator_entry *op, SEXP *given);
const char *describe_value(SEXP x);

/* ---- R's own thread (functions.c), the only one where R may be called ---- */
void remember_thread(void);
bool in_r_thread(void);

/* ---- values (values.c) ---- */
tn_value *value_of(SEXP x);               /* the caller frees it; raises with nothing left over */
tn_stack *stack_of(SEXP list);            /* the same, of a list of values */
SEXP value_to_r(tn_value *value);         /* frees the value */
SEXP tf_call(SEXP name, SEXP arguments);  /* an operator by its name */
SEXP text_to_r(int64_t (*write)(const void *, char *, int64_t), const void *what);

#endif
