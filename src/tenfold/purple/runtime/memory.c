/* Allocation by size class, release without recursion, weak references, and cycles found at exit. */
#include "purple_all.h"

#include <stdio.h>
#include <stdlib.h>

PuState pu;
PuObject *pu_free_lists[9];

/* Blocks of small objects are kept in a list and given back at exit. */
typedef struct PuBlock { struct PuBlock *next; } PuBlock;
static PuBlock *blocks;

static void *get_memory(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) {
        fputs("purple: memory ran out\n", stderr);
        exit(1);
    }
    return memory;
}

void *pu_get_memory(size_t bytes) { return get_memory(bytes); }

bool pu_has_memory(size_t bytes) {
    if (bytes < 1 << 20) return true;
    void *tried = malloc(bytes);
    free(tried);
    return tried;
}

void pu_refill(size_t class_) {
    enum { BLOCK = 1 << 16 };
    size_t size = class_ * 8;
    PuBlock *block = get_memory(BLOCK);
    block->next = blocks;
    blocks = block;
    char *start = (char *)block + 16;
    size_t count = (BLOCK - 16) / size;
    pu.live_objects += (int64_t)count;
    for (size_t i = count; i-- > 0;) {
        PuObject *object = (PuObject *)(void *)(start + i * size);
        object->head = (uint64_t)(uintptr_t)pu_free_lists[class_];
        pu_free_lists[class_] = object;
    }
}

void *pu_allocate_large(PuKind kind, size_t bytes) {
    PuObject *object = get_memory(bytes);
    object->head = ((uint64_t)kind << 56) | 1;
    pu.live_objects++;
    return object;
}

static inline void give_back(void *object, size_t bytes) {
#ifndef PU_CHECKED_MEMORY
    size_t class_ = (bytes + 7) / 8;
    if (class_ < 9) {
        ((PuObject *)object)->head = (uint64_t)(uintptr_t)pu_free_lists[class_];
        pu_free_lists[class_] = object;
        return;
    }
#endif
    (void)bytes;
    pu.live_objects--;
    free(object);
}

void pu_give_back(void *object, size_t bytes) { give_back(object, bytes); }

Value pu_box_int(int64_t n) {
    PuInt *boxed = pu_allocate(PU_INT, sizeof(PuInt));
    boxed->number = n;
    return pu_of_object(boxed);
}

/* A map from objects to words, for the few that are suspects or watched. */
typedef struct { PuObject **keys; void **words; size_t room, used; } PuMap;
static PuMap suspects, watched;
static PuObject *const GONE = (PuObject *)8;

static size_t map_slot(const PuMap *map, const PuObject *key) {
    size_t at = ((uintptr_t)key >> 3) * 0x9E3779B97F4A7C15ull >> 20;
    size_t mask = map->room - 1, free_slot = map->room;
    for (at &= mask;; at = (at + 1) & mask) {
        if (map->keys[at] == key) return at;
        if (map->keys[at] == GONE && free_slot == map->room) free_slot = at;
        if (!map->keys[at]) return free_slot < map->room ? free_slot : at;
    }
}

static void map_set(PuMap *map, PuObject *key, void *word) {
    if ((map->used + 1) * 2 > map->room) {
        PuMap old = *map;
        size_t live = 0;
        for (size_t i = 0; i < old.room; i++) live += old.keys[i] && old.keys[i] != GONE;
        map->room = 64;
        while (map->room < live * 4) map->room *= 2;
        map->keys = get_memory(map->room * sizeof *map->keys);
        map->words = get_memory(map->room * sizeof *map->words);
        memset(map->keys, 0, map->room * sizeof *map->keys);
        map->used = 0;
        for (size_t i = 0; i < old.room; i++)
            if (old.keys[i] && old.keys[i] != GONE) map_set(map, old.keys[i], old.words[i]);
        free(old.keys);
        free(old.words);
    }
    size_t at = map_slot(map, key);
    if (map->keys[at] != key) {
        if (!map->keys[at]) map->used++;
        map->keys[at] = key;
    }
    map->words[at] = word;
}

static void *map_take(PuMap *map, PuObject *key) {
    size_t at = map_slot(map, key);
    if (map->keys[at] != key) return NULL;
    map->keys[at] = GONE;
    return map->words[at];
}

