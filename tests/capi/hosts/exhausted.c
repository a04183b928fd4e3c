/* A host whose address space is nearly full: allocations of any size fail, and nothing else does. */
#define _POSIX_C_SOURCE 200809L
#include <sys/resource.h>

#include "check.h"

static int asked;
static void collect(int64_t live, void *user) {
    (void)live, (void)user;
    asked++;
    tn_free(numbers(1, 1)); /* what is small still fits */
}

int main(void) {
    struct rlimit limit;
    long pages;
    int64_t shape[1];
    CHECK(tn_available());
    tn_free(numbers(1, 1));
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    limit.rlim_cur = limit.rlim_max = (rlim_t)pages * 4096 + (64 << 20);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(tn_set_pressure_callback((int64_t)1 << 60, collect, NULL) == TN_OK);
    for (int power = 26; power < 62; power += 2) {
        shape[0] = (int64_t)1 << power;
        FAILS(TN_ERROR_MEMORY, tn_zeros(shape, 1));
    }
    CHECK(asked >= 18);
    FAILS(TN_ERROR_MEMORY, tn_value_int_list(shape, (int64_t)1 << 40));
    CHECK(tn_set_pressure_callback(0, NULL, NULL) == TN_OK);
    tn_tensor *x = numbers(2, 100), *sum = tn_sum(x);
    CHECK(number(sum) == 200);
    tn_free(sum);
    tn_free(x);
    return tn_live_tensors() != 0;
}
