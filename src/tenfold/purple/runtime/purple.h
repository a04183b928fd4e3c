/* The values of compiled Purple programs, and what every generated function uses: tags, counts, calls and errors.
   A Value is one word. Odd words are integers of 63 bits; words that end in 010 or 110 are immediates; the rest
   point to counted objects. The word 0 is no value: it says that a call failed and an error is pending.

   Ownership: a primitive borrows its arguments and its result is owned; a function owns its arguments. */
#ifndef PURPLE_H
#define PURPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where a program is wrong C compilers may see what an operand is before they see that it was refused, and warn of
   looking into it as if it were something else. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"

#ifdef PURPLE_INJECT
#define PURPLE_CHECK_UNIQUE
#endif

typedef uint64_t Value;

#define PU_FAILURE ((Value)0)
#define PU_NIL ((Value)0x02)
#define PU_FALSE ((Value)0x0A)
#define PU_TRUE ((Value)0x12)
#define PU_UNSPECIFIED ((Value)0x1A)
#define PU_UNDEFINED ((Value)0x22) /* a variable whose definition has not run */
#define PU_ABSENT ((Value)0x2A)    /* a keyword parameter that the call does not give */
#define PU_BOUNCE ((Value)0x32)    /* the call goes on in `pu.bounce` */

#define PU_LIKELY(x) __builtin_expect(!!(x), 1)
#define PU_UNUSED __attribute__((unused))
#define PU_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define PU_COLD __attribute__((cold)) /* kept away from what runs often, and compiled for size */

typedef enum {
    PU_PAIR = 1, PU_FLOAT, PU_INT, PU_STRING, PU_SYMBOL, PU_KEYWORD, PU_VECTOR, PU_BOX, PU_RECORD, PU_TABLE,
    PU_CLOSURE, PU_TENSOR, PU_ERROR, PU_VALUES, PU_POINTER, PU_MODULE, PU_WEAK, PU_BYTES,
    PU_BIG, PU_RATIO
} PuKind;

/* kind: 8 bits, flags: 8 bits, count: 48 bits. A dead object waiting for its release keeps the next one there. */
typedef struct { uint64_t head; } PuObject;
#define PU_COUNT 0x0000FFFFFFFFFFFFull
#define PU_IMMORTAL 0x0000400000000000ull
#define PU_SUSPECT (1ull << 48) /* was mutated to hold an object: it may be part of a cycle */
#define PU_WATCHED (1ull << 49) /* a weak field names it */

typedef struct { uint64_t head; Value car, cdr; } PuPair;
typedef struct { uint64_t head; double number; } PuFloat;
typedef struct { uint64_t head; int64_t number; } PuInt;
typedef struct { uint64_t head; int64_t count; bool negative; uint32_t limbs[]; } PuBig; /* 64 bits do not hold it */
typedef struct { uint64_t head; Value over, under; } PuRatio; /* integers, in lowest terms; under is above 1 */
typedef struct { uint64_t head; int64_t bytes, characters; char text[]; } PuString; /* NUL-terminated UTF-8 */
typedef struct { uint64_t head; uint64_t hash; int64_t bytes; char text[]; } PuSymbol;
typedef struct { uint64_t head; int64_t count; Value items[]; } PuVector; /* and PU_VALUES */
typedef struct { uint64_t head; int64_t count; uint8_t items[]; } PuBytes;
typedef struct { uint64_t head; Value content; } PuBox;
typedef struct { uint64_t head; void *address; } PuPointer;
typedef struct { uint64_t head; PuObject *target; } PuWeak;

typedef struct { const char *file; int line, column, width; } PuPlace;

typedef struct { const char *name; const char *type; bool weak; } PuField;
typedef struct { const char *name, *unique; int count; const PuField *fields; PuPlace place; } PuType;
typedef struct { uint64_t head; const PuType *type; Value fields[]; } PuRecord;

