# TorchScript: trace an R function, look at its graph, save it, load it, call it with a list.
library(tenfold)

distance <- function(a, b) list(squared = torch_sum((a - b)^2), direction = (a - b) / torch_norm(a - b))
traced <- jit_trace(distance, torch_randn(3), torch_randn(3))
cat(traced$graph)

path <- tempfile(fileext = ".pt")
jit_save(traced, path)
loaded <- jit_load(path)
found <- loaded(list(torch_tensor(c(1, 2, 3)), torch_tensor(c(1, 0, 3))))
cat("squared distance:", as.numeric(found[[1]]), "\n")
stopifnot(as.numeric(found[[1]]) == 4)

# Any operator of libtorch is reached by its name, with R's values as its arguments.
print(tenfold_call("aten::add.Tensor", torch_ones(2), torch_ones(2), 10))
