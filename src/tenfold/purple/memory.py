"""`purple memory`: a program in A-normal form with each release, share and reuse, why it is there, and how
much of it is static; and, of a run, the most that its tensors took beside the least that would have done."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tenfold.purple import core, ir
from tenfold.purple.build import build_program
from tenfold.purple.certify import certify
from tenfold.purple.cycles import Cycle
from tenfold.purple.emit_c import analysed, deep
from tenfold.purple.errors import warning
from tenfold.purple.ir import Atom, Block, Constant, Function, Place, Variable
from tenfold.purple.printing import write_text
from tenfold.purple.releases import releases, table

WIDTH = 64  # where the remarks begin


class Liveness(NamedTuple):
    """Bytes of tensors that a run held at most, and the least that would have done: each tensor gone right
    after the last operator that uses it."""

    peak: int
    ideal: int

    def __str__(self) -> str:
        ratio = f" ({self.peak / self.ideal:.2f} of it)" if self.ideal else ""
        return f"peak of live tensors: {self.peak} bytes; ideal liveness bound: {self.ideal} bytes{ratio}"


def measure(program: core.Program, arguments: Sequence[str] = ()) -> tuple[int, Liveness]:
    """Run a program, which prints what it prints, and watch its tensors: its exit status, what they took."""
    with tempfile.TemporaryDirectory() as folder:
        built, figures = str(Path(folder) / "program"), Path(folder) / "figures"
        build_program(program, built, options=("-DPURPLE_LIVENESS",))
        environment = {**os.environ, "PURPLE_LIVENESS": str(figures)}
        done = subprocess.run([built, *arguments], env=environment, check=False)
        peak, ideal = figures.read_text().split() if figures.exists() else (0, 0)
        return done.returncode, Liveness(int(peak), int(ideal))


def report(program: core.Program) -> str:
    """The text that `purple memory FILE` prints."""
    return deep(lambda: _report(program))


def compare(programs: Sequence[core.Program]) -> str:
    """The text that `purple memory FILE FILE …` prints: how each program's values are released."""
    return "\n".join(
        deep(lambda: list(table([(program.file, releases(analysed(program))) for program in programs])))
    )


def _report(program: core.Program) -> str:
    cycles: list[Cycle] = []
    module = analysed(program, cycles.append)
    lines: list[str] = []
    others = sum(f.place.file != program.file for f in module.functions)
    lines += [text for text, _ in owned_form(module)]
    lines += _summary(module, others)
    lines += [warning(cycle.message, cycle.place, cycle.help, program.sources) for cycle in cycles]
    return "\n".join(lines)


def _summary(module: ir.Module, others: int) -> Iterator[str]:
    found = releases(module)
    yield f"releases: {found.total}, of them {round(100 * found.decided)} % decided by the compiler"
    yield f"  static    {found.static:5}   freed where nothing else can hold them"
    yield f"  vanished  {found.vanished:5}   only looked at while someone else holds them"
    yield f"  reused    {found.reused:5}   their memory becomes the next value's"
    yield f"  counted   {len(found.counted):5}   their count decides"
    own = [each for each in found.counted if each[0].file == module.program.file]
    for place, name, why in sorted(own):
        yield f"    line {place.line}: {name}: {why}"
    if len(own) < len(found.counted):
        yield f"    and {len(found.counted) - len(own)} in the prelude and in imported files"
    points = certify(module)
    paths = f"those of {points} calls that may fail included"
    yield f"certified: each owned value is released exactly once on every path, {paths}"
    if others:
        yield f"({others} functions of the prelude and of imported files are counted, and not shown)"


# A line of the owned form, and the place in the source that it is about, if any.
Line = tuple[str, Place | None]


def owned_form(module: ir.Module) -> Iterator[Line]:
    """The program's own functions, each with its releases, then the top level."""
    own = [f for f in module.functions if f.place.file == module.program.file]
    for function in [*own, module.main]:
        yield from _function(function)
        yield "", None


def _function(function: Function) -> Iterator[Line]:
    if function.name == "main":
        yield "top level", None
    else:
        params = " ".join(f"&{p.name}" if p.borrowed else p.name for p in function.params)
        captured = f"   captures {' '.join(p.name for p in function.captured)}" if function.captured else ""
        head = f"({core.shown(function.name)} {params})".replace(" )", ")")
        yield f"{head}   {function.place}{captured}", function.place
    yield from _block(function.body, 1)


