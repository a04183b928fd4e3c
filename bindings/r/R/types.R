# Element types, devices, layouts and memory formats: how R names them, compares them and prints them.

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
torch_float8_e4m3fn <- function() .Call(C_tf_dtype, "float8_e4m3fn")
torch_float8_e5m2 <- function() .Call(C_tf_dtype, "float8_e5m2")
torch_bool <- function() .Call(C_tf_dtype, "bool")
torch_cfloat <- function() .Call(C_tf_dtype, "complex64")
torch_complex64 <- torch_cfloat
torch_cdouble <- function() .Call(C_tf_dtype, "complex128")
torch_complex128 <- torch_cdouble
torch_chalf <- function() .Call(C_tf_dtype, "complex32")
torch_cfloat32 <- torch_chalf
torch_cfloat64 <- torch_cfloat
torch_cfloat128 <- torch_cdouble

# dtype$is_floating_point, dtype$is_complex and dtype$itemsize.
`$.torch_dtype` <- function(x, name) {
  switch(name, is_floating_point = torch_is_floating_point(x), is_complex = torch_is_complex(x),
    itemsize = element_kinds[[dtype_name(x)]]$bits %/% 8L, .type = function() libtorch_name(x),
    refuse("an element type has no member '", name, "'", kind = "NOT_FOUND"))
}

# What libtorch's own texts call an element type.
libtorch_name <- function(dtype) {
  name <- dtype_name(dtype)
  words <- c(float32 = "Float", float64 = "Double", float16 = "Half", bfloat16 = "BFloat16", uint8 = "Byte", int8 = "Char",
             int16 = "Short", int32 = "Int", int64 = "Long", bool = "Bool", complex32 = "ComplexHalf",
             complex64 = "ComplexFloat", complex128 = "ComplexDouble", float8_e4m3fn = "Float8_e4m3fn", float8_e5m2 = "Float8_e5m2")
  if (name %in% names(words)) words[[name]] else name
}

# Two element types, each a dtype or its name.
`==.torch_dtype` <- function(e1, e2) {
  for (each in list(e1, e2)) if (!is_torch_dtype(each) && !is.character(each)) refuse(describe_class(each), " is not a dtype", kind = "TYPE")
  identical(dtype_name(e1), dtype_name(e2))
}

`!=.torch_dtype` <- function(e1, e2) !(e1 == e2)

describe_class <- function(x) paste0("an object of class '", class(x)[1], "'")

is_torch_device <- function(x) inherits(x, "torch_device")

# Devices that libtorch has words for, and that no tensor can be on here.
elsewhere <- c("mps", "xpu", "hpu", "xla", "vulkan")

torch_device <- function(type, index = NULL) {
  if (is_torch_device(type)) return(type)
  text <- if (is.null(index)) type else paste0(type, ":", index)
  if (sub(":.*", "", text) %in% elsewhere) return(structure(list(text), class = "torch_device"))
  made <- .Call(C_tf_device, text)
  if (grepl("^cpu:", text)) made[[1]] <- text # which libtorch takes for cpu
  made
}

format.torch_device <- function(x, ...) x[[1]]

as.character.torch_device <- format.torch_device

`$.torch_device` <- function(x, name) {
  parts <- strsplit(unclass(x)[[1]], ":", fixed = TRUE)[[1]]
  switch(name, type = parts[1], index = if (length(parts) > 1) as.integer(parts[2]) else NULL,
    refuse("a device has a type and an index, and no '", name, "'", kind = "NOT_FOUND"))
}

`==.torch_device` <- function(e1, e2) identical(unclass(torch_device(e1))[[1]], unclass(torch_device(e2))[[1]])

`!=.torch_device` <- function(e1, e2) !(e1 == e2)

print.torch_device <- function(x, ...) {
  cat("torch_device(type='", x$type, "'", if (!is.null(x$index)) paste0(", index=", x$index), ") \n", sep = "")
  invisible(x)
}

