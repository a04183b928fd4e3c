# Operators that R calls in another way than their schemas have it; r_by_hand.py reads their arguments.

# As R's seq, and unlike libtorch's arange, this reaches `end` where the steps do.
torch_arange <- function(start, end, step = NULL, dtype = NULL, layout = NULL, device = NULL, pin_memory = NULL,
                         requires_grad = FALSE) {
  if (missing(start)) refuse("torch_arange takes a start and an end, which it includes")
  if (missing(end)) {
    end <- start
    start <- 1L
  }
  number <- function(x) if (is_torch_tensor(x)) x$item() else x
  start <- number(start)
  end <- number(end)
  step <- number(step)
  given <- list(start, end, step)
  numbers <- vapply(given, function(each) is.null(each) || (is.numeric(each) && length(each) == 1 && is.finite(each)), TRUE)
  if (!all(numbers)) refuse("torch_arange takes a start, an end and a step that are numbers")
  by <- if (is.null(step)) 1L else step
  if (by == 0) refuse("torch_arange takes a step that is not 0")
  if ((end - start) / by < 0) refuse("torch_arange does not come from ", start, " to ", end, " by steps of ", by)
  whole <- all(vapply(given, function(each) is.null(each) || is.integer(each), TRUE))
  if (is.null(dtype) && !whole) dtype <- torch_get_default_dtype()
  # libtorch rounds towards 0 before it counts where elements are whole numbers
  counts <- whole || (!is.null(dtype) && grepl("int", dtype_name(dtype)))
  beyond <- start + floor((end - start) / by + 1e-10) * by + (if (counts) by else by / 2)
  if (whole) beyond <- as.integer(beyond)
  wanting_grad(.Call(C_op_arange, start, beyond, step, dtype, layout, placed(device), pin_memory), requires_grad)
}

torch_range <- function(start, end, step = 1, dtype = NULL, layout = NULL, device = NULL, pin_memory = NULL,
                        requires_grad = FALSE) {
  warning("torch_range is deprecated: use torch_arange, which includes its end here", call. = FALSE)
  torch_arange(start, end, step, dtype, layout, device, pin_memory, requires_grad)
}

# `steps` numbers from start to end; those of torch_logspace are powers of `base`.
torch_linspace <- function(start, end, steps = 100, dtype = NULL, layout = NULL, device = NULL, pin_memory = NULL,
                           requires_grad = FALSE) {
  wanting_grad(.Call(C_op_linspace, start, end, steps, dtype, layout, placed(device), pin_memory), requires_grad)
}

torch_logspace <- function(start, end, steps = 100, base = 10, dtype = NULL, layout = NULL, device = NULL,
                           pin_memory = NULL, requires_grad = FALSE) {
  wanting_grad(.Call(C_op_logspace, start, end, steps, base, dtype, layout, placed(device), pin_memory), requires_grad)
}

# The integral of y by the trapezoid rule, at points that are `dx` apart or at the points `x`.
torch_trapz <- function(y, dx = 1, x = NULL, dim = -1) {
  if (is.null(x)) .Call(C_op_trapz, y, NULL, dim, dx) else .Call(C_op_trapz, y, x, dim, NULL)
}

# The p-norm, of all elements or along dimensions.
torch_norm <- function(self, p = 2, dim = NULL, keepdim = FALSE, dtype = NULL) {
  if (is.null(dim) && is.null(dtype)) return(.Call(C_op_norm, self, p, NULL, NULL, NULL))
  .Call(C_op_norm, self, p, if (is.null(dim)) seq_along(base::dim(self)) else dim, keepdim, dtype)
}

# Numbers of the default type, as R's own are, and not integers: those are asked for with dtype = torch_long().
torch_randint <- function(low = NULL, high = NULL, size = NULL, generator = NULL, dtype = NULL, layout = NULL,
                          device = NULL, pin_memory = NULL, requires_grad = FALSE) {
  if (is.null(dtype)) dtype <- torch_get_default_dtype()
  wanting_grad(.Call(C_op_randint, low, high, size, generator, dtype, layout, placed(device), pin_memory), requires_grad)
}

