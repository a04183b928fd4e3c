# Layers with parameters or options of their own: nn_linear, convolutions, normalisations, pooling, dropout.
# `parts` is the environment behind `self`, which `forward` reads without a method of `$` between.

uniform_parameter <- function(sizes, bound) nn_parameter(torch_uniform_(torch_empty(sizes), -bound, bound))

# Sizes of a layer, by their arguments' names: whole numbers, none below `least`.
check_sizes <- function(..., least = 1) {
  given <- list(...)
  for (name in names(given)) {
    size <- given[[name]]
    if (!is.numeric(size) || !length(size) || anyNA(size) || any(size != floor(size)) || any(size < least)) {
      refuse(name, " is a whole number of at least ", least, ", not ", toString(format(size)))
    }
  }
}

nn_linear <- nn_module(
  "nn_linear",
  initialize = function(in_features, out_features, bias = TRUE) {
    check_sizes(in_features = in_features, out_features = out_features, least = 0)
    bound <- if (in_features > 0) 1 / sqrt(in_features) else 0
    self$in_features <- in_features
    self$out_features <- out_features
    self$weight <- uniform_parameter(c(out_features, in_features), bound)
    if (bias) self$bias <- uniform_parameter(out_features, bound)
  },
  forward = function(input) .Call(C_op_linear, input, parts$weight, parts$bias)
)

nn_bilinear <- nn_module(
  "nn_bilinear",
  initialize = function(in1_features, in2_features, out_features, bias = TRUE) {
    check_sizes(in1_features = in1_features, in2_features = in2_features, out_features = out_features)
    keep(self, in1_features = in1_features, in2_features = in2_features, out_features = out_features)
    bound <- 1 / sqrt(in1_features)
    self$weight <- uniform_parameter(c(out_features, in1_features, in2_features), bound)
    if (bias) self$bias <- uniform_parameter(out_features, bound)
  },
  forward = function(input1, input2) torch_bilinear(input1, input2, parts$weight, parts$bias)
)

nn_identity <- nn_module("nn_identity", initialize = function(...) NULL, forward = function(input) input)

# ---- convolutions ----

# The padding of each side of each dimension, last dimension first, as nnf_pad takes it.
sides <- function(padding, rank) rep(rev(rep_len(padding, rank)), each = 2)

check_convolution <- function(in_channels, out_channels, kernel_size, groups) {
  check_sizes(in_channels = in_channels, out_channels = out_channels, kernel_size = kernel_size, groups = groups)
  for (channels in c(in_channels, out_channels)) {
    if (channels %% groups != 0) refuse(channels, " channels cannot be divided into ", groups, " groups")
  }
}

new_convolution <- function(name, rank, convolve) {
  nn_module(
    name,
    initialize = function(in_channels, out_channels, kernel_size, stride = 1, padding = 0, dilation = 1,
                          groups = 1, bias = TRUE, padding_mode = "zeros") {
      check_convolution(in_channels, out_channels, kernel_size, groups)
      kernel <- rep_len(kernel_size, rank)
      bound <- 1 / sqrt(in_channels / groups * prod(kernel))
      self$weight <- uniform_parameter(c(out_channels, in_channels / groups, kernel), bound)
      if (bias) self$bias <- uniform_parameter(out_channels, bound)
      keep(self, in_channels = in_channels, out_channels = out_channels, kernel_size = kernel, stride = rep_len(stride, rank),
           padding = if (is.character(padding)) padding else rep_len(padding, rank), dilation = rep_len(dilation, rank),
           transposed = FALSE, output_padding = rep(0, rank), groups = groups)
      if (!padding_mode %in% c("zeros", "reflect", "replicate", "circular")) {
        refuse("padding_mode is 'zeros', 'reflect', 'replicate' or 'circular'")
      }
      self$padding_mode <- padding_mode
    },
    forward = function(input) {
      padding <- parts$padding
      if (parts$padding_mode != "zeros") {
        input <- nnf_pad(input, sides(padding, rank), parts$padding_mode)
        padding <- 0
      }
      convolve(input, parts$weight, parts$bias, parts$stride, padding, parts$dilation, parts$groups)
    }
  )
}

