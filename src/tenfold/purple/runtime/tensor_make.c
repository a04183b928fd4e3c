/* Tensors made of numbers in lists, and of random numbers. */
#include "purple_tensors.h"

#include <stdlib.h>

/* Of lists */

typedef struct { int rank; int64_t shape[PU_MOST_DIMENSIONS]; double *floats; int64_t *ints, count, room; bool some_float, some_int; } Nested;

static bool ragged(void) {
    pu_fail("tensor", "tensor: lists side by side must have the same length");
    pu.pending->of_engine = true;
    return false;
}

static bool gather(Nested *nested, Value data, int depth);

static bool gather_item(Nested *nested, Value item, int64_t *count, int depth) {
    ++*count;
    return gather(nested, item, depth + 1);
}

static bool gather(Nested *nested, Value data, int depth) {
    bool sequence = data == PU_NIL || pu_is(data, PU_PAIR) || pu_is(data, PU_VECTOR);
    if (sequence) {
        if (depth >= PU_MOST_DIMENSIONS) return pu_fail("tensor", "tensor: too many dimensions"), false;
        if (pu_is(data, PU_PAIR) && !pu_is_list(data)) return pu_wrong_type("tensor", "number", data), false;
        int64_t count = 0;
        bool known = depth < nested->rank;
        if (!known) {
            if (nested->count) return ragged();
            nested->rank = depth + 1;
            nested->shape[depth] = -1;
        }
        if (pu_is(data, PU_VECTOR)) {
            PuVector *vector = PU_AS(PuVector, data);
            for (int64_t i = 0; i < vector->count; i++)
                if (!gather_item(nested, vector->items[i], &count, depth)) return false;
        } else {
            for (Value v = data; v != PU_NIL; v = PU_AS(PuPair, v)->cdr)
                if (!gather_item(nested, PU_AS(PuPair, v)->car, &count, depth)) return false;
        }
        if (nested->shape[depth] >= 0 && nested->shape[depth] != count) return ragged();
        nested->shape[depth] = count;
        return true;
    }
    if (depth != nested->rank) return ragged();
    double number;
    int64_t whole = 0;
    if (pu_is_boolean(data)) {
        whole = data == PU_TRUE;
        number = (double)whole;
    } else if (pu_is_int(data)) {
        nested->some_int = true;
        whole = pu_int(data);
        number = (double)whole;
    } else if (pu_is(data, PU_FLOAT) || pu_is(data, PU_RATIO)) {
        nested->some_float = true;
        number = pu_double(data);
    } else if (pu_is(data, PU_BIG)) {
        return pu_too_wide("tensor", data), false;
    } else if (pu_is(data, PU_TENSOR)) {
        Value item = pu_tensor_item(data);
        bool done = item && gather(nested, item, depth);
        if (item) pu_drop(item);
        return done;
    } else {
        return pu_wrong_type("tensor", "number", data), false;
    }
    if (nested->count == nested->room) {
        nested->room = nested->room ? 2 * nested->room : 64;
        double *floats = pu_get_memory((size_t)nested->room * sizeof *floats);
        int64_t *ints = pu_get_memory((size_t)nested->room * sizeof *ints);
        if (nested->count) {
            memcpy(floats, nested->floats, (size_t)nested->count * sizeof *floats);
            memcpy(ints, nested->ints, (size_t)nested->count * sizeof *ints);
        }
        free(nested->floats);
        free(nested->ints);
        nested->floats = floats;
        nested->ints = ints;
    }
    nested->floats[nested->count] = number;
    nested->ints[nested->count++] = whole;
    return true;
}

static tn_tensor *from_nested(const Nested *nested) {
    bool floats = nested->some_float || !nested->count;
    if (floats) {
        float *data = pu_get_memory((size_t)(nested->count + 1) * sizeof *data);
        for (int64_t i = 0; i < nested->count; i++) data[i] = (float)nested->floats[i];
        tn_tensor *made = tn_tensor_from_data(data, TN_FLOAT32, nested->shape, nested->rank, NULL, 0);
        free(data);
        return made;
    }
    if (nested->some_int) return tn_tensor_from_data(nested->ints, TN_INT64, nested->shape, nested->rank, NULL, 0);
    bool *data = pu_get_memory((size_t)(nested->count + 1) * sizeof *data);
    for (int64_t i = 0; i < nested->count; i++) data[i] = nested->ints[i] != 0;
    tn_tensor *made = tn_tensor_from_data(data, TN_BOOL, nested->shape, nested->rank, NULL, 0);
    free(data);
    return made;
}

static tn_tensor *exact(const Nested *nested, tn_dtype dtype) { /* no detour by float32 for wider dtypes */
    bool doubles = nested->count && (nested->some_float || dtype == TN_FLOAT64);
    tn_tensor *made = doubles ? tn_tensor_from_data(nested->floats, TN_FLOAT64, nested->shape, nested->rank, NULL, 0) : from_nested(nested);
    if (made && doubles && dtype == TN_FLOAT64) return made;
    tn_tensor *cast = NULL;
    if (made) cast = pu_cast(made, dtype);
    tn_free(made);
    return cast;
}

