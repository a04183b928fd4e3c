"""The forms of the language, each a function from its datum to the core language; and those of the top
level alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.base.errors import did_you_mean
from tenfold.purple import core
from tenfold.purple.core import Expr, Literal, Place
from tenfold.purple.errors import PurpleError
from tenfold.purple.patterns import expand_match
from tenfold.purple.printing import display_text, write_text
from tenfold.purple.reader import Datum, Name, Sequence, to_value
from tenfold.purple.scope import (
    Alias,
    GlobalName,
    LocalName,
    PreludeName,
    RecordName,
    Scope,
)
from tenfold.purple.syntax import list_items
from tenfold.purple.values import NIL, UNSPECIFIED, Keyword

if TYPE_CHECKING:
    from tenfold.purple.expressions import Expressions

FORMS: dict[str, Callable[[Expressions, Sequence, Scope], Any]] = {}


def form(name: str, usage: str, minimum: int, maximum: int | None = None) -> Callable[[Any], Any]:
    """Declare a form; one with too few or too many parts is refused with its usage."""

    def declare(function: Any) -> Any:
        def checked(expander: Expressions, datum: Sequence, scope: Scope) -> Any:
            count = len(datum.value) - 1
            if count < minimum or (maximum is not None and count > maximum):
                raise PurpleError(f"{name} is written {usage}", "syntax", datum.place)
            return function(expander, datum.place, datum.value[1:], scope)

        USAGES[name] = usage
        FORMS[name] = checked
        return function

    return declare


USAGES: dict[str, str] = {}


class Parameters(NamedTuple):
    positional: list[Datum]
    rest: Datum | None
    keywords: list[tuple[str, Name, Datum | None]]


def parse_parameters(datum: Datum) -> Parameters:
    """`(a b . rest)`, `(a :lr 0.1 :steps)`: a keyword with its default, or without one when it is
    required.
    """
    if isinstance(datum, Name):
        return Parameters([], datum, [])
    if datum.value is NIL:
        return Parameters([], None, [])
    if not isinstance(datum, Sequence):
        raise PurpleError("parameters are a list of names", "syntax", datum.place)
    positional: list[Datum] = []
    keywords: list[tuple[str, Name, Datum | None]] = []
    items, i = datum.value, 0
    while i < len(items):
        item = items[i]
        i += 1
        if isinstance(item.value, Keyword) and not isinstance(item, Name):
            default = None
            if i < len(items) and not isinstance(items[i].value, Keyword):
                default, i = items[i], i + 1
            keywords.append((item.value.name, Name(item.value.name, item.place), default))
        elif isinstance(item, Sequence) and isinstance(item.value[0].value, Keyword) and len(item.value) == 2:
            keyword = item.value[0].value.name
            keywords.append((keyword, Name(keyword, item.place), item.value[1]))
        elif isinstance(item, Name) and not keywords:
            positional.append(item)
        else:
            raise PurpleError("a parameter is a name, or a keyword and its default", "syntax", item.place)
    return Parameters(positional, datum.tail, keywords)


@form("quote", "(quote DATUM)", 1, 1)
def _quote(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    return Literal(to_value(parts[0]), place=place)


@form("syntax-error", "(syntax-error MESSAGE DATUM …)", 1)
def expand_syntax_error(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    message, *irritants = (to_value(part) for part in parts)
    shown = [display_text(message), *(write_text(irritant) for irritant in irritants)]
    raise PurpleError(" ".join(shown), "syntax", place)


@form("define", "(define NAME VALUE) or (define (NAME PARAMETER …) BODY …)", 2)
def _define(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> core.Define:
    """Of the top level; those in bodies are the expander's business."""
    target = parts[0].value[0] if isinstance(parts[0], Sequence) else parts[0]
    assert isinstance(target, Name)
    found = scope.lookup(target)
    unique = found.unique if isinstance(found, GlobalName) else f"prelude::{target.value}"
    whole = Sequence([target, *parts], place)
    return core.Define(unique, expander.expand_definition(whole, scope), place=place)


