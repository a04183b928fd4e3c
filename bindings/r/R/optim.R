# Optimizers: groups of parameters with options, a state for each parameter, and a step. Their kinds are made by
# `optimizer`; those that libtenfold has are in optim_native.R, those written in R in optim_in_r.R.

# `initialize` calls init_optimizer(self, params, defaults), or super$initialize(params, defaults), which is the same;
# `step` reads self$param_groups and keeps self$state_of(param), or calls private$step_helper(closure, update).
optimizer <- function(name = NULL, inherit = NULL, ..., private = NULL, active = NULL, parent_env = parent.frame()) {
  layers <- layers_of(list(...), inherit, "optimizer")
  name <- c(name, attr(inherit, "name"))
  make <- function(arguments) {
    self <- new.env(parent = emptyenv())
    hidden <- new.env(parent = emptyenv())
    known <- list(self = self, private = hidden)
    base <- list(initialize = function(params, defaults) init_optimizer(self, params, defaults))
    methods <- bound_methods(c(layers, list(base)), known)
    list2env(methods[setdiff(names(methods), c("initialize", "step"))], self)
    hidden$step_helper <- function(closure, loop_fun) step_each(self, closure, loop_fun)
    list2env(bound_methods(list(private), known), hidden)
    for (each in names(active)) makeActiveBinding(each, bound_methods(list(active), known)[[each]], self)
    self$step <- function(closure = NULL) invisible(if (is.null(closure)) methods$step() else methods$step(closure))
    do.call(methods$initialize, arguments)
    if (is.null(self$param_groups)) refuse("initialize of an optimizer calls init_optimizer(self, params, defaults)")
    structure(self, class = c(name, "torch_optimizer", "R6"))
  }
  structure(taking_arguments_of(initialize_of(layers), make), class = c(name, "torch_optimizer_generator"),
            layers = layers, name = name)
}

# The default of an argument that must be given.
optim_required <- function() structure(list(), class = "optim_required")

is_optimizer <- function(x) inherits(x, "torch_optimizer")

# ---- groups of parameters ----

parameters_of <- function(params) {
  if (is_nn_module(params)) params <- params$parameters
  params <- unname(as_tensor_list(params))
  if (!is.list(params) || !all(vapply(params, is_torch_tensor, TRUE))) {
    refuse("an optimizer takes a list of tensors", kind = "TYPE")
  }
  params
}

# One group, or a list of groups, each a list whose entry `params` is its parameters and whose others are options.
groups_of <- function(params) {
  grouped <- is.list(params) && !is.object(params) && length(params) && is.list(params[[1]]) && !is.object(params[[1]])
  if (!grouped) return(list(list(params = params)))
  if (!all(vapply(params, function(group) is.list(group) && !is.null(group$params), TRUE))) {
    refuse("a group of parameters is a list with an entry 'params'")
  }
  params
}

add_param_group <- function(self, group) {
  if (!is.list(group) || is.null(names(group)) || is.null(group$params)) {
    refuse("a group of parameters is a list with an entry 'params'")
  }
  group$params <- parameters_of(group$params)
  if (length(group$params) == 0) refuse("the params of a group must have length 1 or more")
  for (param in group$params) {
    if (!.Call(C_tf_is_leaf, param)) refuse("an optimizer takes leaves: this tensor was computed from others")
  }
  own <- vapply(group$params, address_of, "")
  known <- vapply(all_parameters(self), address_of, "")
  if (anyDuplicated(c(known, own))) refuse("a parameter is in an optimizer once")
  group <- c(group["params"], group[setdiff(names(group), "params")], self$defaults[setdiff(names(self$defaults), names(group))])
  lacking <- names(group)[vapply(group, inherits, TRUE, "optim_required")]
  if (length(lacking)) refuse("this optimizer needs ", toString(lacking))
  self$param_groups <- c(self$param_groups, list(group))
  invisible(self)
}

address_of <- function(x) .Call(C_tf_address, x)

all_parameters <- function(self) do.call(c, lapply(self$param_groups, function(group) group$params))

init_optimizer <- function(self, params, defaults) {
  set_up_optimizer(self, defaults)
  for (group in groups_of(params)) self$add_param_group(group)
  invisible(self)
}

# The members of an optimizer that has no parameters yet.
set_up_optimizer <- function(self, defaults) {
  self$defaults <- defaults
  self$param_groups <- list()
  self$states <- new.env(parent = emptyenv()) # by the addresses of parameters
  self$state_of <- function(param) state_of(self, param)
  self$state <- state_members(self)
  makeActiveBinding("map", function() states_by_number(self), self$state)
  self$clone <- function(deep = FALSE) {
    if (deep) refuse(class(self)[1], " (an OptimizerIgnite cannot be deep cloned): make another and load its state")
    self
  }
  self$add_param_group <- function(param_group) add_param_group(self, param_group)
  self$zero_grad <- function(set_to_none = FALSE) zero_gradients(all_parameters(self), set_to_none)
  self$state_dict <- function() {
    list(param_groups = numbered_groups(self), state = lapply(states_by_number(self), as.list, sorted = TRUE))
  }
  self$load_state_dict <- function(state_dict, ..., .refer_to_state_dict = FALSE) {
    load_groups(self, state_dict)
    params <- all_parameters(self)
    for (key in names(state_dict$state)) {
      kept <- state_dict$state[[key]]
      put_state(self, params[[as.integer(key)]], if (.refer_to_state_dict) kept else lapply(kept, own_copy))
    }
    invisible(self)
  }
  self$get <- function(option) option_of(self, option)
  self$set <- function(option, value) set_option(self, option, value)
}

