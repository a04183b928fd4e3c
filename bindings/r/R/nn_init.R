# nn_init_*: ways to fill a parameter before training. Each writes into its tensor and gives it back.

filled <- function(tensor, fill) {
  with_no_grad(fill(tensor))
  invisible(tensor)
}

nn_init_uniform_ <- function(tensor, a = 0, b = 1) filled(tensor, function(x) torch_uniform_(x, a, b))

nn_init_normal_ <- function(tensor, mean = 0, std = 1) {
  filled(tensor, function(x) torch_copy_(x, torch_randn_like(x) * std + mean))
}

nn_init_constant_ <- function(tensor, val) filled(tensor, function(x) torch_fill_(x, val))

nn_init_ones_ <- function(tensor) nn_init_constant_(tensor, 1)

nn_init_zeros_ <- function(tensor) nn_init_constant_(tensor, 0)

nn_init_eye_ <- function(tensor) {
  if (length(dim(tensor)) != 2) refuse("nn_init_eye_ takes a matrix")
  filled(tensor, function(x) torch_copy_(x, torch_eye(dim(x)[1], dim(x)[2])))
}

# Convolutions that pass their channels on: a one in the middle of each kernel.
nn_init_dirac_ <- function(tensor, groups = 1) {
  sizes <- dim(tensor)
  if (!length(sizes) %in% 3:5) refuse("nn_init_dirac_ takes the weight of a convolution, of 3 to 5 dimensions")
  if (sizes[1] %% groups != 0) refuse("dimension 1 is no multiple of groups")
  each <- sizes[1] / groups
  values <- array(0, sizes)
  middle <- sizes[-(1:2)] %/% 2 + 1
  for (group in seq_len(groups)) {
    for (channel in seq_len(min(each, sizes[2]))) {
      values[matrix(c((group - 1) * each + channel, channel, middle), 1)] <- 1
    }
  }
  filled(tensor, function(x) torch_copy_(x, as_tensor(values)))
}

# How many inputs each output of a weight has, and how many outputs each input.
fans <- function(tensor) {
  sizes <- dim(tensor)
  if (length(sizes) < 2) refuse("a tensor with fewer than 2 dimensions has no fan in and fan out")
  c(fan_in = sizes[2], fan_out = sizes[1]) * prod(sizes[-(1:2)])
}

nn_init_calculate_gain <- function(nonlinearity, param = NULL) {
  switch(nonlinearity,
    linear = , conv1d = , conv2d = , conv3d = , conv_transpose1d = , conv_transpose2d = , conv_transpose3d = , sigmoid = 1,
    tanh = 5 / 3, relu = sqrt(2), selu = 3 / 4,
    leaky_relu = sqrt(2 / (1 + (if (is.null(param)) 0.01 else param)^2)),
    refuse("no gain is known for ", nonlinearity)
  )
}

nn_init_xavier_uniform_ <- function(tensor, gain = 1) {
  bound <- gain * sqrt(6 / sum(fans(tensor)))
  nn_init_uniform_(tensor, -bound, bound)
}

nn_init_xavier_normal_ <- function(tensor, gain = 1) nn_init_normal_(tensor, 0, gain * sqrt(2 / sum(fans(tensor))))

kaiming_std <- function(tensor, a, mode, nonlinearity) {
  if (!mode %in% c("fan_in", "fan_out")) refuse("mode is 'fan_in' or 'fan_out'")
  nn_init_calculate_gain(nonlinearity, a) / sqrt(fans(tensor)[[mode]])
}

nn_init_kaiming_uniform_ <- function(tensor, a = 0, mode = "fan_in", nonlinearity = "leaky_relu") {
  bound <- sqrt(3) * kaiming_std(tensor, a, mode, nonlinearity)
  nn_init_uniform_(tensor, -bound, bound)
}

nn_init_kaiming_normal_ <- function(tensor, a = 0, mode = "fan_in", nonlinearity = "leaky_relu") {
  nn_init_normal_(tensor, 0, kaiming_std(tensor, a, mode, nonlinearity))
}

nn_init_orthogonal_ <- function(tensor, gain = 1) {
  sizes <- dim(tensor)
  if (length(sizes) < 2) refuse("nn_init_orthogonal_ takes a tensor of 2 dimensions or more")
  rows <- sizes[1]
  columns <- prod(sizes[-1])
  parts <- torch_linalg_qr(torch_randn(max(rows, columns), min(rows, columns)))
  found <- parts[[1]] * torch_sign(torch_diagonal(parts[[2]]))
  if (rows < columns) found <- torch_t(found)
  filled(tensor, function(x) torch_mul_(torch_copy_(x, torch_reshape(found, sizes)), gain))
}

nn_init_sparse_ <- function(tensor, sparsity, std = 0.01) {
  if (length(dim(tensor)) != 2) refuse("nn_init_sparse_ takes a matrix")
  rows <- dim(tensor)[1]
  values <- matrix(stats::rnorm(length(tensor), sd = std), rows)
  for (column in seq_len(ncol(values))) values[sample.int(rows, ceiling(sparsity * rows)), column] <- 0
  filled(tensor, function(x) torch_copy_(x, as_tensor(values)))
}

# A normal distribution without its tails, by the inverse of its distribution function.
nn_init_trunc_normal_ <- function(tensor, mean = 0, std = 1, a = -2, b = 2) {
  below <- stats::pnorm((a - mean) / std)
  above <- stats::pnorm((b - mean) / std)
  filled(tensor, function(x) {
    torch_uniform_(x, 2 * below - 1, 2 * above - 1)
    torch_clamp_(torch_add_(torch_mul_(torch_erfinv_(x), std * sqrt(2)), mean), a, b)
  })
}
