/* values.c: list() to libtorch's values and stacks, and back. NULL is None, a named list a dict, jit_tuple() a tuple;
 * a vector that is not of length one is a list; NA stands for nothing in libtorch and is refused. */
#include "bridge.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    int code;
    char text[256];
} reason; /* why a value could not be made; R's error is raised when all that was made is freed */

static tn_value *refuse(reason *why, int code, const char *text) {
    why->code = code;
    snprintf(why->text, sizeof why->text, "%s", text);
    return NULL;
}

static tn_value *from_r(SEXP x, reason *why, int depth);

/* A list on its way to libtorch; what was made of it is freed whether or not R jumps. */
typedef struct {
    SEXP list, names;
    bool tuple;
    reason *why;
    int depth;
    tn_value **items, **keys;
    R_xlen_t made, named;
    tn_value *out;
} conversion;

static SEXP convert_list(void *given) {
    conversion *to = given;
    R_xlen_t n = Rf_xlength(to->list);
    while (to->made < n && (to->items[to->made] = from_r(VECTOR_ELT(to->list, to->made), to->why, to->depth + 1)) != NULL) to->made++;
    if (to->made < n) return R_NilValue;
    const tn_value *const *items = (const tn_value *const *)to->items;
    if (to->tuple) {
        to->out = tn_value_tuple(items, n);
    } else if (to->names == R_NilValue) {
        to->out = tn_value_list(items, n);
    } else {
        while (to->named < n && (to->keys[to->named] = tn_value_string(Rf_translateCharUTF8(STRING_ELT(to->names, to->named)))) != NULL) to->named++;
        if (to->named == n) to->out = tn_value_dict((const tn_value *const *)to->keys, items, n);
    }
    return R_NilValue;
}

static void free_parts(void *given) {
    conversion *to = given;
    for (R_xlen_t i = 0; i < to->made; i++) tn_value_free(to->items[i]);
    for (R_xlen_t i = 0; i < to->named; i++) tn_value_free(to->keys[i]);
}

static tn_value *from_list(SEXP x, reason *why, int depth) {
    R_xlen_t n = Rf_xlength(x);
    SEXP names = Rf_getAttrib(x, R_NamesSymbol);
    bool tuple = Rf_inherits(x, "jit_tuple");
    if (OBJECT(x) && !tuple) return refuse(why, TN_ERROR_TYPE, "an object with a class cannot become a value: unclass it, or take its parts");
    if (names != R_NilValue && !tuple) {
        for (R_xlen_t i = 0; i < n; i++) {
            if (STRING_ELT(names, i) == NA_STRING || LENGTH(STRING_ELT(names, i)) == 0) {
                return refuse(why, TN_ERROR_ARGUMENT, "some entries of a list have names and some have none: a dict needs all, a list none");
            }
        }
        if (Rf_any_duplicated(names, FALSE) != 0) return refuse(why, TN_ERROR_ARGUMENT, "two entries of a list have the same name, which no dict has");
    }
    tn_value **items = (tn_value **)R_alloc(2 * n + 1, sizeof *items);
    conversion to = {x, names, tuple, why, depth, items, items + n, 0, 0, NULL};
    R_ExecWithCleanup(convert_list, &to, free_parts, &to);
    return to.out;
}

static const char *const na = "NA stands for nothing in libtorch: NULL is None, NaN is no number";

/* Whole numbers of package bit64, whose bits lie in doubles. */
static tn_value *from_wide(SEXP x, reason *why) {
    R_xlen_t n = Rf_xlength(x);
    int64_t *numbers = (int64_t *)R_alloc(n + 1, sizeof *numbers);
    memcpy(numbers, REAL(x), n * sizeof *numbers);
    for (R_xlen_t i = 0; i < n; i++) {
        if (numbers[i] == INT64_MIN) return refuse(why, TN_ERROR_ARGUMENT, na);
    }
    return n == 1 ? tn_value_int(numbers[0]) : tn_value_int_list(numbers, n);
}

