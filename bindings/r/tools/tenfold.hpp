// R's tensors, lists, script functions and modules in the C++ of other packages. A package that has `LinkingTo: tenfold` and
// `Imports: tenfold` includes <tenfold.hpp>, and links nothing: functions of tenfold.h are found in the loaded package.
//
//   extern "C" SEXP twice(SEXP x) {
//     return tenfold::entry([&] {
//       tenfold::Tensor t = tenfold::tensor(x);
//       return tenfold::wrap(tenfold::own(TENFOLD(tn_add)(t.get(), t.get())));
//     });
//   }
//
// `entry` is the border: within it C++ throws and destroys, outside of it R's condition is raised. What R may raise runs in
// `safely`, so no handle is lost when R jumps.
#pragma once

#include <csetjmp>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#ifndef R_NO_REMAP
#define R_NO_REMAP
#endif
#ifndef STRICT_R_HEADERS  // R's older headers call a macro Free
#define STRICT_R_HEADERS
#endif
#include <R.h>
#include <R_ext/Rdynload.h>
#include <Rinternals.h>

#include "../tenfold.h"

// A function of tenfold.h, looked up once: TENFOLD(tn_add)(a, b).
#define TENFOLD(name)                                                                                  \
    ([]() -> decltype(&name) {                                                                         \
        static const auto found = reinterpret_cast<decltype(&name)>(::tenfold::detail::find(#name));   \
        return found;                                                                                  \
    }())

namespace tenfold {

// A failure of libtenfold, or of the C++ around it, on its way to R.
struct error : std::runtime_error {
    error(int code, const std::string &message) : std::runtime_error(message), code(code) {}
    int code;
};

namespace detail {

struct unwinding {  // R is about to jump, and waits for C++ to be cleared up
    SEXP token;
};

// How an exception of another library reads in R; tenfold/torch.h knows those of libtorch.
using translate = error (*)(const std::exception &);

inline translate &translator() {
    static translate known = [](const std::exception &thrown) { return error(TN_ERROR_INTERNAL, thrown.what()); };
    return known;
}

template <class F>
F callable(const char *name) {
    return reinterpret_cast<F>(R_GetCCallable("tenfold", name));
}

// R's frames are C, which no exception may cross: back to C++ first, where one is thrown.
inline void jump(void *back, Rboolean jumping) {
    if (jumping) std::longjmp(*static_cast<std::jmp_buf *>(back), 1);
}

template <class F>
struct Call {
    F &function;
    std::exception_ptr thrown;
};

template <class F>
SEXP run(void *given) {
    auto *call = static_cast<Call<F> *>(given);
    try {
        return call->function();
    } catch (...) {
        call->thrown = std::current_exception();
        return R_NilValue;
    }
}

}  // namespace detail

// Call what R may raise in; where it does, C++ is unwound to `entry` first. The function holds no object with a destructor:
// R's jump leaves it without a word. What it throws itself is thrown on.
template <class F>
SEXP safely(F function) {
    SEXP token = PROTECT(R_MakeUnwindCont());
    std::jmp_buf back;
    if (setjmp(back)) throw detail::unwinding{token};
    detail::Call<F> call{function, nullptr};
    SEXP found = R_UnwindProtect(detail::run<F>, &call, detail::jump, &back, token);
    UNPROTECT(1);
    if (call.thrown) std::rethrow_exception(call.thrown);
    return found;
}

namespace detail {

inline void *find(const char *name) {
    void *found = nullptr;
    safely([&] {
        static const auto look = callable<void *(*)(const char *)>("tenfold_symbol");
        static const int interface = callable<int (*)()>("tenfold_interface")();
        if (interface == 2) found = look(name);
        return R_NilValue;
    });
    if (found == nullptr) throw error(TN_ERROR_NOT_FOUND, std::string("the installed libtenfold has no function ") + name);
    return found;
}

// What R's conversions give is not an R object: it is brought out of `safely` by reference.
template <class T>
T *converted(const char *name, SEXP x) {
    T *made = nullptr;
    safely([&] {
        made = callable<T *(*)(SEXP)>(name)(x);
        return R_NilValue;
    });
    return made;
}

}  // namespace detail

// Throw this thread's error of libtenfold.
[[noreturn]] inline void fail() {
    const int code = TENFOLD(tn_error_code)();
    throw error(code == TN_OK ? TN_ERROR_INTERNAL : code, TENFOLD(tn_error_message)());
}

inline void check(tn_status status) {
    if (status != TN_OK) fail();
}

// A handle that is freed with its owner.
template <class T, void (*Release)(T *)>
class Owned {
  public:
    Owned() = default;
    explicit Owned(T *handle) : handle_(handle) {}
    Owned(const Owned &) = delete;
    Owned &operator=(const Owned &) = delete;
    Owned(Owned &&other) noexcept : handle_(other.release()) {}
    Owned &operator=(Owned &&other) noexcept {
        if (this != &other) {
            Release(handle_);
            handle_ = other.release();
        }
        return *this;
    }
    ~Owned() { Release(handle_); }
    T *get() const { return handle_; }
    T *release() { return std::exchange(handle_, nullptr); }
    explicit operator bool() const { return handle_ != nullptr; }

  private:
    T *handle_ = nullptr;
};

namespace detail {
inline void free_tensor(tn_tensor *tensor) {
    if (tensor != nullptr) TENFOLD(tn_free)(tensor);
}
inline void free_value(tn_value *value) {
    if (value != nullptr) TENFOLD(tn_value_free)(value);
}
inline void free_stack(tn_stack *stack) {
    if (stack != nullptr) TENFOLD(tn_stack_free)(stack);
}
inline void free_function(tn_function *function) {
    if (function != nullptr) TENFOLD(tn_function_free)(function);
}
inline void free_module(tn_module *module) {
    if (module != nullptr) TENFOLD(tn_module_free)(module);
}
}  // namespace detail

using Tensor = Owned<tn_tensor, detail::free_tensor>;
using Value = Owned<tn_value, detail::free_value>;
using Stack = Owned<tn_stack, detail::free_stack>;
using Module = Owned<tn_module, detail::free_module>;

class Function : public Owned<tn_function, detail::free_function> {
  public:
    using Owned::Owned;
    // The arguments go in on the stack, and the result comes back on it.
    void operator()(Stack &arguments) const { check(TENFOLD(tn_function_run)(get(), arguments.get())); }
};

// Own what a function of tenfold.h gave; NULL is its failure.
inline Tensor own(tn_tensor *tensor) {
    if (tensor == nullptr) fail();
    return Tensor(tensor);
}
inline Value own(tn_value *value) {
    if (value == nullptr) fail();
    return Value(value);
}
inline Stack own(tn_stack *stack) {
    if (stack == nullptr) fail();
    return Stack(stack);
}
inline Module own(tn_module *module) {
    if (module == nullptr) fail();
    return Module(module);
}
inline Function own(tn_function *function) {
    if (function == nullptr) fail();
    return Function(function);
}

// ---- from R ----

// An R tensor, as another handle of it.
inline Tensor tensor(SEXP x) { return own(TENFOLD(tn_tensor_share)(detail::converted<tn_tensor>("tenfold_tensor", x))); }

// Any value that libtorch has: numbers, strings, tensors, lists, named lists, NULL.
inline Value value(SEXP x) { return own(detail::converted<tn_value>("tenfold_value", x)); }

// The entries of a list() as a Stack.
inline Stack stack(SEXP list) {
    if (TYPEOF(list) != VECSXP) throw error(TN_ERROR_TYPE, "a stack is made of a list()");
    Stack made = own(TENFOLD(tn_stack_new)());
    for (R_xlen_t i = 0; i < Rf_xlength(list); i++) {
        Value each = value(VECTOR_ELT(list, i));
        check(TENFOLD(tn_stack_push)(made.get(), each.get()));
    }
    return made;
}

// What jit_trace, jit_load or jit_compile gave, as another handle of it.
inline Module module(SEXP x) { return own(TENFOLD(tn_module_share)(detail::converted<tn_module>("tenfold_module", x))); }

// The same as a function: the one that was traced, or a method of the module.
inline Function function(SEXP x, const char *method = "forward") {
    return own(TENFOLD(tn_module_function)(module(x).get(), method));
}

// ---- to R ----

inline SEXP wrap(Tensor tensor) {
    if (!tensor) throw error(TN_ERROR_ARGUMENT, "a tensor that owns no handle cannot go to R");
    SEXP made = safely([&] { return detail::callable<SEXP (*)(tn_tensor *)>("tenfold_give")(tensor.get()); });
    tensor.release();  // R's own from now on
    return made;
}

inline SEXP wrap(Value value) {
    if (!value) throw error(TN_ERROR_ARGUMENT, "a value that owns no handle cannot go to R");
    tn_value *given = value.release();  // R frees it whatever happens
    return safely([&] { return detail::callable<SEXP (*)(tn_value *)>("tenfold_give_value")(given); });
}

inline SEXP wrap(const Stack &stack) {
    const int64_t count = TENFOLD(tn_stack_count)(stack.get());
    if (count < 0) fail();
    SEXP list = PROTECT(safely([&] { return Rf_allocVector(VECSXP, count); }));
    for (int64_t i = 0; i < count; i++) SET_VECTOR_ELT(list, i, wrap(own(TENFOLD(tn_stack_at)(stack.get(), i))));
    UNPROTECT(1);
    return list;
}

namespace detail {
inline SEXP give_module(Module module, bool is_function) {
    if (!module) throw error(TN_ERROR_ARGUMENT, "a module that owns no handle cannot go to R");
    tn_module *given = module.release();  // R frees it whatever happens
    return safely([&] { return callable<SEXP (*)(tn_module *, int)>("tenfold_give_module")(given, is_function); });
}
}  // namespace detail

// A script module, and a script function.
inline SEXP wrap(Module module) { return detail::give_module(std::move(module), false); }
inline SEXP wrap(const Function &function) {
    return detail::give_module(own(TENFOLD(tn_function_module)(function.get())), true);
}

// ---- the border ----

// Run what an R function calls. Whatever leaves it, C++'s objects are gone before R's condition is raised.
template <class F>
SEXP entry(F function) {
    char message[2048];
    int code = TN_ERROR_INTERNAL;
    SEXP token = nullptr;
    try {
        return function();
    } catch (const detail::unwinding &jumping) {
        token = jumping.token;
    } catch (const error &failed) {
        code = failed.code;
        std::snprintf(message, sizeof message, "%s", failed.what());
    } catch (const std::exception &failed) {
        const error told = detail::translator()(failed);
        code = told.code;
        std::snprintf(message, sizeof message, "%s", told.what());
    } catch (...) {
        std::snprintf(message, sizeof message, "C++ threw something that is no exception");
    }
    if (token != nullptr) R_ContinueUnwind(token);
    detail::callable<void (*)(int, const char *)>("tenfold_raise")(code, message);
    return R_NilValue;  // not reached
}

}  // namespace tenfold
