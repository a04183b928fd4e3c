# Tensors: made from R's values, turned back into them, printed, and their members after `$`.

torch_tensor <- function(data, dtype = NULL, device = NULL, requires_grad = FALSE) {
  made <- as_tensor(data, dtype, device)
  if (requires_grad) {
    # What is given as a tensor keeps its own history: this one starts anew.
    if (is_torch_tensor(data)) made <- torch_clone(torch_detach(made))
    .Call(C_tf_set_requires_grad, made, TRUE)
  }
  made
}

as_tensor <- function(data, dtype = NULL, device = NULL) {
  if (is_torch_tensor(data)) return(.Call(C_tf_to, data, dtype, device, FALSE))
  if (is.data.frame(data)) {
    plain <- vapply(data, function(column) is.numeric(column) || is.logical(column), TRUE)
    if (any(vapply(data, is.factor, TRUE)) || !all(plain)) {
      refuse("columns of a data frame that are not numbers cannot become a tensor: ",
             paste(names(data)[!plain | vapply(data, is.factor, TRUE)], collapse = ", "))
    }
    data <- as.matrix(data)
  }
  if (is.factor(data)) refuse("a factor cannot become a tensor: as.integer gives its codes")
  if (is.list(data)) return(tensor_from_list(data, dtype, device))
  sizes <- dim(data)
  .Call(C_tf_from_vector, data, if (is.null(sizes)) length(data) else sizes, dtype, device)
}

tensor_from_list <- function(data, dtype, device) {
  parts <- lapply(data, as_tensor, dtype, device)
  if (length(parts) == 0) return(.Call(C_tf_from_vector, numeric(), 0L, dtype, device))
  scalars <- !vapply(data, is.list, TRUE) & !vapply(data, is_torch_tensor, TRUE) & lengths(data) == 1
  if (all(scalars)) return(torch_cat(parts))
  sizes <- lapply(parts, function(part) part$shape)
  if (length(unique(sizes)) > 1) {
    refuse("a ragged list cannot become a tensor: its parts have the shapes ",
           paste(unique(vapply(sizes, function(s) paste0("[", toString(s), "]"), "")), collapse = ", "))
  }
  torch_stack(parts)
}

is_torch_tensor <- function(x) inherits(x, "torch_tensor")

wanting_grad <- function(x, requires_grad) {
  if (requires_grad) .Call(C_tf_set_requires_grad, x, TRUE) else x
}

torch_to <- function(self, dtype = NULL, device = NULL, other = NULL, copy = FALSE) {
  if (!is.null(other)) {
    dtype <- .Call(C_tf_dtype, other)
    device <- .Call(C_tf_device, other)
  }
  .Call(C_tf_to, self, dtype, device, copy)
}

# ---- to R ----

as_array <- function(x) if (is_torch_tensor(x)) .Call(C_tf_to_vector, x) else as.array(x)

as.array.torch_tensor <- function(x, ...) .Call(C_tf_to_vector, x)

as.matrix.torch_tensor <- function(x, ...) as.matrix(.Call(C_tf_to_vector, x))

as.vector.torch_tensor <- function(x, mode = "any") as.vector(.Call(C_tf_to_vector, x), mode)

as.numeric.torch_tensor <- function(x, ...) as.numeric(.Call(C_tf_to_vector, x))

as.double.torch_tensor <- as.numeric.torch_tensor

as.integer.torch_tensor <- function(x, ...) as.integer(.Call(C_tf_to_vector, x))

as.logical.torch_tensor <- function(x, ...) as.logical(.Call(C_tf_to_vector, x))

as.complex.torch_tensor <- function(x, ...) as.complex(.Call(C_tf_to_vector, x))

as.list.torch_tensor <- function(x, ...) torch_unbind(x)

as.data.frame.torch_tensor <- function(x, row.names = NULL, optional = FALSE, ...) {
  as.data.frame(as.matrix(x), row.names = row.names, optional = optional, ...)
}

length.torch_tensor <- function(x) .Call(C_tf_numel, x)

dim.torch_tensor <- function(x) .Call(C_tf_shape, x)

t.torch_tensor <- function(x) torch_t(x)

mean.torch_tensor <- function(x, ...) torch_mean(x, ...)

