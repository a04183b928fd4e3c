/* arguments.c: R values as the arguments of libtenfold's functions. What dispatch.c found to fit is converted here. */
#include "bridge.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const tn_tensor *tensor_or_null(SEXP x) { return x == R_NilValue ? NULL : tensor_of(x); }

/* The same for int64 in the host's memory, by hand: most calls are of such, and six operators would cost more. A trace
 * records operators only, so it takes the long way. */
static tn_tensor *counted_here(const tn_tensor *tensor) {
    int64_t n = tn_tensor_numel(tensor), sizes[64];
    const int64_t *from = tn_tensor_data(tensor);
    int64_t rank = tn_tensor_shape(tensor, sizes, 64);
    int64_t *to = (int64_t *)R_alloc(n + 1, sizeof *to);
    for (int64_t i = 0; i < n; i++) {
        if (from[i] == 0) fail_with(TN_ERROR_INDEX, "Indexing starts at 1 but found a 0.");
        to[i] = from[i] - (from[i] > 0);
    }
    return tn_tensor_from_data(to, TN_INT64, sizes, rank, NULL, 0);
}

/* Positions counted from 0. Negative entries, as a loss's ignore_index, stay. */
SEXP place_of(SEXP x) {
    if (TYPEOF(x) == VECSXP) {
        SEXP list = PROTECT(Rf_allocVector(VECSXP, Rf_xlength(x)));
        for (R_xlen_t i = 0; i < Rf_xlength(x); i++) SET_VECTOR_ELT(list, i, place_of(VECTOR_ELT(x, i)));
        UNPROTECT(1);
        return list;
    }
    if (x == R_NilValue) return x;
    tn_tensor *tensor = tensor_of(x);
    tn_dtype dtype = tn_tensor_dtype(tensor);
    bool whole = dtype == TN_INT64 || dtype == TN_INT32 || dtype == TN_INT16 || dtype == TN_INT8;
    if (!whole) return x; /* a mask, or a loss's target of probabilities */
    tn_device device;
    check(tn_tensor_device(tensor, &device));
    bool here = dtype == TN_INT64 && device.type == TN_CPU && tracing == 0 && tn_tensor_dim(tensor) <= 64;
    if (here && tn_tensor_is_contiguous(tensor) == 1) return give(counted_here(tensor));
    tn_tensor *zero = tn_eq_Scalar(tensor, tn_int(0));
    tn_tensor *any = zero ? tn_any(zero) : NULL;
    tn_scalar found = tn_bool(false);
    tn_status status = any ? tn_tensor_item(any, &found) : TN_ERROR_TORCH;
    tn_free(zero);
    tn_free(any);
    if (status != TN_OK) raise_last();
    if (found.as.b) fail_with(TN_ERROR_INDEX, "Indexing starts at 1 but found a 0.");
    tn_tensor *positive = tn_gt_Scalar(tensor, tn_int(0));
    tn_tensor *ones = positive ? tn__to_copy_with(positive, &dtype, NULL, NULL, NULL, NULL, NULL) : NULL;
    tn_tensor *counted = ones ? tn_sub(tensor, ones) : NULL;
    tn_free(positive);
    tn_free(ones);
    return give(counted);
}

tensor_array tensors_of(SEXP x, int64_t *count) {
    R_xlen_t n = Rf_xlength(x);
    *count = n;
    const tn_tensor **out = (const tn_tensor **)R_alloc(n > 0 ? n : 1, sizeof *out);
    for (R_xlen_t i = 0; i < n; i++) {
        out[i] = tensor_or_null(TYPEOF(x) == VECSXP ? VECTOR_ELT(x, i) : x);
    }
    return out;
}

/* Whole numbers of package bit64, whose bits lie in doubles. */
bool is_wide(SEXP x) { return TYPEOF(x) == REALSXP && OBJECT(x) && Rf_inherits(x, "integer64"); }

int64_t wide_at(SEXP x, R_xlen_t i) {
    int64_t number;
    memcpy(&number, REAL(x) + i, sizeof number);
    if (number == INT64_MIN) fail_with(TN_ERROR_ARGUMENT, "NA is no whole number");
    return number;
}

static double number_at(SEXP x, R_xlen_t i) {
    if (is_wide(x)) return (double)wide_at(x, i);
    switch (TYPEOF(x)) {
    case LGLSXP: return LOGICAL(x)[i] == NA_LOGICAL ? NA_REAL : LOGICAL(x)[i];
    case INTSXP: return INTEGER(x)[i] == NA_INTEGER ? NA_REAL : INTEGER(x)[i];
    case REALSXP: return REAL(x)[i];
    case VECSXP: return Rf_xlength(VECTOR_ELT(x, i)) == 1 ? number_at(VECTOR_ELT(x, i), 0) : NA_REAL;
    default: return NA_REAL;
    }
}

