/* tenfold.h: libtorch for any language. C99.
 *
 * Ownership. A `tn_X *` that a function returns, or writes through `out`, is owned by the caller and freed
 * once, by `tn_free` for tensors and `tn_X_free` for the rest; every argument is borrowed for the call.
 * Freeing NULL is fine.
 * Failure. A function that returns a pointer gives NULL, a `tn_status` is not TN_OK, and a count or a
 * yes-or-no is -1; `tn_error_code` and `tn_error_message` then tell this thread why. No C++ exception leaves
 * the library.
 * Threads. Every function may be called from any thread; one handle must not be freed, nor a stack or a
 * tensor be written, while another thread uses it.
 * Text comes back in a caller's buffer, as by snprintf: the length that the whole takes is returned, and what
 * fits is written, with a NUL. `size` 0 with a NULL buffer only asks for the length.
 *
 * Marks in the comments, read by `tenfold capi describe`: `@borrowed` for a result that is not the caller's
 * to free, `@optional x` for an argument that may be NULL, `@out x` for one that is written, `@consumes x`
 * for one whose ownership passes to the library, `@count x y` where several arrays share the count x_count,
 * `@here` for what works without libtorch, and `@never_fails`.
 */
#ifndef TENFOLD_H
#define TENFOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef TN_API
#define TN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ==== types ==== */

typedef struct tn_tensor tn_tensor;       /* a tensor */
typedef struct tn_value tn_value;         /* any value an operator takes or gives: libtorch's IValue */
typedef struct tn_stack tn_stack;         /* the arguments of a call, which its results replace */
typedef struct tn_op tn_op;               /* one overload of an operator, looked up; it is never freed */
typedef struct tn_generator tn_generator; /* a source of random numbers */

/* What a function that makes nothing returns; the same code stays readable by tn_error_code. */
typedef int32_t tn_status;
enum {
    TN_OK = 0,
    TN_ERROR_ARGUMENT = 1,      /* an argument is NULL, negative, malformed or of a wrong tag */
    TN_ERROR_INDEX = 2,         /* an index or a dimension is out of range */
    TN_ERROR_TYPE = 3,          /* a value does not have the type that is needed */
    TN_ERROR_HANDLE = 4,        /* a handle was freed before, or is none (found in checked mode) */
    TN_ERROR_NOT_FOUND = 5,     /* there is no such operator, name, key or file */
    TN_ERROR_MEMORY = 6,        /* memory ran out */
    TN_ERROR_NOT_AVAILABLE = 7, /* libtorch, CUDA, or an operator of this libtorch is missing */
    TN_ERROR_TORCH = 8,         /* libtorch refused */
    TN_ERROR_CALLBACK = 9,      /* a callback of the host failed */
    TN_ERROR_INTERNAL = 10      /* a defect of this library */
};

/* Element types, with c10::ScalarType's numbers. */
typedef int32_t tn_dtype;
enum {
    TN_UINT8 = 0,
    TN_INT8 = 1,
    TN_INT16 = 2,
    TN_INT32 = 3,
    TN_INT64 = 4,
    TN_FLOAT16 = 5,
    TN_FLOAT32 = 6,
    TN_FLOAT64 = 7,
    TN_COMPLEX32 = 8,
    TN_COMPLEX64 = 9,
    TN_COMPLEX128 = 10,
    TN_BOOL = 11,
    TN_QINT8 = 12,
    TN_QUINT8 = 13,
    TN_QINT32 = 14,
    TN_BFLOAT16 = 15,
    TN_QUINT4X2 = 16,
    TN_QUINT2X4 = 17,
    TN_BITS1X8 = 18,
    TN_BITS2X4 = 19,
    TN_BITS4X2 = 20,
    TN_BITS8 = 21,
    TN_BITS16 = 22,
    TN_FLOAT8_E5M2 = 23,
    TN_FLOAT8_E4M3FN = 24,
    TN_FLOAT8_E5M2FNUZ = 25,
    TN_FLOAT8_E4M3FNUZ = 26,
    TN_UINT16 = 27,
    TN_UINT32 = 28,
    TN_UINT64 = 29,
    TN_FLOAT8_E8M0FNU = 44,
    TN_FLOAT4_E2M1FN_X2 = 45
};

/* Where a tensor lives; index -1 is the current device of its type. Types have c10::DeviceType's numbers. */
typedef struct tn_device {
    int32_t type;
    int32_t index;
} tn_device;
enum { TN_CPU = 0, TN_CUDA = 1, TN_META = 14 };

typedef int32_t tn_layout;
enum {
    TN_STRIDED = 0,
    TN_SPARSE_COO = 1,
    TN_SPARSE_CSR = 2,
    TN_MKLDNN = 3,
    TN_SPARSE_CSC = 4,
    TN_SPARSE_BSR = 5,
    TN_SPARSE_BSC = 6,
    TN_JAGGED = 7
};

typedef int32_t tn_memory_format;
enum { TN_CONTIGUOUS_FORMAT = 0, TN_PRESERVE_FORMAT = 1, TN_CHANNELS_LAST = 2, TN_CHANNELS_LAST_3D = 3 };

/* A number whose type is part of it, passed by value: tn_int(3), tn_double(0.5),
 * tn_complex_number(0, 1), tn_bool(true). */
typedef struct tn_scalar {
    int32_t tag;
    union {
        int64_t i;
        double d;
        struct {
            double re, im;
        } c;
        bool b;
    } as;
} tn_scalar;
enum { TN_SCALAR_INT = 1, TN_SCALAR_DOUBLE = 2, TN_SCALAR_COMPLEX = 3, TN_SCALAR_BOOL = 4 };

static inline tn_scalar tn_int(int64_t i) {
    tn_scalar s;
    s.tag = TN_SCALAR_INT;
    s.as.c.im = 0;
    s.as.i = i;
    return s;
}
static inline tn_scalar tn_double(double d) {
    tn_scalar s;
    s.tag = TN_SCALAR_DOUBLE;
    s.as.c.im = 0;
    s.as.d = d;
    return s;
}
static inline tn_scalar tn_complex_number(double re, double im) {
    tn_scalar s;
    s.tag = TN_SCALAR_COMPLEX;
    s.as.c.re = re;
    s.as.c.im = im;
    return s;
}
static inline tn_scalar tn_bool(bool b) {
    tn_scalar s;
    s.tag = TN_SCALAR_BOOL;
    s.as.c.re = 0;
    s.as.c.im = 0;
    s.as.b = b;
    return s;
}

