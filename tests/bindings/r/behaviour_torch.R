# More that users of R's torch package expect of it, one sentence each; a piece of code that stops breaks one.
library(tenfold)

behaves <- function(sentence, code) {
  told <- tryCatch({
    force(code)
    "fine"
  }, error = function(e) gsub("\n", " ", paste(class(e)[1], conditionMessage(e))))
  cat(sentence, "\t", told, "\n", sep = "")
}

refused <- function(code) tryCatch(code, error = conditionMessage)
warned <- function(code) tryCatch({ code; "" }, warning = conditionMessage)

behaves("negative positions count from the end", local({
  x <- torch_arange(1L, 10L)
  stopifnot(x[-1]$item() == 10, as_array(x[-2:10]) == 9:10, as_array(x[2:-1]) == 2:10, as_array(x[c(-1, -2)]) == c(10, 9))
  stopifnot(refused(x[0]) == "Indexing starts at 1 but found a 0.", refused(x[11]) == "index 11 is out of bounds for dimension 1 with size 10")
}))

behaves("NULL adds a dimension and lists are spliced into indices", local({
  x <- torch_randn(3, 4)
  stopifnot(dim(x[NULL, , NULL]) == c(1, 3, 1, 4), x[!!!list(2, 3)]$item() == x[2, 3]$item())
}))

behaves("traced functions take and give nested lists and named lists", local({
  f <- jit_trace(function(x) list(a = x$p + x$q[[1]], b = list(x$p)), list(p = torch_ones(2), q = list(torch_ones(2))), strict = FALSE)
  found <- f(list(p = torch_ones(2), q = list(torch_ones(2) * 2)))
  stopifnot(as_array(found$a) == 3, as_array(found$b[[1]]) == 1)
}))

behaves("lists of tensors and tuples go into a trace as they are", local({
  x <- list(torch_tensor(1), torch_tensor(2))
  stopifnot(as_array(jit_trace(function(x) torch_stack(x), x)(x)) == c(1, 2))
  f <- jit_trace(function(x) jit_tuple(list(x$s, x$t)), jit_tuple(list(s = x[[1]], t = x[[2]])))
  stopifnot(identical(vapply(f(jit_tuple(x)), as.numeric, 0), c(1, 2)), is.character(refused(f(x))))
}))

behaves("a traced module has the parameters, buffers and parts of the module", local({
  net <- nn_sequential(nn_linear(2, 3), nn_batch_norm1d(3))
  traced <- jit_trace_module(net, forward = torch_randn(4, 2))
  stopifnot(length(traced$parameters) == 4, length(traced$buffers) == 3, length(traced$modules) == 3)
  with_no_grad(net[[1]]$weight$fill_(0))
  stopifnot(all(as_array(traced$parameters[[1]]) == 0), grepl("are not traced", refused(traced$modules[[2]](torch_ones(1, 2)))))
}))

behaves("a traced module follows the mode that it is set to", local({
  net <- nn_module(initialize = function() NULL, forward = function(x) if (self$training) x * 2 else x * 3)()
  traced <- jit_trace(net, torch_ones(1))
  stopifnot(traced(torch_ones(1))$item() == 2, traced$eval()(torch_ones(1))$item() == 3)
  one <- jit_trace(net, torch_ones(1), respect_mode = FALSE)
  stopifnot(one$eval()(torch_ones(1))$item() == 2)
}))

behaves("workers of a loader make batches in their own processes", local({
  numbers <- dataset(initialize = function() {}, .length = function() 4, .getitem = function(i) list(i = i, pid = Sys.getpid(), x = torch_ones(2) * i))
  next_batch <- dataloader_make_iter(dataloader(numbers(), batch_size = 2, num_workers = 2))
  first <- next_batch()
  second <- next_batch()
  stopifnot(as_array(first$i) == 1:2, as_array(second$x)[2, ] == 4, !Sys.getpid() %in% c(as_array(first$pid), as_array(second$pid)))
  stopifnot(first$pid[1]$item() != second$pid[1]$item(), identical(next_batch(), exhausted()))
}))

