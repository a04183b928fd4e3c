/* Integers of any size. Those that 64 bits hold are fixnums or boxed; of the others a PuBig has the magnitude, and
   no integer has two forms. More than PU_MOST_BITS are an overflow. */
#include "wholes.h"

#include <stdlib.h>

void pu_view(Value integer, Whole *whole) {
    if (pu_is_int(integer)) {
        int64_t n = pu_int(integer);
        uint64_t magnitude = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
        whole->negative = n < 0;
        whole->own[0] = (uint32_t)magnitude;
        whole->own[1] = (uint32_t)(magnitude >> 32);
        whole->count = whole->own[1] ? 2 : whole->own[0] != 0;
        whole->limbs = whole->own;
    } else {
        const PuBig *big = PU_AS(PuBig, integer);
        whole->negative = big->negative;
        whole->count = big->count;
        whole->limbs = big->limbs;
    }
}

/* Of any length: what is only looked at on the way to a result may be longer than a result. */
static Value unlimited(bool negative, const uint32_t *limbs, int64_t count) {
    while (count > 0 && !limbs[count - 1]) count--;
    if (count <= 2) {
        uint64_t magnitude = (count > 0 ? limbs[0] : 0) | (uint64_t)(count > 1 ? limbs[1] : 0) << 32;
        if (!negative && magnitude <= INT64_MAX) return pu_of_int((int64_t)magnitude);
        if (negative && magnitude <= (uint64_t)INT64_MAX + 1) return pu_of_int((int64_t)(0 - magnitude));
    }
    PuBig *big = pu_allocate(PU_BIG, sizeof(PuBig) + (size_t)count * sizeof(uint32_t));
    big->negative = negative;
    big->count = count;
    memcpy(big->limbs, limbs, (size_t)count * sizeof(uint32_t));
    return pu_of_object(big);
}

Value pu_of_limbs(bool negative, const uint32_t *limbs, int64_t count) {
    while (count > 0 && !limbs[count - 1]) count--;
    return count > PU_MOST_LIMBS ? (pu_overflowed(), PU_FAILURE) : unlimited(negative, limbs, count);
}

static Value taken(bool negative, uint32_t *limbs, int64_t count) { /* frees the limbs */
    Value result = pu_of_limbs(negative, limbs, count);
    free(limbs);
    return result;
}

static uint32_t *room(int64_t count) { return pu_get_memory((size_t)(count ? count : 1) * sizeof(uint32_t)); }

int64_t pu_bits_of(const Whole *whole) {
    return whole->count ? 32 * whole->count - __builtin_clz(whole->limbs[whole->count - 1]) : 0;
}

static int compare_magnitudes(const Whole *a, const Whole *b) {
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (int64_t i = a->count; i-- > 0;)
        if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
    return 0;
}

int pu_whole_compare(Value a, Value b) {
    Whole x, y;
    pu_view(a, &x);
    pu_view(b, &y);
    if (x.negative != y.negative) return x.negative ? -1 : 1;
    return x.negative ? compare_magnitudes(&y, &x) : compare_magnitudes(&x, &y);
}

/* The sum of two magnitudes of one sign, or the difference of a larger and a smaller one. */
static Value combined(const Whole *a, const Whole *b, bool negative, bool less) {
    uint32_t *sum = room(a->count + 1);
    int64_t carry = 0;
    for (int64_t i = 0; i < a->count; i++) {
        int64_t other = i < b->count ? b->limbs[i] : 0;
        carry += (int64_t)a->limbs[i] + (less ? -other : other);
        sum[i] = (uint32_t)carry;
        carry >>= 32;
    }
    sum[a->count] = (uint32_t)carry;
    return taken(negative, sum, a->count + 1);
}

static Value sum_of(Value a, Value b, bool less) {
    Whole x, y;
    pu_view(a, &x);
    pu_view(b, &y);
    if (less) y.negative = !y.negative;
    const Whole *large = &x, *small = &y;
    if (compare_magnitudes(&x, &y) < 0) large = &y, small = &x;
    return combined(large, small, large->negative, x.negative != y.negative);
}
Value pu_whole_add(Value a, Value b) { return sum_of(a, b, false); }
Value pu_whole_subtract(Value a, Value b) { return sum_of(a, b, true); }

