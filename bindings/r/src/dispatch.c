/* dispatch.c: which overload of an operator an R call means, by the types of its arguments; then the call. */
#include "bridge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PARAMETERS = 32 };

const char *describe_value(SEXP x) {
    if (is_tensor(x)) return "a tensor";
    switch (TYPEOF(x)) {
    case NILSXP: return "NULL";
    case LGLSXP: return Rf_xlength(x) == 1 ? (LOGICAL(x)[0] == NA_LOGICAL ? "NA" : "a logical") : "a logical vector";
    case INTSXP:
        if (Rf_inherits(x, "torch_dtype")) return "a dtype";
        return Rf_xlength(x) == 1 ? (INTEGER(x)[0] == NA_INTEGER ? "NA" : "an integer") : "an integer vector";
    case REALSXP:
        if (is_wide(x)) return Rf_xlength(x) == 1 ? "an integer64" : "an integer64 vector";
        return Rf_xlength(x) == 1 ? (R_IsNA(REAL(x)[0]) ? "NA" : "a number") : "a numeric vector";
    case CPLXSXP: return "a complex number";
    case STRSXP: return Rf_xlength(x) == 1 ? (STRING_ELT(x, 0) == NA_STRING ? "NA" : "a string") : "a character vector";
    case VECSXP: return Rf_inherits(x, "torch_device") ? "a device" : "a list";
    case CLOSXP: case BUILTINSXP: return "a function";
    case EXTPTRSXP: return "a handle of another kind";
    case ENVSXP: return "an environment";
    case RAWSXP: return "a raw vector";
    case SYMSXP: case LANGSXP: case EXPRSXP: return "an expression";
    default: return "something else";
    }
}

/* The kinds of numbers that all elements of a vector are; 0 if one is missing, or where it holds no numbers. */
static int kinds_of_numbers(SEXP x) {
    const R_xlen_t n = Rf_xlength(x);
    if (is_wide(x)) return INTS;
    if (OBJECT(x)) return 0;
    int kinds = 0;
    switch (TYPEOF(x)) {
    case LGLSXP:
        for (R_xlen_t i = 0; i < n; i++) {
            if (LOGICAL(x)[i] == NA_LOGICAL) return 0;
        }
        return BOOLS;
    case INTSXP:
        for (R_xlen_t i = 0; i < n; i++) {
            if (INTEGER(x)[i] == NA_INTEGER) return 0;
        }
        return INTS;
    case REALSXP:
        kinds = INTS | FLOATS; /* a number without a fraction is either */
        for (R_xlen_t i = 0; i < n; i++) {
            if (R_IsNA(REAL(x)[i])) return 0;
            if (REAL(x)[i] != floor(REAL(x)[i])) kinds = FLOATS;
        }
        return kinds;
    case CPLXSXP: return COMPLEXS;
    default: return 0;
    }
}

static bool is_number(SEXP x) { return Rf_xlength(x) == 1 && kinds_of_numbers(x) & (INTS | FLOATS); }

/* R's own numbers and truths, which become a tensor where nothing else is meant. */
static bool becomes_tensor(SEXP x) {
    if (OBJECT(x)) return is_wide(x);
    return TYPEOF(x) == LGLSXP || TYPEOF(x) == INTSXP || TYPEOF(x) == REALSXP || TYPEOF(x) == CPLXSXP;
}

static bool fits_one(const parameter *p, SEXP x) {
    switch (p->kind) {
    case 'T': return is_tensor(x);
    case 'i':
        if (p->flags & REDUCTION && TYPEOF(x) == STRSXP) return Rf_xlength(x) == 1;
        return Rf_xlength(x) == 1 && kinds_of_numbers(x) & numbers_for('i');
    case 'd': case 'b': case 'S': return Rf_xlength(x) == 1 && kinds_of_numbers(x) & numbers_for(p->kind);
    case 'D': return Rf_inherits(x, "torch_dtype") || (TYPEOF(x) == STRSXP && Rf_xlength(x) == 1);
    case 'V': return Rf_inherits(x, "torch_device") || (TYPEOF(x) == STRSXP && Rf_xlength(x) == 1);
    case 'G': return is_handle(x, GENERATOR);
    default: return TYPEOF(x) == STRSXP && Rf_xlength(x) == 1 && STRING_ELT(x, 0) != NA_STRING;
    }
}