behaves("an error of a worker is the loader's", local({
  broken <- dataset(initialize = function() {}, .length = function() 2, .getitem = function(i) stop("number 5567"))
  told <- tryCatch(dataloader_next(dataloader_make_iter(dataloader(broken(), num_workers = 1))), error = identity)
  stopifnot(inherits(told, "runtime_error"), grepl("5567", conditionMessage(told)))
}))

behaves("iterable datasets are of unknown length, and batches of theirs are made", local({
  counted <- iterable_dataset(initialize = function(n) self$n <- n, .iter = function() {
    i <- 0
    function() { i <<- i + 1; if (i <= self$n) i else exhausted() }
  })
  loader <- dataloader(counted(5), batch_size = 2)
  sizes <- c()
  loop(for (batch in loader) sizes <- c(sizes, length(batch)))
  stopifnot(sizes == c(2, 2, 1), is.na(length(loader)))
}))

behaves("whole numbers of a range include its end, whatever their type", local({
  stopifnot(length(torch_arange(1, 10, dtype = torch_int64())) == 10, length(torch_arange(10L)) == 10, nzchar(warned(torch_range(1, 2))))
}))

behaves("sparse tensors are made, told apart and made dense again", local({
  x <- torch_sparse_coo_tensor(rbind(c(1, 2), c(2, 3)), c(3, 4), size = c(3, 3))
  stopifnot(x$is_sparse(), as_array(x$to_dense())[2, 3] == 4, as_array(x$coalesce()$indices())[1, ] == c(1, 2))
  stopifnot(grepl("Sparse tensors", refused(as_array(x))), torch_eye(3)$to_sparse_csr()$is_sparse_csr())
  stopifnot(all(dim(head(x, 2)$to_dense()) == c(2, 3)))
}))

behaves("quantized tensors come back as numbers", local({
  x <- torch_quantize_per_tensor(torch_tensor(c(-1, 0, 1, 2)), 0.1, 10, torch_quint8())
  stopifnot(x$is_quantized(), all.equal(as_array(x$dequantize()), c(-1, 0, 1, 2), tolerance = 1e-6))
}))

behaves("attention draws its first weights as Python does", local({
  torch_manual_seed(1)
  attention <- nn_multihead_attention(2, 1)
  stopifnot(all.equal(as_array(attention$in_proj_weight[1, ]), c(-0.1782, 0.4406), tolerance = 1e-3))
}))

behaves("layers of recurrent networks count from one, and Python's are loaded", local({
  gru <- nn_gru(2, 3, num_layers = 2)
  stopifnot(gru$mode == "GRU", all(dim(gru$weight_ih_l1) == c(9, 2)), all(dim(gru$weight_ih_l2) == c(9, 3)))
  state <- gru$state_dict()
  names(state) <- sub("l1$", "l0", names(state))
  names(state) <- sub("l2$", "l1", names(state))
  state$weight_ih_l0 <- state$weight_ih_l0 * 0
  gru$load_state_dict(state)
  stopifnot(all(as_array(gru$weight_ih_l1) == 0))
}))

behaves("parameters and buffers are classes that clones keep", local({
  stopifnot(inherits(nn_parameter(torch_ones(1))$detach(), "nn_parameter"), inherits(nn_buffer(torch_ones(1))$clone(), "nn_buffer"))
  stopifnot(nn_linear(1, 1)$state_dict()$weight$requires_grad)
}))

behaves("weight norm splits a weight and puts it together again", local({
  layer <- nn_linear(3, 2)
  before <- as_array(layer$weight)
  norm <- nn_utils_weight_norm$new("weight", 2)
  norm$apply(layer)
  stopifnot(all(dim(layer$weight_g) == c(1, 3)), all.equal(as_array(layer$weight), before, tolerance = 1e-6))
  norm$remove(layer)
  stopifnot(all.equal(as_array(layer$weight), before, tolerance = 1e-6), is.null(layer$parameters$weight_v))
}))

