/* What the two halves of calling an operator share: the choice of an overload (rows.c) and its arguments (row_stack.c). */
#ifndef ROWS_H
#define ROWS_H

#include "purple_tensors.h"

enum { MOST = 32 }; /* arguments of an operator */

/* Where each argument of an overload comes from: a value, or 0 for its default. A list that is spread over a call's last
   arguments has their number. */
typedef struct { Value given[MOST]; const Value *spread; int spread_count, spread_at; bool numbers; } Match;

/* The elements of a list or vector; `count` is -1 where it is neither. A few need no memory of their own. */
typedef struct { int64_t count; Value *at, few[16]; } Items;

bool pu_is_sequence(Value v);
void pu_take_items(Value v, Items *items);
void pu_give_items_back(Value v, Items *items);
bool pu_is_reduction(const PuRowArgument *argument, Value v);
bool pu_is_placed(const PuOverload *overload);
bool pu_push_argument(tn_stack *stack, const PuRowArgument *argument, Value v, const Match *found, int i, bool placing);
Value pu_results(tn_stack *stack, const char *maker); /* those that a call left there */
Value pu_of_value(tn_value *value, const char *maker);

#endif
