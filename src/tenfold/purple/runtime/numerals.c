/* The syntax of numbers, as R7RS has it and `numerals.py` reads it: prefixes for the radix and for exactness, ratios,
   exponents, infinities. */
#include "purple_all.h"

#include <stdlib.h>

/* Digits of a radix from `at` on, after a sign where there is one: whether they end at `end` and 64 bits hold them. */
typedef enum { NONE, FITS, TOO_LARGE } Digits;

static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f') return (c | 32) - 'a' + 10;
    return 99;
}

static Digits read_digits(const char *at, const char *end, int radix, bool sign, int64_t *number) {
    bool negative = sign && *at == '-', fits = true;
    if (sign && at < end && (*at == '+' || *at == '-')) at++;
    if (at == end) return NONE;
    *number = 0;
    for (; at < end; at++) {
        int digit = digit_of(*at);
        if (digit >= radix) return NONE;
        fits = fits && !__builtin_mul_overflow(*number, radix, number);
        fits = fits && !(negative ? __builtin_sub_overflow(*number, digit, number) : __builtin_add_overflow(*number, digit, number));
    }
    return fits ? FITS : TOO_LARGE;
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

/* The number that a word is, not yet boxed; `*whole` says which of the two it is. */
static Digits read_real(const char *word, size_t length, int radix, bool *whole, int64_t *integer, double *decimal) {
    *whole = true;
    Digits found = read_digits(word, word + length, radix, true, integer);
    if (found != NONE) return found;
    const char *slash = memchr(word, '/', length);
    if (slash) {
        int64_t over, under;
        Digits above = read_digits(word, slash, radix, true, &over);
        Digits below = read_digits(slash + 1, word + length, radix, false, &under);
        if (above == NONE || below == NONE) return NONE;
        if (above == TOO_LARGE || below == TOO_LARGE) return TOO_LARGE;
        if (under == 0) return NONE;
        *whole = over % under == 0;
        if (*whole) *integer = over / under;
        else *decimal = (double)over / (double)under;
        return FITS;
    }
    *whole = false;
    return read_special(word, decimal) || (radix == 10 && read_decimal(word, length, decimal)) ? FITS : NONE;
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
    bool whole;
    int64_t integer = 0;
    double decimal = 0;
    if (read_real(word, length, radix, &whole, &integer, &decimal) != FITS) return PU_FALSE;
    if (exactness == 'i' && whole) return pu_of_float((double)integer);
    if (exactness == 'e' && !whole) {
        if (decimal != floor(decimal) || !(decimal >= -0x1p63 && decimal < 0x1p63)) return PU_FALSE;
        return pu_of_int((int64_t)decimal);
    }
    return whole ? pu_of_int(integer) : pu_of_float(decimal);
}

static bool radix_of(const char *name, Value radix, int *out) {
    *out = 10;
    if (radix == PU_ABSENT) return true;
    if (!pu_is_int(radix)) return pu_wrong_type(name, "int", radix), false;
    int64_t given = pu_int(radix);
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
    if (base == 10 || !pu_is_int(number)) return pu_display_to_string(number);
    int64_t value = pu_int(number);
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char text[66];
    size_t at = sizeof text;
    do text[--at] = "0123456789abcdef"[rest % (uint64_t)base];
    while (rest /= (uint64_t)base);
    if (value < 0) text[--at] = '-';
    return pu_string(text + at, (int64_t)(sizeof text - at));
}

/* Whether a word reads as a number, or would if 64 bits held it, or is one to other Lisps. */
bool pu_looks_like_number(const char *word, size_t length) {
    bool whole;
    int64_t integer;
    double decimal;
    if (read_real(word, length, 10, &whole, &integer, &decimal) != NONE) return true;
    if (*word != '+' && *word != '-') return false;
    size_t at = 1 + strspn(word + 1, "0123456789.");
    if ((word[at] | 32) == 'i' && !word[at + 1]) return true;
    double special;
    char start[7] = {0};
    for (size_t i = 0; i < 6 && i < length; i++) start[i] = word[i];
    return read_special(start, &special);
}
