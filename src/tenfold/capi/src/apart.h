// Operands that are also the tensor to write, kept apart from it: typed ones and those on a stack.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>

#include "internal.h"

namespace tenfold {

// What an operand that is also the tensor to write is read through: libtorch gives that one its new size
// first, and a kernel that then took the operand's new size for its old one would read outside of its memory.
[[gnu::cold]] at::Tensor alias_of(const at::Tensor &written);

// An operand of a typed call.
class Read : public Borrowed {
  public:
    Read(const tn_tensor *handle, const char *argument);
    ~Read();

    const at::Tensor &operator*() const { return alias_.defined() ? alias_ : Borrowed::operator*(); }
    void keep_apart(const at::Tensor &written);

  private:
    at::Tensor alias_;
};

inline void keep_apart(Read &read, const at::Tensor &written) { read.keep_apart(written); }

[[gnu::noinline]] inline void keep_apart(at::Tensor &read, const at::Tensor &written) {
    if (read.is_same(written)) read = alias_of(written);
}

inline void keep_apart(std::optional<at::Tensor> &read, const at::Tensor &written) {
    if (read) keep_apart(*read, written);
}

inline void keep_apart(std::vector<at::Tensor> &read, const at::Tensor &written) {
    for (at::Tensor &each : read) keep_apart(each, written);
}

// A list is one for all who have it: the caller's stays as it is.
template <class Entry>
[[gnu::noinline]] void keep_apart(c10::List<Entry> &read, const at::Tensor &written) {
    const c10::List<Entry> given = read;
    for (size_t i = 0; i < given.size(); i++) {
        Entry each = given.get(i);
        std::optional<at::Tensor> tensor = each;
        if (!tensor || !tensor->is_same(written)) continue;
        if (read.is(given)) read = given.copy();
        keep_apart(each, written);
        read.set(i, each);
    }
}

inline void keep_apart(c10::IValue &read, const at::Tensor &written) {
    if (read.isTensor()) {
        keep_apart(read.toTensor(), written);
    } else if (read.isTensorList()) {
        c10::List<at::Tensor> list = read.toTensorList();
        keep_apart(list, written);
        read = list;
    } else if (read.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list = read.toOptionalTensorList();
        keep_apart(list, written);
        read = list;
    }
}

template <class Operand>
void keep_apart(Operand &read, const std::vector<at::Tensor> &written) {
    for (const at::Tensor &each : written) keep_apart(read, each);
}

}  // namespace tenfold
