// The needs of operators whose kernels read or write where an index of theirs points, without looking.
#pragma once

#include <ATen/core/stack.h>

namespace tenfold {

void indices_of_weights(torch::jit::Stack &arguments);  // embeddings
template <size_t pooled, size_t indices>                // how many dimensions are pooled, and which argument has the indices
void indices_of_pooling(torch::jit::Stack &arguments);
void classes_of_targets(torch::jit::Stack &arguments);  // negative log likelihoods, backward
void labels_of_targets(torch::jit::Stack &arguments);   // CTC
void labels_backward(torch::jit::Stack &arguments);
void grid_with_gradient(torch::jit::Stack &arguments);  // grid samplers: here the indices are computed from a tensor
void segments(torch::jit::Stack &arguments);
void segments_backward(torch::jit::Stack &arguments);

}  // namespace tenfold
