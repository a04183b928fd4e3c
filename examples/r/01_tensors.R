# Tensors in R: made from R's own values, computed with, indexed as arrays are, and turned back.
library(tenfold)

x <- torch_tensor(matrix(c(1, 2, 3, 4, 5, 6), nrow = 2))
print(x)
print(x$shape)

# Operators and functions are R's own; every operator of libtorch is also torch_*, and a method after $.
print(x * 2 + 1)
print(exp(x)[1, 1])
print(x$sum(dim = 1))
print(torch_matmul(x, x$t()))

# Positions count from 1, and negative ones from the end.
print(x[1, ])
print(x[-1, ])
print(x[x > 2])
x[, 2] <- c(30, 40)
print(as.matrix(x))

# What is wrong is an R condition, with a code.
problem <- tryCatch(torch_matmul(x, x), tenfold_error = function(e) e)
cat("caught:", problem$name, "\n")

# The gradient of the squared length of a vector is twice the vector.
w <- torch_tensor(c(1, 2, 3), requires_grad = TRUE)
(w^2)$sum()$backward()
print(w$grad)
stopifnot(identical(as.numeric(w$grad), c(2, 4, 6)))
