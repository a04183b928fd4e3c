/* How values look: for people (`display`) and as the reader takes them (`write`). Nesting is kept in a list of parts
   still to come, so that depth costs no stack. */
#include "labels.h"

#include <stdio.h>
#include <stdlib.h>

void pu_put(PuBuffer *buffer, const char *text, size_t length) {
    if (buffer->length + length + 1 > buffer->room) {
        buffer->room = 2 * (buffer->length + length) + 64;
        char *larger = realloc(buffer->text, buffer->room);
        if (!larger) {
            fputs("purple: memory ran out\n", stderr);
            exit(1);
        }
        buffer->text = larger;
    }
    memcpy(buffer->text + buffer->length, text, length);
    buffer->length += length;
    buffer->text[buffer->length] = 0;
}
void pu_put_text(PuBuffer *buffer, const char *text) { pu_put(buffer, text, strlen(text)); }

/* The shortest digits that read back as the same number; exponents below -4 or from 16 on are written. */
void pu_put_double(PuBuffer *buffer, double number) {
    if (isnan(number)) { pu_put_text(buffer, "+nan.0"); return; }
    if (isinf(number)) { pu_put_text(buffer, number > 0 ? "+inf.0" : "-inf.0"); return; }
    char text[40];
    int digits = 1;
    for (; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, number);
        if (strtod(text, NULL) == number) break;
    }
    snprintf(text, sizeof text, "%.*e", digits - 1, number);
    int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        char *e = strchr(text, 'e');
        pu_put(buffer, text, (size_t)(e - text));
        snprintf(text, sizeof text, "e%d", exponent);
    } else {
        int after = digits - 1 - exponent;
        snprintf(text, sizeof text, "%.*f", after > 1 ? after : 1, number);
    }
    pu_put_text(buffer, text);
}

void pu_put_code(PuBuffer *buffer, uint32_t code) {
    char text[5];
    pu_put(buffer, text, (size_t)pu_encode(code, text));
}

static void put_char(PuBuffer *buffer, uint32_t code) {
    static const struct { uint32_t code; const char *name; } NAMED[] = {
        {0, "nul"}, {7, "alarm"}, {8, "backspace"}, {9, "tab"}, {10, "newline"}, {13, "return"}, {27, "escape"},
        {32, "space"}, {127, "delete"}};
    pu_put_text(buffer, "#\\");
    for (size_t i = 0; i < sizeof NAMED / sizeof *NAMED; i++)
        if (NAMED[i].code == code) {
            pu_put_text(buffer, NAMED[i].name);
            return;
        }
    if (code < 32 || (code >= 127 && code <= 160) || (code >= 0xD800 && code < 0xE000)) {
        char text[16];
        snprintf(text, sizeof text, "x%x", (unsigned)code);
        pu_put_text(buffer, text);
    } else {
        pu_put_code(buffer, code);
    }
}

/* A string in quotes, or a symbol in bars. */
static void put_quoted(PuBuffer *buffer, const char *string, int64_t bytes, char quote) {
    pu_put(buffer, &quote, 1);
    for (int64_t i = 0; i < bytes; i++) {
        char c = string[i], text[16];
        const char plain[] = {'\n', '\t', '\r', '\\', quote, 0}, shown[] = {'n', 't', 'r', '\\', quote, 0};
        const char *found = c ? strchr(plain, c) : NULL;
        if (found) {
            text[0] = '\\';
            text[1] = shown[found - plain];
            pu_put(buffer, text, 2);
        } else if (!c) {
            pu_put_text(buffer, "\\0");
        } else if ((unsigned char)c < 32 || c == 127) {
            snprintf(text, sizeof text, "\\x%x;", (unsigned)(unsigned char)c);
            pu_put_text(buffer, text);
        } else {
            pu_put(buffer, &c, 1);
        }
    }
    pu_put(buffer, &quote, 1);
}