/* What a tn_value holds. libtorch keeps dtypes, layouts and memory formats as ints. */
typedef int32_t tn_tag;
enum {
    TN_TAG_NONE = 0,
    TN_TAG_TENSOR = 1,
    TN_TAG_INT = 2,
    TN_TAG_DOUBLE = 3,
    TN_TAG_COMPLEX = 4,
    TN_TAG_BOOL = 5,
    TN_TAG_STRING = 6,
    TN_TAG_DEVICE = 7,
    TN_TAG_GENERATOR = 8,
    TN_TAG_LIST = 9,
    TN_TAG_TUPLE = 10,
    TN_TAG_DICT = 11,
    TN_TAG_OTHER = 12 /* something libtorch knows and this header does not: an object, a stream, a storage */
};

/* Called when memory that the library was lent is no longer used; from whichever thread let go of it last. */
typedef void (*tn_deleter)(void *user);
/* Called with the live bytes when they grow past a mark; the host frees what it can. */
typedef void (*tn_pressure_fn)(int64_t live_bytes, void *user);

/* ==== the library ==== */

/** Whether libtorch could be loaded: 1 or 0, and then the error of this thread says why not. @here */
TN_API int tn_available(void);
/** The version of libtenfold, such as "0.1.0". @borrowed @here @never_fails */
TN_API const char *tn_version(void);
/** The version of the libtorch that was loaded, such as "2.13.0". @borrowed @here */
TN_API const char *tn_torch_version(void);
/** Whether this libtorch can compute on a CUDA device here: 1 or 0. */
TN_API int tn_cuda_available(void);

/* ==== errors ==== */

/** The code of this thread's last error, TN_OK when there was none since
 * tn_error_clear. @here @never_fails */
TN_API tn_status tn_error_code(void);
/** The text of this thread's last error, "" when there was none; valid until its next error.
 * @borrowed @here @never_fails */
TN_API const char *tn_error_message(void);
/** Forget this thread's last error. @here @never_fails */
TN_API void tn_error_clear(void);
/** The name of a code, such as "TN_ERROR_INDEX". @borrowed @here @never_fails */
TN_API const char *tn_error_name(tn_status code);

/* ==== memory ==== */

/** How many tensor handles are alive. @never_fails */
TN_API int64_t tn_live_tensors(void);
/** How many other handles are alive: values, stacks, generators, modules, optimizers and
 * the like. @never_fails */
TN_API int64_t tn_live_objects(void);
/** Bytes of host memory that tensors hold now. @never_fails */
TN_API int64_t tn_live_bytes(void);
/** The most that tn_live_bytes was since the start or tn_reset_peak_bytes. @never_fails */
TN_API int64_t tn_peak_bytes(void);
/** Start counting tn_peak_bytes anew. @never_fails */
TN_API void tn_reset_peak_bytes(void);
/** Have fn called on the allocating thread when live bytes pass a mark, again for each half of it more, and
 * before an out-of-memory error; NULL switches it off. While random numbers are drawn it is not called.
 * @optional fn user */
TN_API tn_status tn_set_pressure_callback(int64_t bytes, tn_pressure_fn fn, void *user);
/** Let the n-th allocation from now fail, once, as if memory had run out; 0 switches it off. */
TN_API tn_status tn_debug_fail_allocation(int64_t n);
/** How many allocations were made since this was first asked, to know what tn_debug_fail_allocation may
 * count to. @never_fails */
TN_API int64_t tn_debug_allocations(void);
/** Whether handles are checked (TENFOLD_CHECKED=1 when the library was loaded): 1 or 0. */
TN_API int tn_checked(void);
/** Name the place of the host's program that this thread's next calls come from, for reports of checked
 * mode. @optional place */
TN_API tn_status tn_set_place(const char *place);
/** Write one line for each live handle of checked mode, with what made it and where.
 * @out buffer @optional buffer */
TN_API int64_t tn_report_live(char *buffer, int64_t size);

/* ==== tensors ==== */

/** Free a tensor handle; the tensor goes when nothing else uses it. @consumes tensor @optional tensor */
TN_API void tn_free(tn_tensor *tensor);
/** Free tensors and the array that a function gave through `out` with their number.
 * @consumes tensors @optional tensors */
TN_API void tn_free_all(tn_tensor **tensors, int64_t tensors_count);
/** Another handle of the same tensor. */
TN_API tn_tensor *tn_tensor_share(const tn_tensor *tensor);
/** A tensor of one number, which gives way in type promotion as the 2 of `2 * x` does. */
TN_API tn_tensor *tn_tensor_from_number(tn_scalar number);
/** A tensor with a copy of the host's elements; strides count elements, none means row-major order.
 * @optional strides shape data */
TN_API tn_tensor *tn_tensor_from_data(const void *data, tn_dtype dtype, const int64_t *shape,
                                      int64_t shape_count, const int64_t *strides, int64_t strides_count);
/** A tensor over the host's own memory, which must stay until deleter(user) is called, when it is no longer
 * used, unless this fails. @optional strides shape data deleter user */
TN_API tn_tensor *tn_tensor_wrap_data(void *data, tn_dtype dtype, const int64_t *shape, int64_t shape_count,
                                      const int64_t *strides, int64_t strides_count, tn_deleter deleter,
                                      void *user);
/** Copy all elements in row-major order into the host's memory, whose size in bytes must be tn_tensor_bytes.
 * @out data @optional data */
TN_API tn_status tn_tensor_to_data(const tn_tensor *tensor, void *data, int64_t bytes);
/** Whether the tensor is one, and not the undefined tensor that some operators give for a result
 * not asked for. */