static Value product_of(Value a, Value b, bool limited) {
    Whole x, y;
    pu_view(a, &x);
    pu_view(b, &y);
    int64_t count = x.count + y.count;
    if (!x.count || !y.count) return pu_of_fixnum(0);
    if (limited && count - 1 > PU_MOST_LIMBS) return pu_overflowed(), PU_FAILURE;
    uint32_t *product = room(count);
    pu_multiply_limbs(product, x.limbs, x.count, y.limbs, y.count);
    if (limited) return taken(x.negative != y.negative, product, count);
    Value result = unlimited(x.negative != y.negative, product, count);
    free(product);
    return result;
}
Value pu_whole_multiply(Value a, Value b) { return product_of(a, b, true); }
Value pu_whole_product(Value a, Value b) { return product_of(a, b, false); }

/* Truncating division by what is not 0. */
Value pu_whole_divide(Value a, Value b, Value *rest) {
    Whole x, y;
    pu_view(a, &x);
    pu_view(b, &y);
    if (compare_magnitudes(&x, &y) < 0) {
        if (rest) *rest = pu_fresh(a);
        return pu_of_fixnum(0);
    }
    uint32_t *quotient = room(x.count), *left = room(y.count);
    pu_divide_limbs(quotient, left, x.limbs, x.count, y.limbs, y.count);
    if (rest) *rest = taken(x.negative, left, y.count);
    else free(left);
    return taken(x.negative != y.negative, quotient, x.count - (y.count > 1 ? y.count - 1 : 0));
}

Value pu_whole_negative(Value a) { return sum_of(pu_of_fixnum(0), a, true); }
bool pu_whole_is_negative(Value a) { return pu_is_int(a) ? pu_int(a) < 0 : PU_AS(PuBig, a)->negative; }

/* Limb i of an integer in two's complement, which goes on for ever. */
static uint32_t bits_at(const Whole *whole, int64_t i, uint64_t *carry) {
    uint32_t limb = i < whole->count ? whole->limbs[i] : 0;
    if (!whole->negative) return limb;
    *carry += (uint32_t)~limb;
    limb = (uint32_t)*carry;
    *carry >>= 32;
    return limb;
}

