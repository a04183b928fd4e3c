// Optimizers over lists of tensors: their options, their state as a value, and the entries. The
// arithmetic is in steps.cpp.
#include "optimizers.h"

#include <cmath>

#include <ATen/ops/zeros_like.h>

#include "values.h"

namespace tenfold {
namespace {

struct Rule {
    const char *name;
    double initial;
    enum Range { any, not_negative, below_one, yes_or_no } range;
};

struct Description {
    const char *name;
    std::vector<Rule> rules;
    std::vector<const char *> state;  // the names of what may be remembered of a parameter
};

const Description &describe(Method method) {
    static const auto adam = [](double weight_decay) {
        return std::vector<Rule>{
            {"lr", 1e-3, Rule::not_negative}, {"beta1", 0.9, Rule::below_one},
            {"beta2", 0.999, Rule::below_one}, {"eps", 1e-8, Rule::not_negative},
            {"weight_decay", weight_decay, Rule::not_negative}, {"amsgrad", 0, Rule::yes_or_no},
            {"maximize", 0, Rule::yes_or_no}};
    };
    static const std::vector<const char *> moments = {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
    static const std::map<Method, Description> all = {
        {Method::sgd,
         {"sgd",
          {{"lr", 1e-3, Rule::not_negative},
           {"momentum", 0, Rule::not_negative},
           {"dampening", 0, Rule::any},
           {"weight_decay", 0, Rule::not_negative},
           {"nesterov", 0, Rule::yes_or_no},
           {"maximize", 0, Rule::yes_or_no}},
          {"momentum_buffer"}}},
        {Method::adam, {"adam", adam(0), moments}},
        {Method::adamw, {"adamw", adam(0.01), moments}},
        {Method::rmsprop,
         {"rmsprop",
          {{"lr", 1e-2, Rule::not_negative},
           {"alpha", 0.99, Rule::not_negative},
           {"eps", 1e-8, Rule::not_negative},
           {"weight_decay", 0, Rule::not_negative},
           {"momentum", 0, Rule::not_negative},
           {"centered", 0, Rule::yes_or_no},
           {"maximize", 0, Rule::yes_or_no}},
          {"square_avg", "momentum_buffer", "grad_avg"}}},
        {Method::adagrad,
         {"adagrad",
          {{"lr", 1e-2, Rule::not_negative},
           {"lr_decay", 0, Rule::not_negative},
           {"weight_decay", 0, Rule::not_negative},
           {"initial_accumulator_value", 0, Rule::not_negative},
           {"eps", 1e-10, Rule::not_negative},
           {"maximize", 0, Rule::yes_or_no}},
          {"step", "sum"}}},
    };
    return all.at(method);
}

void check_option(Method method, const std::string &option, double value) {
    const Description &description = describe(method);
    std::string known;
    for (const Rule &rule : description.rules) {
        known += (known.empty() ? "" : ", ") + std::string(rule.name);
        if (option != rule.name) continue;
        if (!std::isfinite(value)) fail(TN_ERROR_ARGUMENT, option, " is a finite number, not ", value);
        if (rule.range != Rule::any && value < 0)
            fail(TN_ERROR_ARGUMENT, option, " is not negative: ", value);
        if (rule.range == Rule::below_one && value >= 1)
            fail(TN_ERROR_ARGUMENT, option, " is below 1, not ", value);
        if (rule.range == Rule::yes_or_no && value != 0 && value != 1) {
            fail(TN_ERROR_ARGUMENT, option, " is 1 for yes or 0 for no, not ", value);
        }
        return;
    }
    fail(TN_ERROR_NOT_FOUND, description.name, " has no option ", option, ": it has ", known);
}

tn_optimizer *make(Method method, const tn_tensor *const *parameters, int64_t count, double lr) {
    auto made = std::make_shared<Optimizer>();
    made->method = method;
    made->parameters = tensors(parameters, count, "parameters");
    if (made->parameters.empty()) fail(TN_ERROR_ARGUMENT, "an optimizer needs at least one parameter");
    for (size_t i = 0; i < made->parameters.size(); ++i) {
        const at::Tensor &each = made->parameters[i];
        if (!each.is_leaf()) fail(TN_ERROR_ARGUMENT, "parameter ", i, " is not a leaf: detach it first");
        if (!each.is_floating_point() && !each.is_complex()) {
            fail(TN_ERROR_TYPE, "parameter ", i, " is not of floating-point or complex numbers");
        }
        for (size_t j = 0; j < i; ++j) {
            if (each.is_same(made->parameters[j]))
                fail(TN_ERROR_ARGUMENT, "parameters ", j, " and ", i, " are one");
        }
    }
    for (const Rule &rule : describe(method).rules) made->options[rule.name] = rule.initial;
    check_option(method, "lr", lr);
    made->options["lr"] = lr;
    made->states.resize(made->parameters.size());
    return own_as<tn_optimizer>(std::move(made));
}

// {"method": str, "options": Dict[str, float], "state": List[Dict[str, Tensor]]}
c10::IValue saved(const Optimizer &optimizer) {
    std::lock_guard<Turn> guard(optimizer.turn);
    c10::Dict<std::string, double> options;
    for (const auto &[name, value] : optimizer.options) options.insert(name, value);
    c10::List<c10::Dict<std::string, at::Tensor>> states;
    for (const State &state : optimizer.states) {
        c10::Dict<std::string, at::Tensor> kept;
        for (const auto &[name, tensor] : state) kept.insert(name, tensor.clone());
        states.push_back(kept);
    }
    c10::impl::GenericDict all(c10::StringType::get(), c10::AnyType::get());
    all.insert("method", describe(optimizer.method).name);
    all.insert("options", options);
    all.insert("state", states);
    return all;
}

[[noreturn]] void refuse(const char *why) {
    fail(TN_ERROR_ARGUMENT, "this is no state of this optimizer: ", why);
}

c10::IValue entry(const c10::IValue &dict, const char *key) {
    if (!dict.isGenericDict() || dict.toGenericDict().keyType()->kind() != c10::TypeKind::StringType) {
        refuse("it is not a dict by names");
    }
    auto entries = dict.toGenericDict();
    auto found = entries.find(key);
    if (found == entries.end()) refuse((std::string("it has no entry ") + key).c_str());
    return found->value();
}

State read_state(const c10::IValue &given, const at::Tensor &parameter, const Description &description) {
    if (!given.isGenericDict()) refuse("what it has of a parameter is no dict");
    State state;
    for (const auto &each : given.toGenericDict()) {
        if (!each.key().isString() || !each.value().isTensor()) refuse("a dict of tensors by name is needed");
        const std::string name = each.key().toStringRef();
        const at::Tensor &kept = each.value().toTensor();
        bool known = false;
        for (const char *expected : description.state) known = known || name == expected;
        if (!known) refuse(("it knows no " + name).c_str());
        if (!kept.defined()) refuse((name + " is undefined").c_str());
        if (name == "step") {
            if (kept.numel() != 1) refuse("a step is one number");
            state[name] = kept.detach().reshape({}).to(kept.options().dtype(c10::kFloat), false, true);
            continue;
        }
        if (kept.sizes() != parameter.sizes())
            refuse((name + " has another shape than its parameter").c_str());
        // In the parameter's own layout, so that one kernel can go over both.
        at::Tensor own = at::zeros_like(parameter.detach());
        own.copy_(kept.detach());
        state[name] = own;
    }
    return state;
}

void load(Optimizer &optimizer, const c10::IValue &given) {
    std::lock_guard<Turn> guard(optimizer.turn);
    const Description &description = describe(optimizer.method);
    const c10::IValue method = entry(given, "method");
    if (!method.isString() || method.toStringRef() != description.name) {
        refuse((std::string("it is not of ") + description.name).c_str());
    }
    Options options = optimizer.options;
    const c10::IValue numbers = entry(given, "options");
    if (!numbers.isGenericDict()) refuse("its options are no dict");
    for (const auto &each : numbers.toGenericDict()) {
        if (!each.key().isString() || !each.value().isDouble()) refuse("its options are not numbers by name");
        check_option(optimizer.method, each.key().toStringRef(), each.value().toDouble());
        options[each.key().toStringRef()] = each.value().toDouble();
    }
    const c10::IValue kept = entry(given, "state");
    if (!kept.isList()) refuse("its entry state is no list");
    const auto list = kept.toList();
    if (list.size() != optimizer.parameters.size()) refuse("it has another number of parameters");
    std::vector<State> states;
    for (size_t i = 0; i < list.size(); ++i) {
        states.push_back(read_state(list.get(i), optimizer.parameters[i], description));
    }
    optimizer.options = std::move(options);
    optimizer.states = std::move(states);
}

}  // namespace
}  // namespace tenfold

using namespace tenfold;

#define MAKES_OPTIMIZER(name)                                                                       \
    tn_optimizer *tn_optimizer_##name(const tn_tensor *const *parameters, int64_t parameters_count, \
                                      double lr) {                                                  \
        return guarded("tn_optimizer_" #name, static_cast<tn_optimizer *>(nullptr),                 \
                       [&] { return make(Method::name, parameters, parameters_count, lr); });       \
    }
