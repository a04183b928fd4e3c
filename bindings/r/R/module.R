# nn_module: a module is a function that calls its `forward`, over an environment that holds what it is made of.

nn_module <- function(classname = NULL, inherit = NULL, ..., private = NULL, active = NULL, parent_env = parent.frame()) {
  layers <- layers_of(list(...), inherit, "nn_module")
  hidden <- list(private = private, active = active)
  if (!is.null(inherit)) {
    for (kind in names(hidden)) {
      inherited <- attr(inherit, "hidden")[[kind]]
      hidden[[kind]] <- c(hidden[[kind]], inherited[setdiff(names(inherited), names(hidden[[kind]]))])
    }
    classname <- c(classname, attr(inherit, "classname"))
  }
  make <- function(arguments) new_module(classname, layers, arguments, hidden)
  generator <- taking_arguments_of(initialize_of(layers), make)
  structure(generator, class = c(classname, "nn_module", "nn_module_generator"), layers = layers,
            classname = classname, hidden = hidden, inherit = inherit)
}

# What a kind of module tells of itself, as R6's generators do: packages such as luz look for methods in it.
kind_members <- list(
  new = function(kind) kind,
  classname = function(kind) attr(kind, "classname")[1],
  public_methods = function(kind) Filter(is.function, attr(kind, "layers")[[1]]),
  public_fields = function(kind) Filter(Negate(is.function), attr(kind, "layers")[[1]]),
  private_methods = function(kind) Filter(is.function, attr(kind, "hidden")$private),
  private_fields = function(kind) Filter(Negate(is.function), attr(kind, "hidden")$private),
  active = function(kind) attr(kind, "hidden")$active,
  get_inherit = function(kind) function() {
    inherited <- attr(kind, "inherit")
    if (is.null(inherited)) no_kind else inherited
  }
)

# What every kind of module inherits from.
no_kind <- list(
  public_methods = list(
    initialize = function() NULL,
    forward = function(...) refuse("a kind of module has a method forward, which calling it calls", kind = "NOT_FOUND")
  ),
  get_inherit = function() NULL
)

new_module <- function(classname, layers, arguments, hidden = list()) {
  module <- uninitialized_module(classname, layers, hidden)
  initialize <- attr(module, "parts")$.methods$initialize
  if (!is.null(initialize)) do.call(initialize, arguments)
  module
}

uninitialized_module <- function(classname, layers, hidden) {
  parts <- new.env(parent = emptyenv())
  parts$.kind <- list(classname, layers, hidden)
  parts$.order <- character()
  parts$training <- TRUE
  module <- function(...) parts$.forward(...)
  class(module) <- c(classname, "nn_module")
  attr(module, "parts") <- parts
  private <- new.env(parent = emptyenv())
  parts$.private <- private
  known <- list(self = module, parts = parts, private = private)
  bound <- bound_methods(layers, known, function(inherited) structure(inherited, class = "nn_super", module = module))
  list2env(bound_methods(list(hidden$private), known), private)
  parts$.active <- bound_methods(list(hidden$active), known)
  parts$.methods <- bound[vapply(bound, is.function, TRUE)]
  parts$.forward <- parts$.methods$forward
  parts$.enclosure <- attr(bound, "enclosure")
  if (is.null(parts$.forward)) parts$.forward <- function(...) refuse(classname[1], " has no method forward, which calling it calls", kind = "NOT_FOUND")
  for (name in setdiff(names(bound), names(parts$.methods))) assign_part(parts, name, bound[[name]])
  module
}

# What a method of a module calls by `super`: a method that its kind inherits, or a member that every module has.
`$.nn_super` <- function(x, name) {
  found <- get0(name, x, inherits = FALSE)
  if (!is.null(found)) return(found)
  member <- module_members[[name]]
  if (is.null(member)) no_kind$public_methods[[name]] else member(attr(x, "module"))
}

is_nn_module <- function(x) inherits(x, "nn_module") && !inherits(x, "nn_module_generator")

is_nn_parameter <- function(x) is_parameter(x)

is_nn_buffer <- function(x) is_buffer(x)

nn_parameter <- function(x, requires_grad = TRUE) {
  x <- torch_detach(as_tensor(x))
  class(x) <- c("nn_parameter", "torch_tensor")
  .Call(C_tf_set_requires_grad, x, requires_grad)
}

