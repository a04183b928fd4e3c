/* Lists, vectors, boxes and records. */
#include "purple_all.h"

#include <stdlib.h>

static PuPair *pair_of(Value v) { return PU_AS(PuPair, v); }

bool pu_is_list(Value v) {
    Value slow = v;
    while (pu_is(v, PU_PAIR)) {
        v = pair_of(v)->cdr;
        if (!pu_is(v, PU_PAIR)) break;
        v = pair_of(v)->cdr;
        slow = pair_of(slow)->cdr;
        if (v == slow) return false; /* it bites its own tail */
    }
    return v == PU_NIL;
}

Value pu_list_onto(Value *items, int64_t count, Value tail) {
    for (int64_t i = count; i-- > 0;) tail = pu_cons(items[i], tail);
    return tail;
}
Value pu_list(Value *items, int count) { return pu_list_onto(items, count, PU_NIL); }

/* `path` from the right: 'a' for car, 'd' for cdr. */
static Value along(const char *name, const char *path, Value v) {
    Value at = v;
    for (size_t i = strlen(path); i-- > 0;) {
        if (!pu_is(at, PU_PAIR)) return pu_wrong_type(name, "pair", at);
        at = path[i] == 'a' ? pair_of(at)->car : pair_of(at)->cdr;
    }
    return at;
}
static Value shared(Value part) { return part ? pu_dup(part) : PU_FAILURE; }
#define PATH(name, path)                                                  \
    Value pu_##name##_refused(Value v) { return along(#name, path, v); }  \
    Value pu_##name(Value v) { return shared(along(#name, path, v)); }
PATH(caar, "aa")
PATH(cadr, "ad")
PATH(cdar, "da")
PATH(cddr, "dd")
PATH(caddr, "add")

/* Those that store something own it; where they fail they release it. */
static Value unstored(Value failure, Value v) {
    pu_drop(v);
    return failure;
}
static Value replace(Value owner, Value *slot, Value v) {
    Value old = *slot;
    *slot = v;
    pu_mutated(owner, v);
    pu_drop(old);
    return PU_UNSPECIFIED;
}
Value pu_set_car(Value pair, Value v) {
    return pu_is(pair, PU_PAIR) ? replace(pair, &pair_of(pair)->car, v) : unstored(pu_wrong_type("set-car!", "pair", pair), v);
}
Value pu_set_cdr(Value pair, Value v) {
    return pu_is(pair, PU_PAIR) ? replace(pair, &pair_of(pair)->cdr, v) : unstored(pu_wrong_type("set-cdr!", "pair", pair), v);
}

static bool list_length(const char *name, Value list, int64_t *out) {
    int64_t count = 0, until = 8;
    Value v = list, passed = PU_NIL;
    while (pu_is(v, PU_PAIR)) {
        count++;
        v = pair_of(v)->cdr;
        if (v == passed) break; /* the end, or where a list that holds itself was before */
        if (count == until) passed = v, until *= 2;
    }
    *out = count;
    if (v == PU_NIL) return true;
    pu_wrong_type(name, "list", list);
    return false;
}

Value pu_length(Value list) {
    int64_t count;
    return list_length("length", list, &count) ? pu_of_fixnum(count) : PU_FAILURE;
}

Value pu_append(const Value *lists, int count) {
    if (!count) return PU_NIL;
    for (int i = 0; i < count - 1; i++)
        if (!pu_is_list(lists[i])) return unstored(pu_wrong_type("append", "list", lists[i]), lists[count - 1]);
    Value first = 0, last = 0;
    for (int i = 0; i < count - 1; i++)
        for (Value v = lists[i]; v != PU_NIL; v = pair_of(v)->cdr) {
            Value next = pu_cons(pu_dup(pair_of(v)->car), PU_NIL);
            if (last) pair_of(last)->cdr = next;
            else first = next;
            last = next;
        }
    Value tail = lists[count - 1]; /* which is owned: it becomes the end of the result */
    if (!last) return tail;
    pair_of(last)->cdr = tail;
    return first;
}

Value pu_reverse(Value list) {
    if (!pu_is_list(list)) return pu_wrong_type("reverse", "list", list);
    Value result = PU_NIL;
    for (Value v = list; v != PU_NIL; v = pair_of(v)->cdr) result = pu_cons(pu_dup(pair_of(v)->car), result);
    return result;
}

Value pu_reverse_taking(Value list, bool unique) {
    if (!pu_is_list(list)) {
        pu_wrong_type("reverse", "list", list);
        pu_drop(list);
        return PU_FAILURE;
    }
    Value result = PU_NIL;
    while (list != PU_NIL) {
        PuPair *pair = pair_of(list);
        Value rest = pair->cdr;
        if (unique ? pu_unique_leaves_cell(list) : pu_leaves_cell(list)) {
            pair->cdr = result;
            result = list;
        } else {
            result = pu_cons(pu_dup(pair->car), result);
            pu_dup(rest);
            pu_drop(list);
        }
        list = rest;
    }
    return result;
}