median.torch_tensor <- function(x, na.rm = FALSE, ...) torch_median(x, ...)

close.torch_tensor <- function(con, ...) invisible(.Call(C_tf_close, con))

# ---- printing ----

describe_tensor <- function(x) {
  if (!.Call(C_tf_is_open, x)) return("<torch_tensor, closed>")
  device <- .Call(C_tf_device, x)[[1]]
  paste0(
    "torch_tensor ", .Call(C_tf_dtype_name, .Call(C_tf_dtype, x)), "[", toString(.Call(C_tf_shape, x)), "]",
    if (device != "cpu") paste0(" on ", device),
    if (.Call(C_tf_requires_grad, x)) " requires_grad"
  )
}

format.torch_tensor <- function(x, ...) describe_tensor(x)

print.torch_tensor <- function(x, n = 1000, ...) {
  cat(describe_tensor(x), "\n", sep = "")
  if (!.Call(C_tf_is_open, x) || .Call(C_tf_device, x)[[1]] == "meta") return(invisible(x))
  total <- length(x)
  if (total <= n) {
    print(.Call(C_tf_to_vector, x), ...)
  } else {
    shown <- torch_detach(x)
    for (d in seq_along(dim(x))) shown <- torch_narrow(shown, d, 1, min(6, dim(x)[d]))
    print(.Call(C_tf_to_vector, shown), ...)
    cat("... and more of its ", format(total, big.mark = ","), " elements\n", sep = "")
  }
  invisible(x)
}

str.torch_tensor <- function(object, ...) cat(" ", describe_tensor(object), "\n", sep = "")

summary.torch_tensor <- function(object, ...) summary(as.vector(.Call(C_tf_to_vector, object)), ...)

# ---- dtypes and devices ----

is_torch_dtype <- function(x) inherits(x, "torch_dtype")

format.torch_dtype <- function(x, ...) paste0("torch_", .Call(C_tf_dtype_name, x))

as.character.torch_dtype <- format.torch_dtype

print.torch_dtype <- function(x, ...) {
  cat(format(x), "\n", sep = "")
  invisible(x)
}

torch_float <- function() .Call(C_tf_dtype, "float32")
torch_float32 <- torch_float
torch_double <- function() .Call(C_tf_dtype, "float64")
torch_float64 <- torch_double
torch_half <- function() .Call(C_tf_dtype, "float16")
torch_float16 <- torch_half
torch_bfloat16 <- function() .Call(C_tf_dtype, "bfloat16")
torch_uint8 <- function() .Call(C_tf_dtype, "uint8")
torch_int8 <- function() .Call(C_tf_dtype, "int8")
torch_short <- function() .Call(C_tf_dtype, "int16")
torch_int16 <- torch_short
torch_int <- function() .Call(C_tf_dtype, "int32")
torch_int32 <- torch_int
torch_long <- function() .Call(C_tf_dtype, "int64")
torch_int64 <- torch_long
torch_bool <- function() .Call(C_tf_dtype, "bool")
torch_cfloat <- function() .Call(C_tf_dtype, "complex64")
torch_complex64 <- torch_cfloat
torch_cdouble <- function() .Call(C_tf_dtype, "complex128")
torch_complex128 <- torch_cdouble

is_torch_device <- function(x) inherits(x, "torch_device")

torch_device <- function(type, index = NULL) {
  .Call(C_tf_device, if (is.null(index)) type else paste0(type, ":", index))
}

format.torch_device <- function(x, ...) x[[1]]

print.torch_device <- function(x, ...) {
  cat("<torch_device ", x[[1]], ">\n", sep = "")
  invisible(x)
}

# ---- members ----

tensor_properties <- list(
  shape = function(x) .Call(C_tf_shape, x),
  dtype = function(x) .Call(C_tf_dtype, x),
  device = function(x) .Call(C_tf_device, x),
  requires_grad = function(x) .Call(C_tf_requires_grad, x),
  grad = function(x) .Call(C_tf_grad, x),
  is_leaf = function(x) .Call(C_tf_is_leaf, x),
  ndim = function(x) length(.Call(C_tf_shape, x)),
  is_cuda = function(x) startsWith(.Call(C_tf_device, x)[[1]], "cuda")
)

