"""Random well-typed programs: closures, records, lists, vectors, tables, loops, recursion, macros, errors and
tensors.

A batch is one text with many programs in it, each a function of no arguments whose value, or the error that
it fails with, is printed: so that one interpreter and one C compiler serve them all. What an expression of a
type may look like is the grammar of `program_grammar`.
"""

from __future__ import annotations

import random
import re

from tests.purple.program_grammar import COMMON, FORMS, LITERALS, OPENING, TENSOR_FORMS

# Types whose values can be printed and compared, and those of variables.
PRINTED = (
    "int",
    "int",
    "float",
    "ratio",
    "bool",
    "string",
    "list",
    "list",
    "mixed",
    "point",
    "vector",
    "char",
    "symbol",
    "bytes",
)
HELD = (*PRINTED, "function", "predicate", "node", "box", "table")
# Types of keywords: those that C has as plain numbers and truth values, and others.
KEYWORD_TYPES = ("int", "int", "float", "ratio", "bool", "bool", "char", "string", "list", "symbol")
HOLE = re.compile(r"\{([a-z*]+)((?: \??[\w*]+:[a-z*]+)*)\}")
NAME = re.compile(r"\?(\w+)")
WRONG = 0.01  # how often an expression is of another type than its place wants

Scope = list[tuple[str, str]]


def batch(seed: int, count: int, tensors: float = 0.1) -> str:
    """The text of `count` programs. `tensors` is how many of them use tensors."""
    chooser = random.Random(seed)
    parts = [OPENING]
    for number in range(count):
        parts.append(Program(chooser, number, chooser.random() < tensors).text())
    return "\n".join(parts)