static bool fits_list(const parameter *p, SEXP x, bool converting) {
    if (p->kind == 'T') {
        if (TYPEOF(x) != VECSXP || OBJECT(x)) return false;
        for (R_xlen_t i = 0; i < Rf_xlength(x); i++) {
            SEXP each = VECTOR_ELT(x, i);
            bool none = each == R_NilValue && p->flags & NONE_ENTRIES;
            if (!is_tensor(each) && !none && !(converting && becomes_tensor(each))) return false;
        }
        return true;
    }
    R_xlen_t n = Rf_xlength(x);
    if (p->size > 1 && n > p->size) return false;
    if (TYPEOF(x) != VECSXP) return TYPEOF(x) != CPLXSXP && kinds_of_numbers(x) & numbers_for(p->kind);
    if (OBJECT(x)) return false;
    for (R_xlen_t i = 0; i < n; i++) {
        if (!fits_one(p, VECTOR_ELT(x, i))) return false;
    }
    return true;
}

static bool fits(const parameter *p, SEXP x, bool converting) {
    if (x == R_NilValue) return (p->flags & (HAS_DEFAULT | OPTIONAL)) != 0;
    if (converting && p->kind == 'T' && p->size == 0 && becomes_tensor(x)) return true;
    return p->size != 0 ? fits_list(p, x, converting) : fits_one(p, x);
}

/* By name: everything given is a parameter of the overload, and fits. */
static bool by_name(const operator_entry *op, const overload *form, SEXP *given, int given_count, SEXP *values,
                    bool converting) {
    int used = 0;
    for (int i = 0; i < form->count; i++) {
        const parameter *p = &form->parameters[i];
        values[i] = given[p->slot];
        if (!fits(p, values[i], converting)) return false;
        used += values[i] != R_NilValue;
    }
    return used == given_count;
}

/* By position: the first arguments in the overload's own order, the others and what is keyword-only by name. */
static bool by_position(const operator_entry *op, const overload *form, SEXP *given, int given_count, SEXP *values,
                        bool converting) {
    int leading = 0, used = 0;
    while (leading < op->slots && given[leading] != R_NilValue) leading++;
    for (int i = 0; i < form->count; i++) {
        const parameter *p = &form->parameters[i];
        if (i < leading && !(p->flags & KEYWORD)) values[i] = given[i];
        else values[i] = p->slot < leading ? R_NilValue : given[p->slot];
        if (!fits(p, values[i], converting)) return false;
        used += values[i] != R_NilValue;
    }
    return used == given_count;
}

static void no_overload(const operator_entry *op, SEXP *given) {
    char kinds[512] = "", forms[1200] = "";
    size_t at = 0;
    for (int i = 0; i < op->slots && at < sizeof kinds; i++) {
        if (given[i] != R_NilValue) {
            at += snprintf(kinds + at, sizeof kinds - at, "%s%s", at ? ", " : "", describe_value(given[i]));
        }
    }
    at = 0;
    for (int i = 0; i < op->count && at < sizeof forms; i++) {
        at += snprintf(forms + at, sizeof forms - at, "\n  %s", op->overloads[i].schema);
    }
    fail_with(TN_ERROR_ARGUMENT, "torch_%s does not take (%s); it is%s", op->name, kinds, forms);
}

