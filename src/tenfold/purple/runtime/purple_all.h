/* Everything that a compiled program includes: the values, and the primitives by family. A primitive borrows its
   arguments; PU_ABSENT stands for an optional one that is not given. `constructors` own what they are given. */
#ifndef PURPLE_ALL_H
#define PURPLE_ALL_H

#include "purple.h"

#include <math.h>

#define PU_STATIC(kind) (((uint64_t)(kind) << 56) | PU_IMMORTAL)

struct PuBuffer;

/* memory.c */
void *pu_get_memory(size_t bytes);
bool pu_has_memory(size_t bytes); /* whether so much can be had at once: a large size that a program asks for */
Value pu_weak_to(Value target);
Value pu_weak_target(Value held);
int64_t pu_end_memory(void);

/* program.c */
int pu_main(int count, char **arguments, void (*setup)(void), bool (*run)(void), void (*leave)(void));

/* calls.c */
void pu_in_call(Value function, const char *file, int line, int column, int width) PU_COLD;
Value pu_tail_at(Value result, const char *file, int line, int column, int width);
Value pu_tail_given(Value result); /* of what the library was given */
Value pu_tail_in(Value result, const char *function, const char *file, int line, int column, int width);
Value pu_wrong_count(const PuFunction *function, Value *arguments, int count, int keywords); /* owns them */
Value pu_primitive_arity(const char *name, const char *signature, int minimum, int most, int count);
Value pu_unknown_keyword(const char *name, const char *signature, const char *keyword);
bool pu_primitive_fits(const PuFunction *function, int most, Value *arguments, int count, int keywords);
void pu_drop_all(Value *values, int64_t count);
void pu_drop_given(Value *arguments, int count, int keywords); /* what a call gives: all but its keywords, constants */
void pu_dup_all(const Value *values, int64_t count);
Value pu_apply(const Value *arguments, int count);
Value pu_apply_tail(const Value *arguments, int count);
Value pu_procedure_arity(Value procedure);
bool pu_is_procedure(Value v);
Value pu_new_values(Value *items, int count); /* owns them */
Value pu_values_to_vector(Value v, Value count);

/* Globals, cells and late variables */
static inline Value pu_load(Value global, const char *name) {
    return PU_LIKELY(global != 0) ? pu_dup(global) : pu_fail("unbound", "%s is used before its definition", name);
}
/* Those that end in `_of` give what someone else goes on holding: nobody releases it. */
static inline Value pu_load_of(Value global, const char *name) {
    return PU_LIKELY(global != 0) ? global : pu_fail("unbound", "%s is used before its definition", name);
}
static inline void pu_store(Value *global, Value v) {
    Value old = *global;
    *global = v;
    if (old) pu_drop(old);
}
static inline void pu_forget(Value *global) {
    Value old = *global;
    *global = 0;
    if (old) pu_drop(old);
}
static inline Value pu_defined(Value v, const char *name) {
    return v != PU_UNDEFINED ? PU_UNSPECIFIED : pu_fail("unbound", "%s is used before its definition", name);
}

/* excerpt.c */
void pu_show_line(const PuPlace *place);
void pu_defined_at(const char *name, const char *signature, PuPlace place); /* what the error used wrongly */

/* errors.c */
Value pu_error(const Value *arguments, int count);
Value pu_raise(Value v);
bool pu_is_error(Value v);
Value pu_error_message(Value v);
Value pu_error_place(Value v);
Value pu_error_kind(Value v);
Value pu_error_irritants(Value v);
Value pu_match_failed(Value v);
Value pu_fail_as(Value kind, Value message);
void pu_report(void);
void pu_put_brief(struct PuBuffer *buffer, Value v);
void pu_put_kind(struct PuBuffer *buffer, const char *kind);
Value pu_fail_text(const char *kind, struct PuBuffer *text); /* frees the text */
Value pu_out_of_range(const char *primitive, int64_t index, int64_t length);

