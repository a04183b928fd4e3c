// One step of each optimizer, with PyTorch's own formulas, over whole lists of tensors where libtorch can.
#include "optimizers.h"

#include <cmath>

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adam_ops.h>
#include <ATen/ops/_fused_adamw_ops.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

namespace tenfold {
namespace {

// What a step works on: the parameters that have a gradient, as real numbers, with the gradients to follow.
struct Work {
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> gradients;
    std::vector<State *> states;

    // What is remembered under a name, made by `initial` at the first step. Complex numbers are kept as such.
    template <class Initial>
    std::vector<at::Tensor> remembered(const char *name, Initial initial) const {
        std::vector<at::Tensor> found;
        for (size_t i = 0; i < states.size(); ++i) {
            at::Tensor &kept = (*states[i])[name];
            if (!kept.defined()) kept = initial(i);
            found.push_back(kept.is_complex() ? at::view_as_real(kept) : kept);
        }
        return found;
    }
};

Work collect(Optimizer &optimizer) {
    Work work;
    for (size_t i = 0; i < optimizer.parameters.size(); ++i) {
        at::Tensor parameter = optimizer.parameters[i].detach();
        at::Tensor gradient = optimizer.parameters[i].grad();
        if (!gradient.defined()) continue;
        if (gradient.layout() != c10::kStrided) {
            fail(TN_ERROR_ARGUMENT, "the gradient of parameter ", i,
                 " is sparse: make it dense with tn_to_dense");
        }
        // A parameter may have been resized, and kernels over whole lists do not look.
        if (gradient.sizes() != parameter.sizes()) {
            fail(TN_ERROR_ARGUMENT, "the gradient of parameter ", i, " has another shape than the parameter");
        }
        for (const auto &[name, kept] : optimizer.states[i]) {
            if (name != "step" && kept.sizes() != parameter.sizes()) {
                fail(TN_ERROR_ARGUMENT, "parameter ", i, " has another shape than at its last step");
            }
        }
        gradient = gradient.detach();
        if (parameter.is_complex()) {
            parameter = at::view_as_real(parameter);
            gradient = at::view_as_real(gradient.resolve_conj());
        }
        work.parameters.push_back(parameter);
        work.gradients.push_back(gradient);
        work.states.push_back(&optimizer.states[i]);
    }
    return work;
}

double option(const Optimizer &optimizer, const char *name) { return optimizer.options.at(name); }

void maximize_and_decay(Work &work, const Optimizer &optimizer) {
    if (option(optimizer, "maximize") != 0) work.gradients = at::_foreach_neg(work.gradients);
    const double decay = option(optimizer, "weight_decay");
    if (decay != 0) work.gradients = at::_foreach_add(work.gradients, work.parameters, decay);
}

auto zeros_for(const Optimizer &optimizer, const Work &work) {
    // By the parameter itself: of a complex one the state is complex, too.
    std::vector<const at::Tensor *> originals;
    for (State *state : work.states)
        originals.push_back(&optimizer.parameters[state - optimizer.states.data()]);
    return [originals](size_t i) { return at::zeros_like(originals[i]->detach()); };
}

void sgd(Work &work, const Optimizer &optimizer) {
    const double lr = option(optimizer, "lr"), momentum = option(optimizer, "momentum");
    const double dampening = option(optimizer, "dampening");
    const bool nesterov = option(optimizer, "nesterov") != 0;
    if (nesterov && (momentum <= 0 || dampening != 0)) {
        fail(TN_ERROR_ARGUMENT, "nesterov needs a momentum and no dampening");
    }
    maximize_and_decay(work, optimizer);
    if (momentum != 0) {
        std::vector<at::Tensor> begun, their_gradients, buffers;
        const auto zeros = zeros_for(optimizer, work);
        for (size_t i = 0; i < work.states.size(); ++i) {
            at::Tensor &kept = (*work.states[i])["momentum_buffer"];
            const bool first = !kept.defined();
            if (first) kept = zeros(i);
            at::Tensor buffer = kept.is_complex() ? at::view_as_real(kept) : kept;
            buffers.push_back(buffer);
            if (first) {
                buffer.copy_(work.gradients[i]);
            } else {
                begun.push_back(buffer);
                their_gradients.push_back(work.gradients[i]);
            }
        }
        if (!begun.empty()) {
            at::_foreach_mul_(begun, momentum);
            at::_foreach_add_(begun, their_gradients, 1 - dampening);
        }
        work.gradients = nesterov ? at::_foreach_add(work.gradients, buffers, momentum) : buffers;
    }
    at::_foreach_add_(work.parameters, work.gradients, -lr);
}

void adam_one(const at::Tensor &parameter, at::Tensor gradient, const at::Tensor &mean,
              const at::Tensor &square, const at::Tensor &most, double step, const Optimizer &optimizer) {
    const double lr = option(optimizer, "lr"), decay = option(optimizer, "weight_decay");
    const double beta1 = option(optimizer, "beta1"), beta2 = option(optimizer, "beta2");
    if (option(optimizer, "maximize") != 0) gradient = -gradient;
    if (decay != 0 && optimizer.method == Method::adamw) {
        parameter.mul_(1 - lr * decay);
    } else if (decay != 0) {
        gradient = gradient.add(parameter, decay);
    }
    mean.lerp_(gradient, 1 - beta1);
    square.mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);
    if (most.defined()) at::maximum_out(const_cast<at::Tensor &>(most), most, square);
    const double correction = std::sqrt(1 - std::pow(beta2, step));
    const at::Tensor size =
        (most.defined() ? most : square).sqrt().div_(correction).add_(option(optimizer, "eps"));
    parameter.addcdiv_(mean, size, -lr / (1 - std::pow(beta1, step)));
}

bool alike(const at::Tensor &x, const at::Tensor &y) {
    return x.strides() == y.strides() && x.scalar_type() == y.scalar_type() && x.device() == y.device();
}

void adam(Work &work, const Optimizer &optimizer) {
    const bool amsgrad = option(optimizer, "amsgrad") != 0;
    const auto zeros = zeros_for(optimizer, work);
    const auto steps = work.remembered("step", [&](size_t i) {
        // Beside the parameter: the kernel that goes over all of them reads it there.
        return at::zeros({}, work.parameters[i].options().dtype(c10::kFloat));
    });
    const auto means = work.remembered("exp_avg", zeros);
    const auto squares = work.remembered("exp_avg_sq", zeros);
    const auto most = amsgrad ? work.remembered("max_exp_avg_sq", zeros) : std::vector<at::Tensor>();
    at::_foreach_add_(steps, 1);

    struct Group {
        std::vector<at::Tensor> parameters, gradients, means, squares, most, steps;
    };
    std::map<std::pair<std::string, c10::ScalarType>, Group> groups;
    for (size_t i = 0; i < work.parameters.size(); ++i) {
        const at::Tensor &parameter = work.parameters[i];
        const bool fused = parameter.is_non_overlapping_and_dense() && alike(parameter, work.gradients[i]) &&
                           alike(parameter, means[i]) && alike(parameter, squares[i]) &&
                           (!amsgrad || alike(parameter, most[i])) && steps[i].device() == parameter.device();
        if (!fused) {
            adam_one(parameter, work.gradients[i], means[i], squares[i], amsgrad ? most[i] : at::Tensor(),
                     steps[i].item<double>(), optimizer);
            continue;
        }
        Group &group = groups[{parameter.device().str(), parameter.scalar_type()}];
        group.parameters.push_back(parameter);
        group.gradients.push_back(work.gradients[i]);
        group.means.push_back(means[i]);
        group.squares.push_back(squares[i]);
        group.steps.push_back(steps[i]);
        if (amsgrad) group.most.push_back(most[i]);
    }
    for (const auto &[key, group] : groups) {
        const auto call = [&, &g = group](auto fused) {
            fused(g.parameters, g.gradients, g.means, g.squares, g.most, g.steps, option(optimizer, "lr"),
                  option(optimizer, "beta1"), option(optimizer, "beta2"), option(optimizer, "weight_decay"),
                  option(optimizer, "eps"), amsgrad, option(optimizer, "maximize") != 0, std::nullopt,
                  std::nullopt);
        };
        if (optimizer.method == Method::adamw) {
            call(&at::_ops::_fused_adamw_::call);
        } else {
            call(&at::_ops::_fused_adam_::call);
        }
    }
}

void rmsprop(Work &work, const Optimizer &optimizer) {
    const double lr = option(optimizer, "lr"), alpha = option(optimizer, "alpha");
    const double momentum = option(optimizer, "momentum");
    maximize_and_decay(work, optimizer);
    const auto zeros = zeros_for(optimizer, work);
    const auto squares = work.remembered("square_avg", zeros);
    at::_foreach_mul_(squares, alpha);
    at::_foreach_addcmul_(squares, work.gradients, work.gradients, 1 - alpha);
    std::vector<at::Tensor> sizes;
    if (option(optimizer, "centered") != 0) {
        const auto means = work.remembered("grad_avg", zeros);
        at::_foreach_lerp_(means, work.gradients, 1 - alpha);
        sizes = at::_foreach_addcmul(squares, means, means, -1);
        at::_foreach_sqrt_(sizes);
    } else {
        sizes = at::_foreach_sqrt(squares);
    }
    at::_foreach_add_(sizes, option(optimizer, "eps"));
    if (momentum > 0) {
        const auto buffers = work.remembered("momentum_buffer", zeros);
        at::_foreach_mul_(buffers, momentum);
        at::_foreach_addcdiv_(buffers, work.gradients, sizes, 1);
        at::_foreach_add_(work.parameters, buffers, -lr);
    } else {
        at::_foreach_addcdiv_(work.parameters, work.gradients, sizes, -lr);
    }
}

void adagrad(Work &work, const Optimizer &optimizer) {
    const double start = option(optimizer, "initial_accumulator_value");
    maximize_and_decay(work, optimizer);
    const auto steps =
        work.remembered("step", [](size_t) { return at::zeros({}, at::TensorOptions().dtype(c10::kFloat)); });
    const auto zeros = zeros_for(optimizer, work);
    const auto sums = work.remembered("sum", [&](size_t i) {
        at::Tensor made = zeros(i);
        (made.is_complex() ? at::view_as_real(made) : made).fill_(start);
        return made;
    });
    at::_foreach_add_(steps, 1);
    at::_foreach_addcmul_(sums, work.gradients, work.gradients, 1);
    auto sizes = at::_foreach_sqrt(sums);
    at::_foreach_add_(sizes, option(optimizer, "eps"));
    std::vector<at::Scalar> rates;
    for (const at::Tensor &step : steps) {
        rates.push_back(-option(optimizer, "lr") /
                        (1 + (step.item<double>() - 1) * option(optimizer, "lr_decay")));
    }
    at::_foreach_addcdiv_(work.parameters, work.gradients, sizes, rates);
}

}  // namespace

void Optimizer::step() {
    std::lock_guard<Turn> guard(turn);
    c10::NoGradGuard no_grad;
    Work work = collect(*this);
    if (work.parameters.empty()) return;
    switch (method) {
        case Method::sgd: return sgd(work, *this);
        case Method::adam:
        case Method::adamw: return adam(work, *this);
        case Method::rmsprop: return rmsprop(work, *this);
        case Method::adagrad: return adagrad(work, *this);
    }
}

void Optimizer::zero_grad() {
    std::lock_guard<Turn> guard(turn);
    for (at::Tensor &each : parameters) each.mutable_grad() = at::Tensor();
}

}  // namespace tenfold