static void map_free(PuMap *map) {
    free(map->keys);
    free(map->words);
    memset(map, 0, sizeof *map);
}

/* `owner` was changed to hold `stored`: only so can a cycle come about. */
void pu_mutated(Value owner, Value stored) {
    PuObject *object = pu_object(owner);
    if (!pu_is_object(stored) || (object->head & PU_SUSPECT)) return;
    switch (pu_kind_of_object(stored)) {
    case PU_FLOAT: case PU_INT: case PU_STRING: case PU_SYMBOL: case PU_KEYWORD: case PU_TENSOR: case PU_POINTER: case PU_WEAK:
    case PU_BYTES: case PU_BIG: case PU_RATIO:
        return;
    default:
        object->head |= PU_SUSPECT;
        map_set(&suspects, object, NULL);
    }
}

/* Weak fields hold a cell, owned, whose target is forgotten when it goes. A number is no object of its own to the
   program, so they hold a copy of it; and what never goes, as a procedure that captures nothing, they hold itself. */
Value pu_weak_to(Value target) {
    if (pu_is(target, PU_FLOAT)) return pu_of_float(pu_float(target));
    if (pu_is_number(target)) return pu_fresh(target);
    if (!pu_is_object(target)) return pu_dup(target);
    PuObject *object = pu_object(target);
    if ((object->head & PU_COUNT) >= PU_IMMORTAL / 2) return pu_dup(target);
    if (object->head & PU_WATCHED) {
        size_t at = map_slot(&watched, object);
        return pu_dup(pu_of_object(watched.words[at]));
    }
    PuWeak *cell = pu_allocate(PU_WEAK, sizeof(PuWeak));
    cell->target = object;
    object->head |= PU_WATCHED;
    map_set(&watched, object, cell);
    cell->head++; /* the map's own */
    return pu_of_object(cell);
}

Value pu_weak_target(Value held) {
    if (!pu_is(held, PU_WEAK)) return pu_dup(held);
    PuObject *target = PU_AS(PuWeak, held)->target;
    return target ? pu_dup(pu_of_object(target)) : PU_NIL;
}

/* Release. The dead wait in a list that is kept in their own heads. */
static PuObject *dead;

/* A float, the commonest object that holds no other, need not wait. */
static inline bool is_plain_float(const PuObject *object) {
    return (object->head & ~PU_COUNT) == (uint64_t)PU_FLOAT << 56;
}

static inline void lose(Value v) {
    if (pu_is_object(v) && (--pu_object(v)->head & PU_COUNT) == 0) {
        PuObject *object = pu_object(v);
        if (is_plain_float(object)) {
            give_back(object, sizeof(PuFloat));
            return;
        }
        object->head = (object->head & ~PU_COUNT) | (uint64_t)(uintptr_t)dead;
        dead = object;
    }
}

static void lose_all(const Value *items, int64_t count) {
    for (int64_t i = 0; i < count; i++) lose(items[i]);
}

#define PLAIN_PAIR ((uint64_t)PU_PAIR << 56)
#define LAST_PAIR (PLAIN_PAIR | 1) /* a pair that dies when it is let go */
static inline bool is_plain_pair(const PuObject *object) { return (object->head & ~PU_COUNT) == PLAIN_PAIR; }
static inline bool dies(Value v) { return (pu_object(v)->head & PU_COUNT) == 1; }

/* Whether a part that a pair lets go is a pair that dies with it. What else dies waits in `dead`. */
static inline bool goes_along(Value part) {
    if (!pu_is_object(part)) return false;
    if (pu_object(part)->head == LAST_PAIR) return true;
    lose(part);
    return false;
}

/* Lets go the parts of a pair that died, and of the pairs that die with it: along their rests, while elements that are
   pairs wait, each with the next one in its head. The list of free pairs is kept apart meanwhile: it is what most of the
   time goes to. */
static void lose_parts(Value first, Value rest) {
    PuObject **list = &pu_free_lists[sizeof(PuPair) / 8], *free_pairs = *list, *waiting = NULL;
    for (;;) {
        if (goes_along(first)) {
            pu_object(first)->head = (uint64_t)(uintptr_t)waiting;
            waiting = pu_object(first);
        }
        PuObject *pair = pu_object(rest);
        if (!goes_along(rest)) {
            pair = waiting;
            if (!pair) break;
            waiting = (PuObject *)(uintptr_t)pair->head;
        }
        first = ((PuPair *)pair)->car;
        rest = ((PuPair *)pair)->cdr;
#ifdef PU_CHECKED_MEMORY
        give_back(pair, sizeof(PuPair));
#else
        pair->head = (uint64_t)(uintptr_t)free_pairs;
        free_pairs = pair;
#endif
    }
    *list = free_pairs;
}