/* wholes.c: integers, of any size up to this; beyond, an operation overflows */
enum { PU_MOST_BITS = 1 << 22 };
Value pu_whole_add(Value a, Value b);
Value pu_whole_subtract(Value a, Value b);
Value pu_whole_multiply(Value a, Value b);
Value pu_whole_product(Value a, Value b); /* of any length: never fails */
Value pu_scaled(Value a, int64_t by);     /* likewise */
Value pu_whole_divide(Value a, Value b, Value *rest); /* truncates; the rest is owned, or not wanted */
Value pu_whole_bits(Value a, Value b, char operation);
Value pu_whole_shift(Value a, int64_t by);
Value pu_whole_root(Value a);
Value pu_whole_read(const char *digits, size_t length, int radix, bool negative);
char *pu_whole_text(Value a, int radix, size_t *length);
int pu_whole_compare(Value a, Value b);
bool pu_whole_is_negative(Value a);

/* exact.c: integers and ratios */
Value pu_ratio(Value over, Value under);
Value pu_fresh(Value v);
Value pu_exact_operation(char operation, Value a, Value b);
int pu_exact_compare(Value a, Value b);
Value pu_floor_divide(Value a, Value b, Value *rest);
Value pu_exact_round(Value v, char how);
Value pu_exact_power(Value base, int64_t exponent);
double pu_exact_double(Value v);
Value pu_double_exact(double x);

/* numerals.c */
Value pu_numeral(const char *word, size_t length); /* a literal that the compiler has read */
Value pu_string_to_number(Value text, Value radix);
Value pu_number_to_string(Value number, Value radix);
bool pu_looks_like_number(const char *word, size_t length);

/* numbers.c */
bool pu_overflowed(void);
static inline bool pu_int_add(int64_t a, int64_t b, int64_t *r) {
    return PU_LIKELY(!__builtin_add_overflow(a, b, r)) || pu_overflowed();
}
static inline bool pu_int_subtract(int64_t a, int64_t b, int64_t *r) {
    return PU_LIKELY(!__builtin_sub_overflow(a, b, r)) || pu_overflowed();
}
static inline bool pu_int_multiply(int64_t a, int64_t b, int64_t *r) {
    return PU_LIKELY(!__builtin_mul_overflow(a, b, r)) || pu_overflowed();
}
bool pu_int_quotient(int64_t a, int64_t b, int64_t *r);
bool pu_int_remainder(int64_t a, int64_t b, int64_t *r);
bool pu_int_modulo(int64_t a, int64_t b, int64_t *r);
Value pu_add_slow(Value a, Value b);
Value pu_subtract_slow(Value a, Value b);
Value pu_compare_slow(const char *name, Value a, Value b);
/* The result of an operation on fixnums. It tells C compilers what they need to drop the tests that follow: neither
   operand is an object to release, and the operation did not fail. */
static inline Value pu_of_fixnums(Value a, Value b, int64_t result) {
    if (pu_is_object(a) || pu_is_object(b) || !result) __builtin_unreachable();
    return (Value)result;
}
static inline Value pu_add(Value a, Value b) {
    int64_t r;
    if (PU_LIKELY(pu_is_fixnum(a) && pu_is_fixnum(b) && !__builtin_add_overflow((int64_t)a, (int64_t)(b - 1), &r)))
        return pu_of_fixnums(a, b, r);
    return pu_add_slow(a, b);
}
static inline Value pu_subtract(Value a, Value b) {
    int64_t r;
    if (PU_LIKELY(pu_is_fixnum(a) && pu_is_fixnum(b) && !__builtin_sub_overflow((int64_t)a, (int64_t)(b - 1), &r)))
        return pu_of_fixnums(a, b, r);
    return pu_subtract_slow(a, b);
}
#define PU_COMPARE(function, name, sign)                                                             \
    static inline Value function(Value a, Value b) {                                                 \
        if (PU_LIKELY(a & b & 1)) {                                                                  \
            return pu_of_fixnums(a, b, (int64_t)pu_of_bool((int64_t)a sign (int64_t)b));             \
        }                                                                                            \
        return pu_compare_slow(name, a, b);                                                          \
    }