nn_conv1d <- new_convolution("nn_conv1d", 1, function(...) torch_conv1d(...))
nn_conv2d <- new_convolution("nn_conv2d", 2, function(...) torch_conv2d(...))
nn_conv3d <- new_convolution("nn_conv3d", 3, function(...) torch_conv3d(...))

# The output padding with which a transposed convolution of these parts gives a size.
padding_for <- function(output_size, sizes, parts) {
  rank <- length(parts$kernel_size)
  if (!length(output_size) %in% c(rank, rank + 2)) {
    refuse("output_size must have ", rank, " or ", rank + 2, " elements (got ", length(output_size), ")")
  }
  least <- (utils::tail(sizes, rank) - 1) * parts$stride - 2 * parts$padding + parts$dilation * (parts$kernel_size - 1) + 1
  wanted <- utils::tail(output_size, rank)
  if (any(wanted < least | wanted >= least + parts$stride)) {
    refuse("output_size lies between ", toString(least), " and ", toString(least + parts$stride - 1), ", not at ", toString(wanted))
  }
  wanted - least
}

new_transposed_convolution <- function(name, rank, convolve) {
  nn_module(
    name,
    initialize = function(in_channels, out_channels, kernel_size, stride = 1, padding = 0, output_padding = 0,
                          groups = 1, bias = TRUE, dilation = 1, padding_mode = "zeros") {
      if (padding_mode != "zeros") refuse("a transposed convolution pads with zeros alone")
      check_convolution(in_channels, out_channels, kernel_size, groups)
      kernel <- rep_len(kernel_size, rank)
      bound <- 1 / sqrt(out_channels / groups * prod(kernel))
      self$weight <- uniform_parameter(c(in_channels, out_channels / groups, kernel), bound)
      if (bias) self$bias <- uniform_parameter(out_channels, bound)
      keep(self, in_channels = in_channels, out_channels = out_channels, kernel_size = kernel, stride = rep_len(stride, rank),
           padding = rep_len(padding, rank), dilation = rep_len(dilation, rank), transposed = TRUE,
           output_padding = rep_len(output_padding, rank), groups = groups, padding_mode = padding_mode)
    },
    forward = function(input, output_size = NULL) {
      more <- if (is.null(output_size)) parts$output_padding else padding_for(output_size, dim(input), parts)
      convolve(input, parts$weight, parts$bias, parts$stride, parts$padding, more, parts$groups, parts$dilation)
    }
  )
}

nn_conv_transpose1d <- new_transposed_convolution("nn_conv_transpose1d", 1, function(...) torch_conv_transpose1d(...))
nn_conv_transpose2d <- new_transposed_convolution("nn_conv_transpose2d", 2, function(...) torch_conv_transpose2d(...))
nn_conv_transpose3d <- new_transposed_convolution("nn_conv_transpose3d", 3, function(...) torch_conv_transpose3d(...))

# ---- embeddings ----

embedding_weight <- function(count, size, padding_idx) {
  check_sizes(num_embeddings = count, embedding_dim = size)
  weight <- torch_randn(count, size)
  if (!is.null(padding_idx)) torch_zero_(torch_select(weight, 1, padding_idx))
  nn_parameter(weight)
}

nn_embedding <- nn_module(
  "nn_embedding",
  initialize = function(num_embeddings, embedding_dim, padding_idx = NULL, max_norm = NULL, norm_type = 2,
                        scale_grad_by_freq = FALSE, sparse = FALSE, .weight = NULL) {
    self$weight <- if (is.null(.weight)) embedding_weight(num_embeddings, embedding_dim, padding_idx) else nn_parameter(.weight)
    keep(self, num_embeddings = num_embeddings, embedding_dim = embedding_dim, padding_idx = padding_idx, max_norm = max_norm,
         norm_type = norm_type, scale_grad_by_freq = scale_grad_by_freq, sparse = sparse)
  },
  forward = function(input) {
    nnf_embedding(input, parts$weight, parts$padding_idx, parts$max_norm, parts$norm_type, parts$scale_grad_by_freq, parts$sparse)
  }
)

