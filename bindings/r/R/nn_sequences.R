# Layers over sequences: recurrent networks, attention, transformers.

new_recurrent <- function(name, gates, operator_of, has_cell = FALSE) {
  nn_module(
    name,
    initialize = function(input_size, hidden_size, num_layers = 1, nonlinearity = "tanh", bias = TRUE,
                          batch_first = FALSE, dropout = 0, bidirectional = FALSE) {
      operator_of(nonlinearity) # refuses what is none
      check_sizes(input_size = input_size, hidden_size = hidden_size, num_layers = num_layers)
      self$mode <- toupper(operator_of(nonlinearity))
      self$nonlinearity <- nonlinearity
      self$input_size <- input_size
      self$hidden_size <- hidden_size
      self$num_layers <- num_layers
      self$bias <- bias
      self$batch_first <- batch_first
      self$dropout <- dropout
      self$bidirectional <- bidirectional
      bound <- 1 / sqrt(hidden_size)
      for (layer in seq_len(num_layers)) for (suffix in c("", if (bidirectional) "_reverse")) {
        inputs <- if (layer == 1) input_size else hidden_size * (1 + bidirectional)
        part <- function(kind) paste0(kind, "_l", layer, suffix)
        self[[part("weight_ih")]] <- uniform_parameter(c(gates * hidden_size, inputs), bound)
        self[[part("weight_hh")]] <- uniform_parameter(c(gates * hidden_size, hidden_size), bound)
        if (bias) {
          self[[part("bias_ih")]] <- uniform_parameter(gates * hidden_size, bound)
          self[[part("bias_hh")]] <- uniform_parameter(gates * hidden_size, bound)
        }
      }
    },
    forward = function(input, hx = NULL) {
      packed <- is_packed_sequence(input)
      values <- if (packed) input$data else input
      if (!packed && length(dim(input)) != 3) refuse(name, " takes sequences of 3 dimensions, not of ", length(dim(input)))
      given <- dim(values)[length(dim(values))]
      if (given != parts$input_size) refuse(name, " takes elements of ", parts$input_size, " numbers (input_size), not of ", given)
      if (is.null(hx)) {
        batch <- if (packed) input$batch_sizes[1]$item() else dim(input)[if (parts$batch_first) 1 else 2]
        zeros <- torch_zeros(c(parts$num_layers * (1 + parts$bidirectional), batch, parts$hidden_size),
                             dtype = values$dtype, device = values$device)
        hx <- if (has_cell) list(zeros, zeros) else zeros
      } else if (packed) {
        hx <- in_order_of(hx, input$sorted_indices)
      }
      options <- list(unname(self$parameters), parts$bias, as.integer(parts$num_layers), as.numeric(parts$dropout),
                      parts$training, parts$bidirectional)
      operator <- operator_of(parts$nonlinearity)
      found <- if (packed) {
        do.call(tenfold_call, c(paste0("aten::", operator, ".data"), values, input$batch_sizes, list(hx), options))
      } else {
        do.call(paste0("torch_", operator), c(input, list(hx), options, parts$batch_first))
      }
      output <- if (packed) with_data(input, found[[1]]) else found[[1]]
      hidden <- if (has_cell) list(found[[2]], found[[3]]) else found[[2]]
      list(output, if (packed) in_order_of(hidden, input$unsorted_indices) else hidden)
    }
  )
}

nn_rnn <- new_recurrent("nn_rnn", 1, function(nonlinearity) {
  switch(nonlinearity, tanh = "rnn_tanh", relu = "rnn_relu", refuse("nonlinearity is 'tanh' or 'relu'"))
})

without_nonlinearity <- function(recurrent) {
  methods <- attr(recurrent, "layers")[[1]]
  initialize <- methods$initialize
  body(initialize) <- call("{", quote(nonlinearity <- NULL), body(initialize))
  formals(initialize)$nonlinearity <- NULL
  do.call(nn_module, c(list(attr(recurrent, "classname")), replace(methods, "initialize", list(initialize))))
}

nn_gru <- without_nonlinearity(new_recurrent("nn_gru", 3, function(...) "gru"))
nn_lstm <- without_nonlinearity(new_recurrent("nn_lstm", 4, function(...) "lstm", has_cell = TRUE))