PU_COMPARE(pu_less, "<", <)
PU_COMPARE(pu_greater, ">", >)
PU_COMPARE(pu_not_greater, "<=", <=)
PU_COMPARE(pu_not_less, ">=", >=)
PU_COMPARE(pu_same_number, "=", ==)
Value pu_multiply_slow(Value a, Value b);
static inline Value pu_multiply(Value a, Value b) {
    int64_t r;
    if (PU_LIKELY(pu_is_fixnum(a) && pu_is_fixnum(b) && !__builtin_mul_overflow((int64_t)(a - 1), pu_fixnum(b), &r)))
        return pu_of_fixnums(a, b, r + 1);
    return pu_multiply_slow(a, b);
}
Value pu_divide(Value a, Value b);
Value pu_add_many(const Value *v, int n);
Value pu_subtract_many(const Value *v, int n);
Value pu_multiply_many(const Value *v, int n);
Value pu_divide_many(const Value *v, int n);
Value pu_less_many(const Value *v, int n);
Value pu_greater_many(const Value *v, int n);
Value pu_not_greater_many(const Value *v, int n);
Value pu_not_less_many(const Value *v, int n);
Value pu_same_number_many(const Value *v, int n);
Value pu_min(Value a, Value b);
Value pu_max(Value a, Value b);
Value pu_min_many(const Value *v, int n);
Value pu_max_many(const Value *v, int n);
Value pu_quotient_slow(Value a, Value b);
Value pu_remainder_slow(Value a, Value b);
Value pu_modulo_slow(Value a, Value b);
/* Of fixnums by one above 0 nothing can overflow. */
static inline Value pu_quotient(Value a, Value b) {
    if (PU_LIKELY((a & b & 1) && (int64_t)b > 1)) return pu_of_fixnum(pu_fixnum(a) / pu_fixnum(b));
    return pu_quotient_slow(a, b);
}
static inline Value pu_remainder(Value a, Value b) {
    if (PU_LIKELY((a & b & 1) && (int64_t)b > 1)) return pu_of_fixnum(pu_fixnum(a) % pu_fixnum(b));
    return pu_remainder_slow(a, b);
}
static inline Value pu_modulo(Value a, Value b) {
    if (PU_LIKELY((a & b & 1) && (int64_t)b > 1)) {
        int64_t r = pu_fixnum(a) % pu_fixnum(b);
        return pu_of_fixnum(r < 0 ? r + pu_fixnum(b) : r);
    }
    return pu_modulo_slow(a, b);
}
Value pu_expt(Value a, Value b);
Value pu_exp(Value a);
Value pu_log(Value a, Value base);
Value pu_sin(Value a);
Value pu_cos(Value a);
Value pu_tan(Value a);
Value pu_asin(Value a);
Value pu_acos(Value a);
Value pu_atan(Value y, Value x);
Value pu_sqrt(Value a);
Value pu_floor(Value a);
Value pu_ceiling(Value a);
Value pu_round(Value a);
Value pu_truncate(Value a);
Value pu_abs(Value a);
Value pu_to_int(Value a);
Value pu_exact(Value a);
Value pu_numerator(Value a);
Value pu_denominator(Value a);
Value pu_integer_root(Value a);
bool pu_is_exact_rational(Value v);
double pu_double(Value v); /* of any number */
bool pu_take_int(const char *name, Value v, int64_t *out); /* a count, an index or a size: fails where it is none */
Value pu_too_wide(const char *name, Value v);
Value pu_to_float(Value a);
bool pu_is_number(Value v);
bool pu_is_exact_integer(Value v);
bool pu_is_float_number(Value v);
Value pu_bitwise_and(Value a, Value b);
Value pu_bitwise_or(Value a, Value b);
Value pu_bitwise_xor(Value a, Value b);
Value pu_arithmetic_shift(Value a, Value count);
Value pu_number_to_fixed(Value a, Value digits);
/* Integers that 64 bits hold, and integers of any size. */
static inline bool pu_is_int(Value v) { return pu_is_fixnum(v) || pu_is(v, PU_INT); }
static inline bool pu_is_integer(Value v) { return pu_is_int(v) || pu_is(v, PU_BIG); }
static inline int pu_compare_integers(Value a, Value b) {
    if (PU_LIKELY(a & b & 1)) return ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);
    return pu_whole_compare(a, b);
}
static inline int pu_compare_with_int(Value a, int64_t b) {
    if (PU_LIKELY(pu_is_fixnum(a))) return (pu_fixnum(a) > b) - (pu_fixnum(a) < b);
    if (pu_is(a, PU_INT)) return (pu_int(a) > b) - (pu_int(a) < b);
    return PU_AS(PuBig, a)->negative ? -1 : 1;
}
/* An integer of any size, and one of 64 bits. */
Value pu_operation_with_int(char operation, Value a, int64_t b);
static inline Value pu_add_int(Value a, int64_t b) {
    int64_t twice, r; /* as the tag has it */
    if (PU_LIKELY(pu_is_fixnum(a) && !__builtin_mul_overflow(b, 2, &twice) && !__builtin_add_overflow((int64_t)a, twice, &r)))
        return pu_of_fixnums(a, a, r);
    return pu_operation_with_int('+', a, b);
}
static inline Value pu_subtract_int(Value a, int64_t b) {
    int64_t twice, r; /* as the tag has it */
    if (PU_LIKELY(pu_is_fixnum(a) && !__builtin_mul_overflow(b, 2, &twice) && !__builtin_sub_overflow((int64_t)a, twice, &r)))
        return pu_of_fixnums(a, a, r);
    return pu_operation_with_int('-', a, b);
}
static inline Value pu_multiply_int(Value a, int64_t b) {
    int64_t r;
    if (PU_LIKELY(pu_is_fixnum(a) && !__builtin_mul_overflow((int64_t)(a - 1), b, &r)))
        return pu_of_fixnums(a, a, r + 1);
    return pu_operation_with_int('*', a, b);
}
/* The same where operands die with the operation: fixnums, which are no objects, need no release. An operation that
   fails releases nothing. */
