"""What expressions of the core language are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.purple.core import (
    Call,
    Define,
    Expr,
    FieldRef,
    ForeignCall,
    Form,
    If,
    IsRecord,
    Lambda,
    Let,
    Letrec,
    Local,
    MakeRecord,
    Prim,
    Seq,
    SetField,
    SetGlobal,
    SetLocal,
    Try,
    Var,
    While,
    With,
)

# By the kind of node; the rest are made of nothing. A table, since compiling asks millions of times.
_CHILDREN: dict[type, Callable[[Any], list[Expr]]] = {
    SetLocal: lambda node: [node.value],
    SetGlobal: lambda node: [node.value],
    Define: lambda node: [node.value],
    IsRecord: lambda node: [node.value],
    Lambda: lambda node: [*(default for _, _, default in node.keywords if default is not None), node.body],
    Call: lambda node: [node.function, *node.arguments, *(value for _, value in node.keywords)],
    Prim: lambda node: [*node.arguments, *(value for _, value in node.keywords)],
    If: lambda node: [node.test, node.then, node.otherwise],
    Let: lambda node: [*(value for _, value in node.bindings), node.body],
    Letrec: lambda node: [*(value for _, value in node.bindings), node.body],
    Seq: lambda node: list(node.exprs),
    While: lambda node: [node.test, node.body],
    Try: lambda node: [node.body, node.handler],
    With: lambda node: [node.body] if node.argument is None else [node.argument, node.body],
    MakeRecord: lambda node: list(node.arguments),
    ForeignCall: lambda node: list(node.arguments),
    FieldRef: lambda node: [node.record],
    SetField: lambda node: [node.record, node.value],
}


def children(node: Form) -> list[Expr]:
    """The expressions that a node is made of, in the order of evaluation."""
    made_of = _CHILDREN.get(type(node))
    return [] if made_of is None else made_of(node)


def mentioned(expr: Expr) -> set[Var]:
    """The variables that an expression reads or assigns."""
    found: set[Var] = set()
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, (Local, SetLocal)):
            found.add(node.var)
        stack += children(node)
    return found