/* Whether a symbol would not read back as itself without bars around it. */
static bool needs_bars(const char *text, int64_t bytes) {
    if (!bytes || !strcmp(text, ".") || !strcmp(text, "nil") || *text == '#' || (*text == ':' && bytes > 1)) return true;
    for (int64_t at = 0; at < bytes;) {
        uint32_t code;
        at += pu_decode(text + at, &code);
        if (code <= 32 || (code >= 127 && code <= 160)) return true;
        if (code < 127 && strchr("()[]\"';`,|\\", (int)code)) return true;
    }
    return pu_looks_like_number(text, (size_t)bytes);
}

static void put_symbol(PuBuffer *buffer, const PuSymbol *symbol, bool written) {
    if (written && needs_bars(symbol->text, symbol->bytes)) put_quoted(buffer, symbol->text, symbol->bytes, '|');
    else pu_put(buffer, symbol->text, (size_t)symbol->bytes);
}

/* Parts still to come, the next one last: a value, the tail of a list, text, or a value whose label is written. */
typedef struct { enum { VALUE, TAIL, TEXT, LABELLED } kind; Value value; const char *text; } Part;
typedef struct { Part *parts; size_t count, room; } Parts;

static void later(Parts *parts, Part part) {
    if (parts->count == parts->room) {
        parts->room = parts->room ? 2 * parts->room : 64;
        Part *larger = realloc(parts->parts, parts->room * sizeof *larger);
        if (!larger) {
            fputs("purple: memory ran out\n", stderr);
            exit(1);
        }
        parts->parts = larger;
    }
    parts->parts[parts->count++] = part;
}
static void later_value(Parts *parts, Value v) { later(parts, (Part){VALUE, v, NULL}); }
static void later_text(Parts *parts, const char *text) { later(parts, (Part){TEXT, 0, text}); }

static void later_items(Parts *parts, const Value *items, int64_t count) {
    for (int64_t i = count; i-- > 0;) {
        later_value(parts, items[i]);
        if (i) later_text(parts, " ");
    }
}

static void put_whole(PuBuffer *buffer, Value v) {
    size_t length;
    char *text = pu_whole_text(v, 10, &length);
    pu_put(buffer, text, length);
    free(text);
}

static void put_object(PuBuffer *buffer, Parts *parts, Value v, bool written) {
    switch (pu_kind_of_object(v)) {
    case PU_PAIR:
        pu_put_text(buffer, "(");
        later(parts, (Part){TAIL, PU_AS(PuPair, v)->cdr, NULL});
        later_value(parts, PU_AS(PuPair, v)->car);
        return;
    case PU_FLOAT: pu_put_double(buffer, pu_float(v)); return;
    case PU_INT: {
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)pu_int(v));
        pu_put_text(buffer, text);
        return;
    }
    case PU_BIG: put_whole(buffer, v); return;
    case PU_RATIO:
        put_whole(buffer, PU_AS(PuRatio, v)->over);
        pu_put_text(buffer, "/");
        put_whole(buffer, PU_AS(PuRatio, v)->under);
        return;
    case PU_STRING:
        if (written) put_quoted(buffer, PU_AS(PuString, v)->text, PU_AS(PuString, v)->bytes, '"');
        else pu_put(buffer, PU_AS(PuString, v)->text, (size_t)PU_AS(PuString, v)->bytes);
        return;
    case PU_KEYWORD:
        pu_put_text(buffer, ":");
        put_symbol(buffer, PU_AS(PuSymbol, v), false);
        return;
    case PU_SYMBOL: put_symbol(buffer, PU_AS(PuSymbol, v), written); return;
    case PU_VECTOR:
        pu_put_text(buffer, "#(");
        later_text(parts, ")");
        later_items(parts, PU_AS(PuVector, v)->items, PU_AS(PuVector, v)->count);
        return;
    case PU_BYTES: {
        const PuBytes *bytes = PU_AS(PuBytes, v);
        pu_put_text(buffer, "#u8(");
        for (int64_t i = 0; i < bytes->count; i++) {
            char text[8];
            snprintf(text, sizeof text, i ? " %d" : "%d", bytes->items[i]);
            pu_put_text(buffer, text);
        }
        pu_put_text(buffer, ")");
        return;
    }
    case PU_VALUES: later_items(parts, PU_AS(PuVector, v)->items, PU_AS(PuVector, v)->count); return;
    case PU_BOX:
        pu_put_text(buffer, "#<box ");
        later_text(parts, ">");
        later_value(parts, PU_AS(PuBox, v)->content);
        return;
    case PU_RECORD: {
        const PuRecord *record = PU_AS(PuRecord, v);
        pu_put_text(buffer, "#<");
        pu_put_text(buffer, record->type->name);
        later_text(parts, ">");
        for (int i = record->type->count; i-- > 0;) {
            if (record->type->fields[i].name[0] == '%') continue; /* private */
            /* A weak field looks back at what may hold this record: it is not followed. */
            if (record->type->fields[i].weak) later_text(parts, "…");
            else later_value(parts, record->fields[i]);
            later_text(parts, ": ");
            later_text(parts, record->type->fields[i].name);
            later_text(parts, " ");
        }
        return;
    }
    case PU_TABLE: {
        const PuTable *table = PU_AS(PuTable, v);
        pu_put_text(buffer, "#<table");
        later_text(parts, ">");
        for (int64_t i = table->used; i-- > 0;) {
            if (!table->entries[i].key) continue;
            later_text(parts, ")");
            later_value(parts, table->entries[i].value);
            later_text(parts, " . ");
            later_value(parts, table->entries[i].key);
            later_text(parts, " (");
        }
        return;
    }
    case PU_CLOSURE:
        pu_put_text(buffer, "#<procedure ");
        pu_put_text(buffer, PU_AS(PuClosure, v)->function->name);
        pu_put_text(buffer, ">");
        return;
    case PU_ERROR:
        pu_put_text(buffer, "#<error ");
        later_text(parts, ">");
        if (written) pu_put_value(buffer, PU_AS(PuError, v)->message, false);
        else later_value(parts, PU_AS(PuError, v)->message);
        return;
    case PU_POINTER: pu_put_text(buffer, "#<pointer>"); return;
    case PU_WEAK: pu_put_text(buffer, "…"); return;
    case PU_MODULE: pu_put_text(buffer, "#<procedure module>"); return;
    case PU_TENSOR: pu_tensor_hooks->put(buffer, v); return;
    }
}

