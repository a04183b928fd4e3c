# TorchScript: modules loaded from files, R functions and modules traced into them, a training step in one call.

script_module <- function(handle, extra = list(), names = NULL, freeze = NULL, class = "script_module") {
  call <- function(...) run_script_module(self, call_arguments(list(...)))
  self <- structure(call, class = c(class, "script_module"), handle = handle, extra = extra,
                    result_names = names, freeze = freeze)
  self
}

handle_of <- function(x) {
  handle <- attr(x, "handle", exact = TRUE)
  if (is.null(handle)) refuse("a script module or script function is needed", kind = "TYPE")
  handle
}

# f(x, y), or f(list(x, y)) with the arguments in one list.
call_arguments <- function(given) {
  if (length(given) == 1 && is.list(given[[1]]) && !is.object(given[[1]]) && is.null(names(given[[1]]))) given[[1]]
  else unname(given)
}

run_script_module <- function(module, inputs = list(), method = "forward") {
  extra <- attr(module, "extra", exact = TRUE)
  result <- .Call(C_tf_module_call, handle_of(module), method, if (length(extra)) c(inputs, extra) else inputs)
  names <- attr(module, "result_names", exact = TRUE)
  if (is.null(names) || method != "forward") return(result)
  result <- if (is_torch_tensor(result)) list(result) else unclass(result)
  if (length(names)) names(result) <- names
  result
}

jit_load <- function(path, device = NULL) script_module(.Call(C_tf_module_load, path, device))

# TorchScript from its source: unit$name(...) calls the function of that name.
jit_compile <- function(source) script_module(.Call(C_tf_module_compile, paste(source, collapse = "\n")))

jit_save <- function(obj, path) {
  freeze <- attr(obj, "freeze", exact = TRUE)
  if (!is.null(freeze)) obj <- freeze()
  .Call(C_tf_module_save, handle_of(obj), path)
  invisible(path)
}

# A script module's file as raw bytes, and back.
jit_serialize <- function(obj) {
  freeze <- attr(obj, "freeze", exact = TRUE)
  .Call(C_tf_module_save_data, handle_of(if (is.null(freeze)) obj else freeze()))
}

jit_unserialize <- function(obj) {
  if (!is.raw(obj)) refuse("jit_unserialize takes what jit_serialize gave", kind = "TYPE")
  jit_load(obj)
}

# What lite interpreters read; they read what jit_save writes, too.
jit_save_for_mobile <- function(obj, path, ...) jit_save(obj, path)

# A number by itself, which a vector of length 1 is here anyway.
jit_scalar <- function(x) {
  if (length(x) != 1) refuse("jit_scalar takes one value, not ", length(x))
  x
}

# jit_ops$aten$relu(x): every operator that libtorch knows, by its namespace and name.
jit_ops <- structure(list(), class = "torch_ops")

`$.torch_ops` <- function(x, name) {
  namespace <- attr(x, "namespace", exact = TRUE)
  if (is.null(namespace)) return(structure(list(), class = "torch_ops", namespace = name))
  function(...) tenfold_call(paste0(namespace, "::", name), ...)
}

print.torch_ops <- function(x, ...) {
  cat("<operators of ", if (is.null(attr(x, "namespace"))) "libtorch" else attr(x, "namespace"), ">\n", sep = "")
  invisible(x)
}

jit_tuple <- function(x) structure(as.list(x), class = "jit_tuple")

print.jit_tuple <- function(x, ...) {
  cat("jit_tuple of ", length(x), "\n", sep = "")
  print(unclass(x), ...)
  invisible(x)
}

jit_stack <- function(x) .Call(C_tf_stack, x)

