"""Calls functions of libtenfold_rt and prints the shapes of what they give, for a test that compares a
process with libtorch and one without: `python -m tests.capi.rt_shapes LIBRARY`."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from tenfold.capi import rt

ROWS = {each.name.removeprefix(rt.PREFIX): each for each in rt.functions()}
T = "torchtensor_"
A, B, SQUARE, IMAGE, WEIGHT = [2, 3], [3, 4], [3, 3], [2, 3, 9, 8], [6, 3, 3, 2]
# Functions, with lists of sizes for tensors and everything else as it is. Some of these calls fail.
CALLS: list[tuple[Any, ...]] = [
    *[(f"tensor_{name}", [2, 3]) for name in ("zeros", "ones", "randn", "rand", "empty")],
    ("tensor_full", [4], 1.5), ("tensor_from_data", [1.0, 2.0], [2, 1]), ("tensor_from_data", [1.0], [2]),
    ("tensor_arange", 0.0, 5.0, 2.0), ("tensor_linspace", 0.0, 1.0, 7), ("tensor_eye", 3),
    *[(T + name, (2, 1, 3), (4, 1)) for name in ("add", "sub", "mul", "div")], (T + "add", (2, 3), (4,)),
    *[(T + name, A) for name in ("neg", "abs", "sqrt", "exp", "log", "relu", "sigmoid", "tanh", "gelu")],
    (T + "softmax", A, 1), (T + "softmax", A, 2), (T + "log_softmax", A, -3), (T + "softmax", (), -1),
    (T + "softmax", (), 1),
    (T + "matmul", A, B), (T + "matmul", A, A), (T + "matmul", (5, 2, 3), (1, 3, 4)),
    (T + "matmul", (3,), B), (T + "matmul", A, (3,)), (T + "dot", (3,), (3,)), (T + "dot", A, (3,)),
    (T + "transpose", (2, 3, 4), 0, -1), (T + "transpose", A, 0, 5), (T + "t", A), (T + "t", (3,)),
    (T + "svd", A), (T + "eig", SQUARE), (T + "eig", A), (T + "eig", (3,)), (T + "inverse", A),
    *[(T + "gather", A, 1, each) for each in [(2, 5), (1, 5), (3, 1), (3,), (0,)]],
    *[(T + "gather", A, 0, each) for each in [(4, 3), (2, 4)]],
    (T + "gather", A, 2, (2, 3)), (T + "gather", (), 0, (2,)), (T + "gather", (3,), 0, ()),
    *[(T + name, (2, 3, 4), 1, 0) for name in ("sum_dim", "mean_dim", "max_dim", "argmax")],
    *[(T + name, (2, 3, 4), -1, 1) for name in ("sum_dim", "mean_dim", "max_dim", "argmax")],
    (T + "sum_tensor", A), (T + "mean_tensor", A), (T + "sum_dim", A, 3, 0),
    (T + "reshape", A, [3, -1]), (T + "reshape", A, [4, -1]), (T + "view", A, [6]), (T + "view", A, [7]),
    (T + "permute", (2, 3, 4), [2, 0, -2]), (T + "permute", A, [0, 0]), (T + "squeeze", (1, 2, 1)),
    (T + "squeeze_dim", (1, 2, 1), -1), (T + "squeeze_dim", (1, 2), 1), (T + "unsqueeze", A, -1),
    (T + "unsqueeze", A, 1), (T + "flatten", (2, 3, 4)), (T + "slice", (9, 2), 0, 1, 8, 3),
    (T + "slice", (9, 2), 0, -4, 100, 1), (T + "index_select", A, 1, (5,)),
    (T + "cat", [(2, 3), (4, 3)], 0), (T + "cat", [(2, 3), (4, 2)], 0), (T + "stack", [(2, 3), (2, 3)], 1),
    (T + "stack", [(2, 3), (1, 3)], 0), (T + "stack", [(2, 3), (3,)], 0), (T + "stack", [(2, 3), (2, 3)], 3),
    (T + "stack", [(2, 3), (2, 3)], -1),
    ("nn_conv2d", IMAGE, WEIGHT, None, [2], [1, 0], [1], 1),
    ("nn_conv2d", IMAGE, (6, 2, 3, 3), None, [1], [0], [1], 1),
    ("nn_conv2d", IMAGE, WEIGHT, (6,), [1, 2], [1], [2], 1), ("nn_max_pool2d", IMAGE, [2], [], [0]),
    ("nn_avg_pool2d", IMAGE, [3, 2], [2], [1]), ("nn_dropout", A, 0.5, 0),
    ("nn_layer_norm", A, [3], None, None, 1e-5),
    ("nn_linear", (32, 128), (64, 128), (64,)), ("nn_linear", A, (4, 2), None),
    ("nn_embedding", (2, 5), (7, 3)),
    *[(T + "sum_dim", *given) for given in [((), 0, 0), ((), 1, 0), ((2, 0), 1, 1)]],
    *[(T + "max_dim", *given) for given in [((), 0, 0), ((), 1, 0), ((2, 0), 1, 1)]],
    (T + "argmax", (2, 0), 1, 0), (T + "max_tensor", (0,)), (T + "sum_tensor", (0,)),
    (T + "index_select", A, 1, (2, 2)), (T + "index_select", A, 2, (2,)), (T + "index_select", (), 0, (1,)),
    (T + "cat", [(2, 3), (0,)], 0), (T + "cat", [(0,), (2, 3)], 1), (T + "cat", [(), ()], 0),
    (T + "squeeze_dim", (), 0), (T + "transpose", (), 0, -1), (T + "t", (2, 3, 4)),
    (T + "det_tensor", A), (T + "det_tensor", (5, 3, 3)), (T + "eig", (5, 3, 3)), (T + "inverse", (3,)),
    *[("nn_layer_norm", A, *given, None, 1e-5) for given in [([2], None), ([3], (2,)), ([2, 3], (2, 3))]],
    *[("nn_batch_norm", *given, 1, 0.1, 1e-5) for given in [
        (A, None, None, None, None), (A, (2,), (2,), None, None), (A, None, None, (2,), None),
        (A, (3,), (3,), (3,), (3,)), ((3,), None, None, None, None)]],
    ("nn_batch_norm", A, None, None, None, None, 0, 0.1, 1e-5), ("nn_dropout", A, 1.5, 1),
    *[("nn_linear", A, (4, 3), bias) for bias in [(5,), (1,), (2, 1), (7, 2, 4)]],
    ("nn_linear", A, (3,), None), ("nn_linear", A, (3,), ()), ("nn_linear", A, (1, 4, 3), None),
    *[("nn_conv2d", IMAGE, WEIGHT, *given, 1) for given in [
        ((5,), [1], [0], [1]), ((1, 6), [1], [0], [1]), (None, [0], [0], [1]), (None, [1], [-1], [1]),
        (None, [1], [0], [0]), (None, [1, 1, 1], [0], [1]), (None, [], [], [])]],
    ("nn_conv2d", (2, 4, 9, 8), (5, 2, 3, 2), None, [1], [0], [1], 2),
    ("nn_conv2d", (2, 4, 9, 8), (6, 2, 3, 2), None, [1], [0], [1], 2),
    ("nn_conv2d", (1, *IMAGE), WEIGHT, None, [1], [0], [1], 1),
    *[("nn_max_pool2d", IMAGE, *given) for given in [([2], [], [2]), ([2, 2, 2], [], [0]), ([3], [], [])]],
    *[("nn_avg_pool2d", IMAGE, *given) for given in [([3], [], []), ([3], [1], [2]), ([2], [0], [0])]],
    ("nn_max_pool2d", (1, *IMAGE), [2], [], [0]),
    *[(f"nn_{name}_tensor", A, (4,)) for name in ("mse_loss", "binary_cross_entropy", "cross_entropy")],
    ("nn_cross_entropy_tensor", A, A), ("nn_cross_entropy_tensor", (3,), ()),
    ("nn_cross_entropy_tensor", (2, 3, 5), (2, 5)), ("nn_cross_entropy_tensor", (2, 3, 5), (2, 3)),
    ("nn_mse_loss_tensor", A, A), ("autograd_detach", A), (T + "clone", A),
]  # fmt: skip


class Shapes:
    """The library, called with tensors of given shapes."""

    def __init__(self, path: str):
        self.library = ctypes.CDLL(path)

    def call(self, name: str, *given: Any) -> Any:
        row, arguments = ROWS[name], []
        for type, value in zip(row.parameters.values(), given, strict=True):
            if type == "[tensor]":
                value = [self.tensor(each) for each in value]
            if type[0] == "[":
                kind = ctypes.c_double if type == "[f64]" else ctypes.c_int64
                arguments += [(kind * max(len(value), 1))(*value), ctypes.c_int64(len(value))]
            elif type in ("tensor", "tensor?", "index"):
                arguments.append(ctypes.c_int64(0 if value is None else self.tensor(value)))
            else:
                arguments.append(ctypes.c_double(value) if type == "f64" else ctypes.c_int64(value))
        function = getattr(self.library, row.name)
        function.restype = ctypes.c_int64
        return function(*arguments)

    def tensor(self, shape: Any) -> int:
        return int(self.call("tensor_zeros", list(shape)))

    def shape(self, handle: int) -> list[int] | None:
        if not handle:
            return None
        function, count = self.library.rt_torch_torchtensor_shape, ctypes.c_int64()
        function.restype = ctypes.POINTER(ctypes.c_int64)
        found = function(ctypes.c_int64(handle), ctypes.byref(count))
        return [found[i] for i in range(count.value)]


def main() -> None:
    shapes = Shapes(sys.argv[1])
    print(shapes.library.rt_torch_available())
    for name, *given in CALLS:
        print(name, given, shapes.shape(shapes.call(name, *given)))


if __name__ == "__main__":
    main()
