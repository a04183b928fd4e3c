/* tensors.c: tensors from R's vectors and arrays and back, what they are, and their gradients. */
#include "bridge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const tn_memory_format row_major = TN_CONTIGUOUS_FORMAT;

/* The numbers that an integer type holds: from `least` up to, but without, `beyond`. False for other types. */
static bool range_of(tn_dtype type, double *least, double *beyond) {
    static const struct {
        tn_dtype type;
        double least, beyond;
    } ranges[] = {
        {TN_UINT8, 0, 0x1p8},       {TN_INT8, -0x1p7, 0x1p7},    {TN_INT16, -0x1p15, 0x1p15}, {TN_INT32, -0x1p31, 0x1p31},
        {TN_INT64, -0x1p63, 0x1p63}, {TN_UINT16, 0, 0x1p16},     {TN_UINT32, 0, 0x1p32},      {TN_UINT64, 0, 0x1p64},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (ranges[i].type != type) continue;
        *least = ranges[i].least, *beyond = ranges[i].beyond;
        return true;
    }
    return false;
}

/* Numbers that the integers of a type cannot hold are refused, as PyTorch does. */
static void check_range(SEXP x, tn_dtype type) {
    double least, beyond;
    if (is_wide(x) || !range_of(type, &least, &beyond)) return;
    for (R_xlen_t i = 0; i < Rf_xlength(x); i++) {
        double value = TYPEOF(x) == INTSXP ? INTEGER(x)[i] : trunc(REAL(x)[i]);
        if (value >= least && value < beyond) continue;
        fail_with(TN_ERROR_ARGUMENT, "element %.0f, %s, does not fit in %s", i + 1.0, as_r_writes(value), tn_dtype_name(type));
    }
}

/* A vector as a tensor of the given sizes, R's order of elements being by columns. */
SEXP tf_from_vector(SEXP x, SEXP sizes, SEXP dtype, SEXP device) {
    R_xlen_t n = Rf_xlength(x);
    int rank = (int)Rf_xlength(sizes);
    int64_t *shape = (int64_t *)R_alloc(2 * rank + 1, sizeof *shape), *strides = shape + rank, step = 1;
    for (int i = 0; i < rank; i++) {
        shape[i] = INTEGER(sizes)[i];
        strides[i] = step;
        step *= shape[i];
    }
    if (step != n) fail_with(TN_ERROR_ARGUMENT, "%.0f elements do not fill that shape", (double)n);
    const void *data = NULL;
    tn_dtype from, to;
    switch (TYPEOF(x)) {
    case LGLSXP: {
        bool *truths = (bool *)R_alloc(n + 1, sizeof *truths);
        for (R_xlen_t i = 0; i < n; i++) {
            if (LOGICAL(x)[i] == NA_LOGICAL) fail_with(TN_ERROR_ARGUMENT, "element %.0f is NA, which no tensor of bools holds", i + 1.0);
            truths[i] = LOGICAL(x)[i] != 0;
        }
        data = truths, from = TN_BOOL, to = TN_BOOL;
        break;
    }
    case INTSXP:
        for (R_xlen_t i = 0; i < n; i++) {
            if (INTEGER(x)[i] == NA_INTEGER) fail_with(TN_ERROR_ARGUMENT, "element %.0f is NA, which no tensor of integers holds: as.numeric makes it NaN", i + 1.0);
        }
        data = INTEGER(x), from = TN_INT32, to = TN_INT64;
        break;
    case REALSXP:
        data = REAL(x), from = TN_FLOAT64, to = tn_default_dtype();
        if (is_wide(x)) {
            for (R_xlen_t i = 0; i < n; i++) wide_at(x, i);
            from = to = TN_INT64;
        }
        break;
    case CPLXSXP: data = COMPLEX(x), from = TN_COMPLEX128, to = TN_COMPLEX64; break;
    case RAWSXP: data = RAW(x), from = TN_UINT8, to = TN_UINT8; break;
    default: fail_with(TN_ERROR_TYPE, "%s cannot become a tensor", describe_value(x));
    }
    if (dtype != R_NilValue) to = dtype_of(dtype);
    if (TYPEOF(x) == INTSXP || TYPEOF(x) == REALSXP) check_range(x, to);
    tn_device where = {TN_CPU, -1};
    if (device != R_NilValue) where = device_of(device);
    if (n == 0) data = &step;
    tn_tensor *made = tn_tensor_from_data(data, from, shape, rank, rank > 1 ? strides : NULL, rank > 1 ? rank : 0);
    if (made != NULL && (from != to || rank > 1 || where.type != TN_CPU)) {
        tn_tensor *given = made;
        made = tn__to_copy_with(given, &to, NULL, &where, NULL, NULL, &row_major);
        tn_free(given);
    }
    return give(made);
}

