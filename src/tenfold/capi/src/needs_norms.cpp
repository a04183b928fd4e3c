// The checks of norms: of groups, layers, batches and weights.
#include <ATen/Tensor.h>

#include "internal.h"
#include "needs.h"
#include "needs_kinds.h"

namespace tenfold {

// ---- groups and layers ----------------------------------------------------------------------------------

// What a tensor's elements are divided into, by numbers that the kernel multiplies without looking.
static void divided(const at::Tensor &input, int64_t batch, int64_t channels, int64_t places,
                    int64_t groups) {
    need(groups > 0, "group is a positive number");
    need(batch >= 0 && channels >= 0 && places >= 0, "N, C and HxW are not negative");
    int64_t rows, all;
    const bool overflows =
        __builtin_mul_overflow(batch, channels, &rows) || __builtin_mul_overflow(rows, places, &all);
    need(!overflows && all == input.numel(), "input has N x C x HxW elements");
    need(channels % groups == 0, "C is a multiple of group");
}

static void of_size(const c10::IValue &tensor, int64_t size, const char *what) {
    need(!given(tensor) || tensor.toTensor().numel() == size, what);
}

void groups(Stack &arguments) {
    const int64_t channels = arguments[4].toInt();
    divided(arguments[0].toTensor(), arguments[3].toInt(), channels, arguments[5].toInt(),
            arguments[6].toInt());
    for (size_t i = 1; i < 3; i++)
        of_size(arguments[i], channels, "weight and bias have a number for each channel");
}

void groups_backward(Stack &arguments) {
    const at::Tensor &input = arguments[1].toTensor();
    const int64_t batch = arguments[5].toInt(), channels = arguments[6].toInt(),
                  groups = arguments[8].toInt();
    divided(input, batch, channels, arguments[7].toInt(), groups);
    of_size(arguments[0], input.numel(), "grad_out has the size of input");
    for (size_t i = 2; i < 4; i++)
        of_size(arguments[i], batch * groups, "mean and rstd have a number for each group of each input");
    of_size(arguments[4], channels, "weight has a number for each channel");
}

void layers_backward(Stack &arguments) {
    const at::Tensor &input = arguments[1].toTensor();
    const size_t normalized = arguments[2].toIntVector().size();
    if (normalized > input.sizes().size()) return;  // which the kernel refuses
    need(arguments[0].toTensor().sizes() == input.sizes(), "grad_out has the shape of input");
    const auto layers = input.sizes().slice(0, input.sizes().size() - normalized);
    for (size_t i = 3; i < 5; i++)
        of_size(arguments[i], c10::multiply_integers(layers), "mean and rstd have a number for each layer");
}

// ---- batches ---------------------------------------------------------------------------------------------

// What a batch norm's kernel would get as far as reading; others it refuses in its own words.
static bool is_normed(const at::Tensor &input) { return input.dim() > 1 && input.is_floating_point(); }

// Weight, bias and statistics: one number for each channel, or none of them.
static void of_channels(const Stack &arguments, const at::Tensor &input, size_t first, size_t last) {
    for (size_t i = first; i < last; i++)
        need(!given(arguments[i]) || arguments[i].toTensor().numel() == input.size(1),
             "weight, bias and statistics have a number for each channel");
}

void statistics(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    if (!is_normed(input)) return;
    of_channels(arguments, input, 1, 5);
    need(arguments[5].toBool() || (given(arguments[3]) && given(arguments[4])),
         "running_mean and running_var are needed where training is false");
}

void no_statistics(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    if (!is_normed(input)) return;
    of_channels(arguments, input, 1, 3);
    need(arguments[3].toBool(), "training is true where there is no running_mean");
}

void running_statistics(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    if (is_normed(input)) of_channels(arguments, input, 1, 3);
}

void statistics_in_use(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    if (is_normed(input)) of_channels(arguments, input, 1, 5);
}

void statistics_of_gradient(Stack &arguments) {
    const at::Tensor &input = arguments[1].toTensor();
    need(input.dim() > 1 && input.size(1) > 0, "input has channels");
    need(arguments[0].toTensor().sizes() == input.sizes(), "grad_out has the shape of input");
    of_channels(arguments, input, 2, 7);
    const size_t used = arguments[7].toBool() ? 5 : 3;
    need(given(arguments[used]) && given(arguments[used + 1]),
         "the saved statistics are needed where train is true, and the running ones where it is false");
}

// As `statistics_of_gradient`, by the number of the library that computed them, and in another order.
void statistics_by_index(Stack &arguments) {
    Stack same{arguments[2]};
    for (size_t i : {1, 3, 4, 5, 6, 7, 8}) same.push_back(arguments[i]);
    statistics_of_gradient(same);
}

void some_channels(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    need(input.dim() > 1 && input.numel() > 0, "input has channels, and elements");
}

void statistics_kept(Stack &arguments) {
    need(given(arguments[3]) && given(arguments[4]), "running_mean and running_var are needed");
    statistics_in_use(arguments);
}

// ---- weights ---------------------------------------------------------------------------------------------

static void norms(Stack &arguments) {
    const at::Tensor &weight = arguments[0].toTensor(), &norm = arguments[1].toTensor();
    const int64_t dim = arguments[2].toInt();
    need(dim >= 0 && dim < weight.dim(), "dim is one of v's dimensions");
    need(weight.numel() > 0 && norm.numel() >= weight.size(dim),
         "g has a number for each entry of v along dim");
}

// `_weight_norm` gives it no others.
void norms_of_rows(Stack &arguments) {
    for (size_t i = 0; i < 2; i++) arguments[i] = resolved(arguments[i].toTensor());
    norms(arguments);
    const at::Tensor &weight = arguments[0].toTensor(), &norm = arguments[1].toTensor();
    const int64_t dim = arguments[2].toInt();
    need(dim == 0 || dim == weight.dim() - 1, "dim is the first or the last of v's dimensions");
    need(norm.numel() == weight.size(dim), "g has a number for each entry of v along dim, and no more");
    need(weight.is_contiguous() && norm.is_contiguous(), "v and g are contiguous");
}

void norms_where_fused(Stack &arguments) {
    const at::Tensor &weight = arguments[0].toTensor();
    const int64_t dim = arguments[2].toInt();
    if (dim != 0 && dim != weight.dim() - 1) return;
    norms(arguments);
    need(arguments[1].toTensor().numel() == weight.size(dim),
         "g has a number for each entry of v along dim, and no more");
}

void norms_backward(Stack &arguments) {
    Stack rows{arguments[1], arguments[2], arguments[4]};
    norms_of_rows(rows);
    arguments[0] = resolved(arguments[0].toTensor());
    arguments[1] = rows[0], arguments[2] = rows[1];
    const at::Tensor &grad = arguments[0].toTensor(), &kept = arguments[3].toTensor();
    need(grad.sizes() == arguments[1].toTensor().sizes() && grad.is_contiguous(),
         "grad_w has the shape of saved_v, and is contiguous");
    need(kept.numel() == arguments[2].toTensor().numel() && kept.is_contiguous(),
         "saved_norms has a number for each entry of saved_g");
}

}  // namespace tenfold