zero_gradients <- function(params, set_to_none) {
  with_no_grad(for (each in params) {
    grad <- .Call(C_tf_grad, each)
    if (is.null(grad)) next
    if (set_to_none) .Call(C_tf_set_grad, each, NULL) else torch_zero_(torch_detach_(grad))
  })
  invisible()
}

option_of <- function(self, option) {
  found <- self$param_groups[[1]][[option]]
  if (is.null(found)) refuse("this optimizer has no option ", option)
  found
}

set_option <- function(self, option, value) {
  option_of(self, option)
  for (i in seq_along(self$param_groups)) self$param_groups[[i]][[option]] <- value
  invisible(self)
}

# ---- states ----

own_copy <- function(x) if (is_torch_tensor(x)) torch_clone(torch_detach(x)) else if (is.list(x)) lapply(x, own_copy) else x

# The state of a parameter, an environment.
state_of <- function(self, param) {
  known <- self$states[[address_of(param)]]
  if (!is.null(known)) return(known$state)
  if (!address_of(param) %in% vapply(all_parameters(self), address_of, "")) refuse("this is no parameter of the optimizer")
  put_state(self, param, list())
}

# The parameter is kept beside its state: no other tensor comes to its address.
put_state <- function(self, param, state) {
  made <- list2env(state, parent = emptyenv())
  assign(address_of(param), list(state = made, param = param), self$states)
  made
}

# The states that there are, named by the numbers of their parameters among all.
states_by_number <- function(self) {
  found <- lapply(all_parameters(self), function(param) self$states[[address_of(param)]]$state)
  names(found) <- seq_along(found)
  Filter(Negate(is.null), found)
}

# opt$state$get(param) and opt$state$set(param, list(...)).
state_members <- function(self) {
  list2env(parent = emptyenv(), list(
    get = function(key) as.list(state_of(self, key), sorted = TRUE),
    set = function(key, value) {
      state <- state_of(self, key)
      rm(list = ls(state, all.names = TRUE), envir = state)
      list2env(value, state)
      invisible()
    },
    keys = function() names(states_by_number(self))
  ))
}

# The groups with the numbers of their parameters in the place of these.
numbered_groups <- function(self) {
  before <- 0
  lapply(self$param_groups, function(group) {
    count <- length(group$params)
    group$params <- before + seq_len(count)
    before <<- before + count
    group
  })
}

load_groups <- function(self, state_dict) {
  if (!is.list(state_dict) || !all(c("param_groups", "state") %in% names(state_dict))) {
    refuse("a state must be a list with elements param_groups and state, as state_dict() gives it", kind = "TYPE")
  }
  counts <- function(groups) vapply(groups, function(group) length(group$params), 0)
  if (!identical(counts(self$param_groups), counts(state_dict$param_groups))) {
    refuse("the state has groups of ", toString(counts(state_dict$param_groups)), " parameters, and the optimizer of ",
           toString(counts(self$param_groups)))
  }
  for (i in seq_along(self$param_groups)) {
    group <- state_dict$param_groups[[i]]
    for (option in setdiff(names(group), "params")) self$param_groups[[i]][[option]] <- group[[option]]
  }
}

# ---- steps, printing ----

# Call update(group, param, g, p) for each parameter that has a gradient, after the closure, if there is one.
step_each <- function(self, closure, update) {
  loss <- if (is.null(closure)) NULL else with_enable_grad(closure())
  local_no_grad()
  for (g in seq_along(self$param_groups)) {
    group <- self$param_groups[[g]]
    for (p in seq_along(group$params)) {
      if (!is.null(.Call(C_tf_grad, group$params[[p]]))) update(group, group$params[[p]], g, p)
    }
  }
  loss
}

print.torch_optimizer <- function(x, ...) {
  cat("<", class(x)[1], ">\n", sep = "")
  for (i in seq_along(x$param_groups)) {
    group <- x$param_groups[[i]]
    options <- Filter(function(each) is.atomic(each) && length(each) > 0, group[setdiff(names(group), "params")])
    told <- paste(names(options), vapply(options, function(each) paste(format(each), collapse = " "), ""))
    elements <- format(sum(vapply(group$params, length, 0)), big.mark = ",")
    cat("  group ", i, ": ", length(group$params), " parameters of ", elements, " elements; ", paste(told, collapse = ", "), "\n", sep = "")
  }
  invisible(x)
}

print.torch_optimizer_generator <- function(x, ...) {
  cat("<torch_optimizer_generator ", class(x)[1], ">\n", sep = "")
  invisible(x)
}
