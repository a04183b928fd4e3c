// Named tensors in a file, in the safetensors format: eight bytes of length, a JSON header, the
// elements. A file may be damaged or hostile, so the header is read strictly and every byte it names
// is checked to be there.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include <ATen/core/Dict.h>
#include <ATen/ops/empty.h>

#include "json.h"
#include "values.h"

using namespace tenfold;

namespace {

struct Named {
    const char *name;
    c10::ScalarType type;
};
constexpr Named types[] = {
    {"BOOL", c10::kBool},
    {"U8", c10::kByte},
    {"I8", c10::kChar},
    {"U16", c10::kUInt16},
    {"I16", c10::kShort},
    {"U32", c10::kUInt32},
    {"I32", c10::kInt},
    {"U64", c10::kUInt64},
    {"I64", c10::kLong},
    {"F16", c10::kHalf},
    {"BF16", c10::kBFloat16},
    {"F32", c10::kFloat},
    {"F64", c10::kDouble},
    {"F8_E5M2", c10::kFloat8_e5m2},
    {"F8_E4M3", c10::kFloat8_e4m3fn},
    {"F8_E8M0", c10::kFloat8_e8m0fnu},
    {"C64", c10::kComplexFloat},
};
constexpr int64_t longest_header = 100'000'000;

const char *name_of(c10::ScalarType type, const std::string &tensor) {
    for (const Named &each : types)
        if (each.type == type) return each.name;
    fail(TN_ERROR_TYPE, "safetensors has no element type ", type, ", which '", tensor, "' has");
}

c10::ScalarType type_of(const std::string &name) {
    for (const Named &each : types)
        if (name == each.name) return each.type;
    fail(TN_ERROR_TORCH, "the file has elements of an unknown type '", name.substr(0, 40), "'");
}

class File {
  public:
    File(const std::string &path, const char *mode) : path_(path), file_(std::fopen(path.c_str(), mode)) {
        if (file_ == nullptr) fail(TN_ERROR_NOT_FOUND, path, ": ", std::strerror(errno));
    }
    ~File() {
        if (file_ != nullptr) std::fclose(file_);
    }
    File(const File &) = delete;
    File &operator=(const File &) = delete;

    int64_t size() {
        struct stat about;
        if (fstat(fileno(file_), &about) != 0 || !S_ISREG(about.st_mode))
            fail(TN_ERROR_ARGUMENT, path_, " is no file");
        return about.st_size;
    }
    void read(void *to, int64_t bytes) {
        if (bytes > 0 && std::fread(to, 1, bytes, file_) != static_cast<size_t>(bytes))
            fail(TN_ERROR_TORCH, path_, " could not be read to its end");
    }
    void write(const void *from, int64_t bytes) {
        if (bytes > 0 && std::fwrite(from, 1, bytes, file_) != static_cast<size_t>(bytes)) fail_writing();
    }
    void close() {
        int failed = std::fclose(file_);
        file_ = nullptr;
        if (failed) fail_writing();
    }

