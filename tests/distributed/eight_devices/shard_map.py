"""Code that is written for one device, and what the devices exchange in it."""

import numpy as np
import pytest

import tenfold as tn
from tenfold.distributed import _functional_collectives as fc, costs
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

MESH = init_device_mesh("cpu", (2, 4), mesh_dim_names=("data", "model"))
ROWS, BOTH, WHOLE = [Shard(0), Replicate()], [Shard(0), Shard(1)], [Replicate(), Replicate()]
X = tn.linspace(-1, 1, 64).reshape(8, 8)
shard_map = tn.func.shard_map


def exchange(x):
    """What every collective gives of a device's part of a matrix."""
    gathered = fc.all_gather_tensor(x, 1, "model")
    return (
        gathered,
        fc.reduce_scatter_tensor(gathered, "sum", 1, "model"),
        fc.permute_tensor(x, [1, 2, 3, 0], "model"),
        fc.all_to_all_single(x, None, None, MESH["model"]),
        fc.all_reduce(x, "max", (MESH, "data")),
        fc.all_reduce(x, "product", "data"),
        fc.all_reduce(x, "avg", None),
        fc.broadcast(x, 1, "data"),
    )


PLACES = (ROWS, BOTH, BOTH, BOTH, [Replicate(), Shard(1)], [Replicate(), Shard(1)], WHOLE, None)


def expected(x):
    """The same by NumPy: parts[i][j] is that of the device at place i, j."""
    parts = x.reshape(2, 4, 4, 2).transpose(0, 2, 1, 3)
    rolled = np.roll(parts, 1, 1)
    swapped = parts.reshape(2, 4, 4, 1, 2).transpose(0, 2, 1, 3, 4).reshape(2, 4, 4, 2)
    joined = lambda each: each.transpose(0, 2, 1, 3).reshape(8, 8)
    halves = x.reshape(2, 4, 8)
    means = parts.mean((0, 1))
    return x, 4 * x, joined(rolled), joined(swapped), halves.max(0), halves.prod(0), means, halves[1, :, :2]


def test_collectives_move_what_numpy_moves():
    x = distribute_tensor(X, MESH, BOTH)
    found = shard_map(exchange, MESH, (BOTH,), PLACES)(x)
    for mine, theirs in zip(found, expected(X.numpy()), strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs, atol=1e-6)


@pytest.mark.parametrize("i", range(7))
def test_gradients_pass_every_collective(i):
    mapped = shard_map(lambda t: exchange(t)[i], MESH, (BOTH,), PLACES[i])
    weights = tn.linspace(0, 1, mapped(X).numel()).reshape(mapped(X).shape)
    slope = tn.func.grad(lambda t: (mapped(t) * weights).sum())(distribute_tensor(X, MESH, BOTH))
    for place in [(0, 0), (3, 5), (7, 2)]:
        up, down = X.numpy().copy(), X.numpy().copy()
        up[place] += 0.01
        down[place] -= 0.01
        change = (expected(up)[i] - expected(down)[i]) * weights.numpy() / 0.02
        np.testing.assert_allclose(slope.numpy()[place], change.sum(), atol=1e-3)


def test_tangents_and_batches_pass_code_for_one_device():
    mapped = shard_map(lambda t: fc.all_reduce((t * t).sum(0), "sum", "data"), MESH, (ROWS,), WHOLE)
    value, tangent = tn.func.jvp(mapped, (X,), (tn.ones(8, 8),))
    np.testing.assert_allclose(value.numpy(), X.square().sum(0).numpy(), rtol=1e-5)
    np.testing.assert_allclose(tangent.numpy(), 2 * X.sum(0).numpy(), atol=1e-5)
    both = tn.func.vmap(mapped)(tn.stack([X, 2 * X]))
    np.testing.assert_allclose(both[1].numpy(), 4 * X.square().sum(0).numpy(), rtol=1e-5)


