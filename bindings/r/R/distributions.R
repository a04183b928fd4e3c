# Distributions: samples, the logarithms of their probabilities, means and entropies.

# `parameters` are broadcast against each other; the last `event` dimensions of a sample belong together. A method is a
# function of the distribution, `self`, first.
new_distribution <- function(name, parameters, methods, event = NULL) {
  self <- new.env(parent = emptyenv())
  list2env(parameters, self)
  batch <- parameters[[1]]$shape
  if (length(event)) batch <- utils::head(batch, -length(event))
  self$batch_shape <- batch
  self$event_shape <- event
  for (each in names(methods)) local({
    method <- methods[[each]]
    assign(each, function(...) method(self, ...), self)
  })
  if (!is.null(self$rsample) && is.null(methods$sample)) self$sample <- function(...) with_no_grad(self$rsample(...))
  if (is.null(self$rsample)) self$rsample <- function(...) refuse("gradients do not flow through samples of ", name)
  properties <- c("mean", "variance", "stddev")
  if (is.null(self$stddev)) self$stddev <- function() torch_sqrt(self$variance)
  for (each in properties) {
    get <- self[[each]]
    rm(list = each, envir = self)
    makeActiveBinding(each, get, self)
  }
  self$perplexity <- function() torch_exp(self$entropy())
  words <- strsplit(sub("^distr_", "", name), "_")[[1]]
  camel <- paste0("torch_", paste0(toupper(substr(words, 1, 1)), substring(words, 2), collapse = ""))
  structure(self, class = c(name, camel, "torch_distribution", "torch_Distribution"))
}

print.torch_distribution <- function(x, ...) {
  cat("<", class(x)[1], " of [", toString(x$batch_shape), "]",
      if (length(x$event_shape)) paste0(" events of [", toString(x$event_shape), "]"), ">\n", sep = "")
  invisible(x)
}

# Numbers and tensors as tensors of one shape.
together <- function(...) torch_broadcast_tensors(lapply(list(...), as_parameter))

as_parameter <- function(x) if (is_torch_tensor(x)) x else as_tensor(x)

sample_sizes <- function(self, sample_shape) as.integer(c(sample_shape, self$batch_shape, self$event_shape))

one_of <- function(probs, logits) {
  if (is.null(probs) == is.null(logits)) refuse("either probs or logits is given, and not both")
}

check_all <- function(truths, what) {
  if (!torch_all(truths)$item()) refuse(what)
}

distr_normal <- function(loc, scale, validate_args = NULL) {
  given <- together(loc, scale)
  if (!isFALSE(validate_args)) check_all(given[[2]] > 0, "the scale of a normal distribution is above 0")
  new_distribution("distr_normal", list(loc = given[[1]], scale = given[[2]]), list(
    mean = function(self) self$loc,
    variance = function(self) self$scale^2,
    stddev = function(self) self$scale,
    rsample = function(self, sample_shape = NULL) {
      noise <- torch_randn(sample_sizes(self, sample_shape), dtype = self$loc$dtype, device = self$loc$device)
      self$loc + noise * self$scale
    },
    log_prob = function(self, value) {
      -((value - self$loc)^2) / (2 * self$variance) - torch_log(self$scale) - log(sqrt(2 * pi))
    },
    cdf = function(self, value) 0.5 * (1 + torch_erf((value - self$loc) / (self$scale * sqrt(2)))),
    icdf = function(self, value) self$loc + self$scale * torch_erfinv(2 * as_parameter(value) - 1) * sqrt(2),
    entropy = function(self) 0.5 + 0.5 * log(2 * pi) + torch_log(self$scale),
    expand = function(self, batch_shape) distr_normal(self$loc$expand(batch_shape), self$scale$expand(batch_shape), FALSE)
  ))
}

distr_gamma <- function(concentration, rate, validate_args = NULL) {
  given <- together(concentration, rate)
  if (!isFALSE(validate_args)) check_all((given[[1]] > 0) & (given[[2]] > 0), "concentration and rate are above 0")
  new_distribution("distr_gamma", list(concentration = given[[1]], rate = given[[2]]), list(
    mean = function(self) self$concentration / self$rate,
    variance = function(self) self$concentration / self$rate^2,
    rsample = function(self, sample_shape = NULL) {
      standard <- torch__standard_gamma(self$concentration$expand(sample_sizes(self, sample_shape)))
      torch_clamp(standard / self$rate, min = torch_finfo(standard$dtype)$tiny)
    },
    log_prob = function(self, value) {
      value <- as_parameter(value)
      torch_xlogy(self$concentration, self$rate) + torch_xlogy(self$concentration - 1, value) - self$rate * value -
        torch_lgamma(self$concentration)
    },
    cdf = function(self, value) torch_special_gammainc(self$concentration, self$rate * value),
    entropy = function(self) {
      self$concentration - torch_log(self$rate) + torch_lgamma(self$concentration) +
        (1 - self$concentration) * torch_digamma(self$concentration)
    },
    expand = function(self, batch_shape) {
      distr_gamma(self$concentration$expand(batch_shape), self$rate$expand(batch_shape), FALSE)
    }
  ))
}