Value pu_whole_bits(Value a, Value b, char operation) {
    Whole x, y;
    pu_view(a, &x);
    pu_view(b, &y);
    int64_t count = (x.count > y.count ? x.count : y.count) + 1;
    uint32_t *bits = room(count);
    uint64_t carry_x = 1, carry_y = 1;
    for (int64_t i = 0; i < count; i++) {
        uint32_t one = bits_at(&x, i, &carry_x), two = bits_at(&y, i, &carry_y);
        bits[i] = operation == '&' ? one & two : operation == '|' ? one | two : one ^ two;
    }
    bool negative = bits[count - 1] >> 31;
    uint64_t carry = 1;
    for (int64_t i = 0; negative && i < count; i++) {
        carry += (uint32_t)~bits[i];
        bits[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return taken(negative, bits, count);
}

/* Times a power of two, however long that is. */
Value pu_scaled(Value a, int64_t by) {
    Whole x;
    pu_view(a, &x);
    int64_t whole = by / 32, count = x.count + whole + 1;
    uint32_t *bits = room(count);
    memset(bits, 0, (size_t)count * sizeof *bits);
    for (int64_t i = 0; i < x.count; i++) {
        uint64_t limb = (uint64_t)x.limbs[i] << (by % 32);
        bits[i + whole] |= (uint32_t)limb;
        bits[i + whole + 1] = (uint32_t)(limb >> 32);
    }
    Value result = unlimited(x.negative, bits, count);
    free(bits);
    return result;
}

/* Towards the left, or for a negative count towards the right, where it rounds down. */
Value pu_whole_shift(Value a, int64_t by) {
    Whole x;
    pu_view(a, &x);
    if (!x.count || !by) return pu_fresh(a);
    if (by > 0) {
        bool fits = by <= PU_MOST_BITS && pu_bits_of(&x) + by <= PU_MOST_BITS;
        return fits ? pu_scaled(a, by) : (pu_overflowed(), PU_FAILURE);
    }
    if (by < -PU_MOST_BITS) by = -PU_MOST_BITS;
    int64_t whole = -by / 32, count = x.count - whole;
    if (count <= 0) return pu_of_fixnum(x.negative ? -1 : 0);
    uint32_t *bits = room(count + 1), lost = 0;
    for (int64_t i = 0; i < whole; i++) lost |= x.limbs[i];
    lost |= x.limbs[whole] & (uint32_t)(((uint64_t)1 << (-by % 32)) - 1);
    for (int64_t i = 0; i < count; i++) {
        uint64_t above = i + whole + 1 < x.count ? x.limbs[i + whole + 1] : 0;
        bits[i] = (uint32_t)((above << 32 | x.limbs[i + whole]) >> (-by % 32));
    }
    uint64_t carry = x.negative && lost;
    for (int64_t i = 0; i < count; i++) {
        carry += bits[i];
        bits[i] = (uint32_t)carry;
        carry >>= 32;
    }
    bits[count] = (uint32_t)carry;
    return taken(x.negative, bits, count + 1);
}

/* The digits of an integer in a radix up to 16: memory that the caller frees. */
char *pu_whole_text(Value a, int radix, size_t *length) {
    Whole x;
    pu_view(a, &x);
    uint32_t chunk = (uint32_t)radix;
    int digits = 1;
    while ((uint64_t)chunk * (uint32_t)radix <= UINT32_MAX) chunk *= (uint32_t)radix, digits++;
    size_t size = (size_t)x.count * 32 + 3, at = size;
    char *text = pu_get_memory(size);
    uint32_t *left = room(x.count);
    memcpy(left, x.limbs, (size_t)x.count * sizeof *left);
    int64_t count = x.count;
    while (count > 0) {
        uint32_t part = pu_divide_limbs_small(left, count, chunk);
        while (count > 0 && !left[count - 1]) count--;
        for (int i = 0; i < digits && (count > 0 || part); i++, part /= (uint32_t)radix)
            text[--at] = "0123456789abcdef"[part % (uint32_t)radix];
    }
    if (at == size) text[--at] = '0';
    if (x.negative) text[--at] = '-';
    free(left);
    *length = size - at;
    memmove(text, text + at, *length);
    return text;
}

/* The integer of digits that are known to be of the radix; PU_FALSE where it is too large. */
Value pu_whole_read(const char *digits, size_t length, int radix, bool negative) {
    while (length > 1 && *digits == '0') digits++, length--;
    if (length > PU_MOST_BITS) return PU_FALSE;
    size_t bits = radix > 10 ? 4 * length : radix > 8 ? (10 * length + 2) / 3 : radix > 2 ? 3 * length : length;
    if (bits > PU_MOST_BITS + PU_MOST_BITS / 64) return PU_FALSE; /* an estimate: ten has less than 10/3 bits */
    uint32_t *limbs = room((int64_t)bits / 32 + 2);
    int64_t count = 0;
    for (size_t at = 0; at < length;) {
        uint64_t scale = 1, part = 0;
        for (; at < length && scale * (uint64_t)radix <= UINT32_MAX; at++, scale *= (uint64_t)radix)
            part = part * (uint64_t)radix + (uint64_t)(digits[at] <= '9' ? digits[at] - '0' : (digits[at] | 32) - 'a' + 10);
        for (int64_t i = 0; i < count; i++) {
            part += limbs[i] * scale;
            limbs[i] = (uint32_t)part;
            part >>= 32;
        }
        if (part) limbs[count++] = (uint32_t)part;
    }
    if (count <= PU_MOST_LIMBS) return taken(negative, limbs, count);
    free(limbs);
    return PU_FALSE;
}

/* The greatest integer whose square is not above one that is not negative, by Newton's method from above. */
Value pu_whole_root(Value a) {
    Whole x;
    pu_view(a, &x);
    if (!x.count) return pu_of_fixnum(0);
    Value root = pu_whole_shift(pu_of_fixnum(1), (pu_bits_of(&x) + 1) / 2);
    for (;;) {
        Value over = pu_whole_divide(a, root, NULL), sum = pu_whole_add(over, root), next = pu_whole_shift(sum, -1);
        pu_drop(over);
        pu_drop(sum);
        if (pu_whole_compare(next, root) >= 0) {
            pu_drop(next);
            return root;
        }
        pu_drop(root);
        root = next;
    }
}
