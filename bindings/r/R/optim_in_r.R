# Optimizers whose steps are written in R: those that libtenfold does not have.

# One update of each parameter that has a gradient, after the closure, if there is one, computed them.
each_gradient <- function(self, closure, update) {
  loss <- if (is.null(closure)) NULL else with_enable_grad(closure())
  local_no_grad()
  for (options in self$param_groups) for (param in options$params) {
    grad <- .Call(C_tf_grad, param)
    if (is.null(grad)) next
    if (!is.null(options$weight_decay) && options$weight_decay != 0) grad <- grad + param * options$weight_decay
    update(param, grad, state_of(self, param), options)
  }
  loss
}

optim_adadelta <- optimizer(
  "optim_adadelta",
  initialize = function(params, lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0) {
    init_optimizer(self, params, list(lr = lr, rho = rho, eps = eps, weight_decay = weight_decay))
  },
  step = function(closure = NULL) {
    each_gradient(self, closure, function(param, grad, state, o) {
      if (is.null(state$step)) {
        state$step <- 0
        state$square_avg <- torch_zeros_like(param)
        state$acc_delta <- torch_zeros_like(param)
      }
      state$step <- state$step + 1
      state$square_avg <- state$square_avg * o$rho + grad * grad * (1 - o$rho)
      delta <- torch_sqrt(state$acc_delta + o$eps) / torch_sqrt(state$square_avg + o$eps) * grad
      state$acc_delta <- state$acc_delta * o$rho + delta * delta * (1 - o$rho)
      torch_sub_(param, delta * o$lr)
    })
  }
)

optim_asgd <- optimizer(
  "optim_asgd",
  initialize = function(params, lr = 1e-2, lambda = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0) {
    init_optimizer(self, params, list(lr = lr, lambda = lambda, alpha = alpha, t0 = t0, weight_decay = weight_decay))
  },
  step = function(closure = NULL) {
    each_gradient(self, closure, function(param, grad, state, o) {
      if (is.null(state$step)) {
        state$step <- 0
        state$eta <- o$lr
        state$mu <- 1
        state$ax <- torch_zeros_like(param)
      }
      state$step <- state$step + 1
      torch_mul_(param, 1 - o$lambda * state$eta)
      torch_sub_(param, grad * state$eta)
      state$ax <- if (state$mu == 1) torch_clone(param) else state$ax + (param - state$ax) * state$mu
      state$eta <- o$lr / (1 + o$lambda * o$lr * state$step)^o$alpha
      state$mu <- 1 / max(1, state$step - o$t0)
    })
  }
)

optim_rprop <- optimizer(
  "optim_rprop",
  initialize = function(params, lr = 1e-2, etas = c(0.5, 1.2), step_sizes = c(1e-6, 50)) {
    init_optimizer(self, params, list(lr = lr, etas = etas, step_sizes = step_sizes))
  },
  step = function(closure = NULL) {
    each_gradient(self, closure, function(param, grad, state, o) {
      if (is.null(state$step)) {
        state$step <- 0
        state$prev <- torch_zeros_like(param)
        state$step_size <- torch_full_like(grad, o$lr)
      }
      state$step <- state$step + 1
      agreement <- torch_sign(grad * state$prev)
      factor <- torch_where(agreement > 0, o$etas[2], torch_where(agreement < 0, o$etas[1], 1))
      state$step_size <- torch_clamp(state$step_size * torch_to(factor, param$dtype), o$step_sizes[1], o$step_sizes[2])
      grad <- torch_where(agreement < 0, torch_zeros_like(grad), grad)
      torch_sub_(param, torch_sign(grad) * state$step_size)
      state$prev <- grad
    })
  }
)

optim_lbfgs <- optimizer(
  "optim_lbfgs",
  initialize = function(params, lr = 1, max_iter = 20, max_eval = NULL, tolerance_grad = 1e-7,
                        tolerance_change = 1e-9, history_size = 100, line_search_fn = NULL) {
    if (!is.null(line_search_fn) && line_search_fn != "strong_wolfe") refuse("line_search_fn is NULL or 'strong_wolfe'")
    init_optimizer(self, params, list(
      lr = lr, max_iter = max_iter, max_eval = if (is.null(max_eval)) (max_iter * 5) %/% 4 else max_eval,
      tolerance_grad = tolerance_grad, tolerance_change = tolerance_change, history_size = history_size,
      line_search_fn = line_search_fn
    ))
  },
  step = function(closure = NULL) lbfgs_step(self, closure)
)