behaves("tensors are compared within what their type can tell apart", local({
  stopifnot(isTRUE(all.equal(torch_tensor(1), torch_tensor(1 + 1e-7))), !isTRUE(all.equal(torch_tensor(1), torch_tensor(1.01))))
}))

behaves("norms have a type, and lists of arrays are lists of tensors", local({
  stopifnot(torch_norm(torch_ones(2, 3), dim = 2, dtype = torch_float64())$dtype == torch_float64())
  stopifnot(all(dim(torch_stack(list(matrix(1:4, 2), matrix(1:4, 2)))) == c(2, 2, 2)), torch_ones(2, requires_grad = TRUE)$mean()$grad_fn$name == "MeanBackward0")
}))

behaves("generators tell and take seeds", local({
  generator <- torch_generator()
  generator$set_current_seed(12345678L)
  stopifnot(as.character(generator$current_seed()) == "12345678")
}))

behaves("an ignored class counts from one", local({
  scores <- torch_eye(3) * 10
  target <- torch_tensor(rep(3L, 3))
  stopifnot(is.nan(nnf_cross_entropy(scores, target, ignore_index = 3)$item()), grepl("1 based", refused(nnf_cross_entropy(scores, target, ignore_index = 0))))
}))

behaves("the functions of gradients lead to those before them", local({
  x <- torch_ones(2, requires_grad = TRUE)
  sum <- (x * x)$sum()$grad_fn
  product <- sum$next_functions[[1]]
  stopifnot(sum$name == "SumBackward0", product$name == "MulBackward0", length(product$next_functions) == 2)
  stopifnot(length(product$next_functions[[1]]$next_functions) == 0)
}))

behaves("a function with a gradient of its own may write into an input", local({
  doubled <- autograd_function(
    forward = function(ctx, a, b) {
      ctx$mark_dirty(a)
      list(a$add_(b), b + 2)
    },
    backward = function(ctx, ga, gb) list(a = ga, b = 3 * ga + gb)
  )
  x <- torch_tensor(2)
  y <- torch_tensor(3, requires_grad = TRUE)
  first <- doubled(x, y)[[1]]
  stopifnot(as.numeric(x) == 5, x$requires_grad, as.numeric(first) == 5)
  (x * 2)$backward()
  stopifnot(as.numeric(y$grad) == 6, grepl("leaf", refused(doubled(y, y))))
}))

behaves("a kind of scheduler of one's own says its rates", local({
  halving <- lr_scheduler("halving", get_lr = function() self$base_lrs / 2^self$last_epoch)
  scaled <- lr_scheduler("scaled", inherit = halving, initialize = function(optimizer, factor, ...) {
    self$factor <- factor
    super$initialize(optimizer, ...)
  }, get_lr = function() super$get_lr() * self$factor)
  optimizer <- optim_sgd(list(torch_ones(1, requires_grad = TRUE)), lr = 1)
  scheduler <- scaled(optimizer, 3)
  scheduler$step()
  stopifnot(optimizer$param_groups[[1]]$lr == 1.5, scheduler$state_dict()$last_epoch == 1, inherits(scheduler, "halving"))
}))

behaves("operators by name take the overload that fits", local({
  out <- torch_zeros(2, 2)
  jit_ops$aten$matmul(torch_ones(2, 2), torch_eye(2), out)
  stopifnot(all(as_array(out) == 1), length(jit_ops$aten$split(torch_arange(0, 3), jit_scalar(2L), jit_scalar(0L))) == 2)
  stopifnot(grepl("has no operator", refused(jit_ops$aten$nothing(1))), grepl("cannot be multiplied", refused(jit_ops$aten$matmul(torch_ones(2, 3), torch_ones(2, 3)))))
}))

behaves("named dimensions are refused in words", local({
  stopifnot(grepl("no named dimensions", refused(torch_zeros(2, names = "rows"))), torch_device("mps")$type == "mps")
}))

