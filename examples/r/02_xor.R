# Learn exclusive or: a module of two layers, its loss, and an optimizer.
library(tenfold)
torch_manual_seed(1)

xor_network <- nn_module(
  "xor_network",
  initialize = function(hidden) {
    self$inner <- nn_linear(2, hidden)
    self$outer <- nn_linear(hidden, 1)
  },
  forward = function(x) self$outer(torch_tanh(self$inner(x)))
)

x <- torch_tensor(rbind(c(0, 0), c(0, 1), c(1, 0), c(1, 1)))
y <- torch_tensor(matrix(c(0, 1, 1, 0)))
network <- xor_network(8)
optimizer <- optim_adam(network$parameters, lr = 0.05)

for (step in 1:200) {
  optimizer$zero_grad()
  loss <- nnf_binary_cross_entropy_with_logits(network(x), y)
  loss$backward()
  optimizer$step()
  if (step %% 50 == 0) cat(sprintf("step %3d  loss %.4f\n", step, loss$item()))
}

answers <- round(as.vector(torch_sigmoid(network(x))))
cat("answers:", answers, "\n")
stopifnot(identical(answers, c(0, 1, 1, 0)))
