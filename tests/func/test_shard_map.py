"""`shard_map` on a mesh of one device: what placements mean, and what is refused. On eight devices it is
tested in `tests/distributed/eight_devices/shard_map.py`."""

import pytest

import tenfold as tn
from tenfold.distributed import _functional_collectives as fc
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

shard_map = tn.func.shard_map


@pytest.fixture(scope="module")
def mesh():
    return init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))


@pytest.fixture
def x(mesh):
    return distribute_tensor(tn.arange(6.0).reshape(2, 3), mesh, [Shard(0), Replicate()])


def test_none_is_replicated_along_every_dimension(mesh, x):
    whole = shard_map(lambda t: t * 2, mesh, None, None)(x)
    assert list(whole.placements) == [Replicate(), Replicate()]
    assert whole.full_tensor().tolist() == [[0, 2, 4], [6, 8, 10]]


def test_placements_stand_for_one_result_for_all_or_for_each(mesh, x):
    rows, columns = [Shard(0), Replicate()], [Replicate(), Shard(1)]
    both = lambda t: {"twice": t * 2, "rest": (t + 1,)}
    for placements in (rows, (rows, columns), None):
        results = shard_map(both, mesh, (rows,), placements)(x)
        assert results["twice"].full_tensor().tolist() == [[0, 2, 4], [6, 8, 10]]
        assert results["rest"][0].full_tensor().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_partial_results_are_added_up_or_averaged(mesh, x):
    total = lambda t: fc.all_reduce(t.sum(), "sum", "data")
    for placement in (Partial(), Partial("avg"), Replicate()):
        result = shard_map(total, mesh, ([Shard(0), Replicate()],), [placement, Replicate()])(x)
        assert result.full_tensor().item() == 15 and list(result.placements) == [Replicate(), Replicate()]


def test_what_it_reads_from_outside_is_replicated_and_gets_gradients(mesh, x):
    w = tn.tensor([1.0, 2.0, 3.0], requires_grad=True)
    rows = [Shard(0), Replicate()]
    shard_map(lambda t: t * w, mesh, (rows,), rows)(x).sum().backward()
    assert w.grad.tolist() == [3, 5, 7]


ROWS = [Shard(0), Replicate()]
MISTAKES = {
    "in_placements has 2 entries for 1 arguments": (abs, [ROWS, ROWS], None),
    "out_placements has 3 entries for 1 results": (abs, None, [ROWS, ROWS, ROWS]),
    "partial results are added up, not 'max'": (abs, None, [Partial("max"), Replicate()]),
    "the function writes to its argument": (lambda t: t.add_(1), None, None),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_refused_in_its_own_words(mesh, x, message):
    with pytest.raises((tn.ArgumentError, tn.UnsupportedError), match=message):
        function, into, out = MISTAKES[message]
        shard_map(function, mesh, into, out)(x)


def test_something_must_be_a_tensor(mesh):
    with pytest.raises(tn.ArgumentError, match="shard_map takes at least one tensor"):
        shard_map(abs, mesh, None, None)(2)