TN_API int tn_tensor_is_defined(const tn_tensor *tensor);
/** The element type. */
TN_API tn_dtype tn_tensor_dtype(const tn_tensor *tensor);
/** The device. @out device */
TN_API tn_status tn_tensor_device(const tn_tensor *tensor, tn_device *device);
/** The layout. */
TN_API tn_layout tn_tensor_layout(const tn_tensor *tensor);
/** The number of dimensions. */
TN_API int64_t tn_tensor_dim(const tn_tensor *tensor);
/** The number of elements. */
TN_API int64_t tn_tensor_numel(const tn_tensor *tensor);
/** The bytes that its elements take, packed. */
TN_API int64_t tn_tensor_bytes(const tn_tensor *tensor);
/** The bytes of one element of a type. */
TN_API int64_t tn_dtype_bytes(tn_dtype dtype);
/** The name of an element type, such as "float32". @borrowed */
TN_API const char *tn_dtype_name(tn_dtype dtype);
/** The size of a dimension; negative ones count from the end. */
TN_API int64_t tn_tensor_size(const tn_tensor *tensor, int64_t dim);
/** Write the sizes of the first dimensions; returns how many there are in all. @out sizes @optional sizes */
TN_API int64_t tn_tensor_shape(const tn_tensor *tensor, int64_t *sizes, int64_t sizes_count);
/** Write the strides, in elements, of the first dimensions; returns how many there are in all.
 * @out strides @optional strides */
TN_API int64_t tn_tensor_strides(const tn_tensor *tensor, int64_t *strides, int64_t strides_count);
/** Where in its storage the first element lies, in elements. */
TN_API int64_t tn_tensor_storage_offset(const tn_tensor *tensor);
/** Whether the elements lie in row-major order without gaps: 1 or 0. */
TN_API int tn_tensor_is_contiguous(const tn_tensor *tensor);
/** Whether two handles stand for one tensor: 1 or 0. */
TN_API int tn_tensor_is_same(const tn_tensor *tensor, const tn_tensor *other);
/** The address of the first element, valid as long as the tensor; NULL without an error when
 * it has none. Memory of a conjugated or negated view is as it was before: see
 * tn_resolve_conj, tn_resolve_neg. @borrowed */
TN_API void *tn_tensor_data(const tn_tensor *tensor);
/** The only element. @out value */
TN_API tn_status tn_tensor_item(const tn_tensor *tensor, tn_scalar *value);
/** The element at an index, one entry a dimension; negative entries count from the end.
 * @out value @optional index */
TN_API tn_status tn_tensor_get(const tn_tensor *tensor, const int64_t *index, int64_t index_count,
                               tn_scalar *value);
/** Write the element at an index. @optional index */
TN_API tn_status tn_tensor_set(tn_tensor *tensor, const int64_t *index, int64_t index_count, tn_scalar value);
/** The tensor as text, as libtorch prints it; complex numbers as their two parts.
 * @out buffer @optional buffer */
TN_API int64_t tn_tensor_print(const tn_tensor *tensor, char *buffer, int64_t size);
/** A DLManagedTensor that shares the tensor's memory; its consumer calls its deleter. */
TN_API void *tn_tensor_to_dlpack(const tn_tensor *tensor);
/** A tensor over a DLManagedTensor, whose deleter is called when the memory is no longer used, unless this
 * fails. @consumes dlpack */
TN_API tn_tensor *tn_tensor_from_dlpack(void *dlpack);

/* ==== generators ==== */

/** A source of random numbers of its own, for operators that take one. */
TN_API tn_generator *tn_generator_new(tn_device device, uint64_t seed);
/** The generator of a device that operators use where none is given. */
TN_API tn_generator *tn_generator_default(tn_device device);
/** Free a generator. @consumes generator @optional generator */
TN_API void tn_generator_free(tn_generator *generator);
/** Start a generator anew from a seed. */
TN_API tn_status tn_generator_set_seed(tn_generator *generator, uint64_t seed);
/** The seed that a generator was last started from. @out seed */
TN_API tn_status tn_generator_seed(const tn_generator *generator, uint64_t *seed);
/** The whole state of a generator, as a tensor of bytes. */
TN_API tn_tensor *tn_generator_state(const tn_generator *generator);
/** Put a generator into a state that tn_generator_state gave. */
TN_API tn_status tn_generator_set_state(tn_generator *generator, const tn_tensor *state);

/* ==== values ==== */

/** Free a value. @consumes value @optional value */
TN_API void tn_value_free(tn_value *value);
/** Another handle of the same value; lists and dicts stay shared. */
TN_API tn_value *tn_value_share(const tn_value *value);
/** None. */
TN_API tn_value *tn_value_none(void);
/** A tensor as a value. */
TN_API tn_value *tn_value_tensor(const tn_tensor *tensor);
/** A whole number as a value; also for a dtype, layout or memory format. */
TN_API tn_value *tn_value_int(int64_t number);
/** A number as a value. */
TN_API tn_value *tn_value_double(double number);
/** A complex number as a value. */
TN_API tn_value *tn_value_complex(double re, double im);
/** A truth value as a value. */
TN_API tn_value *tn_value_bool(bool truth);
/** A scalar as the value of its type. */
TN_API tn_value *tn_value_scalar(tn_scalar scalar);
/** A copy of NUL-terminated text as a value. */
TN_API tn_value *tn_value_string(const char *text);
/** A device as a value. */
TN_API tn_value *tn_value_device(tn_device device);
/** An element type as a value. */
TN_API tn_value *tn_value_dtype(tn_dtype dtype);
/** A generator as a value. */
TN_API tn_value *tn_value_generator(const tn_generator *generator);
/** A list of whole numbers. @optional numbers */
TN_API tn_value *tn_value_int_list(const int64_t *numbers, int64_t numbers_count);
/** A list of numbers. @optional numbers */
TN_API tn_value *tn_value_double_list(const double *numbers, int64_t numbers_count);
/** A list of truth values. @optional truths */
TN_API tn_value *tn_value_bool_list(const bool *truths, int64_t truths_count);
/** A list of strings. @optional texts */
TN_API tn_value *tn_value_string_list(const char *const *texts, int64_t texts_count);
/** A list of tensors. @optional tensors */
TN_API tn_value *tn_value_tensor_list(const tn_tensor *const *tensors, int64_t tensors_count);
/** A list of tensors in which NULL is None. @optional tensors */
TN_API tn_value *tn_value_optional_tensor_list(const tn_tensor *const *tensors, int64_t tensors_count);
/** A list of values, whose type is theirs where they agree. @optional items */
TN_API tn_value *tn_value_list(const tn_value *const *items, int64_t items_count);
/** A tuple of values. @optional items */
TN_API tn_value *tn_value_tuple(const tn_value *const *items, int64_t items_count);
/** A dict; keys are strings, ints, doubles, bools, complex numbers, tensors or devices, of one type.
 * @optional keys values @count values keys */