def _block(block: Block, depth: int) -> Iterator[Line]:
    pad = "    " * depth
    for each in block:
        place = getattr(each, "place", None)
        match each:
            case ir.Let(op=ir.Reuse() as op):
                yield (
                    _remarked(
                        f"{pad}{each.var!r} = {_op(op)}",
                        f"reuses {_atom(op.args[op.dying])}, which dies here",
                    ),
                    place,
                )
            case ir.Let(op=ir.Reverse()):
                yield _remarked(f"{pad}{each.var!r} = {_op(each.op)}", "its last use: in place"), place
            case ir.Let(op=ir.Rebuild() as op):
                yield _remarked(f"{pad}{each.var!r} = {_op(op.made)}", "in memory that was kept"), place
            case ir.Let() if each.var.lender is not None:
                yield _remarked(f"{pad}{each.var!r} = {_op(each.op)}", "lent: nothing to release"), place
            case ir.Let():
                yield f"{pad}{each.var!r} = {_op(each.op)}", place
            case ir.LetTry():
                yield f"{pad}{each.var!r} = try {each.function.name} {_atoms(each.args)}", place
            case ir.Uncons():
                how = "its last use" + "; its memory is kept" * (each.cell is not None)
                yield _remarked(f"{pad}{each.car!r}, {each.cdr!r} = take apart {each.pair!r}", how), place
            case ir.Drop(var=ir.Variable(type=ir.CELL)):
                yield _remarked(f"{pad}free memory", each.reason), place
            case ir.Dup():
                yield _remarked(f"{pad}share {each.var!r}", "used again later"), place
            case ir.Drop():
                how = f"; static: {each.unique}" if each.unique else f"; counted: {each.counted}"
                how += "; its memory is kept" * (each.cell is not None)
                yield _remarked(f"{pad}free {each.var!r}", each.reason + how), place
            case ir.If():
                yield f"{pad}if {_atom(each.test)}", place
                yield from _block(each.then, depth + 1)
                if each.otherwise:
                    yield f"{pad}else", place
                    yield from _block(each.otherwise, depth + 1)
            case ir.Loop():
                yield f"{pad}loop {each.label}", place
                yield from _block(each.body, depth + 1)
            case ir.Continue():
                yield f"{pad}again {each.label}", place
            case ir.Return():
                yield f"{pad}return {_atom(each.value)}", place
            case ir.TailCall():
                yield f"{pad}return {core.shown(each.function.name)} {_atoms(each.args)}", place
            case ir.TailClosure():
                yield f"{pad}return call {_atoms(each.args)}", place


def _remarked(text: str, remark: str) -> str:
    return f"{text:<{WIDTH}} ; {remark}"


def _atom(atom: Atom) -> str:
    if isinstance(atom, Variable):
        return repr(atom)
    return _constant(atom)


def _constant(atom: Constant) -> str:
    try:
        return write_text(atom.value)
    except TypeError:
        return type(atom.value).__name__.lower()


def _atoms(atoms: list[Atom]) -> str:
    return " ".join(map(_atom, atoms))


def _op(op: ir.Op) -> str:
    match op:
        case ir.Prim() | ir.Reuse():
            words = [op.name]
        case ir.Copy():
            words = []
        case ir.Convert():
            words = [f"as-{op.rep}"]
        case ir.CallKnown() | ir.CallWithin():
            words = [core.shown(op.function.name)]
        case ir.MakeClosure():
            words = ["closure", core.shown(op.function.name)]
        case ir.LoadGlobal() | ir.StoreGlobal():
            words = ["global" if isinstance(op, ir.LoadGlobal) else "set-global", core.shown(op.name)]
        case ir.Take():
            words = ["take", op.part]
        case ir.MakeRecord() | ir.IsRecord() | ir.FieldRef() | ir.SetField() | ir.CheckField():
            words = [type(op).__name__.lower(), core.shown(op.type.name)]
            if isinstance(op, ir.FieldRef | ir.SetField | ir.CheckField):
                words.append(op.type.fields[op.index].name)
        case ir.PrimClosure():
            words = [op.name]
        case ir.Foreign():
            words = [op.declaration.name]
        case _:
            words = [type(op).__name__.lower()]
    return " ".join([*words, _atoms(op.args)]).strip()
