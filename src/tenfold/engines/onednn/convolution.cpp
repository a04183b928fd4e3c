// Convolutions by oneDNN, as XLA calls them: forward, the input's gradient and the kernel's. Images and results
// lie channels last, kernels as height, width, channels in, channels out. A batch is shared out among XLA's own
// threads.

#include <omp.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using dnnl::memory;
using Dims = ffi::Span<const int64_t>;

namespace {

enum Kind : int64_t { FORWARD, INPUT_GRADIENT, KERNEL_GRADIENT };

// One convolution on images, results and kernels of these extents: batch or channels out first, then channels,
// then space.
struct Shape {
    int64_t kind;
    memory::dims image, kernel, result, strides, dilation, before, after;
    auto tie() const { return std::tie(kind, image, kernel, result, strides, dilation, before, after); }
    bool operator<(const Shape &other) const { return tie() < other.tie(); }
};

int64_t volume(const memory::dims &dims) {
    int64_t product = 1;
    for (int64_t extent : dims) product *= extent;
    return product;
}

dnnl::engine &engine() {
    static dnnl::engine only(dnnl::engine::kind::cpu, 0);
    return only;
}

memory::format_tag images(size_t rank) {
    return rank == 3 ? memory::format_tag::nwc : rank == 4 ? memory::format_tag::nhwc : memory::format_tag::ndhwc;
}

memory::format_tag kernels(size_t rank) {
    return rank == 3 ? memory::format_tag::wio : rank == 4 ? memory::format_tag::hwio : memory::format_tag::dhwio;
}

// A primitive with the order in which it wants its kernel, and what brings the kernel there and back.
class Convolution {
  public:
    explicit Convolution(const Shape &shape) : kind_(shape.kind) {
        const auto type = memory::data_type::f32;
        const size_t rank = shape.image.size();
        const auto any = memory::format_tag::any;
        image_ = memory::desc(shape.image, type, images(rank));
        result_ = memory::desc(shape.result, type, images(rank));
        plain_ = memory::desc(shape.kernel, type, kernels(rank));
        const memory::desc kernel(shape.kernel, type, any);
        const auto direct = dnnl::algorithm::convolution_direct;
        dnnl::primitive_attr attributes;
        attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        const dnnl::convolution_forward::primitive_desc forward(
            engine(), dnnl::prop_kind::forward_training, direct, image_, kernel, result_, shape.strides,
            shape.dilation, shape.before, shape.after, attributes);
        if (kind_ == FORWARD) {
            adopt(forward, forward.weights_desc());
        } else if (kind_ == INPUT_GRADIENT) {
            const dnnl::convolution_backward_data::primitive_desc backward(
                engine(), direct, image_, kernel, result_, shape.strides, shape.dilation, shape.before,
                shape.after, forward, attributes);
            adopt(backward, backward.weights_desc());
        } else {
            const dnnl::convolution_backward_weights::primitive_desc backward(
                engine(), direct, image_, kernel, result_, shape.strides, shape.dilation, shape.before,
                shape.after, forward, attributes);
            adopt(backward, backward.diff_weights_desc());
        }
    }

    bool reorders() const { return kernel_ != plain_; }
    size_t kernel_bytes() const { return kernel_.get_size(); }
    size_t scratch_bytes() const { return scratch_.get_size(); }

    // Bring a kernel from XLA's order to the primitive's, or back.
    void reorder(void *from, void *to, bool back) const {
        memory source(back ? kernel_ : plain_, engine(), from), target(back ? plain_ : kernel_, engine(), to);
        dnnl::stream stream(engine());
        dnnl::reorder(source, target).execute(stream, source, target);
        stream.wait();
    }

    void run(void *image, void *kernel, void *result, void *scratch) const {
        const bool into_image = kind_ == INPUT_GRADIENT, into_kernel = kind_ == KERNEL_GRADIENT;
        dnnl::stream stream(engine());
        primitive_.execute(
            stream,
            {{into_image ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, memory(image_, engine(), image)},
             {into_kernel ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, memory(kernel_, engine(), kernel)},
             {kind_ == FORWARD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, memory(result_, engine(), result)},
             {DNNL_ARG_SCRATCHPAD, memory(scratch_, engine(), scratch)}});
        stream.wait();
    }

  private:
    template <typename Description> void adopt(const Description &description, const memory::desc &kernel) {
        primitive_ = dnnl::primitive(description);
        kernel_ = kernel;
        scratch_ = description.scratchpad_desc();
    }