TN_API tn_value *tn_value_dict(const tn_value *const *keys, const tn_value *const *values,
                               int64_t values_count);
/** What a value holds. */
TN_API tn_tag tn_value_tag(const tn_value *value);
/** The tensor in a value. */
TN_API tn_tensor *tn_value_to_tensor(const tn_value *value);
/** The whole number in a value. @out number */
TN_API tn_status tn_value_to_int(const tn_value *value, int64_t *number);
/** The number in a value that holds a double or an int. @out number */
TN_API tn_status tn_value_to_double(const tn_value *value, double *number);
/** The number in a value as a scalar. @out scalar */
TN_API tn_status tn_value_to_scalar(const tn_value *value, tn_scalar *scalar);
/** The truth value in a value. @out truth */
TN_API tn_status tn_value_to_bool(const tn_value *value, bool *truth);
/** The text in a value. @out buffer @optional buffer */
TN_API int64_t tn_value_to_string(const tn_value *value, char *buffer, int64_t size);
/** The device in a value. @out device */
TN_API tn_status tn_value_to_device(const tn_value *value, tn_device *device);
/** The element type in a value. @out dtype */
TN_API tn_status tn_value_to_dtype(const tn_value *value, tn_dtype *dtype);
/** The generator in a value. */
TN_API tn_generator *tn_value_to_generator(const tn_value *value);
/** The number of entries of a list, tuple or dict. */
TN_API int64_t tn_value_count(const tn_value *value);
/** An entry of a list or tuple, or the value of a dict's entry in the order of insertion. */
TN_API tn_value *tn_value_at(const tn_value *value, int64_t index);
/** The key of a dict's entry in the order of insertion. */
TN_API tn_value *tn_value_key_at(const tn_value *value, int64_t index);
/** What a dict has under a key. */
TN_API tn_value *tn_value_get(const tn_value *value, const tn_value *key);
/** What a dict has under a key that is text. */
TN_API tn_value *tn_value_get_string(const tn_value *value, const char *key);
/** Write the first whole numbers of a list of them; returns how many there are in all.
 * @out numbers @optional numbers */
TN_API int64_t tn_value_to_ints(const tn_value *value, int64_t *numbers, int64_t numbers_count);
/** Write the first numbers of a list of doubles; returns how many there are in all.
 * @out numbers @optional numbers */
TN_API int64_t tn_value_to_doubles(const tn_value *value, double *numbers, int64_t numbers_count);
/** The tensors of a list or tuple of tensors; tn_free_all frees them. @out out out_count */
TN_API tn_status tn_value_to_tensors(const tn_value *value, tn_tensor ***out, int64_t *out_count);
/** Whether two values are equal, tensors by being the same one: 1 or 0. */
TN_API int tn_value_equal(const tn_value *value, const tn_value *other);
/** The value as text. @out buffer @optional buffer */
TN_API int64_t tn_value_print(const tn_value *value, char *buffer, int64_t size);
/** The value's type as a schema writes it, such as "int[]". @out buffer @optional buffer */
TN_API int64_t tn_value_type(const tn_value *value, char *buffer, int64_t size);

/* ==== stacks ==== */

/** An empty stack. */
TN_API tn_stack *tn_stack_new(void);
/** Free a stack and what is on it. @consumes stack @optional stack */
TN_API void tn_stack_free(tn_stack *stack);
/** The number of values on a stack. */
TN_API int64_t tn_stack_count(const tn_stack *stack);
/** Take all values off. */
TN_API tn_status tn_stack_clear(tn_stack *stack);
/** Push a value. */
TN_API tn_status tn_stack_push(tn_stack *stack, const tn_value *value);
/** Push None. */
TN_API tn_status tn_stack_push_none(tn_stack *stack);
/** Push a tensor. */
TN_API tn_status tn_stack_push_tensor(tn_stack *stack, const tn_tensor *tensor);
/** Push a whole number. */
TN_API tn_status tn_stack_push_int(tn_stack *stack, int64_t number);
/** Push a number. */
TN_API tn_status tn_stack_push_double(tn_stack *stack, double number);
/** Push a truth value. */
TN_API tn_status tn_stack_push_bool(tn_stack *stack, bool truth);
/** Push a scalar. */
TN_API tn_status tn_stack_push_scalar(tn_stack *stack, tn_scalar scalar);
/** Push a copy of text. */
TN_API tn_status tn_stack_push_string(tn_stack *stack, const char *text);
/** Push a list of whole numbers. @optional numbers */
TN_API tn_status tn_stack_push_ints(tn_stack *stack, const int64_t *numbers, int64_t numbers_count);
/** Push a list of tensors. @optional tensors */
TN_API tn_status tn_stack_push_tensors(tn_stack *stack, const tn_tensor *const *tensors,
                                       int64_t tensors_count);
/** Take the last value off. */
TN_API tn_value *tn_stack_pop(tn_stack *stack);
/** Take the last value off, which must be a tensor. */
TN_API tn_tensor *tn_stack_pop_tensor(tn_stack *stack);
/** The value at an index; negative ones count from the end. */
TN_API tn_value *tn_stack_at(const tn_stack *stack, int64_t index);
/** The tensor at an index. */
TN_API tn_tensor *tn_stack_tensor_at(const tn_stack *stack, int64_t index);
/** Replace the value at an index. */
TN_API tn_status tn_stack_set(tn_stack *stack, int64_t index, const tn_value *value);

/* ==== operators by name ==== */

/** An operator's overload by name, such as "aten::add.Tensor", to call many times. @borrowed */
TN_API const tn_op *tn_find(const char *name);
/** Call an operator: its arguments are on the stack, missing ones at the end have defaults, results replace
 * them; on failure the stack is empty. */