behaves("defaults are those of the schemas, as R writes them", local({
  stopifnot(identical(formals(torch_add)$alpha, 1L), identical(eval(formals(torch_conv2d)$stride), c(1L, 1L)), formals(torch_flatten)$start_dim == 1)
}))

behaves("attention is a function of its weights", local({
  layer <- nn_multihead_attention(4, 2)
  x <- torch_randn(3, 2, 4)
  attend <- function(...) nnf_multi_head_attention_forward(
    x, x, x, 4, 2, layer$in_proj_weight, layer$in_proj_bias, ..., layer$out_proj$weight, layer$out_proj$bias)
  stopifnot(torch_allclose(attend(NULL, NULL, FALSE, 0)[[1]], layer(x, x, x)[[1]]))
  stopifnot(all(dim(attend(torch_randn(1, 1, 4), torch_randn(1, 1, 4), TRUE, 0)[[2]]) == c(2, 3, 5)))
}))

behaves("kinds of optimizers that wrap libtorch's are derived from OptimizerIgnite", local({
  kind <- optimizer_ignite("mine", initialize = function(params, lr = 0.1) super$initialize(params, list(lr = lr)),
    private = list(.optim = function(params, ...) optim_ignite_sgd(params, ...), .assert_params = function(lr) if (lr < 0) stop("a negative lr")))
  w <- torch_tensor(c(1, 2), requires_grad = TRUE)
  v <- torch_tensor(5, requires_grad = TRUE)
  o <- kind(list(list(params = list(w)), list(params = list(v), lr = 1)), lr = 0.5)
  stopifnot(inherits(o, c("mine", "optim_ignite", "OptimizerIgnite"), which = TRUE) == 1:3, is_optimizer(o))
  ((w^2)$sum() + (v^2)$sum())$backward()
  o$step()
  stopifnot(as_array(w) == c(0, 0), v$item() == -5)
  lr_step(o, step_size = 1, gamma = 0.1)$step()
  stopifnot(all.equal(vapply(o$param_groups, function(group) group$lr, 0), c(0.05, 0.1)))
  o$load_state_dict(o$state_dict())
  stopifnot(refused(kind(list(w), lr = -1)) == "a negative lr")
  stopifnot(grepl("abstract", tryCatch(OptimizerIgnite(list(w), list()), error = conditionMessage)))
}))

behaves("what libtorch was built with can be asked, and CUDA's figures are errors without it", local({
  stopifnot(is.logical(c(backends_mkl_is_available(), backends_mkldnn_is_available(), backends_openmp_is_available())))
  if (!cuda_is_available()) {
    asked <- list(cuda_memory_stats, cuda_memory_summary, cuda_runtime_version, backends_cudnn_version, cuda_get_device_capability)
    for (f in asked) stopifnot(grepl("CUDA", tryCatch(f(), runtime_error = conditionMessage)))
  }
}))

behaves("a product is computed where a sparse matrix has elements", local({
  mask <- torch_tensor(matrix(c(1, 0, 2, 0, 3, 0), 2))$to_sparse_csr()
  found <- torch_sparse_sampled_addmm(mask, torch_ones(2, 4), torch_ones(4, 3), beta = 2, alpha = 0.5)
  stopifnot(as_array(found$to_dense()) == rbind(c(4, 6, 8), 0))
}))

behaves("a number in a product is saved for one backward, as in PyTorch", local({
  for (f in list(function(x) 2 * x, function(x) x * 2, function(x) x / 2)) {
    x <- torch_tensor(2, requires_grad = TRUE)
    y <- f(x)
    y$backward(retain_graph = TRUE)
    y$backward()
    stopifnot(grepl("second time", tryCatch(y$backward(), error = conditionMessage)))
  }
  stopifnot((torch_tensor(1:2) * 2.5)$dtype == torch_float(), (2L * torch_tensor(1:2))$dtype == torch_int64())
}))

