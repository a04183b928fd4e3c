# nnf_*: functions of neural networks. Those whose name is an operator's are that operator.

nnf_linear <- function(input, weight, bias = NULL) .Call(C_op_linear, input, weight, bias)

nnf_dropout <- function(input, p = 0.5, training = TRUE, inplace = FALSE) {
  if (inplace) torch_dropout_(input, p, training) else torch_dropout(input, p, training)
}

# Whole channels are dropped.
drop_channels <- function(input, p, training, inplace) {
  if (inplace) torch_feature_dropout_(input, p, training) else torch_feature_dropout(input, p, training)
}

nnf_dropout2d <- function(input, p = 0.5, training = TRUE, inplace = FALSE) {
  if (length(dim(input)) != 4) {
    warning("nnf_dropout2d takes a batch of images, of 4 dimensions: for this input of ", length(dim(input)),
            " the second is taken for its channels", call. = FALSE)
  }
  drop_channels(input, p, training, inplace)
}

nnf_dropout3d <- function(input, p = 0.5, training = TRUE, inplace = FALSE) drop_channels(input, p, training, inplace)

nnf_alpha_dropout <- function(input, p = 0.5, training = FALSE, inplace = FALSE) {
  if (inplace) torch_alpha_dropout_(input, p, training) else torch_alpha_dropout(input, p, training)
}

nnf_relu6 <- function(input, inplace = FALSE) if (inplace) torch_hardtanh_(input, 0, 6) else torch_relu6(input)

nnf_elu <- function(input, alpha = 1, inplace = FALSE) if (inplace) torch_elu_(input, alpha) else torch_elu(input, alpha)

nnf_rrelu <- function(input, lower = 1 / 8, upper = 1 / 3, training = FALSE, inplace = FALSE) {
  if (inplace) torch_rrelu_(input, lower, upper, training) else torch_rrelu(input, lower, upper, training)
}

nnf_softmax <- function(input, dim, dtype = NULL) torch_softmax(input, dim, dtype)

nnf_log_softmax <- function(input, dim = NULL, dtype = NULL) torch_log_softmax(input, dim, dtype)

nnf_softmin <- function(input, dim, dtype = NULL) torch_softmax(torch_neg(input), dim, dtype)

nnf_gumbel_softmax <- function(logits, tau = 1, hard = FALSE, dim = -1) {
  noise <- torch_neg(torch_log(torch_neg(torch_log(torch_clamp(torch_rand_like(logits), min = 1e-20)))))
  soft <- torch_softmax((logits + noise) / tau, dim)
  if (!hard) return(soft)
  chosen <- torch_scatter(torch_zeros_like(soft), dim, torch_argmax(soft, dim, keepdim = TRUE), 1)
  chosen - torch_detach(soft) + soft # the gradient is the soft one's
}

nnf_logsigmoid <- function(input) torch_log_sigmoid(input)

nnf_softsign <- function(input) input / (torch_abs(input) + 1)

nnf_tanhshrink <- function(input) input - torch_tanh(input)

nnf_normalize <- function(input, p = 2, dim = 2, eps = 1e-12, out = NULL) {
  found <- input / torch_clamp(torch_linalg_vector_norm(input, p, dim, TRUE), min = eps)
  if (is.null(out)) found else torch_copy_(out, found)
}

nnf_local_response_norm <- function(input, size, alpha = 1e-4, beta = 0.75, k = 1) {
  squares <- torch_unsqueeze(torch_mul(input, input), 2)
  flat <- torch_flatten(squares, 4)
  if (length(dim(flat)) < 4) flat <- torch_unsqueeze(flat, 4)
  means <- torch_avg_pool2d(nnf_pad(flat, c(0, 0, size %/% 2, (size - 1) %/% 2)), c(size, 1), 1)
  input / torch_pow(torch_reshape(means, dim(input)) * alpha + k, beta)
}

# ---- embeddings ----

nnf_embedding <- function(input, weight, padding_idx = NULL, max_norm = NULL, norm_type = 2, scale_grad_by_freq = FALSE,
                          sparse = FALSE) {
  renormed(weight, input, max_norm, norm_type)
  torch_embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)
}

# Rows that are looked up are made no longer than `max_norm`, in place.
renormed <- function(weight, input, max_norm, norm_type) {
  if (!is.null(max_norm)) with_no_grad(torch_embedding_renorm_(weight, input, max_norm, norm_type))
}