Value pu_taken(Value result, Value a, Value b) __attribute__((noinline));
#define PU_TAKING(name, overflows, more)                                                                    \
    static inline Value pu_##name##_taking(Value a, Value b, Value dead, Value dead_too) {                  \
        int64_t sum;                                                                                        \
        if (PU_LIKELY(pu_is_fixnum(a) && pu_is_fixnum(b) && !overflows))                                    \
            return pu_of_fixnums(a, b, sum + more);                                                         \
        return pu_taken(pu_##name##_slow(a, b), dead, dead_too);                                            \
    }
PU_TAKING(add, __builtin_add_overflow((int64_t)a, (int64_t)(b - 1), &sum), 0)
PU_TAKING(subtract, __builtin_sub_overflow((int64_t)a, (int64_t)(b - 1), &sum), 0)
PU_TAKING(multiply, __builtin_mul_overflow((int64_t)(a - 1), pu_fixnum(b), &sum), 1)
#define PU_TAKING_INT(name, sign)                                                                           \
    static inline Value pu_##name##_int_taking(Value a, int64_t b) {                                        \
        int64_t twice, sum;                                                                                 \
        if (PU_LIKELY(pu_is_fixnum(a) && !__builtin_mul_overflow(b, 2, &twice) &&                           \
                      !__builtin_##sign##_overflow((int64_t)a, twice, &sum)))                               \
            return pu_of_fixnums(a, a, sum);                                                                \
        return pu_taken(pu_##name##_int(a, b), a, PU_NIL);                                                  \
    }
PU_TAKING_INT(add, add)
PU_TAKING_INT(subtract, sub)
Value pu_wide_operation(char operation, int64_t a, int64_t b);
static inline Value pu_wide_add(int64_t a, int64_t b) {
    int64_t r;
    return PU_LIKELY(!__builtin_add_overflow(a, b, &r)) ? pu_of_int(r) : pu_wide_operation('+', a, b);
}
static inline Value pu_wide_subtract(int64_t a, int64_t b) {
    int64_t r;
    return PU_LIKELY(!__builtin_sub_overflow(a, b, &r)) ? pu_of_int(r) : pu_wide_operation('-', a, b);
}
static inline Value pu_wide_multiply(int64_t a, int64_t b) {
    int64_t r;
    return PU_LIKELY(!__builtin_mul_overflow(a, b, &r)) ? pu_of_int(r) : pu_wide_operation('*', a, b);
}

/* The operand itself: where one is compared with itself, compilers would warn. */
static inline int64_t pu_same_int(int64_t n) { return n; }
static inline double pu_same_float(double x) { return x; }
static inline Value pu_same_value(Value v) { return v; }

/* equality.c */
bool pu_is_eq_object(Value a, Value b);
static inline bool pu_is_eq(Value a, Value b) {
    return a == b || (pu_is_object(a) && pu_is_object(b) && pu_is_eq_object(a, b));
}
bool pu_is_equal(Value a, Value b);
uint64_t pu_hash(Value v);
static inline bool pu_is_boolean(Value v) { return v == PU_TRUE || v == PU_FALSE; }

/* lists.c */
static inline bool pu_is_pair(Value v) { return pu_is(v, PU_PAIR); }
static inline bool pu_is_null(Value v) { return v == PU_NIL; }
static inline Value pu_check_pair(Value v, const char *part) {
    return PU_LIKELY(pu_is(v, PU_PAIR)) ? PU_UNSPECIFIED : pu_refuse(part, "pair", v);
}
/* A list built from its front: `hole` is where its rest goes. */
static inline Value pu_extend_in(Value cell, Value **hole, Value item) {
    Value pair = pu_cons_in(cell, item, PU_NIL);
    **hole = pair;
    *hole = &PU_AS(PuPair, pair)->cdr;
    return PU_UNSPECIFIED;
}
static inline Value pu_extend(Value **hole, Value item) { return pu_extend_in(0, hole, item); }
bool pu_is_list(Value v);
Value pu_list(Value *items, int count);                                 /* owns them */
static inline Value pu_list2(Value a, Value b) { return pu_cons(a, pu_cons(b, PU_NIL)); } /* likewise */
static inline Value pu_list3(Value a, Value b, Value c) { return pu_cons(a, pu_list2(b, c)); }
Value pu_list_onto(Value *items, int64_t count, Value tail);            /* owns them */
Value pu_caar(Value v);
Value pu_cadr(Value v);
Value pu_cdar(Value v);
Value pu_cddr(Value v);
Value pu_caddr(Value v);
Value pu_set_car(Value pair, Value v);
Value pu_set_cdr(Value pair, Value v);
Value pu_length(Value list);
Value pu_append(const Value *lists, int count);
Value pu_reverse(Value list);
Value pu_reverse_taking(Value list, bool unique); /* owns it; `unique`: that nothing else holds a pair is proved */
Value pu_list_ref(Value list, Value index);
Value pu_list_tail(Value list, Value index);
Value pu_list_drop(Value list, Value count);
Value pu_list_take(Value list, Value count);
Value pu_vector(Value *items, int count);                               /* owns them */
Value pu_make_vector(Value count, Value fill);
bool pu_is_vector(Value v);
Value pu_vector_length(Value v);
Value pu_vector_ref(Value v, Value index);
Value pu_vector_ref_refused(Value v, Value index); /* or big integers as indices */
static inline Value pu_vector_ref_of(Value v, Value index) {
    if (PU_LIKELY(pu_is(v, PU_VECTOR) && pu_is_fixnum(index) &&
                  (uint64_t)pu_fixnum(index) < (uint64_t)PU_AS(PuVector, v)->count))
        return PU_AS(PuVector, v)->items[pu_fixnum(index)];
    return pu_vector_ref_refused(v, index);
}
Value pu_list_ref_of(Value list, Value index);
Value pu_list_tail_of(Value list, Value index);
Value pu_list_drop_of(Value list, Value count);
Value pu_unbox_of(Value v);
#define PU_TWO_STEPS(name, first, second)                                                       \
    Value pu_##name##_refused(Value v);                                                         \
    static inline Value pu_##name##_of(Value v) {                                               \
        if (PU_LIKELY(pu_is(v, PU_PAIR) && pu_is(PU_AS(PuPair, v)->first, PU_PAIR)))             \
            return PU_AS(PuPair, PU_AS(PuPair, v)->first)->second;                               \
        return pu_##name##_refused(v);                                                          \
    }
PU_TWO_STEPS(caar, car, car)
PU_TWO_STEPS(cadr, cdr, car)
PU_TWO_STEPS(cdar, car, cdr)
PU_TWO_STEPS(cddr, cdr, cdr)
Value pu_caddr_refused(Value v);
static inline Value pu_caddr_of(Value v) {
    Value rest = pu_is(v, PU_PAIR) ? PU_AS(PuPair, v)->cdr : PU_NIL;
    Value last = pu_is(rest, PU_PAIR) ? PU_AS(PuPair, rest)->cdr : PU_NIL;
    return PU_LIKELY(pu_is(last, PU_PAIR)) ? PU_AS(PuPair, last)->car : pu_caddr_refused(v);
}
Value pu_vector_set_refused(Value v, Value index, Value item); /* or big integers as indices */
static inline Value pu_vector_set(Value v, Value index, Value item) {   /* owns the item */
    if (PU_UNLIKELY(!pu_is(v, PU_VECTOR) || !pu_is_fixnum(index) ||
                    (uint64_t)pu_fixnum(index) >= (uint64_t)PU_AS(PuVector, v)->count))
        return pu_vector_set_refused(v, index, item);
    Value *slot = &PU_AS(PuVector, v)->items[pu_fixnum(index)], old = *slot;
    *slot = item;
    if (pu_is_object(item)) pu_mutated(v, item);
    pu_drop(old);
    return PU_UNSPECIFIED;
}
Value pu_vector_to_list(Value v, Value start, Value end);
Value pu_list_to_vector(Value list);
Value pu_new_box(Value content);                                        /* owns it */
bool pu_is_box(Value v);
Value pu_unbox(Value v);
Value pu_set_box(Value v, Value content);

/* records.c */
Value pu_record(const PuType *type, Value *fields);                     /* owns all but weak ones */
Value pu_record_in(Value cell, const PuType *type, Value *fields);      /* owns the cell too */
Value pu_check_field(const PuType *type, int index, Value v);
Value pu_field(const PuType *type, int index, Value record);
Value pu_field_refused(const PuType *type, int index, Value record);
Value pu_set_field(const PuType *type, int index, Value record, Value v);
static inline bool pu_is_record(const PuType *type, Value v) {
    return pu_is(v, PU_RECORD) && PU_AS(PuRecord, v)->type == type;
}
static inline Value pu_field_known(int index, Value record) { return pu_part(PU_AS(PuRecord, record)->fields[index]); }
static inline Value pu_field_of(const PuType *type, int index, Value record) {
    return PU_LIKELY(pu_is_record(type, record)) ? PU_AS(PuRecord, record)->fields[index]
                                                 : pu_field_refused(type, index, record);
}

/* tables.c */
typedef struct { Value key, value; uint64_t hash; } PuEntry;
typedef struct { uint64_t head; int64_t count, used, room; PuEntry *entries; int64_t *index; } PuTable;
void pu_table_clear(PuTable *table);
Value pu_make_hash_table(void);
bool pu_is_hash_table(Value v);
Value pu_hash_table_ref(Value table, Value key, Value otherwise);
Value pu_hash_table_set(Value table, Value key, Value v);
Value pu_hash_table_delete(Value table, Value key);
Value pu_is_hash_table_contains(Value table, Value key);
Value pu_hash_table_count(Value table);
Value pu_hash_table_to_list(Value table);

/* literals.c: a program's literals are made by a machine with a stack, which each step takes its parts from. */
typedef struct {
    char what;      /* i integer, n one of any size or a ratio, f float, s string, b bytevector, y symbol, k keyword, c character, v the Value in `number`,
                       @ constant[number], ( list of so many items and a tail, # vector, = the next constant */
    int64_t number; /* the integer, character or Value; how many bytes of text, or items */
    const char *text;
} PuStep;
void pu_make_constants(const PuStep *steps, size_t count, Value *constant);

/* bytes.c */
Value pu_bytes(const void *bytes, int64_t count);
bool pu_range(const char *name, Value start, Value end, int64_t length, int64_t *from, int64_t *to);
bool pu_is_bytevector(Value v);
Value pu_bytevector(const Value *items, int count);
Value pu_make_bytevector(Value count, Value fill);
Value pu_bytevector_length(Value v);
Value pu_bytevector_u8_ref(Value v, Value index);
Value pu_bytevector_u8_set(Value v, Value index, Value byte);
Value pu_bytevector_copy(Value v, Value start, Value end);
Value pu_bytevector_append(const Value *v, int n);
Value pu_utf8_to_string(Value v, Value start, Value end);
Value pu_string_to_utf8(Value v, Value start, Value end);

/* text.c */
int64_t pu_offset(const PuString *string, int64_t character); /* the byte at which a character begins */
Value pu_string(const char *text, int64_t bytes);
Value pu_intern(PuKind kind, const char *name);
Value pu_intern_bytes(PuKind kind, const char *name, int64_t bytes);
void pu_end_symbols(void);
int pu_decode(const char *text, uint32_t *code);

/* characters.c */
Value pu_is_char_alphabetic(Value v);
Value pu_is_char_numeric(Value v);
Value pu_is_char_whitespace(Value v);
Value pu_is_char_upper_case(Value v);
Value pu_is_char_lower_case(Value v);
Value pu_digit_value(Value v);
Value pu_char_upcase(Value v);
Value pu_char_downcase(Value v);
Value pu_char_foldcase(Value v);
Value pu_string_upcase(Value v);
Value pu_string_downcase(Value v);
Value pu_string_foldcase(Value v);

int pu_encode(uint32_t code, char *text);
bool pu_is_utf8(const char *text, int64_t bytes);
static inline bool pu_is_symbol(Value v) { return pu_is(v, PU_SYMBOL); }
static inline bool pu_is_keyword(Value v) { return pu_is(v, PU_KEYWORD); }
static inline bool pu_is_character(Value v) { return pu_is_char(v); }
static inline bool pu_is_string(Value v) { return pu_is(v, PU_STRING); }
Value pu_symbol_to_string(Value v);
Value pu_string_to_symbol(Value v);
Value pu_keyword_to_string(Value v);
Value pu_string_to_keyword(Value v);
Value pu_char_to_integer(Value v);
Value pu_integer_to_char(Value v);
Value pu_string_length(Value v);
Value pu_string_ref(Value v, Value index);
Value pu_substring(Value v, Value start, Value end);
Value pu_string_append(const Value *v, int n);
Value pu_string_same(Value a, Value b);
Value pu_string_same_many(const Value *v, int n);
Value pu_string_less_many(const Value *v, int n);
Value pu_string_less(Value a, Value b);
Value pu_string_to_list(Value v, Value start, Value end);
Value pu_list_to_string(Value v);
Value pu_string_search(Value wanted, Value text, Value start);

/* print.c */
typedef struct PuBuffer { char *text; size_t length, room; } PuBuffer;
void pu_put(PuBuffer *buffer, const char *text, size_t length);
void pu_put_code(PuBuffer *buffer, uint32_t code);
void pu_put_text(PuBuffer *buffer, const char *text);
void pu_put_value(PuBuffer *buffer, Value v, bool written);
void pu_put_value_start(PuBuffer *buffer, Value v, bool written, size_t most); /* about so many bytes of it */
void pu_put_double(PuBuffer *buffer, double number);
Value pu_display(const Value *v, int n);
Value pu_write(Value v, Value port);
Value pu_write_shared(Value v, Value port);
Value pu_send_text(Value string, Value port);
bool pu_is_port(Value v);
Value pu_print(const Value *v, int n);
Value pu_newline(Value port);
Value pu_display_to_string(Value v);
Value pu_write_to_string(Value v);

/* ports.c */
Value pu_send(const char *name, Value port, const char *text, size_t length);
Value pu_output_port(void);
Value pu_set_output(Value port);
Value pu_open_output(Value path, Value mode);
Value pu_close_output(Value handle);
Value pu_flush_output(Value handle);
Value pu_send_byte(Value byte, Value port);
Value pu_read_bytes(Value path);
Value pu_console_line(void);
void pu_end_ports(void);

/* system.c */
Value pu_complain(Value text);
Value pu_read_file(Value path);
Value pu_write_file(Value path, Value text);
Value pu_append_file(Value path, Value text);
Value pu_is_file_exists(Value path);
Value pu_delete_file(Value path);
Value pu_command_line(void);
Value pu_environment(void);
Value pu_seconds(void);
Value pu_getenv(Value name);
Value pu_clock(void);
Value pu_exit_program(Value status);
bool pu_foreign_int(const char *name, Value v, bool owned, int64_t *out);
bool pu_foreign_int32(const char *name, Value v, bool owned, int32_t *out);
bool pu_foreign_float(const char *name, Value v, bool owned, double *out);
bool pu_foreign_float32(const char *name, Value v, bool owned, float *out);
bool pu_foreign_bool(const char *name, Value v, bool owned, bool *out);
bool pu_foreign_string(const char *name, Value v, bool owned, const char **out);
bool pu_foreign_pointer(const char *name, Value v, bool owned, void **out);
Value pu_from_string(const char *name, const char *text, bool owned);
Value pu_from_pointer(const char *name, void *address, bool owned);

/* random.c */
Value pu_manual_seed(Value seed);
Value pu_random(Value below);
uint64_t pu_next_word(void);
double pu_next_uniform(void);
void pu_next_normals(double *first, double *second);

/* tensors.c, linked by programs that use tensors; the others never have one */
typedef struct { uint64_t head; void *handle; const char *maker; } PuTensor;
typedef struct {
    void (*release)(PuObject *object);
    Value (*arithmetic)(const char *name, Value a, Value b);
    Value (*negate)(Value a);
    bool (*truth)(Value v, bool *truth);
    bool (*alike)(Value a, Value b);
    void (*put)(PuBuffer *buffer, Value v);
    Value (*call)(Value module, Value *arguments, int count);
    int64_t (*end)(void); /* how many tensors are left */
} PuTensorHooks;
extern const PuTensorHooks *pu_tensor_hooks;
static inline bool pu_is_tensor(Value v) { return pu_is(v, PU_TENSOR); }
/* What `if` asks: a tensor of one element is true unless it is 0, one of several is an error. */
static inline bool pu_truth(Value v, bool *truth) {
    if (PU_UNLIKELY(pu_is_tensor(v))) return pu_tensor_hooks->truth(v, truth);
    *truth = pu_truthy(v);
    return true;
}
static inline Value pu_not(Value v) {
    bool truth;
    return pu_truth(v, &truth) ? pu_of_bool(!truth) : PU_FAILURE;
}

#endif
