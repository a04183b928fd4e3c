/* Threads with small stacks that come and go: each has its own errors, frees what others made, and frees its
 * last when it is nearly gone. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "check.h"

static pthread_key_t last;
static void free_last(void *tensor) { tn_free(tensor); }

/* Called when the thread has no scopes any more. */
static void open_none(void *memory) {
    FAILS(TN_ERROR_ARGUMENT, tn_no_grad_begin());
    FAILS(TN_ERROR_ARGUMENT, tn_scope_end(1));
    free(memory);
}

static tn_tensor *lent(void) {
    const int64_t shape[1] = {4};
    float *memory = calloc(4, sizeof *memory);
    return tn_tensor_wrap_data(memory, TN_FLOAT32, shape, 1, NULL, 0, open_none, memory);
}

static void *work(void *given) {
    tn_tensor *theirs = given, *sum;
    char name[64];
    CHECK(tn_error_code() == TN_OK && strcmp(tn_error_message(), "") == 0);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "aten::none_%d_%p", i, given);
        FAILS(TN_ERROR_NOT_FOUND, tn_find(name));
        CHECK(strstr(tn_error_message(), name) != NULL);
        sum = tn_add(theirs, theirs);
        CHECK(sum != NULL && strstr(tn_error_message(), name) != NULL);
        tn_free(sum);
    }
    int64_t scope = tn_no_grad_begin(); /* left open: the thread's end closes it */
    CHECK(scope > 0);
    CHECK(tn_set_place("where a thread ends, in a file that has a long name.c:12") == TN_OK);
    pthread_setspecific(last, lent());
    tn_free(theirs);
    return numbers(5, 3);
}

int main(void) {
    pthread_t threads[8];
    pthread_attr_t small;
    CHECK(tn_available());
    int64_t bytes = tn_live_bytes();
    pthread_key_create(&last, free_last);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    for (int round = 0; round < 5; round++) {
        FAILS(TN_ERROR_ARGUMENT, tn_zeros(NULL, -round - 1));
        for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], &small, work, numbers(i, 1000)) == 0);
        for (int i = 0; i < 8; i++) {
            void *made;
            pthread_join(threads[i], &made);
            tn_free(made);
        }
        CHECK(strstr(tn_error_message(), "negative") != NULL);
    }
    CHECK(tn_live_bytes() == bytes);
    return tn_live_tensors() != 0 || tn_live_objects() != 0;
}
