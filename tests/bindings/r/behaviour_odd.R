# Odd arguments and rare kinds of tensors, one sentence each; a piece of code that stops breaks its promise.
library(tenfold)

behaves <- function(sentence, code) {
  told <- tryCatch({
    force(code)
    "fine"
  }, error = function(e) gsub("\n", " ", paste(class(e)[1], conditionMessage(e))))
  cat(sentence, "\t", told, "\n", sep = "")
}

told <- function(code) tryCatch(code, error = identity)
says <- function(code, text, class = "tenfold_error") {
  found <- told(code)
  inherits(found, class) && grepl(text, conditionMessage(found), fixed = TRUE)
}

behaves("a tensor of a buffer shares its memory, and keeps it alive", local({
  buffer <- c(1, 2, 3, 4)
  x <- torch_tensor_from_buffer(buffer, c(2, 2), "double")
  x$add_(1)
  stopifnot(buffer == 2:5, as_array(x) == matrix(2:5, 2, byrow = TRUE))
  buffer[1] <- 100 # R's own copy, since the tensor holds the vector
  stopifnot(x[1, 1]$item() == 2)
  part <- x[2]
  close(x)
  rm(buffer, x)
  gc()
  stopifnot(as_array(part) == c(4, 5))
}))

behaves("a buffer is read as the type says, and one size may be left open", local({
  stopifnot(as_array(torch_tensor_from_buffer(1:4, -1, "int32")) == 1:4, dim(torch_tensor_from_buffer(1:4, c(1, -1), "int64")) == c(1, 2))
  stopifnot(dim(torch_tensor_from_buffer(raw(0), 0)) == 0, torch_tensor_from_buffer(3.5, integer(), "double")$item() == 3.5)
  stopifnot(says(torch_tensor_from_buffer(1:4, 5, "int32"), "takes 20 bytes, and the buffer has 16"))
  stopifnot(says(torch_tensor_from_buffer(1:3, -1, "int64"), "cannot be divided"), says(torch_tensor_from_buffer(1:4, c(2^31, 2^31, 2^31)), "larger than any memory"))
  stopifnot(says(torch_tensor_from_buffer(1:4, c(-1, -1)), "size 2, -1"), says(torch_tensor_from_buffer(list(), 1), "a list", "type_error"))
}))

behaves("quantized tensors are copied, cloned and reshaped", local({
  quantized <- function(...) torch_quantize_per_tensor(torch_tensor(c(...)), 0.1, 10, torch_quint8())
  a <- quantized(-1, 0, 1, 2)
  b <- quantized(1, 0, 1, 2)
  a$copy_(b)
  near <- function(x, ...) stopifnot(x$is_quantized(), isTRUE(all.equal(as.vector(as_array(x)), c(...), tolerance = 1e-6)))
  near(a, 1, 0, 1, 2)
  near(a$clone(), 1, 0, 1, 2)
  near(a$reshape(c(2, 2))$reshape(4), 1, 0, 1, 2)
  near(torch_cat(list(a, b)), 1, 0, 1, 2, 1, 0, 1, 2)
  stopifnot(dim(a$reshape(c(2, 2))) == c(2, 2), says(a$cumsum(1), "cumsum"))
}))

behaves("integers of bit64 are numbers where an operator wants one", local({
  if (!requireNamespace("bit64", quietly = TRUE)) return()
  wide <- bit64::as.integer64("9007199254740993")
  digits <- function(x) as.character(as.integer64(x))
  stopifnot(digits(torch_full(1, wide, dtype = torch_int64())) == "9007199254740993", digits(torch_tensor(0L)$add(wide)) == "9007199254740993")
  stopifnot(digits(torch_tensor(wide)$sub(wide)) == "0", dim(torch_zeros(bit64::as.integer64(3))) == 3)
  stopifnot(says(torch_tensor(bit64::as.integer64(NA)), "NA"), says(torch_zeros(bit64::as.integer64(NA)), "NA"))
}))

behaves("a traced function that gives no tensor says so", local({
  x <- torch_ones(2)
  stopifnot(says(jit_trace(function(x) NULL, x), "gave NULL", "type_error"))
  stopifnot(says(jit_trace(function(x) mean, x), "a function cannot become a value of libtorch", "type_error"))
}))

behaves("bytes that no tensor was saved as are refused in our words", local({
  bytes <- torch_serialize(torch_ones(2))
  for (each in list(raw(), as.raw(1:50), bytes[seq_len(length(bytes) %/% 2)])) stopifnot(says(torch_load(each), "torch_serialize"))
  stopifnot(says(torch_load(NULL), "a path", "type_error"), says(torch_load(list()), "a path", "type_error"))
}))

behaves("gradients of nothing are refused", local({
  stopifnot(says(autograd_grad(NULL, NULL), "at least one"), says(autograd_grad(list(), torch_ones(1)), "at least one"))
}))

