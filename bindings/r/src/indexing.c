/* indexing.c: x[i, j] and x[i, j] <- value, with positions from 1; negative ones count from the end, NULL is a new axis. */
#include "bridge.h"

#include <math.h>

enum { MOST_DIMENSIONS = 64 };
typedef enum { WHOLE, ONE, RANGE, PLACES } index_kind;
typedef struct {
    index_kind kind;
    int64_t start, step, count; /* of ONE and RANGE, from 0 */
    SEXP places;                /* a tensor of positions from 0 */
} chosen;

/* What one call of this file makes, kept from R's collector. */
typedef struct {
    SEXP list;
    int used;
} keeper;

static SEXP keep(keeper *k, SEXP x) {
    SET_VECTOR_ELT(k->list, k->used++, x);
    return x;
}

static keeper new_keeper(void) { return (keeper){Rf_allocVector(VECSXP, 6 * MOST_DIMENSIONS), 0}; }

static void outside(double position, int64_t size, int dim) {
    fail_with(TN_ERROR_INDEX, "index %s is out of bounds for dimension %d with size %lld", as_r_writes(position), dim + 1,
              (long long)size);
}

static SEXP places_tensor(const int64_t *places, int64_t count) {
    return give(tn_tensor_from_data(count ? (const void *)places : (const void *)&count, TN_INT64, &count, 1, NULL, 0));
}

/* Positions from 0 as a range, where they are one, which needs no copy of the elements. */
static chosen from_places(const int64_t *places, int64_t count) {
    if (count > 0) {
        int64_t step = count > 1 ? places[1] - places[0] : 1;
        bool even = step > 0;
        for (int64_t i = 1; even && i < count; i++) even = places[i] - places[i - 1] == step;
        if (even) return (chosen){RANGE, places[0], step, count, R_NilValue};
    }
    return (chosen){PLACES, 0, 1, count, places_tensor(places, count)};
}

static chosen from_logical(SEXP x, int64_t size, int dim) {
    R_xlen_t n = Rf_xlength(x);
    if (n != size && n != 1) {
        fail_with(TN_ERROR_INDEX, "a mask of %lld for dimension %d, which has %lld", (long long)n, dim + 1, (long long)size);
    }
    int64_t *places = (int64_t *)R_alloc(size + 1, sizeof *places), count = 0;
    for (int64_t i = 0; i < size; i++) {
        int truth = LOGICAL(x)[n == 1 ? 0 : i];
        if (truth == NA_LOGICAL) fail_with(TN_ERROR_INDEX, "a mask for dimension %d has an NA", dim + 1);
        if (truth) places[count++] = i;
    }
    return from_places(places, count);
}

/* An entry of a vector of numbers as a position; a negative one counts from the end. */
static double position_at(SEXP x, R_xlen_t i, int64_t size, int dim) {
    double position = TYPEOF(x) == INTSXP ? (INTEGER(x)[i] == NA_INTEGER ? NA_REAL : INTEGER(x)[i]) : REAL(x)[i];
    if (ISNAN(position)) fail_with(TN_ERROR_INDEX, "a position in dimension %d is NA", dim + 1);
    if (position != floor(position)) fail_with(TN_ERROR_INDEX, "%s is no position: positions are whole numbers", as_r_writes(position));
    if (position == 0) fail_with(TN_ERROR_INDEX, "Indexing starts at 1 but found a 0.");
    if (fabs(position) > size) outside(position, size, dim);
    return position < 0 ? position + (double)size + 1 : position;
}

static chosen from_numbers(SEXP x, int64_t size, int dim) {
    R_xlen_t n = Rf_xlength(x);
    int64_t *places = (int64_t *)R_alloc(n + 1, sizeof *places);
    for (R_xlen_t i = 0; i < n; i++) places[i] = (int64_t)position_at(x, i, size, dim) - 1;
    if (n == 1) return (chosen){ONE, places[0], 1, 1, R_NilValue};
    return from_places(places, n);
}

/* Positions of a tensor, some of them from the end, as positions from 0. */
static SEXP wrapped(SEXP x, int64_t size) {
    SEXP counted = PROTECT(place_of(x));
    tn_tensor *negative = tn_lt_Scalar(tensor_of(counted), tn_int(0));
    tn_tensor *moved = negative ? tn_add_Scalar(tensor_of(counted), tn_int(size), tn_int(1)) : NULL;
    tn_tensor *found = moved ? tn_where_self(negative, moved, tensor_of(counted)) : NULL;
    tn_free(negative);
    tn_free(moved);
    UNPROTECT(1);
    return give(found);
}

