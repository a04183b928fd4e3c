// An optimizer inside: its kind, its options, its parameters and what it remembers of each.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "internal.h"

namespace tenfold {

enum class Method { sgd, adam, adamw, rmsprop, adagrad };

using Options = std::map<std::string, double>;
using State = std::map<std::string, at::Tensor>;

struct Optimizer {
    Method method;
    Options options;
    std::vector<at::Tensor> parameters;
    std::vector<State> states;  // one for each parameter
    mutable std::mutex mutex;

    void step();
    void zero_grad();
};

OPAQUE(tn_optimizer, std::shared_ptr<Optimizer>, optimizer)

}  // namespace tenfold
