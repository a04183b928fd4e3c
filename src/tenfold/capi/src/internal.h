// What all of libtenfold_torch shares: failing, the guard that every entry goes through, and the handles that
// tensors and other objects cross the C ABI as. Values and stacks have more in values.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/util/StringUtil.h>

// The entries are reached through a table (see generate.py): none is a symbol that could meet another's.
#define TN_API __attribute__((visibility("hidden")))
#define TENFOLD_WITHOUT_OPS  // so that a change of the op table compiles the operators alone
#include "tenfold.h"

#include "counts.h"

namespace tenfold {

// ---- errors (errors.cpp) ----------------------------------------------------------------------------------

// Thrown inside, turned into this thread's error by the guard.
struct Failure {
    tn_status code;
    std::string message;
};

// The parts of a message as one text. Numbers are not written through a C++ stream: a host may have
// loaded a library that brings its own copy of the standard one (CUDA's do), and streams that meet the
// other's locales crash.
template <class Part>
std::string text_of_part(const Part &part) {
    if constexpr (std::is_same_v<Part, char>) {
        return std::string(1, part);
    } else if constexpr (std::is_arithmetic_v<Part>) {
        return std::to_string(part);
    } else if constexpr (std::is_convertible_v<const Part &, std::string>) {
        return part;
    } else {
        return c10::str(part);
    }
}

template <class... Parts>
std::string text_of(const Parts &...parts) {
    return (std::string() + ... + text_of_part(parts));
}

template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void fail(tn_status code, const Parts &...parts) {
    throw Failure{code, text_of(parts...)};
}

// Set this thread's error from the exception in flight; the message starts with the entry's name.
tn_status report(const char *entry) noexcept;
tn_status set_error(tn_status code, const std::string &message) noexcept;
const char *error_message() noexcept;

// ---- checked mode (handles.cpp) ---------------------------------------------------------------------------

extern bool checked;  // TENFOLD_CHECKED=1 at load; then handles are numbers, looked up, never used twice
void start_handles();
void enter(const char *entry, void *caller) noexcept;  // remembers who makes the next handles

// Every entry is `return guarded("tn_name", failed, [&] { ... });`: nothing is thrown past it. `failed` is
// what a failing call returns; `guarded_status` returns the error's code.
template <class Result, class Body>
[[gnu::always_inline]] inline Result guarded(const char *entry, Result failed, Body &&body) {
    if (__builtin_expect(checked, false)) enter(entry, __builtin_return_address(0));
    try {
        return body();
    } catch (...) {
        report(entry);
        return failed;
    }
}

template <class Body>
[[gnu::always_inline]] inline tn_status guarded_status(const char *entry, Body &&body) {
    if (__builtin_expect(checked, false)) enter(entry, __builtin_return_address(0));
    try {
        body();
        return TN_OK;
    } catch (...) {
        return report(entry);
    }
}

// The entries that free: a wrong free has no result to tell it by, so checked mode says it aloud as well.
void tell_wrong_free() noexcept;
template <class Body>
[[gnu::always_inline]] inline void freeing(const char *entry, Body &&body) {
    if (guarded_status(entry, body) != TN_OK) tell_wrong_free();
}

// ---- tensor handles ---------------------------------------------------------------------------------------

// Unchecked, a handle is the TensorImpl itself with one count of its own. Checked, it is an id in a table.
tn_tensor *own_checked(c10::TensorImpl *counted);

[[noreturn, gnu::cold]] void fail_null(const char *argument);

// Tensors whose elements do not simply lie in memory (forms.cpp). libtorch makes and resizes sparse ones
// without writing their indices, which kernels then follow anywhere: so each that has some is looked through
// whenever it is given for more than to be asked about. Nested, quantized and oneDNN's tensors are for the
// kernels that were written for them.
constexpr c10::DispatchKeySet own_forms = c10::DispatchKeySet(c10::DispatchKey::NestedTensor) |
                                          c10::DispatchKeySet(c10::DispatchKey::Quantized) | c10::mkldnn_ks;
constexpr c10::DispatchKeySet all_forms = own_forms | c10::sparse_ks | c10::sparse_csr_ks;
[[gnu::always_inline]] inline bool has_form(const at::Tensor &tensor, c10::DispatchKeySet forms = all_forms) {
    return tensor.unsafeGetTensorImpl()->key_set().has_any(forms);
}
const char *name_of_form(const at::Tensor &tensor);  // one of own_forms
// Fail for indices outside of a sparse tensor; `check_form` also for the others.
[[gnu::cold]] void check_indices(const at::Tensor &tensor, const char *argument);
[[gnu::cold]] void check_form(const at::Tensor &tensor, const char *argument);

// Give a tensor to the caller.
[[gnu::always_inline]] inline tn_tensor *own(at::Tensor tensor) {
    auto *counted = tensor.unsafeReleaseTensorImpl();
    if (__builtin_expect(checked, false)) return own_checked(counted);
    count_tensors(1);
    return reinterpret_cast<tn_tensor *>(counted);
}

// A tensor that a call only asks about itself, what it is made of aside: `Asked x(handle, "tensor");`. Its
// count is not touched. A tensor is a pointer to its TensorImpl, as an unchecked handle is: so there is
// nothing to make, and nothing to destroy.
class Asked {
  public:
    [[gnu::always_inline]] Asked(const tn_tensor *handle, const char *argument) : handle_(handle) {
        if (__builtin_expect(handle == nullptr || checked, false)) look_up(argument);
    }
    [[gnu::always_inline]] ~Asked() {
        if (__builtin_expect(checked, false)) let_go();
    }
    Asked(const Asked &) = delete;
    Asked &operator=(const Asked &) = delete;

