"""`tenfold.nn.utils.prune`: sets elements of parameters to zero by a mask.

A pruned parameter NAME becomes the parameter NAME_orig and the buffer NAME_mask; NAME itself is their
product, which a hook computes before each call of the module. The hook is a pruning method; its
`compute_mask` chooses the elements to mask. A `PruningContainer` holds several that were applied in turn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

from tenfold.base.errors import ArgumentError, IndexOutOfRange, ShapeError, located
from tenfold.nn.utils.convert_parameters import parameters_to_vector
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """The base of pruning methods.

    `PRUNING_TYPE` says what compute_mask may choose from if the parameter is already pruned: "unstructured"
    means the elements not masked yet, "structured" the channels along `dim` not masked yet, and "global" all
    elements.
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor or its importance scores, which must keep the zeros of default_mask."""

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Any) -> Tensor:
        """The parameter times its mask."""
        mask, original = (getattr(module, f"{self._tensor_name}_{each}") for each in ("mask", "orig"))
        return mask.to(dtype=original.dtype) * original

    @classmethod
    @located
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter by a method of this class, constructed from the remaining arguments.

        Earlier pruning is kept. Importance scores, if given, take the place of the elements in the choice."""
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        found = _hook(module, name)
        value = getattr(module, name)
        scores = value if importance_scores is None else importance_scores
        if scores.shape != value.shape:
            raise ShapeError(f"the importance scores of {value.current().type} are {scores.current().type}")
        if found is None:
            if name not in module._parameters:
                raise ArgumentError(f"{type(module).__name__} has no parameter {name!r}")
            mask = method.compute_mask(scores, aten("ones_like")(value))
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", value)
        else:
            key, before = found
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            mask = container.masked_further(method, scores, getattr(module, f"{name}_mask").detach().clone())
            container.add_pruning_method(method)
            method = container
            del module._forward_pre_hooks[key]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    @located
    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """Prune a tensor that belongs to no module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise ShapeError(f"the importance scores of {t.current().type} are {scores.current().type}")
        return t * self.compute_mask(scores, aten("ones_like")(t) if default_mask is None else default_mask)

    def remove(self, module: Any) -> None:
        """Keep the parameter as it is now, as an ordinary one."""
        name = self._tensor_name
        value = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        del module._buffers[f"{name}_mask"]
        original.data = value.data
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Pruning methods that were applied to a tensor in turn; the last of them computes its mask."""

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for arg in args:
            self.add_pruning_method(arg)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        if method is None:
            return
        if not isinstance(method, BasePruningMethod):
            raise ArgumentError(f"{type(method).__name__} is no pruning method")
        own = vars(self).setdefault("_tensor_name", method._tensor_name)
        if method._tensor_name != own:
            raise ArgumentError(f"a method that prunes {method._tensor_name!r} cannot join those of {own!r}")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, place: int) -> BasePruningMethod:
        return self._pruning_methods[place]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return self.masked_further(self._pruning_methods[-1], t, default_mask)

    @staticmethod
    def masked_further(method: BasePruningMethod, t: Tensor, mask: Tensor) -> Tensor:
        """The mask with what this method masks besides."""
        where: Any
        if method.PRUNING_TYPE == "unstructured":
            where = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = _channels(t, method.dim)  # type: ignore[attr-defined]
            others = [each for each in range(t.ndim) if each != dim]
            where = (*[slice(None)] * dim, mask.sum(dim=others) != 0)
        elif method.PRUNING_TYPE == "global":
            where = (slice(None),) * t.ndim
        else:
            raise ArgumentError(
                f"a PRUNING_TYPE is 'unstructured', 'structured' or 'global', not {method.PRUNING_TYPE!r}"
            )
        found = mask.to(dtype=t.dtype).clone()
        found[where] = method.compute_mask(t[where], mask[where]).to(dtype=t.dtype)
        return found


# The methods


