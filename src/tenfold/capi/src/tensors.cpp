// Tensors as the host sees them: made from its memory and copied back, asked for their shape and elements,
// printed, and exchanged by DLPack.
#include <cstring>
#include <sstream>

#include <ATen/Context.h>
#include <ATen/DLConvertor.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/Formatting.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include "internal.h"
#include "scopes.h"

using namespace tenfold;

// The header's numbers are libtorch's.
static_assert(TN_BFLOAT16 == int(c10::ScalarType::BFloat16) && TN_UINT64 == int(c10::ScalarType::UInt64));
static_assert(TN_FLOAT4_E2M1FN_X2 == int(c10::ScalarType::Float4_e2m1fn_x2));
static_assert(TN_FLOAT8_E8M0FNU == int(c10::ScalarType::Float8_e8m0fnu));
static_assert(TN_META == int(c10::DeviceType::Meta) && TN_CUDA == int(c10::DeviceType::CUDA));
static_assert(TN_JAGGED == int(c10::Layout::Jagged) && TN_MKLDNN == int(c10::Layout::Mkldnn));
static_assert(TN_CHANNELS_LAST_3D == int(c10::MemoryFormat::ChannelsLast3d));

namespace {

// The host's memory described by sizes and strides that were checked: none negative, and their
// product no overflow.
struct HostMemory {
    c10::IntArrayRef sizes;
    std::vector<int64_t> strides;
    c10::ScalarType type;
    int64_t numel;
};

HostMemory lent(const void *data, tn_dtype type, const int64_t *shape, int64_t shape_count,
                const int64_t *strides, int64_t strides_count) {
    HostMemory result{array(shape, shape_count, "shape"), {}, dtype(type, "dtype"), 1};
    for (auto size : result.sizes)
        if (size < 0) fail(TN_ERROR_ARGUMENT, "shape has a negative size: ", size);
    for (auto size : result.sizes)
        if (size == 0) result.numel = 0;
    auto bytes = static_cast<int64_t>(c10::elementSize(result.type));
    for (auto size : result.sizes) {
        int64_t whole;
        if (result.numel != 0 && (__builtin_mul_overflow(result.numel, size, &result.numel) ||
                                  __builtin_mul_overflow(result.numel, bytes, &whole)))
            fail(TN_ERROR_ARGUMENT, "shape has more elements than memory could hold");
    }
    if (result.numel > 0 && data == nullptr)
        fail(TN_ERROR_ARGUMENT, "data is NULL, but shape has ", result.numel, " elements");
    if (strides != nullptr) {
        if (strides_count != shape_count)
            fail(TN_ERROR_ARGUMENT, "strides has ", strides_count, " entries and shape ", shape_count);
        result.strides.assign(strides, strides + strides_count);
        int64_t reach = 0, step;
        for (int64_t i = 0; i < strides_count; i++) {
            if (strides[i] < 0)
                fail(TN_ERROR_ARGUMENT,
                     "strides has a negative entry, which libtorch has none of: ", strides[i]);
            if (result.numel > 0 &&
                (__builtin_mul_overflow(shape[i] - 1, strides[i], &step) ||
                 __builtin_add_overflow(reach, step, &reach) || __builtin_mul_overflow(reach, bytes, &step)))
                fail(TN_ERROR_ARGUMENT, "strides reach farther than memory does");
        }
    } else {
        result.strides.resize(shape_count);
        int64_t step = 1;
        for (int64_t i = shape_count - 1; i >= 0; i--) {
            result.strides[i] = step;
            if (result.numel > 0) step *= shape[i];
        }
    }
    return result;
}

// Give a tensor over the host's memory to the caller; `let_go` is called when it is no longer used. Until all
// went well the memory stays the host's.
template <class Make, class LetGo>
tn_tensor *give_lent(Make make, LetGo let_go) {
    auto given = std::make_shared<bool>(false);
    tn_tensor *made = own(make([let_go, given](void *) {
        if (!*given) return;
        HostsTurn turn;
        let_go();
    }));
    *given = true;
    return made;
}

// The one element at an index, as a tensor of no dimensions that shares its memory.
at::Tensor element(const at::Tensor &tensor, const int64_t *index, int64_t count) {
    auto entries = array(index, count, "index");
    if (count != tensor.dim())
        fail(TN_ERROR_INDEX, "index has ", count, " entries, the tensor ", tensor.dim(), " dimensions");
    at::Tensor found = tensor;
    for (int64_t i = 0; i < count; i++) {
        int64_t size = found.size(0), entry = entries[i];
        if (entry < -size || entry >= size)
            fail(TN_ERROR_INDEX, "index ", entry, " is out of range for dimension ", i, " of size ", size);
        found = found.select(0, entry);
    }
    return found;
}

int64_t write_list(c10::IntArrayRef list, int64_t *out, int64_t count, const char *argument) {
    check_count(out, count, argument);
    for (int64_t i = 0; i < count && i < static_cast<int64_t>(list.size()); i++) out[i] = list[i];
    return static_cast<int64_t>(list.size());
}

}  // namespace

