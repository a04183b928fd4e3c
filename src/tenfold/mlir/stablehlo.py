"""FlatIR to a StableHLO module, op by op, through jaxlib's MLIR bindings (loaded on first use).

An op becomes the StableHLO op of its name; its attributes are its fields, by the specification's names. The
few whose attributes need more than their Python type tells are in `ATTRIBUTES`; those with regions, in
`SPECIAL`.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.dtypes import DType, from_numpy, int32
from tenfold.base.errors import EngineError, MissingEngine, UnsupportedError
from tenfold.base.forking import forkable
from tenfold.base.meshes import Mesh, Partitioned, Sharding
from tenfold.flat import data_ops as movement, elementwise, indexed, structured, windows
from tenfold.flat.fusions import is_plain, largest_fusion
from tenfold.flat.ir import Function, Op, TensorType, Value
from tenfold.flat.sharding import ShardingConstraint
from tenfold.flat.uneven import evened
from tenfold.flat.uniform import multiplies_uniform
from tenfold.mlir import CONVOLUTIONS, PRODUCTS, collectives, folding, triton
from tenfold.mlir.attributes import attribute_text
from tenfold.mlir.interrupts import once, pass_on, uninterrupted
from tenfold.mlir.layouts import keep_scatters_even
from tenfold.mlir.scattering import scatter_sums
from tenfold.ops import tile_kernels

TITLE = "==== StableHLO IR ===="
SUPPORTED = ((0, 10), (0, 12))  # from, and before
SINCE, BEFORE = (".".join(map(str, each)) for each in SUPPORTED)
INSTALL = f"pip install 'jaxlib>={SINCE},<{BEFORE}'"
# Fields that the result type tells, or that are regions.
IMPLIED = {"shape", "dtype", "result_types", "branches"}
# The interpreter knows StableHLO alone.
WITHOUT_CHLO = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
# Element types that MLIR's Python bindings cannot read.
NOT_HANDED_OVER = ("complex", "bf16", "f8E4M3FN", "f8E5M2")
# What copies of an op share: name, result types, attributes, and operand fields (None if one holds several).
Form = tuple[str, list[Any], dict[str, Any], list[str] | None]
EMITTED = 500  # modules of one context
_lock = forkable(threading.RLock())


class Module:
    """A StableHLO module, and the types of its results. `checks` are run-time checks, whose joined verdict is
    its last result, if any; `calls`, one for each function that the engine must know by name. `small` says
    that it computes with small arrays alone; `reduced`, how many elements its largest reduction takes;
    `uniform`, that it multiplies by arrays of equal elements; `long`, that XLA would make one long kernel of
    much of it; `slow_to_fold`, that XLA would fold its constants for long; `placed`, how each result lies on
    a mesh, as far as the module says so."""

    def __init__(
        self,
        module: Any,
        results: Sequence[TensorType],
        checks: Sequence[structured.Check] = (),
        calls: Sequence[structured.CustomCall] = (),
        small: bool = False,
        reduced: int = 0,
        placed: Sequence[Sharding | None] = (),
        long: bool = False,
        uniform: bool = False,
        slow_to_fold: bool = False,
    ):
        self.long = long
        self.slow_to_fold = slow_to_fold
        self.uniform = uniform
        self.small = small
        self.reduced = reduced
        self.module = module
        self.results = tuple(results)
        self.checks = tuple(checks)
        self.calls = tuple(calls)
        self.placed = tuple(placed)

    def text(self, locations: bool = False, whole: bool = False) -> str:
        """The module as text; of long constants only their types, unless `whole`."""
        with _lock:
            limit = None if whole else 32
            return self.module.operation.get_asm(enable_debug_info=locations, large_elements_limit=limit)

    def count(self) -> int:
        """How many ops the module has, those of its functions and regions included."""
        found = 0

        def look(op: Any) -> Any:
            nonlocal found
            found += 1
            return advance

        advance = bindings().ir.WalkResult.ADVANCE
        with _lock:
            self.module.operation.walk(look)
        return found

    def bytecode(self) -> bytes:
        with _lock:
            stream = io.BytesIO()
            self.module.operation.write_bytecode(stream)
            return stream.getvalue()


@functools.cache
def jaxlib_version() -> str:
    """The version of the installed jaxlib, if it is one that Tenfold knows; the first step of any use."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # or it reports its devices on standard error
    try:
        from jaxlib.version import __version__
    except ImportError as error:
        raise MissingEngine(
            f"StableHLO and XLA need jaxlib, which cannot be imported ({error})", help=INSTALL
        ) from None
    release = tuple(int(part) for part in __version__.split(".")[:2])
    if not SUPPORTED[0] <= release < SUPPORTED[1]:
        raise MissingEngine(
            f"jaxlib {__version__} is not one that this Tenfold knows ({SINCE} and later, before {BEFORE})",
            help=INSTALL,
        )
    return __version__


