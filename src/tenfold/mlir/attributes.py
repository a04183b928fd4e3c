"""The attributes of FlatIR ops, written as StableHLO's text by their Python types. No MLIR is needed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import EngineError
from tenfold.flat import windows


def attribute_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, windows.ConvDimensions):
        return _convolution_text(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        kind = {"DotDimensions": "dot", "GatherDimensions": "gather", "ScatterDimensions": "scatter"}[
            type(value).__name__
        ]
        parts = []
        for field, part in zip(value._fields, value, strict=True):
            if part != () or kind == "dot":
                parts.append(f"{field} = {list(part) if isinstance(part, tuple) else part}")
        return f"#stablehlo.{kind}<{', '.join(parts)}>"
    if isinstance(value, tuple) and value and isinstance(value[0], bool):
        return f"array<i1: {', '.join('true' if element else 'false' for element in value)}>"
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return f"dense<{[list(element) for element in value]}> : tensor<{len(value)}x2xi64>"
    if isinstance(value, tuple):
        return f"array<i64: {', '.join(map(str, value))}>" if value else "array<i64>"
    raise EngineError(f"no StableHLO attribute for {value!r}")


def _convolution_text(n: windows.ConvDimensions) -> str:
    def layout(first: tuple[int, str], second: tuple[int, str], spatial: Sequence[int]) -> str:
        marks = dict([first, second, *((place, str(i)) for i, place in enumerate(spatial))])
        return "[" + ", ".join(marks[i] for i in range(len(marks))) + "]"

    x = layout((n.input_batch_dimension, "b"), (n.input_feature_dimension, "f"), n.input_spatial_dimensions)
    kernel = layout(
        (n.kernel_output_feature_dimension, "o"),
        (n.kernel_input_feature_dimension, "i"),
        n.kernel_spatial_dimensions,
    )
    out = layout(
        (n.output_batch_dimension, "b"), (n.output_feature_dimension, "f"), n.output_spatial_dimensions
    )
    return f"#stablehlo.conv<{x}x{kernel}->{out}>"
