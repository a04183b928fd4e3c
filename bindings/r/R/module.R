# nn_module: a module is a function that calls its `forward`, over an environment that holds what it is made of.

nn_module <- function(classname = NULL, inherit = NULL, ...) {
  methods <- list(...)
  if (!is.null(inherit)) {
    base <- attr(inherit, "methods")
    if (is.null(base)) refuse("nn_module inherits from what nn_module made")
    methods <- c(methods, base[setdiff(names(base), names(methods))])
    classname <- c(classname, attr(inherit, "classname"))
  }
  generator <- function(...) new_module(classname, methods, list(...))
  if (is.function(methods$initialize)) {
    formals(generator) <- formals(methods$initialize)
    given <- names(formals(methods$initialize))
    named <- lapply(setdiff(given, "..."), as.name)
    names(named) <- setdiff(given, "...")
    arguments <- as.call(c(as.name("given_arguments"), named))
    if ("..." %in% given) arguments <- call("c", arguments, quote(list(...)))
    body(generator) <- call("new_module", quote(classname), quote(methods), arguments)
  }
  structure(generator, class = "nn_module_generator", methods = methods, classname = classname)
}

# The arguments that were given: those that were left out keep the defaults of `initialize`.
given_arguments <- function(...) {
  named <- substitute(list(...))
  frame <- parent.frame()
  kept <- list()
  for (name in names(named)[-1]) {
    if (!eval(call("missing", named[[name]]), frame)) kept[name] <- list(eval(named[[name]], frame))
  }
  kept
}

new_module <- function(classname, methods, arguments) {
  parts <- new.env(parent = emptyenv())
  parts$.order <- character()
  parts$training <- TRUE
  module <- function(...) parts$.forward(...)
  class(module) <- c(classname, "nn_module")
  attr(module, "parts") <- parts
  bound <- lapply(methods, function(method) {
    if (is.function(method)) environment(method) <- list2env(list(self = module, parts = parts), parent = environment(method))
    method
  })
  parts$.methods <- bound[vapply(bound, is.function, TRUE)]
  parts$.forward <- parts$.methods$forward
  for (name in setdiff(names(bound), names(parts$.methods))) assign_part(parts, name, bound[[name]])
  if (!is.null(parts$.methods$initialize)) do.call(parts$.methods$initialize, arguments)
  module
}

is_nn_module <- function(x) inherits(x, "nn_module")

nn_parameter <- function(x, requires_grad = TRUE) {
  x <- torch_detach(as_tensor(x))
  attr(x, "parameter") <- TRUE
  .Call(C_tf_set_requires_grad, x, requires_grad)
}

nn_buffer <- function(x) {
  attr(x, "buffer") <- TRUE
  x
}

is_parameter <- function(x) is_torch_tensor(x) && isTRUE(attr(x, "parameter"))
is_buffer <- function(x) is_torch_tensor(x) && isTRUE(attr(x, "buffer"))

assign_part <- function(parts, name, value) {
  parts$.children <- NULL
  if (is.null(value)) {
    if (exists(name, parts, inherits = FALSE)) rm(list = name, envir = parts)
    parts$.order <- setdiff(parts$.order, name)
    return(invisible())
  }
  if (!name %in% parts$.order) parts$.order <- c(parts$.order, name)
  assign(name, value, parts)
}

`$<-.nn_module` <- function(x, name, value) {
  assign_part(attr(x, "parts"), name, value)
  x
}