static chosen from_tensor(SEXP x, int64_t size, int dim) {
    const tn_tensor *tensor = tensor_of(x);
    if (tn_tensor_dim(tensor) > 1) fail_with(TN_ERROR_INDEX, "a tensor of positions has one dimension");
    if (tn_tensor_dtype(tensor) == TN_BOOL) {
        if (tn_tensor_dim(tensor) != 1 || tn_tensor_numel(tensor) != size) {
            fail_with(TN_ERROR_INDEX, "a mask of %lld for dimension %d, which has %lld", (long long)tn_tensor_numel(tensor),
                  dim + 1, (long long)size);
        }
        SEXP places = PROTECT(give(tn_nonzero(tensor)));
        SEXP flat = give(tn_flatten(tensor_of(places), 0, -1));
        UNPROTECT(1);
        return (chosen){PLACES, 0, 1, tn_tensor_numel(tensor_of(flat)), flat};
    }
    if (tn_tensor_dtype(tensor) != TN_INT64) fail_with(TN_ERROR_TYPE, "a tensor of positions is of bools or of int64");
    if (tn_tensor_dim(tensor) == 0) {
        tn_scalar position;
        check(tn_tensor_item(tensor, &position));
        if (position.as.i == 0) fail_with(TN_ERROR_INDEX, "Indexing starts at 1 but found a 0.");
        if (position.as.i < -size || position.as.i > size) outside((double)position.as.i, size, dim);
        return (chosen){ONE, position.as.i - 1 + (position.as.i < 0) * (size + 1), 1, 1, R_NilValue};
    }
    return (chosen){PLACES, 0, 1, tn_tensor_numel(tensor), wrapped(x, size)};
}

/* slc(start, end, step): up to the end where that is Inf. */
static chosen from_slice(SEXP x, int64_t size, int dim) {
    double start = double_of(VECTOR_ELT(x, 0)), end = double_of(VECTOR_ELT(x, 1)), step = double_of(VECTOR_ELT(x, 2));
    if (start == R_PosInf && size > 0) return (chosen){ONE, size - 1, 1, 1, R_NilValue}; /* x[N] */
    if (end == R_PosInf) end = (double)size;
    if (start < 0) start += (double)size + 1; /* from the end */
    if (end < 0) end += (double)size + 1;
    if (start < 1) outside(start, size, dim);
    if (end > size) end = (double)size; /* past the end there is nothing more to take */
    if (start != floor(start) || end != floor(end) || step != floor(step) || step < 1) {
        fail_with(TN_ERROR_INDEX, "a slice has whole numbers, and a step of 1 or more");
    }
    int64_t count = end < start ? 0 : (int64_t)((end - start) / step) + 1;
    if (count == 0) return from_places(NULL, 0);
    return (chosen){RANGE, (int64_t)start - 1, (int64_t)step, count, R_NilValue};
}

static chosen choose(SEXP x, int64_t size, int dim) {
    if (Rf_inherits(x, "torch_slice")) return from_slice(x, size, dim);
    if (is_tensor(x)) return from_tensor(x, size, dim);
    if (TYPEOF(x) == LGLSXP) return from_logical(x, size, dim);
    if (TYPEOF(x) == INTSXP || TYPEOF(x) == REALSXP) return from_numbers(x, size, dim);
    fail_with(TN_ERROR_INDEX, "%s is no position in dimension %d", describe_value(x), dim + 1);
}

/* `N` where the program has no such name of its own: the end of the dimension. */
static bool is_end(SEXP expression, SEXP environment) {
    return expression == Rf_install("N") && Rf_findVar(expression, environment) == R_UnboundValue;
}

static bool is_colon(SEXP expression) {
    return TYPEOF(expression) == LANGSXP && CAR(expression) == Rf_install(":") && Rf_length(expression) == 3;
}

