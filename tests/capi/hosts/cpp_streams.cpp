// A host in C++ that has a BLAS, the standard streams, a locale and exceptions of its own; libtorch
// warns by std::cerr.
#include <iostream>
#include <locale>
#include <regex>
#include <stdexcept>

#include "check.h"

extern "C" float sdot_() { return -1; }

struct Grouped : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

int main() {
    std::cout << "before " << 1.5 << std::endl;
    tn_tensor *x = numbers(2, 3), *y = numbers(1, 2), *dot = tn_dot(x, x);
    CHECK(number(dot) == 12);
    CHECK(tn_add_out(x, x, y) == TN_OK);  // resizes y, and libtorch warns
    FAILS(TN_ERROR_TORCH, tn_matmul(x, dot));
    std::cerr << "between " << std::regex_match("aab", std::regex("a+b")) << std::endl;
    std::locale::global(std::locale(std::locale::classic(), new Grouped));
    std::cout.imbue(std::locale());
    const char *const names[] = {"long"};
    const int64_t size[1] = {123456};
    tn_tensor *many = tn_zeros(size, 1);
    CHECK(tn_save_safetensors("grouped.safetensors", names, &many, 1) == TN_OK);
    tn_value *loaded = tn_load_safetensors("grouped.safetensors");
    CHECK(loaded != nullptr);
    tn_tensor *back = nullptr;
    tn_value *entry = tn_value_get_string(loaded, "long");
    back = tn_value_to_tensor(entry);
    CHECK(back != nullptr && tn_tensor_numel(back) == 123456);
    char text[100];
    tn_op_schema(tn_find("aten::leaky_relu"), text, sizeof text);
    CHECK(strstr(text, "0.01") != nullptr);
    try {
        throw std::runtime_error("the host's own");
    } catch (const std::exception &error) {
        std::cout << error.what() << " " << 1234567 << std::endl;
    }
    tn_value_free(entry);
    tn_value_free(loaded);
    for (tn_tensor *each : {x, y, dot, many, back}) tn_free(each);
    return tn_live_tensors() != 0 || tn_live_objects() != 0;
}