@form("lambda", "(lambda (PARAMETER …) BODY …)", 2)
def _lambda(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    return expander.expand_lambda(parts[0], parts[1:], scope, "lambda", place)


def _bindings(datum: Datum, form: str) -> list[tuple[Datum, Datum]]:
    items = list_items(datum)
    if items is None:
        raise PurpleError(f"the bindings of {form} are written ((NAME VALUE) …)", "syntax", datum.place)
    pairs = []
    for item in items:
        pair = list_items(item)
        if pair is None or len(pair) != 2:
            raise PurpleError(f"a binding of {form} is written (NAME VALUE)", "syntax", item.place)
        pairs.append((pair[0], pair[1]))
    return pairs


def _named_value(expander: Expressions, name: Datum, value: Datum, scope: Scope) -> Expr:
    """A value; a lambda takes the name that it is bound to."""
    if expander.special(value, scope) == "lambda" and isinstance(value, Sequence) and len(value.value) > 2:
        return expander.expand_lambda(value.value[1], value.value[2:], scope, str(name.value), value.place)
    return expander.expand(value, scope)


@form("let", "(let ((NAME VALUE) …) BODY …) or (let NAME ((NAME VALUE) …) BODY …)", 2)
def _let(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    if isinstance(parts[0], Name):
        return _named_let(expander, place, parts, scope)
    pairs = _bindings(parts[0], "let")
    values = [_named_value(expander, name, value, scope) for name, value in pairs]
    inner = Scope(scope, scope.level)
    bound = [expander.bind(name, inner) for name, _ in pairs]
    if len(inner.bindings) != len(bound):
        raise PurpleError("two variables of this let have the same name", "syntax", parts[0].place)
    body = expander.expand_body(parts[1:], inner, place)
    return core.Let(tuple(zip(bound, values)), body, place=place) if bound else body


def _named_let(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    if len(parts) < 3:
        raise PurpleError(f"let is written {USAGES['let']}", "syntax", place)
    pairs = _bindings(parts[1], "let")
    values = [expander.expand(value, scope) for _, value in pairs]
    inner = Scope(scope, scope.level)
    loop = expander.bind(parts[0], inner)
    names = Sequence([name for name, _ in pairs], parts[1].place) if pairs else Datum(NIL, parts[1].place)
    function = expander.expand_lambda(names, parts[2:], inner, parts[0].value, place)
    call = core.Call(core.Local(loop, place=place), tuple(values), place=place)
    return core.Letrec(((loop, function),), call, place=place)


@form("let*", "(let* ((NAME VALUE) …) BODY …)", 2)
def _let_star(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    bound = []
    for name, value in _bindings(parts[0], "let*"):
        expanded = _named_value(expander, name, value, scope)
        scope = Scope(scope, scope.level)
        bound.append((expander.bind(name, scope), expanded))
    body = expander.expand_body(parts[1:], scope, place)
    for pair in reversed(bound):
        body = core.Let((pair,), body, place=place)
    return body


@form("letrec", "(letrec ((NAME VALUE) …) BODY …)", 2)
def _letrec(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    pairs = _bindings(parts[0], "letrec")
    inner = Scope(scope, scope.level)
    bound = [expander.bind(name, inner) for name, _ in pairs]
    values = [_named_value(expander, name, value, inner) for name, value in pairs]
    body = expander.expand_body(parts[1:], inner, place)
    return core.Letrec(tuple(zip(bound, values)), body, place=place) if bound else body


@form("begin", "(begin EXPRESSION …)", 0)
def _begin(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    if not parts:
        return Literal(UNSPECIFIED, place=place)
    return _sequence([expander.expand(part, scope) for part in parts], place)


def is_loop(parts: list[Datum]) -> bool:
    """Whether the parts of a `do` are those of Scheme's loop: variables with steps, and when it ends."""
    variables = list_items(parts[0]) if parts else None
    if variables is None or len(parts) < 2 or not isinstance(parts[1], Sequence):
        return False
    each = [list_items(variable) for variable in variables]
    return all(one is not None and 2 <= len(one) <= 3 and isinstance(one[0], Name) for one in each)


def is_sequence(special: str | None, datum: Datum) -> bool:
    """Whether a form is `begin`, or a `do` that is no loop."""
    if special == "do" and isinstance(datum, Sequence):
        return not is_loop(datum.value[1:])
    return special == "begin"


@form("do", "(do ((NAME START [STEP]) …) (TEST RESULT …) BODY …) or (do EXPRESSION …)", 0)
def _do(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    if not is_loop(parts):
        return _begin(expander, place, parts, scope)
    word = lambda text: Name(text, place, Alias(text, text, expander.base))
    form = lambda *parts: Sequence(list(parts), place)
    variables = [list_items(each) or [] for each in list_items(parts[0]) or []]
    again = Name("do-loop", place, Alias("do-loop", "do-loop", Scope(None)))
    bindings: Datum = Datum(NIL, place)
    if variables:
        bindings = form(*(form(variable[0], variable[1]) for variable in variables))
    step = form(again, *(variable[-1] if len(variable) == 3 else variable[0] for variable in variables))
    assert isinstance(parts[1], Sequence)
    test, *results = parts[1].value
    ends = form(word("begin"), *results)
    body = form(word("begin"), *parts[2:], step)
    whole = form(word("let"), again, bindings, form(word("if"), test, ends, body))
    return expander.expand(whole, scope)


def _sequence(exprs: list[Expr], place: Place) -> Expr:
    return exprs[0] if len(exprs) == 1 else core.Seq(tuple(exprs), place=place)


@form("dotimes", "(dotimes (NAME COUNT [RESULT]) BODY …)", 1)
def _dotimes(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    """A loop that calls itself, so that closures of the body see a variable of their own each time."""
    head = list_items(parts[0])
    if head is None or len(head) not in (2, 3):
        raise PurpleError(f"dotimes is written {USAGES['dotimes']}", "syntax", place)
    limit, loop = expander.fresh("limit"), expander.fresh("dotimes")
    count = expander.expand(head[1], scope)
    inner = Scope(scope, scope.level + 1)
    index = expander.bind(head[0], inner)
    limit.captured = True
    local = lambda var: core.Local(var, place=place)
    body = expander.expand_body(parts[1:], inner, place) if parts[1:] else Literal(UNSPECIFIED, place=place)
    result = expander.expand(head[2], inner) if len(head) == 3 else Literal(UNSPECIFIED, place=place)
    step = core.Prim("+", (local(index), Literal(1, place=place)), place=place)
    again = core.Call(local(loop), (step,), place=place)
    test = core.Prim("<", (local(index), local(limit)), place=place)
    whole = core.If(test, core.Seq((body, again), place=place), result, place=place)
    function = core.Lambda((index,), None, (), whole, "dotimes", derived=True, place=place)
    loop.captured = True
    start = core.Call(local(loop), (Literal(0, place=place),), place=place)
    return core.Let(((limit, count),), core.Letrec(((loop, function),), start, place=place), place=place)


SETTERS = {
    "car": ("set-car!", 1),
    "cdr": ("set-cdr!", 1),
    "unbox": ("set-box!", 1),
    "vector-ref": ("vector-set!", 2),
    "hash-table-ref": ("hash-table-set!", 2),
}


@form("set!", "(set! NAME VALUE) or (set! (FIELD RECORD) VALUE)", 2, 2)
def _set(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    target = parts[0]
    if isinstance(target, Sequence) and isinstance(target.value[0], Name):
        return _set_place(expander, place, target, parts[1], scope)
    if not isinstance(target, Name):
        raise PurpleError("set! assigns to a name or to a place such as (Point-x p)", "syntax", target.place)
    found = scope.lookup(target)
    value = _named_value(expander, target, parts[1], scope)
    if isinstance(found, LocalName):
        found.var.assigned = True
        found.var.captured |= found.level < scope.level
        return core.SetLocal(found.var, value, place=place)
    if isinstance(found, GlobalName):
        expander.globals[found.unique].assigned = True
        return core.SetGlobal(found.unique, value, place=place)
    if isinstance(found, PreludeName) and scope.module is expander.prelude:
        unique = expander.need(found.name)
        expander.globals[unique].assigned = True
        return core.SetGlobal(unique, value, place=place)
    known = expander.expand_name(target, scope)
    if found is None and isinstance(known, core.Global):  # defined later, or refused when it runs
        return core.SetGlobal(known.name, value, place=place)
    raise PurpleError(
        f"{target.value} belongs to the language and cannot be assigned",
        "syntax",
        known.place,
        help=f"define your own: (define {target.value} …)",
    )


def _set_place(expander: Expressions, place: Place, target: Sequence, new: Datum, scope: Scope) -> Expr:
    head = target.value[0]
    assert isinstance(head, Name)
    found = scope.lookup(head)
    if isinstance(found, RecordName) and found.role == "field" and len(target.value) == 2:
        record = expander.expand(target.value[1], scope)
        return core.SetField(found.type, found.field, record, expander.expand(new, scope), place=place)
    if found is None and head.value in SETTERS:
        name, count = SETTERS[head.value]
        if len(target.value) == count + 1:
            arguments = [expander.expand(each, scope) for each in [*target.value[1:], new]]
            return core.Prim(name, tuple(arguments), place=place)
    if found is None and head.value == "tensor-ref" and len(target.value) > 1:
        first, *indices = [expander.expand(each, scope) for each in target.value[1:]]
        # The prelude's order of arguments puts the value second; it is still evaluated last.
        bound = [(expander.fresh("place"), index) for index in [first, *indices, expander.expand(new, scope)]]
        tensor, *at, value = [core.Local(var, place=place) for var, _ in bound]
        return core.Let(
            tuple(bound), core.Prim("tensor-set!", (tensor, value, *at), place=place), place=place
        )
    fields = [key for key, binding in scope.module.scope.bindings.items() if isinstance(binding, RecordName)]
    raise PurpleError(
        f"({head.value} …) is not a place that can be assigned",
        "syntax",
        target.place,
        help=did_you_mean(head.value, [*SETTERS, *(key for key in fields if isinstance(key, str))]),
    )


@form("%try", "(%try EXPRESSION HANDLER)", 2, 2)
def _try_all(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    return core.Try(expander.expand(parts[0], scope), expander.expand(parts[1], scope), place=place)


@form("try", "(try EXPRESSION HANDLER)", 2, 2)
def _try(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    """What a continuation throws is no error: the handler passes it on."""
    body = expander.expand(parts[0], scope)
    inner = Scope(scope, scope.level + 1)
    error = expander.fresh("error")
    local = core.Local(error, place=place)
    handler = expander.expand(parts[1], inner)
    escapes = core.IsRecord(expander.types["prelude::%Escape"], local, place=place)
    handle = core.Call(handler, (local,), place=handler.place)
    whole = core.If(escapes, core.Prim("raise", (local,), place=place), handle, place=place)
    return core.Try(
        body, core.Lambda((error,), None, (), whole, "handler", derived=True, place=place), place=place
    )


@form("with-device", "(with-device DEVICE BODY …)", 2)
def _with_device(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    device = expander.expand(parts[0], scope)
    return core.With("device", device, expander.expand_body(parts[1:], scope, place), place=place)


@form("with-grad", "(with-grad BODY …)", 1)
def _with_grad(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    return core.With("grad", None, expander.expand_body(parts, scope, place), place=place)


@form("no-grad", "(no-grad BODY …)", 1)
def _no_grad(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    return core.With("no-grad", None, expander.expand_body(parts, scope, place), place=place)


@form("match", "(match VALUE (PATTERN [:when GUARD] BODY …) …)", 1)
def _match(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    return expand_match(expander, place, parts, scope)


@form("let-values", "(let-values (((NAME … [. REST]) VALUES) …) BODY …)", 2)
def _let_values(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    inner = Scope(scope, scope.level)
    taken, unpacked = [], []
    for names, value in _bindings(parts[0], "let-values"):
        items: list[Datum] | None = list_items(names)
        rest: Datum | None = None
        if isinstance(names, Name):
            items, rest = [], names
        elif isinstance(names, Sequence) and names.tail is not None:
            items, rest = names.value, names.tail
        if items is None:
            raise PurpleError("let-values binds a list of names", "syntax", names.place)
        expanded = expander.expand(value, scope)
        count = Literal(len(items) if rest is None else -1 - len(items), place=names.place)
        bundle = expander.fresh("values")
        taken.append((bundle, core.Prim("%values->vector", (expanded, count), place=value.place)))
        for i, name in enumerate(items):
            local = core.Local(bundle, place=name.place)
            part = core.Prim("vector-ref", (local, Literal(i, place=name.place)), place=name.place)
            unpacked.append((expander.bind(name, inner), part))
        if rest is not None:
            every = core.Prim("vector->list", (core.Local(bundle, place=rest.place),), place=rest.place)
            others = core.Prim("list-tail", (every, Literal(len(items), place=rest.place)), place=rest.place)
            unpacked.append((expander.bind(rest, inner), others))
    body = expander.expand_body(parts[1:], inner, place)
    if unpacked:
        body = core.Let(tuple(unpacked), body, place=place)
    return core.Let(tuple(taken), body, place=place) if taken else body


def _macros(expander: Expressions, parts: list[Datum], scope: Scope, recursive: bool) -> Scope:
    """The scope of a body that has macros of its own."""
    name = "letrec-syntax" if recursive else "let-syntax"
    inner = Scope(scope, scope.level)
    for each, rules in _bindings(parts[0], name):
        if not isinstance(each, Name):
            raise PurpleError(f"a binding of {name} is written (NAME (syntax-rules …))", "syntax", each.place)
        inner.bindings[each.key] = expander.macro(each, rules, inner if recursive else scope)
    return inner


@form("let-syntax", "(let-syntax ((NAME (syntax-rules …)) …) BODY …)", 2)
def _let_syntax(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    return expander.expand_body(parts[1:], _macros(expander, parts, scope, False), place)


@form("letrec-syntax", "(letrec-syntax ((NAME (syntax-rules …)) …) BODY …)", 2)
def _letrec_syntax(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    return expander.expand_body(parts[1:], _macros(expander, parts, scope, True), place)


@form("er-macro-transformer", "(er-macro-transformer (lambda (FORM RENAME COMPARE) BODY …))", 0)
def _transformer(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    raise PurpleError("er-macro-transformer may stand only in a define-syntax", "syntax", place)


@form("syntax-rules", "(syntax-rules (LITERAL …) (PATTERN TEMPLATE) …)", 0)
def _syntax_rules(expander: Expressions, place: Place, parts: list[Datum], scope: Scope) -> Expr:
    raise PurpleError("syntax-rules may stand only in a define-syntax", "syntax", place)