static int64_t whole(double number) {
    if (R_IsNA(number)) fail_with(TN_ERROR_ARGUMENT, "NA is no whole number");
    if (!(number == floor(number) && fabs(number) <= 9007199254740992.0)) {
        const bool fraction = !R_FINITE(number) || number != floor(number);
        fail_with(TN_ERROR_ARGUMENT, fraction ? "%s is no whole number" : "%s is beyond 2^53, where R's numbers skip integers", as_r_writes(number));
    }
    return (int64_t)number;
}

static int64_t whole_at(SEXP x, R_xlen_t i) {
    if (TYPEOF(x) == VECSXP && Rf_xlength(VECTOR_ELT(x, i)) == 1) return whole_at(VECTOR_ELT(x, i), 0);
    return is_wide(x) ? wide_at(x, i) : whole(number_at(x, i));
}

int64_t int_of(SEXP x) {
    if (Rf_xlength(x) != 1) fail_with(TN_ERROR_ARGUMENT, "one whole number is needed, not %s", describe_value(x));
    return whole_at(x, 0);
}

static int64_t dimension(int64_t given) {
    if (given == 0) fail_with(TN_ERROR_ARGUMENT, "Dimension is 1-based, but found 0: -1 is the last one");
    return given > 0 ? given - 1 : given;
}

int64_t dim_of(SEXP x) { return dimension(int_of(x)); }

double double_of(SEXP x) {
    double number = Rf_xlength(x) == 1 ? number_at(x, 0) : NA_REAL;
    if (R_IsNA(number)) fail_with(TN_ERROR_ARGUMENT, "one number is needed, not %s", describe_value(x));
    return number;
}

bool bool_of(SEXP x) {
    if (TYPEOF(x) != LGLSXP || Rf_xlength(x) != 1 || LOGICAL(x)[0] == NA_LOGICAL) {
        fail_with(TN_ERROR_ARGUMENT, "TRUE or FALSE is needed, not %s", describe_value(x));
    }
    return LOGICAL(x)[0] != 0;
}

const char *text_of(SEXP x) {
    if (TYPEOF(x) != STRSXP || Rf_xlength(x) != 1 || STRING_ELT(x, 0) == NA_STRING) {
        fail_with(TN_ERROR_ARGUMENT, "one string is needed, not %s", describe_value(x));
    }
    return Rf_translateCharUTF8(STRING_ELT(x, 0));
}

tn_scalar scalar_of(SEXP x) {
    if (Rf_xlength(x) == 1) {
        switch (TYPEOF(x)) {
        case LGLSXP:
            if (LOGICAL(x)[0] != NA_LOGICAL) return tn_bool(LOGICAL(x)[0] != 0);
            break;
        case INTSXP:
            if (INTEGER(x)[0] != NA_INTEGER) return tn_int(INTEGER(x)[0]);
            break;
        case REALSXP:
            if (is_wide(x)) return tn_int(wide_at(x, 0));
            if (!R_IsNA(REAL(x)[0])) return tn_double(REAL(x)[0]);
            break;
        case CPLXSXP: return tn_complex_number(COMPLEX(x)[0].r, COMPLEX(x)[0].i);
        default: break;
        }
    }
    fail_with(TN_ERROR_ARGUMENT, "one number is needed, not %s", describe_value(x));
}

static const struct {
    const char *name;
    int code;
} dtype_words[] = {
    {"float", TN_FLOAT32}, {"float32", TN_FLOAT32}, {"double", TN_FLOAT64}, {"float64", TN_FLOAT64},
    {"half", TN_FLOAT16}, {"float16", TN_FLOAT16}, {"bfloat16", TN_BFLOAT16}, {"uint8", TN_UINT8},
    {"int8", TN_INT8}, {"short", TN_INT16}, {"int16", TN_INT16}, {"int", TN_INT32}, {"int32", TN_INT32},
    {"long", TN_INT64}, {"int64", TN_INT64}, {"bool", TN_BOOL}, {"cfloat", TN_COMPLEX64},
    {"complex64", TN_COMPLEX64}, {"cdouble", TN_COMPLEX128}, {"complex128", TN_COMPLEX128},
    {"complex32", TN_COMPLEX32}, {"uint16", TN_UINT16}, {"uint32", TN_UINT32}, {"uint64", TN_UINT64},
    {"float8_e4m3fn", TN_FLOAT8_E4M3FN}, {"float8_e5m2", TN_FLOAT8_E5M2}, {"quint8", TN_QUINT8}, {"qint8", TN_QINT8},
    {"qint32", TN_QINT32},
};

