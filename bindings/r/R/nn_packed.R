# Sequences of different lengths, packed: the first elements of all, then the second of those that have one, and so on.

packed_sequence <- function(data, batch_sizes, sorted_indices = NULL, unsorted_indices = NULL) {
  structure(list(data = data, batch_sizes = batch_sizes, sorted_indices = sorted_indices,
                 unsorted_indices = unsorted_indices), class = "packed_sequence")
}

is_packed_sequence <- function(x) inherits(x, "packed_sequence")

with_data <- function(packed, data) {
  packed_sequence(data, packed$batch_sizes, packed$sorted_indices, packed$unsorted_indices)
}

# Hidden states, or a list of them, whose second dimension is in another order.
in_order_of <- function(hx, indices) {
  if (is.null(indices)) return(hx)
  if (is_torch_tensor(hx)) torch_index_select(hx, 2, indices) else lapply(hx, torch_index_select, 2, indices)
}

nn_utils_rnn_pack_padded_sequence <- function(input, lengths, batch_first = FALSE, enforce_sorted = TRUE) {
  lengths <- torch_to(as_tensor(lengths), dtype = torch_int64(), device = "cpu")
  sorted_indices <- unsorted_indices <- NULL
  if (!enforce_sorted) {
    sorted <- torch_sort(lengths, descending = TRUE)
    lengths <- sorted[[1]]
    sorted_indices <- torch_to(sorted[[2]], device = input$device)
    unsorted_indices <- torch_argsort(sorted_indices)
    input <- torch_index_select(input, if (batch_first) 1 else 2, sorted_indices)
  }
  found <- tenfold_call("aten::_pack_padded_sequence", input, lengths, batch_first)
  packed_sequence(found[[1]], found[[2]], sorted_indices, unsorted_indices)
}

nn_utils_rnn_pack_sequence <- function(sequences, enforce_sorted = TRUE) {
  lengths <- vapply(sequences, function(each) dim(each)[1], 0)
  nn_utils_rnn_pack_padded_sequence(nn_utils_rnn_pad_sequence(sequences), lengths, enforce_sorted = enforce_sorted)
}

# The padded sequences and, in a second tensor, their lengths.
nn_utils_rnn_pad_packed_sequence <- function(sequence, batch_first = FALSE, padding_value = 0, total_length = NULL) {
  if (!is_packed_sequence(sequence)) refuse("packed sequences are needed", kind = "TYPE")
  found <- tenfold_call("aten::_pad_packed_sequence", sequence$data, sequence$batch_sizes, batch_first,
                        as.numeric(padding_value), if (is.null(total_length)) -1L else as.integer(total_length))
  if (is.null(sequence$unsorted_indices)) return(found)
  list(torch_index_select(found[[1]], if (batch_first) 1 else 2, sequence$unsorted_indices),
       torch_index_select(found[[2]], 1, torch_to(sequence$unsorted_indices, device = "cpu")))
}

print.packed_sequence <- function(x, ...) {
  cat("<packed_sequence of ", as.numeric(x$batch_sizes[1]), " sequences, ", dim(x$data)[1], " elements>\n", sep = "")
  invisible(x)
}