nn_multihead_attention <- nn_module(
  "nn_multihead_attention",
  initialize = function(embed_dim, num_heads, dropout = 0, bias = TRUE, add_bias_kv = FALSE, add_zero_attn = FALSE,
                        kdim = NULL, vdim = NULL, batch_first = FALSE) {
    check_sizes(embed_dim = embed_dim, num_heads = num_heads)
    if (embed_dim %% num_heads != 0) refuse("embed_dim must be divisible by num_heads")
    keep(self, embed_dim = embed_dim, num_heads = num_heads, head_dim = embed_dim / num_heads, dropout = dropout,
         kdim = if (is.null(kdim)) embed_dim else kdim, vdim = if (is.null(vdim)) embed_dim else vdim,
         batch_first = batch_first, add_zero_attn = add_zero_attn)
    matrix_of <- function(columns, rows = embed_dim) nn_parameter(torch_empty(rows, columns))
    if (is.null(kdim) && is.null(vdim)) {
      self$in_proj_weight <- matrix_of(embed_dim, 3 * embed_dim)
    } else {
      self$q_proj_weight <- matrix_of(embed_dim)
      self$k_proj_weight <- matrix_of(if (is.null(kdim)) embed_dim else kdim)
      self$v_proj_weight <- matrix_of(if (is.null(vdim)) embed_dim else vdim)
    }
    if (bias) self$in_proj_bias <- nn_parameter(torch_zeros(3 * embed_dim))
    self$out_proj <- nn_linear(embed_dim, embed_dim, bias = bias)
    for (weight in list(self$in_proj_weight, self$q_proj_weight, self$k_proj_weight, self$v_proj_weight)) {
      if (!is.null(weight)) nn_init_xavier_uniform_(weight) # after out_proj, as Python draws its random numbers
    }
    if (bias) nn_init_zeros_(self$out_proj$bias)
    if (add_bias_kv) {
      self$bias_k <- nn_init_xavier_normal_(nn_parameter(torch_empty(1, 1, embed_dim)))
      self$bias_v <- nn_init_xavier_normal_(nn_parameter(torch_empty(1, 1, embed_dim)))
    }
  },
  forward = function(query, key, value, key_padding_mask = NULL, need_weights = TRUE, attn_mask = NULL,
                     avg_weights = TRUE) {
    nnf_multi_head_attention_forward(
      query, key, value, dim(parts$out_proj$weight)[1], parts$num_heads, parts$in_proj_weight, parts$in_proj_bias,
      parts$bias_k, parts$bias_v, parts$add_zero_attn, parts$dropout, parts$out_proj$weight, parts$out_proj$bias,
      parts$training, key_padding_mask, need_weights,
      attn_mask, avg_weights, is.null(parts$in_proj_weight), parts$q_proj_weight, parts$k_proj_weight, parts$v_proj_weight,
      batch_first = parts$batch_first
    )
  }
)

# Attention of several heads: what nn_multihead_attention computes with its weights.
nnf_multi_head_attention_forward <- function(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p,
    out_proj_weight, out_proj_bias, training = TRUE, key_padding_mask = NULL, need_weights = TRUE, attn_mask = NULL,
    avg_weights = TRUE, use_separate_proj_weight = FALSE, q_proj_weight = NULL, k_proj_weight = NULL, v_proj_weight = NULL,
    static_k = NULL, static_v = NULL, batch_first = FALSE) {
  size <- utils::tail(dim(query), 1)
  if (size != embed_dim_to_check) refuse("queries have ", size, " elements, not ", embed_dim_to_check)
  if (!is.null(static_k) || !is.null(static_v)) refuse("static_k and static_v are not known here: pass them as key and value")
  weights <- if (use_separate_proj_weight) list(q_proj_weight, k_proj_weight, v_proj_weight) else torch_chunk(in_proj_weight, 3, 1)
  biases <- if (is.null(in_proj_bias)) list(NULL, NULL, NULL) else torch_chunk(in_proj_bias, 3)
  given <- list(query, key, value)
  if (!batch_first) given <- lapply(given, torch_transpose, 1, 2)
  projected <- lapply(1:3, function(i) torch_linear(given[[i]], weights[[i]], biases[[i]]))
  more <- list(NULL, bias_k, bias_v) # one more place, which every query sees
  for (i in 2:3) {
    if (!is.null(more[[i]])) projected[[i]] <- torch_cat(list(projected[[i]], more[[i]]$expand(c(dim(query)[if (batch_first) 1 else 2], 1, -1))), 2)
    if (add_zero_attn) projected[[i]] <- nnf_pad(projected[[i]], c(0, 0, 0, 1))
  }
  # batch, head, place, element
  heads <- lapply(projected, function(x) torch_transpose(torch_unflatten(x, -1, c(num_heads, -1)), 2, 3))
  scores <- torch_matmul(heads[[1]] / sqrt(dim(heads[[1]])[4]), torch_transpose(heads[[2]], -2, -1))
  added <- c(0, dim(scores)[4] - dim(given[[2]])[2])
  widened <- function(mask) if (added[2] > 0) nnf_pad(mask, added) else mask
  if (!is.null(attn_mask)) {
    if (length(dim(attn_mask)) == 3) attn_mask <- torch_unflatten(attn_mask, 1, c(-1, num_heads))
    scores <- masked_scores(scores, widened(attn_mask))
  }
  if (!is.null(key_padding_mask)) {
    scores <- masked_scores(scores, torch_unsqueeze(torch_unsqueeze(widened(key_padding_mask), 2), 2))
  }
  attention <- nnf_dropout(torch_softmax(scores, -1), dropout_p, training)
  found <- torch_flatten(torch_transpose(torch_matmul(attention, heads[[3]]), 2, 3), 3)
  found <- torch_linear(found, out_proj_weight, out_proj_bias)
  if (!batch_first) found <- torch_transpose(found, 1, 2)
  list(found, if (need_weights) if (avg_weights) torch_mean(attention, 2) else attention)
}

