# Each function hands its arguments to C++, as R has them.

# Call what jit_trace gave with the entries of a list().
run_script_function <- function(fn, inputs) .Call(C_run_script_function, fn, inputs)

# A method of a script module as a script function of its own.
script_method <- function(module, name) .Call(C_script_method, module, name)

# One step of an LLTM: an LSTM without a forget gate, whose new state is a list of the hidden one and the cell.
lltm_cell <- function(input, weight, bias, hidden, cell) .Call(C_lltm_cell, input, weight, bias, hidden, cell)

# Any value that libtorch has as one of libtorch's, and back; a script function or module as another of the same.
there_and_back <- function(x) .Call(C_there_and_back, x)

# The sum of a tensor and of what an R function makes of it.
map_tensor <- function(x, fn) .Call(C_map_tensor, x, fn)
