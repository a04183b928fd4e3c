# Learn to read digits of 8 x 8 pixels, each step of training one call into a traced module.
#
# usage: Rscript 03_digits.R digits.safetensors, with `images` (float32, n x 64) and `labels` (int64, n) in it.
library(tenfold)
torch_manual_seed(1)
set.seed(1)

data <- torch_load(commandArgs(TRUE)[1])
labels <- data$labels + 1L # classes count from 1
training <- 1:1437

network <- nn_sequential(nn_linear(64, 64), nn_relu(), nn_linear(64, 10))
optimizer <- optim_adamw(network$parameters, lr = 3e-3)
traced <- jit_trace(network, data$images[1:2, ])

for (epoch in 1:12) {
  for (batch in dataloader_batches(length(training), 64)) {
    loss <- jit_train_step(traced, optimizer, "cross_entropy", data$images[batch, ], labels[batch])
  }
  cat(sprintf("epoch %2d  loss %.4f\n", epoch, loss$item()))
}

network$eval()
unseen <- setdiff(seq_along(labels), training)
guesses <- with_no_grad(torch_argmax(network(data$images[unseen, ]), dim = 2))
right <- mean(as.integer(guesses) == as.integer(labels[unseen]))
cat(sprintf("%.1f%% of the unseen digits are read\n", 100 * right))
stopifnot(right > 0.9)
