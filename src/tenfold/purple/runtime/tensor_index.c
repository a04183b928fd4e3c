/* Indexing: integers, slices `(start end [step])`, `:all` and tensors, one after the other. */
#include "purple_tensors.h"

typedef struct { tn_tensor *view; tn_tensor *indices[PU_MOST_DIMENSIONS]; int64_t indexed; bool all_ints; } Indexed;

static bool is_all(Value v) { return pu_is_keyword(v) && !strcmp(PU_AS(PuSymbol, v)->text, "all"); }

static bool is_slice(Value v, Value parts[3]) {
    int count = 0;
    if (!pu_is(v, PU_PAIR)) return false;
    for (; pu_is(v, PU_PAIR) && count < 4; v = PU_AS(PuPair, v)->cdr) {
        Value part = PU_AS(PuPair, v)->car;
        if (part != PU_NIL && !pu_is_int(part)) return false;
        if (count < 3) parts[count] = part;
        count++;
    }
    if (count == 2) parts[2] = pu_of_fixnum(1);
    return v == PU_NIL && (count == 2 || count == 3);
}

static bool step(Indexed *found, tn_tensor *next) {
    tn_free(found->view);
    found->view = next;
    return next != NULL;
}

static bool apply_index(const char *name, Indexed *found, Value index, int64_t *dim) {
    Value parts[3];
    if (pu_is_int(index)) {
        if (step(found, tn_select(found->view, *dim, pu_int(index)))) return true;
    } else if (is_all(index)) {
        ++*dim;
        return true;
    } else if (is_slice(index, parts)) {
        int64_t start = parts[0] == PU_NIL ? 0 : pu_int(parts[0]), end = parts[1] == PU_NIL ? 0 : pu_int(parts[1]);
        int64_t by = parts[2] == PU_NIL ? 1 : pu_int(parts[2]);
        tn_tensor *next = tn_slice(found->view, (*dim)++, parts[0] == PU_NIL ? NULL : &start, parts[1] == PU_NIL ? NULL : &end, by);
        if (step(found, next)) return true;
    } else if (pu_is(index, PU_TENSOR)) {
        bool mask = tn_tensor_dtype(pu_handle(index)) == TN_BOOL;
        int64_t takes = mask ? tn_tensor_dim(pu_handle(index)) : 1;
        if (*dim + takes > PU_MOST_DIMENSIONS) return pu_fail("tensor", "%s: too many indices", name), false;
        found->indices[*dim] = pu_handle(index);
        found->indexed = *dim + 1;
        *dim += takes;
        return true;
    } else {
        return pu_wrong_type(name, "index", index), false;
    }
    pu_tensor_error(name);
    return false;
}

/* A mask takes several dimensions but stands once in the list of indices. */
static int64_t dense_indices(Indexed *found, const tn_tensor **out) {
    int64_t count = 0;
    for (int64_t dim = 0; dim < found->indexed;) {
        const tn_tensor *each = found->indices[dim];
        out[count++] = each;
        dim += each && tn_tensor_dtype(each) == TN_BOOL ? tn_tensor_dim(each) : 1;
    }
    return count;
}

static bool indexed(const char *name, Value v, const Value *indices, int n, Indexed *found) {
    memset(found, 0, sizeof *found);
    found->view = tn_tensor_share(pu_handle(v));
    found->all_ints = n == tn_tensor_dim(pu_handle(v));
    int64_t dim = 0;
    for (int i = 0; i < n; i++) {
        found->all_ints = found->all_ints && pu_is_int(indices[i]);
        if (!apply_index(name, found, indices[i], &dim)) {
            tn_free(found->view);
            return false;
        }
    }
    return true;
}

Value pu_tensor_ref(const Value *v, int n) {
    Indexed found;
    if (!pu_tensor_wanted("tensor-ref", v[0]) || !indexed("tensor-ref", v[0], v + 1, n - 1, &found)) return PU_FAILURE;
    if (found.all_ints) {
        tn_scalar scalar;
        bool done = tn_tensor_item(found.view, &scalar) == TN_OK;
        tn_free(found.view);
        return done ? pu_of_scalar(scalar) : pu_tensor_error("tensor-ref");
    }
    if (found.indexed) {
        const tn_tensor *indices[PU_MOST_DIMENSIONS];
        int64_t count = dense_indices(&found, indices);
        tn_tensor *picked = tn_index(found.view, indices, count);
        tn_free(found.view);
        return pu_of_tensor(picked, "index");
    }
    return pu_of_tensor(found.view, n > 1 && pu_is_int(v[n - 1]) ? "select" : "slice");
}

Value pu_tensor_set(const Value *v, int n) {
    Indexed found;
    if (!pu_tensor_wanted("tensor-set!", v[0])) return PU_FAILURE;
    if (!pu_is(v[1], PU_TENSOR) && !pu_is_number(v[1]) && !pu_is_boolean(v[1])) return pu_wrong_type("tensor-set!", "number*", v[1]);
    if (pu_is(v[1], PU_BIG)) return pu_too_wide("tensor-set!", v[1]);
    if (!indexed("tensor-set!", v[0], v + 2, n - 2, &found)) return PU_FAILURE;
    tn_status status;
    if (found.indexed) {
        const tn_tensor *indices[PU_MOST_DIMENSIONS];
        int64_t count = dense_indices(&found, indices);
        tn_tensor *values = NULL;
        if (pu_is(v[1], PU_TENSOR)) values = tn_tensor_share(pu_handle(v[1]));
        else {
            double number = pu_is_boolean(v[1]) ? v[1] == PU_TRUE : pu_double(v[1]);
            tn_tensor *made = tn_tensor_from_data(&number, TN_FLOAT64, NULL, 0, NULL, 0);
            if (made) values = pu_cast(made, tn_tensor_dtype(found.view));
            tn_free(made);
        }
        status = values ? tn_index_put_(found.view, indices, count, values, false) : TN_ERROR_ARGUMENT;
        tn_free(values);
    } else {
        status = pu_is(v[1], PU_TENSOR) ? tn_copy_(found.view, pu_handle(v[1]), false) : tn_fill_Scalar_(found.view, pu_to_scalar(v[1]));
    }
    tn_free(found.view);
    return status == TN_OK ? PU_UNSPECIFIED : pu_tensor_error("tensor-set!");
}
