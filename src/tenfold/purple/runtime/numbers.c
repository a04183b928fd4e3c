/* Arithmetic on integers of 64 bits, whose overflow is an error, and floats; tensors are handed on. */
#include "purple_all.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct { bool is_float; int64_t n; double x; } Number;

bool pu_overflowed(void) {
    pu_fail("arithmetic", "integer overflow");
    return false;
}

static bool divided_by_zero(void) {
    pu_fail("arithmetic", "division by zero");
    return false;
}

bool pu_is_exact_integer(Value v) { return pu_is_int(v); }
bool pu_is_float_number(Value v) { return pu_is(v, PU_FLOAT); }
bool pu_is_number(Value v) { return pu_is_int(v) || pu_is(v, PU_FLOAT); }

static bool read_number(const char *name, const char *kind, Value v, Number *out) {
    if (pu_is_int(v)) {
        *out = (Number){false, pu_int(v), (double)pu_int(v)};
        return true;
    }
    if (pu_is(v, PU_FLOAT)) {
        *out = (Number){true, 0, pu_float(v)};
        return true;
    }
    pu_wrong_type(name, kind, v);
    return false;
}

static bool number(const char *name, Value v, Number *out) { return read_number(name, "number", v, out); }
static bool operand(const char *name, Value v, Number *out) { return read_number(name, "number*", v, out); }

static bool integer(const char *name, Value v, int64_t *out) {
    if (!pu_is_int(v)) {
        pu_wrong_type(name, "int", v);
        return false;
    }
    *out = pu_int(v);
    return true;
}

static bool some_tensor(Value a, Value b) { return pu_is(a, PU_TENSOR) || pu_is(b, PU_TENSOR); }

bool pu_int_quotient(int64_t a, int64_t b, int64_t *r) {
    if (b == 0) return divided_by_zero();
    if (a == INT64_MIN && b == -1) return pu_overflowed();
    *r = a / b;
    return true;
}
bool pu_int_remainder(int64_t a, int64_t b, int64_t *r) {
    if (b == 0) return divided_by_zero();
    *r = b == -1 ? 0 : a % b;
    return true;
}
bool pu_int_modulo(int64_t a, int64_t b, int64_t *r) {
    if (!pu_int_remainder(a, b, r)) return false;
    if (*r != 0 && (*r < 0) != (b < 0)) *r += b;
    return true;
}

static Value operation(const char *name, Value a, Value b) {
    if (some_tensor(a, b)) {
        Number other;
        if (!pu_is(a, PU_TENSOR) && !operand(name, a, &other)) return PU_FAILURE;
        if (!pu_is(b, PU_TENSOR) && !operand(name, b, &other)) return PU_FAILURE;
        return pu_tensor_hooks->arithmetic(name, a, b);
    }
    Number x, y;
    if (!operand(name, a, &x) || !operand(name, b, &y)) return PU_FAILURE;
    int64_t r;
    if (x.is_float || y.is_float) switch (*name) {
        case '+': return pu_of_float(x.x + y.x);
        case '-': return pu_of_float(x.x - y.x);
        case '*': return pu_of_float(x.x * y.x);
        default: return pu_of_float(x.x / y.x);
    }
    switch (*name) {
    case '+': return pu_int_add(x.n, y.n, &r) ? pu_of_int(r) : PU_FAILURE;
    case '-': return pu_int_subtract(x.n, y.n, &r) ? pu_of_int(r) : PU_FAILURE;
    case '*': return pu_int_multiply(x.n, y.n, &r) ? pu_of_int(r) : PU_FAILURE;
    }
    if (!pu_int_remainder(x.n, y.n, &r)) return PU_FAILURE;
    if (r != 0) return pu_of_float((double)x.n / (double)y.n);
    return pu_int_quotient(x.n, y.n, &r) ? pu_of_int(r) : PU_FAILURE;
}

Value pu_add_slow(Value a, Value b) { return operation("+", a, b); }
Value pu_subtract_slow(Value a, Value b) { return operation("-", a, b); }
Value pu_multiply(Value a, Value b) {
    int64_t r;
    if (PU_LIKELY((a & b & 1) && !__builtin_mul_overflow((int64_t)(a - 1), pu_fixnum(b), &r))) return (Value)(r + 1);
    return operation("*", a, b);
}
Value pu_divide(Value a, Value b) { return operation("/", a, b); }

