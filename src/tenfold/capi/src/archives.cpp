// TorchScript archives as a file gives them, which may be damaged or hostile. libtorch believes what their
// pickles say: it makes room for any number of memoized values, nests values without bound and takes a
// tensor's storage to be as long as it is said to be. So the pickles are followed here first, without making
// any value, and the sources are looked through.
#include "archives.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <unordered_map>

#include <c10/core/ScalarType.h>
#include <caffe2/serialize/inline_container.h>

#include "internal.h"
#include "sources.h"

namespace tenfold {
namespace {

using caffe2::serialize::PyTorchStreamReader;

// The bytes of one element in a storage class, such as torch.FloatStorage; 0 where there is none.
int64_t element_bytes(std::string_view storage) {
    static const auto *all = new std::unordered_map<std::string_view, int64_t>{
#define STORAGE(type, name) {"torch\n" #name "Storage", static_cast<int64_t>(sizeof(type))},
        AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(STORAGE)
#undef STORAGE
    };
    auto found = all->find(storage);
    return found == all->end() ? 0 : found->second;
}

// One pickle, followed as libtorch's unpickler would: its stack, its marks and its memo, of values that are
// known by little more than the values they hold.
class Pickle {
  public:
    // How deep containers nest. What holds a value may be three of them: a list, its arguments, its type.
    static constexpr int deepest = 3000;
    using StorageBytes = std::function<int64_t(std::string_view key)>;  // of a record, or -1

    Pickle(std::string_view name, std::string_view bytes, StorageBytes storage_bytes)
        : name_(name), bytes_(bytes), storage_bytes_(std::move(storage_bytes)) {}

    void check() {
        while (follow(number(1))) {
        }
        check_depth();
    }

  private:
    struct Item {
        enum Kind : uint8_t { other, text, whole, type } kind = other;
        uint32_t container = none;
        int64_t whole_number = 0;
        std::string_view characters = {};
    };
    static constexpr uint32_t none = UINT32_MAX;

    [[noreturn]] void damaged(const char *why) const {
        fail(TN_ERROR_TORCH, "the archive is damaged: ", std::string(name_), " at byte ", at_, ": ", why);
    }

    std::string_view take(uint64_t count) {
        if (count > bytes_.size() - at_) damaged("it ends too early");
        at_ += count;
        return bytes_.substr(at_ - count, count);
    }
    uint64_t number(size_t width) {
        uint64_t value = 0;
        auto read = take(width);
        for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(read[i]);
        return value;
    }
    std::string_view line() {
        auto end = bytes_.find('\n', at_);
        if (end == std::string_view::npos) damaged("it ends too early");
        auto found = take(end - at_);
        at_++;
        return found;
    }

    Item pop() {
        if (stack_.empty()) damaged("a value is missing");
        Item last = stack_.back();
        stack_.pop_back();
        return last;
    }
    void push(Item item) { stack_.push_back(item); }
    void push_whole(int64_t value) { push({Item::whole, none, value}); }
    void push_text(uint64_t length) { push({Item::text, none, 0, take(length)}); }
    void push_container(const std::vector<Item> &parts) {
        Item made;
        made.container = static_cast<uint32_t>(parts_.size());
        parts_.emplace_back();
        push(made);
        add(made, parts);
    }
    void push_tuple(size_t count) {
        if (stack_.size() < count) damaged("a value is missing");
        auto parts = take_from(stack_.size() - count);
        push_container(parts);
    }
    void add(const Item &to, const std::vector<Item> &parts) {
        if (to.container == none) return;  // libtorch refuses what is no container
        for (const Item &each : parts)
            if (each.container != none) parts_[to.container].push_back(each.container);
    }
    std::vector<Item> take_from(size_t begin) {
        std::vector<Item> taken(stack_.begin() + begin, stack_.end());
        stack_.resize(begin);
        return taken;
    }
    std::vector<Item> since_mark() {
        if (marks_.empty() || marks_.back() > stack_.size()) damaged("a mark is missing");
        const size_t begin = marks_.back();
        marks_.pop_back();
        return take_from(begin);
    }
    void add_to_last(const std::vector<Item> &parts) {
        if (stack_.empty()) damaged("a value is missing");
        add(stack_.back(), parts);
    }
    void keep(uint64_t place) {
        if (stack_.empty()) damaged("a value is missing");
        if (place > bytes_.size()) damaged("a value is kept at a place that is too far");
        if (place >= memo_.size()) memo_.resize(place + 1);
        memo_[place] = stack_.back();
    }
    void push_kept(uint64_t place) {
        if (place >= memo_.size()) damaged("a value was not kept");
        push(memo_[place]);
    }

    // ("storage", class, key, device, number of elements)
    void check_storage(const std::vector<Item> &tuple) const {
        if (tuple.empty() || tuple[0].kind != Item::text || tuple[0].characters != "storage") return;
        if (tuple.size() < 5 || tuple[1].kind != Item::type || tuple[2].kind != Item::text ||
            tuple[4].kind != Item::whole)
            damaged("no tensor's storage is described like this");
        const int64_t elements = tuple[4].whole_number, width = element_bytes(tuple[1].characters);
        if (elements == 0 || width == 0) return;  // nothing is read, or libtorch refuses the class
        const int64_t there = storage_bytes_(tuple[2].characters);
        if (there >= 0 && (elements < 0 || elements > there / width))
            damaged("a tensor's storage is shorter than the tensor");
    }