/* R no longer needs to keep the vector whose memory a tensor had. In another thread R's list must not be touched. */
static void release_vector(void *vector) {
    if (in_r_thread()) R_ReleaseObject((SEXP)vector);
}

/* A tensor over the memory of a vector, which lives as long as the tensor and its views; one size may be -1. */
SEXP tf_from_buffer(SEXP buffer, SEXP sizes, SEXP dtype) {
    void *data = NULL;
    int64_t width = 0;
    switch (TYPEOF(buffer)) {
    case RAWSXP: data = RAW(buffer), width = 1; break;
    case LGLSXP: data = LOGICAL(buffer), width = sizeof(int); break;
    case INTSXP: data = INTEGER(buffer), width = sizeof(int); break;
    case REALSXP: data = REAL(buffer), width = sizeof(double); break;
    case CPLXSXP: data = COMPLEX(buffer), width = sizeof(Rcomplex); break;
    default: fail_with(TN_ERROR_TYPE, "%s has no elements that a tensor could share: give raw bytes or numbers", describe_value(buffer));
    }
    tn_dtype type = dtype_of(dtype);
    int rank = (int)Rf_xlength(sizes), open = -1;
    int64_t bytes = width * Rf_xlength(buffer), size = tn_dtype_bytes(type), known = size;
    int64_t *shape = (int64_t *)R_alloc(rank + 1, sizeof *shape);
    for (int i = 0; i < rank; i++) {
        double wanted = REAL(sizes)[i];
        if (wanted == -1 && open < 0) {
            open = i;
            continue;
        }
        if (!(wanted >= 0 && wanted == floor(wanted) && wanted <= 0x1p53)) fail_with(TN_ERROR_ARGUMENT, "size %d, %s, is not a count of elements", i + 1, as_r_writes(wanted));
        shape[i] = (int64_t)wanted;
        if (__builtin_mul_overflow(known, shape[i], &known)) fail_with(TN_ERROR_ARGUMENT, "a tensor of that shape is larger than any memory");
    }
    if (open >= 0) {
        if (known == 0 || bytes % known != 0) fail_with(TN_ERROR_ARGUMENT, "%.0f bytes cannot be divided into that shape of %s", (double)bytes, tn_dtype_name(type));
        shape[open] = bytes / known;
    } else if (known > bytes) {
        fail_with(TN_ERROR_ARGUMENT, "that shape of %s takes %.0f bytes, and the buffer has %.0f", tn_dtype_name(type), (double)known, (double)bytes);
    }
    R_PreserveObject(buffer);
    tn_tensor *made = tn_tensor_wrap_data(data, type, shape, rank, NULL, 0, release_vector, buffer);
    if (made == NULL) {
        R_ReleaseObject(buffer);
        raise_last();
    }
    return give(made);
}

/* Integers beyond what R's numbers hold exactly, of the class of package bit64; R says no where that is not installed. */
static SEXP wide_integers(SEXP bits) {
    SEXP class = PROTECT(Rf_mkString("integer64"));
    Rf_setAttrib(bits, R_ClassSymbol, class);
    SEXP out = Rf_eval(PROTECT(Rf_lang2(Rf_install("wide_integers"), bits)), package_env);
    UNPROTECT(2);
    return out;
}

/* The elements of a tensor of int64 as texts, however large they are, with its dimensions. */
SEXP tf_int64_text(SEXP x) {
    const tn_tensor *tensor = tensor_of(x);
    int rank = (int)tn_tensor_dim(tensor);
    int64_t sizes[64], back[64];
    if (rank < 0 || rank > 64) raise_last();
    tn_tensor_shape(tensor, sizes, 64);
    for (int i = 0; i < rank; i++) back[i] = rank - 1 - i;
    tn_dtype to = TN_INT64;
    tn_device host = {TN_CPU, -1};
    tn_tensor *t = tn_permute(tensor, back, rank);
    if (t != NULL) {
        tn_tensor *turned = t;
        t = tn__to_copy_with(turned, &to, NULL, &host, NULL, NULL, &row_major);
        tn_free(turned);
    }
    SEXP kept = PROTECT(give(t));
    int64_t n = tn_tensor_numel(t), *numbers = (int64_t *)R_alloc(n + 1, sizeof *numbers);
    check(tn_tensor_to_data(t, numbers, n * (int64_t)sizeof *numbers));
    SEXP out = PROTECT(Rf_allocVector(STRSXP, n));
    for (int64_t i = 0; i < n; i++) {
        char text[24];
        snprintf(text, sizeof text, "%lld", (long long)numbers[i]);
        SET_STRING_ELT(out, i, Rf_mkChar(text));
    }
    if (rank > 1) {
        SEXP dim = PROTECT(Rf_allocVector(INTSXP, rank));
        for (int i = 0; i < rank; i++) INTEGER(dim)[i] = (int)sizes[i];
        Rf_setAttrib(out, R_DimSymbol, dim);
        UNPROTECT(1);
    }
    tf_close(kept);
    UNPROTECT(2);
    return out;
}

