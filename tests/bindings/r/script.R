library(tenfold)
folder <- commandArgs(TRUE)[1]
m <- jit_load(paste0(folder, "/twice.pt"))
stopifnot(as.numeric(m(torch_tensor(3))) == 6, "describe" %in% m$methods, identical(names(m$parameters), "weight"))
found <- m$describe(1:3)
stopifnot(found[[1]] == 3L, found[[2]]$total == 12)
optimizer <- optim_sgd(m$parameters, lr = 0.1)
first <- jit_train_step(m, optimizer, "mse_loss", torch_tensor(1), torch_tensor(0))$item()
stopifnot(first == 4, abs(as.numeric(m$parameters$weight) - 1.6) < 1e-6)
f <- jit_trace(function(a, b) list(s = a + b, p = a * b), torch_ones(2), torch_ones(2))
r <- f(list(torch_tensor(c(1, 2)), torch_tensor(c(3, 4))))
stopifnot(identical(names(r), c("s", "p")), identical(as.numeric(r$p), c(3, 8)), grepl("aten::mul", f$graph))
net <- nn_sequential(nn_linear(2, 3), nn_relu(), nn_linear(3, 1))
x <- torch_randn(4, 2)
jit_save(jit_trace(net, x), paste0(folder, "/net.pt"))
jit_save_for_mobile(jit_trace(net, x), paste0(folder, "/net.ptl"))
stopifnot(torch_equal(jit_unserialize(jit_serialize(jit_trace(net, x)))(x), net(x)))
state <- lapply(m$state_dict(), function(each) each * 0 + 2)
m$load_state_dict(state)
stopifnot(identical(as.numeric(m$parameters[[1]]), 2), inherits(tryCatch(m$load_state_dict(list()), error = identity), "value_error"))
torch_save(list(x = x, y = net(x)), paste0(folder, "/net.safetensors"))
invisible(gc())
live <- tenfold_memory()[["objects"]]
e <- tryCatch(jit_trace(function(a) stop("inside"), x), error = identity)
invisible(gc())
stopifnot(conditionMessage(e) == "inside", tenfold_memory()[["objects"]] == live)
left <- (function() { runs <- 0; jit_trace(function(a) { runs <<- runs + 1; a }, x); "after" })()
stopifnot(left == "after", as.numeric(jit_trace(function(a) a * 2, torch_ones(1))(torch_tensor(4))) == 8)
unit <- jit_compile("
def twice(x):
    return x * 2

def shifted(x, by: int = 1):
    return twice(x) + by
")
stopifnot(as.numeric(unit$shifted(torch_ones(1))) == 3, as.numeric(unit$shifted(torch_ones(1), 5L)) == 7, setequal(unit$methods, c("twice", "shifted")))
stopifnot(as.numeric(jit_unserialize(jit_serialize(unit))$twice(torch_ones(1))) == 2)
stopifnot(inherits(tryCatch(jit_compile("def f(x) return"), error = identity), "tenfold_error"), inherits(tryCatch(jit_compile(""), error = identity), "value_error"))
cat("fine")
