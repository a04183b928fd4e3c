/* What the program's literals become when it starts. */
#include "purple_all.h"

#include <stdlib.h>

static Value made(const PuStep *step, Value *items, const Value *constant) {
    switch (step->what) {
    case 'i': return pu_of_int(step->number);
    case 'n': return pu_numeral(step->text, (size_t)step->number);
    case 'f': return pu_of_float(strtod(step->text, NULL));
    case 's': return pu_string(step->text, step->number);
    case 'y': return pu_intern_bytes(PU_SYMBOL, step->text, step->number);
    case 'k': return pu_intern_bytes(PU_KEYWORD, step->text, step->number);
    case 'c': return pu_of_char((uint32_t)step->number);
    case '@': return pu_dup(constant[step->number]);
    case '(': return pu_list_onto(items, step->number, items[step->number]);
    case 'b': return pu_bytes(step->text, step->number);
    case '#': return pu_vector(items, (int)step->number);
    default: return (Value)step->number;
    }
}

void pu_make_constants(const PuStep *steps, size_t count, Value *constant) {
    Value *stack = pu_get_memory(count * sizeof(Value)), *next = constant;
    size_t height = 0;
    for (const PuStep *step = steps; step < steps + count; step++) {
        if (step->what == '=') {
            *next++ = stack[--height];
            continue;
        }
        if (step->what == '(') height -= (size_t)step->number + 1;
        if (step->what == '#') height -= (size_t)step->number;
        stack[height] = made(step, stack + height, constant);
        height++;
    }
    free(stack);
}