static tn_tensor *then(tn_tensor *from, tn_tensor *next) {
    tn_free(from);
    return next;
}

/* All elements, as a vector with dimensions where there are two or more. */
SEXP tf_to_vector(SEXP x) {
    const tn_tensor *tensor = tensor_of(x);
    int rank = (int)tn_tensor_dim(tensor);
    int64_t sizes[64], back[64];
    if (rank < 0 || rank > 64) raise_last();
    tn_tensor_shape(tensor, sizes, 64);
    for (int i = 0; i < rank; i++) back[i] = rank - 1 - i;
    tn_dtype to = TN_FLOAT64;
    switch (tn_tensor_dtype(tensor)) {
    case TN_BOOL: to = TN_BOOL; break;
    case TN_UINT8: case TN_INT8: case TN_INT16: case TN_INT32: case TN_INT64: case TN_UINT16: case TN_UINT32:
        to = TN_INT64;
        break;
    case TN_COMPLEX32: case TN_COMPLEX64: case TN_COMPLEX128: to = TN_COMPLEX128; break;
    default: break;
    }
    tn_device host = {TN_CPU, -1};
    tn_tensor *t = tn_detach(tensor);
    if (t != NULL && rank > 1) t = then(t, tn_permute(t, back, rank));
    if (t != NULL) t = then(t, tn__to_copy_with(t, &to, NULL, &host, NULL, NULL, &row_major));
    SEXP kept = PROTECT(give(t));
    int64_t n = tn_tensor_numel(t), bytes = tn_tensor_bytes(t);
    SEXP out = R_NilValue;
    if (to == TN_FLOAT64) {
        out = PROTECT(Rf_allocVector(REALSXP, n));
        check(tn_tensor_to_data(t, REAL(out), bytes));
    } else if (to == TN_COMPLEX128) {
        out = PROTECT(Rf_allocVector(CPLXSXP, n));
        check(tn_tensor_to_data(t, COMPLEX(out), bytes));
    } else if (to == TN_BOOL) {
        bool *truths = (bool *)R_alloc(n + 1, sizeof *truths);
        check(tn_tensor_to_data(t, truths, bytes));
        out = PROTECT(Rf_allocVector(LGLSXP, n));
        for (int64_t i = 0; i < n; i++) LOGICAL(out)[i] = truths[i];
    } else {
        int64_t *numbers = (int64_t *)R_alloc(n + 1, sizeof *numbers), most = 0;
        check(tn_tensor_to_data(t, numbers, bytes));
        for (int64_t i = 0; i < n; i++) {
            if (numbers[i] == INT64_MIN) most = INT64_MAX;
            else if (llabs(numbers[i]) > most) most = llabs(numbers[i]);
        }
        if (most > (INT64_C(1) << 53)) {
            out = PROTECT(Rf_allocVector(REALSXP, n)); /* the bits of package bit64's integers */
            memcpy(REAL(out), numbers, n * sizeof *numbers);
            out = wide_integers(out);
            UNPROTECT(1);
            PROTECT(out);
        } else if (most <= INT32_MAX) {
            out = PROTECT(Rf_allocVector(INTSXP, n));
            for (int64_t i = 0; i < n; i++) INTEGER(out)[i] = (int)numbers[i];
        } else {
            out = PROTECT(Rf_allocVector(REALSXP, n));
            for (int64_t i = 0; i < n; i++) REAL(out)[i] = (double)numbers[i];
        }
    }
    if (rank > 1) {
        SEXP dim = PROTECT(Rf_allocVector(INTSXP, rank));
        for (int i = 0; i < rank; i++) INTEGER(dim)[i] = (int)sizes[i];
        Rf_setAttrib(out, R_DimSymbol, dim);
        UNPROTECT(1);
    }
    tf_close(kept);
    UNPROTECT(2);
    return out;
}

SEXP tf_shape(SEXP x) {
    int64_t sizes[64];
    int64_t rank = tn_tensor_shape(tensor_of(x), sizes, 64);
    if (rank < 0) raise_last();
    SEXP out = Rf_allocVector(INTSXP, rank);
    for (int64_t i = 0; i < rank; i++) INTEGER(out)[i] = (int)sizes[i];
    return out;
}