behaves("numbers that an integer type cannot hold are refused", local({
  for (make in list(function() torch_tensor(2^70, dtype = torch_int64()), function() torch_tensor(NaN, dtype = torch_int()),
                    function() torch_tensor(c(1, -1), dtype = torch_uint8()), function() torch_tensor(300L, dtype = torch_uint8()))) {
    stopifnot(grepl("does not fit in", tryCatch(make(), tenfold_error = conditionMessage)))
  }
  stopifnot(torch_tensor(1.5, dtype = torch_int64())$item() == 1, torch_tensor(255.9, dtype = torch_uint8())$item() == 255)
  stopifnot(grepl("not NA", tryCatch(dataloader(tensor_dataset(torch_ones(3)), batch_size = NA), tenfold_error = conditionMessage)))
}))

behaves("packages that train modules find their methods, and give them a context", local({
  kind <- nn_module("kind", forward = function(x) x * ctx$scale, loss = function() 1)
  child <- nn_module("child", inherit = kind, loss = function() super$loss() + ctx$scale, size = 3)
  stopifnot(names(child$public_methods) == "loss", child$public_fields$size == 3, child$classname == "child")
  stopifnot(is.function(child$get_inherit()$public_methods$forward))
  base <- child$get_inherit()$get_inherit()
  stopifnot(is.function(base$public_methods$initialize), is.null(base$get_inherit()))
  net <- child()
  at <- net$.__enclos_env__
  while (!is.null(at)) {
    at$ctx <- list(scale = 3)
    at <- at$super$.__enclos_env__
  }
  stopifnot(as_array(net(torch_ones(1))) == 3, net$loss() == 4)
}))

behaves("a loader is no list, and leaves samples of an iterable dataset in their order", local({
  samples <- tensor_dataset(torch_ones(4, 2))
  loader <- dataloader(samples, batch_size = 3)
  stopifnot(!is.list(loader), length(loader) == 2, loader$batch_size == 3, is.null(loader$nothing))
  stream <- iterable_dataset("stream", .iter = function() dataloader_make_iter(dataloader(samples)))()
  stopifnot(grepl("shuffle has no effect", warned(dataloader(stream, shuffle = TRUE))))
}))

behaves("tensors and modules take every argument of to()", local({
  x <- torch_ones(1, 2, 3, 3)
  stopifnot(x$to(dtype = torch_int(), non_blocking = TRUE)$dtype == torch_int32())
  stopifnot(x$to(memory_format = torch_channels_last_format())$stride() == c(18, 1, 6, 2))
  stopifnot(grepl("not given beside it", refused(x$to(dtype = torch_int(), other = x))))
  layer <- nn_batch_norm2d(2)$to(tensor = torch_ones(1, dtype = torch_double()), non_blocking = TRUE)
  stopifnot(layer$weight$dtype == torch_double(), layer$num_batches_tracked$dtype == torch_long())
  stopifnot(grepl("floats or complex numbers, not to int64", refused(layer$to(dtype = torch_long()))))
}))

behaves("random whole numbers are of the default type", local({
  stopifnot(torch_randint(1, 5, 3)$dtype == torch_float(), torch_randint(1, 5, 3, dtype = torch_long())$dtype == torch_long())
}))

behaves("layers keep their options in fields that may be changed", local({
  loss <- nn_cross_entropy_loss()
  stopifnot(loss$reduction == "mean", nn_leaky_relu(0.3)$negative_slope == 0.3, nn_multi_margin_loss()$margin == 1)
  loss$reduction <- "none"
  stopifnot(dim(loss(torch_randn(3, 2), torch_tensor(c(1L, 2L, 1L)))) == 3)
  stopifnot(as_array(nn_rrelu(0.5, 0.5)(torch_tensor(-1))) == -0.5)
}))

behaves("a method calls what every module has by super", local({
  net <- nn_module("net", inherit = nn_linear, initialize = function(...) {
    super$initialize(...)
    self$moved <- 0
  }, to = function(...) {
    self$moved <- self$moved + 1
    super$to(...)
  }, own = function() super$parameters$weight)(2, 1)
  net$to(dtype = torch_double())
  stopifnot(net$moved == 1, net$own()$dtype == torch_double(), length(net$state_dict()) == 2)
  alone <- nn_module("alone", initialize = function() super$initialize(), forward = function(x) x)()
  stopifnot(as_array(alone(torch_ones(1))) == 1)
}))