nn_embedding_bag <- nn_module(
  "nn_embedding_bag",
  initialize = function(num_embeddings, embedding_dim, max_norm = NULL, norm_type = 2, scale_grad_by_freq = FALSE,
                        mode = "mean", sparse = FALSE, include_last_offset = FALSE, padding_idx = NULL, .weight = NULL) {
    self$weight <- if (is.null(.weight)) embedding_weight(num_embeddings, embedding_dim, padding_idx) else nn_parameter(.weight)
    keep(self, num_embeddings = num_embeddings, embedding_dim = embedding_dim, max_norm = max_norm, norm_type = norm_type,
         scale_grad_by_freq = scale_grad_by_freq, mode = mode, sparse = sparse, include_last_offset = include_last_offset,
         padding_idx = padding_idx)
  },
  forward = function(input, offsets = NULL, per_sample_weights = NULL) {
    nnf_embedding_bag(input, parts$weight, offsets, parts$max_norm, parts$norm_type, parts$scale_grad_by_freq, parts$mode,
                      parts$sparse, per_sample_weights, parts$include_last_offset, parts$padding_idx)
  }
)

# A layer that looks vectors up in given ones, which are not trained where it is frozen.
nn_embedding_bag$from_pretrained <- function(embeddings, freeze = TRUE, max_norm = NULL, norm_type = 2,
                                             scale_grad_by_freq = FALSE, mode = "mean", sparse = FALSE,
                                             include_last_offset = FALSE, padding_idx = NULL) {
  sizes <- dim(embeddings)
  made <- nn_embedding_bag(sizes[1], sizes[2], max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset,
                           padding_idx, embeddings)
  made$weight$requires_grad_(!freeze)
  made
}

# ---- normalisations ----

affine_parts <- function(self, sizes) {
  self$weight <- nn_parameter(torch_ones(sizes))
  self$bias <- nn_parameter(torch_zeros(sizes))
}

nn_layer_norm <- nn_module(
  "nn_layer_norm",
  initialize = function(normalized_shape, eps = 1e-5, elementwise_affine = TRUE) {
    keep(self, normalized_shape = normalized_shape, eps = eps, elementwise_affine = elementwise_affine)
    if (elementwise_affine) affine_parts(self, normalized_shape)
  },
  forward = function(input) torch_layer_norm(input, parts$normalized_shape, parts$weight, parts$bias, parts$eps)
)

nn_group_norm <- nn_module(
  "nn_group_norm",
  initialize = function(num_groups, num_channels, eps = 1e-5, affine = TRUE) {
    keep(self, num_groups = num_groups, num_channels = num_channels, eps = eps, affine = affine)
    if (affine) affine_parts(self, num_channels)
  },
  forward = function(input) torch_group_norm(input, parts$num_groups, parts$weight, parts$bias, parts$eps)
)

new_batch_norm <- function(name, ranks) {
  nn_module(
    name,
    initialize = function(num_features, eps = 1e-5, momentum = 0.1, affine = TRUE, track_running_stats = TRUE) {
      keep(self, num_features = num_features, eps = eps, momentum = momentum, affine = affine,
           track_running_stats = track_running_stats)
      if (affine) affine_parts(self, num_features)
      if (track_running_stats) {
        self$running_mean <- nn_buffer(torch_zeros(num_features))
        self$running_var <- nn_buffer(torch_ones(num_features))
        self$num_batches_tracked <- nn_buffer(torch_scalar_tensor(0L))
      }
    },
    forward = function(input) {
      if (!length(dim(input)) %in% ranks) {
        refuse("expected ", paste0(ranks, "D", collapse = " or "), " input (got ", length(dim(input)), "D input)")
      }
      momentum <- parts$momentum
      if (parts$training && !is.null(parts$running_mean)) {
        with_no_grad(torch_add_(parts$num_batches_tracked, 1L))
        if (is.null(momentum)) momentum <- 1 / parts$num_batches_tracked$item() # the mean over all batches
      }
      torch_batch_norm(input, parts$weight, parts$bias, parts$running_mean, parts$running_var,
                       parts$training || is.null(parts$running_mean), if (is.null(momentum)) 0 else momentum,
                       parts$eps, FALSE)
    }
  )
}

