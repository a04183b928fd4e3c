# Makers of modules, datasets and optimizers, which take the arguments of the `initialize` that a user wrote, and whose
# methods see what they belong to.

# A function with the arguments of `initialize` that calls make() with those that it is given, in a list. It holds make
# itself and not its name: an argument may have any name.
taking_arguments_of <- function(initialize, make) {
  generator <- function(...) NULL
  body(generator) <- as.call(list(make, quote(list(...))))
  if (!is.function(initialize)) return(generator)
  formals(generator) <- formals(initialize)
  names <- names(formals(initialize))
  named <- lapply(setdiff(names, "..."), as.name)
  names(named) <- setdiff(names, "...")
  arguments <- as.call(c(given_arguments, named))
  if ("..." %in% names) arguments <- call("c", arguments, quote(list(...)))
  body(generator) <- as.call(list(make, arguments))
  generator
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

# The methods of a kind and of those that it inherits from, its own first, each a list: they see what is `known` and, as
# `super`, the methods that their own kind inherits. Those of a layer that come from one place share an environment. It
# is the `enclosure` of the result, and `.__enclos_env__` of `super`, as with R6: what packages put there, methods see.
bound_methods <- function(layers, known, as_super = identity) {
  inherited <- list()
  enclosure <- new.env(parent = emptyenv())
  for (layer in rev(layers)) {
    around <- c(known, super = as_super(list2env(c(inherited, .__enclos_env__ = enclosure), parent = emptyenv())))
    places <- enclosures <- list()
    for (name in names(layer)) {
      method <- layer[[name]]
      if (is.function(method) && !is.primitive(method)) {
        at <- Position(function(place) identical(place, environment(method)), places)
        if (is.na(at)) {
          at <- length(places) + 1
          places[[at]] <- environment(method)
          enclosures[[at]] <- list2env(around, parent = environment(method))
        }
        environment(method) <- enclosures[[at]]
      }
      inherited[name] <- list(method)
    }
    enclosure <- if (length(enclosures) > 0) enclosures[[1]] else list2env(around, parent = emptyenv())
  }
  structure(inherited, enclosure = enclosure)
}

# The layers of a new kind; `inherit` is the maker of another.
layers_of <- function(methods, inherit, maker) {
  if (is.null(inherit)) return(list(methods))
  inherited <- attr(inherit, "layers")
  if (is.null(inherited)) refuse(maker, " inherits from what ", maker, " made")
  c(list(methods), inherited)
}

initialize_of <- function(layers) {
  for (layer in layers) if (is.function(layer$initialize)) return(layer$initialize)
}