# A number, or the only element of a tensor, of the type that torch_tensor would give it.
torch_scalar_tensor <- function(value, dtype = NULL, device = NULL, requires_grad = FALSE, layout = NULL, pin_memory = NULL) {
  s <- value
  if (length(s) != 1) refuse("value must be of length 1, not ", length(s))
  if (is_torch_tensor(s)) return(wanting_grad(torch_to(torch_reshape(torch_detach(s), integer()), dtype, device), requires_grad))
  if (is.atomic(s) && is.na(s) && !is.character(s)) {
    if (is.logical(s) || is.integer(s)) refuse("NA cannot be an element of a tensor: NaN can")
    if (is.double(s)) s <- NaN
  }
  if (is.null(dtype)) dtype <- if (is.integer(s)) "int64" else if (is.logical(s)) "bool" else if (is.complex(s)) "complex64"
  wanting_grad(.Call(C_op_scalar_tensor, s, dtype, layout, placed(device), pin_memory), requires_grad)
}

# The positions of what is not zero, a row each, or a tensor for each dimension.
torch_nonzero <- function(self, as_list = FALSE) {
  if (as_list) torch_nonzero_numpy(self) else .Call(C_op_nonzero, self)
}

# The sum of products over the last `dims` dimensions of a and the first of b, or over those that a list of two names.
torch_tensordot <- function(a, b, dims = 2) {
  if (is_torch_tensor(dims)) dims <- if (length(dims) == 1) dims$item() else lapply(torch_unbind(dims), as.integer)
  if (!is.list(dims)) {
    if (dims < 1) refuse("tensordot takes one dimension or more, not ", dims)
    dims <- list(seq(-dims, -1), seq_len(dims))
  }
  .Call(C_op_tensordot, as_tensor(a), as_tensor(b), dims[[1]], dims[[2]])
}

torch_polygamma <- function(n, input) .Call(C_op_polygamma, n, input)

torch_normal <- function(mean = NULL, std = NULL, size = NULL, generator = NULL, dtype = NULL, layout = NULL, device = NULL,
                         pin_memory = NULL, requires_grad = FALSE) {
  if (is.null(mean)) mean <- 0
  if (is.null(std)) std <- 1
  if (is.null(size)) {
    if (!is_torch_tensor(mean) && !is_torch_tensor(std)) size <- 1
    return(wanting_grad(.Call(C_op_normal, mean, std, size, generator, dtype, layout, device, pin_memory), requires_grad))
  }
  if (is_torch_tensor(mean) || is_torch_tensor(std)) refuse("the size of normal's result is that of its tensors: give mean and std as numbers, or no size")
  wanting_grad(.Call(C_op_normal, mean, std, size, generator, dtype, layout, placed(device), pin_memory), requires_grad)
}

torch_stft <- function(input, n_fft, hop_length = NULL, win_length = NULL, window = NULL, center = TRUE, pad_mode = "reflect",
                       normalized = FALSE, onesided = NULL, return_complex = NULL) {
  if (center) {
    rank <- length(dim(input))
    flat <- torch_reshape(input, c(if (rank == 1) 1, dim(input)))
    input <- torch_reshape(nnf_pad(flat, rep(n_fft %/% 2, 2), pad_mode), c(utils::head(dim(input), -1), -1))
  }
  tenfold_call("aten::stft", input, as.integer(n_fft), as_count(hop_length), as_count(win_length), window, normalized, onesided,
               if (is.null(return_complex)) TRUE else return_complex, NULL)
}

as_count <- function(x) if (is.null(x)) NULL else as.integer(x)

# The sizes to which tensors of these sizes are broadcast.
torch_broadcast_shapes <- function(...) {
  made <- lapply(list(...), function(sizes) torch_empty(sizes, device = "meta"))
  dim(torch_broadcast_tensors(made)[[1]])
}
