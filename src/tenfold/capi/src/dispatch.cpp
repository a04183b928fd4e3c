// Every operator by its name: looked up once, arguments checked against its schema, called
// through the dispatcher.
#include <algorithm>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <unordered_map>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include "apart.h"
#include "needs.h"
#include "values.h"
#include "written.h"

using namespace tenfold;
using c10::IValue;
using c10::TypeKind;

// An overload that was looked up. It stays for good, so that hosts may keep it anywhere.
struct tn_op {
    uint64_t mark;
    c10::OperatorHandle handle;
    const c10::FunctionSchema &schema;
    std::string name;
    size_t tensors;  // how many arguments at the start are tensors, which need no more than to be there
    bool writes;     // whether it writes any of its arguments
    Needs needs;
    std::function<void(torch::jit::Stack &)> unboxed;  // empty for most: see `unboxed_call`
};

namespace {

constexpr uint64_t op_mark = 0x746e5f6f705f6f6bu;

// ---- arguments --------------------------------------------------------------------------------------------

// Nested, quantized and oneDNN's tensors go to operators that have a kernel of their own for them, and
// quantized ones also to those that are made of others, and to copy_, whose one kernel asks what its tensors
// are. The rest would take them for what they are not.
[[gnu::cold, gnu::noinline]] void check_kernel(const tn_op &op, const at::Tensor &tensor) {
    using c10::DispatchKey;
    if (!has_form(tensor, own_forms)) return check_indices(tensor, "an argument");
    const auto has = [&](DispatchKey key) { return op.handle.hasKernelForDispatchKey(key); };
    bool fits = false;
    if (tensor.is_nested())
        fits = has(tensor.is_cuda() ? DispatchKey::NestedTensorCUDA : DispatchKey::NestedTensorCPU) ||
               has(DispatchKey::CompositeImplicitAutogradNestedTensor);
    else if (tensor.is_quantized())
        fits = has(tensor.is_cuda() ? DispatchKey::QuantizedCUDA : DispatchKey::QuantizedCPU) ||
               has(DispatchKey::CompositeImplicitAutograd) || op.name == "aten::copy_";
    else fits = has(DispatchKey::MkldnnCPU);
    if (!fits) fail(TN_ERROR_ARGUMENT, op.name, " has no kernel for a tensor that is ", name_of_form(tensor));
}

// An undefined tensor is none, though it has the tag of one: kernels would read where it points.
[[gnu::always_inline]] inline bool is_there(const tn_op &op, const IValue &value) {
    if (!value.isTensor() || !value.toTensor().defined()) return false;
    if (__builtin_expect(has_form(value.toTensor()), false)) check_kernel(op, value.toTensor());
    return true;
}

// In a list of tensors that may be None, an undefined one is None to kernels too.
bool all_there(const tn_op &op, const IValue &list) {
    if (!list.isTensorList() && !list.isOptionalTensorList()) return true;
    const bool may_be_none = list.isOptionalTensorList();
    for (const IValue &each : list.toListRef())
        if (!is_there(op, each) && !may_be_none) return false;
    return true;
}

[[noreturn]] void fail_argument(const tn_op &op, const c10::Argument &argument, const IValue &value) {
    if (!all_there(op, value) || (value.isTensor() && !is_there(op, value)))
        fail(TN_ERROR_TYPE, op.name, ": ", argument.name(), " takes ", argument.type()->repr_str(),
             ", and was given an undefined tensor");
    fail(TN_ERROR_TYPE, op.name, ": ", argument.name(), " takes ", argument.type()->repr_str(),
         ", and was given ", tag_name(tag_of(value)),
         value.isList() || value.isTuple() ? text_of(" (", value.type()->repr_str(), ")") : "");
}

// A list of another element type, entry by entry; used where the entries fit and only the list's
// type does not.
bool fits(const tn_op &op, IValue &value, const c10::Type &type);

bool list_fits(const tn_op &op, IValue &value, const c10::Type &type) {
    const c10::TypePtr element = type.castRaw<c10::ListType>()->getElementType();
    if (!value.isList()) return false;
    if (value.type()->isSubtypeOf(type)) return all_there(op, value);
    auto given = value.toList();
    c10::impl::GenericList list(element);
    list.reserve(given.size());
    for (size_t i = 0; i < given.size(); i++) {
        IValue entry = given.get(i);
        if (!fits(op, entry, *element)) return false;
        list.push_back(std::move(entry));
    }
    value = std::move(list);
    return true;
}

// Whether a value has a type, after changing an int to the double or the list that PyTorch would also
// make of it.
bool fits(const tn_op &op, IValue &value, const c10::Type &type) {
    switch (type.kind()) {
        case TypeKind::TensorType: return is_there(op, value);
        case TypeKind::IntType:
        case TypeKind::SymIntType: return value.isInt() || value.isSymInt();
        case TypeKind::ScalarTypeType:
        case TypeKind::LayoutType:
        case TypeKind::MemoryFormatType: return value.isInt();
        case TypeKind::BoolType:
        case TypeKind::SymBoolType: return value.isBool();
        case TypeKind::FloatType:
        case TypeKind::SymFloatType:
            if (value.isInt()) value = static_cast<double>(value.toInt());
            return value.isDouble();
        case TypeKind::NumberType: return value.isScalar();
        case TypeKind::StringType: return value.isString();
        case TypeKind::DeviceObjType: return value.isDevice();
        case TypeKind::GeneratorType: return value.isGenerator();
        case TypeKind::OptionalType:
            if (value.isTensor() && !value.toTensor().defined()) value = IValue();
            return value.isNone() || fits(op, value, *type.castRaw<c10::OptionalType>()->getElementType());
        case TypeKind::ListType: return list_fits(op, value, type);
        default: return value.type()->isSubtypeOf(type);
    }
}

// ScalarType and its like are ints to the dispatcher: a number that is none of theirs must not get that far.
void check_enumeration(const tn_op &op, const c10::Argument &argument, const IValue &value) {
    if (!value.isInt()) return;
    const c10::TypePtr &real = argument.real_type();
    const c10::Type *type = real.get();
    if (auto *optional = type->castRaw<c10::OptionalType>()) type = optional->getElementType().get();
    int64_t number = value.toInt(), limit = -1;
    if (type->kind() == TypeKind::ScalarTypeType) limit = static_cast<int64_t>(c10::ScalarType::Undefined);
    if (type->kind() == TypeKind::LayoutType) limit = static_cast<int64_t>(c10::Layout::NumOptions);
    if (type->kind() == TypeKind::MemoryFormatType)
        limit = static_cast<int64_t>(c10::MemoryFormat::NumOptions);
    if (limit >= 0 && (number < 0 || number >= limit))
        fail(TN_ERROR_ARGUMENT, op.name, ": ", argument.name(), " is ", number, ", which is no ",
             type->str());
}

// A list of a fixed length, which kernels read without looking how long it is: one entry stands for all, and
// none is fine where the default is none.
void check_length(const tn_op &op, const c10::Argument &argument, IValue &value) {
    auto given = value.toIntList();
    auto needed = static_cast<size_t>(*argument.N());
    bool empty = argument.default_value() && argument.default_value()->isIntList() &&
                 argument.default_value()->toIntList().empty();
    if (given.size() == needed || (given.empty() && empty)) return;
    if (given.size() != 1)
        fail(TN_ERROR_ARGUMENT, op.name, ": ", argument.name(), " takes ", needed, " entries, and was given ",
             given.size());
    value = c10::List<int64_t>(std::vector<int64_t>(needed, given.get(0)));
}

void check_arguments(const tn_op &op, torch::jit::Stack &stack) {
    const auto &arguments = op.schema.arguments();
    if (stack.size() > arguments.size() && !op.schema.is_vararg())
        fail(TN_ERROR_ARGUMENT, op.name, " takes ", arguments.size(), " arguments, and was given ",
             stack.size());
    size_t start = 0;
    while (start < op.tensors && start < stack.size() && is_there(op, stack[start])) start++;
    for (size_t i = start; i < arguments.size(); i++) {
        const c10::Argument &argument = arguments[i];
        if (i == stack.size()) {
            if (!argument.default_value())
                fail(TN_ERROR_ARGUMENT, op.name, ": ", argument.name(), " is missing");
            stack.push_back(*argument.default_value());
            continue;
        }
        IValue &value = stack[i];
        if (!fits(op, value, *argument.type())) {
            // int[2] takes one int for all: so it is in PyTorch.
            if (argument.N() && value.isInt() && argument.type()->kind() == TypeKind::ListType) {
                value = c10::List<int64_t>(std::vector<int64_t>(*argument.N(), value.toInt()));
                if (fits(op, value, *argument.type())) continue;
            }
            fail_argument(op, argument, value);
        }
        check_enumeration(op, argument, value);
        if (argument.N().value_or(1) > 1 && value.isIntList()) check_length(op, argument, value);
    }
}

// Operands that are also given to be written into, as `alias_of` says.
void keep_operands_apart(const tn_op &op, torch::jit::Stack &stack) {
    const auto &arguments = op.schema.arguments();
    for (size_t out = 0; out < arguments.size(); out++) {
        if (!arguments[out].is_out()) continue;
        for (size_t i = 0; i < out; i++) {
            if (arguments[i].is_out()) continue;
            if (stack[out].isTensor()) keep_apart(stack[i], stack[out].toTensor());
            if (stack[out].isTensorList()) keep_apart(stack[i], stack[out].toTensorVector());
        }
    }
}

void run(const tn_op &op, torch::jit::Stack &stack) {
    if (op.unboxed) op.unboxed(stack);
    else op.handle.callBoxed(&stack);
}

void run_writing(const tn_op &op, torch::jit::Stack &stack) {
    const WrittenOnStack written(op.schema, stack);
    keep_operands_apart(op, stack);
    run(op, stack);
    written.finish(stack);
}

void call(const tn_op &op, tn_stack *handle) {
    auto stack = borrow(handle, "stack");
    try {
        check_arguments(op, *stack);
        if (__builtin_expect(op.needs != nullptr, false)) op.needs(*stack);
        op.writes ? run_writing(op, *stack) : run(op, *stack);
    } catch (...) {
        stack->clear();  // who knows which arguments the operator took off
        throw;
    }
}

// ---- calling without boxes --------------------------------------------------------------------------------

// The commonest signatures, of tensors and scalars alone, are called as C++ calls them: libtorch then does
// not take each argument out of its box on the way.
template <class Argument>
Argument from_box(const IValue &value) {
    if constexpr (std::is_same_v<Argument, at::Scalar>) return value.toScalar();
    else return value.toTensor();
}

template <class... Arguments, size_t... places>
std::function<void(torch::jit::Stack &)> unboxed_as(const c10::OperatorHandle &handle,
                                                    std::index_sequence<places...>) {
    auto typed = handle.typed<at::Tensor(const std::remove_reference_t<Arguments> &...)>();
    return [typed](torch::jit::Stack &stack) {
        at::Tensor result = typed.call(from_box<Arguments>(stack[places])...);
        stack.resize(1);
        stack[0] = std::move(result);
    };
}

template <class... Arguments>
std::function<void(torch::jit::Stack &)> unboxed_as(const c10::OperatorHandle &handle) {
    return unboxed_as<Arguments...>(handle, std::index_sequence_for<Arguments...>());
}

std::function<void(torch::jit::Stack &)> unboxed_call(const c10::OperatorHandle &handle) {
    std::string signature;
    const auto &schema = handle.schema();
    for (const auto &argument : schema.arguments()) {
        bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
        TypeKind kind = argument.type()->kind();
        signature += written                        ? '?'
                     : kind == TypeKind::TensorType ? 'T'
                     : kind == TypeKind::NumberType ? 'S'
                                                    : '?';
    }
    const bool by_reference = schema.name().rfind("aten::", 0) == 0;  // others may take tensors by value
    if (!by_reference || schema.is_vararg() || schema.returns().size() != 1 ||
        schema.returns()[0].type()->kind() != TypeKind::TensorType)
        return {};
    using T = const at::Tensor &;
    using S = at::Scalar;
    if (signature == "T") return unboxed_as<T>(handle);
    if (signature == "TT") return unboxed_as<T, T>(handle);
    if (signature == "TS") return unboxed_as<T, S>(handle);
    if (signature == "TTS") return unboxed_as<T, T, S>(handle);
    if (signature == "TSS") return unboxed_as<T, S, S>(handle);
    if (signature == "TTT") return unboxed_as<T, T, T>(handle);
    return {};
}

// ---- names ------------------------------------------------------------------------------------------------

struct Found {
    std::shared_mutex mutex;
    std::unordered_map<std::string, std::unique_ptr<tn_op>> ops;
    std::vector<std::string> names;  // of all, in order; read when first asked for
};

Found &found() {
    static auto *table = new Found;
    return *table;
}

std::string join(const c10::OperatorName &name) {
    return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

// "aten::add.Tensor" as the dispatcher takes it apart.
c10::OperatorName parse(const std::string &name) {
    auto colons = name.find("::");
    bool well_formed = colons != std::string::npos && colons > 0 && colons + 2 < name.size();
    auto dot = well_formed ? name.find('.', colons) : std::string::npos;
    auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    if (well_formed) {
        auto all_plain = [&](size_t from, size_t to) {
            return from < to && std::all_of(name.begin() + from, name.begin() + to, plain);
        };
        size_t end = dot == std::string::npos ? name.size() : dot;
        auto namespace_character = [&](char c) { return plain(c) || c == '.'; };
        well_formed = std::all_of(name.begin(), name.begin() + colons, namespace_character) &&
                      all_plain(colons + 2, end) &&
                      (dot == std::string::npos || all_plain(dot + 1, name.size()));
    }
    if (!well_formed)
        fail(TN_ERROR_ARGUMENT, "'", name.substr(0, 200),
             "' is no operator's name: write it as in aten::add.Tensor or aten::relu");
    return {name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)};
}

std::string overloads_of(const c10::OperatorName &name) {
    std::vector<std::string> overloads;
    for (const auto &each : c10::Dispatcher::singleton().getAllOpNames())
        if (each.name == name.name) overloads.push_back(join(each));
    std::sort(overloads.begin(), overloads.end());
    if (overloads.empty()) return "";
    return text_of("; its overloads are ", c10::Join(", ", overloads));
}

const tn_op &find(const char *given) {
    std::string name = text(given, "name");
    Found &table = found();
    {
        std::shared_lock<std::shared_mutex> lock(table.mutex);
        auto known = table.ops.find(name);
        if (known != table.ops.end()) return *known->second;
    }
    c10::OperatorName parsed = parse(name);
    auto handle = c10::Dispatcher::singleton().findSchema(parsed);
    if (!handle)
        fail(TN_ERROR_NOT_FOUND, "libtorch ", TENFOLD_TORCH_VERSION, " has no operator ", name,
             overloads_of(parsed));
    const auto &arguments = handle->schema().arguments();
    auto is_tensor = [](const c10::Argument &argument) {
        return argument.type()->kind() == TypeKind::TensorType;
    };
    auto tensors = std::find_if_not(arguments.begin(), arguments.end(), is_tensor) - arguments.begin();
    bool writes = std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument &argument) {
        return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    });
    auto made =
        std::make_unique<tn_op>(tn_op{op_mark, *handle, handle->schema(), name, static_cast<size_t>(tensors),
                                      writes, needs_of(name), unboxed_call(*handle)});
    std::unique_lock<std::shared_mutex> lock(table.mutex);
    return *table.ops.emplace(name, std::move(made)).first->second;
}

