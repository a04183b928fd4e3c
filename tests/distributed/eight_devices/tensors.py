"""Tensors over a mesh of eight devices."""

import numpy as np
import pytest

import tenfold as tn
from tenfold.distributed._functional_collectives import all_reduce
from tenfold.distributed.device_mesh import DeviceMesh, init_device_mesh
from tenfold.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, rand

MESH = init_device_mesh("cpu", (2, 4), mesh_dim_names=("data", "model"))
X = tn.arange(32.0).reshape(8, 4)


def test_distributed_tensor_is_split_and_put_together_again():
    x = distribute_tensor(X, MESH, [Shard(0), Shard(1)])
    assert isinstance(x, DTensor) and not isinstance(X, DTensor)
    assert [tuple(each.shape) for each in x.local_shards()] == [(4, 1)] * 8
    assert x.local_shards()[5].tolist() == X[4:, 1:2].tolist()
    assert x.full_tensor().tolist() == x.tolist() == x.to_local().tolist() == X.tolist()
    assert x.placements == (Shard(0), Shard(1)) and x.device_mesh == MESH


def test_product_is_sharded_by_both_operands():
    w = tn.randn(16, 4)
    x = distribute_tensor(X, MESH, [Shard(0), Replicate()])
    y = x @ distribute_tensor(w, MESH, [Replicate(), Shard(0)]).T
    assert y.placements == (Shard(0), Shard(1))
    np.testing.assert_allclose(y.numpy(), (X @ w.T).numpy(), rtol=1e-6)


def test_gradients_and_optimizer_state_are_sharded_as_their_parameter():
    w = distribute_tensor(tn.ones(16, 4), MESH, [Replicate(), Shard(0)]).requires_grad_()
    optimizer = tn.optim.Adam([w], lr=0.1)
    (distribute_tensor(X, MESH, [Shard(0), Replicate()]) @ w.T).square().sum().backward()
    assert w.grad.placements == (Replicate(), Shard(0))
    optimizer.step()
    assert w.placements == optimizer.state[w]["exp_avg"].placements == (Replicate(), Shard(0))
    np.testing.assert_allclose(w.detach().numpy(), np.full((16, 4), 0.9), rtol=1e-5)


def test_compiled_function_keeps_shardings_and_serves_several():
    step = tn.compile(lambda x: (x * 2).tanh())
    by_rows = distribute_tensor(X, MESH, [Shard(0), Replicate()])
    by_columns = distribute_tensor(X, MESH, [Replicate(), Shard(1)])
    assert step(by_rows).placements == by_rows.placements
    assert step(by_columns).placements == by_columns.placements
    assert step(by_rows).tolist() == step(X).tolist()


def test_redistribute_moves_data():
    x = distribute_tensor(X, MESH, [Shard(0), Replicate()])
    y = x.redistribute(placements=[Replicate(), Shard(1)])
    assert "redistribute" in y.show(stage="trace")
    assert y.placements == (Replicate(), Shard(1)) and y.tolist() == X.tolist()


@pytest.mark.parametrize("dtype", [tn.bfloat16, tn.float16])
def test_redistribute_keeps_the_rounding_that_the_program_asks_for(dtype):
    x = distribute_tensor(tn.full((8, 4), 1.0001), MESH, [Shard(0), Replicate()])
    whole = [Replicate(), Replicate()]
    assert x.to(dtype).float().redistribute(MESH, whole).unique().tolist() == [1.0]
    halves = (x.to(dtype) @ x.to(dtype).T).float()
    assert halves.redistribute(MESH, whole).tolist() == halves.tolist()


def test_write_in_place_keeps_the_sharding():
    x = distribute_tensor(X, MESH, [Shard(0), Replicate()])
    x.add_(tn.ones(8, 4))
    assert x.placements == (Shard(0), Replicate()) and x.tolist() == (X + 1).tolist()


