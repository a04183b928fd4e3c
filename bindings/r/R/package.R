# Loading the package, its errors, and what the library as a whole can be asked.

.onLoad <- function(libname, pkgname) {
  .Call(C_tf_setup, topenv(environment()))
  # coro::loop() and coro::collect() take loaders, where that package is.
  register <- function(...) registerS3method("as_iterator", "dataloader", as_iterator.dataloader, asNamespace("coro"))
  if (isNamespaceLoaded("coro")) register() else setHook(packageEvent("coro", "onLoad"), register)
  # R does not see the memory of tensors: past this mark libtenfold has R collect what it no longer reaches.
  if (.Call(C_tf_available)) .Call(C_tf_set_pressure, getOption("tenfold.pressure", 128 * 2^20))
}

# An error's classes: our own, and the one by which R's torch users know its kind.
tenfold_condition <- function(message, call, code, name) {
  kind <- switch(name, TN_ERROR_ARGUMENT = "value_error", TN_ERROR_TYPE = "type_error", TN_ERROR_INDEX = "index_error",
                 "runtime_error")
  structure(class = c("tenfold_error", kind, "error", "condition"),
            list(message = message, call = call, code = code, name = name))
}

# Called from C with a failure of libtenfold or of the package.
signal_tenfold_error <- function(message, code, name) {
  stop(tenfold_condition(in_words_of_r(message), sys.call(-1), code, name))
}

# Where libtorch's messages count from 0, the numbers in groups.
counted_from_zero <- c(
  "Dimension out of range \\(expected to be in range of \\[-\\d+, (\\d+)\\], but got (-?\\d+)\\)",
  "index (-?\\d+) out of range for tensor of size \\[[^]]*\\] at dimension (\\d+)",
  "index (-?\\d+) is out of bounds for dimension (\\d+)",
  "inputs dimension (\\d+) must have length", "dimension (\\d+) does not have size",
  "Target (-?\\d+) is out of bounds", "dim (\\d+) appears multiple times",
  "first has size \\d+ in dim (\\d+) and second has size \\d+ in dim (\\d+)",
  "must match except in dimension (\\d+)", "for tensor number (\\d+) in the list",
  "at non-singleton dimension (\\d+)", "at dimension (\\d+)(?! to have)", "for dimension (\\d+)$",
  "tried to access index (\\d+)", "start \\((\\d+)\\) \\+ length", "at entry (\\d+) and \\[[^]]*\\] at entry (\\d+)",
  "for operand (\\d+)"
)

# A message of libtenfold's with dimensions and positions from 1, without the name of the C function that failed.
in_words_of_r <- function(message) {
  if (!grepl("^tn_\\w+: ", message)) return(message)
  message <- sub("^tn_\\w+: ", "", message)
  raised <- integer() # where numbers were raised already
  for (pattern in counted_from_zero) {
    at <- regexpr(pattern, message, perl = TRUE)
    if (at < 0) next
    starts <- attr(at, "capture.start")
    ends <- starts + attr(at, "capture.length") - 1
    for (i in rev(seq_along(starts))) {
      number <- as.numeric(substr(message, starts[i], ends[i]))
      if (number < 0 || starts[i] %in% raised) next
      raised <- c(raised, starts[i])
      message <- paste0(substr(message, 1, starts[i] - 1), number + 1, substring(message, ends[i] + 1))
    }
  }
  message
}

# Called from C with the condition that ended an R function inside libtorch.
resignal <- function(condition) {
  if (inherits(condition, "interrupt")) {
    signalCondition(condition)
    invokeRestart("abort")
  }
  stop(condition)
}

refuse <- function(..., kind = "ARGUMENT") {
  name <- paste0("TN_ERROR_", kind)
  stop(tenfold_condition(paste0(...), sys.call(-1), error_codes[[name]], name))
}

tenfold_memory <- function() .Call(C_tf_memory)

tenfold_versions <- function() {
  found <- .Call(C_tf_versions)
  c(tenfold = found[1], libtorch = found[2])
}

loaded_library <- function(name) {
  path <- .Call(C_tf_library_path, name)
  if (is.null(path)) refuse(name, " was not found", kind = "NOT_AVAILABLE")
  normalizePath(path)
}

# The flags of a package whose C++ includes tenfold/torch.h: it compiles against libtorch's headers and links it.
tenfold_torch_flags <- function(what = c("compile", "link")) {
  lib <- dirname(loaded_library("libtorch_cpu.so"))
  include <- file.path(dirname(lib), "include")
  flags <- switch(match.arg(what),
    compile = paste0("-isystem", c(include, file.path(include, "torch/csrc/api/include"))),
    link = c(paste0("-L", lib), "-ltorch", "-ltorch_cpu", "-lc10", paste0("-Wl,-rpath,", lib)))
  cat(flags)
}

tenfold_call <- function(name, ...) .Call(C_tf_call, name, list(...))

cuda_is_available <- function() .Call(C_tf_cuda_available)

cuda_device_count <- function() .Call(C_tf_device_count)

cuda_synchronize <- function(device = "cuda") invisible(.Call(C_tf_synchronize, device))

cuda_empty_cache <- function() invisible(.Call(C_tf_empty_cache))

torch_is_installed <- function(recheck = FALSE) .Call(C_tf_available)

torch_manual_seed <- function(seed) invisible(.Call(C_tf_manual_seed, seed))

# The state of the random numbers that operators use, as a tensor of bytes.
torch_get_rng_state <- function() .Call(C_tf_generator_state, .Call(C_tf_default_generator, "cpu"))

torch_set_rng_state <- function(state) invisible(.Call(C_tf_generator_set_state, .Call(C_tf_default_generator, "cpu"), state))

# Random numbers from a seed while code runs; afterwards they go on where they were.
with_torch_manual_seed <- function(code, ..., seed) {
  local_torch_manual_seed(seed)
  force(code)
}

local_torch_manual_seed <- function(seed, .env = parent.frame()) {
  state <- torch_get_rng_state()
  torch_manual_seed(seed)
  ending <- as.call(list(function() torch_set_rng_state(state)))
  do.call("on.exit", list(ending, add = TRUE, after = FALSE), envir = .env)
  invisible()
}

torch_generator <- function(seed = 0, device = "cpu") .Call(C_tf_generator, seed, device)

# generator$current_seed() and generator$set_current_seed(seed), which takes an integer or one of package bit64.
`$.torch_generator` <- function(x, name) {
  switch(name,
    current_seed = function() wide_number(.Call(C_tf_generator_seed, x)),
    set_current_seed = function(seed) {
      if (!is.integer(seed) && !inherits(seed, "integer64")) refuse("a seed is an integer", kind = "TYPE")
      invisible(.Call(C_tf_generator_set_seed, x, as.character(seed)))
    },
    refuse("a generator has no member '", name, "'", kind = "NOT_FOUND")
  )
}

# A whole number from its digits: of package bit64 where that is installed.
wide_number <- function(digits) if (requireNamespace("bit64", quietly = TRUE)) bit64::as.integer64(digits) else as.numeric(digits)

print.torch_generator <- function(x, ...) {
  cat("<torch_generator>\n")
  invisible(x)
}

torch_get_num_threads <- function() .Call(C_tf_threads, NULL)

torch_set_num_threads <- function(num_threads) invisible(.Call(C_tf_threads, num_threads))