    operator const at::Tensor &() const { return tensor_; }
    operator at::Tensor &() { return tensor_; }
    const at::Tensor &operator*() const { return tensor_; }
    at::Tensor &operator*() { return tensor_; }
    const at::Tensor *operator->() const { return &tensor_; }
    at::Tensor *operator->() { return &tensor_; }

  private:
    // Fails for NULL; in checked mode makes a counted tensor.
    [[gnu::cold]] void look_up(const char *argument);
    [[gnu::cold]] void let_go() noexcept;

    static_assert(sizeof(at::Tensor) == sizeof(const tn_tensor *));
    union {
        const tn_tensor *handle_;
        at::Tensor tensor_;
    };
};

// A tensor argument for the length of a call.
class Borrowed : public Asked {
  public:
    [[gnu::always_inline]] Borrowed(const tn_tensor *handle, const char *argument) : Asked(handle, argument) {
        if (__builtin_expect(has_form(**this), false)) check_form(**this, argument);
    }
};

// One that is passed on, to what knows more of it: a value, a stack, a program.
class Passed : public Asked {
  public:
    [[gnu::always_inline]] Passed(const tn_tensor *handle, const char *argument) : Asked(handle, argument) {
        if (__builtin_expect(has_form(**this), false)) check_indices(**this, argument);
    }
};

// A counted tensor of a handle; NULL is an undefined tensor in `optional_tensor` and an error in `tensor`.
at::Tensor tensor(const tn_tensor *handle, const char *argument);
std::optional<at::Tensor> optional_tensor(const tn_tensor *handle, const char *argument);
std::vector<at::Tensor> tensors(const tn_tensor *const *handles, int64_t count, const char *argument);
c10::List<std::optional<at::Tensor>> optional_tensors(
    const tn_tensor *const *handles, int64_t count, const char *argument);

// Results: an array of handles for tn_free_all, or the entries of a caller's array, all of them or none.
void own_list(const std::vector<at::Tensor> &list, tn_tensor ***out, int64_t *count);
void own_each(at::Tensor *list, int64_t count, tn_tensor **out);

// ---- handles of other objects -----------------------------------------------------------------------------

// A kind of handle: OPAQUE(tn_stack, Stack, stack) says that a tn_stack is a C++ Stack. Add to the end: a
// kind is part of checked ids, and at most 15 fit.
enum class Kind : uint8_t {
    tensor = 1,
    value,
    stack,
    generator,
    module,
    function,
    optimizer,
    stream,
    hook,
    package,
    context
};

template <class C>
struct Opaque;

#define OPAQUE(c_type, cpp_type, kind_name)                     \
    template <>                                                 \
    struct Opaque<c_type> {                                     \
        using Object = cpp_type;                                \
        static constexpr Kind kind = Kind::kind_name;           \
        static constexpr const char *name = #c_type;            \
    };

// An object behind a handle starts with a mark, so that a handle of another kind is refused rather than used.
template <class Object>
struct Box {
    uint64_t mark;
    Object object;
};
constexpr uint64_t mark_of(Kind kind) { return 0x746e666f6c640000u | static_cast<uint64_t>(kind); }

void *own_object(Kind kind, std::shared_ptr<void> box);
std::shared_ptr<void> find_object(Kind kind, const void *handle, const char *argument);
void remove_object(Kind kind, const void *handle);
[[noreturn, gnu::cold]] void fail_kind(const char *argument, const char *type);
void allocation_point();  // throws where tn_debug_fail_allocation says so
extern std::atomic<int64_t> live_objects;

// Give an object to the caller.
template <class C>
C *own_as(typename Opaque<C>::Object object) {
    using Boxed = Box<typename Opaque<C>::Object>;
    allocation_point();
    if (checked) {
        auto box = std::make_shared<Boxed>(Boxed{mark_of(Opaque<C>::kind), std::move(object)});
        return static_cast<C *>(own_object(Opaque<C>::kind, std::move(box)));
    }
    auto *box = new Boxed{mark_of(Opaque<C>::kind), std::move(object)};
    live_objects.fetch_add(1, std::memory_order_relaxed);
    return reinterpret_cast<C *>(box);
}

// An object argument for the length of a call: `auto stack = borrow(handle, "stack"); stack->push_back(...)`.
template <class Object>
class Held {
  public:
    Held(Object *object, std::shared_ptr<void> keep) : object_(object), keep_(std::move(keep)) {}
    Object &operator*() const { return *object_; }
    Object *operator->() const { return object_; }

