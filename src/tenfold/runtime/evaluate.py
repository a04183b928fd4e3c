"""Evaluation of lazy values: find the program that computes them, run its executable, keep the results.

Besides the requested values, a program returns those that others still hold and those that in-place ops have
written, so that nothing is computed twice.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.errors import (
    ArgumentError,
    DistributedError,
    OutOfMemory,
    TenfoldError,
    TraceError,
    UnsupportedError,
)
from tenfold.base.late import on_first_use
from tenfold.base.meshes import Sharding
from tenfold.base.owners import NAMED, PASSED, count
from tenfold.base.source import capture
from tenfold.base.threads import handed_on
from tenfold.engines import xla
from tenfold.flat.ir import TensorType
from tenfold.flat.structured import Check
from tenfold.runtime import executables, runs, small
from tenfold.runtime.checks import AHEAD, Donations, Loaded, settle, size_in_bytes
from tenfold.runtime.lazy_sizes import Found
from tenfold.runtime.packing import Pending
from tenfold.runtime.tiers import Tier
from tenfold.trace.collect import Trace, collect
from tenfold.trace.gradient import used_up
from tenfold.trace.graph import NO_DATA, Holder, Node, Value

with on_first_use(__name__):
    from tenfold.engines import sharded


WORTHWHILE = 1 << 14  # bytes, below which fresh memory costs nothing on a CPU


# Tensors that were written, what they held before, and what they held in between, where it is still known.
# Each thread has its own: what a loader's worker reads does not run what a training step has written so far.
class _Written(threading.local):
    def __init__(self) -> None:
        self.tensors: dict[int, tuple[weakref.ref[Holder], Value, list[weakref.ref[Value]]]] = {}


_written = handed_on(_Written())
# Writes that could not be computed, and that nobody has asked for: with all that the tensor held before, None
# for what is lost.
_failed: list[tuple[weakref.ref[Holder], list[Value | None], Value]] = []
# So often a tensor may be written before it is computed: a loop that writes without reading would otherwise
# be recorded as one program, longer with every round.
MAX_WRITES = 16
ENGINES = ("xla", "libtorch", "numpy")
engine = "xla"  # see set_engine


def evaluate(values: Sequence[Value]) -> None:
    """Give every one of these values its data, and with them the tensors that were written in place."""
    for each in values:
        if each.buffer is None:
            break
    else:
        return
    del each  # a name that holds a value would count as one who wants it
    with executables.lock:
        wanted = [each for each in values if each.buffer is None]  # another thread may have been here first
        if not wanted:
            return
        settle(AHEAD)  # before the rest, whose errors are its own
        if _run_small(wanted):
            return
        _failed[:] = [each for each in _failed if _is_failed(*each)]
        between = {id(before): values for _, before, values in _written.tensors.values()}
        writes = _take_written()
        # For tensors that had data before, by which value it is replaced.
        replaced = {before: value for _, before, value in writes if before.buffer is not None}
        try:
            _run_by_device(wanted + [value for _, _, value in writes], replaced)
        except DistributedError:
            raise  # other processes wait no longer: it cannot be tried again
        except TenfoldError:
            for reference, before, value in writes:
                _failed.append((reference, [before, *[each() for each in between[id(before)]]], value))
            _failed[:] = [each for each in _failed if _is_failed(*each)]
            del writes
            # If something else is at fault, a write or another result of an op, it is for those to hear who
            # read it: what was asked for is computed alone.
            remaining = [each for each in wanted if each.buffer is None]
            if not remaining:
                raise
            try:
                _run_by_device(remaining)
            except TenfoldError:
                _take_back(remaining)
                raise


def _run_small(wanted: list[Value]) -> bool:
    """Compute these values, and with them what was written, if all of that is small."""
    allowed = engine == "numpy" or (engine == "xla" and runs.small_allowed())
    if _failed or not allowed or executables.observed():
        return False
    if not _written.tensors:
        return small.run(wanted, host_array)
    for each in wanted:
        if each.node is not None and each.node.callee.small is False:
            return False
    holders = [reference() for reference, _, _ in _written.tensors.values()]
    values = [holder.current() for holder in holders if holder is not None]
    if not small.run([*wanted, *[value for value in values if value.node is not None]], host_array):
        return False
    _written.tensors.clear()
    return True


def _run_by_device(values: Sequence[Value], replaced: dict[Value, Value] | None = None) -> None:
    by_device: dict[Device, list[Value]] = {}
    for value in values:
        by_device.setdefault(value.device, []).append(value)
    for device, targets in by_device.items():
        _run(list(dict.fromkeys(targets)), device, replaced)


def _run(targets: list[Value], device: Device, replaced: dict[Value, Value] | None) -> None:
    """Compute these values, together with others that are held; without `replaced`, these values alone."""
    program, given = collect(targets, held if replaced is not None else None)
    donated = _donations(program, given, replaced or {})
    if device.mesh is not None and engine != "xla":
        raise UnsupportedError(
            f"the engine {engine!r} runs on one device, not on a {device}", help='set_engine("xla")'
        )
    if engine == "libtorch":
        from tenfold.engines import libtorch

        arrays = [host_array(leaf) for leaf in program.leaves]
        _keep(program, given, libtorch.run(program, arrays, device), None, ())
        return
    place: Tier | Found = Tier.NUMPY if engine == "numpy" else Tier.XLA
    if engine == "xla" and device.mesh is None:
        place = runs.chosen(program, device, donated)
    if place is Tier.NUMPY or place is Tier.BACKGROUND:
        from tenfold.engines.numpy.programs import run_program

        executables.announce(program, device)
        arrays = [
            leaf.buffer if type(leaf.buffer) is np.ndarray else host_array(leaf) for leaf in program.leaves
        ]
        results = run_program(program, arrays)
        _hand_on(program, donated, arrays, results)
        _keep(program, given, results, None, ())
        return
    held_results: list[Any] = []
    try:
        if isinstance(place, Found):
            loaded, buffers, donated = _padded(program, device, place)
        elif device.mesh is None:
            loaded, buffers, donated = _prepared(program, device, donated)
        else:
            loaded, buffers = _partitioned(program, device, donated, given, replaced or {})
        results, failure = loaded(buffers, held_results)
        if isinstance(place, Found):
            results = place.program.cut(results, place.sizes)
        elif device.mesh is not None:
            results = _apart(given, results)
        _keep(program, given, results, failure, donated)
    except BaseException as error:
        if held_results:  # it has run, and the memory that it was given is gone
            _keep(program, given, held_results[0], loaded.failure(held_results[0]), donated)
        if isinstance(error, TenfoldError):
            raise placed(error, program) from None
        raise
    if failure is not None:
        raise failure


def _keep(
    program: Trace, given: Sequence[Value], results: list[Any], failure: Any, donated: Donations
) -> None:
    """Give values their data; after a failure, give the leaves back the memory that they lent."""
    if failure is not None:
        for place, result in donated:
            program.leaves[place].buffer = results[result]
        return
    for value, buffer in zip(given, results):  # of which the last may be a verdict
        value.settle(buffer)


def _donations(program: Trace, given: list[Value], replaced: dict[Value, Value]) -> Donations:
    """The leaves whose memory is donated to a result: the old values of tensors that were written in
    place."""
    if not replaced:
        return ()
    results = {each: i for i, each in enumerate(given)}
    donated = [
        (place, results[replaced[leaf]])
        for place, leaf in enumerate(program.leaves)
        if leaf in replaced
        and replaced[leaf] in results
        and donatable(leaf.type, replaced[leaf].type, leaf.device)
    ]
    if not donated:
        return ()
    # What a gradient may still be asked for is computed again from what it was computed from.
    wanted = {
        each for node in program.nodes if node.spent is not None and not used_up(node) for each in node.inputs
    }
    return tuple([(place, result) for place, result in donated if program.leaves[place] not in wanted])


def donatable(before: TensorType, after: TensorType, device: Device) -> bool:
    """Whether it pays to reuse the memory of a value for the one that replaces it. On a GPU it always does:
    XLA writes a program's CUDA graph anew for all that lies elsewhere than at the last run."""
    return before is after and (device.type == "cuda" or size_in_bytes(before) >= WORTHWHILE)


