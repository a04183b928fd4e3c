// Values: made from what a host has, and taken apart again.
#include <algorithm>
#include <sstream>
#include <unordered_map>

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/empty.h>

#include "memory.h"
#include "values.h"

namespace tenfold {

tn_tag tag_of(const c10::IValue &value) {
    if (value.isNone()) return TN_TAG_NONE;
    if (value.isTensor()) return TN_TAG_TENSOR;
    if (value.isInt() || value.isSymInt()) return TN_TAG_INT;
    if (value.isDouble() || value.isSymFloat()) return TN_TAG_DOUBLE;
    if (value.isComplexDouble()) return TN_TAG_COMPLEX;
    if (value.isBool() || value.isSymBool()) return TN_TAG_BOOL;
    if (value.isString()) return TN_TAG_STRING;
    if (value.isDevice()) return TN_TAG_DEVICE;
    if (value.isGenerator()) return TN_TAG_GENERATOR;
    if (value.isList()) return TN_TAG_LIST;
    if (value.isTuple()) return TN_TAG_TUPLE;
    if (value.isGenericDict()) return TN_TAG_DICT;
    return TN_TAG_OTHER;
}

const char *tag_name(tn_tag tag) {
    static const char *const names[] = {"None",   "a tensor",    "an int", "a double", "a complex number", "a bool",
                                        "a string", "a device", "a generator", "a list", "a tuple", "a dict", "an object"};
    return names[tag];
}

c10::IValue value_of(const at::Scalar &scalar) { return c10::IValue(scalar); }

[[noreturn]] void fail_tag(const char *needed, const c10::IValue &value) {
    fail(TN_ERROR_TYPE, needed, " is needed, the value holds ", tag_name(tag_of(value)));
}

int64_t in_range(int64_t index, int64_t count, const char *what) {
    if (index < -count || index >= count)
        fail(TN_ERROR_INDEX, "index ", index, " is out of range for ", what, " of ", count);
    return index < 0 ? index + count : index;
}

c10::IValue int_list(const int64_t *numbers, int64_t count) {
    auto entries = array(numbers, count, "numbers");
    return c10::List<int64_t>(entries);
}

c10::IValue tensor_list(const tn_tensor *const *handles, int64_t count) {
    return c10::IValue(c10::List<at::Tensor>(tensors(handles, count, "tensors")));
}

}  // namespace tenfold

using namespace tenfold;
using c10::IValue;

namespace {

// How deep lists, tuples and dicts nest in values. What libtorch does with values is recursive, freeing them too, and
// would run out of stack where they nest without bound.
class Nesting {
  public:
    static constexpr int most = 1000;

    void check(const IValue &value) {
        if (depth(value, 1) >= most) fail(TN_ERROR_ARGUMENT, "values nest at most ", most, " deep");
    }

  private:
    int depth(const IValue &value, int outside) {
        const bool flat = value.isTensorList() || value.isIntList() || value.isDoubleList() || value.isBoolList();
        if (flat || !(value.isList() || value.isTuple() || value.isGenericDict())) return 0;
        if (outside >= most) return most;
        auto [place, is_new] = known_.try_emplace(value.internalToPointer(), 0);
        if (!is_new) return place->second;
        int inside = 0;
        auto visit = [&](const IValue &each) { inside = std::max(inside, depth(each, outside + 1)); };
        if (value.isTuple()) {
            for (const IValue &each : value.toTupleRef().elements()) visit(each);
        } else if (value.isList()) {
            for (const IValue &each : value.toListRef()) visit(each);
        } else {
            for (const auto &entry : value.toGenericDict()) visit(entry.value());
        }
        return known_[value.internalToPointer()] = inside + 1;
    }

