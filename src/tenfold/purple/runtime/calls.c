/* Calls of procedures that are known only when the program runs, and the landing of tail calls. */
#include "purple_all.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void pu_drop_all(Value *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) pu_drop(values[i]);
}
void pu_dup_all(const Value *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) pu_dup(values[i]);
}

void pu_drop_given(Value *arguments, int count, int keywords) {
    pu_drop_all(arguments, count);
    for (int i = 0; i < keywords; i++) pu_drop(arguments[count + 2 * i + 1]);
}

static Value not_a_procedure(Value function, Value *arguments, int count, int keywords) {
    PuBuffer text = {0};
    pu_put_brief(&text, function);
    pu_put_text(&text, " is not a procedure");
    pu_drop_given(arguments, count, keywords);
    return pu_fail_text("type", &text);
}

Value pu_call(Value function, Value *arguments, int count, int keywords) {
    if (PU_LIKELY(pu_is(function, PU_CLOSURE))) {
        PuClosure *closure = PU_AS(PuClosure, function);
        return pu_land(closure->function->code(closure, arguments, count, keywords));
    }
    if (pu_is(function, PU_MODULE)) {
        Value result = pu_tensor_hooks->call(function, arguments, count);
        pu_drop_given(arguments, count, keywords);
        return result;
    }
    return not_a_procedure(function, arguments, count, keywords);
}

Value pu_call_tail(Value function, Value *arguments, int count, int keywords) {
    if (PU_UNLIKELY(!pu_is(function, PU_CLOSURE))) {
        Value result = pu_call(function, arguments, count, keywords);
        pu_drop(function);
        return result;
    }
    int words = count + 2 * keywords;
    if (PU_UNLIKELY(words > pu.bounce.room)) {
        free(pu.bounce.arguments);
        pu.bounce.room = words < 16 ? 16 : 2 * words;
        pu.bounce.arguments = pu_get_memory((size_t)pu.bounce.room * sizeof(Value));
    }
    pu.bounce.closure = function;
    pu.bounce.count = count;
    pu.bounce.keywords = keywords;
    pu.bounce.place.file = NULL;
    pu.bounce.name = NULL;
    pu.bounce.given = false;
    if (words) memcpy(pu.bounce.arguments, arguments, (size_t)words * sizeof(Value));
    return PU_BOUNCE;
}

Value pu_landed(Value result) {
    /* Of the last call that the program made, or that the library made of what it was given: a procedure of the library
       that goes on with another one answers for it. */
    PuPlace place = {NULL, 0, 0, 0};
    const char *name = NULL;
    while (result == PU_BOUNCE) {
        Value function = pu.bounce.closure;
        PuClosure *closure = PU_AS(PuClosure, function);
        int count = pu.bounce.count, keywords = pu.bounce.keywords, words = count + 2 * keywords;
        Value few[16], *arguments = words <= 16 ? few : pu_get_memory((size_t)words * sizeof(Value));
        if (words) memcpy(arguments, pu.bounce.arguments, (size_t)words * sizeof(Value));
        if (pu.bounce.place.file) place = pu.bounce.place;
        if (pu.bounce.place.file || pu.bounce.given) {
            name = pu.bounce.name;
            if (!name && closure->function->of_library) name = closure->function->name;
        }
        result = closure->function->code(closure, arguments, count, keywords);
        if (PU_UNLIKELY(!result)) {
            if (name) pu_blame(name);
            if (place.file) pu_at(place.file, place.line, place.column, place.width);
        }
        if (words > 16) free(arguments);
        pu_drop(function);
    }
    return result;
}

void pu_in_call(Value function, const char *file, int line, int column, int width) {
    pu_blame_given(function);
    if (pu_is(function, PU_CLOSURE)) pu_in(PU_AS(PuClosure, function)->function->name, file, line, column, width);
    else pu_at(file, line, column, width);
}