nn_batch_norm1d <- new_batch_norm("nn_batch_norm1d", 2:3)
nn_batch_norm2d <- new_batch_norm("nn_batch_norm2d", 4)
nn_batch_norm3d <- new_batch_norm("nn_batch_norm3d", 5)

# ---- dropout, shapes ----

new_dropout <- function(name, drop) {
  nn_module(name, initialize = function(p = 0.5, inplace = FALSE) {
    if (!is.numeric(p) || length(p) != 1 || is.na(p) || p < 0 || p > 1) refuse("the probability of dropping is between 0 and 1, not ", toString(p))
    self$p <- p
    self$inplace <- inplace
  }, forward = function(input) drop(input, parts$p, parts$training, parts$inplace))
}

nn_dropout <- new_dropout("nn_dropout", function(...) nnf_dropout(...))
nn_dropout2d <- new_dropout("nn_dropout2d", function(...) nnf_dropout2d(...))
nn_dropout3d <- new_dropout("nn_dropout3d", function(...) nnf_dropout3d(...))

nn_flatten <- nn_module(
  "nn_flatten",
  initialize = function(start_dim = 2, end_dim = -1) {
    self$start_dim <- start_dim
    self$end_dim <- end_dim
  },
  forward = function(input) torch_flatten(input, self$start_dim, self$end_dim)
)

nn_unflatten <- nn_module(
  "nn_unflatten",
  initialize = function(dim, unflattened_size) {
    keep(self, dim = dim, unflattened_size = unflattened_size)
  },
  forward = function(input) torch_unflatten(input, parts$dim, parts$unflattened_size)
)

nn_upsample <- nn_module(
  "nn_upsample",
  initialize = function(size = NULL, scale_factor = NULL, mode = "nearest", align_corners = NULL) {
    keep(self, size = size, scale_factor = scale_factor, mode = mode, align_corners = align_corners)
  },
  forward = function(input) nnf_interpolate(input, parts$size, parts$scale_factor, parts$mode, parts$align_corners)
)

nn_pairwise_distance <- nn_module(
  "nn_pairwise_distance",
  initialize = function(p = 2, eps = 1e-6, keepdim = FALSE) keep(self, norm = p, eps = eps, keepdim = keepdim),
  forward = function(x1, x2) torch_pairwise_distance(x1, x2, parts$norm, parts$eps, parts$keepdim)
)

# ---- pooling ----

# Pooling whose further options, after a window's, are `defaults`.
new_pooling <- function(name, pool, defaults) {
  initialize <- function(kernel_size, stride = NULL, padding = 0) NULL
  formals(initialize) <- c(formals(initialize), defaults)
  options <- names(formals(initialize))
  body(initialize) <- call("{", quote(if (is.null(stride)) stride <- kernel_size), keeping(options))
  nn_module(name, initialize = initialize, forward = function(input) do.call(pool, c(list(input), kept(parts, options))))
}

of_largest <- alist(dilation = 1, ceil_mode = FALSE, return_indices = FALSE)
of_mean <- alist(ceil_mode = FALSE, count_include_pad = TRUE)

