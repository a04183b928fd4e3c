/* Classes and cases of characters, of all of Unicode. The tables are made from the data that Python carries. */
#include "purple_all.h"

#include <stdlib.h>

typedef struct { uint32_t code, mapped; } PuCase;
typedef struct { uint32_t code; const char *mapped; } PuLongCase; /* one character becomes several */
#include "unicode_tables.h"
#define COUNT(table) (sizeof(table) / sizeof *(table))

static int classes_of(uint32_t code) {
    size_t low = 0, high = COUNT(CLASSES);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code < CLASSES[middle].first) high = middle;
        else if (code > CLASSES[middle].last) low = middle + 1;
        else return CLASSES[middle].classes;
    }
    return 0;
}

static Value is_of(const char *name, Value v, int classes) {
    if (!pu_is_char(v)) return pu_wrong_type(name, "char", v);
    return pu_of_bool(classes_of(pu_char(v)) & classes);
}

Value pu_is_char_alphabetic(Value v) { return is_of("char-alphabetic?", v, ALPHABETIC); }
Value pu_is_char_numeric(Value v) { return is_of("char-numeric?", v, NUMERIC); }
Value pu_is_char_whitespace(Value v) { return is_of("char-whitespace?", v, WHITESPACE); }
Value pu_is_char_upper_case(Value v) { return is_of("char-upper-case?", v, UPPER); }
Value pu_is_char_lower_case(Value v) { return is_of("char-lower-case?", v, LOWER); }

Value pu_digit_value(Value v) {
    if (!pu_is_char(v)) return pu_wrong_type("digit-value", "char", v);
    for (size_t i = 0; i < COUNT(DIGITS); i++)
        if (pu_char(v) >= DIGITS[i].zero && pu_char(v) < DIGITS[i].zero + 10)
            return pu_of_fixnum((int64_t)(pu_char(v) - DIGITS[i].zero));
    return PU_FALSE;
}

typedef struct { const PuCase *cases; size_t count; const PuLongCase *longer; size_t longer_count; } Mapping;
#define MAPPING(name) {TO_##name, COUNT(TO_##name), TO_LONG_##name, COUNT(TO_LONG_##name)}
static const Mapping TO_UPPER_CASE = MAPPING(UPPER), TO_LOWER_CASE = MAPPING(LOWER), TO_FOLDED_CASE = MAPPING(FOLDED);

static uint32_t mapped(const Mapping *mapping, uint32_t code) {
    size_t low = 0, high = mapping->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code < mapping->cases[middle].code) high = middle;
        else if (code > mapping->cases[middle].code) low = middle + 1;
        else return mapping->cases[middle].mapped;
    }
    return code;
}

static Value map_char(const char *name, const Mapping *mapping, Value v) {
    return pu_is_char(v) ? pu_of_char(mapped(mapping, pu_char(v))) : pu_wrong_type(name, "char", v);
}

Value pu_char_upcase(Value v) { return map_char("char-upcase", &TO_UPPER_CASE, v); }
Value pu_char_downcase(Value v) { return map_char("char-downcase", &TO_LOWER_CASE, v); }
Value pu_char_foldcase(Value v) { return map_char("char-foldcase", &TO_FOLDED_CASE, v); }

static Value map_string(const char *name, const Mapping *mapping, Value v) {
    if (!pu_is_string(v)) return pu_wrong_type(name, "string", v);
    PuString *string = PU_AS(PuString, v);
    PuBuffer text = {0};
    for (int64_t at = 0; at < string->bytes;) {
        uint32_t code;
        at += pu_decode(string->text + at, &code);
        const char *longer = NULL;
        for (size_t i = 0; code > 127 && i < mapping->longer_count; i++)
            if (mapping->longer[i].code == code) longer = mapping->longer[i].mapped;
        if (longer) pu_put_text(&text, longer);
        else pu_put_code(&text, mapped(mapping, code));
    }
    Value result = pu_string(text.text ? text.text : "", (int64_t)text.length);
    free(text.text);
    return result;
}

Value pu_string_upcase(Value v) { return map_string("string-upcase", &TO_UPPER_CASE, v); }
Value pu_string_downcase(Value v) { return map_string("string-downcase", &TO_LOWER_CASE, v); }
Value pu_string_foldcase(Value v) { return map_string("string-foldcase", &TO_FOLDED_CASE, v); }
