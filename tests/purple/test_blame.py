"""Errors of library procedures name the procedure that the program called, the same in both ways to run."""

from pathlib import Path

import pytest

from tenfold.purple.errors import PurpleError
from tenfold.purple.expand import prelude_data
from tenfold.purple.interpret import Session
from tenfold.purple.reader import Sequence
from tests.purple.compiled import FILE, compiled, interpreted

# A call, and the name that its error tells; "" where the value that was called has none.
CALLS = {
    "(map car 5)": "map",
    "(map car '(1))": "car",
    "(map + '(1) 5)": "map",
    "(map + '(1) 5 '(2))": "map",
    "(for-each 5 '(1))": "for-each",
    "(vector-map car 5)": "vector-map",
    "(vector-map car (vector 5))": "car",
    "(vector-for-each + (vector 1) 5)": "vector-for-each",
    "(string-map char-upcase \"a\" 5)": "string-map",
    "(even? 'a)": "even?",
    "(zipped -3)": "zip",
    "(apply zip (list 5 '(1)))": "zip",
    "(called zip '(1) 5)": "zip",
    "(car (zip 5 '(1)))": "zip",
    "(first-zipped 5)": "zip",
    "(vectors-mapped 5)": "vector-map",
    "(written 5)": "write-simple",
    "(list-index even? '(a))": "even?",
    "(remove even? '(a))": "even?",
    "(let ((f even?)) (map f '(a)))": "even?",
    "(fold + 0 5)": "fold",
    "(fold + 0 '(a))": "+",
    "(foldl + 0 5)": "foldl",
    "(sort 5 <)": "sort",
    "(sort '(a b) <)": "<",
    "(vector-sort (vector 1 'a) <)": "<",
    "(assoc 1 '(5))": "assoc",
    "(assoc 5 '((1 . 2)) string=?)": "string=?",
    "(string-join '(1 2))": "string-join",
    "(string-pad 5 3)": "string-pad",
    "(string-pad \"a\" \"b\")": "string-pad",
    "(string-ci=? 1 \"a\")": "string-ci=?",
    "(string-count even? \"a\")": "even?",
    "(char<? 1 2)": "char<?",
    "(zip 5 6)": "zip",
    "(apply map (list car 5))": "map",
    "(apply string-join '((1 2)))": "string-join",
    "(called string-join '(1 2))": "string-join",
    "(last-tail '(1 2))": "string-join",
    "(looped 3)": "map",
    "(map (lambda (x) (string-join x)) '((1 2)))": "string-join",
    "(dynamic-wind (lambda () 1) (lambda () (vector-map car 5)) (lambda () 1))": "vector-map",
    "(guard (e (#f 1)) (string-pad 5 5))": "string-pad",
    "(map P-x (list 1))": "P-x",
    "(point-x 5)": "point-x",
    "(map point-x '(5))": "point-x",
    "(node-up 5)": "node-up",
    "(node-down 5)": "node-down",
    "(set-node-up! 5 1)": "set-node-up!",
    "(map node-down '(5))": "node-down",
    "(set-point-x! 5 1)": "set-point-x!",
    "(reduce-right + 0 5)": "reduce-right",
    "(take-while even? '(a))": "even?",
    "(fifth '(1))": "fifth",
    "(fold + 0 '(1) 5)": "fold",
    "(call/cc 5)": "",
    "((compose car cdr) 5)": "cdr",
    "(call-with-values (lambda () 'a) even?)": "even?",
    "(call-with-values (lambda () (values 'a 2)) +)": "+",
    "(call-with-values (lambda () (values 'a 2)) (lambda all (apply even? all)))": "even?",
    "(make-parameter 'a even?)": "even?",
    "(parameterize ((even 'a)) (even))": "even?",
    "(inexact? 'a)": "inexact?",
    "(parameterize ((current-output-port 5)) (display 1))": "current-output-port",
    "(parameter 5)": "parameter",
    "(bitwise-not 2.5)": "bitwise-not",
    "(truncate/ 'a 2)": "truncate/",
    "(list-set! (list 1) 5 2)": "list-set!",
    "(open-binary-output-file 5)": "open-binary-output-file",
    "(read-line 5)": "read-line",
    "(hash-table-update! 5 1 car)": "hash-table-update!",
    "(car 5)": "car",
    "(error \"cdr: what a program says stays\")": "cdr",
}  # fmt: skip
OPENING = """
(import (only (srfi 1) reduce-right take-while fifth fold))
(deftype P x)
(define-record-type point (make-point abscissa) point? (abscissa point-x set-point-x!))
(define-record-type <node> (node up down) node? (up node-up set-node-up!) (down node-down))
(define (called f . given) (apply f given))
(define (last-tail xs) (string-join xs))
(define (looped n) (if (= n 0) (map car 5) (looped (- n 1))))
(define even (make-parameter 2 even?))
(define (zipped xs) (zip '(1 2) xs))
(define (first-zipped xs) (car (zip xs '(1 2))))
(define (vectors-mapped v) (vector-map + (vector 1) v))
(define (written port) (write-simple 1 port))
(define-syntax show
  (syntax-rules ()
    ((_ e) (print (try e (lambda (x) (string-append (error-message x) " at " (error-place x))))))))
"""


def test_both_ways_name_what_the_program_called(tmp_path: Path) -> None:
    program = OPENING + "\n".join(f"(show {call})" for call in CALLS)
    told = interpreted(program)
    for (call, name), line in zip(CALLS.items(), told.splitlines(), strict=True):
        assert line.startswith(f"{name}: ") if name else "is not a procedure" in line, (call, line)
        assert f" at {FILE}:" in line, (call, line)
    assert compiled(program, tmp_path) == told


def procedures() -> dict[str, int]:
    """The procedures of the library that programs call, and how many arguments each needs."""
    found: dict[str, int] = {}
    for form in prelude_data()[1]:
        assert isinstance(form, Sequence)
        head = form.value[1]
        if form.value[0].value != "define" or not isinstance(head, Sequence):
            continue
        words = [each.value for each in head.value]
        keywords = [i for i, word in enumerate(words) if type(word).__name__ == "Keyword"]
        if not words[0].startswith("%"):
            found[words[0]] = len(words) - 1 - 2 * len(keywords)
    return found


# Procedures that end the program, wait for its input, or speak of an operator of the tensor engine.
APART = ("exit", "emergency-exit", "read-line", "read-string")


@pytest.mark.parametrize("wrong", ["'a", "(vector 'a)", "-1.5"])
def test_no_library_procedure_blames_an_inner_one(wrong: str) -> None:
    session = Session()
    blamed = {}
    for name, count in procedures().items():
        if name in APART or name.startswith("tensor-"):
            continue
        try:
            session.run_text(f"({' '.join([name, *[wrong] * count])})", FILE)
        except PurpleError as error:
            subject, colon, _ = error.message.partition(": ")
            if error.kind in ("type", "index") and colon and " " not in subject and subject != name:
                blamed[name] = error.message
    assert blamed == {}
