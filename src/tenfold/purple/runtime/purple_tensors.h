/* Tensors in compiled programs, over libtenfold. Included by programs that use them. */
#ifndef PURPLE_TENSORS_H
#define PURPLE_TENSORS_H

#include "purple_all.h"

#include <tenfold.h>

#define PU_DTYPE_PREFIX "tenfold"

enum { PU_MOST_DIMENSIONS = 64 };

/* liveness.c: operators, and the tensors that they make and use. */
#ifdef PURPLE_LIVENESS
void pu_note_made(const tn_tensor *tensor);
void pu_note_used(const tn_tensor *tensor);
void pu_note_releasing(const tn_tensor *tensor);
void pu_note_released(void);
void pu_note_done(void); /* an operator that makes nothing new has run */
void pu_end_liveness(void);
#else
#define pu_note_made(tensor) ((void)0)
#define pu_note_used(tensor) ((void)0)
#define pu_note_releasing(tensor) ((void)0)
#define pu_note_released() ((void)0)
#define pu_note_done() ((void)0)
#define pu_end_liveness() ((void)0)
#endif

/* tensors.c */
void pu_use_tensors(void);
static inline tn_tensor *pu_handle(Value v) {
    tn_tensor *handle = PU_AS(PuTensor, v)->handle;
    pu_note_used(handle);
    return handle;
}
/* Owns the handle; NULL becomes libtenfold's error. `maker` names the operator, as in "mul". */
Value pu_of_tensor(tn_tensor *handle, const char *maker);
Value pu_in_place(Value self, tn_status status, const char *maker); /* its operand, lent */
Value pu_tensor_error(const char *name);
/* What libtorch says of a call that it refused becomes the help beside Purple's own message, which names the procedure
   and describes what it was given. Gives PU_FAILURE. `pu_refused_all` owns what was given. */
Value pu_refused(const char *name, const Value *given, int count, int keywords);
Value pu_refused_all(const char *name, Value *given, int count, int keywords);
bool pu_tensor_wanted(const char *name, Value v);
bool pu_read_dtype(const char *name, tn_dtype *dtype);
bool pu_read_device(const char *text, tn_device *device);
bool pu_is_device(Value v); /* "cuda:1", :cuda */
bool pu_take_device(const char *name, Value v, tn_device *device);
bool pu_is_complex(tn_dtype dtype);
static inline bool pu_is_host(tn_device device) { return device.type == TN_CPU; }
tn_tensor *pu_cast(const tn_tensor *tensor, tn_dtype dtype);
tn_tensor *pu_placed(tn_tensor *tensor); /* moved to the default device; owns and gives */
extern tn_device pu_default_device;
tn_scalar pu_to_scalar(Value v); /* of a number or a boolean */
Value pu_of_scalar(tn_scalar scalar);
Value pu_tensor_to_list(Value v);
Value pu_tensor_item(Value v);
Value pu_tensor_shape(Value v);
Value pu_tensor_rank(Value v);
Value pu_tensor_count(Value v);
Value pu_tensor_dtype(Value v);
Value pu_tensor_device(Value v);
Value pu_tensor_to(Value v, Value target);
Value pu_live_tensors(void);
bool pu_is_cuda_available(void);
bool pu_foreign_tensor(const char *name, Value v, bool owned, tn_tensor **out);
Value pu_from_tensor(const char *name, tn_tensor *tensor, bool owned);

/* tensor_make.c */
Value pu_tensor(Value data);
Value pu_tensor_with(Value data, Value dtype, Value device, Value requires_grad);
Value pu_uniform(Value sizes);
Value pu_normal(Value sizes);
Value pu_permutation(Value count);

/* tensor_index.c */
Value pu_tensor_ref(const Value *v, int n);
Value pu_tensor_set(const Value *v, int n);

/* tensor_files.c */
Value pu_tensor_load(Value path);
Value pu_tensor_save(Value path, Value tensors);
Value pu_jit_load(Value path);
Value pu_call_module(Value module, Value *arguments, int count);

/* tensor_arithmetic.c */
Value pu_tensor_arithmetic(const char *name, Value a, Value b);
Value pu_tensor_negate(Value a);
/* Operators whose operand dies: in place where nobody records for gradients and shape and type stay. Own `dying`. */
Value pu_reuse_unary(Value dying, tn_status (*in_place)(tn_tensor *), tn_tensor *(*fresh)(const tn_tensor *), const char *name);
Value pu_reuse_binary(const char *name, Value dying, Value other, bool turned);

/* tensor_scopes.c */
Value pu_backward(Value v, Value gradient);
Value pu_tensor_grad(Value v);
Value pu_requires_grad(Value v, Value wanted); /* v, lent; and so does pu_evaluate */
Value pu_is_requires_grad(Value v);
Value pu_detach(Value v);
Value pu_clear_grad(Value v);
Value pu_evaluate(Value v);
/* Scopes: what holds inside `with-device`, `with-grad` and `no-grad`. */
typedef struct { int64_t grad; tn_device device; bool is_device; } PuScope;
Value pu_check_device(Value name);
PuScope pu_enter_device(Value name);
PuScope pu_enter_grad(void);
PuScope pu_enter_no_grad(void);
void pu_leave(PuScope scope);

/* rows.c: the op table's rows, whose overload is chosen when the program runs. */
typedef enum {
    PU_ROW_TENSOR, PU_ROW_INT, PU_ROW_FLOAT, PU_ROW_BOOL, PU_ROW_SCALAR, PU_ROW_STR, PU_ROW_SCALARTYPE, PU_ROW_DEVICE,
    PU_ROW_LAYOUT, PU_ROW_MEMORYFORMAT, PU_ROW_GENERATOR
} PuRowKind;
/* The kinds of numbers that may stand for an argument. */
enum { PU_STANDS_BOOL = 1, PU_STANDS_INT = 2, PU_STANDS_FLOAT = 4 };
typedef struct {
    const char *name;
    PuRowKind kind;
    unsigned numbers; /* those of PU_STANDS_ that it takes */
    bool list, optional, element_optional, keyword_only;
    int size;             /* of a list whose entries one number may stand for */
    const char *fallback; /* its default as text; NULL where there is none */
} PuRowArgument;
typedef struct { const char *operator_; int count; const PuRowArgument *arguments; const tn_op *found; } PuOverload;
/* `numbers`: a number may stand for a tensor where no overload takes it as a number. */
typedef struct { const char *name; int count; PuOverload *overloads; bool inplace, numbers; } PuRow;
Value pu_row_call(const PuRow *row, const Value *arguments, int count, int keywords);
void pu_end_rows(void);

/* tensor_text.c */
void pu_put_tensor(PuBuffer *buffer, Value v);

#endif