behaves("a random permutation is that of libtorch, of 0 to n - 1", local({
  stopifnot(sort(as.integer(torch_randperm(4))) == 0:3)
}))

behaves("clones share their tensors unless they are deep", local({
  kind <- nn_module("kind", initialize = function() {
    self$layer <- nn_linear(2, 1)
    self$name <- "first"
    private$count <- 1
  }, forward = function(x) self$layer(x), renamed = function(name) {
    self$name <- name
    private$count <- private$count + 1
    private$count
  }, private = list(count = NULL))
  net <- kind()
  shallow <- net$clone()
  deep <- clone_module(net, deep = TRUE)
  stopifnot(shallow$layer$weight$is_same(net$layer$weight), !deep$layer$weight$is_same(net$layer$weight))
  stopifnot(shallow$renamed("second") == 2, net$renamed("third") == 2, shallow$name == "second", net$name == "third")
  shallow$layer <- nn_linear(2, 3)
  shallow$eval()
  stopifnot(dim(net(torch_ones(1, 2))) == c(1, 1), dim(shallow(torch_ones(1, 2))) == c(1, 3), net$training)
  stopifnot(identical(class(shallow), class(net)), names(shallow$state_dict()) == names(net$state_dict()))
}))

behaves("arguments stand in the order of R's package torch", local({
  x <- torch_tensor(c(-1, 1))
  stopifnot(nnf_elu(x, 1, TRUE)$is_same(x), nnf_rrelu(x, 0.5, 0.5, FALSE, TRUE)$is_same(x))
  y <- torch_tensor(c(1, 2, 3))
  stopifnot(torch_trapz(y)$item() == 4, torch_trapz(y, 2)$item() == 8, torch_trapz(y, x = torch_tensor(c(0, 2, 3)))$item() == 5.5)
  stopifnot(length(torch_linspace(0, 1)) == 100, length(torch_logspace(0, 1)) == 100)
  stopifnot(torch_scalar_tensor(1, torch_double(), "cpu", TRUE)$requires_grad)
  weight <- torch_ones(3, 2)
  bags <- torch_tensor(matrix(1:4, 2) %% 3L + 1L)
  stopifnot(as_array(nnf_embedding_bag(bags, weight, NULL, NULL, 2, FALSE, "sum"))[1, 1] == 2)
  stopifnot(nn_embedding_bag(3, 2, NULL, 2, FALSE, "mean", FALSE, TRUE, NULL, weight)$weight$requires_grad)
  stopifnot(identical(utils::capture.output(print(torch_device("cuda:1"))), "torch_device(type='cuda', index=1) "))
}))

behaves("graphs of what is traced print as TorchScript does, and operators have names to complete", local({
  kind <- nn_module("my.net", initialize = function() self$layer <- nn_linear(2, 1), forward = function(x) self$layer(x))
  printed <- utils::capture.output(print(jit_trace(kind(), torch_ones(1, 2))$graph))
  stopifnot(grepl("^graph\\(%self : __torch__.my_net", printed[1]), any(grepl("aten::linear", printed)))
  stopifnot("aten" %in% names(jit_ops), "relu_" %in% .DollarNames(jit_ops$aten, "^relu"), jit_ops$aten$neg(torch_ones(1))$item() == -1)
}))

behaves("a module that moves nowhere keeps its parameters, and optimizers know them", local({
  layer <- nn_batch_norm1d(2)
  optimizer <- optim_sgd(layer$parameters, lr = 0.5)
  layer$to(device = "cpu")$to(dtype = torch_float())
  layer(torch_tensor(matrix(c(1, 2, 3, 4), 2)))$sum()$backward()
  optimizer$step()
  stopifnot(optimizer$param_groups[[1]]$params[[2]]$is_same(layer$bias), as_array(layer$bias) == -1)
  stopifnot(!layer$to(copy = TRUE)$bias$is_same(optimizer$param_groups[[1]]$params[[2]]))
}))

