# optim_lbfgs: steps along directions that a history of gradients gives, with a line search where one is asked for.
# Comparisons go through isTRUE: with a loss that is NaN they are false, and the step ends where PyTorch's ends.

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

# The loss and the gradient where the parameters are.
evaluated <- function(params, closure) {
  loss <- with_enable_grad(closure())
  list(loss = if (is_torch_tensor(loss)) loss$item() else loss, grad = flat_gradient(params))
}

# The point some way along a direction from where the parameters are, to which they come back.
along <- function(params, direction, closure) {
  start <- lapply(params, torch_clone)
  function(length) {
    move_along(params, direction, length)
    found <- evaluated(params, closure)
    for (i in seq_along(params)) torch_copy_(params[[i]], start[[i]])
    list(at = length, loss = found$loss, grad = found$grad, slope = torch_dot(found$grad, direction)$item())
  }
}

# The minimum of the cubic through two points and their slopes, within bounds.
cubic_minimum <- function(a, b, low = min(a$at, b$at), high = max(a$at, b$at)) {
  d1 <- a$slope + b$slope - 3 * (a$loss - b$loss) / (a$at - b$at)
  square <- d1^2 - a$slope * b$slope
  if (!isTRUE(square >= 0)) return((low + high) / 2)
  d2 <- sqrt(square)
  if (a$at > b$at) {
    kept <- a
    a <- b
    b <- kept
  }
  at <- b$at - (b$at - a$at) * ((b$slope + d2 - d1) / (b$slope - a$slope + 2 * d2))
  min(max(at, low), high)
}

# Points on both sides of a length that meets the strong Wolfe conditions, or one that does.
bracket_minimum <- function(probe, length, start, most, c1, c2) {
  before <- start
  now <- probe(length)
  for (iteration in seq_len(most) - 1) {
    too_high <- isTRUE(now$loss > start$loss + c1 * now$at * start$slope)
    if (too_high || (iteration > 1 && isTRUE(now$loss >= before$loss))) return(list(list(before, now), used = iteration))
    if (isTRUE(abs(now$slope) <= -c2 * start$slope)) return(list(list(now), used = iteration))
    if (isTRUE(now$slope >= 0)) return(list(list(before, now), used = iteration))
    further <- cubic_minimum(before, now, now$at + 0.01 * (now$at - before$at), now$at * 10)
    before <- now
    now <- probe(further)
  }
  list(list(start, now), used = most)
}

# A trial length between two points, kept off their ends where the last one made too little progress.
between <- function(low, high, stalled) {
  at <- cubic_minimum(low, high)
  from <- min(low$at, high$at)
  to <- max(low$at, high$at)
  edge <- 0.1 * (to - from)
  near <- isTRUE(min(to - at, at - from) < edge)
  if (!near) return(list(at = at, stalled = FALSE))
  if (!stalled && isTRUE(at < to) && isTRUE(at > from)) return(list(at = at, stalled = TRUE))
  list(at = if (isTRUE(abs(at - to) < abs(at - from))) to - edge else from + edge, stalled = FALSE)
}

# A length that meets the strong Wolfe conditions: first a bracket around one, then narrower ones.
strong_wolfe <- function(probe, length, start, extent, tolerance = 1e-9, most = 25, c1 = 1e-4, c2 = 0.9) {
  found <- bracket_minimum(probe, length, start, most, c1, c2)
  ends <- found[[1]]
  used <- found$used
  evaluations <- used + 1
  if (base::length(ends) == 1) return(c(ends[[1]], evaluations = evaluations))
  low <- if (isTRUE(ends[[1]]$loss <= ends[[2]]$loss)) 1 else 2
  stalled <- FALSE
  while (used < most && !isTRUE(abs(ends[[2]]$at - ends[[1]]$at) * extent < tolerance)) {
    trial <- between(ends[[1]], ends[[2]], stalled)
    stalled <- trial$stalled
    middle <- probe(trial$at)
    used <- used + 1
    evaluations <- evaluations + 1
    if (isTRUE(middle$loss > start$loss + c1 * middle$at * start$slope) || isTRUE(middle$loss >= ends[[low]]$loss)) {
      ends[[3 - low]] <- middle
      low <- if (isTRUE(ends[[1]]$loss <= ends[[2]]$loss)) 1 else 2
      next
    }
    if (isTRUE(abs(middle$slope) <= -c2 * start$slope)) return(c(middle, evaluations = evaluations))
    if (isTRUE(middle$slope * (ends[[3 - low]]$at - ends[[low]]$at) >= 0)) ends[[3 - low]] <- ends[[low]]
    ends[[low]] <- middle
  }
  c(ends[[low]], evaluations = evaluations)
}

