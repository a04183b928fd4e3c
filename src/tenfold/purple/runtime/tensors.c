/* Tensors as values: their errors, dtypes and devices, numbers in and out, and what the rest of the runtime asks of them. */
#include "purple_tensors.h"

#include <stdio.h>
#include <stdlib.h>

tn_device pu_default_device = {TN_CPU, -1};
enum { DTYPES = 46 };

Value pu_tensor_error(const char *name) {
    int code = tn_error_code();
    const char *kind = code == TN_ERROR_MEMORY ? "memory" : "tensor";
    const char *message = tn_error_message(), *rest = strncmp(message, "tn_", 3) ? NULL : strstr(message, ": ");
    if (rest && rest < strpbrk(message, " ")) message = rest + 2; /* C's name of the operator is none of Purple's */
    Value failed = pu_fail(kind, "%s%s%s", name ? name : "", name ? ": " : "", message);
    pu.pending->of_engine = code != TN_ERROR_MEMORY;
    tn_error_clear();
    return failed;
}

static void put_given(PuBuffer *text, Value v) {
    enum { LISTED = 8 };
    if (pu_is_pair(v) && pu_is_list(v)) {
        int listed = 0;
        for (; v != PU_NIL && listed < LISTED; v = PU_AS(PuPair, v)->cdr) {
            pu_put_text(text, listed++ ? " " : "(");
            put_given(text, PU_AS(PuPair, v)->car);
        }
        pu_put_text(text, v == PU_NIL ? ")" : " …)");
        return;
    }
    if (!pu_is(v, PU_TENSOR)) {
        pu_put_brief(text, v);
        return;
    }
    pu_put_text(text, tn_dtype_name(tn_tensor_dtype(pu_handle(v))));
    pu_put_text(text, " ");
    Value shape = pu_tensor_shape(v);
    pu_put_value(text, shape, true);
    pu_drop(shape);
}

Value pu_refused(const char *name, const Value *given, int count, int keywords) {
    PuError *error = pu.pending;
    if (!error->of_engine) return PU_FAILURE;
    PuBuffer text = {0};
    pu_put_text(&text, name);
    pu_put_text(&text, ": cannot take ");
    for (int i = 0; i < count + 2 * keywords; i++) {
        bool after_keyword = i > count && (i - count) % 2;
        if (i) pu_put_text(&text, after_keyword ? " " : ", ");
        put_given(&text, given[i]);
    }
    error->help = error->message;
    error->message = pu_string(text.text, (int64_t)text.length);
    error->of_engine = false;
    free(text.text);
    return PU_FAILURE;
}

