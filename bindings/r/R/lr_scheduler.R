# lr_*: learning rates that change as training goes on. A scheduler sets its optimizer's at once, and with each step().

# `rate(step, base, now)` gives the learning rate of a step, counted from 0; `at_step` may set more. One that goes on after
# `last_epoch` takes the rates of step 0 from `initial_lr` of the optimizer's groups, where they have it.
new_scheduler <- function(optimizer, rate, verbose = FALSE, last_epoch = -1, at_step = function(step) NULL) {
  if (!is_optimizer(optimizer)) refuse("a scheduler takes an optimizer", kind = "TYPE")
  if (!is.numeric(last_epoch) || length(last_epoch) != 1 || !isTRUE(last_epoch >= -1)) {
    refuse("last_epoch is -1 or the number of a step, not ", last_epoch)
  }
  base <- rates_of(optimizer)
  if (last_epoch >= 0) {
    base <- mapply(function(group, now) if (is.null(group$initial_lr)) now else group$initial_lr, optimizer$param_groups, base)
  }
  state <- new.env(parent = emptyenv())
  state$last_epoch <- last_epoch
  step <- function() {
    state$last_epoch <- state$last_epoch + 1
    set_lr(optimizer, mapply(rate, state$last_epoch, base, rates_of(optimizer)), verbose)
    at_step(state$last_epoch)
    invisible()
  }
  step()
  structure(list(
    step = step, optimizer = optimizer, last_epoch = function() state$last_epoch,
    get_last_lr = function() rates_of(optimizer),
    state_dict = function() list(last_epoch = state$last_epoch),
    load_state_dict = function(state_dict) state$last_epoch <- state_dict$last_epoch
  ), class = "lr_scheduler")
}

# A kind of scheduler of one's own: get_lr() gives the rates of self$last_epoch, from self$base_lrs and self$optimizer.
# An `initialize` of its own calls super$initialize(optimizer, last_epoch, verbose).
lr_scheduler <- function(classname = NULL, inherit = NULL, ..., parent_env = parent.frame()) {
  layers <- layers_of(list(...), inherit, "lr_scheduler")
  classname <- c(classname, attr(inherit, "classname"))
  whole <- c(layers, list(scheduler_methods))
  make <- function(arguments) {
    self <- new.env(parent = emptyenv())
    methods <- bound_methods(whole, list(self = self))
    list2env(methods[setdiff(names(methods), "initialize")], self)
    do.call(methods$initialize, arguments)
    structure(self, class = c(classname, "lr_scheduler"))
  }
  structure(taking_arguments_of(initialize_of(whole), make), class = c(classname, "lr_scheduler_generator"),
            layers = layers, classname = classname)
}

scheduler_methods <- list(
  initialize = function(optimizer, last_epoch = -1, verbose = FALSE) {
    if (!is_optimizer(optimizer)) refuse("a scheduler takes an optimizer", kind = "TYPE")
    self$optimizer <- optimizer
    self$base_lrs <- rates_of(optimizer)
    self$last_epoch <- last_epoch
    self$verbose <- verbose
    self$step()
  },
  get_lr = function() refuse("a scheduler of one's own has a method get_lr()"),
  step = function() {
    self$last_epoch <- self$last_epoch + 1
    set_lr(self$optimizer, self$get_lr(), self$verbose)
    invisible()
  },
  get_last_lr = function() rates_of(self$optimizer),
  state_dict = function() {
    fields <- setdiff(ls(self, all.names = TRUE), c("optimizer", "verbose"))
    Filter(Negate(is.function), mget(fields, self))
  },
  load_state_dict = function(state_dict) invisible(list2env(state_dict, self))
)

# The learning rate of each group.
rates_of <- function(optimizer) vapply(optimizer$param_groups, function(group) as.numeric(group$lr), 0)

set_lr <- function(optimizer, lr, verbose) {
  lr <- rep_len(lr, length(optimizer$param_groups))
  for (i in seq_along(lr)) optimizer$param_groups[[i]]$lr <- lr[i]
  if (verbose) message("The learning rate is ", format(lr))
}

print.lr_scheduler <- function(x, ...) {
  cat("<lr_scheduler>\n")
  invisible(x)
}

lr_lambda <- function(optimizer, lr_lambda, last_epoch = -1, verbose = FALSE) {
  new_scheduler(optimizer, function(step, base, now) base * lr_lambda(step), verbose, last_epoch)
}