Value pu_tensor_with(Value data, Value dtype, Value device, Value requires_grad) {
    tn_dtype wanted = 0;
    tn_device where = pu_default_device;
    bool has_dtype = dtype != PU_ABSENT && dtype != PU_NIL;
    if (has_dtype) {
        if (!pu_is_keyword(dtype)) return pu_wrong_type("tensor", "keyword", dtype);
        if (!pu_read_dtype(PU_AS(PuSymbol, dtype)->text, &wanted))
            return pu_fail("tensor", "tensor: there is no dtype :%s", PU_AS(PuSymbol, dtype)->text);
    }
    if (device != PU_ABSENT && device != PU_NIL) {
        if (!pu_take_device("tensor", device, &where)) return PU_FAILURE;
    }
    tn_tensor *made;
    if (pu_is(data, PU_TENSOR)) {
        made = has_dtype ? pu_cast(pu_handle(data), wanted) : tn_clone(pu_handle(data));
        if (made) {
            tn_tensor *apart = tn_detach(made);
            tn_free(made);
            made = apart;
        }
    } else {
        Nested nested = {0};
        bool gathered = gather(&nested, data, 0);
        made = !gathered ? NULL : has_dtype ? exact(&nested, wanted) : from_nested(&nested);
        free(nested.floats);
        free(nested.ints);
        if (!gathered) return PU_FAILURE;
    }
    if (made && !pu_is_host(where)) {
        tn_tensor *moved = tn_to_device(made, where, false);
        tn_free(made);
        made = moved;
    }
    if (made && requires_grad != PU_ABSENT && pu_truthy(requires_grad) && tn_set_requires_grad(made, true) != TN_OK) {
        tn_free(made);
        made = NULL;
    }
    return pu_of_tensor(made, "tensor");
}
Value pu_tensor(Value data) { return pu_tensor_with(data, PU_ABSENT, PU_ABSENT, PU_ABSENT); }

/* Of random numbers */

static bool sizes_of(const char *name, Value sizes, int64_t *shape, int64_t *rank, int64_t *count) {
    *rank = 0;
    *count = 1;
    if (!pu_is_list(sizes)) return pu_wrong_type(name, "list", sizes), false;
    for (; sizes != PU_NIL; sizes = PU_AS(PuPair, sizes)->cdr) {
        Value size = PU_AS(PuPair, sizes)->car;
        int64_t length;
        if (!pu_take_int(name, size, &length)) return false;
        if (length < 0) return pu_fail("tensor", "%s: sizes cannot be negative", name), false;
        if (*rank == PU_MOST_DIMENSIONS || __builtin_mul_overflow(*count, length, count) || *count > (int64_t)1 << 40)
            return pu_fail("tensor", "%s: that is too large", name), false;
        shape[(*rank)++] = length;
    }
    return true;
}

static Value drawn(float *data, const int64_t *shape, int64_t rank, const char *name) {
    tn_tensor *made = tn_tensor_from_data(data, TN_FLOAT32, shape, rank, NULL, 0);
    free(data);
    return pu_of_tensor(pu_placed(made), name);
}

Value pu_uniform(Value sizes) {
    int64_t shape[PU_MOST_DIMENSIONS], rank, count;
    if (!sizes_of("tensor-rand", sizes, shape, &rank, &count)) return PU_FAILURE;
    float *data = pu_get_memory((size_t)(count + 1) * sizeof *data);
    for (int64_t i = 0; i < count; i++) data[i] = (float)(pu_next_word() >> 40) * 0x1p-24f;
    return drawn(data, shape, rank, "rand");
}
Value pu_normal(Value sizes) {
    int64_t shape[PU_MOST_DIMENSIONS], rank, count;
    if (!sizes_of("tensor-randn", sizes, shape, &rank, &count)) return PU_FAILURE;
    float *data = pu_get_memory((size_t)(count + 2) * sizeof *data);
    for (int64_t i = 0; i < count; i += 2) {
        double one, two;
        pu_next_normals(&one, &two);
        data[i] = (float)one;
        data[i + 1] = (float)two;
    }
    return drawn(data, shape, rank, "randn");
}

typedef struct { uint64_t word; int64_t place; } Drawn;
static int by_word(const void *a, const void *b) {
    const Drawn *x = a, *y = b;
    if (x->word != y->word) return x->word < y->word ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}
Value pu_permutation(Value count) {
    int64_t n;
    if (!pu_take_int("tensor-randperm", count, &n)) return PU_FAILURE;
    if (n < 0 || n > (int64_t)1 << 40) return pu_fail("tensor", "tensor-randperm: %lld is no count", (long long)n);
    Drawn *words = pu_get_memory((size_t)(n + 1) * sizeof *words);
    int64_t *order = pu_get_memory((size_t)(n + 1) * sizeof *order);
    for (int64_t i = 0; i < n; i++) words[i] = (Drawn){pu_next_word(), i};
    qsort(words, (size_t)n, sizeof *words, by_word);
    for (int64_t i = 0; i < n; i++) order[i] = words[i].place;
    tn_tensor *made = tn_tensor_from_data(order, TN_INT64, &n, 1, NULL, 0);
    free(words);
    free(order);
    return pu_of_tensor(pu_placed(made), "randperm");
}
