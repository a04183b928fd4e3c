# Optimizers: libtenfold's own, with libtorch's options by the names R's users know.

parameters_of <- function(params) {
  if (is_nn_module(params)) params <- params$parameters
  params <- unname(as_tensor_list(params))
  if (!is.list(params) || !all(vapply(params, is_torch_tensor, TRUE))) {
    refuse("an optimizer takes a list of tensors", kind = "TYPE")
  }
  params
}

new_optimizer <- function(kind, params, lr, options) {
  params <- parameters_of(params)
  made <- .Call(C_tf_optimizer, kind, params, lr, options)
  structure(made, params = params, options = c("lr", names(options)))
}

optim_sgd <- function(params, lr = 0.001, momentum = 0, dampening = 0, weight_decay = 0, nesterov = FALSE) {
  new_optimizer("sgd", params, lr, list(momentum = momentum, dampening = dampening, weight_decay = weight_decay,
                                        nesterov = as.numeric(nesterov)))
}

optim_adam <- function(params, lr = 0.001, betas = c(0.9, 0.999), eps = 1e-8, weight_decay = 0, amsgrad = FALSE) {
  new_optimizer("adam", params, lr, list(beta1 = betas[1], beta2 = betas[2], eps = eps, weight_decay = weight_decay,
                                         amsgrad = as.numeric(amsgrad)))
}

optim_adamw <- function(params, lr = 0.001, betas = c(0.9, 0.999), eps = 1e-8, weight_decay = 0.01, amsgrad = FALSE) {
  new_optimizer("adamw", params, lr, list(beta1 = betas[1], beta2 = betas[2], eps = eps, weight_decay = weight_decay,
                                          amsgrad = as.numeric(amsgrad)))
}

optim_rmsprop <- function(params, lr = 0.01, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0, centered = FALSE) {
  new_optimizer("rmsprop", params, lr, list(alpha = alpha, eps = eps, weight_decay = weight_decay,
                                            momentum = momentum, centered = as.numeric(centered)))
}

optim_adagrad <- function(params, lr = 0.01, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10) {
  new_optimizer("adagrad", params, lr, list(lr_decay = lr_decay, weight_decay = weight_decay,
                                            initial_accumulator_value = initial_accumulator_value, eps = eps))
}

step_with <- function(x, closure) {
  loss <- if (is.null(closure)) NULL else with_enable_grad(closure())
  .Call(C_tf_optimizer_step, x)
  invisible(loss)
}

`$.torch_optimizer` <- function(x, name) {
  if (name == "step") return(function(closure = NULL) step_with(x, closure))
  if (name == "zero_grad") return(function() invisible(.Call(C_tf_optimizer_zero_grad, x)))
  switch(name,
    lr = .Call(C_tf_optimizer_get, x, "lr"),
    get = function(option) .Call(C_tf_optimizer_get, x, option),
    set = function(option, value) invisible(.Call(C_tf_optimizer_set, x, option, value)),
    param_groups = {
      options <- attr(x, "options", exact = TRUE)
      values <- lapply(options, function(option) .Call(C_tf_optimizer_get, x, option))
      list(c(list(params = attr(x, "params", exact = TRUE)), structure(values, names = options)))
    },
    state_dict = function() .Call(C_tf_optimizer_state, x),
    load_state_dict = function(state) invisible(.Call(C_tf_optimizer_set_state, x, state)),
    refuse("an optimizer has no member '", name, "'", kind = "NOT_FOUND")
  )
}

# optimizer$param_groups[[1]]$lr <- 0.1; there is one group.
`$<-.torch_optimizer` <- function(x, name, value) {
  if (name == "lr") value <- list(list(lr = value))
  else if (name != "param_groups") refuse("'", name, "' of an optimizer cannot be set: lr and param_groups can")
  now <- x$param_groups[[1]]
  for (option in setdiff(names(value[[1]]), "params")) {
    if (!identical(now[[option]], value[[1]][[option]])) .Call(C_tf_optimizer_set, x, option, value[[1]][[option]])
  }
  x
}

print.torch_optimizer <- function(x, ...) {
  cat("<torch_optimizer>\n")
  invisible(x)
}

close.torch_optimizer <- function(con, ...) invisible(.Call(C_tf_close, con))

close.torch_generator <- close.torch_optimizer
