// What callbacks of the host have in common: tensors lent to them, tensors taken from them,
// and their failure.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "internal.h"
#include "scopes.h"

namespace tenfold {

// The host's own data, which it frees itself until `adopt` was called.
class UserData {
  public:
    explicit UserData(void *pointer) : pointer_(pointer) {}
    UserData(const UserData &) = delete;
    UserData &operator=(const UserData &) = delete;
    ~UserData() {
        if (destroy_ == nullptr) return;
        HostsTurn turn;
        destroy_(pointer_);
    }
    void adopt(tn_deleter destroy) { destroy_ = destroy; }
    void *get() const { return pointer_; }

  private:
    void *pointer_;
    tn_deleter destroy_ = nullptr;
};

// Handles that a callback may read until it returns; an undefined tensor is NULL.
class Lent {
  public:
    explicit Lent(const std::vector<at::Tensor> &tensors);
    Lent(const Lent &) = delete;
    Lent &operator=(const Lent &) = delete;
    ~Lent();
    const tn_tensor *const *data() const { return handles_.data(); }
    int64_t count() const { return static_cast<int64_t>(handles_.size()); }

  private:
    std::vector<tn_tensor *> handles_;
};

// Places for the tensors that a callback gives away; those that nobody takes are freed.
class Given {
  public:
    explicit Given(int64_t count) : handles_(static_cast<size_t>(count), nullptr) {}
    Given(const Given &) = delete;
    Given &operator=(const Given &) = delete;
    ~Given();
    tn_tensor **data() { return handles_.data(); }
    int64_t count() const { return static_cast<int64_t>(handles_.size()); }
    // The tensors; one that is NULL is undefined, or an error where all are needed.
    std::vector<at::Tensor> take(const std::string &who, bool all_needed) const;

  private:
    std::vector<tn_tensor *> handles_;
};

// A failure that passes through libtorch's own machinery, which lets nothing but standard exceptions through.
struct CallbackFailure : Failure, std::exception {
    explicit CallbackFailure(Failure failure) : Failure(std::move(failure)) {}
    const char *what() const noexcept override { return message.c_str(); }
};

template <class Body>
auto passing_through(Body &&body) {
    try {
        return body();
    } catch (const Failure &failure) {
        throw CallbackFailure(failure);
    }
}

// Call the host; where it fails, fail with what it left as this thread's error.
template <class Callback, class... Arguments>
void call_back(const std::string &who, Callback callback, Arguments... arguments) {
    set_error(TN_OK, "");
    tn_status status;
    {
        HostsTurn turn;
        status = callback(arguments...);
    }
    if (status == TN_OK) return;
    const std::string reason = error_message();
    if (reason.empty())
        fail(TN_ERROR_CALLBACK, who, " failed with status ", status, " (tn_fail gives a reason)");
    fail(TN_ERROR_CALLBACK, who, " failed: ", reason);
}

// Handles in a caller's array: NULL for a tensor that is undefined. All of them, or none when it fails.
void own_each_defined(const std::vector<at::Tensor> &tensors, tn_tensor **out);

}  // namespace tenfold
