"""Pairs and records made in the memory of those that died."""

import pytest

from tenfold.purple import ir
from tenfold.purple.certify import CompilerBug, certify
from tenfold.purple.emit_c import analysed
from tenfold.purple.interpret import expand_program
from tenfold.purple.releases import releases
from tests.purple.compiled import CHECKED, FILE, build, check_failures, function_of, interpreted, run

INSERTION = """
(define (insert x sorted)
  (cond ((null? sorted) (list x))
        ((< x (car sorted)) (cons x sorted))
        (else (cons (car sorted) (insert x (cdr sorted))))))
(define (sorted xs) (fold (lambda (done x) (insert x done)) nil xs))
"""
RECORDS = """
(deftype Point x y)
(define (moved p) (mk-Point (+ 1 (Point-x p)) (Point-y p)))
(define (walked n p) (if (= n 0) (Point-x p) (walked (- n 1) (moved p))))
"""
PROGRAM = (
    INSERTION
    + RECORDS
    + """
(define (swapped p) (if (pair? (car p)) (cons (cdr p) (car p)) (begin (display (car (cdr p))) (cdr p))))
(define (reversed xs done) (if (null? xs) done (reversed (cdr xs) (cons (car xs) done))))
(define kept (list 4 5 6))
(define (all-of f xs) (if (null? xs) nil (cons (f (car xs)) (all-of f (cdr xs)))))
(print (sorted (list 3 1 2)) (walked 5 (mk-Point 0 "y")) (swapped (cons (list 1) (list 2))))
(print (reversed (list 1 2 3) nil) (reversed kept nil) kept (swapped (cons 1 (list "s"))))
(print (try (all-of car (list (list 1) (list "two") 3)) error-message))
(print (try (all-of (lambda (x) (vector-ref x 1)) (list (vector 1 "b") (vector 1))) error-message))
"""
)


def rebuilds(block: ir.Block) -> list[ir.Let]:
    return [s for s in ir.statements(block) if isinstance(s, ir.Let) and isinstance(s.op, ir.Rebuild)]


def test_insertion_into_a_list_that_nothing_else_holds_takes_one_new_pair():
    module = analysed(expand_program(INSERTION + "(print (sorted (list 3 1 2)))", FILE))
    (rest,) = rebuilds(function_of(module, "insert").body)
    assert rest.op.made.name == "%hole"
    apart = next(s for s in ir.statements(function_of(module, "insert").body) if isinstance(s, ir.Uncons))
    assert apart.unique and apart.cell is rest.op.args[-1]
    assert releases(module).reused > 0


def test_a_record_that_dies_is_the_memory_of_the_next_of_its_size():
    module = analysed(expand_program(RECORDS + "(print (walked 5 (mk-Point 0 1)))", FILE))
    (record,) = rebuilds(function_of(module, "moved").body)
    assert isinstance(record.op.made, ir.MakeRecord)


def test_what_is_reused_only_if_its_count_says_so_is_reported_as_counted():
    text = "(define (swapped p) (cons (cdr p) (car p))) (define kept (cons 1 2))"
    text += "(print (swapped (cons 3 4)) (swapped kept) kept)"
    counted = releases(analysed(expand_program(text, FILE))).counted
    assert any("reused if nothing does" in why for _, _, why in counted)


def test_memory_of_another_size_is_found_by_the_certifier():
    module = analysed(expand_program(RECORDS + "(print (walked 5 (mk-Point 0 1)))", FILE))
    body = function_of(module, "moved").body
    drop = next(each for each in body if isinstance(each, ir.Drop) and each.cell is not None)
    drop.shape = None  # as if a pair had died
    with pytest.raises(CompilerBug, match="not of its size"):
        certify(module)


def test_memory_that_is_forgotten_or_taken_for_a_value_is_found_by_the_certifier():
    module = analysed(expand_program(RECORDS + "(print (walked 5 (mk-Point 0 1)))", FILE))
    moved = function_of(module, "moved")
    (record,) = rebuilds(moved.body)
    cell, rebuild = record.op.args[-1], record.op
    record.op = rebuild.made
    with pytest.raises(CompilerBug, match="still owned on return: cell"):
        certify(module)
    record.op = ir.Prim([record.op.args[0], cell], "cons")
    with pytest.raises(CompilerBug, match="only keeps memory"):
        certify(module)


def test_memory_that_an_error_path_forgets_is_found_by_the_certifier():
    module = analysed(expand_program(PROGRAM, FILE))
    forgetting = [
        (let, cell)
        for function in [*module.functions, module.main]
        for let in ir.statements(function.body)
        if isinstance(let, ir.Let)
        for cell in let.on_error
        if cell.type == ir.CELL
    ]
    assert forgetting
    for let, cell in forgetting:
        kept, let.on_error = let.on_error, tuple(var for var in let.on_error if var is not cell)
        with pytest.raises(CompilerBug, match="a failure here disagrees about cell"):
            certify(module)
        let.on_error = kept


def test_programs_that_use_memory_again_print_the_same_and_leak_nothing_wherever_they_fail(tmp_path):
    program = build(PROGRAM, tmp_path, *CHECKED)
    done = run(program)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", interpreted(PROGRAM))
    check_failures(program, range(1, 200, 3))
