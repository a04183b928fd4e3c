"""Lowerings that call a C function by XLA's FFI."""

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn
from tenfold import flat
from tenfold.base.errors import UnsupportedError
from tenfold.ops.promote import to_float
from tenfold.ops.table import op

SOURCE = """
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
static ffi::Error Cube(float scale, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
    for (size_t i = 0; i < x.element_count(); i++) {
        float each = x.typed_data()[i];
        y->typed_data()[i] = scale * each * each * each;
    }
    return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(my_cube, Cube, ffi::Ffi::Bind().Attr<float>("scale")
    .Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "cube.cc").write_text(SOURCE)
    include = Path(importlib.util.find_spec("jaxlib").origin).parent / "include"
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{include}", "cube.cc", "-o", "libcube.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "libcube.so"))


@pytest.mark.slow
def test_a_c_function_is_an_op_with_gradients_batches_and_compiled_programs(library):
    tn.library.register_ffi_target("my_cube", library.my_cube)

    @op("ffilib::cube(Tensor self, float scale=1.0) -> Tensor", promote=to_float)
    @flat.differentiated(lambda ct, result, x, scale: (ct * 3 * scale * x * x,))
    def cube(x, scale):
        (result,) = flat.custom_call("my_cube", (x,), (x.type,), (("scale", f"{float(scale)!r} : f32"),))
        return result

    call = tn.ops.ffilib.cube
    x = tn.tensor([1.0, 2.0], requires_grad=True)
    assert call(x, 2.0).tolist() == [2, 16]
    call(x).sum().backward()
    assert x.grad.tolist() == [3, 12]
    rows = tn.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(tn.vmap(call)(rows).numpy(), rows.numpy() ** 3)
    assert tn.compile(lambda x: (call(x) + 1).sum())(tn.tensor([1.0, 2.0])).item() == 11


def test_a_c_function_that_nobody_registered_is_named():
    @op("ffilib::absent(Tensor self) -> Tensor")
    def absent(x):
        return flat.custom_call("no_such_function", (x,), (x.type,))[0]

    with pytest.raises(UnsupportedError, match="XLA knows no function 'no_such_function'"):
        tn.ops.ffilib.absent(tn.ones(2)).eval()
