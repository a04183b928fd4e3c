// C++ that links libtorch itself and shares its objects with libtenfold: an at::Tensor, a torch::jit::Stack and a
// torch::jit::Module behind handles, and back.
//
//   c++ 10_torch.cpp $(tenfold capi flags --torch) -o torch && ./torch
#include <iostream>

#include <ATen/ATen.h>
#include <tenfold/torch.h>

static tn_status square_and_sum(tn_stack *stack, void *) {
    at::Tensor x = tenfold::to_torch(stack)[0].toTensor();
    tn_stack *result = tenfold::from_torch(torch::jit::Stack{(x * x).sum()});
    tn_value *value = tn_stack_at(result, 0);
    tn_status status = tn_stack_clear(stack);
    if (status == TN_OK) status = tn_stack_push(stack, value);
    tn_value_free(value);
    tn_stack_free(result);
    return status;
}

int main() {
    try {
        // A tensor of the C library is one of libtorch's: what one writes, the other reads.
        int64_t shape[] = {2, 2};
        tn_tensor *handle = tn_ones(shape, 2);
        at::Tensor shared = tenfold::to_torch(handle);
        shared.add_(1);
        const int64_t corner[] = {0, 0};
        tn_scalar first;
        tn_tensor_get(handle, corner, 2, &first);
        std::cout << "first element: " << first.as.d << "\n";

        // A method that C traced, called as libtorch's own GraphFunction.
        tn_module *module = tn_module_new("Squares");
        tn_stack *example = tn_stack_new();
        tn_stack_push_tensor(example, handle);
        if (tn_module_trace_method(module, "forward", square_and_sum, example, true, nullptr) != TN_OK)
            throw std::runtime_error(tn_error_message());
        tn_function *method = tn_module_function(module, "forward");
        torch::jit::Function &function = tenfold::to_torch(method);
        std::cout << "sum of squares: " << function({at::full({3}, 2.0)}).toTensor().item<double>() << "\n";

        tn_function_free(method);
        tn_stack_free(example);
        tn_module_free(module);
        tn_free(handle);
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
    std::cout << "live tensors: " << tn_live_tensors() << "\n";
}