  private:
    [[noreturn]] void fail_writing() {
        fail(TN_ERROR_ARGUMENT, path_, " could not be written: ", std::strerror(errno));
    }
    std::string path_;
    std::FILE *file_;
};

struct Entry {
    std::string name;
    c10::ScalarType type;
    std::vector<int64_t> shape;
    int64_t begin, end;
};

// The bytes that a shape takes, or -1 when no memory could hold them.
int64_t bytes_of(const std::vector<int64_t> &shape, c10::ScalarType type) {
    int64_t bytes = static_cast<int64_t>(c10::elementSize(type));
    for (auto size : shape)
        if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return -1;
    return bytes;
}

Entry read_entry(const std::string &name, const json::Value &described) {
    Entry entry{name, type_of(described.at("dtype").text()), described.at("shape").numbers(), 0, 0};
    const auto &offsets = described.at("data_offsets").numbers();
    if (offsets.size() != 2)
        fail(TN_ERROR_TORCH, "'", name, "' has ", offsets.size(), " data offsets, and two are needed");
    entry.begin = offsets[0];
    entry.end = offsets[1];
    if (entry.begin < 0 || entry.end < entry.begin ||
        bytes_of(entry.shape, entry.type) != entry.end - entry.begin)
        fail(TN_ERROR_TORCH, "'", name, "' has a shape that does not take the bytes it is given");
    return entry;
}

std::vector<Entry> read_header(File &file, int64_t size) {
    unsigned char length_bytes[8];
    if (size < 8) fail(TN_ERROR_TORCH, "the file is too short for safetensors");
    file.read(length_bytes, 8);
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | length_bytes[i];
    if (length > static_cast<uint64_t>(std::min(size - 8, longest_header)))
        fail(TN_ERROR_TORCH, "the file's header would be ", length, " bytes long");
    std::string header(length, '\0');
    file.read(header.data(), static_cast<int64_t>(length));
    std::vector<Entry> entries;
    std::set<std::string> names;
    const json::Value parsed = json::parse(header);
    for (const auto &[name, described] : parsed.members()) {
        if (!names.insert(name).second) fail(TN_ERROR_TORCH, "the file has two tensors called '", name, "'");
        if (name != "__metadata__") entries.push_back(read_entry(name, described));
    }
    std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    int64_t reached = 0;
    for (const Entry &entry : entries) {
        if (entry.begin != reached)
            fail(TN_ERROR_TORCH, "'", entry.name, "' does not start where the tensor before it ends");
        reached = entry.end;
    }
    if (reached != size - 8 - static_cast<int64_t>(length))
        fail(TN_ERROR_TORCH, "the file's tensors do not take all of its bytes");
    return entries;
}

// Write a file beside its name first, for each call apart: a crash half-way leaves no damaged file there. A
// link stays, and what it leads to is replaced; a device or a pipe cannot be replaced, and is written itself.
template <class Write>
void replace(const std::string &path, Write write) {
    std::string place = path;
    struct stat about;
    bool exists = false;
    if (char *resolved = realpath(path.c_str(), nullptr)) {
        place = resolved;
        std::free(resolved);
        exists = stat(place.c_str(), &about) == 0;
        if (exists && !S_ISREG(about.st_mode)) return write(path);
    }
    static std::atomic<int64_t> saved{0};
    std::string unfinished = text_of(place, ".", getpid(), ".", ++saved, ".unfinished");
    try {
        write(unfinished);
        if (exists) (void)chmod(unfinished.c_str(), about.st_mode & 07777);  // as it was
        if (std::rename(unfinished.c_str(), place.c_str()) != 0)
            fail(TN_ERROR_ARGUMENT, path, " could not be written: ", std::strerror(errno));
    } catch (...) {
        std::remove(unfinished.c_str());
        throw;
    }
}

void save(const std::string &path, const char *const *names, const std::vector<at::Tensor> &tensors) {
    std::string header = "{";
    int64_t end = 0;
    std::set<std::string> used;
    for (size_t i = 0; i < tensors.size(); i++) {
        std::string name = text(names[i], "names");
        if (name == "__metadata__" || !used.insert(name).second)
            fail(TN_ERROR_ARGUMENT, "the name '", name, "' is used twice or kept for metadata");
        if (!json::is_utf8(name)) fail(TN_ERROR_ARGUMENT, "the name '", name, "' is not UTF-8, as JSON is");
        int64_t begin = end;
        end += static_cast<int64_t>(tensors[i].nbytes());
        std::string shape;
        for (int64_t size : tensors[i].sizes()) shape += text_of(shape.empty() ? "" : ",", size);
        header += text_of(i ? "," : "", json::quote(name), ":{\"dtype\":\"",
                          name_of(tensors[i].scalar_type(), name), "\",\"shape\":[", shape,
                          "],\"data_offsets\":[", begin, ",", end, "]}");
    }
    header += "}";
    header.append((8 - header.size() % 8) % 8, ' ');
    replace(path, [&](const std::string &at) {
        File file(at, "wb");
        unsigned char length[8];
        for (int i = 0; i < 8; i++) length[i] = static_cast<unsigned char>(header.size() >> (8 * i));
        file.write(length, 8);
        file.write(header.data(), static_cast<int64_t>(header.size()));
        for (const auto &tensor : tensors) {
            at::Tensor elements = packed(tensor);
            file.write(elements.const_data_ptr(), static_cast<int64_t>(elements.nbytes()));
        }
        file.close();
    });
}

}  // namespace

extern "C" {

tn_status tn_save_safetensors(const char *path, const char *const *names, const tn_tensor *const *handles,
                              int64_t count) {
    return guarded_status("tn_save_safetensors", [&] {
        text(path, "path");
        check_count(names, count, "names");
        save(path, names, tensors(handles, count, "tensors"));
    });
}

tn_value *tn_load_safetensors(const char *path) {
    return guarded("tn_load_safetensors", (tn_value *)nullptr, [&] {
        File file(text(path, "path"), "rb");
        c10::Dict<std::string, at::Tensor> dict;
        for (const Entry &entry : read_header(file, file.size())) {
            at::Tensor made = at::empty(entry.shape, at::TensorOptions(entry.type));
            file.read(made.mutable_data_ptr(), entry.end - entry.begin);
            dict.insert(entry.name, std::move(made));
        }
        return own_value(c10::IValue(std::move(dict)));
    });
}
}
