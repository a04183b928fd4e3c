"""Pipelines over the devices of a mesh, beside the same stages one after the other."""

import copy
from collections import Counter

import numpy as np
import pytest

import tenfold as tn
from tenfold import nn
from tenfold.distributed import costs
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.fsdp.fully_shard import bytes_of, whole_bytes
from tenfold.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from tenfold.distributed.tensor import Replicate, Shard, distribute_tensor

WIDTH, STAGES = 8, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def loss_of(result, target):
    return (result - target).square().mean()


def made():
    tn.manual_seed(0)
    return [Block() for _ in range(STAGES)], tn.randn(16, WIDTH).eval(), tn.randn(16, WIDTH).eval()


def pipeline_of(blocks, shape):
    names = ("data", "pipe")[-len(shape) :]
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    rows = [Shard(0) if name == "data" else Replicate() for name in names]
    return PipelineStage(copy.deepcopy(blocks), mesh["pipe"]), lambda x: distribute_tensor(x, mesh, rows)


@pytest.mark.parametrize("schedule", [ScheduleGPipe, Schedule1F1B])
@pytest.mark.parametrize("shape", [(4,), (2, 4)])
def test_pipeline_gives_what_its_stages_give_one_after_the_other(shape, schedule):
    blocks, x, y = made()
    expected = nn.Sequential(*blocks)(x)
    loss = loss_of(expected, y)
    loss.backward()
    pipeline, on_mesh = pipeline_of(blocks, shape)
    losses = []
    result = schedule(pipeline, 8, loss_of).step(on_mesh(x), target=on_mesh(y), losses=losses)
    np.testing.assert_allclose(result.numpy(), expected.detach().numpy(), atol=2e-6)
    np.testing.assert_allclose(np.mean([each.item() for each in losses]), loss.item(), rtol=1e-6)
    for name, parameter in pipeline.stages.named_parameters():
        slopes = [dict(each.named_parameters())[name].grad.numpy() for each in blocks]
        np.testing.assert_allclose(parameter.grad.numpy(), np.stack(slopes), atol=1e-6)
        assert parameter.grad.placements[-1] == Shard(0)


def test_compiled_training_passes_activations_on_and_keeps_a_stage_on_each_device():
    blocks, x, y = made()
    pipeline, on_mesh = pipeline_of(blocks, (4,))
    model = nn.Sequential(*blocks)

    def trained(module, run, x, y):
        optimizer = tn.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)

        @tn.compile
        def step(x, y):
            optimizer.zero_grad()
            loss = loss_of(run(x), y)
            loss.backward()
            optimizer.step()
            return loss

        losses = [step(x, y).item() for _ in range(3)]
        return losses, [each for kept in optimizer.state.values() for each in kept.values()]

    expected, _ = trained(model, model, x, y)
    losses, state = trained(pipeline, lambda x: pipeline(x, 4), on_mesh(x), on_mesh(y))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    held = [*pipeline.parameters(), *state]
    assert bytes_of(held) == whole_bytes(held) / STAGES
    found = costs.collectives(tn.show(lambda x: pipeline(x, 4), on_mesh(x), stage="hlo"), STAGES)
    sent = Counter()
    for each in found:
        if each.bytes > 4:  # not whether indices are in range
            sent[each.kind, each.bytes] += 1
    # A microbatch is passed on in the first step, and in each further step of the loop; results are added up.
    assert sent == {("collective-permute", 4 * WIDTH * 4): 2, ("all-reduce", 16 * WIDTH * 4): 1}


def test_stages_of_different_structures_are_refused():
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("pipe",))
    with pytest.raises(tn.ShapeError, match="the stages differ: weight has the shapes"):
        PipelineStage([nn.Linear(4, 4), nn.Linear(4, 8)], mesh)
    with pytest.raises(tn.ArgumentError, match="3 stages need a mesh of one dimension"):
        PipelineStage([nn.Linear(4, 4)] * 3, mesh)
    with pytest.raises(tn.ShapeError, match="a stage makes .* of"):
        PipelineStage([nn.Linear(4, 8)] * 2, mesh)(tn.ones(2, 4))
    with pytest.raises(tn.ShapeError, match="cannot be split into 3 microbatches"):
        ScheduleGPipe(PipelineStage([nn.Linear(4, 4)] * 2, mesh), 3).step(tn.ones(4, 4))


@pytest.mark.parametrize("schedule", [ScheduleGPipe, Schedule1F1B])
def test_a_batch_that_microbatches_do_not_divide_is_refused(schedule):
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("pipe",))
    pipeline = PipelineStage([nn.Linear(4, 4)] * 2, mesh)
    with pytest.raises(tn.ShapeError, match="a batch of 10 cannot be split into 4 microbatches"):
        schedule(pipeline, 4, loss_of).step(tn.ones(10, 4), target=tn.ones(10, 4))


class DividedByNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.linear(x) / x.norm()


@pytest.mark.parametrize("schedule", [ScheduleGPipe, Schedule1F1B])
def test_idle_steps_leave_gradients_finite(schedule):
    _, x, y = made()
    blocks = [DividedByNorm() for _ in range(2)]
    microbatches = zip(x.chunk(4), y.chunk(4), strict=True)
    total = sum(loss_of(nn.Sequential(*blocks)(mine), theirs) for mine, theirs in microbatches)
    (total / 4).backward()
    pipeline, on_mesh = pipeline_of(blocks, (2,))
    schedule(pipeline, 4, loss_of).step(on_mesh(x), target=on_mesh(y))
    slopes = np.stack([block.linear.weight.grad.numpy() for block in blocks])
    np.testing.assert_allclose(pipeline.stages.linear.weight.grad.numpy(), slopes, atol=1e-6)
