# What users of R's torch package expect, one sentence each; a piece of code that stops breaks its promise.
library(tenfold)

behaves <- function(sentence, code) {
  told <- tryCatch({
    force(code)
    "fine"
  }, error = function(e) gsub("\n", " ", paste(class(e)[1], conditionMessage(e))))
  cat(sentence, "\t", told, "\n", sep = "")
}

behaves("tile repeats, and counts no dimensions", local({
  stopifnot(dim(torch_tile(torch_ones(2, 3), c(2, 2))) == c(4, 6), length(torch_ones(3)$tile(2)) == 6)
}))

behaves("a plain tensor is saved after a parameter", local({
  path <- tempfile()
  torch_save(list(nn_parameter(torch_ones(2)), torch_zeros(3)), path)
  found <- torch_load(path)
  stopifnot(is_nn_parameter(found[[1]]), !is_nn_parameter(found[[2]]), dim(found[[2]]) == 3)
}))

behaves("a last batch of one sample has its batch dimension", local({
  samples <- tensor_dataset(x = torch_ones(5, 3), y = torch_ones(5))
  shapes <- lapply(suppressWarnings(enumerate(dataloader(samples, batch_size = 2))), function(batch) dim(batch$x))
  stopifnot(identical(shapes, list(c(2L, 3L), c(2L, 3L), c(1L, 3L))), dim(samples[5]$x) == 3)
}))

behaves("where without choices gives positions from one", local({
  found <- torch_where(torch_tensor(matrix(c(TRUE, FALSE, FALSE, TRUE), 2)))
  stopifnot(as_array(found[[1]]) == c(1, 2), as_array(found[[2]]) == c(1, 2))
}))

behaves("bincount counts positions from one", local({
  stopifnot(as_array(torch_bincount(torch_tensor(c(1L, 2L, 3L, 1L)))) == c(2, 1, 1))
  told <- tryCatch(torch_bincount(torch_tensor(0:1)), error = conditionMessage)
  stopifnot(told == "Indexing starts at 1 but found a 0.")
}))

behaves("targets of multilabel_margin_loss are classes from one", local({
  x <- torch_tensor(matrix(c(0.1, 0.2, 0.4, 0.8), 1))
  loss <- nnf_multilabel_margin_loss(x, torch_tensor(matrix(c(4L, 1L, -1L, 2L), 1)))
  stopifnot(abs(loss$item() - 0.85) < 1e-6)
}))

behaves("unfold takes a dimension from one", local({
  stopifnot(dim(torch_ones(4, 6)$unfold(2, 3, 3)) == c(4, 2, 3))
}))

behaves("an activation with inplace writes into its input", local({
  for (make in list(nn_silu, nn_relu, nn_relu6, nn_elu, nn_selu, nn_celu, nn_leaky_relu, nn_hardtanh, nn_mish,
                    nn_hardswish, nn_hardsigmoid)) {
    x <- torch_tensor(c(-1.5, 0.5, 7))
    expected <- make()(x)
    stopifnot(all(as_array(x) == c(-1.5, 0.5, 7)))
    make(inplace = TRUE)(x)
    stopifnot(torch_equal(x, expected))
  }
  for (apply in list(nnf_relu, nnf_relu6, nnf_elu, nnf_selu, nnf_celu, nnf_leaky_relu, nnf_hardtanh, nnf_mish,
                     nnf_hardswish, nnf_hardsigmoid, nnf_silu, function(...) nnf_threshold(..., 0.1, 20),
                     function(...) nnf_rrelu(..., lower = 0.2, upper = 0.2))) {
    x <- torch_tensor(c(-1.5, 0.5, 7))
    expected <- apply(x)
    apply(x, inplace = TRUE)
    stopifnot(torch_equal(x, expected))
  }
}))

behaves("int64 beyond 2^53 is printed exactly", local({
  big <- torch_tensor(2L)$pow(62L)
  stopifnot(grepl("4611686018427387905", paste(capture.output(print(big + 1L)), collapse = " ")))
  m <- torch_stack(list(big, big - 1L), 2)
  stopifnot(grepl("4611686018427387903", paste(capture.output(print(m)), collapse = " ")))
}))

behaves("int64 beyond 2^53 is exact in R or refused", local({
  found <- tryCatch(as_array(torch_tensor(2L)$pow(62L) + 1L), error = identity)
  stopifnot(inherits(found, "integer64") || grepl("bit64", conditionMessage(found)))
}))

behaves("all.equal looks into tensors", local({
  stopifnot(!isTRUE(all.equal(torch_tensor(1), torch_tensor(2))), isTRUE(all.equal(torch_tensor(1), torch_tensor(1))))
  stopifnot(!isTRUE(all.equal(torch_tensor(1), torch_tensor(1L))), !isTRUE(all.equal(torch_ones(1), torch_ones(1, 1))))
}))

behaves("expect_equal of testthat looks into tensors", local({
  if (requireNamespace("waldo", quietly = TRUE)) {
    stopifnot(length(waldo::compare(torch_tensor(1), torch_tensor(1))) == 0)
    stopifnot(length(waldo::compare(torch_tensor(1), torch_tensor(2))) > 0)
  }
}))

