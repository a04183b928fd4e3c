/* Which parts of a value are written with a label: `#0=(1 . #0#)`. They are found before anything is written, by a walk
   that keeps the containers under way in a list of its own, so that depth costs no stack. */
#include "labels.h"

#include <stdlib.h>

enum { UNDER_WAY = -3, DONE = -2, WANTED = -1 }; /* marks below 0; from 0 on they are labels */

static size_t slot(const PuLabels *labels, Value v) {
    size_t at = (v >> 4) * 0x9E3779B97F4A7C15ull >> 20 & (labels->room - 1);
    while (labels->keys[at] && labels->keys[at] != v) at = (at + 1) & (labels->room - 1);
    return at;
}

static int64_t *mark_of(PuLabels *labels, Value v, bool *is_new) {
    if (2 * (labels->used + 1) > labels->room) {
        PuLabels larger = {NULL, NULL, labels->room ? 2 * labels->room : 256, labels->used, labels->next};
        larger.keys = pu_get_memory(larger.room * sizeof(Value));
        larger.marks = pu_get_memory(larger.room * sizeof(int64_t));
        memset(larger.keys, 0, larger.room * sizeof(Value));
        for (size_t i = 0; i < labels->room; i++) {
            if (!labels->keys[i]) continue;
            size_t at = slot(&larger, labels->keys[i]);
            larger.keys[at] = labels->keys[i];
            larger.marks[at] = labels->marks[i];
        }
        pu_free_labels(labels);
        *labels = larger;
    }
    size_t at = slot(labels, v);
    *is_new = !labels->keys[at];
    if (*is_new) {
        labels->keys[at] = v;
        labels->used++;
    }
    return &labels->marks[at];
}

typedef struct { Value *items; size_t count, room; } Stack;

static void push(Stack *stack, Value v) {
    if (stack->count == stack->room) {
        size_t room = stack->room ? 2 * stack->room : 256;
        Value *larger = pu_get_memory(room * sizeof(Value));
        if (stack->count) memcpy(larger, stack->items, stack->count * sizeof(Value));
        free(stack->items);
        stack->items = larger;
        stack->room = room;
    }
    stack->items[stack->count++] = v;
}

bool pu_is_container(Value v) {
    return pu_is(v, PU_PAIR) || pu_is(v, PU_VECTOR) || pu_is(v, PU_RECORD) || pu_is(v, PU_TABLE) || pu_is(v, PU_BOX);
}

static void push_parts(Stack *stack, Value v) {
    switch (pu_kind_of_object(v)) {
    case PU_PAIR:
        push(stack, PU_AS(PuPair, v)->cdr);
        push(stack, PU_AS(PuPair, v)->car);
        return;
    case PU_VECTOR:
        for (int64_t i = PU_AS(PuVector, v)->count; i-- > 0;) push(stack, PU_AS(PuVector, v)->items[i]);
        return;
    case PU_BOX: push(stack, PU_AS(PuBox, v)->content); return;
    case PU_RECORD:
        for (int i = PU_AS(PuRecord, v)->type->count; i-- > 0;)
            if (!PU_AS(PuRecord, v)->type->fields[i].weak) push(stack, PU_AS(PuRecord, v)->fields[i]);
        return;
    case PU_TABLE:
        for (int64_t i = PU_AS(PuTable, v)->used; i-- > 0;) {
            if (!PU_AS(PuTable, v)->entries[i].key) continue;
            push(stack, PU_AS(PuTable, v)->entries[i].value);
            push(stack, PU_AS(PuTable, v)->entries[i].key);
        }
        return;
    default: return;
    }
}

void pu_find_labels(PuLabels *labels, Value v, bool shared) {
    Stack stack = {0};
    bool is_new;
    push(&stack, v);
    while (stack.count) {
        Value next = stack.items[--stack.count];
        if (next & 1 && stack.count && stack.items[stack.count - 1] == PU_UNDEFINED) { /* the end of a container */
            stack.count--;
            int64_t *mark = mark_of(labels, next & ~(Value)1, &is_new);
            if (*mark == UNDER_WAY) *mark = DONE;
            continue;
        }
        if (!pu_is_container(next)) continue;
        int64_t *mark = mark_of(labels, next, &is_new);
        if (is_new) {
            *mark = UNDER_WAY;
            push(&stack, PU_UNDEFINED);
            push(&stack, next | 1);
            push_parts(&stack, next);
        } else if (shared || *mark == UNDER_WAY) {
            *mark = WANTED;
        }
    }
    free(stack.items);
}

int64_t pu_label(PuLabels *labels, Value v, bool *is_first) {
    bool is_new;
    if (!pu_is_container(v)) return -1;
    int64_t *mark = mark_of(labels, v, &is_new);
    if (is_new) *mark = DONE;
    *is_first = *mark == WANTED;
    if (*is_first) *mark = labels->next++;
    return *mark < 0 ? -1 : *mark;
}

void pu_free_labels(PuLabels *labels) {
    free(labels->keys);
    free(labels->marks);
}