nnf_embedding_bag <- function(input, weight, offsets = NULL, max_norm = NULL, norm_type = 2, scale_grad_by_freq = FALSE,
                              mode = "mean", sparse = FALSE, per_sample_weights = NULL, include_last_offset = FALSE,
                              padding_idx = NULL) {
  if (length(dim(input)) == 2) {
    if (!is.null(offsets)) refuse("rows of a matrix are bags: there are no offsets to give")
    offsets <- torch_arange(1L, as.integer(length(input)), as.integer(dim(input)[2]))
    input <- torch_flatten(input)
    if (!is.null(per_sample_weights)) per_sample_weights <- torch_flatten(per_sample_weights)
  }
  kind <- match(mode, c("sum", "mean", "max")) - 1
  if (is.na(kind)) refuse("mode is 'sum', 'mean' or 'max'")
  renormed(weight, input, max_norm, norm_type)
  torch_embedding_bag(weight, input, offsets, scale_grad_by_freq, kind, sparse, per_sample_weights, include_last_offset,
                      padding_idx)[[1]]
}

nnf_one_hot <- function(tensor, num_classes = -1) torch_one_hot(tensor, num_classes)

# ---- losses ----

# A target of another size is broadcast, which is seldom what was meant.
warn_of_sizes <- function(input, target) {
  if (!identical(dim(input), dim(target))) {
    warning("Using a target size ", toString(dim(target)), " that is different to the input size ", toString(dim(input)),
            ": they are broadcast", call. = FALSE)
  }
}

nnf_mse_loss <- function(input, target, reduction = "mean") {
  warn_of_sizes(input, target)
  torch_mse_loss(input, target, reduction)
}

nnf_l1_loss <- function(input, target, reduction = "mean") {
  warn_of_sizes(input, target)
  torch_l1_loss(input, target, reduction)
}

nnf_smooth_l1_loss <- function(input, target, reduction = "mean", beta = 1) {
  warn_of_sizes(input, target)
  torch_smooth_l1_loss(input, target, reduction, beta)
}

nnf_cross_entropy <- function(input, target, weight = NULL, ignore_index = -100, reduction = "mean",
                              label_smoothing = 0) {
  torch_cross_entropy_loss(input, target, weight, reduction, class_index(ignore_index), label_smoothing)
}

nnf_nll_loss <- function(input, target, weight = NULL, ignore_index = -100, reduction = "mean") {
  torch_nll_loss_nd(input, target, weight, reduction, class_index(ignore_index))
}

class_index <- function(ignore_index) {
  if (ignore_index == 0) refuse("ignore_index is a 1 based class index, or a negative number that no target is: not 0")
  ignore_index
}

nnf_binary_cross_entropy <- function(input, target, weight = NULL, reduction = "mean") {
  torch_binary_cross_entropy(input, target, weight, reduction)
}

nnf_binary_cross_entropy_with_logits <- function(input, target, weight = NULL, reduction = "mean", pos_weight = NULL) {
  torch_binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)
}

nnf_poisson_nll_loss <- function(input, target, log_input = TRUE, full = FALSE, eps = 1e-8, reduction = "mean") {
  torch_poisson_nll_loss(input, target, log_input, full, eps, reduction)
}

nnf_multilabel_margin_loss <- function(input, target, reduction = "mean") {
  torch_multilabel_margin_loss(input, target, reduction)
}

nnf_multilabel_soft_margin_loss <- function(input, target, weight = NULL, reduction = "mean") {
  loss <- torch_neg(target * torch_log_sigmoid(input) + (1 - target) * torch_log_sigmoid(-input))
  if (!is.null(weight)) loss <- loss * weight
  reduced(torch_mean(loss, -1), reduction)
}

nnf_triplet_margin_with_distance_loss <- function(anchor, positive, negative, distance_function = NULL, margin = 1,
                                                  swap = FALSE, reduction = "mean") {
  distance <- if (is.null(distance_function)) torch_pairwise_distance else distance_function
  apart <- distance(anchor, negative)
  if (swap) apart <- torch_minimum(apart, distance(positive, negative))
  reduced(torch_relu(distance(anchor, positive) - apart + margin), reduction)
}

nnf_ctc_loss <- function(log_probs, targets, input_lengths, target_lengths, blank = 0, reduction = "mean",
                         zero_infinity = FALSE) {
  torch_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
}

reduced <- function(loss, reduction) {
  switch(reduction, none = loss, mean = torch_mean(loss), sum = torch_sum(loss),
         refuse("reduction is 'none', 'mean' or 'sum', not '", reduction, "'"))
}