static void put_one(PuBuffer *buffer, Parts *parts, Value v, bool written) {
    if (pu_is_fixnum(v)) {
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)pu_fixnum(v));
        pu_put_text(buffer, text);
    } else if (pu_is_char(v)) {
        if (written) put_char(buffer, pu_char(v));
        else pu_put_code(buffer, pu_char(v));
    } else if (pu_is_object(v)) {
        put_object(buffer, parts, v, written);
    } else if (v == PU_UNSPECIFIED) {
        pu_put_text(buffer, "#<unspecified>");
    } else {
        pu_put_text(buffer, v == PU_TRUE ? "#t" : v == PU_FALSE ? "#f" : "()");
    }
}

static void put_label(PuBuffer *buffer, int64_t label, const char *mark) {
    char text[32];
    snprintf(text, sizeof text, "#%lld%s", (long long)label, mark);
    pu_put_text(buffer, text);
}

/* The rest of a list. One that has a label is written after a dot. */
static void put_tail(PuBuffer *buffer, Parts *parts, Value rest, PuLabels *labels) {
    bool is_first = false;
    int64_t label = labels ? pu_label(labels, rest, &is_first) : -1;
    if (label >= 0 || (!pu_is(rest, PU_PAIR) && rest != PU_NIL)) {
        pu_put_text(buffer, " . ");
        later_text(parts, ")");
        if (label >= 0) put_label(buffer, label, is_first ? "=" : "#");
        if (label < 0) later_value(parts, rest);
        else if (is_first) later(parts, (Part){LABELLED, rest, NULL});
    } else if (rest == PU_NIL) {
        pu_put_text(buffer, ")");
    } else {
        pu_put_text(buffer, " ");
        later(parts, (Part){TAIL, PU_AS(PuPair, rest)->cdr, NULL});
        later_value(parts, PU_AS(PuPair, rest)->car);
    }
}