Value pu_tail_at(Value result, const char *file, int line, int column, int width) {
    if (PU_UNLIKELY(!result)) pu_at(file, line, column, width);
    else if (result == PU_BOUNCE) pu.bounce.place = (PuPlace){file, line, column, width};
    return result;
}

Value pu_tail_given(Value result) {
    if (result == PU_BOUNCE) pu.bounce.given = true;
    return result;
}

Value pu_tail_in(Value result, const char *function, const char *file, int line, int column, int width) {
    if (PU_UNLIKELY(!result)) {
        pu_in_library(function, file, line, column, width);
    } else if (result == PU_BOUNCE) {
        pu.bounce.place = (PuPlace){file, line, column, width};
        pu.bounce.name = function;
    }
    return result;
}

Value pu_closure(const PuFunction *function, int captured, ...) {
    PuClosure *closure = pu_allocate(PU_CLOSURE, sizeof(PuClosure) + (size_t)captured * sizeof(Value));
    closure->function = function;
    va_list values;
    va_start(values, captured);
    for (int i = 0; i < captured; i++) closure->captured[i] = va_arg(values, Value);
    va_end(values);
    return pu_of_object(closure);
}

/* Arguments to parameters */

static Value wrong_count(const char *name, int minimum, int most, int count) {
    if (most >= 0 && most != minimum)
        return pu_fail("arity", "%s: expected %d to %d arguments, got %d", name, minimum, most, count);
    return pu_fail("arity", "%s: expected %s%d argument%s, got %d", name, most < 0 ? "at least " : "", minimum,
                   minimum == 1 ? "" : "s", count);
}

static void note(const PuFunction *function) { pu_defined_at(function->name, function->signature, function->place); }

Value pu_wrong_count(const PuFunction *function, Value *arguments, int count, int keywords) {
    if (keywords && (count == function->required || (count > function->required && function->rest))) {
        Value unknown = arguments[count];
        pu_fail("arity", "%s: there is no keyword :%s", function->name, PU_AS(PuSymbol, unknown)->text);
    } else {
        wrong_count(function->name, function->required, function->rest ? -1 : function->required, count);
    }
    note(function);
    pu_drop_given(arguments, count, keywords);
    return PU_FAILURE;
}

bool pu_bind(const PuFunction *function, Value *arguments, int count, int keywords, Value *slots) {
    int required = function->required, rest = function->rest;
    if (count < required || (count > required && !rest)) {
        wrong_count(function->name, required, rest ? -1 : required, count);
        goto failed;
    }
    Value *words = slots + required + rest;
    for (int k = 0; k < function->keyword_count; k++) words[k] = PU_ABSENT;
    for (int i = 0; i < keywords; i++) {
        Value *pair = arguments + count + 2 * i;
        const char *name = PU_AS(PuSymbol, pair[0])->text;
        int k = 0;
        while (k < function->keyword_count && strcmp(function->keywords[k].name, name) != 0) k++;
        if (k == function->keyword_count) {
            pu_fail("arity", "%s: there is no keyword :%s", function->name, name);
            goto failed;
        }
        if (words[k] != PU_ABSENT) {
            pu_fail("arity", "%s: :%s is given twice", function->name, name);
            goto failed;
        }
        words[k] = pair[1];
    }
    for (int k = 0; k < function->keyword_count; k++)
        if (words[k] == PU_ABSENT && function->keywords[k].required) {
            pu_fail("arity", "%s: the keyword :%s is missing", function->name, function->keywords[k].name);
            goto failed;
        }
    for (int i = 0; i < required; i++) slots[i] = arguments[i];
    if (rest) slots[required] = pu_list(arguments + required, count - required);
    return true;
failed:
    note(function);
    pu_drop_given(arguments, count, keywords);
    return false;
}

Value pu_primitive_arity(const char *name, const char *signature, int minimum, int most, int count) {
    wrong_count(name, minimum, most, count);
    pu_defined_at(name, signature, (PuPlace){NULL, 0, 0, 0});
    return PU_FAILURE;
}

