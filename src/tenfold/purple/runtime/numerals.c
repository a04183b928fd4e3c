/* The syntax of numbers, as R7RS has it and `numerals.py` reads it: prefixes for the radix and for exactness, ratios,
   exponents, infinities. */
#include "purple_all.h"

#include <stdlib.h>

static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f') return (c | 32) - 'a' + 10;
    return 99;
}

/* Whether there are digits of a radix up to the end, and nothing else. */
static bool are_digits(const char *at, const char *end, int radix) {
    if (at >= end) return false;
    for (; at < end; at++)
        if (digit_of(*at) >= radix) return false;
    return true;
}

/* An integer, PU_FALSE for one that is too large, or 0 for what is none. */
static Value read_integer(const char *at, const char *end, int radix, bool sign) {
    bool negative = sign && *at == '-';
    if (sign && at < end && (*at == '+' || *at == '-')) at++;
    return are_digits(at, end, radix) ? pu_whole_read(at, (size_t)(end - at), radix, negative) : 0;
}

/* Whether a word is an infinity or no number; letters count in either case. */
static bool read_special(const char *word, double *number) {
    static const char *const WORDS[] = {"+inf.0", "-inf.0", "+nan.0", "-nan.0"};
    for (int i = 0; i < 4; i++) {
        size_t at = 0;
        while (WORDS[i][at] && (word[at] | (word[at] >= 'A' && word[at] <= 'Z' ? 32 : 0)) == WORDS[i][at]) at++;
        if (WORDS[i][at] || word[at]) continue;
        *number = i == 0 ? HUGE_VAL : i == 1 ? -HUGE_VAL : (double)NAN;
        return true;
    }
    return false;
}

/* A decimal; C knows one letter for the exponent. */
static bool read_decimal(const char *word, size_t length, double *number) {
    size_t at = *word == '+' || *word == '-', whole = strspn(word + at, "0123456789"), part = 0, marker = 0;
    at += whole;
    if (word[at] == '.') part = strspn(word + at + 1, "0123456789"), at += 1 + part;
    if (!whole && !part) return false;
    if (word[at] && strchr("eEsSfFdDlL", word[at])) {
        marker = at++;
        at += word[at] == '+' || word[at] == '-';
        size_t power = strspn(word + at, "0123456789");
        if (!power) return false;
        at += power;
    }
    if (word[at]) return false;
    char *text = pu_get_memory(length + 1);
    memcpy(text, word, length + 1);
    if (marker) text[marker] = 'e';
    *number = strtod(text, NULL);
    free(text);
    return true;
}

/* The exact number that a decimal is: its digits, times a power of ten. PU_FALSE where that is too long. */
static Value exact_decimal(const char *word, size_t length) {
    char *digits = pu_get_memory(length + 1);
    size_t count = 0;
    int64_t power = 0;
    const char *at = word + (*word == '+' || *word == '-'), *end = word + length;
    bool part = false;
    for (; at < end && (digit_of(*at) < 10 || *at == '.'); at++) {
        if (*at == '.') part = true;
        else digits[count++] = *at, power -= part;
    }
    if (at < end) {
        int64_t exponent = strtoll(at + 1, NULL, 10); /* saturates, far beyond what is too long */
        power = exponent > PU_MOST_BITS ? PU_MOST_BITS : exponent < -PU_MOST_BITS ? -PU_MOST_BITS : power + exponent;
    }
    Value mantissa = pu_whole_read(digits, count, 10, *word == '-');
    free(digits);
    if (mantissa == PU_FALSE || mantissa == pu_of_fixnum(0)) return mantissa;
    if (power > PU_MOST_BITS / 3 || power < -PU_MOST_BITS / 3) { /* 10 has more than three bits */
        pu_drop(mantissa);
        return PU_FALSE;
    }
    Value scale = pu_exact_power(pu_of_fixnum(10), power < 0 ? -power : power);
    Value result = scale ? pu_exact_operation(power < 0 ? '/' : '*', mantissa, scale) : PU_FAILURE;
    pu_drop(mantissa);
    if (scale) pu_drop(scale);
    if (result) return result;
    pu_drop(pu_caught());
    return PU_FALSE;
}

