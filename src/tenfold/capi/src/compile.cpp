// TorchScript from its source: the functions of a text as the methods of a module.
#include "modules.h"

#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/passes/inliner.h>

#include "sources.h"

namespace tenfold {

namespace jit = torch::jit;

// The functions that it calls are copied into it.
void add_method(jit::Module &module, const std::string &name, jit::Function &function) {
    auto graph = jit::toGraphFunction(function).graph()->copy();
    jit::Inline(*graph);
    graph->insertInput(0, "self")->setType(module._ivalue()->type());
    auto *method = module._ivalue()->compilation_unit()->create_function(
        c10::QualifiedName(*module.type()->name(), name), graph);
    auto arguments = function.getSchema().arguments();
    arguments.insert(arguments.begin(), c10::Argument("self", module._ivalue()->type()));
    method->setSchema(function.getSchema().cloneWithArguments(arguments));
    module.type()->addMethod(method);
}

}  // namespace tenfold

using namespace tenfold;

tn_module *tn_module_compile(const char *source) {
    return guarded("tn_module_compile", static_cast<tn_module *>(nullptr), [&] {
        std::string given = text(source, "source") + std::string("\n");  // which the parser wants last
        check_levels(given, most_levels);
        jit::CompilationUnit functions;
        auto defined = functions.define(std::nullopt, given, jit::nativeResolver(), nullptr);
        if (defined.empty()) fail(TN_ERROR_ARGUMENT, "the source defines no function");
        jit::Module module(c10::QualifiedName("__torch__.Compiled"),
                           std::make_shared<jit::CompilationUnit>());
        module.register_attribute("training", c10::BoolType::get(), false);
        for (jit::Function *each : defined) add_method(module, each->name(), *each);
        return own_as<tn_module>(std::move(module));
    });
}
