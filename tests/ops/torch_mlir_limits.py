"""What torch-mlir's own lowering to StableHLO cannot do, or does wrong: rows that the torch dialect defines
and that are verified in it, but whose numbers cannot be compared by that road. The tests fail where a name
no longer belongs here."""

from __future__ import annotations

# It has no lowering of these, crashes on them, or makes a module that XLA does not compile.
BEYOND = set(
    """
    __interpolate.size_list_scale_list __lshift__.Scalar __rshift__.Scalar
    _fake_quantize_per_tensor_affine_cachemask_tensor_qparams _scaled_mm _scaled_mm_v2 resize
    _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _adaptive_avg_pool3d_backward _embedding_bag
    _linalg_det _reshape_alias_copy _weight_norm_interface adaptive_avg_pool3d adaptive_max_pool3d
    alias_copy as_strided as_strided_copy as_strided_scatter avg_pool2d_backward avg_pool3d_backward
    binary_cross_entropy binary_cross_entropy_backward channel_shuffle clamp_max.Tensor col2im complex
    conv_tbc conv_tbc_backward convolution_backward cosine_embedding_loss cross_entropy_loss cumprod
    detach_copy diag diag_embed diagonal diagonal_copy diagonal_scatter div.Scalar_mode div.Tensor_mode
    elu_backward embedding_dense_backward empty.memory_format empty_like erfinv expand_copy
    fake_quantize_per_channel_affine fake_quantize_per_channel_affine_cachemask
    fake_quantize_per_tensor_affine.tensor_qparams fake_quantize_per_tensor_affine_cachemask fft_fft
    fft_ifft fft_rfft fill.Tensor fmod.Scalar hardtanh_backward im2col imag isclose kthvalue linalg_det
    linalg_norm linalg_qr linalg_slogdet log_sigmoid_backward log_sigmoid_forward logsumexp
    max_pool2d_with_indices_backward max_pool3d_with_indices max_pool3d_with_indices_backward
    max_unpool2d max_unpool3d meshgrid meshgrid.indexing mse_loss_backward multinomial
    native_batch_norm_backward native_dropout_backward native_group_norm_backward
    native_layer_norm_backward new_empty nll_loss2d_backward nll_loss2d_forward nll_loss_backward
    nll_loss_forward nonzero_static norm.Scalar permute_copy random random.from real reflection_pad2d
    reflection_pad3d replication_pad1d replication_pad2d replication_pad3d scatter.reduce
    scatter_reduce.two select_copy.int sigmoid_backward slice_copy.Tensor softplus_backward
    split_copy.Tensor split_with_sizes_copy squeeze_copy squeeze_copy.dim stft stft.center t_copy
    threshold_backward trace transpose_copy.int unbind_copy.int unfold unfold_copy unsqueeze_copy
    upsample_bilinear2d upsample_bilinear2d.vec upsample_nearest1d upsample_nearest1d.vec
    upsample_nearest2d upsample_nearest2d.vec upsample_nearest2d_backward view_as_complex view_as_real
    view_copy view_copy.dtype xlogy.Tensor
    """.split()  # noqa: SIM905
)

# It lowers these to something else than PyTorch computes, and we with it, on some of the samples.
WRONG = {
    "bucketize.Tensor": "boundaries that are not in order: it counts, where PyTorch searches",
    "hann_window.periodic": "a window of doubles is computed in floats",
    "index.Tensor": "negative indices are not counted from the end",
    "index.Tensor_hacked_twin": "negative indices are not counted from the end",
    "index_put": "negative indices are not counted from the end",
    "leaky_relu_backward": "what is negative is left out",
    "logit": "an eps above one half: it clamps from above last, PyTorch from below",
    "max_pool2d": "ceil_mode moves the windows",
    "max_pool3d": "ceil_mode moves the windows",
    "remainder.Scalar": "takes the sign of the dividend, as C does",
    "remainder.Tensor": "takes the sign of the dividend, as C does",
    "renorm": "a negative dimension",
    "roll": "shifts by more than the size",
    "rrelu_with_noise_backward": "what is negative is left out",
    "softshrink": "shrinks negative numbers the wrong way",
    "std": "nothing at all has a deviation of zero, not NaN",
    "std.dim": "nothing at all has a deviation of zero, not NaN",
    "var": "nothing at all has a variance of zero, not NaN",
    "var.dim": "nothing at all has a variance of zero, not NaN",
    "var_mean": "nothing at all has a variance of zero, not NaN",
    "var_mean.dim": "nothing at all has a variance of zero, not NaN",
}

# Calls of these leave no op in the Trace: they ask for a value, or give back the tensor that they are given.
ANSWERS = {"allclose", "equal", "is_nonzero"}
GIVEN_BACK = {"contiguous", "lift_fresh", "positive", "resolve_conj", "resolve_neg"}
NOT_RECORDED = ANSWERS | GIVEN_BACK