behaves("an optimizer's state comes back in its order", local({
  for (make in list(optim_adam, optim_adadelta, optim_asgd, optim_rprop, optim_adagrad, optim_rmsprop)) {
    params <- lapply(1:12, function(i) torch_tensor(as.numeric(i), requires_grad = TRUE))
    first <- make(params, lr = 0.1)
    for (i in 1:2) {
      first$zero_grad()
      Reduce(`+`, lapply(params, function(p) (p * p)$sum()))$backward()
      first$step()
    }
    second <- make(params, lr = 0.3)
    second$load_state_dict(first$state_dict())
    stopifnot(identical(names(first$state_dict()$state), as.character(1:12)), second$param_groups[[1]]$lr == 0.1)
    stopifnot(isTRUE(all.equal(unlist(first$state_dict()), unlist(second$state_dict()))))
  }
}))

behaves("groups of parameters have options of their own", local({
  a <- torch_tensor(1, requires_grad = TRUE)
  b <- torch_tensor(1, requires_grad = TRUE)
  optimizer <- optim_sgd(list(list(params = a), list(params = list(b), lr = 1)), lr = 0.1)
  (a + b)$backward()
  optimizer$step()
  stopifnot(abs(a$item() - 0.9) < 1e-6, abs(b$item()) < 1e-6)
  optimizer$param_groups[[2]]$lr <- 0.5
  optimizer$step()
  stopifnot(abs(b$item() + 0.5) < 1e-6, identical(optimizer$state_dict()$param_groups[[2]]$params, 2))
}))

behaves("zero_grad keeps gradients of zero unless they are to be none", local({
  w <- torch_tensor(2, requires_grad = TRUE)
  for (optimizer in list(optim_sgd(w), optim_rprop(w))) {
    (w * w)$backward()
    optimizer$zero_grad()
    stopifnot(w$grad$item() == 0)
    optimizer$zero_grad(set_to_none = TRUE)
    stopifnot(is.null(w$grad))
  }
}))

behaves("layers refuse inputs that they are not made for", local({
  refused <- function(code) inherits(tryCatch(code, error = identity), "value_error")
  stopifnot(refused(nn_batch_norm1d(2)(torch_ones(3, 2, 2, 2))), refused(nn_batch_norm2d(2)(torch_ones(3, 2, 2))))
  stopifnot(refused(nn_batch_norm3d(2)(torch_ones(3, 2, 2, 2))), refused(nn_rnn(1, 2, nonlinearity = "garbage")))
  stopifnot(refused(nn_conv2d(3, 4, 1, groups = 2)), refused(nn_upsample(scale_factor = c(2, 2, 2))(torch_ones(1, 1, 2, 2))))
}))

behaves("errors count dimensions and positions from one", local({
  told <- function(code) tryCatch(code, error = conditionMessage)
  x <- torch_ones(2, 3)
  range <- "Dimension out of range (expected to be in range of [-2, 2], but got 3)"
  stopifnot(told(torch_sum(x, 3)) == range, told(torch_transpose(x, 3, 1)) == range, told(torch_flatten(x, 3)) == range)
  stopifnot(grepl("index 4 out of range for tensor of size [2, 3] at dimension 2", told(torch_select(x, 2, 4)), fixed = TRUE))
  stopifnot(grepl("Target 6 is out of bounds", told(torch_nll_loss(torch_ones(1, 5), torch_tensor(6L)))))
  stopifnot(grepl("except in dimension 1. Expected size 2 but got size 3 for tensor number 2",
                  told(torch_cat(list(torch_ones(8, 2), torch_ones(8, 3))))))
  places <- torch_full(c(1, 1, 1, 1), 35L) # of pooling, which keep libtorch's count
  stopifnot(grepl("max index: 35", told(torch_max_unpool2d(torch_ones(1, 1, 1, 1), places, c(4, 4)))))
  stopifnot(told(torch_sum(x, 0)) == "Dimension is 1-based, but found 0: -1 is the last one")
}))

behaves("a loss that is NaN ends a step of L-BFGS", local({
  w <- torch_tensor(1, requires_grad = TRUE)
  for (search in list(NULL, "strong_wolfe")) {
    optimizer <- optim_lbfgs(list(w), line_search_fn = search)
    loss <- optimizer$step(function() { optimizer$zero_grad(); l <- (w * NaN)$sum(); l$backward(); l })
    stopifnot(is.nan(loss$item()))
  }
}))

behaves("a logical stands for a number, and a number for no logical", local({
  x <- torch_tensor(c(1, 3))
  y <- torch_tensor(c(2, 1))
  stopifnot(as.logical(torch_isclose(x, y, rtol = TRUE)) == c(TRUE, FALSE))
  stopifnot(as.numeric(torch_nan_to_num(torch_tensor(c(NaN, 2)), nan = TRUE)) == c(1, 2))
  stopifnot(as.numeric(torch_add(x, y, alpha = 2L)) == c(5, 5))
  refused <- function(code) inherits(tryCatch(code, error = function(e) e), "tenfold_error")
  stopifnot(refused(torch_sum(x, TRUE)), refused(torch_isclose(x, y, equal_nan = 1)))
  stopifnot(refused(torch_select(x, 1, 1.5)), refused(torch_isclose(x, y, rtol = NA)))
}))
