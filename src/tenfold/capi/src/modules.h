// A TorchScript module behind its handle.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include "internal.h"

namespace tenfold {

OPAQUE(tn_module, torch::jit::Module, module)

}  // namespace tenfold