class Identity(BasePruningMethod):
    """Masks nothing, for a parameter that is pruned later or by hand."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Masks random elements; `amount` is their number or fraction."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float):
        self.amount = _amount(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        return (
            _without(default_mask, _smallest(aten("rand_like")(t), count)) if count else default_mask.clone()
        )


class L1Unstructured(BasePruningMethod):
    """Masks the elements of smallest magnitude; `amount` is their number or fraction."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float):
        self.amount = _amount(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        return _without(default_mask, _smallest(t.abs(), count)) if count else default_mask.clone()


class RandomStructured(BasePruningMethod):
    """Masks random channels along a dimension; `amount` is their number or fraction."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1):
        self.amount = _amount(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        dim = _channels(t, self.dim)
        count = _count(self.amount, t.shape[dim])
        if not count:
            return default_mask
        drawn = aten("rand")(t.shape[dim], device=t.device)
        return _without_channels(default_mask, t, dim, _smallest(drawn, count))


class LnStructured(BasePruningMethod):
    """Masks the channels of smallest n-norm along a dimension; `amount` is their number or fraction."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1):
        self.amount = _amount(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        dim = _channels(t, self.dim)
        count = _count(self.amount, t.shape[dim])
        if not count:
            return default_mask
        norm = aten("norm")(t, self.n, dim=[each for each in range(t.ndim) if each != dim])
        return _without_channels(default_mask, t, dim, _smallest(norm, count))


class CustomFromMask(BasePruningMethod):
    """Applies a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise ShapeError(f"a mask of {t.current().type} cannot be {self.mask.current().type}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def _amount(amount: Any) -> int | float:
    """A number of elements, or a fraction of them."""
    if not isinstance(amount, Real):
        raise ArgumentError(f"an amount is a number of elements or a fraction, not {amount!r}")
    number = int(amount) if isinstance(amount, Integral) else float(amount)
    if number < 0 or (isinstance(number, float) and number > 1):
        raise ArgumentError(f"an amount is a whole number, or a fraction from 0 to 1, not {number}")
    return number


def _count(amount: int | float, size: int) -> int:
    """How many of so many elements are meant."""
    if isinstance(amount, float):
        return round(amount * size)
    if amount > size:
        raise ArgumentError(f"{amount} elements cannot be pruned of {size}")
    return amount


def _channels(t: Tensor, dim: int) -> int:
    if t.ndim < 2:
        raise ShapeError(
            f"{t.current().type} has no channels to prune", help="prune a vector by an unstructured method"
        )
    if not -t.ndim <= dim < t.ndim:
        raise IndexOutOfRange(f"a tensor of {t.ndim} dimensions has no dimension {dim}")
    return dim % t.ndim


def _smallest(t: Tensor, count: int) -> Tensor:
    return aten("topk")(t.reshape(-1), count, largest=False).indices


def _without(mask: Tensor, places: Tensor) -> Tensor:
    return mask.reshape(-1).index_fill(0, places, 0).reshape(mask.shape)


def _without_channels(mask: Tensor, t: Tensor, dim: int, places: Tensor) -> Tensor:
    return mask.to(dtype=t.dtype).index_fill(dim, places, 0)


# As functions of a module


@located
def identity(module: Any, name: str) -> Any:
    """Make a parameter a pruned one, of which nothing is masked."""
    Identity.apply(module, name)
    return module


@located
def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Mask a number or a fraction of a parameter's elements, drawn at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


@located
def l1_unstructured(module: Any, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:
    """Mask a number or a fraction of a parameter's elements, those of smallest magnitude."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


@located
def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Mask a number or a fraction of a parameter's channels, drawn at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


@located
def ln_structured(
    module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Mask a number or a fraction of a parameter's channels, those of smallest n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


@located
def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Apply a given mask."""
    CustomFromMask.apply(module, name, mask)
    return module


@located
def global_unstructured(
    parameters: Iterable[tuple[Any, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Any, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters, each named by a module and its name there, as if they were one vector."""
    if not isinstance(parameters, Iterable):
        raise ArgumentError("the parameters are a list of pairs of a module and a name")
    if importance_scores is not None and not isinstance(importance_scores, dict):
        raise ArgumentError("the importance scores are a dictionary, by pairs of a module and a name")
    if pruning_method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(f"{pruning_method.__name__} does not prune element by element")
    pairs = [tuple(parameter) for parameter in parameters]
    given = importance_scores or {}
    values = [getattr(module, name) for module, name in pairs]
    masks = [
        getattr(module, f"{name}_mask", aten("ones_like")(value))
        for (module, name), value in zip(pairs, values, strict=True)
    ]
    scores = parameters_to_vector([given.get(pair, value) for pair, value in zip(pairs, values, strict=True)])
    whole = parameters_to_vector(masks)
    found = PruningContainer.masked_further(pruning_method(**kwargs), scores, whole)
    parts = found.split([each.numel() for each in values])
    for (module, name), value, part in zip(pairs, values, parts, strict=True):
        custom_from_mask(module, name, part.reshape(value.shape))


@located
def remove(module: Any, name: str) -> Any:
    """Keep a pruned parameter as it is now, as an ordinary one."""
    found = _hook(module, name)
    if found is None:
        raise ArgumentError(f"{name!r} of {type(module).__name__} is not pruned")
    key, method = found
    method.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Any) -> bool:
    """Whether a parameter of a module, or of one inside it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for each in module.modules()
        for hook in each._forward_pre_hooks.values()
    )


def _hook(module: Any, name: str) -> tuple[int, BasePruningMethod] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None
