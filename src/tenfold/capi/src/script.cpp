// TorchScript modules: loading and saving, calling their methods, what they hold; and tracing a
// callback into one.
#include "modules.h"

#include <fstream>
#include <sstream>

#include <ATen/ops/from_blob.h>
#include <caffe2/serialize/file_adapter.h>
#include <caffe2/serialize/in_memory_adapter.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/csrc/jit/serialization/python_print.h>

#include "archives.h"
#include "callbacks.h"
#include "values.h"

namespace tenfold {

namespace jit = torch::jit;

jit::Method method_of(const jit::Module &module, const char *name) {
    auto found = module.find_method(text(name, "method"));
    if (found) return *found;
    std::string known;
    for (const auto &each : module.get_methods()) known += (known.empty() ? "" : ", ") + each.name();
    fail(TN_ERROR_NOT_FOUND, "the module has no method ", name, known.empty() ? "" : ": it has ", known);
}

namespace {

std::optional<c10::Device> optional_device(const tn_device *given) {
    if (given == nullptr) return std::nullopt;
    return device(*given, "device");
}

template <class Named>
c10::IValue by_name(const Named &list) {
    c10::Dict<std::string, at::Tensor> found;
    for (const auto &each : list) found.insert(each.name, each.value);
    return found;
}

template <class Named>
at::Tensor find_by_name(const Named &list, const char *name, const char *what) {
    text(name, "name");
    for (const auto &each : list) {
        if (each.name == name) return each.value;
    }
    fail(TN_ERROR_NOT_FOUND, "the module has no ", what, " ", name);
}

jit::Module traced(tn_trace_fn callback, std::vector<at::Tensor> inputs, int64_t outputs, void *user) {
    refuse_trace_in_trace();
    auto unit = std::make_shared<jit::CompilationUnit>();
    jit::Module module(c10::QualifiedName("__torch__.Traced"), unit);
    module.register_attribute("training", c10::BoolType::get(), false);
    auto run = [&](jit::Stack arguments) {
        std::vector<at::Tensor> given;
        for (const c10::IValue &each : arguments) given.push_back(each.toTensor());
        Lent lent(given);
        Given results(outputs);
        call_back("the traced function", callback, lent.data(), lent.count(), results.data(), results.count(),
                  user);
        check_still_tracing();
        auto taken = results.take("the traced function", true);
        if (taken.size() == 1) return jit::Stack{taken[0]};
        return jit::Stack{c10::ivalue::Tuple::create(std::vector<c10::IValue>(taken.begin(), taken.end()))};
    };
    jit::Stack arguments(inputs.begin(), inputs.end());
    auto nameless = [](const at::Tensor &) { return std::string(); };
    auto recorded = jit::tracer::trace(std::move(arguments), run, nameless, true, false, &module).first;
    auto *function =
        unit->create_function(c10::QualifiedName(*module.type()->name(), "forward"), recorded->graph);
    module.type()->addMethod(function);
    return module;
}

}  // namespace
}  // namespace tenfold

using namespace tenfold;

tn_module *tn_module_load(const char *path, const tn_device *device) {
    return guarded("tn_module_load", static_cast<tn_module *>(nullptr), [&] {
        if (!std::ifstream(text(path, "path"), std::ios::binary)) {
            fail(TN_ERROR_NOT_FOUND, "the file ", path, " cannot be opened");
        }
        auto reader = std::make_shared<caffe2::serialize::FileAdapter>(path);
        check_archive(reader);
        return own_as<tn_module>(torch::jit::load(reader, optional_device(device)));
    });
}

tn_module *tn_module_load_data(const void *data, int64_t bytes, const tn_device *device) {
    return guarded("tn_module_load_data", static_cast<tn_module *>(nullptr), [&] {
        check_count(data, bytes, "data");
        auto reader = std::make_shared<caffe2::serialize::MemoryReadAdapter>(data, bytes);
        check_archive(reader);
        return own_as<tn_module>(torch::jit::load(reader, optional_device(device)));
    });
}

tn_status tn_module_save(const tn_module *module, const char *path) {
    return guarded_status("tn_module_save", [&] { borrow(module, "module")->save(text(path, "path")); });
}

tn_status tn_module_save_for_mobile(const tn_module *module, const char *path) {
    return guarded_status("tn_module_save_for_mobile",
                          [&] { borrow(module, "module")->_save_for_mobile(text(path, "path")); });
}

tn_tensor *tn_module_save_data(const tn_module *module) {
    return guarded("tn_module_save_data", static_cast<tn_tensor *>(nullptr), [&] {
        std::ostringstream stream;
        borrow(module, "module")->save(stream);
        std::string bytes = stream.str();
        return own(at::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, c10::kByte).clone());
    });
}

tn_module *tn_module_share(const tn_module *module) {
    return guarded("tn_module_share", static_cast<tn_module *>(nullptr),
                   [&] { return own_as<tn_module>(*borrow(module, "module")); });
}

void tn_module_free(tn_module *module) {
    freeing("tn_module_free", [&] { release(module); });
}

