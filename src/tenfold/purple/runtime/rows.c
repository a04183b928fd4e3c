/* The op table's rows. A call's values choose the overload, in PyTorch's order; it is then made through the dispatcher, by
   a handle that is looked up once. */
#include "rows.h"

/* A number that a tensor can hold. */
static bool is_scalar(Value v) { return pu_is_number(v) && !pu_is(v, PU_BIG); }

/* Which of the PU_STANDS_ a value is; 0 where it is no number. */
static unsigned stands(Value v) {
    if (pu_is_boolean(v)) return PU_STANDS_BOOL;
    return pu_is_int(v) ? PU_STANDS_INT : is_scalar(v) ? PU_STANDS_FLOAT : 0;
}

static bool fits_one(const PuRowArgument *argument, Value v, bool numbers) {
    tn_dtype dtype;
    switch (argument->kind) {
    case PU_ROW_TENSOR: return pu_is(v, PU_TENSOR) || (numbers && stands(v));
    case PU_ROW_INT: return (argument->numbers & stands(v)) || pu_is_reduction(argument, v);
    case PU_ROW_FLOAT: case PU_ROW_BOOL: case PU_ROW_SCALAR: return argument->numbers & stands(v);
    case PU_ROW_STR: return pu_is_string(v) || pu_is_keyword(v);
    case PU_ROW_SCALARTYPE: return pu_is_keyword(v) && pu_read_dtype(PU_AS(PuSymbol, v)->text, &dtype);
    case PU_ROW_DEVICE: return pu_is_device(v);
    case PU_ROW_LAYOUT: case PU_ROW_MEMORYFORMAT: return pu_is_keyword(v) || pu_is_string(v);
    case PU_ROW_GENERATOR: return false;
    }
    return false;
}

static bool fits(const PuRowArgument *argument, Value v, bool numbers) {
    if (v == PU_NIL && argument->optional) return true;
    if (!argument->list) return fits_one(argument, v, numbers);
    if (!pu_is_sequence(v)) return argument->size > 0 && fits_one(argument, v, numbers);
    Items items;
    pu_take_items(v, &items);
    bool fit = items.count >= 0;
    for (int64_t i = 0; i < items.count && fit; i++)
        fit = fits_one(argument, items.at[i], false) || (argument->element_optional && items.at[i] == PU_NIL);
    pu_give_items_back(v, &items);
    return fit;
}

static bool all_ints(const Value *values, int count) {
    for (int i = 0; i < count; i++)
        if (!pu_is_int(values[i])) return false;
    return count > 0;
}

static bool match(const PuOverload *overload, const Value *arguments, int count, int keywords, bool numbers, Match *found) {
    int used = 0, taken = 0;
    memset(found, 0, sizeof *found);
    found->numbers = numbers;
    if (overload->count > MOST) return false;
    for (int i = 0; i < overload->count; i++) {
        const PuRowArgument *argument = &overload->arguments[i];
        Value v = 0;
        if (used < count && !argument->keyword_only) {
            v = arguments[used++];
            bool last = i + 1 == overload->count || overload->arguments[i + 1].keyword_only;
            if (argument->list && argument->kind == PU_ROW_INT && last && (used < count || argument->size <= 0) && all_ints(arguments + used - 1, count - used + 1)) {
                found->spread = arguments + used - 1;
                found->spread_count = count - used + 1;
                found->spread_at = i;
                found->given[i] = v;
                used = count;
                continue;
            }
        } else {
            for (int k = 0; k < keywords; k++) {
                const Value *pair = arguments + count + 2 * k;
                const char *name = PU_AS(PuSymbol, pair[0])->text;
                bool self = !strcmp(name, "input") && !strcmp(argument->name, "self");
                if (strcmp(name, argument->name) && !self) continue;
                v = pair[1];
                taken++;
            }
            if (!v) {
                if (!argument->fallback) return false;
                continue;
            }
        }
        if (!fits(argument, v, numbers)) return false;
        found->given[i] = v;
    }
    return used == count && taken == keywords;
}

/* The argument at a position, or of a name, in the first overload that has it. */
static const PuRowArgument *argument_of(const PuRow *row, int position, const char *name) {
    for (int i = 0; i < row->count; i++)
        for (int k = 0; k < row->overloads[i].count; k++)
            if (name ? !strcmp(row->overloads[i].arguments[k].name, name) : k == position) return &row->overloads[i].arguments[k];
    return NULL;
}

/* The first value in an argument that no operator takes there; 0 where there is none. */
static Value stranger(const PuRowArgument *argument, Value v) {
    tn_dtype dtype;
    if (is_scalar(v) || pu_is_boolean(v) || pu_is_string(v) || pu_is(v, PU_TENSOR)) return 0;
    if (pu_is_keyword(v)) {
        if (pu_read_dtype(PU_AS(PuSymbol, v)->text, &dtype) || (argument && pu_is_reduction(argument, v))) return 0;
        PuRowKind kind = argument ? argument->kind : PU_ROW_TENSOR;
        return kind == PU_ROW_STR || kind == PU_ROW_LAYOUT || kind == PU_ROW_MEMORYFORMAT ? 0 : v;
    }
    if (!pu_is_sequence(v)) return v;
    Items items;
    Value found = 0;
    pu_take_items(v, &items);
    for (int64_t i = 0; i < items.count && !found; i++) found = stranger(argument, items.at[i]);
    pu_give_items_back(v, &items);
    return found;
}

