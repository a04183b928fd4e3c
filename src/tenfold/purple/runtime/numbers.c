/* Arithmetic on integers and ratios, which are exact and of any size, and floats; tensors are handed on. */
#include "purple_all.h"

#include <stdio.h>
#include <stdlib.h>

/* A number that was looked at: integers of 64 bits are in `n`, and every kind is also there as a float. */
typedef enum { SMALL, EXACT, FLOAT } Rank;
typedef struct { Rank rank; int64_t n; double x; Value v; } Number;

bool pu_overflowed(void) {
    pu_fail("arithmetic", "integer overflow");
    return false;
}

static bool divided_by_zero(void) {
    pu_fail("arithmetic", "division by zero");
    return false;
}

bool pu_is_exact_integer(Value v) { return pu_is_integer(v); }
bool pu_is_exact_rational(Value v) { return pu_is_integer(v) || pu_is(v, PU_RATIO); }
bool pu_is_float_number(Value v) { return pu_is(v, PU_FLOAT); }
bool pu_is_number(Value v) { return pu_is_exact_rational(v) || pu_is(v, PU_FLOAT); }
double pu_double(Value v) { return pu_is(v, PU_FLOAT) ? pu_float(v) : pu_exact_double(v); }

static bool read_number(const char *name, const char *kind, Value v, Number *out) {
    if (pu_is_int(v)) {
        *out = (Number){SMALL, pu_int(v), (double)pu_int(v), v};
        return true;
    }
    if (pu_is(v, PU_FLOAT)) {
        *out = (Number){FLOAT, 0, pu_float(v), v};
        return true;
    }
    if (pu_is(v, PU_BIG) || pu_is(v, PU_RATIO)) {
        *out = (Number){EXACT, 0, pu_exact_double(v), v};
        return true;
    }
    pu_wrong_type(name, kind, v);
    return false;
}

static bool number(const char *name, Value v, Number *out) { return read_number(name, "number", v, out); }
static bool operand(const char *name, Value v, Number *out) { return read_number(name, "number*", v, out); }
static bool any_float(const Number *x, const Number *y) { return x->rank == FLOAT || y->rank == FLOAT; }

/* An integer of 64 bits, which counts, indices and sizes are. */
bool pu_take_int(const char *name, Value v, int64_t *out) {
    if (PU_LIKELY(pu_is_int(v))) {
        *out = pu_int(v);
        return true;
    }
    if (pu_is(v, PU_BIG)) return pu_too_wide(name, v), false;
    return pu_wrong_type(name, "int", v), false;
}

/* The text of an integer that no 64 bits hold, where only such are of use. */
Value pu_too_wide(const char *name, Value v) {
    PuBuffer buffer = {0};
    pu_put_text(&buffer, name);
    pu_put_text(&buffer, ": ");
    pu_put_brief(&buffer, v);
    pu_put_text(&buffer, " does not fit in 64 bits");
    return pu_fail_text("arithmetic", &buffer);
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

/* Whether a tensor's operator takes this: its integers have 64 bits. */
static bool beside_tensor(const char *name, Value v) {
    Number other;
    if (pu_is(v, PU_BIG)) return pu_too_wide(name, v), false;
    return pu_is(v, PU_TENSOR) || operand(name, v, &other);
}

static Value operation(const char *name, Value a, Value b) {
    if (some_tensor(a, b)) {
        return beside_tensor(name, a) && beside_tensor(name, b) ? pu_tensor_hooks->arithmetic(name, a, b) : PU_FAILURE;
    }
    Number x, y;
    if (!operand(name, a, &x) || !operand(name, b, &y)) return PU_FAILURE;
    int64_t r;
    if (any_float(&x, &y)) switch (*name) {
        case '+': return pu_of_float(x.x + y.x);
        case '-': return pu_of_float(x.x - y.x);
        case '*': return pu_of_float(x.x * y.x);
        default: return pu_of_float(x.x / y.x);
    }
    bool small = x.rank == SMALL && y.rank == SMALL;
    if (*name == '/') {
        if (b == pu_of_fixnum(0)) return divided_by_zero(), PU_FAILURE;
        if (small && y.n != -1 && x.n % y.n == 0) return pu_of_int(x.n / y.n);
    } else if (small) {
        bool over = *name == '+' ? __builtin_add_overflow(x.n, y.n, &r)
                    : *name == '-' ? __builtin_sub_overflow(x.n, y.n, &r) : __builtin_mul_overflow(x.n, y.n, &r);
        if (!over) return pu_of_int(r);
    }
    return pu_exact_operation(*name, a, b);
}

/* Of two floats, which need no look at what else a number can be. */
static bool are_floats(Value a, Value b) { return pu_is(a, PU_FLOAT) && pu_is(b, PU_FLOAT); }
#define PU_OPERATION(function, name, sign)                                            \
    Value function(Value a, Value b) {                                                \
        if (are_floats(a, b)) return pu_of_float(pu_float(a) sign pu_float(b));       \
        return operation(name, a, b);                                                 \
    }
Value pu_taken(Value result, Value a, Value b) {
    if (result) {
        pu_drop(a);
        pu_drop(b);
    }
    return result;
}

PU_OPERATION(pu_add_slow, "+", +)
PU_OPERATION(pu_subtract_slow, "-", -)
PU_OPERATION(pu_multiply_slow, "*", *)
PU_OPERATION(pu_divide, "/", /)

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
    if (!pu_is_number(v[0])) return pu_wrong_type("-", "number*", v[0]);
    return operation("-", pu_of_fixnum(0), v[0]);
}
Value pu_divide_many(const Value *v, int n) {
    return n > 1 ? folded("/", v + 1, n - 1, v[0]) : operation("/", pu_of_fixnum(1), v[0]);
}

