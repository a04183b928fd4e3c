/* An operator's arguments onto libtenfold's stack, and its results off it. */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>

bool pu_is_sequence(Value v) { return v == PU_NIL || pu_is(v, PU_PAIR) || pu_is(v, PU_VECTOR); }



void pu_take_items(Value v, Items *items) {
    int64_t room = sizeof items->few / sizeof *items->few;
    items->count = 0;
    items->at = items->few;
    if (pu_is(v, PU_VECTOR)) {
        items->count = PU_AS(PuVector, v)->count;
        items->at = PU_AS(PuVector, v)->items;
        return;
    }
    if (!pu_is_list(v)) {
        items->count = -1;
        return;
    }
    for (; pu_is(v, PU_PAIR); v = PU_AS(PuPair, v)->cdr) {
        if (items->count == room) {
            Value *larger = pu_get_memory((size_t)(room *= 4) * sizeof *larger);
            memcpy(larger, items->at, (size_t)items->count * sizeof *larger);
            if (items->at != items->few) free(items->at);
            items->at = larger;
        }
        items->at[items->count++] = PU_AS(PuPair, v)->car;
    }
}

void pu_give_items_back(Value v, Items *items) {
    if (!pu_is(v, PU_VECTOR) && items->at != items->few) free(items->at);
}

bool pu_is_reduction(const PuRowArgument *argument, Value v) {
    return pu_is_keyword(v) && !strcmp(argument->name, "reduction") &&
           (!strcmp(PU_AS(PuSymbol, v)->text, "none") || !strcmp(PU_AS(PuSymbol, v)->text, "mean") ||
            !strcmp(PU_AS(PuSymbol, v)->text, "sum"));
}

static double double_of(Value v) { return pu_is_boolean(v) ? v == PU_TRUE : pu_double(v); }

static int64_t int_of(const PuRowArgument *argument, Value v) {
    if (!pu_is_reduction(argument, v)) return pu_int(v);
    const char *name = PU_AS(PuSymbol, v)->text;
    return *name == 'n' ? 0 : *name == 'm' ? 1 : 2;
}

static bool push_value(tn_stack *stack, tn_value *value) {
    bool done = value && tn_stack_push(stack, value) == TN_OK;
    tn_value_free(value);
    return done;
}

static bool push_number_tensor(tn_stack *stack, Value v) {
    bool truth = v == PU_TRUE;
    int64_t whole = pu_is_int(v) ? pu_int(v) : 0;
    double number = pu_is_boolean(v) ? 0 : pu_double(v);
    const void *data = pu_is_boolean(v) ? (const void *)&truth : pu_is_int(v) ? (const void *)&whole : (const void *)&number;
    tn_dtype dtype = pu_is_boolean(v) ? TN_BOOL : pu_is_int(v) ? TN_INT64 : TN_FLOAT64;
    tn_tensor *made = tn_tensor_from_data(data, dtype, NULL, 0, NULL, 0);
    bool done = made && tn_stack_push_tensor(stack, made) == TN_OK;
    tn_free(made);
    return done;
}

static int64_t code_of(const char *name) {
    static const char *const NAMES[] = {"contiguous", "preserve", "channels"};
    if (!strncmp(name, "channels-last-3d", 16) || !strncmp(name, "channels_last_3d", 16)) return 3;
    for (int i = 0; i < 3; i++)
        if (!strncmp(name, NAMES[i], strlen(NAMES[i]))) return i;
    return 0; /* strided */
}

static const char *text_of(Value v, char *room, size_t size) {
    if (pu_is_string(v)) return PU_AS(PuString, v)->text;
    snprintf(room, size, "%s", PU_AS(PuSymbol, v)->text);
    for (char *c = room; *c; c++)
        if (*c == '-') *c = '_';
    return room;
}