SEXP tf_strides(SEXP x) {
    int64_t strides[64];
    int64_t rank = tn_tensor_strides(tensor_of(x), strides, 64);
    if (rank < 0) raise_last();
    SEXP out = Rf_allocVector(REALSXP, rank);
    for (int64_t i = 0; i < rank; i++) REAL(out)[i] = (double)strides[i];
    return out;
}

static SEXP make_dtype(tn_dtype code) {
    SEXP out = PROTECT(Rf_ScalarInteger(code));
    SEXP class = PROTECT(Rf_mkString("torch_dtype"));
    Rf_setAttrib(out, R_ClassSymbol, class);
    UNPROTECT(2);
    return out;
}

SEXP tf_dtype(SEXP x) { return make_dtype(is_tensor(x) ? tn_tensor_dtype(tensor_of(x)) : dtype_of(x)); }

SEXP tf_dtype_name(SEXP x) {
    const char *name = tn_dtype_name(dtype_of(x));
    if (name == NULL) raise_last();
    return Rf_mkString(name);
}

SEXP tf_device(SEXP x) {
    tn_device device;
    if (is_tensor(x)) check(tn_tensor_device(tensor_of(x), &device));
    else device = device_of(x);
    char text[32];
    const char *type = device.type == TN_CPU ? "cpu" : device.type == TN_CUDA ? "cuda" : "meta";
    if (device.index >= 0 && device.type == TN_CUDA) snprintf(text, sizeof text, "%s:%d", type, device.index);
    else snprintf(text, sizeof text, "%s", type);
    SEXP out = PROTECT(Rf_allocVector(VECSXP, 1));
    SET_VECTOR_ELT(out, 0, Rf_mkString(text));
    SEXP class = PROTECT(Rf_mkString("torch_device"));
    Rf_setAttrib(out, R_ClassSymbol, class);
    UNPROTECT(2);
    return out;
}

SEXP tf_numel(SEXP x) { return Rf_ScalarReal((double)tn_tensor_numel(tensor_of(x))); }

SEXP tf_item(SEXP x) {
    tn_scalar value;
    check(tn_tensor_item(tensor_of(x), &value));
    switch (value.tag) {
    case TN_SCALAR_BOOL: return Rf_ScalarLogical(value.as.b);
    case TN_SCALAR_DOUBLE: return Rf_ScalarReal(value.as.d);
    case TN_SCALAR_COMPLEX: return Rf_ScalarComplex((Rcomplex){value.as.c.re, value.as.c.im});
    default:
        if (value.as.i >= -INT32_MAX && value.as.i <= INT32_MAX) return Rf_ScalarInteger((int)value.as.i);
        SEXP wide = PROTECT(Rf_ScalarReal((double)value.as.i));
        if (value.as.i > (INT64_C(1) << 53) || value.as.i < -(INT64_C(1) << 53)) {
            memcpy(REAL(wide), &value.as.i, sizeof value.as.i);
            wide = wide_integers(wide);
        }
        UNPROTECT(1);
        return wide;
    }
}

SEXP tf_to(SEXP x, SEXP dtype, SEXP device, SEXP copy, SEXP non_blocking) {
    const tn_tensor *tensor = tensor_of(x);
    tn_dtype to = dtype == R_NilValue ? tn_tensor_dtype(tensor) : dtype_of(dtype);
    tn_device here, where;
    check(tn_tensor_device(tensor, &here));
    where = device == R_NilValue ? here : device_of(device);
    bool same = where.type == here.type && (where.index < 0 || where.index == here.index);
    if (same && to == tn_tensor_dtype(tensor) && !bool_of(copy)) return x;
    bool alongside = bool_of(non_blocking);
    return give(tn__to_copy_with(tensor, &to, NULL, &where, NULL, &alongside, NULL));
}

/* How the elements lie: strided, sparse_coo and so on. */
SEXP tf_layout_name(SEXP x) {
    static const char *const names[] = {"strided", "sparse_coo", "sparse_csr", "mkldnn", "sparse_csc"};
    int layout = (int)tn_tensor_layout(tensor_of(x));
    if (layout < 0) raise_last();
    return Rf_mkString(layout < 5 ? names[layout] : "another");
}

/* Where the elements are, as text. */
SEXP tf_data_address(SEXP x) {
    char text[32];
    snprintf(text, sizeof text, "%p", tn_tensor_data(tensor_of(x)));
    return Rf_mkString(text);
}

