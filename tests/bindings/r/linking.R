# The example package that links to tenfold: functions and lists called from its C++, errors from both sides, nothing left.
library(tenfold)
library(tenfoldlinking)

relu <- jit_trace(function(x, y) list(torch_relu(x), x + y), torch_randn(3), torch_randn(3))
found <- run_script_function(relu, list(torch_tensor(c(-1, 2, 3)), torch_ones(3)))
stopifnot(length(found) == 1, as_array(found[[1]][[1]]) == c(0, 2, 3), as_array(found[[1]][[2]]) == c(0, 3, 4))
network <- nn_sequential(nn_linear(2, 3), nn_tanh())
x <- torch_randn(4, 2)
traced <- jit_trace(network, x)
stopifnot(torch_allclose(run_script_function(traced, list(x))[[1]], network(x)))

value <- list(1L, 2.5, "text", TRUE, NULL, list(a = torch_ones(2)), c(1, 2, 3))
back <- there_and_back(value)
stopifnot(identical(back[1:5], value[1:5]), as_array(back[[6]]$a) == c(1, 1), identical(back[[7]], c(1, 2, 3)))

# Script functions and modules are handed to C++ and back, as they are.
same <- there_and_back(relu)
stopifnot(inherits(same, "script_function"), as_array(same(torch_tensor(-1), torch_ones(1))[[1]]) == 0)
same <- there_and_back(traced)
stopifnot(class(same) == "script_module", names(same$parameters) == names(traced$parameters), torch_allclose(same(x), network(x)))
with_no_grad(same$parameters[[1]]$zero_())
stopifnot(as_array(network$parameters[[1]]) == 0) # the same tensors
scaled <- nn_module(initialize = function() self$w <- nn_parameter(torch_tensor(3)), forward = function(x) x * self$w,
                    shifted = function(x, by) x * self$w + by)()
one <- torch_ones(1)
traced <- jit_trace_module(scaled, forward = list(one), shifted = list(one, one))
shifted <- script_method(traced, "shifted")
close(traced) # C++ and R have handles of their own
stopifnot(as_array(shifted(torch_tensor(2), one)) == 7, as_array(run_script_function(shifted, list(one, one))[[1]]) == 4)
again <- jit_unserialize(jit_serialize(shifted))
stopifnot(as_array(again(torch_tensor(2), one)) == 7)
rm(same, traced, shifted, again)

weight <- torch_randn(6, 5)$requires_grad_()
state <- lltm_cell(torch_randn(1, 3), weight, torch_zeros(6), torch_zeros(1, 2), torch_zeros(1, 2))
state[[1]]$sum()$backward()
stopifnot(dim(state[[1]]) == c(1, 2), dim(weight$grad) == c(6, 5))
stopifnot(as_array(map_tensor(torch_ones(2), function(x) x * 2)) == c(3, 3))

told <- function(code) tryCatch(code, error = identity)
invisible(gc())
before <- tenfold_memory()
for (i in 1:50) {
  failed <- told(lltm_cell(torch_ones(1, 3), torch_ones(6, 9), torch_zeros(6), torch_zeros(1, 2), torch_zeros(1, 2)))
  stopifnot(inherits(failed, "tenfold_error"), failed$name == "TN_ERROR_TORCH", !grepl("^tn_", conditionMessage(failed)))
  stopifnot(conditionMessage(told(map_tensor(torch_ones(2), function(x) stop("by R")))) == "by R")
  stopifnot(inherits(told(map_tensor(torch_ones(2), function(x) "no tensor")), "type_error"))
  stopifnot(inherits(told(run_script_function(relu, list(1))), "tenfold_error"), inherits(told(run_script_function(relu, 1)), "type_error"))
  stopifnot(inherits(told(run_script_function(identity, list())), "type_error"), inherits(told(there_and_back(factor("a"))), "type_error"))
  stopifnot(told(script_method(relu, "absent"))$name == "TN_ERROR_NOT_FOUND", inherits(told(script_method(relu, 1)), "type_error"))
}
invisible(gc())
stopifnot(identical(tenfold_memory()[c("tensors", "objects")], before[c("tensors", "objects")]))
cat("fine")
