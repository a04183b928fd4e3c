"""The reference of layers, functions of `nn.functional`, optimizers and distributions, written from their
docstrings: a page for each of these, with formulas, shapes, signatures and examples."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from tenfold import distributions, nn, optim
from tenfold.nn import functional
from tenfold.optim import lr_scheduler
from tenfold.tensor.documentation import Docstring
from tools.reference import wrapped

CALL = re.compile(r"\b(F|nn|tn)\.[\w.]+\(")  # an example by itself is not indented
MARKUP = re.compile(r"(`[^`]*`)|([*_<>\[\]])")


def pages() -> dict[str, str]:
    """The pages by their names, without their ending."""
    return {
        "layers": _page(
            "Layers and losses",
            "nn",
            dict(_derived(nn, nn.Module)),
            "`tn` is `tenfold`, and `nn` is `tenfold.nn`. A star in a shape stands for any dimensions.",
        ),
        "functions": _page(
            "Functions of layers",
            "F",
            dict(_functions()),
            "`F` is `tenfold.nn.functional`. Functions that are [operators](../ops/index.md) too, such as\n"
            "`F.conv2d` and `F.linear`, stand there.",
        ),
        "optimizers": _page(
            "Optimizers and schedules",
            "tn.optim",
            {
                **dict(_derived(optim, optim.Optimizer)),
                **dict(_derived(lr_scheduler, lr_scheduler.LRScheduler)),
            },
        ),
        "distributions": _page(
            "Distributions", "tn.distributions", dict(_derived(distributions, distributions.Distribution))
        ),
    }


def _derived(module: ModuleType, base: type) -> Iterator[tuple[str, type]]:
    for name in dir(module):  # some are loaded when they are first asked for
        each = getattr(module, name)
        if isinstance(each, type) and issubclass(each, base) and not name.startswith("_"):
            yield name, each


def _functions() -> Iterator[tuple[str, Any]]:
    for name, each in sorted(vars(functional).items()):
        documented = inspect.isfunction(each) and not isinstance(each.__doc__, Docstring)
        if documented and not name.startswith("_") and " F." in (each.__doc__ or ""):
            yield name, each


def _page(title: str, owner: str, entries: Mapping[str, Any], note: str = "") -> str:
    lines = [f"# {title}", "", *([note, ""] if note else [])]
    for name, each in entries.items():
        prefix = "tn.optim.lr_scheduler" if _is_schedule(each) else owner
        chosen = getattr(functional, f"{name}_with_indices", each)  # which says what a pool passes on to it
        called = f"{prefix}.{name}{_signature(chosen)}"
        lines += [f"## {name}", "", *markdown(inspect.getdoc(each) or "", wrapped(called))]
    return "\n".join(lines) + "\n"


def _is_schedule(each: Any) -> bool:
    return isinstance(each, type) and issubclass(each, lr_scheduler.LRScheduler)


def _signature(each: Any) -> str:
    """Its parameters, without their types, which editors show."""
    signature = inspect.signature(each)
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_default(parameter.default))
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def _default(value: Any) -> Any:
    """A default, of which a function prints as its name instead of an address."""
    return _Name(value.__name__) if inspect.isfunction(value) else value


class _Name(str):
    __repr__ = str.__str__


def markdown(docstring: str, signature: str) -> list[str]:
    """A docstring as Markdown: its meaning, the signature, the rest, and the example as code."""
    lines: list[str] = []
    code: list[str] = []
    for place, paragraph in enumerate(docstring.split("\n\n")):
        if paragraph.startswith("    ") or (place and CALL.search(paragraph)):
            code += [*([""] if code else []), *(line.removeprefix("    ") for line in paragraph.splitlines())]
            continue
        lines += [MARKUP.sub(lambda mark: mark[1] or f"\\{mark[2]}", paragraph), ""]
        if place == 0:
            lines += ["```python", signature, "```", ""]
    return [*lines, "```python", *code, "```", ""] if code else lines
