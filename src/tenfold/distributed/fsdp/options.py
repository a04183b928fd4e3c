"""The options of `FullyShardedDataParallel` and of its state dicts."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any


class ShardingStrategy(enum.Enum):
    """How parameters, gradients and optimizer state are split: over all processes, over none, or over those
    of one machine with a copy on each. XLA decides when parameters are gathered again, so FULL_SHARD and
    SHARD_GRAD_OP are the same here, and so are the two hybrid strategies."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """When parameters are gathered for the backward pass. It has no effect, since XLA decides."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


@dataclass
class MixedPrecision:
    """The dtypes in which parameters are gathered and inputs cast, gradients reduced, and buffers kept."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Any = ()


@dataclass
class CPUOffload:
    """Whether parameters are kept in host memory. It is supported only for CPU devices."""

    offload_params: bool = False


class StateDictType(enum.Enum):
    """Whether state dicts hold whole tensors or DTensors. FULL_STATE_DICT is the default."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


@dataclass
class StateDictConfig:
    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """With `rank0_only`, only the first process gets the tensors; the other state dicts are empty."""

    rank0_only: bool = False


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    _use_dtensor: bool = True


@dataclass
class OptimStateDictConfig:
    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """An optimizer's state is gathered whole; with `rank0_only`, only on the first process."""

    rank0_only: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Each process gets its own part of an optimizer's state."""

    _use_dtensor: bool = True


@dataclass
class StateDictSettings:
    """How a model's state dicts are made."""

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: StateDictConfig = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: OptimStateDictConfig = field(default_factory=FullOptimStateDictConfig)