static bool push_one(tn_stack *stack, const PuRowArgument *argument, Value v) {
    char room[128];
    tn_dtype dtype = 0;
    tn_device device;
    switch (argument->kind) {
    case PU_ROW_TENSOR:
        return pu_is(v, PU_TENSOR) ? tn_stack_push_tensor(stack, pu_handle(v)) == TN_OK : push_number_tensor(stack, v);
    case PU_ROW_INT: return tn_stack_push_int(stack, int_of(argument, v)) == TN_OK;
    case PU_ROW_FLOAT: return tn_stack_push_double(stack, double_of(v)) == TN_OK;
    case PU_ROW_BOOL: return tn_stack_push_bool(stack, v == PU_TRUE) == TN_OK;
    case PU_ROW_SCALAR: return tn_stack_push_scalar(stack, pu_to_scalar(v)) == TN_OK;
    case PU_ROW_STR: return tn_stack_push_string(stack, text_of(v, room, sizeof room)) == TN_OK;
    case PU_ROW_SCALARTYPE: return pu_read_dtype(PU_AS(PuSymbol, v)->text, &dtype) && push_value(stack, tn_value_dtype(dtype));
    case PU_ROW_DEVICE: return pu_take_device("device", v, &device) && push_value(stack, tn_value_device(device));
    case PU_ROW_LAYOUT: case PU_ROW_MEMORYFORMAT: return tn_stack_push_int(stack, code_of(text_of(v, room, sizeof room))) == TN_OK;
    case PU_ROW_GENERATOR: return false;
    }
    return false;
}

static bool push_list(tn_stack *stack, const PuRowArgument *argument, const Value *items, int64_t count) {
    union { int64_t ints[16]; double doubles[16]; bool truths[16]; const tn_tensor *tensors[16]; tn_value *values[16]; } few = {{0}};
    void *room = count <= 16 ? (void *)&few : pu_get_memory((size_t)count * sizeof(int64_t));
    int64_t *ints = room;
    double *doubles = room;
    bool *truths = room, done = false;
    const tn_tensor **tensors = room;
    tn_value **values = room;
    switch (argument->kind) {
    case PU_ROW_INT:
        for (int64_t i = 0; i < count; i++) ints[i] = pu_int(items[i]);
        done = tn_stack_push_ints(stack, ints, count) == TN_OK;
        break;
    case PU_ROW_FLOAT:
        for (int64_t i = 0; i < count; i++) doubles[i] = double_of(items[i]);
        done = push_value(stack, tn_value_double_list(doubles, count));
        break;
    case PU_ROW_BOOL:
        for (int64_t i = 0; i < count; i++) truths[i] = items[i] == PU_TRUE;
        done = push_value(stack, tn_value_bool_list(truths, count));
        break;
    case PU_ROW_TENSOR:
        for (int64_t i = 0; i < count; i++) tensors[i] = items[i] == PU_NIL ? NULL : pu_handle(items[i]);
        done = argument->element_optional ? push_value(stack, tn_value_optional_tensor_list(tensors, count))
                                          : tn_stack_push_tensors(stack, tensors, count) == TN_OK;
        break;
    case PU_ROW_SCALAR:
        for (int64_t i = 0; i < count; i++) values[i] = tn_value_scalar(pu_to_scalar(items[i]));
        done = push_value(stack, tn_value_list((const tn_value *const *)values, count));
        for (int64_t i = 0; i < count; i++) tn_value_free(values[i]);
        break;
    default: break;
    }
    if (room != &few) free(room);
    return done;
}

/* A default, as the table writes it. */
static bool push_fallback(tn_stack *stack, const PuRowArgument *argument) {
    const char *text = argument->fallback;
    if (!strcmp(text, "none")) return tn_stack_push_none(stack) == TN_OK;
    if (*text == '[') {
        Value items[64];
        int64_t count = 0;
        for (char *at = (char *)(uintptr_t)text + 1; *at && *at != ']' && count < 64;) {
            if (*at == ' ') at++;
            else if (!strncmp(at, "true", 4) || !strncmp(at, "false", 5)) {
                items[count++] = pu_of_bool(*at == 't');
                at += *at == 't' ? 4 : 5;
            } else items[count++] = pu_of_fixnum(strtoll(at, &at, 10));
        }
        return push_list(stack, argument, items, count);
    }
    if (!strcmp(text, "true") || !strcmp(text, "false")) {
        bool truth = *text == 't';
        return (argument->kind == PU_ROW_SCALAR ? tn_stack_push_scalar(stack, tn_bool(truth)) : tn_stack_push_bool(stack, truth)) == TN_OK;
    }
    if (*text == '\'') {
        tn_dtype dtype = 0;
        if (argument->kind == PU_ROW_SCALARTYPE) return pu_read_dtype(text + 1, &dtype) && push_value(stack, tn_value_dtype(dtype));
        if (argument->kind == PU_ROW_STR) return tn_stack_push_string(stack, text + 1) == TN_OK;
        return tn_stack_push_int(stack, code_of(text + 1)) == TN_OK;
    }
    bool whole = !strpbrk(text, ".en");
    if (argument->list) {
        Value one = pu_of_fixnum(strtoll(text, NULL, 10)), items[16];
        for (int i = 0; i < argument->size && i < 16; i++) items[i] = one;
        return push_list(stack, argument, items, argument->size < 16 ? argument->size : 16);
    }
    if (argument->kind == PU_ROW_FLOAT) return tn_stack_push_double(stack, strtod(text, NULL)) == TN_OK;
    if (whole && argument->kind == PU_ROW_INT) return tn_stack_push_int(stack, strtoll(text, NULL, 10)) == TN_OK;
    return tn_stack_push_scalar(stack, whole ? tn_int(strtoll(text, NULL, 10)) : tn_double(strtod(text, NULL))) == TN_OK;
}

