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
    (T + "softmax", A, 1), (T + "matmul", A, B), (T + "matmul", A, A), (T + "matmul", (5, 2, 3), (1, 3, 4)),
    (T + "matmul", (3,), B), (T + "matmul", A, (3,)), (T + "dot", (3,), (3,)), (T + "dot", A, (3,)),
    (T + "transpose", (2, 3, 4), 0, -1), (T + "transpose", A, 0, 5), (T + "t", A), (T + "t", (3,)),
    (T + "svd", A), (T + "eig", SQUARE),
    *[(T + name, (2, 3, 4), 1, 0) for name in ("sum_dim", "mean_dim", "max_dim", "argmax")],
    *[(T + name, (2, 3, 4), -1, 1) for name in ("sum_dim", "mean_dim", "max_dim", "argmax")],
    (T + "sum_tensor", A), (T + "mean_tensor", A), (T + "sum_dim", A, 3, 0),
    (T + "reshape", A, [3, -1]), (T + "reshape", A, [4, -1]), (T + "view", A, [6]), (T + "view", A, [7]),
    (T + "permute", (2, 3, 4), [2, 0, -2]), (T + "permute", A, [0, 0]), (T + "squeeze", (1, 2, 1)),
    (T + "squeeze_dim", (1, 2, 1), -1), (T + "squeeze_dim", (1, 2), 1), (T + "unsqueeze", A, -1),
    (T + "unsqueeze", A, 1), (T + "flatten", (2, 3, 4)), (T + "slice", (9, 2), 0, 1, 8, 3),
    (T + "slice", (9, 2), 0, -4, 100, 1), (T + "index_select", A, 1, (5,)),
    (T + "cat", [(2, 3), (4, 3)], 0), (T + "cat", [(2, 3), (4, 2)], 0), (T + "stack", [(2, 3), (2, 3)], 1),
    ("nn_conv2d", IMAGE, WEIGHT, None, [2], [1, 0], [1], 1),
    ("nn_conv2d", IMAGE, (6, 2, 3, 3), None, [1], [0], [1], 1),
    ("nn_conv2d", IMAGE, WEIGHT, (6,), [1, 2], [1], [2], 1), ("nn_max_pool2d", IMAGE, [2], [], [0]),
    ("nn_avg_pool2d", IMAGE, [3, 2], [2], [1]), ("nn_dropout", A, 0.5, 0),
    ("nn_layer_norm", A, [3], None, None, 1e-5),
    ("nn_linear", (32, 128), (64, 128), (64,)), ("nn_linear", A, (4, 2), None),
    ("nn_embedding", (2, 5), (7, 3)),
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
