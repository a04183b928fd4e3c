// Functions whose gradients the host computes, each two callbacks; and hooks on the gradients of tensors.
#include "functions.h"

#include <torch/csrc/autograd/cpp_hook.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

#include "callbacks.h"
#include "values.h"

namespace tenfold {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What a function is; recorded graphs share it with the function's handle.
struct Definition : Callable {
    Definition(const char *name, tn_forward_fn forward, tn_backward_fn backward, int64_t results, void *user)
        : name(name), forward(forward), backward(backward), results(results), user(user) {}
    std::vector<at::Tensor> call(const std::vector<at::Tensor> &inputs, int64_t room) override;
    c10::IValue run(torch::jit::Stack arguments) override;
    std::string name;
    tn_forward_fn forward;
    tn_backward_fn backward;
    int64_t results;
    UserData user;
};

// What a callback may ask about the call that it is part of.
struct Call {
    AutogradContext *context;
    std::vector<bool> needed;
    bool is_forward;
};

OPAQUE(tn_context, Call, context)

namespace {

// A context for the length of one callback.
class OpenContext {
  public:
    explicit OpenContext(Call call) : handle_(own_as<tn_context>(std::move(call))) {}
    OpenContext(const OpenContext &) = delete;
    OpenContext &operator=(const OpenContext &) = delete;
    ~OpenContext() { release(handle_); }
    tn_context *handle() const { return handle_; }

  private:
    tn_context *handle_;
};

struct HostFunction : torch::autograd::Function<HostFunction> {
    static variable_list forward(AutogradContext *context, at::TensorList inputs,
                                 c10::intrusive_ptr<Definition> definition) {
        return passing_through([&] { return forward_inside(context, inputs.vec(), definition); });
    }

    static variable_list backward(AutogradContext *context, variable_list gradients) {
        return passing_through([&] { return backward_inside(context, gradients); });
    }

  private:
    static variable_list forward_inside(AutogradContext *context, const variable_list &inputs,
                                        const c10::intrusive_ptr<Definition> &definition) {
        const std::string who = "forward of " + definition->name;
        context->saved_data["definition"] = c10::IValue::make_capsule(definition);
        std::vector<bool> needed;
        for (const at::Tensor &each : inputs) needed.push_back(each.requires_grad());
        c10::List<bool> kept;
        for (bool each : needed) kept.push_back(each);
        context->saved_data["needed"] = kept;
        Lent lent(inputs);
        Given given(definition->results);
        OpenContext open({context, std::move(needed), true});
        call_back(who, definition->forward, open.handle(), lent.data(), lent.count(), given.data(),
                  given.count(), definition->user.get());
        return given.take(who, true);
    }

    static variable_list backward_inside(AutogradContext *context, const variable_list &gradients) {
        auto definition =
            c10::static_intrusive_pointer_cast<Definition>(context->saved_data["definition"].toCapsule());
        const std::string who = "backward of " + definition->name;
        std::vector<bool> needed;
        for (bool each : context->saved_data["needed"].toBoolList()) needed.push_back(each);
        for (size_t i = 0; i < needed.size(); ++i) needed[i] = needed[i] && context->needs_input_grad(i);
        Lent lent(gradients);
        Given given(static_cast<int64_t>(needed.size()));
        OpenContext open({context, std::move(needed), false});
        call_back(who, definition->backward, open.handle(), lent.data(), lent.count(), given.data(),
                  given.count(), definition->user.get());
        variable_list found = given.take(who, false);
        found.emplace_back();  // the definition was an argument of forward, too, and has no gradient
        return found;
    }
};

}  // namespace

std::vector<at::Tensor> Definition::call(const std::vector<at::Tensor> &inputs, int64_t room) {
    if (room != results)
        fail(TN_ERROR_ARGUMENT, name, " has ", results, " results, and there is room for ", room);
    auto definition = c10::intrusive_ptr<Definition>::reclaim_copy(this);
    return HostFunction::apply(at::TensorList(inputs), std::move(definition));
}

c10::IValue Definition::run(torch::jit::Stack arguments) {
    std::vector<at::Tensor> inputs;
    for (const c10::IValue &each : arguments) {
        if (!each.isTensor()) fail(TN_ERROR_TYPE, name, " takes tensors, not a value of type ", each.type()->str());
        inputs.push_back(each.toTensor());
    }
    const auto found = call(inputs, results);
    if (found.size() == 1) return found[0];
    return c10::ivalue::Tuple::create(std::vector<c10::IValue>(found.begin(), found.end()));
}

namespace {

// What a hook calls; the tensor's graph shares it until the hook is removed.
struct Hook {
    Hook(tn_hook_fn callback, void *user) : callback(callback), user(user) {}
    at::Tensor operator()(const at::Tensor &gradient) const {
        return passing_through([&] {
            Lent lent({gradient});
            Given given(1);
            call_back("hook", callback, lent.data()[0], given.data(), user.get());
            return given.take("hook", false)[0];
        });
    }
    tn_hook_fn callback;
    UserData user;
};

}  // namespace

// Where a hook hangs: among those that its tensor had when it was made, and that the graph goes on calling
// when the tensor is gone, or has others because it was written in place.
struct Place {
    std::weak_ptr<torch::autograd::hooks_list> among;
    unsigned index;
};

OPAQUE(tn_hook, Place, hook)

}  // namespace tenfold

