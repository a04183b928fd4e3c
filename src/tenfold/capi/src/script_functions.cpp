// TorchScript functions behind tn_function: a method with the module that it is of, or a function of the caller's.
#include <ATen/core/builtin_function.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/passes/inliner.h>

#include "functions.h"
#include "modules.h"

namespace tenfold {
namespace {

namespace jit = torch::jit;

struct ScriptFunction : Callable {
    std::vector<at::Tensor> call(const std::vector<at::Tensor> &inputs, int64_t room) override;
    c10::IValue run(jit::Stack arguments) override { return (*function)(std::move(arguments)); }

    jit::Function *function = nullptr;
    std::shared_ptr<void> keeper;       // of the function
    std::optional<jit::Method> method;  // that it was made from
};

std::vector<at::Tensor> ScriptFunction::call(const std::vector<at::Tensor> &inputs, int64_t room) {
    const c10::IValue result = run(jit::Stack(inputs.begin(), inputs.end()));
    std::vector<at::Tensor> found;
    if (result.isTensor()) {
        found.push_back(result.toTensor());
    } else if (result.isTensorList()) {
        found = result.toTensorVector();
    } else {
        const auto parts = result.isTuple() ? result.toTupleRef().elements().vec() : std::vector{result};
        for (const c10::IValue &each : parts) {
            if (!each.isTensor())
                fail(TN_ERROR_TYPE, function->name(), " gave a value of type ", result.type()->str(),
                     ": use tn_function_run for it");
            found.push_back(each.toTensor());
        }
    }
    if (int64_t(found.size()) != room)
        fail(TN_ERROR_ARGUMENT, function->name(), " has ", found.size(), " results, and there is room for ", room);
    return found;
}

c10::FunctionSchema without_self(const c10::FunctionSchema &schema) {
    auto arguments = schema.arguments();
    arguments.erase(arguments.begin());
    return schema.cloneWithArguments(std::move(arguments));
}

// A method that does not look at its module is a graph of its arguments alone; another is called with its module.
c10::intrusive_ptr<ScriptFunction> bound(const jit::Method &method) {
    auto made = c10::make_intrusive<ScriptFunction>();
    made->method = method;
    jit::Function &whole = method.function();
    auto schema = without_self(whole.getSchema());
    auto graph = jit::toGraphFunction(whole).graph()->copy();
    jit::Inline(*graph);
    if (!graph->inputs()[0]->hasUses()) {
        graph->eraseInput(0);
        auto unit = std::make_shared<jit::CompilationUnit>();
        made->function = unit->create_function(c10::QualifiedName(whole.name()), graph);
        made->function->setSchema(std::move(schema));
        made->keeper = std::move(unit);
        return made;
    }
    auto call = [self = method.owner()._ivalue(), &whole](jit::Stack &stack) {
        stack.insert(stack.begin(), self);
        whole.run(stack);
    };
    auto function = std::make_shared<jit::BuiltinOpFunction>(c10::QualifiedName(whole.name()), std::move(schema),
                                                             std::move(call));
    made->function = function.get();
    made->keeper = std::move(function);
    return made;
}

// A method of one module as the `forward` of another, which has the first as its child `owner`.
void forward_to(jit::Module &module, const jit::Method &method) {
    module.register_module("owner", method.owner());
    auto graph = jit::toGraphFunction(method.function()).graph()->copy();
    jit::Inline(*graph);
    auto *self = graph->insertInput(0, "self")->setType(module._ivalue()->type());
    auto *owner = graph->insertGetAttr(self, "owner");
    owner->node()->moveBefore(*graph->nodes().begin());
    graph->inputs()[1]->replaceAllUsesWith(owner);
    graph->eraseInput(1);
    auto *forward = module._ivalue()->compilation_unit()->create_function(
        c10::QualifiedName(*module.type()->name(), "forward"), graph);
    auto arguments = method.function().getSchema().arguments();
    arguments[0] = c10::Argument("self", module._ivalue()->type());
    forward->setSchema(method.function().getSchema().cloneWithArguments(arguments));
    module.type()->addMethod(forward);
}

jit::Module module_of(const ScriptFunction &script) {
    if (script.method && script.method->name() == "forward") return script.method->owner();
    if (!script.method && !script.function->isGraphFunction())
        fail(TN_ERROR_TYPE, script.function->name(), " has no graph that a module could keep");
    jit::Module module(c10::QualifiedName("__torch__.Function"), std::make_shared<jit::CompilationUnit>());
    module.register_attribute("training", c10::BoolType::get(), false);
    if (script.method) forward_to(module, *script.method);
    else add_method(module, "forward", *script.function);
    return module;
}

c10::intrusive_ptr<ScriptFunction> script_of(const tn_function *function) {
    auto *script = dynamic_cast<ScriptFunction *>(borrow(function, "function")->get());
    if (script == nullptr)
        fail(TN_ERROR_TYPE, "function is made of the host's callbacks, and is no TorchScript function");
    return c10::intrusive_ptr<ScriptFunction>::reclaim_copy(script);
}

}  // namespace
}  // namespace tenfold

using namespace tenfold;

extern "C" {

tn_function *tn_module_function(const tn_module *module, const char *method) {
    return guarded("tn_module_function", (tn_function *)nullptr,
                   [&] { return own_as<tn_function>(bound(method_of(*borrow(module, "module"), method))); });
}

tn_module *tn_function_module(const tn_function *function) {
    return guarded("tn_function_module", (tn_module *)nullptr,
                   [&] { return own_as<tn_module>(module_of(*script_of(function))); });
}

tn_status tn_torch_get_function(const tn_function *function, void *out) {
    return guarded_status("tn_torch_get_function", [&] {
        jit::Function *&place = non_null(static_cast<jit::Function **>(out), "out");
        place = script_of(function)->function;
    });
}

tn_function *tn_torch_wrap_function(void *object, const void *keeper) {
    return guarded("tn_torch_wrap_function", (tn_function *)nullptr, [&] {
        auto made = c10::make_intrusive<ScriptFunction>();
        made->function = &non_null(static_cast<jit::Function *>(object), "object");
        if (keeper != nullptr) made->keeper = *static_cast<const std::shared_ptr<void> *>(keeper);
        return own_as<tn_function>(std::move(made));
    });
}
}