nn_max_pool1d <- new_pooling("nn_max_pool1d", function(...) nnf_max_pool1d(...), of_largest)
nn_max_pool2d <- new_pooling("nn_max_pool2d", function(...) nnf_max_pool2d(...), of_largest)
nn_max_pool3d <- new_pooling("nn_max_pool3d", function(...) nnf_max_pool3d(...), of_largest)
nn_avg_pool1d <- new_pooling("nn_avg_pool1d", function(...) torch_avg_pool1d(...), of_mean)
nn_avg_pool2d <- new_pooling("nn_avg_pool2d", function(...) torch_avg_pool2d(...), c(of_mean, alist(divisor_override = NULL)))
nn_avg_pool3d <- new_pooling("nn_avg_pool3d", function(...) torch_avg_pool3d(...), c(of_mean, alist(divisor_override = NULL)))

new_norm_pooling <- function(name, pool) {
  nn_module(name, initialize = function(norm_type, kernel_size, stride = NULL, ceil_mode = FALSE) {
    keep(self, norm_type = norm_type, kernel_size = kernel_size, stride = stride, ceil_mode = ceil_mode)
  }, forward = function(input) pool(input, parts$norm_type, parts$kernel_size, parts$stride, parts$ceil_mode))
}

nn_lp_pool1d <- new_norm_pooling("nn_lp_pool1d", function(...) nnf_lp_pool1d(...))
nn_lp_pool2d <- new_norm_pooling("nn_lp_pool2d", function(...) nnf_lp_pool2d(...))

new_adaptive_pooling <- function(name, pool, largest = FALSE) {
  initialize <- if (largest) function(output_size, return_indices = FALSE) NULL else function(output_size) NULL
  options <- names(formals(initialize))
  body(initialize) <- keeping(options)
  nn_module(name, initialize = initialize, forward = function(input) do.call(pool, c(list(input), kept(parts, options))))
}

nn_adaptive_avg_pool1d <- new_adaptive_pooling("nn_adaptive_avg_pool1d", function(...) torch_adaptive_avg_pool1d(...))
nn_adaptive_avg_pool2d <- new_adaptive_pooling("nn_adaptive_avg_pool2d", function(...) torch_adaptive_avg_pool2d(...))
nn_adaptive_avg_pool3d <- new_adaptive_pooling("nn_adaptive_avg_pool3d", function(...) torch_adaptive_avg_pool3d(...))
nn_adaptive_max_pool1d <- new_adaptive_pooling("nn_adaptive_max_pool1d", function(...) nnf_adaptive_max_pool1d(...), TRUE)
nn_adaptive_max_pool2d <- new_adaptive_pooling("nn_adaptive_max_pool2d", function(...) nnf_adaptive_max_pool2d(...), TRUE)
nn_adaptive_max_pool3d <- new_adaptive_pooling("nn_adaptive_max_pool3d", function(...) nnf_adaptive_max_pool3d(...), TRUE)

new_fractional_pooling <- function(name, pool) {
  nn_module(name, initialize = function(kernel_size, output_size = NULL, output_ratio = NULL, return_indices = FALSE) {
    keep(self, kernel_size = kernel_size, output_size = output_size, output_ratio = output_ratio, return_indices = return_indices)
  }, forward = function(input) pool(input, parts$kernel_size, parts$output_size, parts$output_ratio, parts$return_indices))
}

nn_fractional_max_pool2d <- new_fractional_pooling("nn_fractional_max_pool2d", function(...) nnf_fractional_max_pool2d(...))
nn_fractional_max_pool3d <- new_fractional_pooling("nn_fractional_max_pool3d", function(...) nnf_fractional_max_pool3d(...))

new_unpooling <- function(name, unpool) {
  nn_module(name, initialize = function(kernel_size, stride = NULL, padding = 0) {
    keep(self, kernel_size = kernel_size, stride = stride, padding = padding)
  }, forward = function(input, indices, output_size = NULL) {
    unpool(input, indices, parts$kernel_size, parts$stride, parts$padding, output_size)
  })
}

nn_max_unpool1d <- new_unpooling("nn_max_unpool1d", function(...) nnf_max_unpool1d(...))
nn_max_unpool2d <- new_unpooling("nn_max_unpool2d", function(...) nnf_max_unpool2d(...))
nn_max_unpool3d <- new_unpooling("nn_max_unpool3d", function(...) nnf_max_unpool3d(...))