/* The list itself, or a copy whose numbers are tensors. */
static SEXP tensors_in(SEXP list, bool place) {
    R_xlen_t n = Rf_xlength(list), others = 0;
    for (R_xlen_t i = 0; i < n; i++) others += becomes_tensor(VECTOR_ELT(list, i));
    if (others == 0) return list;
    SEXP made = PROTECT(Rf_shallow_duplicate(list));
    for (R_xlen_t i = 0; i < n; i++) {
        if (!becomes_tensor(VECTOR_ELT(made, i))) continue;
        SEXP call = PROTECT(Rf_lang3(Rf_install("tensor_argument"), VECTOR_ELT(made, i), Rf_ScalarLogical(place)));
        SET_VECTOR_ELT(made, i, Rf_eval(call, package_env));
        UNPROTECT(1);
    }
    UNPROTECT(1);
    return made;
}

/* ---- quantized tensors ---- */

static bool is_quantized(SEXP x) {
    if (TYPEOF(x) == VECSXP) {
        for (R_xlen_t i = 0; i < Rf_xlength(x); i++) {
            if (is_quantized(VECTOR_ELT(x, i))) return true;
        }
        return false;
    }
    if (!is_tensor(x) || handle_address(x) == NULL) return false;
    tn_dtype type = tn_tensor_dtype(handle_address(x));
    return type == TN_QUINT8 || type == TN_QINT8 || type == TN_QINT32;
}

/* An argument as tn_call takes it: dimensions count from 0, whole numbers are integers, words are their codes. */
static SEXP plain_argument(const parameter *p, SEXP x) {
    bool dims = (p->flags & DIMENSION) != 0;
    if (x == R_NilValue) return x;
    if (p->kind == 'L' || p->kind == 'M') return Rf_ScalarInteger((int)word_of(x, p->kind));
    if (p->kind != 'i') return x;
    if (p->flags & REDUCTION) return Rf_ScalarInteger((int)word_of(x, 'r'));
    if (p->size == 0) return Rf_ScalarInteger((int)(dims ? dim_of(x) : int_of(x)));
    int64_t count;
    const int64_t *numbers = ints_of(x, p->size, dims, NULL, 0, &count);
    SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
    for (int64_t i = 0; i < count; i++) SET_VECTOR_ELT(list, i, Rf_ScalarInteger((int)numbers[i]));
    UNPROTECT(1);
    return list;
}

/* By its name an operator says whether it has a kernel for quantized tensors; what was left out at the end is left out. */
static SEXP call_by_name(const overload *form, SEXP *values) {
    char name[128];
    snprintf(name, sizeof name, "aten::%.*s", (int)strcspn(form->schema, "("), form->schema);
    int count = form->count;
    while (count > 0 && values[count - 1] == R_NilValue) count--;
    SEXP arguments = PROTECT(Rf_allocVector(VECSXP, count));
    for (int i = 0; i < count; i++) SET_VECTOR_ELT(arguments, i, plain_argument(&form->parameters[i], values[i]));
    SEXP called = PROTECT(Rf_mkString(name));
    SEXP result = tf_call(called, arguments);
    UNPROTECT(2);
    return result;
}