# ---- norms, shapes ----

nnf_batch_norm <- function(input, running_mean = NULL, running_var = NULL, weight = NULL, bias = NULL, training = FALSE,
                           momentum = 0.1, eps = 1e-5) {
  torch_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, FALSE)
}

nnf_instance_norm <- function(input, running_mean = NULL, running_var = NULL, weight = NULL, bias = NULL,
                              use_input_stats = TRUE, momentum = 0.1, eps = 1e-5) {
  torch_instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, FALSE)
}

nnf_layer_norm <- function(input, normalized_shape, weight = NULL, bias = NULL, eps = 1e-5) {
  torch_layer_norm(input, normalized_shape, weight, bias, eps)
}

nnf_pad <- function(input, pad, mode = "constant", value = 0) torch_pad(input, pad, mode, value)

# By mode: the operator's name without its rank, and how many dimensions it resizes.
resizing <- list(
  nearest = list("torch_upsample_nearest", 1:3), `nearest-exact` = list("torch__upsample_nearest_exact", 1:3),
  linear = list("torch_upsample_linear", 1), bilinear = list("torch_upsample_bilinear", 2),
  bicubic = list("torch_upsample_bicubic", 2), trilinear = list("torch_upsample_trilinear", 3)
)

nnf_interpolate <- function(input, size = NULL, scale_factor = NULL, mode = "nearest", align_corners = NULL,
                            recompute_scale_factor = NULL) {
  if (is.null(size) == is.null(scale_factor)) refuse("one of size and scale_factor is given")
  rank <- length(dim(input)) - 2
  for (given in list(size, scale_factor)) {
    if (!length(given) %in% c(0, 1, rank)) refuse("a tensor of ", rank + 2, " dimensions is resized by 1 or ", rank, " numbers, not ", length(given))
  }
  if (!is.null(size)) size <- rep_len(size, rank)
  if (!is.null(scale_factor)) scale_factor <- rep_len(scale_factor, rank)
  if (isTRUE(recompute_scale_factor) && !is.null(scale_factor)) { # by the size that results, and not by the factor
    size <- floor(utils::tail(dim(input), rank) * scale_factor)
    scale_factor <- NULL
  }
  if (mode == "area") {
    pool <- list(torch_adaptive_avg_pool1d, torch_adaptive_avg_pool2d, torch_adaptive_avg_pool3d)[[rank]]
    return(pool(input, if (is.null(size)) floor(utils::tail(dim(input), rank) * scale_factor) else size))
  }
  if (!mode %in% names(resizing)) refuse("mode is one of ", toString(c(names(resizing), "area")))
  if (!rank %in% resizing[[mode]][[2]]) {
    refuse("mode '", mode, "' does not resize a tensor of ", rank + 2, " dimensions")
  }
  resize <- get(paste0(resizing[[mode]][[1]], rank, "d"), mode = "function")
  if (startsWith(mode, "nearest")) return(resize(input, size, scale_factors = scale_factor))
  resize(input, size, isTRUE(align_corners), scale_factors = scale_factor)
}

nnf_unfold <- function(input, kernel_size, dilation = 1, padding = 0, stride = 1) {
  torch_im2col(input, kernel_size, dilation, padding, stride)
}

nnf_fold <- function(input, output_size, kernel_size, dilation = 1, padding = 0, stride = 1) {
  torch_col2im(input, output_size, kernel_size, dilation, padding, stride)
}

nnf_affine_grid <- function(theta, size, align_corners = FALSE) torch_affine_grid_generator(theta, size, align_corners)

nnf_grid_sample <- function(input, grid, mode = "bilinear", padding_mode = "zeros", align_corners = FALSE) {
  modes <- c("bilinear", "nearest", "bicubic")
  paddings <- c("zeros", "border", "reflection")
  if (!mode %in% modes) refuse("mode is ", paste0("'", modes, "'", collapse = ", "))
  if (!padding_mode %in% paddings) refuse("padding_mode is ", paste0("'", paddings, "'", collapse = ", "))
  torch_grid_sampler(input, grid, match(mode, modes) - 1, match(padding_mode, paddings) - 1, align_corners)
}

# ---- pooling; what it calls indices goes to unpooling as it is ----

new_max_pool <- function(pool, pool_with_indices) {
  force(pool)
  force(pool_with_indices)
  function(input, kernel_size, stride = NULL, padding = 0, dilation = 1, ceil_mode = FALSE, return_indices = FALSE) {
    found <- (if (return_indices) pool_with_indices else pool)(input, kernel_size, stride, padding, dilation, ceil_mode)
    if (return_indices) unname(found) else found
  }
}