behaves("an optimizer steps the parameters that its groups are given, and keeps the states of the others", local({
  for (kind in list(optim_adam, optim_sgd, optim_adadelta, optim_ignite_adamw)) {
    kept <- torch_ones(1, requires_grad = TRUE)
    old <- torch_ones(1, requires_grad = TRUE)
    new <- torch_ones(1, requires_grad = TRUE)
    optimizer <- kind(list(kept, old), lr = 0.1)
    stepped <- function(...) {
      optimizer$zero_grad()
      for (each in list(...)) (each * each)$sum()$backward()
      optimizer$step()
    }
    stepped(kept, old)
    optimizer$param_groups <- lapply(optimizer$param_groups, function(group) {
      group$params <- list(kept, new)
      group
    })
    before <- as_array(old)
    stepped(kept, new)
    stopifnot(as_array(old) == before, as_array(new) < 1, length(optimizer$param_groups[[1]]$params) == 2)
    steps <- lapply(optimizer$state_dict()$state, function(state) as.numeric(state$step))
    if (length(unlist(steps))) stopifnot(unlist(steps) == c(2, 1))
  }
}))

behaves("layers keep their sizes and options in fields of the names of their arguments", local({
  conv <- nn_conv2d(2, 4, 3, stride = 2, padding = c(1, 0), dilation = 1, groups = 2)
  stopifnot(conv$in_channels == 2, conv$out_channels == 4, conv$kernel_size == c(3, 3), conv$stride == c(2, 2))
  conv$stride <- 1
  stopifnot(dim(conv(torch_ones(1, 2, 5, 5))) == c(1, 4, 5, 3))
  up <- nn_conv_transpose2d(2, 3, 3, stride = 2)
  stopifnot(up$transposed, up$output_padding == 0, dim(up(torch_ones(1, 2, 4, 4), output_size = c(10, 10))) == c(1, 3, 10, 10))
  stopifnot(nn_embedding(5, 3, padding_idx = 1)$num_embeddings == 5, nn_embedding_bag(5, 3)$embedding_dim == 3)
  stopifnot(nn_batch_norm2d(3)$num_features == 3, !nn_group_norm(1, 2, affine = FALSE)$affine)
  stopifnot(nn_layer_norm(c(2, 3))$normalized_shape == c(2, 3), nn_multihead_attention(4, 2)$head_dim == 2)
  pool <- nn_max_pool2d(2)
  pool$stride <- 1
  stopifnot(pool$kernel_size == 2, dim(pool(torch_ones(1, 1, 4, 4))) == c(1, 1, 3, 3), nn_upsample(2)$mode == "nearest")
  stopifnot(nn_unflatten(2, c(1, 2))$unflattened_size == c(1, 2), nn_adaptive_avg_pool1d(3)$output_size == 3)
  stopifnot(nn_pairwise_distance()$norm == 2, nn_bilinear(2, 3, 4)$in2_features == 3)
}))

behaves("kinds of modules have functions, and embeddings come from given vectors", local({
  kind <- nn_module("kind", initialize = function(size) self$size <- size)
  kind$small <- function() kind(1)
  stopifnot(kind$small()$size == 1, is.null(kind$large))
  bag <- nn_embedding_bag$from_pretrained(torch_eye(3), mode = "sum")
  stopifnot(!bag$weight$requires_grad, as_array(bag(torch_tensor(matrix(c(1L, 3L), 1)))) == c(1, 0, 1))
}))

behaves("sizes and strides may be lists, and quantized tensors show their integers", local({
  stopifnot(torch_empty_strided(list(2, 3), list(1, 2))$stride() == c(1, 2))
  integers <- torch_quantize_per_tensor(torch_tensor(c(-1, 0, 2)), 0.1, 10, torch_quint8())$int_repr()
  stopifnot(as_array(integers) == c(0, 10, 30))
}))
