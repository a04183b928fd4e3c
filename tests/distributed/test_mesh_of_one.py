"""A mesh of one device costs nothing beside none: the program is the same, and so is the way to it."""

import re
from collections import Counter

import tenfold as tn
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.fsdp import fully_shard
from tenfold.distributed.tensor import Shard, distribute_tensor
from tenfold.engines import xla


def training(is_on_mesh):
    """A compiled training step, its model and its batch."""
    tn.manual_seed(0)
    model = tn.nn.Sequential(
        tn.nn.Linear(128, 96, bias=False), tn.nn.ReLU(), tn.nn.Linear(96, 96, bias=False)
    )
    x, y = tn.randn(8, 128), tn.arange(8)
    if is_on_mesh:
        mesh = init_device_mesh("cpu", (1,))
        fully_shard(model, mesh=mesh)
        x, y = (distribute_tensor(each, mesh, [Shard(0)]) for each in (x, y))
    optimizer = tn.optim.Adam(model.parameters())

    @tn.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = tn.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, model, x, y


def instructions(hlo):
    """How often a program has each instruction, by its result and its opcode."""
    return Counter(re.findall(r"^\s+(?:ROOT )?%\S+ = (\S+ [a-z-]+)\(", hlo, re.MULTILINE))


def test_training_step_is_the_program_without_a_mesh():
    programs, losses, gradients = [], [], []
    for is_on_mesh in (False, True):
        step, model, x, y = training(is_on_mesh)
        before = xla.executables()
        losses.append([step(x, y).item() for _ in range(4)])
        program = max(set(xla.executables()) - set(before), key=lambda each: len(each.hlo()))
        aliased = re.findall(r"\{\d+\}: \(\d+", program.hlo().splitlines()[0])
        programs.append((instructions(program.hlo()), len(aliased)))
        gradients.append([parameter.grad.tolist() for parameter in model.parameters()])
        placed = [parameter.grad.device.mesh is not None for parameter in model.parameters()]
        assert placed == [is_on_mesh] * 2
    assert losses[0] == losses[1] and gradients[0] == gradients[1]
    assert programs[0] == programs[1]


def test_gradient_that_somebody_holds_is_not_overwritten_by_the_next_step():
    step, model, x, y = training(is_on_mesh=True)
    step(x, y)
    held = model[0].weight.grad
    numbers = held.tolist()
    step(x, y)
    assert held.tolist() == numbers
    assert model[0].weight.grad.tolist() != numbers


def test_weights_that_two_layers_share_are_sharded_once():
    model = tn.nn.Sequential(tn.nn.Linear(4, 4, bias=False), tn.nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    x = tn.randn(2, 4)
    expected = model(x).tolist()
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    assert model(x).tolist() == expected and model[1].weight is model[0].weight
