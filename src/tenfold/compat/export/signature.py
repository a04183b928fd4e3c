"""What the inputs and results of an exported graph are: `torch.export.graph_signature`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ConstantArgument", "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind", "OutputSpec",
    "TensorArgument",
]  # fmt: skip


@dataclass
class TensorArgument:
    """A tensor, by its name in the graph."""

    name: str


@dataclass
class ConstantArgument:
    """A plain value that a program takes or gives as it was when it was exported."""

    name: str
    value: Any


class InputKind(enum.Enum):
    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()


class OutputKind(enum.Enum):
    USER_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    USER_INPUT_MUTATION = enum.auto()


@dataclass
class InputSpec:
    kind: InputKind
    arg: Any
    target: str | None = None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target={self.target!r}"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclass
class OutputSpec:
    kind: OutputKind
    arg: Any
    target: str | None = None

    def __str__(self) -> str:
        return f"{self.arg.name}: {self.kind.name}" + (
            "" if self.target is None else f" target={self.target!r}"
        )


@dataclass
class ExportGraphSignature:
    """The inputs of a graph, the model's own before the user's, and its results: first what it writes to the
    model's tensors and to arguments, then what it returns."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple([str(spec.target) for spec in self.input_specs if spec.kind is kind])

    def _by_name(self, kind: Any, specs: Any) -> dict[str, str]:
        return {spec.arg.name: spec.target for spec in specs if spec.kind is kind}

    @property
    def parameters(self) -> tuple[str, ...]:
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        return self._targets(InputKind.BUFFER)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        kind = InputKind.USER_INPUT
        return tuple([getattr(s.arg, "value", s.arg.name) for s in self.input_specs if s.kind is kind])

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        kind = OutputKind.USER_OUTPUT
        return tuple([getattr(s.arg, "value", s.arg.name) for s in self.output_specs if s.kind is kind])

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        return self._by_name(InputKind.PARAMETER, self.input_specs)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        return self._by_name(InputKind.BUFFER, self.input_specs)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        return self._by_name(InputKind.CONSTANT_TENSOR, self.input_specs)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        return self._by_name(OutputKind.BUFFER_MUTATION, self.output_specs)

    @property
    def parameters_to_mutate(self) -> dict[str, str]:
        return self._by_name(OutputKind.PARAMETER_MUTATION, self.output_specs)

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        return self._by_name(OutputKind.USER_INPUT_MUTATION, self.output_specs)

    def __str__(self) -> str:
        inputs, outputs = "\n".join(map(str, self.input_specs)), "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
