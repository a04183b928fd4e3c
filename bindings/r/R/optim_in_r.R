# Optimizers whose steps are written in R: those that libtenfold does not have, and those of users, by `optimizer`.

# `initialize` calls init_optimizer(self, params, defaults), or super$initialize(params, defaults), which is the same;
# `step` reads self$param_groups and keeps self$state_of(param).
optimizer <- function(name = NULL, initialize, step, ...) {
  more <- list(...)
  taking_arguments_of(initialize, function(arguments) {
    self <- new.env(parent = emptyenv())
    base <- list(initialize = function(params, defaults) init_optimizer(self, params, defaults))
    own <- bound_methods(list(c(list(initialize = initialize, step = step), more), base), list(self = self))
    for (each in names(more)) assign(each, own[[each]], self)
    self$step <- function(closure = NULL) invisible(if (is.null(closure)) own$step() else own$step(closure))
    do.call(own$initialize, arguments)
    if (is.null(self$param_groups)) refuse("initialize of an optimizer calls init_optimizer(self, params, defaults)")
    structure(self, class = c(name, "torch_optimizer_in_r"))
  })
}

# The default of an argument that must be given.
optim_required <- function() structure(list(), class = "optim_required")

init_optimizer <- function(self, params, defaults) {
  lacking <- names(defaults)[vapply(defaults, inherits, TRUE, "optim_required")]
  if (length(lacking)) refuse("this optimizer needs ", toString(lacking))
  self$param_groups <- list(c(list(params = parameters_of(params)), defaults))
  states <- new.env(parent = emptyenv())
  self$state_of <- function(param) {
    at <- which(vapply(self$param_groups[[1]]$params, identical, TRUE, param))
    key <- as.character(at)
    if (is.null(states[[key]])) states[[key]] <- new.env(parent = emptyenv())
    states[[key]]
  }
  self$zero_grad <- function() {
    for (each in self$param_groups[[1]]$params) .Call(C_tf_set_grad, each, NULL)
    invisible()
  }
  self$state_dict <- function() {
    list(options = self$param_groups[[1]][-1], state = lapply(as.list(states), as.list))
  }
  self$load_state_dict <- function(state) {
    self$param_groups[[1]][names(state$options)] <- state$options
    for (key in names(state$state)) states[[key]] <- list2env(state$state[[key]], parent = emptyenv())
    invisible()
  }
  self$get <- function(option) {
    if (!option %in% names(self$param_groups[[1]])) refuse("this optimizer has no option ", option)
    self$param_groups[[1]][[option]]
  }
  self$set <- function(option, value) {
    self$get(option)
    self$param_groups[[1]][[option]] <- value
    invisible()
  }
  invisible(self)
}

is_optimizer <- function(x) inherits(x, c("torch_optimizer", "torch_optimizer_in_r"))

print.torch_optimizer_in_r <- function(x, ...) {
  cat("<", class(x)[1], ">\n", sep = "")
  invisible(x)
}

# One update of each parameter that has a gradient, after the closure, if there is one, computed them.
each_gradient <- function(self, closure, update) {
  loss <- if (is.null(closure)) NULL else with_enable_grad(closure())
  options <- self$param_groups[[1]]
  with_no_grad(for (param in options$params) {
    grad <- .Call(C_tf_grad, param)
    if (!is.null(grad)) {
      if (!is.null(options$weight_decay) && options$weight_decay != 0) grad <- grad + param * options$weight_decay
      update(param, grad, self$state_of(param), options)
    }
  })
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
      lr = lr, max_iter = max_iter, max_eval = if (is.null(max_eval)) max_iter * 5 %/% 4 else max_eval,
      tolerance_grad = tolerance_grad, tolerance_change = tolerance_change, history_size = history_size,
      line_search_fn = line_search_fn
    ))
    self$memory <- new.env(parent = emptyenv())
  },
  step = function(closure) lbfgs_step(self, closure)
)