SEXP call_operator(const operator_entry *op, SEXP *given) {
    SEXP values[MOST_PARAMETERS];
    int given_count = 0;
    for (int i = 0; i < op->slots; i++) given_count += given[i] != R_NilValue;
    const overload *found = NULL;
    for (int converting = 0; converting < 2 && found == NULL; converting++) {
        for (int i = 0; i < op->count; i++) { /* of those that fit, the one that leaves the least unsaid */
            const overload *each = &op->overloads[i];
            if ((found == NULL || each->count < found->count) && by_name(op, each, given, given_count, values, converting)) found = each;
        }
        if (found != NULL) by_name(op, found, given, given_count, values, converting);
        for (int i = 0; i < op->count && found == NULL; i++) {
            if (by_position(op, &op->overloads[i], given, given_count, values, converting)) found = &op->overloads[i];
        }
    }
    if (found == NULL) no_overload(op, given);
    int converted = 0;
    for (int i = 0; i < found->count; i++) {
        bool place = (found->parameters[i].flags & PLACE) != 0;
        if (found->parameters[i].kind == 'T' && found->parameters[i].size == 0 && becomes_tensor(values[i])) {
            SEXP call = PROTECT(Rf_lang3(Rf_install("tensor_argument"), values[i], Rf_ScalarLogical(place)));
            values[i] = PROTECT(Rf_eval(call, package_env));
            converted += 2;
        }
        if (found->parameters[i].kind == 'T' && found->parameters[i].size != 0 && TYPEOF(values[i]) == VECSXP) {
            values[i] = PROTECT(tensors_in(values[i], place));
            converted++;
        }
        if (found->parameters[i].flags & PLACE && found->parameters[i].kind == 'T') {
            values[i] = PROTECT(place_of(values[i]));
            converted++;
        }
    }
    bool quantized = false;
    for (int i = 0; i < found->count && !quantized; i++) quantized = found->parameters[i].kind == 'T' && is_quantized(values[i]);
    SEXP result = quantized ? call_by_name(found, values) : found->call(values);
    UNPROTECT(converted);
    return result;
}

/* A tensor and a number, which is saved for backward as in PyTorch: a second backward finds it gone. */
static SEXP by_number(tn_tensor *(*call)(const tn_tensor *, const tn_tensor *), SEXP x, SEXP number) {
    const tn_tensor *self = tensor_of(x);
    tn_tensor *operand = tn_tensor_from_number(scalar_of(number));
    if (operand == NULL) raise_last();
    tn_tensor *made = call(self, operand);
    tn_free(operand);
    return give(made);
}

/* R's operators, by their place in the list of `mixed`: two tensors, or a tensor and a number on its right, at once;
 * whatever else goes the long way in R. */
SEXP tf_arith(SEXP code, SEXP e1, SEXP e2) {
    static tn_tensor *(*const of_tensors[])(const tn_tensor *, const tn_tensor *) = {
        tn_add, tn_sub, tn_mul, tn_div, tn_pow, tn_eq, tn_ne, tn_lt, tn_le, tn_gt, tn_ge};
    static tn_tensor *(*const of_number[])(const tn_tensor *, tn_scalar) = {
        NULL, NULL, NULL, NULL, tn_pow_Tensor_Scalar, tn_eq_Scalar, tn_ne_Scalar,
        tn_lt_Scalar, tn_le_Scalar, tn_gt_Scalar, tn_ge_Scalar};
    static const char *const names[] = {"+", "-", "*", "/", "^", "==", "!=", "<", "<=", ">", ">="};
    int at = INTEGER(code)[0] - 1;
    if (is_tensor(e1)) {
        if (is_tensor(e2)) return give(of_tensors[at](tensor_of(e1), tensor_of(e2)));
        if (is_number(e2) && Rf_getAttrib(e2, R_DimSymbol) == R_NilValue) {
            if (at == 2 || at == 3) return by_number(of_tensors[at], e1, e2);
            tn_scalar number = scalar_of(e2);
            if (at == 0) return give(tn_add_Scalar(tensor_of(e1), number, tn_int(1)));
            if (at == 1) return give(tn_sub_Scalar(tensor_of(e1), number, tn_int(1)));
            return give(of_number[at](tensor_of(e1), number));
        }
    }
    if (at == 2 && is_tensor(e2) && is_number(e1) && Rf_getAttrib(e1, R_DimSymbol) == R_NilValue) {
        return by_number(tn_mul, e2, e1);
    }
    SEXP name = PROTECT(Rf_mkString(names[at]));
    SEXP found = Rf_eval(PROTECT(Rf_lang4(Rf_install("mixed"), name, e1, e2)), package_env);
    UNPROTECT(2);
    return found;
}