Value pu_refused_all(const char *name, Value *given, int count, int keywords) {
    pu_refused(name, given, count, keywords);
    pu_drop_all(given, count + 2 * keywords);
    return PU_FAILURE;
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
    return PU_LIKELY(status == TN_OK) ? self : pu_tensor_error(maker);
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
bool pu_is_device(Value v) {
    if (!pu_is_keyword(v)) return pu_is_string(v);
    const char *text = PU_AS(PuSymbol, v)->text;
    return !strncmp(text, "cpu", 3) || !strncmp(text, "cuda", 4);
}
bool pu_take_device(const char *name, Value v, tn_device *device) {
    if (pu_is_string(v)) return pu_read_device(PU_AS(PuString, v)->text, device);
    if (pu_is_keyword(v)) return pu_read_device(PU_AS(PuSymbol, v)->text, device);
    pu_wrong_type(name, "string", v);
    return false;
}

tn_tensor *pu_placed(tn_tensor *tensor) {
    if (!tensor || pu_is_host(pu_default_device)) return tensor;
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

/* Numbers in and out */

bool pu_is_complex(tn_dtype dtype) { return dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128 || dtype == TN_COMPLEX32; }

static Value no_complex_numbers(void) { return pu_fail("type", "Purple has no complex numbers outside tensors"); }

Value pu_of_scalar(tn_scalar scalar) {
    switch (scalar.tag) {
    case TN_SCALAR_INT: return pu_of_int(scalar.as.i);
    case TN_SCALAR_DOUBLE: return pu_of_float(scalar.as.d);
    case TN_SCALAR_BOOL: return pu_of_bool(scalar.as.b);
    default: return no_complex_numbers();
    }
}

tn_scalar pu_to_scalar(Value v) {
    if (pu_is_boolean(v)) return tn_bool(v == PU_TRUE);
    return pu_is_int(v) ? tn_int(pu_int(v)) : tn_double(pu_double(v));
}

Value pu_tensor_item(Value v) {
    tn_scalar scalar;
    if (!pu_tensor_wanted("tensor-item", v)) return PU_FAILURE;
    int64_t count = tn_tensor_numel(pu_handle(v));
    if (count != 1) {
        pu_fail("tensor", "tensor-item: a tensor of %lld elements is no number", (long long)count);
        return pu_help("(tensor->list x) gives all of them, (tensor-ref x i) one"), PU_FAILURE;
    }
    return tn_tensor_item(pu_handle(v), &scalar) == TN_OK ? pu_of_scalar(scalar) : pu_tensor_error("tensor-item");
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
    int64_t shape[PU_MOST_DIMENSIONS], rank = tn_tensor_shape(pu_handle(v), shape, PU_MOST_DIMENSIONS), at = 0;
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
    int64_t shape[PU_MOST_DIMENSIONS], rank = tn_tensor_shape(pu_handle(v), shape, PU_MOST_DIMENSIONS);
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
    if (pu_is_device(target)) {
        tn_device device;
        if (!pu_take_device("tensor-to", target, &device)) return PU_FAILURE;
        return pu_of_tensor(tn_to_device(pu_handle(v), device, false), "to");
    }
    if (target == PU_NIL) return pu_of_tensor(tn_tensor_share(pu_handle(v)), "to");
    if (!pu_is_keyword(target)) return pu_wrong_type("tensor-to", "keyword", target);
    tn_dtype dtype;
    if (!pu_read_dtype(PU_AS(PuSymbol, target)->text, &dtype))
        return pu_fail("tensor", "tensor-to: there is no dtype :%s", PU_AS(PuSymbol, target)->text);
    return pu_of_tensor(pu_cast(pu_handle(v), dtype), "to");
}

Value pu_live_tensors(void) { return pu_of_int(tn_live_tensors()); }
bool pu_is_cuda_available(void) { return tn_cuda_available() == 1; }

/* Foreign functions */

bool pu_foreign_tensor(const char *name, Value v, bool owned, tn_tensor **out) {
    if (!pu_tensor_wanted(name, v)) return false;
    *out = owned ? tn_tensor_share(pu_handle(v)) : pu_handle(v);
    return *out || (pu_tensor_error(name), false);
}
Value pu_from_tensor(const char *name, tn_tensor *tensor, bool owned) {
    return pu_of_tensor(tensor && !owned ? tn_tensor_share(tensor) : tensor, name);
}

/* What the rest of the runtime asks of tensors */

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

static int64_t end(void) {
    pu_end_rows();
    pu_end_liveness();
    return tn_live_tensors();
}

/* Whether the numbers of two tensors are the same ones: as in eq?, nan is one value, and 0.0 is not -0.0. */
static bool same_numbers(const tn_tensor *a, const tn_tensor *b, bool floating) {
    int64_t bytes = tn_tensor_bytes(a);
    char *one = pu_get_memory((size_t)bytes + 8), *two = pu_get_memory((size_t)bytes + 8);
    bool same = tn_tensor_to_data(a, one, bytes) == TN_OK && tn_tensor_to_data(b, two, bytes) == TN_OK;
    if (same && floating)
        for (int64_t i = 0; same && i < bytes / 8; i++) {
            double x = ((double *)(void *)one)[i], y = ((double *)(void *)two)[i];
            same = isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y);
        }
    else same = same && !memcmp(one, two, (size_t)bytes);
    free(one);
    free(two);
    tn_error_clear();
    return same;
}

static bool alike(Value a, Value b) {
    int64_t one[PU_MOST_DIMENSIONS], two[PU_MOST_DIMENSIONS], rank = tn_tensor_shape(pu_handle(a), one, PU_MOST_DIMENSIONS);
    tn_dtype dtype = tn_tensor_dtype(pu_handle(a));
    if (dtype != tn_tensor_dtype(pu_handle(b)) || rank != tn_tensor_shape(pu_handle(b), two, PU_MOST_DIMENSIONS)) return false;
    if (memcmp(one, two, (size_t)rank * sizeof *one)) return false;
    bool floating = is_floating(dtype) && !pu_is_complex(dtype);
    if (!floating) return same_numbers(pu_handle(a), pu_handle(b), false);
    tn_tensor *x = pu_cast(pu_handle(a), TN_FLOAT64), *y = pu_cast(pu_handle(b), TN_FLOAT64);
    bool same = x && y && same_numbers(x, y, true);
    tn_free(x);
    tn_free(y);
    return same;
}

static bool truth(Value v, bool *result) {
    int64_t count = tn_tensor_numel(pu_handle(v));
    if (count != 1) {
        pu_fail("tensor", "a tensor of %lld elements is neither true nor false", (long long)count);
        pu_help("ask (tensor-all x) or (tensor-any x) of its elements, or (null? x) whether it is there");
        return false;
    }
    tn_scalar scalar;
    if (tn_tensor_item(pu_handle(v), &scalar) != TN_OK) return pu_tensor_error("if"), false;
    switch (scalar.tag) {
    case TN_SCALAR_INT: *result = scalar.as.i != 0; break;
    case TN_SCALAR_BOOL: *result = scalar.as.b; break;
    case TN_SCALAR_DOUBLE: *result = scalar.as.d != 0; break;
    default: *result = true;
    }
    return true;
}

static const PuTensorHooks HOOKS = {release, pu_tensor_arithmetic, pu_tensor_negate, truth, alike, pu_put_tensor, pu_call_module, end};
void pu_use_tensors(void) { pu_tensor_hooks = &HOOKS; }
