/* Integers of any size, for the runtime's own use: magnitudes in limbs of 32 bits, the least significant first. */
#ifndef PURPLE_WHOLES_H
#define PURPLE_WHOLES_H

#include "purple_all.h"

enum { PU_MOST_LIMBS = PU_MOST_BITS / 32 };

/* Any integer as a sign and limbs; those of a small one are in `own`. */
typedef struct { bool negative; int64_t count; const uint32_t *limbs; uint32_t own[2]; } Whole;

void pu_view(Value integer, Whole *whole);
Value pu_of_limbs(bool negative, const uint32_t *limbs, int64_t count); /* fails beyond PU_MOST_BITS */
int64_t pu_bits_of(const Whole *whole);

/* limbs.c: `result` has room for both counts, and is none of the operands. */
void pu_multiply_limbs(uint32_t *result, const uint32_t *a, int64_t n, const uint32_t *b, int64_t m);
/* a = a / b; `rest`, where it is not NULL, has room for m limbs. The quotient has n - m + 1. */
void pu_divide_limbs(uint32_t *quotient, uint32_t *rest, const uint32_t *a, int64_t n, const uint32_t *b, int64_t m);
uint32_t pu_divide_limbs_small(uint32_t *limbs, int64_t count, uint32_t divisor); /* in place; gives the rest */

#endif
