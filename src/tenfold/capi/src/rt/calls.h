/* What the functions of libtenfold_rt are made of; rt.py generates them from its table. A call of an operator
 * is START, a PUSH_* for each argument, and a RUN_* for the kind of its result. */
#include "tenfold_rt.h"

#include <pthread.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tenfold.h"

typedef char handles_are_pointers[sizeof(int64_t) == sizeof(tn_tensor *) ? 1 : -1];

#define TENSOR(handle) ((tn_tensor *)(intptr_t)(handle))
#define STREAM(handle) ((tn_stream *)(intptr_t)(handle))
#define TRUTH(number) ((number) != 0)

/* A call of an operator: its arguments so far, and whether one of them failed. */
typedef struct {
    const tn_op *op;
    tn_stack *stack;
    bool failed;
} CALL;

static CALL START(const tn_op **known, const char *name) {
    CALL call = {__atomic_load_n(known, __ATOMIC_ACQUIRE), NULL, false};
    if (call.op == NULL) {
        call.op = tn_find(name);
        __atomic_store_n(known, call.op, __ATOMIC_RELEASE);
    }
    if (call.op != NULL) call.stack = tn_stack_new();
    call.failed = call.stack == NULL;
    return call;
}

static void NOTE(CALL *call, tn_status status) {
    if (status != TN_OK) call->failed = true;
}

#define PUSH(call, pushed)                        \
    do {                                          \
        if (!(call)->failed) NOTE((call), pushed); \
    } while (0)
#define PUSH_TENSOR(call, handle) PUSH(call, tn_stack_push_tensor((call)->stack, TENSOR(handle)))
#define PUSH_OPTIONAL(call, handle)                                                       \
    PUSH(call, (handle) ? tn_stack_push_tensor((call)->stack, TENSOR(handle)) \
                        : tn_stack_push_none((call)->stack))
#define PUSH_INT(call, number) PUSH(call, tn_stack_push_int((call)->stack, number))
#define PUSH_DOUBLE(call, number) PUSH(call, tn_stack_push_double((call)->stack, number))
#define PUSH_BOOL(call, truth) PUSH(call, tn_stack_push_bool((call)->stack, TRUTH(truth)))
#define PUSH_INTS(call, numbers, count) PUSH(call, tn_stack_push_ints((call)->stack, numbers, count))
#define PUSH_TENSORS(call, handles, count) \
    PUSH(call, tn_stack_push_tensors((call)->stack, (const tn_tensor *const *)(const void *)(handles), count))
#define PUSH_INDEX(call, handle) PUSH(call, push_as((call)->stack, TENSOR(handle), TN_INT64))

/* Push a tensor in another dtype. */
static tn_status push_as(tn_stack *stack, const tn_tensor *tensor, tn_dtype dtype);

static void RUN(CALL *call) {
    if (!call->failed) NOTE(call, tn_call_op(call->op, call->stack));
}

/* The first result, and the end of the call. */
static tn_tensor *FIRST(CALL *call) {
    RUN(call);
    tn_tensor *result = call->failed ? NULL : tn_stack_tensor_at(call->stack, 0);
    tn_stack_free(call->stack);
    return result;
}

static int64_t RUN_TENSOR(CALL call) { return (int64_t)(intptr_t)FIRST(&call); }

/* The number in a tensor, which is freed. */
static double number_in(tn_tensor *tensor) {
    tn_scalar found;
    double number = NAN;
    if (tensor == NULL) return NAN;
    if (tn_tensor_item(tensor, &found) == TN_OK) {
        switch (found.tag) {
            case TN_SCALAR_INT: number = (double)found.as.i; break;
            case TN_SCALAR_BOOL: number = found.as.b ? 1 : 0; break;
            case TN_SCALAR_COMPLEX: number = found.as.c.re; break;
            default: number = found.as.d;
        }
    }
    tn_free(tensor);
    return number;
}

static double RUN_NUMBER(CALL call) { return number_in(FIRST(&call)); }

/* Room for the list that this thread's last call gave; it goes with the thread. */
static pthread_key_t last_list;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int64_t room;

static void make_key(void) { (void)pthread_key_create(&last_list, free); }

static int64_t *list_of(int64_t count) {
    pthread_once(&once, make_key);
    int64_t *list = pthread_getspecific(last_list);
    if (list != NULL && count <= room) return list;
    int64_t *larger = malloc((size_t)(count > 8 ? count : 8) * sizeof *list);
    if (larger == NULL || pthread_setspecific(last_list, larger) != 0) {
        free(larger);
        (void)tn_fail("out of memory for a list");
        return NULL;
    }
    free(list);
    room = count > 8 ? count : 8;
    return larger;
}

static const int64_t *RUN_TENSORS(CALL call, int64_t *count) {
    static int64_t none;
    tn_tensor **tensors = NULL;
    const int64_t *given = NULL;
    int64_t found = -1;
    if (count == NULL) NOTE(&call, tn_fail("count is NULL, so nobody could free the tensors"));
    RUN(&call);
    tn_value *result = call.failed ? NULL : tn_stack_at(call.stack, 0);
    if (result != NULL && tn_value_to_tensors(result, &tensors, &found) == TN_OK) {
        int64_t *handles = found == 0 ? &none : list_of(found);
        for (int64_t i = 0; handles != NULL && i < found; ++i) handles[i] = (int64_t)(intptr_t)tensors[i];
        tn_free_all(tensors, handles == NULL ? found : 0); /* those that were given away stay */
        given = handles;
    }
    tn_value_free(result);
    tn_stack_free(call.stack);
    if (count != NULL) *count = given == NULL ? -1 : found;
    return given;
}