def test_partial_results_are_added_up_and_other_tensors_are_replicated():
    weight = tn.linspace(0, 1, 8).requires_grad_()
    mapped = shard_map(lambda t: t @ weight, MESH, (ROWS,), [Shard(0), Replicate()])
    total = shard_map(lambda t: (t @ weight).sum(), MESH, (ROWS,), [Partial(), Replicate()])
    np.testing.assert_allclose(mapped(X).detach().numpy(), (X @ weight).detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(total(X).item(), (X @ weight).sum().item(), atol=1e-5)
    total(X).backward()
    np.testing.assert_allclose(weight.grad.numpy(), X.sum(0).numpy(), atol=1e-5)


def test_code_for_one_device_along_one_dimension_is_split_by_xla_along_the_other():
    weight = tn.linspace(0, 1, 64).reshape(8, 8).cos()

    def centred(x, weight):
        y = x @ weight
        return y - fc.all_reduce(y.mean(0), "avg", "data")

    mapped = shard_map(centred, MESH["data"], ([Shard(0)], None), [Shard(0)])
    arguments = distribute_tensor(X, MESH, ROWS), distribute_tensor(weight, MESH, [Replicate(), Shard(1)])
    expected = lambda x, weight: x @ weight - (x @ weight).mean(0)
    result = mapped(*arguments)
    np.testing.assert_allclose(result.numpy(), expected(X, weight).numpy(), atol=1e-6)
    assert result.placements == (Shard(0), Shard(1))
    assert costs.collectives(tn.show(mapped, *arguments, stage="hlo"), 8) == [
        costs.Collective("all-reduce", 8, 2)
    ]
    slopes, plain = (
        tn.func.grad(lambda *given, of=of: (of(*given) * weight.sin()).sum(), (0, 1))(*values)
        for of, values in ((mapped, arguments), (expected, (X, weight)))
    )
    for mine, theirs in zip(slopes, plain, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-5)
    both = tn.func.vmap(mapped, (0, None))(tn.stack([X, 2 * X]), weight)
    np.testing.assert_allclose(both[1].numpy(), 2 * expected(X, weight).numpy(), atol=1e-5)


def test_checks_and_refusals_along_one_dimension():
    rows = lambda function: shard_map(function, MESH["data"], ([Shard(0)],), [Shard(0)])
    with pytest.raises(tn.IndexOutOfRange):
        rows(lambda t: t[tn.tensor([4])])(X).tolist()
    with pytest.raises(tn.ArgumentError, match="data=2.* has no dimension for the group 'model'"):
        rows(lambda t: fc.all_reduce(t, "sum", "model"))(X)
    with pytest.raises(tn.UnsupportedError, match="a device's place along some dimensions"):
        rows(lambda t: t + fc.axis_index(t, "data"))(X)


def test_compiled_step_has_the_collective_that_is_written():
    mapped = shard_map(lambda t: fc.all_reduce(t.sum(0), "sum", "data"), MESH, (ROWS,), WHOLE)
    x = distribute_tensor(X, MESH, ROWS)
    np.testing.assert_allclose(tn.compile(mapped)(x).numpy(), X.sum(0).numpy(), atol=1e-5)
    (found,) = costs.collectives(tn.show(mapped, x, stage="hlo"), 8)
    assert found == costs.Collective("all-reduce", 32, 2)


def test_place_of_a_device_and_a_check_inside():
    mapped = shard_map(
        lambda t: t[fc.axis_index(t, "model")].reshape(1), MESH, (WHOLE,), [Replicate(), Shard(0)]
    )
    assert mapped(tn.arange(8.0)).tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(tn.IndexOutOfRange):
        shard_map(lambda t: t[tn.tensor([9])], MESH, (WHOLE,), WHOLE)(X).tolist()


def test_devices_that_receive_nothing_have_zeros():
    silent = shard_map(lambda t: fc.permute_tensor(t, [-1] * 8), MESH, (BOTH,), BOTH)
    assert not silent(X).any() and not tn.func.grad(lambda t: silent(t).sum())(X).any()
    alone = init_device_mesh("cpu", (1,))
    for sent, kept in ([0], X), ([-1], tn.zeros(8, 8)):
        moved = shard_map(lambda t, sent=sent: fc.permute_tensor(t, sent), alone, ([Shard(0)],), [Shard(0)])
        assert moved(X).tolist() == kept.tolist()


def test_misuse_is_told():
    with pytest.raises(tn.ArgumentError, match="no dimension for the group 3(.|\n)*: data, model"):
        shard_map(lambda t: fc.all_reduce(t, "sum", 3), MESH, (ROWS,), WHOLE)(X)
    with pytest.raises(tn.ArgumentError, match="no dimension for the group 'pipe'"):
        shard_map(lambda t: fc.all_reduce(t, "sum", "pipe"), MESH, (ROWS,), ROWS)(X)
    with pytest.raises(tn.ArgumentError, match="for code that is written for one device"):
        fc.all_reduce(X, "sum", "data")
    with pytest.raises(tn.ArgumentError, match="2 entries for 1 arguments"):
        shard_map(lambda t: t, MESH, (ROWS, ROWS), ROWS)(X)