    // One instruction; false at the end.
    bool follow(uint64_t instruction) {
        switch (instruction) {
            case '.': return false;
            case 0x80: take(1); break;  // the protocol
            case '(': marks_.push_back(stack_.size()); break;
            case ']': case ')': case '}': push_container({}); break;
            case 'N': case 0x88: case 0x89: push({}); break;
            case 'G': take(8), push({}); break;
            case 'K': push_whole(static_cast<int64_t>(number(1))); break;
            case 'M': push_whole(static_cast<int64_t>(number(2))); break;
            case 'J': push_whole(static_cast<int32_t>(number(4))); break;
            case 0x8a:
                if (number(1) != 8) damaged("a number of another length");
                push_whole(static_cast<int64_t>(number(8)));
                break;
            case 'X': push_text(number(4)); break;
            case 0x8d: push_text(number(8)); break;
            case 'q': keep(number(1)); break;
            case 'r': keep(number(4)); break;
            case 'h': push_kept(number(1)); break;
            case 'j': push_kept(number(4)); break;
            case 't': {
                auto parts = since_mark();
                check_storage(parts);
                push_container(parts);
                break;
            }
            case 0x85: push_tuple(1); break;
            case 0x86: push_tuple(2); break;
            case 0x87: push_tuple(3); break;
            case 'l': push_container(since_mark()); break;
            case 'd': push_container(pairs(since_mark())); break;
            case 'a': add_to_last({pop()}); break;
            case 'e': add_to_last(since_mark()); break;
            case 's': {
                Item value = pop(), key = pop();
                add_to_last({key, value});
                break;
            }
            case 'u': add_to_last(pairs(since_mark())); break;
            case 'c': {
                const size_t begin = at_;
                line(), line();
                push({Item::type, none, 0, bytes_.substr(begin, at_ - 1 - begin)});
                break;
            }
            case 0x81: pop(); break;
            case 'b': case 'R': {
                Item argument = pop();
                pop();
                push_container({argument});
                break;
            }
            case 'Q': pop(), push({}); break;
            default: damaged("an instruction that libtorch does not have");
        }
        return true;
    }

    std::vector<Item> pairs(std::vector<Item> parts) const {
        if (parts.size() % 2 != 0) damaged("a key without a value");
        return parts;
    }

    // The longest way down, without calling itself: a container that is open again below holds itself.
    void check_depth() const {
        constexpr int untouched = -1, is_open = -2;
        std::vector<int> depth(parts_.size(), untouched);
        struct Visit {
            uint32_t container;
            size_t next;
        };
        std::vector<Visit> way;
        for (uint32_t start = 0; start < parts_.size(); start++) {
            if (depth[start] != untouched) continue;
            way.push_back({start, 0});
            depth[start] = is_open;
            while (!way.empty()) {
                auto &[container, next] = way.back();
                if (next < parts_[container].size()) {
                    const uint32_t part = parts_[container][next++];
                    if (depth[part] == is_open) damaged("a value holds itself");
                    if (depth[part] != untouched) continue;
                    depth[part] = is_open;
                    way.push_back({part, 0});
                    continue;
                }
                int inside = 0;
                for (uint32_t part : parts_[container]) inside = std::max(inside, depth[part]);
                depth[container] = inside + 1;
                if (depth[container] > deepest) damaged("values nest too deep");
                way.pop_back();
            }
        }
    }

    std::string_view name_, bytes_;
    StorageBytes storage_bytes_;
    size_t at_ = 0;
    std::vector<Item> stack_, memo_;
    std::vector<size_t> marks_;
    std::vector<std::vector<uint32_t>> parts_;  // of each container, those of its parts that are some
};

bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

void check_archive(std::shared_ptr<caffe2::serialize::ReadAdapterInterface> file) {
    PyTorchStreamReader reader(std::move(file));
    if (!reader.hasRecord("constants.pkl")) return;  // no TorchScript, which libtorch says better
    for (const std::string &name : reader.getAllRecords()) {
        const bool source = ends_with(name, ".py");
        const bool pickle = name == "data.pkl" || name == "constants.pkl" || ends_with(name, ".debug_pkl");
        if (!source && !pickle) continue;
        auto [data, size] = reader.getRecord(name);
        const std::string_view bytes(static_cast<const char *>(data.get()), size);
        if (source) {
            check_levels(bytes, most_saved_levels);
            continue;
        }
        const std::string folder = name.substr(0, name.size() - std::strlen("pkl") - 1) + "/";
        Pickle(name, bytes, [&](std::string_view key) {
            const std::string record = folder + std::string(key);
            return reader.hasRecord(record) ? static_cast<int64_t>(reader.getRecordSize(record)) : -1;
        }).check();
    }
}

}  // namespace tenfold
