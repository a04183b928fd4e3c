# Activations and losses as modules, over the functions of nnf.R.

# An activation whose options are `defaults`, in that order. One with `inplace` writes into its input where that is TRUE.
activation <- function(name, apply, defaults = alist()) {
  initialize <- function() NULL
  formals(initialize) <- defaults
  body(initialize) <- keeping(names(defaults))
  nn_module(name, initialize = initialize, forward = function(input) {
    do.call(apply, c(list(input), kept(parts, names(defaults))))
  })
}

nn_relu <- activation("nn_relu", function(...) nnf_relu(...), alist(inplace = FALSE))
nn_relu6 <- activation("nn_relu6", function(...) nnf_relu6(...), alist(inplace = FALSE))
nn_leaky_relu <- activation("nn_leaky_relu", function(...) nnf_leaky_relu(...), alist(negative_slope = 0.01, inplace = FALSE))
nn_elu <- activation("nn_elu", function(...) nnf_elu(...), alist(alpha = 1, inplace = FALSE))
nn_selu <- activation("nn_selu", function(...) nnf_selu(...), alist(inplace = FALSE))
nn_celu <- activation("nn_celu", function(...) nnf_celu(...), alist(alpha = 1, inplace = FALSE))
nn_gelu <- activation("nn_gelu", function(...) nnf_gelu(...), alist(approximate = "none"))
nn_glu <- activation("nn_glu", function(...) nnf_glu(...), alist(dim = -1))
nn_silu <- activation("nn_silu", function(...) nnf_silu(...), alist(inplace = FALSE))
nn_mish <- activation("nn_mish", function(...) nnf_mish(...), alist(inplace = FALSE))
nn_sigmoid <- activation("nn_sigmoid", function(x) torch_sigmoid(x))
nn_log_sigmoid <- activation("nn_log_sigmoid", function(x) torch_log_sigmoid(x))
nn_tanh <- activation("nn_tanh", function(x) torch_tanh(x))
nn_tanhshrink <- activation("nn_tanhshrink", function(x) nnf_tanhshrink(x))
nn_hardshrink <- activation("nn_hardshrink", function(...) torch_hardshrink(...), alist(lambd = 0.5))
nn_softshrink <- activation("nn_softshrink", function(...) torch_softshrink(...), alist(lambd = 0.5))
nn_hardsigmoid <- activation("nn_hardsigmoid", function(...) nnf_hardsigmoid(...), alist(inplace = FALSE))
nn_hardswish <- activation("nn_hardswish", function(...) nnf_hardswish(...), alist(inplace = FALSE))
nn_hardtanh <- activation("nn_hardtanh", function(...) nnf_hardtanh(...), alist(min_val = -1, max_val = 1, inplace = FALSE))
nn_softplus <- activation("nn_softplus", function(...) torch_softplus(...), alist(beta = 1, threshold = 20))
nn_softsign <- activation("nn_softsign", function(x) nnf_softsign(x))
nn_threshold <- activation("nn_threshold", function(...) nnf_threshold(...), alist(threshold = , value = , inplace = FALSE))
nn_softmax <- activation("nn_softmax", function(...) nnf_softmax(...), alist(dim = ))
nn_softmin <- activation("nn_softmin", function(...) nnf_softmin(...), alist(dim = ))
nn_softmax2d <- activation("nn_softmax2d", function(x) nnf_softmax(x, -3))
nn_log_softmax <- activation("nn_log_softmax", function(...) nnf_log_softmax(...), alist(dim = ))

nn_prelu <- nn_module(
  "nn_prelu",
  initialize = function(num_parameters = 1, init = 0.25) {
    self$num_parameters <- num_parameters
    self$weight <- nn_parameter(torch_full(num_parameters, init))
  },
  forward = function(input) torch_prelu(input, parts$weight)
)

nn_rrelu <- nn_module(
  "nn_rrelu",
  initialize = function(lower = 1 / 8, upper = 1 / 3, inplace = FALSE) {
    self$lower <- lower
    self$upper <- upper
    self$inplace <- inplace
  },
  forward = function(input) nnf_rrelu(input, parts$lower, parts$upper, training = parts$training, inplace = parts$inplace)
)

# ---- losses ----

# A loss whose options are `defaults`, in that order, the reduction among them.
new_loss <- function(name, compute, ...) {
  defaults <- list(...)
  initialize <- function() NULL
  formals(initialize) <- defaults
  body(initialize) <- keeping(names(defaults))
  nn_module(c(name, "nn_loss"), initialize = initialize, forward = function(...) {
    do.call(compute, c(list(...), kept(parts, names(defaults))))
  })
}

