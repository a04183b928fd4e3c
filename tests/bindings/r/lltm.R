# The example package whose C++ links libtorch: an LLTM with a gradient of its own, functions called by their stack.
library(tenfold)
library(tenfoldlltm)

torch_manual_seed(1)
cell <- lltm(3, 2)
x <- torch_randn(4, 3, requires_grad = TRUE)
state <- list(torch_randn(4, 2), torch_randn(4, 2))
found <- cell(x, state)
written_out <- function(x, hidden, cell_state, weight, bias) {
  gates <- torch_matmul(torch_cat(list(hidden, x), 2), weight$t()) + bias
  parts <- torch_chunk(gates, 3, 2)
  new_cell <- cell_state + nnf_elu(parts[[3]]) * torch_sigmoid(parts[[1]])
  list(torch_tanh(new_cell) * torch_sigmoid(parts[[2]]), new_cell)
}
expected <- written_out(x, state[[1]], state[[2]], cell$weight, cell$bias)
stopifnot(torch_allclose(found[[1]], expected[[1]]), torch_allclose(found[[2]], expected[[2]]))
wanted <- c(list(x), unname(cell$parameters))
ours <- autograd_grad((found[[1]] + found[[2]]^2)$sum(), wanted)
theirs <- autograd_grad((expected[[1]] + expected[[2]]^2)$sum(), wanted)
for (i in seq_along(wanted)) stopifnot(torch_allclose(ours[[i]], theirs[[i]], atol = 1e-6))

relu <- jit_trace(function(x, y) list(torch_relu(x), x + y), torch_randn(3), torch_randn(3))
found <- run_graph_function(relu, list(torch_tensor(c(-1, 2, 3)), torch_ones(3)))
stopifnot(as_array(found[[1]][[1]]) == c(0, 2, 3), as_array(found[[1]][[2]]) == c(0, 3, 4))
network <- nn_sequential(nn_linear(2, 3), nn_tanh())
input <- torch_randn(4, 2)
stopifnot(torch_allclose(run_graph_function(jit_trace(network, input), list(input))[[1]], network(input)))

doubled <- compiled_function("def doubled(x, by: int = 2):\n  return x * by")
stopifnot(inherits(doubled, "script_function"), as_array(doubled(torch_ones(2))) == 2, as_array(doubled(torch_ones(2), 3L)) == 3)
again <- jit_unserialize(jit_serialize(doubled))
stopifnot(as_array(again(torch_ones(1))) == 2, as_array(run_graph_function(doubled, list(torch_ones(1)))[[1]]) == 2)
rm(again)

told <- function(code) tryCatch(code, error = identity)
rm(found, expected, ours, theirs)
invisible(gc())
before <- tenfold_memory()
for (i in 1:30) {
  failed <- told(lltm_step(torch_ones(1, 3), torch_ones(6, 9), torch_zeros(6), torch_zeros(1, 2), torch_zeros(1, 2)))
  stopifnot(inherits(failed, "tenfold_error"), grepl("shapes cannot be multiplied", conditionMessage(failed)))
  stopifnot(failed$name == "TN_ERROR_TORCH", !grepl("Exception raised from", conditionMessage(failed))) # no C++ backtrace
  stopifnot(inherits(told(lltm_step(1, 2, 3, 4, 5)), "type_error"), inherits(told(run_graph_function(relu, list(1))), "error"))
  stopifnot(inherits(told(run_graph_function(relu, 1)), "type_error"))
  stopifnot(grepl("expected", conditionMessage(told(compiled_function("def f(")))), inherits(told(compiled_function(1)), "type_error"))
}
invisible(gc())
stopifnot(identical(tenfold_memory()[c("tensors", "objects")], before[c("tensors", "objects")]))
cat("fine")