const tn_op &checked_op(const tn_op *op) {
    if (op == nullptr) fail_null("op");
    if (checked) {
        Found &table = found();
        std::shared_lock<std::shared_mutex> lock(table.mutex);
        bool known = std::any_of(table.ops.begin(), table.ops.end(),
                                 [&](auto &each) { return each.second.get() == op; });
        if (!known) fail(TN_ERROR_HANDLE, "op is no tn_op that tn_find gave");
    } else if (op->mark != op_mark) {
        fail(TN_ERROR_HANDLE, "op is no tn_op that tn_find gave");
    }
    return *op;
}

// Under the lock of the table.
const std::vector<std::string> &all_names(Found &table) {
    if (table.names.empty()) {
        for (const auto &name : c10::Dispatcher::singleton().getAllOpNames())
            if (c10::Dispatcher::singleton().findSchema(name)) table.names.push_back(join(name));
        std::sort(table.names.begin(), table.names.end());
    }
    return table.names;
}

}  // namespace

extern "C" {

const tn_op *tn_find(const char *name) {
    return guarded("tn_find", (const tn_op *)nullptr, [&] { return &find(name); });
}

tn_status tn_call_op(const tn_op *op, tn_stack *stack) {
    return guarded_status("tn_call_op", [&] { call(checked_op(op), stack); });
}

tn_status tn_call(const char *name, tn_stack *stack) {
    return guarded_status("tn_call", [&] { call(find(name), stack); });
}

int64_t tn_op_schema(const tn_op *op, char *buffer, int64_t size) {
    return guarded("tn_op_schema", int64_t{-1}, [&] {
        std::ostringstream stream;
        stream.imbue(std::locale::classic());  // whatever the host made the global one
        stream << checked_op(op).schema;
        return write_text(stream.str(), buffer, size);
    });
}

int64_t tn_op_count(void) {
    return guarded("tn_op_count", int64_t{-1}, [] {
        std::unique_lock<std::shared_mutex> lock(found().mutex);
        return static_cast<int64_t>(all_names(found()).size());
    });
}

const tn_op *tn_op_at(int64_t index) {
    return guarded("tn_op_at", (const tn_op *)nullptr, [&] {
        std::string name;
        {
            std::unique_lock<std::shared_mutex> lock(found().mutex);
            const auto &names = all_names(found());
            if (index < 0 || index >= static_cast<int64_t>(names.size()))
                fail(TN_ERROR_INDEX, "index ", index, " is out of range for ", names.size(), " operators");
            name = names[index];
        }
        return &find(name.c_str());
    });
}
}
