// What the generated functions of operators use: C parameters as libtorch's argument types. NULL is None.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>

#include <ATen/core/List.h>
#include <ATen/core/boxing/impl/boxing.h>
#include <c10/core/SymInt.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include "apart.h"
#include "internal.h"
#include "needs.h"
#include "written.h"

namespace tenfold {

[[noreturn, gnu::cold]] inline void lacking(const char *name) {
    fail(TN_ERROR_NOT_AVAILABLE, "libtorch ", TENFOLD_TORCH_VERSION, " has no ", name);
}

// A number as libtorch takes it. Made from a tn_scalar or a literal it owns nothing, so none is destroyed.
class Number {
  public:
    Number(tn_scalar given, const char *argument) : scalar_(scalar(given, argument)) {}
    template <class Literal>
    explicit Number(Literal number) : scalar_(number) {}
    Number(const Number &) = delete;
    ~Number() {}

    operator const at::Scalar &() const { return scalar_; }

  private:
    union {
        at::Scalar scalar_;
    };
};

// An argument as it is boxed.
template <class Argument>
const Argument &plain(const Argument &argument) {
    return argument;
}
inline const at::Scalar &plain(const Number &number) { return number; }

// A call of an operator that has needs. What is written into given tensors is no result: that is void.
template <class Result, class... Arguments>
Result call_checked(const char *op, const Arguments &...arguments) {
    auto stack = c10::impl::boxArgs<std::decay_t<decltype(plain(arguments))>...>(plain(arguments)...);
    call_checked(op, stack);
    if constexpr (!std::is_void_v<Result>) return c10::impl::PopResult<Result>::call(stack);
}

// ---- arguments --------------------------------------------------------------------------------------------

template <class Value, class Given>
std::optional<Value> maybe(const Given *given) {
    if (given == nullptr) return std::nullopt;
    return Value(*given);
}

template <class T>
c10::OptionalArrayRef<T> maybe_array(const T *entries, int64_t count, const char *argument) {
    if (entries == nullptr) return std::nullopt;
    return array(entries, count, argument);
}

inline std::optional<c10::ArrayRef<double>> maybe_array(const double *entries, int64_t count,
                                                        const char *argument) {
    if (entries == nullptr) return std::nullopt;
    return array(entries, count, argument);
}

[[gnu::noinline]] inline c10::SymIntArrayRef symbols(const int64_t *entries, int64_t count,
                                                     const char *argument) {
    return c10::fromIntArrayRefSlow(array(entries, count, argument));
}

// An argument of the type int[size], which libtorch's kernels read without looking how long it is. One entry
// stands for all, as it does in PyTorch; none where the schema's default is an empty list.
template <size_t size, bool may_be_empty>
struct Fixed {
    std::array<int64_t, size> repeated;
    c10::ArrayRef<int64_t> entries;

    Fixed(const int64_t *given, int64_t count, const char *argument)
        : entries(array(given, count, argument)) {
        if (count == 1) {
            repeated.fill(given[0]);
            entries = repeated;
        } else if (count != int64_t{size} && !(may_be_empty && count == 0)) {
            fail(TN_ERROR_ARGUMENT, argument, " takes ", size, " entries, and was given ", count);
        }
    }
    Fixed(const Fixed &) = delete;
};

inline c10::OptionalArrayRef<c10::SymInt> maybe_symbols(const int64_t *entries, int64_t count,
                                                        const char *argument) {
    if (entries == nullptr) return std::nullopt;
    return symbols(entries, count, argument);
}

template <size_t size>
std::array<bool, size> fixed(const bool *entries, int64_t count, const char *argument) {
    check_count(entries, count, argument);
    if (count != int64_t{size})
        fail(TN_ERROR_ARGUMENT, argument, " takes ", size, " entries, and was given ", count);
    std::array<bool, size> result;
    std::copy(entries, entries + size, result.begin());
    return result;
}

[[gnu::noinline]] inline std::vector<at::Scalar> scalars(const tn_scalar *entries, int64_t count,
                                                         const char *argument) {
    check_count(entries, count, argument);
    std::vector<at::Scalar> list;
    list.reserve(count);
    for (int64_t i = 0; i < count; i++) list.push_back(scalar(entries[i], argument));
    return list;
}

inline std::optional<at::Scalar> maybe_scalar(const tn_scalar *given, const char *argument) {
    if (given == nullptr) return std::nullopt;
    return scalar(*given, argument);
}

inline std::optional<c10::ScalarType> maybe_dtype(const tn_dtype *given, const char *argument) {
    if (given == nullptr) return std::nullopt;
    return dtype(*given, argument);
}

inline std::optional<c10::Layout> maybe_layout(const tn_layout *given, const char *argument) {
    if (given == nullptr) return std::nullopt;
    return layout(*given, argument);
}

inline std::optional<c10::Device> maybe_device(const tn_device *given, const char *argument) {
    if (given == nullptr) return std::nullopt;
    return device(*given, argument);
}

inline std::optional<c10::MemoryFormat> maybe_memory_format(const tn_memory_format *given,
                                                            const char *argument) {
    if (given == nullptr) return std::nullopt;
    return memory_format(*given, argument);
}

inline std::optional<std::string_view> maybe_text(const char *given) {
    if (given == nullptr) return std::nullopt;
    return std::string_view(given);
}

inline std::optional<at::Generator> maybe_generator(const tn_generator *given, const char *argument) {
    if (given == nullptr) return std::nullopt;
    return *borrow(given, argument);
}

template <class... Tensors>
[[gnu::noinline]] void own_results(std::tuple<Tensors...> &&results, tn_tensor **out) {
    std::apply([&](auto &&...each) {
        at::Tensor list[] = {std::move(each)...};
        own_each(list, sizeof...(each), out);
    }, results);
}

}  // namespace tenfold
