/* Learn XOR: a network of eight hidden units, its gradients by libtorch, its steps by Adam; on a GPU if there
 * is one. */
#include <stdio.h>
#include <tenfold.h>

enum { PARAMETERS = 4, STEPS = 300 };

static tn_device place = {TN_CPU, -1};

/* A tensor where the network is, in the stead of one that may be elsewhere. */
static tn_tensor *placed(tn_tensor *made) {
    tn_tensor *moved = made == NULL ? NULL : tn_to_device(made, place, false);
    tn_free(made);
    return moved;
}

/* A leaf of random numbers that learns. NULL on failure, as every function of the library. */
static tn_tensor *parameter(int64_t rows, int64_t columns) {
    const int64_t shape[2] = {rows, columns};
    tn_tensor *made = placed(tn_randn(shape, columns > 0 ? 2 : 1));
    if (made != NULL && tn_set_requires_grad(made, true) != TN_OK) {
        tn_free(made);
        return NULL;
    }
    return made;
}

/* What the network makes of x. */
static tn_tensor *forward(const tn_tensor *x, tn_tensor *const *p) {
    tn_tensor *sums = tn_linear(x, p[0], p[1]);
    tn_tensor *hidden = sums == NULL ? NULL : tn_tanh(sums);
    tn_tensor *result = hidden == NULL ? NULL : tn_linear(hidden, p[2], p[3]);
    tn_free(sums);
    tn_free(hidden);
    return result;
}

/* One step; the loss before it, or a negative number on failure. */
static double step(const tn_tensor *x, const tn_tensor *y, tn_tensor *const *p, tn_optimizer *adam) {
    double found = -1;
    tn_scalar number;
    tn_tensor *result = NULL, *loss = NULL;
    if (tn_optimizer_zero_grad(adam) == TN_OK) result = forward(x, p);
    if (result != NULL) loss = tn_loss("binary_cross_entropy_with_logits", result, y);
    if (loss != NULL && tn_backward(loss) == TN_OK && tn_optimizer_step(adam) == TN_OK &&
        tn_tensor_item(loss, &number) == TN_OK) {
        found = number.as.d;
    }
    tn_free(result);
    tn_free(loss);
    return found;
}

static int learn(const tn_tensor *x, const tn_tensor *y, tn_tensor *const *p, tn_optimizer *adam) {
    double loss = 0;
    for (int i = 1; i <= STEPS; ++i) {
        loss = step(x, y, p, adam);
        if (loss < 0) return 1;
        if (i % 100 == 0) printf("step %d: loss %.4f\n", i, loss);
    }
    tn_tensor *result = forward(x, p);
    if (result == NULL) return 1;
    for (int64_t i = 0; i < 4; ++i) {
        const int64_t at[2] = {i, 0};
        tn_scalar number;
        if (tn_tensor_get(result, at, 2, &number) != TN_OK) break;
        printf("%d xor %d = %d\n", (int)(i / 2), (int)(i % 2), number.as.d > 0);
    }
    tn_free(result);
    return loss < 0.1 ? 0 : 1;
}

int main(void) {
    const float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, outputs[] = {0, 1, 1, 0};
    const int64_t x_shape[] = {4, 2}, y_shape[] = {4, 1};
    int failed = 1;
    tn_manual_seed(1);
    if (tn_cuda_available() == 1) place = (tn_device){TN_CUDA, 0};
    tn_tensor *x = placed(tn_tensor_from_data(inputs, TN_FLOAT32, x_shape, 2, NULL, 0));
    tn_tensor *y = placed(tn_tensor_from_data(outputs, TN_FLOAT32, y_shape, 2, NULL, 0));
    tn_tensor *p[PARAMETERS] = {parameter(8, 2), parameter(8, 0), parameter(1, 8), parameter(1, 0)};
    tn_optimizer *adam = tn_optimizer_adam((const tn_tensor *const *)p, PARAMETERS, 0.05);
    if (x != NULL && y != NULL && adam != NULL) failed = learn(x, y, p, adam);
    if (tn_error_code() != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
    tn_optimizer_free(adam);
    for (int i = 0; i < PARAMETERS; ++i) tn_free(p[i]);
    tn_free(x);
    tn_free(y);
    printf("%d tensors left\n", (int)tn_live_tensors());
    return failed || tn_live_tensors() != 0;
}