# Scores without those that a mask of truths leaves out, or with those of a mask of numbers added.
masked_scores <- function(scores, mask) {
  if (mask$dtype == torch_bool()) torch_masked_fill(scores, mask, -Inf) else scores + mask
}

nn_transformer_encoder_layer <- nn_module(
  "nn_transformer_encoder_layer",
  initialize = function(d_model, nhead, dim_feedforward = 2048, dropout = 0.1, activation = "relu",
                        layer_norm_eps = 1e-5, batch_first = FALSE, norm_first = FALSE, bias = TRUE) {
    self$self_attn <- nn_multihead_attention(d_model, nhead, dropout = dropout, bias = bias, batch_first = batch_first)
    self$linear1 <- nn_linear(d_model, dim_feedforward, bias = bias)
    self$dropout <- nn_dropout(dropout)
    self$linear2 <- nn_linear(dim_feedforward, d_model, bias = bias)
    self$norm1 <- nn_layer_norm(d_model, eps = layer_norm_eps)
    self$norm2 <- nn_layer_norm(d_model, eps = layer_norm_eps)
    self$dropout1 <- nn_dropout(dropout)
    self$dropout2 <- nn_dropout(dropout)
    self$norm_first <- norm_first
    self$activation <- if (is.function(activation)) activation else
      switch(activation, relu = torch_relu, gelu = torch_gelu, refuse("activation is 'relu', 'gelu' or a function"))
  },
  forward = function(src, src_mask = NULL, src_key_padding_mask = NULL, is_causal = FALSE) {
    if (is_causal && is.null(src_mask)) {
      size <- dim(src)[if (parts$self_attn$batch_first) 2 else 1]
      src_mask <- torch_triu(torch_ones(size, size, dtype = torch_bool(), device = src$device), diagonal = 1)
    }
    attend <- function(x) {
      self$dropout1(self$self_attn(x, x, x, attn_mask = src_mask, key_padding_mask = src_key_padding_mask,
                                   need_weights = FALSE)[[1]])
    }
    feed <- function(x) self$dropout2(self$linear2(self$dropout(parts$activation(self$linear1(x)))))
    if (parts$norm_first) {
      x <- src + attend(self$norm1(src))
      x + feed(self$norm2(x))
    } else {
      x <- self$norm1(src + attend(src))
      self$norm2(x + feed(x))
    }
  }
)

nn_transformer_encoder <- nn_module(
  "nn_transformer_encoder",
  initialize = function(encoder_layer, num_layers, norm = NULL) {
    self$layers <- nn_module_list(lapply(seq_len(num_layers), function(i) clone_module(encoder_layer, deep = TRUE)))
    self$norm <- norm
  },
  forward = function(src, mask = NULL, src_key_padding_mask = NULL, is_causal = FALSE) {
    for (layer in children_of(self$layers)) src <- layer(src, mask, src_key_padding_mask, is_causal)
    if (is.null(parts$norm)) src else parts$norm(src)
  }
)