behaves("a linear layer may have no inputs", local({
  stopifnot(dim(nn_linear(0, 3)(torch_ones(2, 0))) == c(2, 3))
}))

behaves("parts of a program of another kind are refused by name", local({
  numbers <- dataset("numbers", .getitem = function(i) i, .length = function() 5)
  stopifnot(says(tensor_dataset(3), "takes tensors", "type_error"), says(tensor_dataset(torch_tensor(3)$sum()), "at least one dimension"))
  stopifnot(says(dataloader(numbers(), 1, sampler = 3), "sampler()", "type_error"), says(optim_adam(torch_ones(1, requires_grad = TRUE), betas = 3), "two numbers"))
  stopifnot(says(nn_module("silent")()(torch_ones(1)), "silent has no method forward"), says(torch_ones(1, device = "cuda:99999999999"), "is no device"))
}))

behaves("vertices are sorted anti-clockwise, closed and padded", local({
  corners <- torch_tensor(rbind(c(1, -1), c(-1, 1), c(1, 1), c(-1, -1)))
  sorted <- function(valid, count) {
    vertices <- torch_cat(list(valid, torch_zeros(24 - dim(valid)[1], 2)))$view(c(1, 1, 24, 2))
    mask <- torch_tensor(seq_len(24) <= dim(valid)[1])$view(c(1, 1, 24))
    found <- contrib_sort_vertices(vertices, mask, torch_tensor(matrix(count)))
    stopifnot(found$dtype == torch_int32(), dim(found) == c(1, 1, 9))
    as.vector(as_array(found))
  }
  stopifnot(sorted(corners, 4L) == c(2, 1, 3, 0, 2, 8, 8, 8, 8), sorted(corners[1:2], 2L) == 8)
  stopifnot(sorted(torch_cat(list(corners, corners)), 8L) == c(2, 1, 3, 0, 2, 8, 8, 8, 8)) # the same box twice
  turns <- (0:7) * pi / 4 + 0.1
  stopifnot(sorted(torch_tensor(cbind(cos(turns), sin(turns)))[c(3, 1, 8, 2, 5, 4, 7, 6)], 8L) == c(1, 3, 0, 5, 4, 7, 6, 2, 1))
}))

behaves("the addresses of the libraries are files", local({
  for (address in get_install_libs_url()) stopifnot(startsWith(address, "file://"), file.exists(sub("file://", "", address)))
}))

behaves("CUDA's memory is recorded where there is CUDA", local({
  if (!cuda_is_available()) {
    stopifnot(says(torch_zeros(2, device = "cuda"), "without CUDA"), says(nn_linear(1, 1)$to(device = "cuda"), "without CUDA"))
    stopifnot(says(cuda_memory_snapshot(), "without CUDA"), says(cuda_record_memory_history("all"), "without CUDA"))
  }
  stopifnot(says(cuda_record_memory_history("some"), "enabled is"), says(cuda_record_memory_history("all", max_entries = 0), "at least one"))
}))

behaves("the sizes of a layer are whole numbers that it can have", local({
  stopifnot(says(nn_linear("a", 2), "in_features is a whole number of at least 0, not a"), says(nn_linear(2, -1), "out_features"))
  stopifnot(says(nn_conv2d(3, 4, 0), "kernel_size is a whole number of at least 1, not 0"), says(nn_conv1d(1.5, 2, 3), "in_channels"))
  stopifnot(says(nn_embedding(NA, 3), "num_embeddings"), says(nn_lstm(2, 0), "hidden_size"), says(nn_bilinear(1, 0, 2), "in2_features"))
}))

behaves("what libtorch says of positions counts from one", local({
  stopifnot(says(torch_take(torch_ones(3), torch_tensor(4L)), "index 4 on a tensor of 3"))
  stopifnot(says(torch_narrow(torch_ones(3), 1, 2, 5), "start (2) + length (5)"))
  stopifnot(says(torch_stack(list(torch_ones(2), torch_ones(3))), "[2] at entry 1 and [3] at entry 2"))
  stopifnot(says(torch_kthvalue(torch_ones(3), 4), "out of range for dimension 1"))
  stopifnot(says(torch_einsum("ij,jk->ik", list(torch_ones(2, 3), torch_ones(2, 3))), "for operand 2"))
}))

behaves("whole numbers print with all of their digits, and long vectors are cut", local({
  printed <- function(x, ...) utils::capture.output(print(x, ...))
  stopifnot(printed(torch_tensor(100000L))[2] == "[1] 100000", printed(torch_tensor(1234567890123)$to(dtype = torch_int64()))[2] == "[1] 1234567954432")
  long <- torch_arange(1, 1000)
  stopifnot(length(printed(long)) == 32, length(printed(long, n = 5)) == 7, grepl("1,000 elements", printed(long, n = 5)[7]))
  stopifnot(!any(grepl("more", printed(long, n = Inf))), identical(printed(long, n = -1), printed(long, n = Inf)))
}))

