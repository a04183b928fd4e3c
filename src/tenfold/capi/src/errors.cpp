// How what goes wrong inside becomes an error of the calling thread, and the checks of plain arguments.
#include <cstring>
#include <new>

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include "internal.h"
#include "link.h"

namespace tenfold {

const tn_link_host *host = nullptr;

tn_status set_error(tn_status code, const std::string &message) noexcept {
    host->set_error(code, message.c_str());
    return code;
}

const char *error_message() noexcept { return host->error_message(); }

// libtorch's messages end with what would stand before their C++ frames.
static tn_status report_as(const char *entry, tn_status code, const char *message) noexcept {
    try {
        std::string whole = text_of(entry, ": ", message);
        while (!whole.empty() && (whole.back() == '\n' || whole.back() == ' ')) whole.pop_back();
        return set_error(code, whole);
    } catch (...) {
        host->set_error(code, entry);  // no memory for the text
        return code;
    }
}

// Where CUDA was asked for, libtorch without it lists every backend that has the operator.
static tn_status report_torch(const char *entry, const char *message) noexcept {
    const bool asked = std::strstr(message, "from the 'CUDA' backend") != nullptr ||
                       std::strstr(message, "not linked with support for cuda devices") != nullptr;
    if (!asked || c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) {
        return report_as(entry, TN_ERROR_TORCH, message);
    }
    return report_as(entry, TN_ERROR_NOT_AVAILABLE, "this libtorch was built without CUDA");
}

tn_status report(const char *entry) noexcept {
    try {
        throw;
    } catch (const Failure &failure) {
        return report_as(entry, failure.code, failure.message.c_str());
    } catch (const c10::OutOfMemoryError &error) {
        return report_as(entry, TN_ERROR_MEMORY, error.what_without_backtrace());
    } catch (const c10::IndexError &error) {
        return report_as(entry, TN_ERROR_INDEX, error.what_without_backtrace());
    } catch (const c10::TypeError &error) {
        return report_as(entry, TN_ERROR_TYPE, error.what_without_backtrace());
    } catch (const c10::Error &error) {
        return report_torch(entry, error.what_without_backtrace());
    } catch (const std::bad_alloc &) {
        return report_as(entry, TN_ERROR_MEMORY, "out of memory");
    } catch (const std::length_error &error) {
        return report_as(entry, TN_ERROR_MEMORY, error.what());
    } catch (const std::exception &error) {
        return report_as(entry, TN_ERROR_TORCH, error.what());
    } catch (...) {
        return report_as(entry, TN_ERROR_INTERNAL, "something that is no C++ exception class was thrown");
    }
}

void fail_null(const char *argument) { fail(TN_ERROR_ARGUMENT, argument, " is NULL"); }

void fail_kind(const char *argument, const char *type) {
    fail(TN_ERROR_HANDLE, argument, " is no ", type, ": it was freed, or is a handle of another kind");
}

const char *text(const char *given, const char *argument) {
    if (given == nullptr) fail_null(argument);
    return given;
}

void check_count(const void *array, int64_t count, const char *argument) {
    if (count < 0) fail(TN_ERROR_ARGUMENT, argument, "_count is negative: ", count);
    if (count > 0 && array == nullptr)
        fail(TN_ERROR_ARGUMENT, argument, " is NULL, but has ", count, " entries");
    if (count > (int64_t{1} << 40)) fail(TN_ERROR_ARGUMENT, argument, "_count is too large: ", count);
}

at::Scalar scalar(tn_scalar given, const char *argument) {
    switch (given.tag) {
        case TN_SCALAR_INT: return given.as.i;
        case TN_SCALAR_DOUBLE: return given.as.d;
        case TN_SCALAR_COMPLEX: return c10::complex<double>(given.as.c.re, given.as.c.im);
        case TN_SCALAR_BOOL: return static_cast<bool>(given.as.b);
        default:
            fail(TN_ERROR_ARGUMENT, argument, " has the tag ", given.tag,
                 ", which no tn_scalar has: make it by tn_int, tn_double, tn_complex_number or tn_bool");
    }
}

tn_scalar from_scalar(const at::Scalar &value) {
    if (value.isBoolean()) return tn_bool(value.toBool());
    if (value.isIntegral(false)) return tn_int(value.toLong());
    if (value.isFloatingPoint()) return tn_double(value.toDouble());
    auto number = value.toComplexDouble();
    return tn_complex_number(number.real(), number.imag());
}

c10::ScalarType dtype(tn_dtype given, const char *argument) {
    if (given < 0 || given >= static_cast<int>(c10::ScalarType::Undefined))
        fail(TN_ERROR_ARGUMENT, argument, " is ", given, ", which is no tn_dtype");
    return static_cast<c10::ScalarType>(given);
}

c10::Device device(tn_device given, const char *argument) {
    if (given.type < 0 || given.type >= c10::COMPILE_TIME_MAX_DEVICE_TYPES)
        fail(TN_ERROR_ARGUMENT, argument, " has the type ", given.type, ", which no device has");
    if (given.index < -1 || given.index > 127)
        fail(TN_ERROR_ARGUMENT, argument, " has the index ", given.index,
             ": give -1 for the current device, or 0 to 127");
    if (given.type == 0 && given.index > 0)
        fail(TN_ERROR_ARGUMENT, argument, ": there is one CPU, with index 0 or -1");
    return c10::Device(static_cast<c10::DeviceType>(given.type), static_cast<c10::DeviceIndex>(given.index));
}

tn_device from_device(c10::Device device) { return {static_cast<int32_t>(device.type()), device.index()}; }

c10::Layout layout(tn_layout given, const char *argument) {
    if (given < 0 || given >= static_cast<int>(c10::Layout::NumOptions))
        fail(TN_ERROR_ARGUMENT, argument, " is ", given, ", which is no tn_layout");
    return static_cast<c10::Layout>(given);
}

c10::MemoryFormat memory_format(tn_memory_format given, const char *argument) {
    if (given < 0 || given >= static_cast<int>(c10::MemoryFormat::NumOptions))
        fail(TN_ERROR_ARGUMENT, argument, " is ", given, ", which is no tn_memory_format");
    return static_cast<c10::MemoryFormat>(given);
}

int64_t write_text(const std::string &text, char *buffer, int64_t size) {
    if (size < 0) fail(TN_ERROR_ARGUMENT, "size is negative: ", size);
    if (size > 0) {
        if (buffer == nullptr) fail(TN_ERROR_ARGUMENT, "buffer is NULL, but size is ", size);
        size_t fits = std::min(text.size(), static_cast<size_t>(size - 1));
        std::memcpy(buffer, text.data(), fits);
        buffer[fits] = 0;
    }
    return static_cast<int64_t>(text.size());
}

}  // namespace tenfold
