// The checks of numbers that kernels divide by, or go on by, and of elements that they do not expect.
#include <limits>

#include <ATen/Tensor.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/result_type.h>

#include "internal.h"
#include "needs.h"
#include "needs_kinds.h"

namespace tenfold {

void whole_step(Stack &arguments) {
    if (!arguments[3].isInt()) return;
    const bool whole = c10::isIntegralType(static_cast<c10::ScalarType>(arguments[3].toInt()), true);
    need(!whole || arguments[2].toScalar().toDouble() >= 1 || arguments[2].toScalar().toDouble() <= -1,
         "step is no whole number but 0, which the numbers of this dtype never get on by");
}

void whole_step_into(Stack &arguments) {
    const auto type = static_cast<int64_t>(arguments[3].toTensor().scalar_type());
    Stack same{arguments[0], arguments[1], arguments[2], type};
    whole_step(same);
}

// Whole numbers are counted in 64 bits: beyond them the count is wrong, or the smallest integer is divided by
// -1; libtorch before 2.13 divides by a step that is 0 in them.
static void countable(const Stack &arguments, c10::ScalarType type) {
    if (type != c10::kLong) return;
    const double distance = arguments[1].toScalar().toDouble() - arguments[0].toScalar().toDouble();
    need(distance < 9.2e18 && distance > -9.2e18, "end - start is a number of 64 bits");
    const double step = arguments[2].toScalar().toDouble();
    need(step >= 1 || step <= -1, "step must be nonzero, also as a whole number");
}

void counted(Stack &arguments) {
    const bool whole = arguments[0].isInt() && arguments[1].isInt() && arguments[2].isInt();
    if (arguments[3].isInt()) countable(arguments, static_cast<c10::ScalarType>(arguments[3].toInt()));
    else if (whole) countable(arguments, c10::kLong);
}

void counted_into(Stack &arguments) { countable(arguments, arguments[3].toTensor().scalar_type()); }

void absolute_power(Stack &arguments) {
    need(arguments[1].toInt() != std::numeric_limits<int64_t>::min(), "n has an absolute value of 64 bits");
}

// A processor stops the program that divides the smallest integer by -1.
void no_overflow(Stack &arguments) {
    if (!arguments[2].isString() || arguments[2].toStringRef() != "trunc") return;
    const at::Tensor &self = arguments[0].toTensor();
    const c10::IValue &other = arguments[1];
    const c10::ScalarType type =
        other.isTensor() ? at::result_type(self, other.toTensor()) : at::result_type(self, other.toScalar());
    if (!lies_in_memory(self) || (type != c10::kInt && type != c10::kLong)) return;
    if (other.isTensor() ? !lies_in_memory(other.toTensor()) : !other.toScalar().equal(-1)) return;
    const int64_t smallest =
        type == c10::kInt ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
    at::Tensor overflows = self.to(type).eq(smallest);
    if (other.isTensor()) overflows = overflows.logical_and(other.toTensor().eq(-1));
    need(!overflows.any().item<bool>(), "the smallest integer cannot be divided by -1");
}

// LAPACK's balancing writes outside of its memory for others.
void finite(Stack &arguments) {
    const at::Tensor &given = arguments[0].toTensor();
    if (!lies_in_memory(given)) return;
    need(at::isfinite(given).all().item<bool>(), "self has no infinities and no NaNs");
}

void complex_as_self(Stack &arguments) {
    if (!arguments[4].isInt()) return;
    const auto type = static_cast<c10::ScalarType>(arguments[4].toInt());
    need(c10::isComplexType(type) == arguments[0].toTensor().is_complex(), "dtype is complex where self is");
}

// Where no number is the last, the kernel looks for the one after the first in the tensor's dtype, and never
// finds it.
void next_number(Stack &arguments) {
    need(!arguments[2].isNone() || arguments[1].toInt() != std::numeric_limits<int64_t>::max(),
         "from is less than the largest integer");
}

}  // namespace tenfold
