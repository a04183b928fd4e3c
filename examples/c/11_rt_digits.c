/* Learn to read digits with libtenfold_rt alone, whose handles are numbers: two layers over 8x8 images, in batches.
 *
 * usage: 11_rt_digits digits.txt, where each line is an image: 64 numbers from 0 to 1, and what digit it is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenfold_rt.h>

enum { PIXELS = 64, HIDDEN = 64, CLASSES = 10, BATCH = 64, EPOCHS = 20, TRAINING = 1437, MOST = 2000, PARAMETERS = 4 };

static const double RATE = 0.2;
static double pixels[MOST * PIXELS], labels[MOST];

/* How many images the file has. */
static int64_t load(const char *path) {
    FILE *file = fopen(path, "r");
    int64_t found = 0;
    while (file != NULL && found < MOST) {
        int64_t i = 0;
        while (i < PIXELS && fscanf(file, "%lf", &pixels[found * PIXELS + i]) == 1) i++;
        if (i < PIXELS || fscanf(file, "%lf", &labels[found]) != 1) break;
        found++;
    }
    if (file != NULL) fclose(file);
    return found;
}

/* Images from one place to another, or their labels. */
static int64_t images(int64_t from, int64_t to) {
    const int64_t shape[] = {to - from, PIXELS};
    return rt_torch_tensor_from_data(pixels + from * PIXELS, (to - from) * PIXELS, shape, 2);
}

static int64_t digits(int64_t from, int64_t to) {
    const int64_t shape[] = {to - from};
    return rt_torch_tensor_from_data(labels + from, to - from, shape, 1);
}

/* A leaf that learns. */
static int64_t parameter(int64_t rows, int64_t columns) {
    const int64_t shape[] = {rows, columns};
    int64_t drawn = rt_torch_tensor_rand(shape, columns > 0 ? 2 : 1);
    int64_t centred = rt_torch_torchtensor_add_scalar(drawn, -0.5);
    int64_t made = rt_torch_torchtensor_mul_scalar(centred, 0.25);
    rt_torch_autograd_set_requires_grad(made, 1);
    rt_torch_torchtensor_free(drawn);
    rt_torch_torchtensor_free(centred);
    return made;
}

/* What the network makes of x: a number for each digit. */
static int64_t forward(int64_t x, const int64_t *p) {
    int64_t sums = rt_torch_nn_linear(x, p[0], p[1]), hidden = rt_torch_torchtensor_relu(sums);
    int64_t result = rt_torch_nn_linear(hidden, p[2], p[3]);
    rt_torch_torchtensor_free(sums);
    rt_torch_torchtensor_free(hidden);
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

/* Go once through the images; the mean loss. */
static double learn(int64_t *p) {
    double total = 0;
    int batches = 0;
    for (int64_t at = 0; at < TRAINING; at += BATCH, batches++) {
        const int64_t end = at + BATCH < TRAINING ? at + BATCH : TRAINING;
        int64_t x = images(at, end), y = digits(at, end);
        int64_t found = forward(x, p), loss = rt_torch_nn_cross_entropy_tensor(found, y);
        rt_torch_autograd_backward(loss);
        total += rt_torch_torchtensor_item(loss);
        for (int i = 0; i < PARAMETERS; i++) p[i] = improved(p[i]);
        const int64_t made[] = {x, y, found, loss};
        for (int i = 0; i < 4; i++) rt_torch_torchtensor_free(made[i]);
    }
    return total / batches;
}

/* How many images from one place to another are read right. */
static int64_t right(const int64_t *p, int64_t from, int64_t to) {
    int64_t x = images(from, to), found = forward(x, p), places = rt_torch_torchtensor_argmax(found, 1, 0);
    int64_t count, correct = 0;
    const double *read = rt_torch_torchtensor_data(places, &count);
    for (int64_t i = 0; i < count; i++) correct += read[i] == labels[from + i];
    const int64_t made[] = {x, found, places};
    for (int i = 0; i < 3; i++) rt_torch_torchtensor_free(made[i]);
    return correct;
}

int main(int argc, char **argv) {
    const int64_t count = argc > 1 ? load(argv[1]) : 0;
    if (count <= TRAINING || !rt_torch_available()) {
        fprintf(stderr, count <= TRAINING ? "give a file of digits\n" : "libtorch is not there\n");
        return 1;
    }
    int64_t p[PARAMETERS] = {
        parameter(HIDDEN, PIXELS), parameter(HIDDEN, 0), parameter(CLASSES, HIDDEN), parameter(CLASSES, 0)};
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        double loss = learn(p);
        if (epoch % 5 == 0) printf("epoch %2d   loss %.4f\n", epoch, loss);
    }
    printf("%.1f %% of images never seen are read right\n", 100.0 * (double)right(p, TRAINING, count) / (double)(count - TRAINING));
    for (int i = 0; i < PARAMETERS; i++) rt_torch_torchtensor_free(p[i]);
    return 0;
}