@once
def bindings() -> SimpleNamespace:
    """jaxlib's MLIR bindings, and the context in which modules are made.

    Only the extension modules are loaded: the generated builders cost more than compiling a small program.
    """
    jaxlib_version()
    from jaxlib.mlir import ir, passmanager
    from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo

    upstream = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(upstream)  # func among them
    b = SimpleNamespace(
        ir=ir,
        passmanager=passmanager,
        dialect=_stablehlo,
        sdy=_sdy,
        upstream=upstream,
        # JAX writes attributes of sdy into every file.
        dialects=(_stablehlo, _chlo, _sdy),
        # A context that does not load them all.
        new_context=type("Context", (ir.Context,), {"__init__": ir.Context.__base__.__init__}),
    )
    _renew_context(b)
    return b


def _renew_context(b: SimpleNamespace) -> None:
    """Begin another context. One keeps every type, attribute and place that it was ever told of; modules that
    were made in it keep it."""
    context = b.new_context()
    context.append_dialect_registry(b.upstream)
    context.load_all_available_dialects()
    for dialect in b.dialects:
        dialect.register_dialect(context)
    with context:
        b.unknown = b.ir.Location.unknown()
    b.context, b.types, b.attributes, b.files, b.emitted = context, {}, {}, {}, 0


@once
def generated() -> None:
    """Load the generated builders, which the bindings otherwise import where a module is first looked into:
    an import that a signal's handler ends cannot be repeated."""
    from jaxlib.mlir.dialects import arith, builtin, chlo, func, sdy, stablehlo  # noqa: F401


def _first_time() -> contextlib.AbstractContextManager[None]:
    """For a block that may import the builders that emitting needs, which is the slowest part of it."""
    loaded = all(f"jaxlib.mlir.dialects.{dialect}" in sys.modules for dialect in ("builtin", "stablehlo"))
    return contextlib.nullcontext() if loaded else uninterrupted()


def emit(
    function: Function,
    donated: Sequence[tuple[int, int]] = (),
    layout: Partitioned | None = None,
    exact: frozenset[str] = frozenset(),
) -> Module:
    """A module whose `main` is the function; `donated` says which parameters lend their memory to which
    results, `layout` how parameters and results are sharded over a mesh. Of what is `exact`, PRODUCTS or
    CONVOLUTIONS, float32 factors are not rounded."""
    with _lock:
        b = bindings()
        b.emitted += 1
        if b.emitted > EMITTED:
            _renew_context(b)
        with _first_time(), b.context, b.unknown:
            emitter = _Emitter(b)
            emitter.exact = exact
            return emitter.module(function, dict(donated), layout)