  private:
    Object *object_;
    std::shared_ptr<void> keep_;
};

template <class C>
Held<typename Opaque<C>::Object> borrow(const C *handle, const char *argument) {
    using Boxed = Box<typename Opaque<C>::Object>;
    if (handle == nullptr) fail_null(argument);
    if (checked) {
        auto keep = find_object(Opaque<C>::kind, handle, argument);
        auto *box = static_cast<Boxed *>(keep.get());
        return {&box->object, std::move(keep)};
    }
    auto *box = reinterpret_cast<Boxed *>(const_cast<C *>(handle));
    if (box->mark != mark_of(Opaque<C>::kind)) fail_kind(argument, Opaque<C>::name);
    return {&box->object, nullptr};
}

// The body of tn_X_free: `freeing("tn_stack_free", [&] { release(stack); });`.
template <class C>
void release(C *handle) {
    using Boxed = Box<typename Opaque<C>::Object>;
    if (handle == nullptr) return;
    if (checked) {
        remove_object(Opaque<C>::kind, handle);
        return;
    }
    auto *box = reinterpret_cast<Boxed *>(handle);
    if (box->mark != mark_of(Opaque<C>::kind)) fail_kind("the handle", Opaque<C>::name);
    box->mark = 0;
    delete box;
    live_objects.fetch_sub(1, std::memory_order_relaxed);
}

OPAQUE(tn_generator, at::Generator, generator)

// ---- plain arguments (errors.cpp, tensors.cpp) ------------------------------------------------------------

template <class T>
T &non_null(T *pointer, const char *argument) {
    if (pointer == nullptr) fail_null(argument);
    return *pointer;
}
const char *text(const char *given, const char *argument);
void check_count(const void *array, int64_t count, const char *argument);  // negative, or entries of no array
template <class T>
c10::ArrayRef<T> array(const T *entries, int64_t count, const char *argument) {
    check_count(entries, count, argument);
    return c10::ArrayRef<T>(entries, static_cast<size_t>(count));
}

at::Scalar scalar(tn_scalar given, const char *argument);
tn_scalar from_scalar(const at::Scalar &value);
c10::ScalarType dtype(tn_dtype given, const char *argument);
c10::Device device(tn_device given, const char *argument);
tn_device from_device(c10::Device device);
c10::Layout layout(tn_layout given, const char *argument);
c10::MemoryFormat memory_format(tn_memory_format given, const char *argument);

// Text for a caller's buffer, as by snprintf; returns the whole length.
int64_t write_text(const std::string &text, char *buffer, int64_t size);

// ---- elements (tensors.cpp) -------------------------------------------------------------------------------

at::Tensor packed(const at::Tensor &tensor);  // on the host, in row-major order
void print(std::ostream &stream, const at::Tensor &tensor);

}  // namespace tenfold