behaves("saveRDS writes tensors, modules, traced functions and generators", local({
  there_and_back <- function(x) {
    path <- tempfile(fileext = ".rds")
    saveRDS(x, path)
    readRDS(path)
  }
  net <- nn_sequential(nn_linear(2, 3), nn_batch_norm1d(3))
  net(torch_randn(4, 2))
  again <- there_and_back(net)
  for (each in list(net, again)) each$eval()
  x <- torch_randn(4, 2)
  stopifnot(isTRUE(all.equal(again(x), net(x))), all(vapply(again$parameters, function(p) p$requires_grad, TRUE)))
  stopifnot(identical(names(again$state_dict()), names(net$state_dict())), is_nn_parameter(again$parameters[[1]]))
  shared <- there_and_back(list(a = x, b = x))
  shared$a$add_(1)
  stopifnot(as_array(shared$b) == as_array(x + 1), identical(class(there_and_back(nn_buffer(x))), class(nn_buffer(x))))
  generator <- torch_generator(7L)
  torch_randn(3, generator = generator)
  other <- there_and_back(generator)
  stopifnot(as_array(torch_randn(2, generator = generator)) == as_array(torch_randn(2, generator = other)))
  stopifnot(as_array(there_and_back(jit_trace(nnf_relu, torch_ones(1)))(torch_tensor(c(-1, 2)))) == c(0, 2))
  closed <- torch_ones(1)
  close(closed)
  stopifnot(says(there_and_back(closed) + 1, "was closed"), says(unserialize(serialize(x, NULL, version = 2)) + 1, "another session"))
  sparse <- torch_sparse_coo_tensor(torch_tensor(matrix(1:2, 1)), torch_ones(2))
  stopifnot(says(there_and_back(sparse), "sparse tensor cannot be saved"), says(there_and_back(torch_ones(1, device = "meta")), "meta tensor"))
  stopifnot(identical(attr(torch_load(torch_serialize(nn_buffer(x, persistent = FALSE))), "persistent"), FALSE))
}))

behaves("attention has a learned key and value, and zeros, where that is said", local({
  x <- torch_randn(5, 2, 4)
  layer <- nn_multihead_attention(4, 2, 0, TRUE, TRUE, TRUE)
  found <- layer(x, x, x)
  stopifnot(dim(found[[1]]) == c(5, 2, 4), dim(found[[2]]) == c(2, 5, 7))
  stopifnot(c("bias_k", "bias_v") %in% names(layer$state_dict()), says(nn_multihead_attention(4, 0), "num_heads is a whole number"))
  again <- nn_multihead_attention(4, 2)
  stopifnot(dim(again(x, x, x)[[2]]) == c(2, 5, 5), !"bias_k" %in% names(again$state_dict()))
  layer$bias_k$requires_grad_(TRUE)
  found[[1]]$sum()$backward()
  stopifnot(!is.null(layer$bias_v$grad))
}))

behaves("a schedule goes on after the step that it is told", local({
  rates <- function(last_epoch, steps) {
    optimizer <- optim_sgd(list(torch_ones(1, requires_grad = TRUE)), lr = 1)
    schedule <- lr_step(optimizer, step_size = 2, gamma = 0.1, last_epoch = last_epoch)
    c(schedule$get_last_lr(), vapply(seq_len(steps), function(i) {
      schedule$step()
      schedule$get_last_lr()
    }, 0))
  }
  stopifnot(all.equal(rates(-1, 5), c(1, 1, 0.1, 0.1, 0.01, 0.01)), all.equal(rates(2, 2), c(0.1, 0.01, 0.01)))
  stopifnot(says(rates("a", 1), "last_epoch is -1"))
}))

behaves("odd numbers are told of in R's words", local({
  x <- torch_tensor(c(1, 2))
  stopifnot(says(x + NA, "NA cannot be an element of a tensor"), all(is.nan(as_array(x + NA_real_))))
  stopifnot(says(torch_tensor(NaN, dtype = torch_long()), "element 1, NaN,"), says(x[Inf], "index Inf is out"))
  stopifnot(says(torch_sum(torch_ones(2, 2), c(1, 1)), "dim 1 appears multiple times"))
  stopifnot(says(nn_dropout(NA), "between 0 and 1, not NA"), says(torch_manual_seed(2^60), "beyond 2^53"))
  stopifnot(says(torch_zeros(-Inf), "-Inf is no whole number"))
  stopifnot(says(nn_lstm(2, 3)(torch_randn(4, 1, 3)), "nn_lstm takes elements of 2 numbers (input_size), not of 3"))
}))
