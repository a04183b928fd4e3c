// The kinds of needs that operators have, by the files that check them; `needs.cpp` says which operator has
// which.
#pragma once

#include <ATen/core/stack.h>

namespace tenfold {

using torch::jit::Stack;

// needs_norms.cpp
void groups(Stack &arguments);
void groups_backward(Stack &arguments);
void layers_backward(Stack &arguments);
void statistics(Stack &arguments);  // of batches: running ones, where there is no training
void no_statistics(Stack &arguments);
void running_statistics(Stack &arguments);
void statistics_in_use(Stack &arguments);
void statistics_of_gradient(Stack &arguments);
void statistics_by_index(Stack &arguments);
void statistics_kept(Stack &arguments);
void some_channels(Stack &arguments);
void norms_of_rows(Stack &arguments);  // of weights
void norms_where_fused(Stack &arguments);
void norms_backward(Stack &arguments);

// needs_gradients.cpp
void same_shapes(Stack &arguments);
void shapes_of_gelu(Stack &arguments);
template <int64_t pooled>  // how many dimensions are
void same_channels(Stack &arguments);
void unfolded(Stack &arguments);
void whole_beta(Stack &arguments);
void attention(Stack &arguments);
void attention_backward(Stack &arguments);
template <size_t place>  // of the argument that says so
void grouped_heads(Stack &arguments);

// needs_recurrent.cpp
void padded_steps(Stack &arguments);
void padded_steps_backward(Stack &arguments);
template <int64_t gates, bool packed>
void recurrent(Stack &arguments);

// needs_indices.cpp
void indices_of_weights(Stack &arguments);  // embeddings
void bags(Stack &arguments);                // and sums of some
template <size_t pooled, size_t indices>    // how many dimensions are, and which argument has the indices
void indices_of_pooling(Stack &arguments);
void classes_of_targets(Stack &arguments);  // negative log likelihoods, backward
void labels_of_targets(Stack &arguments);   // CTC
void labels_backward(Stack &arguments);
void grid_with_gradient(Stack &arguments);  // grid samplers: here the indices are computed from a tensor
void grid_backward(Stack &arguments);
void compressed_rows(Stack &arguments);  // of sparse matrices
template <size_t factors, size_t pivots>
void pivots_of_rows(Stack &arguments);
void rows_to_compress(Stack &arguments);
void segments(Stack &arguments);
void segments_backward(Stack &arguments);

// needs_sizes.cpp
// A tensor whose memory is what it says: libtorch keeps some that are to be conjugated, negated or zeros, and
// gives kernels one zero, repeated, for those.
at::Tensor resolved(const at::Tensor &tensor);
void within_storage(Stack &arguments);  // views of what lies there
void within_storage_copied(Stack &arguments);
void new_size(Stack &arguments);         // self, and what is written, take a size
void size_of_another(Stack &arguments);  // or that of a tensor
template <int sides>                     // how far images are looked at around each place
void scales_of_sizes(Stack &arguments);
void source_with_memory(Stack &arguments);
void batch_dims(Stack &arguments);
void no_lazy_copy(Stack &arguments);
void no_vmap(Stack &arguments);
void compressed_dims(Stack &arguments);
void some_batches(Stack &arguments);
void all_strided(Stack &arguments);
void strided(Stack &arguments);
void one_device(Stack &arguments);
void rows_on_one_device(Stack &arguments);
void out_in_memory(Stack &arguments);
void shape_in_memory(Stack &arguments);
void rows_to_write(Stack &arguments);
void dtype_of_self(Stack &arguments);
void unrepeated(Stack &arguments);
void some_tensors(Stack &arguments);
void chunked_dim(Stack &arguments);
void transformed_dims(Stack &arguments);  // of Fourier transforms
void some_dims(Stack &arguments);
void half_of_last_dim(Stack &arguments);

// needs_parts.cpp: of operators that are parts of others
// Integers of 64 bits in memory, of these sizes.
void whole_numbers(const at::Tensor &tensor, c10::IntArrayRef sizes, const char *what);
void distances(Stack &arguments);
void rows_with_gradient(Stack &arguments);
void contiguous_rows(Stack &arguments);
void distances_of_pairs(Stack &arguments);
void solved(Stack &arguments);
void solved_triangle(Stack &arguments);
void pivots(Stack &arguments);
void linear_weight(Stack &arguments);
void combined(Stack &arguments);
void noise_of_self(Stack &arguments);
void running_extremes(Stack &arguments);
void sobol_begun(Stack &arguments);
void sobol_scrambled(Stack &arguments);
void sobol_drawn(Stack &arguments);
void gru_cell_backward(Stack &arguments);
void lstm_cell_backward(Stack &arguments);
void state_and_cells(Stack &arguments);
void rescaled_heads(Stack &arguments);
void convolved_images(Stack &arguments);
template <size_t input, size_t weight>
void convolved_dims(Stack &arguments);
void lstm_layer(Stack &arguments);
void nothing_fits(Stack &arguments);  // that could be checked
void no_address(Stack &arguments);
void elements_in_memory(Stack &arguments);
void weights_to_pack(Stack &arguments);
void packed_weights(Stack &arguments);
void quantized_range(Stack &arguments);

// needs_lists.cpp
void nested_sizes(Stack &arguments);
void padded_sizes(Stack &arguments);
void ellipsis(Stack &arguments);
void jagged(Stack &arguments);
void copied_lists(Stack &arguments);
void powers_of_lists(Stack &arguments);
void lists_of_one_length(Stack &arguments);
void fused_step(Stack &arguments);

// needs_numbers.cpp
void whole_step(Stack &arguments);
void whole_step_into(Stack &arguments);
void counted(Stack &arguments);
void counted_into(Stack &arguments);
void absolute_power(Stack &arguments);
void no_overflow(Stack &arguments);
void complex_as_self(Stack &arguments);
void next_number(Stack &arguments);
void finite(Stack &arguments);

}  // namespace tenfold
