# TorchScript: modules loaded from files, R functions and modules traced into them, a training step in one call.

# What was traced here knows how its results are named; `single` where there is one mode.
script_module <- function(handle, class = "script_module", traced = FALSE, result_names = NULL, single = FALSE) {
  call <- function(...) run_script_module(self, call_arguments(list(...), handle, "forward"))
  self <- structure(call, class = c(class, "script_module"), handle = handle, traced = traced,
                    result_names = result_names, single = single)
  self
}

handle_of <- function(x) {
  handle <- attr(x, "handle", exact = TRUE)
  if (is.null(handle)) refuse("a script module or script function is needed", kind = "TYPE")
  handle
}

# f(x, y), or f(list(x, y)) where the method takes more than one argument.
call_arguments <- function(given, handle, method) {
  if (length(given) == 1 && is_plain_list(given[[1]]) && is.null(names(given[[1]]))) {
    arity <- tryCatch(.Call(C_tf_module_arity, handle, method), error = function(e) 1L)
    if (arity != 1) return(given[[1]])
  }
  unname(given)
}

is_plain_list <- function(x) is.list(x) && !is.object(x)

# A module that was traced in both modes has a method of its own for the one that `forward` is not for.
forward_of <- function(module, handle) {
  if (attr(module, "single", exact = TRUE)) return("forward")
  other <- if (.Call(C_tf_module_is_training, handle)) "trainforward" else "evalforward"
  if (other %in% .Call(C_tf_module_names, handle, "methods")) other else "forward"
}

run_script_module <- function(module, inputs = list(), method = "forward") {
  handle <- handle_of(module)
  known <- .Call(C_tf_module_names, handle, "methods")
  if (!length(known)) refuse("Methods from submodules of traced modules are not traced: call the module as a whole", kind = "NOT_FOUND")
  if (isTRUE(attr(module, "traced", exact = TRUE))) inputs <- lapply(inputs, traceable)
  named <- method == "forward"
  if (named) method <- forward_of(module, handle)
  result <- plain(.Call(C_tf_module_call, handle, method, inputs))
  if (named) with_names(result, attr(module, "result_names", exact = TRUE)) else result
}

# TorchScript's lists and dicts hold values of one type: a list of different ones is a tuple.
traceable <- function(x) {
  if (!is.list(x) || (is.object(x) && !inherits(x, "jit_tuple"))) return(x)
  if (!inherits(x, "jit_tuple") && length(x) && all(vapply(x, is_torch_tensor, TRUE))) return(x)
  jit_tuple(lapply(x, traceable))
}

# The names of a nested list, and a nested list with such names.
names_within <- function(x) if (is.list(x)) list(names = names(x), parts = lapply(unname(unclass(x)), names_within))

with_names <- function(x, within) {
  if (!is.list(x) || is.null(within) || length(x) != length(within$parts)) return(x)
  structure(Map(with_names, unname(x), within$parts), names = within$names)
}

# Tuples as R's own lists.
plain <- function(x) {
  if (!is.list(x)) return(x)
  x <- lapply(x, plain)
  class(x) <- NULL
  x
}

jit_load <- function(path, device = NULL, ...) script_module(.Call(C_tf_module_load, path, device))

# TorchScript from its source: unit$name(...) calls the function of that name.
jit_compile <- function(source) script_module(.Call(C_tf_module_compile, paste(source, collapse = "\n")))

jit_save <- function(obj, path, ...) {
  .Call(C_tf_module_save, handle_of(obj), path)
  invisible(path)
}

# A script module's file as raw bytes, and back.
jit_serialize <- function(obj) .Call(C_tf_module_save_data, handle_of(obj))

jit_unserialize <- function(obj) {
  if (!is.raw(obj)) refuse("jit_unserialize takes what jit_serialize gave", kind = "TYPE")
  jit_load(obj)
}

# A file with the bytecode that the lite interpreter of phones runs.
jit_save_for_mobile <- function(obj, path, ...) {
  .Call(C_tf_module_save_for_mobile, handle_of(obj), path)
  invisible(path)
}

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
  call <- function(...) call_overload(paste0(namespace, "::", name), list(...))
  structure(call, class = "torch_op", name = paste0(namespace, "::", name))
}

# The namespaces, or the operators of one.
names.torch_ops <- function(x) {
  known <- sub("[.].*$", "", .Call(C_tf_operator_names))
  namespace <- attr(x, "namespace", exact = TRUE)
  if (is.null(namespace)) return(sort(unique(sub("::.*$", "", known))))
  sort(unique(sub("^.*::", "", known[startsWith(known, paste0(namespace, "::"))])))
}