nnf_max_pool1d <- new_max_pool(function(...) torch_max_pool1d(...), function(...) torch_max_pool1d_with_indices(...))
nnf_max_pool2d <- new_max_pool(function(...) torch_max_pool2d(...), function(...) torch_max_pool2d_with_indices(...))
nnf_max_pool3d <- new_max_pool(function(...) torch_max_pool3d(...), function(...) torch_max_pool3d_with_indices(...))

new_adaptive_max_pool <- function(pool) {
  force(pool)
  function(input, output_size, return_indices = FALSE) {
    found <- unname(pool(input, output_size))
    if (return_indices) found else found[[1]]
  }
}

nnf_adaptive_max_pool1d <- new_adaptive_max_pool(function(...) torch_adaptive_max_pool1d(...))
nnf_adaptive_max_pool2d <- new_adaptive_max_pool(function(...) torch_adaptive_max_pool2d(...))
nnf_adaptive_max_pool3d <- new_adaptive_max_pool(function(...) torch_adaptive_max_pool3d(...))

new_fractional_max_pool <- function(pool, rank) {
  force(pool)
  force(rank)
  function(input, kernel_size, output_size = NULL, output_ratio = NULL, return_indices = FALSE, random_samples = NULL) {
    if (is.null(output_size) == is.null(output_ratio)) refuse("one of output_size and output_ratio is given")
    sizes <- dim(input)
    if (is.null(output_size)) output_size <- floor(utils::tail(sizes, rank) * rep_len(output_ratio, rank))
    batched <- length(sizes) == rank + 2
    if (is.null(random_samples)) random_samples <- torch_rand(if (batched) sizes[1] else 1, sizes[length(sizes) - rank], rank)
    found <- unname(pool(input, kernel_size, output_size, random_samples))
    if (return_indices) found else found[[1]]
  }
}

nnf_fractional_max_pool2d <- new_fractional_max_pool(function(...) torch_fractional_max_pool2d(...), 2)
nnf_fractional_max_pool3d <- new_fractional_max_pool(function(...) torch_fractional_max_pool3d(...), 3)

norm_pool <- function(input, norm_type, kernel, pool, stride, ceil_mode) {
  means <- pool(torch_pow(input, norm_type), kernel, stride, 0, ceil_mode)
  torch_pow(torch_mul(torch_sign(means), torch_relu(torch_abs(means))) * prod(kernel), 1 / norm_type)
}

nnf_lp_pool1d <- function(input, norm_type, kernel_size, stride = NULL, ceil_mode = FALSE) {
  norm_pool(input, norm_type, kernel_size, torch_avg_pool1d, stride, ceil_mode)
}

nnf_lp_pool2d <- function(input, norm_type, kernel_size, stride = NULL, ceil_mode = FALSE) {
  norm_pool(input, norm_type, rep_len(kernel_size, 2), torch_avg_pool2d, stride, ceil_mode)
}

# The sizes before pooling, where none are given.
unpooled_sizes <- function(input, rank, kernel, stride, padding, given) {
  if (!is.null(given)) return(utils::tail(given, rank))
  stride <- rep_len(if (is.null(stride)) kernel else stride, rank)
  (utils::tail(dim(input), rank) - 1) * stride - 2 * rep_len(padding, rank) + rep_len(kernel, rank)
}

nnf_max_unpool1d <- function(input, indices, kernel_size, stride = NULL, padding = 0, output_size = NULL) {
  size <- unpooled_sizes(input, 1, kernel_size, stride, padding, output_size)
  torch_squeeze(torch_max_unpool2d(torch_unsqueeze(input, -1), torch_unsqueeze(indices, -1), c(size, 1)), -1)
}

nnf_max_unpool2d <- function(input, indices, kernel_size, stride = NULL, padding = 0, output_size = NULL) {
  torch_max_unpool2d(input, indices, unpooled_sizes(input, 2, kernel_size, stride, padding, output_size))
}

nnf_max_unpool3d <- function(input, indices, kernel_size, stride = NULL, padding = 0, output_size = NULL) {
  torch_max_unpool3d(input, indices, unpooled_sizes(input, 3, kernel_size, stride, padding, output_size),
                     rep_len(if (is.null(stride)) kernel_size else stride, 3), rep_len(padding, 3))
}