def unshared(value: Value, buffer: Any, owners: int) -> bool:
    """Whether a value has no owners but the `owners` that the caller knows of, so that nobody can read its
    data again. Its buffer is owned by the value and by the list that it came from; both are local names of
    the caller."""
    return count(value) <= PASSED + owners and count(buffer) <= PASSED + 2


def _known_owners(program: Trace) -> dict[Value, int]:
    """How many owners each leaf has while a program is prepared that may take its memory: nodes, this table,
    program.leaves, the writes, and the table of what was replaced."""
    known = dict.fromkeys(program.leaves, 4)
    for node in program.nodes:
        for each in node.inputs:
            if each in known:
                known[each] += 1
    return known


def _lend(program: Trace, donated: Donations, buffers: list[Any]) -> None:
    """Put buffers that may be given away in the places of donated leaves."""
    known = _known_owners(program)
    for place, _ in donated:
        leaf, buffer = program.leaves[place], buffers[place]
        if not unshared(leaf, buffer, known[leaf]):
            buffers[place] = xla.copy(buffer, leaf.device)


def _hand_on(program: Trace, donated: Donations, arrays: list[np.ndarray], results: list[Any]) -> None:
    """Copy results into the memory of the leaves that are donated to them, where nobody else reads it: a
    tensor written in place keeps its memory."""
    known = _known_owners(program) if donated else {}
    for place, result in donated:
        leaf, array = program.leaves[place], arrays[place]
        own = leaf.buffer is array and array.base is None and array.flags.writeable
        if own and unshared(leaf, array, known[leaf]):
            np.copyto(array, results[result])
            results[result] = array