struct PuClosure;
/* A closure's code owns its arguments: `count` of them, then `keywords` pairs of a keyword, which is lent, and a value. */
typedef Value (*PuCode)(struct PuClosure *self, Value *arguments, int count, int keywords);
typedef struct { const char *name; bool required; } PuKeywordParameter;
typedef struct {
    const char *name;
    PuCode code;
    int required;
    bool rest;
    int keyword_count;
    const PuKeywordParameter *keywords;
    int captured;
    PuPlace place; /* nowhere for those of the library */
    const char *signature; /* as its author wrote it: (f x y) */
    bool of_library; /* a procedure of the library that programs call by its name */
} PuFunction;
typedef struct PuClosure { uint64_t head; const PuFunction *function; Value captured[]; } PuClosure;

typedef struct {
    uint64_t head;
    Value message, irritants, payload; /* payload: what `raise` was given, or 0 for an error of our own */
    const char *kind;
    PuPlace place;
    Value help; /* what to do about it, a string, or 0 */
    bool of_engine; /* its message is libtorch's */
    const char *defined, *signature; /* what was used wrongly, and how it is written */
    size_t blamed; /* the bytes before the message's colon that name what the library called by its own choice */
    PuPlace definition;
    struct PuTrace *trace;
} PuError;

enum { PU_MOST_ARGUMENTS = 64 };

/* All the state there is. */
typedef struct {
    PuError *pending;
    struct { Value closure; int count, keywords; Value *arguments; int room; PuPlace place; const char *name; bool given; } bounce;
    Value output; /* the port that output goes to, or 0 for the terminal */
    char *stack_limit;
    int64_t live_objects; /* in memory of their own, and places for small ones */
    int64_t inject_at, injected;
    int argument_count;
    char **arguments;
} PuState;
extern PuState pu;

/* Numbers of the tag */
#define PU_FIXNUM_MAX ((int64_t)0x3FFFFFFFFFFFFFFF)
#define PU_FIXNUM_MIN (-PU_FIXNUM_MAX - 1)
static inline bool pu_is_fixnum(Value v) { return v & 1; }
static inline int64_t pu_fixnum(Value v) { return (int64_t)v >> 1; }
static inline Value pu_of_fixnum(int64_t n) { return ((Value)n << 1) | 1; }
static inline bool pu_is_object(Value v) { return (v & 7) == 0; }
static inline PuObject *pu_object(Value v) { return (PuObject *)(uintptr_t)v; }
static inline Value pu_of_object(void *o) { return (Value)(uintptr_t)o; }
static inline PuKind pu_kind_of_object(Value v) { return (PuKind)(pu_object(v)->head >> 56); }
static inline bool pu_is(Value v, PuKind kind) { return pu_is_object(v) && pu_kind_of_object(v) == kind; }
static inline bool pu_truthy(Value v) { return v != PU_FALSE && v != PU_NIL; }
static inline Value pu_of_bool(bool b) { return b ? PU_TRUE : PU_FALSE; }
static inline bool pu_is_char(Value v) { return (v & 7) == 6; }
static inline uint32_t pu_char(Value v) { return (uint32_t)(v >> 8); }
static inline Value pu_of_char(uint32_t code) { return ((Value)code << 8) | 6; }

#define PU_AS(type, v) ((type *)(uintptr_t)(v))

/* Memory (memory.c) */
void pu_release(PuObject *object);
void pu_require_unique(const uint64_t *head); /* ends a program whose proof was wrong, in tests */
void *pu_allocate_large(PuKind kind, size_t bytes);
void pu_refill(size_t class_);
void pu_mutated(Value owner, Value stored);
extern PuObject *pu_free_lists[9];

#if defined(__SANITIZE_ADDRESS__)
#define PU_CHECKED_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PU_CHECKED_MEMORY 1
#endif
#endif

static inline void *pu_allocate(PuKind kind, size_t bytes) {
#ifndef PU_CHECKED_MEMORY
    size_t class_ = (bytes + 7) / 8;
    if (PU_LIKELY(class_ < 9)) {
        if (PU_UNLIKELY(!pu_free_lists[class_])) pu_refill(class_);
        PuObject *object = pu_free_lists[class_];
        pu_free_lists[class_] = (PuObject *)(uintptr_t)object->head;
        object->head = ((uint64_t)kind << 56) | 1;
        return object;
    }
#endif
    return pu_allocate_large(kind, bytes);
}

