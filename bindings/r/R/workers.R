# Worker processes of a loader: other R processes that make batches, over sockets, with base R alone.

# Start `count` workers and give each its dataset. They end when their connection does.
start_workers <- function(loader) {
  # R's own generator decides, so that set.seed() decides; a failure to bind takes the next port.
  server <- open_server()
  on.exit(close(server$socket))
  scripts <- lapply(seq_len(loader$num_workers), function(id) {
    script <- tempfile(fileext = ".R")
    writeLines(c(
      paste0(".libPaths(", paste(deparse(.libPaths()), collapse = ""), ")"),
      "suppressPackageStartupMessages(library(tenfold))",
      paste0("tenfold:::serve_batches(", server$port, "L)")
    ), script)
    system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", shQuote(script)), wait = FALSE, stdout = FALSE, stderr = FALSE)
    script
  })
  # They start side by side, and are numbered as they connect.
  lapply(seq_along(scripts), function(id) {
    connection <- socketAccept(server$socket, blocking = TRUE, open = "a+b", timeout = 120)
    send(connection, list(
      scripts = scripts, info = list(id = id, workers = loader$num_workers, seed = sample.int(1e6, 1)),
      init = loader$worker_init_fn, globals = loader$worker_globals, packages = loader$worker_packages, fetch = loader$fetch
    ))
    connection
  })
}

open_server <- function() {
  # Ports are tried by the clock and not by R's generator, whose numbers belong to the user.
  first <- as.integer(20000 + (as.numeric(Sys.time()) * 1000 + Sys.getpid() * 61) %% 20000)
  for (port in first + 0:50) {
    socket <- tryCatch(suppressWarnings(serverSocket(port)), error = function(e) NULL)
    if (!is.null(socket)) return(list(socket = socket, port = port))
  }
  refuse("no port of this machine is free for the workers of a loader", kind = "NOT_AVAILABLE")
}

send <- function(connection, value) {
  bytes <- serialize(serialize_with_tensors(value), NULL)
  writeBin(length(bytes), connection)
  writeBin(bytes, connection)
  flush(connection)
}

receive <- function(connection) {
  size <- readBin(connection, "integer", 1)
  if (length(size) == 0) return(NULL)
  bytes <- raw()
  while (length(bytes) < size) {
    more <- readBin(connection, "raw", size - length(bytes))
    if (length(more) == 0) return(NULL)
    bytes <- c(bytes, more)
  }
  unserialize_with_tensors(unserialize(bytes))
}

# What a worker runs: each list of positions that comes is answered with its batch, or with what went wrong.
serve_batches <- function(port) {
  connection <- socketConnection(port = port, blocking = TRUE, open = "a+b", timeout = 24 * 3600)
  on.exit(close(connection))
  given <- receive(connection)
  # The last to start removes all scripts: each was read before its process connected.
  if (given$info$id == given$info$workers) unlink(unlist(given$scripts))
  world <- globalenv()
  ready <- tryCatch({
    assign(".worker_info", given$info, world)
    torch_set_num_threads(1)
    set.seed(given$info$seed)
    torch_manual_seed(given$info$seed)
    for (package in given$packages) library(package, character.only = TRUE)
    list2env(as.list(given$globals), world)
    if (!is.null(given$init)) given$init(given$info$id)
    NULL
  }, error = conditionMessage)
  while (!is.null(task <- receive(connection))) {
    answer <- if (is.null(ready)) tryCatch(list(batch = given$fetch(task$positions)), error = function(e) list(error = conditionMessage(e)))
              else list(error = ready)
    send(connection, answer)
  }
}

# An iterator over batches that workers make: each has one under way while another is in use.
parallel_batches <- function(loader, positions) {
  workers <- start_workers(loader)
  state <- new.env(parent = emptyenv())
  state$queue <- list()
  state$turn <- 0L
  reg.finalizer(state, function(...) for (each in workers) close(each), onexit = TRUE)
  ask <- function() {
    chosen <- positions()
    if (is_exhausted(chosen)) return()
    worker <- workers[[state$turn %% length(workers) + 1L]]
    state$turn <- state$turn + 1L
    send(worker, list(positions = chosen))
    state$queue <- c(state$queue, list(worker))
  }
  function() {
    if (state$turn == 0) for (each in workers) ask()
    if (length(state$queue) == 0) return(exhausted())
    answer <- next_answer(state$queue[[1]], loader$timeout)
    state$queue <- state$queue[-1]
    if (!is.null(answer$error)) refuse("a worker of the loader failed: ", answer$error, kind = "TORCH")
    ask()
    answer$batch
  }
}

# `timeout` is in milliseconds; none where it is not positive.
next_answer <- function(worker, timeout) {
  if (timeout > 0 && !socketSelect(list(worker), timeout = timeout / 1000)) {
    refuse("a worker of the loader timed out after ", timeout, " milliseconds", kind = "TORCH")
  }
  answer <- receive(worker)
  if (is.null(answer)) refuse("a worker of the loader ended", kind = "TORCH")
  answer
}

# Worker processes get copies of what a dataset holds: tensors are better made where they are used.
warn_of_tensors <- function(dataset) {
  holds <- function(x) is_torch_tensor(x) || (is.list(x) && any(vapply(x, holds, TRUE)))
  active <- Filter(function(name) bindingIsActive(name, dataset), ls(dataset, all.names = TRUE))
  fields <- setdiff(ls(dataset, all.names = TRUE), active)
  held <- Filter(function(name) holds(dataset[[name]]), fields)
  if (length(held)) {
    warning("a parallel dataloader copies the tensors of its dataset to each worker: ", toString(held), call. = FALSE)
  }
}
