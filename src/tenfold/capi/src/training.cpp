// Losses by name, and one step of training in one call.
#include <map>

#include <ATen/ops/binary_cross_entropy.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/nll_loss_nd.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/soft_margin_loss.h>
#include <c10/core/GradMode.h>

#include "modules.h"
#include "optimizers.h"

namespace tenfold {
namespace {

using Loss = at::Tensor (*)(const at::Tensor &, const at::Tensor &);

Loss loss_of(const char *name) {
    static const std::map<std::string, Loss> losses = {
        {"binary_cross_entropy",
         [](const at::Tensor &x, const at::Tensor &y) { return at::binary_cross_entropy(x, y); }},
        {"binary_cross_entropy_with_logits",
         [](const at::Tensor &x, const at::Tensor &y) { return at::binary_cross_entropy_with_logits(x, y); }},
        {"cross_entropy",
         [](const at::Tensor &x, const at::Tensor &y) { return at::cross_entropy_loss(x, y); }},
        {"huber_loss", [](const at::Tensor &x, const at::Tensor &y) { return at::huber_loss(x, y); }},
        {"kl_div", [](const at::Tensor &x, const at::Tensor &y) { return at::kl_div(x, y); }},
        {"l1_loss", [](const at::Tensor &x, const at::Tensor &y) { return at::l1_loss(x, y); }},
        {"mse_loss", [](const at::Tensor &x, const at::Tensor &y) { return at::mse_loss(x, y); }},
        {"nll_loss", [](const at::Tensor &x, const at::Tensor &y) { return at::nll_loss_nd(x, y); }},
        {"smooth_l1_loss", [](const at::Tensor &x, const at::Tensor &y) { return at::smooth_l1_loss(x, y); }},
        {"soft_margin_loss",
         [](const at::Tensor &x, const at::Tensor &y) { return at::soft_margin_loss(x, y); }},
    };
    auto found = losses.find(text(name, "loss"));
    if (found != losses.end()) return found->second;
    std::string known;
    for (const auto &each : losses) known += (known.empty() ? "" : ", ") + each.first;
    fail(TN_ERROR_NOT_FOUND, "there is no loss ", name, ": there are ", known);
}

}  // namespace
}  // namespace tenfold

using namespace tenfold;

tn_tensor *tn_loss(const char *loss, const tn_tensor *input, const tn_tensor *target) {
    return guarded("tn_loss", static_cast<tn_tensor *>(nullptr), [&] {
        Borrowed x(input, "input"), y(target, "target");
        return own(loss_of(loss)(x, y));
    });
}

tn_tensor *tn_train_step(const tn_module *module, tn_optimizer *optimizer, const char *loss,
                         const tn_tensor *const *inputs, int64_t inputs_count, const tn_tensor *target) {
    return guarded("tn_train_step", static_cast<tn_tensor *>(nullptr), [&] {
        auto improved = *borrow(optimizer, "optimizer");
        auto compute = loss_of(loss);
        auto given = tensors(inputs, inputs_count, "inputs");
        Borrowed wanted(target, "target");
        auto called = borrow(module, "module")->find_method("forward");
        if (!called) fail(TN_ERROR_NOT_FOUND, "the module has no method forward");
        improved->zero_grad();
        c10::AutoGradMode recording(true);
        const c10::IValue result = (*called)(torch::jit::Stack(given.begin(), given.end()));
        if (!result.isTensor()) {
            fail(TN_ERROR_TYPE, "forward gave a value of type ", result.type()->str(),
                 ", and a loss takes a tensor");
        }
        at::Tensor found = compute(result.toTensor(), wanted);
        found.backward();
        improved->step();
        return own(found.detach());
    });
}