static Value folded(const char *name, const Value *v, int n, Value start) {
    Value sum = pu_dup(start);
    for (int i = 0; i < n; i++) {
        Value next = operation(name, sum, v[i]);
        pu_drop(sum);
        if (!next) return PU_FAILURE;
        sum = next;
    }
    return sum;
}

static Value checked_number(const char *name, Value v) {
    return pu_is_number(v) || pu_is(v, PU_TENSOR) ? pu_dup(v) : pu_wrong_type(name, "number*", v);
}
Value pu_add_many(const Value *v, int n) {
    if (n == 0) return pu_of_fixnum(0);
    return n == 1 ? checked_number("+", v[0]) : folded("+", v + 1, n - 1, v[0]);
}
Value pu_multiply_many(const Value *v, int n) {
    if (n == 0) return pu_of_fixnum(1);
    return n == 1 ? checked_number("*", v[0]) : folded("*", v + 1, n - 1, v[0]);
}
Value pu_subtract_many(const Value *v, int n) {
    if (n > 1) return folded("-", v + 1, n - 1, v[0]);
    if (pu_is(v[0], PU_TENSOR)) return pu_tensor_hooks->negate(v[0]);
    if (pu_is(v[0], PU_FLOAT)) return pu_of_float(-pu_float(v[0]));
    if (!pu_is_int(v[0])) return pu_wrong_type("-", "number*", v[0]);
    return operation("-", pu_of_fixnum(0), v[0]);
}
Value pu_divide_many(const Value *v, int n) {
    return n > 1 ? folded("/", v + 1, n - 1, v[0]) : operation("/", pu_of_fixnum(1), v[0]);
}

/* Exact: an integer is compared with a float as numbers, not as floats. */
static int compare(const Number *a, const Number *b) { /* -1, 0, 1; 2 where one is no number */
    if (!a->is_float && !b->is_float) return a->n < b->n ? -1 : a->n > b->n;
    if (a->is_float && b->is_float) {
        if (isnan(a->x) || isnan(b->x)) return 2;
        return a->x < b->x ? -1 : a->x > b->x;
    }
    if (a->is_float) {
        int turned = compare(b, a);
        return turned == 2 ? 2 : -turned;
    }
    double x = b->x;
    if (isnan(x)) return 2;
    if (x >= 9223372036854775808.0) return -1;
    if (x < -9223372036854775808.0) return 1;
    int64_t whole = (int64_t)x;
    if (a->n != whole) return a->n < whole ? -1 : 1;
    double fraction = x - (double)whole;
    return fraction > 0 ? -1 : fraction < 0;
}

static bool holds(const char *name, int order) {
    if (order == 2) return false;
    switch (name[0]) {
    case '=': return order == 0;
    case '<': return order < 0 || (name[1] && order == 0);
    default: return order > 0 || (name[1] && order == 0);
    }
}

Value pu_compare_slow(const char *name, Value a, Value b) {
    if (some_tensor(a, b)) {
        Number other;
        if (!pu_is(a, PU_TENSOR) && !operand(name, a, &other)) return PU_FAILURE;
        if (!pu_is(b, PU_TENSOR) && !operand(name, b, &other)) return PU_FAILURE;
        return pu_tensor_hooks->arithmetic(name, a, b);
    }
    Number x, y;
    if (!operand(name, a, &x) || !operand(name, b, &y)) return PU_FAILURE;
    return pu_of_bool(holds(name, compare(&x, &y)));
}

