"""Which module of the user's model each Trace node belongs to, as a path such as `GPT.layers.3.attention`;
the second call of one module is `relu#2`.

Nodes do not know it: calls of modules are watched, and what lies between a call's arguments and its results
belongs to that module, unless it belongs to one inside of it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from tenfold.mlir.torch_emitter import data_of
from tenfold.nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from tenfold.tensor import Tensor
from tenfold.trace import tree
from tenfold.trace.context import outside
from tenfold.trace.graph import Node, Value

Paths = WeakKeyDictionary[Node, str]


@contextlib.contextmanager
def watching_modules() -> Iterator[Paths]:
    """A block in which calls of modules are watched; the path of each node that they record."""
    watch = _Watch()
    handles = (register_module_forward_pre_hook(watch.enter), register_module_forward_hook(watch.leave))
    try:
        yield watch.paths
    finally:
        for handle in handles:
            handle.remove()


class _Watch:
    def __init__(self) -> None:
        self.paths: Paths = WeakKeyDictionary()
        self.calls: list[tuple[Any, str]] = []  # modules whose call is under way, and its path
        self.names: dict[int, str] = {}  # of the modules inside of the outermost one
        self.counts: Counter[str] = Counter()  # calls of each, inside of one call of the outermost

    def enter(self, module: Any, args: Any) -> None:
        if not self.calls:
            self.names = {id(part): name for name, part in module.named_modules()}
            self.counts.clear()
            self.calls.append((module, type(module).__name__))
            return
        outer, path = self.calls[-1]
        name = self.names.get(id(module), type(module).__name__)
        path = f"{path}.{name.removeprefix(self.names.get(id(outer), '') + '.')}"
        self.counts[path] += 1
        again = f"#{self.counts[path]}" if self.counts[path] > 1 else ""
        self.calls.append((module, path + again))

    def leave(self, module: Any, args: Any, output: Any) -> None:
        while self.calls:
            called, path = self.calls.pop()
            if called is module:  # and not one whose call raised
                # What it writes to its buffers, as batch norm does, does not flow into its results.
                results = [*_values(output), *_values(list(module.buffers(recurse=False)))]
                _walk(results, set(_values(args)), self.paths, path)
                return


def _values(structure: Any) -> list[Value]:
    tensors: list[Any] = []
    tree.flatten(structure, lambda each: isinstance(each, Tensor), tensors)
    with outside():
        return [tensor.current() for tensor in tensors]


def _walk(results: list[Value], arguments: set[Value], paths: Paths, path: str) -> None:
    waiting, seen = results, arguments
    while waiting:
        value = waiting.pop()
        if value in seen or value.node is None or value.buffer is not None:
            continue
        seen.add(value)
        paths.setdefault(value.node, path)
        waiting += data_of(value.node)  # states of generators pass through all modules
