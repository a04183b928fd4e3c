"""FullyShardedDataParallel in two processes, each with half of a batch, beside one process with all of it."""

import copy

import numpy as np
import pytest

import tenfold as tn
import tenfold.distributed as dist
import tenfold.distributed._functional_collectives as funcol
from tenfold import nn
from tenfold.base.errors import ShapeError
from tenfold.distributed.fsdp import (
    FullStateDictConfig,
    FullyShardedDataParallel as FSDP,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)
from tenfold.distributed.fsdp.wrap import ModuleWrapPolicy
from tenfold.distributed.tensor import DTensor

dist.init_process_group("gloo")
rank = dist.get_rank()
tn.manual_seed(0)
x, y = tn.randn(8, 4).eval(), tn.randn(8, 2).eval()
start = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6).eval(), nn.Sequential(nn.Linear(6, 2), nn.Tanh()))
half = slice(4 * rank, 4 * rank + 4)


def trained(module, optimizer, x, y, clip, steps=2):
    for _ in range(steps):
        optimizer.zero_grad()
        (module(x) - y).square().mean().backward()
        norm = clip(0.1)
        optimizer.step()
    return norm.item()


def close(state, expected):
    assert list(state) == list(expected)
    for name, each in state.items():
        np.testing.assert_allclose(each.numpy(), expected[name].numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


alone = copy.deepcopy(start)
adam = tn.optim.Adam(alone.parameters(), lr=0.01)
norm = trained(alone, adam, x, y, lambda limit: nn.utils.clip_grad_norm_(alone.parameters(), limit))

model = FSDP(copy.deepcopy(start), auto_wrap_policy=ModuleWrapPolicy({nn.Sequential}), use_orig_params=True)
assert len(FSDP.fsdp_modules(model)) == 2 and model.check_is_root() and not model[2].check_is_root()
assert [name for name, _ in model.named_parameters()][
    -1
] == "_fsdp_wrapped_module.2._fsdp_wrapped_module.0.bias"
assert model[0].weight.to_local().shape == (3, 4)
optimizer = tn.optim.Adam(model.parameters(), lr=0.01)
assert abs(trained(model, optimizer, x[half], y[half], model.clip_grad_norm_) - norm) < 1e-4
close(model.state_dict(), alone.state_dict())

with FSDP.summon_full_params(model):
    assert [name for name, _ in model.named_parameters()] == [name for name, _ in alone.named_parameters()]
    with tn.no_grad():
        model[0].weight.zero_()
assert model[0].weight.full_tensor().abs().sum().item() == 0
with FSDP.summon_full_params(model, writeback=False), tn.no_grad():
    model[0].weight.add_(1)
assert model[0].weight.full_tensor().abs().sum().item() == 0
(model(x[half]) - y[half]).square().mean().backward()
with pytest.raises(ZeroDivisionError), FSDP.summon_full_params(model, with_grads=True):
    assert model[0].weight.grad.shape == (6, 4)
    for parameter in model.parameters():
        parameter.grad.zero_()
    with tn.no_grad():
        model[0].bias.fill_(3)
    raise ZeroDivisionError
assert all(parameter.grad.full_tensor().abs().sum().item() == 0 for parameter in model.parameters())
assert model[0].bias.full_tensor().tolist() == [3.0] * 6
casting = FSDP(FSDP(nn.Linear(2, 2)), mixed_precision=MixedPrecision(tn.bfloat16, cast_forward_inputs=True))
assert casting.check_is_root() and not casting.module.check_is_root()
with pytest.raises(ShapeError, match="does not split into 2 equal parts along 0"):
    funcol.reduce_scatter_tensor(tn.ones(3, 2), "sum", 0, dist.group.WORLD)
model.load_state_dict(alone.state_dict())
close(model.state_dict(), alone.state_dict())
with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
    parts = model.state_dict()
    assert isinstance(parts["2.0.weight"], DTensor)
    model.load_state_dict({name: each * 1 for name, each in parts.items()})
first_only = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, first_only):
    assert bool(model.state_dict()) is (rank == 0)
close(model.state_dict(), alone.state_dict())

state = FSDP.optim_state_dict(model, optimizer)
mean = adam.state[alone[2][0].weight]["exp_avg"]
np.testing.assert_allclose(
    state["state"]["2.0.weight"]["exp_avg"].numpy(), mean.numpy(), rtol=1e-4, atol=1e-6
)
again = tn.optim.Adam(model.parameters(), lr=0.01)
again.load_state_dict(FSDP.optim_state_dict_to_load(model, again, state))
trained(model, again, x[half], y[half], model.clip_grad_norm_, steps=1)
trained(alone, adam, x, y, lambda limit: nn.utils.clip_grad_norm_(alone.parameters(), limit), steps=1)
close(model.state_dict(), alone.state_dict())

narrow = FSDP(nn.Linear(4, 2), mixed_precision=MixedPrecision(tn.bfloat16, tn.float32))
result = narrow(x[half])
result.float().sum().backward()
assert result.dtype is tn.bfloat16 and narrow.weight.grad.dtype is tn.float32

own, across = dist.new_subgroups(1)[0], dist.new_group([0, 1])
for strategy, rows, options in (
    (ShardingStrategy.NO_SHARD, 6, {}),
    (ShardingStrategy.HYBRID_SHARD, 3, {"auto_wrap_policy": ModuleWrapPolicy({nn.Sequential})}),
    (ShardingStrategy.HYBRID_SHARD, 6, {"process_group": (own, across)}),
):
    alone = copy.deepcopy(start)
    adam = tn.optim.Adam(alone.parameters(), lr=0.01)
    trained(alone, adam, x, y, lambda limit, it=alone: nn.utils.clip_grad_norm_(it.parameters(), limit))
    model = FSDP(copy.deepcopy(start), sharding_strategy=strategy, **options)
    assert model.sharding_strategy is strategy and model[0].weight.to_local().shape == (rows, 4)
    optimizer = tn.optim.Adam(model.parameters(), lr=0.01)
    trained(model, optimizer, x[half], y[half], model.clip_grad_norm_)
    close(model.state_dict(), alone.state_dict())
with pytest.raises(tn.ArgumentError, match="HYBRID_SHARD without an auto_wrap_policy"):
    FSDP(nn.Linear(4, 2), sharding_strategy=ShardingStrategy.HYBRID_SHARD)
with pytest.raises(tn.ArgumentError, match="not a row and a column of all processes"):
    FSDP(nn.Linear(4, 2), (own, own), ShardingStrategy.HYBRID_SHARD)
dist.destroy_process_group()
print("passed", rank)
