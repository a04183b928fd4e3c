"""Modules with open sizes: the same program at many sizes on XLA and IREE, what the types and the module say
of them, and programs and demands that are refused."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
import tenfold.nn.functional as F
from tenfold import Dim, nn


def array(tensor: tn.Tensor) -> np.ndarray:
    return tensor.detach().numpy()


def several(result) -> list[tn.Tensor]:
    if isinstance(result, (tuple, dict)):
        parts = result.values() if isinstance(result, dict) else result
        return [tensor for part in parts if part is not None for tensor in several(part)]
    doubles = tn.float64 if isinstance(result, float) else None
    return [result if isinstance(result, tn.Tensor) else tn.tensor(result, dtype=doubles)]


def perceptron():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3)).eval()


def attention(x):
    count, length, width = x.shape
    heads = x.view(count, length, 2, width // 2).transpose(1, 2)
    mixed = F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
    return mixed.transpose(1, 2).reshape(count, length, width)


def masked(x):
    length = x.shape[1]
    scores = x @ x.transpose(1, 2) / length**0.5
    seen = tn.ones(length, length, dtype=tn.bool).tril()
    return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ x


def images():
    layers = [nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers).eval()


def classifier():
    layers = [nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)]
    return nn.Sequential(*layers).eval()


def slices(x):
    n = x.shape[0]
    return x[1:], x[:-1], x[n // 2 :], x[::2], x.flip(0), tn.cat([x, x[:1]]), x.sum(0) / n, x.reshape(-1)


def made_from_sizes(x):
    n = x.shape[0]
    return tn.arange(n), tn.zeros(n, 2), F.pad(x, (1, 1, 2, 0)), x.repeat(2, 1), x.mean(0), x.std(0)


def recurrent():
    layer = nn.LSTM(4, 5)
    return lambda x: layer(x)[0]


def chooses(x):
    by_size = lambda x: x.sin() * x.shape[0]
    return tn.cond(x.sum() > 6, by_size, lambda x: x.cos() + tn.arange(x.shape[0])[:, None], (x,))


def repeats(x):
    inner = lambda i, y: (i - 1, tn.cond(y.max() > 2, lambda: y, lambda: y + x))
    return tn.while_loop(lambda i, y: i > 0, inner, (x.shape[0], x))


def numbers(x):
    x = 0.5 * x.shape[0] - x.shape[0] * x + x.shape[0] / (x + 1)
    return {"sum": x.cumsum(0), "size": x.shape[0], "half": x.shape[0] / 2, "fixed": x.ndim, "none": None}


# The function, the example's shape, what is open, other shapes, and the types of its results.
PROGRAMS = {
    "perceptron": (perceptron, (2, 4), {0: {0: "n"}}, [(1, 4), (7, 4)], "f32[n,3]"),
    "attention": (lambda: attention, (2, 5, 8), {0: {0: "b", 1: "l"}}, [(3, 4, 8), (1, 6, 8)], "f32[b,l,8]"),
    "masked": (lambda: masked, (2, 5, 8), {0: {0: "b", 1: "l"}}, [(1, 3, 8)], "f32[b,l,8]"),
    "images": (
        images,
        (2, 3, 32, 40),
        {0: {0: "b", 2: Dim("h", min=4), 3: Dim("w", min=4)}},
        [(1, 3, 17, 9), (3, 3, 16, 16), (2, 3, 4, 4)],
        "f32[b,4,(h+1)//4,(w+1)//4]",
    ),
    "classifier": (classifier, (2, 3, 9, 9), {0: {0: "b", 2: Dim("h", min=3)}}, [(1, 3, 17, 9)], "f32[b,2]"),
    "slices": (
        lambda: slices,
        (6, 3),
        {"x": {0: Dim("n", min=2)}},
        [(2, 3), (9, 3)],
        "f32[n-1,3] f32[n-1,3] f32[(n+1)//2,3] f32[(n+1)//2,3] f32[n,3] f32[n+1,3] f32[3] f32[n*3]",
    ),
    "made": (
        lambda: made_from_sizes,
        (6, 3),
        {"x": {0: Dim("n", min=2)}},
        [(4, 3), (9, 3)],
        "i64[n] f32[n,2] f32[n+2,5] f32[n*2,3] f32[3] f32[3]",
    ),
    "chooses": (lambda: chooses, (4, 3), {0: {0: "n"}}, [(2, 3), (9, 3)], "f32[n,3]"),
    "repeats": (lambda: repeats, (4, 3), {0: {0: "n"}}, [(1, 3), (5, 3)], "i64[] f32[n,3]"),
    "numbers": (lambda: numbers, (4, 3), {0: {0: "n"}}, [(1, 3), (5, 3)], "f32[n,3] i64[] f64[] i64[]"),
    "recurrent": (recurrent, (3, 2, 4), {0: {1: "b"}}, [(3, 1, 4), (3, 5, 4)], "f32[3,b,5]"),
}


@pytest.mark.parametrize("dialect", ["stablehlo", "torch"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_module_serves_all_sizes(name, dialect):
    tn.manual_seed(0)
    make, shape, dynamic, others, outputs = PROGRAMS[name]
    function = make()
    exported = tn.export(
        function, (tn.rand(*shape),), dialect=dialect, parameters="literals", dynamic=dynamic
    )
    assert " ".join(map(str, exported.outputs)) == outputs
    if dialect == "stablehlo":
        run = tn.load_stablehlo(exported.portable())
    else:
        run = tn.load_vmfb(exported.build())
    for other in others:
        x = tn.rand(*other)
        found, expected = several(run(x)), several(function(x))
        tn.eval(*expected)
        for one, two in zip(found, expected, strict=True):
            assert (one.shape, one.dtype) == (two.shape, two.dtype)
            np.testing.assert_allclose(array(one), array(two), rtol=1e-4, atol=1e-5)


def test_iree_compiles_stablehlo_with_open_sizes():
    tn.manual_seed(0)
    convolve, words = nn.Conv1d(1, 4, 3, padding=1).eval(), nn.Embedding(9, 4)

    def function(x):
        n = x.shape[0]
        seen = words(x.argmax(1)) + words.weight[tn.arange(n) % 9]
        moved = F.pad(x[1:], (1, n)).reshape(-1)
        mixed = ((x @ x.T).softmax(1) @ x).unsqueeze(1).expand(-1, 1, 3)
        return seen, moved, convolve(mixed), x.gather(0, x.argmax(0, keepdim=True)), chooses(x)

    options = {"dialect": "stablehlo", "parameters": "literals", "dynamic": [{0: Dim("n", min=2)}]}
    run = tn.load_vmfb(tn.export(function, tn.ones(4, 3), **options).build())
    for count in (2, 7):
        x = tn.rand(count, 3)
        for found, expected in zip(run(x), function(x), strict=True):
            np.testing.assert_allclose(array(found), array(expected), rtol=1e-4, atol=1e-5)


def test_running_folds_go_along_open_dimensions():
    def function(x):
        rounded = (x * 4).round()
        folds = (x.cumprod(0), x.logcumsumexp(0), rounded.int().cumsum(0), x.half().cumsum(1))
        return *folds, *rounded.cummax(0), *rounded.cummin(-2)

    tn.manual_seed(0)
    options = {"dialect": "stablehlo", "dynamic": [{0: "n"}]}
    run = tn.load_stablehlo(tn.export(function, tn.ones(4, 3), **options).portable())
    for count in (1, 9):
        x = tn.rand(count, 3)
        for found, expected in zip(run(x), function(x), strict=True):
            assert found.dtype is expected.dtype
            np.testing.assert_allclose(array(found), array(expected), rtol=1e-3, atol=1e-5)


def test_linalg_has_open_sizes_too():
    tn.manual_seed(0)
    model = perceptron()
    options = {"parameters": "literals", "dynamic": {0: {0: "n"}}}
    exported = tn.export(model, (tn.rand(2, 4),), dialect="linalg", **options)
    assert "tensor<?x3xf32>" in exported.text() and "symbolic" not in exported.text()
    run, x = tn.load_vmfb(exported.build()), tn.rand(5, 4)
    np.testing.assert_allclose(array(run(x)), array(model(x)), rtol=1e-4)
    doubled = tn.export(lambda x: x.tanh(), tn.ones(2, 3), dialect="tosa", dynamic=[{0: "n"}])
    assert "tosa.tanh %arg0 : (tensor<?x3xf32>) -> tensor<?x3xf32>" in doubled.text()


def test_the_torch_dialect_names_and_constrains_open_sizes():
    n, m = Dim("n", max=64), Dim("m", min=8, multiple=8)
    exported = tn.export(
        lambda x, y: (x @ y).reshape(-1),
        (tn.ones(2, 3), tn.ones(3, 16)),
        dynamic={"x": {0: n}, "y": {-1: m}},
    )
    text = exported.text()
    assert 'torch.symbolic_int "n" {min_val = 1, max_val = 64}' in text
    assert 'torch.symbolic_int "m_by_8" {min_val = 1, max_val = 267}' in text
    assert "torch.bind_symbolic_shape %arg0, [%0, %1], affine_map<()[s0, s1] -> (s0, 3)>" in text
    assert "torch.bind_symbolic_shape %arg1, [%0, %1], affine_map<()[s0, s1] -> (3, s1 * 8)>" in text
    assert "%arg0: !torch.vtensor<[?,3],f32>, %arg1: !torch.vtensor<[3,?],f32>" in text
    assert "torch.assume_strict_symbolic_shapes" in text
    assert repr(exported) == "<Exported torch: (f32[n,3], f32[3,m]) -> (f32[n*m]), 0 parameters>"
    assert exported.dimensions == {"n": n, "m": Dim("m", min=8, max=2136, multiple=8)}


def test_sizes_that_arguments_follow_are_computed():
    halved = lambda x: x.view(x.shape[0] // 2, 6)
    exported = tn.export(halved, tn.ones(4, 3), dynamic=[{0: Dim("n", multiple=2)}])
    assert "torch.aten.size.int %arg0, %int0" in exported.text()
    assert "torch.aten.floordiv.int" in exported.text()
    plain = tn.export(lambda x: x.view(-1) + 1, tn.ones(4, 3), value_tensors=False, dynamic=[{0: "n"}])
    assert "!torch.tensor<[?,3],f32>" in plain.text() and "vtensor" not in plain.text()


def test_arguments_in_containers_and_by_keyword():
    def function(pair, *, scale):
        return {"sum": (pair["a"] + pair["b"][0]) * scale}

    pair = {"a": tn.ones(2, 3), "b": [tn.ones(2, 3)]}
    dynamic = {"pair": {"a": {0: "n"}, "b": [{0: "n"}]}, "scale": {0: "n"}}
    exported = tn.export(function, (pair,), {"scale": tn.ones(2, 1)}, dialect="stablehlo", dynamic=dynamic)
    assert [str(each) for each in exported.inputs] == ["f32[n,3]", "f32[n,3]", "f32[n,1]"]
    run = tn.load_stablehlo(exported.portable())
    assert run(tn.ones(5, 3), tn.ones(5, 3), tn.ones(5, 1)).shape == (5, 3)


def test_one_tensor_given_twice_is_two_arguments():
    x = tn.ones(2, 3)
    exported = tn.export(lambda x, y: (x.sum(0), y + 1), (x, x), dynamic={"x": {0: "n"}})
    assert [str(each) for each in (*exported.inputs, *exported.outputs)] == [
        "f32[n,3]",
        "f32[2,3]",
        "f32[3]",
        "f32[2,3]",
    ]


def test_a_loaded_module_checks_sizes():
    n = Dim("n", min=2, max=8)
    given = (tn.ones(2, 3), tn.ones(2, 3))
    exported = tn.export(lambda x, y: x + y, given, dialect="stablehlo", dynamic={0: {0: n}, 1: {0: n}})
    run = tn.load_stablehlo(exported.portable())
    assert repr(run) == "<LoadedModule: (f32[?,3], f32[?,3]) -> (f32[?,3])>"
    with pytest.raises(tn.ShapeError, match="n is 2 in argument 0 and 3 in 1"):
        run(tn.ones(2, 3), tn.ones(3, 3))
    with pytest.raises(tn.ShapeError, match=r"n must be from 2 to 8, not 1 \(argument 0\)"):
        run(tn.ones(1, 3), tn.ones(1, 3))
    with pytest.raises(tn.ShapeError, match=r"argument 1 of the module is f32\[\?,3\], not f32\[2,4\]"):
        run(tn.ones(2, 3), tn.ones(2, 4))


@pytest.mark.parametrize("form", ["portable", "bytecode", "text"])
def test_a_dimension_without_a_bound_ends_at_the_largest_size_that_was_recorded(form):
    clipped = lambda x: x * min(x.shape[0], 400)
    exported = tn.export(clipped, tn.ones(12), dialect="stablehlo", dynamic=[{0: "n"}])
    assert exported.dimensions == {"n": Dim("n", max=275)}
    data = getattr(exported, form)()
    run = tn.load_stablehlo(data.encode() if form == "text" else data)
    assert run.dimensions == exported.dimensions
    assert run(tn.ones(275))[0].item() == 275
    with pytest.raises(tn.ShapeError, match="n must be from 1 to 275, not 500") as raised:
        run(tn.ones(500))
    assert "Dim('n', min=…, max=…)" in str(raised.value)


def test_what_a_module_tells_of_its_sizes_is_not_believed_when_damaged():
    text = tn.export(lambda x: x * 2, tn.ones(12), dialect="stablehlo", dynamic=[{0: "n"}]).text()
    for whole, *several in (
        ("max = 275", "most = 275", "max = 0"),
        ('["f32[n]"]', "[7]", "[]", '["f32[n,2]"]', '["tensor"]'),
        ("{n = {", "{n = 3, m = {"),
    ):
        assert whole in text
        for damaged in several:
            with pytest.raises(tn.FormatError):
                tn.load_stablehlo(text.replace(whole, damaged).encode())


def test_quotients_are_rounded_down_below_zero_too():
    below = lambda x: (x - x.shape[0] // 2, x + -(x.shape[0] // 2), x * 0 + (5 - x.shape[0]) // 2)
    exported = tn.export(below, tn.ones(12), dialect="stablehlo", dynamic=[{0: "n"}])
    run = tn.load_stablehlo(exported.portable())
    for size in (1, 3, 12, 13):
        found, expected = run(tn.zeros(size)), below(tn.zeros(size))
        assert [each[0].item() for each in found] == [each[0].item() for each in expected]


def test_a_module_is_compiled_once_for_each_size():
    exported = tn.export(lambda x: x * 2, tn.ones(2), dialect="stablehlo", dynamic=[{0: "n"}])
    run = tn.load_stablehlo(exported.portable())
    for size in (3, 4, 3, 4):
        assert run(tn.ones(size)).shape == (size,)
    assert len(run._executables) == 2


# Programs that are not one program at all sizes


def refused(function, *args, dynamic, error=tn.TenfoldError, **options):
    with pytest.raises(error) as raised:
        tn.export(function, args, dynamic=dynamic, **options)
    return str(raised.value)


def test_a_size_written_into_the_program_is_shown():
    told = refused(lambda x: x.view(2, 3, 1), tn.ones(2, 3), dynamic={0: {0: "n"}})
    assert "at n = 11 the program fails" in told or "the program fails: cannot reshape" in told
    assert "x.view(2, 3, 1)" in told and "a size is written into the program" in told


def test_dimensions_that_must_be_equal_need_one_name():
    told = refused(lambda x, y: x + y, tn.ones(2), tn.ones(2), dynamic={0: {0: "n"}, 1: {0: "m"}})
    assert "cannot broadcast" in told and "one name" in told


def branches(x):
    if x.shape[0] > 30:
        return x.exp()
    return x.tanh()


def test_results_that_are_fewer_or_of_another_rank_at_some_sizes_are_refused():
    told = refused(lambda x: x.chunk(2), tn.ones(4, 2), dynamic={0: {0: "n"}})
    assert "gives 2 tensors at n = 57 and 1 at n = 1" in told and "Dim('n', min=…)" in told
    told = refused(lambda x: x.squeeze(), tn.ones(4, 2), dynamic={0: {0: "n"}})
    assert "a result is f32[57,2] at n = 57 and f32[2] at n = 1" in told


def test_a_branch_on_a_size_is_refused():
    told = refused(branches, tn.ones(4), dynamic={"x": {0: "n"}}, error=tn.UnsupportedError)
    assert "depends on the sizes by more than its shapes" in told and "return x" in told
    exported = tn.export(branches, tn.ones(4), dynamic={"x": {0: Dim("n", max=30)}})
    assert "torch.aten.tanh" in exported.text()


def test_a_loop_over_an_open_dimension_is_refused():
    told = refused(lambda x: sum(row.exp() for row in x.unbind(0)), tn.ones(4, 2), dynamic={0: {0: "n"}})
    assert "for row in x.unbind(0)" in told


def test_numbers_that_follow_from_sizes_in_no_known_way_are_refused():
    told = refused(lambda x: x * (x.shape[0] ** 3 % 7), tn.ones(4), dynamic={0: {0: "n"}})
    assert "how it follows from them is not known" in told and "x.shape[0] ** 3 % 7" in told


@pytest.mark.parametrize("dialect", ["stablehlo", "torch"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * min(x.shape[0], 400),
        lambda x: x * max(x.shape[0], 5),
        lambda x: x / min(x.shape[0], 400) ** 0.5,
        lambda x: x.double() * (x.shape[0] + 4e-7),
    ],
)
def test_numbers_that_follow_in_another_way_at_the_edges_are_refused(function, dialect):
    told = refused(function, tn.ones(12), dynamic=[{0: Dim("n", max=2000)}], dialect=dialect)
    assert "a number is" in told or "an argument is" in told


def test_numbers_that_follow_from_sizes_have_64_bits():
    cubed = lambda x: x.double() * x.shape[0] ** 3
    exported = tn.export(cubed, tn.ones(12), dynamic=[{0: Dim("n", max=2000)}], dialect="stablehlo")
    assert tn.load_stablehlo(exported.portable())(tn.ones(2000))[0].item() == 8e9


def test_stablehlo_is_refused_where_its_shapes_do_not_reach():
    dynamic = [{0: Dim("n", max=2000)}]
    told = refused(lambda x: x[:400], tn.ones(12), dynamic=dynamic, dialect="stablehlo")
    assert "a number is 400 at n = 2000, which follows" in told and "Dim('n', min=…, max=…)" in told


def test_data_made_from_sizes_by_python_is_refused():
    told = refused(lambda x: x + tn.tensor(list(range(x.shape[0]))), tn.ones(4), dynamic={0: {0: "n"}})
    assert "made of Python's numbers" in told and "arange" in told


def test_sizes_below_which_it_fails_need_a_bound():
    told = refused(nn.Conv1d(1, 1, 5), tn.ones(1, 1, 9), dynamic={0: {2: "l"}})
    assert "at l = 1 the program fails" in told and "Dim('l', min=…)" in told


def test_what_stablehlo_and_iree_cannot_do_is_told():
    told = refused(
        lambda x: F.adaptive_avg_pool1d(x, 3), tn.ones(2, 9), dynamic=[{1: "n"}], dialect="stablehlo"
    )
    assert (
        "lowered to StableHLO in another way for other sizes" in told and "adaptive_avg_pool1d(x, 3)" in told
    )
    exported = tn.export(repeats, tn.ones(4, 3), dynamic=[{0: "n"}], dialect="stablehlo")
    with pytest.raises(tn.UnsupportedError, match="IREE computes StableHLO's loops over tensors of open"):
        exported.build()


# What dynamic may say


@pytest.mark.parametrize(
    ("dynamic", "message"),
    [
        ({"z": {0: "n"}}, "names an argument 'z', which the call does not have"),
        ({2: {0: "n"}}, "names an argument 2"),
        ({0: {5: "n"}}, "dynamic[0] names a dimension 5, and the argument is f32[2,3]"),
        ({0: {0: 7}}, "dynamic[0][0] is the name of a dimension or a Dim, not 7"),
        ({0: "n"}, "dynamic[0] says which dimensions are open, and 'n' does not"),
        ("n", "dynamic says for each argument which dimensions are open"),
        ({0: {0: "n"}, 1: {0: Dim("n", max=9)}}, "dynamic contradicts itself: Dim('n') and Dim('n', max=9)"),
        ({0: {0: "n", 1: "n"}}, "n is one size, and the example has 2 and 3 for it"),
        ({0: {0: Dim("n", min=4)}}, "n must be at least 4, and the example has 2"),
        ({0: {0: Dim("n", multiple=4)}}, "n must be at least 4 and a multiple of 4, and the example has 2"),
        ({0: {0: Dim("n", min=2, max=2)}}, "n can only be 2: it is not open"),
        ({0: {0: "n", -2: "m"}}, "dynamic[0] contradicts itself: dimension 0 is Dim('n') and Dim('m')"),
        ({0: {0: "n"}, "x": {0: "m"}}, "dynamic['x'] contradicts itself"),
    ],
)
def test_contradictory_demands_are_explained(dynamic, message):
    told = refused(lambda x, y: x * 2, tn.ones(2, 3), tn.ones(2, 3), dynamic=dynamic, error=tn.ArgumentError)
    assert message in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min": 5, "max": 4}, "no size of n is from 5 to 4"),
        ({"min": 5, "max": 7, "multiple": 4}, "no size of n is from 5 to 7 and a multiple of 4"),
        ({"min": -1}, "min of n is a positive number, not -1"),
        ({"max": "4"}, "max of n is a positive number, not '4'"),
    ],
)
def test_dimensions_that_no_size_fits_are_refused(options, message):
    with pytest.raises(tn.ArgumentError, match=message):
        Dim("n", **options)


def test_names_of_dimensions_are_identifiers():
    with pytest.raises(tn.ArgumentError, match="an identifier, not 'a b'"):
        Dim("a b")
    assert repr(Dim("n", min=2, max=8, multiple=2)) == "Dim('n', min=2, max=8, multiple=2)"
