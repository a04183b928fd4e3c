# Gradients: scopes without them, and gradients of some tensors by others.

in_scope <- function(kind, code) {
  scope <- .Call(C_tf_scope_begin, kind)
  on.exit(.Call(C_tf_scope_end, scope))
  force(code)
}

with_no_grad <- function(code) in_scope("no_grad", code)

with_enable_grad <- function(code) in_scope("enable_grad", code)

local_no_grad <- function(.env = parent.frame()) {
  scope <- .Call(C_tf_scope_begin, "no_grad")
  ending <- as.call(list(function() .Call(C_tf_scope_end, scope)))
  do.call("on.exit", list(ending, add = TRUE, after = FALSE), envir = .env)
  invisible()
}

torch_is_grad_enabled <- function() .Call(C_tf_grad_enabled)

as_tensor_list <- function(x) if (is_torch_tensor(x)) list(x) else x

autograd_grad <- function(outputs, inputs, grad_outputs = NULL, retain_graph = create_graph,
                          create_graph = FALSE, allow_unused = FALSE) {
  grads <- if (is.null(grad_outputs)) NULL else as_tensor_list(grad_outputs)
  .Call(C_tf_gradients, as_tensor_list(outputs), as_tensor_list(inputs), grads,
        retain_graph, create_graph, allow_unused)
}

autograd_backward <- function(tensors, grad_tensors = NULL, retain_graph = create_graph, create_graph = FALSE) {
  tensors <- as_tensor_list(tensors)
  for (i in seq_along(tensors)) {
    last <- i == length(tensors)
    .Call(C_tf_backward, tensors[[i]], if (is.null(grad_tensors)) NULL else as_tensor_list(grad_tensors)[[i]],
          retain_graph || !last, create_graph)
  }
  invisible()
}
