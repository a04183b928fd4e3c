# Where tensors are made and computed: the default device, autocast, and what the machine and libtorch have.

defaults <- new.env(parent = emptyenv())

# The device that a call names, or else the default one.
placed <- function(device) if (is.null(device)) defaults$device else device

# Tensors are made on `device` where a call does not name another, until the function that calls this returns.
local_device <- function(device, ..., .env = parent.frame()) {
  before <- defaults$device
  defaults$device <- torch_device(device)
  ending <- as.call(list(function() defaults$device <- before))
  do.call("on.exit", list(ending, add = TRUE, after = FALSE), envir = .env)
  invisible()
}

with_device <- function(code, ..., device) {
  local_device(device)
  force(code)
}

is_meta_device <- function(x) identical(torch_device(x)$type, "meta")

# ---- autocast ----

# Operators for which that is safe compute in a smaller type.
set_autocast <- function(device_type, dtype = NULL, enabled = TRUE, cache_enabled = NULL) {
  if (isFALSE(cache_enabled)) refuse("autocast keeps what it converts until its scope ends: cache_enabled = FALSE is not known here")
  if (is.null(dtype)) dtype <- if (identical(device_type, "cpu")) torch_bfloat16() else torch_float16()
  .Call(C_tf_autocast_begin, device_type, dtype, enabled)
}

# Ends what set_autocast began.
unset_autocast <- function(context) invisible(.Call(C_tf_scope_end, context))

local_autocast <- function(device_type, dtype = NULL, enabled = TRUE, cache_enabled = NULL, ..., .env = parent.frame()) {
  context <- set_autocast(device_type, dtype, enabled, cache_enabled)
  ending <- as.call(list(function() unset_autocast(context)))
  do.call("on.exit", list(ending, add = TRUE, after = FALSE), envir = .env)
  invisible()
}

with_autocast <- function(code, ..., device_type, dtype = NULL, enabled = TRUE, cache_enabled = NULL) {
  local_autocast(device_type, dtype, enabled, cache_enabled)
  force(code)
}

# Losses are multiplied before backward so that gradients of float16 do not vanish, and gradients divided before a step,
# which is left out where one of them is infinite.
cuda_amp_grad_scaler <- function(init_scale = 2^16, growth_factor = 2, backoff_factor = 0.5, growth_interval = 2000, enabled = TRUE) {
  self <- new.env(parent = emptyenv())
  self$factor <- init_scale
  self$good_steps <- 0
  self$infinite <- NULL # whether gradients of this step are, once they were divided
  self$get_scale <- function() if (enabled) self$factor else 1
  self$scale <- function(outputs) {
    if (!enabled) return(outputs)
    if (is.list(outputs)) lapply(outputs, self$scale) else outputs * self$factor
  }
  self$unscale_ <- function(optimizer) {
    if (!enabled) return(invisible())
    if (!is.null(self$infinite)) refuse("gradients of this step were unscaled already", kind = "TORCH")
    grads <- Filter(Negate(is.null), lapply(all_parameters(optimizer), function(each) .Call(C_tf_grad, each)))
    with_no_grad(for (grad in grads) torch_mul_(grad, 1 / self$factor))
    self$infinite <- !all(vapply(grads, function(grad) torch_all(torch_isfinite(grad))$item(), TRUE))
    invisible()
  }
  self$step <- function(optimizer, ...) {
    if (!enabled) return(optimizer$step(...))
    if (is.null(self$infinite)) self$unscale_(optimizer)
    if (!self$infinite) optimizer$step(...)
  }
  self$update <- function(new_scale = NULL) {
    self$good_steps <- if (isTRUE(self$infinite)) 0 else self$good_steps + 1
    grown <- self$good_steps == growth_interval
    if (grown) self$good_steps <- 0
    self$factor <- if (!is.null(new_scale)) new_scale else self$factor * (if (isTRUE(self$infinite)) backoff_factor else if (grown) growth_factor else 1)
    self$infinite <- NULL
    invisible()
  }
  structure(self, class = "cuda_amp_grad_scaler")
}

# ---- what there is ----

has_backend <- function(name) .Call(C_tf_has_backend, name)

backends_mps_is_available <- function() has_backend("mps")

backends_mps_synchronize <- function() refuse("this libtorch has no MPS", kind = "NOT_AVAILABLE")

backends_cudnn_is_available <- function() has_backend("cudnn") && cuda_is_available()

backends_mkl_is_available <- function() has_backend("mkl")

backends_mkldnn_is_available <- function() has_backend("mkldnn")

backends_openmp_is_available <- function() has_backend("openmp")

# cuDNN counts 9.10.2 as 91002, and before its version 9 8.9.7 as 8907.
backends_cudnn_version <- function() {
  version <- .Call(C_tf_backend_version, "cudnn")
  major <- if (version >= 90000) 10000 else 1000
  numeric_version(paste(version %/% major, version %% major %/% 100, version %% 100, sep = "."))
}

