// Tensors that a call writes, typed or from a stack: what is left of them by an operator that fails, and by
// one that puts another tensor in their place.
#pragma once

#include <utility>
#include <vector>

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include "internal.h"

namespace tenfold {

// libtorch gives a tensor its new size before it finds the memory, and where that fails the tensor would say
// that it has more than it has: it is left empty instead.
void settle(const at::Tensor &tensor) noexcept;
[[noreturn, gnu::cold]] void fail_immutable(const char *argument);

// Some of libtorch's operators put another tensor into the reference that they are to write through: its
// elements are written where they were wanted, as an operator's own are.
[[gnu::cold]] void write_into(const at::Tensor &wanted, const at::Tensor &put, const char *argument);

// A tensor argument that the call writes. It is counted, since a reference lets go of what it held when
// another tensor is put there. A thousand functions have one: so little of it is compiled with each.
class Written : public Borrowed {
  public:
    Written(const tn_tensor *handle, const char *argument);
    ~Written();

    at::Tensor &operator*() { return counted_; }
    void finish(const char *argument);  // after the call

  private:
    at::Tensor counted_;
};

// A list of such tensors, after the list. None of them can be put elsewhere.
class WrittenEach {
  public:
    explicit WrittenEach(const std::vector<at::Tensor> &list) : list_(list) {}
    WrittenEach(const WrittenEach &) = delete;
    ~WrittenEach();

  private:
    const std::vector<at::Tensor> &list_;
};

// Those among the arguments of a call from a stack.
class WrittenOnStack {
  public:
    WrittenOnStack(const c10::FunctionSchema &schema, const torch::jit::Stack &arguments);
    WrittenOnStack(const WrittenOnStack &) = delete;
    ~WrittenOnStack();

    void finish(torch::jit::Stack &results) const;  // after the call

  private:
    const c10::FunctionSchema &schema_;
    std::vector<std::pair<size_t, at::Tensor>> tensors_;  // each with the place of its argument
};

}  // namespace tenfold
