# Loaders: the samples of a dataset in batches.

dataloader <- function(dataset, batch_size = 1, shuffle = FALSE, sampler = NULL, batch_sampler = NULL, num_workers = 0,
                       collate_fn = NULL, pin_memory = FALSE, drop_last = FALSE, timeout = -1, worker_init_fn = NULL,
                       worker_globals = NULL, worker_packages = NULL) {
  if (!inherits(dataset, "dataset")) refuse("dataloader takes a dataset", kind = "TYPE")
  if (batch_size < 1) refuse("a batch has one sample or more, not ", batch_size)
  if (num_workers > 0) warning("batches are made in this process: num_workers = ", num_workers, " is as good as 0")
  if (pin_memory) warning("batches are not pinned: pin_memory = TRUE is as good as FALSE")
  iterable <- inherits(dataset, "iterable_dataset")
  ordered <- c(if (shuffle) "shuffle", if (!is.null(sampler)) "sampler", if (!is.null(batch_sampler)) "batch_sampler")
  if (length(ordered) > 1) refuse("an order is given once, not by ", paste(ordered, collapse = " and "))
  if (iterable && length(ordered)) refuse("samples of an iterable dataset come as they come: ", ordered, " has no meaning")
  structure(list(dataset = dataset, batch_size = batch_size, shuffle = shuffle, sampler = sampler,
                 batch_sampler = batch_sampler, drop_last = drop_last, iterable = iterable,
                 collate = if (is.null(collate_fn)) collate_samples else collate_fn), class = "dataloader")
}

print.dataloader <- function(x, ...) {
  parts <- unclass(x)
  count <- if (parts$iterable) "batches" else paste(length(x), "batches")
  cat("<dataloader: ", count, " of ", parts$batch_size, if (parts$shuffle) ", shuffled", " from ", class(parts$dataset)[1], ">\n", sep = "")
  invisible(x)
}

is_dataloader <- function(x) inherits(x, "dataloader")

length.dataloader <- function(x) {
  x <- unclass(x)
  if (!is.null(x$batch_sampler)) return(length(x$batch_sampler))
  samples <- length(if (is.null(x$sampler)) x$dataset else x$sampler)
  (if (x$drop_last) floor else ceiling)(samples / x$batch_size)
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
  dataset <- loader$dataset
  if (loader$iterable) {
    samples <- in_groups(dataset$.iter(), loader$batch_size, loader$drop_last)
    return(function() {
      found <- samples()
      if (is_exhausted(found)) found else loader$collate(found)
    })
  }
  batches <- if (!is.null(loader$batch_sampler)) {
    loader$batch_sampler$.iter()
  } else {
    in_groups(positions_of(loader), loader$batch_size, loader$drop_last)
  }
  at_once <- !is.null(dataset$.getbatch) && identical(loader$collate, collate_samples)
  function() {
    chosen <- batches()
    if (is_exhausted(chosen)) return(chosen)
    if (at_once) dataset$.getbatch(unlist(chosen)) else loader$collate(lapply(chosen, function(i) item_of(dataset, i)))
  }
}

positions_of <- function(loader) {
  if (!is.null(loader$sampler)) return(loader$sampler$.iter())
  n <- length(loader$dataset)
  order <- if (loader$shuffle) sample.int(n) else seq_len(n)
  at <- 0
  function() {
    if (at == n) return(exhausted())
    at <<- at + 1
    order[at]
  }
}

# What an iterator gives, as many at a time as `size` says.
in_groups <- function(iter, size, drop_last) {
  function() {
    found <- list()
    while (length(found) < size) {
      each <- iter()
      if (is_exhausted(each)) break
      found <- c(found, list(each))
    }
    if (length(found) == 0 || (drop_last && length(found) < size)) exhausted() else found
  }
}

# What an iterator gives after the last: the same symbol as the generators of package coro.
exhausted <- function() as.symbol(".__exhausted__.")

is_exhausted <- function(x) identical(x, exhausted())

dataloader_next <- function(iter, completed = NULL) {
  found <- iter()
  if (is_exhausted(found)) completed else found
}

as_iterator <- function(x) {
  if (is_dataloader(x)) return(dataloader_make_iter(x))
  if (inherits(x, c("iterable_dataset", "utils_sampler"))) return(x$.iter())
  if (is.function(x)) return(x)
  refuse("only a dataloader, an iterable dataset, a sampler or an iterator can be looped over")
}

# for (batch in enumerate(loader)): all batches, made beforehand.
enumerate <- function(x) {
  iter <- as_iterator(x)
  found <- list()
  while (!is_exhausted(each <- iter())) found <- c(found, list(each))
  found
}

# loop(for (batch in loader) { ... }): batches are made as they are needed; break and next work.
loop <- function(code) {
  code <- substitute(code)
  if (!is.call(code) || !identical(code[[1]], as.name("for"))) refuse("loop takes a for: loop(for (batch in loader) ...)")
  frame <- parent.frame()
  iter <- as_iterator(eval(code[[3]], frame))
  more <- function() {
    found <- iter()
    if (is_exhausted(found)) return(FALSE)
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
