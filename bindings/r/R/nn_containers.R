# Modules made of modules: nn_sequential, nn_module_list, nn_module_dict.

add_numbered <- function(self, modules) {
  names <- names(modules)
  first <- length(children_of(self))
  for (i in seq_along(modules)) {
    if (inherits(modules[[i]], "nn_module_generator")) refuse("part ", i, " is a kind of module, which must be initialized: call it", kind = "TYPE")
    if (!is_nn_module(modules[[i]])) {
      refuse("a part of a module is a module, but got object of type ", class(modules[[i]])[1], " for part ", i, kind = "TYPE")
    }
    self$add_module(if (is.null(names) || names[i] == "") as.character(first + i - 1) else names[i], modules[[i]])
  }
}

nn_sequential <- nn_module(
  "nn_sequential",
  initialize = function(...) add_numbered(self, list(...)),
  forward = function(input) {
    for (part in children_of(self)) input <- part(input)
    input
  }
)

`[.nn_sequential` <- function(x, i) do.call(nn_sequential, unname(children_of(x)[i]))

nn_module_list <- nn_module(
  "nn_module_list",
  initialize = function(modules = list()) add_numbered(self, modules),
  forward = function(...) refuse("a list of modules is not called: its parts are"),
  append = function(module) add_numbered(self, list(module)),
  extend = function(modules) add_numbered(self, modules),
  insert = function(index, module) {
    kept <- unname(children_of(self))
    for (name in names(children_of(self))) assign_part(parts, name, NULL)
    add_numbered(self, append(kept, list(module), index - 1))
  }
)

as.list.nn_module_list <- function(x, ...) unname(children_of(x))

nn_module_dict <- nn_module(
  "nn_module_dict",
  initialize = function(dict) {
    if (is.null(names(dict)) || any(names(dict) == "")) refuse("nn_module_dict takes a list of modules with names")
    add_numbered(self, dict)
  },
  forward = function(...) refuse("modules by name are not called: each is")
)
