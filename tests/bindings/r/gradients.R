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
cat("fine")