static inline Value pu_dup(Value v) {
    if (pu_is_object(v)) pu_object(v)->head++;
    return v;
}
static inline void pu_drop(Value v) {
    if (pu_is_object(v) && (--pu_object(v)->head & PU_COUNT) == 0) pu_release(pu_object(v));
}
void pu_drop_after_failure(Value v) PU_COLD; /* the same, where a failure leaves a function */
/* The certified end of a value that nothing else can hold: no count is looked at. */
static inline void pu_free_unique(Value v) {
    if (pu_is_object(v)) pu_release(pu_object(v));
}
static inline bool pu_is_unique(Value v) { return (pu_object(v)->head & PU_COUNT) == 1; }
/* A cell: the memory of something that died, for the next pair or record of its size; 0 is an empty one. */
void pu_give_back(void *object, size_t bytes);
static inline void pu_free_cell(Value cell, size_t bytes) {
    if (!cell) return;
#ifdef PU_CHECKED_MEMORY
    pu_give_back(pu_object(cell), bytes);
#else
    size_t class_ = bytes / 8;
    if (class_ >= 9) {
        pu_give_back(pu_object(cell), bytes);
        return;
    }
    pu_object(cell)->head = (uint64_t)(uintptr_t)pu_free_lists[class_];
    pu_free_lists[class_] = pu_object(cell);
#endif
}
static inline void *pu_allocate_in(Value cell, PuKind kind, size_t bytes) {
    if (PU_UNLIKELY(!cell)) return pu_allocate(kind, bytes);
    pu_object(cell)->head = ((uint64_t)kind << 56) | 1;
    return pu_object(cell);
}
/* Whether what dies here leaves its memory: nothing else holds it, and nobody keeps a note of it. */
static inline bool pu_leaves_cell(Value v) {
    return (pu_object(v)->head & (PU_COUNT | PU_SUSPECT | PU_WATCHED)) == 1;
}
/* The same of what is known to be a pair: one comparison with the head that `pu_cons` gave it. */
static inline bool pu_pair_leaves_cell(Value v) { return pu_object(v)->head == ((uint64_t)PU_PAIR << 56 | 1); }

/* Numbers that may not fit the tag */
Value pu_box_int(int64_t n);
static inline Value pu_of_int(int64_t n) {
    if (PU_LIKELY(n >= PU_FIXNUM_MIN && n <= PU_FIXNUM_MAX)) return pu_of_fixnum(n);
    return pu_box_int(n);
}
static inline int64_t pu_int(Value v) { return pu_is_fixnum(v) ? pu_fixnum(v) : PU_AS(PuInt, v)->number; }
static inline Value pu_of_float(double number) {
    PuFloat *f = pu_allocate(PU_FLOAT, sizeof(PuFloat));
    f->number = number;
    return pu_of_object(f);
}
static inline double pu_float(Value v) { return PU_AS(PuFloat, v)->number; }