/* Where an R object's tensor is, to tell one from another. */
SEXP tf_address(SEXP x) {
    char text[32];
    snprintf(text, sizeof text, "%p", (void *)tensor_of(x));
    return Rf_mkString(text);
}

SEXP tf_is_same(SEXP x, SEXP y) { return Rf_ScalarLogical(tn_tensor_is_same(tensor_of(x), tensor_of(y)) == 1); }
SEXP tf_is_contiguous(SEXP x) { return Rf_ScalarLogical(tn_tensor_is_contiguous(tensor_of(x)) == 1); }

/* ---- gradients ---- */

SEXP tf_requires_grad(SEXP x) { return Rf_ScalarLogical(tn_requires_grad(tensor_of(x)) == 1); }
SEXP tf_is_leaf(SEXP x) { return Rf_ScalarLogical(tn_is_leaf(tensor_of(x)) == 1); }

SEXP tf_set_requires_grad(SEXP x, SEXP wanted) {
    check(tn_set_requires_grad(tensor_of(x), bool_of(wanted)));
    return x;
}

SEXP tf_retain_grad(SEXP x) {
    check(tn_retain_grad(tensor_of(x)));
    return x;
}

SEXP tf_grad(SEXP x) {
    const tn_tensor *tensor = tensor_of(x);
    return tn_has_grad(tensor) == 1 ? give(tn_grad(tensor)) : R_NilValue;
}

SEXP tf_set_grad(SEXP x, SEXP grad) {
    check(tn_set_grad(tensor_of(x), tensor_or_null(grad)));
    return x;
}

SEXP tf_backward(SEXP x, SEXP gradient, SEXP retain, SEXP create) {
    check(tn_backward_with(tensor_of(x), tensor_or_null(gradient), bool_of(retain), bool_of(create)));
    return R_NilValue;
}

SEXP tf_gradients(SEXP outputs, SEXP inputs, SEXP gradients, SEXP retain, SEXP create, SEXP unused) {
    int64_t n, m, k = 0;
    tensor_array of = tensors_of(outputs, &n), by = tensors_of(inputs, &m);
    tensor_array from = gradients == R_NilValue ? NULL : tensors_of(gradients, &k);
    tn_tensor **out = (tn_tensor **)R_alloc(m + 1, sizeof *out);
    memset(out, 0, (m + 1) * sizeof *out);
    check(tn_gradients(of, n, by, m, from, k, bool_of(retain), bool_of(create), bool_of(unused), out, m));
    return give_all(out, m, NULL, 0);
}

SEXP tf_scope_begin(SEXP kind) {
    const char *name = text_of(kind);
    int64_t scope = -1;
    switch (name[0]) {
    case 'n': scope = tn_no_grad_begin(); break;
    case 'e': scope = tn_enable_grad_begin(); break;
    default: scope = tn_detect_anomaly_begin(); break;
    }
    if (scope < 0) raise_last();
    return Rf_ScalarReal((double)scope);
}

SEXP tf_autocast_begin(SEXP device, SEXP dtype, SEXP enabled) {
    int64_t scope = tn_autocast_begin(device_of(device), dtype_of(dtype), bool_of(enabled));
    if (scope < 0) raise_last();
    return Rf_ScalarReal((double)scope);
}

SEXP tf_default_dtype(SEXP dtype) {
    if (dtype != R_NilValue) check(tn_set_default_dtype(dtype_of(dtype)));
    return make_dtype(tn_default_dtype());
}

static int64_t write_grad_fn(const void *tensor, char *buffer, int64_t size) { return tn_grad_fn_name(tensor, buffer, size); }

SEXP tf_grad_fn(SEXP x) { return text_to_r(write_grad_fn, tensor_of(x)); }

typedef struct path_in_graph {
    const tn_tensor *from;
    const int64_t *positions;
    int64_t count;
} path_in_graph;

static int64_t write_next(const void *what, char *buffer, int64_t size) {
    const path_in_graph *path = what;
    return tn_grad_fn_next(path->from, path->positions, path->count, buffer, size);
}

/* The names of the next functions of gradients, one a line; positions count from 1. */
SEXP tf_grad_fn_next(SEXP x, SEXP positions) {
    path_in_graph path = {tensor_of(x), NULL, 0};
    path.positions = ints_of(positions, 0, true, NULL, 0, &path.count);
    return text_to_r(write_next, &path);
}

SEXP tf_scope_end(SEXP scope) {
    check(tn_scope_end((int64_t)Rf_asReal(scope)));
    return R_NilValue;
}

SEXP tf_grad_enabled(void) { return Rf_ScalarLogical(tn_grad_enabled() == 1); }
