# Datasets and loaders of batches.

# A kind of dataset: `initialize` fills self, `.getitem(i)` gives one sample, `.length()` says how many there are.
dataset <- function(name = NULL, inherit = NULL, ...) {
  methods <- list(...)
  if (!is.null(inherit)) {
    base <- attr(inherit, "methods")
    if (is.null(base)) refuse("dataset inherits from what dataset made")
    methods <- c(methods, base[setdiff(names(base), names(methods))])
    name <- c(name, attr(inherit, "name"))
  }
  generator <- taking_arguments_of(methods$initialize, function(arguments) {
    self <- new.env(parent = emptyenv())
    for (each in names(methods)) {
      method <- methods[[each]]
      if (is.function(method)) environment(method) <- list2env(list(self = self, private = self), parent = environment(method))
      assign(each, method, self)
    }
    class(self) <- c(name, "dataset")
    if (!is.null(self$initialize)) do.call(self$initialize, arguments)
    self
  })
  structure(generator, class = "dataset_generator", methods = methods, name = name)
}

print.dataset_generator <- function(x, ...) {
  cat("<dataset_generator ", attr(x, "name")[1], ">\n", sep = "")
  invisible(x)
}

length.dataset <- function(x) {
  if (is.null(x$.length)) refuse("this dataset has no .length()")
  x$.length()
}

item_of <- function(x, i) {
  if (length(i) == 1 && (is.na(i) || i < 1 || i > length(x))) {
    refuse("there is no sample ", i, " in a dataset of ", length(x), code = 2L, name = "TN_ERROR_INDEX")
  }
  if (!is.null(x$.getbatch)) x$.getbatch(i) else x$.getitem(i)
}

`[.dataset` <- function(x, i) item_of(x, i)

`[[.dataset` <- function(x, i) if (is.character(i)) get0(i, x, inherits = FALSE) else item_of(x, i)

tensor_dataset_kind <- dataset(
  "tensor_dataset",
  initialize = function(...) {
    tensors <- list(...)
    sizes <- vapply(tensors, function(each) dim(each)[1], 0)
    if (length(unique(sizes)) != 1) refuse("tensors of one dataset have the same size in dimension 1")
    self$tensors <- tensors
  },
  .getbatch = function(i) lapply(self$tensors, function(each) each[i, ..]),
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

dataset_subset <- function(dataset, indices) dataset_subset_kind(dataset, indices)

# ---- loaders ----

dataloader <- function(dataset, batch_size = 1, shuffle = FALSE, drop_last = FALSE, collate_fn = NULL) {
  if (batch_size < 1) refuse("a batch has one sample or more, not ", batch_size)
  structure(list(dataset = dataset, batch_size = batch_size, shuffle = shuffle, drop_last = drop_last,
                 collate = if (is.null(collate_fn)) collate_samples else collate_fn), class = "dataloader")
}

is_dataloader <- function(x) inherits(x, "dataloader")

length.dataloader <- function(x) {
  x <- unclass(x)
  (if (x$drop_last) floor else ceiling)(length(x$dataset) / x$batch_size)
}

# One batch of samples: tensors are stacked, numbers become one, lists go part by part.
collate_samples <- function(samples) {
  first <- samples[[1]]
  if (is_torch_tensor(first)) return(torch_stack(samples))
  if (is.list(first)) {
    parts <- lapply(seq_along(first), function(i) collate_samples(lapply(samples, function(sample) sample[[i]])))
    return(structure(parts, names = names(first)))
  }
  if ((is.numeric(first) || is.logical(first)) && length(first) == 1) return(as_tensor(unlist(samples)))
  if (is.numeric(first) || is.logical(first)) return(torch_stack(lapply(samples, as_tensor)))
  samples
}

# A function that gives the next batch, and `exhausted()` after the last.
dataloader_make_iter <- function(dataloader) {
  loader <- unclass(dataloader)
  batches <- dataloader_batches(length(loader$dataset), loader$batch_size, loader$shuffle)
  batches <- batches[seq_len(length(dataloader))]
  at <- 0
  function() {
    if (at == length(batches)) return(exhausted())
    at <<- at + 1
    chosen <- batches[[at]]
    if (!is.null(loader$dataset$.getbatch) && identical(loader$collate, collate_samples)) return(loader$dataset$.getbatch(chosen))
    loader$collate(lapply(chosen, function(i) item_of(loader$dataset, i)))
  }
}

exhausted <- function() structure(list(), class = "torch_exhausted")

dataloader_next <- function(iter, completed = NULL) {
  found <- iter()
  if (inherits(found, "torch_exhausted")) completed else found
}

as_iterator <- function(x) if (is_dataloader(x)) dataloader_make_iter(x) else refuse("only a dataloader can be looped over")

# for (batch in enumerate(loader)): all batches, made beforehand.
enumerate <- function(x) {
  iter <- as_iterator(x)
  lapply(seq_len(length(x)), function(i) iter())
}

# loop(for (batch in loader) { ... }): batches are made as they are needed; break and next work.
loop <- function(code) {
  code <- substitute(code)
  if (!is.call(code) || !identical(code[[1]], as.name("for"))) refuse("loop takes a for: loop(for (batch in loader) ...)")
  frame <- parent.frame()
  iter <- as_iterator(eval(code[[3]], frame))
  more <- function() {
    found <- iter()
    if (inherits(found, "torch_exhausted")) return(FALSE)
    assign(as.character(code[[2]]), found, envir = frame)
    TRUE
  }
  eval(call("while", as.call(list(more)), code[[4]]), frame)
  invisible()
}

dataloader_batches <- function(n, batch_size, shuffle = TRUE) {
  order <- if (shuffle) sample.int(n) else seq_len(n)
  unname(split(order, ceiling(seq_len(n) / batch_size)))
}
