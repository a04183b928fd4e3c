"""libtenfold from Python by ctypes alone: neither tenfold nor torch is imported.

python 07_ctypes.py $(tenfold capi flags --library)
"""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
Tensor, Count = ctypes.c_void_p, ctypes.c_int64
library.tn_error_message.restype = ctypes.c_char_p
library.tn_live_tensors.restype = Count
library.tn_tensor_print.argtypes = [Tensor, ctypes.c_char_p, Count]
library.tn_free.argtypes = [Tensor]


def bound(name, *types):
    """A function that returns a tensor, with its failure as an exception."""
    function = library[name]
    function.restype, function.argtypes = Tensor, types

    def call(*arguments):
        result = function(*arguments)
        if result is None:
            raise RuntimeError(library.tn_error_message().decode())
        return result

    return call


reshape = bound("tn_reshape", Tensor, ctypes.POINTER(Count), Count)
matmul = bound("tn_matmul", Tensor, Tensor)
ones = bound("tn_ones", ctypes.POINTER(Count), Count)


def show(tensor):
    buffer = ctypes.create_string_buffer(500)
    library.tn_tensor_print(tensor, buffer, len(buffer))
    print(buffer.value.decode())


a = ones((Count * 2)(2, 3), 2)
b = reshape(a, (Count * 2)(3, 2), 2)
c = matmul(a, b)
show(c)
try:
    matmul(c, b)
except RuntimeError as error:
    print(error)
for tensor in (a, b, c):
    library.tn_free(tensor)
print("live tensors:", library.tn_live_tensors())
sys.exit(library.tn_live_tensors() != 0)