    std::unordered_map<const void *, int> known_;  // what is shared is visited once
};

std::vector<IValue> items_of(const tn_value *const *items, int64_t count, const char *argument) {
    check_count(items, count, argument);
    std::vector<IValue> list;
    list.reserve(count);
    Nesting nesting;
    for (int64_t i = 0; i < count; i++) {
        list.push_back(*borrow(items[i], argument));
        nesting.check(list.back());
    }
    return list;
}

// The one type of values, or Any where they differ.
c10::TypePtr common_type(const std::vector<IValue> &items) {
    if (items.empty()) return c10::AnyType::get();
    c10::TypePtr type;
    for (const auto &item : items) {
        c10::TypePtr one = item.isTensor() ? c10::TypePtr(c10::TensorType::get()) : item.type();
        if (type == nullptr) type = one;
        if (type != one && !(*type == *one)) return c10::AnyType::get();
    }
    return type;
}

const c10::impl::GenericDict dict_of(const IValue &value) {
    if (!value.isGenericDict()) fail_tag("a dict", value);
    return value.toGenericDict();
}

IValue entry_at(const IValue &value, int64_t index) {
    if (value.isTuple()) {
        const auto &elements = value.toTupleRef().elements();
        return elements[in_range(index, static_cast<int64_t>(elements.size()), "a tuple")];
    }
    if (value.isGenericDict()) {
        auto dict = value.toGenericDict();
        int64_t steps = in_range(index, static_cast<int64_t>(dict.size()), "a dict");
        auto entry = dict.begin();
        while (steps-- > 0) ++entry;
        return entry->value();
    }
    if (!value.isList()) fail_tag("a list, tuple or dict", value);
    auto list = value.toList();
    return list.get(in_range(index, static_cast<int64_t>(list.size()), "a list"));
}

IValue look_up(const IValue &value, const IValue &key) {
    auto dict = dict_of(value);
    bool same = dict.keyType()->kind() == c10::AnyType::Kind || key.type()->isSubtypeOf(*dict.keyType());
    auto found = same ? dict.find(key) : dict.end();
    if (found == dict.end()) fail(TN_ERROR_NOT_FOUND, "the dict has no such key: ", key);
    return found->value();
}

IValue bool_list(const bool *truths, int64_t count) {
    check_count(truths, count, "truths");
    c10::List<bool> list;
    list.reserve(count);
    for (int64_t i = 0; i < count; i++) list.push_back(truths[i]);
    return list;
}

IValue string_list(const char *const *texts, int64_t count) {
    check_count(texts, count, "texts");
    c10::List<std::string> list;
    list.reserve(count);
    for (int64_t i = 0; i < count; i++) list.push_back(text(texts[i], "texts"));
    return list;
}

}  // namespace