tensor_methods <- list(
  size = function(x, dim = NULL) {
    shape <- .Call(C_tf_shape, x)
    if (is.null(dim)) return(shape)
    at <- if (dim < 0) length(shape) + 1 + dim else dim
    if (at < 1 || at > length(shape)) {
      refuse("there is no dimension ", dim, " in a tensor of ", length(shape), code = 2L, name = "TN_ERROR_INDEX")
    }
    shape[at]
  },
  dim = function(x) length(.Call(C_tf_shape, x)),
  numel = function(x) .Call(C_tf_numel, x),
  stride = function(x) .Call(C_tf_strides, x),
  item = function(x) .Call(C_tf_item, x),
  to = function(x, dtype = NULL, device = NULL, other = NULL, copy = FALSE) torch_to(x, dtype, device, other, copy),
  cpu = function(x) .Call(C_tf_to, x, NULL, "cpu", FALSE),
  cuda = function(x) .Call(C_tf_to, x, NULL, "cuda", FALSE),
  float = function(x) .Call(C_tf_to, x, "float32", NULL, FALSE),
  double = function(x) .Call(C_tf_to, x, "float64", NULL, FALSE),
  half = function(x) .Call(C_tf_to, x, "float16", NULL, FALSE),
  long = function(x) .Call(C_tf_to, x, "int64", NULL, FALSE),
  int = function(x) .Call(C_tf_to, x, "int32", NULL, FALSE),
  bool = function(x) .Call(C_tf_to, x, "bool", NULL, FALSE),
  backward = function(x, gradient = NULL, retain_graph = create_graph, create_graph = FALSE) {
    invisible(.Call(C_tf_backward, x, gradient, retain_graph, create_graph))
  },
  requires_grad_ = function(x, requires_grad = TRUE) invisible(.Call(C_tf_set_requires_grad, x, requires_grad)),
  retain_grad = function(x) invisible(.Call(C_tf_retain_grad, x)),
  zero_grad = function(x) invisible(.Call(C_tf_set_grad, x, NULL)),
  is_contiguous = function(x) .Call(C_tf_is_contiguous, x),
  is_same = function(x, other) .Call(C_tf_is_same, x, other),
  close = function(x) invisible(.Call(C_tf_close, x)),
  print = function(x, ...) print.torch_tensor(x, ...)
)

# Methods and properties by name; of a property, a function of the tensor in a list.
members <- new.env(hash = TRUE, parent = emptyenv())

collect_members <- function() {
  for (name in names(operator_methods)) assign(name, operator_methods[[name]], members)
  for (name in names(tensor_methods)) assign(name, tensor_methods[[name]], members)
  for (name in names(tensor_properties)) assign(name, list(tensor_properties[[name]]), members)
}

`$.torch_tensor` <- function(x, name) {
  method <- members[[name]]
  if (is.function(method)) return(function(...) method(x, ...))
  if (is.null(method)) refuse("a tensor has no member '", name, "'", code = 5L, name = "TN_ERROR_NOT_FOUND")
  method[[1]](x)
}

`$<-.torch_tensor` <- function(x, name, value) {
  switch(name,
    grad = .Call(C_tf_set_grad, x, value),
    requires_grad = .Call(C_tf_set_requires_grad, x, value),
    refuse("'", name, "' of a tensor cannot be set: grad and requires_grad can")
  )
  x
}

# ---- indexing ----

`[.torch_tensor` <- function(x, ..., drop = TRUE) .Call(C_tf_index, x, environment(), drop)

`[[.torch_tensor` <- function(x, ...) .Call(C_tf_index, x, environment(), TRUE)

`[<-.torch_tensor` <- function(x, ..., value) {
  if (!is_torch_tensor(value)) {
    value <- if (length(value) == 1 && is.null(dim(value)) && (is.numeric(value) || is.logical(value) || is.complex(value))) {
      if (is.na(value) && !is.nan(value) && !is.double(value)) refuse("NA cannot be put into a tensor: NaN can")
      torch_scalar_tensor(if (is.na(value)) NaN else value, dtype = .Call(C_tf_dtype, x), device = .Call(C_tf_device, x))
    } else {
      as_tensor(value, .Call(C_tf_dtype, x), .Call(C_tf_device, x))
    }
  }
  .Call(C_tf_index_put, x, environment(), value)
}