/* Pairs, the one container whose cost shows */
static inline Value pu_cons_in(Value cell, Value car, Value cdr) { /* owns all */
    PuPair *pair = pu_allocate_in(cell, PU_PAIR, sizeof(PuPair));
    pair->car = car;
    pair->cdr = cdr;
    return pu_of_object(pair);
}
static inline Value pu_cons(Value car, Value cdr) { return pu_cons_in(0, car, cdr); } /* owns both */
Value pu_wrong_type(const char *primitive, const char *wanted, Value got) PU_COLD;
/* The same, so that C compilers see that what is refused goes no further. */
static inline Value pu_refuse(const char *primitive, const char *wanted, Value got) {
    pu_wrong_type(primitive, wanted, got);
    return PU_FAILURE;
}
/* A part, which is a value: C compilers need not test whether it is a failure. */
static inline Value pu_part(Value part) {
    if (!part) __builtin_unreachable();
    return part;
}
/* Parts that are only looked at while the pair lives: not shared. */
static inline Value pu_car_of(Value v) {
    return PU_LIKELY(pu_is(v, PU_PAIR)) ? pu_part(PU_AS(PuPair, v)->car) : pu_refuse("car", "pair", v);
}
static inline Value pu_cdr_of(Value v) {
    return PU_LIKELY(pu_is(v, PU_PAIR)) ? pu_part(PU_AS(PuPair, v)->cdr) : pu_refuse("cdr", "pair", v);
}
/* Parts of what is known to be a pair. */
static inline Value pu_car_known(Value v) { return pu_part(PU_AS(PuPair, v)->car); }
static inline Value pu_cdr_known(Value v) { return pu_part(PU_AS(PuPair, v)->cdr); }
static inline Value pu_car(Value v) {
    if (PU_UNLIKELY(!pu_is(v, PU_PAIR))) return pu_refuse("car", "pair", v);
    return pu_dup(pu_part(PU_AS(PuPair, v)->car));
}
static inline Value pu_cdr(Value v) {
    if (PU_UNLIKELY(!pu_is(v, PU_PAIR))) return pu_refuse("cdr", "pair", v);
    return pu_dup(pu_part(PU_AS(PuPair, v)->cdr));
}
/* `car` and `cdr` of a list that dies: where nobody else holds the pair its parts move out, and it leaves its cell.
   Never fails: the generated code has checked that it is a pair. */
static inline Value pu_uncons_cell(Value v, Value *car, Value *cdr) {
    PuPair *pair = PU_AS(PuPair, v);
    *car = pair->car;
    *cdr = pair->cdr;
    if (pu_pair_leaves_cell(v)) return v;
    pu_dup(*car);
    pu_dup(*cdr);
    pu_drop(v);
    return 0;
}
static inline Value pu_take_cdr_cell(Value v, Value *cdr) { /* `cdr` of a pair that dies */
    *cdr = PU_AS(PuPair, v)->cdr;
    if (pu_pair_leaves_cell(v)) {
        pu_drop(PU_AS(PuPair, v)->car);
        return v;
    }
    pu_dup(*cdr);
    pu_drop(v);
    return 0;
}
static inline Value pu_take_car_cell(Value v, Value *car) { /* `car` of a pair that dies */
    *car = PU_AS(PuPair, v)->car;
    if (pu_pair_leaves_cell(v)) {
        pu_drop(PU_AS(PuPair, v)->cdr);
        return v;
    }
    pu_dup(*car);
    pu_drop(v);
    return 0;
}
/* The same of a pair that is proved to be held by nobody else: no count is looked at. */
static inline bool pu_unique_leaves_cell(Value v) {
#ifdef PURPLE_CHECK_UNIQUE
    pu_require_unique(&pu_object(v)->head);
#endif
    return PU_LIKELY(!(pu_object(v)->head & (PU_SUSPECT | PU_WATCHED)));
}
static inline Value pu_uncons_unique_cell(Value v, Value *car, Value *cdr) {
    if (!pu_unique_leaves_cell(v)) return pu_uncons_cell(v, car, cdr);
    *car = PU_AS(PuPair, v)->car;
    *cdr = PU_AS(PuPair, v)->cdr;
    return v;
}
static inline Value pu_take_cdr_unique_cell(Value v, Value *cdr) {
    if (!pu_unique_leaves_cell(v)) return pu_take_cdr_cell(v, cdr);
    *cdr = PU_AS(PuPair, v)->cdr;
    pu_drop(PU_AS(PuPair, v)->car);
    return v;
}
static inline Value pu_take_car_unique_cell(Value v, Value *car) {
    if (!pu_unique_leaves_cell(v)) return pu_take_car_cell(v, car);
    *car = PU_AS(PuPair, v)->car;
    pu_drop(PU_AS(PuPair, v)->cdr);
    return v;
}
/* The same where nothing uses the memory again. */
static inline void pu_uncons(Value v, Value *car, Value *cdr) {
    pu_free_cell(pu_uncons_cell(v, car, cdr), sizeof(PuPair));
}
static inline void pu_uncons_unique(Value v, Value *car, Value *cdr) {
    pu_free_cell(pu_uncons_unique_cell(v, car, cdr), sizeof(PuPair));
}
#define PU_TAKE(name)                                       \
    static inline Value name(Value v) {                     \
        Value part;                                         \
        pu_free_cell(name##_cell(v, &part), sizeof(PuPair)); \
        return part;                                        \
    }
PU_TAKE(pu_take_car)
PU_TAKE(pu_take_cdr)
PU_TAKE(pu_take_car_unique)
PU_TAKE(pu_take_cdr_unique)
/* What dies, be it a pair or not, and the memory it leaves if it is one. `unique`: that nothing else holds it is
   proved. */
static inline Value pu_pair_cell(Value v, bool unique) {
    if (pu_is(v, PU_PAIR) && (unique ? pu_unique_leaves_cell(v) : pu_pair_leaves_cell(v))) {
        pu_drop(PU_AS(PuPair, v)->car);
        pu_drop(PU_AS(PuPair, v)->cdr);
        return v;
    }
    pu_drop(v);
    return 0;
}
static inline Value pu_record_cell(Value v, bool unique, const PuType *type) {
    if (pu_is(v, PU_RECORD) && PU_AS(PuRecord, v)->type == type &&
        (unique ? pu_unique_leaves_cell(v) : pu_leaves_cell(v))) {
        for (int i = 0; i < type->count; i++) pu_drop(PU_AS(PuRecord, v)->fields[i]);
        return v;
    }
    pu_drop(v);
    return 0;
}

/* Where the stack ends now. Named as a register it takes no place on the stack, which an address of a variable does. */
#if defined(__x86_64__) && defined(__GNUC__)
register char *pu_stack_pointer __asm__("rsp");
#define PU_STACK() pu_stack_pointer
#else
#define PU_STACK() ((char *)__builtin_frame_address(0))
#endif

/* Errors (errors.c): a primitive that fails leaves the error in `pu.pending` and gives 0. */
Value pu_fail(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3))) PU_COLD;
Value pu_fail_with(const char *kind, Value message, Value irritants, Value payload) PU_COLD; /* owns the values */
void pu_at(const char *file, int line, int column, int width) PU_COLD; /* the failing form */
/* The library called a primitive by its own choice, and that failed: programs are told the procedure that they
   called, which `pu_blame` writes in place of the primitive's name. What the tensor engine refuses is told of the
   operator. */
