/* Learn to read digits: an MLP over 8x8 images from a safetensors file, in batches, with AdamW; on a GPU if
 * there is one.
 *
 * usage: 04_digits digits.safetensors, with `images` (float32, n x 64) and `labels` (int64, n) in it. */
#include <stdio.h>
#include <tenfold.h>

enum { PARAMETERS = 4, HIDDEN = 64, CLASSES = 10, PIXELS = 64, BATCH = 64, EPOCHS = 12, TRAINING = 1437 };

typedef struct {
    tn_tensor *parameters[PARAMETERS]; /* weight and bias of each layer */
    tn_optimizer *optimizer;
} model;

static tn_device place = {TN_CPU, -1};

/* A tensor where the model is, in the stead of one that may be elsewhere. */
static tn_tensor *placed(tn_tensor *made) {
    tn_tensor *moved = made == NULL ? NULL : tn_to_device(made, place, false);
    tn_free(made);
    return moved;
}

static tn_tensor *uniform(int64_t rows, int64_t columns, double bound) {
    const int64_t shape[2] = {rows, columns};
    tn_tensor *made = tn_zeros(shape, columns > 0 ? 2 : 1);
    if (made == NULL) return NULL;
    if (tn_uniform_(made, -bound, bound) == TN_OK) made = placed(made);
    if (made != NULL && tn_set_requires_grad(made, true) == TN_OK) return made;
    tn_free(made);
    return NULL;
}

static int model_make(model *m) {
    m->parameters[0] = uniform(HIDDEN, PIXELS, 0.125);
    m->parameters[1] = uniform(HIDDEN, 0, 0.125);
    m->parameters[2] = uniform(CLASSES, HIDDEN, 0.125);
    m->parameters[3] = uniform(CLASSES, 0, 0.125);
    m->optimizer = tn_optimizer_adamw((const tn_tensor *const *)m->parameters, PARAMETERS, 3e-3);
    return m->optimizer == NULL;
}

static void model_free(model *m) {
    tn_optimizer_free(m->optimizer);
    for (int i = 0; i < PARAMETERS; ++i) tn_free(m->parameters[i]);
}

static tn_tensor *forward(const model *m, const tn_tensor *images) {
    tn_tensor *sums = tn_linear(images, m->parameters[0], m->parameters[1]);
    tn_tensor *hidden = sums == NULL ? NULL : tn_relu(sums);
    tn_tensor *scores = hidden == NULL ? NULL : tn_linear(hidden, m->parameters[2], m->parameters[3]);
    tn_free(sums);
    tn_free(hidden);
    return scores;
}

/* One step on a batch. */
static tn_status train(model *m, const tn_tensor *images, const tn_tensor *labels) {
    tn_status status = tn_optimizer_zero_grad(m->optimizer);
    tn_tensor *scores = status == TN_OK ? forward(m, images) : NULL;
    tn_tensor *loss = scores == NULL ? NULL : tn_loss("cross_entropy", scores, labels);
    if (loss == NULL) {
        status = tn_error_code();
    } else {
        status = tn_backward(loss);
        if (status == TN_OK) status = tn_optimizer_step(m->optimizer);
    }
    tn_free(scores);
    tn_free(loss);
    return status;
}

static tn_status epoch(model *m, const tn_tensor *images, const tn_tensor *labels) {
    tn_status status = TN_OK;
    for (int64_t start = 0; status == TN_OK && start + BATCH <= TRAINING; start += BATCH) {
        tn_tensor *some = tn_narrow(images, 0, start, BATCH);
        tn_tensor *theirs = some == NULL ? NULL : tn_narrow(labels, 0, start, BATCH);
        status = theirs == NULL ? tn_error_code() : train(m, some, theirs);
        tn_free(some);
        tn_free(theirs);
    }
    return status;
}

/* How many of the images from `start` on are read correctly, or -1. */
static double correct(const model *m, const tn_tensor *images, const tn_tensor *labels, int64_t start,
                      int64_t count) {
    const int64_t dim = 1;
    const int64_t scope = tn_no_grad_begin();
    tn_scalar number;
    double found = -1;
    tn_tensor *some = tn_narrow(images, 0, start, count), *theirs = tn_narrow(labels, 0, start, count);
    tn_tensor *scores = some == NULL ? NULL : forward(m, some);
    tn_tensor *guesses = scores == NULL ? NULL : tn_argmax(scores, &dim, false);
    tn_tensor *right = guesses == NULL || theirs == NULL ? NULL : tn_eq(guesses, theirs);
    tn_tensor *sum = right == NULL ? NULL : tn_sum(right);
    if (sum != NULL && tn_tensor_item(sum, &number) == TN_OK) found = (double)number.as.i;
    tn_free(some);
    tn_free(theirs);
    tn_free(scores);
    tn_free(guesses);
    tn_free(right);
    tn_free(sum);
    (void)tn_scope_end(scope);
    return found;
}

/* A tensor of a file by name. */
static tn_tensor *named(const tn_value *file, const char *name) {
    tn_value *entry = tn_value_get_string(file, name);
    tn_tensor *found = entry == NULL ? NULL : tn_value_to_tensor(entry);
    tn_value_free(entry);
    return found;
}

static int run(const char *path) {
    int failed = 1;
    model m = {{NULL}, NULL};
    tn_value *file = tn_load_safetensors(path);
    tn_tensor *images = file == NULL ? NULL : placed(named(file, "images"));
    tn_tensor *labels = images == NULL ? NULL : placed(named(file, "labels"));
    if (labels != NULL && model_make(&m) == 0) {
        tn_status status = TN_OK;
        for (int i = 0; status == TN_OK && i < EPOCHS; ++i) status = epoch(&m, images, labels);
        const int64_t rest = tn_tensor_size(images, 0) - TRAINING;
        const double right = status == TN_OK ? correct(&m, images, labels, TRAINING, rest) : -1;
        if (right >= 0) {
            printf("%d of %d new digits read correctly\n", (int)right, (int)rest);
            failed = right < 0.9 * (double)rest;
        }
    }
    model_free(&m);
    tn_free(images);
    tn_free(labels);
    tn_value_free(file);
    return failed;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: %s digits.safetensors\n", arguments[0]);
        return 2;
    }
    tn_manual_seed(0);
    if (tn_cuda_available() == 1) place = (tn_device){TN_CUDA, 0};
    const int failed = run(arguments[1]);
    if (tn_error_code() != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
    printf("%d tensors left\n", (int)tn_live_tensors());
    return failed || tn_live_tensors() != 0;
}
