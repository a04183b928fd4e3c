library(tenfold)
cube <- autograd_function(
  forward = function(ctx, x, power = 3) {
    result <- x^power
    ctx$save_for_backward(x = x, result = result, power = power)
    result
  },
  backward = function(ctx, gradient) {
    kept <- ctx$saved_variables
    stopifnot(ctx$needs_input_grad$x, identical(as_array(kept$result), as_array(kept$x)^kept$power))
    list(x = gradient * kept$power * kept$x^(kept$power - 1))
  }
)
w <- torch_tensor(c(1, 2), requires_grad = TRUE)
stopifnot(identical(as_array(autograd_grad(cube(w)$sum(), w)[[1]]), c(3, 12)))
stopifnot(identical(as_array(autograd_grad(cube(w, power = 2)$sum(), w)[[1]]), c(2, 4)))

both <- autograd_function(
  forward = function(ctx, a, b) {
    largest <- a > b
    ctx$mark_non_differentiable(largest)
    list(sum = a + b, largest = largest)
  },
  backward = function(ctx, of_sum, of_largest) list(b = of_sum * 10, a = of_sum)
)
v <- torch_tensor(c(3, 1), requires_grad = TRUE)
found <- both(w, v)
stopifnot(!found$largest$requires_grad)
found$sum$sum()$backward()
stopifnot(identical(as_array(w$grad), c(1, 1)), identical(as_array(v$grad), c(10, 10)))

failing <- autograd_function(forward = function(ctx, x) x * 1, backward = function(ctx, g) stop("of my own"))
problem <- tryCatch(failing(w)$sum()$backward(), error = identity)
stopifnot(conditionMessage(problem) == "of my own", !inherits(problem, "tenfold_error"))
odd <- autograd_function(forward = function(ctx, x) x * 1, backward = function(ctx, g) list(1, 2))
stopifnot(inherits(tryCatch(odd(w)$sum()$backward(), error = identity), "tenfold_error"))

w$grad <- NULL
seen <- NULL
doubled <- w$register_hook(function(gradient) {
  seen <<- as_array(gradient)
  gradient * 2
})
(w * 3)$sum()$backward()
stopifnot(identical(seen, c(3, 3)), identical(as_array(w$grad), c(6, 6)))
doubled$remove()
w$grad <- NULL
w$register_hook(function(gradient) stop("in a hook"))
stopifnot(conditionMessage(tryCatch((w * 3)$sum()$backward(), error = identity)) == "in a hook")

step <- function() cube(v)$sum()$backward()
look <- function(gradient) NULL
watch <- function() (v * 2)$register_hook(look)
counted <- function() {
  for (i in 1:20) { step(); watch() }
  v$grad <- NULL
  gc()
  tenfold_memory()[c("tensors", "objects")]
}
stopifnot(identical(counted(), counted())) # graphs let go of the functions and tensors that they called
cat("fine")
