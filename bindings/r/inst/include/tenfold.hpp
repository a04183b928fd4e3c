// The header that packages with `LinkingTo: tenfold` include.
#pragma once
#include "tenfold/tenfold.hpp"
