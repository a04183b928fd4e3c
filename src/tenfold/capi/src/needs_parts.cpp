// The checks of operators that are parts of others, which look at their arguments first: distances, solvers,
// quasirandom numbers, cells, convolutions, quantized weights.
#include <algorithm>

#include <ATen/ExpandUtils.h>
#include <ATen/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "internal.h"
#include "needs.h"
#include "needs_kinds.h"

namespace tenfold {
namespace {

bool is_matrix(const at::Tensor &tensor) { return tensor.dim() == 2; }

c10::IntArrayRef batches(const at::Tensor &matrices) { return matrices.sizes().slice(0, matrices.dim() - 2); }

}  // namespace

void whole_numbers(const at::Tensor &tensor, c10::IntArrayRef sizes, const char *what) {
    need(lies_in_memory(tensor) && tensor.scalar_type() == c10::kLong && tensor.sizes() == sizes, what);
}

// ---- distances and matrices ------------------------------------------------------------------------------

void distances(Stack &arguments) {
    const at::Tensor &grad = arguments[0].toTensor(), &x1 = arguments[1].toTensor(),
                     &x2 = arguments[2].toTensor(), &cdist = arguments[4].toTensor();
    need(x1.dim() >= 2 && x2.dim() >= 2 && x1.size(-1) == x2.size(-1), "x1 and x2 are rows of one length");
    auto sizes = at::infer_size(batches(x1), batches(x2));
    sizes.insert(sizes.end(), {x1.size(-2), x2.size(-2)});
    need(grad.sizes() == c10::IntArrayRef(sizes) && cdist.sizes() == c10::IntArrayRef(sizes),
         "grad and cdist have an entry for each row of x1 and each of x2");
}

// The gradient is written before the first row where there is none.
void rows_with_gradient(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor();
    const bool recorded = at::GradMode::is_enabled() && self.requires_grad();
    need(!recorded || self.dim() == 0 || self.size(0) > 0,
         "self has at least one row where a gradient is taken");
}

void contiguous_rows(Stack &arguments) {
    arguments[0] = resolved(arguments[0].toTensor());
    const at::Tensor &self = arguments[0].toTensor();
    need(is_matrix(self) && self.is_contiguous(), "self is a contiguous matrix");
    rows_with_gradient(arguments);
}

void distances_of_pairs(Stack &arguments) {
    const at::Tensor &self = arguments[1].toTensor();
    need(is_matrix(self) && self.is_contiguous(), "self is a contiguous matrix");
    const int64_t rows = self.size(0), pairs = rows * (rows - 1) / 2;
    need(rows > 0, "self has at least one row");
    const at::Tensor &grad = arguments[0].toTensor(), &pdist = arguments[3].toTensor();
    need(grad.dim() == 1 && pdist.dim() == 1 && grad.size(0) == pairs && pdist.size(0) == pairs &&
             pdist.is_contiguous(),
         "grad and pdist have an entry for each pair of rows");
}

void solved(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor(), &factor = arguments[1].toTensor();
    need(self.dim() >= 2 && factor.dim() >= 2 && batches(self) == batches(factor),
         "self and A are matrices, of the same batches");
    need(factor.size(-1) == factor.size(-2) && factor.size(-1) == self.size(-2),
         "A is square, with a row for each row of self");
}

// The kernel for sparse matrices writes as much as self has.
void solved_triangle(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor(), &triangle = arguments[1].toTensor();
    if (triangle.layout() == c10::kStrided) return;
    need(is_matrix(self) && is_matrix(triangle) && self.size(0) == triangle.size(0),
         "self has a row for each row of a sparse A");
    need(arguments.size() < 6 || arguments[5].toTensor().sizes() == self.sizes(), "X has the shape of self");
}

// The pivots of a factorization are followed, one for each step of it.
void pivots(Stack &arguments) {
    const at::Tensor &factors = arguments[0].toTensor(), &pivots = arguments[1].toTensor();
    const bool refused = factors.dim() < 2 || pivots.scalar_type() != c10::kInt || !pivots.is_contiguous();
    if (refused || !arguments[3].toBool()) return;  // by the kernel, or they are not read
    const int64_t steps = std::min(factors.size(-1), factors.size(-2));
    need(pivots.dim() == factors.dim() - 1 && pivots.size(-1) == steps &&
             pivots.sizes().slice(0, pivots.dim() - 1) == batches(factors),
         "LU_pivots has one for each row or column of LU_data, whichever are fewer");
}

void linear_weight(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor();
    need(!self.is_mkldnn() || (self.dim() > 1 && is_matrix(arguments[1].toTensor())),
         "weight is a matrix, and self has rows");
}

void combined(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor(), &coefficients = arguments[1].toTensor();
    need(input.dim() > 0 && is_matrix(coefficients) && coefficients.size(1) == input.size(0),
         "coefficients have a column for each entry of input");
    for (const c10::IValue &each : arguments)
        need(each.toTensor().scalar_type() == input.scalar_type(), "all tensors have the dtype of input");
    if (arguments.size() < 3) return;
    auto sizes = input.sizes().vec();
    sizes[0] = coefficients.size(0);
    need(arguments[2].toTensor().sizes() == c10::IntArrayRef(sizes),
         "out has an entry for each row of coefficients");
}

// The kernel writes as many elements as self has into both, one after another.
void noise_of_self(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor(), &noise = arguments[1].toTensor();
    need(!arguments[4].toBool() || (noise.sizes() == self.sizes() && noise.is_contiguous()),
         "noise is contiguous, and has the shape of self, where training is true");
    need(arguments.size() < 7 || arguments[6].toTensor().sizes() == self.sizes(),
         "out has the shape of self");
}

void running_extremes(Stack &arguments) {
    const at::Tensor &self = arguments[0].toTensor(), &values = arguments[1].toTensor(),
                     &indices = arguments[2].toTensor();
    const int64_t dim = arguments[3].toInt();
    need(values.sizes() == self.sizes() && indices.sizes() == self.sizes(),
         "values and indices have the shape of self");
    need(dim >= 0 && dim < std::max<int64_t>(self.dim(), 1), "dim is one of self's, and not negative");
    need(self.numel() > 0, "self has elements");
}

// ---- quasirandom numbers ---------------------------------------------------------------------------------

namespace {

constexpr int64_t bits = 30, most_dimensions = 21201;  // of Sobol's sequences, as libtorch has them

void sobol_state(const at::Tensor &state, int64_t dimension) {
    need(dimension > 0 && dimension <= most_dimensions, "dimension is 1 to 21201");
    whole_numbers(state, {dimension, bits}, "sobolstate has 30 integers of 64 bits for each dimension");
}

}  // namespace

void sobol_begun(Stack &arguments) { sobol_state(arguments[0].toTensor(), arguments[1].toInt()); }

void sobol_scrambled(Stack &arguments) {
    const int64_t dimension = arguments[2].toInt();
    sobol_state(arguments[0].toTensor(), dimension);
    whole_numbers(arguments[1].toTensor(), {dimension, bits, bits}, "ltm has 30 x 30 of them for each");
}

void sobol_drawn(Stack &arguments) {
    const int64_t count = arguments[1].toInt(), dimension = arguments[3].toInt(),
                  before = arguments[4].toInt();
    constexpr int64_t all = int64_t{1} << bits;
    sobol_state(arguments[2].toTensor(), dimension);
    whole_numbers(arguments[0].toTensor(), {dimension}, "quasi has an integer of 64 bits for each dimension");
    need(count >= 0 && before >= 0 && count <= all && before <= all - count,
         "n and num_generated are not negative, and no more than 2^30 together");
}

// ---- cells and projections -------------------------------------------------------------------------------

namespace {

// What a cell's gates are computed from: rows of all gates, and a hidden state for each.
void gates_fit(const at::Tensor &input, const at::Tensor &hidden, const at::Tensor &state, int64_t gates) {
    need(is_matrix(input) && input.sizes() == hidden.sizes(),
         "input_gates and hidden_gates are of one shape");
    need(is_matrix(state) && state.size(0) == input.size(0) && state.size(1) * gates == input.size(1),
         "a state has a row for each of the gates, and an entry for each of its sets of gates");
}

void biases_fit(const c10::IValue &bias, const at::Tensor &rows) {
    need(!given(bias) || bias.toTensor().sizes() == rows.sizes().slice(1),
         "a bias has an entry for each gate");
}

void state_fits(const c10::IValue &gradient, const at::Tensor &state) {
    need(!given(gradient) || gradient.toTensor().sizes() == state.sizes(),
         "a gradient has its state's shape");
}

}  // namespace

void gru_cell_backward(Stack &arguments) {
    const at::Tensor &gates = arguments[1].toTensor(), &state = arguments[3].toTensor();
    gates_fit(gates, arguments[2].toTensor(), state, 3);
    state_fits(arguments[0], state);
    need(given(arguments[4]) == given(arguments[5]), "there are both biases, or none");
    for (size_t i = 4; i < 6; i++) biases_fit(arguments[i], gates);
}

void lstm_cell_backward(Stack &arguments) {
    const at::Tensor &gates = arguments[2].toTensor(), &state = arguments[6].toTensor();
    gates_fit(gates, arguments[3].toTensor(), state, 4);
    for (size_t i : {0, 1, 7}) state_fits(arguments[i], state);
    for (size_t i : {4, 5}) biases_fit(arguments[i], gates);
}

void state_and_cells(Stack &arguments) {
    need(arguments[1].toListRef().size() == 2, "hx has the state and that of the cells");
}

void rescaled_heads(Stack &arguments) {
    const at::Tensor &qkv = arguments[0].toTensor(), &bias = arguments[1].toTensor();
    const int64_t heads = arguments[2].toInt();
    need(qkv.layout() == c10::kStrided && !qkv.is_nested() && qkv.dim() == 3 && qkv.numel() > 0 &&
             heads > 0 && qkv.size(2) % 3 == 0 && qkv.size(2) / 3 % heads == 0,
         "qkv has three dimensions, the last of three times as many entries for each of the heads");
    need(bias.dim() == 1 && bias.size(0) == qkv.size(2), "qkv_bias has an entry for each of qkv's last");
}

// ---- layers of other libraries ---------------------------------------------------------------------------

void convolved_images(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor(), &weight = arguments[1].toTensor();
    const auto padding = arguments[3].toIntVector(), stride = arguments[4].toIntVector();
    need(input.dim() == 4 && weight.dim() == 4 && input.size(1) == weight.size(1) && input.numel() > 0 &&
             weight.numel() > 0,
         "input and weight have four dimensions, and the same channels");
    for (const at::Tensor *each : {&input, &weight})
        need(lies_in_memory(*each) && each->scalar_type() == c10::kFloat, "input and weight are of float32");
    need(!given(arguments[2]) || (arguments[2].toTensor().scalar_type() == c10::kFloat &&
                                  arguments[2].toTensor().sizes() == weight.sizes().slice(0, 1)),
         "bias has a float32 for each channel of the output");
    for (size_t i = 0; i < 2; i++)
        need(padding[i] >= 0 && padding[i] < (1 << 20) && stride[i] > 0 && stride[i] < (1 << 20) &&
                 input.size(i + 2) + 2 * padding[i] >= weight.size(i + 2),
             "stride is positive, padding not negative, and weight no larger than what it is moved over");
}

// cuDNN's, and the gradients of gradients: lists have an entry for each dimension that is convolved.
template <size_t input, size_t weight>
void convolved_dims(Stack &arguments) {
    const int64_t rank = arguments[input].toTensor().dim();
    need(rank > 2 && arguments[weight].toTensor().dim() == rank,
         "input and weight have as many dimensions, at least three");
    for (const c10::IValue &each : arguments) {
        need(!each.isIntList() || each.toIntVector().size() == static_cast<size_t>(rank) - 2,
             "stride, padding, dilation and output_padding have an entry for each dimension that is "
             "convolved");
        need(!each.isInt() || each.toInt() > 0, "groups is a positive number");
    }
}
template void convolved_dims<0, 1>(Stack &);
template void convolved_dims<5, 4>(Stack &);

// oneDNN's LSTM, one layer in one direction.
void lstm_layer(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    const int64_t hidden = arguments[10].toInt();
    need(arguments[9].toInt() == 2 && arguments[8].toIntVector().empty(),
         "mode is 2, an LSTM, of no batch_sizes");
    need(input.dim() == 3 && input.numel() > 0 && hidden > 0 && hidden < (1 << 28),
         "input has steps, sequences and features, and hidden_size is positive");
    for (size_t i = 0; i < 7; i++)
        need(lies_in_memory(arguments[i].toTensor()) &&
                 arguments[i].toTensor().scalar_type() == input.scalar_type(),
             "all tensors have the dtype of input");
    const int64_t gates = 4 * hidden, batch = input.size(arguments[14].toBool() ? 0 : 1);
    need(arguments[1].toTensor().sizes() == c10::IntArrayRef({gates, input.size(2)}) &&
             arguments[2].toTensor().sizes() == c10::IntArrayRef({gates, hidden}) &&
             arguments[3].toTensor().sizes() == c10::IntArrayRef({gates}) &&
             arguments[4].toTensor().sizes() == c10::IntArrayRef({gates}),
         "weights fit the input and hidden_size");
    for (size_t i = 5; i < 7; i++)
        need(arguments[i].toTensor().numel() == batch * hidden, "hx_ and cx_ have a state for each sequence");
}

void nothing_fits(Stack &) {
    fail(
        TN_ERROR_ARGUMENT,
        "its workspace is memory of oneDNN's own, which nobody can check: take the gradient of lstm instead");
}

// FBGEMM follows the pointers of all tensors, of those without memory too.
void elements_in_memory(Stack &arguments) {
    for (c10::IValue &each : arguments) {
        if (!given(each)) continue;
        each = resolved(each.toTensor());
        need(lies_in_memory(each.toTensor()) && each.toTensor().numel() > 0,
             "all tensors have memory, and elements");
    }
}

void no_address(Stack &) {
    fail(TN_ERROR_ARGUMENT,
         "it gives an object's address as the bytes of a tensor, which any write would break: "
         "quantized::linear_prepack gives the object itself");
}

// ---- quantized weights -----------------------------------------------------------------------------------

namespace {

// How many numbers weights of four bits have: pairs of them, and a scale for each block of a row.
int64_t packed_size(int64_t block, int64_t inputs, int64_t outputs) {
    need(block > 0 && inputs > 0 && outputs > 0 && inputs < (1 << 30) && outputs < (1 << 30),
         "block_size, in_features and out_features are positive");
    need(inputs % 2 == 0 && inputs % block == 0, "in_features is even, and a multiple of block_size");
    return outputs * (inputs / 2 + inputs / block);
}

}  // namespace

void weights_to_pack(Stack &arguments) {
    const int64_t inputs = arguments[4].toInt(), outputs = arguments[5].toInt();
    const int64_t all = packed_size(arguments[3].toInt(), inputs, outputs), pairs = outputs * (inputs / 2);
    need(arguments[0].toTensor().numel() == pairs && arguments[1].toTensor().numel() == all - pairs,
         "weights have a byte for two entries, and scales_zeros a number for each block");
    need(!given(arguments[2]) || arguments[2].toTensor().numel() == outputs,
         "bias has a number for each output");
}

void packed_weights(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor(), &packed = arguments[1].toTensor();
    const int64_t inputs = arguments[3].toInt(), outputs = arguments[4].toInt();
    const int64_t all = packed_size(arguments[2].toInt(), inputs, outputs);
    need(is_matrix(input) && input.size(1) == inputs, "inp has rows of in_features");
    need(packed.is_contiguous() && (packed.numel() == all || packed.numel() == all + outputs),
         "packed_weights are what was packed for these sizes");
}

// The kernel narrows the range by steps, of which there may be no end.
void quantized_range(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    const int64_t bins = arguments[2].toInt(), width = arguments[4].toInt();
    const double ratio = arguments[3].toDouble();
    need(arguments[1].toInt() >= 0 && arguments[1].toInt() <= input.numel(),
         "numel is no more than input has");
    need(bins > 0 && bins <= (1 << 20) && ratio >= 0 && ratio <= 1 && width > 0 && width <= 8,
         "n_bins is 1 to 2^20, ratio 0 to 1, bit_width 1 to 8");
    finite(arguments);
}

}  // namespace tenfold