/* All results of an operator that has several. */
static const int64_t *RUN_RESULTS(CALL call, int64_t *count) {
    if (count == NULL) NOTE(&call, tn_fail("count is NULL, so nobody could free the tensors"));
    RUN(&call);
    const int64_t found = call.failed ? 0 : tn_stack_count(call.stack);
    int64_t *handles = call.failed ? NULL : list_of(found), made = 0;
    while (handles != NULL && made < found && (handles[made] = (int64_t)(intptr_t)tn_stack_tensor_at(call.stack, made)) != 0) made++;
    if (handles != NULL && made < found) {
        while (made > 0) tn_free(TENSOR(handles[--made]));
        handles = NULL;
    }
    tn_stack_free(call.stack);
    if (count != NULL) *count = handles == NULL ? -1 : found;
    return handles;
}

static tn_tensor *converted(const tn_tensor *tensor, tn_dtype dtype);

/* The elements in row-major order, in the room of the thread's last list. */
static const double *elements(const tn_tensor *tensor, int64_t *count) {
    static double none;
    const int64_t found = tn_tensor_numel(tensor);
    tn_tensor *wide = found < 0 ? NULL : converted(tensor, TN_FLOAT64);
    double *list = wide == NULL ? NULL : found == 0 ? &none : (double *)list_of(found);
    if (list != NULL && found > 0 && tn_tensor_to_data(wide, list, found * (int64_t)sizeof *list) != TN_OK) list = NULL;
    tn_free(wide);
    if (count != NULL) *count = list == NULL ? -1 : found;
    return list;
}

static const int64_t *shape(const tn_tensor *tensor, int64_t *count) {
    static int64_t none;
    const int64_t found = tn_tensor_dim(tensor);
    int64_t *sizes = found < 0 ? NULL : found == 0 ? &none : list_of(found);
    if (sizes != NULL && found > 0 && tn_tensor_shape(tensor, sizes, found) < 0) sizes = NULL;
    if (count != NULL) *count = sizes == NULL ? -1 : found;
    return sizes;
}

/* A tensor in another dtype, which is the caller's. */
static tn_tensor *converted(const tn_tensor *tensor, tn_dtype dtype) {
    static const tn_op *op;
    CALL call = START(&op, "aten::to.dtype");
    PUSH(&call, tn_stack_push_tensor(call.stack, tensor));
    PUSH_INT(&call, dtype);
    return FIRST(&call);
}

static tn_status push_as(tn_stack *stack, const tn_tensor *tensor, tn_dtype dtype) {
    tn_tensor *other = converted(tensor, dtype);
    if (other == NULL) return tn_error_code();
    tn_status status = tn_stack_push_tensor(stack, other);
    tn_free(other);
    return status;
}

static tn_tensor *from_data(const double *data, int64_t data_count, const int64_t *dims, int64_t dims_count) {
    tn_tensor *flat = tn_tensor_from_data(data, TN_FLOAT64, &data_count, 1, NULL, 0);
    tn_tensor *single = flat == NULL ? NULL : converted(flat, TN_FLOAT32);
    tn_free(flat);
    if (single == NULL) return NULL;
    static const tn_op *op;
    CALL call = START(&op, "aten::reshape");
    PUSH(&call, tn_stack_push_tensor(call.stack, single));
    PUSH_INTS(&call, dims, dims_count);
    tn_free(single);
    return FIRST(&call);
}

/* Classes are whole numbers, one dimension less than the input; else the target has a
 * probability for each. */
static tn_tensor *cross_entropy(const tn_tensor *input, const tn_tensor *target) {
    static const tn_op *op;
    CALL call = START(&op, "aten::cross_entropy_loss");
    const bool classes = tn_tensor_dim(target) < tn_tensor_dim(input);
    PUSH(&call, tn_stack_push_tensor(call.stack, input));
    PUSH(&call, classes ? push_as(call.stack, target, TN_INT64) : tn_stack_push_tensor(call.stack, target));
    return FIRST(&call);
}

static tn_tensor *gradient(const tn_tensor *tensor) {
    return tn_has_grad(tensor) == 1 ? tn_grad(tensor) : NULL;
}

/* The scopes without gradients that this thread has open. */
static __thread int64_t *scopes;
static __thread int64_t depth, scopes_room;

static void no_grad_begin(void) {
    if (depth == scopes_room) {
        int64_t *larger = realloc(scopes, (size_t)(scopes_room + 16) * sizeof *scopes);
        if (larger == NULL) {
            (void)tn_fail("out of memory");
            return;
        }
        scopes = larger;
        scopes_room += 16;
    }
    const int64_t scope = tn_no_grad_begin();
    if (scope >= 0) scopes[depth++] = scope;
}

static void no_grad_end(void) {
    if (tn_scope_end(depth > 0 ? scopes[depth - 1] : -1) == TN_OK) --depth;
    if (depth == 0) {
        free(scopes);
        scopes = NULL;
        scopes_room = 0;
    }
}

static const tn_device CPU = {TN_CPU, -1};

static tn_device cuda(int32_t index) {
    const tn_device device = {TN_CUDA, index};
    return device;
}

static int32_t device_of(const tn_tensor *tensor) {
    tn_device device;
    if (tn_tensor_device(tensor, &device) != TN_OK) return -2;
    return device.type == TN_CUDA ? device.index : -1;
}

static int32_t is_cuda(const tn_tensor *tensor) {
    const int32_t device = device_of(tensor);
    return device == -2 ? -1 : device >= 0;
}

static tn_tensor *to_stream(const tn_tensor *tensor, int32_t device_id, const tn_stream *stream) {
    const int64_t scope = tn_stream_begin(stream);
    if (scope < 0) return NULL;
    tn_tensor *moved = tn_to_device(tensor, cuda(device_id), true);
    (void)tn_scope_end(scope);
    return moved;
}