.DollarNames.torch_ops <- function(x, pattern = "") grep(pattern, names(x), value = TRUE)

# Calls the first overload of an operator that takes such arguments.
call_overload <- function(name, arguments) {
  refused <- NULL
  for (each in c(name, setdiff(overloads_of(name), name))) {
    result <- tryCatch(.Call(C_tf_call, each, arguments), tenfold_error = identity)
    unfit <- inherits(result, "tenfold_error") && result$name %in% c("TN_ERROR_ARGUMENT", "TN_ERROR_TYPE", "TN_ERROR_NOT_FOUND")
    if (!unfit) break
    if (is.null(refused) || refused$name == "TN_ERROR_NOT_FOUND") refused <- result
  }
  if (inherits(result, "tenfold_error")) stop(if (unfit) refused else result)
  result
}

overloads_of <- function(name) {
  known <- .Call(C_tf_operator_names)
  known[sub("[.].*$", "", known) == name]
}

print.torch_op <- function(x, ...) {
  cat("<operator ", attr(x, "name"), ">\n", sep = "")
  for (each in overloads_of(attr(x, "name"))) cat("  ", each, "\n", sep = "")
  invisible(x)
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

# A function or a module as TorchScript: it runs once on example inputs, which may be tensors, lists, named lists and
# jit_tuple()s of them, and what it computes is kept. Where `strict`, results that are lists are kept as tuples.
jit_trace <- function(func, ..., strict = TRUE, respect_mode = TRUE) {
  if (inherits(func, "nn_module_generator")) refuse("You must initialize the nn_module before tracing.", kind = "TYPE")
  if (!is.function(func)) refuse("jit_trace needs a function or nn_module.", kind = "TYPE")
  inputs <- example_inputs(func, list(...))
  if (is_nn_module(func)) return(trace_nn_module(func, list(forward = inputs), strict, respect_mode))
  handle <- .Call(C_tf_module_new, "Traced")
  names <- trace_into(handle, "forward", func, inputs, strict)
  script_module(handle, "script_function", TRUE, names, single = TRUE)
}

# Several methods of a module, each with its example inputs: jit_trace_module(m, forward = list(x), other = y).
jit_trace_module <- function(mod, ..., strict = TRUE, respect_mode = TRUE) {
  if (!is_nn_module(mod)) refuse("jit_trace_module needs an nn_module.", kind = "TYPE")
  inputs <- list(...)
  if (is.null(names(inputs)) || any(names(inputs) == "")) refuse("jit_trace_module takes example inputs by the names of methods")
  inputs <- lapply(inputs, function(each) if (is_plain_list(each)) each else list(each))
  trace_nn_module(mod, inputs, strict, respect_mode)
}

# One list may hold all inputs of a function that takes more than one.
example_inputs <- function(func, given) {
  if (!is.null(names(given)) && any(nzchar(names(given)))) refuse("example inputs come in their order, without names: ", toString(names(given)))
  takes <- names(formals(if (is_nn_module(func)) attr(func, "parts")$.forward else func))
  one <- length(given) == 1 && is_plain_list(given[[1]]) && is.null(names(given[[1]]))
  if (one && (length(takes) > 1 || "..." %in% takes)) given[[1]] else given
}

trace_nn_module <- function(module, inputs, strict, respect_mode) {
  handle <- .Call(C_tf_module_new, gsub("[^A-Za-z0-9_]", "_", class(module)[1]))
  mirror_parts(module, handle)
  training <- isTRUE(attr(module, "parts")$training)
  .Call(C_tf_module_train, handle, training)
  names <- NULL
  for (method in names(inputs)) {
    called <- if (method == "forward") module else attr(module, "parts")$.methods[[method]]
    if (is.null(called)) refuse("the module has no method ", method, kind = "NOT_FOUND")
    found <- trace_into(handle, method, called, inputs[[method]], strict)
    if (method == "forward") names <- found
  }
  both <- respect_mode && !is.null(inputs$forward) && depends_on_mode(module)
  if (both) trace_other_mode(module, handle, inputs$forward, strict, training)
  script_module(handle, "script_module", TRUE, names, single = !both)
}

# Whether a part of the module's own code could look at `training`: layers that do not are the same in both modes.
depends_on_mode <- function(module) {
  found <- FALSE
  each_module(module, function(part) {
    forward <- attr(part, "parts")$.forward
    found <<- found || is.null(body(forward)) || "training" %in% all.names(body(forward))
  })
  found
}

# What training changes, such as running means, is put back. A module that cannot run so has one mode.
trace_other_mode <- function(module, handle, inputs, strict, training) {
  kept <- lapply(module$buffers, torch_clone)
  module$train(!training)
  on.exit({
    module$train(training)
    with_no_grad(for (name in names(kept)) torch_copy_(module$buffers[[name]], kept[[name]]))
  })
  method <- if (training) "evalforward" else "trainforward"
  tryCatch(trace_into(handle, method, module, inputs, strict), tenfold_error = function(e) NULL)
}

# The parts of an R module in a script module: parameters and buffers are the same tensors.
mirror_parts <- function(module, handle) {
  parts <- attr(module, "parts")
  for (name in parts$.order) {
    part <- parts[[name]]
    label <- gsub(".", "_", name, fixed = TRUE)
    if (is_nn_module(part)) mirror_parts(part, .Call(C_tf_module_add_child, handle, label))
    else if (inherits(part, "script_module")) .Call(C_tf_module_set, handle, label, handle_of(part), FALSE)
    else if (is_parameter(part) || is_buffer(part)) .Call(C_tf_module_set, handle, label, part, is_parameter(part))
  }
}

# Trace into a method; returns the names within its result.
trace_into <- function(handle, method, func, inputs, strict) {
  found <- NULL
  run <- function(given) {
    guarded({
      result <- do.call(func, Map(like_example, given, inputs))
      if (!inherits(result, "jit_tuple")) found <<- names_within(result)
      if (is.null(result)) refuse("a traced function gives a tensor or a list of tensors, and this one gave NULL", kind = "TYPE")
      kept <- if (strict && is_plain_list(result)) jit_tuple(lapply(unname(result), traceable)) else traceable(result)
      .Call(C_tf_stack, list(kept)) # refuses what libtorch has no value for
      kept
    })
  }
  .Call(C_tf_trace_method, handle, method, run, lapply(unname(inputs), traceable), strict)
  found
}

# What libtorch hands on, with the names that the example has: tuples have none there.
like_example <- function(given, example) {
  if (!is.list(given) || !is.list(example)) return(given)
  given <- Map(like_example, given, example)
  attributes(given) <- attributes(example)
  given
}

jit_train_step <- function(module, optimizer, loss, inputs, target) {
  inputs <- if (is_torch_tensor(inputs)) list(inputs) else inputs
  if (!is_optimizer(optimizer) || length(optimizer$handles) != 1) {
    refuse("jit_train_step takes an optimizer of libtenfold's with one group of parameters", kind = "TYPE")
  }
  .Call(C_tf_train_step, handle_of(module), native_handle(optimizer, 1), loss, inputs, target)
}

`$.script_module` <- function(x, name) {
  handle <- handle_of(x)
  switch(name,
    parameters = .Call(C_tf_module_names, handle, "parameters"),
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
    children = script_children(handle),
    modules = script_modules(x),
    register_parameter = function(name, param) invisible(.Call(C_tf_module_set, handle, name, param, TRUE)),
    register_buffer = function(name, tensor) invisible(.Call(C_tf_module_set, handle, name, tensor, FALSE)),
    register_module = function(name, module) invisible(.Call(C_tf_module_set, handle, name, handle_of(module), FALSE)),
    .apply = function(fn) {
      with_no_grad(for (each in c(x$parameters, x$buffers)) fn(each))
      invisible(x)
    },
    graph_for = function(...) {
      x(...)
      graph_of(handle)
    },
    training = .Call(C_tf_module_is_training, handle),
    graph = graph_of(handle),
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
    script_member(x, handle, name)
  )
}

graph_of <- function(handle) structure(.Call(C_tf_module_text, handle, "graph"), class = "script_method_graph")

print.script_method_graph <- function(x, ...) {
  cat(x)
  invisible(x)
}

# A method, a child or an attribute of a script module.
script_member <- function(x, handle, name) {
  if (name %in% .Call(C_tf_module_names, handle, "methods")) {
    return(function(...) run_script_module(x, call_arguments(list(...), handle, name), name))
  }
  if (name %in% .Call(C_tf_module_names, handle, "children")) return(script_module(.Call(C_tf_module_child, handle, name)))
  .Call(C_tf_module_attribute, handle, name)
}

script_children <- function(handle) {
  names <- .Call(C_tf_module_names, handle, "children")
  structure(lapply(names, function(name) script_module(.Call(C_tf_module_child, handle, name))), names = unlist(names))
}

script_modules <- function(x) c(list(x), do.call(c, lapply(unname(script_children(handle_of(x))), script_modules)))

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