# A buffer that does not persist is no part of the module's state.
nn_buffer <- function(x, persistent = TRUE) {
  x <- as_tensor(x)
  class(x) <- c("nn_buffer", "torch_tensor")
  if (!persistent) attr(x, "persistent") <- FALSE
  x
}

is_state <- function(x) is_parameter(x) || (is_buffer(x) && !isFALSE(attr(x, "persistent")))

is_parameter <- function(x) inherits(x, "nn_parameter")
is_buffer <- function(x) inherits(x, "nn_buffer")

# A tensor of the kind of another: a parameter, a buffer, or neither.
of_kind <- function(x, like) {
  if (is_parameter(like) || is_buffer(like)) attributes(x) <- attributes(like)
  x
}

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
  if (name %in% c("parameters", "buffers", "modules", "children")) {
    refuse("It's not possible to set the ", name, " of a module, which are what its parts have: assign to a part", kind = "TORCH")
  }
  parts <- attr(x, "parts")
  if (is.null(parts)) { # a kind of module: a function of it
    attr(x, "members")[[name]] <- value
    return(x)
  }
  active <- parts$.active[[name]]
  if (!is.null(active)) active(value) else assign_part(parts, name, value)
  x
}

`[[<-.nn_module` <- function(x, i, value) {
  if (!is.character(i)) {
    known <- names(children_of(x))
    if (i < 1 || i > length(known)) refuse("there is no part ", i, " in a module of ", length(known), kind = "INDEX")
    i <- known[i]
  }
  `$<-.nn_module`(x, i, value)
}

tensor_named <- function(x, target, wanted) {
  found <- module_tensors(x, wanted)[[target]]
  if (is.null(found)) refuse("the module has no ", target, kind = "NOT_FOUND")
  found
}

.DollarNames.nn_module <- function(x, pattern = "") grep(pattern, unique(names(x)), value = TRUE)

# A module without its last layers, to put others in their place.
nn_prune_head <- function(x, head_size = 1L) {
  if (!is_nn_module(x)) refuse("nn_prune_head takes a module", kind = "TYPE")
  children <- children_of(x)
  if (head_size < 1 || head_size >= length(children)) {
    refuse("a module of ", length(children), " parts cannot lose ", head_size, " of them")
  }
  do.call(nn_sequential, children[seq_len(length(children) - head_size)])
}

names.nn_module <- function(x, ...) {
  parts <- attr(x, "parts")
  if (is.null(parts)) NULL else c(parts$.order, names(parts$.methods), names(module_members))
}

# A module like another: with fields of its own that hold the same tensors and modules or, where the clone is deep, with
# tensors and modules of its own.
clone_module <- function(module, deep = FALSE, ..., replace_values = TRUE) {
  if (!is_nn_module(module)) refuse("clone_module takes a module", kind = "TYPE")
  if (!deep) return(shallow_clone(module))
  made <- unserialize_with_tensors(serialize_with_tensors(module))
  each_module(made, function(part) {
    finish <- attr(part, "parts")$.private$finalize_deep_clone
    if (is.function(finish)) finish()
  })
  made
}

shallow_clone <- function(module) {
  from <- attr(module, "parts")
  made <- do.call(uninitialized_module, from$.kind)
  to <- attr(made, "parts")
  for (name in setdiff(to$.order, from$.order)) assign_part(to, name, NULL)
  for (name in from$.order) assign_part(to, name, from[[name]])
  to$.order <- from$.order
  to$training <- from$training
  fields <- Filter(Negate(is.function), as.list.environment(from$.private, all.names = TRUE))
  list2env(fields, to$.private)
  made
}

# Fields of the names that they are given by.
keep <- function(self, ...) {
  given <- list(...)
  for (name in names(given)) assign_part(attr(self, "parts"), name, given[[name]])
}

# Code that keeps arguments of `initialize` in fields of their names, and what such fields hold.
keeping <- function(names) {
  as.call(c(as.name("{"), lapply(names, function(name) call("<-", call("$", quote(self), as.name(name)), as.name(name)))))
}

kept <- function(parts, names) structure(lapply(names, function(name) parts[[name]]), names = names)

