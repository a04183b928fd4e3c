/* Errors: nothing crashes, and each thread can ask what went wrong in its last call. */
#include <stdio.h>
#include <tenfold.h>

static void told(const char *what) {
    printf("%s\n  %s: %s\n", what, tn_error_name(tn_error_code()), tn_error_message());
    tn_error_clear();
}

int main(void) {
    const int64_t two_by_three[2] = {2, 3}, huge[1] = {INT64_C(1) << 50}, nowhere[2] = {0, 7};
    tn_scalar element;

    if (!tn_available()) { /* libtorch is loaded by the first call; a program may ask first */
        told("libtorch is not here");
        return 1;
    }
    tn_tensor *a = tn_ones(two_by_three, 2);

    if (tn_mm(a, a) == NULL) told("shapes that do not fit");
    if (tn_add(a, NULL) == NULL) told("a tensor that is missing");
    if (tn_zeros(huge, 1) == NULL) told("more memory than there is");
    if (tn_tensor_get(a, nowhere, 2, &element) != TN_OK) told("an index out of range");
    if (tn_find("aten::ad") == NULL) told("an operator that does not exist");

    /* A failure passes through what follows it: NULL in, NULL out. */
    tn_tensor *lost = tn_relu(tn_mm(a, a));
    if (lost == NULL) told("one check at the end of a chain");

    tn_free(a);
    tn_free(lost); /* freeing NULL is fine */
    return tn_live_tensors() != 0;
}
