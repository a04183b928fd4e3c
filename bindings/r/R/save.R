# Files: tensors by name as safetensors, which other languages read, and whatever else R has as R's own.

# R writes everything but tensors: these go into a file of safetensors, and their numbers into R's stream.
serialize_with_tensors <- function(x) {
  tensors <- list()
  kinds <- addresses <- character()
  stream <- serialize(x, NULL, refhook = function(part) {
    if (!is_torch_tensor(part)) return(NULL)
    address <- .Call(C_tf_address, part)
    if (address %in% addresses) return(as.character(match(address, addresses)))
    addresses[length(tensors) + 1] <<- address
    tensors[[length(tensors) + 1]] <<- savable(part)
    kinds[length(tensors)] <<- paste0(
      "", if (is_parameter(part)) "p", if (is_buffer(part)) "b", if (part$requires_grad) "g", if (!is_state(part)) "t")
    as.character(length(tensors))
  })
  list(format = "tenfold 1", stream = stream, kinds = kinds, tensors = safetensors_of(tensors))
}

# A tensor's elements in their order, without its history.
savable <- function(x) {
  if (layout_name(x) != "strided") refuse("a sparse tensor cannot be saved: $to_dense() first", kind = "TYPE")
  if (is_quantized(x)) refuse("a quantized tensor cannot be saved: torch_dequantize() first", kind = "TYPE")
  if (.Call(C_tf_device, x)[[1]] == "meta") refuse("a meta tensor has no elements that could be saved", kind = "TYPE")
  torch_contiguous(torch_detach(x))
}

safetensors_of <- function(tensors) {
  if (length(tensors) == 0) return(raw())
  path <- tempfile(fileext = ".safetensors")
  on.exit(unlink(path))
  .Call(C_tf_save, path, as.character(seq_along(tensors)), tensors)
  readBin(path, "raw", file.size(path))
}

tensors_of <- function(safetensors) {
  path <- tempfile(fileext = ".safetensors")
  on.exit(unlink(path))
  writeBin(safetensors, path)
  .Call(C_tf_load, path)
}

unserialize_with_tensors <- function(saved, device = NULL) {
  tensors <- if (length(saved$tensors)) tensors_of(saved$tensors)
  made <- new.env(parent = emptyenv())
  unserialize(saved$stream, refhook = function(number) {
    if (is.null(made[[number]])) assign(number, restored(tensors[[number]], saved$kinds[as.integer(number)], device), made)
    made[[number]]
  })
}

restored <- function(tensor, kind, device) {
  tensor <- torch_to(tensor, device = device)
  if (grepl("p", kind)) return(nn_parameter(tensor, grepl("g", kind)))
  if (grepl("g", kind)) .Call(C_tf_set_requires_grad, tensor, TRUE)
  if (grepl("b", kind)) nn_buffer(tensor, persistent = !grepl("t", kind)) else tensor
}

# saveRDS and serialize ask each handle for its bytes (saving.c), and what they wrote asks to be made of them again.
bytes_of_handle <- function(handle) {
  if (is_torch_tensor(handle)) {
    return(c(as.raw(handle$requires_grad), safetensors_of(list(savable(handle)))))
  }
  if (inherits(handle, "script_handle")) return(.Call(C_tf_module_save_data, handle))
  if (inherits(handle, "torch_generator")) return(as.raw(.Call(C_tf_generator_state, handle)))
}

handle_from_bytes <- function(bytes, handle) {
  if (is_torch_tensor(handle)) return(restored(tensors_of(bytes[-1])[[1]], if (bytes[1] == 1) "g" else "", NULL))
  if (inherits(handle, "script_handle")) return(.Call(C_tf_module_load, bytes, NULL))
  generator <- torch_generator()
  .Call(C_tf_generator_set_state, generator, as_tensor(bytes))
  generator
}

torch_save <- function(obj, path, ..., compress = TRUE) {
  if (inherits(path, "connection")) {
    writeBin(torch_serialize(obj), path)
    return(invisible(path))
  }
  if (!dir.exists(dirname(path))) refuse("there is no folder ", dirname(path), kind = "NOT_FOUND")
  if (!grepl("[.]safetensors$", path)) {
    saveRDS(serialize_with_tensors(obj), path, compress = compress)
    return(invisible(path))
  }
  if (is_torch_tensor(obj)) obj <- list(tensor = obj)
  if (is_nn_module(obj)) obj <- obj$state_dict()
  if (!is.list(obj) || is.null(names(obj)) || any(names(obj) == "") || !all(vapply(obj, is_torch_tensor, TRUE))) {
    refuse("a file of safetensors holds a named list of tensors, a tensor or a module's state")
  }
  .Call(C_tf_save, path, names(obj), lapply(obj, torch_contiguous))
  invisible(path)
}

torch_load <- function(path, device = NULL) {
  if (is.raw(path)) return(torch_unserialize(path, device))
  if (inherits(path, "connection")) return(torch_unserialize(all_bytes(path), device))
  if (!is.character(path) || length(path) != 1) refuse("torch_load takes a path, a connection or raw bytes", kind = "TYPE")
  if (!file.exists(path)) refuse("there is no file ", path, kind = "NOT_FOUND")
  if (is_rds_file(path)) {
    saved <- readRDS(path)
    if (!identical(saved$format, "tenfold 1")) refuse(path, " was not written by torch_save")
    return(unserialize_with_tensors(saved, device))
  }
  # The pickle of a long number: safetensors too may begin with 0x80, the length of its header.
  if (identical(readBin(path, "raw", 4), as.raw(c(0x80, 0x02, 0x8a, 0x0a)))) {
    refuse(path, " has the format of torch.save before 1.6: in Python, torch.save(torch.load(path), path) writes today's")
  }
  found <- if (is_zip(path)) load_pickle(path) else .Call(C_tf_load, path)
  if (is.null(device)) found else on_device(found, device)
}

# R's own stream, compressed or plain.
is_rds_file <- function(path) {
  start <- readBin(path, "raw", 2)
  identical(start, as.raw(c(0x1f, 0x8b))) || identical(start, charToRaw("X\n"))
}

all_bytes <- function(connection) {
  found <- raw()
  while (length(more <- readBin(connection, "raw", 2^20))) found <- c(found, more)
  found
}

on_device <- function(x, device) {
  if (is_torch_tensor(x)) torch_to(x, device = device) else if (is.list(x)) lapply(x, on_device, device) else x
}

# As torch_load, for a file of a module's state that Python wrote.
load_state_dict <- function(path, ..., device = NULL, legacy_stream = FALSE) torch_load(path, device)

torch_serialize <- function(obj, ...) {
  if ("path" %in% names(list(...))) refuse("torch_serialize gives bytes: path is matched by no argument, torch_save has one")
  serialize(serialize_with_tensors(obj), NULL)
}

torch_unserialize <- function(x, device = NULL) {
  if (!is.raw(x)) refuse("torch_unserialize takes what torch_serialize gave", kind = "TYPE")
  saved <- tryCatch(unserialize(x), error = function(e) refuse("these bytes are not what torch_serialize gives, or not all of it: ", conditionMessage(e)))
  unserialize_with_tensors(saved, device)
}