# What an element is: a float has `exponent` and `digits` of base two, the leading one included.
element_kinds <- list(
  float64 = list(bits = 64L, digits = 53, exponent = 1024), float32 = list(bits = 32L, digits = 24, exponent = 128),
  float16 = list(bits = 16L, digits = 11, exponent = 16), bfloat16 = list(bits = 16L, digits = 8, exponent = 128),
  int64 = list(bits = 64L), int32 = list(bits = 32L), int16 = list(bits = 16L), int8 = list(bits = 8L),
  uint8 = list(bits = 8L), bool = list(bits = 8L), complex64 = list(bits = 64L), complex128 = list(bits = 128L),
  complex32 = list(bits = 32L), uint16 = list(bits = 16L), uint32 = list(bits = 32L), uint64 = list(bits = 64L),
  QUInt8 = list(bits = 8L), QInt8 = list(bits = 8L), QInt32 = list(bits = 32L), float8_e4m3fn = list(bits = 8L), float8_e5m2 = list(bits = 8L, digits = 3, exponent = 16)
)

dtype_name <- function(dtype) .Call(C_tf_dtype_name, .Call(C_tf_dtype, dtype))

torch_finfo <- function(dtype) {
  name <- dtype_name(dtype)
  kind <- element_kinds[[name]]
  if (is.null(kind$digits)) refuse(name, " is no type that torch_finfo knows", kind = "TYPE")
  eps <- 2^(1 - kind$digits)
  most <- (2 - eps) * 2^(kind$exponent - 1)
  tiny <- 2^(2 - kind$exponent)
  list(bits = kind$bits, max = most, min = -most, eps = eps, tiny = tiny, smallest_normal = tiny, resolution = 10^ceiling(log10(eps)))
}

torch_iinfo <- function(dtype) {
  name <- dtype_name(dtype)
  if (!grepl("^u?int", name)) refuse(name, " is no type of whole numbers", kind = "TYPE")
  bits <- element_kinds[[name]]$bits
  if (startsWith(name, "u")) list(bits = bits, max = 2^bits - 1, min = 0)
  else list(bits = bits, max = 2^(bits - 1) - 1, min = -2^(bits - 1))
}

torch_is_floating_point <- function(self) grepl("^b?float", dtype_name(self))

torch_is_complex <- function(self) grepl("^complex", dtype_name(self))

# The type that two tensors, or a tensor and a number, have together.
torch_result_type <- function(tensor1, tensor2) {
  if (!is_torch_tensor(tensor1) && !is_torch_tensor(tensor2)) tensor1 <- torch_scalar_tensor(tensor1, device = "cpu")
  none <- function(x) if (is_torch_tensor(x)) torch_empty_like(x, device = "meta") else x
  (none(tensor1) + none(tensor2))$dtype
}

torch_promote_types <- function(type1, type2) {
  torch_result_type(torch_empty(1, dtype = type1, device = "meta"), torch_empty(1, dtype = type2, device = "meta"))
}

torch_can_cast <- function(from_, to) {
  rank <- function(type) {
    name <- dtype_name(type)
    if (name == "bool") 0 else if (grepl("int", name)) 1 else if (grepl("float", name)) 2 else 3
  }
  unsigned <- startsWith(dtype_name(to), "uint")
  rank(from_) <= rank(to) && !(unsigned && rank(from_) == 1 && !startsWith(dtype_name(from_), "uint"))
}

torch_get_default_dtype <- function() .Call(C_tf_default_dtype, NULL)

# The type of floats that are made without one.
torch_set_default_dtype <- function(d) invisible(.Call(C_tf_default_dtype, d))

# ---- layouts, memory formats and reductions: words that operators take ----

word <- function(name, class) structure(name, class = class)

torch_strided <- function() word("strided", "torch_layout")
torch_sparse_coo <- function() word("sparse_coo", "torch_layout")
torch_contiguous_format <- function() word("contiguous_format", "torch_memory_format")
torch_preserve_format <- function() word("preserve_format", "torch_memory_format")
torch_channels_last_format <- function() word("channels_last", "torch_memory_format")

is_torch_layout <- function(x) inherits(x, "torch_layout")

is_torch_memory_format <- function(x) inherits(x, "torch_memory_format")

print.torch_layout <- function(x, ...) {
  cat("<", class(x), " ", unclass(x), ">\n", sep = "")
  invisible(x)
}

print.torch_memory_format <- print.torch_layout
torch_reduction_none <- function() 0
torch_reduction_mean <- function() 1
torch_reduction_sum <- function() 2