# CUDA counts 13.1 as 13010.
cuda_runtime_version <- function() {
  version <- .Call(C_tf_backend_version, "cuda")
  numeric_version(paste(version %/% 1000, version %% 1000 %/% 10, version %% 10, sep = "."))
}

# The device that "cuda" means, counted from 0.
cuda_current_device <- function() {
  if (!cuda_is_available()) refuse("CUDA is not available.", kind = "NOT_AVAILABLE")
  torch_empty(0, device = "cuda")$device$index
}

# A CUDA device by its number, counted from 0, as everywhere in CUDA.
numbered_cuda_device <- function(device) {
  if (!cuda_is_available()) refuse("CUDA is not available.", kind = "NOT_AVAILABLE")
  count <- cuda_device_count()
  if (!is.numeric(device) || length(device) != 1 || !device %in% (seq_len(count) - 1)) {
    refuse("device must be an integer between 0 and ", count - 1)
  }
  torch_device("cuda", device)
}

cuda_get_device_capability <- function(device = cuda_current_device()) {
  structure(.Call(C_tf_device_capability, numbered_cuda_device(device)), names = c("Major", "Minor"))
}

# What CUDA's allocator counts, by kind, pool and measure.
cuda_memory_stats <- function(device = cuda_current_device()) {
  place <- numbered_cuda_device(device)
  close(torch_empty(1, device = place)) # the allocator counts from a device's first tensor
  named <- function(names, f) structure(lapply(names, f), names = names)
  told <- function(...) .Call(C_tf_memory_statistic, place, paste(..., sep = "."))
  measures <- function(...) named(c("current", "peak", "allocated", "freed"), function(measure) told(..., measure))
  pools <- function(kind) named(c("all", "small_pool", "large_pool"), function(pool) measures(kind, pool))
  pooled <- c("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
              "inactive_split_bytes")
  counts <- c(named(c("num_alloc_retries", "num_ooms", "max_split_size"), told),
              named(c("oversize_allocations", "oversize_segments"), measures), named(pooled, pools))
  structure(counts, class = "cuda_memory_stats")
}

cuda_memory_summary <- function(device = cuda_current_device()) print(cuda_memory_stats(device))

print.cuda_memory_stats <- function(x, ...) {
  str(unclass(x))
  invisible(x)
}

# What CUDA's allocator does is recorded from now on: "all" events, the "state", or nothing any more for NULL.
cuda_record_memory_history <- function(enabled, context = "all", stacks = "all", max_entries = 1) {
  invisible(.Call(C_tf_memory_record_history, enabled, context, stacks, max_entries))
}

# What it holds and has recorded, as bytes that pytorch.org/memory_viz reads.
cuda_memory_snapshot <- function() as.raw(.Call(C_tf_to_vector, .Call(C_tf_memory_snapshot)))

cuda_dump_memory_snapshot <- function(filepath) invisible(writeBin(cuda_memory_snapshot(), filepath))

# Past so many megabytes of tensors R collects what it no longer reaches; memory that is freed goes back at once.
set_cpu_allocator_config <- function(threshold_call_gc = 4000L, cache_enabled = TRUE, cache_max_size_mb = threshold_call_gc,
                                     cache_min_block_size = 1024L) {
  invisible(.Call(C_tf_set_pressure, threshold_call_gc * 2^20))
}

cpu_cache_flush <- function() {
  gc()
  invisible()
}

cuda_get_rng_state <- function(device = "cuda") .Call(C_tf_generator_state, .Call(C_tf_default_generator, device))

cuda_set_rng_state <- function(state, device = "cuda") {
  invisible(.Call(C_tf_generator_set_state, .Call(C_tf_default_generator, device), state))
}

torch_get_num_interop_threads <- function() .Call(C_tf_interop_threads, NULL)

torch_set_num_interop_threads <- function(num_threads) invisible(.Call(C_tf_interop_threads, num_threads))

# Libtorch comes with Python's package torch, and libtenfold is built against it: nothing is downloaded here.
install_torch <- function(reinstall = FALSE, ..., .inform_restart = TRUE) {
  if (torch_is_installed()) return(invisible(TRUE))
  refuse("libtorch is installed by Python: pip install 'tenfold[libtorch]', then tenfold capi build", kind = "NOT_AVAILABLE")
}

install_torch_from_file <- install_torch

# Where the libraries are that another package would download: they are files already.
get_install_libs_url <- function(version = NA, type = NA) {
  list(libtorch = paste0("file://", torch_install_path()), liblantern = paste0("file://", loaded_library("libtenfold.so.0")))
}

torch_install_path <- function(check_writable = FALSE) {
  dirname(dirname(loaded_library("libtorch_cpu.so")))
}

install_torch_sitrep <- function(verbose = TRUE) {
  found <- tenfold_versions()
  cat("tenfold  ", found[["tenfold"]], "\nlibtorch ", if (is.na(found[["libtorch"]])) "not installed" else found[["libtorch"]],
      "\ncuda     ", if (torch_is_installed() && cuda_is_available()) cuda_device_count() else "none", "\n", sep = "")
  invisible(torch_is_installed())
}
