# An LLTM as a module of tenfold, whose step is C++ over libtorch.

# One step: a list of the new hidden state and the new cell, with a gradient that C++ computes.
lltm_step <- function(input, weight, bias, hidden, cell) .Call(C_lltm_step, input, weight, bias, hidden, cell)

lltm <- nn_module(
  "lltm",
  initialize = function(input_features, state_size) {
    bound <- 1 / sqrt(state_size)
    uniform <- function(...) nn_parameter((torch_rand(...) * 2 - 1) * bound)
    self$weight <- uniform(3 * state_size, input_features + state_size)
    self$bias <- uniform(1, 3 * state_size)
  },
  forward = function(input, state) lltm_step(input, self$weight, self$bias, state[[1]], state[[2]])
)

# Call what jit_trace gave, by its GraphFunction and a Stack, with the entries of a list().
run_graph_function <- function(fn, inputs) .Call(C_run_graph_function, fn, inputs)

# A script function from TorchScript's source, which libtorch compiles in C++.
compiled_function <- function(source) .Call(C_compiled_function, source)