/* Exact: an integer or a ratio is compared with a float as numbers, not as floats. */
static int compare(const Number *a, const Number *b) { /* -1, 0, 1; 2 where one is no number */
    if (a->rank == SMALL && b->rank == SMALL) return a->n < b->n ? -1 : a->n > b->n;
    if (!any_float(a, b)) return pu_exact_compare(a->v, b->v);
    if (isnan(a->x) || isnan(b->x)) return 2;
    if (a->rank == FLOAT && b->rank == FLOAT) return a->x < b->x ? -1 : a->x > b->x;
    if (a->rank == FLOAT) return -compare(b, a);
    if (isinf(b->x)) return b->x > 0 ? -1 : 1;
    Value exact = pu_double_exact(b->x);
    int order = pu_exact_compare(a->v, exact);
    pu_drop(exact);
    return order;
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
    if (are_floats(a, b)) {
        double x = pu_float(a), y = pu_float(b);
        bool or_same = name[0] == '=' || name[1] == '=';
        return pu_of_bool((name[0] == '<' && x < y) || (name[0] == '>' && x > y) || (or_same && x == y));
    }
    if (some_tensor(a, b)) {
        return beside_tensor(name, a) && beside_tensor(name, b) ? pu_tensor_hooks->arithmetic(name, a, b) : PU_FAILURE;
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
    floats = best.rank == FLOAT;
    for (int i = 1; i < n; i++) {
        if (!number(name, v[i], &next)) return PU_FAILURE;
        floats = floats || next.rank == FLOAT;
        bool none = isnan(next.x); /* what is no number wins, and stays */
        if ((none || compare(&next, &best) == wanted) && !isnan(best.x))
            best = next;
    }
    return floats ? pu_of_float(best.x) : pu_fresh(best.v);
}
Value pu_min_many(const Value *v, int n) { return extreme("min", v, n, -1); }
Value pu_max_many(const Value *v, int n) { return extreme("max", v, n, 1); }
Value pu_min(Value a, Value b) { return extreme("min", (Value[]){a, b}, 2, -1); }
Value pu_max(Value a, Value b) { return extreme("max", (Value[]){a, b}, 2, 1); }

Value pu_operation_with_int(char operation, Value a, int64_t b) {
    Value y = pu_of_int(b), result = pu_exact_operation(operation, a, y);
    pu_drop(y);
    return result;
}
/* Sums and products of 64 bits that do not fit. */
Value pu_wide_operation(char operation, int64_t a, int64_t b) {
    Value x = pu_of_int(a), result = pu_operation_with_int(operation, x, b);
    pu_drop(x);
    return result;
}

static bool both_integers(const char *name, Value a, Value b) {
    if (!pu_is_integer(a)) return pu_wrong_type(name, "int", a), false;
    if (!pu_is_integer(b)) return pu_wrong_type(name, "int", b), false;
    return true;
}

Value pu_quotient_slow(Value a, Value b) {
    if (!both_integers("quotient", a, b)) return PU_FAILURE;
    if (b == pu_of_fixnum(0)) return divided_by_zero(), PU_FAILURE;
    return pu_whole_divide(a, b, NULL);
}

static double floored(double x, double y) {
    double m = fmod(x, y);
    return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

/* The remainder of integers, or of floats, which a ratio becomes. */
static Value remainder_of(const char *name, Value a, Value b, bool down) {
    Number x, y;
    if (!number(name, a, &x) || !number(name, b, &y)) return PU_FAILURE;
    if (!pu_is_integer(a) || !pu_is_integer(b)) {
        if (any_float(&x, &y)) return pu_of_float(down ? floored(x.x, y.x) : fmod(x.x, y.x));
        return pu_wrong_type(name, "int", pu_is_integer(a) ? b : a);
    }
    if (b == pu_of_fixnum(0)) return divided_by_zero(), PU_FAILURE;
    Value rest;
    Value quotient = down ? pu_floor_divide(a, b, &rest) : pu_whole_divide(a, b, &rest);
    pu_drop(quotient);
    return rest;
}
Value pu_remainder_slow(Value a, Value b) { return remainder_of("%", a, b, false); }
Value pu_modulo_slow(Value a, Value b) { return remainder_of("modulo", a, b, true); }

Value pu_expt(Value a, Value b) {
    Number x, y;
    if (!number("expt", a, &x) || !number("expt", b, &y)) return PU_FAILURE;
    if (any_float(&x, &y) || pu_is(b, PU_RATIO)) return pu_of_float(pow(x.x, y.x));
    bool negative = y.x < 0;
    if (negative && a == pu_of_fixnum(0)) return divided_by_zero(), PU_FAILURE;
    if (y.rank != SMALL) { /* only powers of 1 and 0 are no longer than they are */
        if (a != pu_of_fixnum(0) && a != pu_of_fixnum(1) && a != pu_of_fixnum(-1)) return pu_overflowed(), PU_FAILURE;
        Value rest;
        pu_drop(pu_whole_divide(b, pu_of_fixnum(2), &rest));
        y.n = rest == pu_of_fixnum(0) ? 2 : 1;
    } else if (negative) {
        y.n = y.n == INT64_MIN ? INT64_MAX - 1 : -y.n; /* both are even, and too long but for 1 */
    }
    Value power = pu_exact_power(a, y.n);
    if (!power || !negative) return power;
    Value turned = pu_exact_operation('/', pu_of_fixnum(1), power);
    pu_drop(power);
    return turned;
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

/* Of an integer that is no float too: by its upper bits. */
static double logarithm(const Number *x) {
    if (!pu_is(x->v, PU_BIG) || !isinf(x->x)) return log(x->x);
    if (x->x < 0) return (double)NAN;
    int64_t cut = 32 * (PU_AS(PuBig, x->v)->count - 3);
    Value upper = pu_whole_shift(x->v, -cut);
    double result = log(pu_exact_double(upper)) + (double)cut * 0.69314718055994530942;
    pu_drop(upper);
    return result;
}
Value pu_log(Value a, Value base) {
    Number x, b;
    if (!number("log", a, &x) || (base != PU_ABSENT && !number("log", base, &b))) return PU_FAILURE;
    return pu_of_float(base == PU_ABSENT ? logarithm(&x) : logarithm(&x) / logarithm(&b));
}
Value pu_atan(Value y, Value x) {
    Number a, b = {FLOAT, 0, 1, 0};
    if (!number("atan", y, &a) || (x != PU_ABSENT && !number("atan", x, &b))) return PU_FAILURE;
    return pu_of_float(x == PU_ABSENT ? atan(a.x) : atan2(a.x, b.x));
}
static Value over_of(Value v) { return pu_is(v, PU_RATIO) ? PU_AS(PuRatio, v)->over : v; }
static Value under_of(Value v) { return pu_is(v, PU_RATIO) ? PU_AS(PuRatio, v)->under : pu_of_fixnum(1); }

/* Of an exact number: a ratio may be too small for its float to tell. */
static bool is_negative(Value v) { return pu_whole_is_negative(over_of(v)); }

/* The root of an exact number that is a square; 0 where it is none. */
static Value exact_root(Value v) {
    Value above = pu_whole_root(over_of(v)), below = pu_whole_root(under_of(v));
    Value root = pu_ratio(above, below), square = pu_exact_operation('*', root, root);
    bool is_square = pu_exact_compare(square, v) == 0;
    pu_drop_all((Value[]){above, below, square}, 3);
    if (is_square) return root;
    pu_drop(root);
    return 0;
}

Value pu_sqrt(Value a) {
    Number x;
    if (!number("sqrt", a, &x)) return PU_FAILURE;
    if (x.rank == SMALL && x.n >= 0) {
        int64_t whole = (int64_t)sqrt(x.x);
        for (int64_t near = whole > 0 ? whole - 1 : 0; near <= whole + 1; near++) {
            int64_t square;
            if (!__builtin_mul_overflow(near, near, &square) && square == x.n) return pu_of_int(near);
        }
    }
    Value root = x.rank == EXACT && !is_negative(a) ? exact_root(a) : 0;
    if (x.rank == EXACT && !root && is_negative(a)) return pu_of_float((double)NAN);
    return root ? root : pu_of_float(sqrt(x.x));
}

Value pu_integer_root(Value a) {
    if (!pu_is_integer(a)) return pu_wrong_type("exact-integer-sqrt", "int", a);
    if (pu_whole_is_negative(a)) return pu_fail("arithmetic", "exact-integer-sqrt: a negative number has no root");
    return pu_whole_root(a);
}

#define ROUNDING(function, name, c)                                            \
    Value function(Value a) {                                                  \
        Number x;                                                              \
        if (!number(name, a, &x)) return PU_FAILURE;                           \
        return x.rank == FLOAT ? pu_of_float(c(x.x)) : pu_exact_round(a, *name);  \
    }
ROUNDING(pu_floor, "floor", floor)
ROUNDING(pu_ceiling, "ceiling", ceil)
ROUNDING(pu_round, "round", nearbyint)
ROUNDING(pu_truncate, "truncate", trunc)

Value pu_abs(Value a) {
    Number x;
    if (!number("abs", a, &x)) return PU_FAILURE;
    if (x.rank == FLOAT) return pu_of_float(fabs(x.x));
    return is_negative(a) ? operation("-", pu_of_fixnum(0), a) : pu_fresh(a);
}
Value pu_exact(Value a) {
    Number x;
    if (!number("exact", a, &x)) return PU_FAILURE;
    if (x.rank != FLOAT) return pu_fresh(a);
    return isfinite(x.x) ? pu_double_exact(x.x) : pu_wrong_type("exact", "finite", a);
}
Value pu_to_int(Value a) {
    Number x;
    if (!number("->int", a, &x)) return PU_FAILURE;
    if (x.rank != FLOAT) return pu_exact_round(a, 't');
    return isfinite(x.x) ? pu_double_exact(trunc(x.x)) : (pu_overflowed(), PU_FAILURE);
}
Value pu_numerator(Value a) { return pu_is_exact_rational(a) ? pu_fresh(over_of(a)) : pu_wrong_type("numerator", "number", a); }
Value pu_denominator(Value a) { return pu_is_exact_rational(a) ? pu_fresh(under_of(a)) : pu_wrong_type("denominator", "number", a); }
Value pu_to_float(Value a) {
    Number x;
    return number("->float", a, &x) ? pu_of_float(x.x) : PU_FAILURE;
}

#define BITS(function, name, sign)                                                                   \
    Value function(Value a, Value b) {                                                               \
        if (!both_integers(name, a, b)) return PU_FAILURE;                                           \
        return pu_is_int(a) && pu_is_int(b) ? pu_of_int(pu_int(a) sign pu_int(b)) : pu_whole_bits(a, b, #sign[0]); \
    }
BITS(pu_bitwise_and, "bitwise-and", &)
BITS(pu_bitwise_or, "bitwise-or", |)
BITS(pu_bitwise_xor, "bitwise-xor", ^)
Value pu_arithmetic_shift(Value a, Value count) {
    if (!both_integers("arithmetic-shift", a, count)) return PU_FAILURE;
    if (pu_is_int(count)) return pu_whole_shift(a, pu_int(count));
    return pu_whole_shift(a, pu_whole_is_negative(count) ? -PU_MOST_BITS : PU_MOST_BITS + 1);
}

Value pu_number_to_fixed(Value a, Value digits) {
    Number x;
    int64_t n;
    if (!number("number->fixed", a, &x) || !pu_take_int("number->fixed", digits, &n)) return PU_FAILURE;
    if (n < 0 || n > 100) return pu_out_of_range("number->fixed", n, 101);
    char text[512];
    int length = snprintf(text, sizeof text, "%.*f", (int)n, isnan(x.x) ? NAN : x.x); /* no "-nan" */
    return pu_string(text, length);
}
