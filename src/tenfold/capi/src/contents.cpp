// What values hold: their tags, and the numbers, texts, tensors and entries in them. values.cpp makes them.
#include <algorithm>
#include <set>
#include <sstream>

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>

#include "values.h"

using namespace tenfold;
using c10::IValue;

namespace {

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
    check_nesting(key);  // which the message tells
    bool same = dict.keyType()->kind() == c10::AnyType::Kind || key.type()->isSubtypeOf(*dict.keyType());
    auto found = same ? dict.find(key) : dict.end();
    if (found == dict.end()) fail(TN_ERROR_NOT_FOUND, "the dict has no such key: ", key);
    return found->value();
}

// As libtorch prints values, with tensors as `print` has them.
void print_value(std::ostream &stream, const IValue &value) {
    auto each = [&](const char *open, const auto &entries, const char *close, auto one) {
        const char *between = open;
        if (entries.begin() == entries.end()) stream << open;
        for (const auto &entry : entries) {
            stream << between;
            one(entry);
            between = ", ";
        }
        stream << close;
    };
    auto plain = [&](const IValue &entry) { print_value(stream, entry); };
    if (value.isTensor()) {
        print(stream, value.toTensor());
    } else if (value.isList()) {
        each("[", value.toListRef(), "]", plain);
    } else if (value.isTuple()) {
        const auto &elements = value.toTupleRef().elements();
        each("(", elements, elements.size() == 1 ? ",)" : ")", plain);
    } else if (value.isGenericDict()) {
        each("{", value.toGenericDict(), "}", [&](const auto &entry) {
            print_value(stream, entry.key());
            stream << ": ";
            print_value(stream, entry.value());
        });
    } else {
        stream << value;
    }
}

// Whether values are equal, tensors by being the same one: libtorch would ask whether their elements are.
class Comparison {
  public:
    bool equal(const IValue &a, const IValue &b) {
        if (tag_of(a) != tag_of(b)) return false;
        if (a.isTensor()) return a.toTensor().is_same(b.toTensor());
        if (a.isGenerator()) return a.toGenerator() == b.toGenerator();
        if (!a.isList() && !a.isTuple() && !a.isGenericDict()) return a == b;
        // Once begun, a pair need not be compared again: the first that differ end it all.
        if (!begun_.emplace(a.internalToPointer(), b.internalToPointer()).second) return true;
        if (a.isTuple())
            return all_equal(a.toTupleRef().elements().asArrayRef(), b.toTupleRef().elements().asArrayRef());
        if (a.isList()) return all_equal(a.toListRef(), b.toListRef());
        auto these = a.toGenericDict(), those = b.toGenericDict();
        if (these.size() != those.size() || *these.keyType() != *those.keyType()) return false;
        for (const auto &entry : these) {
            auto found = those.find(entry.key());
            if (found == those.end() || !equal(entry.value(), found->value())) return false;
        }
        return true;
    }

  private:
    bool all_equal(c10::ArrayRef<IValue> a, c10::ArrayRef<IValue> b) {
        if (a.size() != b.size()) return false;
        for (size_t i = 0; i < a.size(); i++)
            if (!equal(a[i], b[i])) return false;
        return true;
    }

    std::set<std::pair<const void *, const void *>> begun_;
};

}  // namespace

extern "C" {

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
        non_null(number, "number") =
            tag == TN_TAG_INT ? static_cast<double>(held->toInt()) : held->toDouble();
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
    return make("tn_value_get_string",
                [&] { return look_up(*borrow(value, "value"), IValue(std::string(text(key, "key")))); });
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
        check_nesting(*a);
        return int(Comparison().equal(*a, *b));
    });
}

int64_t tn_value_print(const tn_value *value, char *buffer, int64_t size) {
    return guarded("tn_value_print", int64_t{-1}, [&] {
        auto held = borrow(value, "value");
        check_nesting(*held);
        std::ostringstream stream;
        stream.imbue(std::locale::classic());  // whatever the host made the global one
        print_value(stream, *held);
        return write_text(stream.str(), buffer, size);
    });
}

int64_t tn_value_type(const tn_value *value, char *buffer, int64_t size) {
    return guarded("tn_value_type", int64_t{-1}, [&] {
        return write_text(borrow(value, "value")->type()->str(), buffer, size);
    });
}
}
