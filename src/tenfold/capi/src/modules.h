// A TorchScript module behind its handle, its methods, and what all traces check.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include "internal.h"

namespace tenfold {

OPAQUE(tn_module, torch::jit::Module, module)

torch::jit::Method method_of(const torch::jit::Module &module, const char *name);
// Have a module keep a function, whose first argument it becomes, as a method.
void add_method(torch::jit::Module &module, const std::string &name, torch::jit::Function &function);

// libtorch refuses a trace inside a trace too, but forgets the one around it.
void refuse_trace_in_trace();
// An operator that fails takes the trace with it, whether or not the host went on.
void check_still_tracing();

}  // namespace tenfold