TN_API tn_status tn_call_op(const tn_op *op, tn_stack *stack);
/** Call an operator by name, such as "aten::add.Tensor". */
TN_API tn_status tn_call(const char *name, tn_stack *stack);
/** An operator's schema as text. @out buffer @optional buffer */
TN_API int64_t tn_op_schema(const tn_op *op, char *buffer, int64_t size);
/** How many operators the dispatcher knows. */
TN_API int64_t tn_op_count(void);
/** The operator at an index, in the order of names. @borrowed */
TN_API const tn_op *tn_op_at(int64_t index);

/* ==== files ==== */

/** Write named tensors to a safetensors file. @count tensors names @optional names tensors */
TN_API tn_status tn_save_safetensors(const char *path, const char *const *names,
                                     const tn_tensor *const *tensors, int64_t tensors_count);
/** Read a safetensors file into a dict of tensors by name. */
TN_API tn_value *tn_load_safetensors(const char *path);

/* ==== autograd ==== (src/autograd.cpp, src/scopes.cpp, src/functions.cpp) */

typedef struct tn_function tn_function; /* two callbacks of the host's, or a function of TorchScript */
typedef struct tn_context tn_context;   /* one call of a function, while one of its callbacks runs */
typedef struct tn_hook tn_hook;         /* a callback on the gradient of a tensor */

/* Callbacks borrow their inputs and give their results away. They return TN_OK, or anything else to fail: the
 * call around them then fails with TN_ERROR_CALLBACK and the message of this thread's error (see tn_fail). A
 * backward may run in another thread, and leaves the gradient of an input that has none NULL. A hook that
 * leaves `out` NULL keeps the gradient as it is. Scopes that a callback opens (tn_no_grad_begin and the like)
 * end with it at the latest. */
typedef tn_status (*tn_forward_fn)(tn_context *context, const tn_tensor *const *inputs, int64_t inputs_count,
                                   tn_tensor **outputs, int64_t outputs_count, void *user);
typedef tn_status (*tn_backward_fn)(tn_context *context, const tn_tensor *const *gradients,
                                    int64_t gradients_count, tn_tensor **outputs, int64_t outputs_count,
                                    void *user);
typedef tn_status (*tn_hook_fn)(const tn_tensor *gradient, tn_tensor **out, void *user);

/** Whether gradients are computed for a tensor: 1 or 0. */
TN_API int tn_requires_grad(const tn_tensor *tensor);
/** Say whether gradients are to be computed for a leaf. */
TN_API tn_status tn_set_requires_grad(tn_tensor *tensor, bool requires_grad);
/** Whether a tensor was made by the host, and not by an operator that gradients flow through: 1 or 0. */
TN_API int tn_is_leaf(const tn_tensor *tensor);
/** The name of what made a tensor that gradients flow through, such as "AddBackward0"; empty where none do.
 * @out buffer @optional buffer */
TN_API int64_t tn_grad_fn_name(const tn_tensor *tensor, char *buffer, int64_t size);
/** The names of the functions that gradients go to next, one a line: from what made the tensor, along a path of
 * positions among such functions. A line is empty where no gradient goes on.
 * @optional path @out buffer @optional buffer */
TN_API int64_t tn_grad_fn_next(const tn_tensor *tensor, const int64_t *path, int64_t path_count, char *buffer,
                               int64_t size);
/** Collect the gradient of a tensor that is not a leaf, too. */
TN_API tn_status tn_retain_grad(tn_tensor *tensor);
/** Whether a gradient was collected for a tensor: 1 or 0. */
TN_API int tn_has_grad(const tn_tensor *tensor);
/** The gradient that was collected for a tensor; TN_ERROR_NOT_FOUND where there is none. */
TN_API tn_tensor *tn_grad(const tn_tensor *tensor);
/** Replace a tensor's gradient; NULL removes it. @optional gradient */
TN_API tn_status tn_set_grad(tn_tensor *tensor, const tn_tensor *gradient);
/** Fill a tensor's gradient, if it has one, with zeros. */
TN_API tn_status tn_zero_grad(tn_tensor *tensor);
/** Add the gradients of a tensor with one element to those of the leaves that it depends on. */
TN_API tn_status tn_backward(const tn_tensor *tensor);
/** As tn_backward, from a given gradient of the tensor; the graph may be retained, or made for gradients of
 * gradients. @optional gradient */
TN_API tn_status tn_backward_with(const tn_tensor *tensor, const tn_tensor *gradient, bool retain_graph,
                                  bool create_graph);
/** As tn_backward_with, for several tensors together. @optional gradients */
TN_API tn_status tn_backward_all(const tn_tensor *const *tensors, int64_t tensors_count,
                                 const tn_tensor *const *gradients, int64_t gradients_count,
                                 bool retain_graph, bool create_graph);
/** The gradients of outputs by inputs, one for each input; with allow_unused NULL for an input that they do
 * not depend on. @optional gradients @out out */
TN_API tn_status tn_gradients(const tn_tensor *const *outputs, int64_t outputs_count,
                              const tn_tensor *const *inputs, int64_t inputs_count,
                              const tn_tensor *const *gradients, int64_t gradients_count, bool retain_graph,
                              bool create_graph, bool allow_unused, tn_tensor **out, int64_t out_count);
/** Stop recording for gradients in this thread, until tn_scope_end is called with the number
 * that is returned. */
TN_API int64_t tn_no_grad_begin(void);
/** Record for gradients in this thread again, inside a scope that does not, until tn_scope_end. */
TN_API int64_t tn_enable_grad_begin(void);
/** Make tensors that no gradient will ever flow through, in this thread, until tn_scope_end. */
TN_API int64_t tn_inference_begin(void);
/** Have gradients that are NaN fail in all threads, with the operator that gave them, until tn_scope_end. */
TN_API int64_t tn_detect_anomaly_begin(void);
/** Compute in a smaller type where that is safe, as PyTorch's autocast does, in this thread and on devices
 * of this type, until tn_scope_end. */