def _prepared(program: Trace, device: Device, donated: Donations) -> tuple[Loaded, list[Any], Donations]:
    """What runs a program, on what, and what is donated to it. One that is compiled for all numbers takes
    nothing for itself."""
    buffers = [buffer_of(leaf, device) for leaf in program.leaves]
    loaded, numbers, order = executables.found(program, device, donated)
    if order is not None:
        given = buffers + [xla.put(np.asarray(number), device) for number in numbers]
        return loaded, [given[place] for place in order], ()
    if donated:
        _lend(program, donated, buffers)
    return loaded, buffers, donated


def _padded(program: Trace, device: Device, found: Found) -> tuple[Loaded, list[Any], Donations]:
    """The same for an executable whose sizes are open: leaves of open size lie in arrays of the bounds'."""
    opened, donated = found.program, found.program.donated
    shapes = opened.padding(program.leaves)
    buffers = []
    for i, leaf in enumerate(program.leaves):
        buffers.append(padded(leaf, shapes[i], device) if i in shapes else buffer_of(leaf, device))
    if donated:
        _lend(program, donated, buffers)
    return opened.loaded, [*buffers, *opened.scalars(found.sizes, device)], donated


def _overwritten(
    given: Sequence[Value], replaced: dict[Value, Value], known: dict[Value, Sharding], device: Any
) -> dict[int, Sharding]:
    """How results lie that replace what a tensor held, whether or not the program reads that: a write keeps
    the sharding."""
    results = {value: i for i, value in enumerate(given)}
    kept: dict[int, Sharding] = {}
    for before, value in replaced.items():
        placed = known.get(before) or sharded.sharding_if_any(before.buffer)
        if placed is None or value not in results:
            continue
        if placed.mesh == device.mesh and before.type.shape == value.type.shape:
            kept[results[value]] = placed
    return kept


def _partitioned(
    program: Trace, device: Any, donated: Donations, given: Sequence[Value], replaced: dict[Value, Value]
) -> tuple[Loaded, list[Any]]:
    """What runs a program over a mesh, and on what."""
    buffers = [buffer_of(leaf, device) for leaf in program.leaves]
    shardings = sharded.shardings_of(buffers)
    known = dict(zip(program.leaves, shardings, strict=True))
    place = sharded.place_of(device, program, shardings, _overwritten(given, replaced, known, device))
    loaded = executables.build(program, place, donated)
    if donated:
        _lend(program, donated, buffers)
    return loaded, buffers


def _apart(given: Sequence[Value], results: list[Any]) -> list[Any]:
    """The results of a program over a mesh, for plain tensors that took part in it on their own."""
    fetched = {i for i, value in enumerate(given) if value.device.mesh is None}
    return [np.array(sharded.fetch(result)) if i in fetched else result for i, result in enumerate(results)]


def set_engine(name: str) -> None:
    """Choose what computes from now on: "xla", whole programs compiled; "libtorch", op by op through
    libtenfold, which the first use builds; or "numpy", op by op on the CPU, with nothing to compile or to
    install. Values that are there already serve all of them."""
    global engine
    if name not in ENGINES:
        raise ArgumentError(f"there is no engine {name!r}", help=f"one of {', '.join(ENGINES)}")
    if name == "libtorch":
        from tenfold.engines import libtorch

        libtorch.library()
    engine = name


def get_engine() -> str:
    """What computes: "xla", "libtorch" or "numpy"."""
    return engine


def held(uses: dict[Value, int]) -> list[Value]:
    """The values of a program that something outside of it refers to: without them they would be computed
    again."""
    own = NAMED + 2  # the key of `uses` and the item
    return [value for value, uses_in in list(uses.items()) if count(value) > uses_in + own]


def written(holder: Holder, before: Value) -> None:
    """Note an in-place write: its value is computed with the next evaluation, as program order implies."""
    with executables.lock:
        tensors, key = _written.tensors, id(holder)
        known = tensors.get(key)
        if known is None or known[0]() is not holder:
            tensors[key] = (weakref.ref(holder), before, [])
            return
        reference, _, between = known
        if len(between) < MAX_WRITES - 1:
            between.append(weakref.ref(before))  # held by the op that wrote over it
        else:
            evaluate([holder.current()])
            tensors[key] = (reference, holder.current(), [])