static void finish(PuObject *object) {
    uint64_t head = object->head;
    if (PU_UNLIKELY(head & (PU_SUSPECT | PU_WATCHED))) {
        if (head & PU_SUSPECT) map_take(&suspects, object);
        if (head & PU_WATCHED) {
            PuWeak *cell = map_take(&watched, object);
            cell->target = NULL;
            lose(pu_of_object(cell));
        }
    }
    switch ((PuKind)(head >> 56)) {
    case PU_PAIR: {
        Value first = ((PuPair *)object)->car, rest = ((PuPair *)object)->cdr;
        give_back(object, sizeof(PuPair));
        lose_parts(first, rest);
        return;
    }
    case PU_FLOAT: case PU_INT: case PU_WEAK: case PU_POINTER:
        give_back(object, 16);
        return;
    case PU_BIG:
        give_back(object, sizeof(PuBig) + (size_t)((PuBig *)object)->count * sizeof(uint32_t));
        return;
    case PU_RATIO:
        lose(((PuRatio *)object)->over);
        lose(((PuRatio *)object)->under);
        give_back(object, sizeof(PuRatio));
        return;
    case PU_STRING:
        give_back(object, sizeof(PuString) + (size_t)((PuString *)object)->bytes + 1);
        return;
    case PU_BYTES:
        give_back(object, sizeof(PuBytes) + (size_t)((PuBytes *)object)->count);
        return;
    case PU_SYMBOL: case PU_KEYWORD:
        give_back(object, sizeof(PuSymbol) + (size_t)((PuSymbol *)object)->bytes + 1);
        return;
    case PU_VECTOR: case PU_VALUES: {
        PuVector *vector = (PuVector *)object;
        lose_all(vector->items, vector->count);
        give_back(object, sizeof(PuVector) + (size_t)vector->count * sizeof(Value));
        return;
    }
    case PU_BOX:
        lose(((PuBox *)object)->content);
        give_back(object, sizeof(PuBox));
        return;
    case PU_RECORD: {
        PuRecord *record = (PuRecord *)object;
        int count = record->type->count;
        lose_all(record->fields, count);
        give_back(object, sizeof(PuRecord) + (size_t)count * sizeof(Value));
        return;
    }
    case PU_CLOSURE: {
        PuClosure *closure = (PuClosure *)object;
        int count = closure->function->captured;
        lose_all(closure->captured, count);
        give_back(object, sizeof(PuClosure) + (size_t)count * sizeof(Value));
        return;
    }
    case PU_TABLE: {
        PuTable *table = (PuTable *)object;
        for (int64_t i = 0; i < table->used; i++) {
            if (!table->entries[i].key) continue;
            lose(table->entries[i].key);
            lose(table->entries[i].value);
        }
        free(table->entries);
        free(table->index);
        give_back(object, sizeof(PuTable));
        return;
    }
    case PU_ERROR: {
        PuError *error = (PuError *)object;
        lose(error->message);
        lose(error->irritants);
        if (error->payload) lose(error->payload);
        if (error->help) lose(error->help);
        free(error->trace);
        give_back(object, sizeof(PuError));
        return;
    }
    case PU_TENSOR: case PU_MODULE:
        pu_tensor_hooks->release(object);
        give_back(object, sizeof(PuTensor));
        return;
    }
}

void pu_require_unique(const uint64_t *head) {
    if ((*head & PU_COUNT) > 1) {
        fputs("purple: a value that was proved unique is shared\n", stderr);
        abort();
    }
}

static __attribute__((noinline)) void release_dead(void) {
    while (dead) {
        PuObject *object = dead;
        dead = (PuObject *)(uintptr_t)(object->head & PU_COUNT);
        object->head &= ~PU_COUNT;
        finish(object);
    }
}

static __attribute__((noinline)) void release_tree(Value first, Value rest) {
    lose_parts(first, rest);
    release_dead();
}