def interpret(module: Module, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The module's results by StableHLO's reference interpreter: slow, and independent of every engine."""
    with _lock:
        b = bindings()
        from jaxlib.mlir import passmanager
        from jaxlib.mlir._mlir_libs import _stablehlo

        generated()
        _stablehlo.register_stablehlo_passes()
        with b.context, b.unknown:
            plain = b.ir.Module.parse(module.bytecode())
            for result in plain.body.operations[0].attributes["function_type"].value.results:
                if any(name in str(result) for name in NOT_HANDED_OVER):
                    raise UnsupportedError(
                        f"StableHLO's interpreter cannot hand a {result} over to Python",
                        help="bitcast it to unsigned integers, or take a complex one apart",
                    )
            emitter = _Emitter(b)
            inputs = [_literal(emitter, array, from_numpy(array.dtype)) for array in arrays]
            try:
                passmanager.PassManager.parse(WITHOUT_CHLO).run(plain.operation)
                results = _stablehlo.eval_module(plain, inputs)
            except Exception as error:
                pass_on(error)
                raise EngineError(f"StableHLO's interpreter: {str(error).splitlines()[0]}") from None
            return [np.array(result) for result in results]


SMALL = 512  # bytes
LONG = 1500  # ops that make a kernel long


def _is_small(function: Function) -> bool:
    """Whether no array of the program, from its first to its last, is larger than SMALL."""
    ends = (*function.params, *function.results)
    within = (result for op in function.ops for result in op.results)
    return all(
        value.type.numel * value.type.dtype.itemsize <= SMALL for value in itertools.chain(ends, within)
    )


class _Emitter:
    def __init__(self, b: SimpleNamespace):
        self.b = b
        self.values: dict[Value, Any] = {}
        self.checks: list[structured.Check] = []
        self.forms: dict[Op, Form] = {}
        self.calls: dict[str, structured.CustomCall] = {}
        self.reduced = [0]  # the elements that each reduction takes
        self.folded = [0]  # the elements that XLA would evaluate of each op, were its operands constants
        self.channels = itertools.count(1)  # of collectives
        self.meshes: dict[Mesh, None] = {}
        self.exact: frozenset[str] = frozenset()  # see `emit`
        self.partitioned = False  # see `location`

    def module(
        self, function: Function, donated: dict[int, int], layout: Partitioned | None = None
    ) -> Module:
        ir = self.b.ir
        module = ir.Module.create()
        result_types = [result.type for result in function.results]
        self.partitioned = layout is not None
        if layout is not None:
            function, layout = evened(function, layout)
            params, given = function.params, function.results
            donated = {i: j for i, j in donated.items() if params[i].type is given[j].type}
        inputs = [self.type(param.type) for param in function.params]
        padded_types = [result.type for result in function.results]
        if any(type(op) is structured.Check for op in function.ops):
            result_types.append(TensorType(int32, ()))
            padded_types.append(TensorType(int32, ()))
        outputs = [self.type(result_type) for result_type in padded_types]
        attributes = {
            "sym_name": ir.StringAttr.get("main"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, outputs)),
        }
        if donated or layout is not None:
            attributes["arg_attrs"] = ir.ArrayAttr.get(
                [self.argument(i, donated, layout) for i in range(len(inputs))]
            )
        placed: list[Sharding | None] = [None] * len(outputs)
        if layout is not None:
            placed[: len(layout.results)] = layout.results
            attributes["res_attrs"] = ir.ArrayAttr.get([self.placement(sharding) for sharding in placed])
        with ir.InsertionPoint(module.body):
            main = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block = main.regions[0].blocks.append(*inputs)
        self.values.update(zip(function.params, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            self.ops(function)
            results = [self.values[result] for result in function.results]
            if self.checks:
                results.append(self.verdict())
            ir.Operation.create("func.return", operands=results)
        self.declare_mesh(module, main)
        if layout is not None:
            if layout.mesh.size > 1:
                keep_scatters_even(self, module, layout.mesh)
            scatter_sums(self, module, function, layout)
        calls, reduced = list(self.calls.values()), max(self.reduced)
        small, long = _is_small(function), largest_fusion(function, LONG) >= LONG and is_plain(function)
        uniform = not small and multiplies_uniform(function)
        slow = sum(self.folded) > folding.MOST and folding.is_slow([main])
        return Module(module, result_types, self.checks, calls, small, reduced, placed, long, uniform, slow)

    def argument(self, place: int, donated: dict[int, int], layout: Partitioned | None) -> Any:
        """What is said of a parameter: which result its memory goes to, and how it is sharded."""
        ir = self.b.ir
        said = {}
        if place in donated:
            whole = ir.IntegerType.get_signless(32)
            said["tf.aliasing_output"] = ir.IntegerAttr.get(whole, donated[place])
        if layout is not None:
            said["sdy.sharding"] = self.sharding(layout.params[place])
        return ir.DictAttr.get(said)

    def placement(self, sharding: Sharding | None) -> Any:
        return self.b.ir.DictAttr.get({} if sharding is None else {"sdy.sharding": self.sharding(sharding)})

    def sharding(self, sharding: Sharding) -> Any:
        self.meshes[sharding.mesh] = None
        return self.b.ir.Attribute.parse(f"#sdy.sharding<@mesh, {sharding.text}>")

    def declare_mesh(self, module: Any, main: Any) -> None:
        """Say which mesh the shardings are of, if there are any."""
        if not self.meshes:
            return
        if len(self.meshes) > 1:
            raise EngineError("a program runs on one mesh", help="redistribute its tensors to one mesh")
        ir, (mesh,) = self.b.ir, self.meshes
        attributes = {
            "sym_name": ir.StringAttr.get("mesh"),
            "mesh": ir.Attribute.parse(f"#sdy.mesh{mesh.text}"),
        }
        with ir.InsertionPoint(main):
            ir.Operation.create("sdy.mesh", attributes=attributes)
        whole = ir.IntegerType.get_signless(32)
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(whole, mesh.size)
        module.operation.attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(whole, 1)

    def ops(self, function: Function) -> None:
        values, forms, create = self.values, self.forms, self.b.ir.Operation.create
        source, location, partitioned = None, self.b.unknown, self.partitioned
        for op in function.ops:
            state = op.__dict__
            results = state["results"]
            special = SPECIAL.get(type(op))
            if special is not None:
                values.update(zip(results, special(self, op), strict=True))
                continue
            pattern = state.get("pattern", op)
            form = forms.get(pattern)
            if form is None:
                form = forms[pattern] = self.form(op)
            name, types, attributes, fields = form
            if fields is None:
                operands = [values[operand] for operand in op.operands]
            else:
                operands = [values[state[field]] for field in fields]
            if state["source"] is not source or partitioned:
                source = state["source"]
                location = self.location(source, name)
            created = create(name, types, operands, attributes, None, 0, location)
            if len(results) == 1:
                values[results[0]] = created.result
            else:
                values.update(zip(results, created.results, strict=True))

    def form(self, op: Op) -> Form:
        types = [self.type(result.type) for result in op.results]
        attributes = ATTRIBUTES.get(type(op), _Emitter.attributes)(self, op)
        several = any(many for _, many in op.operand_fields)
        return op.name, types, attributes, None if several else [field for field, _ in op.operand_fields]

    def with_regions(
        self, op: Op, operands: Sequence[Value], functions: Sequence[Function], captured: Sequence[Value] = ()
    ) -> Any:
        """An op with one region for each function."""
        if isinstance(op, structured.Reduce):
            self.reduced.append(op.inputs[0].numel)
        created = self.b.ir.Operation.create(
            op.name,
            results=[self.type(result.type) for result in op.results],
            operands=[self.values[operand] for operand in operands],
            attributes=self.attributes(op),
            regions=len(functions),
            loc=self.location(op.source, op.name),
        )
        self.folded.append(folding.elements(created))
        for region, function in zip(created.regions, functions, strict=True):
            self.region(region, function, captured)
        return created.results

    def inner(self) -> _Emitter:
        """What emits a region of an op."""
        return _Emitter(self.b)

    def region(
        self, region: Any, function: Function, captured: Sequence[Value], end: str = "stablehlo.return"
    ) -> None:
        """Fill a region; its parameters are its block's, or stand for `captured` values of the outer. `end`
        is the op that ends it."""
        ir = self.b.ir
        inner = self.inner()
        inner.calls, inner.channels = self.calls, self.channels
        inner.reduced, inner.folded = self.reduced, self.folded
        inner.meshes, inner.exact, inner.partitioned = self.meshes, self.exact, self.partitioned
        function = function.expanded()
        if captured:
            block = region.blocks.append()
            inner.values.update(
                (param, self.values[each]) for param, each in zip(function.params, captured, strict=True)
            )
        else:
            types = [self.type(param.type) for param in function.params]
            block = region.blocks.append(*types)
            inner.values.update(zip(function.params, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            inner.ops(function)
            if inner.checks:
                raise EngineError("a run-time check inside a loop or branch cannot be emitted")
            results = [inner.values[result] for result in function.results]
            ir.Operation.create(end, operands=results)

    def type(self, type: TensorType) -> Any:
        parsed = self.b.types.get(type)
        if parsed is None:
            extents = "".join(f"{extent}x" for extent in type.shape)
            parsed = self.b.types[type] = self.b.ir.Type.parse(f"tensor<{extents}{type.dtype.mlir}>")
        return parsed

    def location(self, source: Any, op_name: str) -> Any:
        """Where an op was written, as a file and a line. XLA's partitioner drops locations of files and keeps
        names, so in a program on a mesh the location is a name: `model.py:12/tanh`."""
        if source is None:
            return self.b.unknown
        code, instruction = source
        kind = op_name.rpartition(".")[2] if self.partitioned else ""
        located = self.b.files.get((id(code), instruction, kind))
        if located is None:
            ir, columns = self.b.ir, source.columns
            if kind:
                location = ir.Location.name(f"{source.filename}:{source.line}/{kind}")
            else:
                location = ir.Location.file(source.filename, source.line, columns[0] + 1 if columns else 0)
            # With the source, so that its code object stays, and with it the meaning of its id.
            located = self.b.files[id(code), instruction, kind] = (location, source)
        return located[0]

    def attributes(self, op: Op) -> dict[str, Any]:
        return {
            field: self.attribute(value)
            for field, value in op.attributes.items()
            if field not in IMPLIED and not isinstance(value, Function)
        }

    def attribute(self, value: Any) -> Any:
        """A Python value as an attribute, by its type; enumerations and dimension numbers come from text."""
        # (0, 1) and (False, True) are equal, and different attributes.
        key = (type(value), type(value[0]) if isinstance(value, tuple) and value else None, value)
        found = self.b.attributes.get(key)
        if found is None:
            found = self.b.attributes[key] = self.b.ir.Attribute.parse(attribute_text(value))
        return found

    def verdict(self) -> Any:
        """An i32: 0 if all checks hold, else one more than the place of the first that does not."""
        ir = self.b.ir
        i32 = ir.Type.parse("tensor<i32>")

        def number(n: int) -> Any:
            attribute = ir.DenseElementsAttr.get(np.array(n, np.int32))
            return ir.Operation.create(
                "stablehlo.constant", results=[i32], attributes={"value": attribute}
            ).result

        code = number(0)
        for place in reversed(range(len(self.checks))):
            holds = self.values[self.checks[place].holds]
            operands = [holds, code, number(place + 1)]
            code = ir.Operation.create("stablehlo.select", results=[i32], operands=operands).result
        return code


def _literal(emitter: _Emitter, array: np.ndarray, dtype: DType) -> Any:
    ir = emitter.b.ir
    tensor = emitter.type(TensorType(dtype, array.shape))
    if dtype.kind == "bool" and not array.size:
        return ir.Attribute.parse(f"dense<> : {tensor}")
    if dtype.kind == "bool":
        values = [ir.BoolAttr.get(bool(number)) for number in array.ravel()]
        return ir.DenseElementsAttr.get(values, type=tensor)
    element = ir.RankedTensorType(tensor).element_type
    return ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=element, shape=array.shape)


def _constant(emitter: _Emitter, op: movement.Constant) -> dict[str, Any]:
    if op.value.ndim:
        return {"value": _literal(emitter, op.value, op.dtype)}
    key = (op.dtype, op.value.tobytes())
    attribute = emitter.b.attributes.get(key)
    if attribute is None:
        attribute = emitter.b.attributes[key] = _literal(emitter, op.value, op.dtype)
    return {"value": attribute}


def _compare(emitter: _Emitter, op: elementwise.Compare) -> dict[str, Any]:
    attributes = {
        "comparison_direction": _parsed(emitter, f"#stablehlo<comparison_direction {op.direction}>"),
    }
    if op.total_order:
        attributes["compare_type"] = _parsed(emitter, "#stablehlo<comparison_type TOTALORDER>")
    return attributes


def _parsed(emitter: _Emitter, text: str) -> Any:
    attribute = emitter.b.attributes.get(text)
    if attribute is None:
        attribute = emitter.b.attributes[text] = emitter.b.ir.Attribute.parse(text)
    return attribute


def _enumerated(field: str, kind: str) -> Callable[[_Emitter, Op], dict[str, Any]]:
    """An op one of whose attributes is an enumeration of StableHLO's."""

    def special(emitter: _Emitter, op: Op) -> dict[str, Any]:
        attributes = {
            name: emitter.attribute(value) for name, value in op.attributes.items() if name != field
        }
        attributes[field] = _parsed(emitter, f"#stablehlo<{kind} {op.__dict__[field]}>")
        return attributes

    return special


def _reduce_precision(emitter: _Emitter, op: elementwise.ReducePrecision) -> dict[str, Any]:
    return {name: _parsed(emitter, f"{value} : i32") for name, value in op.attributes.items()}


def _random(emitter: _Emitter, op: structured.RngBitGenerator) -> dict[str, Any]:
    return {"rng_algorithm": _parsed(emitter, "#stablehlo<rng_algorithm PHILOX>")}


def _custom_call(emitter: _Emitter, op: structured.CustomCall) -> dict[str, Any]:
    ir = emitter.b.ir
    emitter.calls.setdefault(op.call_target_name, op)
    layouts_and_aliases = _places_of(emitter, op)
    if op.call_target_name.startswith(tile_kernels.TARGET):
        target, _, name = op.call_target_name.partition("#")
        config = triton.configuration(op, tile_kernels.KERNELS[name])
        return {
            "call_target_name": ir.StringAttr.get(target),
            "mhlo.backend_config": ir.Attribute.parse(config),
            **layouts_and_aliases,
        }
    if isinstance(op.backend_config, str):  # a text that XLA itself reads
        version, config = 2, ir.StringAttr.get(op.backend_config)
    else:
        options = ", ".join(f"{name} = {value}" for name, value in op.backend_config)
        version, config = 4, ir.Attribute.parse("{" + options + "}")
    return {
        "call_target_name": ir.StringAttr.get(op.call_target_name.partition("#")[0]),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), version),
        "backend_config": config,
        **layouts_and_aliases,
    }