MAKES_OPTIMIZER(sgd)
MAKES_OPTIMIZER(adam)
MAKES_OPTIMIZER(adamw)
MAKES_OPTIMIZER(rmsprop)
MAKES_OPTIMIZER(adagrad)

void tn_optimizer_free(tn_optimizer *optimizer) {
    freeing("tn_optimizer_free", [&] { release(optimizer); });
}

tn_status tn_optimizer_set(tn_optimizer *optimizer, const char *option, double value) {
    return guarded_status("tn_optimizer_set", [&] {
        auto found = *borrow(optimizer, "optimizer");
        check_option(found->method, text(option, "option"), value);
        std::lock_guard<Turn> guard(found->turn);
        found->options[option] = value;
    });
}

tn_status tn_optimizer_get(const tn_optimizer *optimizer, const char *option, double *value) {
    return guarded_status("tn_optimizer_get", [&] {
        auto found = *borrow(optimizer, "optimizer");
        check_option(found->method, text(option, "option"), 0);
        std::lock_guard<Turn> guard(found->turn);
        non_null(value, "value") = found->options.at(option);
    });
}

tn_status tn_optimizer_step(tn_optimizer *optimizer) {
    return guarded_status("tn_optimizer_step", [&] { (*borrow(optimizer, "optimizer"))->step(); });
}

tn_status tn_optimizer_zero_grad(tn_optimizer *optimizer) {
    return guarded_status("tn_optimizer_zero_grad", [&] { (*borrow(optimizer, "optimizer"))->zero_grad(); });
}

tn_value *tn_optimizer_state(const tn_optimizer *optimizer) {
    return guarded("tn_optimizer_state", static_cast<tn_value *>(nullptr),
                   [&] { return own_value(saved(**borrow(optimizer, "optimizer"))); });
}

tn_status tn_optimizer_set_state(tn_optimizer *optimizer, const tn_value *state) {
    return guarded_status("tn_optimizer_set_state", [&] {
        auto found = *borrow(optimizer, "optimizer");
        load(*found, *borrow(state, "state"));
    });
}