/* The number that a word is, PU_FALSE for one that is too large, or 0 for what is none. */
static Value read_real(const char *word, size_t length, int radix, char exactness) {
    double decimal;
    Value whole = read_integer(word, word + length, radix, true);
    if (whole) return whole;
    const char *slash = memchr(word, '/', length);
    if (slash) {
        Value over = read_integer(word, slash, radix, true), under = over ? read_integer(slash + 1, word + length, radix, false) : 0;
        Value ratio = 0;
        if (over && under && under != pu_of_fixnum(0))
            ratio = over == PU_FALSE || under == PU_FALSE ? PU_FALSE : pu_ratio(over, under);
        if (over) pu_drop(over);
        if (under) pu_drop(under);
        return ratio;
    }
    if (read_special(word, &decimal)) return exactness == 'e' ? 0 : pu_of_float(decimal);
    if (radix != 10 || !read_decimal(word, length, &decimal)) return 0;
    return exactness == 'e' ? exact_decimal(word, length) : pu_of_float(decimal);
}

static Value read_numeral(const char *word, size_t length, int radix) {
    char exactness = 0;
    for (int prefixes = 0; *word == '#' && length > 2 && prefixes < 2; prefixes++) {
        char letter = (char)(word[1] | 32);
        if ((letter == 'e' || letter == 'i') && !exactness) exactness = letter;
        else if (letter == 'x') radix = 16;
        else if (letter == 'd') radix = 10;
        else if (letter == 'o') radix = 8;
        else if (letter == 'b') radix = 2;
        else return PU_FALSE;
        word += 2;
        length -= 2;
    }
    Value number = read_real(word, length, radix, exactness);
    if (!number) return PU_FALSE;
    if (exactness != 'i' || number == PU_FALSE || pu_is(number, PU_FLOAT)) return number;
    Value inexact = pu_of_float(pu_exact_double(number));
    pu_drop(number);
    return inexact;
}

Value pu_numeral(const char *word, size_t length) { return read_numeral(word, length, 10); }

static bool radix_of(const char *name, Value radix, int *out) {
    *out = 10;
    if (radix == PU_ABSENT) return true;
    int64_t given;
    if (!pu_take_int(name, radix, &given)) return false;
    if (given != 2 && given != 8 && given != 10 && given != 16)
        return pu_fail("index", "%s: %lld is no radix: it is 2, 8, 10 or 16", name, (long long)given), false;
    *out = (int)given;
    return true;
}

Value pu_string_to_number(Value text, Value radix) {
    if (!pu_is_string(text)) return pu_wrong_type("string->number", "string", text);
    int base;
    if (!radix_of("string->number", radix, &base)) return PU_FAILURE;
    const PuString *string = PU_AS(PuString, text);
    if (strlen(string->text) != (size_t)string->bytes) return PU_FALSE;
    return read_numeral(string->text, (size_t)string->bytes, base);
}

Value pu_number_to_string(Value number, Value radix) {
    if (!pu_is_number(number)) return pu_wrong_type("number->string", "number", number);
    int base;
    if (!radix_of("number->string", radix, &base)) return PU_FAILURE;
    if (base == 10 || pu_is(number, PU_FLOAT)) return pu_display_to_string(number);
    PuBuffer buffer = {0};
    bool ratio = pu_is(number, PU_RATIO);
    for (int part = 0; part <= ratio; part++) {
        Value whole = part ? PU_AS(PuRatio, number)->under : ratio ? PU_AS(PuRatio, number)->over : number;
        size_t length;
        char *text = pu_whole_text(whole, base, &length);
        if (part) pu_put_text(&buffer, "/");
        pu_put(&buffer, text, length);
        free(text);
    }
    Value result = pu_string(buffer.text, (int64_t)buffer.length);
    free(buffer.text);
    return result;
}

/* Whether a word reads as a number, or would if it were not too large, or is one to other Lisps. */
bool pu_looks_like_number(const char *word, size_t length) {
    Value number = read_real(word, length, 10, 0);
    if (number) return pu_drop(number), true;
    if (*word != '+' && *word != '-') return false;
    size_t at = 1 + strspn(word + 1, "0123456789.");
    if ((word[at] | 32) == 'i' && !word[at + 1]) return true;
    double special;
    char start[7] = {0};
    for (size_t i = 0; i < 6 && i < length; i++) start[i] = word[i];
    return read_special(start, &special);
}