extern "C" {

// ---- making --------------------------------------------------------------------------------------------------

void tn_value_free(tn_value *value) {
    guarded_status("tn_value_free", [&] { release(value); });
}
tn_value *tn_value_share(const tn_value *value) {
    return make("tn_value_share", [&]() -> IValue { return *borrow(value, "value"); });
}
tn_value *tn_value_none(void) {
    return make("tn_value_none", [] { return IValue(); });
}
tn_value *tn_value_tensor(const tn_tensor *handle) {
    return make("tn_value_tensor", [&] { return IValue(tensor(handle, "tensor")); });
}
tn_value *tn_value_int(int64_t number) {
    return make("tn_value_int", [&] { return IValue(number); });
}
tn_value *tn_value_double(double number) {
    return make("tn_value_double", [&] { return IValue(number); });
}
tn_value *tn_value_complex(double re, double im) {
    return make("tn_value_complex", [&] { return IValue(c10::complex<double>(re, im)); });
}
tn_value *tn_value_bool(bool truth) {
    return make("tn_value_bool", [&] { return IValue(truth); });
}
tn_value *tn_value_scalar(tn_scalar given) {
    return make("tn_value_scalar", [&] { return value_of(scalar(given, "scalar")); });
}
tn_value *tn_value_string(const char *given) {
    return make("tn_value_string", [&] { return IValue(std::string(text(given, "text"))); });
}
tn_value *tn_value_device(tn_device given) {
    return make("tn_value_device", [&] { return IValue(device(given, "device")); });
}
tn_value *tn_value_dtype(tn_dtype given) {
    return make("tn_value_dtype", [&] { return IValue(static_cast<int64_t>(dtype(given, "dtype"))); });
}
tn_value *tn_value_generator(const tn_generator *generator) {
    return make("tn_value_generator", [&] { return IValue(*borrow(generator, "generator")); });
}
tn_value *tn_value_int_list(const int64_t *numbers, int64_t count) {
    return make("tn_value_int_list", [&] { return int_list(numbers, count); });
}
tn_value *tn_value_double_list(const double *numbers, int64_t count) {
    return make("tn_value_double_list", [&] { return IValue(c10::List<double>(array(numbers, count, "numbers"))); });
}
tn_value *tn_value_bool_list(const bool *truths, int64_t count) {
    return make("tn_value_bool_list", [&] { return bool_list(truths, count); });
}
tn_value *tn_value_string_list(const char *const *texts, int64_t count) {
    return make("tn_value_string_list", [&] { return string_list(texts, count); });
}
tn_value *tn_value_tensor_list(const tn_tensor *const *handles, int64_t count) {
    return make("tn_value_tensor_list", [&] { return tensor_list(handles, count); });
}
tn_value *tn_value_optional_tensor_list(const tn_tensor *const *handles, int64_t count) {
    return make("tn_value_optional_tensor_list", [&] { return IValue(optional_tensors(handles, count, "tensors")); });
}

tn_value *tn_value_list(const tn_value *const *items, int64_t count) {
    return make("tn_value_list", [&] {
        auto entries = items_of(items, count, "items");
        c10::impl::GenericList list(common_type(entries));
        list.reserve(entries.size());
        for (auto &entry : entries) list.push_back(std::move(entry));
        return IValue(std::move(list));
    });
}

tn_value *tn_value_tuple(const tn_value *const *items, int64_t count) {
    return make("tn_value_tuple", [&] { return IValue(c10::ivalue::Tuple::create(items_of(items, count, "items"))); });
}

tn_value *tn_value_dict(const tn_value *const *keys, const tn_value *const *values, int64_t count) {
    return make("tn_value_dict", [&] {
        auto names = items_of(keys, count, "keys"), entries = items_of(values, count, "values");
        c10::TypePtr key = names.empty() ? c10::TypePtr(c10::StringType::get()) : common_type(names);
        for (const auto &name : names) {
            tn_tag tag = tag_of(name);
            bool may = tag == TN_TAG_TENSOR || tag == TN_TAG_INT || tag == TN_TAG_DOUBLE || tag == TN_TAG_COMPLEX ||
                       tag == TN_TAG_BOOL || tag == TN_TAG_STRING || tag == TN_TAG_DEVICE;
            if (!may || key->kind() == c10::AnyType::Kind)
                fail(TN_ERROR_TYPE, "a dict's keys are of one type: strings, ints, doubles, complex numbers, bools, tensors or devices");
        }
        c10::impl::GenericDict dict(key, common_type(entries));
        for (size_t i = 0; i < names.size(); i++) dict.insert_or_assign(names[i], entries[i]);
        return IValue(std::move(dict));
    });
}

// ---- taking apart --------------------------------------------------------------------------------------------

tn_tag tn_value_tag(const tn_value *value) {
    return guarded("tn_value_tag", -1, [&] { return tag_of(*borrow(value, "value")); });
}

tn_tensor *tn_value_to_tensor(const tn_value *value) {
    return guarded("tn_value_to_tensor", (tn_tensor *)nullptr, [&] {
        auto held = borrow(value, "value");
        if (!held->isTensor()) fail_tag("a tensor", *held);
        return own(held->toTensor());
    });
}

tn_status tn_value_to_int(const tn_value *value, int64_t *number) {
    return guarded_status("tn_value_to_int", [&] {
        auto held = borrow(value, "value");
        if (tag_of(*held) != TN_TAG_INT) fail_tag("an int", *held);
        non_null(number, "number") = held->toInt();
    });
}

tn_status tn_value_to_double(const tn_value *value, double *number) {
    return guarded_status("tn_value_to_double", [&] {
        auto held = borrow(value, "value");
        tn_tag tag = tag_of(*held);
        if (tag != TN_TAG_DOUBLE && tag != TN_TAG_INT) fail_tag("a double or an int", *held);
        non_null(number, "number") = tag == TN_TAG_INT ? static_cast<double>(held->toInt()) : held->toDouble();
    });
}

tn_status tn_value_to_scalar(const tn_value *value, tn_scalar *scalar) {
    return guarded_status("tn_value_to_scalar", [&] {
        auto held = borrow(value, "value");
        if (!held->isScalar()) fail_tag("a number", *held);
        non_null(scalar, "scalar") = from_scalar(held->toScalar());
    });
}

tn_status tn_value_to_bool(const tn_value *value, bool *truth) {
    return guarded_status("tn_value_to_bool", [&] {
        auto held = borrow(value, "value");
        if (tag_of(*held) != TN_TAG_BOOL) fail_tag("a bool", *held);
        non_null(truth, "truth") = held->toBool();
    });
}

int64_t tn_value_to_string(const tn_value *value, char *buffer, int64_t size) {
    return guarded("tn_value_to_string", int64_t{-1}, [&] {
        auto held = borrow(value, "value");
        if (!held->isString()) fail_tag("a string", *held);
        return write_text(held->toStringRef(), buffer, size);
    });
}

tn_status tn_value_to_device(const tn_value *value, tn_device *out) {
    return guarded_status("tn_value_to_device", [&] {
        auto held = borrow(value, "value");
        if (!held->isDevice()) fail_tag("a device", *held);
        non_null(out, "device") = from_device(held->toDevice());
    });
}

tn_status tn_value_to_dtype(const tn_value *value, tn_dtype *out) {
    return guarded_status("tn_value_to_dtype", [&] {
        auto held = borrow(value, "value");
        if (!held->isInt()) fail_tag("a dtype, which is an int,", *held);
        int64_t number = held->toInt();
        if (number < 0 || number > 127) fail(TN_ERROR_TYPE, number, " is the number of no dtype");
        non_null(out, "dtype") = static_cast<tn_dtype>(dtype(static_cast<tn_dtype>(number), "the value"));
    });
}

tn_generator *tn_value_to_generator(const tn_value *value) {
    return guarded("tn_value_to_generator", (tn_generator *)nullptr, [&] {
        auto held = borrow(value, "value");
        if (!held->isGenerator()) fail_tag("a generator", *held);
        return own_as<tn_generator>(held->toGenerator());
    });
}

int64_t tn_value_count(const tn_value *value) {
    return guarded("tn_value_count", int64_t{-1}, [&]() -> int64_t {
        auto held = borrow(value, "value");
        if (held->isTuple()) return held->toTupleRef().elements().size();
        if (held->isGenericDict()) return held->toGenericDict().size();
        if (!held->isList()) fail_tag("a list, tuple or dict", *held);
        return held->toList().size();
    });
}

tn_value *tn_value_at(const tn_value *value, int64_t index) {
    return make("tn_value_at", [&] { return entry_at(*borrow(value, "value"), index); });
}

tn_value *tn_value_key_at(const tn_value *value, int64_t index) {
    return make("tn_value_key_at", [&] {
        auto dict = dict_of(*borrow(value, "value"));
        int64_t steps = in_range(index, static_cast<int64_t>(dict.size()), "a dict");
        auto entry = dict.begin();
        while (steps-- > 0) ++entry;
        return entry->key();
    });
}

tn_value *tn_value_get(const tn_value *value, const tn_value *key) {
    return make("tn_value_get", [&] { return look_up(*borrow(value, "value"), *borrow(key, "key")); });
}

tn_value *tn_value_get_string(const tn_value *value, const char *key) {
    return make("tn_value_get_string", [&] { return look_up(*borrow(value, "value"), IValue(std::string(text(key, "key")))); });
}

int64_t tn_value_to_ints(const tn_value *value, int64_t *numbers, int64_t count) {
    return guarded("tn_value_to_ints", int64_t{-1}, [&] {
        auto held = borrow(value, "value");
        if (!held->isIntList()) fail_tag("a list of ints", *held);
        check_count(numbers, count, "numbers");
        auto list = held->toIntVector();
        for (int64_t i = 0; i < count && i < static_cast<int64_t>(list.size()); i++) numbers[i] = list[i];
        return static_cast<int64_t>(list.size());
    });
}

int64_t tn_value_to_doubles(const tn_value *value, double *numbers, int64_t count) {
    return guarded("tn_value_to_doubles", int64_t{-1}, [&] {
        auto held = borrow(value, "value");
        if (!held->isDoubleList()) fail_tag("a list of doubles", *held);
        check_count(numbers, count, "numbers");
        auto list = held->toDoubleVector();
        for (int64_t i = 0; i < count && i < static_cast<int64_t>(list.size()); i++) numbers[i] = list[i];
        return static_cast<int64_t>(list.size());
    });
}

tn_status tn_value_to_tensors(const tn_value *value, tn_tensor ***out, int64_t *count) {
    return guarded_status("tn_value_to_tensors", [&] {
        auto held = borrow(value, "value");
        if (!held->isList() && !held->isTuple()) fail_tag("a list or tuple of tensors", *held);
        std::vector<at::Tensor> list;
        auto add = [&](const IValue &entry) {
            if (!entry.isTensor()) fail_tag("a list or tuple of tensors alone", entry);
            list.push_back(entry.toTensor());
        };
        if (held->isTuple())
            for (const auto &entry : held->toTupleRef().elements()) add(entry);
        else
            for (const IValue &entry : held->toListRef()) add(entry);
        own_list(list, out, count);
    });
}

int tn_value_equal(const tn_value *value, const tn_value *other) {
    return guarded("tn_value_equal", -1, [&] {
        auto a = borrow(value, "value"), b = borrow(other, "other");
        if (a->isTensor() && b->isTensor()) return int(a->toTensor().is_same(b->toTensor()));
        return int(c10::_fastEqualsForContainer(*a, *b));
    });
}

int64_t tn_value_print(const tn_value *value, char *buffer, int64_t size) {
    return guarded("tn_value_print", int64_t{-1}, [&] {
        std::ostringstream stream;
        stream.imbue(std::locale::classic());  // whatever the host made the global one
        stream << *borrow(value, "value");
        return write_text(stream.str(), buffer, size);
    });
}

int64_t tn_value_type(const tn_value *value, char *buffer, int64_t size) {
    return guarded("tn_value_type", int64_t{-1}, [&] {
        return write_text(borrow(value, "value")->type()->str(), buffer, size);
    });
}
}
