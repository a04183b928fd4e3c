// JSON as far as the header of a safetensors file needs it: strict, bounded in depth, numbers whole.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "internal.h"

namespace tenfold::json {

class Value {
  public:
    enum class Kind { object, list, text, whole, other };

    const std::vector<std::pair<std::string, Value>> &members() const {
        return need(Kind::object, "an object"), members_;
    }
    const std::vector<Value> &list() const { return need(Kind::list, "a list"), list_; }
    const std::string &text() const { return need(Kind::text, "text"), text_; }
    int64_t whole() const { return need(Kind::whole, "a whole number"), whole_; }
    const Value &at(std::string_view name) const {
        for (const auto &each : members())
            if (each.first == name) return each.second;
        fail(TN_ERROR_TORCH, "the header lacks '", std::string(name), "'");
    }

  private:
    friend class Reader;
    void need(Kind kind, const char *what) const {
        if (kind_ != kind) fail(TN_ERROR_TORCH, "the header has something else where ", what, " is needed");
    }
    Kind kind_ = Kind::other;
    std::vector<std::pair<std::string, Value>> members_;
    std::vector<Value> list_;
    std::string text_;
    int64_t whole_ = 0;
};

class Reader {
  public:
    explicit Reader(std::string_view text) : text_(text) {}

    Value whole_text() {
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
            value.kind_ = Value::Kind::object;
            sequence('}', [&] {
                skip();
                std::string name = string();
                skip();
                expect(':');
                value.members_.emplace_back(std::move(name), read(depth + 1));
            });
        } else if (c == '[') {
            value.kind_ = Value::Kind::list;
            sequence(']', [&] { value.list_.push_back(read(depth + 1)); });
        } else if (c == '"') {
            value.kind_ = Value::Kind::text;
            value.text_ = string();
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
        bool overflow = false, digits = false;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
            digits = true;
            overflow |= __builtin_mul_overflow(whole, 10, &whole) ||
                        __builtin_add_overflow(whole, text_[at_] - '0', &whole);
            at_++;
        }
        if (!digits) wrong("a number without digits");
        bool fraction = false;
        while (at_ < text_.size() &&
               std::string_view(".eE+-0123456789").find(text_[at_]) != std::string_view::npos) {
            fraction = true;
            at_++;
        }
        if (fraction) return;  // of no use here, so it stays Kind::other
        if (overflow) wrong(std::string(text_.substr(start, 24)) + " is too large");
        value.kind_ = Value::Kind::whole;
        value.whole_ = negative ? -whole : whole;
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