tn_dtype dtype_of(SEXP x) {
    if (TYPEOF(x) == INTSXP && Rf_xlength(x) == 1 && Rf_inherits(x, "torch_dtype")) return INTEGER(x)[0];
    const char *name = text_of(x);
    for (size_t i = 0; i < sizeof dtype_words / sizeof *dtype_words; i++) {
        if (strcmp(name, dtype_words[i].name) == 0) return dtype_words[i].code;
    }
    fail_with(TN_ERROR_ARGUMENT, "no element type is called '%s'", name);
}

tn_device device_of(SEXP x) {
    if (Rf_inherits(x, "torch_device") && TYPEOF(x) == VECSXP && Rf_xlength(x) == 1) x = VECTOR_ELT(x, 0);
    const char *name = text_of(x);
    static const struct {
        const char *name;
        int type;
    } types[] = {{"cpu", TN_CPU}, {"cuda", TN_CUDA}, {"meta", TN_META}};
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(types[i].name);
        if (strncmp(name, types[i].name, length) == 0) {
            char *end = NULL;
            if (name[length] == '\0') return (tn_device){types[i].type, -1};
            long index = name[length] == ':' ? strtol(name + length + 1, &end, 10) : -1;
            if (index >= 0 && index <= INT_MAX && end != name + length + 1 && *end == '\0') return (tn_device){types[i].type, (int)index};
        }
    }
    fail_with(TN_ERROR_ARGUMENT, "'%s' is no device: cpu, cuda, cuda:1 and meta are", name);
}

int64_t word_of(SEXP x, char kind) {
    static const char *const layouts[] = {"strided", "sparse_coo", "sparse_csr", "mkldnn", "sparse_csc", NULL};
    static const char *const formats[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d", NULL};
    static const char *const reductions[] = {"none", "mean", "sum", NULL};
    if (kind == 'r' && TYPEOF(x) != STRSXP) return int_of(x);
    const char *const *words = kind == 'L' ? layouts : kind == 'M' ? formats : reductions;
    const char *name = text_of(x);
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], name) == 0) return i;
    }
    fail_with(TN_ERROR_ARGUMENT, "'%s' is not known here: '%s', '%s' and '%s' are", name, words[0], words[1], words[2]);
}

const int64_t *ints_of(SEXP x, int size, bool dims, const int64_t *otherwise, int64_t otherwise_count, int64_t *count) {
    if (x == R_NilValue) {
        *count = otherwise_count;
        return otherwise;
    }
    R_xlen_t n = Rf_xlength(x);
    bool fill = n == 1 && size > 1;
    *count = fill ? size : n;
    int64_t *out = (int64_t *)R_alloc(*count > 0 ? *count : 1, sizeof *out);
    for (int64_t i = 0; i < *count; i++) {
        out[i] = whole_at(x, fill ? 0 : i);
        if (dims && out[i] == 0 && n > 1) fail_with(TN_ERROR_INDEX, "Indexing starts at 1 but found a 0.");
        if (dims) out[i] = dimension(out[i]);
    }
    return out;
}

const double *doubles_of(SEXP x, int size, int64_t *count) {
    R_xlen_t n = Rf_xlength(x);
    bool fill = n == 1 && size > 1;
    *count = fill ? size : n;
    double *out = (double *)R_alloc(*count > 0 ? *count : 1, sizeof *out);
    for (int64_t i = 0; i < *count; i++) {
        out[i] = number_at(x, fill ? 0 : i);
        if (R_IsNA(out[i])) fail_with(TN_ERROR_ARGUMENT, "NA is no number here");
    }
    return out;
}

const bool *bools_of(SEXP x, int size, int64_t *count) {
    R_xlen_t n = Rf_xlength(x);
    bool fill = n == 1 && size > 1;
    *count = fill ? size : n;
    bool *out = (bool *)R_alloc(*count > 0 ? *count : 1, sizeof *out);
    for (int64_t i = 0; i < *count; i++) {
        double number = number_at(x, fill ? 0 : i);
        if (R_IsNA(number)) fail_with(TN_ERROR_ARGUMENT, "NA is neither TRUE nor FALSE");
        out[i] = number != 0;
    }
    return out;
}

const tn_scalar *scalars_of(SEXP x, int size, int64_t *count) {
    R_xlen_t n = Rf_xlength(x);
    *count = n;
    tn_scalar *out = (tn_scalar *)R_alloc(n > 0 ? n : 1, sizeof *out);
    for (R_xlen_t i = 0; i < n; i++) {
        if (TYPEOF(x) == VECSXP) out[i] = scalar_of(VECTOR_ELT(x, i));
        else if (TYPEOF(x) == INTSXP || is_wide(x)) out[i] = tn_int(whole_at(x, i));
        else if (TYPEOF(x) == LGLSXP) out[i] = tn_bool(whole(number_at(x, i)) != 0);
        else out[i] = tn_double(number_at(x, i));
    }
    return out;
}
