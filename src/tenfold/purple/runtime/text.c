/* Symbols, keywords, characters and strings, which are UTF-8 and know how many characters they have. */
#include "purple_all.h"

#include <stdlib.h>

int pu_decode(const char *text, uint32_t *code) {
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) return *code = s[0], 1;
    if (s[0] < 0xE0) return *code = (uint32_t)(s[0] & 31) << 6 | (s[1] & 63), 2;
    if (s[0] < 0xF0) return *code = (uint32_t)(s[0] & 15) << 12 | (uint32_t)(s[1] & 63) << 6 | (s[2] & 63), 3;
    *code = (uint32_t)(s[0] & 7) << 18 | (uint32_t)(s[1] & 63) << 12 | (uint32_t)(s[2] & 63) << 6 | (s[3] & 63);
    return 4;
}

int pu_encode(uint32_t code, char *text) {
    if (code < 0x80) return text[0] = (char)code, 1;
    if (code < 0x800) {
        text[0] = (char)(0xC0 | code >> 6);
        text[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        text[0] = (char)(0xE0 | code >> 12);
        text[1] = (char)(0x80 | (code >> 6 & 63));
        text[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    text[0] = (char)(0xF0 | code >> 18);
    text[1] = (char)(0x80 | (code >> 12 & 63));
    text[2] = (char)(0x80 | (code >> 6 & 63));
    text[3] = (char)(0x80 | (code & 63));
    return 4;
}

bool pu_is_utf8(const char *text, int64_t bytes) {
    for (int64_t i = 0; i < bytes;) {
        unsigned char c = (unsigned char)text[i];
        int size = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
        if (!size || i + size > bytes) return false;
        for (int k = 1; k < size; k++)
            if (((unsigned char)text[i + k] & 0xC0) != 0x80) return false;
        uint32_t code;
        pu_decode(text + i, &code);
        if ((size == 3 && code < 0x800) || (size == 4 && code < 0x10000)) return false;
        if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
        i += size;
    }
    return true;
}

static PuString *new_string(int64_t bytes) {
    PuString *string = pu_allocate(PU_STRING, sizeof(PuString) + (size_t)bytes + 1);
    string->bytes = bytes;
    string->text[bytes] = 0;
    return string;
}

static Value counted(PuString *string) {
    string->characters = 0;
    for (int64_t i = 0; i < string->bytes; i++) string->characters += (string->text[i] & 0xC0) != 0x80;
    return pu_of_object(string);
}

Value pu_string(const char *text, int64_t bytes) {
    PuString *string = new_string(bytes);
    if (bytes) memcpy(string->text, text, (size_t)bytes);
    return counted(string);
}

/* Symbols: one object for each name, in a table that is the only owner for good. */
static PuSymbol **names;
static size_t name_count, name_room;

Value pu_intern_bytes(PuKind kind, const char *name, int64_t bytes) {
    uint64_t hash = 14695981039346656037ull + (uint64_t)kind;
    for (int64_t i = 0; i < bytes; i++) hash = (hash ^ (unsigned char)name[i]) * 1099511628211ull;
    if (name_count * 2 >= name_room) {
        size_t room = name_room ? name_room * 2 : 256;
        PuSymbol **larger = pu_get_memory(room * sizeof *larger);
        memset(larger, 0, room * sizeof *larger);
        for (size_t i = 0; i < name_room; i++) {
            if (!names[i]) continue;
            size_t at = names[i]->hash & (room - 1);
            while (larger[at]) at = (at + 1) & (room - 1);
            larger[at] = names[i];
        }
        free(names);
        names = larger;
        name_room = room;
    }
    size_t at = hash & (name_room - 1);
    for (; names[at]; at = (at + 1) & (name_room - 1)) {
        PuSymbol *found = names[at];
        if (found->hash == hash && found->bytes == bytes && found->head >> 56 == (uint64_t)kind &&
            !memcmp(found->text, name, (size_t)bytes))
            return pu_dup(pu_of_object(found));
    }
    PuSymbol *symbol = pu_allocate(kind, sizeof(PuSymbol) + (size_t)bytes + 1);
    symbol->hash = hash;
    symbol->bytes = bytes;
    memcpy(symbol->text, name, (size_t)bytes);
    symbol->text[bytes] = 0;
    names[at] = symbol;
    name_count++;
    return pu_dup(pu_of_object(symbol));
}

Value pu_intern(PuKind kind, const char *name) { return pu_intern_bytes(kind, name, (int64_t)strlen(name)); }

void pu_end_symbols(void) {
    for (size_t i = 0; i < name_room; i++)
        if (names[i]) pu_drop(pu_of_object(names[i]));
    free(names);
    names = NULL;
    name_count = name_room = 0;
}

static PuString *string_of(Value v) { return PU_AS(PuString, v); }

static bool is_string(const char *name, Value v) {
    if (pu_is_string(v)) return true;
    pu_wrong_type(name, "string", v);
    return false;
}

Value pu_symbol_to_string(Value v) {
    if (!pu_is_symbol(v)) return pu_wrong_type("symbol->string", "symbol", v);
    return pu_string(PU_AS(PuSymbol, v)->text, PU_AS(PuSymbol, v)->bytes);
}
Value pu_keyword_to_string(Value v) {
    if (!pu_is_keyword(v)) return pu_wrong_type("keyword->string", "keyword", v);
    return pu_string(PU_AS(PuSymbol, v)->text, PU_AS(PuSymbol, v)->bytes);
}
Value pu_string_to_symbol(Value v) {
    return is_string("string->symbol", v) ? pu_intern_bytes(PU_SYMBOL, string_of(v)->text, string_of(v)->bytes) : PU_FAILURE;
}
Value pu_string_to_keyword(Value v) {
    return is_string("string->keyword", v) ? pu_intern_bytes(PU_KEYWORD, string_of(v)->text, string_of(v)->bytes) : PU_FAILURE;
}
Value pu_char_to_integer(Value v) {
    return pu_is_char(v) ? pu_of_fixnum(pu_char(v)) : pu_wrong_type("char->integer", "char", v);
}
Value pu_integer_to_char(Value v) {
    int64_t code;
    if (!pu_take_int("integer->char", v, &code)) return PU_FAILURE;
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return pu_fail("index", "integer->char: %lld is no code point", (long long)code);
    return pu_of_char((uint32_t)code);
}

Value pu_string_length(Value v) {
    return is_string("string-length", v) ? pu_of_fixnum(string_of(v)->characters) : PU_FAILURE;
}

/* The byte at which a character begins. */
int64_t pu_offset(const PuString *string, int64_t character) {
    if (string->bytes == string->characters) return character;
    int64_t at = 0;
    for (; character > 0; character--) {
        uint32_t code;
        at += pu_decode(string->text + at, &code);
    }
    return at;
}

static bool in_range(const char *name, Value index, int64_t length, bool end, int64_t *out) {
    if (!pu_take_int(name, index, out)) return false;
    if (*out >= 0 && *out < length + end) return true;
    pu_out_of_range(name, *out, length);
    return false;
}

Value pu_string_ref(Value v, Value index) {
    int64_t at;
    if (!is_string("string-ref", v)) return PU_FAILURE;
    if (!in_range("string-ref", index, string_of(v)->characters, false, &at)) return PU_FAILURE;
    uint32_t code;
    pu_decode(string_of(v)->text + pu_offset(string_of(v), at), &code);
    return pu_of_char(code);
}

Value pu_substring(Value v, Value start, Value end) {
    int64_t from, to;
    if (!is_string("substring", v)) return PU_FAILURE;
    PuString *string = string_of(v);
    if (!pu_range("substring", start, end, string->characters, &from, &to)) return PU_FAILURE;
    int64_t first = pu_offset(string, from), last = pu_offset(string, to);
    return pu_string(string->text + first, last - first);
}

Value pu_string_append(const Value *v, int n) {
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        if (!is_string("string-append", v[i])) return PU_FAILURE;
        bytes += string_of(v[i])->bytes;
    }
    PuString *string = new_string(bytes);
    string->characters = 0;
    bytes = 0;
    for (int i = 0; i < n; i++) {
        memcpy(string->text + bytes, string_of(v[i])->text, (size_t)string_of(v[i])->bytes);
        bytes += string_of(v[i])->bytes;
        string->characters += string_of(v[i])->characters;
    }
    return pu_of_object(string);
}

static int order(Value a, Value b) { /* UTF-8 sorts as its code points do */
    PuString *one = string_of(a), *two = string_of(b);
    int64_t common = one->bytes < two->bytes ? one->bytes : two->bytes;
    int found = memcmp(one->text, two->text, (size_t)common);
    return found ? found : (one->bytes > two->bytes) - (one->bytes < two->bytes);
}
Value pu_string_same(Value a, Value b) {
    return is_string("string=?", a) && is_string("string=?", b) ? pu_of_bool(order(a, b) == 0) : PU_FAILURE;
}
Value pu_string_less(Value a, Value b) {
    return is_string("string<?", a) && is_string("string<?", b) ? pu_of_bool(order(a, b) < 0) : PU_FAILURE;
}

/* Of one string or more: whether each stands so to the next. */
static Value in_order(const char *name, const Value *v, int n, bool same) {
    for (int i = 0; i < n; i++)
        if (!is_string(name, v[i])) return PU_FAILURE;
    for (int i = 1; i < n; i++)
        if (same ? order(v[i - 1], v[i]) != 0 : order(v[i - 1], v[i]) >= 0) return PU_FALSE;
    return PU_TRUE;
}
Value pu_string_same_many(const Value *v, int n) { return in_order("string=?", v, n, true); }
Value pu_string_less_many(const Value *v, int n) { return in_order("string<?", v, n, false); }

Value pu_string_to_list(Value v, Value start, Value end) {
    int64_t from, to;
    if (!is_string("string->list", v)) return PU_FAILURE;
    PuString *string = string_of(v);
    if (!pu_range("string->list", start, end, string->characters, &from, &to)) return PU_FAILURE;
    int64_t behind = pu_offset(string, to);
    Value first = PU_NIL, last = 0;
    for (int64_t at = pu_offset(string, from); at < behind;) {
        uint32_t code;
        at += pu_decode(string->text + at, &code);
        Value next = pu_cons(pu_of_char(code), PU_NIL);
        if (last) PU_AS(PuPair, last)->cdr = next;
        else first = next;
        last = next;
    }
    return first;
}

Value pu_list_to_string(Value v) {
    if (!pu_is_list(v)) return pu_wrong_type("list->string", "list", v);
    PuBuffer text = {0};
    pu_put(&text, "", 0);
    for (Value at = v; at != PU_NIL; at = PU_AS(PuPair, at)->cdr) {
        Value each = PU_AS(PuPair, at)->car;
        if (!pu_is_char(each)) {
            free(text.text);
            return pu_wrong_type("list->string", "char", each);
        }
        char bytes[4];
        pu_put(&text, bytes, (size_t)pu_encode(pu_char(each), bytes));
    }
    Value string = pu_string(text.text, (int64_t)text.length);
    free(text.text);
    return string;
}

Value pu_string_search(Value wanted, Value text, Value start) {
    int64_t from = 0;
    if (!is_string("string-search", wanted) || !is_string("string-search", text)) return PU_FAILURE;
    PuString *pattern = string_of(wanted), *string = string_of(text);
    if (start != PU_ABSENT && !in_range("string-search", start, string->characters, true, &from)) return PU_FAILURE;
    int64_t character = from;
    for (int64_t at = pu_offset(string, from); at + pattern->bytes <= string->bytes; character++) {
        if (!memcmp(string->text + at, pattern->text, (size_t)pattern->bytes)) return pu_of_fixnum(character);
        if (at == string->bytes) break;
        uint32_t code;
        at += pu_decode(string->text + at, &code);
    }
    return PU_FALSE;
}
