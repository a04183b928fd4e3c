# Native code that throws, jumps and hands over nothing where it should not: R goes on, and nothing is left.
library(tenfold)
library(hostile)

told <- function(code) tryCatch(code, error = conditionMessage)
x <- torch_ones(2, 3)
relu <- jit_trace(torch_relu, torch_ones(2))
invisible(told(throw(0, x))) # finds what it calls
invisible(gc())
before <- tenfold_memory()

stopifnot(told(throw(0, x)) == "std::bad_alloc", grepl("no exception", told(throw(1, x))))
stopifnot(validUTF8(told(throw(2, x))), nchar(told(throw(2, x))) > 2000, told(throw(3, x)) == "caf\u00e9 ? %s%n")
stopifnot(told(throw_within_r(x)) == "within R", go_on_after_errors(x) == 500)
for (kind in 0:2) stopifnot(grepl("owns no handle", told(nothing(kind))))
stopifnot(told(nothing(3)) == "function is NULL", told(nothing(4)) == "stack is NULL")

# R code that runs in between may close what C++ holds, or drop the last name of it.
closed <- jit_trace(torch_relu, torch_ones(2))
found <- call_after(closed, function() close(closed), list(torch_tensor(c(-1, 1))))
stopifnot(as_array(found[[1]]) == c(0, 1), grepl("was closed", told(call_after(closed, function() 1, list(torch_ones(2))))))
dropped <- jit_trace(torch_relu, torch_ones(2))
found <- call_after(dropped, function() { rm(dropped, envir = globalenv()); gc() }, list(torch_tensor(c(-1, 1))))
stopifnot(as_array(found[[1]]) == c(0, 1))

# Every way out of nested calls: errors, restarts, calls of a continuation, warnings made errors, and no way out at all.
deep <- function(x, n) if (n == 0) stop("deep") else again(x, deep, n - 1)
stopifnot(told(again(x, deep, 30)) == "deep", callCC(function(out) again(x, function(x, n) out(7), 1)) == 7)
stopifnot(withRestarts(again(x, function(x, n) invokeRestart("mine", 5), 1), mine = identity) == 5)
options(warn = 2)
stopifnot(grepl("converted from warning", told(again(x, function(x, n) { warning("w"); x }, 1))))
options(warn = 1)
endless <- function(x, n) again(x, endless, n + 1)
stopifnot(grepl("C stack|nested too deeply", told(again(x, endless, 0))))

# Values that fail half way.
bytes <- "a\xff"
Encoding(bytes) <- "bytes"
bad <- list(bytes, NA, function() 1, globalenv(), as.raw(1), structure(list(), class = "torch_device"), torch_device("mps"),
            structure(list(1), names = bytes), Reduce(function(inner, i) list(inner), 1:300, list()))
for (each in bad) stopifnot(inherits(try(jit_stack(list(torch_ones(2), each)), silent = TRUE), "try-error"))

gctorture(TRUE)
found <- again(torch_ones(2), function(x, n) x * 2, 1)
failed <- c(told(again(x, function(x, n) stop("tortured"), 1)), told(throw(0, x)))
gctorture(FALSE)
stopifnot(as_array(found) == 3, failed == c("tortured", "std::bad_alloc"))

rm(found, closed)
invisible(gc())
stopifnot(identical(tenfold_memory()[c("tensors", "objects")], before[c("tensors", "objects")]))
cat("fine")