    int64_t kind_;
    memory::desc image_, result_, kernel_, plain_, scratch_;
    dnnl::primitive primitive_;
};

// The primitive of a shape, made once.
std::shared_ptr<Convolution> known(const Shape &shape) {
    static std::mutex mutex;
    static std::map<Shape, std::shared_ptr<Convolution>> all;
    std::lock_guard<std::mutex> lock(mutex);
    if (all.size() > 1000) all.clear();
    auto &found = all[shape];
    if (!found) found = std::make_shared<Convolution>(shape);
    return found;
}

// Do `count` pieces of work on XLA's threads and this one. No thread waits for work that nobody has begun, so
// that several calls cannot wait for each other.
template <typename Work> void share(ffi::ThreadPool &pool, int64_t count, Work work) {
    struct State {
        std::atomic<int64_t> next{0};
        std::mutex mutex;
        std::condition_variable ended;
        int64_t done = 0;
        std::string failure;
    };
    auto state = std::make_shared<State>();
    auto take = [state, count, work] {
        omp_set_num_threads(1);
        for (int64_t i; (i = state->next++) < count;) {
            std::string failure;
            try {
                work(i);
            } catch (const std::exception &error) {
                failure = error.what();
            }
            std::lock_guard<std::mutex> lock(state->mutex);
            if (!failure.empty()) state->failure = failure;
            if (++state->done == count) state->ended.notify_all();
        }
    };
    for (int64_t i = 1; i < count; i++) pool.Schedule(decltype(take)(take));
    take();
    std::unique_lock<std::mutex> lock(state->mutex);
    state->ended.wait(lock, [&] { return state->done == count; });
    if (!state->failure.empty()) throw std::runtime_error(state->failure);
}

// Memory that a thread of this call uses, aligned as vector instructions like it.
struct Room {
    explicit Room(size_t bytes) : data(bytes ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr) {
        if (bytes && !data) throw std::bad_alloc();
    }
    ~Room() { std::free(data); }
    Room(const Room &) = delete;
    Room &operator=(const Room &) = delete;
    void *data;
};

// One piece of a batch. The kernel is in XLA's order, which the primitive may not want.
void convolve_piece(const Convolution &piece, bool into_kernel, float *image, float *kernel, float *result) {
    Room scratch(piece.scratch_bytes()), ordered(piece.reorders() ? piece.kernel_bytes() : 0);
    void *own = piece.reorders() ? ordered.data : kernel;
    if (piece.reorders() && !into_kernel) piece.reorder(kernel, own, false);
    piece.run(image, own, result, scratch.data);
    if (piece.reorders() && into_kernel) piece.reorder(own, kernel, true);
}

void convolve(ffi::ThreadPool &pool, const Shape &whole, float *image, float *kernel, float *result) {
    const int64_t batch = whole.image[0];
    const int64_t parts = std::min<int64_t>(batch, std::max<int64_t>(1, pool.num_threads()));
    const bool into_kernel = whole.kind == KERNEL_GRADIENT;
    const int64_t image_size = volume(whole.image) / batch, result_size = volume(whole.result) / batch;
    const int64_t kernel_size = volume(whole.kernel);
    const auto start = [&](int64_t i) { return batch * i / parts; };
    std::vector<std::shared_ptr<Convolution>> pieces;
    for (int64_t i = 0; i < parts; i++) {
        Shape part = whole;
        part.image[0] = part.result[0] = start(i + 1) - start(i);
        pieces.push_back(known(part));
    }
    Room others(into_kernel ? (parts - 1) * kernel_size * sizeof(float) : 0);  // gradients of the other pieces
    const auto target = [&](int64_t i) {
        return into_kernel && i ? static_cast<float *>(others.data) + (i - 1) * kernel_size : kernel;
    };
    share(pool, parts, [&](int64_t i) {
        convolve_piece(*pieces[i], into_kernel, image + start(i) * image_size, target(i), result + start(i) * result_size);
    });
    if (!into_kernel || parts == 1) return;
    share(pool, parts, [&](int64_t share_of) {
        const int64_t from = kernel_size * share_of / parts, to = kernel_size * (share_of + 1) / parts;
        for (int64_t i = 1; i < parts; i++) {
            const float *other = target(i);
            for (int64_t k = from; k < to; k++) kernel[k] += other[k];
        }
    });
}

memory::dims dims(Dims span) { return memory::dims(span.begin(), span.end()); }

bool has(const ffi::AnyBuffer &buffer, const memory::dims &wanted) {
    int64_t elements = 1;
    for (int64_t extent : buffer.dimensions()) elements *= extent;
    return buffer.element_type() == ffi::DataType::F32 && elements == volume(wanted);
}

ffi::Error call(ffi::ThreadPool pool, ffi::AnyBuffer first, ffi::AnyBuffer second, ffi::Result<ffi::AnyBuffer> out,
                int64_t kind, Dims image, Dims kernel, Dims result, Dims strides, Dims dilation, Dims before,
                Dims after) {
    const Shape shape{kind, dims(image), dims(kernel), dims(result), dims(strides), dims(dilation), dims(before),
                      dims(after)};
    const bool into_image = kind == INPUT_GRADIENT, into_kernel = kind == KERNEL_GRADIENT;
    // The operands are image and kernel, result and kernel, or image and result.
    const memory::dims &given = into_image ? shape.result : shape.image;
    const memory::dims &other = into_kernel ? shape.result : shape.kernel;
    const memory::dims &made = into_image ? shape.image : into_kernel ? shape.kernel : shape.result;
    if (kind < FORWARD || kind > KERNEL_GRADIENT || !has(first, given) || !has(second, other) || !has(*out, made))
        return ffi::Error::InvalidArgument("oneDNN: the call's shapes are not those of its arrays");
    float *a = static_cast<float *>(first.untyped_data()), *b = static_cast<float *>(second.untyped_data());
    float *c = static_cast<float *>(out->untyped_data());
    try {
        if (into_image)
            convolve(pool, shape, c, b, a);
        else if (into_kernel)
            convolve(pool, shape, a, c, b);
        else
            convolve(pool, shape, a, b, c);
    } catch (const std::exception &error) {
        return ffi::Error::Internal(std::string("oneDNN: ") + error.what());
    }
    return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(tenfold_onednn_convolution, call,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Attr<int64_t>("kind")
                                  .Attr<Dims>("image")
                                  .Attr<Dims>("kernel")
                                  .Attr<Dims>("result")
                                  .Attr<Dims>("strides")
                                  .Attr<Dims>("dilation")
                                  .Attr<Dims>("before")
                                  .Attr<Dims>("after"));
