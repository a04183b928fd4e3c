"""`IterDataPipe` and `MapDataPipe`, datasets that are composed by methods, and `functional_datapipe`, which
registers such methods. They serve older packages; PyTorch's own pipes are not included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tenfold.base.absent import AbsentName
from tenfold.base.errors import ArgumentError
from tenfold.data.dataset import Dataset, IterableDataset, Sample

__all__ = ["IterDataPipe", "MapDataPipe", "functional_datapipe"]

Pipe = TypeVar("Pipe", bound=type)


class _Methods:
    """The methods of pipes, by name; each makes another pipe of this one."""

    functions: dict[str, Callable[..., Any]]

    def __getattr__(self, name: str) -> Any:
        if name in self.functions:
            make = self.functions[name]
            return lambda *args, **kwargs: make(self, *args, **kwargs)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        cls.functions[function_name] = function


class IterDataPipe(_Methods, IterableDataset[Sample]):
    """A stream of samples, whose methods return other pipes."""

    functions: dict[str, Callable[..., Any]] = {}


class MapDataPipe(_Methods, Dataset[Sample]):
    """Samples by index, whose methods return other pipes."""

    functions: dict[str, Callable[..., Any]] = {}


def functional_datapipe(name: str, enable_df_api_tracing: bool = False) -> Callable[[Pipe], Pipe]:
    """A decorator that registers a class of pipes as a method of all pipes of its kind."""

    def register(pipe: Pipe) -> Pipe:
        kind = next((each for each in (IterDataPipe, MapDataPipe) if issubclass(pipe, each)), None)
        if isinstance(pipe, AbsentName):  # made of one of PyTorch's own pipes, it is refused when it is used
            return pipe
        if kind is None:
            raise ArgumentError(f"{pipe.__name__} is neither an IterDataPipe nor a MapDataPipe")
        if name in kind.functions:
            raise ArgumentError(f"there is a method {name} of pipes already")
        kind.register_function(name, pipe)
        return pipe

    return register
