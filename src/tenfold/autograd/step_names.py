"""What the steps of a graph are called: as in PyTorch, by the op of ATen that its autograd knows, maybe
another than the one that was called."""

from __future__ import annotations

import re
from typing import Any

# Overloads whose gradient has a number other than 0: as many of the same name come before it.
_NUMBERS = {
    **dict.fromkeys(("sum.dim_IntList", "mean.dim", "max", "min", "prod.dim_int", "squeeze.dim"), 1),
    **dict.fromkeys(("pow.Tensor_Tensor", "clamp", "median.dim"), 1),
    "pow.Scalar": 2,
    "squeeze.dims": 2,
}

# Ops that are made of others: the last of those.
_KNOWN_AS = {
    "numpy_T": "permute",
    "mT": "transpose",
    "chunk": "split",
    "reshape": "view",
    "flatten": "view",
    "contiguous": "clone",
    "relu6": "hardtanh",
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), "convolution"),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), "convolution"),
    "max_pool2d": "max_pool2d_with_indices",
    "max_pool3d": "max_pool3d_with_indices",
    "batch_norm": "native_batch_norm",
    "layer_norm": "native_layer_norm",
    "group_norm": "native_group_norm",
    "cross_entropy_loss": "nll_loss",
    "nll_loss_nd": "nll_loss",
    "linalg_inv": "linalg_inv_ex",
    "inverse": "linalg_inv_ex",
    "det": "linalg_det",
    "dropout": "mul",
    "outer": "mul",
}


def step_name(signature: Any) -> str:
    """The name of the step that an op's gradient is."""
    overload = signature.row.text.partition("(")[0]
    name = overload.partition(".")[0]
    ranks = [each.rank for each in signature.types]
    if name == "matmul":
        name = {(2, 2): "mm", (2, 1): "mv", (1, 1): "dot"}.get((ranks[0], ranks[1]), "_unsafe_view")
    elif name == "linear":
        name = "view" if ranks[0] > 2 else "addmm" if len(ranks) > 2 else "mm"
    words = _KNOWN_AS.get(name, name).strip("_").split("_")
    joined = "".join(each[:1].upper() + each[1:] for each in words)
    camel = re.sub(r"\d[a-z]", lambda found: found[0].upper(), joined)
    return f"{camel}Backward{_NUMBERS.get(overload, 0)}"
