library(tenfold)
values <- function(x) as.vector(as_array(x))
refused <- function(code) inherits(tryCatch(code, error = identity), "tenfold_error")

# What inherits reaches what it inherits from, through every generation.
Base <- nn_module("Base",
  initialize = function(n) self$layer <- nn_linear(n, n),
  forward = function(x) self$layer(x),
  twice = function(x) x * 2
)
Shifted <- nn_module("Shifted", inherit = Base,
  initialize = function(n, by) {
    super$initialize(n)
    self$by <- by
  },
  forward = function(x) super$forward(x) + self$by,
  twice = function(x) super$twice(x) + 1
)
Youngest <- nn_module("Youngest", inherit = Shifted, forward = function(x) super$forward(x) * 0 + super$twice(torch_ones(1)))
made <- Youngest(2, 3)
stopifnot(identical(values(made(torch_ones(1, 2))), c(3, 3)), made$by == 3, length(made$parameters) == 2, inherits(made, "Base"))
Tens <- dataset("Tens", initialize = function(n) self$n <- n, .getitem = function(i) i * 10, .length = function() self$n)
More <- dataset("More", inherit = Tens, .getitem = function(i) super$.getitem(i) + private$extra,
                private = list(extra = 1), active = list(last = function() self$.getitem(self$n)))
stopifnot(More(3)[2] == 21, More(3)$last == 31, is.null(More(3)$extra), length(More(3)) == 3)
descent <- optimizer("descent",
  initialize = function(params, lr = optim_required()) super$initialize(params, list(lr = lr)),
  step = function() {
    options <- self$param_groups[[1]]
    with_no_grad(for (each in options$params) each$sub_(each$grad * options$lr))
  }
)
weight <- nn_parameter(torch_ones(1))
torch_sum(weight * 2)$backward()
descent(list(weight), lr = 0.5)$step()
stopifnot(weight$item() == 0, refused(descent(list(weight))))

# Samples in orders of one's own.
counted <- iterable_dataset("counted", initialize = function(n) self$n <- n, .iter = function() {
  at <- 0
  function() {
    if (at == self$n) return(exhausted())
    at <<- at + 1
    torch_tensor(at)
  }
})
sizes <- numeric()
loop(for (batch in dataloader(counted(5), batch_size = 2)) sizes <- c(sizes, length(batch)))
stopifnot(identical(sizes, c(2, 2, 1)), length(enumerate(counted(3))) == 3)
backwards <- sampler("backwards", initialize = function(n) self$n <- n, .length = function() self$n, .iter = function() {
  at <- self$n + 1
  function() if (at == 1) exhausted() else at <<- at - 1
})
five <- tensor_dataset(torch_arange(1, 5))
loader <- dataloader(five, batch_size = 2, sampler = backwards(5))
stopifnot(length(loader) == 3, identical(lapply(enumerate(loader), function(each) values(each[[1]])), list(c(5, 4), c(3, 2), 1)))
twos <- sampler("twos", .length = function() 2, .iter = function() {
  at <- 0
  function() if (at == 2) exhausted() else c(at <<- at + 1, at + 1)
})
stopifnot(identical(values(enumerate(dataloader(five, batch_sampler = twos()))[[2]][[1]]), c(2, 3)))
stopifnot(refused(dataloader(3)), refused(dataloader(five, shuffle = TRUE, sampler = backwards(5))))

# Sequences of different lengths, packed, give what each gives alone.
torch_manual_seed(1)
sequences <- list(torch_randn(2, 3), torch_randn(4, 3), torch_randn(3, 3))
packed <- nn_utils_rnn_pack_sequence(sequences, enforce_sorted = FALSE)
near <- function(x, y) torch_allclose(x, y, atol = 1e-6)
for (network in list(nn_lstm(3, 5, bidirectional = TRUE), nn_gru(3, 5, num_layers = 2), nn_rnn(3, 5))) {
  found <- network(packed)
  padded <- nn_utils_rnn_pad_packed_sequence(found[[1]])
  stopifnot(identical(values(padded[[2]]), c(2L, 4L, 3L)))
  for (i in 1:3) {
    alone <- network(torch_unsqueeze(sequences[[i]], 2))
    last <- if (is.list(found[[2]])) list(found[[2]][[1]], alone[[2]][[1]]) else list(found[[2]], alone[[2]])
    stopifnot(near(padded[[1]][1:dim(sequences[[i]])[1], i, ], alone[[1]][, 1, ]), near(last[[1]][, i, ], last[[2]][, 1, ]))
  }
  torch_sum(found[[1]]$data)$backward()
  stopifnot(!is.null(network$parameters[[1]]$grad))
}
cat("fine")
