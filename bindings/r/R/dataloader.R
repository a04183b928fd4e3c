# Loaders: the samples of a dataset in batches.

dataloader <- function(dataset, batch_size = 1, shuffle = FALSE, sampler = NULL, batch_sampler = NULL, num_workers = 0,
                       collate_fn = NULL, pin_memory = FALSE, drop_last = FALSE, timeout = -1, worker_init_fn = NULL,
                       worker_globals = NULL, worker_packages = NULL) {
  if (!inherits(dataset, "dataset")) refuse("dataloader takes a dataset", kind = "TYPE")
  if (!is.null(batch_size) && !isTRUE(batch_size >= 1)) refuse("a batch has one sample or more, not ", batch_size)
  iterable <- inherits(dataset, "iterable_dataset")
  ordered <- c(if (shuffle) "shuffle", if (!is.null(sampler)) "sampler", if (!is.null(batch_sampler)) "batch_sampler")
  for (each in list(sampler, batch_sampler)) {
    if (!is.null(each) && !is.function(tryCatch(each$.iter, error = function(e) NULL))) refuse("an order is what a kind of sampler() made", kind = "TYPE")
  }
  if (length(ordered) > 1) refuse("an order is given once, not by ", paste(ordered, collapse = " and "))
  if (iterable && identical(ordered, "shuffle")) warning("samples of an iterable dataset come as they come: shuffle has no effect", call. = FALSE)
  else if (iterable && length(ordered)) refuse("samples of an iterable dataset come as they come: ", ordered, " has no meaning")
  if (iterable && num_workers > 0) refuse("an iterable dataset is read in this process alone: num_workers is 0")
  if (num_workers > 0) warn_of_tensors(dataset)
  loader <- list(dataset = dataset, batch_size = batch_size, shuffle = shuffle, sampler = sampler,
                 batch_sampler = batch_sampler, drop_last = drop_last, iterable = iterable, num_workers = num_workers,
                 collate_fn = collate_fn, pin_memory = pin_memory, timeout = timeout, worker_init_fn = worker_init_fn,
                 worker_globals = named_globals(worker_globals, parent.frame()), worker_packages = worker_packages)
  structure(list2env(loader, parent = emptyenv()), class = "dataloader")
}

# What a loader was made of. A loader is an environment: other packages take a list for one of things to look into.
parts_of_loader <- function(x) as.list.environment(x, all.names = TRUE)

# Objects that workers see: a list, or the names of some that the caller of the loader sees.
named_globals <- function(globals, frame) {
  if (!is.character(globals)) return(globals)
  lacking <- Filter(function(name) !exists(name, frame), globals)
  if (length(lacking)) refuse("worker_globals names what does not exist: ", toString(lacking), kind = "TORCH")
  mget(globals, frame, inherits = TRUE)
}

# loader$.iter() and loader$.length(), beside what the loader was made of.
`$.dataloader` <- function(x, name) {
  switch(name, .iter = function() dataloader_make_iter(x), .length = function() length(x), get0(name, x, inherits = FALSE))
}

# An iterator is a function; iter$.next() calls it.
`$.dataloader_iter` <- function(x, name) {
  if (name == ".next") return(function() x())
  refuse("an iterator has .next() and no '", name, "'", kind = "NOT_FOUND")
}

print.dataloader <- function(x, ...) {
  parts <- parts_of_loader(x)
  count <- if (parts$iterable) "batches" else paste(length(x), "batches")
  cat("<dataloader: ", count, " of ", parts$batch_size, if (parts$shuffle) ", shuffled", " from ", class(parts$dataset)[1], ">\n", sep = "")
  invisible(x)
}

is_dataloader <- function(x) inherits(x, "dataloader")

