# nnf_*: functions of neural networks. Those whose name is an operator's are that operator.

nnf_linear <- function(input, weight, bias = NULL) .Call(C_op_linear, input, weight, bias)

nnf_dropout <- function(input, p = 0.5, training = TRUE) torch_dropout(input, p, training)

nnf_softmax <- function(input, dim, dtype = NULL) torch_softmax(input, dim, dtype)

nnf_log_softmax <- function(input, dim, dtype = NULL) torch_log_softmax(input, dim, dtype)

nnf_embedding <- function(input, weight, padding_idx = NULL) torch_embedding(weight, input, padding_idx)

nnf_one_hot <- function(tensor, num_classes = -1) torch_one_hot(tensor, num_classes)

nnf_mse_loss <- function(input, target, reduction = "mean") torch_mse_loss(input, target, reduction)

nnf_l1_loss <- function(input, target, reduction = "mean") torch_l1_loss(input, target, reduction)

nnf_smooth_l1_loss <- function(input, target, reduction = "mean", beta = 1) {
  torch_smooth_l1_loss(input, target, reduction, beta)
}

nnf_cross_entropy <- function(input, target, weight = NULL, ignore_index = -100, reduction = "mean",
                              label_smoothing = 0) {
  torch_cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)
}

nnf_nll_loss <- function(input, target, weight = NULL, ignore_index = -100, reduction = "mean") {
  torch_nll_loss_nd(input, target, weight, reduction, ignore_index)
}

nnf_binary_cross_entropy <- function(input, target, weight = NULL, reduction = "mean") {
  torch_binary_cross_entropy(input, target, weight, reduction)
}

nnf_binary_cross_entropy_with_logits <- function(input, target, weight = NULL, reduction = "mean", pos_weight = NULL) {
  torch_binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)
}

nnf_layer_norm <- function(input, normalized_shape, weight = NULL, bias = NULL, eps = 1e-5) {
  torch_layer_norm(input, normalized_shape, weight, bias, eps)
}

nnf_pad <- function(input, pad, mode = "constant", value = 0) torch_pad(input, pad, mode, value)

nnf_interpolate <- function(input, size = NULL, scale_factor = NULL, mode = "nearest", align_corners = NULL) {
  torch___interpolate(input, size, scale_factor, mode, align_corners)
}
