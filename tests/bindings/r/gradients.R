library(tenfold)
w <- torch_tensor(c(1, 2), requires_grad = TRUE)
y <- (w^3)$sum()
y$backward()
stopifnot(identical(as.numeric(w$grad), c(3, 12)))
w$grad <- NULL
stopifnot(is.null(w$grad))
stopifnot(!with_no_grad((w * 2)$requires_grad), (w * 2)$requires_grad)
invisible(tryCatch(with_no_grad(stop("left")), error = identity))
stopifnot(torch_is_grad_enabled())
f <- function() { local_no_grad(); (w * 2)$requires_grad }
stopifnot(!f(), torch_is_grad_enabled())
g <- autograd_grad((w^3)$sum(), w, create_graph = TRUE)[[1]]
h <- autograd_grad(g$sum(), w)[[1]]
stopifnot(identical(as.numeric(h), c(6, 12)))
x <- torch_tensor(c(3, 4), requires_grad = TRUE)
y <- x[1] * 2
z <- x[2] * 5
z$backward()
stopifnot(identical(as.numeric(x$grad), c(0, 5)))
root <- torch_tensor(-1, requires_grad = TRUE)
torch_sqrt(root)$backward() # NaN, and nothing is said
stopifnot(inherits(suppressWarnings(tryCatch(with_detect_anomaly(torch_sqrt(root)$backward()), error = identity)), "tenfold_error"))
torch_sqrt(root)$backward() # nothing again
torch_manual_seed(3)
first <- as_array(torch_rand(2))
torch_manual_seed(3)
inner <- as_array(with_torch_manual_seed(torch_rand(2), seed = 9))
stopifnot(identical(as_array(torch_rand(2)), first), !identical(inner, first), identical(as_array(with_torch_manual_seed(torch_rand(2), seed = 9)), inner))
state <- torch_get_rng_state()
first <- as_array(torch_rand(2))
torch_set_rng_state(state)
stopifnot(identical(as_array(torch_rand(2)), first))
cat("fine")
