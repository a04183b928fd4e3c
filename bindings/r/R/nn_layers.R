# Layers and losses: nn_linear and the like, over the functions of nnf.R. `parts` is the environment behind `self`,
# which `forward` reads without a method of `$` between.

uniform_parameter <- function(sizes, bound) nn_parameter(torch_uniform_(torch_empty(sizes), -bound, bound))

nn_linear <- nn_module(
  "nn_linear",
  initialize = function(in_features, out_features, bias = TRUE) {
    bound <- 1 / sqrt(in_features)
    self$weight <- uniform_parameter(c(out_features, in_features), bound)
    if (bias) self$bias <- uniform_parameter(out_features, bound)
  },
  forward = function(input) .Call(C_op_linear, input, parts$weight, parts$bias)
)

nn_identity <- nn_module("nn_identity", initialize = function(...) NULL, forward = function(input) input)

new_convolution <- function(name, rank, convolve) {
  nn_module(
    name,
    initialize = function(in_channels, out_channels, kernel_size, stride = 1, padding = 0, dilation = 1,
                          groups = 1, bias = TRUE) {
      kernel <- rep_len(kernel_size, rank)
      bound <- 1 / sqrt(in_channels / groups * prod(kernel))
      self$weight <- uniform_parameter(c(out_channels, in_channels / groups, kernel), bound)
      if (bias) self$bias <- uniform_parameter(out_channels, bound)
      self$options <- list(stride, padding, dilation, groups)
    },
    forward = function(input) {
      o <- parts$options
      convolve(input, parts$weight, parts$bias, o[[1]], o[[2]], o[[3]], o[[4]])
    }
  )
}

nn_conv1d <- new_convolution("nn_conv1d", 1, function(...) torch_conv1d(...))
nn_conv2d <- new_convolution("nn_conv2d", 2, function(...) torch_conv2d(...))
nn_conv3d <- new_convolution("nn_conv3d", 3, function(...) torch_conv3d(...))

nn_embedding <- nn_module(
  "nn_embedding",
  initialize = function(num_embeddings, embedding_dim, padding_idx = NULL) {
    self$weight <- nn_parameter(torch_randn(num_embeddings, embedding_dim))
    self$padding_idx <- padding_idx
  },
  forward = function(input) nnf_embedding(input, parts$weight, parts$padding_idx)
)

nn_layer_norm <- nn_module(
  "nn_layer_norm",
  initialize = function(normalized_shape, eps = 1e-5, elementwise_affine = TRUE) {
    self$shape <- normalized_shape
    self$eps <- eps
    if (elementwise_affine) {
      self$weight <- nn_parameter(torch_ones(normalized_shape))
      self$bias <- nn_parameter(torch_zeros(normalized_shape))
    }
  },
  forward = function(input) torch_layer_norm(input, parts$shape, parts$weight, parts$bias, parts$eps)
)

new_batch_norm <- function(name) {
  nn_module(
    name,
    initialize = function(num_features, eps = 1e-5, momentum = 0.1, affine = TRUE, track_running_stats = TRUE) {
      self$eps <- eps
      self$momentum <- momentum
      if (affine) {
        self$weight <- nn_parameter(torch_ones(num_features))
        self$bias <- nn_parameter(torch_zeros(num_features))
      }
      if (track_running_stats) {
        self$running_mean <- nn_buffer(torch_zeros(num_features))
        self$running_var <- nn_buffer(torch_ones(num_features))
      }
    },
    forward = function(input) {
      torch_batch_norm(input, parts$weight, parts$bias, parts$running_mean, parts$running_var,
                       parts$training || is.null(parts$running_mean), parts$momentum, parts$eps, FALSE)
    }
  )
}

nn_batch_norm1d <- new_batch_norm("nn_batch_norm1d")
nn_batch_norm2d <- new_batch_norm("nn_batch_norm2d")

nn_dropout <- nn_module(
  "nn_dropout",
  initialize = function(p = 0.5) self$p <- p,
  forward = function(input) nnf_dropout(input, parts$p, parts$training)
)

nn_flatten <- nn_module(
  "nn_flatten",
  initialize = function(start_dim = 2, end_dim = -1) {
    self$start_dim <- start_dim
    self$end_dim <- end_dim
  },
  forward = function(input) torch_flatten(input, self$start_dim, self$end_dim)
)

