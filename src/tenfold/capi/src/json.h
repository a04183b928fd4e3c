// JSON as far as the header of a safetensors file needs it: strict, bounded in depth, numbers whole.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "internal.h"

namespace tenfold::json {

// Whether text is UTF-8: no byte that begins nothing, no character cut short, written longer than it is, or
// none at all, as halves of surrogate pairs are.
inline bool is_utf8(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const auto first = static_cast<unsigned char>(text[at++]);
        if (first < 0x80) continue;
        const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
        if (first < 0xC2 || first > 0xF4) return false;
        uint32_t code = first & (0x3F >> more);
        for (int i = 0; i < more; i++, at++) {
            if (at == text.size() || (text[at] & 0xC0) != 0x80) return false;
            code = code << 6 | (text[at] & 0x3F);
        }
        const uint32_t least[] = {0x80, 0x800, 0x10000};
        if (code < least[more - 1] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    }
    return true;
}

// What was read. Headers need objects, lists of whole numbers and text: of all else, that it was there.
class Value {
  public:
    using Members = std::vector<std::pair<std::string, Value>>;
    using Numbers = std::vector<int64_t>;

    const Members &members() const { return get<Members>("an object"); }
    const Numbers &numbers() const { return get<Numbers>("a list of whole numbers"); }
    const std::string &text() const { return get<std::string>("text"); }
    const Value &at(std::string_view name) const {
        for (const auto &each : members())
            if (each.first == name) return each.second;
        fail(TN_ERROR_TORCH, "the header lacks '", std::string(name), "'");
    }

  private:
    friend class Reader;
    template <class Kind>
    const Kind &get(const char *what) const {
        if (const auto *found = std::get_if<Kind>(&held_)) return *found;
        fail(TN_ERROR_TORCH, "the header has something else where ", what, " is needed");
    }
    std::variant<std::monostate, int64_t, std::string, Numbers, Members> held_;
};

class Reader {
  public:
    explicit Reader(std::string_view text) : text_(text) {}

    Value whole_text() {
        if (!is_utf8(text_)) wrong("no UTF-8");
        Value value = read(0);
        skip();
        if (at_ != text_.size()) wrong("something follows the end");
        return value;
    }

  private:
    Value read(int depth) {
        if (depth > 16) wrong("nested too deeply");
        skip();
        Value value;
        char c = peek();
        if (c == '{') {
            auto &members = value.held_.emplace<Value::Members>();
            sequence('}', [&] {
                skip();
                std::string name = string();
                skip();
                expect(':');
                members.emplace_back(std::move(name), read(depth + 1));
            });
        } else if (c == '[') {
            Value::Numbers numbers;
            bool whole = true;
            sequence(']', [&] {
                const Value entry = read(depth + 1);
                const auto *number = std::get_if<int64_t>(&entry.held_);
                whole = whole && number != nullptr;
                if (whole) numbers.push_back(*number);
            });
            if (whole) value.held_ = std::move(numbers);
        } else if (c == '"') {
            value.held_ = string();
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            number(value);
        } else if (!word("true") && !word("false") && !word("null")) {
            wrong("no value");
        }
        return value;
    }

    template <class Body>
    void sequence(char close, Body &&body) {
        at_++;
        skip();
        if (peek() == close) {
            at_++;
            return;
        }
        for (;;) {
            body();
            skip();
            if (peek() == close) break;
            expect(',');
        }
        at_++;
    }

    void number(Value &value) {
        size_t start = at_;
        bool negative = peek() == '-';
        if (negative) at_++;
        int64_t whole = 0;
        const size_t first = at_;
        bool overflow = false;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
            overflow |= __builtin_mul_overflow(whole, 10, &whole) ||
                        __builtin_add_overflow(whole, text_[at_] - '0', &whole);
            at_++;
        }
        if (at_ == first || (text_[first] == '0' && at_ > first + 1)) wrong("no number");
        bool fraction = false;
        while (at_ < text_.size() &&
               std::string_view(".eE+-0123456789").find(text_[at_]) != std::string_view::npos) {
            fraction = true;
            at_++;
        }
        if (fraction) return;  // of no use here
        if (overflow) wrong(std::string(text_.substr(start, 24)) + " is too large");
        value.held_ = negative ? -whole : whole;
    }

    std::string string() {
        expect('"');
        std::string result;
        for (;;) {
            char c = peek();
            at_++;
            if (c == '"') return result;
            if (static_cast<unsigned char>(c) < 0x20) wrong("a control character in text");
            if (c != '\\') {
                result += c;
                continue;
            }
            char escaped = peek();
            at_++;
            constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
            auto found = from.find(escaped);
            if (found != std::string_view::npos) {
                result += to[found];
            } else if (escaped == 'u') {
                append(result, code_point());
            } else {
                wrong("an unknown escape");
            }
        }
    }

    uint32_t four_digits() {
        uint32_t code = 0;
        for (int i = 0; i < 4; i++) {
            char c = peek();
            at_++;
            int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
            if (digit < 0) wrong("a bad \\u escape");
            code = code * 16 + static_cast<uint32_t>(digit);
        }
        return code;
    }

    uint32_t code_point() {
        uint32_t code = four_digits();
        if (code < 0xD800 || code > 0xDFFF) return code;
        if (code > 0xDBFF || peek() != '\\') wrong("half of a surrogate pair");
        at_++;
        if (peek() != 'u') wrong("half of a surrogate pair");
        at_++;
        uint32_t low = four_digits();
        if (low < 0xDC00 || low > 0xDFFF) wrong("half of a surrogate pair");
        return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }

    static void append(std::string &text, uint32_t code) {
        if (code < 0x80) {
            text += static_cast<char>(code);
        } else if (code < 0x800) {
            text += static_cast<char>(0xC0 | code >> 6);
            text += static_cast<char>(0x80 | (code & 0x3F));
        } else if (code < 0x10000) {
            text += static_cast<char>(0xE0 | code >> 12);
            text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
            text += static_cast<char>(0x80 | (code & 0x3F));
        } else {
            text += static_cast<char>(0xF0 | code >> 18);
            text += static_cast<char>(0x80 | (code >> 12 & 0x3F));
            text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
            text += static_cast<char>(0x80 | (code & 0x3F));
        }
    }

    bool word(std::string_view expected) {
        if (text_.substr(at_, expected.size()) != expected) return false;
        at_ += expected.size();
        return true;
    }
    void skip() {
        while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos)
            at_++;
    }
    char peek() {
        if (at_ >= text_.size()) wrong("it ends too early");
        return text_[at_];
    }
    void expect(char c) {
        if (peek() != c) wrong(c10::str("'", c, "' is missing"));
        at_++;
    }
    [[noreturn]] void wrong(const std::string &why) {
        fail(TN_ERROR_TORCH, "the header is not JSON at byte ", at_, ": ", why);
    }

    std::string_view text_;
    size_t at_ = 0;
};

inline Value parse(std::string_view text) { return Reader(text).whole_text(); }

inline std::string quote(std::string_view text) {
    std::string result = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", c);
            result += escape;
        } else {
            result += c;
        }
    }
    return result + "\"";
}

}  // namespace tenfold::json