Value pu_unknown_keyword(const char *name, const char *signature, const char *keyword) {
    pu_fail("arity", "%s: there is no keyword :%s", name, keyword);
    pu_defined_at(name, signature, (PuPlace){NULL, 0, 0, 0});
    return PU_FAILURE;
}

bool pu_primitive_fits(const PuFunction *function, int most, Value *arguments, int count, int keywords) {
    if (count >= function->required && (most < 0 || count <= most) && !keywords) return true;
    if (keywords) pu_unknown_keyword(function->name, function->signature, PU_AS(PuSymbol, arguments[count])->text);
    else pu_primitive_arity(function->name, function->signature, function->required, most, count);
    pu_drop_given(arguments, count, keywords);
    return false;
}

/* Primitives */

bool pu_is_procedure(Value v) { return pu_is(v, PU_CLOSURE) || pu_is(v, PU_MODULE); }

Value pu_procedure_arity(Value procedure) {
    if (!pu_is(procedure, PU_CLOSURE)) return pu_wrong_type("procedure-arity", "procedure", procedure);
    return pu_of_fixnum(PU_AS(PuClosure, procedure)->function->required);
}

/* The arguments of `apply` in one array, owned by the caller. */
static Value *spread(const Value *arguments, int count, int *spread_count) {
    Value rest = count > 1 ? arguments[count - 1] : PU_NIL;
    if (!pu_is_list(rest)) {
        pu_wrong_type("apply", "list", rest);
        return NULL;
    }
    int given = count > 1 ? count - 2 : 0, total = given;
    for (Value v = rest; v != PU_NIL; v = PU_AS(PuPair, v)->cdr) total++;
    Value *all = pu_get_memory((size_t)(total + 1) * sizeof(Value));
    for (int i = 0; i < given; i++) all[i] = pu_dup(arguments[i + 1]);
    for (Value v = rest; v != PU_NIL; v = PU_AS(PuPair, v)->cdr) all[given++] = pu_dup(PU_AS(PuPair, v)->car);
    *spread_count = total;
    return all;
}

Value pu_apply(const Value *arguments, int count) {
    int total;
    Value *all = spread(arguments, count, &total);
    if (!all) return PU_FAILURE;
    Value result = pu_call(arguments[0], all, total, 0);
    free(all);
    return result;
}

Value pu_apply_tail(const Value *arguments, int count) {
    int total;
    Value *all = spread(arguments, count, &total);
    if (!all) return PU_FAILURE;
    Value result = pu_call_tail(pu_dup(arguments[0]), all, total, 0);
    free(all);
    return result;
}

Value pu_new_values(Value *items, int count) {
    if (count == 1) return items[0];
    PuVector *values = pu_allocate(PU_VALUES, sizeof(PuVector) + (size_t)count * sizeof(Value));
    values->count = count;
    for (int i = 0; i < count; i++) values->items[i] = items[i];
    return pu_of_object(values);
}

/* Owns the values: a bundle that nobody else holds becomes the vector. */
Value pu_values_to_vector(Value v, Value count) {
    bool several = pu_is(v, PU_VALUES);
    int64_t wanted = pu_int(count), got = several ? PU_AS(PuVector, v)->count : 1;
    bool open = wanted < 0;
    if (open) wanted = -wanted - 1;
    if (open ? got < wanted : got != wanted) {
        pu_drop(v);
        return pu_fail("arity", "expected %s%lld value%s, got %lld", open ? "at least " : "", (long long)wanted,
                       wanted == 1 ? "" : "s", (long long)got);
    }
    if (!several) return pu_vector(&v, 1);
    PuVector *bundle = PU_AS(PuVector, v);
    if (pu_is_unique(v)) {
        bundle->head = (bundle->head & ~(0xFFull << 56)) | (uint64_t)PU_VECTOR << 56;
        return v;
    }
    pu_dup_all(bundle->items, got);
    Value copy = pu_vector(bundle->items, (int)got);
    pu_drop(v);
    return copy;
}
