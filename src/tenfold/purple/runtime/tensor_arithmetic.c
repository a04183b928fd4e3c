/* Operators on tensors and numbers, and those whose operand dies, which take over its memory. */
#include "purple_tensors.h"

static Value with_number(const char *name, const tn_tensor *x, tn_scalar y, bool turned) {
    static const char *const TURNED[][2] = {{"<", ">"}, {">", "<"}, {"<=", ">="}, {">=", "<="}};
    if (turned)
        for (size_t i = 0; i < 4; i++)
            if (!strcmp(name, TURNED[i][0])) {
                name = TURNED[i][1];
                break;
            }
    switch (*name) {
    case '+': return pu_of_tensor(tn_add_Scalar(x, y, tn_int(1)), "add");
    case '-': return pu_of_tensor(turned ? tn_rsub_Scalar(x, y, tn_int(1)) : tn_sub_Scalar(x, y, tn_int(1)), "sub");
    case '*': return pu_of_tensor(tn_mul_Scalar(x, y), "mul");
    case '/': {
        if (!turned) return pu_of_tensor(tn_div_Scalar(x, y), "div");
        tn_tensor *inverse = tn_reciprocal(x), *result = inverse ? tn_mul_Scalar(inverse, y) : NULL;
        tn_free(inverse);
        return pu_of_tensor(result, "div");
    }
    case '=': return pu_of_tensor(tn_eq_Scalar(x, y), "eq");
    case '<': return pu_of_tensor(name[1] ? tn_le_Scalar(x, y) : tn_lt_Scalar(x, y), "lt");
    default: return pu_of_tensor(name[1] ? tn_ge_Scalar(x, y) : tn_gt_Scalar(x, y), "gt");
    }
}

static Value arithmetic(const char *name, Value a, Value b) {
    if (!pu_is(a, PU_TENSOR)) return with_number(name, pu_handle(b), pu_to_scalar(a), true);
    if (!pu_is(b, PU_TENSOR)) return with_number(name, pu_handle(a), pu_to_scalar(b), false);
    const tn_tensor *x = pu_handle(a), *y = pu_handle(b);
    switch (*name) {
    case '+': return pu_of_tensor(tn_add(x, y), "add");
    case '-': return pu_of_tensor(tn_sub(x, y), "sub");
    case '*': return pu_of_tensor(tn_mul(x, y), "mul");
    case '/': return pu_of_tensor(tn_div(x, y), "div");
    case '=': return pu_of_tensor(tn_eq(x, y), "eq");
    case '<': return pu_of_tensor(name[1] ? tn_le(x, y) : tn_lt(x, y), "lt");
    default: return pu_of_tensor(name[1] ? tn_ge(x, y) : tn_gt(x, y), "gt");
    }
}

Value pu_tensor_arithmetic(const char *name, Value a, Value b) {
    Value result = arithmetic(name, a, b);
    return PU_LIKELY(result) ? result : pu_refused(name, (Value[]){a, b}, 2, 0);
}

static bool may_reuse(const tn_tensor *tensor) {
    tn_dtype dtype = tn_tensor_dtype(tensor);
    return (dtype == TN_FLOAT32 || dtype == TN_FLOAT64) && tn_grad_enabled() == 0;
}

Value pu_reuse_unary(Value dying, tn_status (*in_place)(tn_tensor *), tn_tensor *(*fresh)(const tn_tensor *), const char *name) {
    const char *maker = name + strlen("tensor-");
    if (may_reuse(pu_handle(dying))) {
        if (in_place(pu_handle(dying)) == TN_OK) {
            pu_note_done();
            return dying;
        }
        pu_tensor_error(maker);
        pu_refused(name, &dying, 1, 0);
        pu_drop(dying);
        return PU_FAILURE;
    }
    Value result = pu_of_tensor(fresh(pu_handle(dying)), maker);
    if (PU_UNLIKELY(!result)) pu_refused(name, &dying, 1, 0);
    pu_drop(dying);
    return result;
}

static bool same_shape(const tn_tensor *a, const tn_tensor *b) {
    int64_t one[PU_MOST_DIMENSIONS], two[PU_MOST_DIMENSIONS];
    int64_t rank = tn_tensor_shape(a, one, PU_MOST_DIMENSIONS);
    if (rank != tn_tensor_shape(b, two, PU_MOST_DIMENSIONS)) return false;
    return !memcmp(one, two, (size_t)rank * sizeof *one);
}

Value pu_reuse_binary(const char *name, Value dying, Value other, bool turned) {
    tn_tensor *x = pu_handle(dying);
    tn_status status = TN_ERROR_ARGUMENT;
    bool reused = false;
    if (pu_is(dying, PU_TENSOR) && may_reuse(x)) {
        if (pu_is(other, PU_TENSOR) && tn_tensor_dtype(pu_handle(other)) == tn_tensor_dtype(x) && same_shape(x, pu_handle(other))) {
            const tn_tensor *y = pu_handle(other);
            reused = true;
            status = *name == '+' ? tn_add_(x, y) : *name == '-' ? tn_sub_(x, y) : *name == '*' ? tn_mul_(x, y) : tn_div_(x, y);
        } else if (pu_is_number(other) && !pu_is(other, PU_BIG)) {
            tn_scalar y = pu_to_scalar(other);
            reused = true;
            status = *name == '+'   ? tn_add_Scalar_(x, y, tn_int(1))
                     : *name == '-' ? tn_sub_Scalar_(x, y, tn_int(1))
                     : *name == '*' ? tn_mul_Scalar_(x, y)
                                    : tn_div_Scalar_(x, y);
        }
    }
    if (reused && status == TN_OK) {
        pu_note_done();
        return dying;
    }
    Value result;
    if (reused) {
        pu_tensor_error(NULL);
        result = pu_refused(name, turned ? (Value[]){other, dying} : (Value[]){dying, other}, 2, 0);
    }
    else if (*name == '+') result = turned ? pu_add(other, dying) : pu_add(dying, other);
    else if (*name == '-') result = pu_subtract(dying, other);
    else if (*name == '*') result = turned ? pu_multiply(other, dying) : pu_multiply(dying, other);
    else result = pu_divide(dying, other);
    pu_drop(dying);
    return result;
}

Value pu_tensor_negate(Value a) {
    Value result = pu_of_tensor(tn_neg(pu_handle(a)), "neg");
    return PU_LIKELY(result) ? result : pu_refused("-", &a, 1, 0);
}