tn_module *tn_module_trace(tn_trace_fn callback, const tn_tensor *const *inputs, int64_t inputs_count,
                           int64_t outputs_count, void *user) {
    return guarded("tn_module_trace", static_cast<tn_module *>(nullptr), [&] {
        if (callback == nullptr) fail_null("callback");
        if (outputs_count < 1 || outputs_count > 1 << 20) {
            fail(TN_ERROR_ARGUMENT, "a traced function has one result or more, not ", outputs_count);
        }
        return own_as<tn_module>(
            traced(callback, tensors(inputs, inputs_count, "inputs"), outputs_count, user));
    });
}

tn_status tn_module_call(const tn_module *module, const char *method, tn_stack *stack) {
    return guarded_status("tn_module_call", [&] {
        auto given = borrow(stack, "stack");
        torch::jit::Stack arguments;
        std::swap(arguments, *given);
        auto called = method_of(*borrow(module, "module"), method);
        given->push_back(called(std::move(arguments)));
    });
}

tn_tensor *tn_module_forward(const tn_module *module, const tn_tensor *const *inputs, int64_t inputs_count) {
    return guarded("tn_module_forward", static_cast<tn_tensor *>(nullptr), [&] {
        auto given = tensors(inputs, inputs_count, "inputs");
        auto called = method_of(*borrow(module, "module"), "forward");
        const c10::IValue result = called(torch::jit::Stack(given.begin(), given.end()));
        if (!result.isTensor()) {
            fail(TN_ERROR_TYPE, "forward gave a value of type ", result.type()->str(),
                 ": use tn_module_call for it");
        }
        return own(result.toTensor());
    });
}

tn_value *tn_module_methods(const tn_module *module) {
    return guarded("tn_module_methods", static_cast<tn_value *>(nullptr), [&] {
        c10::List<std::string> names;
        for (const auto &each : borrow(module, "module")->get_methods()) names.push_back(each.name());
        return own_value(names);
    });
}

tn_value *tn_module_parameters(const tn_module *module) {
    return guarded("tn_module_parameters", static_cast<tn_value *>(nullptr),
                   [&] { return own_value(by_name(borrow(module, "module")->named_parameters())); });
}

tn_value *tn_module_buffers(const tn_module *module) {
    return guarded("tn_module_buffers", static_cast<tn_value *>(nullptr),
                   [&] { return own_value(by_name(borrow(module, "module")->named_buffers())); });
}

tn_tensor *tn_module_parameter(const tn_module *module, const char *name) {
    return guarded("tn_module_parameter", static_cast<tn_tensor *>(nullptr), [&] {
        return own(find_by_name(borrow(module, "module")->named_parameters(), name, "parameter"));
    });
}

tn_tensor *tn_module_buffer(const tn_module *module, const char *name) {
    return guarded("tn_module_buffer", static_cast<tn_tensor *>(nullptr), [&] {
        return own(find_by_name(borrow(module, "module")->named_buffers(), name, "buffer"));
    });
}

tn_value *tn_module_attribute(const tn_module *module, const char *name) {
    return guarded("tn_module_attribute", static_cast<tn_value *>(nullptr), [&] {
        auto found = borrow(module, "module");
        if (!found->hasattr(text(name, "name")))
            fail(TN_ERROR_NOT_FOUND, "the module has no attribute ", name);
        return own_value(found->attr(name));
    });
}

tn_status tn_module_train(tn_module *module, bool training) {
    return guarded_status("tn_module_train", [&] { borrow(module, "module")->train(training); });
}

int tn_module_is_training(const tn_module *module) {
    return guarded("tn_module_is_training", -1,
                   [&] { return borrow(module, "module")->is_training() ? 1 : 0; });
}

tn_status tn_module_to(tn_module *module, tn_device device) {
    return guarded_status("tn_module_to",
                          [&] { borrow(module, "module")->to(tenfold::device(device, "device")); });
}

tn_status tn_module_to_dtype(tn_module *module, tn_dtype dtype) {
    return guarded_status("tn_module_to_dtype", [&] {
        const auto type = tenfold::dtype(dtype, "dtype");
        if (!c10::isFloatingType(type)) fail(TN_ERROR_TYPE, "a module's numbers are floating-point ones");
        borrow(module, "module")->to(type);
    });
}

int64_t tn_module_graph(const tn_module *module, const char *method, char *buffer, int64_t size) {
    return guarded("tn_module_graph", int64_t{-1}, [&] {
        auto found = method_of(*borrow(module, "module"), method);
        return write_text(found.graph()->toString(false), buffer, size);
    });
}

int64_t tn_module_code(const tn_module *module, char *buffer, int64_t size) {
    return guarded("tn_module_code", int64_t{-1}, [&] {
        std::string code;
        for (const auto &each : borrow(module, "module")->get_methods()) {
            std::vector<c10::IValue> constants;
            torch::jit::PrintDepsTable used;
            torch::jit::PythonPrint printer(constants, used);
            printer.printMethod(each.function());
            code += printer.str();
        }
        return write_text(code, buffer, size);
    });
}