/* Whether `with-device` says where the result is: it is made out of no other tensor. */
bool pu_is_placed(const PuOverload *overload) {
    for (int i = 0; i < overload->count; i++)
        if (overload->arguments[i].kind == PU_ROW_TENSOR) return false;
    return pu_default_device.type != TN_CPU;
}

bool pu_push_argument(tn_stack *stack, const PuRowArgument *argument, Value v, const Match *found, int i, bool placing) {
    if (!v) {
        return placing && argument->kind == PU_ROW_DEVICE ? push_value(stack, tn_value_device(pu_default_device)) : push_fallback(stack, argument);
    }
    if (found->spread && found->spread_at == i) return push_list(stack, argument, found->spread, found->spread_count);
    if (v == PU_NIL && argument->optional) return tn_stack_push_none(stack) == TN_OK;
    if (!argument->list) return push_one(stack, argument, v);
    if (pu_is_sequence(v)) {
        Items items;
        pu_take_items(v, &items);
        bool done = push_list(stack, argument, items.at, items.count);
        pu_give_items_back(v, &items);
        return done;
    }
    Value same[MOST];
    int times = argument->size < 1 ? 1 : argument->size < MOST ? argument->size : MOST;
    for (int k = 0; k < times; k++) same[k] = v;
    return push_list(stack, argument, same, times);
}

/* Results */

Value pu_of_value(tn_value *value, const char *maker) {
    int64_t whole = 0;
    double number = 0;
    bool truth = false;
    Value result = PU_UNSPECIFIED;
    switch (tn_value_tag(value)) {
    case TN_TAG_NONE: break;
    case TN_TAG_TENSOR: result = pu_of_tensor(tn_value_to_tensor(value), maker); break;
    case TN_TAG_INT: result = tn_value_to_int(value, &whole) == TN_OK ? pu_of_int(whole) : pu_tensor_error(maker); break;
    case TN_TAG_DOUBLE: result = tn_value_to_double(value, &number) == TN_OK ? pu_of_float(number) : pu_tensor_error(maker); break;
    case TN_TAG_BOOL: result = tn_value_to_bool(value, &truth) == TN_OK ? pu_of_bool(truth) : pu_tensor_error(maker); break;
    case TN_TAG_LIST: case TN_TAG_TUPLE: {
        Value list = PU_NIL;
        for (int64_t i = tn_value_count(value); i-- > 0 && result;) {
            tn_value *item = tn_value_at(value, i);
            result = item ? pu_of_value(item, maker) : pu_tensor_error(maker);
            tn_value_free(item);
            if (result) list = pu_cons(result, list);
        }
        if (result) result = list;
        else pu_drop(list);
        break;
    }
    default: result = pu_fail("type", "%s: Purple has no values of this kind", maker);
    }
    return result;
}

Value pu_results(tn_stack *stack, const char *maker) {
    int64_t count = tn_stack_count(stack);
    if (count == 0) return PU_UNSPECIFIED;
    Value list = PU_NIL;
    for (int64_t i = count; i-- > 0;) {
        tn_value *top = tn_stack_pop(stack);
        Value each = top ? pu_of_value(top, maker) : pu_tensor_error(maker);
        tn_value_free(top);
        if (!each || count == 1) {
            pu_drop(list);
            return each;
        }
        list = pu_cons(each, list);
    }
    return list;
}
