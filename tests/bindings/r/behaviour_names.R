# Names and arguments that users of R's torch package know, one sentence each; a piece of code that stops breaks one.
library(tenfold)

behaves <- function(sentence, code) {
  told <- tryCatch({
    force(code)
    "fine"
  }, error = function(e) gsub("\n", " ", paste(class(e)[1], conditionMessage(e))))
  cat(sentence, "\t", told, "\n", sep = "")
}

behaves("a default device is where tensors are made", local({
  with_device(device = "meta", stopifnot(torch_ones(2)$is_meta, torch_tensor(1)$is_meta, torch_arange(1, 3)$is_meta, nn_linear(2, 2)$weight$is_meta))
  stopifnot(!torch_ones(2)$is_meta)
}))

behaves("floats have the default type", local({
  torch_set_default_dtype(torch_float64())
  on.exit(torch_set_default_dtype(torch_float32()))
  stopifnot(torch_ones(2)$dtype == torch_float64(), torch_tensor(1.5)$dtype == torch_float64(), torch_arange(1, 3)$dtype == torch_float64())
  stopifnot(torch_get_default_dtype() == torch_float64(), inherits(tryCatch(torch_set_default_dtype("int64"), error = identity), "value_error"))
}))

behaves("autocast computes products in bfloat16, within its scope alone", local({
  x <- torch_ones(2, 2)
  product <- function() torch_mm(x, x)$dtype
  stopifnot(with_autocast(device_type = "cpu", product()) == torch_bfloat16(), product() == torch_float32())
  local({
    local_autocast("cpu", torch_float16())
    stopifnot(product() == torch_float16())
  })
  context <- set_autocast("cpu")
  unset_autocast(context)
  stopifnot(product() == torch_float32())
}))

behaves("a scaler multiplies losses, divides gradients and leaves out infinite steps", local({
  w <- torch_tensor(1, requires_grad = TRUE)
  optimizer <- optim_sgd(w, lr = 0.1)
  scaler <- cuda_amp_grad_scaler(init_scale = 4)
  scaler$scale(w * 3)$backward()
  stopifnot(w$grad$item() == 12)
  scaler$step(optimizer)
  scaler$update()
  stopifnot(abs(w$item() - 0.7) < 1e-6, scaler$get_scale() == 4)
  optimizer$zero_grad()
  scaler$scale(w * Inf)$backward()
  scaler$step(optimizer)
  scaler$update()
  stopifnot(abs(w$item() - 0.7) < 1e-6, scaler$get_scale() == 2)
}))

behaves("tensordot takes a count of dimensions, or both lists", local({
  a <- torch_arange(1, 60)$reshape(c(3, 4, 5))
  b <- torch_arange(1, 24)$reshape(c(4, 3, 2))
  stopifnot(dim(torch_tensordot(a, b, list(c(2, 1), c(1, 2)))) == c(5, 2), dim(torch_tensordot(torch_ones(2, 3, 4), torch_ones(3, 4, 5))) == c(2, 5))
}))

behaves("nonzero gives a tensor for each dimension", local({
  found <- torch_nonzero(torch_tensor(matrix(c(0, 1, 1, 0), 2)), as_list = TRUE)
  stopifnot(length(found) == 2, as_array(found[[1]]) == c(1, 2), as_array(found[[2]]) == c(2, 1))
}))

behaves("a buffer that does not persist is no part of the state", local({
  made <- nn_module("made", initialize = function() {
    self$kept <- nn_buffer(torch_ones(2))
    self$passing <- nn_buffer(torch_ones(2), persistent = FALSE)
  })()
  stopifnot(identical(names(made$state_dict()), "kept"), length(made$buffers) == 2)
}))

behaves("grad_fn names what made a tensor", local({
  x <- torch_tensor(1, requires_grad = TRUE)
  stopifnot(is.null(x$grad_fn), (x * x)$grad_fn$name == "MulBackward0")
}))

behaves("gradients can be set", local({
  x <- torch_tensor(1, requires_grad = TRUE)
  x$set_grad_(torch_tensor(5))
  stopifnot(x$grad$item() == 5)
}))

behaves("slices end where a dimension does", local({
  x <- torch_arange(1, 5)
  stopifnot(as_array(x[4:10]) == c(4, 5), as_array(x[slc(2, 100)]) == 2:5, as_array(x[1:100:2]) == c(1, 3, 5), length(x[7:9]) == 0)
  stopifnot(as_array(x[5:1]) == 5:1)
  calls <- 0
  one <- function() { calls <<- calls + 1; 1 }
  x[one():one()]
  stopifnot(calls == 2)
}))

behaves("printing stops after thirty rows", local({
  told <- capture.output(print(torch_ones(100, 2)))
  stopifnot(length(told) == 33, grepl("more of its 200 elements", told[33]))
}))

behaves("Tab completes members of tensors and modules", local({
  stopifnot("requires_grad" %in% utils:::.DollarNames(torch_ones(1), "^requ"), "weight" %in% utils:::.DollarNames(nn_linear(1, 1), "^wei"))
}))

behaves("a module read by readRDS takes a state", local({
  network <- nn_sequential(nn_linear(2, 3), nn_batch_norm1d(3))
  path <- tempfile()
  saveRDS(network, path)
  found <- readRDS(path)
  found$load_state_dict(network$state_dict())
  x <- torch_ones(4, 2)
  stopifnot(torch_equal(found$eval()(x), network$eval()(x)), found[[1]]$weight$requires_grad)
}))

