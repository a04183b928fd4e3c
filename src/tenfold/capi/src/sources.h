// What is asked of a TorchScript source before libtorch's parser and compiler see it.
#pragma once

#include <string_view>

namespace tenfold {

// How deep a host's source may go; what is saved of it lies in a class and a method besides.
constexpr int most_levels = 400, most_saved_levels = 440;

// Fails where a source nests deeper than libtorch can follow.
void check_levels(std::string_view source, int most);

}  // namespace tenfold