module_members <- list(
  .__enclos_env__ = function(x) attr(x, "parts")$.enclosure,
  parameters = function(x) unlike(module_tensors(x, is_parameter)),
  modules = function(x) all_modules(x),
  named_parameters = function(x) function(recursive = TRUE) unlike(module_tensors(x, is_parameter)),
  clone = function(x) function(deep = FALSE, ..., replace_values = TRUE) clone_module(x, deep),
  cpu = function(x) function() x$to(device = "cpu"),
  cuda = function(x) function(device = "cuda", non_blocking = FALSE) x$to(device = device, non_blocking = non_blocking),
  requires_grad_ = function(x) function(requires_grad = TRUE) {
    for (each in x$parameters) .Call(C_tf_set_requires_grad, each, requires_grad)
    invisible(x)
  },
  buffers = function(x) module_tensors(x, is_buffer),
  children = function(x) children_of(x),
  train = function(x) function(mode = TRUE) {
    each_module(x, function(module) attr(module, "parts")$training <- mode)
    invisible(x)
  },
  eval = function(x) function() x$train(FALSE),
  zero_grad = function(x) function(set_to_none = TRUE) {
    zero_gradients(x$parameters, set_to_none)
    invisible(x)
  },
  state_dict = function(x) function(prefix = "", keepvars = FALSE) {
    found <- module_tensors(x, is_state, prefix)
    if (keepvars) found else lapply(found, function(each) wanting_grad(torch_detach(each), each$requires_grad))
  },
  load_state_dict = function(x) function(state_dict, ..., .refer_to_state_dict = FALSE) {
    load_state(x, state_dict, .refer_to_state_dict)
    invisible(x)
  },
  to = function(x) function(dtype = NULL, device = NULL, tensor = NULL, non_blocking = FALSE, copy = FALSE,
                            memory_format = NULL) {
    if (!is.null(tensor)) {
      dtype <- tensor$dtype
      device <- tensor$device
    }
    if (!is.null(dtype) && !torch_is_floating_point(dtype) && !torch_is_complex(dtype)) {
      refuse("a module goes to a type of floats or complex numbers, not to ", dtype_name(dtype))
    }
    move <- function(tensor, dtype) {
      several <- length(dim(tensor)) %in% 4:5 # what channels_last has a meaning for
      torch_to(tensor, dtype, device, NULL, non_blocking, copy, if (several) memory_format)
    }
    replace_tensors(x, function(tensor) {
      # Whole numbers, such as a count of batches, keep their type.
      detached <- torch_detach(tensor)
      moved <- move(detached, if (torch_is_floating_point(tensor)) dtype)
      if (.Call(C_tf_is_same, moved, detached)) return(tensor) # which optimizers may know
      if (!is_parameter(tensor)) return(nn_buffer(moved))
      moved <- nn_parameter(moved, tensor$requires_grad)
      grad <- .Call(C_tf_grad, tensor)
      if (!is.null(grad)) .Call(C_tf_set_grad, moved, move(grad, dtype))
      moved
    })
    invisible(x)
  },
  register_parameter = function(x) function(name, param) assign_part(attr(x, "parts"), name, nn_parameter(param)),
  register_buffer = function(x) function(name, tensor, persistent = TRUE) {
    assign_part(attr(x, "parts"), name, nn_buffer(tensor, persistent))
  },
  named_buffers = function(x) function(recursive = TRUE) module_tensors(x, is_buffer),
  get_parameter = function(x) function(target) tensor_named(x, target, is_parameter),
  get_buffer = function(x) function(target) tensor_named(x, target, is_buffer),
  is_nn_module = function(x) TRUE,
  register_module = function(x) function(name, module) assign_part(attr(x, "parts"), name, module),
  add_module = function(x) function(name, module) assign_part(attr(x, "parts"), name, module),
  apply = function(x) function(fn) {
    each_module(x, fn)
    invisible(x)
  }
)

# Copy tensors by name into the module's own. Those of a module that comes from another session, by readRDS, are made
# anew; with `refer`, all are the state's own.
load_state <- function(x, state, refer = FALSE) {
  own <- module_tensors(x, is_state)
  state <- layers_from_one(state, names(own))
  wrong <- c(setdiff(names(own), names(state)), setdiff(names(state), names(own)))
  wrong <- wrong[!grepl("(^|[.])num_batches_tracked$", wrong)] # which Python's old files do not have
  if (length(wrong)) refuse("the state and the module differ in ", paste(wrong, collapse = ", "))
  with_no_grad(for (name in intersect(names(own), names(state))) {
    given <- as_tensor(state[[name]])
    if (refer || !.Call(C_tf_is_open, own[[name]])) put_tensor(x, name, own[[name]], if (refer) given else torch_clone(given))
    else torch_copy_(own[[name]], given)
  })
}

