"""Which ops autocast runs in which precision: PyTorch's choices for each type of device, by names of rows.

An op that PyTorch makes of others, where those are what it casts, stands here itself: a row is one op.
"""

from __future__ import annotations


def _names(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


_CONVOLUTIONS = """
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution
    _convolution _convolution_mode
"""
_PRODUCTS = """
    addbmm addmm baddbmm bmm chain_matmul einsum inner linalg_matmul linalg_multi_dot linalg_vecdot
    linear matmul mm prelu scaled_dot_product_attention
"""
_VECTORS = "addmv addr ger gru_cell lstm_cell mv outer rnn_relu_cell rnn_tanh_cell"
_LOSSES = """
    binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy_loss hinge_embedding_loss
    huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
    nll_loss nll_loss2d nll_loss_nd poisson_nll_loss smooth_l1_loss soft_margin_loss
    triplet_margin_loss
"""
_POOLS_AND_PADS = """
    adaptive_avg_pool3d _adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d fractional_max_pool2d
    fractional_max_pool3d grid_sampler max_unpool2d max_unpool3d reflection_pad1d reflection_pad2d
    replication_pad1d replication_pad2d replication_pad3d
"""
_TRANSFORMS = """
    fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2
    fft_irfftn fft_rfft fft_rfft2 fft_rfftn stft
"""
_LINEAR_ALGEBRA = """
    cholesky cholesky_inverse cholesky_solve geqrf inverse linalg_cholesky linalg_cholesky_ex
    linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product
    linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve linalg_svd
    linalg_svdvals linalg_tensorinv linalg_tensorsolve lu_solve orgqr ormqr pinverse qr svd trace
    triangular_solve
"""
_UPSAMPLINGS = """
    upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
    upsample_nearest3d upsample_trilinear3d _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d
"""
_POWERS = """
    acos arccos asin arcsin cosh erfinv exp expm1 log log10 log1p log2 logsumexp pow reciprocal rsqrt
    sinh softplus special_erfinv special_expm1 special_log1p special_logsumexp tan
"""
_NORMS = """
    cosine_similarity dist frobenius_norm group_norm layer_norm native_layer_norm nuclear_norm
    pairwise_distance pdist renorm rms_norm
"""
_JOINS = "cat column_stack concat concatenate dstack hstack row_stack stack vstack"

# In the lower precision.
LOWER = {
    "cpu": _names(_CONVOLUTIONS, _PRODUCTS, "tensordot"),
    "cuda": _names(_CONVOLUTIONS, _PRODUCTS, _VECTORS),
}

# In float32.
FULL = {
    "cpu": _names(
        *(_LOSSES, _POOLS_AND_PADS, _TRANSFORMS, _LINEAR_ALGEBRA),
        "binary_cross_entropy cdist ctc_loss nanquantile polar prod quantile view_as_complex",
    ),
    "cuda": _names(_LOSSES, _POWERS, _NORMS, _UPSAMPLINGS, "cdist"),
}

# With a result in float32, where no dtype is asked for.
FULL_RESULT = {
    "cpu": _names(),
    "cuda": _names(
        "cumprod cumsum linalg_matrix_norm linalg_vector_norm log_softmax norm prod softmax",
        "special_log_softmax special_softmax sum",
    ),
}

# In the widest precision among their arguments.
WIDEST = {
    "cpu": _names(_JOINS, "index_copy"),
    "cuda": _names(
        _JOINS,
        "addcdiv addcmul atan2 arctan2 bilinear cross dot grid_sampler index_put linalg_cross",
        "scatter_add tensordot vdot",
    ),
}