static tn_value *from_r(SEXP x, reason *why, int depth) {
    if (depth > 200) return refuse(why, TN_ERROR_ARGUMENT, "lists are nested deeper than 200");
    R_xlen_t n = Rf_xlength(x);
    switch (TYPEOF(x)) {
    case NILSXP: return tn_value_none();
    case EXTPTRSXP:
        if (is_tensor(x)) {
            if (handle_address(x) == NULL) return refuse(why, TN_ERROR_HANDLE, "a tensor of the list was closed");
            return tn_value_tensor(handle_address(x));
        }
        break;
    case LGLSXP: {
        bool *truths = (bool *)R_alloc(n + 1, sizeof *truths);
        for (R_xlen_t i = 0; i < n; i++) {
            if (LOGICAL(x)[i] == NA_LOGICAL) return refuse(why, TN_ERROR_ARGUMENT, na);
            truths[i] = LOGICAL(x)[i] != 0;
        }
        return n == 1 ? tn_value_bool(truths[0]) : tn_value_bool_list(truths, n);
    }
    case INTSXP: {
        if (Rf_inherits(x, "torch_dtype")) return tn_value_dtype(INTEGER(x)[0]);
        if (Rf_inherits(x, "factor")) return refuse(why, TN_ERROR_TYPE, "a factor cannot become a value: take as.integer or as.character of it");
        int64_t *numbers = (int64_t *)R_alloc(n + 1, sizeof *numbers);
        for (R_xlen_t i = 0; i < n; i++) {
            if (INTEGER(x)[i] == NA_INTEGER) return refuse(why, TN_ERROR_ARGUMENT, na);
            numbers[i] = INTEGER(x)[i];
        }
        return n == 1 ? tn_value_int(numbers[0]) : tn_value_int_list(numbers, n);
    }
    case REALSXP:
        if (Rf_inherits(x, "integer64")) return from_wide(x, why);
        for (R_xlen_t i = 0; i < n; i++) {
            if (R_IsNA(REAL(x)[i])) return refuse(why, TN_ERROR_ARGUMENT, na);
        }
        return n == 1 ? tn_value_double(REAL(x)[0]) : tn_value_double_list(REAL(x), n);
    case CPLXSXP:
        if (n == 1) return tn_value_complex(COMPLEX(x)[0].r, COMPLEX(x)[0].i);
        break;
    case STRSXP: {
        const char **texts = (const char **)R_alloc(n + 1, sizeof *texts);
        for (R_xlen_t i = 0; i < n; i++) {
            if (STRING_ELT(x, i) == NA_STRING) return refuse(why, TN_ERROR_ARGUMENT, na);
            texts[i] = Rf_translateCharUTF8(STRING_ELT(x, i));
        }
        return n == 1 ? tn_value_string(texts[0]) : tn_value_string_list(texts, n);
    }
    case VECSXP:
        if (Rf_inherits(x, "torch_device")) return tn_value_device(device_of(x));
        return from_list(x, why, depth);
    default: break;
    }
    char text[128];
    snprintf(text, sizeof text, "%s cannot become a value of libtorch", describe_value(x));
    return refuse(why, TN_ERROR_TYPE, text);
}

tn_value *value_of(SEXP x) {
    reason why = {TN_OK, ""};
    tn_value *made = from_r(x, &why, 0);
    if (made == NULL && why.code != TN_OK) fail_with(why.code, "%s", why.text);
    if (made == NULL) raise_last();
    return made;
}

/* ---- back ---- */

SEXP text_to_r(int64_t (*write)(const void *, char *, int64_t), const void *what) {
    int64_t length = write(what, NULL, 0);
    if (length < 0) raise_last();
    char *text = R_alloc(length + 1, 1);
    write(what, text, length + 1);
    return Rf_ScalarString(Rf_mkCharLenCE(text, (int)length, CE_UTF8));
}

static int64_t write_string(const void *value, char *buffer, int64_t size) { return tn_value_to_string(value, buffer, size); }
static int64_t write_type(const void *value, char *buffer, int64_t size) { return tn_value_type(value, buffer, size); }

static void free_value(void *value) { tn_value_free(value); }

static SEXP to_r(void *given);

static SEXP each_to_r(const tn_value *value, int64_t count, tn_value *(*at)(const tn_value *, int64_t)) {
    SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
    for (int64_t i = 0; i < count; i++) SET_VECTOR_ELT(list, i, value_to_r(at(value, i)));
    UNPROTECT(1);
    return list;
}

