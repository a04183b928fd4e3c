# Datasets, and the orders in which their samples come.

# A kind of object over an environment, `self`: its methods and values are what it is made of.
new_kind <- function(name, inherit, methods, private, active, class, maker) {
  layers <- layers_of(methods, inherit, maker)
  name <- c(name, attr(inherit, "name"))
  private <- c(private, attr(inherit, "private")[setdiff(names(attr(inherit, "private")), names(private))])
  active <- c(active, attr(inherit, "active")[setdiff(names(attr(inherit, "active")), names(active))])
  generator <- taking_arguments_of(initialize_of(layers), function(arguments) {
    known <- list(self = new.env(parent = emptyenv()), private = new.env(parent = emptyenv()))
    list2env(bound_methods(layers, known), known$self)
    initialize <- known$self$initialize # before there is a class, whose name may be any
    list2env(bound_methods(list(private), known), known$private)
    bindings <- bound_methods(list(active), known)
    for (each in names(bindings)) makeActiveBinding(each, bindings[[each]], known$self)
    self <- structure(known$self, class = c(name, class, "R6"))
    if (!is.null(initialize)) do.call(initialize, arguments)
    self
  })
  structure(generator, class = c(paste0(class[1], "_generator"), "dataset_generator"), layers = layers, name = name,
            private = private, active = active)
}

# A kind of dataset: `initialize` fills self, `.getitem(i)` gives one sample, `.length()` says how many there are.
dataset <- function(name = NULL, inherit = NULL, ..., private = NULL, active = NULL, parent_env = parent.frame()) {
  new_kind(name, inherit, list(...), private, active, "dataset", "dataset")
}

# A kind of dataset whose samples come one after the other: `.iter()` gives a function that gives the next one.
iterable_dataset <- function(name = NULL, inherit = NULL, ..., private = NULL, active = NULL, parent_env = parent.frame()) {
  new_kind(name, inherit, list(...), private, active, c("iterable_dataset", "dataset"), "iterable_dataset")
}

# A kind of order: `.iter()` gives a function that gives the next position, or positions of a batch; `.length()` counts.
sampler <- function(name = NULL, inherit = NULL, ..., private = NULL, active = NULL, parent_env = parent.frame()) {
  new_kind(name, inherit, list(...), private, active, "utils_sampler", "sampler")
}

print.dataset_generator <- function(x, ...) {
  cat("<", class(x)[1], " ", attr(x, "name")[1], ">\n", sep = "")
  invisible(x)
}

print.dataset <- function(x, ...) {
  count <- if (is.null(x$.length)) "" else paste0(" of ", format(length(x), big.mark = ","), " samples")
  cat("<", class(x)[1], count, ">\n", sep = "")
  invisible(x)
}

length.dataset <- function(x) {
  if (is.null(x$.length) && inherits(x, "iterable_dataset")) return(NA_integer_) # known when the last came
  if (is.null(x$.length)) refuse("this dataset has no .length()")
  x$.length()
}

length.utils_sampler <- function(x) {
  if (is.null(x$.length)) refuse("this sampler has no .length()")
  x$.length()
}

item_of <- function(x, i) {
  if (is.list(i)) i <- unlist(i)
  if (is.numeric(i) && !anyNA(i)) i <- as.integer(i)
  if (length(i) == 1 && (is.na(i) || i < 1 || i > length(x))) {
    refuse("there is no sample ", i, " in a dataset of ", length(x), kind = "INDEX")
  }
  if (!is.null(x$.getitem) && (length(i) == 1 || is.null(x$.getbatch))) x$.getitem(i) else x$.getbatch(i)
}

`[.dataset` <- function(x, i) item_of(x, i)

`[[.dataset` <- function(x, i) if (is.character(i)) get0(i, x, inherits = FALSE) else item_of(x, i)

tensor_dataset_kind <- dataset(
  "tensor_dataset",
  initialize = function(...) {
    tensors <- list(...)
    if (length(tensors) == 0 || !all(vapply(tensors, function(each) is_torch_tensor(each) && length(dim(each)) > 0, TRUE))) {
      refuse("tensor_dataset takes tensors of at least one dimension", kind = "TYPE")
    }
    sizes <- vapply(tensors, function(each) dim(each)[1], 0)
    if (length(unique(sizes)) != 1) refuse("tensors of one dataset have the same size in dimension 1")
    self$tensors <- tensors
  },
  .getitem = function(i) lapply(self$tensors, function(each) each[i, ..]),
  .getbatch = function(i) lapply(self$tensors, function(each) each[i, .., drop = FALSE]),
  .length = function() dim(self$tensors[[1]])[1]
)

tensor_dataset <- function(...) tensor_dataset_kind(...)

dataset_subset_kind <- dataset(
  "dataset_subset",
  initialize = function(dataset, indices) {
    self$dataset <- dataset
    self$indices <- indices
  },
  .getitem = function(i) item_of(self$dataset, self$indices[i]),
  .length = function() length(self$indices)
)

dataset_subset <- function(dataset, indices) {
  made <- dataset_subset_kind(dataset, indices)
  kind <- setdiff(class(dataset), c("dataset", "iterable_dataset", "dataset_subset", "R6"))
  if (length(kind)) class(made) <- c(paste0(kind, "_subset"), class(made))
  made
}
