/* What is known without libtorch: shapes. A handle is then a META, and the functions of the table that have a
 * rule after `~` give the shape of their result; what needs elements fails. */
typedef struct {
    int64_t rank;
    int32_t requires_grad;
    int64_t sizes[];
} META;

#define META_OF(handle) ((META *)(intptr_t)(handle))

/* Whether libtorch is missing; asked once, so that all handles of a process are of one kind. */
static bool WITHOUT_TORCH(void) {
    static int answer; /* 0 not asked, 1 it is there, 2 it is not */
    int known = __atomic_load_n(&answer, __ATOMIC_ACQUIRE);
    if (known == 0) {
        known = tn_available() ? 1 : 2;
        __atomic_store_n(&answer, known, __ATOMIC_RELEASE);
    }
    return known == 2;
}

static int64_t wrong(const char *why) {
    (void)tn_fail(why);
    return 0;
}

static int64_t made(const int64_t *sizes, int64_t rank) {
    if (rank < 0 || (rank > 0 && sizes == NULL)) return wrong("no shape is given");
    META *meta = calloc(1, sizeof *meta + (size_t)rank * sizeof *sizes);
    if (meta == NULL) return wrong("out of memory");
    meta->rank = rank;
    for (int64_t i = 0; i < rank; i++) {
        meta->sizes[i] = sizes[i];
        if (sizes[i] < 0) {
            free(meta);
            return wrong("a size is negative");
        }
    }
    return (int64_t)(intptr_t)meta;
}

static int64_t like(int64_t handle) {
    return handle == 0 ? wrong("no tensor is given") : made(META_OF(handle)->sizes, META_OF(handle)->rank);
}

static int64_t scalar(int64_t handle) { return handle == 0 ? wrong("no tensor is given") : made(NULL, 0); }
static int64_t vector(int64_t size) { return made(&size, 1); }
static int64_t matrix(int64_t size) { return made((const int64_t[]){size, size}, 2); }

static int64_t counted(double start, double end, double step) {
    if (step == 0) return wrong("the step is 0");
    const double steps = (end - start) / step;
    const int64_t whole = (int64_t)steps;
    return vector(whole + (steps > (double)whole));
}

static int64_t numel_of(int64_t handle) {
    int64_t count = 1;
    if (handle == 0) return wrong("no tensor is given") - 1;
    for (int64_t i = 0; i < META_OF(handle)->rank; i++) count *= META_OF(handle)->sizes[i];
    return count;
}

static int64_t filled(int64_t count, const int64_t *sizes, int64_t rank) {
    int64_t result = made(sizes, rank);
    if (result == 0 || numel_of(result) == count) return result;
    free(META_OF(result));
    return wrong("the data does not fill the shape");
}

/* A dimension counted from the front; -1 if there is none such. */
static int64_t place(int64_t dim, int64_t rank) {
    const int64_t found = dim < 0 ? dim + rank : dim;
    return found >= 0 && found < rank ? found : -1;
}

static int64_t broadcast(int64_t left, int64_t right) {
    if (left == 0 || right == 0) return wrong("no tensor is given");
    const META *a = META_OF(left), *b = META_OF(right);
    int64_t result = a->rank >= b->rank ? like(left) : like(right);
    for (int64_t i = 1; result != 0 && i <= a->rank && i <= b->rank; i++) {
        const int64_t x = a->sizes[a->rank - i], y = b->sizes[b->rank - i];
        if (x != y && x != 1 && y != 1) {
            free(META_OF(result));
            return wrong("the shapes cannot be broadcast");
        }
        META_OF(result)->sizes[META_OF(result)->rank - i] = x == 1 ? y : x;
    }
    return result;
}

/* A copy without dimension `at`. */
static int64_t without(int64_t handle, int64_t at) {
    int64_t result = like(handle);
    if (result == 0) return 0;
    META *meta = META_OF(result);
    for (int64_t i = at; i + 1 < meta->rank; i++) meta->sizes[i] = meta->sizes[i + 1];
    meta->rank--;
    return result;
}

static int64_t resized(int64_t handle, int64_t dim, int64_t size) {
    int64_t result = like(handle);
    const int64_t at = result == 0 ? -1 : place(dim, META_OF(result)->rank);
    if (result != 0 && at >= 0 && size >= 0) {
        META_OF(result)->sizes[at] = size;
        return result;
    }
    free(META_OF(result));
    return result == 0 ? 0 : wrong("there is no such dimension");
}

static int64_t reduced(int64_t handle, int64_t dim, int32_t keepdim) {
    if (handle == 0 || keepdim) return resized(handle, dim, 1);
    const int64_t at = place(dim, META_OF(handle)->rank);
    return at < 0 ? wrong("there is no such dimension") : without(handle, at);
}

static int64_t swapped(int64_t handle, int64_t dim0, int64_t dim1) {
    int64_t result = like(handle);
    const int64_t rank = result == 0 ? 0 : META_OF(result)->rank, a = place(dim0, rank), b = place(dim1, rank);
    if (result == 0) return 0;
    if (a < 0 || b < 0) {
        free(META_OF(result));
        return wrong("there is no such dimension");
    }
    int64_t *sizes = META_OF(result)->sizes, first = sizes[a];
    sizes[a] = sizes[b];
    sizes[b] = first;
    return result;
}

