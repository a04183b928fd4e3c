"""`torch.utils.flop_counter`: counts the floating-point operations of a block, by ATen's ops and by modules.

Every op that is recorded tells the products that it is made of, and where the gradient of a piece of the
Trace is taken, each of its ops tells those of its own gradient. Nothing has to run for that."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from tenfold.base.warning import warn
from tenfold.compat.flop_formulas import (
    aten,
    conv_flop_count,
    flop_registry,
    register_flop_formula,
    sdpa_flop_count,
    shape_wrapper,
)
from tenfold.compat.overloads import namespace
from tenfold.flat.products import Product, products
from tenfold.ops.callee import OpCall
from tenfold.ops.table import fill
from tenfold.tensor import Tensor
from tenfold.trace.context import context
from tenfold.trace.gradient import NOTHING, Wiring
from tenfold.trace.graph import Node, Value
from tenfold.utils.module_tracker import ModuleTracker

__all__ = [
    "FlopCounterMode", "conv_flop_count", "flop_registry", "register_flop_formula", "sdpa_flop_count",
]  # fmt: skip

Counted = Iterator[tuple[Any, int]]  # packets, and what each takes

_SUFFIXES = ("", "K", "M", "B", "T")


class FlopCounterMode:
    """A `with` block that counts floating-point operations, of gradients too, by ATen's ops and by modules.

        with FlopCounterMode(display=False) as counter:
            model(x).sum().backward()
        counter.get_total_flops(), counter.get_table(depth=2)

    `custom_mapping` has formulas for further ops, as `register_flop_formula` takes them.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Callable[..., int]] | None = None,
    ):
        if mods is not None:
            warn("mods= is not needed any more: every module that runs is counted")
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        own = {
            packet: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            for packet, formula in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **own}
        self.mod_tracker = ModuleTracker()
        self._modules: weakref.WeakKeyDictionary[Node, frozenset[str]] = weakref.WeakKeyDictionary()

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self._around, self._recorder = context.watcher, context.recorder
        context.watcher = self
        return self

    def __exit__(self, *error: Any) -> None:
        context.watcher = self._around
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """What each op takes, by module; under "Global", in all."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The modules down to a depth, what they take and what share that is, as text."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        unit = max(0, min(len(_SUFFIXES) - 1, (len(str(total)) - 2) // 3))
        rows: list[tuple[str, str, str]] = []
        whole = False  # whether one module has all of it
        for module in sorted(self.flop_counts):
            level = module.count(".")
            if module != "Global" and (depth is None or level < depth):
                whole = whole or sum(self.flop_counts[module].values()) >= total
                rows += self._rows(module, level, unit)
        if total and not whole:
            below = [(" " + name, *others) for name, *others in rows]
            rows = [*self._rows("Global", 0, unit), *below]  # type: ignore[list-item]
        return _aligned([("Module", "FLOP", "% Total"), *(rows if total else [("Global", "0", "0%")])])

    def _rows(self, module: str, level: int, unit: int) -> list[tuple[str, str, str]]:
        counts = self.flop_counts[module]
        total = self.get_total_flops()
        named = [(module, sum(counts.values())), *[(f" - {packet}", n) for packet, n in counts.items()]]
        return [
            (
                " " * level + name,
                f"{count / 1000**unit:.3f}{_SUFFIXES[unit]}",
                f"{count / max(total, 1):.2%}",
            )
            for name, count in named
        ]

    # What the Trace tells

    def called(self, node: Node) -> None:
        if self._around is not None:
            self._around.called(node)
        if context.recorder is not self._recorder:
            return  # of a function that is recorded, and called as a whole
        self._modules[node] = modules = frozenset(self.mod_tracker.parents)
        self._add(self._forward(node), modules)

    def swept(self, path: Sequence[Node], wiring: Wiring, batch: int) -> None:
        if self._around is not None:
            self._around.swept(path, wiring, batch)
        if context.recorder is not self._recorder:
            return
        for node, inputs in zip(path, wiring.inputs, strict=True):
            wanted = [slot != NOTHING for slot in inputs]
            counted = ((packet, batch * count) for packet, count in self._backward(node, wanted))
            self._add(counted, self._modules.get(node, frozenset(("Global",))))

    def _add(self, counted: Counted, modules: frozenset[str]) -> None:
        for packet, count in counted:
            for module in modules:
                self.flop_counts[module][packet] += count

    def _forward(self, node: Node) -> Counted:
        callee = node.callee
        kind = _kind(callee)
        if isinstance(callee, OpCall) and not kind:
            packet = getattr(namespace(callee.row.namespace), callee.row.name)
            if packet in self.flop_registry:
                yield packet, self._by_formula(packet, node, callee)
        elif kind == "attention":
            packet = aten._scaled_dot_product_flash_attention_for_cpu
            yield packet, self.flop_registry[packet](*_shapes(node)[:3])
        elif kind == "convolution":
            x, arguments, out = _convolution(node, callee)
            yield aten.convolution, self.flop_registry[aten.convolution](x, *arguments, out_val=out)
        else:
            for product in products(callee.fragment):
                yield from self._product(kind, product, product.x, product.y)

    def _backward(self, node: Node, wanted: Sequence[bool]) -> Counted:
        callee = node.callee
        kind = _kind(callee)
        if isinstance(callee, OpCall) and not kind:
            return
        if kind == "attention":
            q, k, v = _shapes(node)[:3]
            packet = aten._scaled_dot_product_flash_attention_for_cpu_backward
            yield packet, self.flop_registry[packet]((*q[:-1], v[-1]), q, k, v)
            return
        if kind == "convolution":
            x, (weight, *settings), out = _convolution(node, callee)
            gradients = (x, weight, None)
            packet = aten.convolution_backward
            mask = (*wanted, False, False)[:3]
            yield packet, self.flop_registry[packet](out, x, weight, *settings, mask, out_val=gradients)
            return
        bits = sum([1 << i for i, asked in enumerate(wanted) if asked])
        kind = {"addmm": "mm", "baddbmm": "bmm"}.get(kind, kind)
        for product in products(callee.fragment):
            if product.from_x & bits:
                yield from self._product(kind, product, product.out, _exchanged(product.y))
            if product.from_y & bits:
                yield from self._product(kind, product, _exchanged(product.x), product.out)

    def _product(self, kind: str, product: Product, x: tuple[int, ...], y: tuple[int, ...]) -> Counted:
        """A product of this kind; of a program that is no op of ATen's, by what it is."""
        if product.is_convolution:
            yield aten.convolution, product.times * conv_flop_count(product.x, product.y, product.out)
            return
        kind = kind or ("bmm" if len(x) > 2 else "mm")
        batch, times = prod(x[:-2]), product.times
        if kind in ("bmm", "baddbmm"):
            matrices: tuple[tuple[int, ...], ...] = (batch, *x[-2:]), (batch, *y[-2:])
        else:
            matrices, times = (x[-2:], y[-2:]), times * batch
        packet = getattr(aten, kind)
        added = ((y[-1],),) if kind in ("addmm", "baddbmm") else ()
        yield packet, times * self.flop_registry[packet](*added, *matrices)

    def _by_formula(self, packet: Any, node: Node, callee: OpCall) -> int:
        """An op that has a formula of its own, from its arguments and results as tensors."""
        inputs = iter([Tensor(value) for value in node.inputs])
        arguments = [fill(argument, inputs) for argument in callee.arguments]
        types = callee.result_types
        results = [Tensor(Value(type, node.inputs[0].device, node, i)) for i, type in enumerate(types)]
        formula = self.flop_registry[packet]
        return formula(*arguments, out_val=results[0] if len(results) == 1 else tuple(results))