static Value chain(const char *name, const Value *v, int n) {
    Number last, next;
    bool all = true;
    if (!number(name, v[0], &last)) return PU_FAILURE;
    for (int i = 1; i < n; i++) {
        if (!number(name, v[i], &next)) return PU_FAILURE;
        all = all && holds(name, compare(&last, &next));
        last = next;
    }
    return pu_of_bool(all);
}
Value pu_less_many(const Value *v, int n) { return n == 2 ? pu_less(v[0], v[1]) : chain("<", v, n); }
Value pu_greater_many(const Value *v, int n) { return n == 2 ? pu_greater(v[0], v[1]) : chain(">", v, n); }
Value pu_not_greater_many(const Value *v, int n) { return n == 2 ? pu_not_greater(v[0], v[1]) : chain("<=", v, n); }
Value pu_not_less_many(const Value *v, int n) { return n == 2 ? pu_not_less(v[0], v[1]) : chain(">=", v, n); }
Value pu_same_number_many(const Value *v, int n) { return n == 2 ? pu_same_number(v[0], v[1]) : chain("=", v, n); }

static Value extreme(const char *name, const Value *v, int n, int wanted) {
    Number best, next;
    bool floats = false;
    if (!number(name, v[0], &best)) return PU_FAILURE;
    floats = best.is_float;
    for (int i = 1; i < n; i++) {
        if (!number(name, v[i], &next)) return PU_FAILURE;
        floats = floats || next.is_float;
        bool none = next.is_float && isnan(next.x); /* what is no number wins, and stays */
        if ((none || compare(&next, &best) == wanted) && !(best.is_float && isnan(best.x)))
            best = next;
    }
    return floats ? pu_of_float(best.x) : pu_of_int(best.n);
}
Value pu_min_many(const Value *v, int n) { return extreme("min", v, n, -1); }
Value pu_max_many(const Value *v, int n) { return extreme("max", v, n, 1); }
Value pu_min(Value a, Value b) { return extreme("min", (Value[]){a, b}, 2, -1); }
Value pu_max(Value a, Value b) { return extreme("max", (Value[]){a, b}, 2, 1); }

Value pu_quotient(Value a, Value b) {
    int64_t x, y, r;
    if (!integer("quotient", a, &x) || !integer("quotient", b, &y) || !pu_int_quotient(x, y, &r)) return PU_FAILURE;
    return pu_of_int(r);
}
Value pu_remainder(Value a, Value b) {
    Number x, y;
    int64_t r;
    if (!number("%", a, &x) || !number("%", b, &y)) return PU_FAILURE;
    if (x.is_float || y.is_float) return pu_of_float(fmod(x.x, y.x));
    return pu_int_remainder(x.n, y.n, &r) ? pu_of_int(r) : PU_FAILURE;
}
Value pu_modulo(Value a, Value b) {
    Number x, y;
    int64_t r;
    if (!number("modulo", a, &x) || !number("modulo", b, &y)) return PU_FAILURE;
    if (x.is_float || y.is_float) {
        double m = fmod(x.x, y.x);
        if (m != 0 && (m < 0) != (y.x < 0)) m += y.x;
        return pu_of_float(m);
    }
    return pu_int_modulo(x.n, y.n, &r) ? pu_of_int(r) : PU_FAILURE;
}

Value pu_expt(Value a, Value b) {
    Number x, y;
    if (!number("expt", a, &x) || !number("expt", b, &y)) return PU_FAILURE;
    if (x.is_float || y.is_float || y.n < 0) return pu_of_float(pow(x.x, y.x));
    int64_t result = 1, base = x.n;
    for (int64_t n = y.n; n > 0; n >>= 1) {
        if ((n & 1) && !pu_int_multiply(result, base, &result)) return PU_FAILURE;
        if (n > 1 && !pu_int_multiply(base, base, &base)) return PU_FAILURE;
    }
    return pu_of_int(result);
}

#define FLOAT_FUNCTION(function, name, c)                                      \
    Value function(Value a) {                                                  \
        Number x;                                                              \
        return number(name, a, &x) ? pu_of_float(c(x.x)) : PU_FAILURE;         \
    }
