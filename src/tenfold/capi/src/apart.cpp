// How operands are kept apart from the tensor to write.
#include "apart.h"

namespace tenfold {

at::Tensor alias_of(const at::Tensor &written) {
    return written.defined() && written.layout() == c10::kStrided ? written.tensor_data() : written;
}

Read::Read(const tn_tensor *handle, const char *argument) : Borrowed(handle, argument) {}

Read::~Read() {}

void Read::keep_apart(const at::Tensor &written) {
    if ((**this).is_same(written)) alias_ = alias_of(written);
}

}  // namespace tenfold
