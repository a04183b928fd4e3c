"""Lists that nothing else holds: their rests, their elements, and their reversal in place."""

import pytest

from tenfold.purple import ir
from tenfold.purple.certify import CompilerBug, certify
from tenfold.purple.emit_c import analysed
from tenfold.purple.interpret import expand_program
from tenfold.purple.releases import releases
from tests.purple.compiled import CHECKED, FILE, build, check_failures, function_of, interpreted, run

WORDS = """
(define (words n) (if (= n 0) nil (cons (list (number->string n) "s") (words (- n 1)))))
(define (total xs n) (if (null? xs) n (total (cdr xs) (+ n (string-length (car (car xs)))))))
"""
PROGRAM = (
    WORDS
    + """
(deftype Node name (link any :weak))
(define (backwards xs) (let ((more (cons 0 xs))) (reverse more)))
(define shared (list (list 1) (list 2) (list 3)))
(define (suffix xs) (let ((all (append (list 'a) (cdr xs)))) (reverse all)))
(define (grown)
  (let ((xs (list (string-append "a" "b") (string-append "c" "d")))) (cons (car xs) (reverse xs))))
(print (total (words 12) 0) (backwards (list 1 2)) (backwards shared) shared (suffix shared) shared (grown))
(print (map (lambda (row) (map (lambda (x) (* x x)) row)) (list (list 1 2) (list 3 4))))
(define (named)
  (let* ((xs (list 1 2)) (node (mk-Node "n" xs)) (back (reverse xs))) (list back (Node-name node))))
(print (named))
(print (try (reverse (cons 1 (string-length "two"))) error-message))
"""
)


def reversals(module: ir.Module) -> list[ir.Reverse]:
    functions = [*module.functions, module.main]
    lets = [s for f in functions for s in ir.statements(f.body) if isinstance(s, ir.Let)]
    return [let.op for let in lets if isinstance(let.op, ir.Reverse)]


def test_a_list_that_dies_where_it_is_reversed_is_turned_round_in_place():
    module = analysed(expand_program("(print (map (lambda (x) (+ x 1)) (list 1 2)))", FILE))
    assert [op.unique for op in reversals(module)] == [True]
    shared = """(define xs (list 1 2))
(define (f ys) (let ((zs (append (list 0) ys))) (reverse zs)))
(print (f xs) xs)"""
    assert [op.unique for op in reversals(analysed(expand_program(shared, FILE)))] == [False]


def test_the_elements_of_a_list_that_nothing_else_holds_are_released_statically():
    text = """(define (drain xs)
  (unless (null? xs) (print (string-append (car (car xs)) "!")) (drain (cdr xs))))"""
    module = analysed(expand_program(WORDS + text + "(drain (words 3))", FILE))
    assert not releases(module).counted


def test_elements_of_which_a_share_was_given_out_are_counted():
    text = """(define (f xs kept) (if (null? xs) kept (f (cdr xs) (car xs))))
(define (g) (let* ((xs (list (string-append "a" "b") (string-append "c" "d"))) (x (car xs)))
  (let loop ((xs xs)) (if (null? xs) x (let ((y (car xs)) (ys (cdr xs))) (display y) (loop ys))))))
(print (g) (f (list "a") nil))"""
    module = analysed(expand_program(text, FILE))
    certify(module)
    assert any(why for _, _, why in releases(module).counted)


def test_a_part_that_is_lent_stays_in_the_list_that_dies_after_it():
    text = """(define (f xs) (match (append '(1 2) xs) ((list* 'k rest) 1) (_ 2)))
(print (f (list 1)) (f '(3)))"""
    assert certify(analysed(expand_program(text, FILE))) > 0


def test_a_reversal_in_place_of_a_list_that_is_shared_is_found_by_the_certifier():
    text = "(define (f n) (let ((xs (list n 2))) (cons xs (reverse xs)))) (print (f 1))"
    module = analysed(expand_program(text, FILE))
    body = function_of(module, "f").body
    (let,) = [
        s for s in body if isinstance(s, ir.Let) and isinstance(s.op, ir.Prim) and s.op.name == "reverse"
    ]
    (xs,) = let.op.args
    let.op = ir.Reverse([xs], unique=True)
    let.on_error = ()
    with pytest.raises(CompilerBug):
        certify(module)


def test_lists_print_the_same_both_ways_and_leak_nothing_wherever_a_program_fails(tmp_path):
    program = build(PROGRAM, tmp_path, *CHECKED)
    done = run(program)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", interpreted(PROGRAM))
    check_failures(program, range(1, 200, 3))


REPLACED = {
    "set-car!": "(let ((v (list 5))) (set-car! v shared) (map length v))",
    "set-cdr!": "(let ((v (list 5))) (set-cdr! v shared) (map list v))",
    "of a rest": "(let ((v (list 5 6))) (set-car! (cdr v) shared) (map list v))",
}


@pytest.mark.parametrize("writer", REPLACED)
def test_a_part_that_was_replaced_is_released_by_its_count(writer, tmp_path):
    text = f"""
      (define shared (list 1.5 "two"))
      (define (changed) {REPLACED[writer]})
      (define (handed shared) {REPLACED[writer]})
      (define (twice s) (list (handed s) (handed s) s))
      (print (changed) (changed) shared (twice (list 2.5 "three")))"""
    done = run(build(text, tmp_path, *CHECKED))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", interpreted(text))


@pytest.mark.parametrize(("writer", "part"), [("set-car!", "car"), ("set-cdr!", "c[ad]r")])
def test_the_certifier_refuses_to_release_a_replaced_part_as_if_nothing_else_held_it(writer, part):
    text = "(define (f) (let ((v (list (list 5)))) (vector-set! (vector 1) 0 2) (map length v))) (print (f))"
    module = analysed(expand_program(text, FILE))
    certify(module)
    each = next(
        s
        for s in ir.statements(function_of(module, "f").body)
        if isinstance(s, ir.Let) and isinstance(s.op, ir.Prim) and s.op.name == "vector-set!"
    )
    each.op.name = writer
    with pytest.raises(CompilerBug, match=f"a {part} that was replaced"):
        certify(module)
