# Optimizers whose steps libtenfold makes, each of a group of parameters at once. A handle of libtenfold's keeps the state
# of a group; the options of the group are handed to it where they have changed.

native_optimizer <- function(name, kind, initialize) {
  made <- optimizer(
    name,
    initialize = initialize,
    step = function(closure = NULL) {
      loss <- if (is.null(closure)) NULL else with_enable_grad(closure())
      for (g in seq_along(self$param_groups)) .Call(C_tf_optimizer_step, native_handle(self, g))
      loss
    }
  )
  structure(made, kind = kind)
}

init_native <- function(self, kind, params, defaults) {
  self$kind <- kind
  self$handles <- list()
  set_up_optimizer(self, defaults)
  rm("map", envir = self$state)
  makeActiveBinding("map", function() native_states(self), self$state)
  plain <- self$add_param_group
  self$add_param_group <- function(param_group) {
    plain(param_group)
    g <- length(self$param_groups)
    made <- try_native(self, g)
    if (inherits(made, "condition")) { # leave the optimizer as it was
      self$param_groups <- self$param_groups[-g]
      stop(made)
    }
    invisible(self)
  }
  self$state_dict <- function() list(param_groups = numbered_groups(self), state = native_states(self))
  self$load_state_dict <- function(state_dict, ..., .refer_to_state_dict = FALSE) load_native(self, state_dict)
  for (group in groups_of(params)) self$add_param_group(group)
}

try_native <- function(self, g) tryCatch(native_handle(self, g), error = identity)

# Options by libtenfold's names, all of them numbers.
native_options <- function(group) {
  given <- group[setdiff(names(group), c("params", "initial_lr"))]
  if (!is.null(given$betas) && length(given$betas) != 2) refuse("betas are two numbers, not ", length(given$betas))
  if (!is.null(given$betas)) given <- c(given[setdiff(names(given), "betas")], beta1 = given$betas[[1]], beta2 = given$betas[[2]])
  lapply(given, function(value) if (is.logical(value) && !anyNA(value)) as.numeric(value) else value)
}

native_handle <- function(self, g) {
  params <- self$param_groups[[g]]$params
  options <- native_options(self$param_groups[[g]])
  known <- if (g <= length(self$handles)) self$handles[[g]]
  if (is.null(known) || !identical(known$params, params)) {
    handle <- .Call(C_tf_optimizer, self$kind, params, options$lr, options[setdiff(names(options), "lr")])
    if (!is.null(known)) keep_states(known, handle, params)
  } else {
    handle <- known$handle
    for (name in names(options)) {
      if (!identical(options[[name]], known$options[[name]])) .Call(C_tf_optimizer_set, handle, name, options[[name]])
    }
  }
  self$handles[[g]] <- list(handle = handle, options = options, params = params)
  handle
}

# A group has been given other parameters: those that it had keep their states.
keep_states <- function(known, handle, params) {
  before <- .Call(C_tf_optimizer_state, known$handle)$state
  now <- .Call(C_tf_optimizer_state, handle)
  for (p in seq_along(params)) {
    same <- Position(function(param) .Call(C_tf_is_same, param, params[[p]]), known$params)
    if (!is.na(same) && length(before[[same]])) now$state[[p]] <- before[[same]]
  }
  .Call(C_tf_optimizer_set_state, handle, now)
}

# The states that there are, by the numbers of their parameters.
native_states <- function(self) {
  states <- do.call(c, lapply(seq_along(self$param_groups), function(g) .Call(C_tf_optimizer_state, native_handle(self, g))$state))
  states <- lapply(states, function(state) state[order(names(state))])
  names(states) <- seq_along(states)
  states[lengths(states) > 0]
}

# The state of an optimizer that made steps has an entry for each parameter that has one here, with the same parts.
check_states <- function(self, state_dict) {
  own <- native_states(self)
  states <- state_dict$state
  lacking <- setdiff(names(own), names(states))
  if (length(lacking)) refuse("To-be loaded state dict is missing states for parameters ", paste(lacking, collapse = ", "), ".")
  for (i in names(own)) if (!setequal(names(states[[i]]), names(own[[i]]))) {
    refuse("The ", i, "-th state has elements with names ", paste(names(own[[i]]), collapse = ", "), " but got ",
           paste(names(states[[i]]), collapse = ", "), ".")
  }
  for (g in seq_along(self$param_groups)) {
    wanted <- setdiff(names(self$param_groups[[g]]), "initial_lr")
    given <- names(state_dict$param_groups[[g]])
    if (!all(wanted %in% given)) refuse("Parameter groups must include names '", paste(wanted, collapse = ", "), "', not only '",
                                        paste(given, collapse = ", "), "'.")
  }
}

load_native <- function(self, state_dict) {
  if (inherits(self, "optim_ignite") && is.list(state_dict$state)) check_states(self, state_dict)
  load_groups(self, state_dict)
  before <- 0
  for (g in seq_along(self$param_groups)) {
    handle <- native_handle(self, g)
    now <- .Call(C_tf_optimizer_state, handle)
    for (p in seq_along(now$state)) {
      kept <- state_dict$state[[as.character(before + p)]]
      if (!is.null(kept)) now$state[[p]] <- lapply(kept, function(each) if (is_torch_tensor(each)) each else torch_scalar_tensor(each))
    }
    .Call(C_tf_optimizer_set_state, handle, now)
    before <- before + length(now$state)
  }
  invisible(self)
}