static __attribute__((noinline)) void release_other(PuObject *object) {
    if (is_plain_float(object)) {
        give_back(object, sizeof(PuFloat));
        return;
    }
    bool first = !dead; /* else it waits for what is being released */
    object->head = (object->head & ~PU_COUNT) | (uint64_t)(uintptr_t)dead;
    dead = object;
    if (first) release_dead();
}

void pu_drop_after_failure(Value v) { pu_drop(v); }

/* Most of what dies is a list that holds nothing which dies with it. */
void pu_release(PuObject *object) {
#ifdef PURPLE_CHECK_UNIQUE
    pu_require_unique(&object->head);
#endif
    if (PU_UNLIKELY(!is_plain_pair(object) || dead)) {
        release_other(object);
        return;
    }
    for (;;) {
        Value first = ((PuPair *)object)->car, rest = ((PuPair *)object)->cdr;
        give_back(object, sizeof(PuPair));
        if (pu_is_object(first)) {
            if (dies(first)) {
                release_tree(first, rest);
                return;
            }
            pu_object(first)->head--;
        }
        if (!pu_is_object(rest)) return;
        object = pu_object(rest);
        if (object->head == LAST_PAIR) continue;
        if (dies(rest)) {
            release_other(object);
            return;
        }
        object->head--;
        return;
    }
}

/* What a container that may be part of a cycle holds is let go: the cycle falls apart. */
static void empty(PuObject *object) {
    Value owner = pu_of_object(object), *items = NULL;
    int64_t count = 0;
    switch (pu_kind_of_object(owner)) {
    case PU_BOX: items = &((PuBox *)object)->content; count = 1; break;
    case PU_PAIR: items = &((PuPair *)object)->car; count = 2; break;
    case PU_VECTOR: items = ((PuVector *)object)->items; count = ((PuVector *)object)->count; break;
    case PU_RECORD: items = ((PuRecord *)object)->fields; count = ((PuRecord *)object)->type->count; break;
    case PU_TABLE: pu_table_clear((PuTable *)object); break;
    default: break;
    }
    for (int64_t i = 0; i < count; i++) {
        Value held = items[i];
        items[i] = PU_NIL;
        pu_drop(held);
    }
}

/* What people call an object that can be part of a cycle. */
static const char *called(PuObject *object) {
    switch ((PuKind)(object->head >> 56)) {
    case PU_BOX: return "a box, or a variable that a procedure shares,";
    case PU_PAIR: return "a list";
    case PU_VECTOR: return "a vector";
    case PU_RECORD: return ((PuRecord *)object)->type->name;
    default: return "a hash table";
    }
}

/* After the program let go of everything: what is left is held by cycles. `first` names one object on a cycle. */
static int64_t break_cycles(const char **first) {
    int64_t found = 0;
    for (size_t i = 0; i < suspects.room; i++) {
        PuObject *object = suspects.keys[i];
        if (!object || object == GONE) continue;
        if (!found++) *first = called(object);
        object->head++;
        empty(object);
        map_take(&suspects, object);
        object->head &= ~PU_SUSPECT;
        pu_drop(pu_of_object(object));
    }
    return found;
}

/* How many objects there are. Allocating small ones does not count them: those of the blocks less the free ones. */
static int64_t live_objects(void) {
    int64_t count = pu.live_objects;
    for (size_t i = 0; i < sizeof pu_free_lists / sizeof *pu_free_lists; i++)
        for (const PuObject *free_ = pu_free_lists[i]; free_; free_ = (const PuObject *)(uintptr_t)free_->head) count--;
    return count;
}

int64_t pu_end_memory(void) {
    const char *first = NULL;
    int64_t before = suspects.used ? live_objects() : 0, cycles = break_cycles(&first), left = live_objects();
    long long freed = (long long)(before - left);
    if (cycles)
        fprintf(stderr, "purple: %lld object%s kept alive by reference cycles, and freed only now, at exit: %s and what it holds%s\n"
                        "  help: `purple memory` shows where a cycle is closed; declare one field of it :weak\n",
                freed, freed == 1 ? " was" : "s were", first, cycles > 1 ? ", and others" : "");
    map_free(&suspects);
    map_free(&watched);
    while (blocks) {
        PuBlock *next = blocks->next;
        free(blocks);
        blocks = next;
    }
    memset(pu_free_lists, 0, sizeof pu_free_lists);
    return left;
}
