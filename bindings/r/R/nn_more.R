# Layers and losses that few networks have: sparsemax, adaptive softmax, the area under the minimum of errors.

# The Euclidean projection of scores onto probabilities: many of them are 0.
nnf_contrib_sparsemax <- function(input, dim = -1) {
  sorted <- torch_sort(input, dim, descending = TRUE)[[1]]
  sums <- torch_cumsum(sorted, dim) - 1
  rank <- length(base::dim(input))
  at <- if (dim < 0) rank + 1 + dim else dim
  counts <- torch_reshape(torch_arange(1, base::dim(input)[at], dtype = input$dtype, device = input$device),
                          replace(rep(1, rank), at, -1))
  support <- torch_sum(torch_to(counts * sorted > sums, dtype = torch_int64()), at, keepdim = TRUE)
  threshold <- torch_gather(sums, at, support) / torch_to(support, dtype = input$dtype)
  torch_clamp(input - threshold, min = 0)
}

nn_contrib_sparsemax <- activation("nn_contrib_sparsemax", function(...) nnf_contrib_sparsemax(...), alist(dim = -1))

# The area under the minimum of false positives and false negatives, as a threshold moves over the predictions.
nnf_area_under_min_fpr_fnr <- function(input, target) {
  positive <- torch_flatten(torch_eq(target, torch_max(target)))
  scores <- torch_flatten(input)
  order <- torch_argsort(scores, descending = TRUE)
  truth <- torch_to(torch_index_select(positive, 1, order), dtype = scores$dtype)
  sorted <- torch_index_select(scores, 1, order)
  false_positive <- torch_cumsum(1 - truth, 1) / torch_clamp(torch_sum(1 - truth), min = 1)
  false_negative <- 1 - torch_cumsum(truth, 1) / torch_clamp(torch_sum(truth), min = 1)
  count <- length(sorted)
  if (count < 2) return(torch_sum(sorted) * 0)
  least <- torch_minimum(false_positive, false_negative)
  widths <- torch_narrow(sorted, 1, 1, count - 1) - torch_narrow(sorted, 1, 2, count - 1)
  torch_sum(widths * torch_detach(torch_narrow(least, 1, 1, count - 1)))
}

nn_aum_loss <- nn_module(c("nn_aum_loss", "nn_loss"), initialize = function() NULL,
                         forward = function(input, target) nnf_area_under_min_fpr_fnr(input, target))

# A softmax over many classes of which few are common: rare ones lie in clusters, each behind a class of the head.
nn_adaptive_log_softmax_with_loss <- nn_module(
  "nn_adaptive_log_softmax_with_loss",
  initialize = function(in_features, n_classes, cutoffs, div_value = 4, head_bias = FALSE) {
    if (is.unsorted(cutoffs, strictly = TRUE) || min(cutoffs) < 1 || max(cutoffs) >= n_classes) {
      refuse("cutoffs are classes in rising order, below n_classes")
    }
    keep(self, in_features = in_features, n_classes = n_classes, cutoffs = c(cutoffs, n_classes), div_value = div_value,
         head_bias = head_bias)
    self$head <- nn_linear(in_features, cutoffs[1] + length(cutoffs), bias = head_bias)
    self$tail <- nn_module_list(lapply(seq_along(cutoffs), function(i) {
      inner <- max(1, in_features %/% div_value^i)
      nn_sequential(nn_linear(in_features, inner, bias = FALSE), nn_linear(inner, self$cutoffs[i + 1] - self$cutoffs[i], bias = FALSE))
    }))
  },
  log_prob = function(input) {
    head <- nnf_log_softmax(parts$head(input), -1)
    common <- parts$cutoffs[1]
    rare <- lapply(seq_along(as.list(parts$tail)), function(i) {
      nnf_log_softmax(parts$tail[[i]](input), -1) + torch_narrow(head, -1, common + i, 1)
    })
    torch_cat(c(list(torch_narrow(head, -1, 1, common)), rare), -1)
  },
  predict = function(input) torch_argmax(self$log_prob(input), -1),
  forward = function(input, target) {
    output <- torch_squeeze(torch_gather(self$log_prob(input), -1, torch_unsqueeze(target, -1)), -1)
    list(output = output, loss = torch_neg(torch_mean(output)))
  }
)

# The valid vertices of each polygon around the origin, anti-clockwise from the x axis: nine positions, which count from 0
# as in the package torch. After the last vertex stands the first again, then a position that is not valid.
contrib_sort_vertices <- function(vertices, mask, num_valid) {
  if (length(dim(vertices)) != 4 || dim(vertices)[4] != 2) refuse("vertices have the shape [batch, polygons, vertices, 2]")
  if (dim(vertices)[3] < 9) refuse("vertices are 8 corners and at least one intersection, and here are ", dim(vertices)[3])
  angle <- torch_atan2(vertices[.., 2], vertices[.., 1])
  angle <- torch_where(angle < 0, angle + 2 * pi, angle)$masked_fill(mask$logical_not(), Inf)
  order <- torch_argsort(angle, dim = -1, stable = TRUE)
  corners <- torch_gather(vertices, 3, order$unsqueeze(-1)$expand(c(-1, -1, -1, 2)))[, , 1:8, ]
  count <- num_valid$to(dtype = torch_int64())$unsqueeze(-1)
  # Of two boxes that are the same each corner is there twice.
  twins <- (corners[, , seq(1, 7, 2), ] - corners[, , seq(2, 8, 2), ])$abs()$flatten(start_dim = 3)$amax(-1, keepdim = TRUE) < 1e-8
  twins <- twins$logical_and(count == 8)
  order <- torch_where(twins, torch_cat(list(order[, , seq(1, 7, 2)], order[, , 1:5]), 3), order[, , 1:9])
  count <- torch_where(twins, 4L, count)
  unused <- torch_argmin(mask[, , 9:N]$to(dtype = torch_int64()), dim = -1, keepdim = TRUE) + 8L
  place <- torch_arange(1, 9, dtype = torch_int64(), device = vertices$device)
  order <- torch_where(place == count + 1L, order[, , 1:1], order)
  order <- torch_where((place > count + 1L)$logical_or(count < 3), unused, order)
  (order - 1L)$to(dtype = torch_int32())
}
