"""StableHLO modules that are read may do what built ones do, and nothing else."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.mlir import portable

LAPACK = """module {{ func.func @main(%a: tensor<{n}x{n}x{dtype}>) -> tensor<{pivots}xi32> {{
  %0:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%a) {{api_version = 4 : i32, backend_config = {config},
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts =
      [dense<{order}> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>]}}
    : (tensor<{n}x{n}x{dtype}>) -> (tensor<{n}x{n}x{dtype}>, tensor<{pivots}xi32>, tensor<i32>)
  return %0#1 : tensor<{pivots}xi32>
}} }}"""
FITTING = {"n": 3, "pivots": 3, "dtype": "f32", "config": "{}", "order": "[0, 1]"}
VECTOR = "tensor<4xf32>"
BOUNDED = "tensor<?xf32, #stablehlo.bounds<4>>"


def module(body: str, *more: str, attributes: str = "") -> bytes:
    """A module whose `main` has this body, from %a to a tensor."""
    main = f"func.func @main(%a: {VECTOR} {attributes}) -> {VECTOR} {{ {body} }}"
    return f"module {{ {main} {' '.join(more)} }}".encode()


def calling(function: str) -> str:
    return f"%0 = call @{function}(%a) : ({VECTOR}) -> {VECTOR} return %0 : {VECTOR}"


def custom(target: str, options: str = "") -> bytes:
    call = f"%0 = stablehlo.custom_call @{target}(%a) {{{options}}} : ({VECTOR}) -> {VECTOR}"
    return module(f"{call} return %0 : {VECTOR}")


def sorting(comparison: str, *more: str) -> bytes:
    """A module that sorts by a comparison of %x and %y, whose result is %1."""
    return module(
        f'%0 = "stablehlo.sort"(%a) ({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>): {comparison} '
        "stablehlo.return %1 : tensor<i1> }) {dimension = 0 : i64, is_stable = false} "
        f": ({VECTOR}) -> {VECTOR} return %0 : {VECTOR}",
        *more,
    )


TRUE = "%1 = stablehlo.constant dense<true> : tensor<i1>"
RANDOM = """%2 = stablehlo.constant dense<> : tensor<0xi64>
  %3 = stablehlo.rng %x, %y, %2, distribution = UNIFORM
    : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
  %1 = stablehlo.compare LT, %3, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>"""
TOKEN = "%t = stablehlo.create_token : !stablehlo.token"
DOUBLING = [
    f"func.func private @f{i}(%a: {VECTOR}) -> {VECTOR} {{ "
    f"%0 = call @f{i + 1}(%a) : ({VECTOR}) -> {VECTOR} %1 = call @f{i + 1}(%0) : ({VECTOR}) -> {VECTOR} "
    f"return %1 : {VECTOR} }}"
    for i in range(40)
]
LAST = f"func.func private @f40(%a: {VECTOR}) -> {VECTOR} {{ return %a : {VECTOR} }}"
CHAIN = [
    f"func.func private @f{i}(%a: {VECTOR}) -> {VECTOR} {{ {calling(f'f{i + 1}')} }}" for i in range(2000)
]
END = f"func.func private @f2000(%a: {VECTOR}) -> {VECTOR} {{ return %a : {VECTOR} }}"
REFUSED = {
    "a callback": (
        custom("xla_ffi_python_cpu_callback", "api_version = 4 : i32"),
        "a function that is not part",
    ),
    "top k": (custom("TopK"), "calls 'TopK'"),
    "slice to dynamic": (custom("SliceToDynamic"), "a function that is not part"),
    "onednn": (custom("__onednn$matmul"), "a function that is not part"),
    "another lapack": (custom("lapack_sgesv_ffi"), "is not made for"),
    "few pivots": (LAPACK.format(**{**FITTING, "n": 300, "pivots": 1}).encode(), "is not made for"),
    "another dtype": (LAPACK.format(**{**FITTING, "dtype": "f64"}).encode(), "is not made for"),
    "other options": (LAPACK.format(**{**FITTING, "config": "{k = 1 : i32}"}).encode(), "is not made for"),
    "another layout": (LAPACK.format(**{**FITTING, "order": "[1, 0]"}).encode(), "is not made for"),
    "recursion": (module(calling("main")), "@main calls itself"),
    "mutual recursion": (
        module(calling("f0"), f"func.func private @f0(%a: {VECTOR}) -> {VECTOR} {{ {calling('main')} }}"),
        "calls itself",
    ),
    "no body": (module(calling("f"), f"func.func private @f({VECTOR}) -> {VECTOR}"), "is not in the file"),
    "doubling": (module(calling("f0"), *DOUBLING, LAST), "once its calls are inlined"),
    "a chain": (module(calling("f0"), *CHAIN, END), "nest over 500 deep"),
    "depth": (b"module {" * 20_000, "nest over 500 deep"),
    "deep types": (module(f"%0 = tensor.empty() : {'tuple<' * 10_000}"), "nest over 500 deep"),
    "infeed": (
        module(
            f'{TOKEN} %0:2 = "stablehlo.infeed"(%t) {{infeed_config = "", layout = [[0]]}} '
            f": (!stablehlo.token) -> ({VECTOR}, !stablehlo.token) return %0#0 : {VECTOR}"
        ),
        "exchanges data with the host",
    ),
    "outfeed": (
        module(
            f'{TOKEN} %0 = "stablehlo.outfeed"(%a, %t) {{outfeed_config = ""}} '
            f": ({VECTOR}, !stablehlo.token) -> !stablehlo.token return %a : {VECTOR}"
        ),
        "exchanges data with the host",
    ),
    "a collective": (
        module(
            '%0 = "stablehlo.collective_permute"(%a) '
            "{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} "
            f": ({VECTOR}) -> {VECTOR} return %0 : {VECTOR}"
        ),
        "speaks to other devices",
    ),
    "another dialect": (
        module(f"%0 = ub.poison : {VECTOR} return %0 : {VECTOR}"),
        "no op that a StableHLO module computes with",
    ),
    "a huge tensor": (
        module(
            f"%0 = stablehlo.iota dim = 0 : tensor<4611686018427387904xf64> return %a : {VECTOR}",
        ),
        "larger than any memory",
    ),
    "a size of its own": (
        module(
            "%s = stablehlo.constant dense<1000000> : tensor<i32> "
            f"%0 = stablehlo.set_dimension_size %a, %s, dim = 0 : ({VECTOR}, tensor<i32>) -> {VECTOR} "
            f"return %0 : {VECTOR}"
        ),
        "how much of a tensor's memory counts",
    ),
    "a bounded size": (
        module(
            "%s = stablehlo.constant dense<4> : tensor<1xi32> "
            f"%0 = stablehlo.dynamic_reshape %a, %s : ({VECTOR}, tensor<1xi32>) -> {BOUNDED} "
            f"%1 = stablehlo.convert %0 : ({BOUNDED}) -> {VECTOR} return %1 : {VECTOR}"
        ),
        "has an encoding",
    ),
    "a random order": (sorting(RANDOM), "the comparison of a sort has a stablehlo.rng"),
    "an order elsewhere": (
        sorting(
            "%1 = call @f() : () -> tensor<i1>",
            f"func.func private @f() -> tensor<i1> {{ {TRUE} return %1 : tensor<i1> }}",
        ),
        "the comparison of a sort has a func.call",
    ),
    "a transform of another length": (
        module(
            "%0 = stablehlo.complex %a, %a : tensor<4xcomplex<f32>> "
            "%1 = stablehlo.fft %0, type = FFT, length = [8] "
            ": (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> "
            f"%2 = stablehlo.real %1 : (tensor<4xcomplex<f32>>) -> {VECTOR} return %2 : {VECTOR}"
        ),
        r"of length \[8\] on a tensor<4xcomplex<f32>> is none",
    ),
    "main is a module": (b"module { module @main {} }", "no function"),
    "a function without a type": (b'module { "func.func"() ({}) {sym_name = "main"} : () -> () }', "module"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_module_that_does_more_than_compute_is_refused(name):
    data, told = REFUSED[name]
    with pytest.raises(tn.TenfoldError, match=told):
        portable.read(data)


def test_lapack_is_called_with_what_it_is_made_for():
    run = tn.load_stablehlo(LAPACK.format(**FITTING).encode())
    assert run(tn.eye(3)).tolist() == [1, 2, 3]


@pytest.mark.parametrize("attribute", ["tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"])
def test_a_module_that_was_read_does_not_take_the_memory_of_its_arguments(attribute):
    body = f"%0 = stablehlo.add %a, %a : {VECTOR} return %0 : {VECTOR}"
    run = tn.load_stablehlo(module(body, attributes=f"{{{attribute}}}"))
    x = tn.ones(4).eval()
    assert run(x).tolist() == [2] * 4
    assert x.tolist() == [1] * 4


def test_a_sort_by_what_is_no_order_keeps_to_its_array():
    """XLA's unstable sort takes such a comparison for an order, and runs off the end of the array."""
    run = tn.load_stablehlo(sorting(TRUE).replace(b"<4x", b"<100x"))
    assert sorted(run(tn.arange(100.0)).tolist()) == list(range(100))


def test_linear_algebra_that_jax_exported_runs():
    jax = pytest.importorskip("jax")
    function = jax.jit(
        lambda x: (
            jax.numpy.linalg.qr(x)[0],
            jax.numpy.linalg.eigh(x)[0],
            jax.numpy.linalg.svd(x)[1],
            jax.numpy.linalg.solve(x, x),
            jax.lax.top_k(x, 2)[0],
        ),
        donate_argnums=0,
    )
    exported = jax.export.export(function)(jax.ShapeDtypeStruct((3, 3), "float32"))
    x = tn.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
    q, values, singular, same, top = tn.load_stablehlo(exported.mlir_module_serialized)(x)
    assert tn.allclose(q @ q.T, tn.eye(3), atol=1e-6) and tn.allclose(same, tn.eye(3), atol=1e-6)
    assert tn.allclose(values, tn.linalg.eigvalsh(x), atol=1e-5)
    assert tn.allclose(singular, tn.linalg.svdvals(x), atol=1e-5)
    assert top[0].tolist() == [2, 1]