def _kind(callee: Any) -> str:
    """What the products of a call count as; "" for none, and for those of a program."""
    if not isinstance(callee, OpCall):
        return ""
    flops = callee.row.flops
    return flops if isinstance(flops, str) else flops(callee.types)


def _shapes(node: Node) -> list[tuple[int, ...]]:
    return [type.shape for type in node.callee.types]


def _convolution(node: Node, callee: Any) -> tuple[tuple[int, ...], list[Any], tuple[int, ...]]:
    """A convolution of a batch: the input's shape, the other arguments as `aten::convolution` has them, and
    the result's shape."""
    shapes = iter(_shapes(node))
    names = [argument.name for argument in callee.row.schema.arguments]
    given = dict(zip(names, [fill(argument, shapes) for argument in callee.arguments], strict=True))
    out = callee.result_types[0].shape
    x = given["input"]
    if len(x) < len(given["weight"]):
        x, out = (1, *x), (1, *out)
    transposed = given.get("transposed", "transpose" in callee.row.name)
    settings = [given.get(name) for name in ("weight", "bias", "stride", "padding", "dilation")]
    return x, [*settings, transposed, given.get("output_padding", (0,)), given["groups"]], out


def _exchanged(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A matrix's shape, or a batch's, with rows and columns exchanged."""
    return (*shape[:-2], shape[-1], shape[-2])


def _aligned(rows: Sequence[tuple[str, str, str]]) -> str:
    """Rows as text under the first of them: names to the left, numbers to the right."""
    widths = [max(len(rows[0][i]) + 2, *[len(row[i]) for row in rows]) for i in range(3)]
    rule = tuple(["-" * width for width in widths])
    return "\n".join(
        [
            f"{name:<{widths[0]}}  {count:>{widths[1]}}  {share:>{widths[2]}}"
            for name, count, share in (rows[0], rule, *rows[1:])
        ]
    )