/* A list whose entries are all numbers, truths or texts is a vector; it keeps being a list where it is empty. */
static SEXP simplify(SEXP list, int type) {
    R_xlen_t n = Rf_xlength(list);
    bool whole = true;
    for (R_xlen_t i = 0; i < n; i++) whole &= TYPEOF(VECTOR_ELT(list, i)) == INTSXP;
    if (type == INTSXP && !whole) type = REALSXP; /* some were larger than R's integers */
    SEXP out = PROTECT(Rf_allocVector(type, n));
    for (R_xlen_t i = 0; i < n; i++) {
        SEXP each = VECTOR_ELT(list, i);
        if (type == INTSXP) INTEGER(out)[i] = INTEGER(each)[0];
        else if (type == REALSXP) REAL(out)[i] = Rf_asReal(each);
        else if (type == LGLSXP) LOGICAL(out)[i] = LOGICAL(each)[0];
        else SET_STRING_ELT(out, i, STRING_ELT(each, 0));
    }
    UNPROTECT(1);
    return out;
}

static SEXP to_r(void *given) {
    const tn_value *value = given;
    switch (tn_value_tag(value)) {
    case TN_TAG_NONE: return R_NilValue;
    case TN_TAG_TENSOR: return give_or_null(tn_value_to_tensor(value));
    case TN_TAG_INT: {
        int64_t number;
        check(tn_value_to_int(value, &number));
        if (number > INT32_MAX || number <= INT32_MIN) return Rf_ScalarReal((double)number);
        return Rf_ScalarInteger((int)number);
    }
    case TN_TAG_DOUBLE: {
        double number;
        check(tn_value_to_double(value, &number));
        return Rf_ScalarReal(number);
    }
    case TN_TAG_COMPLEX: {
        tn_scalar number;
        check(tn_value_to_scalar(value, &number));
        return Rf_ScalarComplex((Rcomplex){number.as.c.re, number.as.c.im});
    }
    case TN_TAG_BOOL: {
        bool truth;
        check(tn_value_to_bool(value, &truth));
        return Rf_ScalarLogical(truth);
    }
    case TN_TAG_STRING: return text_to_r(write_string, value);
    case TN_TAG_GENERATOR: return give_handle(tn_value_to_generator(value), GENERATOR);
    case TN_TAG_DEVICE: {
        tn_device device;
        check(tn_value_to_device(value, &device));
        char text[32];
        snprintf(text, sizeof text, "cuda:%d", (int)device.index);
        return Rf_mkString(device.type == TN_CPU ? "cpu" : device.type == TN_META ? "meta" : text);
    }
    case TN_TAG_LIST: {
        SEXP list = PROTECT(each_to_r(value, tn_value_count(value), tn_value_at));
        char type[16] = "";
        tn_value_type(value, type, sizeof type);
        SEXP out = strcmp(type, "int[]") == 0    ? simplify(list, INTSXP)
                   : strcmp(type, "float[]") == 0 ? simplify(list, REALSXP)
                   : strcmp(type, "bool[]") == 0  ? simplify(list, LGLSXP)
                   : strcmp(type, "str[]") == 0   ? simplify(list, STRSXP)
                                                  : list;
        UNPROTECT(1);
        return out;
    }
    case TN_TAG_TUPLE: {
        SEXP list = PROTECT(each_to_r(value, tn_value_count(value), tn_value_at));
        SEXP class = PROTECT(Rf_mkString("jit_tuple"));
        Rf_setAttrib(list, R_ClassSymbol, class);
        UNPROTECT(2);
        return list;
    }
    case TN_TAG_DICT: {
        int64_t count = tn_value_count(value);
        SEXP keys = PROTECT(each_to_r(value, count, tn_value_key_at));
        SEXP list = PROTECT(each_to_r(value, count, tn_value_at));
        SEXP names = PROTECT(Rf_allocVector(STRSXP, count));
        for (int64_t i = 0; i < count; i++) {
            SEXP key = VECTOR_ELT(keys, i);
            if (is_tensor(key)) fail_with(TN_ERROR_TYPE, "a dict whose keys are tensors has no names for R");
            SET_STRING_ELT(names, i, Rf_asChar(key));
        }
        Rf_setAttrib(list, R_NamesSymbol, names);
        UNPROTECT(3);
        return list;
    }
    default: fail_with(TN_ERROR_TYPE, "libtorch gave a value that R has nothing for: %s", CHAR(STRING_ELT(text_to_r(write_type, value), 0)));
    }
}