static bool in_range(const char *name, Value v, int64_t length, int64_t *out) {
    if (!pu_take_int(name, v, out)) return false;
    if (*out >= 0 && *out < length) return true;
    pu_out_of_range(name, *out, length);
    return false;
}

/* What is left of a list after so many pairs; 0 and an error where there are fewer. */
static Value after(const char *name, Value list, Value index, bool pair) {
    int64_t at, length;
    if (!pu_take_int(name, index, &at)) return PU_FAILURE;
    Value rest = list;
    int64_t left = at;
    for (; left > 0 && pu_is(rest, PU_PAIR); left--) rest = pair_of(rest)->cdr;
    if (left == 0 && (!pair || pu_is(rest, PU_PAIR))) return rest;
    if (!list_length(name, list, &length)) return PU_FAILURE;
    return pu_out_of_range(name, at, length);
}
Value pu_list_ref_of(Value list, Value index) {
    Value rest = after("list-ref", list, index, true);
    return rest ? pair_of(rest)->car : PU_FAILURE;
}
Value pu_list_tail_of(Value list, Value index) { return after("list-tail", list, index, false); }
Value pu_list_drop_of(Value list, Value count) { return after("drop", list, count, false); }
Value pu_list_ref(Value list, Value index) { return shared(pu_list_ref_of(list, index)); }
Value pu_list_tail(Value list, Value index) { return shared(pu_list_tail_of(list, index)); }
/* `drop` and `take` name a list of Purple; C has functions of these names already. */
Value pu_list_drop(Value list, Value count) { return shared(pu_list_drop_of(list, count)); }
Value pu_list_take(Value list, Value count) {
    Value rest = after("take", list, count, false), first = PU_NIL, *end = &first;
    if (!rest) return PU_FAILURE;
    for (; list != rest; list = pair_of(list)->cdr) {
        *end = pu_cons(pu_dup(pair_of(list)->car), PU_NIL);
        end = &pair_of(*end)->cdr;
    }
    return first;
}

/* Vectors */

Value pu_vector(Value *items, int count) {
    PuVector *vector = pu_allocate(PU_VECTOR, sizeof(PuVector) + (size_t)count * sizeof(Value));
    vector->count = count;
    for (int i = 0; i < count; i++) vector->items[i] = items[i];
    return pu_of_object(vector);
}

Value pu_make_vector(Value count, Value fill) {
    int64_t n;
    if (!pu_take_int("make-vector", count, &n)) return PU_FAILURE;
    if (n < 0) return pu_fail("index", "make-vector: %lld is no length", (long long)n);
    if (fill == PU_ABSENT) fill = pu_of_fixnum(0);
    if (n > (int64_t)1 << 40 || !pu_has_memory(sizeof(PuVector) + (size_t)n * sizeof(Value))) return pu_fail("memory", "out of memory");
    PuVector *vector = pu_allocate(PU_VECTOR, sizeof(PuVector) + (size_t)n * sizeof(Value));
    vector->count = n;
    for (int64_t i = 0; i < n; i++) vector->items[i] = pu_dup(fill);
    return pu_of_object(vector);
}

bool pu_is_vector(Value v) { return pu_is(v, PU_VECTOR); }
Value pu_vector_length(Value v) {
    return pu_is_vector(v) ? pu_of_fixnum(PU_AS(PuVector, v)->count) : pu_wrong_type("vector-length", "vector", v);
}
Value pu_vector_ref_refused(Value v, Value index) {
    int64_t at;
    if (!pu_is_vector(v)) return pu_wrong_type("vector-ref", "vector", v);
    if (!in_range("vector-ref", index, PU_AS(PuVector, v)->count, &at)) return PU_FAILURE;
    return PU_AS(PuVector, v)->items[at];
}
Value pu_vector_ref(Value v, Value index) { return shared(pu_vector_ref_of(v, index)); }
Value pu_vector_set_refused(Value v, Value index, Value item) {
    int64_t at;
    if (!pu_is_vector(v)) return unstored(pu_wrong_type("vector-set!", "vector", v), item);
    if (!in_range("vector-set!", index, PU_AS(PuVector, v)->count, &at)) return unstored(PU_FAILURE, item);
    return replace(v, &PU_AS(PuVector, v)->items[at], item);
}
Value pu_vector_to_list(Value v, Value start, Value end) {
    int64_t from, to;
    if (!pu_is_vector(v)) return pu_wrong_type("vector->list", "vector", v);
    PuVector *vector = PU_AS(PuVector, v);
    if (!pu_range("vector->list", start, end, vector->count, &from, &to)) return PU_FAILURE;
    Value list = PU_NIL;
    for (int64_t i = to; i-- > from;) list = pu_cons(pu_dup(vector->items[i]), list);
    return list;
}
Value pu_list_to_vector(Value list) {
    int64_t count;
    if (!list_length("list->vector", list, &count)) return PU_FAILURE;
    PuVector *vector = pu_allocate(PU_VECTOR, sizeof(PuVector) + (size_t)count * sizeof(Value));
    vector->count = count;
    for (int64_t i = 0; i < count; i++, list = pair_of(list)->cdr) vector->items[i] = pu_dup(pair_of(list)->car);
    return pu_of_object(vector);
}

