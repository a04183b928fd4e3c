/* Products and quotients of magnitudes: schoolbook, Karatsuba for long ones, and Knuth's algorithm D. */
#include "wholes.h"

#include <stdlib.h>

enum { LONG = 48 }; /* limbs from which Karatsuba pays */

static uint32_t *zeros(int64_t count) {
    uint32_t *limbs = pu_get_memory((size_t)(count ? count : 1) * sizeof *limbs);
    memset(limbs, 0, (size_t)count * sizeof *limbs);
    return limbs;
}

/* a += b, where the sum fits in a */
static void add_to(uint32_t *a, const uint32_t *b, int64_t m) {
    uint64_t carry = 0;
    int64_t i = 0;
    for (; i < m; i++) {
        carry += (uint64_t)a[i] + b[i];
        a[i] = (uint32_t)carry;
        carry >>= 32;
    }
    for (; carry; i++) {
        carry += a[i];
        a[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* a -= b, where a is not less */
static void take_from(uint32_t *a, const uint32_t *b, int64_t m) {
    uint64_t borrow = 0;
    int64_t i = 0;
    for (; i < m; i++) {
        uint64_t difference = (uint64_t)a[i] - b[i] - borrow;
        a[i] = (uint32_t)difference;
        borrow = difference >> 63;
    }
    for (; borrow; i++) borrow = a[i]-- == 0;
}

static int64_t trimmed(const uint32_t *limbs, int64_t count) {
    while (count > 0 && !limbs[count - 1]) count--;
    return count;
}

static void schoolbook(uint32_t *result, const uint32_t *a, int64_t n, const uint32_t *b, int64_t m) {
    memset(result, 0, (size_t)(n + m) * sizeof *result);
    for (int64_t j = 0; j < m; j++) {
        uint64_t carry = 0, digit = b[j];
        for (int64_t i = 0; i < n; i++) {
            carry += result[i + j] + digit * a[i];
            result[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        result[n + j] = (uint32_t)carry;
    }
}

/* low and high parts of h limbs: (a1 B + a0)(b1 B + b0), with the middle from (a1 + a0)(b1 + b0) */
static void karatsuba(uint32_t *result, const uint32_t *a, int64_t n, const uint32_t *b, int64_t m, int64_t h) {
    uint32_t *sums = zeros(2 * (h + 1)), *middle = zeros(2 * (h + 1));
    memcpy(sums, a, (size_t)h * sizeof *sums);
    memcpy(sums + h + 1, b, (size_t)h * sizeof *sums);
    add_to(sums, a + h, n - h);
    add_to(sums + h + 1, b + h, m - h);
    pu_multiply_limbs(middle, sums, h + 1, sums + h + 1, h + 1);
    pu_multiply_limbs(result, a, h, b, h);
    pu_multiply_limbs(result + 2 * h, a + h, n - h, b + h, m - h);
    take_from(middle, result, 2 * h);
    take_from(middle, result + 2 * h, n + m - 2 * h);
    add_to(result + h, middle, trimmed(middle, 2 * (h + 1)));
    free(sums);
    free(middle);
}

void pu_multiply_limbs(uint32_t *result, const uint32_t *a, int64_t n, const uint32_t *b, int64_t m) {
    if (n < m) {
        pu_multiply_limbs(result, b, m, a, n);
        return;
    }
    int64_t h = (n + 1) / 2;
    if (m < LONG) {
        schoolbook(result, a, n, b, m);
    } else if (m > h) {
        karatsuba(result, a, n, b, m, h);
    } else { /* the longer in pieces as long as the shorter */
        uint32_t *part = zeros(2 * m);
        memset(result, 0, (size_t)(n + m) * sizeof *result);
        for (int64_t at = 0; at < n; at += m) {
            int64_t length = n - at < m ? n - at : m;
            pu_multiply_limbs(part, a + at, length, b, m);
            add_to(result + at, part, trimmed(part, length + m));
        }
        free(part);
    }
}

uint32_t pu_divide_limbs_small(uint32_t *limbs, int64_t count, uint32_t divisor) {
    uint64_t rest = 0;
    for (int64_t i = count; i-- > 0;) {
        rest = rest << 32 | limbs[i];
        limbs[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    return (uint32_t)rest;
}

/* One digit of the quotient: the estimate from the leading limbs is at most two too large. */
static uint32_t next_digit(uint32_t *rest, const uint32_t *b, int64_t m) {
    uint64_t top = (uint64_t)rest[m] << 32 | rest[m - 1], digit = top / b[m - 1], left = top % b[m - 1];
    while (digit >> 32 || digit * b[m - 2] > (left << 32 | rest[m - 2])) {
        digit--;
        left += b[m - 1];
        if (left >> 32) break;
    }
    uint64_t carry = 0, borrow = 0;
    for (int64_t i = 0; i <= m; i++) {
        carry += i < m ? digit * b[i] : 0;
        uint64_t difference = (uint64_t)rest[i] - (uint32_t)carry - borrow;
        rest[i] = (uint32_t)difference;
        borrow = difference >> 63;
        carry >>= 32;
    }
    if (borrow) { /* still one too large */
        digit--;
        uint64_t sum = 0;
        for (int64_t i = 0; i < m; i++) {
            sum += (uint64_t)rest[i] + b[i];
            rest[i] = (uint32_t)sum;
            sum >>= 32;
        }
        rest[m] += (uint32_t)sum;
    }
    return (uint32_t)digit;
}

static void shift_up(uint32_t *to, const uint32_t *from, int64_t count, int by) { /* to has one more limb */
    uint64_t carry = 0;
    for (int64_t i = 0; i < count; i++) {
        carry |= (uint64_t)from[i] << by;
        to[i] = (uint32_t)carry;
        carry >>= 32;
    }
    to[count] = (uint32_t)carry;
}

void pu_divide_limbs(uint32_t *quotient, uint32_t *rest, const uint32_t *a, int64_t n, const uint32_t *b, int64_t m) {
    if (m == 1) {
        memcpy(quotient, a, (size_t)n * sizeof *quotient);
        uint32_t last = pu_divide_limbs_small(quotient, n, b[0]);
        if (rest) *rest = last;
        return;
    }
    int shift = __builtin_clz(b[m - 1]);
    uint32_t *left = zeros(n + 1), *divisor = zeros(m + 1);
    shift_up(left, a, n, shift);
    shift_up(divisor, b, m, shift);
    for (int64_t j = n - m; j >= 0; j--) quotient[j] = next_digit(left + j, divisor, m);
    for (int64_t i = 0; rest && i < m; i++)
        rest[i] = (uint32_t)(((uint64_t)left[i + 1] << 32 | left[i]) >> shift);
    free(left);
    free(divisor);
}
