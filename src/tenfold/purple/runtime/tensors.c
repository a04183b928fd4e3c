/* Making tensors, looking inside, arithmetic with numbers, gradients and files. */
#include "purple_tensors.h"

#include <stdio.h>
#include <stdlib.h>

tn_device pu_default_device = {TN_CPU, -1};
enum { MOST_DIMENSIONS = 64, DTYPES = 46 };

/* The last line of what libtenfold says would be of no use to people who never saw libtorch: its first lines are. */
Value pu_tensor_error(const char *name) {
    int code = tn_error_code();
    const char *kind = code == TN_ERROR_MEMORY ? "memory" : "tensor";
    Value failed = pu_fail(kind, "%s%s%s", name ? name : "", name ? ": " : "", tn_error_message());
    tn_error_clear();
    return failed;
}

Value pu_of_tensor(tn_tensor *handle, const char *maker) {
    if (PU_UNLIKELY(!handle)) return pu_tensor_error(maker);
    PuTensor *tensor = pu_allocate(PU_TENSOR, sizeof(PuTensor));
    tensor->handle = handle;
    tensor->maker = maker;
    pu_note_made(handle);
    return pu_of_object(tensor);
}

Value pu_in_place(Value self, tn_status status, const char *maker) {
    pu_note_done();
    return PU_LIKELY(status == TN_OK) ? pu_dup(self) : pu_tensor_error(maker);
}

bool pu_tensor_wanted(const char *name, Value v) {
    if (PU_LIKELY(pu_is(v, PU_TENSOR))) return true;
    pu_wrong_type(name, "tensor", v);
    return false;
}

bool pu_read_dtype(const char *name, tn_dtype *dtype) {
    static const struct { const char *name; tn_dtype dtype; } ALIASES[] = {
        {"float", TN_FLOAT32}, {"double", TN_FLOAT64}, {"half", TN_FLOAT16}, {"int", TN_INT32}, {"long", TN_INT64},
        {"short", TN_INT16}, {"cfloat", TN_COMPLEX64}, {"cdouble", TN_COMPLEX128}};
    for (size_t i = 0; i < sizeof ALIASES / sizeof *ALIASES; i++)
        if (!strcmp(ALIASES[i].name, name)) return *dtype = ALIASES[i].dtype, true;
    for (tn_dtype each = 0; each < DTYPES; each++) {
        const char *known = tn_dtype_name(each);
        if (known && !strcmp(known, name)) return *dtype = each, true;
    }
    tn_error_clear();
    return false;
}

bool pu_read_device(const char *text, tn_device *device) {
    static const struct { const char *name; int32_t type; } TYPES[] = {{"cpu", TN_CPU}, {"cuda", TN_CUDA}};
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        size_t length = strlen(TYPES[i].name);
        if (strncmp(text, TYPES[i].name, length)) continue;
        char *end = NULL;
        device->type = TYPES[i].type;
        device->index = -1;
        if (!text[length]) return true;
        if (text[length] != ':') continue;
        device->index = (int32_t)strtol(text + length + 1, &end, 10);
        if (text[length + 1] && !*end && device->index >= 0) return true;
    }
    pu_fail("tensor", "unknown device '%s'", text);
    return false;
}

static bool is_host(tn_device device) { return device.type == TN_CPU; }

tn_tensor *pu_placed(tn_tensor *tensor) {
    if (!tensor || is_host(pu_default_device)) return tensor;
    tn_tensor *moved = tn_to_device(tensor, pu_default_device, false);
    tn_free(tensor);
    return moved;
}

tn_tensor *pu_cast(const tn_tensor *tensor, tn_dtype dtype) {
    tn_stack *stack = tn_stack_new();
    tn_tensor *result = NULL;
    if (stack && tn_stack_push_tensor(stack, tensor) == TN_OK && tn_stack_push_int(stack, dtype) == TN_OK &&
        tn_call("aten::to.dtype", stack) == TN_OK)
        result = tn_stack_pop_tensor(stack);
    tn_stack_free(stack);
    return result;
}

/* Making */

typedef struct { int rank; int64_t shape[MOST_DIMENSIONS]; double *floats; int64_t *ints, count, room; bool some_float, some_int; } Nested;