class Program:
    def __init__(self, chooser: random.Random, number: int, tensors: bool):
        self.chooser, self.number, self.tensors = chooser, number, tensors
        self.names = 0
        self.functions: list[
            tuple[str, list[str], str]
        ] = []  # a call up to its arguments, their types, its own
        extra = ("tensor", "tensor", "tensor") if tensors else ()
        self.printed, self.held = (*PRINTED, *extra), (*HELD, *extra)

    def text(self) -> str:
        lines = []
        for i in range(self.chooser.randrange(4)):
            lines.append(self.definition(f"helper-{self.number}-{i}"))
        body = self.expression(self.chooser.choice(self.printed), [], 4)
        lines.append(f"(define (program-{self.number}) {body})")
        told = "(error-kind e) (error-message e) (error-irritants e)"
        failed = f'(lambda (e) (if (error? e) (list "failed" {told}) (list "raised" e)))'
        lines.append(f"(print {self.number} (write->string (try (program-{self.number}) {failed})))")
        return "\n".join(lines)

    def definition(self, name: str) -> str:
        """A function that the program may call: plain, recursive, mutually recursive, or with keywords; or a
        variable that functions share."""
        choose = self.chooser
        parameters = [(self.fresh(), choose.choice(self.held)) for _ in range(choose.randrange(1, 4))]
        types = [each for _, each in parameters]
        result = choose.choice(self.held)
        words = " ".join(each for each, _ in parameters)
        kind = choose.random()
        if kind < 0.3:  # recursion that its first parameter ends
            body = self.recursive(name, parameters, result)
            self.functions.append((name, ["int", *types], result))
            return f"(define ({name} n {words}) {body})"
        if kind < 0.4:
            there, back = (self.recursive(other, parameters, result) for other in (f"{name}-back", name))
            self.functions.append((name, ["int", *types], result))
            return f"(define ({name} n {words}) {there})\n(define ({name}-back n {words}) {back})"
        if kind < 0.5:
            return self.with_keywords(name, parameters, result)
        if kind < 0.6:
            shared = f"*shared-{self.number}-{name[-1]}*"
            start = self.expression(result, [], 2)
            body = self.expression(result, [*parameters, (shared, result)], 2)
            self.functions.append((name, types, result))
            define = f"(define {shared} (try {start} (lambda (e) {self.literal(result)})))"
            return f"{define}\n(define ({name} {words}) (set! {shared} {body}) {shared})"
        body = self.expression(result, parameters, 3)
        self.functions.append((name, types, result))
        return f"(define ({name} {words}) {body})"

    def with_keywords(self, name: str, parameters: Scope, result: str) -> str:
        """A function of keywords, of any type, that its calls always give, never give, or give at times."""
        choose = self.chooser
        types, words = [each for _, each in parameters], " ".join(each for each, _ in parameters)
        keywords = [(self.fresh(), choose.choice(KEYWORD_TYPES)) for _ in range(choose.randrange(1, 3))]
        defaults = [f":{word} {self.expression(type_, parameters, 1)}" for word, type_ in keywords]
        body = self.expression(result, [*parameters, *keywords, ("more", "mixed")], 3)
        given = [" ".join(f":{word} {self.literal(type_)}" for word, type_ in keywords) for _ in range(2)]
        calls = choose.choice(
            [given, [""], ["", *given], [f":{keywords[0][0]} {self.literal(keywords[0][1])}"]]
        )
        for call in calls:
            self.functions.append((f"{name} {call}".strip(), types, result))
        if "" in calls:
            self.functions.append((name, [*types, "int"], result))
        return f"(define ({name} {words} {' '.join(defaults)} . more) {body})"

    def recursive(self, name: str, parameters: Scope, result: str) -> str:
        scope = [("n", "int"), *parameters]
        again = " ".join(self.expression(type_, scope, 1) for _, type_ in parameters)
        step = f"({name} (- n 1) {again})"
        if result == "int" and self.chooser.random() < 0.5:
            step = f"(+ {self.expression('int', scope, 1)} {step})"
        elif result == "list" and self.chooser.random() < 0.5:
            step = f"(cons {self.expression('int', scope, 1)} {step})"
        start = self.expression(result, scope, 2)
        return f"(cond ((or (< n 1) (> n 20)) {start}) (else {step}))"

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def expression(self, wanted: str, scope: Scope, depth: int) -> str:
        choose = self.chooser
        if choose.random() < WRONG:
            wanted = choose.choice(self.printed)
        known = [name for name, type_ in scope if type_ == wanted]
        if known and choose.random() < (0.7 if depth <= 0 else 0.25):
            return choose.choice(known)
        if depth <= 0:
            return self.literal(wanted)
        if choose.random() < 0.35:
            return self.common(wanted, scope, depth - 1)
        forms = [*FORMS[wanted], *(TENSOR_FORMS.get(wanted, ()) if self.tensors else ())]
        return self.filled(choose.choice(forms), wanted, scope, depth - 1)

    def literal(self, wanted: str) -> str:
        return self.filled(self.chooser.choice(LITERALS[wanted]), wanted, [], 0)

    def common(self, wanted: str, scope: Scope, depth: int) -> str:
        """A form that any type may have."""
        choose = self.chooser
        kind = choose.random()
        callable_ = [each for each in self.functions if each[2] == wanted]
        if kind < 0.12 and callable_:
            called, types, _ = choose.choice(callable_)
            arguments = " ".join(self.expression(each, scope, depth) for each in types)
            head, _, keyword = called.partition(" ")
            return f"({head} {arguments} {keyword})" if keyword else f"({head} {arguments})"
        if kind < 0.2:
            assignable = [
                each for each in scope if each[0].startswith("v") and each[1] not in ("function", "node")
            ]
            if assignable:
                name, type_ = choose.choice(assignable)
                new = self.expression(type_, scope, depth)
                return f"(begin (set! {name} {new}) {self.expression(wanted, scope, depth)})"
        return self.filled(choose.choice(COMMON), wanted, scope, depth)

    def filled(self, form: str, wanted: str, scope: Scope, depth: int) -> str:
        """A form with its names made new and its holes filled. `{int ?x:list}`: an expression of type int
        that may use the list ?x."""
        names: dict[str, str] = {}
        types = {"wanted": wanted} | {word: self.chooser.choice(self.held) for word in ("some", "other")}
        form = NAME.sub(lambda match: names.setdefault(match[1], self.named(match[1])), form)

        def hole(match: re.Match[str]) -> str:
            bound = [tuple(each.split(":")) for each in match[2].split()]
            inner = [*scope, *((name, types.get(type_, type_)) for name, type_ in bound)]
            return self.expression(types.get(match[1], match[1]), inner, depth)

        return HOLE.sub(hole, form)

    def named(self, word: str) -> str:
        """Names of counters, which no one sets, begin with another letter."""
        return self.fresh().replace("v", "k") if word.startswith("k") else self.fresh()
