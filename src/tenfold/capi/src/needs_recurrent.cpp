// The checks of recurrent layers, whose weights kernels take to fit the input and the hidden state.
#include <ATen/Tensor.h>

#include "internal.h"
#include "needs.h"
#include "needs_kinds.h"

namespace tenfold {
namespace {

struct Layers {
    int64_t gates, inputs, hidden, projected;  // sizes; without a projection the last two are one
    int64_t count, directions;
    bool biases;
};

void weights_fit(const Layers &layers, const std::vector<at::Tensor> &weights) {
    const bool projects = layers.projected != layers.hidden;
    const size_t each = 2 + (layers.biases ? 2 : 0) + (projects ? 1 : 0);
    need(weights.size() == each * static_cast<size_t>(layers.count * layers.directions),
         "params has the weights of each layer and each direction");
    const int64_t rows = layers.gates * layers.hidden;
    for (size_t i = 0; i < weights.size(); i += each) {
        const bool first = i < each * static_cast<size_t>(layers.directions);
        const int64_t inputs = first ? layers.inputs : layers.projected * layers.directions;
        bool fit = weights[i].sizes() == c10::IntArrayRef({rows, inputs}) &&
                   weights[i + 1].sizes() == c10::IntArrayRef({rows, layers.projected});
        for (size_t k = 2; layers.biases && k < 4; k++)
            fit = fit && weights[i + k].sizes() == c10::IntArrayRef({rows});
        if (projects)
            fit = fit && weights[i + each - 1].sizes() == c10::IntArrayRef({layers.projected, layers.hidden});
        need(fit, "params fit the input and the hidden state");
    }
}

// How many of the sequences go on at each step: never more than at the one before.
void steps_fit(const at::Tensor &data, const at::Tensor &sizes, int64_t batch) {
    need(lies_in_memory(sizes) && sizes.dim() == 1 && sizes.scalar_type() == c10::kLong && sizes.size(0) > 0,
         "batch_sizes are integers of 64 bits, of one dimension");
    const at::Tensor steps = sizes.contiguous();
    const int64_t *size = steps.const_data_ptr<int64_t>();
    int64_t all = 0, most = batch;
    for (int64_t i = 0; i < steps.size(0); i++) {
        need(size[i] > 0 && size[i] <= most, "batch_sizes are positive, and do not grow");
        all += most = size[i];
    }
    need(size[0] == batch && all == data.size(0), "batch_sizes add up to the data, from all sequences on");
}

// As many sequences as go on at the first step.
int64_t sequences(const at::Tensor &sizes) {
    need(lies_in_memory(sizes) && sizes.scalar_type() == c10::kLong && sizes.dim() == 1 && sizes.size(0) > 0,
         "batch_sizes are integers of 64 bits, of one dimension");
    return sizes[0].item<int64_t>();
}

}  // namespace

void padded_steps(Stack &arguments) {
    const at::Tensor &data = arguments[0].toTensor(), &sizes = arguments[1].toTensor();
    need(data.dim() > 0, "data has a dimension of steps");
    steps_fit(data, sizes, sequences(sizes));
}

void padded_steps_backward(Stack &arguments) {
    const at::Tensor &grad = arguments[0].toTensor(), &sizes = arguments[2].toTensor();
    const auto input = arguments[1].toIntVector();
    need(grad.dim() > 0 && input.size() > 1,
         "grad has a dimension of steps, and input_size those and sequences");
    const int64_t batch = sequences(sizes);
    steps_fit(grad, sizes, batch);
    const bool batch_first = arguments[3].toBool();
    need(input[batch_first ? 0 : 1] >= batch && input[batch_first ? 1 : 0] >= sizes.size(0),
         "input_size has room for the steps and the sequences of batch_sizes");
}

template <int64_t gates, bool packed>
void recurrent(Stack &arguments) {
    const at::Tensor &input = arguments[0].toTensor();
    constexpr size_t hidden = packed ? 2 : 1;
    const c10::IValue &given_states = arguments[hidden];
    const auto states = given_states.isTensor() ? std::vector<at::Tensor>{given_states.toTensor()}
                                                : given_states.toTensorVector();
    need(states.size() == (gates == 4 ? 2 : 1), "hx has the state, and for an LSTM that of its cells");
    const int64_t count = arguments[hidden + 3].toInt(), directions = arguments[hidden + 6].toBool() ? 2 : 1;
    need(count > 0 && count < (1 << 20), "num_layers is a positive number");
    need(input.dim() == (packed ? 2 : 3), "input has steps, sequences and features");
    for (const at::Tensor &each : states)
        need(each.dim() == 3 && each.size(0) == count * directions && each.size(1) == states[0].size(1),
             "hx has a state of each layer, each direction and each sequence");
    const int64_t batch = states[0].size(1);
    if constexpr (packed) steps_fit(input, arguments[1].toTensor(), batch);
    else need(input.size(arguments[8].toBool() ? 0 : 1) == batch, "hx has as many sequences as input");
    weights_fit({gates, input.size(-1), states.back().size(2), states[0].size(2), count, directions,
                 arguments[hidden + 2].toBool()},
                arguments[hidden + 1].toTensorVector());
}
template void recurrent<1, false>(Stack &);
template void recurrent<3, false>(Stack &);
template void recurrent<4, false>(Stack &);
template void recurrent<1, true>(Stack &);
template void recurrent<3, true>(Stack &);
template void recurrent<4, true>(Stack &);

}  // namespace tenfold