/* from:to as a slice, which ends where the dimension does, or as the vector that it is. */
static SEXP ascending(keeper *k, SEXP expression, SEXP environment) {
    SEXP start = keep(k, Rf_eval(CADR(expression), environment)), end = keep(k, Rf_eval(CADDR(expression), environment));
    bool numbers = Rf_isNumeric(start) && Rf_isNumeric(end) && Rf_length(start) == 1 && Rf_length(end) == 1;
    double first = numbers ? Rf_asReal(start) : 0, last = numbers ? Rf_asReal(end) : 0;
    bool rises = first != 0 && last != 0 && (last > first || (first > 0 && last < 0)); /* 2:-1 ends with the last */
    if (!numbers || !rises) {
        return keep(k, Rf_eval(keep(k, Rf_lang3(Rf_install(":"), start, end)), R_BaseEnv));
    }
    return keep(k, Rf_eval(keep(k, Rf_lang3(Rf_install("slc"), start, end)), package_env));
}

/* from:to:step, from:N and N as slices; NULL for what R itself can tell. */
static SEXP written_slice(keeper *k, SEXP promise) {
    SEXP expression = R_PromiseExpr(promise), environment = PRENV(promise), step = R_NilValue;
    if (environment == R_NilValue || environment == NULL) return NULL; /* evaluated before */
    if (is_end(expression, environment)) {
        SEXP call = keep(k, Rf_lang3(Rf_install("slc"), Rf_ScalarReal(R_PosInf), Rf_ScalarReal(R_PosInf)));
        return keep(k, Rf_eval(call, package_env));
    }
    if (!is_colon(expression)) return NULL;
    bool plain = !is_colon(CADR(expression)) && !is_end(CADDR(expression), environment);
    if (plain) return ascending(k, expression, environment);
    if (is_colon(CADR(expression))) {
        step = keep(k, Rf_eval(CADDR(expression), environment));
        expression = CADR(expression);
    }
    SEXP start = keep(k, Rf_eval(CADR(expression), environment));
    bool whole = is_end(CADDR(expression), environment);
    SEXP end = keep(k, whole ? Rf_ScalarReal(R_PosInf) : Rf_eval(CADDR(expression), environment));
    SEXP call = step == R_NilValue ? Rf_lang3(Rf_install("slc"), start, end) : Rf_lang4(Rf_install("slc"), start, end, step);
    return keep(k, Rf_eval(keep(k, call), package_env));
}

/* The list that x[!!!list] puts in the place of indices, or NULL where the index is something else. */
static SEXP spliced(keeper *k, SEXP promise) {
    SEXP expression = TYPEOF(promise) == PROMSXP ? R_PromiseExpr(promise) : R_NilValue;
    for (int i = 0; i < 3; i++) {
        if (TYPEOF(expression) != LANGSXP || CAR(expression) != Rf_install("!")) return NULL;
        expression = CADR(expression);
    }
    SEXP list = keep(k, Rf_eval(expression, PRENV(promise)));
    return keep(k, Rf_eval(keep(k, Rf_lang2(Rf_install("as.list"), list)), R_BaseEnv));
}

/* The indices between the brackets, evaluated; R_MissingArg stands for one left out and for `..`. */
static int read_indices(keeper *k, SEXP frame, SEXP *indices, int *rest) {
    SEXP dots = Rf_findVarInFrame(frame, R_DotsSymbol);
    int count = 0;
    *rest = -1;
    if (TYPEOF(dots) != DOTSXP) return 0; /* x[]: R gives an empty `...` another type */
    for (; dots != R_NilValue; dots = CDR(dots)) {
        if (count == MOST_DIMENSIONS) fail_with(TN_ERROR_INDEX, "more than %d indices", MOST_DIMENSIONS);
        SEXP each = CAR(dots);
        if (TYPEOF(each) == PROMSXP && R_PromiseExpr(each) == Rf_install("..")) {
            *rest = count;
            indices[count++] = R_MissingArg;
        } else {
            SEXP several = spliced(k, each);
            if (several != NULL) {
                R_xlen_t n = Rf_xlength(several);
                if (count + n > MOST_DIMENSIONS) fail_with(TN_ERROR_INDEX, "more than %d indices", MOST_DIMENSIONS);
                for (R_xlen_t i = 0; i < n; i++) indices[count++] = VECTOR_ELT(several, i);
                continue;
            }
            SEXP slice = TYPEOF(each) == PROMSXP ? written_slice(k, each) : NULL;
            if (slice != NULL) indices[count++] = slice;
            else indices[count++] = each == R_MissingArg ? each : keep(k, Rf_eval(each, frame));
        }
    }
    return count;
}

static bool is_new_axis(SEXP index) { return index == R_NilValue || Rf_inherits(index, "torch_newaxis"); }