nn_mse_loss <- new_loss("nn_mse_loss", function(...) nnf_mse_loss(...), reduction = "mean")
nn_l1_loss <- new_loss("nn_l1_loss", function(...) nnf_l1_loss(...), reduction = "mean")
nn_smooth_l1_loss <- new_loss("nn_smooth_l1_loss", function(...) nnf_smooth_l1_loss(...), reduction = "mean", beta = 1)
nn_soft_margin_loss <- new_loss("nn_soft_margin_loss", function(...) torch_soft_margin_loss(...), reduction = "mean")
kl_div_with_warning <- function(input, target, reduction) {
  if (identical(reduction, "mean")) {
    warning("reduction = 'mean' divides by all elements: 'batchmean' is the mathematical mean", call. = FALSE)
  }
  if (identical(reduction, "batchmean")) return(torch_kl_div(input, target, "sum") / dim(input)[1])
  torch_kl_div(input, target, reduction)
}

nn_kl_div_loss <- new_loss("nn_kl_div_loss", function(...) kl_div_with_warning(...), reduction = "mean")
nn_multilabel_margin_loss <- new_loss("nn_multilabel_margin_loss", function(...) nnf_multilabel_margin_loss(...),
                                      reduction = "mean")
nn_hinge_embedding_loss <- new_loss("nn_hinge_embedding_loss", function(...) torch_hinge_embedding_loss(...), margin = 1,
                                    reduction = "mean")
nn_margin_ranking_loss <- new_loss("nn_margin_ranking_loss", function(...) torch_margin_ranking_loss(...), margin = 0,
                                   reduction = "mean")
nn_cosine_embedding_loss <- new_loss("nn_cosine_embedding_loss", function(...) torch_cosine_embedding_loss(...),
                                     margin = 0, reduction = "mean")
nn_triplet_margin_loss <- new_loss("nn_triplet_margin_loss", function(...) torch_triplet_margin_loss(...), margin = 1,
                                   p = 2, eps = 1e-6, swap = FALSE, reduction = "mean")
nn_triplet_margin_with_distance_loss <- new_loss(
  "nn_triplet_margin_with_distance_loss", function(...) nnf_triplet_margin_with_distance_loss(...),
  distance_function = NULL, margin = 1, swap = FALSE, reduction = "mean"
)
nn_poisson_nll_loss <- new_loss("nn_poisson_nll_loss", function(...) nnf_poisson_nll_loss(...), log_input = TRUE,
                                full = FALSE, eps = 1e-8, reduction = "mean")
nn_ctc_loss <- new_loss("nn_ctc_loss", function(...) nnf_ctc_loss(...), blank = 0, reduction = "mean",
                        zero_infinity = FALSE)

# Losses with a weight for each class or element, which is a buffer of theirs.
new_weighted_loss <- function(name, compute, ...) {
  defaults <- list(...)
  initialize <- function() NULL
  formals(initialize) <- c(alist(weight = NULL), defaults)
  body(initialize) <- call("{", quote(if (!is.null(weight)) self$weight <- nn_buffer(weight)), keeping(names(defaults)))
  nn_module(c(name, "nn_loss"), initialize = initialize, forward = function(...) {
    do.call(compute, c(list(...), list(weight = parts$weight), kept(parts, names(defaults))))
  })
}

nn_cross_entropy_loss <- new_weighted_loss("nn_cross_entropy_loss", function(...) nnf_cross_entropy(...),
                                           ignore_index = -100, reduction = "mean")
nn_nll_loss <- new_weighted_loss("nn_nll_loss", function(...) nnf_nll_loss(...), ignore_index = -100, reduction = "mean")
nn_bce_loss <- new_weighted_loss("nn_bce_loss", function(...) nnf_binary_cross_entropy(...), reduction = "mean")
nn_bce_with_logits_loss <- new_weighted_loss("nn_bce_with_logits_loss",
                                             function(...) nnf_binary_cross_entropy_with_logits(...), reduction = "mean",
                                             pos_weight = NULL)
nn_multilabel_soft_margin_loss <- new_weighted_loss("nn_multilabel_soft_margin_loss",
                                                    function(...) nnf_multilabel_soft_margin_loss(...), reduction = "mean")

nn_multi_margin_loss <- nn_module(
  c("nn_multi_margin_loss", "nn_loss"),
  initialize = function(p = 1, margin = 1, weight = NULL, reduction = "mean") {
    if (!is.null(weight)) self$weight <- nn_buffer(weight)
    self$p <- p
    self$margin <- margin
    self$reduction <- reduction
  },
  forward = function(input, target) {
    torch_multi_margin_loss(input, target, parts$p, parts$margin, parts$weight, parts$reduction)
  }
)