/* What an operator in place is to write into; 0 where that is not given. */
static Value target_of(const Value *arguments, int count, int keywords) {
    if (count) return arguments[0];
    for (int i = 0; i < keywords; i++) {
        const char *name = PU_AS(PuSymbol, arguments[2 * i])->text;
        if (!strcmp(name, "self") || !strcmp(name, "input")) return arguments[2 * i + 1];
    }
    return 0;
}

static Value not_writable(const char *name, Value target) {
    PuBuffer text = {0};
    pu_put_text(&text, name);
    pu_put_text(&text, ": ");
    if (target) pu_put_brief(&text, target);
    pu_put_text(&text, target ? " is no tensor to write into" : "the tensor to write into is missing");
    return pu_fail_text("tensor", &text);
}

static Value refuse(const PuRow *row, const Value *arguments, int count, int keywords) {
    Value target = row->inplace ? target_of(arguments, count, keywords) : 0;
    if (row->inplace && !(target && pu_is(target, PU_TENSOR))) return not_writable(row->name, target);
    for (int i = 0; i < count + keywords; i++) {
        const Value *at = arguments + (i < count ? i : 2 * i - count); /* a keyword, and its value after it */
        const char *name = i < count ? NULL : PU_AS(PuSymbol, *at)->text;
        Value odd = stranger(argument_of(row, i, name), at[name != NULL]);
        if (odd) return pu_is(odd, PU_BIG) ? pu_too_wide(row->name, odd) : pu_wrong_type(row->name, "number*", odd);
    }
    pu_fail("tensor", "no overload takes these");
    pu.pending->of_engine = true;
    return PU_FAILURE;
}

static tn_stack *stack; /* every call empties it */

void pu_end_rows(void) {
    tn_stack_free(stack);
    stack = NULL;
}

static Value invoke(const PuRow *row, PuOverload *overload, const Match *found) {
    const char *maker = row->name + strlen("tensor-");
    if (!overload->found) overload->found = tn_find(overload->operator_);
    if (!stack) stack = tn_stack_new();
    if (!overload->found || !stack) return pu_tensor_error(row->name);
    int last = overload->count; /* those after the last that is given keep their defaults */
    bool placing = pu_is_placed(overload);
    while (last > 0 && !found->given[last - 1] && !(placing && overload->arguments[last - 1].kind == PU_ROW_DEVICE)) last--;
    for (int i = 0; i < last; i++)
        if (!pu_push_argument(stack, &overload->arguments[i], found->given[i], found, i, placing)) {
            tn_stack_clear(stack);
            return pu.pending ? PU_FAILURE : pu_tensor_error(row->name);
        }
    if (tn_call_op(overload->found, stack) != TN_OK) return pu_tensor_error(row->name);
    if (row->inplace) {
        tn_stack_clear(stack);
        pu_note_done();
        return found->given[0]; /* lent */
    }
    if (tn_stack_count(stack) == 1) {
        tn_value *top = tn_stack_pop(stack);
        Value result = top ? pu_of_value(top, maker) : pu_tensor_error(row->name);
        tn_value_free(top);
        return result;
    }
    Value all = pu_results(stack, maker);
    tn_stack_clear(stack);
    return all;
}

static Value call(const PuRow *row, const Value *arguments, int count, int keywords);

/* Creation takes :requires-grad, which is no argument of the operator. */
static Value asking_for_gradients(const PuRow *row, const Value *arguments, int count, int keywords, int at) {
    Value others[2 * MOST + MOST];
    int kept = 0;
    for (int i = 0; i < count + 2 * keywords; i++)
        if (i < at || i > at + 1) others[kept++] = arguments[i];
    Value made = call(row, others, count, keywords - 1);
    if (!made || !pu_truthy(arguments[at + 1])) return made;
    if (pu_requires_grad(made, PU_ABSENT)) return made;
    pu_drop(made);
    return PU_FAILURE;
}

static Value call(const PuRow *row, const Value *arguments, int count, int keywords) {
    Match found;
    for (int k = 0; k < keywords && count + 2 * keywords < 3 * MOST; k++)
        if (!strcmp(PU_AS(PuSymbol, arguments[count + 2 * k])->text, "requires-grad"))
            return asking_for_gradients(row, arguments, count, keywords, count + 2 * k);
    for (int numbers = 0; numbers <= row->numbers; numbers++)
        for (int i = 0; i < row->count; i++)
            if (match(&row->overloads[i], arguments, count, keywords, numbers, &found) &&
                (!row->inplace || pu_is(found.given[0], PU_TENSOR)))
                return invoke(row, &row->overloads[i], &found);
    return refuse(row, arguments, count, keywords);
}

Value pu_row_call(const PuRow *row, const Value *arguments, int count, int keywords) {
    Value result = call(row, arguments, count, keywords);
    return PU_LIKELY(result) ? result : pu_refused(row->name, arguments, count, keywords);
}