/* Whether all is shown, or `most` bytes of it. Without labels, what is long is given up. */
static bool put_parts(PuBuffer *buffer, Value v, bool written, size_t most, PuLabels *labels) {
    enum { LONG = 10000 }; /* parts: what has more may hold itself */
    Parts parts = {0};
    int64_t steps = 0;
    later_value(&parts, v);
    while (parts.count && buffer->length < most && (labels || steps <= LONG)) {
        Part part = parts.parts[--parts.count];
        steps += part.kind != TEXT;
        bool is_first = true;
        int64_t label = labels && part.kind == VALUE ? pu_label(labels, part.value, &is_first) : -1;
        if (label >= 0) put_label(buffer, label, is_first ? "=" : "#");
        if (part.kind == TEXT) pu_put_text(buffer, part.text);
        else if (part.kind == TAIL) put_tail(buffer, &parts, part.value, labels);
        else if (label < 0 || is_first) put_one(buffer, &parts, part.value, written);
    }
    free(parts.parts);
    return !parts.count || buffer->length >= most;
}

void pu_put_value_start(PuBuffer *buffer, Value v, bool written, size_t most) {
    if (!buffer->text) pu_put(buffer, "", 0);
    size_t start = buffer->length;
    most = most < SIZE_MAX - start ? start + most : SIZE_MAX;
    if (put_parts(buffer, v, written, most, NULL)) return;
    buffer->length = start;
    PuLabels labels = {0};
    pu_find_labels(&labels, v, false);
    put_parts(buffer, v, written, most, &labels);
    pu_free_labels(&labels);
}
void pu_put_value(PuBuffer *buffer, Value v, bool written) { pu_put_value_start(buffer, v, written, SIZE_MAX); }

static void put_shared(PuBuffer *buffer, Value v) {
    PuLabels labels = {0};
    pu_find_labels(&labels, v, true);
    put_parts(buffer, v, true, SIZE_MAX, &labels);
    pu_free_labels(&labels);
}

/* Output goes to a port that is given, else to the current one, else to the terminal. */

bool pu_is_port(Value v) {
    return pu_is(v, PU_RECORD) && !strcmp(PU_AS(PuRecord, v)->type->unique, "prelude::port");
}

static Value sent(const char *name, Value port, PuBuffer *text) {
    Value result = PU_UNSPECIFIED;
    if (port == PU_ABSENT) port = pu.output;
    if (!port) fwrite(text->text, 1, text->length, stdout);
    else result = pu_send(name, port, text->text, text->length);
    free(text->text);
    return result;
}

static Value put_values(const char *name, const Value *v, int n, const char *between, const char *after) {
    Value port = n > 1 && pu_is_port(v[n - 1]) ? v[--n] : PU_ABSENT;
    PuBuffer text = {0};
    pu_put(&text, "", 0);
    for (int i = 0; i < n; i++) {
        if (i) pu_put_text(&text, between);
        pu_put_value(&text, v[i], false);
    }
    pu_put_text(&text, after);
    return sent(name, port, &text);
}
Value pu_display(const Value *v, int n) { return put_values("display", v, n, "", ""); }
Value pu_print(const Value *v, int n) { return put_values("print", v, n, " ", "\n"); }

Value pu_write(Value v, Value port) {
    PuBuffer text = {0};
    pu_put_value(&text, v, true);
    return sent("write", port, &text);
}
Value pu_write_shared(Value v, Value port) {
    PuBuffer text = {0};
    put_shared(&text, v);
    return sent("write-shared", port, &text);
}
Value pu_newline(Value port) {
    PuBuffer text = {0};
    pu_put_text(&text, "\n");
    return sent("newline", port, &text);
}
Value pu_send_text(Value string, Value port) {
    if (!pu_is_string(string)) return pu_wrong_type("write-string", "string", string);
    PuBuffer text = {0};
    pu_put(&text, PU_AS(PuString, string)->text, (size_t)PU_AS(PuString, string)->bytes);
    return sent("write-string", port, &text);
}

static Value as_string(Value v, bool written) {
    PuBuffer text = {0};
    pu_put_value(&text, v, written);
    Value string = pu_string(text.text, (int64_t)text.length);
    free(text.text);
    return string;
}
Value pu_display_to_string(Value v) { return as_string(v, false); }
Value pu_write_to_string(Value v) { return as_string(v, true); }
