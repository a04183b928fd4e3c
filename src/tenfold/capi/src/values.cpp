// Values made from what a host has. contents.cpp takes them apart again.
#include <algorithm>
#include <unordered_map>

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

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
    static const char *const names[] = {"None",    "a tensor", "an int",   "a double",    "a complex number",
                                        "a bool",  "a string", "a device", "a generator", "a list",
                                        "a tuple", "a dict",   "an object"};
    return names[tag];
}

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
    check_count(handles, count, "tensors");
    c10::List<at::Tensor> list;
    list.reserve(count);
    for (int64_t i = 0; i < count; i++) list.push_back(*Passed(handles[i], "tensors"));
    return list;
}

namespace {

bool is_flat(const c10::IValue &value) {
    return value.isTensorList() || value.isIntList() || value.isDoubleList() || value.isBoolList();
}

// How deep lists, tuples and dicts nest in values: what TorchScript appends to itself does so without end.
class Nesting {
  public:
    static constexpr int most = 1000;

    // Of a value that lies, or will lie, in so many others.
    void check(const c10::IValue &value, int outside) {
        if (outside + depth(value, outside) > most)
            fail(TN_ERROR_ARGUMENT, "values nest at most ", most, " deep");
    }

  private:
    int depth(const c10::IValue &value, int outside) {
        if (is_flat(value) || !(value.isList() || value.isTuple() || value.isGenericDict())) return 0;
        if (outside >= most) return most;
        auto [place, is_new] = known_.try_emplace(value.internalToPointer(), most);
        if (!is_new) return place->second;  // most if it comes again inside of itself
        int inside = 0;
        auto visit = [&](const c10::IValue &each) { inside = std::max(inside, depth(each, outside + 1)); };
        if (value.isTuple()) {
            for (const c10::IValue &each : value.toTupleRef().elements()) visit(each);
        } else if (value.isList()) {
            for (const c10::IValue &each : value.toListRef()) visit(each);
        } else {
            for (const auto &entry : value.toGenericDict()) visit(entry.value());
        }
        return known_[value.internalToPointer()] = inside + 1;
    }

    std::unordered_map<const void *, int> known_;  // what is shared is visited once
};

}  // namespace

void check_nesting(const c10::IValue &value) { Nesting().check(value, 0); }

void let_go(c10::IValue value) {
    std::vector<c10::IValue> pending;
    auto keep = [&](const c10::IValue &each) {
        if (each.isList() || each.isTuple() || each.isGenericDict()) pending.push_back(each);
    };
    keep(value);
    value = c10::IValue();
    while (!pending.empty()) {
        const c10::IValue last = std::move(pending.back());
        pending.pop_back();
        if (last.use_count() > 1 || is_flat(last)) continue;
        if (last.isTuple()) {
            for (const c10::IValue &each : last.toTupleRef().elements()) keep(each);
        } else if (last.isList()) {
            for (const c10::IValue &each : last.toListRef()) keep(each);
        } else if (last.isGenericDict()) {
            for (const auto &entry : last.toGenericDict()) keep(entry.value());
        }
    }
}

}  // namespace tenfold

using namespace tenfold;
using c10::IValue;

namespace {

std::vector<IValue> items_of(const tn_value *const *items, int64_t count, const char *argument) {
    check_count(items, count, argument);
    std::vector<IValue> list;
    list.reserve(count);
    Nesting nesting;
    for (int64_t i = 0; i < count; i++) {
        list.push_back(*borrow(items[i], argument));
        nesting.check(list.back(), 1);
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

void tn_value_free(tn_value *value) {
    freeing("tn_value_free", [&] {
        if (value == nullptr) return;
        IValue held = *borrow(value, "value");
        release(value);
        let_go(std::move(held));
    });
}
tn_value *tn_value_share(const tn_value *value) {
    return make("tn_value_share", [&]() -> IValue { return *borrow(value, "value"); });
}
tn_value *tn_value_none(void) {
    return make("tn_value_none", [] { return IValue(); });
}
tn_value *tn_value_tensor(const tn_tensor *handle) {
    return make("tn_value_tensor", [&] { return IValue(*Passed(handle, "tensor")); });
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
    return make("tn_value_scalar", [&] { return IValue(scalar(given, "scalar")); });
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
    return make("tn_value_double_list",
                [&] { return IValue(c10::List<double>(array(numbers, count, "numbers"))); });
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
    return make("tn_value_optional_tensor_list",
                [&] { return IValue(optional_tensors(handles, count, "tensors")); });
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
    return make("tn_value_tuple",
                [&] { return IValue(c10::ivalue::Tuple::create(items_of(items, count, "items"))); });
}

tn_value *tn_value_dict(const tn_value *const *keys, const tn_value *const *values, int64_t count) {
    return make("tn_value_dict", [&] {
        auto names = items_of(keys, count, "keys"), entries = items_of(values, count, "values");
        c10::TypePtr key = names.empty() ? c10::TypePtr(c10::StringType::get()) : common_type(names);
        for (const auto &name : names) {
            tn_tag tag = tag_of(name);
            bool may = tag == TN_TAG_TENSOR || tag == TN_TAG_INT || tag == TN_TAG_DOUBLE ||
                       tag == TN_TAG_COMPLEX || tag == TN_TAG_BOOL || tag == TN_TAG_STRING ||
                       tag == TN_TAG_DEVICE;
            if (!may || key->kind() == c10::AnyType::Kind)
                fail(TN_ERROR_TYPE,
                     "a dict's keys are of one type: strings, ints, doubles, complex numbers, bools, tensors "
                     "or devices");
        }
        c10::impl::GenericDict dict(key, common_type(entries));
        for (size_t i = 0; i < names.size(); i++) dict.insert_or_assign(names[i], entries[i]);
        return IValue(std::move(dict));
    });
}
}