# The direction of Newton's method, with the inverse of the second derivatives as the history tells it.
quasi_newton <- function(grad, memory) {
  direction <- -grad
  count <- length(memory$steps)
  weights <- numeric(count)
  for (i in rev(seq_len(count))) {
    weights[i] <- torch_dot(memory$steps[[i]], direction)$item() * memory$curvature[[i]]
    direction <- direction - memory$changes[[i]] * weights[i]
  }
  direction <- direction * memory$scale
  for (i in seq_len(count)) {
    other <- torch_dot(memory$changes[[i]], direction)$item() * memory$curvature[[i]]
    direction <- direction + memory$steps[[i]] * (weights[i] - other)
  }
  direction
}

remember <- function(memory, step, change, most) {
  product <- torch_dot(change, step)$item()
  if (!isTRUE(product > 1e-10)) return(invisible())
  if (length(memory$steps) == most) {
    memory$steps <- memory$steps[-1]
    memory$changes <- memory$changes[-1]
    memory$curvature <- memory$curvature[-1]
  }
  memory$steps <- c(memory$steps, list(step))
  memory$changes <- c(memory$changes, list(change))
  memory$curvature <- c(memory$curvature, list(1 / product))
  memory$scale <- product / torch_dot(change, change)$item()
}

# The direction of the next iteration; `memory` says where the last one came from.
next_direction <- function(memory, grad, options) {
  memory$n_iter <- if (is.null(memory$n_iter)) 1 else memory$n_iter + 1
  if (memory$n_iter == 1) {
    memory$scale <- 1
    return(-grad)
  }
  remember(memory, memory$direction * memory$length, grad - memory$grad, options$history_size)
  quasi_newton(grad, memory)
}

lbfgs_step <- function(self, closure) {
  o <- self$param_groups[[1]]
  if (is.null(closure)) refuse("optim_lbfgs evaluates its loss several times a step: step(closure) takes the function that does")
  memory <- self$state_of(o$params[[1]])
  local_no_grad()
  first <- with_enable_grad(closure())
  now <- list(loss = if (is_torch_tensor(first)) first$item() else first, grad = flat_gradient(o$params))
  flat <- function(grad) isTRUE(torch_max(torch_abs(grad))$item() <= o$tolerance_grad)
  evaluations <- 1
  earlier <- if (is.null(memory$func_evals)) 0 else memory$func_evals
  on.exit(memory$func_evals <- earlier + evaluations, add = TRUE)
  if (flat(now$grad)) return(first)
  for (iteration in seq_len(o$max_iter)) {
    direction <- next_direction(memory, now$grad, o)
    memory$grad <- now$grad
    length <- if (memory$n_iter == 1) min(1, 1 / torch_sum(torch_abs(now$grad))$item()) * o$lr else o$lr
    memory$direction <- direction
    memory$length <- length
    slope <- torch_dot(now$grad, direction)$item()
    if (isTRUE(slope > -o$tolerance_change)) break
    before <- now
    if (is.null(o$line_search_fn)) {
      move_along(o$params, direction, length)
      if (iteration == o$max_iter) break
      now <- c(evaluated(o$params, closure), evaluations = 1)
    } else {
      start <- list(at = 0, loss = now$loss, grad = now$grad, slope = slope)
      extent <- torch_max(torch_abs(direction))$item()
      now <- strong_wolfe(along(o$params, direction, closure), length, start, extent)
      memory$length <- length <- now$at
      move_along(o$params, direction, length)
    }
    evaluations <- evaluations + now$evaluations
    if (evaluations >= o$max_eval || flat(now$grad)) break
    if (isTRUE(torch_max(torch_abs(direction * length))$item() <= o$tolerance_change)) break
    if (isTRUE(abs(now$loss - before$loss) < o$tolerance_change)) break
  }
  first
}