static bool ragged(void) {
    pu_fail("tensor", "tensor: lists side by side must have the same length");
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
        if (depth >= MOST_DIMENSIONS) return pu_fail("tensor", "tensor: too many dimensions"), false;
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
    } else if (pu_is(data, PU_FLOAT)) {
        nested->some_float = true;
        number = pu_float(data);
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
    if (dtype == TN_FLOAT64 && nested->count)
        return tn_tensor_from_data(nested->floats, TN_FLOAT64, nested->shape, nested->rank, NULL, 0);
    tn_tensor *made = from_nested(nested), *cast = NULL;
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
        if (!pu_is_string(device)) return pu_wrong_type("tensor", "string", device);
        if (!pu_read_device(PU_AS(PuString, device)->text, &where)) return PU_FAILURE;
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
    if (made && !is_host(where)) {
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

/* Numbers in and out */

bool pu_is_complex(tn_dtype dtype) { return dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128 || dtype == TN_COMPLEX32; }

static Value no_complex_numbers(void) { return pu_fail("type", "Purple has no complex numbers outside tensors"); }

static Value of_scalar(tn_scalar scalar) {
    switch (scalar.tag) {
    case TN_SCALAR_INT: return pu_of_int(scalar.as.i);
    case TN_SCALAR_DOUBLE: return pu_of_float(scalar.as.d);
    case TN_SCALAR_BOOL: return pu_of_bool(scalar.as.b);
    default: return no_complex_numbers();
    }
}

static tn_scalar to_scalar(Value v) {
    if (pu_is_boolean(v)) return tn_bool(v == PU_TRUE);
    return pu_is_int(v) ? tn_int(pu_int(v)) : tn_double(pu_float(v));
}

Value pu_tensor_item(Value v) {
    tn_scalar scalar;
    if (!pu_tensor_wanted("tensor-item", v)) return PU_FAILURE;
    return tn_tensor_item(pu_handle(v), &scalar) == TN_OK ? of_scalar(scalar) : pu_tensor_error("tensor-item");
}

static Value nested_list(const double *floats, const int64_t *ints, bool truths, const int64_t *shape, int64_t rank, int64_t *at) {
    if (rank == 0) {
        int64_t i = (*at)++;
        return floats ? pu_of_float(floats[i]) : truths ? pu_of_bool(ints[i] != 0) : pu_of_int(ints[i]);
    }
    Value first = PU_NIL, last = 0;
    for (int64_t i = 0; i < shape[0]; i++) {
        Value next = pu_cons(nested_list(floats, ints, truths, shape + 1, rank - 1, at), PU_NIL);
        if (last) PU_AS(PuPair, last)->cdr = next;
        else first = next;
        last = next;
    }
    return first;
}

static bool is_floating(tn_dtype dtype) {
    switch (dtype) {
    case TN_UINT8: case TN_INT8: case TN_INT16: case TN_INT32: case TN_INT64: case TN_BOOL: case TN_UINT16: case TN_UINT32:
    case TN_UINT64: return false;
    default: return true;
    }
}

Value pu_tensor_to_list(Value v) {
    if (!pu_tensor_wanted("tensor->list", v)) return PU_FAILURE;
    tn_dtype dtype = tn_tensor_dtype(pu_handle(v));
    if (pu_is_complex(dtype)) return no_complex_numbers();
    int64_t shape[MOST_DIMENSIONS], rank = tn_tensor_shape(pu_handle(v), shape, MOST_DIMENSIONS), at = 0;
    bool floating = is_floating(dtype);
    tn_tensor *wide = pu_cast(pu_handle(v), floating ? TN_FLOAT64 : TN_INT64);
    if (!wide) return pu_tensor_error("tensor->list");
    int64_t bytes = tn_tensor_bytes(wide);
    void *data = pu_get_memory((size_t)bytes + 8);
    bool done = tn_tensor_to_data(wide, data, bytes) == TN_OK;
    tn_free(wide);
    Value list = done ? nested_list(floating ? data : NULL, data, dtype == TN_BOOL, shape, rank, &at) : PU_FAILURE;
    free(data);
    return done ? list : pu_tensor_error("tensor->list");
}

Value pu_tensor_shape(Value v) {
    if (!pu_tensor_wanted("tensor-shape", v)) return PU_FAILURE;
    int64_t shape[MOST_DIMENSIONS], rank = tn_tensor_shape(pu_handle(v), shape, MOST_DIMENSIONS);
    Value list = PU_NIL;
    while (rank-- > 0) list = pu_cons(pu_of_int(shape[rank]), list);
    return list;
}
Value pu_tensor_rank(Value v) {
    return pu_tensor_wanted("tensor-rank", v) ? pu_of_int(tn_tensor_dim(pu_handle(v))) : PU_FAILURE;
}
Value pu_tensor_count(Value v) {
    return pu_tensor_wanted("tensor-count", v) ? pu_of_int(tn_tensor_numel(pu_handle(v))) : PU_FAILURE;
}
Value pu_tensor_dtype(Value v) {
    if (!pu_tensor_wanted("tensor-dtype", v)) return PU_FAILURE;
    return pu_intern(PU_KEYWORD, tn_dtype_name(tn_tensor_dtype(pu_handle(v))));
}
static int device_text(tn_device device, char *text, size_t room) {
    const char *type = device.type == TN_CUDA ? "cuda" : device.type == TN_META ? "meta" : "cpu";
    if (device.type != TN_CUDA) return snprintf(text, room, "%s", type);
    return snprintf(text, room, "%s:%d", type, device.index < 0 ? 0 : device.index);
}
Value pu_tensor_device(Value v) {
    if (!pu_tensor_wanted("tensor-device", v)) return PU_FAILURE;
    tn_device device;
    char text[32];
    if (tn_tensor_device(pu_handle(v), &device) != TN_OK) return pu_tensor_error("tensor-device");
    return pu_string(text, device_text(device, text, sizeof text));
}
Value pu_tensor_to(Value v, Value target) {
    if (!pu_tensor_wanted("tensor-to", v)) return PU_FAILURE;
    if (pu_is_string(target)) {
        tn_device device;
        if (!pu_read_device(PU_AS(PuString, target)->text, &device)) return PU_FAILURE;
        return pu_of_tensor(tn_to_device(pu_handle(v), device, false), "to");
    }
    if (target == PU_NIL) return pu_dup(v);
    if (!pu_is_keyword(target)) return pu_wrong_type("tensor-to", "keyword", target);
    tn_dtype dtype;
    if (!pu_read_dtype(PU_AS(PuSymbol, target)->text, &dtype))
        return pu_fail("tensor", "tensor-to: there is no dtype :%s", PU_AS(PuSymbol, target)->text);
    return pu_of_tensor(pu_cast(pu_handle(v), dtype), "to");
}

/* Indexing: integers, slices `(start end [step])`, `:all` and tensors, one after the other. */

typedef struct { tn_tensor *view; tn_tensor *indices[MOST_DIMENSIONS]; int64_t indexed; bool all_ints; } Indexed;

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
        if (*dim + takes > MOST_DIMENSIONS) return pu_fail("tensor", "%s: too many indices", name), false;
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
        return done ? of_scalar(scalar) : pu_tensor_error("tensor-ref");
    }
    if (found.indexed) {
        const tn_tensor *indices[MOST_DIMENSIONS];
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
    if (!indexed("tensor-set!", v[0], v + 2, n - 2, &found)) return PU_FAILURE;
    tn_status status;
    if (found.indexed) {
        const tn_tensor *indices[MOST_DIMENSIONS];
        int64_t count = dense_indices(&found, indices);
        tn_tensor *values = NULL;
        if (pu_is(v[1], PU_TENSOR)) values = tn_tensor_share(pu_handle(v[1]));
        else {
            double number = pu_is_boolean(v[1]) ? v[1] == PU_TRUE : pu_is_int(v[1]) ? (double)pu_int(v[1]) : pu_float(v[1]);
            tn_tensor *made = tn_tensor_from_data(&number, TN_FLOAT64, NULL, 0, NULL, 0);
            if (made) values = pu_cast(made, tn_tensor_dtype(found.view));
            tn_free(made);
        }
        status = values ? tn_index_put_(found.view, indices, count, values, false) : TN_ERROR_ARGUMENT;
        tn_free(values);
    } else {
        status = pu_is(v[1], PU_TENSOR) ? tn_copy_(found.view, pu_handle(v[1]), false) : tn_fill_Scalar_(found.view, to_scalar(v[1]));
    }
    tn_free(found.view);
    return status == TN_OK ? PU_UNSPECIFIED : pu_tensor_error("tensor-set!");
}

/* Operators on tensors and numbers */

static Value with_number(const char *name, const tn_tensor *x, tn_scalar y, bool turned) {
    static const char *const TURNED[][2] = {{"<", ">"}, {">", "<"}, {"<=", ">="}, {">=", "<="}};
    if (turned)
        for (size_t i = 0; i < 4; i++)
            if (!strcmp(name, TURNED[i][0])) {
                name = TURNED[i][1];
                break;
            }
    switch (*name) {
    case '+': return pu_of_tensor(tn_add_Scalar(x, y, tn_int(1)), "add");
    case '-': return pu_of_tensor(turned ? tn_rsub_Scalar(x, y, tn_int(1)) : tn_sub_Scalar(x, y, tn_int(1)), "sub");
    case '*': return pu_of_tensor(tn_mul_Scalar(x, y), "mul");
    case '/': {
        if (!turned) return pu_of_tensor(tn_div_Scalar(x, y), "div");
        tn_tensor *inverse = tn_reciprocal(x), *result = inverse ? tn_mul_Scalar(inverse, y) : NULL;
        tn_free(inverse);
        return pu_of_tensor(result, "div");
    }
    case '=': return pu_of_tensor(tn_eq_Scalar(x, y), "eq");
    case '<': return pu_of_tensor(name[1] ? tn_le_Scalar(x, y) : tn_lt_Scalar(x, y), "lt");
    default: return pu_of_tensor(name[1] ? tn_ge_Scalar(x, y) : tn_gt_Scalar(x, y), "gt");
    }
}

static Value arithmetic(const char *name, Value a, Value b) {
    if (!pu_is(a, PU_TENSOR)) return with_number(name, pu_handle(b), to_scalar(a), true);
    if (!pu_is(b, PU_TENSOR)) return with_number(name, pu_handle(a), to_scalar(b), false);
    const tn_tensor *x = pu_handle(a), *y = pu_handle(b);
    switch (*name) {
    case '+': return pu_of_tensor(tn_add(x, y), "add");
    case '-': return pu_of_tensor(tn_sub(x, y), "sub");
    case '*': return pu_of_tensor(tn_mul(x, y), "mul");
    case '/': return pu_of_tensor(tn_div(x, y), "div");
    case '=': return pu_of_tensor(tn_eq(x, y), "eq");
    case '<': return pu_of_tensor(name[1] ? tn_le(x, y) : tn_lt(x, y), "lt");
    default: return pu_of_tensor(name[1] ? tn_ge(x, y) : tn_gt(x, y), "gt");
    }
}

static bool may_reuse(const tn_tensor *tensor) {
    tn_dtype dtype = tn_tensor_dtype(tensor);
    return (dtype == TN_FLOAT32 || dtype == TN_FLOAT64) && tn_grad_enabled() == 0;
}

Value pu_reuse_unary(Value dying, tn_status (*in_place)(tn_tensor *), tn_tensor *(*fresh)(const tn_tensor *), const char *maker) {
    if (may_reuse(pu_handle(dying))) {
        if (in_place(pu_handle(dying)) == TN_OK) {
            pu_note_done();
            return dying;
        }
        pu_drop(dying);
        return pu_tensor_error(maker);
    }
    Value result = pu_of_tensor(fresh(pu_handle(dying)), maker);
    pu_drop(dying);
    return result;
}

static bool same_shape(const tn_tensor *a, const tn_tensor *b) {
    int64_t one[MOST_DIMENSIONS], two[MOST_DIMENSIONS];
    int64_t rank = tn_tensor_shape(a, one, MOST_DIMENSIONS);
    if (rank != tn_tensor_shape(b, two, MOST_DIMENSIONS)) return false;
    return !memcmp(one, two, (size_t)rank * sizeof *one);
}

Value pu_reuse_binary(const char *name, Value dying, Value other, bool turned) {
    tn_tensor *x = pu_handle(dying);
    tn_status status = TN_ERROR_ARGUMENT;
    bool reused = false;
    if (pu_is(dying, PU_TENSOR) && may_reuse(x)) {
        if (pu_is(other, PU_TENSOR) && tn_tensor_dtype(pu_handle(other)) == tn_tensor_dtype(x) && same_shape(x, pu_handle(other))) {
            const tn_tensor *y = pu_handle(other);
            reused = true;
            status = *name == '+' ? tn_add_(x, y) : *name == '-' ? tn_sub_(x, y) : *name == '*' ? tn_mul_(x, y) : tn_div_(x, y);
        } else if (pu_is_number(other)) {
            tn_scalar y = to_scalar(other);
            reused = true;
            status = *name == '+'   ? tn_add_Scalar_(x, y, tn_int(1))
                     : *name == '-' ? tn_sub_Scalar_(x, y, tn_int(1))
                     : *name == '*' ? tn_mul_Scalar_(x, y)
                                    : tn_div_Scalar_(x, y);
        }
    }
    if (reused && status == TN_OK) {
        pu_note_done();
        return dying;
    }
    Value result;
    if (reused) result = pu_tensor_error(NULL);
    else if (*name == '+') result = turned ? pu_add(other, dying) : pu_add(dying, other);
    else if (*name == '-') result = pu_subtract(dying, other);
    else if (*name == '*') result = turned ? pu_multiply(other, dying) : pu_multiply(dying, other);
    else result = pu_divide(dying, other);
    pu_drop(dying);
    return result;
}

static Value negate(Value a) { return pu_of_tensor(tn_neg(pu_handle(a)), "neg"); }

/* Gradients */

Value pu_backward(Value v, Value gradient) {
    if (!pu_tensor_wanted("backward", v)) return PU_FAILURE;
    if (gradient != PU_ABSENT && !pu_tensor_wanted("backward", gradient)) return PU_FAILURE;
    tn_status status = gradient == PU_ABSENT ? tn_backward(pu_handle(v)) : tn_backward_with(pu_handle(v), pu_handle(gradient), false, false);
    pu_note_done();
    return status == TN_OK ? PU_UNSPECIFIED : pu_tensor_error("backward");
}
Value pu_tensor_grad(Value v) {
    if (!pu_tensor_wanted("tensor-grad", v)) return PU_FAILURE;
    int has = tn_has_grad(pu_handle(v));
    if (has < 0) return pu_tensor_error("tensor-grad");
    return has ? pu_of_tensor(tn_grad(pu_handle(v)), "grad") : PU_NIL;
}
Value pu_requires_grad(Value v, Value wanted) {
    if (!pu_tensor_wanted("requires-grad!", v)) return PU_FAILURE;
    bool on = wanted == PU_ABSENT || pu_truthy(wanted);
    return tn_set_requires_grad(pu_handle(v), on) == TN_OK ? pu_dup(v) : pu_tensor_error("requires-grad!");
}
Value pu_is_requires_grad(Value v) {
    return pu_tensor_wanted("requires-grad?", v) ? pu_of_bool(tn_requires_grad(pu_handle(v)) == 1) : PU_FAILURE;
}
Value pu_detach(Value v) {
    return pu_tensor_wanted("detach", v) ? pu_of_tensor(tn_detach(pu_handle(v)), "detach") : PU_FAILURE;
}
Value pu_clear_grad(Value v) {
    if (!pu_tensor_wanted("clear-grad!", v)) return PU_FAILURE;
    return tn_set_grad(pu_handle(v), NULL) == TN_OK ? PU_UNSPECIFIED : pu_tensor_error("clear-grad!");
}
Value pu_evaluate(Value v) {
    if (pu_is(v, PU_TENSOR)) return PU_UNSPECIFIED;
    if (!pu_is_list(v)) return pu_wrong_type("evaluate!", "list", v);
    for (; v != PU_NIL; v = PU_AS(PuPair, v)->cdr)
        if (!pu_tensor_wanted("evaluate!", PU_AS(PuPair, v)->car)) return PU_FAILURE;
    return PU_UNSPECIFIED;
}
Value pu_live_tensors(void) { return pu_of_int(tn_live_tensors()); }

/* Scopes */

Value pu_check_device(Value name) {
    tn_device device;
    if (!pu_is_string(name)) return pu_wrong_type("with-device", "string", name);
    if (!pu_read_device(PU_AS(PuString, name)->text, &device)) return PU_FAILURE;
    if (device.type == TN_CUDA && tn_device_count(TN_CUDA) <= (device.index < 0 ? 0 : device.index))
        return pu_fail("tensor", "with-device: there is no device \"%s\" here", PU_AS(PuString, name)->text);
    return PU_UNSPECIFIED;
}
PuScope pu_enter_device(Value name) {
    PuScope scope = {0, pu_default_device, true};
    tn_device device = pu_default_device;
    pu_read_device(PU_AS(PuString, name)->text, &device);
    pu_default_device = device;
    return scope;
}
PuScope pu_enter_grad(void) { return (PuScope){tn_enable_grad_begin(), pu_default_device, false}; }
PuScope pu_enter_no_grad(void) { return (PuScope){tn_no_grad_begin(), pu_default_device, false}; }
void pu_leave(PuScope scope) {
    if (scope.is_device) pu_default_device = scope.device;
    else tn_scope_end(scope.grad);
}

/* Files and modules */

static Value file_failure(const char *name, const char *path) {
    Value failed = pu_fail("file", "%s: %s: %s", name, path, tn_error_message());
    tn_error_clear();
    return failed;
}

static const char *tensor_path(const char *name, Value path) {
    if (!pu_is_string(path)) return pu_wrong_type(name, "string", path), NULL;
    const char *text = PU_AS(PuString, path)->text;
    size_t length = strlen(text);
    if (length < 12 || strcmp(text + length - 12, ".safetensors"))
        return pu_fail("file", "%s: %s does not end in .safetensors", name, text), NULL;
    return text;
}

Value pu_tensor_load(Value path) {
    const char *text = tensor_path("tensor-load", path);
    if (!text) return PU_FAILURE;
    tn_value *dict = tn_load_safetensors(text);
    if (!dict) return file_failure("tensor-load", text);
    Value table = pu_make_hash_table();
    int64_t count = tn_value_count(dict);
    for (int64_t i = 0; i < count; i++) {
        tn_value *key = tn_value_key_at(dict, i), *item = tn_value_at(dict, i);
        int64_t length = tn_value_to_string(key, NULL, 0);
        char *name = pu_get_memory((size_t)length + 1);
        tn_value_to_string(key, name, length + 1);
        Value key_value = pu_string(name, length), tensor = pu_of_tensor(tn_value_to_tensor(item), "load");
        free(name);
        tn_value_free(key);
        tn_value_free(item);
        if (tensor) {
            pu_hash_table_set(table, key_value, tensor);
            pu_drop(tensor);
        }
        pu_drop(key_value);
        if (!tensor) break;
    }
    tn_value_free(dict);
    if (!pu.pending) return table;
    pu_drop(table);
    return PU_FAILURE;
}

Value pu_tensor_save(Value path, Value tensors) {
    const char *text = tensor_path("tensor-save", path);
    if (!text) return PU_FAILURE;
    tn_status status;
    if (pu_is(tensors, PU_TENSOR)) {
        const char *name = "tensor";
        const tn_tensor *one = pu_handle(tensors);
        status = tn_save_safetensors(text, &name, &one, 1);
    } else {
        if (!pu_is_hash_table(tensors)) return pu_wrong_type("tensor-save", "table", tensors);
        PuTable *table = PU_AS(PuTable, tensors);
        const char **names = pu_get_memory(((size_t)table->count + 1) * sizeof *names);
        const tn_tensor **handles = pu_get_memory(((size_t)table->count + 1) * sizeof *handles);
        int64_t count = 0;
        for (int64_t i = 0; i < table->used && !pu.pending; i++) {
            PuEntry *entry = &table->entries[i];
            if (!entry->key) continue;
            if (!pu_is_string(entry->key)) pu_wrong_type("tensor-save", "string", entry->key);
            else if (pu_tensor_wanted("tensor-save", entry->value)) {
                names[count] = PU_AS(PuString, entry->key)->text;
                handles[count++] = pu_handle(entry->value);
            }
        }
        status = pu.pending ? TN_OK : tn_save_safetensors(text, names, handles, count);
        free(names);
        free(handles);
        if (pu.pending) return PU_FAILURE;
    }
    return status == TN_OK ? PU_UNSPECIFIED : file_failure("tensor-save", text);
}

Value pu_jit_load(Value path) {
    if (!pu_is_string(path)) return pu_wrong_type("jit-load", "string", path);
    tn_module *module = tn_module_load(PU_AS(PuString, path)->text, NULL);
    if (!module) return file_failure("jit-load", PU_AS(PuString, path)->text);
    PuTensor *object = pu_allocate(PU_MODULE, sizeof(PuTensor));
    object->handle = module;
    object->maker = "module";
    return pu_of_object(object);
}

static Value call_module(Value module, Value *arguments, int count) {
    const tn_tensor *inputs[PU_MOST_ARGUMENTS];
    if (count > PU_MOST_ARGUMENTS) return pu_fail("arity", "a module takes at most %d arguments", PU_MOST_ARGUMENTS);
    for (int i = 0; i < count; i++) {
        if (!pu_tensor_wanted("module", arguments[i])) return PU_FAILURE;
        inputs[i] = pu_handle(arguments[i]);
    }
    return pu_of_tensor(tn_module_forward(PU_AS(PuTensor, module)->handle, inputs, count), "module");
}

static void release(PuObject *object) {
    PuTensor *tensor = (PuTensor *)object;
    if (object->head >> 56 == PU_MODULE) {
        tn_module_free(tensor->handle);
        return;
    }
    pu_note_releasing(tensor->handle);
    tn_free(tensor->handle);
    pu_note_released();
}

/* Random tensors */

static bool sizes_of(const char *name, Value sizes, int64_t *shape, int64_t *rank, int64_t *count) {
    *rank = 0;
    *count = 1;
    if (!pu_is_list(sizes)) return pu_wrong_type(name, "list", sizes), false;
    for (; sizes != PU_NIL; sizes = PU_AS(PuPair, sizes)->cdr) {
        Value size = PU_AS(PuPair, sizes)->car;
        if (!pu_is_int(size)) return pu_wrong_type(name, "int", size), false;
        if (pu_int(size) < 0) return pu_fail("tensor", "%s: sizes cannot be negative", name), false;
        if (*rank == MOST_DIMENSIONS || __builtin_mul_overflow(*count, pu_int(size), count) || *count > (int64_t)1 << 40)
            return pu_fail("tensor", "%s: that is too large", name), false;
        shape[(*rank)++] = pu_int(size);
    }
    return true;
}

static Value drawn(float *data, const int64_t *shape, int64_t rank, const char *name) {
    tn_tensor *made = tn_tensor_from_data(data, TN_FLOAT32, shape, rank, NULL, 0);
    free(data);
    return pu_of_tensor(pu_placed(made), name);
}

Value pu_uniform(Value sizes) {
    int64_t shape[MOST_DIMENSIONS], rank, count;
    if (!sizes_of("tensor-rand", sizes, shape, &rank, &count)) return PU_FAILURE;
    float *data = pu_get_memory((size_t)(count + 1) * sizeof *data);
    for (int64_t i = 0; i < count; i++) data[i] = (float)(pu_next_word() >> 40) * 0x1p-24f;
    return drawn(data, shape, rank, "rand");
}
Value pu_normal(Value sizes) {
    int64_t shape[MOST_DIMENSIONS], rank, count;
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
    if (!pu_is_int(count)) return pu_wrong_type("tensor-randperm", "int", count);
    int64_t n = pu_int(count);
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

/* Foreign functions */

bool pu_foreign_tensor(Value v, bool owned, tn_tensor **out) {
    if (!pu_tensor_wanted("foreign call", v)) return false;
    *out = owned ? tn_tensor_share(pu_handle(v)) : pu_handle(v);
    return *out || (pu_tensor_error("foreign call"), false);
}
Value pu_from_tensor(tn_tensor *tensor, bool owned) {
    return pu_of_tensor(tensor && !owned ? tn_tensor_share(tensor) : tensor, "foreign");
}

static int64_t end(void) {
    pu_end_rows();
    pu_end_liveness();
    return tn_live_tensors();
}

static const PuTensorHooks HOOKS = {release, arithmetic, negate, pu_put_tensor, call_module, end};
void pu_use_tensors(void) { pu_tensor_hooks = &HOOKS; }