# A state that Python wrote numbers the layers of a recurrent network from 0, as in weight_ih_l0; here they count from 1.
layers_from_one <- function(state, own) {
  pattern <- "^(.*(?:weight|bias)_(?:ih|hh|hr)_l)([0-9]+)((?:_reverse)?)$"
  layered <- grep(pattern, names(state), perl = TRUE)
  from_zero <- any(grepl("_l0(_reverse)?$", names(state)[layered])) && !any(grepl("_l0(_reverse)?$", own))
  if (!from_zero) return(state)
  numbers <- as.integer(sub(pattern, "\\2", names(state)[layered], perl = TRUE)) + 1
  names(state)[layered] <- paste0(sub(pattern, "\\1", names(state)[layered], perl = TRUE), numbers,
                                  sub(pattern, "\\3", names(state)[layered], perl = TRUE))
  state
}

# Put a tensor in the place that a name such as "0.weight" means, of the kind of the one that was there.
put_tensor <- function(x, name, before, tensor) {
  at <- strsplit(name, ".", fixed = TRUE)[[1]]
  for (part in utils::head(at, -1)) x <- attr(x, "parts")[[part]]
  wanted <- torch_is_floating_point(tensor) && (!.Call(C_tf_is_open, before) || before$requires_grad)
  made <- if (is_parameter(before)) nn_parameter(tensor, wanted) else nn_buffer(tensor)
  assign(at[length(at)], made, attr(x, "parts"))
}

`$.nn_module` <- function(x, name) {
  parts <- attr(x, "parts")
  if (is.null(parts)) { # a kind of module, and not one
    known <- kind_members[[name]]
    return(if (!is.null(known)) known(x) else attr(x, "members")[[name]])
  }
  found <- parts[[name]]
  if (!is.null(found)) return(found)
  method <- parts$.methods[[name]]
  if (!is.null(method)) return(method)
  active <- parts$.active[[name]]
  if (!is.null(active)) return(active())
  member <- module_members[[name]]
  if (is.null(member)) NULL else member(x)
}

`[[.nn_module` <- function(x, i, ...) {
  if (is.character(i)) return(`$.nn_module`(x, i))
  children <- children_of(x)
  if (i < 1 || i > length(children)) {
    refuse("part ", i, " is out of bounds in a module of ", length(children), kind = "INDEX")
  }
  children[[i]]
}

length.nn_module <- function(x) if (is.null(attr(x, "parts"))) 1L else length(children_of(x))

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

# Tensors of which each comes once, under its first name.
unlike <- function(tensors) tensors[!duplicated(lapply(tensors, function(each) .Call(C_tf_address, each)))]

all_modules <- function(x) {
  found <- list()
  each_module(x, function(module) {
    known <- vapply(found, function(other) identical(attr(other, "parts"), attr(module, "parts")), TRUE)
    if (!any(known)) found[[length(found) + 1]] <<- module
  })
  found
}

# Put fn(tensor) in the place of each tensor. One that several modules share stays shared.
replace_tensors <- function(x, fn, wanted = function(part) is_parameter(part) || is_buffer(part)) {
  done <- new.env(parent = emptyenv())
  each_module(x, function(module) {
    parts <- attr(module, "parts")
    for (name in parts$.order) if (wanted(parts[[name]])) {
      tensor <- parts[[name]]
      known <- .Call(C_tf_address, tensor)
      if (is.null(done[[known]])) {
        made <- fn(tensor)
        assign(known, made, done)
        assign(.Call(C_tf_address, made), made, done)
      }
      assign(name, done[[known]], parts)
    }
  })
}

# The module with other tensors in the places of its parameters, while `code` runs.
with_parameters <- function(module, tensors, code) {
  kept <- module$parameters
  exchange <- function(from, to) {
    at <- vapply(from, function(tensor) .Call(C_tf_address, tensor), "")
    replace_tensors(module, function(tensor) to[[match(.Call(C_tf_address, tensor), at)]], is_parameter)
  }
  tensors <- lapply(tensors, function(tensor) {
    class(tensor) <- c("nn_parameter", "torch_tensor")
    tensor
  })
  exchange(kept, tensors)
  on.exit(exchange(tensors, kept))
  force(code)
}

print.nn_module <- function(x, ...) {
  if (inherits(x, "nn_module_generator")) return(print.nn_module_generator(x))
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
  cat("<nn_module_generator ", attr(x, "classname", exact = TRUE)[1], ">\n", sep = "")
  invisible(x)
}
