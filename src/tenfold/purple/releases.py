"""How the values of a program are released, counted by kind, for `purple memory`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tenfold.purple import ir
from tenfold.purple.ir import Variable

SHARED_LIST = "a list that something else may hold"


@dataclass
class Releases:
    """Static: at a place where nothing else can hold them, without a look at a count. Vanished: only looked
    at while someone else holds them, and never shared. Reused: nothing else can hold them, and their memory
    becomes the next value's. Counted: by a count, for the reason given beside each, with its place; what is
    reused if its count says so is among them."""

    static: int = 0
    vanished: int = 0
    reused: int = 0
    counted: list[tuple[ir.Place, str, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.static + self.vanished + self.reused + len(self.counted)

    @property
    def decided(self) -> float:
        """The share of releases that the compiler decided."""
        return (self.total - len(self.counted)) / max(1, self.total)

    def note(self, place: ir.Place, dying: ir.Atom, is_unique: bool, leaves_cell: bool, doubt: str) -> None:
        """Count the release of something that an owner lets go of."""
        if not is_unique:
            name = dying.name if isinstance(dying, Variable) else "a constant"
            self.counted.append((place, name, doubt + "; reused if nothing does" * leaves_cell))
        elif leaves_cell:
            self.reused += 1
        else:
            self.static += 1


def releases(module: ir.Module) -> Releases:
    """Count the releases of a program."""
    found = Releases()
    looking: set[ir.Atom] = set()
    shared: set[ir.Atom] = set()
    for function in [*module.functions, module.main]:
        looking.update(param for param in function.all_params if param.borrowed)
        for statement in ir.statements(function.body):
            match statement:
                case ir.Let(op=ir.Share()):
                    shared.update(statement.op.args)
                case ir.Let() if statement.var.lender is not None:
                    looking.add(statement.var)
                case ir.Let(op=ir.Reuse()):
                    found.reused += 1
                case ir.Let(op=ir.Take() as op):
                    found.note(statement.place, op.args[0], op.unique, op.cell is not None, SHARED_LIST)
                case ir.Let(op=ir.Reverse() as op):
                    found.note(statement.place, op.args[0], op.unique, True, SHARED_LIST)
                case ir.Uncons():
                    found.note(
                        statement.place,
                        statement.pair,
                        statement.unique,
                        statement.cell is not None,
                        SHARED_LIST,
                    )
                case ir.Drop() if statement.var.type != ir.CELL:
                    found.note(
                        statement.place,
                        statement.var,
                        bool(statement.unique),
                        statement.cell is not None,
                        statement.counted,
                    )
    found.vanished = len(looking - shared)
    return found


def table(programs: Iterable[tuple[str, Releases]]) -> Iterator[str]:
    """The lines of a table with a row for each program, and one for all of them."""
    rows = list(programs)
    width = max(len(name) for name, _ in rows)
    yield f"{'program':{width}}  releases  static  vanished  reused  counted  decided"
    every = Releases()
    for _, each in rows:
        every.static += each.static
        every.vanished += each.vanished
        every.reused += each.reused
        every.counted += each.counted
    for name, each in [*rows, ("all", every)]:
        kinds = f"{each.static:6}  {each.vanished:8}  {each.reused:6}  {len(each.counted):7}"
        yield f"{name:{width}}  {each.total:8}  {kinds}  {100 * each.decided:6.1f}%"
