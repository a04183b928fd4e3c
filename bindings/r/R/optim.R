# Optimizers: libtenfold's own, with libtorch's options by the names R's users know.

new_optimizer <- function(kind, params, lr, options) {
  if (is_nn_module(params)) params <- params$parameters
  params <- unname(as_tensor_list(params))
  if (!is.list(params) || !all(vapply(params, is_torch_tensor, TRUE))) {
    refuse("an optimizer takes a list of tensors", code = 3L, name = "TN_ERROR_TYPE")
  }
  .Call(C_tf_optimizer, kind, params, lr, options)
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

`$.torch_optimizer` <- function(x, name) {
  if (name == "step") return(function() invisible(.Call(C_tf_optimizer_step, x)))
  if (name == "zero_grad") return(function() invisible(.Call(C_tf_optimizer_zero_grad, x)))
  switch(name,
    lr = .Call(C_tf_optimizer_get, x, "lr"),
    get = function(option) .Call(C_tf_optimizer_get, x, option),
    set = function(option, value) invisible(.Call(C_tf_optimizer_set, x, option, value)),
    state_dict = function() .Call(C_tf_optimizer_state, x),
    load_state_dict = function(state) invisible(.Call(C_tf_optimizer_set_state, x, state)),
    refuse("an optimizer has no member '", name, "'", code = 5L, name = "TN_ERROR_NOT_FOUND")
  )
}

print.torch_optimizer <- function(x, ...) {
  cat("<torch_optimizer>\n")
  invisible(x)
}

close.torch_optimizer <- function(con, ...) invisible(.Call(C_tf_close, con))

close.torch_generator <- close.torch_optimizer

dataloader_batches <- function(n, batch_size, shuffle = TRUE) {
  order <- if (shuffle) sample.int(n) else seq_len(n)
  unname(split(order, ceiling(seq_len(n) / batch_size)))
}
