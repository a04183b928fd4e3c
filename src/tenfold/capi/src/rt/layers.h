/* The shapes of layers and losses, for hosts without libtorch; those of everything else are in shapes.h. */

/* A result, or 0 if a bias cannot be added to it. */
static int64_t with_bias(int64_t result, int64_t bias) {
    if (result == 0 || bias == 0) return result;
    int64_t sum = broadcast(result, bias);
    const bool fits = sum != 0 && same_shape(sum, result);
    free(META_OF(sum));
    if (fits) return result;
    free(META_OF(result));
    return wrong("the bias does not fit the result");
}

/* Whether an optional tensor is missing or a vector of this size. */
static bool vector_of(int64_t handle, int64_t size) {
    return handle == 0 || (META_OF(handle)->rank == 1 && META_OF(handle)->sizes[0] == size);
}

static int64_t dropped(int64_t input, double p) {
    return p >= 0 && p <= 1 ? like(input) : wrong("a probability is between 0 and 1");
}

static int64_t normalized(int64_t input, const int64_t *sizes, int64_t rank, int64_t weight, int64_t bias) {
    if (input == 0 || rank < 1 || META_OF(input)->rank < rank) return wrong("the input does not end in the normalized shape");
    const META *x = META_OF(input);
    for (int64_t i = 0; i < rank; i++)
        if (x->sizes[x->rank - rank + i] != sizes[i]) return wrong("the input does not end in the normalized shape");
    int64_t shape = made(sizes, rank);
    const bool fit = shape != 0 && (weight == 0 || same_shape(weight, shape)) && (bias == 0 || same_shape(bias, shape));
    free(META_OF(shape));
    return fit ? like(input) : wrong("weight and bias have the normalized shape");
}

static int64_t batch_normalized(int64_t input, int64_t mean, int64_t var, int64_t weight, int64_t bias, int32_t training) {
    if (input == 0 || META_OF(input)->rank < 2) return wrong("batch_norm takes a batch of channels");
    if (!training && (mean == 0 || var == 0)) return wrong("outside training, batch_norm needs the running statistics");
    const int64_t channels = META_OF(input)->sizes[1];
    const bool fit = vector_of(mean, channels) && vector_of(var, channels) && vector_of(weight, channels) && vector_of(bias, channels);
    return fit ? like(input) : wrong("batch_norm takes a number for each channel");
}

/* The mean of an elementwise loss. */
static int64_t mean_loss(int64_t input, int64_t target) {
    int64_t each = broadcast(input, target);
    free(META_OF(each));
    return each == 0 ? 0 : made(NULL, 0);
}

/* A class, or a probability of each, for every place of the input outside of its dimension of classes. */
static int64_t classified(int64_t input, int64_t target) {
    if (input == 0 || target == 0 || META_OF(input)->rank < 1) return wrong("cross_entropy takes classes and a target");
    if (same_shape(input, target)) return made(NULL, 0);
    int64_t classes = without(input, META_OF(input)->rank == 1 ? 0 : 1);
    const bool fits = classes != 0 && same_shape(classes, target);
    free(META_OF(classes));
    return fits ? made(NULL, 0) : wrong("the target has another shape than the input without its classes");
}

static int64_t linear_of(int64_t input, int64_t weight, int64_t bias) {
    if (weight != 0 && bias != 0 && META_OF(weight)->rank != 2) return wrong("a bias is added where the weight is a matrix");
    int64_t turned_weight = turned(weight), result = turned_weight == 0 ? 0 : product(input, turned_weight);
    free(META_OF(turned_weight));
    return with_bias(result, bias);
}

static int64_t embedded(int64_t input, int64_t weight) {
    if (input == 0 || weight == 0 || META_OF(weight)->rank != 2) return wrong("embedding takes places and a matrix");
    int64_t wide = unsqueezed(input, -1), result = wide == 0 ? 0 : resized(wide, -1, META_OF(weight)->sizes[1]);
    free(META_OF(wide));
    return result;
}

/* One of one or two numbers, which stand for both dimensions where there is but one. */
static int64_t of_pair(const int64_t *numbers, int64_t count, int64_t i, int64_t otherwise) {
    return count < 1 || numbers == NULL ? otherwise : numbers[count > i ? i : count - 1];
}

typedef struct {
    const int64_t *numbers;
    int64_t count;
} PAIR;

#define PAIR_OF(name) ((PAIR){name, name##_count})
#define NO_PAIR ((PAIR){NULL, 0})

/* Windows over the last two dimensions. */
static int64_t windowed(int64_t input, PAIR kernel, PAIR stride, PAIR padding, PAIR dilation, int64_t channels) {
    const bool plane = kernel.count <= 2 && stride.count <= 2 && dilation.count <= 2 && (padding.count == 1 || padding.count == 2);
    int64_t result = plane ? like(input) : wrong("a window has two dimensions");
    META *meta = META_OF(result);
    if (result == 0) return 0;
    for (int64_t i = 0; i < 2 && (meta->rank == 3 || meta->rank == 4); i++) {
        const int64_t size = of_pair(kernel.numbers, kernel.count, i, 1), at = meta->rank - 2 + i;
        const int64_t step = of_pair(stride.numbers, stride.count, i, size), pad = of_pair(padding.numbers, padding.count, i, 0);
        const int64_t spread = of_pair(dilation.numbers, dilation.count, i, 1);
        const int64_t room = meta->sizes[at] + 2 * pad - (spread * (size - 1) + 1);
        if (size <= 0 || step <= 0 || pad < 0 || spread <= 0 || room < 0) break;
        if (channels < 0 && pad > size / 2) break; /* of a pool each window holds elements of the input */
        meta->sizes[at] = room / step + 1;
        if (i == 1) {
            if (channels >= 0) meta->sizes[meta->rank - 3] = channels;
            return result;
        }
    }
    free(meta);
    return wrong("the window does not fit the input");
}

static int64_t convolved(int64_t input, int64_t weight, int64_t bias, PAIR stride, PAIR padding, PAIR dilation, int64_t groups) {
    if (input == 0 || weight == 0 || META_OF(weight)->rank != 4 || META_OF(input)->rank < 3) return wrong("conv2d takes images and a weight of four dimensions");
    const META *w = META_OF(weight), *x = META_OF(input);
    if (x->sizes[x->rank - 3] != w->sizes[1] * groups) return wrong("the channels of input and weight differ");
    if (groups <= 0 || w->sizes[0] % groups != 0) return wrong("the groups do not divide the channels");
    if (!vector_of(bias, w->sizes[0])) return wrong("the bias has a number for each channel of the result");
    if (stride.count < 1 || dilation.count < 1) return wrong("conv2d takes a stride and a dilation");
    const PAIR kernel = {w->sizes + 2, 2};
    return windowed(input, kernel, stride, padding, dilation, w->sizes[0]);
}
