// libtenfold from C++, without libtorch's headers: a handle that frees itself, and errors as exceptions.
//
//   c++ -std=c++17 06_handles.cpp $(tenfold capi flags) -o handles && ./handles
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenfold.h>

struct Free {
    void operator()(tn_tensor *tensor) const { tn_free(tensor); }
};
using Tensor = std::unique_ptr<tn_tensor, Free>;

static Tensor checked(tn_tensor *result) {
    if (result == nullptr) throw std::runtime_error(tn_error_message());
    return Tensor(result);
}

static std::string text(const Tensor &tensor) {
    std::string result(static_cast<size_t>(tn_tensor_print(tensor.get(), nullptr, 0)) + 1, '\0');
    tn_tensor_print(tensor.get(), result.data(), static_cast<int64_t>(result.size()));
    result.pop_back();
    return result;
}

int main() {
    {
        std::vector<int64_t> shape = {2, 2};
        std::vector<double> elements = {2, 1, 1, 3};
        Tensor matrix =
            checked(tn_tensor_from_data(elements.data(), TN_FLOAT64, shape.data(), 2, nullptr, 0));
        Tensor inverse = checked(tn_linalg_inv(matrix.get()));
        Tensor product = checked(tn_mm(matrix.get(), inverse.get()));
        std::cout << text(inverse) << "\n" << text(product) << "\n";
        try {
            checked(tn_linalg_inv(checked(tn_zeros(shape.data(), 2)).get()));
        } catch (const std::runtime_error &error) {
            std::cout << error.what() << "\n";
        }
    }
    std::cout << "live tensors: " << tn_live_tensors() << "\n";
    return tn_live_tensors() != 0;
}
