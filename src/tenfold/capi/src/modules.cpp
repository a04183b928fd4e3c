// TorchScript modules made part by part: parameters, buffers, children, and methods that are traced over whole
// values.
#include "modules.h"

#include <torch/csrc/jit/frontend/tracer.h>

#include "callbacks.h"
#include "values.h"

namespace tenfold {

namespace jit = torch::jit;

void refuse_trace_in_trace() {
    if (jit::tracer::isTracing())
        fail(TN_ERROR_ARGUMENT, "a function that is being traced cannot trace another");
}

void check_still_tracing() {
    if (jit::tracer::isTracing()) return;
    const std::string reason = error_message();
    fail(TN_ERROR_CALLBACK, "an operator of the traced function failed, so there is no trace of it",
         reason.empty() ? "" : ": ", reason);
}

namespace {

// A stack that a callback may read and write until it returns.
class LentStack {
  public:
    explicit LentStack(jit::Stack stack) : handle_(own_as<tn_stack>(std::move(stack))) {}
    LentStack(const LentStack &) = delete;
    LentStack &operator=(const LentStack &) = delete;
    ~LentStack() { tn_stack_free(handle_); }
    tn_stack *get() const { return handle_; }

  private:
    tn_stack *handle_;
};

// A type of its own for each module: two of one unit have different names.
jit::Module empty_module(std::shared_ptr<jit::CompilationUnit> unit, const std::string &name) {
    c10::QualifiedName qualified("__torch__." + name);
    if (unit->get_type(qualified)) qualified = unit->mangle(qualified);
    jit::Module module(qualified, std::move(unit));
    module.register_attribute("training", c10::BoolType::get(), true);
    return module;
}

void check_name(const jit::Module &module, const char *name, const char *what) {
    const std::string given = text(name, "name");
    if (given.empty() || given.find('.') != std::string::npos)
        fail(TN_ERROR_ARGUMENT, "'", given, "' cannot be the name of a ", what);
    if (module.hasattr(given)) fail(TN_ERROR_ARGUMENT, "the module already has a part ", given);
}

jit::Stack traced_result(tn_trace_stack_fn callback, jit::Stack arguments, void *user) {
    LentStack lent(std::move(arguments));
    call_back("the traced function", callback, lent.get(), user);
    check_still_tracing();
    jit::Stack results = *borrow(lent.get(), "stack");
    if (results.size() != 1)
        fail(TN_ERROR_CALLBACK, "a traced function leaves one result on its stack, not ", results.size());
    return results;
}

}  // namespace
}  // namespace tenfold

using namespace tenfold;

extern "C" {

tn_module *tn_module_new(const char *name) {
    return guarded("tn_module_new", (tn_module *)nullptr, [&] {
        return own_as<tn_module>(empty_module(std::make_shared<jit::CompilationUnit>(), text(name, "name")));
    });
}

tn_status tn_module_set_parameter(tn_module *module, const char *name, const tn_tensor *tensor) {
    return guarded_status("tn_module_set_parameter", [&] {
        auto held = borrow(module, "module");
        check_name(*held, name, "parameter");
        held->register_parameter(name, *Borrowed(tensor, "tensor"), false);
    });
}

tn_status tn_module_set_buffer(tn_module *module, const char *name, const tn_tensor *tensor) {
    return guarded_status("tn_module_set_buffer", [&] {
        auto held = borrow(module, "module");
        check_name(*held, name, "buffer");
        held->register_buffer(name, *Borrowed(tensor, "tensor"));
    });
}

tn_status tn_module_set_child(tn_module *module, const char *name, const tn_module *child) {
    return guarded_status("tn_module_set_child", [&] {
        auto held = borrow(module, "module");
        check_name(*held, name, "child");
        held->register_module(name, *borrow(child, "child"));
    });
}

tn_module *tn_module_add_child(tn_module *module, const char *name) {
    return guarded("tn_module_add_child", (tn_module *)nullptr, [&] {
        auto held = borrow(module, "module");
        check_name(*held, name, "child");
        auto child = empty_module(held->_ivalue()->compilation_unit(), "Part");
        held->register_module(name, child);
        return own_as<tn_module>(child);
    });
}

tn_status tn_module_trace_method(tn_module *module, const char *method, tn_trace_stack_fn callback,
                                 const tn_stack *inputs, bool strict, void *user) {
    return guarded_status("tn_module_trace_method", [&] {
        refuse_trace_in_trace();
        if (callback == nullptr) fail_null("callback");
        jit::Module traced = *borrow(module, "module");
        const std::string name = text(method, "method");
        if (traced.find_method(name)) fail(TN_ERROR_ARGUMENT, "the module already has a method ", name);
        auto run = [&](jit::Stack arguments) {
            return passing_through([&] { return traced_result(callback, std::move(arguments), user); });
        };
        auto nameless = [](const at::Tensor &) { return std::string(); };
        jit::Stack given = *borrow(inputs, "inputs");
        auto recorded = jit::tracer::trace(std::move(given), run, nameless, strict, false, &traced).first;
        auto *function = traced._ivalue()->compilation_unit()->create_function(
            c10::QualifiedName(*traced.type()->name(), name), recorded->graph);
        traced.type()->addMethod(function);
    });
}

tn_value *tn_module_children(const tn_module *module) {
    return guarded("tn_module_children", (tn_value *)nullptr, [&] {
        c10::List<std::string> names;
        for (const auto &each : borrow(module, "module")->named_children()) names.push_back(each.name);
        return own_value(names);
    });
}

tn_module *tn_module_child(const tn_module *module, const char *name) {
    return guarded("tn_module_child", (tn_module *)nullptr, [&] {
        const std::string wanted = text(name, "name");
        for (const auto &each : borrow(module, "module")->named_children()) {
            if (each.name == wanted) return own_as<tn_module>(each.value);
        }
        fail(TN_ERROR_NOT_FOUND, "the module has no child ", wanted);
    });
}

int64_t tn_module_arity(const tn_module *module, const char *method) {
    return guarded("tn_module_arity", int64_t{-1}, [&] {
        auto found = borrow(module, "module")->find_method(text(method, "method"));
        if (!found) fail(TN_ERROR_NOT_FOUND, "the module has no method ", method);
        return int64_t(found->function().getSchema().arguments().size()) - 1;
    });
}
}