/* Boxes */

Value pu_new_box(Value content) {
    PuBox *box = pu_allocate(PU_BOX, sizeof(PuBox));
    box->content = content;
    return pu_of_object(box);
}
bool pu_is_box(Value v) { return pu_is(v, PU_BOX); }
Value pu_unbox_of(Value v) { return pu_is_box(v) ? PU_AS(PuBox, v)->content : pu_wrong_type("unbox", "box", v); }
Value pu_unbox(Value v) { return shared(pu_unbox_of(v)); }
Value pu_set_box(Value v, Value content) {
    return pu_is_box(v) ? replace(v, &PU_AS(PuBox, v)->content, content) : unstored(pu_wrong_type("set-box!", "box", v), content);
}

/* Records */

Value pu_record(const PuType *type, Value *fields) { return pu_record_in(0, type, fields); }

Value pu_record_in(Value cell, const PuType *type, Value *fields) {
    PuRecord *record = pu_allocate_in(cell, PU_RECORD, sizeof(PuRecord) + (size_t)type->count * sizeof(Value));
    record->type = type;
    for (int i = 0; i < type->count; i++)
        record->fields[i] = type->fields[i].weak ? pu_weak_to(fields[i]) : fields[i];
    return pu_of_object(record);
}

static bool fits(const char *kind, Value v) {
    if (!strcmp(kind, "any")) return true;
    if (!strcmp(kind, "int")) return pu_is_integer(v);
    if (!strcmp(kind, "float")) return pu_is(v, PU_FLOAT);
    if (!strcmp(kind, "number")) return pu_is_number(v);
    if (!strcmp(kind, "bool")) return pu_is_boolean(v);
    if (!strcmp(kind, "string")) return pu_is_string(v);
    if (!strcmp(kind, "char")) return pu_is_char(v);
    if (!strcmp(kind, "symbol")) return pu_is_symbol(v);
    if (!strcmp(kind, "list")) return v == PU_NIL || pu_is(v, PU_PAIR);
    if (!strcmp(kind, "vector")) return pu_is_vector(v);
    if (!strcmp(kind, "tensor")) return pu_is_tensor(v);
    if (!strcmp(kind, "procedure")) return pu_is_procedure(v);
    return v == PU_NIL || (pu_is(v, PU_RECORD) && !strcmp(PU_AS(PuRecord, v)->type->unique, kind));
}

Value pu_check_field(const PuType *type, int index, Value v) {
    const PuField *field = &type->fields[index];
    if (fits(field->type, v)) return PU_UNSPECIFIED;
    PuBuffer text = {0};
    pu_put_text(&text, type->name);
    pu_put_text(&text, ": the field ");
    pu_put_text(&text, field->name);
    pu_put_text(&text, " expects ");
    pu_put_kind(&text, field->type);
    pu_put_text(&text, ", got ");
    pu_put_brief(&text, v);
    pu_fail_text("type", &text);
    pu_defined_at(type->name, NULL, type->place);
    return PU_FAILURE;
}

static Value wrong_record(const PuType *type, int index, Value v) {
    PuBuffer name = {0};
    pu_put_text(&name, type->name);
    pu_put_text(&name, "-");
    pu_put_text(&name, type->fields[index].name);
    pu_wrong_type(name.text, type->name, v);
    pu_defined_at(type->name, NULL, type->place);
    free(name.text);
    return PU_FAILURE;
}

Value pu_field_refused(const PuType *type, int index, Value record) { return wrong_record(type, index, record); }

Value pu_field(const PuType *type, int index, Value record) {
    Value held = pu_field_of(type, index, record);
    return held && type->fields[index].weak ? pu_weak_target(held) : shared(held);
}

Value pu_set_field(const PuType *type, int index, Value record, Value v) {
    bool weak = type->fields[index].weak;
    if (!pu_is_record(type, record) || !pu_check_field(type, index, v)) {
        if (!pu.pending) wrong_record(type, index, record);
        return weak ? PU_FAILURE : unstored(PU_FAILURE, v);
    }
    Value *slot = &PU_AS(PuRecord, record)->fields[index];
    if (!weak) return replace(record, slot, v);
    Value old = *slot;
    *slot = pu_weak_to(v);
    pu_drop(old);
    return PU_UNSPECIFIED;
}
