/* A host that exports functions of names that libtorch uses for its own. */
#include "check.h"

float sdot_(void) { return -1; }
double ddot_(void) { return -1; }
void zdotc_(double *result) { result[0] = result[1] = -1; }
void cblas_zdotc_sub(void) { abort(); }
void sgemm_(void) { abort(); }
void cblas_sgemm(void) { abort(); }
void dgesdd_(void) { abort(); }
int uv_loop_init(void) { abort(); }
int xerbla_(void) { abort(); }

int main(void) {
    const tn_dtype complex = TN_COMPLEX128;
    const int64_t shape[1] = {3}, square[2] = {64, 64};
    tn_tensor *x = numbers(2, 3), *z = tn_ones_with(shape, 1, &complex, NULL, NULL, NULL),
              *m = tn_ones(square, 2);
    tn_tensor *dot = tn_dot(x, x), *vdot = tn_vdot(z, z), *product = tn_mm(m, m), *total = tn_sum(product);
    CHECK(number(dot) == 12 && number(vdot) == 3 && number(total) == 64.0 * 64 * 64);
    CHECK(sdot_() == -1); /* the host has its own still */
    tn_tensor *made[] = {x, z, m, dot, vdot, product, total};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) tn_free(made[i]);
    return tn_live_tensors() != 0;
}