namespace tenfold {

at::Tensor packed(const at::Tensor &tensor) {
    at::Tensor plain = tensor.detach();
    // A tensor that is known to be zero has no memory, so there is nothing of it to copy.
    if (plain._is_zerotensor()) plain = at::zeros(plain.sizes(), plain.options());
    plain = plain.resolve_conj().resolve_neg().cpu().contiguous();
    if (plain.nbytes() > 0 && plain.const_data_ptr() == nullptr)
        fail(TN_ERROR_ARGUMENT, "the tensor has no elements in memory");
    return plain;
}

// As libtorch does, but for complex numbers, of which it prints the real parts alone.
void print(std::ostream &stream, const at::Tensor &tensor) {
    if (!tensor.defined() || !tensor.is_complex() || tensor.layout() != c10::kStrided) {
        at::print(stream, tensor, 80);
        return;
    }
    const at::Tensor parts = at::view_as_real(tensor.detach().resolve_conj());
    at::print(stream << "real:\n", parts.select(-1, 0), 80);
    at::print(stream << "\nimaginary:\n", parts.select(-1, 1), 80);
    stream << "\n[ " << tensor.toString() << "{" << c10::Join(",", tensor.sizes()) << "} ]";
}

}  // namespace tenfold

extern "C" {

int tn_cuda_available(void) {
    return guarded("tn_cuda_available", -1, [] { return int(at::globalContext().hasCUDA()); });
}

tn_tensor *tn_tensor_share(const tn_tensor *handle) {
    return guarded("tn_tensor_share", (tn_tensor *)nullptr, [&] { return own(tensor(handle, "tensor")); });
}

tn_tensor *tn_tensor_from_number(tn_scalar number) {
    return guarded("tn_tensor_from_number", (tn_tensor *)nullptr,
                   [&] { return own(at::native::wrapped_scalar_tensor(scalar(number, "number"))); });
}

tn_tensor *tn_tensor_from_data(const void *data, tn_dtype type, const int64_t *shape, int64_t shape_count,
                               const int64_t *strides, int64_t strides_count) {
    return guarded("tn_tensor_from_data", (tn_tensor *)nullptr, [&] {
        HostMemory from = lent(data, type, shape, shape_count, strides, strides_count);
        auto options = at::TensorOptions(from.type);
        auto made = at::empty(from.sizes, options);
        if (from.numel > 0 && strides == nullptr) std::memcpy(made.mutable_data_ptr(), data, made.nbytes());
        else if (from.numel > 0)
            made.copy_(at::from_blob(const_cast<void *>(data), from.sizes, from.strides, options));
        return own(std::move(made));
    });
}

tn_tensor *tn_tensor_wrap_data(void *data, tn_dtype type, const int64_t *shape, int64_t shape_count,
                               const int64_t *strides, int64_t strides_count, tn_deleter deleter,
                               void *user) {
    return guarded("tn_tensor_wrap_data", (tn_tensor *)nullptr, [&] {
        HostMemory from = lent(data, type, shape, shape_count, strides, strides_count);
        auto options = at::TensorOptions(from.type);
        return give_lent(
            [&](auto forget) { return at::from_blob(data, from.sizes, from.strides, forget, options); },
            [deleter, user] {
                if (deleter != nullptr) deleter(user);
            });
    });
}

tn_status tn_tensor_to_data(const tn_tensor *handle, void *data, int64_t bytes) {
    return guarded_status("tn_tensor_to_data", [&] {
        Borrowed from(handle, "tensor");
        auto size = static_cast<int64_t>(from->nbytes());
        if (bytes != size)
            fail(TN_ERROR_ARGUMENT, "the tensor has ", size, " bytes, and ", bytes, " were given");
        if (size == 0) return;
        if (data == nullptr) fail_null("data");
        std::memcpy(data, packed(*from).const_data_ptr(), size);
    });
}

int tn_tensor_is_defined(const tn_tensor *handle) {
    return guarded("tn_tensor_is_defined", -1, [&] { return int(Asked(handle, "tensor")->defined()); });
}

tn_dtype tn_tensor_dtype(const tn_tensor *handle) {
    return guarded("tn_tensor_dtype", -1, [&] { return tn_dtype(Asked(handle, "tensor")->scalar_type()); });
}

tn_status tn_tensor_device(const tn_tensor *handle, tn_device *out) {
    return guarded_status("tn_tensor_device",
                          [&] { non_null(out, "device") = from_device(Asked(handle, "tensor")->device()); });
}

tn_layout tn_tensor_layout(const tn_tensor *handle) {
    return guarded("tn_tensor_layout", -1, [&] { return tn_layout(Asked(handle, "tensor")->layout()); });
}

int64_t tn_tensor_dim(const tn_tensor *handle) {
    return guarded("tn_tensor_dim", int64_t{-1}, [&] { return Asked(handle, "tensor")->dim(); });
}

int64_t tn_tensor_numel(const tn_tensor *handle) {
    return guarded("tn_tensor_numel", int64_t{-1}, [&] { return Asked(handle, "tensor")->numel(); });
}

int64_t tn_tensor_bytes(const tn_tensor *handle) {
    return guarded("tn_tensor_bytes", int64_t{-1},
                   [&] { return int64_t(Asked(handle, "tensor")->nbytes()); });
}

int64_t tn_dtype_bytes(tn_dtype type) {
    return guarded("tn_dtype_bytes", int64_t{-1},
                   [&] { return int64_t(c10::elementSize(dtype(type, "dtype"))); });
}

const char *tn_dtype_name(tn_dtype type) {
    return guarded("tn_dtype_name", (const char *)nullptr, [&] {
        // Python's names; those that it has none of keep C++'s.
        switch (dtype(type, "dtype")) {
            case c10::kByte: return "uint8";
            case c10::kChar: return "int8";
            case c10::kShort: return "int16";
            case c10::kInt: return "int32";
            case c10::kLong: return "int64";
            case c10::kHalf: return "float16";
            case c10::kFloat: return "float32";
            case c10::kDouble: return "float64";
            case c10::kComplexHalf: return "complex32";
            case c10::kComplexFloat: return "complex64";
            case c10::kComplexDouble: return "complex128";
            case c10::kBool: return "bool";
            case c10::kBFloat16: return "bfloat16";
            case c10::kUInt16: return "uint16";
            case c10::kUInt32: return "uint32";
            case c10::kUInt64: return "uint64";
            case c10::kFloat8_e5m2: return "float8_e5m2";
            case c10::kFloat8_e4m3fn: return "float8_e4m3fn";
            case c10::kFloat8_e5m2fnuz: return "float8_e5m2fnuz";
            case c10::kFloat8_e4m3fnuz: return "float8_e4m3fnuz";
            case c10::kFloat8_e8m0fnu: return "float8_e8m0fnu";
            default: return c10::toString(dtype(type, "dtype"));
        }
    });
}

int64_t tn_tensor_size(const tn_tensor *handle, int64_t dim) {
    return guarded("tn_tensor_size", int64_t{-1}, [&] { return Asked(handle, "tensor")->size(dim); });
}

int64_t tn_tensor_shape(const tn_tensor *handle, int64_t *sizes, int64_t count) {
    return guarded("tn_tensor_shape", int64_t{-1},
                   [&] { return write_list(Asked(handle, "tensor")->sizes(), sizes, count, "sizes"); });
}

int64_t tn_tensor_strides(const tn_tensor *handle, int64_t *strides, int64_t count) {
    return guarded("tn_tensor_strides", int64_t{-1},
                   [&] { return write_list(Asked(handle, "tensor")->strides(), strides, count, "strides"); });
}

int64_t tn_tensor_storage_offset(const tn_tensor *handle) {
    return guarded("tn_tensor_storage_offset", int64_t{-1},
                   [&] { return Asked(handle, "tensor")->storage_offset(); });
}

int tn_tensor_is_contiguous(const tn_tensor *handle) {
    return guarded("tn_tensor_is_contiguous", -1,
                   [&] { return int(Asked(handle, "tensor")->is_contiguous()); });
}

int tn_tensor_is_same(const tn_tensor *handle, const tn_tensor *other) {
    return guarded("tn_tensor_is_same", -1,
                   [&] { return int(Asked(handle, "tensor")->is_same(*Asked(other, "other"))); });
}

void *tn_tensor_data(const tn_tensor *handle) {
    return guarded("tn_tensor_data", (void *)nullptr,
                   [&] { return Borrowed(handle, "tensor")->mutable_data_ptr(); });
}

tn_status tn_tensor_item(const tn_tensor *handle, tn_scalar *value) {
    return guarded_status("tn_tensor_item", [&] {
        non_null(value, "value") = from_scalar(Borrowed(handle, "tensor")->item());
    });
}

tn_status tn_tensor_get(const tn_tensor *handle, const int64_t *index, int64_t count, tn_scalar *value) {
    return guarded_status("tn_tensor_get", [&] {
        non_null(value, "value");
        *value = from_scalar(element(Borrowed(handle, "tensor")->detach(), index, count).item());
    });
}

tn_status tn_tensor_set(tn_tensor *handle, const int64_t *index, int64_t count, tn_scalar value) {
    return guarded_status("tn_tensor_set", [&] {
        Borrowed written(handle, "tensor");
        if (written->layout() != c10::kStrided)
            fail(TN_ERROR_ARGUMENT, "an element of a sparse tensor has no place to be written in");
        element(*written, index, count).fill_(scalar(value, "value"));
    });
}

int64_t tn_tensor_print(const tn_tensor *handle, char *buffer, int64_t size) {
    return guarded("tn_tensor_print", int64_t{-1}, [&] {
        std::ostringstream stream;
        stream.imbue(std::locale::classic());  // whatever the host made the global one
        print(stream, *Passed(handle, "tensor"));
        return write_text(stream.str(), buffer, size);
    });
}

void *tn_tensor_to_dlpack(const tn_tensor *handle) {
    return guarded("tn_tensor_to_dlpack", (void *)nullptr, [&] {
        Borrowed shared(handle, "tensor");
        if (shared->is_conj() || shared->is_neg())
            fail(TN_ERROR_ARGUMENT,
                 "the tensor's memory is yet to be conjugated or negated, which DLPack cannot say: "
                 "use tn_resolve_conj and tn_resolve_neg first");
        return static_cast<void *>(at::toDLPack(shared));
    });
}

tn_tensor *tn_tensor_from_dlpack(void *dlpack) {
    return guarded("tn_tensor_from_dlpack", (tn_tensor *)nullptr, [&] {
        auto *managed = &non_null(static_cast<DLManagedTensor *>(dlpack), "dlpack");
        DLManagedTensor read = *managed;
        DLTensor &described = read.dl_tensor;
        // libtorch ends the process where a shape or a stride is impossible, and takes no offset.
        lent(described.data, tn_dtype(at::toScalarType(described.dtype)), described.shape, described.ndim,
             described.strides, described.ndim);
        const bool here = described.device.device_type == kDLCPU ||
                          (described.device.device_type == kDLCUDA && at::globalContext().hasCUDA());
        if (!here)
            fail(TN_ERROR_NOT_AVAILABLE, "dlpack lies on a device of type ",
                 static_cast<int>(described.device.device_type), ", and there is none here");
        described.data = static_cast<char *>(described.data) + described.byte_offset;
        described.byte_offset = 0;
        return give_lent([&](auto forget) { return at::fromDLPack(&read, forget); },
                         [managed] {
                             if (managed->deleter != nullptr) managed->deleter(managed);
                         });
    });
}
}