/* The tensor with a dimension of one for each `newaxis` or NULL, which then is an index left out. */
static SEXP with_new_axes(keeper *k, SEXP x, SEXP *indices, int count, int rest) {
    int axes = 0;
    for (int i = 0; i < count; i++) axes += is_new_axis(indices[i]);
    if (axes == 0) return x;
    int filled = (int)tn_tensor_dim(tensor_of(x)) - (count - axes - (rest >= 0));
    for (int i = 0; i < count; i++) {
        if (!is_new_axis(indices[i])) continue;
        int at = rest >= 0 && i > rest ? i - 1 + filled : i;
        x = keep(k, give(tn_unsqueeze(tensor_of(x), at)));
        indices[i] = R_MissingArg;
    }
    return x;
}

static int read_chosen(keeper *k, SEXP x, SEXP *indices, int count, int rest, chosen *out) {
    int64_t sizes[MOST_DIMENSIONS];
    int rank = (int)tn_tensor_shape(tensor_of(x), sizes, MOST_DIMENSIONS);
    if (rank < 0) raise_last();
    int given = rest < 0 ? count : count - 1;
    if (given > rank) fail_with(TN_ERROR_INDEX, "%d indices for a tensor of %d dimensions", given, rank);
    int filled = rank - given; /* dimensions that `..`, or the end of the indices, stands for */
    if (rest < 0) rest = count;
    for (int dim = 0; dim < rank; dim++) {
        bool whole = dim >= rest && dim < rest + filled;
        int at = dim < rest ? dim : dim - filled + (rest < count ? 1 : 0);
        if (whole || indices[at] == R_MissingArg) {
            out[dim] = (chosen){WHOLE, 0, 1, sizes[dim], R_NilValue};
        } else {
            out[dim] = choose(indices[at], sizes[dim], dim);
        }
        keep(k, out[dim].places);
    }
    return rank;
}

/* A mask over several dimensions at once: the only index, of the tensor's own shape. */
static SEXP whole_mask(keeper *k, SEXP x, SEXP *indices, int count) {
    if (count != 1 || indices[0] == R_MissingArg || tn_tensor_dim(tensor_of(x)) < 2) return R_NilValue;
    if (is_tensor(indices[0])) {
        const tn_tensor *mask = tensor_of(indices[0]);
        return tn_tensor_dtype(mask) == TN_BOOL && tn_tensor_dim(mask) > 1 ? indices[0] : R_NilValue;
    }
    SEXP dim = Rf_getAttrib(indices[0], R_DimSymbol);
    if (TYPEOF(indices[0]) != LGLSXP || dim == R_NilValue) return R_NilValue;
    return keep(k, Rf_eval(keep(k, Rf_lang2(Rf_install("torch_tensor"), indices[0])), package_env));
}

/* A matrix of positions, the only index, with a column for each dimension: one element for each of its rows. Returns
 * how many tensors of positions that makes, 0 where the index is something else. */
static int matrix_places(keeper *k, SEXP x, SEXP *indices, int count, const tn_tensor **places) {
    if (count == 1 && is_tensor(indices[0]) && tn_tensor_dim(tensor_of(indices[0])) == 2 &&
        tn_tensor_dtype(tensor_of(indices[0])) == TN_INT64) {
        indices[0] = keep(k, Rf_eval(keep(k, Rf_lang2(Rf_install("as_array"), indices[0])), package_env));
    }
    if (count != 1 || (TYPEOF(indices[0]) != INTSXP && TYPEOF(indices[0]) != REALSXP)) return 0;
    SEXP shape = Rf_getAttrib(indices[0], R_DimSymbol);
    int rank = (int)tn_tensor_dim(tensor_of(x));
    if (rank < 2 || Rf_length(shape) != 2 || INTEGER(shape)[1] != rank) return 0;
    int64_t rows = INTEGER(shape)[0], *column = (int64_t *)R_alloc(rows + 1, sizeof *column);
    for (int dim = 0; dim < rank; dim++) {
        int64_t size = tn_tensor_size(tensor_of(x), dim);
        for (int64_t i = 0; i < rows; i++) {
            double position = position_at(indices[0], dim * rows + i, size, dim);
            column[i] = (int64_t)position - 1;
        }
        places[dim] = tensor_of(keep(k, places_tensor(column, rows)));
    }
    return rank;
}

