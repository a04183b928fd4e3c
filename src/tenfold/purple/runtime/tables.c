/* Hash tables in order of insertion: entries in an array, and an index of their positions by hash. */
#include "purple_all.h"

#include <stdlib.h>

Value pu_make_hash_table(void) {
    PuTable *table = pu_allocate(PU_TABLE, sizeof(PuTable));
    table->count = table->used = table->room = 0;
    table->entries = NULL;
    table->index = NULL;
    return pu_of_object(table);
}

bool pu_is_hash_table(Value v) { return pu_is(v, PU_TABLE); }

/* The index has twice the room of the entries; 0 is free, otherwise a position plus one (kept when deleted). */
static int64_t find(const PuTable *table, Value key, uint64_t hash) {
    if (!table->room) return -1;
    uint64_t mask = (uint64_t)table->room * 2 - 1;
    for (uint64_t at = hash & mask; table->index[at]; at = (at + 1) & mask) {
        const PuEntry *entry = &table->entries[table->index[at] - 1];
        if (entry->key && entry->hash == hash && pu_is_equal(entry->key, key)) return table->index[at] - 1;
    }
    return -1;
}

static void rebuild(PuTable *table, int64_t room) {
    PuEntry *entries = pu_get_memory((size_t)room * sizeof *entries);
    int64_t *index = pu_get_memory((size_t)room * 2 * sizeof *index), used = 0;
    memset(index, 0, (size_t)room * 2 * sizeof *index);
    uint64_t mask = (uint64_t)room * 2 - 1;
    for (int64_t i = 0; i < table->used; i++) {
        if (!table->entries[i].key) continue;
        uint64_t at = table->entries[i].hash & mask;
        while (index[at]) at = (at + 1) & mask;
        entries[used++] = table->entries[i];
        index[at] = used;
    }
    free(table->entries);
    free(table->index);
    table->entries = entries;
    table->index = index;
    table->room = room;
    table->used = used;
}

void pu_table_clear(PuTable *table) {
    PuEntry *entries = table->entries;
    int64_t used = table->used;
    free(table->index);
    table->entries = NULL;
    table->index = NULL;
    table->count = table->used = table->room = 0;
    for (int64_t i = 0; i < used; i++) {
        if (!entries[i].key) continue;
        pu_drop(entries[i].key);
        pu_drop(entries[i].value);
    }
    free(entries);
}

static bool can_be_key(Value key) {
    if (!pu_is(key, PU_TABLE) && !pu_is(key, PU_BOX) && !pu_is(key, PU_TENSOR)) return true;
    PuBuffer text = {0};
    pu_put_brief(&text, key);
    pu_put_text(&text, " cannot be a key of a hash table");
    pu_fail_text("type", &text);
    return false;
}

static PuTable *table_of(Value v) { return PU_AS(PuTable, v); }

Value pu_hash_table_ref(Value table, Value key, Value otherwise) {
    if (!pu_is_hash_table(table)) return pu_wrong_type("hash-table-ref", "table", table);
    if (!can_be_key(key)) return PU_FAILURE;
    int64_t at = find(table_of(table), key, pu_hash(key));
    if (at >= 0) return pu_dup(table_of(table)->entries[at].value);
    if (otherwise != PU_ABSENT) return pu_dup(otherwise);
    PuBuffer text = {0};
    pu_put_text(&text, "hash-table-ref: there is no key ");
    pu_put_brief(&text, key);
    return pu_fail_text("key", &text);
}

Value pu_hash_table_set(Value table, Value key, Value v) { /* owns the key and the value */
    bool is_table = pu_is_hash_table(table);
    if (!is_table || !can_be_key(key)) {
        if (!is_table) pu_wrong_type("hash-table-set!", "table", table);
        pu_drop(key);
        pu_drop(v);
        return PU_FAILURE;
    }
    PuTable *t = table_of(table);
    uint64_t hash = pu_hash(key);
    int64_t at = find(t, key, hash);
    pu_mutated(table, v);
    pu_mutated(table, key);
    if (at >= 0) {
        Value old = t->entries[at].value;
        t->entries[at].value = v;
        pu_drop(key);
        pu_drop(old);
        return PU_UNSPECIFIED;
    }
    if (t->used == t->room) rebuild(t, t->count * 2 > t->room ? t->room * 2 : t->room ? t->room : 8);
    uint64_t mask = (uint64_t)t->room * 2 - 1, slot = hash & mask;
    while (t->index[slot]) slot = (slot + 1) & mask;
    t->entries[t->used++] = (PuEntry){key, v, hash};
    t->index[slot] = t->used;
    t->count++;
    return PU_UNSPECIFIED;
}

Value pu_hash_table_delete(Value table, Value key) {
    if (!pu_is_hash_table(table)) return pu_wrong_type("hash-table-delete!", "table", table);
    if (!can_be_key(key)) return PU_FAILURE;
    PuTable *t = table_of(table);
    int64_t at = find(t, key, pu_hash(key));
    if (at < 0) return PU_UNSPECIFIED;
    Value old_key = t->entries[at].key, old = t->entries[at].value;
    t->entries[at].key = 0;
    t->count--;
    pu_drop(old_key);
    pu_drop(old);
    return PU_UNSPECIFIED;
}

Value pu_is_hash_table_contains(Value table, Value key) {
    if (!pu_is_hash_table(table)) return pu_wrong_type("hash-table-contains?", "table", table);
    if (!can_be_key(key)) return PU_FAILURE;
    return pu_of_bool(find(table_of(table), key, pu_hash(key)) >= 0);
}

Value pu_hash_table_count(Value table) {
    if (!pu_is_hash_table(table)) return pu_wrong_type("hash-table-count", "table", table);
    return pu_of_fixnum(table_of(table)->count);
}

Value pu_hash_table_to_list(Value table) {
    if (!pu_is_hash_table(table)) return pu_wrong_type("hash-table->list", "table", table);
    PuTable *t = table_of(table);
    Value list = PU_NIL;
    for (int64_t i = t->used; i-- > 0;) {
        if (!t->entries[i].key) continue;
        list = pu_cons(pu_cons(pu_dup(t->entries[i].key), pu_dup(t->entries[i].value)), list);
    }
    return list;
}
