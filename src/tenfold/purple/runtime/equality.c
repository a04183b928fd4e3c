/* Sameness, likeness and hashes. Likeness of nested values is checked from a list of pairs still to compare. */
#include "purple_all.h"

#include <stdio.h>
#include <stdlib.h>

bool pu_is_eq_object(Value a, Value b) {
    if (pu_kind_of_object(a) != pu_kind_of_object(b)) return false;
    switch (pu_kind_of_object(a)) {
    case PU_FLOAT: {
        double x = pu_float(a), y = pu_float(b);
        return isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y);
    }
    case PU_INT: return pu_int(a) == pu_int(b);
    case PU_BIG: return pu_whole_compare(a, b) == 0;
    case PU_RATIO: return pu_exact_compare(a, b) == 0;
    case PU_STRING: {
        PuString *one = PU_AS(PuString, a), *two = PU_AS(PuString, b);
        return one->bytes == two->bytes && !memcmp(one->text, two->text, (size_t)one->bytes);
    }
    case PU_CLOSURE: { /* a function that is mentioned twice makes two closures: they are one procedure */
        PuClosure *one = PU_AS(PuClosure, a), *two = PU_AS(PuClosure, b);
        if (one->function != two->function) return false;
        for (int i = 0; i < one->function->captured; i++)
            if (!pu_is_eq(one->captured[i], two->captured[i])) return false;
        return one->function->captured > 0;
    }
    default: return false;
    }
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    return hash ^ (hash >> 29);
}

typedef struct { Value a, b; } Both;
typedef struct { Both *items; size_t count, room; } Work;

static void push(Work *work, Value a, Value b) {
    if (work->count == work->room) {
        work->room = work->room ? 2 * work->room : 64;
        Both *larger = realloc(work->items, work->room * sizeof *larger);
        if (!larger) {
            fputs("purple: memory ran out\n", stderr);
            exit(1);
        }
        work->items = larger;
    }
    work->items[work->count++] = (Both){a, b};
}

static bool push_all(Work *work, const Value *a, const Value *b, int64_t count) {
    for (int64_t i = count; i-- > 0;) push(work, a[i], b[i]);
    return true;
}

static bool alike(Work *work, Value a, Value b) {
    if (pu_is_eq(a, b)) return true;
    if (!pu_is_object(a) || !pu_is_object(b) || pu_kind_of_object(a) != pu_kind_of_object(b)) return false;
    switch (pu_kind_of_object(a)) {
    case PU_PAIR:
        push(work, PU_AS(PuPair, a)->cdr, PU_AS(PuPair, b)->cdr);
        push(work, PU_AS(PuPair, a)->car, PU_AS(PuPair, b)->car);
        return true;
    case PU_VECTOR: {
        PuVector *one = PU_AS(PuVector, a), *two = PU_AS(PuVector, b);
        return one->count == two->count && push_all(work, one->items, two->items, one->count);
    }
    case PU_BYTES: {
        PuBytes *one = PU_AS(PuBytes, a), *two = PU_AS(PuBytes, b);
        return one->count == two->count && !memcmp(one->items, two->items, (size_t)one->count);
    }
    case PU_BOX: push(work, PU_AS(PuBox, a)->content, PU_AS(PuBox, b)->content); return true;
    case PU_RECORD: {
        PuRecord *one = PU_AS(PuRecord, a), *two = PU_AS(PuRecord, b);
        if (one->type != two->type) return false;
        for (int i = one->type->count; i-- > 0;)
            if (!one->type->fields[i].weak) push(work, one->fields[i], two->fields[i]);
        return true;
    }
    case PU_TABLE: {
        PuTable *one = PU_AS(PuTable, a), *two = PU_AS(PuTable, b);
        if (one->count != two->count) return false;
        for (int64_t i = 0; i < one->used; i++) {
            if (!one->entries[i].key) continue;
            Value other = pu_hash_table_ref(b, one->entries[i].key, PU_UNDEFINED);
            pu_drop(other);
            if (other == PU_UNDEFINED) return false;
            push(work, one->entries[i].value, other);
        }
        return true;
    }
    case PU_TENSOR: return pu_tensor_hooks->alike(a, b);
    default: return false;
    }
}

