// The objects of libtorch behind the handles of tenfold.h, and back, for C++ that links libtorch itself:
//
//   at::Tensor x = tenfold::to_torch(handle);           // shares its storage and its gradient with the handle
//   tn_tensor *y = tenfold::from_torch(torch::relu(x));  // the caller's, freed by tn_free
//
// C++ has no stable ABI: this program and libtenfold must use the same libtorch. `check_libtorch` compares the
// version of its headers with that of the library, and every function here calls it first.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <ATen/core/stack.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/version.h>

#include <tenfold.h>

// Functions of tenfold.h are linked, unless tenfold.hpp of the R package, included before, looks them up.
#ifndef TENFOLD
#define TENFOLD(name) (&::name)

namespace tenfold {

// A failure of libtenfold, with its tn_status.
struct error : std::runtime_error {
    error(int code, const std::string &message) : std::runtime_error(message), code(code) {}
    int code;
};

}  // namespace tenfold
#else

namespace tenfold {
namespace detail {

// What libtorch threw, without its C++ backtrace, for tenfold.hpp to raise in R.
inline error of_libtorch(const std::exception &thrown) {
    const auto *failure = dynamic_cast<const c10::Error *>(&thrown);
    if (failure == nullptr) return error(TN_ERROR_INTERNAL, thrown.what());
    const int code = dynamic_cast<const c10::IndexError *>(failure)         ? TN_ERROR_INDEX
                     : dynamic_cast<const c10::TypeError *>(failure)        ? TN_ERROR_TYPE
                     : dynamic_cast<const c10::OutOfMemoryError *>(failure) ? TN_ERROR_MEMORY
                                                                            : TN_ERROR_TORCH;
    return error(code, failure->what_without_backtrace());
}

[[maybe_unused]] static const bool knows_libtorch = (translator() = of_libtorch, true);

}  // namespace detail
}  // namespace tenfold
#endif

namespace tenfold {

// What the libraries say of themselves, once: throws where they differ.
inline void check_libtorch() {
    static const bool same = [] {
        const char *loaded = TENFOLD(tn_torch_version)();
        const std::string mine = TORCH_VERSION, theirs = loaded == nullptr ? "" : loaded;
        const auto release = [](const std::string &version) { return version.substr(0, version.find('+')); };
        if (theirs.empty()) throw std::runtime_error("libtenfold has no libtorch: `tenfold capi build` says why");
        if (release(mine) != release(theirs)) {
            throw std::runtime_error("this program was compiled for libtorch " + mine + " and libtenfold uses " +
                                     theirs + ": compile it again with its headers");
        }
        return true;
    }();
    static_cast<void>(same);
}

namespace torch_detail {

[[noreturn]] inline void fail() { throw error(TENFOLD(tn_error_code)(), TENFOLD(tn_error_message)()); }

template <class Object, class Handle>
Object get(tn_status (*copy)(Handle, void *), Handle handle) {
    check_libtorch();
    Object object{};
    if (copy(handle, &object) != TN_OK) fail();
    return object;
}

template <class Handle, class Object>
Handle *wrap(Handle *(*make)(const void *), const Object &object) {
    check_libtorch();
    Handle *made = make(&object);
    if (made == nullptr) fail();
    return made;
}

}  // namespace torch_detail

// ---- from handles, which stay as they are ----

inline at::Tensor to_torch(const tn_tensor *handle) {
    return torch_detail::get<at::Tensor, const tn_tensor *>(TENFOLD(tn_torch_get_tensor), handle);
}
inline c10::IValue to_torch(const tn_value *handle) {
    return torch_detail::get<c10::IValue, const tn_value *>(TENFOLD(tn_torch_get_value), handle);
}
inline torch::jit::Stack to_torch(const tn_stack *handle) {
    return torch_detail::get<torch::jit::Stack, const tn_stack *>(TENFOLD(tn_torch_get_stack), handle);
}
inline torch::jit::Module to_torch(const tn_module *handle) {
    return torch_detail::get<torch::jit::Module, const tn_module *>(TENFOLD(tn_torch_get_module), handle);
}

// The function, which the handle keeps. That of a method is called without its module.
inline torch::jit::Function &to_torch(const tn_function *handle) {
    return *torch_detail::get<torch::jit::Function *, const tn_function *>(TENFOLD(tn_torch_get_function), handle);
}

// ---- to handles, which the caller frees ----

inline tn_tensor *from_torch(const at::Tensor &tensor) {
    return torch_detail::wrap(TENFOLD(tn_torch_wrap_tensor), tensor);
}
inline tn_value *from_torch(const c10::IValue &value) {
    return torch_detail::wrap(TENFOLD(tn_torch_wrap_value), value);
}
inline tn_module *from_torch(const torch::jit::Module &module) {
    return torch_detail::wrap(TENFOLD(tn_torch_wrap_module), module);
}
// `keeper` is what the function lives in, such as its CompilationUnit.
inline tn_function *from_torch(torch::jit::Function &function, std::shared_ptr<void> keeper) {
    check_libtorch();
    tn_function *made = TENFOLD(tn_torch_wrap_function)(&function, &keeper);
    if (made == nullptr) torch_detail::fail();
    return made;
}
inline tn_stack *from_torch(const torch::jit::Stack &stack) {
    check_libtorch();
    tn_stack *made = TENFOLD(tn_stack_new)();
    if (made == nullptr || TENFOLD(tn_torch_set_stack)(made, &stack) != TN_OK) {
        const error reason(TENFOLD(tn_error_code)(), TENFOLD(tn_error_message)());
        TENFOLD(tn_stack_free)(made);
        throw reason;
    }
    return made;
}

}  // namespace tenfold