lr_multiplicative <- function(optimizer, lr_lambda, last_epoch = -1, verbose = FALSE) {
  new_scheduler(optimizer, function(step, base, now) if (step == 0) now else now * lr_lambda(step), verbose, last_epoch)
}

lr_step <- function(optimizer, step_size, gamma = 0.1, last_epoch = -1, verbose = FALSE) {
  new_scheduler(optimizer, function(step, base, now) base * gamma^(step %/% step_size), verbose, last_epoch)
}

lr_cosine_annealing <- function(optimizer, T_max, eta_min = 0, last_epoch = -1, verbose = FALSE) {
  new_scheduler(optimizer, function(step, base, now) eta_min + (base - eta_min) * (1 + cos(pi * step / T_max)) / 2, verbose, last_epoch)
}

lr_one_cycle <- function(optimizer, max_lr, total_steps = NULL, epochs = NULL, steps_per_epoch = NULL, pct_start = 0.3,
                         anneal_strategy = "cos", cycle_momentum = TRUE, base_momentum = 0.85, max_momentum = 0.95,
                         div_factor = 25, final_div_factor = 10000, last_epoch = -1, verbose = FALSE) {
  total <- if (!is.null(total_steps)) total_steps else if (!is.null(epochs) && !is.null(steps_per_epoch)) epochs * steps_per_epoch
  if (is.null(total) || total <= 0) refuse("lr_one_cycle takes total_steps, or epochs and steps_per_epoch")
  if (!anneal_strategy %in% c("cos", "linear")) refuse("anneal_strategy is 'cos' or 'linear'")
  between <- function(from, to, part) {
    if (anneal_strategy == "cos") to + (from - to) / 2 * (1 + cos(pi * part)) else from + (to - from) * part
  }
  top <- pct_start * total - 1
  at <- function(step, low, high, last) {
    if (step > total) refuse("the cycle has ", total, " steps, and this is one more")
    if (step <= top) between(low, high, step / top) else between(high, last, (step - top) / (total - 1 - top))
  }
  if (cycle_momentum && !any(c("betas", "momentum") %in% names(optimizer$param_groups[[1]]))) {
    refuse("lr_one_cycle cycles a momentum, and this optimizer has none: cycle_momentum = FALSE")
  }
  first <- max_lr / div_factor
  new_scheduler(
    optimizer, function(step, base, now) at(step, first, max_lr, first / final_div_factor), verbose, last_epoch,
    function(step) if (cycle_momentum) set_momentum(optimizer, at(step, max_momentum, base_momentum, max_momentum))
  )
}

set_momentum <- function(optimizer, value) {
  for (i in seq_along(optimizer$param_groups)) {
    if (is.null(optimizer$param_groups[[i]]$betas)) optimizer$param_groups[[i]]$momentum <- value
    else optimizer$param_groups[[i]]$betas[1] <- value
  }
}

lr_reduce_on_plateau <- function(optimizer, mode = "min", factor = 0.1, patience = 10, threshold = 1e-4,
                                 threshold_mode = "rel", cooldown = 0, min_lr = 0, eps = 1e-8, verbose = FALSE) {
  if (!mode %in% c("min", "max")) refuse("mode is 'min' or 'max'")
  sign <- if (mode == "min") 1 else -1
  state <- new.env(parent = emptyenv())
  state$best <- Inf
  state$bad <- 0
  state$waiting <- 0
  step <- function(metrics) {
    value <- sign * (if (is_torch_tensor(metrics)) metrics$item() else metrics)
    margin <- if (threshold_mode == "rel" && is.finite(state$best)) threshold * abs(state$best) else threshold
    if (!is.finite(state$best) || value < state$best - margin) {
      state$best <- value
      state$bad <- 0
    } else {
      state$bad <- state$bad + 1
    }
    if (state$waiting > 0) {
      state$waiting <- state$waiting - 1
      state$bad <- 0
    }
    if (state$bad > patience) {
      now <- rates_of(optimizer)
      lower <- pmax(now * factor, min_lr)
      if (any(now - lower > eps)) set_lr(optimizer, ifelse(now - lower > eps, lower, now), verbose)
      state$waiting <- cooldown
      state$bad <- 0
    }
    invisible()
  }
  structure(list(step = step, optimizer = optimizer, get_last_lr = function() rates_of(optimizer)),
            class = "lr_scheduler")
}