/* Containers that were compared already. Only long comparisons keep them: they may be of what holds itself. */
typedef struct { Both *pairs; size_t count, room; } Seen;

static bool is_new(Seen *seen, Both pair) {
    if (!pu_is_object(pair.a) || !pu_is_object(pair.b)) return true;
    if (2 * (seen->count + 1) > seen->room) {
        Seen larger = {NULL, 0, seen->room ? 2 * seen->room : 1024};
        larger.pairs = pu_get_memory(larger.room * sizeof(Both));
        memset(larger.pairs, 0, larger.room * sizeof(Both));
        for (size_t i = 0; i < seen->room; i++)
            if (seen->pairs[i].a) is_new(&larger, seen->pairs[i]);
        free(seen->pairs);
        *seen = larger;
    }
    size_t at = (size_t)(mix(mix(9, pair.a), pair.b) & (seen->room - 1));
    for (; seen->pairs[at].a; at = (at + 1) & (seen->room - 1))
        if (seen->pairs[at].a == pair.a && seen->pairs[at].b == pair.b) return false;
    seen->pairs[at] = pair;
    seen->count++;
    return true;
}

bool pu_is_equal(Value a, Value b) {
    enum { LONG = 10000 };
    Work work = {0};
    Seen seen = {0};
    bool same = alike(&work, a, b);
    for (int64_t steps = 0; same && work.count; steps++) {
        Both next = work.items[--work.count];
        if (steps < LONG || is_new(&seen, next)) same = alike(&work, next.a, next.b);
    }
    free(work.items);
    free(seen.pairs);
    return same;
}

static uint64_t hash_bytes(const char *text, int64_t bytes) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (int64_t i = 0; i < bytes; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ull;
    return hash;
}

/* Alike values have the same hash. Only the first elements of a container count, so that it takes no recursion. */
static uint64_t shallow(Value v, int depth) {
    if (!pu_is_object(v)) return mix(1, v);
    switch (pu_kind_of_object(v)) {
    case PU_FLOAT: {
        double x = isnan(pu_float(v)) ? (double)NAN : pu_float(v);
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        return mix(2, bits);
    }
    case PU_INT: return mix(3, (uint64_t)pu_int(v));
    case PU_BIG: return hash_bytes((const char *)PU_AS(PuBig, v)->limbs, PU_AS(PuBig, v)->count * 4);
    case PU_RATIO: return mix(shallow(PU_AS(PuRatio, v)->over, 0), shallow(PU_AS(PuRatio, v)->under, 0));
    case PU_STRING: return hash_bytes(PU_AS(PuString, v)->text, PU_AS(PuString, v)->bytes);
    case PU_SYMBOL: case PU_KEYWORD: return PU_AS(PuSymbol, v)->hash;
    case PU_PAIR: {
        uint64_t hash = 5;
        for (int i = 0; i < 8 && pu_is(v, PU_PAIR); i++, v = PU_AS(PuPair, v)->cdr)
            hash = mix(hash, depth ? shallow(PU_AS(PuPair, v)->car, depth - 1) : 0);
        return hash;
    }
    case PU_VECTOR: {
        PuVector *vector = PU_AS(PuVector, v);
        uint64_t hash = mix(6, (uint64_t)vector->count);
        for (int64_t i = 0; i < vector->count && i < 8; i++)
            hash = mix(hash, depth ? shallow(vector->items[i], depth - 1) : 0);
        return hash;
    }
    case PU_RECORD: case PU_TABLE: case PU_TENSOR: case PU_BOX: case PU_BYTES: return (uint64_t)pu_kind_of_object(v);
    case PU_CLOSURE: return mix(7, (uint64_t)(uintptr_t)PU_AS(PuClosure, v)->function);
    default: return mix(8, v);
    }
}

uint64_t pu_hash(Value v) { return shallow(v, 3); }