static int64_t turned(int64_t handle) {
    return handle != 0 && META_OF(handle)->rank < 2 ? like(handle) : swapped(handle, 0, 1);
}

/* Matrices multiplied; what stands before their dimensions is broadcast. */
static int64_t product(int64_t left, int64_t right) {
    if (left == 0 || right == 0) return wrong("no tensor is given");
    const META *a = META_OF(left), *b = META_OF(right);
    if (a->rank == 0 || b->rank == 0) return wrong("a number is no matrix");
    const int64_t inner = a->sizes[a->rank - 1];
    if (inner != b->sizes[b->rank == 1 ? 0 : b->rank - 2]) return wrong("the inner dimensions differ");
    int64_t before = made(a->sizes, a->rank > 2 ? a->rank - 2 : 0), after = made(b->sizes, b->rank > 2 ? b->rank - 2 : 0);
    int64_t batch = broadcast(before, after), sizes[66], rank = batch == 0 || META_OF(batch)->rank > 64 ? -1 : META_OF(batch)->rank;
    for (int64_t i = 0; i < rank; i++) sizes[i] = META_OF(batch)->sizes[i];
    free(META_OF(before));
    free(META_OF(after));
    free(META_OF(batch));
    if (rank < 0) return 0;
    if (a->rank > 1) sizes[rank++] = a->sizes[a->rank - 2];
    if (b->rank > 1) sizes[rank++] = b->sizes[b->rank - 1];
    return made(sizes, rank);
}

static int64_t inner_product(int64_t left, int64_t right) {
    const bool vectors = left != 0 && right != 0 && META_OF(left)->rank == 1 && META_OF(right)->rank == 1;
    return vectors ? product(left, right) : wrong("dot takes two vectors");
}

static int64_t singular(int64_t handle) {
    if (handle == 0 || META_OF(handle)->rank < 2) return wrong("a matrix is needed");
    const META *m = META_OF(handle);
    const int64_t rows = m->sizes[m->rank - 2], columns = m->sizes[m->rank - 1];
    int64_t result = without(handle, m->rank - 1);
    if (result != 0) META_OF(result)->sizes[m->rank - 2] = rows < columns ? rows : columns;
    return result;
}

static int64_t reshaped(int64_t handle, const int64_t *sizes, int64_t rank) {
    int64_t count = numel_of(handle), known = 1, open = -1, found[64];
    if (count < 0) return 0;
    if (rank > 64) return wrong("a shape has at most 64 dimensions here");
    for (int64_t i = 0; i < rank; i++) {
        found[i] = sizes[i];
        if (sizes[i] == -1 && open < 0)
            open = i;
        else
            known *= sizes[i];
    }
    if (open >= 0) found[open] = known > 0 ? count / known : -1;
    if (open >= 0 ? known <= 0 || count % known != 0 : known != count) return wrong("the shape has another number of elements");
    return made(found, rank);
}

static int64_t permuted(int64_t handle, const int64_t *dims, int64_t rank) {
    int64_t result = like(handle), seen = 0;
    if (result == 0) return 0;
    for (int64_t i = 0; i < rank && rank == META_OF(handle)->rank; i++) {
        const int64_t at = place(dims[i], rank);
        if (at < 0 || at > 62 || (seen >> at & 1)) break;
        seen |= INT64_C(1) << at;
        META_OF(result)->sizes[i] = META_OF(handle)->sizes[at];
        if (i + 1 == rank) return result;
    }
    if (rank == 0 && META_OF(handle)->rank == 0) return result;
    free(META_OF(result));
    return wrong("the dimensions are no permutation");
}

static int64_t squeezed(int64_t handle) {
    int64_t result = like(handle), rank = 0;
    if (result == 0) return 0;
    META *meta = META_OF(result);
    for (int64_t i = 0; i < meta->rank; i++)
        if (meta->sizes[i] != 1) meta->sizes[rank++] = meta->sizes[i];
    meta->rank = rank;
    return result;
}

static int64_t squeezed_at(int64_t handle, int64_t dim) {
    const int64_t at = handle == 0 ? -1 : place(dim, META_OF(handle)->rank);
    if (at < 0) return wrong("there is no such dimension");
    return META_OF(handle)->sizes[at] == 1 ? without(handle, at) : like(handle);
}

static int64_t unsqueezed(int64_t handle, int64_t dim) {
    if (handle == 0) return wrong("no tensor is given");
    const META *meta = META_OF(handle);
    const int64_t at = place(dim, meta->rank + 1);
    int64_t sizes[65];
    if (at < 0 || meta->rank > 64) return wrong("there is no such dimension");
    for (int64_t i = 0; i <= meta->rank; i++) sizes[i] = i == at ? 1 : meta->sizes[i < at ? i : i - 1];
    return made(sizes, meta->rank + 1);
}