new_pooling <- function(name, pool) {
  nn_module(
    name,
    initialize = function(kernel_size, stride = kernel_size, padding = 0) {
      self$options <- list(kernel_size, stride, padding)
    },
    forward = function(input) pool(input, parts$options[[1]], parts$options[[2]], parts$options[[3]])
  )
}

nn_max_pool1d <- new_pooling("nn_max_pool1d", function(...) torch_max_pool1d(...))
nn_max_pool2d <- new_pooling("nn_max_pool2d", function(...) torch_max_pool2d(...))
nn_avg_pool1d <- new_pooling("nn_avg_pool1d", function(...) torch_avg_pool1d(...))
nn_avg_pool2d <- new_pooling("nn_avg_pool2d", function(...) torch_avg_pool2d(...))

# ---- containers ----

add_numbered <- function(self, modules) {
  names <- names(modules)
  for (i in seq_along(modules)) {
    if (!is_nn_module(modules[[i]])) refuse("part ", i, " is no module", code = 3L, name = "TN_ERROR_TYPE")
    self$add_module(if (is.null(names) || names[i] == "") as.character(i - 1) else names[i], modules[[i]])
  }
}

nn_sequential <- nn_module(
  "nn_sequential",
  initialize = function(...) add_numbered(self, list(...)),
  forward = function(input) {
    for (part in children_of(self)) input <- part(input)
    input
  }
)

nn_module_list <- nn_module(
  "nn_module_list",
  initialize = function(modules = list()) add_numbered(self, modules),
  forward = function(...) refuse("a list of modules is not called: its parts are"),
  append = function(module) add_numbered(self, structure(list(module), names = as.character(length(self))))
)

# ---- activations ----

activation <- function(name, apply) {
  nn_module(name, initialize = function(...) self$options <- list(...), forward = function(input) {
    if (length(parts$options)) do.call(apply, c(list(input), parts$options)) else apply(input)
  })
}

nn_relu <- activation("nn_relu", function(x, ...) torch_relu(x))
nn_relu6 <- activation("nn_relu6", function(x, ...) torch_relu6(x))
nn_leaky_relu <- activation("nn_leaky_relu", function(...) torch_leaky_relu(...))
nn_elu <- activation("nn_elu", function(...) torch_elu(...))
nn_selu <- activation("nn_selu", function(x, ...) torch_selu(x))
nn_gelu <- activation("nn_gelu", function(...) torch_gelu(...))
nn_silu <- activation("nn_silu", function(x, ...) torch_silu(x))
nn_sigmoid <- activation("nn_sigmoid", function(x, ...) torch_sigmoid(x))
nn_tanh <- activation("nn_tanh", function(x, ...) torch_tanh(x))
nn_softplus <- activation("nn_softplus", function(...) torch_softplus(...))
nn_softmax <- activation("nn_softmax", function(x, dim) nnf_softmax(x, dim))
nn_log_softmax <- activation("nn_log_softmax", function(x, dim) nnf_log_softmax(x, dim))

# ---- losses ----

new_loss <- function(name, compute) {
  nn_module(name, initialize = function(reduction = "mean") self$reduction <- reduction,
            forward = function(input, target) compute(input, target, reduction = parts$reduction))
}

nn_mse_loss <- new_loss("nn_mse_loss", function(...) nnf_mse_loss(...))
nn_l1_loss <- new_loss("nn_l1_loss", function(...) nnf_l1_loss(...))
nn_smooth_l1_loss <- new_loss("nn_smooth_l1_loss", function(...) nnf_smooth_l1_loss(...))
nn_cross_entropy_loss <- new_loss("nn_cross_entropy_loss", function(...) nnf_cross_entropy(...))
nn_nll_loss <- new_loss("nn_nll_loss", function(...) nnf_nll_loss(...))
nn_bce_loss <- new_loss("nn_bce_loss", function(...) nnf_binary_cross_entropy(...))
nn_bce_with_logits_loss <- new_loss("nn_bce_with_logits_loss", function(...) nnf_binary_cross_entropy_with_logits(...))