module_members <- list(
  parameters = function(x) module_tensors(x, is_parameter),
  buffers = function(x) module_tensors(x, is_buffer),
  children = function(x) children_of(x),
  train = function(x) function(mode = TRUE) {
    each_module(x, function(module) attr(module, "parts")$training <- mode)
    invisible(x)
  },
  eval = function(x) function() x$train(FALSE),
  zero_grad = function(x) function() {
    for (each in x$parameters) .Call(C_tf_set_grad, each, NULL)
    invisible(x)
  },
  state_dict = function(x) function() c(x$parameters, x$buffers)[state_names(x)],
  load_state_dict = function(x) function(state) {
    own <- x$state_dict()
    wrong <- c(setdiff(names(own), names(state)), setdiff(names(state), names(own)))
    if (length(wrong)) refuse("the state and the module differ in ", paste(wrong, collapse = ", "))
    with_no_grad(for (name in names(own)) torch_copy_(own[[name]], as_tensor(state[[name]])))
    invisible(x)
  },
  to = function(x) function(dtype = NULL, device = NULL) {
    replace_tensors(x, function(tensor) {
      moved <- torch_to(torch_detach(tensor), dtype, device)
      if (is_parameter(tensor)) nn_parameter(moved, tensor$requires_grad) else nn_buffer(moved)
    })
    invisible(x)
  },
  register_parameter = function(x) function(name, param) assign_part(attr(x, "parts"), name, nn_parameter(param)),
  register_buffer = function(x) function(name, tensor) assign_part(attr(x, "parts"), name, nn_buffer(tensor)),
  add_module = function(x) function(name, module) assign_part(attr(x, "parts"), name, module),
  apply = function(x) function(fn) {
    each_module(x, fn)
    invisible(x)
  }
)

`$.nn_module` <- function(x, name) {
  parts <- attr(x, "parts")
  found <- parts[[name]]
  if (!is.null(found)) return(found)
  method <- parts$.methods[[name]]
  if (!is.null(method)) return(method)
  member <- module_members[[name]]
  if (is.null(member)) NULL else member(x)
}

`[[.nn_module` <- function(x, i, ...) {
  if (is.character(i)) return(`$.nn_module`(x, i))
  children <- children_of(x)
  if (i < 1 || i > length(children)) {
    refuse("there is no part ", i, " in a module of ", length(children), code = 2L, name = "TN_ERROR_INDEX")
  }
  children[[i]]
}

length.nn_module <- function(x) length(children_of(x))

children_of <- function(x) {
  parts <- attr(x, "parts")
  if (is.null(parts$.children)) {
    found <- mget(parts$.order, parts)
    parts$.children <- found[vapply(found, is_nn_module, TRUE)]
  }
  parts$.children
}

each_module <- function(x, fn) {
  fn(x)
  for (child in children_of(x)) each_module(child, fn)
}

module_tensors <- function(x, wanted, prefix = "") {
  parts <- attr(x, "parts")
  found <- list()
  for (name in parts$.order) {
    part <- parts[[name]]
    if (is_nn_module(part)) found <- c(found, module_tensors(part, wanted, paste0(prefix, name, ".")))
    else if (wanted(part)) found[[paste0(prefix, name)]] <- part
  }
  found
}

state_names <- function(x) names(module_tensors(x, function(part) is_parameter(part) || is_buffer(part)))

replace_tensors <- function(x, fn, wanted = function(part) is_parameter(part) || is_buffer(part)) {
  each_module(x, function(module) {
    parts <- attr(module, "parts")
    for (name in parts$.order) if (wanted(parts[[name]])) assign(name, fn(parts[[name]]), parts)
  })
}

# The module with other tensors in the places of its parameters, while `code` runs.
with_parameters <- function(module, tensors, code) {
  kept <- module$parameters
  at <- 0
  replace_tensors(module, function(tensor) {
    at <<- at + 1
    given <- tensors[[at]]
    attr(given, "parameter") <- TRUE
    given
  }, is_parameter)
  on.exit({
    at <- 0
    replace_tensors(module, function(tensor) {
      at <<- at + 1
      kept[[at]]
    }, is_parameter)
  })
  force(code)
}

print.nn_module <- function(x, ...) {
  show <- function(module, name, indent) {
    own <- sum(vapply(module_tensors(module, is_parameter), length, 0))
    cat(strrep("  ", indent), if (nzchar(name)) paste0(name, ": "), class(module)[1], " (",
        format(own, big.mark = ","), " parameters)\n", sep = "")
    children <- children_of(module)
    for (child in names(children)) show(children[[child]], child, indent + 1)
  }
  show(x, "", 0)
  invisible(x)
}

print.nn_module_generator <- function(x, ...) {
  cat("<nn_module_generator ", attr(x, "classname")[1], ">\n", sep = "")
  invisible(x)
}