TN_API int64_t tn_autocast_begin(tn_device device, tn_dtype type, bool enabled);
/** End the innermost scope of this thread, which must be the one of this number. */
TN_API tn_status tn_scope_end(int64_t scope);
/** Whether this thread records for gradients: 1 or 0. */
TN_API int tn_grad_enabled(void);
/** Whether this thread is inside tn_inference_begin: 1 or 0. */
TN_API int tn_inference_enabled(void);
/** Set this thread's error to TN_ERROR_CALLBACK with a message, and return it: `return tn_fail("why");`
 * ends a callback. */
TN_API tn_status tn_fail(const char *message);
/** A function with a gradient of its own, of as many results as outputs_count says; destroy(user) is called
 * when it is no longer used, unless this fails. @optional user destroy */
TN_API tn_function *tn_function_new(const char *name, tn_forward_fn forward, tn_backward_fn backward,
                                    int64_t outputs_count, void *user, tn_deleter destroy);
/** Free a function; graphs that were recorded with it keep what they need.
 * @consumes function @optional function */
TN_API void tn_function_free(tn_function *function);
/** Call a function on tensors, for as many tensors as it has results. @optional inputs @out outputs */
TN_API tn_status tn_function_call(const tn_function *function, const tn_tensor *const *inputs,
                                  int64_t inputs_count, tn_tensor **outputs, int64_t outputs_count);
/** Call a function: its arguments are on the stack, its result replaces them; on failure the stack is empty. */
TN_API tn_status tn_function_run(const tn_function *function, tn_stack *stack);
/** In forward: keep inputs or results for backward. @optional tensors */
TN_API tn_status tn_context_save(tn_context *context, const tn_tensor *const *tensors, int64_t tensors_count);
/** In backward: how many tensors forward kept. */
TN_API int64_t tn_context_saved_count(const tn_context *context);
/** In backward: a tensor that forward kept. */
TN_API tn_tensor *tn_context_saved(const tn_context *context, int64_t index);
/** Whether the gradient of an input is needed: 1 or 0. */
TN_API int tn_context_needs_grad(const tn_context *context, int64_t input);
/** Have a callback called with each gradient of a tensor, which it may replace; destroy(user) is called when
 * it is no longer used, unless this fails. @optional user destroy */
TN_API tn_hook *tn_hook_new(const tn_tensor *tensor, tn_hook_fn callback, void *user, tn_deleter destroy);
/** Remove a hook from its tensor and free it. @consumes hook @optional hook */
TN_API void tn_hook_free(tn_hook *hook);

/* ==== script ==== (src/script.cpp) */

typedef struct tn_module tn_module;   /* a TorchScript module */
typedef struct tn_package tn_package; /* a model that AOTInductor compiled: a .pt2 file */

/* A function to trace: it borrows its inputs and gives its results away; see the callbacks of autograd. */
typedef tn_status (*tn_trace_fn)(const tn_tensor *const *inputs, int64_t inputs_count, tn_tensor **outputs,
                                 int64_t outputs_count, void *user);

/* A function of whole values to trace: its arguments are on the stack, and it leaves its result in their place. */
typedef tn_status (*tn_trace_stack_fn)(tn_stack *stack, void *user);

/** Load a TorchScript module from a file, onto a device if one is given. The file may be damaged, but what it
 * computes is a program: call none that you do not trust. @optional device */
TN_API tn_module *tn_module_load(const char *path, const tn_device *device);
/** Load a TorchScript module from memory, which is not needed afterwards. @optional device */
TN_API tn_module *tn_module_load_data(const void *data, int64_t bytes, const tn_device *device);
/** Save a module as a TorchScript file. */
TN_API tn_status tn_module_save(const tn_module *module, const char *path);
/** Save a module with the bytecode that PyTorch's lite interpreter, on phones, runs. */
TN_API tn_status tn_module_save_for_mobile(const tn_module *module, const char *path);
/** The TorchScript file of a module as a tensor of bytes. */
TN_API tn_tensor *tn_module_save_data(const tn_module *module);
/** Another handle of the same module. */
TN_API tn_module *tn_module_share(const tn_module *module);
/** Free a module. @consumes module @optional module */
TN_API void tn_module_free(tn_module *module);
/** A module whose methods are the functions that a TorchScript source defines. */
TN_API tn_module *tn_module_compile(const char *source);
/** Run a callback once on example inputs and keep what it computed as a module's `forward`. @optional user */
TN_API tn_module *tn_module_trace(tn_trace_fn callback, const tn_tensor *const *inputs, int64_t inputs_count,
                                  int64_t outputs_count, void *user);
/** A module that has nothing yet, to be filled by the functions below. */
TN_API tn_module *tn_module_new(const char *name);
/** Give a module a parameter, which is the tensor itself. */
TN_API tn_status tn_module_set_parameter(tn_module *module, const char *name, const tn_tensor *tensor);
/** Give a module a buffer, which is the tensor itself. */
TN_API tn_status tn_module_set_buffer(tn_module *module, const char *name, const tn_tensor *tensor);
/** Give a module a child, which stays one with the handle given. */
TN_API tn_status tn_module_set_child(tn_module *module, const char *name, const tn_module *child);
/** Make a new child of a module, whose type is of the module's own compilation unit. */
TN_API tn_module *tn_module_add_child(tn_module *module, const char *name);
/** Run a callback once on example inputs, whole values, and keep what it computed as a method. Parameters and
 * buffers of the module that it uses stay such. Where `strict`, results are no lists and dicts, whose entries
 * a trace cannot follow. @optional user */
TN_API tn_status tn_module_trace_method(tn_module *module, const char *method, tn_trace_stack_fn callback,
                                        const tn_stack *inputs, bool strict, void *user);
/** The names of a module's children, a list of strings. */
TN_API tn_value *tn_module_children(const tn_module *module);
/** A child of a module by name, which stays one with the module's. */
TN_API tn_module *tn_module_child(const tn_module *module, const char *name);
/** How many arguments a method of a module takes, the module itself aside; -1 on failure. */
TN_API int64_t tn_module_arity(const tn_module *module, const char *method);
/** Call a method of a module: its arguments are on the stack, missing ones at the end have defaults, its
 * result replaces them; on failure the stack is empty. */