using namespace tenfold;

tn_status tn_fail(const char *message) {
    return guarded("tn_fail", tn_status{TN_ERROR_CALLBACK},
                   [&] { return set_error(TN_ERROR_CALLBACK, text(message, "message")); });
}

tn_function *tn_function_new(const char *name, tn_forward_fn forward, tn_backward_fn backward,
                             int64_t outputs_count, void *user, tn_deleter destroy) {
    return guarded("tn_function_new", static_cast<tn_function *>(nullptr), [&] {
        if (forward == nullptr) fail_null("forward");
        if (backward == nullptr) fail_null("backward");
        if (outputs_count < 1 || outputs_count > 1 << 20) {
            fail(TN_ERROR_ARGUMENT, "a function has one result or more, not ", outputs_count);
        }
        auto definition =
            c10::make_intrusive<Definition>(text(name, "name"), forward, backward, outputs_count, user);
        tn_function *made = own_as<tn_function>(definition);
        definition->user.adopt(destroy);
        return made;
    });
}

void tn_function_free(tn_function *function) {
    freeing("tn_function_free", [&] { release(function); });
}

tn_status tn_function_call(const tn_function *function, const tn_tensor *const *inputs, int64_t inputs_count,
                           tn_tensor **outputs, int64_t outputs_count) {
    return guarded_status("tn_function_call", [&] {
        check_count(outputs, outputs_count, "outputs");
        auto called = *borrow(function, "function");
        own_each_defined(called->call(tensors(inputs, inputs_count, "inputs"), outputs_count), outputs);
    });
}

tn_status tn_function_run(const tn_function *function, tn_stack *stack) {
    return guarded_status("tn_function_run", [&] {
        auto held = borrow(stack, "stack");
        torch::jit::Stack arguments;
        std::swap(arguments, *held);
        auto called = *borrow(function, "function");
        held->push_back(called->run(std::move(arguments)));
    });
}

tn_status tn_context_save(tn_context *context, const tn_tensor *const *tensors, int64_t tensors_count) {
    return guarded_status("tn_context_save", [&] {
        auto call = borrow(context, "context");
        if (!call->is_forward) fail(TN_ERROR_ARGUMENT, "tensors are kept in forward, for backward to read");
        call->context->save_for_backward(tenfold::tensors(tensors, tensors_count, "tensors"));
    });
}

int64_t tn_context_saved_count(const tn_context *context) {
    return guarded("tn_context_saved_count", int64_t{-1}, [&] {
        auto call = borrow(context, "context");
        if (call->is_forward) fail(TN_ERROR_ARGUMENT, "what forward keeps is there in backward");
        return static_cast<int64_t>(call->context->get_saved_variables().size());
    });
}

tn_tensor *tn_context_saved(const tn_context *context, int64_t index) {
    return guarded("tn_context_saved", static_cast<tn_tensor *>(nullptr), [&] {
        auto call = borrow(context, "context");
        if (call->is_forward) fail(TN_ERROR_ARGUMENT, "what forward keeps is there in backward");
        const auto saved = call->context->get_saved_variables();
        if (index < 0 || static_cast<size_t>(index) >= saved.size()) {
            fail(TN_ERROR_INDEX, "forward kept ", saved.size(), " tensors: there is no ", index);
        }
        return own(saved[static_cast<size_t>(index)]);
    });
}

int tn_context_needs_grad(const tn_context *context, int64_t input) {
    return guarded("tn_context_needs_grad", -1, [&] {
        auto call = borrow(context, "context");
        if (input < 0 || static_cast<size_t>(input) >= call->needed.size()) {
            fail(TN_ERROR_INDEX, "there are ", call->needed.size(), " inputs: there is no ", input);
        }
        return call->needed[static_cast<size_t>(input)] ? 1 : 0;
    });
}

tn_hook *tn_hook_new(const tn_tensor *tensor, tn_hook_fn callback, void *user, tn_deleter destroy) {
    return guarded("tn_hook_new", static_cast<tn_hook *>(nullptr), [&] {
        if (callback == nullptr) fail_null("callback");
        at::Tensor watched = tenfold::tensor(tensor, "tensor");
        auto hook = std::make_shared<Hook>(callback, user);
        tn_hook *made = own_as<tn_hook>(Place{});
        try {
            const unsigned index = watched.register_hook([hook](const at::Tensor &gradient) {
                const auto kept = hook;  // which may free itself
                return (*kept)(gradient);
            });
            const auto &hooks = torch::autograd::impl::get_autograd_meta(watched)->cpp_hooks_list_;
            *borrow(made, "hook") = {hooks, index};
        } catch (...) {
            release(made);
            throw;
        }
        hook->user.adopt(destroy);
        return made;
    });
}

void tn_hook_free(tn_hook *hook) {
    freeing("tn_hook_free", [&] {
        if (hook == nullptr) return;
        const Place place = *borrow(hook, "hook");
        release(hook);
        if (const auto hooks = place.among.lock()) hooks->at(place.index) = nullptr;
    });
}