SEXP value_to_r(tn_value *value) {
    if (value == NULL) raise_last();
    return R_ExecWithCleanup(to_r, value, free_value, value);
}

/* ---- stacks ---- */

typedef struct {
    SEXP list;
    tn_stack *stack;
    bool full;
} filling;

static SEXP fill_stack(void *given) {
    filling *to = given;
    for (R_xlen_t i = 0; i < Rf_xlength(to->list); i++) {
        tn_value *value = value_of(VECTOR_ELT(to->list, i));
        tn_status status = tn_stack_push(to->stack, value);
        tn_value_free(value);
        check(status);
    }
    to->full = true;
    return R_NilValue;
}

static void free_unless_full(void *given) {
    filling *to = given;
    if (!to->full) tn_stack_free(to->stack);
}

/* A list's values on a stack, which the caller frees; raises with nothing left over. */
tn_stack *stack_of(SEXP list) {
    if (TYPEOF(list) != VECSXP) fail_with(TN_ERROR_TYPE, "a list of values is needed, not %s", describe_value(list));
    filling to = {list, tn_stack_new(), false};
    if (to.stack == NULL) raise_last();
    R_ExecWithCleanup(fill_stack, &to, free_unless_full, &to);
    return to.stack;
}

static void free_stack(void *stack) { tn_stack_free(stack); }

typedef struct {
    SEXP arguments;
    SEXP handle; /* a module's, or NULL for an operator */
    const char *name;
    tn_stack *stack;
} stacked_call;

static SEXP call_stacked(void *given) {
    stacked_call *call = given;
    for (R_xlen_t i = 0; i < Rf_xlength(call->arguments); i++) {
        tn_value *value = value_of(VECTOR_ELT(call->arguments, i));
        tn_status status = tn_stack_push(call->stack, value);
        tn_value_free(value);
        check(status);
    }
    if (call->handle != R_NilValue) {
        check(tn_module_call(handle_of(call->handle, MODULE), call->name, call->stack));
    } else if (call->name != NULL) {
        check(tn_call(call->name, call->stack));
    }
    int64_t count = tn_stack_count(call->stack);
    if (count == 1 && call->name != NULL) return value_to_r(tn_stack_at(call->stack, 0));
    SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
    for (int64_t i = 0; i < count; i++) SET_VECTOR_ELT(list, i, value_to_r(tn_stack_at(call->stack, i)));
    UNPROTECT(1);
    return list;
}

static SEXP on_stack(SEXP arguments, SEXP handle, const char *name) {
    if (TYPEOF(arguments) != VECSXP) fail_with(TN_ERROR_TYPE, "a list of arguments is needed, not %s", describe_value(arguments));
    stacked_call call = {arguments, handle, name, tn_stack_new()};
    if (call.stack == NULL) raise_last();
    return R_ExecWithCleanup(call_stacked, &call, free_stack, call.stack);
}

SEXP tf_stack(SEXP list) { return on_stack(list, R_NilValue, NULL); } /* there and back */
static int64_t write_schema(const void *op, char *buffer, int64_t size) { return tn_op_schema(op, buffer, size); }

/* The names of all operators that libtorch knows, as in aten::add.Tensor. */
SEXP tf_operator_names(void) {
    int64_t count = tn_op_count();
    if (count < 0) raise_last();
    SEXP names = PROTECT(Rf_allocVector(STRSXP, count));
    for (int64_t i = 0; i < count; i++) {
        const tn_op *op = tn_op_at(i);
        if (op == NULL) raise_last();
        SEXP schema = PROTECT(text_to_r(write_schema, op));
        const char *text = CHAR(STRING_ELT(schema, 0));
        SET_STRING_ELT(names, i, Rf_mkCharLen(text, (int)strcspn(text, "(")));
        UNPROTECT(1);
    }
    UNPROTECT(1);
    return names;
}

SEXP tf_call(SEXP name, SEXP arguments) { return on_stack(arguments, R_NilValue, text_of(name)); }
SEXP tf_module_call(SEXP module, SEXP method, SEXP arguments) { return on_stack(arguments, module, text_of(method)); }
