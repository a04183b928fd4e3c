# R's own operators and functions of numbers on tensors: x + y, x > 0, exp(x), sum(x).

# What stands beside a tensor: a number stays one, a longer vector becomes a tensor.
operand <- function(x) {
  if (is_torch_tensor(x) || (length(x) == 1 && is.null(dim(x)))) x else as_tensor(x)
}

# A number on the left, where libtorch wants a tensor, of the type that the tensor's own gives with it.
tensor_like <- function(number, x) {
  torch_full_like(x, number, dtype = torch_add(torch_narrow(torch_flatten(x), 1, 1, 0), number)$dtype)
}

with_reversed <- list(
  `-` = function(a, x) torch_rsub(x, a),
  `/` = function(a, x) torch_mul(torch_reciprocal(x), a),
  `^` = function(a, x) torch_pow(a, x),
  `%%` = function(a, x) torch_remainder(tensor_like(a, x), x),
  `%/%` = function(a, x) torch_floor_divide(tensor_like(a, x), x),
  `+` = function(a, x) torch_add(x, a),
  `*` = function(a, x) torch_mul(x, a),
  `==` = function(a, x) torch_eq(x, a),
  `!=` = function(a, x) torch_ne(x, a),
  `<` = function(a, x) torch_gt(x, a),
  `<=` = function(a, x) torch_ge(x, a),
  `>` = function(a, x) torch_lt(x, a),
  `>=` = function(a, x) torch_le(x, a),
  `&` = function(a, x) torch_logical_and(x, tensor_like(a, x)),
  `|` = function(a, x) torch_logical_or(x, tensor_like(a, x))
)

straight <- list(
  `+` = function(x, y) .Call(C_op_add, x, y, NULL),
  `-` = function(x, y) .Call(C_op_sub, x, y, NULL),
  `*` = function(x, y) .Call(C_op_mul, x, y),
  `/` = function(x, y) torch_div(x, y),
  `^` = function(x, y) torch_pow(x, y),
  `%%` = function(x, y) torch_remainder(x, y),
  `%/%` = function(x, y) torch_floor_divide(x, y),
  `==` = function(x, y) torch_eq(x, y),
  `!=` = function(x, y) torch_ne(x, y),
  `<` = function(x, y) torch_lt(x, y),
  `<=` = function(x, y) torch_le(x, y),
  `>` = function(x, y) torch_gt(x, y),
  `>=` = function(x, y) torch_ge(x, y),
  `&` = function(x, y) torch_logical_and(x, if (is_torch_tensor(y)) y else tensor_like(y, x)),
  `|` = function(x, y) torch_logical_or(x, if (is_torch_tensor(y)) y else tensor_like(y, x))
)

# Each operator is a method of its own, since a group's method would cost a lookup more for every call.
mixed <- function(operator, e1, e2) {
  if (is_torch_tensor(e1)) return(straight[[operator]](e1, operand(e2)))
  left <- operand(e1)
  if (is_torch_tensor(left)) straight[[operator]](left, e2) else with_reversed[[operator]](left, e2)
}

`+.torch_tensor` <- function(e1, e2) if (missing(e2)) e1 else .Call(C_tf_arith, 1L, e1, e2)
`-.torch_tensor` <- function(e1, e2) if (missing(e2)) torch_neg(e1) else .Call(C_tf_arith, 2L, e1, e2)
`*.torch_tensor` <- function(e1, e2) .Call(C_tf_arith, 3L, e1, e2)
`/.torch_tensor` <- function(e1, e2) .Call(C_tf_arith, 4L, e1, e2)
`^.torch_tensor` <- function(e1, e2) .Call(C_tf_arith, 5L, e1, e2)
`==.torch_tensor` <- function(e1, e2) .Call(C_tf_arith, 6L, e1, e2)
`!=.torch_tensor` <- function(e1, e2) .Call(C_tf_arith, 7L, e1, e2)
`<.torch_tensor` <- function(e1, e2) .Call(C_tf_arith, 8L, e1, e2)
`<=.torch_tensor` <- function(e1, e2) .Call(C_tf_arith, 9L, e1, e2)
`>.torch_tensor` <- function(e1, e2) .Call(C_tf_arith, 10L, e1, e2)
`>=.torch_tensor` <- function(e1, e2) .Call(C_tf_arith, 11L, e1, e2)
`%%.torch_tensor` <- function(e1, e2) mixed("%%", e1, e2)
`%/%.torch_tensor` <- function(e1, e2) mixed("%/%", e1, e2)
`&.torch_tensor` <- function(e1, e2) mixed("&", e1, e2)
`|.torch_tensor` <- function(e1, e2) mixed("|", e1, e2)
`!.torch_tensor` <- function(x) torch_logical_not(x)

Math.torch_tensor <- function(x, ...) {
  along <- function(f) if (length(dim(x)) > 1) f(torch_flatten(x), 1) else f(x, 1)
  switch(.Generic,
    abs = torch_abs(x), sign = torch_sign(x), sqrt = torch_sqrt(x), floor = torch_floor(x),
    ceiling = torch_ceil(x), trunc = torch_trunc(x), exp = torch_exp(x),
    log = if (...length() > 0) torch_log(x) / base::log(...elt(1)) else torch_log(x),
    round = if (...length() > 0) torch_round(x, decimals = ...elt(1)) else torch_round(x),
    expm1 = torch_expm1(x), log1p = torch_log1p(x), log2 = torch_log2(x), log10 = torch_log10(x),
    cos = torch_cos(x), sin = torch_sin(x), tan = torch_tan(x),
    acos = torch_acos(x), asin = torch_asin(x), atan = torch_atan(x),
    cosh = torch_cosh(x), sinh = torch_sinh(x), tanh = torch_tanh(x),
    acosh = torch_acosh(x), asinh = torch_asinh(x), atanh = torch_atanh(x),
    lgamma = torch_lgamma(x), digamma = torch_digamma(x), gamma = torch_exp(torch_lgamma(x)),
    cumsum = along(torch_cumsum), cumprod = along(torch_cumprod),
    refuse(.Generic, " has no meaning for a tensor")
  )
}

# sum(x, y) is R's, over all that is given; sum(x, dim = 1) is the operator's.
Summary.torch_tensor <- function(..., na.rm = FALSE) {
  if (!isFALSE(na.rm)) refuse(.Generic, " of tensors leaves nothing out: see torch_nansum")
  reduce <- switch(.Generic,
    sum = torch_sum, prod = torch_prod, max = torch_max, min = torch_min, all = torch_all, any = torch_any,
    range = function(x) torch_stack(list(torch_min(x), torch_max(x)))
  )
  given <- list(...)
  if (length(given) == 1 || !is.null(names(given))) return(reduce(...))
  reduce(torch_cat(lapply(given, function(each) torch_flatten(as_tensor(each)))))
}
