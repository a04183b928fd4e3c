"""Random well-typed programs: closures, records, lists, vectors, tables, loops, recursion, errors and
tensors.

A batch is one text with many programs in it, each a function of no arguments whose value, or the message of
the error
it fails with, is printed: so that one interpreter and one C compiler serve them all.
"""

from __future__ import annotations

import random

RECORDS = "(deftype Point x y)\n(deftype Node (value int) next (owner :weak))\n"
INT, FLOAT, BOOL, STRING, LIST, POINT, FUNCTION, TENSOR, VECTOR = [
    "int",
    "float",
    "bool",
    "string",
    "list",
    "point",
    "function",
    "tensor",
    "vector",
]


def batch(seed: int, count: int, tensors: float = 0.1) -> str:
    """The text of `count` programs. `tensors` is how many of them use tensors."""
    chooser = random.Random(seed)
    parts = [RECORDS]
    for number in range(count):
        parts.append(Program(chooser, number, chooser.random() < tensors).text())
    return "\n".join(parts)


class Program:
    def __init__(self, chooser: random.Random, number: int, tensors: bool):
        self.chooser, self.number, self.tensors = chooser, number, tensors
        self.names = 0
        self.functions: list[tuple[str, list[str], str]] = []  # name, types of parameters, type of result
        self.mutable: list[tuple[str, str]] = []

    def text(self) -> str:
        types = [INT, INT, FLOAT, BOOL, STRING, LIST, LIST, POINT, VECTOR] + [TENSOR] * (2 * self.tensors)
        lines = []
        for i in range(self.chooser.randrange(3)):
            lines.append(self.definition(f"helper-{self.number}-{i}", types))
        result = self.chooser.choice(types)
        body = self.expression(result, [], 4)
        lines.append(f"(define (program-{self.number}) {body})")
        failed = (
            '(lambda (e) (if (error? e) (list "failed" (error-kind e) (error-message e)) (list "raised" e)))'
        )
        if self.tensors:  # libtorch and Tenfold say the same in other words
            failed = '(lambda (e) (if (error? e) (list "failed" (error-kind e)) (list "raised" e)))'
        lines.append(f"(print {self.number} (write->string (try (program-{self.number}) {failed})))")
        return "\n".join(lines)

    def definition(self, name: str, types: list[str]) -> str:
        parameters = [(self.fresh(), self.chooser.choice(types)) for _ in range(self.chooser.randrange(1, 4))]
        result = self.chooser.choice(types)
        words = " ".join(each for each, _ in parameters)
        if self.chooser.random() < 0.4:  # recursion that its first parameter ends
            self.functions.append((name, [INT, *(t for _, t in parameters)], result))
            scope = [("n", INT), *parameters]
            again = " ".join(self.expression(t, scope, 1) for _, t in parameters)
            start, step = self.expression(result, scope, 2), f"({name} (- n 1) {again})"
            if result == INT and self.chooser.random() < 0.5:
                step = f"(+ 1 {step})"
            elif result == LIST and self.chooser.random() < 0.5:
                step = f"(cons n {step})"
            return f"(define ({name} n {words}) (if (< n 1) {start} (if (> n 20) {start} {step})))"
        body = self.expression(result, parameters, 3)
        self.functions.append((name, [t for _, t in parameters], result))
        return f"(define ({name} {words}) {body})"

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def expression(self, wanted: str, scope: list[tuple[str, str]], depth: int) -> str:
        choose = self.chooser
        known = [name for name, type_ in scope if type_ == wanted]
        if known and choose.random() < (0.7 if depth <= 0 else 0.25):
            return choose.choice(known)
        if depth <= 0:
            return self.literal(wanted)
        general = choose.random()
        if general < 0.28:
            return self.general(wanted, scope, depth)
        return getattr(self, "make_" + wanted)(scope, depth - 1)

    def general(self, wanted: str, scope: list[tuple[str, str]], depth: int) -> str:
        """Forms that any type may have."""
        choose, inner = self.chooser, depth - 1
        kind = choose.randrange(12)
        some = choose.choice([INT, FLOAT, LIST, STRING, FUNCTION, POINT])
        name = self.fresh()
        if kind == 0:
            return f"(if {self.expression(BOOL, scope, inner)} {self.pair(wanted, scope, inner)})"
        if kind in (1, 2):
            bound = self.expression(some, scope, inner)
            return f"(let (({name} {bound})) {self.expression(wanted, [*scope, (name, some)], inner)})"
        if kind == 3:
            body = self.expression(wanted, [*scope, (name, some)], inner)
            return f"((lambda ({name}) {body}) {self.expression(some, scope, inner)})"
        if kind == 4:
            handled = self.expression(wanted, scope, inner)
            return f"(try {self.expression(wanted, scope, inner)} (lambda (e) {handled}))"
        if kind == 5:
            other = self.fresh()
            count, start = choose.randrange(1, 6), self.expression(wanted, scope, inner)
            step = self.expression(wanted, [*scope, (name, INT), (other, wanted)], inner)
            turn = f"(if (= {name} 0) {other} (loop-{name} (- {name} 1) {step}))"
            return f"(let loop-{name} (({name} {count}) ({other} {start})) {turn})"
        if kind == 6:
            other = self.expression(wanted, [*scope, (name, some)], inner)
            new = self.expression(some, [*scope, (name, some)], inner)
            return f"(let (({name} {self.expression(some, scope, inner)})) (set! {name} {new}) {other})"
        if kind == 7 and self.functions:
            called, parameters, result = choose.choice(self.functions)
            if result == wanted:
                arguments = " ".join(self.expression(each, scope, inner) for each in parameters)
                return f"({called} {arguments})"
        if kind == 8 and choose.random() < 0.3:
            return choose.choice([f'(error "boom" {self.expression(some, scope, inner)})', "(raise 'thrown)"])
        if kind == 9:
            captured = self.expression(wanted, [*scope, (name, INT)], inner)
            counted = self.fresh()
            return (
                f"(let* (({counted} 0)"
                f" ({name}-f (lambda ({name}) (set! {counted} (+ {counted} {name})) {captured})))"
                f' ({name}-f 1) (if (> {counted} 100) (error "large" {counted})) ({name}-f {counted}))'
            )
        if kind == 10:
            other = self.fresh()
            body = self.expression(wanted, [*scope, (name, INT), (other, LIST)], inner)
            rest = self.expression(wanted, scope, inner)
            return f"(match {self.expression(LIST, scope, inner)} ((cons {name} {other}) {body}) (_ {rest}))"
        if kind == 11:
            return f"(begin {self.expression(some, scope, inner)} {self.expression(wanted, scope, inner)})"
        return self.expression(wanted, scope, inner)

    def literal(self, wanted: str) -> str:
        choose = self.chooser
        simple = {
            INT: lambda: str(
                choose.choice([0, 1, 2, 3, 7, -1, -5, 10, 100, 4611686018427387904, 9223372036854775807])
            ),
            FLOAT: lambda: choose.choice(["0.0", "1.5", "-2.25", "1e10", "0.1", "3.0"]),
            BOOL: lambda: choose.choice(["#t", "#f"]),
            STRING: lambda: choose.choice(['""', '"a"', '"héllo"', '"x y\\n"']),
            LIST: lambda: choose.choice(["nil", "(list 1 2 3)", "'(3 1 2)", "(list 5)"]),
            POINT: lambda: "(mk-Point 1 (list 2))",
            VECTOR: lambda: choose.choice(["(vector 1 2 3)", "(make-vector 2 0)"]),
            FUNCTION: lambda: choose.choice(["(lambda (x) (+ x 1))", "(lambda (x) x)", "abs"]),
            TENSOR: lambda: choose.choice(
                ["(tensor '(1.0 2.0 -3.0))", "(tensor-ones 3)", "(tensor '(0.5 4.0 8.0))"]
            ),
        }
        return simple[wanted]()

    def pair(self, wanted: str, scope: list[tuple[str, str]], depth: int) -> str:
        return f"{self.expression(wanted, scope, depth)} {self.expression(wanted, scope, depth)}"

    def make_int(self, scope: list[tuple[str, str]], depth: int) -> str:
        choose = self.chooser
        forms = [
            lambda: f"({choose.choice(['+', '-', '*'])} {self.pair(INT, scope, depth)})",
            lambda: f"({choose.choice(['+', '-', 'min', 'max'])} {self.pair(INT, scope, depth)} 3)",
            lambda: f"({choose.choice(['quotient', '%', 'modulo'])} {self.pair(INT, scope, depth)})",
            lambda: f"(length {self.expression(LIST, scope, depth)})",
            lambda: f"(car {self.expression(LIST, scope, depth)})",
            lambda: f"(fold + 0 {self.expression(LIST, scope, depth)})",
            lambda: f"({self.expression(FUNCTION, scope, depth)} {self.expression(INT, scope, depth)})",
            lambda: f"(Point-x {self.expression(POINT, scope, depth)})",
            lambda: (
                f"(vector-ref {self.expression(VECTOR, scope, depth)} {self.expression(INT, scope, depth)})"
            ),
            lambda: f"(string-length {self.expression(STRING, scope, depth)})",
            lambda: f"(->int {self.expression(FLOAT, scope, depth)})",
            lambda: f"(list-ref {self.expression(LIST, scope, depth)} {self.expression(INT, scope, 0)})",
            lambda: f"(apply + {self.expression(LIST, scope, depth)})",
        ]
        return choose.choice(forms)()

    def make_float(self, scope: list[tuple[str, str]], depth: int) -> str:
        choose = self.chooser
        forms = [
            lambda: f"({choose.choice(['+', '-', '*', '/'])} {self.pair(FLOAT, scope, depth)})",
            lambda: f"(+ {self.expression(INT, scope, depth)} {self.expression(FLOAT, scope, depth)})",
            lambda: f"(->float {self.expression(INT, scope, depth)})",
            lambda: f"(sqrt (abs {self.expression(FLOAT, scope, depth)}))",
            lambda: f"(floor {self.expression(FLOAT, scope, depth)})",
        ]
        if self.tensors:
            forms.append(lambda: f"(tensor-item (tensor-sum {self.expression(TENSOR, scope, depth)}))")
        return choose.choice(forms)()

    def make_bool(self, scope: list[tuple[str, str]], depth: int) -> str:
        choose = self.chooser
        number = choose.choice([INT, FLOAT])
        some = choose.choice([INT, FLOAT, STRING, LIST, POINT, VECTOR])
        forms = [
            lambda: f"({choose.choice(['<', '>', '<=', '>=', '='])} {self.pair(number, scope, depth)})",
            lambda: f"(< {self.expression(INT, scope, depth)} {self.expression(FLOAT, scope, depth)})",
            lambda: f"(not {self.expression(BOOL, scope, depth)})",
            lambda: f"({choose.choice(['and', 'or'])} {self.pair(BOOL, scope, depth)})",
            lambda: f"(null? {self.expression(LIST, scope, depth)})",
            lambda: f"(equal? {self.pair(some, scope, depth)})",
            lambda: f"(even? {self.expression(INT, scope, depth)})",
        ]
        return choose.choice(forms)()

    def make_string(self, scope: list[tuple[str, str]], depth: int) -> str:
        some = self.chooser.choice([INT, FLOAT, LIST, POINT, BOOL, VECTOR])
        forms = [
            lambda: f"(string-append {self.pair(STRING, scope, depth)})",
            lambda: f"(number->string {self.expression(self.chooser.choice([INT, FLOAT]), scope, depth)})",
            lambda: f"(write->string {self.expression(some, scope, depth)})",
            lambda: f"(substring {self.expression(STRING, scope, depth)} {self.chooser.randrange(3)})",
        ]
        return self.chooser.choice(forms)()

    def make_list(self, scope: list[tuple[str, str]], depth: int) -> str:
        choose, name = self.chooser, self.fresh()
        inner = [*scope, (name, INT)]
        forms = [
            lambda: f"(cons {self.expression(INT, scope, depth)} {self.expression(LIST, scope, depth)})",
            lambda: f"(list {self.pair(INT, scope, depth)})",
            lambda: (
                f"(map (lambda ({name}) {self.expression(INT, inner, depth)})"
                f" {self.expression(LIST, scope, depth)})"
            ),
            lambda: (
                f"(filter (lambda ({name}) {self.expression(BOOL, inner, depth)})"
                f" {self.expression(LIST, scope, depth)})"
            ),
            lambda: f"(map {self.expression(FUNCTION, scope, depth)} {self.expression(LIST, scope, depth)})",
            lambda: f"(reverse {self.expression(LIST, scope, depth)})",
            lambda: f"(append {self.pair(LIST, scope, depth)})",
            lambda: f"(cdr {self.expression(LIST, scope, depth)})",
            lambda: f"(sort {self.expression(LIST, scope, depth)} <)",
            lambda: f"(Point-y {self.expression(POINT, scope, depth)})",
            lambda: f"(vector->list {self.expression(VECTOR, scope, depth)})",
            lambda: f"`(1 ,{self.expression(INT, scope, depth)} ,@{self.expression(LIST, scope, depth)})",
        ]
        return choose.choice(forms)()

    def make_point(self, scope: list[tuple[str, str]], depth: int) -> str:
        name = self.fresh()
        fresh = f"(mk-Point {self.expression(INT, scope, depth)} {self.expression(LIST, scope, depth)})"
        if self.chooser.random() < 0.4:
            changed = self.expression(INT, [*scope, (name, POINT)], depth)
            point = self.expression(POINT, scope, depth)
            return f"(let (({name} {point})) (set! (Point-x {name}) {changed}) {name})"
        return fresh

    def make_vector(self, scope: list[tuple[str, str]], depth: int) -> str:
        name = self.fresh()
        if self.chooser.random() < 0.4:
            index, item = self.chooser.randrange(3), self.expression(INT, [*scope, (name, VECTOR)], depth)
            items = self.expression(VECTOR, scope, depth)
            return f"(let (({name} {items})) (vector-set! {name} {index} {item}) {name})"
        return f"(list->vector {self.expression(LIST, scope, depth)})"

    def make_function(self, scope: list[tuple[str, str]], depth: int) -> str:
        name = self.fresh()
        if self.chooser.random() < 0.3:
            return f"(compose {self.pair(FUNCTION, scope, depth)})"
        return f"(lambda ({name}) {self.expression(INT, [*scope, (name, INT)], depth)})"

    def make_tensor(self, scope: list[tuple[str, str]], depth: int) -> str:
        choose = self.chooser
        forms = [
            lambda: f"({choose.choice(['+', '-', '*'])} {self.pair(TENSOR, scope, depth)})",
            lambda: f"(* 2 {self.expression(TENSOR, scope, depth)})",
            lambda: (
                f"(tensor-{choose.choice(['relu', 'abs', 'neg', 'sign', 'floor'])}"
                f" {self.expression(TENSOR, scope, depth)})"
            ),
            lambda: f"(tensor-maximum {self.pair(TENSOR, scope, depth)})",
            lambda: f"(tensor-flip {self.expression(TENSOR, scope, depth)} '(0))",
            lambda: (
                f"(tensor-cat (list (tensor-ref {self.expression(TENSOR, scope, depth)} '(0 1))"
                " (tensor-ones 2)) 0)"
            ),
            lambda: (
                f"(tensor-reshape {self.expression(TENSOR, scope, depth)} '({choose.choice([3, 3, 3, 4])}))"
            ),
        ]
        return choose.choice(forms)()