def test_vmap_and_func_grad_run_over_a_mesh():
    x = distribute_tensor(X, MESH, [Shard(0), Replicate()])
    halves = tn.func.vmap(lambda row: row.redistribute(placements=[Replicate(), Replicate()]) / 2)(x)
    assert halves.tolist() == (X / 2).tolist()
    slope = tn.func.grad(lambda t: (t * t).sum())(x)
    assert slope.tolist() == (2 * X).tolist()


def test_partial_parts_are_added_up():
    assert DTensor.from_local(tn.ones(3), MESH, [Partial(), Replicate()]).tolist() == [2.0, 2.0, 2.0]
    assert DTensor.from_local(tn.ones(3), MESH, [Partial("avg"), Partial("avg")]).tolist() == [1.0] * 3


def test_hlo_shows_the_collective_and_sharding_each_placement():
    x = distribute_tensor(X, MESH, [Shard(0), Replicate()])
    total = x.sum(0)
    assert "all-reduce" in total.show(stage="hlo")
    text = total.show(stage="sharding")
    assert "p0: f32[8,4] [{data}, {}]" in text and "total = x.sum(0)" in text
    assert 'sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>' in total.show(stage="stablehlo")
    assert "all-reduce" in tn.show(lambda t: t.sum(0), x, stage="hlo")


def test_random_numbers_do_not_depend_on_the_mesh():
    tn.manual_seed(3)
    plain = tn.rand(8, 4).tolist()
    tn.manual_seed(3)
    drawn = tn.rand(8, 4, device=MESH.device)
    assert drawn.redistribute(placements=[Shard(0), Shard(1)]).tolist() == plain
    tn.manual_seed(3)
    drawn = rand(8, 4, device_mesh=MESH, placements=[Shard(0), Replicate()])
    assert drawn.placements == (Shard(0), Replicate()) and drawn.tolist() == plain


def test_dropout_on_a_sharded_tensor_draws_as_on_one_device():
    tn.manual_seed(3)
    plain = tn.nn.functional.dropout(X, 0.5).tolist()
    tn.manual_seed(3)
    x = distribute_tensor(X, MESH, [Shard(0), Shard(1)])
    assert tn.nn.functional.dropout(x, 0.5).tolist() == plain


def test_plain_tensor_joins_a_mesh_of_this_process():
    x = distribute_tensor(X, MESH, [Shard(0), Replicate()])
    assert (x + X).tolist() == (X + x).tolist() == (2 * X).tolist()


def test_numpy_engine_does_not_run_on_a_mesh():
    x = distribute_tensor(X, MESH, [Shard(0), Replicate()])
    tn.set_engine("numpy")
    try:
        with pytest.raises(tn.UnsupportedError, match="the engine 'numpy' runs on one device"):
            (x + 1).tolist()
    finally:
        tn.set_engine("xla")


def test_mesh_larger_than_the_machine_is_refused():
    with pytest.raises(tn.DeviceError, match="takes 16 cpu devices; there are 8"):
        init_device_mesh("cpu", (4, 4))


def test_part_of_a_mesh_has_its_dimension_alone():
    model = MESH["model"]
    assert model.shape == (4,) and model.size() == 4 and model.mesh.tolist() == [0, 1, 2, 3]
    x = distribute_tensor(X, model, [Shard(0)])
    assert x.placements == (Replicate(), Shard(0))
    with pytest.raises(tn.ArgumentError, match="no dimension 'pipe'"):
        MESH["pipe"]


def test_saved_tensor_is_whole(tmp_path):
    x = distribute_tensor(X, MESH, [Shard(0), Replicate()])
    tn.save(x, tmp_path / "x.pt")
    assert tn.load(tmp_path / "x.pt").tolist() == X.tolist()


