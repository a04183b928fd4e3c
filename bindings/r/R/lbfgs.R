# optim_lbfgs: steps along directions that a history of gradients gives, with a line search where one is asked for.

flat_gradient <- function(params) {
  torch_cat(lapply(params, function(param) {
    grad <- .Call(C_tf_grad, param)
    torch_reshape(if (is.null(grad)) torch_zeros_like(param) else grad, -1)
  }))
}

move_along <- function(params, direction, length) {
  at <- 1
  for (param in params) {
    count <- base::length(param)
    torch_add_(param, torch_reshape(torch_narrow(direction, 1, at, count), dim(param)) * length)
    at <- at + count
  }
}

# The loss and the gradient some way along a direction, from where the parameters are, and back.
along <- function(params, direction, closure) {
  start <- lapply(params, torch_clone)
  function(length) {
    move_along(params, direction, length)
    loss <- with_enable_grad(closure())$item()
    grad <- flat_gradient(params)
    for (i in seq_along(params)) torch_copy_(params[[i]], start[[i]])
    list(loss = loss, grad = grad, slope = torch_dot(grad, direction)$item())
  }
}

# The minimum of the cubic through two points and their slopes, within bounds.
cubic_minimum <- function(x1, f1, g1, x2, f2, g2, low = min(x1, x2), high = max(x1, x2)) {
  d1 <- g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
  square <- d1^2 - g1 * g2
  if (!is.finite(square) || square < 0) return((low + high) / 2)
  d2 <- sqrt(square)
  at <- if (x1 <= x2) x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
        else x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
  if (is.finite(at)) min(max(at, low), high) else (low + high) / 2
}

# A length that meets the strong Wolfe conditions: first a bracket around one, then narrower ones.
strong_wolfe <- function(probe, length, loss, slope, tolerance, most, c1 = 1e-4, c2 = 0.9) {
  before <- list(at = 0, loss = loss, slope = slope)
  used <- 0
  repeat {
    now <- c(list(at = length), probe(length))
    used <- used + 1
    if (now$loss > loss + c1 * length * slope || (used > 1 && now$loss >= before$loss)) break
    if (abs(now$slope) <= -c2 * slope) return(c(now, evaluations = used))
    if (now$slope >= 0 || used >= most) break
    further <- cubic_minimum(before$at, before$loss, before$slope, now$at, now$loss, now$slope,
                             length + 0.01 * (length - before$at), length * 10)
    before <- now
    length <- further
  }
  low <- if (before$loss <= now$loss && before$at > 0 || is.null(now$grad)) before else now
  high <- if (identical(low, before)) now else before
  if (high$loss < low$loss) {
    kept <- low
    low <- high
    high <- kept
  }
  while (used < most && abs(high$at - low$at) * max(abs(slope), 1e-30) > tolerance) {
    width <- abs(high$at - low$at)
    at <- cubic_minimum(low$at, low$loss, low$slope, high$at, high$loss, high$slope)
    edge <- 0.1 * width
    at <- min(max(at, min(low$at, high$at) + edge), max(low$at, high$at) - edge)
    middle <- c(list(at = at), probe(at))
    used <- used + 1
    if (middle$loss > loss + c1 * at * slope || middle$loss >= low$loss) {
      high <- middle
    } else {
      if (abs(middle$slope) <= -c2 * slope) return(c(middle, evaluations = used))
      if (middle$slope * (high$at - low$at) >= 0) high <- low
      low <- middle
    }
  }
  if (is.null(low$grad)) low <- c(list(at = low$at), probe(low$at))
  c(low[c("at", "loss", "grad", "slope")], evaluations = used)
}

# The direction of Newton's method, with the inverse of the second derivatives as the history tells it.
quasi_newton <- function(grad, memory) {
  direction <- -grad
  count <- length(memory$steps)
  weights <- numeric(count)
  for (i in rev(seq_len(count))) {
    weights[i] <- torch_dot(memory$steps[[i]], direction)$item() * memory$curvature[i]
    direction <- direction - memory$changes[[i]] * weights[i]
  }
  direction <- direction * memory$scale
  for (i in seq_len(count)) {
    other <- torch_dot(memory$changes[[i]], direction)$item() * memory$curvature[i]
    direction <- direction + memory$steps[[i]] * (weights[i] - other)
  }
  direction
}

remember <- function(memory, step, change, most) {
  product <- torch_dot(change, step)$item()
  if (product <= 1e-10) return(invisible())
  if (length(memory$steps) == most) {
    memory$steps <- memory$steps[-1]
    memory$changes <- memory$changes[-1]
    memory$curvature <- memory$curvature[-1]
  }
  memory$steps <- c(memory$steps, list(step))
  memory$changes <- c(memory$changes, list(change))
  memory$curvature <- c(memory$curvature, 1 / product)
  memory$scale <- product / torch_dot(change, change)$item()
}

lbfgs_step <- function(self, closure) {
  o <- self$param_groups[[1]]
  memory <- self$memory
  first <- with_enable_grad(closure())
  local_no_grad()
  loss <- first$item()
  grad <- flat_gradient(o$params)
  evaluations <- 1
  for (iteration in seq_len(o$max_iter)) {
    if (torch_max(torch_abs(grad))$item() <= o$tolerance_grad) break
    fresh <- is.null(memory$steps) && is.null(memory$scale)
    if (fresh) memory$scale <- 1
    direction <- quasi_newton(grad, memory)
    slope <- torch_dot(grad, direction)$item()
    if (slope > -o$tolerance_change) break
    length <- if (fresh) min(1, 1 / torch_sum(torch_abs(grad))$item()) * o$lr else o$lr
    probe <- along(o$params, direction, closure)
    found <- if (is.null(o$line_search_fn)) c(list(at = length), probe(length), evaluations = 1)
             else strong_wolfe(probe, length, loss, slope, o$tolerance_change, 25)
    move_along(o$params, direction, found$at)
    remember(memory, direction * found$at, found$grad - grad, o$history_size)
    evaluations <- evaluations + found$evaluations
    change <- abs(found$loss - loss)
    loss <- found$loss
    grad <- found$grad
    moved <- torch_max(torch_abs(direction))$item() * abs(found$at)
    if (evaluations >= o$max_eval || moved <= o$tolerance_change || change < o$tolerance_change) break
  }
  first
}