length.dataloader <- function(x) {
  x <- parts_of_loader(x)
  if (!is.null(x$batch_sampler)) return(length(x$batch_sampler))
  samples <- length(if (is.null(x$sampler)) x$dataset else x$sampler)
  if (is.null(x$batch_size)) return(samples)
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

# What a dataset gave, as tensors: what cannot become one is an error.
as_batch <- function(x) {
  if (is_torch_tensor(x)) return(x)
  if (is.list(x)) return(structure(lapply(x, as_batch), names = names(x)))
  if (is.numeric(x) || is.logical(x) || is.complex(x)) return(as_tensor(x))
  refuse("Can't convert data of class '", class(x)[1], "' into a tensor")
}

# The batch of some positions: by the dataset's own .getbatch(), or sample by sample.
fetch_by <- function(dataset, collate_fn, alone) {
  force(alone)
  if (!is.null(dataset$.getbatch) && !alone) {
    convert <- if (is.null(collate_fn)) as_batch else collate_fn
    return(function(positions) convert(dataset$.getbatch(unlist(positions))))
  }
  if (alone) return(function(position) (if (is.null(collate_fn)) as_batch else collate_fn)(item_of(dataset, position)))
  collate <- if (is.null(collate_fn)) collate_samples else collate_fn
  function(positions) collate(lapply(positions, function(i) item_of(dataset, i)))
}

# A function that gives the next batch, and `exhausted()` after the last.
dataloader_make_iter <- function(dataloader) {
  loader <- parts_of_loader(dataloader)
  dataset <- loader$dataset
  if (loader$iterable) return(as_loader_iter(batches_of_samples(loader)))
  alone <- is.null(loader$batch_size) && is.null(loader$batch_sampler)
  loader$fetch <- fetch_by(dataset, loader$collate_fn, alone)
  positions <- if (!is.null(loader$batch_sampler)) loader$batch_sampler$.iter()
               else if (alone) positions_of(loader)
               else in_groups(positions_of(loader), loader$batch_size, loader$drop_last)
  next_batch <- if (loader$num_workers > 0) parallel_batches(loader, positions) else function() {
    chosen <- positions()
    if (is_exhausted(chosen)) chosen else loader$fetch(chosen)
  }
  if (loader$pin_memory && cuda_is_available()) next_batch <- pinned(next_batch)
  as_loader_iter(next_batch)
}

as_loader_iter <- function(next_batch) structure(next_batch, class = "dataloader_iter")

# Batches in memory that a GPU reads by itself.
pinned <- function(next_batch) {
  pin <- function(x) if (is_torch_tensor(x)) tenfold_call("aten::pin_memory", x, NULL) else if (is.list(x)) lapply(x, pin) else x
  function() {
    found <- next_batch()
    if (is_exhausted(found)) found else pin(found)
  }
}

batches_of_samples <- function(loader) {
  collate <- if (is.null(loader$collate_fn)) collate_samples else loader$collate_fn
  samples <- in_groups(loader$dataset$.iter(), loader$batch_size, loader$drop_last)
  function() {
    found <- samples()
    if (is_exhausted(found)) found else collate(found)
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

# Generators of package coro know this call by its name; nobody else may make it.
yield <- function(x) refuse("yield() has a meaning inside coro::generator() and coro::async_generator() alone")

is_exhausted <- function(x) identical(x, exhausted())

dataloader_next <- function(iter, completed = NULL) {
  found <- iter()
  if (is_exhausted(found)) completed else found
}

as_iterator.dataloader <- function(x) unclass(dataloader_make_iter(x)) # coro's

as_iterator <- function(x) {
  if (is_dataloader(x)) return(unclass(dataloader_make_iter(x)))
  if (inherits(x, c("iterable_dataset", "utils_sampler"))) return(x$.iter())
  if (is.function(x)) return(x)
  refuse("only a dataloader, an iterable dataset, a sampler or an iterator can be looped over")
}

# for (batch in enumerate(loader)): all batches, made beforehand.
enumerate <- function(x, ...) {
  warning(structure(class = c("deprecated", "warning", "condition"), list(call = sys.call(), message =
    "enumerate() makes all batches before the first is used: loop(for (batch in loader) ...) makes each when it is needed")))
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