static int64_t flat(int64_t handle) {
    const int64_t count = numel_of(handle);
    return count < 0 ? 0 : vector(count);
}

static int64_t sliced(int64_t handle, int64_t dim, int64_t start, int64_t end, int64_t step) {
    const int64_t at = handle == 0 ? -1 : place(dim, META_OF(handle)->rank);
    if (at < 0 || step <= 0) return wrong(at < 0 ? "there is no such dimension" : "the step is not positive");
    const int64_t size = META_OF(handle)->sizes[at];
    start = start < 0 ? (start + size < 0 ? 0 : start + size) : start > size ? size : start;
    end = end < 0 ? end + size : end > size ? size : end;
    return resized(handle, dim, end <= start ? 0 : (end - start + step - 1) / step);
}

static int64_t selected(int64_t handle, int64_t dim, int64_t indices) {
    return indices == 0 ? wrong("no tensor is given") : resized(handle, dim, numel_of(indices));
}

static int64_t joined(const int64_t *handles, int64_t count, int64_t dim) {
    int64_t total = 0;
    if (count < 1 || handles == NULL || handles[0] == 0) return wrong("no tensor is given");
    const META *first = META_OF(handles[0]);
    const int64_t at = place(dim, first->rank);
    if (at < 0) return wrong("there is no such dimension");
    for (int64_t i = 0; i < count; i++) {
        const META *meta = META_OF(handles[i]);
        if (meta == NULL || meta->rank != first->rank) return wrong("the tensors have other dimensions");
        for (int64_t j = 0; j < meta->rank; j++)
            if (j != at && meta->sizes[j] != first->sizes[j]) return wrong("the tensors have other sizes");
        total += meta->sizes[at];
    }
    return resized(handles[0], dim, total);
}

static int64_t stacked(const int64_t *handles, int64_t count, int64_t dim) {
    int64_t one = count < 1 || handles == NULL ? wrong("no tensor is given") : unsqueezed(handles[0], dim);
    for (int64_t i = 1; one != 0 && i < count; i++) {
        int64_t same = broadcast(handles[0], handles[i]);
        if (same == 0 || META_OF(handles[i])->rank != META_OF(handles[0])->rank) {
            free(META_OF(same));
            free(META_OF(one));
            return wrong("the tensors have other shapes");
        }
        free(META_OF(same));
    }
    int64_t result = one == 0 ? 0 : resized(one, dim, count);
    free(META_OF(one));
    return result;
}

static int64_t linear_of(int64_t input, int64_t weight) {
    int64_t turned_weight = turned(weight), result = turned_weight == 0 ? 0 : product(input, turned_weight);
    free(META_OF(turned_weight));
    return result;
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
    int64_t result = like(input);
    META *meta = META_OF(result);
    if (result == 0) return 0;
    for (int64_t i = 0; i < 2 && meta->rank >= 3; i++) {
        const int64_t size = of_pair(kernel.numbers, kernel.count, i, 1), at = meta->rank - 2 + i;
        const int64_t step = of_pair(stride.numbers, stride.count, i, size), pad = of_pair(padding.numbers, padding.count, i, 0);
        const int64_t reach = of_pair(dilation.numbers, dilation.count, i, 1) * (size - 1) + 1;
        const int64_t room = meta->sizes[at] + 2 * pad - reach;
        if (step <= 0 || room < 0) break;
        meta->sizes[at] = room / step + 1;
        if (i == 1) {
            if (channels >= 0) meta->sizes[meta->rank - 3] = channels;
            return result;
        }
    }
    free(meta);
    return wrong("the window does not fit the input");
}

static int64_t convolved(int64_t input, int64_t weight, PAIR stride, PAIR padding, PAIR dilation, int64_t groups) {
    if (input == 0 || weight == 0 || META_OF(weight)->rank != 4 || META_OF(input)->rank < 3) return wrong("conv2d takes images and a weight of four dimensions");
    const META *w = META_OF(weight), *x = META_OF(input);
    if (x->sizes[x->rank - 3] != w->sizes[1] * groups) return wrong("the channels of input and weight differ");
    const int64_t unit = 1;
    const PAIR kernel = {w->sizes + 2, 2}, by_one = {&unit, 1};
    return windowed(input, kernel, stride.count < 1 ? by_one : stride, padding, dilation, w->sizes[0]);
}

static const int64_t *sizes_of(int64_t handle, int64_t *count) {
    if (count != NULL) *count = handle == 0 ? -1 : META_OF(handle)->rank;
    return handle == 0 ? NULL : META_OF(handle)->sizes;
}

static int64_t rank_of(int64_t handle) { return handle == 0 ? wrong("no tensor is given") - 1 : META_OF(handle)->rank; }

static void set_grad(int64_t handle, int32_t truth) {
    if (handle != 0) META_OF(handle)->requires_grad = truth != 0;
}

static int32_t has_grad(int64_t handle) { return handle == 0 ? -1 : META_OF(handle)->requires_grad; }
static void let_go(int64_t handle) { free(META_OF(handle)); }
static int32_t no_device(int64_t handle) { return handle == 0 ? -2 : -1; }
