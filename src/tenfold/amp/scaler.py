"""`GradScaler`: losses times a number so large that small gradients do not vanish in float16, and the number
found by trial: it grows while all is well and shrinks where gradients overflow. None of it reads a value."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tenfold import flat
from tenfold.autograd.grad_mode import no_grad
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, TraceError, located
from tenfold.base.source import capture
from tenfold.ops.callee import Program, programs
from tenfold.tensor import Tensor, leaf
from tenfold.trace.graph import Value, call_program


def _unscale(*inputs: flat.Value) -> tuple[flat.Value, ...]:
    """Gradients times a number, and whether one of them is not finite. The number is the last input."""
    *gradients, inverse = inputs
    found = flat.constant(0.0, dtypes.float32)
    for gradient in gradients:
        finite = flat.reduce(
            flat.is_finite(flat.real(gradient) if gradient.dtype.is_complex else gradient), "and"
        )
        found = flat.where(finite, found, flat.full_like(found, 1))
    scaled = [
        flat.convert(flat.convert(gradient, dtypes.float32) * inverse, gradient.dtype)
        if gradient.dtype.itemsize < 4
        else gradient * flat.convert(inverse, gradient.dtype)
        for gradient in gradients
    ]
    return (*scaled, found)


def _next_scale(
    scale: flat.Value, tracker: flat.Value, found: flat.Value, growth: float, backoff: float, interval: int
) -> tuple[flat.Value, flat.Value]:
    """The scale for the next step, and how many steps have been good in a row."""
    overflow = flat.ne(found, 0)
    good = tracker + 1
    grows = flat.eq(good, interval)
    larger = scale * growth
    kept = flat.where(flat.logical_and(grows, flat.is_finite(larger)), larger, scale)
    reset = flat.logical_or(overflow, grows)
    return flat.where(overflow, scale * backoff, kept), flat.where(reset, flat.full_like(tracker, 0), good)


def _call(name: str, compute: Any, inputs: Sequence[Value], *numbers: Any) -> tuple[Value, ...]:
    """Record a call of a program that computes on the inputs, and on numbers that are part of it."""
    types = tuple([each.type for each in inputs])

    def make() -> Program:
        params = [flat.Value(each) for each in types]
        return Program(flat.Function(params, compute(*params, *numbers), name))

    return call_program(programs.get((name, types, numbers), make), inputs, capture(), inputs[0].device)


class Stage(enum.Enum):
    """What has been done for an optimizer since the last `update`."""

    READY = "ready"
    UNSCALED = "unscaled"
    STEPPED = "stepped"


class _Progress:
    def __init__(self) -> None:
        self.stage = Stage.READY
        self.found: Tensor | None = None


class GradScaler:
    """Scales losses, so that gradients in float16 neither vanish nor overflow.

    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        if growth_factor <= 1:
            raise ArgumentError(f"growth_factor must be above 1: {growth_factor}").located(
                "GradScaler", capture()
            )
        if not 0 < backoff_factor < 1:
            raise ArgumentError(f"backoff_factor must lie between 0 and 1: {backoff_factor}").located(
                "GradScaler", capture()
            )
        self._device = device
        self._enabled = bool(enabled)
        self._init_scale = float(init_scale)
        self._growth_factor = float(growth_factor)
        self._backoff_factor = float(backoff_factor)
        self._growth_interval = int(growth_interval)
        self._init_growth_tracker = 0
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._progress: dict[int, _Progress] = {}

    def _begun(self, device: Device | None = None) -> tuple[Tensor, Tensor]:
        """The scale and the count of good steps, made when first needed, where the loss is."""
        if self._scale is None or self._growth_tracker is None:
            place = device or Device(self._device)
            self._scale = leaf(np.full((), self._init_scale, np.float32), place)
            self._growth_tracker = leaf(np.full((), self._init_growth_tracker, np.int32), place)
        return self._scale, self._growth_tracker

    @located
    def scale(self, outputs: Any) -> Any:
        """Multiply tensors, or iterables of tensors, by the present scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            scale, _ = self._begun(outputs.device)
            # In the loss's own dtype, as a number beside a tensor would be.
            return outputs * scale.to(device=outputs.device, dtype=outputs.dtype)
        if isinstance(outputs, Iterable):
            scaled = [self.scale(output) for output in outputs]
            return scaled if isinstance(outputs, list) else tuple(scaled)
        raise ArgumentError(f"a Tensor or an iterable of Tensors is scaled, not a {type(outputs).__name__}")

    @located
    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, for example to clip them before the
        step."""
        if not self._enabled:
            return
        progress = self._progress.setdefault(id(optimizer), _Progress())
        if progress.stage is Stage.UNSCALED:
            raise TraceError("unscale_() was already called on this optimizer since the last update()")
        if progress.stage is Stage.STEPPED:
            raise TraceError("unscale_() is called after step()", help="call it before step()")
        scale, _ = self._begun()
        with no_grad():
            inverse = scale.double().reciprocal().float()
            by_device: dict[Device, list[Tensor]] = {}
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        by_device.setdefault(param.grad.device, []).append(param.grad)
            if not by_device:
                raise TraceError(
                    "no parameter of the optimizer has a gradient", help="call backward() before"
                )
            total: Tensor | None = None
            for device, gradients in by_device.items():
                values = [gradient.current() for gradient in gradients]
                *results, found = _call("unscale", _unscale, [*values, inverse.to(device=device).current()])
                for gradient, result in zip(gradients, results, strict=True):
                    gradient.assign(result)
                here = Tensor(found)
                total = here if total is None else total + here.to(device=total.device)
        progress.found = total
        progress.stage = Stage.UNSCALED

    @located
    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the optimizer's step on unscaled gradients. If they overflowed, the parameters do not
        change."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise ArgumentError(
                "a closure would compute gradients that are not scaled", help="call step() without"
            )
        progress = self._progress.setdefault(id(optimizer), _Progress())
        if progress.stage is Stage.STEPPED:
            raise TraceError("step() was already called since the last update()")
        if progress.stage is Stage.READY:
            self.unscale_(optimizer)
        progress.stage = Stage.STEPPED
        assert progress.found is not None
        if hasattr(type(optimizer), "found_inf"):  # it can leave all as it was without being told on the host
            optimizer.found_inf = progress.found
            try:
                return optimizer.step(*args, **kwargs)
            finally:
                optimizer.found_inf = None
        return None if progress.found.item() else optimizer.step(*args, **kwargs)

    @located
    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Set the scale for the next iteration; call it after all steps of an iteration."""
        if not self._enabled:
            return
        scale, tracker = self._begun()
        with no_grad():
            if isinstance(new_scale, Tensor):
                scale.copy_(new_scale)
            elif new_scale is not None:
                scale.fill_(float(new_scale))
            else:
                found: Tensor | None = None
                for each in self._progress.values():
                    if each.found is not None:
                        moved = each.found.to(device=scale.device)
                        found = moved if found is None else found + moved
                if found is None:
                    raise TraceError("no gradients were unscaled or steps taken since the last update()")
                numbers = (self._growth_factor, self._backoff_factor, self._growth_interval)
                values = [scale.current(), tracker.current(), found.current()]
                results = _call("update_scale", _next_scale, values, *numbers)
                for target, result in zip((scale, tracker), results, strict=True):
                    target.assign(result)
        self._progress.clear()

    def get_scale(self) -> float:
        """The present scale as a number; 1 if scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def is_enabled(self) -> bool:
        return self._enabled

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def _good_steps(self) -> int:
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def state_dict(self) -> dict[str, Any]:
        """The state to save; empty if scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._good_steps(),
        }

    @located
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if not self._enabled:
            return
        if not state_dict:
            raise ArgumentError(
                "the state is empty", help="it was stored by a GradScaler that was not enabled"
            )
        self._init_scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            with no_grad():
                self._scale.fill_(self._init_scale)
                self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        if self._progress:
            raise TraceError("a GradScaler is pickled between update() and the next step only")
        state = dict(vars(self))
        if self._enabled:
            state.update(_init_scale=self.get_scale(), _init_growth_tracker=self._good_steps())
            state.update(_scale=None, _growth_tracker=None)
        return state
