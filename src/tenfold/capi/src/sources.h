// What is asked of a TorchScript source before libtorch's parser and compiler see it.
#pragma once

#include <string_view>

namespace tenfold {

// Fails where a source nests deeper than libtorch can follow.
void check_levels(std::string_view source);

}  // namespace tenfold
