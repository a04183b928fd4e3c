/* What the odd hosts share: a check that names what was wrong, and small tensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold.h>

#define CHECK(truth)                                                                            \
    do {                                                                                        \
        if (!(truth)) {                                                                         \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #truth, tn_error_message()); \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)
#define FAILS(code, call)                \
    do {                                 \
        tn_error_clear();                \
        (void)(call);                    \
        CHECK(tn_error_code() == (code)); \
    } while (0)

static inline tn_tensor *numbers(double first, int64_t count) {
    const int64_t shape[1] = {count};
    tn_tensor *made = tn_full(shape, 1, tn_double(first));
    CHECK(made != NULL);
    return made;
}

static inline double number(const tn_tensor *tensor) {
    tn_scalar value;
    CHECK(tn_tensor_item(tensor, &value) == TN_OK);
    return value.tag == TN_SCALAR_COMPLEX ? value.as.c.re : value.as.d;
}