static SEXP take_views(keeper *k, SEXP x, chosen *all, int *rank, bool drop, bool places) {
    int dim = 0, kept = 0;
    for (int i = 0; i < *rank; i++) {
        chosen each = all[i];
        const tn_tensor *tensor = tensor_of(x);
        if (each.kind == ONE && drop) {
            x = keep(k, give(tn_select(tensor, dim, each.start)));
            continue;
        }
        if (each.kind == ONE || each.kind == RANGE) {
            int64_t end = each.start + (each.count - 1) * each.step + 1;
            x = keep(k, give(tn_slice(tensor, dim, &each.start, &end, each.step)));
            each.kind = WHOLE;
        } else if (each.kind == PLACES && places) {
            x = keep(k, give(tn_index_select(tensor, dim, tensor_of(each.places))));
        }
        all[kept++] = each;
        dim++;
    }
    *rank = kept;
    return x;
}

SEXP tf_index(SEXP x, SEXP frame, SEXP drop) {
    SEXP indices[MOST_DIMENSIONS];
    chosen all[MOST_DIMENSIONS];
    keeper k = new_keeper();
    PROTECT(k.list);
    int rest, count = read_indices(&k, frame, indices, &rest);
    x = with_new_axes(&k, x, indices, count, rest);
    SEXP mask = whole_mask(&k, x, indices, count), found = x;
    const tn_tensor *places[MOST_DIMENSIONS];
    int elements = matrix_places(&k, x, indices, count, places);
    if (mask != R_NilValue) {
        found = give(tn_masked_select(tensor_of(x), tensor_of(mask)));
    } else if (elements > 0) {
        found = give(tn_index(tensor_of(x), places, elements));
    } else {
        int rank = read_chosen(&k, x, indices, count, rest, all);
        found = take_views(&k, x, all, &rank, bool_of(drop), true);
        if (found == x) found = give(tn_tensor_share(tensor_of(x)));
    }
    UNPROTECT(1);
    return found;
}

/* Without the dimensions of one in front that the place does not have. */
static const tn_tensor *fitted(keeper *k, const tn_tensor *from, const tn_tensor *place) {
    while (tn_tensor_dim(from) > tn_tensor_dim(place) && tn_tensor_size(from, 0) == 1) {
        from = tensor_of(keep(k, give(tn_squeeze_dim(from, 0))));
    }
    return from;
}

static void put(keeper *k, SEXP x, SEXP frame, const tn_tensor *from) {
    SEXP indices[MOST_DIMENSIONS];
    chosen all[MOST_DIMENSIONS];
    int rest, count = read_indices(k, frame, indices, &rest);
    x = with_new_axes(k, x, indices, count, rest);
    const tn_tensor *places[MOST_DIMENSIONS];
    SEXP mask = whole_mask(k, x, indices, count);
    if (mask != R_NilValue) places[0] = tensor_of(mask);
    int elements = mask != R_NilValue ? 1 : matrix_places(k, x, indices, count, places);
    if (elements > 0) {
        check(tn_index_put_(tensor_of(x), places, elements, from, false));
        return;
    }
    int rank = read_chosen(k, x, indices, count, rest, all);
    SEXP view = take_views(k, x, all, &rank, true, false);
    bool scattered = false;
    for (int i = 0; i < rank; i++) scattered |= all[i].kind == PLACES;
    if (!scattered) {
        check(tn_copy_(tensor_of(view), fitted(k, from, tensor_of(view)), false));
        return;
    }
    for (int i = 0; i < rank; i++) { /* every combination of the positions: each spans its own dimension */
        int64_t shape[MOST_DIMENSIONS];
        for (int j = 0; j < rank; j++) shape[j] = 1;
        SEXP own = all[i].places;
        if (all[i].kind != PLACES) own = keep(k, give(tn_arange(tn_int(tn_tensor_size(tensor_of(view), i)))));
        shape[i] = tn_tensor_numel(tensor_of(own));
        places[i] = tensor_of(keep(k, give(tn_reshape(tensor_of(own), shape, rank))));
    }
    check(tn_index_put_(tensor_of(view), places, rank, from, false));
}

SEXP tf_index_put(SEXP x, SEXP frame, SEXP value) {
    keeper k = new_keeper();
    PROTECT(k.list);
    put(&k, x, frame, tensor_of(value));
    UNPROTECT(1);
    return x;
}
