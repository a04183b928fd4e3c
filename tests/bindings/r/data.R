library(tenfold)
squares <- dataset("squares",
  initialize = function(n) self$n <- n,
  .getitem = function(i) list(x = torch_tensor(c(i, i)), y = i^2),
  .length = function() self$n
)
samples <- squares(10)
loader <- dataloader(samples, batch_size = 4)
seen <- numeric()
loop(for (batch in loader) {
  if (length(seen) == 4) {
    seen <- c(seen, NA)
    next
  }
  seen <- c(seen, as_array(batch$y))
})
stopifnot(identical(seen, c(1, 4, 9, 16, NA, 81, 100)), length(loader) == 3)
iter <- dataloader_make_iter(dataloader(samples, batch_size = 10, shuffle = TRUE))
stopifnot(identical(sort(as_array(dataloader_next(iter)$x)[, 2]), 1:10), is.null(dataloader_next(iter)))
pairs <- tensor_dataset(torch_arange(1, 6), torch_arange(1L, 6L))
stopifnot(identical(as_array(dataset_subset(pairs, c(2, 4))[2][[2]]), 4L), length(enumerate(dataloader(pairs, 4, drop_last = TRUE))) == 1)
stopifnot(inherits(tryCatch(samples[11], error = identity), "index_error"))

path <- tempfile(fileext = ".pt")
network <- nn_sequential(nn_linear(2, 3), nn_batch_norm1d(3))
network[[1]]$bias$requires_grad_(FALSE)
torch_save(list(1, "text", network = network, weight = network[[1]]$weight), path)
loaded <- torch_load(path)
x <- torch_ones(4, 2)
stopifnot(loaded[[2]] == "text", torch_equal(loaded$network(x), network(x)), torch_equal(loaded$weight, network[[1]]$weight))
stopifnot(!loaded$network[[1]]$bias$requires_grad, loaded$network[[1]]$weight$requires_grad, length(loaded$network$buffers) == 3)
named <- nn_module("named", initialize = function(hidden, methods = 2) self$size <- hidden * methods, forward = function(x) x * self$size)
stopifnot(named(3)(torch_ones(1))$item() == 6) # whatever its arguments are called
tied <- nn_module("tied",
  initialize = function() {
    self$a <- nn_linear(2, 2)
    self$b <- nn_linear(2, 2)
    self$b$weight <- self$a$weight
    self$c <- self$a
  },
  forward = function(x) self$c(self$b(self$a(x)))
)()
stopifnot(length(tied$parameters) == 3)
tied$to(dtype = torch_float64())
stopifnot(tied$b$weight$is_same(tied$a$weight), tied$c$weight$dtype == torch_float64())
tied$to(dtype = torch_float32())
for (same in list(tied, clone_module(tied, deep = TRUE))) {
  stopifnot(length(same$parameters) == 3, torch_allclose(jit_trace(same, x)(x), same(x)), torch_allclose(same(x), tied(x)))
}
other <- clone_module(network, deep = TRUE)
with_no_grad(other[[1]]$weight$zero_())
stopifnot(any(as_array(network[[1]]$weight) != 0), length(unique(names(network$state_dict()))) == 7)
stopifnot(inherits(tryCatch(torch_load("nowhere.pt"), error = identity), "tenfold_error"))
cat("fine")
