/* Learn XOR with libtenfold_rt alone, whose handles are numbers: what a language's runtime would call. A function that
 * gives a number has a sibling that gives a tensor, and `backward` starts from that. */
#include <math.h>
#include <stdio.h>
#include <tenfold_rt.h>

enum { HIDDEN = 8, STEPS = 2000, PARAMETERS = 4 };

static const double RATE = 0.5;

/* A leaf that learns, of numbers spread between -1 and 1. */
static int64_t parameter(int64_t rows, int64_t columns) {
    double values[2 * HIDDEN];
    const int64_t shape[2] = {rows, columns}, flat = columns > 0 ? rows * columns : rows;
    for (int64_t i = 0; i < flat; i++) values[i] = sin((double)(7 * i + rows));
    int64_t made = rt_torch_tensor_from_data(values, flat, shape, columns > 0 ? 2 : 1);
    rt_torch_autograd_set_requires_grad(made, 1);
    return made;
}

/* What the network makes of x. */
static int64_t forward(int64_t x, const int64_t *p) {
    int64_t sums = rt_torch_nn_linear(x, p[0], p[1]), hidden = rt_torch_torchtensor_tanh(sums);
    int64_t logits = rt_torch_nn_linear(hidden, p[2], p[3]), result = rt_torch_torchtensor_sigmoid(logits);
    const int64_t made[] = {sums, hidden, logits};
    for (int i = 0; i < 3; i++) rt_torch_torchtensor_free(made[i]);
    return result;
}

/* A parameter after a step against its gradient: a new leaf. */
static int64_t improved(int64_t parameter) {
    int64_t grad = rt_torch_autograd_grad(parameter), change = rt_torch_torchtensor_mul_scalar(grad, -RATE);
    int64_t sum = rt_torch_torchtensor_add(parameter, change), leaf = rt_torch_autograd_detach(sum);
    rt_torch_autograd_set_requires_grad(leaf, 1);
    const int64_t made[] = {grad, change, sum, parameter};
    for (int i = 0; i < 4; i++) rt_torch_torchtensor_free(made[i]);
    return leaf;
}

int main(void) {
    const double inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, outputs[] = {0, 1, 1, 0};
    const int64_t pairs[] = {4, 2}, column[] = {4, 1};
    if (!rt_torch_available()) {
        fprintf(stderr, "libtorch is not there\n");
        return 1;
    }
    int64_t p[PARAMETERS] = {parameter(HIDDEN, 2), parameter(HIDDEN, 0), parameter(1, HIDDEN), parameter(1, 0)};
    int64_t x = rt_torch_tensor_from_data(inputs, 8, pairs, 2), y = rt_torch_tensor_from_data(outputs, 4, column, 2);
    for (int step = 0; step < STEPS; step++) {
        int64_t found = forward(x, p), loss = rt_torch_nn_mse_loss_tensor(found, y);
        rt_torch_autograd_backward(loss);
        if (step % 500 == 0) printf("step %4d   loss %.4f\n", step, rt_torch_torchtensor_item(loss));
        for (int i = 0; i < PARAMETERS; i++) p[i] = improved(p[i]);
        rt_torch_torchtensor_free(loss);
        rt_torch_torchtensor_free(found);
    }
    int64_t found = forward(x, p), count;
    const double *values = rt_torch_torchtensor_data(found, &count);
    for (int64_t i = 0; i < count; i++) printf("%g xor %g = %.0f\n", inputs[2 * i], inputs[2 * i + 1], values[i]);
    rt_torch_torchtensor_free(found);
    for (int i = 0; i < PARAMETERS; i++) rt_torch_torchtensor_free(p[i]);
    rt_torch_torchtensor_free(x);
    rt_torch_torchtensor_free(y);
    return 0;
}