FLOAT_FUNCTION(pu_exp, "exp", exp)
FLOAT_FUNCTION(pu_sin, "sin", sin)
FLOAT_FUNCTION(pu_cos, "cos", cos)
FLOAT_FUNCTION(pu_tan, "tan", tan)
FLOAT_FUNCTION(pu_asin, "asin", asin)
FLOAT_FUNCTION(pu_acos, "acos", acos)
Value pu_log(Value a, Value base) {
    Number x, b;
    if (!number("log", a, &x) || (base != PU_ABSENT && !number("log", base, &b))) return PU_FAILURE;
    return pu_of_float(base == PU_ABSENT ? log(x.x) : log(x.x) / log(b.x));
}
Value pu_atan(Value y, Value x) {
    Number a, b = {true, 0, 1};
    if (!number("atan", y, &a) || (x != PU_ABSENT && !number("atan", x, &b))) return PU_FAILURE;
    return pu_of_float(x == PU_ABSENT ? atan(a.x) : atan2(a.x, b.x));
}
Value pu_sqrt(Value a) {
    Number x;
    if (!number("sqrt", a, &x)) return PU_FAILURE;
    double root = sqrt(x.x);
    if (!x.is_float && x.n >= 0) {
        int64_t whole = (int64_t)root;
        for (int64_t near = whole > 0 ? whole - 1 : 0; near <= whole + 1; near++) {
            int64_t square;
            if (!__builtin_mul_overflow(near, near, &square) && square == x.n) return pu_of_int(near);
        }
    }
    return pu_of_float(root);
}

#define ROUNDING(function, name, c)                                            \
    Value function(Value a) {                                                  \
        Number x;                                                              \
        if (!number(name, a, &x)) return PU_FAILURE;                           \
        return x.is_float ? pu_of_float(c(x.x)) : pu_of_int(x.n);                \
    }
ROUNDING(pu_floor, "floor", floor)
ROUNDING(pu_ceiling, "ceiling", ceil)
ROUNDING(pu_round, "round", nearbyint)
ROUNDING(pu_truncate, "truncate", trunc)

Value pu_abs(Value a) {
    Number x;
    if (!number("abs", a, &x)) return PU_FAILURE;
    if (x.is_float) return pu_of_float(fabs(x.x));
    int64_t r;
    if (x.n >= 0) return pu_of_int(x.n);
    return pu_int_subtract(0, x.n, &r) ? pu_of_int(r) : PU_FAILURE;
}
Value pu_to_int(Value a) {
    Number x;
    if (!number("->int", a, &x)) return PU_FAILURE;
    if (!x.is_float) return pu_of_int(x.n);
    if (!(x.x >= -9223372036854775808.0 && x.x < 9223372036854775808.0))
        return pu_overflowed(), PU_FAILURE;
    return pu_of_int((int64_t)x.x);
}
Value pu_to_float(Value a) {
    Number x;
    return number("->float", a, &x) ? pu_of_float(x.x) : PU_FAILURE;
}

#define BITS(function, name, sign)                                                                   \
    Value function(Value a, Value b) {                                                               \
        int64_t x, y;                                                                                \
        return integer(name, a, &x) && integer(name, b, &y) ? pu_of_int(x sign y) : PU_FAILURE;      \
    }
BITS(pu_bitwise_and, "bitwise-and", &)
BITS(pu_bitwise_or, "bitwise-or", |)
BITS(pu_bitwise_xor, "bitwise-xor", ^)
Value pu_arithmetic_shift(Value a, Value count) {
    int64_t x, n;
    if (!integer("arithmetic-shift", a, &x) || !integer("arithmetic-shift", count, &n)) return PU_FAILURE;
    if (n < 0) return pu_of_int(n <= -64 ? (x < 0 ? -1 : 0) : x >> -n);
    if (x == 0 || n == 0) return pu_of_int(x);
    if (n > 63 || (x > 0 ? x > INT64_MAX >> n : x < INT64_MIN >> n)) return pu_overflowed(), PU_FAILURE;
    return pu_of_int((int64_t)((uint64_t)x << n));
}

Value pu_number_to_fixed(Value a, Value digits) {
    Number x;
    int64_t n;
    if (!number("number->fixed", a, &x) || !integer("number->fixed", digits, &n)) return PU_FAILURE;
    if (n < 0 || n > 100) return pu_out_of_range("number->fixed", n, 101);
    char text[512];
    int length = snprintf(text, sizeof text, "%.*f", (int)n, isnan(x.x) ? NAN : x.x); /* no "-nan" */
    return pu_string(text, length);
}