def _places_of(emitter: _Emitter, op: structured.CustomCall) -> dict[str, Any]:
    """Which results lie where operands do, and in which order all of them lie in memory."""
    ir = emitter.b.ir
    attributes: dict[str, Any] = {}
    if op.aliases:
        several = len(op.result_types) > 1
        texts = [
            f"#stablehlo.output_operand_alias<output_tuple_indices = [{out if several else ''}], "
            f"operand_index = {operand}, operand_tuple_indices = []>"
            for out, operand in op.aliases
        ]
        attributes["output_operand_aliases"] = ir.Attribute.parse(f"[{', '.join(texts)}]")
    if op.by_columns:
        types = [*[operand.type for operand in op.inputs], *op.result_types]
        layouts = [
            _layout(type.rank, by_column) for type, by_column in zip(types, op.by_columns, strict=True)
        ]
        given, made = layouts[: len(op.inputs)], layouts[len(op.inputs) :]
        attributes["operand_layouts"] = ir.Attribute.parse(f"[{', '.join(given)}]")
        attributes["result_layouts"] = ir.Attribute.parse(f"[{', '.join(made)}]")
    return attributes


def _layout(rank: int, layout: bool | tuple[int, ...]) -> str:
    """The dimensions from the one that is nearest in memory to the farthest."""
    order = list(layout) if isinstance(layout, tuple) else list(reversed(range(rank)))
    if layout is True:
        order[:2] = reversed(order[:2])
    return f"dense<{order}> : tensor<{rank}xindex>" if rank else "dense<> : tensor<0xindex>"


