library(tenfold)
near <- function(x, y, most = 1e-4) max(abs(as.numeric(x) - as.numeric(y))) < most
refused <- function(code) inherits(tryCatch(code, error = identity), "tenfold_error")
torch_manual_seed(1)

normal <- distr_normal(c(0, 1), 2)
stopifnot(near(normal$log_prob(c(1, 2)), dnorm(c(1, 2), c(0, 1), 2, log = TRUE)), near(normal$cdf(1), pnorm(1, c(0, 1), 2)))
stopifnot(near(normal$icdf(0.3), qnorm(0.3, c(0, 1), 2)), near(normal$mean, c(0, 1)), near(normal$variance, 4))
drawn <- normal$sample(20000)
stopifnot(identical(dim(drawn), c(20000L, 2L)), near(torch_mean(drawn, 1), c(0, 1), 0.1), near(torch_std(drawn, 1), 2, 0.1))
centre <- torch_tensor(1, requires_grad = TRUE)
distr_normal(centre, 1)$rsample()$sum()$backward()
stopifnot(near(centre$grad, 1), identical(dim(distr_normal(0, 1)$expand(c(2, 3))$sample()), c(2L, 3L)))

gamma <- distr_gamma(c(2, 3), 1.5)
stopifnot(near(gamma$log_prob(c(1, 2)), dgamma(c(1, 2), c(2, 3), 1.5, log = TRUE)), near(gamma$cdf(1), pgamma(1, c(2, 3), 1.5)))
stopifnot(near(torch_mean(gamma$sample(20000), 1), c(2, 3) / 1.5, 0.1))
stopifnot(near(distr_chi2(3)$log_prob(2), dchisq(2, 3, log = TRUE)), near(distr_chi2(3)$mean, 3))
stopifnot(near(distr_poisson(2)$log_prob(3), dpois(3, 2, log = TRUE)), near(torch_mean(distr_poisson(2)$sample(20000)), 2, 0.1))

coins <- distr_bernoulli(probs = c(0.2, 0.7))
stopifnot(near(coins$log_prob(c(1, 0)), log(c(0.2, 0.3))), near(distr_bernoulli(logits = 0)$probs, 0.5))
stopifnot(identical(dim(coins$sample(c(3, 2))), c(3L, 2L, 2L)), identical(dim(coins$enumerate_support()), c(2L, 2L)))
dice <- distr_categorical(probs = matrix(c(0.1, 0.9, 0.5, 0.5), 2, byrow = TRUE))
stopifnot(near(dice$log_prob(c(2, 1)), log(c(0.9, 0.5))), near(dice$entropy()[2], log(2)), near(dice$perplexity()[2], 2))
thrown <- as_array(dice$sample(5000))
stopifnot(identical(dim(thrown), c(5000L, 2L)), all(thrown %in% 1:2), near(mean(thrown[, 1] == 2), 0.9, 0.05))

covariance <- matrix(c(2, 0.5, 0.5, 1), 2)
v <- c(0.5, 1)
density <- -0.5 * (2 * log(2 * pi) + log(det(covariance)) + t(v - 1:2) %*% solve(covariance) %*% (v - 1:2))
for (vector in list(distr_multivariate_normal(c(1, 2), covariance),
                    distr_multivariate_normal(c(1, 2), precision_matrix = solve(covariance)),
                    distr_multivariate_normal(c(1, 2), scale_tril = t(chol(covariance))))) {
  stopifnot(near(vector$log_prob(v), density), near(vector$variance, c(2, 1)), identical(dim(vector$sample(4)), c(4L, 2L)))
}
mixture <- distr_mixture_same_family(distr_categorical(probs = c(0.3, 0.7)), distr_normal(c(0, 5), c(1, 2)))
stopifnot(near(mixture$log_prob(1), log(0.3 * dnorm(1) + 0.7 * dnorm(1, 5, 2))), near(mixture$mean, 3.5))
stopifnot(near(mixture$variance, 0.3 * (1 + 12.25) + 0.7 * (4 + 2.25)), near(torch_mean(mixture$sample(20000)), 3.5, 0.1))

stopifnot(refused(distr_normal(0, -1)), refused(distr_bernoulli()), refused(distr_categorical(probs = c(-1, 2))))
stopifnot(refused(distr_poisson(2)$rsample()), refused(distr_multivariate_normal(c(1, 2))))
cat("fine")
