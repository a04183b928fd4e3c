# Gradients: scopes without them, and gradients of some tensors by others.

in_scope <- function(kind, code) {
  scope <- .Call(C_tf_scope_begin, kind)
  on.exit(.Call(C_tf_scope_end, scope))
  force(code)
}

with_no_grad <- function(code) in_scope("no_grad", code)

with_enable_grad <- function(code) in_scope("enable_grad", code)

# A gradient that is NaN is an error, which names the operator that gave it.
with_detect_anomaly <- function(code) {
  warning("anomaly detection slows every operator down: it should be enabled only for debugging", call. = FALSE)
  in_scope("detect_anomaly", code)
}

local_scope <- function(kind, .env) {
  scope <- .Call(C_tf_scope_begin, kind)
  ending <- as.call(list(function() .Call(C_tf_scope_end, scope)))
  do.call("on.exit", list(ending, add = TRUE, after = FALSE), envir = .env)
  invisible()
}

local_no_grad <- function(.env = parent.frame()) local_scope("no_grad", .env)

local_enable_grad <- function(.env = parent.frame()) local_scope("enable_grad", .env)

autograd_set_grad_mode <- function(enabled, code) in_scope(if (enabled) "enable_grad" else "no_grad", code)

torch_is_grad_enabled <- function() .Call(C_tf_grad_enabled)

# A gradient that there is none of is NULL.
is_undefined_tensor <- function(x) is.null(x)

as_tensor_list <- function(x) if (is_torch_tensor(x)) list(x) else x

autograd_grad <- function(outputs, inputs, grad_outputs = NULL, retain_graph = create_graph,
                          create_graph = FALSE, allow_unused = FALSE) {
  outputs <- as_tensor_list(outputs)
  inputs <- as_tensor_list(inputs)
  if (length(outputs) == 0 || length(inputs) == 0) refuse("autograd_grad takes at least one output and one input")
  grads <- if (is.null(grad_outputs)) NULL else as_tensor_list(grad_outputs)
  .Call(C_tf_gradients, outputs, inputs, grads,
        retain_graph, create_graph, allow_unused)
}

autograd_backward <- function(tensors, grad_tensors = NULL, retain_graph = create_graph, create_graph = FALSE) {
  tensors <- as_tensor_list(tensors)
  grads <- if (is.null(grad_tensors)) vector("list", length(tensors)) else as_tensor_list(grad_tensors)
  for (i in seq_along(tensors)) {
    last <- i == length(tensors)
    .Call(C_tf_backward, tensors[[i]], grads[[i]], retain_graph || !last, create_graph)
  }
  invisible()
}

# ---- R functions that libtorch calls ----

# What a callback's failure was is kept, and raised again where R called libtorch.
guarded <- function(code) {
  failed <- function(condition) .Call(C_tf_store_condition, condition)
  tryCatch(code, error = failed, interrupt = failed)
}

# The callback is made where its tensor is out of sight: one that held it would keep it for ever.
hook_callback <- function(hook) {
  force(hook)
  function(gradient) {
    guarded({
      found <- hook(gradient[[1]])
      list(if (is_torch_tensor(found)) found)
    })
  }
}

register_hook <- function(x, hook) {
  if (!is.function(hook)) refuse("a hook is a function of a gradient", kind = "TYPE")
  handle <- .Call(C_tf_hook, x, hook_callback(hook))
  rm(x)
  invisible(list(remove = function() invisible(.Call(C_tf_close, handle))))
}

autograd_function <- function(forward, backward) {
  if (!is.function(forward) || !is.function(backward) || !"ctx" %in% names(formals(forward))[1]) {
    refuse("autograd_function takes two functions whose first argument is ctx", kind = "TYPE")
  }
  parameters <- setdiff(names(formals(forward)), "ctx")
  force(backward)
  caller <- function() {
    given <- as.list(match.call())[-1]
    given <- lapply(given, eval, parent.frame())
    call_own_function(forward, backward, given[intersect(parameters, names(given))], parameters)
  }
  formals(caller) <- formals(forward)[parameters]
  caller
}