TN_API tn_status tn_module_call(const tn_module *module, const char *method, tn_stack *stack);
/** Call a module's `forward` on tensors, for a result that is a tensor. @optional inputs */
TN_API tn_tensor *tn_module_forward(const tn_module *module, const tn_tensor *const *inputs,
                                    int64_t inputs_count);
/** A method of a module as a function, which keeps the module. */
TN_API tn_function *tn_module_function(const tn_module *module, const char *method);
/** The module whose `forward` is a function of TorchScript. */
TN_API tn_module *tn_function_module(const tn_function *function);
/** The names of a module's methods, a list of strings. */
TN_API tn_value *tn_module_methods(const tn_module *module);
/** A module's parameters, a dict of tensors by names such as "layer.weight". */
TN_API tn_value *tn_module_parameters(const tn_module *module);
/** A module's buffers, a dict of tensors by name. */
TN_API tn_value *tn_module_buffers(const tn_module *module);
/** A parameter of a module by name. */
TN_API tn_tensor *tn_module_parameter(const tn_module *module, const char *name);
/** A buffer of a module by name. */
TN_API tn_tensor *tn_module_buffer(const tn_module *module, const char *name);
/** An attribute of a module by name, whatever it is. */
TN_API tn_value *tn_module_attribute(const tn_module *module, const char *name);
/** Set a module to training, or to evaluation. */
TN_API tn_status tn_module_train(tn_module *module, bool training);
/** Whether a module is set to training: 1 or 0. */
TN_API int tn_module_is_training(const tn_module *module);
/** Move a module's parameters and buffers to a device. */
TN_API tn_status tn_module_to(tn_module *module, tn_device device);
/** Convert a module's floating-point parameters and buffers to an element type. */
TN_API tn_status tn_module_to_dtype(tn_module *module, tn_dtype dtype);
/** The graph of a module's method as text. @out buffer @optional buffer */
TN_API int64_t tn_module_graph(const tn_module *module, const char *method, char *buffer, int64_t size);
/** The code of a module's methods as TorchScript. @out buffer @optional buffer */
TN_API int64_t tn_module_code(const tn_module *module, char *buffer, int64_t size);

/* ==== libtorch's own objects ==== (src/torch_objects.cpp), for C++ that links the same libtorch itself. Use
 * tenfold/torch.h, which has the types and checks the version; `out` and `object` are pointers to them. */

/** Copy the at::Tensor behind a handle into one of the caller's. */
TN_API tn_status tn_torch_get_tensor(const tn_tensor *tensor, void *out);
/** A handle of an at::Tensor, with which it is one. */
TN_API tn_tensor *tn_torch_wrap_tensor(const void *object);
/** Copy the c10::IValue behind a handle into one of the caller's. */
TN_API tn_status tn_torch_get_value(const tn_value *value, void *out);
/** A handle of a c10::IValue. */
TN_API tn_value *tn_torch_wrap_value(const void *object);
/** Copy the torch::jit::Stack behind a handle into one of the caller's. */
TN_API tn_status tn_torch_get_stack(const tn_stack *stack, void *out);
/** Put the values of a torch::jit::Stack in the place of a stack's own. */
TN_API tn_status tn_torch_set_stack(tn_stack *stack, const void *object);
/** Copy the torch::jit::Module behind a handle, which stays one with it, into one of the caller's. */
TN_API tn_status tn_torch_get_module(const tn_module *module, void *out);
/** A handle of a torch::jit::Module, with which it is one. */
TN_API tn_module *tn_torch_wrap_module(const void *object);
/** The torch::jit::Function behind a handle, which keeps it: `out` is the address of a pointer to one. */
TN_API tn_status tn_torch_get_function(const tn_function *function, void *out);
/** A handle of a torch::jit::Function that lives at least as long as the std::shared_ptr<void> `keeper`.
 * @optional keeper */
TN_API tn_function *tn_torch_wrap_function(void *object, const void *keeper);

/* ==== packages ==== */

/** Load a model from a .pt2 package of AOTInductor's, which holds machine code: load no file that you do not
 * trust. @optional model */
TN_API tn_package *tn_package_load(const char *path, const char *model);
/** Free a package. @consumes package @optional package */
TN_API void tn_package_free(tn_package *package);
/** Run a package's model; tn_free_all frees its results. @optional inputs @out out out_count */
TN_API tn_status tn_package_run(const tn_package *package, const tn_tensor *const *inputs,
                                int64_t inputs_count, tn_tensor ***out, int64_t *out_count);
/** What is written in a package about itself, a dict of strings. */
TN_API tn_value *tn_package_metadata(const tn_package *package);

/* ==== optimizers ==== (src/optimizers.cpp, src/training.cpp) */

typedef struct tn_optimizer tn_optimizer; /* a way to improve parameters by their gradients, with its state */

/** Stochastic gradient descent; options: lr, momentum, dampening, weight_decay, nesterov, maximize. */
TN_API tn_optimizer *tn_optimizer_sgd(const tn_tensor *const *parameters, int64_t parameters_count,
                                      double lr);
/** Adam; options: lr, beta1, beta2, eps, weight_decay, amsgrad, maximize. */
TN_API tn_optimizer *tn_optimizer_adam(const tn_tensor *const *parameters, int64_t parameters_count,
                                       double lr);
/** Adam with decoupled weight decay, 0.01 unless set; options: those of tn_optimizer_adam. */
TN_API tn_optimizer *tn_optimizer_adamw(const tn_tensor *const *parameters, int64_t parameters_count,
                                        double lr);
/** RMSprop; options: lr, alpha, eps, weight_decay, momentum, centered, maximize. */
TN_API tn_optimizer *tn_optimizer_rmsprop(const tn_tensor *const *parameters, int64_t parameters_count,
                                          double lr);
/** Adagrad; options: lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize. */
TN_API tn_optimizer *tn_optimizer_adagrad(const tn_tensor *const *parameters, int64_t parameters_count,
                                          double lr);
