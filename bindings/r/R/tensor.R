# Tensors: made from R's values, turned back into them, printed, and their members after `$`.

torch_tensor <- function(data, dtype = NULL, device = NULL, requires_grad = FALSE, pin_memory = FALSE) {
  made <- as_tensor(data, dtype, if (is_torch_tensor(data)) device else placed(device))
  if (pin_memory) made <- tenfold_call("aten::pin_memory", made, NULL)
  if (is_torch_tensor(data)) made <- torch_clone(torch_detach(made)) # a new tensor, without the other's history
  if (requires_grad) .Call(C_tf_set_requires_grad, made, TRUE)
  made
}

as_tensor <- function(data, dtype = NULL, device = NULL) {
  if (is.null(data)) data <- logical()
  if (is_torch_tensor(data)) return(.Call(C_tf_to, data, dtype, device, FALSE, FALSE))
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

# R's own value where an operator wants a tensor: a number has no dimensions, and positions are whole numbers.
tensor_argument <- function(x, place = FALSE) {
  if (place && is.numeric(x)) {
    if (anyNA(x) || any(x != floor(x))) refuse("positions are whole numbers", kind = "INDEX")
    x <- if (is.null(dim(x))) as.integer(x) else array(as.integer(x), dim(x))
  }
  if (length(x) == 1 && is.null(dim(x))) torch_scalar_tensor(x) else as_tensor(x)
}

wanting_grad <- function(x, requires_grad) {
  if (requires_grad) .Call(C_tf_set_requires_grad, x, TRUE) else x
}

torch_empty_strided <- function(size, stride, dtype = NULL, layout = NULL, device = NULL, requires_grad = FALSE, pin_memory = FALSE) {
  if (!is.null(layout) && unclass(layout) != "strided") refuse("strides are those of a strided layout")
  size <- unlist(size)
  stride <- unlist(stride)
  room <- torch_empty(if (all(size > 0)) sum((size - 1) * stride) + 1 else 0, dtype = dtype, device = device, pin_memory = pin_memory)
  wanting_grad(torch_as_strided(room, size, stride), requires_grad)
}

torch_to <- function(self, dtype = NULL, device = NULL, other = NULL, non_blocking = FALSE, copy = FALSE,
                     memory_format = NULL) {
  if (!is.null(other)) {
    if (!is.null(dtype) || !is.null(device)) refuse("what other has is not given beside it: dtype and device")
    dtype <- .Call(C_tf_dtype, other)
    device <- .Call(C_tf_device, other)
  }
  moved <- .Call(C_tf_to, self, dtype, device, copy, non_blocking)
  if (is.null(memory_format) || memory_format == "preserve_format") moved else torch_contiguous(moved, memory_format)
}

# ---- to R ----

as_array <- function(x) if (is_torch_tensor(x)) elements_of(x) else as.array(x)

as.array.torch_tensor <- function(x, ...) elements_of(x)

elements_of <- function(x) {
  if (layout_name(x) != "strided") refuse("Sparse tensors are not supported for as_array conversion. Use x$to_dense() first.", kind = "TYPE")
  if (is_quantized(x)) x <- torch_dequantize(x)
  .Call(C_tf_to_vector, x)
}

as.matrix.torch_tensor <- function(x, ...) {
  values <- .Call(C_tf_to_vector, x)
  if (length(dim(values)) == 2) values else matrix(as.vector(values), ncol = 1)
}

as.vector.torch_tensor <- function(x, mode = "any") as.vector(.Call(C_tf_to_vector, x), mode)

as.numeric.torch_tensor <- function(x, ...) as.numeric(.Call(C_tf_to_vector, x))

as.double.torch_tensor <- as.numeric.torch_tensor

as.integer.torch_tensor <- function(x, ...) as.integer(.Call(C_tf_to_vector, x))

# Integers of package bit64, which hold all that int64 does.
as.integer64 <- function(x, ...) {
  if (!requireNamespace("bit64", quietly = TRUE)) refuse("package bit64 is not installed: install.packages(\"bit64\")", kind = "NOT_AVAILABLE")
  if (!is_torch_tensor(x)) return(bit64::as.integer64(x, ...))
  digits <- .Call(C_tf_int64_text, torch_to(torch_detach(x), dtype = torch_int64()))
  made <- bit64::as.integer64(as.vector(digits))
  if (length(dim(x)) > 1) made <- structure(made, dim = dim(x), class = c("integer64", "array"))
  made
}

as.logical.torch_tensor <- function(x, ...) as.logical(.Call(C_tf_to_vector, x))

as.complex.torch_tensor <- function(x, ...) as.complex(.Call(C_tf_to_vector, x))

# The elements of a uint8 tensor as bytes.
as.raw.torch_tensor <- function(x) as.raw(.Call(C_tf_to_vector, x))

as.list.torch_tensor <- function(x, ...) torch_unbind(x)

as.data.frame.torch_tensor <- function(x, row.names = NULL, optional = FALSE, ...) {
  as.data.frame(as.matrix(x), row.names = row.names, optional = optional, ...)
}

length.torch_tensor <- function(x) .Call(C_tf_numel, x)

dim.torch_tensor <- function(x) .Call(C_tf_shape, x)

head.torch_tensor <- function(x, n = 6L, ...) {
  if (layout_name(x) != "strided") return(sparse_rows(x, utils::head(seq_len(dim(x)[1]), n)))
  size <- if (length(dim(x))) dim(x)[1] else refuse("a number has no first elements")
  torch_narrow(x, 1, 1, if (n < 0) max(size + n, 0) else min(n, size))
}

tail.torch_tensor <- function(x, n = 6L, ...) {
  if (layout_name(x) != "strided") return(sparse_rows(x, utils::tail(seq_len(dim(x)[1]), n)))
  size <- if (length(dim(x))) dim(x)[1] else refuse("a number has no last elements")
  count <- if (n < 0) max(size + n, 0) else min(n, size)
  if (count == 0) torch_narrow(x, 1, 1, 0) else torch_narrow(x, 1, size - count + 1, count)
}

t.torch_tensor <- function(x) torch_t(x)

is.na.torch_tensor <- function(x) torch_isnan(x)

rev.torch_tensor <- function(x) torch_flip(x, seq_along(dim(x)))

sort.torch_tensor <- function(x, decreasing = FALSE, ...) torch_sort(torch_flatten(x), 1, descending = decreasing)[[1]]

unique.torch_tensor <- function(x, incomparables = FALSE, ...) torch__unique(x)[[1]]

# Tensors and vectors as columns, or as rows, of one.
side_by_side <- function(given, dim) {
  parts <- lapply(unname(given), function(each) {
    each <- as_tensor(each)
    if (length(base::dim(each)) < 2) torch_unsqueeze(torch_flatten(each), dim) else each
  })
  torch_cat(parts, dim)
}

cbind.torch_tensor <- function(..., deparse.level = 1) side_by_side(list(...), 2)

rbind.torch_tensor <- function(..., deparse.level = 1) side_by_side(list(...), 1)

# Since R 4.3, where x %*% y calls methods.
`%*%.torch_tensor` <- function(x, y) torch_matmul(as_tensor(x), as_tensor(y))

# A tensor over the memory of a vector, which the vector's other names see written: clone() makes one of its own.
torch_tensor_from_buffer <- function(buffer, shape, dtype = "float") {
  dtype <- .Call(C_tf_dtype, if (identical(dtype, "float")) "float32" else dtype)
  .Call(C_tf_from_buffer, buffer, as.numeric(shape), dtype)
}

# A copy of a tensor's bytes.
buffer_from_torch_tensor <- function(tensor) {
  as.raw(.Call(C_tf_to_vector, torch_view(torch_flatten(torch_contiguous(tensor)), dtype = torch_uint8())))
}

mean.torch_tensor <- function(x, ...) torch_mean(x, ...)

median.torch_tensor <- function(x, na.rm = FALSE, ...) torch_median(x, ...)

close.torch_tensor <- function(con, ...) invisible(.Call(C_tf_close, con))

# What holds the elements of a tensor, which views of it share.
storage_of <- function(x) {
  list(data_ptr = function() .Call(C_tf_data_address, x), size = function() length(x), nbytes = function() x$nbytes())
}

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

print.torch_tensor <- function(x, n = 30, ...) {
  cat(describe_tensor(x), "\n", sep = "")
  if (!.Call(C_tf_is_open, x)) return(invisible(x))
  if (.Call(C_tf_device, x)[[1]] == "meta") {
    cat("[ META", libtorch_name(x$dtype), "Type{", paste(dim(x), collapse = ","), "} ]\n", sep = "")
    return(invisible(x))
  }
  if (layout_name(x) != "strided") return(print_sparse(x, ...))
  if (is_quantized(x)) x <- torch_dequantize(x)
  if (n < 0) n <- Inf
  shown <- torch_detach(x)
  most <- rep(6, length(dim(x))) # of each dimension in front; rows and columns as many as fit a screen
  if (length(most)) most[length(most)] <- if (length(most) == 1) 1000 else 60
  if (length(most) > 1) most[length(most) - 1] <- n
  if (length(x) <= 1000 && all(utils::tail(utils::head(dim(x), -1), 1) <= n)) most[] <- Inf
  if (length(most) == 1 && n == Inf) most <- Inf
  for (d in seq_along(dim(x))) if (dim(x)[d] > most[d]) shown <- torch_narrow(shown, d, 1, most[d])
  lines <- utils::capture.output(print_elements(shown, ...))
  rows <- if (length(most) == 1) n else Inf # a vector has as many rows as it needs lines
  writeLines(utils::head(lines, rows))
  if (length(shown) < length(x) || length(lines) > rows) {
    cat("... and more of its ", format(length(x), big.mark = ","), " elements (print(x, n = Inf) shows all rows)\n", sep = "")
  }
  invisible(x)
}

# Integers are printed with all of their digits.
print_elements <- function(x, ...) {
  largest <- .Machine$integer.max
  wide <- dtype_name(x) == "int64" && length(x) > 0 && torch_any(torch_logical_or(x > largest, x < -largest))$item()
  if (wide) return(print(noquote(.Call(C_tf_int64_text, torch_detach(x)), right = TRUE), ...))
  values <- .Call(C_tf_to_vector, x)
  if (dtype_name(x) == "int64") storage.mode(values) <- "integer"
  print(values, ...)
}

# Called from C with integers that only package bit64 can hold.
wide_integers <- function(bits) {
  if (!requireNamespace("bit64", quietly = TRUE)) {
    refuse("an integer of this tensor is larger than R's numbers hold exactly: install.packages(\"bit64\") gives R ",
           "such integers, $to(dtype = torch_float64()) the nearest numbers", kind = "TYPE")
  }
  bits
}

# ---- comparing ----

# Equal tensors are of one type, on one device, of one shape, and near each other.
all.equal.torch_tensor <- function(target, current, ...) {
  if (!is_torch_tensor(current)) return(paste("target is a tensor, current is", class(current)[1]))
  kinds <- c(dtype = dtype_name, device = function(x) format(x$device), shape = function(x) toString(dim(x)))
  for (kind in names(kinds)) {
    theirs <- c(kinds[[kind]](target), kinds[[kind]](current))
    if (theirs[1] != theirs[2]) return(paste0(kind, ": ", theirs[1], " and ", theirs[2]))
  }
  told <- list(...)
  # as all.equal does of R's numbers: the root of what their type can tell apart
  if (is.null(told$tolerance) && torch_is_floating_point(target)) told$tolerance <- sqrt(torch_finfo(target$dtype)$eps)
  do.call(all.equal, c(list(elements_of(target), elements_of(current)), told))
}

# What testthat's expect_equal compares and shows.
compare_proxy.torch_tensor <- function(x, path = "x") {
  list(object = list(values = .Call(C_tf_to_vector, x), shape = dim(x), dtype = dtype_name(x), device = format(x$device),
                     requires_grad = x$requires_grad, grad_fn = x$grad_fn$name), path = path)
}

str.torch_tensor <- function(object, ...) cat(" ", describe_tensor(object), "\n", sep = "")

summary.torch_tensor <- function(object, ...) summary(as.vector(.Call(C_tf_to_vector, object)), ...)

# ---- members ----

tensor_properties <- list(
  shape = function(x) .Call(C_tf_shape, x),
  dtype = function(x) .Call(C_tf_dtype, x),
  device = function(x) .Call(C_tf_device, x),
  requires_grad = function(x) .Call(C_tf_requires_grad, x),
  grad = function(x) .Call(C_tf_grad, x),
  is_leaf = function(x) .Call(C_tf_is_leaf, x),
  real = function(x) if (torch_is_complex(x)) torch_real(x) else x,
  imag = function(x) torch_imag(x),
  ndim = function(x) length(.Call(C_tf_shape, x)),
  grad_fn = function(x) grad_fn_of(x),
  is_meta = function(x) .Call(C_tf_device, x)[[1]] == "meta",
  itemsize = function(x) element_kinds[[dtype_name(x)]]$bits %/% 8L,
  is_cuda = function(x) startsWith(.Call(C_tf_device, x)[[1]], "cuda")
)

at_dimension <- function(numbers, dim) {
  if (is.null(dim)) return(numbers)
  at <- if (dim < 0) length(numbers) + 1 + dim else dim
  if (at < 1 || at > length(numbers)) {
    refuse("there is no dimension ", dim, " in a tensor of ", length(numbers), kind = "INDEX")
  }
  numbers[at]
}

# x$double(), x$bool(memory_format = "contiguous_format") and the like.
conversion <- function(dtype) {
  force(dtype)
  function(x, memory_format = NULL) {
    torch_to(x, dtype, memory_format = memory_format)
  }
}

tensor_methods <- list(
  data = function(x) torch_detach(x),
  clone = function(x, ...) of_kind(torch_clone(x, ...), x),
  detach = function(x) of_kind(torch_detach(x), x),
  storage = function(x) storage_of(x),
  size = function(x, dim = NULL) at_dimension(.Call(C_tf_shape, x), dim),
  dim = function(x) length(.Call(C_tf_shape, x)),
  numel = function(x) .Call(C_tf_numel, x),
  stride = function(x, dim = NULL) at_dimension(.Call(C_tf_strides, x), dim),
  item = function(x) .Call(C_tf_item, x),
  to = torch_to,
  cpu = function(x, memory_format = NULL) torch_to(x, device = "cpu", memory_format = memory_format),
  cuda = function(x, device = "cuda", non_blocking = FALSE, memory_format = NULL) {
    torch_to(x, device = device, non_blocking = non_blocking, memory_format = memory_format)
  },
  float = conversion("float32"),
  double = conversion("float64"),
  half = conversion("float16"),
  bfloat16 = conversion("bfloat16"),
  long = conversion("int64"),
  int = conversion("int32"),
  short = conversion("int16"),
  byte = conversion("uint8"),
  char = conversion("int8"),
  bool = conversion("bool"),
  element_size = function(x) element_kinds[[dtype_name(x)]]$bits %/% 8L,
  nbytes = function(x) length(x) * (element_kinds[[dtype_name(x)]]$bits %/% 8L),
  is_sparse = function(x) layout_name(x) == "sparse_coo",
  is_sparse_csr = function(x) layout_name(x) == "sparse_csr",
  is_floating_point = function(x) torch_is_floating_point(x),
  is_complex = function(x) torch_is_complex(x),
  backward = function(x, gradient = NULL, retain_graph = create_graph, create_graph = FALSE) {
    invisible(.Call(C_tf_backward, x, gradient, retain_graph, create_graph))
  },
  requires_grad_ = function(x, requires_grad = TRUE) invisible(.Call(C_tf_set_requires_grad, x, requires_grad)),
  retain_grad = function(x) invisible(.Call(C_tf_retain_grad, x)),
  register_hook = function(x, hook) register_hook(x, hook),
  zero_grad = function(x) invisible(.Call(C_tf_set_grad, x, NULL)),
  set_grad_ = function(x, grad) invisible(.Call(C_tf_set_grad, x, grad)),
  is_contiguous = function(x) .Call(C_tf_is_contiguous, x),
  is_same = function(x, other) .Call(C_tf_is_same, x, other),
  close = function(x) invisible(.Call(C_tf_close, x)),
  print = function(x, ...) print.torch_tensor(x, ...)
)

# What made a tensor that gradients flow through, NULL for one that no operator made.
grad_fn_of <- function(x) {
  name <- .Call(C_tf_grad_fn, x)
  if (nzchar(name)) new_grad_fn(x, name, integer())
}

# A function of the graph of gradients: the one that a path of positions leads to from what made a tensor.
new_grad_fn <- function(x, name, path) structure(list(name = name, of = x, path = path), class = "torch_grad_fn")

`$.torch_grad_fn` <- function(x, name) {
  x <- unclass(x)
  if (name != "next_functions") return(x[[name]])
  names <- strsplit(.Call(C_tf_grad_fn_next, x$of, x$path), "\n", fixed = TRUE)[[1]]
  Map(function(name, at) if (nzchar(name)) new_grad_fn(x$of, name, c(x$path, at)), unname(names), seq_along(names), USE.NAMES = FALSE)
}

print.torch_grad_fn <- function(x, ...) {
  cat(x$name, "\n", sep = "")
  invisible(x)
}

# Tab completes x$.
.DollarNames.torch_tensor <- function(x, pattern = "") grep(pattern, sort(names(members)), value = TRUE)

# Methods and properties by name; of a property, a function of the tensor in a list.
members <- new.env(hash = TRUE, parent = emptyenv())

collect_members <- function() {
  for (name in names(operator_methods)) assign(name, operator_methods[[name]], members)
  for (name in names(sparse_methods)) assign(name, sparse_methods[[name]], members)
  for (name in names(tensor_methods)) assign(name, tensor_methods[[name]], members)
  for (name in names(tensor_properties)) assign(name, list(tensor_properties[[name]]), members)
}

`$.torch_tensor` <- function(x, name) {
  method <- members[[name]]
  if (is.function(method)) return(function(...) method(x, ...))
  if (is.null(method)) refuse("a tensor has no member '", name, "'", kind = "NOT_FOUND")
  method[[1]](x)
}

`$<-.torch_tensor` <- function(x, name, value) {
  switch(name,
    grad = .Call(C_tf_set_grad, x, value),
    requires_grad = .Call(C_tf_set_requires_grad, x, value),
    real = torch_copy_(torch_real(x), value),
    imag = torch_copy_(torch_imag(x), value),
    refuse("'", name, "' of a tensor cannot be set: grad, requires_grad, real and imag can")
  )
  x
}

# ---- indexing ----

# From `start` to `end`, which it includes, where Inf is the last; x[1:9:2] and x[2:N] say the same.
slc <- function(start, end, step = 1) structure(list(start, end, step), class = "torch_slice")

print.torch_slice <- function(x, ...) {
  cat("<slice from ", x[[1]], " to ", x[[2]], if (x[[3]] != 1) paste0(" by ", x[[3]]), ">\n", sep = "")
  invisible(x)
}

# x[newaxis, ] has a dimension of one in front.
newaxis <- structure(list(), class = "torch_newaxis")

`[.torch_tensor` <- function(x, ..., drop = TRUE) .Call(C_tf_index, x, environment(), drop)

`[[.torch_tensor` <- function(x, ...) {
  if (...length() == 1 && is.character(..1)) return(`$.torch_tensor`(x, ..1))
  .Call(C_tf_index, x, environment(), TRUE)
}

`[[<-.torch_tensor` <- function(x, i, value) `$<-.torch_tensor`(x, i, value)

`[<-.torch_tensor` <- function(x, ..., value) {
  if (!is_torch_tensor(value)) {
    value <- if (length(value) == 1 && is.null(dim(value)) && (is.numeric(value) || is.logical(value) || is.complex(value))) {
      if (is.na(value) && !is.nan(value) && !is.double(value)) refuse("NA cannot be put into a tensor: NaN can")
      torch_scalar_tensor(value, dtype = .Call(C_tf_dtype, x), device = .Call(C_tf_device, x))
    } else {
      as_tensor(value, .Call(C_tf_dtype, x), .Call(C_tf_device, x))
    }
  }
  .Call(C_tf_index_put, x, environment(), value)
}

# Named dimensions are gone from libtorch: arguments for them are known by their error.
refuse_names <- function(names) {
  if (!is.null(names)) refuse("this libtorch has no named dimensions: give dimensions by number", kind = "NOT_AVAILABLE")
}