void pu_own(const char *primitive) PU_COLD;
void pu_blame(const char *procedure) PU_COLD;
void pu_blame_given(Value function) PU_COLD; /* if it is a procedure of the library, which someone passed on */
/* a call that it unwinds */
void pu_in(const char *function, const char *file, int line, int column, int width) PU_COLD;
/* the same of a procedure of the library, which is blamed */
void pu_in_library(const char *function, const char *file, int line, int column, int width) PU_COLD;
void pu_help(const char *help); /* of the pending error */
Value pu_caught(void);                                                        /* takes the pending error */
bool pu_is_injected(void);
bool pu_too_deep(void) PU_COLD;
#ifdef PURPLE_INJECT
#define PU_BAD(succeeded) (pu_is_injected() || PU_UNLIKELY(!(succeeded)))
#define PU_ENTRY_FAILS() (pu_is_injected() || pu_too_deep())
#else
#define PU_BAD(succeeded) PU_UNLIKELY(!(succeeded))
#define PU_ENTRY_FAILS() (PU_UNLIKELY(PU_STACK() < pu.stack_limit) && pu_too_deep())
#endif

/* Calls (calls.c) */
Value pu_call(Value function, Value *arguments, int count, int keywords); /* borrows the function, lands */
Value pu_call_tail(Value function, Value *arguments, int count, int keywords); /* owns it: PU_BOUNCE or failure */
Value pu_landed(Value result);
static inline Value pu_land(Value result) { return PU_UNLIKELY(result == PU_BOUNCE) ? pu_landed(result) : result; }
bool pu_bind(const PuFunction *function, Value *arguments, int count, int keywords, Value *slots);
Value pu_closure(const PuFunction *function, int captured, ...); /* owns them */

#pragma GCC diagnostic pop

#endif
