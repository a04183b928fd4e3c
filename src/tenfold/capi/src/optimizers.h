// An optimizer inside: its kind, its options, its parameters and what it remembers of each.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "internal.h"

namespace tenfold {

enum class Method { sgd, adam, adamw, rmsprop, adagrad };

// A lock that this thread must not have yet: where a callback runs inside of what holds it, to wait would be
// the end of all progress, and is an error.
class Turn {
  public:
    explicit Turn(const char *what) : what_(what) {}
    void lock() {
        if (owner_.load(std::memory_order_relaxed) == std::this_thread::get_id())
            fail(TN_ERROR_ARGUMENT, what_, " is at work: a callback that it causes cannot use it");
        mutex_.lock();
        owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    void unlock() {
        owner_.store(std::thread::id(), std::memory_order_relaxed);
        mutex_.unlock();
    }

  private:
    const char *what_;
    std::mutex mutex_;
    std::atomic<std::thread::id> owner_{};
};

using Options = std::map<std::string, double>;
using State = std::map<std::string, at::Tensor>;

struct Optimizer {
    Method method;
    Options options;
    std::vector<at::Tensor> parameters;
    std::vector<State> states;  // one for each parameter
    mutable Turn turn{"the optimizer"};

    void step();
    void zero_grad();
};

OPAQUE(tn_optimizer, std::shared_ptr<Optimizer>, optimizer)

}  // namespace tenfold
