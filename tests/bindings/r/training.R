library(tenfold)
given <- torch_load(commandArgs(TRUE)[1]); classes <- given$y$dtype == torch_int64()
loss_name <- if (classes) "cross_entropy" else "binary_cross_entropy_with_logits"
if (classes) given$y <- given$y + 1L
network <- nn_sequential(nn_linear(given$w1$shape[2], given$w1$shape[1]), nn_tanh(),
                         nn_linear(given$w2$shape[2], given$w2$shape[1]))
network$load_state_dict(list("0.weight" = given$w1, "0.bias" = given$b1, "2.weight" = given$w2, "2.bias" = given$b2))
optimizer <- optim_adam(network$parameters, lr = as.numeric(commandArgs(TRUE)[2]))
traced <- jit_trace(network, given$x)
loss_of <- if (classes) nnf_cross_entropy else nnf_binary_cross_entropy_with_logits
for (step in 1:100) {
  if (commandArgs(TRUE)[3] == "one_call") {
    loss <- jit_train_step(traced, optimizer, loss_name, given$x, given$y)
  } else {
    optimizer$zero_grad()
    loss <- loss_of(network(given$x), given$y)
    loss$backward()
    optimizer$step()
  }
  cat(format(loss$item(), digits = 15), "")
}