call_own_function <- function(forward, backward, given, parameters) {
  tensors <- vapply(given, is_torch_tensor, TRUE)
  needed <- vapply(given, function(each) is_torch_tensor(each) && .Call(C_tf_requires_grad, each), TRUE)
  ctx <- new_context(as.list(needed), parameters)
  found <- with_no_grad(do.call(forward, c(list(ctx), given)))
  results <- as_tensor_list(found)
  if (!is.list(results) || !all(vapply(results, is_torch_tensor, TRUE))) {
    refuse("forward gives a tensor or a list of tensors", kind = "TYPE")
  }
  kept <- ctx$.kept
  saved <- vapply(kept, is_torch_tensor, TRUE)
  constants <- replace(kept, saved, list(NULL))
  among <- function(marked) vapply(results, function(each) any(vapply(marked, function(a) same_tensor(a, each), TRUE)), TRUE)
  apart <- among(ctx$.apart)
  dirty <- among(ctx$.dirty)
  rm(list = c(".kept", ".apart", ".dirty"), envir = ctx)
  computed <- results
  computed[dirty] <- lapply(results[dirty], function(each) torch_clone(torch_detach(each)))
  made <- .Call(C_tf_function, unname(given[tensors]), unname(computed), unname(kept[saved]),
                gradients_by(backward, ctx, constants, saved, names(given)[tensors]))
  made[apart] <- lapply(made[apart], torch_detach)
  made[dirty] <- Map(torch_copy_, unname(results[dirty]), made[dirty]) # an input that was written has the result's history
  if (is_torch_tensor(found)) made[[1]] else structure(made, names = names(results))
}

same_tensor <- function(a, b) identical(.Call(C_tf_address, a), .Call(C_tf_address, b))

# What libtorch calls for gradients. It sees no tensor of the call: the graph, which holds this, would hold itself.
gradients_by <- function(backward, ctx, constants, saved, wanted) {
  force(backward); force(ctx); force(constants); force(saved); force(wanted)
  by_one <- length(setdiff(names(formals(backward)), c("ctx", "..."))) == 1
  function(gradients, kept) {
    guarded({
      ctx$saved_variables <- replace(constants, saved, kept)
      found <- do.call(backward, c(list(ctx), if (by_one && length(gradients) > 1) list(gradients) else gradients))
      ctx$saved_variables <- NULL
      in_order(as_tensor_list(found), wanted)
    })
  }
}

# Gradients by the names of forward's arguments, or in their order.
in_order <- function(gradients, wanted) {
  if (!is.null(names(gradients))) {
    odd <- setdiff(names(gradients)[lengths(gradients) > 0], wanted)
    if (length(odd)) refuse("backward gave a gradient for ", toString(odd), ", which is no tensor of forward's: ", toString(wanted))
    return(unname(lapply(wanted, function(name) gradients[[name]])))
  }
  if (length(gradients) != length(wanted)) refuse("backward gave ", length(gradients), " gradients for ", length(wanted), " tensors")
  gradients
}

# What forward and backward share: `ctx`.
new_context <- function(needed, parameters) {
  ctx <- new.env(parent = emptyenv())
  ctx$.kept <- list()
  ctx$.apart <- list()
  ctx$.dirty <- list()
  ctx$needs_input_grad <- lapply(structure(parameters, names = parameters), function(name) isTRUE(needed[[name]]))
  ctx$save_for_backward <- function(...) {
    ctx$.kept <- list(...)
    invisible()
  }
  ctx$mark_non_differentiable <- function(...) {
    ctx$.apart <- list(...)
    invisible()
  }
  ctx$mark_dirty <- function(...) {
    for (each in list(...)) if (.Call(C_tf_is_leaf, each) && .Call(C_tf_requires_grad, each)) {
      refuse("a leaf Variable that requires grad is being used in an in-place operation.", kind = "TORCH")
    }
    ctx$.dirty <- list(...)
    invisible()
  }
  ctx
}
