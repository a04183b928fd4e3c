# nn_utils_*: gradients kept within bounds, and sequences of different lengths in one tensor.

nn_utils_clip_grad_norm_ <- function(parameters, max_norm, norm_type = 2) {
  grads <- Filter(Negate(is.null), lapply(parameters_of(parameters), function(each) .Call(C_tf_grad, each)))
  if (length(grads) == 0) return(torch_scalar_tensor(0))
  with_no_grad({
    total <- torch_linalg_vector_norm(torch_stack(lapply(grads, torch_linalg_vector_norm, norm_type)), norm_type)
    factor <- torch_clamp(max_norm / (total + 1e-6), max = 1)
    for (each in grads) torch_mul_(each, factor)
  })
  total
}

nn_utils_clip_grad_value_ <- function(parameters, clip_value) {
  with_no_grad(for (each in parameters_of(parameters)) {
    grad <- .Call(C_tf_grad, each)
    if (!is.null(grad)) torch_clamp_(grad, -clip_value, clip_value)
  })
  invisible()
}

# The weights of a module as a direction and a length: `apply` splits the parameter in two, and `recompute` puts the
# product in its place, which a forward does first. nn_utils_weight_norm(module) applies it at once.
weight_norm <- function(name = "weight", dim = 1) {
  self <- new.env(parent = emptyenv())
  pieces <- paste0(name, c("_g", "_v"))
  product <- function(parts) torch__weight_norm_interface(parts[[pieces[2]]], parts[[pieces[1]]], dim)[[1]]
  self$recompute <- function(module) {
    parts <- attr(module, "parts")
    assign(name, product(parts), parts)
    invisible(module)
  }
  self$call <- self$recompute
  self$apply <- function(module) {
    parts <- attr(module, "parts")
    weight <- parts[[name]]
    if (!is_parameter(weight)) refuse("the module has no parameter ", name, kind = "NOT_FOUND")
    others <- setdiff(seq_along(base::dim(weight)), dim)
    assign_part(parts, name, NULL)
    module$register_parameter(pieces[1], torch_detach(torch_linalg_vector_norm(weight, 2, others, TRUE)))
    module$register_parameter(pieces[2], torch_detach(weight))
    self$recompute(module)
    first <- parts$.forward
    parts$.forward <- structure(function(...) {
      self$recompute(module)
      first(...)
    }, first = first)
    invisible(module)
  }
  self$remove <- function(module) {
    parts <- attr(module, "parts")
    weight <- torch_detach(product(parts))
    parts$.forward <- attr(parts$.forward, "first")
    for (each in c(pieces, name)) assign_part(parts, each, NULL)
    module$register_parameter(name, weight)
    invisible(module)
  }
  self
}

nn_utils_weight_norm <- structure(
  function(module, name = "weight", dim = 1) weight_norm(name, dim)$apply(module),
  class = "nn_utils_weight_norm"
)

`$.nn_utils_weight_norm` <- function(x, name) if (name == "new") weight_norm

nn_utils_rnn_pad_sequence <- function(sequences, batch_first = FALSE, padding_value = 0) {
  longest <- max(vapply(sequences, function(each) dim(each)[1], 0))
  padded <- lapply(sequences, function(each) {
    nnf_pad(each, c(rep(0, 2 * (length(dim(each)) - 1)), 0, longest - dim(each)[1]), value = padding_value)
  })
  torch_stack(padded, if (batch_first) 1 else 2)
}
