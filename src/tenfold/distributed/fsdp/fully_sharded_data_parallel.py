"""`FullyShardedDataParallel`: the older form of `fully_shard`, a wrapper around a module."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError, UnsupportedError, located
from tenfold.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    laid_out,
    numbered_state,
)
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.fsdp.fully_shard import MixedPrecisionPolicy, own_parameters, shard_over
from tenfold.distributed.fsdp.options import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from tenfold.distributed.fsdp.wrap import wrap_inside
from tenfold.distributed.gradients import from_first, plain
from tenfold.distributed.group import ProcessGroup, get_rank, is_initialized, new_subgroups, world_of
from tenfold.nn.module import Module
from tenfold.nn.parameter import Parameter
from tenfold.nn.utils.clip_grad import clip_grad_norm_
from tenfold.tensor import Tensor

WRAPPED = "_fsdp_wrapped_module"


class FullyShardedDataParallel(Module):
    """Wraps a module, whose parameters, gradients and optimizer state are sharded over the processes as by
    `fully_shard`. Names in state dicts are those of the wrapped module."""

    @located
    def __init__(
        self,
        module: Module,
        process_group: ProcessGroup | tuple[ProcessGroup, ProcessGroup] | None = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Callable[..., Any] | None = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], None] | None = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: DeviceMesh | None = None,
    ):
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        kinds = {parameter.device.type for parameter in module.parameters()} - {"meta"}
        platform = min(kinds, default="cpu")
        if cpu_offload is not None and cpu_offload.offload_params and platform != "cpu":
            raise UnsupportedError("parameters are not kept in host memory", help="leave cpu_offload out")
        mesh = _mesh(strategy, process_group, device_mesh, platform, auto_wrap_policy is not None)
        left_out = [*(ignored_modules or ()), *(ignored_states or ())]
        modules = {id(each) for each in left_out if isinstance(each, Module)}
        ignored = _tensors(left_out)
        if param_init_fn is not None:
            module.apply(param_init_fn)
        if sync_module_states and not mesh.root.own and mesh.size() > 1:
            from_first([*module.parameters(), *module.buffers()], mesh)
        precision = mixed_precision or MixedPrecision()
        if auto_wrap_policy is not None:
            options = {
                "sharding_strategy": strategy,
                "device_mesh": mesh,
                "mixed_precision": precision,
                "ignored_states": ignored,
            }
            wrap_inside(
                module,
                auto_wrap_policy,
                lambda child, **own: FullyShardedDataParallel(child, **{**options, **own}),
                modules,
            )
        for inner in self.fsdp_modules(module):
            inner._set_policy(inner._precision, is_root=False)
        self._precision, self._settings, self._is_summoned = precision, StateDictSettings(), False
        self.sharding_strategy = strategy
        _cast_buffers(module, precision.buffer_dtype)
        axes = () if strategy is ShardingStrategy.NO_SHARD else mesh.axes[-1:]
        shard_over(module, mesh, axes, MixedPrecisionPolicy(), {id(each) for each in ignored})
        self._fsdp_wrapped_module: Any = module
        self._set_policy(precision, is_root=True)

    def _set_policy(self, precision: MixedPrecision, is_root: bool) -> None:
        self._is_root = is_root
        casts = precision.cast_root_forward_inputs if is_root else precision.cast_forward_inputs
        vars(self.module)["_fsdp_policy"] = MixedPrecisionPolicy(
            precision.param_dtype, precision.reduce_dtype, cast_forward_inputs=casts
        )

    @property
    def module(self) -> Any:
        """The wrapped module."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == WRAPPED:
                raise
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        return self._fsdp_wrapped_module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._fsdp_wrapped_module(*args, **kwargs)

    def check_is_root(self) -> bool:
        """Whether no other FullyShardedDataParallel wraps this one."""
        return self._is_root

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Any]:
        """This module and its descendants that are FullyShardedDataParallel."""
        if root_only and isinstance(module, FullyShardedDataParallel):
            return [module]
        if root_only:
            return [
                each
                for child in module.children()
                for each in FullyShardedDataParallel.fsdp_modules(child, True)
            ]
        return [each for each in module.modules() if isinstance(each, FullyShardedDataParallel)]

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters by name; within `summon_full_params`, by the names of the wrapped module."""
        for name, parameter in super().named_parameters(prefix, recurse, remove_duplicate):
            yield (clean(name) if self._is_summoned else name), parameter

    # State dicts

    @staticmethod
    @located
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Set the type of the state dicts of a model; return the previous settings."""
        if state_dict_type is StateDictType.LOCAL_STATE_DICT:
            raise UnsupportedError("there are no flattened parameters", help="use SHARDED_STATE_DICT")
        is_full = state_dict_type is StateDictType.FULL_STATE_DICT
        settings = StateDictSettings(
            state_dict_type,
            state_dict_config or (FullStateDictConfig() if is_full else ShardedStateDictConfig()),
            optim_state_dict_config
            or (FullOptimStateDictConfig() if is_full else ShardedOptimStateDictConfig()),
        )
        wrapped = FullyShardedDataParallel.fsdp_modules(module)
        if not wrapped:
            raise ArgumentError("the model has no FullyShardedDataParallel", help="wrap it first")
        before = wrapped[0]._settings
        for each in wrapped:
            each._settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        wrapped = FullyShardedDataParallel.fsdp_modules(module)
        return dataclasses.replace(wrapped[0]._settings) if wrapped else StateDictSettings()

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """A block in which the state dicts of a model have this type."""
        own = FullyShardedDataParallel
        before = own.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            own.set_state_dict_type(
                module, *[getattr(before, each.name) for each in dataclasses.fields(before)]
            )

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        state = self._fsdp_wrapped_module.state_dict(
            *args, destination=destination, prefix=prefix, keep_vars=keep_vars
        )
        if self._settings.state_dict_type is not StateDictType.FULL_STATE_DICT or self._is_summoned:
            return state
        config = self._settings.state_dict_config
        for name in [name for name in state if name.startswith(prefix)]:
            each = state[name]
            if isinstance(each, Tensor) and each.device.mesh is not None:
                each = plain(each)
            state[name] = each.cpu() if config.offload_to_cpu and isinstance(each, Tensor) else each
            if getattr(config, "rank0_only", False) and is_initialized() and get_rank() != 0:
                del state[name]
        return state

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        own = {clean(name): each for name, each in self.module.named_parameters()}
        own.update({clean(name): each for name, each in self.module.named_buffers()})
        for key in [key for key in state_dict if key.startswith(prefix)]:
            name = key.removeprefix(prefix)
            state_dict[f"{prefix}{WRAPPED}.{name}"] = laid_out(state_dict.pop(key), own.get(name))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @staticmethod
    @located
    def optim_state_dict(
        model: Module, optim: Any, optim_state_dict: Any = None, group: ProcessGroup | None = None
    ) -> dict[str, Any]:
        """The state of an optimizer by the names of the model's parameters, as whole tensors or DTensors,
        according to the type of the model's state dicts."""
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        is_full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        state = get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=is_full))
        alone = getattr(settings.optim_state_dict_config, "rank0_only", False)
        return {} if alone and is_initialized() and get_rank() != 0 else state

    @staticmethod
    @located
    def optim_state_dict_to_load(
        model: Module,
        optim: Any,
        optim_state_dict: Mapping[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: ProcessGroup | None = None,
    ) -> dict[str, Any]:
        """Convert the result of `optim_state_dict` for `optim.load_state_dict`."""
        state = numbered_state(model, optim, dict(optim_state_dict))
        if load_directly:
            optim.load_state_dict(state)
        return state

    # Whole parameters

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """A block in which parameters are whole, plain tensors. With `writeback`, changes to a process's part
        are kept after the block."""
        if rank0_only and writeback:
            raise UnsupportedError(
                "what one process alone has is not written back", help="give writeback=False"
            )
        wrapped = FullyShardedDataParallel.fsdp_modules(module, root_only=not recurse)
        slots = [slot for each in wrapped for slot in own_parameters(each.module)]
        wholes: dict[int, tuple[Tensor, Parameter]] = {}
        for _, parameter in slots:
            if id(parameter) not in wholes:
                wholes[id(parameter)] = parameter, _whole(parameter, offload_to_cpu, with_grads)
        try:
            for (owner, name), parameter in slots:
                owner._parameters[name] = wholes[id(parameter)][1]
            for each in wrapped:
                each._is_summoned = True
            yield
        finally:
            for (owner, name), parameter in slots:
                owner._parameters[name] = parameter
            for each in wrapped:
                each._is_summoned = False
            if writeback:
                for parameter, whole in wholes.values():
                    _write_back(parameter, whole, with_grads)

    def apply(self, fn: Callable[[Module], None]) -> Any:
        """Call a function with every module while it has whole parameters."""
        with self.summon_full_params(self):
            return super().apply(fn)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients are accumulated. They are averaged over the processes here too, which
        gives the same sum."""
        yield

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients so that their norm over all processes is at most max_norm; return the norm
        before the scaling."""
        total = clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return total if total.device.mesh is None else plain(total)


def clean(name: str) -> str:
    """A parameter's name without the wrappers on its way."""
    return name.replace(f"{WRAPPED}.", "")


def _whole(parameter: Tensor, offload_to_cpu: bool, with_grads: bool) -> Parameter:
    array = plain(parameter) if parameter.device.mesh is not None else parameter.detach().clone()
    whole = Parameter(array.cpu() if offload_to_cpu else array, parameter.requires_grad)
    if with_grads and parameter.grad is not None:
        whole.grad = plain(parameter.grad)
    return whole


def _write_back(parameter: Tensor, whole: Parameter, with_grads: bool) -> None:
    with no_grad():
        parameter.copy_(laid_out(whole, parameter))
        if with_grads:
            parameter.grad = None if whole.grad is None else laid_out(whole.grad, parameter)


HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


def _mesh(
    strategy: ShardingStrategy, group: Any, mesh: DeviceMesh | None, platform: str, has_policy: bool
) -> DeviceMesh:
    """The mesh over which a strategy splits parameters: in a hybrid one along its second dimension alone."""
    if group is not None and mesh is not None:
        raise ArgumentError("processes are said by process_group or by device_mesh", help="give one of them")
    if strategy not in HYBRID:
        if isinstance(group, tuple):
            raise ArgumentError(f"{strategy} takes one process group", help="two are for HYBRID_SHARD")
        mesh = mesh or world_of(group).mesh(platform)
        if mesh.ndim > 1:
            raise ArgumentError(
                f"{strategy} takes a mesh of one dimension", help="give mesh[name], or use HYBRID_SHARD"
            )
        return mesh
    if mesh is None and group is None and not has_policy:
        raise ArgumentError(
            f"{strategy} without an auto_wrap_policy has to be told its processes",
            help="give device_mesh, of two dimensions, or process_group, of two groups",
        )
    mesh = mesh or _replicas(group, platform)
    if mesh.ndim != 2:
        raise ArgumentError(f"{strategy} takes a mesh of two dimensions, not {mesh.ndim}")
    return mesh


def _replicas(group: Any, platform: str) -> DeviceMesh:
    """A mesh of processes of which those along the second dimension share one copy of the parameters: the
    first of two groups, or the processes of one machine. The second group has one process of each copy."""
    world = world_of(None)
    if group is None:
        grid = np.array(world.ranks).reshape(len(new_subgroups()[1]), -1)
    elif isinstance(group, tuple) and len(group) == 2:
        inside, across = group
        grid = np.add.outer(np.array(across.ranks) - get_rank(), inside.ranks)
        if sorted(grid.ravel().tolist()) != world.ranks:
            raise ArgumentError(
                f"the groups {inside.ranks} and {across.ranks} are not a row and a column of all processes",
                help="give a device_mesh of two dimensions",
            )
    else:
        raise ArgumentError("process_group is two groups: within a copy of the parameters, and across copies")
    devices = np.array(world.mesh(platform).root.devices)[grid]
    return DeviceMesh(platform, devices, mesh_dim_names=("replicate", "shard"))


def _tensors(left_out: Iterable[Any]) -> list[Tensor]:
    """The parameters among these, and those of the modules among these."""
    return [
        tensor for each in left_out for tensor in (each.parameters() if isinstance(each, Module) else [each])
    ]


def _cast_buffers(module: Module, dtype: Any) -> None:
    if dtype is None:
        return
    for owner in module.modules():
        for name, buffer in owner._buffers.items():
            if buffer is not None and buffer.dtype.is_floating_point:
                owner._buffers[name] = buffer.to(dtype)