/** Free an optimizer. @consumes optimizer @optional optimizer */
TN_API void tn_optimizer_free(tn_optimizer *optimizer);
/** Set an option by name; yes-or-no ones are 1 or 0. */
TN_API tn_status tn_optimizer_set(tn_optimizer *optimizer, const char *option, double value);
/** An option by name. @out value */
TN_API tn_status tn_optimizer_get(const tn_optimizer *optimizer, const char *option, double *value);
/** Improve the parameters that have a gradient by one step. */
TN_API tn_status tn_optimizer_step(tn_optimizer *optimizer);
/** Remove the gradients of all parameters. */
TN_API tn_status tn_optimizer_zero_grad(tn_optimizer *optimizer);
/** All that an optimizer remembers and its options, as a dict that later steps do not change. */
TN_API tn_value *tn_optimizer_state(const tn_optimizer *optimizer);
/** Take over what tn_optimizer_state gave for an optimizer of this kind with parameters of
 * the same shapes. */
TN_API tn_status tn_optimizer_set_state(tn_optimizer *optimizer, const tn_value *state);
/** One step of training: zero_grad, `forward` on the inputs, the loss of that name against the target,
 * backward, step. The loss comes back, detached. @optional inputs */
TN_API tn_tensor *tn_train_step(const tn_module *module, tn_optimizer *optimizer, const char *loss,
                                const tn_tensor *const *inputs, int64_t inputs_count,
                                const tn_tensor *target);
/** A loss by its name, such as "cross_entropy" or "mse_loss", averaged; gradients flow through it. */
TN_API tn_tensor *tn_loss(const char *loss, const tn_tensor *input, const tn_tensor *target);

/* ==== devices ==== (src/devices.cpp) */

typedef struct tn_stream tn_stream; /* a queue of work on a CUDA device */

/** How many devices of a type there are. */
TN_API int64_t tn_device_count(int32_t type);
/** The tensor on a device, itself if it is there already; a non-blocking copy may not be done
 * when this returns. */
TN_API tn_tensor *tn_to_device(const tn_tensor *tensor, tn_device device, bool non_blocking);
/** The tensor in host memory that CUDA copies from and to without waiting. */
TN_API tn_tensor *tn_pin_memory(const tn_tensor *tensor);
/** Wait until all that was asked of a device is done. */
TN_API tn_status tn_synchronize(tn_device device);
/** A new stream of a CUDA device. */
TN_API tn_stream *tn_stream_new(tn_device device);
/** Free a stream; work that was asked of it goes on. @consumes stream @optional stream */
TN_API void tn_stream_free(tn_stream *stream);
/** Have this thread's work done on a stream, until tn_scope_end is called with the number
 * that is returned. */
TN_API int64_t tn_stream_begin(const tn_stream *stream);
/** Wait until all that was asked of a stream is done. */
TN_API tn_status tn_stream_synchronize(const tn_stream *stream);
/** Whether all that was asked of a stream is done: 1 or 0. */
TN_API int tn_stream_query(const tn_stream *stream);
/** Let what is asked of a stream from now on wait for all that was asked of another so far; NULL is the
 * default stream. @optional other */
TN_API tn_status tn_stream_wait(const tn_stream *stream, const tn_stream *other);
/** Keep a tensor's memory from being used again before a stream is done with it. */
TN_API tn_status tn_stream_record(const tn_stream *stream, const tn_tensor *tensor);
/** Bytes of a CUDA device's memory that tensors hold. */
TN_API int64_t tn_memory_allocated(tn_device device);
/** The most that tn_memory_allocated was since the start or tn_memory_reset_peak. */
TN_API int64_t tn_memory_peak(tn_device device);
/** Bytes of a CUDA device's memory that are held, for tensors and for those to come. */
TN_API int64_t tn_memory_reserved(tn_device device);
/** What the allocator of a CUDA device counts, by the name that PyTorch's memory_stats gives it, such as
 * "allocated_bytes.all.peak". */
TN_API int64_t tn_memory_statistic(tn_device device, const char *name);
/** Start counting tn_memory_peak anew. */
TN_API tn_status tn_memory_reset_peak(tn_device device);
/** Have CUDA's allocator record what it does: `enabled` is "all" for every event, "state" for what is
 * allocated now, NULL for nothing any more. `context` says of which events the call stack is kept ("all",
 * "alloc", "state" or NULL), `stacks` which frames of it ("all" or "python"), `entries` how many events.
 * @optional enabled context */
TN_API tn_status tn_memory_record_history(const char *enabled, const char *context, const char *stacks,
                                          int64_t entries);
/** What CUDA's allocator holds and has recorded, as a tensor of bytes in the pickle format that PyTorch's
 * memory viewer reads. */
TN_API tn_tensor *tn_memory_snapshot(void);
/** Give CUDA memory back that no tensor holds. */
TN_API tn_status tn_empty_cache(void);
/** Whether libtorch has a backend: cuda, cudnn, lapack, magma, mkl, mkldnn, mps or openmp. 1 or 0. */
TN_API int tn_has_backend(const char *name);
/** The version of "cuda" or "cudnn" as one number, the way each counts its own. */
TN_API int64_t tn_backend_version(const char *name);
/** The compute capability of a CUDA device, such as 9 and 0. @out major minor */
TN_API tn_status tn_device_capability(tn_device device, int64_t *major, int64_t *minor);
/** Start the random numbers of all devices anew from a seed. */
TN_API tn_status tn_manual_seed(uint64_t seed);
/** The element type of floats that are made without one. */
TN_API tn_dtype tn_default_dtype(void);
/** Say which element type floats that are made without one have, in all threads. */
TN_API tn_status tn_set_default_dtype(tn_dtype type);
/** How many threads an operator may use on the CPU. */
TN_API int64_t tn_threads(void);
/** Say how many threads an operator may use on the CPU. */
TN_API tn_status tn_set_threads(int64_t threads);
/** How many threads run independent work on the CPU. */
TN_API int64_t tn_interop_threads(void);
/** Say how many threads run independent work on the CPU; once, before any does. */
TN_API tn_status tn_set_interop_threads(int64_t threads);

/* ==== end of what is written by hand: the operators follow, written by `tenfold capi build` ==== */

#ifdef __cplusplus
}
#endif

#ifndef TENFOLD_WITHOUT_OPS
#include "tenfold_ops.h"
#endif

#endif
