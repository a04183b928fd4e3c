/* A tensor as text, in PyTorch's layout: four digits after the point, one notation and one width for all elements, the
   middle of large tensors left out. */
#include "purple_tensors.h"

#include <stdio.h>
#include <stdlib.h>

enum { EDGE = 3, THRESHOLD = 1000, LINE = 80, PREFIX = 7 };
typedef enum { INTEGERS, TRUTHS, WHOLE, FIXED, SCIENTIFIC } Notation;
typedef struct Layout {
    Notation notation;
    int width;
    const double *floats;
    const int64_t *ints;
    const struct Layout *imaginary; /* of complex numbers: their other parts, in a notation of their own */
    int64_t shape[PU_MOST_DIMENSIONS], strides[PU_MOST_DIMENSIONS], rank;
    bool cut[PU_MOST_DIMENSIONS];
} Layout;

static int write_element(const Layout *layout, int64_t at, char *text, size_t room) {
    if (layout->notation == INTEGERS) return snprintf(text, room, "%lld", (long long)layout->ints[at]);
    if (layout->notation == TRUTHS) return snprintf(text, room, "%s", layout->ints[at] ? "True" : "False");
    double x = layout->floats[at];
    if (isnan(x)) return snprintf(text, room, "nan");
    if (isinf(x)) return snprintf(text, room, x > 0 ? "inf" : "-inf");
    const char *format = layout->notation == WHOLE ? "%.0f." : layout->notation == FIXED ? "%.4f" : "%.4e";
    return snprintf(text, room, format, x);
}

/* The elements that are shown: `visit` is called with the position of each. */
static void visit(const Layout *layout, int64_t dim, int64_t at, void (*each)(const Layout *, int64_t, void *), void *state) {
    if (dim == layout->rank) {
        each(layout, at, state);
        return;
    }
    for (int64_t i = 0; i < layout->shape[dim]; i++) {
        if (layout->cut[dim] && i == EDGE) i = layout->shape[dim] - EDGE;
        visit(layout, dim + 1, at + i * layout->strides[dim], each, state);
    }
}

typedef struct { double smallest, largest; bool whole; int64_t count; } Telling;
static void tell(const Layout *layout, int64_t at, void *state) {
    Telling *telling = state;
    double x = layout->floats[at], magnitude = fabs(x);
    if (!isfinite(x) || x == 0) return;
    if (!telling->count || magnitude < telling->smallest) telling->smallest = magnitude;
    if (!telling->count || magnitude > telling->largest) telling->largest = magnitude;
    telling->whole = telling->whole && x == ceil(x);
    telling->count++;
}
static void measure(const Layout *layout, int64_t at, void *state) {
    char text[400];
    int *width = state;
    if (layout->floats && (!isfinite(layout->floats[at]) || layout->floats[at] == 0)) return;
    int length = write_element(layout, at, text, sizeof text);
    if (length > *width) *width = length;
}

static void put_padded(PuBuffer *buffer, const Layout *layout, int64_t at) {
    char text[400];
    int length = write_element(layout, at, text, sizeof text);
    for (int i = length; i < layout->width; i++) pu_put_text(buffer, " ");
    pu_put(buffer, text, (size_t)length);
    if (!layout->imaginary) return;
    length = write_element(layout->imaginary, at, text, sizeof text);
    if (*text != '-') pu_put_text(buffer, "+");
    pu_put(buffer, text, (size_t)length);
    pu_put_text(buffer, "j");
}

static void put_margin(PuBuffer *buffer, int64_t lines, int indent) {
    for (int64_t i = 0; i < lines; i++) pu_put_text(buffer, "\n");
    for (int i = 0; i < indent; i++) pu_put_text(buffer, " ");
}

static void put_block(PuBuffer *buffer, const Layout *layout, int64_t dim, int64_t at, int indent) {
    if (dim == layout->rank) {
        put_padded(buffer, layout, at);
        return;
    }
    bool last = dim == layout->rank - 1;
    int width = layout->width + (layout->imaginary ? layout->imaginary->width + 1 : 0);
    int per_line = (LINE - indent) / (width + 2), shown = 0;
    if (per_line < 1) per_line = 1;
    pu_put_text(buffer, "[");
    for (int64_t i = 0; i < layout->shape[dim]; i++, shown++) {
        if (shown && last && shown % per_line == 0) {
            pu_put_text(buffer, ",");
            put_margin(buffer, 1, indent + 1);
        } else if (shown && last) {
            pu_put_text(buffer, ", ");
        } else if (shown) {
            pu_put_text(buffer, ",");
            put_margin(buffer, layout->rank - dim - 1, indent + 1);
        }
        if (layout->cut[dim] && shown == EDGE) {
            pu_put_text(buffer, last ? " ..." : "...");
            i = layout->shape[dim] - EDGE - 1;
            continue;
        }
        put_block(buffer, layout, dim + 1, at + i * layout->strides[dim], indent + 1);
    }
    pu_put_text(buffer, "]");
}

static void put_suffix(PuBuffer *buffer, size_t *length, const char *text) {
    /* PyTorch takes the last line to be two characters longer than it is. */
    size_t size = strlen(text);
    if (*length + size + 2 > LINE) {
        pu_put_text(buffer, ",");
        put_margin(buffer, 1, PREFIX);
        pu_put_text(buffer, text);
        *length = PREFIX + size;
    } else {
        pu_put_text(buffer, ", ");
        pu_put_text(buffer, text);
        *length += size + 2;
    }
}

