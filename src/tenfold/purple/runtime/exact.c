/* Exact numbers: integers of any size, and ratios of them in lowest terms. What they are as floats is rounded once,
   to the nearest, halves to the even one. */
#include "wholes.h"

#include <stdlib.h>

static Value over_of(Value v) { return pu_is(v, PU_RATIO) ? PU_AS(PuRatio, v)->over : v; }
static Value under_of(Value v) { return pu_is(v, PU_RATIO) ? PU_AS(PuRatio, v)->under : pu_of_fixnum(1); }

/* A number of its own: what primitives give is nobody else's. */
Value pu_fresh(Value v) {
    if (pu_is(v, PU_INT)) return pu_box_int(pu_int(v));
    if (pu_is(v, PU_BIG)) return pu_of_limbs(PU_AS(PuBig, v)->negative, PU_AS(PuBig, v)->limbs, PU_AS(PuBig, v)->count);
    if (!pu_is(v, PU_RATIO)) return v; /* a fixnum */
    PuRatio *ratio = pu_allocate(PU_RATIO, sizeof(PuRatio));
    ratio->over = pu_dup(over_of(v));
    ratio->under = pu_dup(under_of(v));
    return pu_of_object(ratio);
}

/* An operation on two that it takes over; one that failed fails it. */
static Value taking(Value (*operation)(Value, Value), Value a, Value b) {
    Value result = a && b ? operation(a, b) : PU_FAILURE;
    if (a) pu_drop(a);
    if (b) pu_drop(b);
    return result;
}

static Value quotient_of(Value a, Value b) { return pu_whole_divide(a, b, NULL); }

static Value common_divisor(Value a, Value b) {
    a = pu_dup(a);
    b = pu_dup(b);
    while (b != pu_of_fixnum(0)) {
        Value rest;
        pu_drop(pu_whole_divide(a, b, &rest));
        pu_drop(a);
        a = b;
        b = rest;
    }
    return a;
}

/* The ratio of two integers that it takes over, the second of which is not 0. */
static Value lowest(Value over, Value under) {
    if (!over || !under) {
        if (over) pu_drop(over);
        if (under) pu_drop(under);
        return PU_FAILURE;
    }
    Value divisor = common_divisor(over, under);
    if (pu_whole_is_negative(divisor) != pu_whole_is_negative(under)) divisor = taking(pu_whole_subtract, pu_of_fixnum(0), divisor);
    over = taking(quotient_of, over, pu_dup(divisor));
    under = taking(quotient_of, under, divisor);
    if (under == pu_of_fixnum(1)) return over;
    PuRatio *ratio = pu_allocate(PU_RATIO, sizeof(PuRatio));
    ratio->over = over;
    ratio->under = under;
    return pu_of_object(ratio);
}

Value pu_ratio(Value over, Value under) { return lowest(pu_dup(over), pu_dup(under)); }

/* + - * / of exact numbers; the divisor is not 0. */
Value pu_exact_operation(char operation, Value a, Value b) {
    Value an = over_of(a), ad = under_of(a), bn = over_of(b), bd = under_of(b);
    bool whole = !pu_is(a, PU_RATIO) && !pu_is(b, PU_RATIO);
    switch (operation) {
    case '+': case '-': {
        Value (*combine)(Value, Value) = operation == '+' ? pu_whole_add : pu_whole_subtract;
        if (whole) return combine(a, b);
        Value over = taking(combine, pu_whole_multiply(an, bd), pu_whole_multiply(bn, ad));
        return lowest(over, over ? pu_whole_multiply(ad, bd) : PU_FAILURE);
    }
    case '*': {
        if (whole) return pu_whole_multiply(a, b);
        Value over = pu_whole_multiply(an, bn);
        return lowest(over, over ? pu_whole_multiply(ad, bd) : PU_FAILURE);
    }
    default: {
        if (whole) return pu_ratio(a, b);
        Value over = pu_whole_multiply(an, bd);
        return lowest(over, over ? pu_whole_multiply(ad, bn) : PU_FAILURE);
    }
    }
}

int pu_exact_compare(Value a, Value b) { /* -1, 0 or 1 */
    if (!pu_is(a, PU_RATIO) && !pu_is(b, PU_RATIO)) return pu_whole_compare(a, b);
    Value left = pu_whole_product(over_of(a), under_of(b)), right = pu_whole_product(over_of(b), under_of(a));
    int order = pu_whole_compare(left, right);
    pu_drop(left);
    pu_drop(right);
    return order;
}