def _check(emitter: _Emitter, op: structured.Check) -> Any:
    emitter.checks.append(op)
    return (emitter.values[op.x],)


def _regions(*fields: str) -> Callable[[_Emitter, Op], Any]:
    def special(emitter: _Emitter, op: Op) -> Any:
        return emitter.with_regions(op, op.operands, [op.__dict__[field] for field in fields])

    return special


def _case(emitter: _Emitter, op: structured.Case) -> Any:
    return emitter.with_regions(op, (op.index,), op.branches, captured=op.arguments)


def _precise(kind: str) -> Callable[[_Emitter, Op], dict[str, Any]]:
    """Products whose float32 or complex64 factors a GPU would round to TF32, unless it is told not to."""

    def attributes(emitter: _Emitter, op: Op) -> dict[str, Any]:
        found = emitter.attributes(op)
        if kind in emitter.exact and op.operands[0].dtype in (dtypes.float32, dtypes.complex64):
            highest = emitter.b.ir.Attribute.parse("#stablehlo<precision HIGHEST>")
            found["precision_config"] = emitter.b.ir.ArrayAttr.get([highest, highest])
        return found

    return attributes


ATTRIBUTES: dict[type[Op], Callable[[_Emitter, Any], dict[str, Any]]] = {
    structured.DotGeneral: _precise(PRODUCTS),
    windows.Convolution: _precise(CONVOLUTIONS),
    windows.CuttingConvolution: _precise(CONVOLUTIONS),
    movement.Constant: _constant,
    elementwise.Compare: _compare,
    elementwise.ReducePrecision: _reduce_precision,
    structured.Fft: _enumerated("fft_type", "fft_type"),
    structured.TriangularSolve: _enumerated("transpose_a", "transpose"),
    structured.RngBitGenerator: _random,
    structured.CustomCall: _custom_call,
    ShardingConstraint: lambda emitter, op: {"sharding": emitter.sharding(op.sharding)},
}

SPECIAL: dict[type[Op], Callable[[_Emitter, Any], Any]] = {
    **collectives.EMITTERS,
    structured.Check: _check,
    structured.Case: _case,
    structured.While: _regions("condition", "body"),
    structured.Reduce: _regions("body"),
    windows.ReduceWindow: _regions("body"),
    structured.Sort: _regions("comparator"),
    indexed.Scatter: _regions("body"),
    windows.SelectAndScatter: _regions("select", "scatter"),
}
