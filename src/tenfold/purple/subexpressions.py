"""What expressions of the core language are made of."""

from __future__ import annotations

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


def children(node: Form) -> list[Expr]:
    """The expressions that a node is made of, in the order of evaluation."""
    match node:
        case SetLocal(_, value) | SetGlobal(_, value) | Define(_, value) | IsRecord(_, value):
            return [value]
        case Lambda(_, _, keywords, body):
            return [*(default for _, _, default in keywords if default is not None), body]
        case Call(function, arguments, keywords):
            return [function, *arguments, *(value for _, value in keywords)]
        case Prim(_, arguments, keywords):
            return [*arguments, *(value for _, value in keywords)]
        case If(test, then, otherwise):
            return [test, then, otherwise]
        case Let(bindings, body) | Letrec(bindings, body):
            return [*(value for _, value in bindings), body]
        case Seq(exprs):
            return list(exprs)
        case While(test, body):
            return [test, body]
        case Try(body, handler):
            return [body, handler]
        case With(_, argument, body):
            return [body] if argument is None else [argument, body]
        case MakeRecord(_, arguments) | ForeignCall(_, arguments):
            return list(arguments)
        case FieldRef(_, _, record):
            return [record]
        case SetField(_, _, record, value):
            return [record, value]
    return []


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
