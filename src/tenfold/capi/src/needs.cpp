// Which operators need what of their arguments: their kernels divide by one, or read what is not there,
// without looking, since most are parts of others that look first. The table comes from the rows' fact `needs`,
// by `needs.py`.
#include "needs.h"

#include <regex>
#include <unordered_map>

#include <ATen/core/dispatch/Dispatcher.h>

#include "internal.h"
#include "needs_kinds.h"
#include "needs_table.h"
#include "written.h"

namespace tenfold {

void need(bool fulfilled, const char *what) {
    if (!fulfilled) fail(TN_ERROR_ARGUMENT, what);
}

bool given(const c10::IValue &value) { return value.isTensor() && value.toTensor().defined(); }

bool of_integers(const at::Tensor &tensor) { return c10::isIntegralType(tensor.scalar_type(), true); }

bool lies_in_memory(const at::Tensor &tensor) { return tensor.is_cpu() && tensor.layout() == c10::kStrided; }

Needs needs_of(const std::string &op) {
    auto found = needs_table.find(op);
    if (found != needs_table.end()) return found->second;
    if (op.rfind("aten::_foreach_", 0) == 0) return lists_of_one_length;
    return std::regex_match(op, std::regex("aten::_fused_(adagrad|adamw?|sgd)_?([.].*)?")) ? fused_step
                                                                                           : nullptr;
}

void call_checked(const std::string &op, Stack &arguments) {
    needs_of(op)(arguments);
    const size_t dot = op.find('.');
    const std::string overload = dot == std::string::npos ? "" : op.substr(dot + 1);
    const auto handle =
        c10::Dispatcher::singleton().findSchemaOrThrow(op.substr(0, dot).c_str(), overload.c_str());
    const WrittenOnStack written(handle.schema(), arguments);
    handle.callBoxed(arguments);
    written.finish(arguments);
}

}  // namespace tenfold