static void put_suffixes(PuBuffer *buffer, size_t start, const tn_tensor *tensor, const Layout *layout, int64_t count, tn_dtype dtype) {
    size_t line = buffer->length;
    while (line > start && buffer->text[line - 1] != '\n') line--;
    size_t length = buffer->length - line + 2;
    tn_device device;
    char text[256];
    if (tn_tensor_device(tensor, &device) == TN_OK && device.type == TN_CUDA) {
        snprintf(text, sizeof text, "device='cuda:%d'", device.index < 0 ? 0 : device.index);
        put_suffix(buffer, &length, text);
    }
    if (count == 0 && layout->rank != 1) {
        PuBuffer size = {0};
        pu_put_text(&size, "size=(");
        for (int64_t i = 0; i < layout->rank; i++) {
            snprintf(text, sizeof text, i ? ", %lld" : "%lld", (long long)layout->shape[i]);
            pu_put_text(&size, text);
        }
        pu_put_text(&size, layout->rank == 1 ? ",)" : ")");
        put_suffix(buffer, &length, size.text);
        free(size.text);
    }
    bool implied = dtype == TN_FLOAT32 || (count && (dtype == TN_INT64 || dtype == TN_BOOL || dtype == TN_COMPLEX64));
    if (!implied) {
        snprintf(text, sizeof text, "dtype=%s.%s", PU_DTYPE_PREFIX, tn_dtype_name(dtype));
        put_suffix(buffer, &length, text);
    }
    pu_put_text(buffer, ")");
}

static bool read_elements(const tn_tensor *tensor, bool floating, void **data) {
    tn_tensor *wide = pu_cast(tensor, floating ? TN_FLOAT64 : TN_INT64);
    if (!wide) return false;
    int64_t bytes = tn_tensor_bytes(wide);
    *data = pu_get_memory((size_t)bytes + 8);
    bool done = tn_tensor_to_data(wide, *data, bytes) == TN_OK;
    tn_free(wide);
    if (!done) {
        free(*data);
        *data = NULL;
    }
    return done;
}

/* The notation and the width that suit all elements. */
static void choose_notation(Layout *layout, tn_dtype dtype) {
    layout->notation = dtype == TN_BOOL ? TRUTHS : INTEGERS;
    layout->width = 1;
    if (layout->floats) {
        Telling telling = {0, 0, true, 0};
        visit(layout, 0, 0, tell, &telling);
        bool scientific = telling.count && (telling.largest / telling.smallest > 1000.0 || telling.largest > 1e8 || telling.smallest < 1e-4);
        layout->notation = scientific ? SCIENTIFIC : telling.whole ? WHOLE : FIXED;
    }
    visit(layout, 0, 0, measure, &layout->width);
}

/* One part of complex numbers, as doubles. */
static bool read_part(const tn_tensor *tensor, tn_tensor *(*part)(const tn_tensor *), void **data) {
    tn_tensor *numbers = part(tensor);
    bool done = numbers && read_elements(numbers, true, data);
    tn_free(numbers);
    return done;
}

void pu_put_tensor(PuBuffer *buffer, Value v) {
    const tn_tensor *tensor = pu_handle(v);
    tn_dtype dtype = tn_tensor_dtype(tensor);
    bool whole = dtype == TN_UINT8 || (dtype >= TN_INT8 && dtype <= TN_INT64) || dtype == TN_BOOL || (dtype >= TN_UINT16 && dtype <= TN_UINT64);
    bool complex_ = pu_is_complex(dtype);
    Layout layout = {0}, imaginary;
    layout.rank = tn_tensor_shape(tensor, layout.shape, PU_MOST_DIMENSIONS);
    int64_t count = tn_tensor_numel(tensor), stride = 1;
    void *data = NULL, *other = NULL;
    bool read = complex_ ? read_part(tensor, tn_real, &data) && read_part(tensor, tn_imag, &other) : read_elements(tensor, !whole, &data);
    if (!read) { /* its elements are out of reach, as those of "meta" are */
        free(data);
        tn_error_clear();
        int64_t length = tn_tensor_print(tensor, NULL, 0);
        char *text = pu_get_memory((size_t)length + 1);
        tn_tensor_print(tensor, text, length + 1);
        pu_put(buffer, text, (size_t)length);
        free(text);
        return;
    }
    if (whole) layout.ints = data;
    else layout.floats = data;
    for (int64_t dim = layout.rank; dim-- > 0; stride *= layout.shape[dim]) {
        layout.strides[dim] = stride;
        layout.cut[dim] = count > THRESHOLD && layout.shape[dim] > 2 * EDGE;
    }
    if (complex_) {
        imaginary = layout;
        imaginary.floats = other;
        choose_notation(&imaginary, dtype);
        layout.imaginary = &imaginary;
    }
    choose_notation(&layout, dtype);
    size_t start = buffer->length;
    pu_put_text(buffer, "tensor(");
    if (count == 0) pu_put_text(buffer, "[]");
    else put_block(buffer, &layout, 0, 0, PREFIX);
    put_suffixes(buffer, start, tensor, &layout, count, dtype);
    free(data);
    free(other);
}
