"""Ops of the torch dialect that are made by hand: what the generated builder of an op takes, and which types
torch-mlir's verifier accepts. Nothing here knows an op by its name: the builders' signatures say what is an
operand, an attribute or a result, and the verifier, asked on stand-ins, says which types may be there."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenfold.base.errors import ArgumentError, UnknownName, did_you_mean
from tenfold.mlir import torch_dialect
from tenfold.mlir.interrupts import pass_on

# What a result may be where its builder does not infer it; an op that takes several of these is ambiguous.
SCALARS = ("int", "float", "bool", "str", "Device", "Generator")
LISTS = ("list<int>", "list<float>", "list<bool>", "list<str>")


class Parameter(NamedTuple):
    """One parameter of an op's builder."""

    name: str
    many: bool  # a sequence
    optional: bool


class Signature(NamedTuple):
    """What an op's builder takes, in order: its operands and attributes, apart from its results."""

    builder: type
    given: list[Parameter]
    operands: frozenset[str]
    results: Parameter | None  # several results may have a parameter each
    result_names: list[str]
    inferred: bool  # the builder finds the types of its results itself
    regions: int

    def __str__(self) -> str:
        words = [f"*{each.name}" if each.many else each.name for each in self.given]
        return f"{self.builder.OPERATION_NAME}({', '.join(words)})"  # type: ignore[attr-defined]


@functools.cache
def signature(name: str) -> Signature:
    """The signature of an op of the dialect, `torch.prim.ListUnpack`."""
    builder = torch_dialect.operations().get(name)
    if builder is None:
        raise UnknownName(
            f"the torch dialect has no op {name}",
            help=did_you_mean(name, torch_dialect.operations()) or 'others are built by "torch.operator"',
        )
    ir = torch_dialect.bindings().ir
    given, operands, results = [], set(), []
    for each in inspect.signature(builder).parameters.values():
        if each.name in ("self", "loc", "ip"):
            continue
        words = str(each.annotation)
        parameter = Parameter(each.name, "Sequence" in words, each.default is not each.empty)
        if each.annotation is ir.Type or ("Sequence[" in words and ".Type]" in words):
            results.append(parameter)
            continue
        given.append(parameter)
        if "Value" in words:
            operands.add(each.name)
    inferred = bool(results) and results[0].optional
    many = results[0] if results and results[0].many else None
    names = [result.name for result in results]
    regions: tuple[int, bool] = builder._ODS_REGIONS  # type: ignore[attr-defined]
    return Signature(builder, given, frozenset(operands), many, names, inferred, regions[0])


def overloads(name: str) -> list[str]:
    """The ops of an ATen name, `torch.aten.add`: those of an overload's name first, since the one without
    takes numbers of any type. Any other name is one op's."""
    known = torch_dialect.operations()
    if not name.startswith("torch.aten."):
        return [name]
    named = [each for each in known if each.startswith(f"{name}.") and each.count(".") == name.count(".") + 1]
    return sorted(named) + ([name] if name in known else [])


class Verifier:
    """Asks torch-mlir's verifier about types, on stand-ins in a module of its own."""

    def __init__(self, ir: Any, context: Any):
        self.ir, self.context = ir, context
        with torch_dialect.building(context):
            self.module = ir.Module.create()
        self.stand_ins: dict[str, Any] = {}
        self.answers: dict[tuple[Any, ...], tuple[str, int, str] | None] = {}

    def objection(
        self, name: str, operands: Sequence[str], results: Sequence[str]
    ) -> tuple[str, int, str] | None:
        """Which operand or result has a type that it may not have, and the verifier's words about it. What
        else is wrong with an op that stands alone is not asked here."""
        key = (name, tuple(operands), tuple(results))
        if key not in self.answers:
            with torch_dialect.building(self.context, self.module.body) as ir:
                self.answers[key] = self._ask(ir, name, operands, results)
        return self.answers[key]

    def _ask(self, ir: Any, name: str, operands: Sequence[str], results: Sequence[str]) -> Any:
        types = [ir.Type.parse(result) for result in results]
        values = [self._stand_in(ir, operand) for operand in operands]
        operation = ir.Operation.create(name, types, values, {}, None, signature(name).regions)
        try:
            operation.verify()
        except Exception as error:
            pass_on(error)
            match = re.search(r"(operand|result) #(\d+) (must be .*?), but got", str(error))
            return (match[1], int(match[2]), match[3]) if match else None
        finally:
            operation.erase()
        return None

    def _stand_in(self, ir: Any, type: str) -> Any:
        if type not in self.stand_ins:
            cast = ir.Operation.create("builtin.unrealized_conversion_cast", [ir.Type.parse(type)], [])
            self.stand_ins[type] = cast.results[0]
        return self.stand_ins[type]

    def result_types(self, name: str, operands: Sequence[str], tensor: str) -> list[str]:
        """The types of an op's results, where each can be of but one kind."""
        types: list[str] = []
        wanted = signature(name).result_names
        for word in wanted:
            accepts = functools.partial(self._accepts, name, operands, tuple(types), len(wanted))
            lists = [operand for operand in operands if operand.startswith("!torch.list<")]
            types.append(_only(accepts, name, word, tensor, lists))
        return types

    def _accepts(
        self, name: str, operands: Sequence[str], before: Sequence[str], count: int, type: str
    ) -> bool:
        objection = self.objection(name, operands, [*before, *[type] * (count - len(before))])
        return objection is None or (objection[0] == "result" and objection[1] > len(before))


def _only(accepts: Callable[[str], bool], name: str, word: str, tensor: str, lists: Sequence[str]) -> str:
    """The one type that a result may have. Of tensors it is the one whose shape and dtype are unknown; where
    it is a list of anything, it is of the type of the `lists` among the operands."""
    kinds = [f"!torch.{kind}" for kind in (*SCALARS, *LISTS) if accepts(f"!torch.{kind}")]
    tensors = [each for each in (tensor, "!torch.tensor", "!torch.vtensor") if accepts(each)]
    if tensors and not kinds:
        return tensors[0]
    element = tensor.removeprefix("!torch.")
    if not tensors and not kinds and accepts(f"!torch.list<{element}>"):
        return f"!torch.list<{element}>"
    if not tensors and set(kinds) <= {"!torch.int", "!torch.float", "!torch.bool"} and len(kinds) > 1:
        return "!torch.number"
    if kinds and not tensors and all("list<" in kind for kind in kinds) and len(set(lists)) == 1:
        return lists[0] if len(kinds) > 1 else kinds[0]
    if len(kinds) == 1 and not tensors:
        return kinds[0]
    raise ArgumentError(
        f"{name}: its result `{word}` may be of several types", help='give results=["!torch.int"], or another'
    )