jit_trace <- function(func, ...) {
  inputs <- call_arguments(list(...))
  if (!is.function(func)) refuse("jit_trace takes a function or a module", kind = "TYPE")
  if (!all(vapply(inputs, is_torch_tensor, TRUE))) {
    refuse("jit_trace takes example inputs that are tensors", kind = "TYPE")
  }
  if (!is_nn_module(func)) return(trace_function(func, inputs))
  # A module's parameters become inputs too: so that training goes on in the traced function.
  parameters <- unname(func$parameters)
  count <- length(inputs)
  run <- function(...) {
    given <- list(...)
    with_parameters(func, given[-seq_len(count)], do.call(func, given[seq_len(count)]))
  }
  freeze <- function() {
    constants <- lapply(parameters, torch_detach)
    trace_function(function(...) with_parameters(func, constants, func(...)), inputs)
  }
  trace_function(run, inputs, parameters, freeze)
}

trace_function <- function(func, inputs, extra = list(), freeze = NULL) {
  all_inputs <- c(inputs, extra)
  first <- results_of(do.call(func, all_inputs)) # how many results there are
  handle <- .Call(C_tf_trace, function(given) guarded(results_of(do.call(func, given))$tensors), all_inputs, length(first$tensors))
  script_module(handle, extra, first$names, freeze, class = "script_function")
}

# The tensors that a traced function gave, and their names where they came in a list.
results_of <- function(value) {
  found <- if (is_torch_tensor(value)) list(value) else value
  if (!is.list(found) || length(found) == 0 || !all(vapply(found, is_torch_tensor, TRUE))) {
    refuse("a traced function gives a tensor or a list of tensors", kind = "TYPE")
  }
  names <- if (is_torch_tensor(value)) NULL else if (is.null(names(found))) character() else names(found)
  list(tensors = unname(found), names = names)
}

jit_train_step <- function(module, optimizer, loss, inputs, target) {
  inputs <- if (is_torch_tensor(inputs)) list(inputs) else inputs
  extra <- attr(module, "extra", exact = TRUE)
  if (!is_optimizer(optimizer) || length(optimizer$handles) != 1) {
    refuse("jit_train_step takes an optimizer of libtenfold's with one group of parameters", kind = "TYPE")
  }
  .Call(C_tf_train_step, handle_of(module), native_handle(optimizer, 1), loss, if (length(extra)) c(inputs, extra) else inputs, target)
}

`$.script_module` <- function(x, name) {
  handle <- handle_of(x)
  switch(name,
    parameters = {
      found <- .Call(C_tf_module_names, handle, "parameters")
      if (length(found)) found else attr(x, "extra", exact = TRUE)
    },
    buffers = .Call(C_tf_module_names, handle, "buffers"),
    state_dict = function() c(x$parameters, x$buffers),
    load_state_dict = function(state) {
      own <- c(x$parameters, x$buffers)
      wrong <- c(setdiff(names(own), names(state)), setdiff(names(state), names(own)))
      if (length(wrong)) refuse("the state and the module differ in ", paste(wrong, collapse = ", "))
      with_no_grad(for (name in names(own)) torch_copy_(own[[name]], as_tensor(state[[name]])))
      invisible(x)
    },
    methods = .Call(C_tf_module_names, handle, "methods"),
    training = .Call(C_tf_module_is_training, handle),
    graph = .Call(C_tf_module_text, handle, "graph"),
    code = .Call(C_tf_module_text, handle, "code"),
    train = function(mode = TRUE) {
      .Call(C_tf_module_train, handle, mode)
      invisible(x)
    },
    eval = function() {
      .Call(C_tf_module_train, handle, FALSE)
      invisible(x)
    },
    to = function(device = NULL, dtype = NULL) {
      .Call(C_tf_module_to, handle, device, dtype)
      invisible(x)
    },
    save = function(path) jit_save(x, path),
    if (name %in% .Call(C_tf_module_names, handle, "methods")) {
      function(...) run_script_module(x, call_arguments(list(...)), name)
    } else {
      .Call(C_tf_module_attribute, handle, name)
    }
  )
}

`$.script_function` <- `$.script_module`

print.script_module <- function(x, ...) {
  cat("<", class(x)[1], ": ", paste(x$methods, collapse = ", "), ">\n", sep = "")
  invisible(x)
}

print.script_function <- function(x, ...) {
  cat("<script_function>\n", x$graph, sep = "")
  invisible(x)
}

close.script_module <- function(con, ...) invisible(.Call(C_tf_close, handle_of(con)))