def _take_written() -> list[tuple[weakref.ref[Holder], Value, Value]]:
    """For each tensor that was written in place: the value that it held before, and the one that it holds
    now, which is yet to be computed."""
    taken = list(_written.tensors.values())
    _written.tensors.clear()
    writes = []
    for reference, before, _ in taken:
        holder = reference()
        if holder is not None:
            value = holder.current()
            if value.buffer is None and value.node is not None:
                writes.append((reference, before, value))
    return writes


def _is_failed(reference: weakref.ref[Holder], before: Sequence[Value | None], value: Value) -> bool:
    holder = reference()
    return holder is not None and value.buffer is None and holder.current() is value


def _take_back(heard: Sequence[Value]) -> None:
    """After an error for these values: let tensors be as they were before the op that failed, if what was
    written to them comes of it, since it would have raised before the write."""
    failed: set[Node] = set()
    for node in collect(heard)[0].nodes if _failed else ():  # each after those that it depends on
        if any(each.node in failed for each in node.inputs) or (_checks(node) and _fails(node)):
            failed.add(node)
    kept = []
    for write in _failed:
        reference, held_before, value = write
        nodes = collect([value])[0].nodes if _is_failed(*write) else ()
        holder = reference()
        if holder is not None and any(node in failed for node in nodes):
            for each in reversed(held_before):
                if each is None:
                    break  # what it was is not known
                if not any(node in failed for node in collect([each])[0].nodes):
                    holder.replace(each)
                    break
        elif nodes:
            kept.append(write)
    _failed[:] = kept


def _checks(node: Node) -> bool:
    return any(isinstance(op, Check) for op in node.callee.fragment.ops)


def _fails(node: Node) -> bool:
    try:
        _run_by_device([Value(node.callee.result_types[0], node.inputs[0].device, node)])
    except TenfoldError:
        return True
    return False


def host_array(value: Value) -> np.ndarray:
    """A value's data as a NumPy array that shares its memory where it can."""
    settle()
    with executables.lock:  # a compiled function in another thread may be about to give the memory away
        return value.buffer if type(value.buffer) is np.ndarray else xla.fetch(buffer_of(value, value.device))


def number(value: Value) -> Any:
    """The one element of a value, which has data, as a Python number."""
    settle()
    with executables.lock:
        if type(value.buffer) is np.ndarray:
            return value.buffer.item()
        if type(value.buffer) is Pending or value.buffer is NO_DATA:
            return host_array(value).reshape(()).item()
        return xla.number(value.buffer, value.type.dtype, value.device)


def computed_array(value: Value) -> np.ndarray:
    """A value's data as a NumPy array, computed if it is not there yet."""
    if value.buffer is None:
        evaluate([value])
    return host_array(value)


def padded(value: Value, shape: tuple[int, ...], device: Device) -> Any:
    """A value's data on the device, in an array of a larger shape."""
    array = computed_array(value)
    whole = blank(shape, array.dtype)
    whole[tuple([slice(0, extent) for extent in array.shape])] = array
    return xla.put(whole, device)


def blank(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array to be filled in part: what is left of it may be anything."""
    return np.zeros(shape, dtype)


def buffer_of(leaf: Value, device: Device) -> Any:
    """A leaf's data on the device; host arrays and tensors of other devices are copied there."""
    buffer = leaf.buffer
    if buffer is None:
        raise TraceError(
            "a tensor from inside a compiled function has no value outside of it",
            help="return it from the function",
        )
    if buffer is NO_DATA:
        xla.require_data(device)
    if type(buffer) is Pending:
        with executables.lock:  # no compiled function may be about to write over the vector
            buffer = leaf.buffer
            if type(buffer) is Pending:
                buffer = leaf.buffer = buffer.take(leaf.index)
    if type(buffer) is np.ndarray:
        buffer = xla.put(buffer, device)
        if leaf.device is device:
            leaf.buffer = buffer
    elif leaf.device is not device:
        return xla.put(xla.fetch(buffer), device)
    return buffer


def placed(error: TenfoldError, program: Trace) -> TenfoldError:
    """An engine's error at a line of the user's: for memory the op of the largest result, else who asked."""
    if isinstance(error, OutOfMemory) and program.nodes:
        sizes = [max(t.numel * t.dtype.itemsize for t in node.callee.result_types) for node in program.nodes]
        largest = program.nodes[sizes.index(max(sizes))]
        return error.located(largest.callee.name, largest.source)
    return error.located("evaluate", capture())