close.torch_optimizer <- function(con, ...) {
  for (each in con$handles) .Call(C_tf_close, each$handle)
  invisible()
}

close.torch_generator <- function(con, ...) invisible(.Call(C_tf_close, con))

# ---- the kinds ----

sgd_options <- function(params, lr = 0.001, momentum = 0, dampening = 0, weight_decay = 0, nesterov = FALSE) {
  if (isTRUE(nesterov) && (momentum <= 0 || dampening != 0)) refuse("nesterov takes a momentum, and no dampening")
  init_native(self, "sgd", params, list(lr = lr, momentum = momentum, dampening = dampening, weight_decay = weight_decay,
                                        nesterov = nesterov))
}

adam_options <- function(params, lr = 0.001, betas = c(0.9, 0.999), eps = 1e-8, weight_decay = 0, amsgrad = FALSE) {
  init_native(self, "adam", params, list(lr = lr, betas = betas, eps = eps, weight_decay = weight_decay, amsgrad = amsgrad))
}

adamw_options <- function(params, lr = 0.001, betas = c(0.9, 0.999), eps = 1e-8, weight_decay = 0.01, amsgrad = FALSE) {
  init_native(self, "adamw", params, list(lr = lr, betas = betas, eps = eps, weight_decay = weight_decay, amsgrad = amsgrad))
}

rmsprop_options <- function(params, lr = 0.01, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0, centered = FALSE) {
  init_native(self, "rmsprop", params, list(lr = lr, alpha = alpha, eps = eps, weight_decay = weight_decay,
                                            momentum = momentum, centered = centered))
}

adagrad_options <- function(params, lr = 0.01, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10) {
  init_native(self, "adagrad", params, list(lr = lr, lr_decay = lr_decay, weight_decay = weight_decay,
                                            initial_accumulator_value = initial_accumulator_value, eps = eps))
}

optim_sgd <- native_optimizer("optim_sgd", "sgd", sgd_options)
optim_adam <- native_optimizer("optim_adam", "adam", adam_options)
optim_adamw <- native_optimizer("optim_adamw", "adamw", adamw_options)
optim_rmsprop <- native_optimizer("optim_rmsprop", "rmsprop", rmsprop_options)
optim_adagrad <- native_optimizer("optim_adagrad", "adagrad", adagrad_options)

# ---- those of R's torch that wrap libtorch's ----

# An optimizer around another whose steps are libtorch's: private$.optim(params, ...) makes that from the parameters and
# options of a group, and private$.assert_params(...), where there is one, checks options first.
OptimizerIgnite <- optimizer(
  "OptimizerIgnite",
  initialize = function(params, defaults) {
    if (is.null(private$.optim)) refuse("OptimizerIgnite is abstract: private$.optim(params, ...) makes the optimizer that it wraps")
    check <- if (is.null(private$.assert_params)) function(...) NULL else private$.assert_params
    options_of <- function(group) c(group[setdiff(names(group), "params")], defaults[setdiff(names(defaults), names(group))])
    groups <- groups_of(params)
    for (group in groups) do.call(check, options_of(group))
    self$ptr <- do.call(private$.optim, c(list(params = parameters_of(groups[[1]]$params)), options_of(groups[[1]])))
    if (!is_optimizer(self$ptr)) refuse("private$.optim gives an optimizer, such as optim_ignite_adam's", kind = "TYPE")
    self$defaults <- defaults
    self$add_param_group <- function(param_group) {
      do.call(check, options_of(param_group))
      self$ptr$add_param_group(param_group)
      invisible(self)
    }
    for (group in groups[-1]) self$ptr$add_param_group(c(group["params"], options_of(group)))
    for (each in c("zero_grad", "state_dict", "load_state_dict", "get", "set", "state", "state_of", "clone")) {
      assign(each, self$ptr[[each]], self)
    }
    makeActiveBinding("param_groups", function(value) {
      if (missing(value)) self$ptr$param_groups else self$ptr$param_groups <- value
    }, self)
  },
  step = function(closure = NULL) self$ptr$step(closure)
)

optimizer_ignite <- function(name = NULL, ..., private = NULL, active = NULL, parent_env = parent.frame()) {
  optimizer(c(name, "optim_ignite"), inherit = OptimizerIgnite, ..., private = private, active = active, parent_env = parent_env)
}

optim_ignite_sgd <- native_optimizer(c("optim_ignite_sgd", "optim_ignite"), "sgd", sgd_options)
optim_ignite_adam <- native_optimizer(c("optim_ignite_adam", "optim_ignite"), "adam", adam_options)
optim_ignite_adamw <- native_optimizer(c("optim_ignite_adamw", "optim_ignite"), "adamw", adamw_options)
optim_ignite_rmsprop <- native_optimizer(c("optim_ignite_rmsprop", "optim_ignite"), "rmsprop", rmsprop_options)
optim_ignite_adagrad <- native_optimizer(c("optim_ignite_adagrad", "optim_ignite"), "adagrad", adagrad_options)
