/* What is known without libtorch: shapes. A handle is then a META, and the functions of the table that have a
 * rule after `~` give the shape of their result; what needs elements fails.
 *
 * These rules repeat in C what FlatIR says in Python, because they serve hosts that have neither libtorch nor
 * Python. A test holds them against libtorch: each call must give the same shape, or fail, with and without it. */
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

/* The same of a tensor. Most operators take a number for a vector, which has a dimension 0. */
static int64_t axis(int64_t dim, int64_t handle) {
    const int64_t rank = handle == 0 ? 0 : META_OF(handle)->rank;
    return place(dim, rank == 0 ? 1 : rank);
}

static bool is_number(int64_t handle) { return handle != 0 && META_OF(handle)->rank == 0; }

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

/* The shape itself, of an operator along a dimension. */
static int64_t along(int64_t handle, int64_t dim) {
    return handle != 0 && axis(dim, handle) < 0 ? wrong("there is no such dimension") : like(handle);
}

static int64_t reduced(int64_t handle, int64_t dim, int32_t keepdim) {
    if (is_number(handle)) return along(handle, dim);
    if (handle == 0 || keepdim) return resized(handle, dim, 1);
    const int64_t at = axis(dim, handle);
    return at < 0 ? wrong("there is no such dimension") : without(handle, at);
}

/* The largest or smallest along a dimension, which none is of no elements. */
static int64_t extreme_along(int64_t handle, int64_t dim, int32_t keepdim) {
    const int64_t at = axis(dim, handle);
    const bool empty = handle != 0 && at >= 0 && at < META_OF(handle)->rank && META_OF(handle)->sizes[at] == 0;
    return empty ? wrong("the dimension has no elements") : reduced(handle, dim, keepdim);
}

static int64_t extreme(int64_t handle) {
    return handle != 0 && numel_of(handle) == 0 ? wrong("the tensor has no elements") : scalar(handle);
}

static int64_t swapped(int64_t handle, int64_t dim0, int64_t dim1) {
    const int64_t a = axis(dim0, handle), b = axis(dim1, handle);
    if (handle != 0 && (a < 0 || b < 0)) return wrong("there is no such dimension");
    int64_t result = like(handle);
    if (result == 0 || is_number(result)) return result;
    int64_t *sizes = META_OF(result)->sizes, first = sizes[a];
    sizes[a] = sizes[b];
    sizes[b] = first;
    return result;
}

static int64_t turned(int64_t handle) {
    if (handle != 0 && META_OF(handle)->rank > 2) return wrong("t takes a matrix");
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

/* Whether the last two dimensions are those of square matrices. */
static bool square(int64_t handle) {
    const META *m = META_OF(handle);
    return m != NULL && m->rank >= 2 && m->sizes[m->rank - 2] == m->sizes[m->rank - 1];
}

static int64_t inverted(int64_t handle) { return square(handle) ? like(handle) : wrong("a square matrix is needed"); }

static int64_t singular(int64_t handle) {
    if (handle == 0 || META_OF(handle)->rank < 2) return wrong("a matrix is needed");
    const META *m = META_OF(handle);
    const int64_t rows = m->sizes[m->rank - 2], columns = m->sizes[m->rank - 1];
    int64_t result = without(handle, m->rank - 1);
    if (result != 0) META_OF(result)->sizes[m->rank - 2] = rows < columns ? rows : columns;
    return result;
}

static int64_t eigenvalues(int64_t handle) {
    return square(handle) ? singular(handle) : wrong("a square matrix is needed");
}

static int64_t determinant(int64_t handle) {
    return square(handle) ? made(META_OF(handle)->sizes, META_OF(handle)->rank - 2) : wrong("a square matrix is needed");
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
    const int64_t at = handle == 0 ? -1 : axis(dim, handle);
    if (at < 0) return wrong("there is no such dimension");
    return !is_number(handle) && META_OF(handle)->sizes[at] == 1 ? without(handle, at) : like(handle);
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
    if (handle == 0 || indices == 0) return wrong("no tensor is given");
    if (META_OF(indices)->rank > 1) return wrong("the indices are no vector");
    if (!is_number(handle)) return resized(handle, dim, numel_of(indices));
    return numel_of(indices) == 1 ? along(handle, dim) : wrong("a number has one element");
}

/* The shape of the indices, which must lie within the other dimensions of the input. */
static int64_t picked(int64_t handle, int64_t dim, int64_t indices) {
    if (handle == 0 || indices == 0) return wrong("no tensor is given");
    const META *x = META_OF(handle), *i = META_OF(indices);
    const int64_t rank = x->rank == 0 ? 1 : x->rank, at = axis(dim, handle);
    if (at < 0) return wrong("there is no such dimension");
    if (numel_of(indices) == 0) return like(indices);
    if (rank != (i->rank == 0 ? 1 : i->rank)) return wrong("the indices have another number of dimensions");
    for (int64_t d = 0; d < x->rank && d < i->rank; d++)
        if (d != at && i->sizes[d] > x->sizes[d]) return wrong("the indices are larger than the input");
    return like(indices);
}

static bool same_shape(int64_t left, int64_t right) {
    const META *a = META_OF(left), *b = META_OF(right);
    if (a == NULL || b == NULL || a->rank != b->rank) return false;
    for (int64_t i = 0; i < a->rank; i++)
        if (a->sizes[i] != b->sizes[i]) return false;
    return true;
}

/* Whether `cat` passes over a tensor: one of shape (0,) joins any others. */
static bool skipped(const META *meta) { return meta->rank == 1 && meta->sizes[0] == 0; }

static int64_t joined(const int64_t *handles, int64_t count, int64_t dim) {
    int64_t total = 0, model = 0;
    if (count < 1 || handles == NULL) return wrong("no tensor is given");
    for (int64_t i = 0; i < count; i++) {
        if (handles[i] == 0) return wrong("no tensor is given");
        if (model == 0 || skipped(META_OF(model))) model = handles[i];
    }
    const META *first = META_OF(model);
    const int64_t at = place(dim, first->rank);
    if (at < 0) return wrong("there is no such dimension");
    for (int64_t i = 0; i < count; i++) {
        const META *meta = META_OF(handles[i]);
        if (skipped(meta)) continue;
        if (meta->rank != first->rank) return wrong("the tensors have other dimensions");
        for (int64_t j = 0; j < meta->rank; j++)
            if (j != at && meta->sizes[j] != first->sizes[j]) return wrong("the tensors have other sizes");
        total += meta->sizes[at];
    }
    return resized(model, dim, total);
}

static int64_t stacked(const int64_t *handles, int64_t count, int64_t dim) {
    int64_t one = count < 1 || handles == NULL ? wrong("no tensor is given") : unsqueezed(handles[0], dim);
    for (int64_t i = 1; one != 0 && i < count; i++) {
        if (!same_shape(handles[0], handles[i])) {
            free(META_OF(one));
            return wrong("the tensors have other shapes");
        }
    }
    int64_t result = one == 0 ? 0 : resized(one, dim, count);
    free(META_OF(one));
    return result;
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
