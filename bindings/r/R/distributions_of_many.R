# Distributions of vectors, and mixtures of distributions.

distr_multivariate_normal <- function(loc, covariance_matrix = NULL, precision_matrix = NULL, scale_tril = NULL,
                                      validate_args = NULL) {
  given <- list(covariance_matrix, precision_matrix, scale_tril)
  if (sum(!vapply(given, is.null, TRUE)) != 1) {
    refuse("one of covariance_matrix, precision_matrix and scale_tril is given, and not several")
  }
  tril <- if (!is.null(scale_tril)) as_tensor(scale_tril)
          else linalg_cholesky(if (is.null(precision_matrix)) as_tensor(covariance_matrix) else linalg_inv(as_tensor(precision_matrix)))
  loc <- as_tensor(loc)
  size <- utils::tail(tril$shape, 1)
  batch <- torch_broadcast_tensors(list(torch_unsqueeze(loc, -1), torch_narrow(tril, -1, 1, 1)))[[1]]$shape
  batch <- utils::head(batch, -2)
  forms <- list(
    covariance_matrix = function() torch_matmul(made$scale_tril, torch_transpose(made$scale_tril, -2, -1)),
    precision_matrix = function() torch_cholesky_inverse(made$scale_tril)
  )
  made <- new_distribution("distr_multivariate_normal",
    list(loc = loc$expand(c(batch, size)), scale_tril = tril$expand(c(batch, size, size))), list(
      mean = function(self) self$loc,
      variance = function(self) torch_sum(self$scale_tril^2, -1),
      rsample = function(self, sample_shape = NULL) {
        noise <- torch_randn(sample_sizes(self, sample_shape), dtype = self$loc$dtype, device = self$loc$device)
        self$loc + torch_squeeze(torch_matmul(self$scale_tril, torch_unsqueeze(noise, -1)), -1)
      },
      log_prob = function(self, value) {
        apart <- torch_unsqueeze(as_tensor(value) - self$loc, -1)
        solved <- linalg_solve_triangular(self$scale_tril, apart, upper = FALSE)
        -0.5 * (size * log(2 * pi) + torch_sum(torch_squeeze(solved, -1)^2, -1)) - half_log_determinant(self)
      },
      entropy = function(self) 0.5 * size * (1 + log(2 * pi)) + half_log_determinant(self),
      expand = function(self, batch_shape) {
        distr_multivariate_normal(self$loc$expand(c(batch_shape, size)),
                                  scale_tril = self$scale_tril$expand(c(batch_shape, size, size)))
      }
    ), event = size)
  for (each in names(forms)) makeActiveBinding(each, forms[[each]], made)
  made
}

half_log_determinant <- function(self) {
  torch_sum(torch_log(torch_diagonal(self$scale_tril, dim1 = -2, dim2 = -1)), -1)
}

# One of several distributions of a kind, along the last dimension of their batches, chosen by a categorical one.
distr_mixture_same_family <- function(mixture_distribution, component_distribution, validate_args = NULL) {
  if (!inherits(mixture_distribution, "distr_categorical") || !inherits(component_distribution, "torch_distribution")) {
    refuse("a mixture has a categorical distribution and one of components", kind = "TYPE")
  }
  mixture <- mixture_distribution
  components <- component_distribution
  event <- components$event_shape
  along <- -1 - length(event)
  shares <- function() {
    probs <- mixture$probs
    for (i in seq_along(event)) probs <- torch_unsqueeze(probs, -1)
    probs
  }
  made <- new_distribution("distr_mixture_same_family", list(probs = mixture$probs), list(
    mean = function(self) torch_sum(shares() * components$mean, along),
    variance = function(self) {
      spread <- torch_sum(shares() * components$variance, along)
      spread + torch_sum(shares() * (components$mean - torch_unsqueeze(self$mean, along))^2, along)
    },
    sample = function(self, sample_shape = NULL) {
      with_no_grad({
        chosen <- torch_unsqueeze(mixture$sample(sample_shape), -1)
        for (i in seq_along(event)) chosen <- torch_unsqueeze(chosen, -1)
        drawn <- components$sample(sample_shape)
        sizes <- drawn$shape
        sizes[length(sizes) + 1 + along] <- 1L
        torch_squeeze(torch_gather(drawn, along, chosen$expand(sizes)), along)
      })
    },
    log_prob = function(self, value) {
      each <- components$log_prob(torch_unsqueeze(as_parameter(value), along))
      torch_logsumexp(each + torch_log_softmax(mixture$logits, -1), -1)
    },
    cdf = function(self, value) torch_sum(components$cdf(torch_unsqueeze(as_parameter(value), along)) * mixture$probs, -1)
  ))
  made$batch_shape <- mixture$batch_shape
  made$event_shape <- event
  made
}
