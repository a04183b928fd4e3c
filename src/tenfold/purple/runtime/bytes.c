/* Bytevectors, and what turns them into text and back. */
#include "purple_all.h"

static PuBytes *bytes_of(Value v) { return PU_AS(PuBytes, v); }

static bool is_bytes(const char *name, Value v) {
    if (pu_is(v, PU_BYTES)) return true;
    pu_wrong_type(name, "bytevector", v);
    return false;
}

static bool byte_of(const char *name, Value v, uint8_t *byte) {
    int64_t number;
    if (!pu_take_int(name, v, &number)) return false;
    if (number < 0 || number > 255)
        return pu_fail("index", "%s: %lld is no byte: it is from 0 to 255", name, (long long)number), false;
    *byte = (uint8_t)number;
    return true;
}

static PuBytes *new_bytes(int64_t count) {
    PuBytes *bytes = pu_allocate(PU_BYTES, sizeof(PuBytes) + (size_t)count);
    bytes->count = count;
    return bytes;
}

Value pu_bytes(const void *bytes, int64_t count) {
    PuBytes *made = new_bytes(count);
    if (count) memcpy(made->items, bytes, (size_t)count);
    return pu_of_object(made);
}

/* The part of so many elements that a start and an end, which may be absent, choose. */
bool pu_range(const char *name, Value start, Value end, int64_t length, int64_t *from, int64_t *to) {
    *from = 0;
    *to = length;
    const struct { Value given; int64_t *out; } both[] = {{end, to}, {start, from}};
    for (int i = 0; i < 2; i++) {
        if (both[i].given == PU_ABSENT) continue;
        if (!pu_take_int(name, both[i].given, both[i].out)) return false;
        if (*both[i].out < 0 || *both[i].out > length) return pu_out_of_range(name, *both[i].out, length), false;
    }
    if (*from <= *to) return true;
    pu_fail("index", "%s: the start %lld lies behind the end %lld", name, (long long)*from, (long long)*to);
    return false;
}

bool pu_is_bytevector(Value v) { return pu_is(v, PU_BYTES); }

Value pu_bytevector(const Value *items, int count) {
    PuBytes *made = new_bytes(count);
    for (int i = 0; i < count; i++)
        if (!byte_of("bytevector", items[i], &made->items[i])) return pu_drop(pu_of_object(made)), PU_FAILURE;
    return pu_of_object(made);
}

Value pu_make_bytevector(Value count, Value fill) {
    uint8_t byte = 0;
    int64_t n;
    if (!pu_take_int("make-bytevector", count, &n)) return PU_FAILURE;
    if (n < 0) return pu_fail("index", "make-bytevector: %lld is no length", (long long)n);
    if (fill != PU_ABSENT && !byte_of("make-bytevector", fill, &byte)) return PU_FAILURE;
    if (n > (int64_t)1 << 46 || !pu_has_memory((size_t)n)) return pu_fail("memory", "out of memory");
    PuBytes *made = new_bytes(n);
    if (n) memset(made->items, byte, (size_t)n);
    return pu_of_object(made);
}

Value pu_bytevector_length(Value v) {
    return is_bytes("bytevector-length", v) ? pu_of_fixnum(bytes_of(v)->count) : PU_FAILURE;
}

static bool at_index(const char *name, Value v, Value index, int64_t *at) {
    if (!is_bytes(name, v)) return false;
    if (!pu_take_int(name, index, at)) return false;
    if (*at >= 0 && *at < bytes_of(v)->count) return true;
    pu_out_of_range(name, *at, bytes_of(v)->count);
    return false;
}

Value pu_bytevector_u8_ref(Value v, Value index) {
    int64_t at;
    return at_index("bytevector-u8-ref", v, index, &at) ? pu_of_fixnum(bytes_of(v)->items[at]) : PU_FAILURE;
}

Value pu_bytevector_u8_set(Value v, Value index, Value byte) {
    int64_t at;
    uint8_t new;
    if (!at_index("bytevector-u8-set!", v, index, &at) || !byte_of("bytevector-u8-set!", byte, &new)) return PU_FAILURE;
    bytes_of(v)->items[at] = new;
    return PU_UNSPECIFIED;
}

Value pu_bytevector_copy(Value v, Value start, Value end) {
    int64_t from, to;
    if (!is_bytes("bytevector-copy", v)) return PU_FAILURE;
    if (!pu_range("bytevector-copy", start, end, bytes_of(v)->count, &from, &to)) return PU_FAILURE;
    return pu_bytes(bytes_of(v)->items + from, to - from);
}

Value pu_bytevector_append(const Value *v, int n) {
    int64_t count = 0;
    for (int i = 0; i < n; i++) {
        if (!is_bytes("bytevector-append", v[i])) return PU_FAILURE;
        count += bytes_of(v[i])->count;
    }
    PuBytes *made = new_bytes(count);
    count = 0;
    for (int i = 0; i < n; i++) {
        if (bytes_of(v[i])->count) memcpy(made->items + count, bytes_of(v[i])->items, (size_t)bytes_of(v[i])->count);
        count += bytes_of(v[i])->count;
    }
    return pu_of_object(made);
}

Value pu_utf8_to_string(Value v, Value start, Value end) {
    int64_t from, to;
    if (!is_bytes("utf8->string", v)) return PU_FAILURE;
    if (!pu_range("utf8->string", start, end, bytes_of(v)->count, &from, &to)) return PU_FAILURE;
    const char *text = (const char *)bytes_of(v)->items + from;
    return pu_is_utf8(text, to - from) ? pu_string(text, to - from) : pu_fail("read", "utf8->string: not valid UTF-8");
}

Value pu_string_to_utf8(Value v, Value start, Value end) {
    int64_t from, to;
    if (!pu_is_string(v)) return pu_wrong_type("string->utf8", "string", v);
    PuString *string = PU_AS(PuString, v);
    if (!pu_range("string->utf8", start, end, string->characters, &from, &to)) return PU_FAILURE;
    int64_t first = pu_offset(string, from), last = pu_offset(string, to);
    return pu_bytes(string->text + first, last - first);
}