/* Division that rounds down, and its remainder, which has the divisor's sign. */
Value pu_floor_divide(Value a, Value b, Value *rest) {
    Value quotient = pu_whole_divide(a, b, rest);
    if (*rest == pu_of_fixnum(0) || pu_whole_is_negative(*rest) == pu_whole_is_negative(b)) return quotient;
    *rest = taking(pu_whole_add, *rest, pu_dup(b));
    return taking(pu_whole_subtract, quotient, pu_of_fixnum(1));
}

/* A ratio as a whole number: down, up, towards zero, or to the nearest, halves to the even one. */
Value pu_exact_round(Value v, char how) {
    if (!pu_is(v, PU_RATIO)) return pu_fresh(v);
    Value over = over_of(v), under = under_of(v), rest;
    if (how == 't') return pu_whole_divide(over, under, NULL);
    Value down = pu_floor_divide(over, under, &rest);
    bool up = how == 'c';
    if (how == 'r') {
        Value left = taking(pu_whole_subtract, pu_dup(under), pu_dup(rest));
        int order = pu_whole_compare(rest, left);
        Whole whole;
        pu_view(down, &whole);
        up = order > 0 || (order == 0 && whole.count && (whole.limbs[0] & 1));
        pu_drop(left);
    }
    pu_drop(rest);
    return up ? taking(pu_whole_add, down, pu_of_fixnum(1)) : down;
}

/* Floats */

/* The double nearest to a number of up to 66 bits and some that were cut off, times a power of two. */
static double rounded(Value bits, bool more, int64_t power) {
    Whole x;
    pu_view(bits, &x);
    int64_t length = pu_bits_of(&x), top = length + power; /* the value is below 2 to the top */
    int64_t kept = top - 1 >= -1022 ? 53 : 53 - (-1022 - (top - 1)), cut = length - kept;
    if (top > 1024) return HUGE_VAL;
    if (kept < 0) return 0;
    if (cut <= 0) return ldexp((double)(uint64_t)(x.limbs[0] | (x.count > 1 ? (uint64_t)x.limbs[1] << 32 : 0)), (int)power);
    Value whole = pu_whole_shift(bits, -cut), back = pu_whole_shift(whole, cut), rest = pu_whole_subtract(bits, back);
    Value half = pu_whole_shift(pu_of_fixnum(1), cut - 1);
    int order = pu_whole_compare(rest, half);
    int64_t mantissa = pu_int(whole);
    pu_drop(back);
    pu_drop(rest);
    pu_drop(half);
    pu_drop(whole);
    if (order > 0 || (order == 0 && (more || (mantissa & 1)))) mantissa++;
    return ldexp((double)mantissa, (int)(power + cut));
}

double pu_exact_double(Value v) {
    if (pu_is_int(v)) return (double)pu_int(v);
    Whole over, under;
    pu_view(over_of(v), &over);
    pu_view(under_of(v), &under);
    /* So many bits more above the line that the quotient has 64 or 65. */
    int64_t shift = 64 - (pu_bits_of(&over) - pu_bits_of(&under));
    Value above = pu_of_limbs(false, over.limbs, over.count), below = pu_dup(under_of(v)), rest;
    if (shift < 0) {
        Value larger = pu_scaled(below, -shift);
        pu_drop(below);
        below = larger;
    } else {
        Value larger = pu_scaled(above, shift);
        pu_drop(above);
        above = larger;
    }
    Value quotient = pu_whole_divide(above, below, &rest);
    double result = rounded(quotient, rest != pu_of_fixnum(0), -shift);
    pu_drop(above);
    pu_drop(below);
    pu_drop(quotient);
    pu_drop(rest);
    return over.negative ? -result : result;
}

/* The exact number that a finite double is. */
Value pu_double_exact(double x) {
    int power;
    double mantissa = frexp(x, &power);
    Value whole = pu_of_int((int64_t)(mantissa * 0x1p53));
    power -= 53;
    if (power >= 0) {
        Value result = pu_whole_shift(whole, power);
        pu_drop(whole);
        return result;
    }
    return lowest(whole, pu_whole_shift(pu_of_fixnum(1), -power));
}

/* A whole power of an exact number; fails where it is too long. */
Value pu_exact_power(Value base, int64_t exponent) {
    Value result = pu_of_fixnum(1), square = pu_dup(base);
    for (; exponent > 0 && result && square; exponent >>= 1) {
        if (exponent & 1) {
            Value next = pu_exact_operation('*', result, square);
            pu_drop(result);
            result = next;
        }
        if (exponent > 1 && result) {
            Value next = pu_exact_operation('*', square, square);
            pu_drop(square);
            square = next;
        }
    }
    if (square) pu_drop(square);
    if (square || !result) return result;
    pu_drop(result); /* the square was too long, and so would be the power */
    return PU_FAILURE;
}