behaves("weight norm keeps a weight as its direction and length", local({
  layer <- nn_linear(3, 2)
  before <- torch_clone(layer$weight)
  nn_utils_weight_norm(layer)
  stopifnot(setequal(names(layer$parameters), c("bias", "weight_g", "weight_v")), torch_allclose(layer$weight, before, atol = 1e-6))
  layer(torch_ones(1, 3))$sum()$backward()
  stopifnot(!is.null(layer$weight_g$grad), dim(layer$weight_g) == c(2, 1))
}))

behaves("a network loses its head", local({
  network <- nn_sequential(nn_linear(4, 3), nn_relu(), nn_linear(3, 2))
  stopifnot(dim(nn_prune_head(network)(torch_ones(1, 4))) == c(1, 3), length(nn_prune_head(network, 2)) == 1)
}))

behaves("sparsemax projects onto probabilities", local({
  found <- as_array(nn_contrib_sparsemax(dim = 1)(torch_tensor(c(1, 0.8, -2))))
  stopifnot(all(abs(found - c(0.6, 0.4, 0)) < 1e-6))
}))

behaves("an adaptive softmax has probabilities that sum to one", local({
  layer <- nn_adaptive_log_softmax_with_loss(8, 20, c(4, 10))
  x <- torch_randn(3, 8)
  stopifnot(torch_allclose(torch_exp(layer$log_prob(x))$sum(2), torch_ones(3)), dim(layer$log_prob(x)) == c(3, 20))
  found <- layer(x, torch_tensor(c(1L, 7L, 20L)))
  stopifnot(torch_allclose(found$loss, -found$output$mean()), dim(layer$predict(x)) == 3)
}))

behaves("a transposed convolution gives the size that is asked for", local({
  layer <- nn_conv_transpose2d(3, 4, 3, stride = 2, padding = 1)
  stopifnot(dim(layer(torch_ones(1, 3, 6, 6), output_size = c(12, 12))) == c(1, 4, 12, 12))
  stopifnot(inherits(tryCatch(layer(torch_ones(1, 3, 6, 6), output_size = c(20, 20)), error = identity), "value_error"))
}))

behaves("embeddings renorm the rows that are looked up", local({
  layer <- nn_embedding(3, 2, max_norm = 1, .weight = torch_tensor(matrix(c(3, 1, 1, 4, 0, 0), 3)))
  stopifnot(abs(torch_linalg_vector_norm(layer(torch_tensor(1L)))$item() - 1) < 1e-3)
}))

behaves("objects are saved to connections and raw vectors", local({
  connection <- rawConnection(raw(), "r+")
  torch_save(list(a = torch_ones(2)), connection)
  bytes <- rawConnectionValue(connection)
  close(connection)
  stopifnot(as_array(torch_load(bytes)$a) == c(1, 1), as_array(torch_load(rawConnection(bytes))$a) == c(1, 1))
}))

behaves("a loss warns of sizes that differ", local({
  told <- tryCatch(nnf_mse_loss(torch_ones(5), torch_ones(5, 1)), warning = conditionMessage)
  stopifnot(grepl("different to the input size", told))
}))

behaves("datasets, loaders and optimizers print themselves", local({
  samples <- tensor_dataset(torch_ones(5, 2))
  stopifnot(grepl("tensor_dataset of 5 samples", capture.output(print(samples))))
  stopifnot(grepl("3 batches of 2", capture.output(print(dataloader(samples, batch_size = 2)))))
  stopifnot(any(grepl("lr 0.1", capture.output(print(optim_adam(torch_ones(1, requires_grad = TRUE), lr = 0.1))))))
}))

behaves("a value goes through a pipe", local({
  stopifnot(torch_ones(2) %>% torch_sum() %>% as.numeric == 2, 3 %>% rep(1, .) %>% length() == 3)
}))

behaves("operators are reached by namespace and name", local({
  stopifnot(as_array(jit_ops$aten$relu(torch_tensor(c(-1, 2)))) == c(0, 2), as_array(call_torch_function("torch_relu", torch_tensor(-1))) == 0)
}))

behaves("distributions of numbers have a batch of one", local({
  stopifnot(dim(distr_normal(0, 1)$sample()) == 1, dim(distr_normal(0, 1)$sample(c(3, 2))) == c(3, 2, 1), is.null(distr_gamma(1, 1)$event_shape))
}))

behaves("a dataset is asked for whole numbers, however they are given", local({
  asked <- dataset("asked", .getbatch = function(i) is.integer(i), .length = function() 9)()
  stopifnot(asked[c(1, 2)], asked[list(1, 2, 3)], asked[4])
}))

behaves("data is a tensor without its history", local({
  x <- torch_tensor(1, requires_grad = TRUE)
  stopifnot(!(x * 2)$data()$requires_grad)
}))

behaves("L-BFGS counts how often it asked for the loss", local({
  w <- torch_tensor(c(1, 2), requires_grad = TRUE)
  optimizer <- optim_lbfgs(list(w), max_iter = 3)
  calls <- 0
  optimizer$step(function() { calls <<- calls + 1; optimizer$zero_grad(); l <- (w^2)$sum(); l$backward(); l })
  stopifnot(optimizer$state$get(w)$func_evals == calls)
}))
