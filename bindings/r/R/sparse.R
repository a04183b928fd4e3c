# Tensors of other forms than rows of elements: sparse ones, and old quantized ones. Operators reach them by name.

layout_name <- function(x) .Call(C_tf_layout_name, x)

is_quantized <- function(x) grepl("^Q?U?q?u?int(8|32)$", dtype_name(x), ignore.case = TRUE) && startsWith(tolower(dtype_name(x)), "q")

# Positions count from 1: a row of `indices` for each dimension, a column for each element.
torch_sparse_coo_tensor <- function(indices, values, size = NULL, dtype = NULL, device = NULL, requires_grad = FALSE) {
  positions <- torch_to(as_tensor(indices), dtype = torch_int64()) - 1L
  if (length(positions) && torch_min(positions)$item() < 0) refuse("Indexing starts at 1 but found a 0.", kind = "INDEX")
  values <- torch_to(as_tensor(values), dtype, placed(device))
  made <- if (is.null(size)) {
    tenfold_call("aten::sparse_coo_tensor.indices", positions, values, NULL, NULL, NULL, NULL, NULL)
  } else {
    tenfold_call("aten::sparse_coo_tensor.indices_size", positions, values, list_of_sizes(size), NULL, NULL, NULL, NULL, NULL)
  }
  wanting_grad(made, requires_grad)
}

list_of_sizes <- function(size) lapply(size, as.integer)

sparse_methods <- list(
  to_sparse = function(x, sparse_dim = NULL, dense_dim = NULL) {
    if (!is.null(dense_dim)) sparse_dim <- length(dim(x)) - dense_dim
    if (is.null(sparse_dim)) tenfold_call("aten::to_sparse", x) else tenfold_call("aten::to_sparse.sparse_dim", x, as.integer(sparse_dim))
  },
  to_sparse_csr = function(x) tenfold_call("aten::to_sparse_csr", x),
  to_dense = function(x) tenfold_call("aten::to_dense", x),
  coalesce = function(x) tenfold_call("aten::coalesce", x),
  is_coalesced = function(x) tenfold_call("aten::is_coalesced", x),
  indices = function(x) tenfold_call("aten::_indices", x) + 1L,
  values = function(x) tenfold_call("aten::_values", x),
  sparse_dim = function(x) tenfold_call("aten::sparse_dim", x),
  dense_dim = function(x) tenfold_call("aten::dense_dim", x),
  is_quantized = function(x) is_quantized(x),
  dequantize = function(x) torch_dequantize(x),
  int_repr = function(x) tenfold_call("aten::int_repr", x)
)

# The product of two matrices where the sparse one has elements, and that added.
torch_sparse_sampled_addmm <- function(self, mat1, mat2, beta = 1, alpha = 1) {
  tenfold_call("aten::sparse_sampled_addmm", self, as_tensor(mat1), as_tensor(mat2), beta, alpha)
}

sparse_rows <- function(x, rows) {
  chosen <- torch_tensor(rows) - 1L
  tenfold_call("aten::index_select", x, 0L, chosen)
}

print_sparse <- function(x, ...) {
  cat("layout: ", layout_name(x), "\n", sep = "")
  print_elements(sparse_methods$to_dense(x), ...)
  invisible(x)
}

# ---- quantized ----

torch_quint8 <- function() .Call(C_tf_dtype, "quint8")
torch_qint8 <- function() .Call(C_tf_dtype, "qint8")
torch_qint32 <- function() .Call(C_tf_dtype, "qint32")

torch_per_tensor_affine <- function() word("per_tensor_affine", "torch_qscheme")
torch_per_channel_affine <- function() word("per_channel_affine", "torch_qscheme")
torch_per_tensor_symmetric <- function() word("per_tensor_symmetric", "torch_qscheme")
torch_per_channel_symmetric <- function() word("per_channel_symmetric", "torch_qscheme")

is_torch_qscheme <- function(x) inherits(x, "torch_qscheme")

print.torch_qscheme <- function(x, ...) {
  cat("<torch_qscheme ", unclass(x), ">\n", sep = "")
  invisible(x)
}

torch_quantize_per_tensor <- function(self, scale, zero_point, dtype) {
  tenfold_call("aten::quantize_per_tensor", self, as.numeric(scale), as.integer(zero_point), .Call(C_tf_dtype, dtype))
}

torch_quantize_per_channel <- function(self, scales, zero_points, axis, dtype) {
  tenfold_call("aten::quantize_per_channel", self, as_tensor(scales), as_tensor(zero_points), as.integer(axis) - 1L, .Call(C_tf_dtype, dtype))
}

torch_dequantize <- function(tensor) {
  if (is.list(tensor)) lapply(tensor, torch_dequantize) else tenfold_call("aten::dequantize.self", tensor)
}
