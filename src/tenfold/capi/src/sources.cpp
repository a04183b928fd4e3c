// How deep a TorchScript source nests. libtorch's parser, its compiler and what frees their trees call
// themselves for each level, and would run out of stack: a level is a bracket, a block, an `elif`, and each
// operator of a chain such as `a + b + c` or `x.f().g()`, which is a tree as deep as it is long. What is
// taken fits a stack of a megabyte, of which an operator needs half as much as the others.
#include "sources.h"

#include <cctype>
#include <string>
#include <vector>

#include "internal.h"

namespace tenfold {
namespace {

// Those that choose become blocks.
int levels_of(std::string_view word) {
    for (std::string_view each : {"and", "or", "if", "else"})
        if (word == each) return 2;
    for (std::string_view each : {"in", "is", "not", "lambda"})
        if (word == each) return 1;
    return 0;
}

class Levels {
  public:
    explicit Levels(std::string_view source) : source_(source) {}

    void check(int most) {
        while (at_ < source_.size()) {
            if (at_line_start_ && start_line()) continue;
            step();
            if (level_ > most)
                fail(TN_ERROR_ARGUMENT, "the source goes more than ", most,
                     " levels deep: give names to parts of its expressions");
        }
    }

  private:
    // A block of lines that are indented alike, and how many `elif` one of its statements has had so far.
    struct Block {
        size_t indent;
        int branches;
    };

    char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
    bool skip(std::string_view text) {
        if (source_.substr(at_, text.size()) != text) return false;
        at_ += text.size();
        return true;
    }
    std::string_view word() {
        const size_t begin = at_;
        while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_') at_++;
        return source_.substr(begin, at_ - begin);
    }

    // The indentation of a line says which block it is in. True where the line was empty.
    bool start_line() {
        const size_t begin = at_;
        while (peek() == ' ' || peek() == '\t') at_++;
        if (peek() == '\n' || peek() == '#') {
            while (at_ < source_.size() && peek() != '\n') at_++;
            at_++;
            return true;
        }
        at_line_start_ = false;
        const size_t indent = at_ - begin;
        while (!blocks_.empty() && blocks_.back().indent > indent) {
            level_ -= 2 + 2 * blocks_.back().branches;
            blocks_.pop_back();
        }
        if (blocks_.empty() || blocks_.back().indent < indent) {
            blocks_.push_back({indent, 0});
            level_ += 2;
        }
        const size_t first = at_;
        const std::string_view keyword = word();
        at_ = first;
        if (keyword == "elif") {
            blocks_.back().branches++;
            level_ += 2;
        } else if (keyword != "else") {
            level_ -= 2 * blocks_.back().branches;
            blocks_.back().branches = 0;
        }
        return false;
    }

    void step() {
        const char c = peek();
        if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
            deepen(levels_of(word()));
        } else if (c == '#') {
            while (at_ < source_.size() && peek() != '\n') at_++;
        } else if (c == '"' || c == '\'') {
            skip_string();
        } else if (c == '\\' && peek(1) == '\n') {
            at_ += 2;
        } else {
            at_++;
            if (c == '(' || c == '[' || c == '{') {
                deepen(2);
                chains_.push_back(0);
            } else if ((c == ')' || c == ']' || c == '}') && chains_.size() > 1) {
                forget_chain();
                chains_.pop_back();
            } else if (c == ',' || c == ':' || c == ';') {
                forget_chain();
            } else if (c == '\n' && chains_.size() == 1) {
                forget_chain();
                at_line_start_ = true;
            } else if (std::string_view("+-*/%@&|^<>=!~.").find(c) != std::string_view::npos) {
                deepen(1);
            }
        }
    }

    void skip_string() {
        const std::string quote(1, peek()), three = quote + quote + quote;
        const bool is_long = skip(three);
        if (!is_long) at_++;
        while (at_ < source_.size() && !skip(is_long ? three : quote)) {
            if (!is_long && peek() == '\n') return;  // which the parser refuses
            at_ += peek() == '\\' ? 2 : 1;
        }
    }

    // An operator puts what it has on its left, or on its right, one level deeper.
    void deepen(int by) {
        chains_.back() += by;
        level_ += by;
    }
    void forget_chain() {
        level_ -= chains_.back();
        chains_.back() = 0;
    }

    std::string_view source_;
    size_t at_ = 0;
    bool at_line_start_ = true;
    int level_ = 0;
    std::vector<int> chains_{0};  // the levels of the expression in each bracket that is open
    std::vector<Block> blocks_;
};

}  // namespace

void check_levels(std::string_view source, int most) { Levels(source).check(most); }

}  // namespace tenfold