distr_chi2 <- function(df, validate_args = NULL) {
  made <- distr_gamma(0.5 * as_parameter(df), 0.5, validate_args)
  made$df <- as_parameter(df)
  made$expand <- function(batch_shape) distr_chi2(made$df$expand(batch_shape), FALSE)
  class(made) <- c("distr_chi2", class(made))
  made
}

distr_poisson <- function(rate, validate_args = NULL) {
  rate <- as_parameter(rate)
  if (!isFALSE(validate_args)) check_all(rate >= 0, "the rate of a Poisson distribution is not below 0")
  new_distribution("distr_poisson", list(rate = rate), list(
    mean = function(self) self$rate,
    variance = function(self) self$rate,
    sample = function(self, sample_shape = NULL) {
      with_no_grad(torch_poisson(self$rate$expand(sample_sizes(self, sample_shape))))
    },
    log_prob = function(self, value) {
      value <- as_parameter(value)
      torch_xlogy(value, self$rate) - self$rate - torch_lgamma(value + 1)
    },
    expand = function(self, batch_shape) distr_poisson(self$rate$expand(batch_shape), FALSE)
  ))
}

distr_bernoulli <- function(probs = NULL, logits = NULL, validate_args = NULL) {
  one_of(probs, logits)
  if (is.null(logits)) {
    probs <- as_parameter(probs)
    if (!isFALSE(validate_args)) check_all((probs >= 0) & (probs <= 1), "probabilities lie between 0 and 1")
    logits <- torch_logit(probs, torch_finfo(probs$dtype)$eps)
  } else {
    logits <- as_parameter(logits)
    probs <- torch_sigmoid(logits)
  }
  new_distribution("distr_bernoulli", list(probs = probs, logits = logits), list(
    mean = function(self) self$probs,
    variance = function(self) self$probs * (1 - self$probs),
    sample = function(self, sample_shape = NULL) {
      with_no_grad(torch_bernoulli(self$probs$expand(sample_sizes(self, sample_shape))))
    },
    log_prob = function(self, value) {
      given <- together(self$logits, value)
      -nnf_binary_cross_entropy_with_logits(given[[1]], given[[2]], reduction = "none")
    },
    entropy = function(self) nnf_binary_cross_entropy_with_logits(self$logits, self$probs, reduction = "none"),
    enumerate_support = function(self, expand = TRUE) support_of(self, torch_tensor(c(0, 1), dtype = self$probs$dtype), expand),
    expand = function(self, batch_shape) distr_bernoulli(probs = self$probs$expand(batch_shape), validate_args = FALSE)
  ))
}

# All values that a sample may have, along a new first dimension.
support_of <- function(self, values, expand) {
  values <- torch_reshape(values, c(-1, rep(1, length(self$batch_shape))))
  if (expand) values$expand(c(-1, self$batch_shape)) else values
}

# Values are positions of the last dimension, from 1.
distr_categorical <- function(probs = NULL, logits = NULL, validate_args = NULL) {
  one_of(probs, logits)
  given <- as_parameter(if (is.null(logits)) probs else logits)
  if (length(given$shape) < 1) refuse("probabilities of a categorical distribution have a dimension at least")
  if (is.null(logits)) {
    if (!isFALSE(validate_args)) check_all(given >= 0, "probabilities are not below 0")
    probs <- given / torch_sum(given, -1, keepdim = TRUE)
    eps <- torch_finfo(given$dtype)$eps
    logits <- torch_log(torch_clamp(probs, eps, 1 - eps))
  } else {
    logits <- given - torch_logsumexp(given, -1, keepdim = TRUE)
    probs <- torch_softmax(logits, -1)
  }
  batch <- utils::head(probs$shape, -1)
  classes <- utils::tail(probs$shape, 1)
  none <- function(self) torch_full(batch, NaN, dtype = probs$dtype, device = probs$device)
  made <- new_distribution("distr_categorical", list(probs = probs, logits = logits), list(
    mean = none,
    variance = none,
    sample = function(self, sample_shape = NULL) {
      count <- as.integer(prod(sample_shape))
      chosen <- torch_multinomial(torch_reshape(self$probs, c(-1, classes)), count, replacement = TRUE)
      torch_reshape(torch_t(chosen), c(sample_shape, batch))
    },
    log_prob = function(self, value) {
      value <- torch_unsqueeze(torch_to(as_tensor(value), dtype = torch_int64()), -1)
      sizes <- torch_broadcast_tensors(list(value, torch_narrow(self$logits, -1, 1, 1)))[[1]]$shape
      logits <- self$logits$expand(c(utils::head(sizes, -1), classes))
      torch_squeeze(torch_gather(logits, -1, value$expand(sizes)), -1)
    },
    entropy = function(self) -torch_sum(torch_clamp(self$logits, min = torch_finfo(self$logits$dtype)$min) * self$probs, -1),
    enumerate_support = function(self, expand = TRUE) support_of(self, torch_tensor(seq_len(classes)), expand),
    expand = function(self, batch_shape) {
      distr_categorical(probs = self$probs$expand(c(batch_shape, classes)), validate_args = FALSE)
    }
  ))
  made$batch_shape <- batch
  made
}