def test_run_time_check_works_over_a_mesh():
    x = distribute_tensor(X, MESH, [Shard(0), Replicate()])
    with pytest.raises(tn.ArgumentError, match="a device is in the mesh twice"):
        DeviceMesh("cpu", [0, 0])
    with pytest.raises(tn.ArgumentError, match="given by its number"):
        distribute_tensor(X, MESH, [Shard("rows"), Replicate()])
    with pytest.raises(tn.IndexOutOfRange):
        x[tn.tensor([9])].tolist()


def test_gradients_flow_from_a_mesh_to_the_plain_tensors_behind_it():
    for placements, slope in [
        ([Shard(0), Replicate()], 2.0),
        ([Replicate(), Replicate()], 2.0),
        ([Partial(), Replicate()], 8.0),  # x is added to itself: 2·2x
        ([Partial("avg"), Replicate()], 2.0),
    ]:
        x = X.clone().requires_grad_()
        y = DTensor.from_local(x * 3, MESH, placements)
        (y * y).sum().backward()
        assert x.grad.tolist() == (9 * slope * X).tolist(), placements


def test_gradients_flow_from_plain_tensors_to_the_mesh_behind_them():
    for placements in ([Shard(0), Shard(1)], [Replicate(), Shard(0)], [Replicate(), Replicate()]):
        for leave in (lambda t: t.to_local(), lambda t: t.full_tensor()):
            x = distribute_tensor(X, MESH, placements).requires_grad_()
            (leave(x * 3).square().sum() + 1).backward()
            assert x.grad.tolist() == (18 * X).tolist()
            assert x.grad.placements == tuple(placements)
    x = distribute_tensor(X, MESH, [Replicate(), Replicate()]).requires_grad_()
    x.to_local(grad_placements=[Partial(), Partial()]).square().sum().backward()
    assert x.grad.tolist() == (2 * X).tolist()


def test_gradients_of_gradients_pass_the_edges_of_a_mesh():
    x = X.clone().requires_grad_()
    y = DTensor.from_local(x, MESH, [Shard(0), Replicate()]).pow(3).to_local().sum()
    (slope,) = tn.autograd.grad(y, x, create_graph=True)
    slope.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (6 * X).numpy(), rtol=1e-5)


def test_only_leaves_are_distributed():
    x = tn.ones(8, requires_grad=True)
    assert distribute_tensor(x, MESH, [Shard(0), Replicate()]).requires_grad
    with pytest.raises(tn.ArgumentError, match="only a leaf is distributed"):
        distribute_tensor(x * 2, MESH, [Shard(0), Replicate()])


def test_loader_gives_batches_that_are_split_over_the_mesh():
    data = tn.data.TensorDataset(tn.arange(20.0).reshape(10, 2), tn.arange(10))
    for workers in (0, 2):
        loader = tn.data.DataLoader(
            data, batch_size=4, drop_last=True, num_workers=workers, device=MESH["data"]
        )
        batches = list(loader)
        assert [labels.tolist() for _, labels in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        for numbers, labels in batches:
            assert numbers.placements == labels.placements == (Shard(0), Replicate())


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_compiled_program_draws_the_same_numbers_on_any_mesh(devices):
    mesh = init_device_mesh("cpu", (devices,))
    noisy = tn.compile(lambda t: tn.nn.functional.dropout(t, 0.5) + tn.randn_like(t))
    tn.manual_seed(5)
    expected = noisy(X).numpy()
    tn.manual_seed(5)
    found = noisy(distribute_tensor(X, mesh, [Shard(0)]))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    assert found.placements == (Shard(0),) or devices == 1


def test_code_for_one_device_adds_up_over_the_mesh():
    total = tn.func.shard_map(
        lambda part: all_reduce(part.sum(0), "sum", "data"),
        *(MESH, ([Shard(0), Replicate()],), [Replicate(), Replicate()]),
    )
    x = distribute_tensor(X, MESH, [Shard(0), Replicate()]).requires_grad_()
    assert total(x).tolist() == X.sum(0).tolist()
    total(x * 3).sum().backward()
    assert x.grad.tolist() == tn.full((8, 4), 3.0).tolist()
