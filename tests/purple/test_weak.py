"""Weak fields: whoever reads one gets a share, so that what it leads to is released by its count."""

import pytest

from tenfold.purple import ir
from tenfold.purple.certify import CompilerBug, certify
from tenfold.purple.emit_c import analysed
from tenfold.purple.interpret import expand_program
from tests.purple.compiled import CHECKED, FILE, compiled, function_of, interpreted

TYPES = """(deftype W (t any :weak))
(define seen (mk-W nil))
(define (note! x) (set! (W-t seen) x) nil)
(define (note-by-another! x) (note! x))
(define (adder n) (print n) (lambda (x) (+ x n)))
(define (adder-of n) (lambda (x) (+ x n)))
(define (each! xs) (if (null? xs) nil (begin (print (car xs)) (each! (cdr xs)))))
(define (last-of xs) (if (null? (cdr xs)) xs (last-of (cdr xs))))
"""
# What each one gives it has read from a weak field while something else owned it, whose last use is later.
READERS = {
    "made": "(let* ((p (vector n 2)) (r (W-t (mk-W p)))) (print p) (list r 4))",
    "by-call": "(let* ((p (vector n n)) (a (note-by-another! p)) (r (W-t seen))) (print p) (list r))",
    "by-value": "(let* ((p (vector n)) (w ((car (list mk-W)) p)) (r (W-t w))) (print p) (list r))",
    "applied": "(let* ((p (vector n)) (w (apply mk-W (list p))) (r (W-t w))) (print p) (list r))",
    "string": '(let* ((p (string-append "a" "b")) (a (note! p)) (r (W-t seen))) (print p) (list r n))',
    "closure": "(let* ((p (adder n)) (a (note! p)) (r (W-t seen))) (print (procedure? p)) (r 1))",
    "boxed": "(let* ((b (box (vector n))) (a (note! (unbox b))) (r (W-t seen))) (print b) (list r))",
    "first": "(let* ((p (list (vector n) n)) (a (note! (car p))) (r (W-t seen))) (print p) (list r))",
    "rest": "(let* ((p (list n 2 3)) (a (note! (cdr p))) (r (W-t seen))) (each! p) (list r))",
    "last": "(let* ((p (list n 2 3)) (a (note! (cdr p))) (r (W-t seen))) (print (car (last-of p))) (list r))",
    "apart": """(let* ((p (list (vector n) 2)) (a (note! (car p))) (r (W-t seen)) (v (car p)) (s (cdr p)))
                  (print v s) (list r))""",
    "taken": "(let* ((p (list n 2)) (a (note! (cdr p))) (r (W-t seen)) (s (cdr p))) (print s) (list r))",
    "turned": "(let* ((p (list n 2)) (a (note! (cdr p))) (r (W-t seen)) (b (reverse p))) (print b) (list r))",
    "tried": """(let* ((p (vector n)) (r (try (begin (note! p) (error "x")) (lambda (e) (W-t seen)))))
                  (print p) (list r))""",
    "loop": """(let loop ((i 0) (p (list n)) (all nil))
                 (if (= i 3) all
                   (begin
                     (note! p)
                     (let ((r (W-t seen))) (print p) (loop (+ i 1) (cons i p) (cons r all))))))""",
}


def test_what_was_read_from_a_weak_field_outlives_its_owner(tmp_path):
    text = TYPES
    for name, body in READERS.items():
        text += f"(define ({name} n) {body})\n(define of-{name} ({name} 1))\n"
        text += f"(print of-{name} (map (lambda (i) (vector i i)) '(7 8 9)) (list 7 8 9))\n"
    assert compiled(text, tmp_path, *CHECKED) == interpreted(text)


VALUES = (
    "(vector n 2)",
    '(string-append "a" (number->string n))',
    "(bytevector n 2)",
    "(adder-of n)",
    "(tensor (list n))",
    "(list n)",
    "(box n)",
    "(make-parameter n)",
)


def test_both_modes_forget_a_value_of_any_kind_once_nobody_owns_it(tmp_path):
    text = TYPES
    for i, made in enumerate(VALUES):
        text += f"""(define (owned-{i} n)
            (let* ((p {made}) (one (mk-W p)) (two (mk-W p)) (same (eq? (W-t one) (W-t two))))
              (print same (null? (W-t one)))
              p))
          (define (lost-{i} n) (let ((w (mk-W {made}))) (list (W-t w) (W-t w))))
          (print (null? (owned-{i} 1)) (lost-{i} 1))"""
    printed = interpreted(text)
    assert printed == "#t #f\n#f (() ())\n" * len(VALUES)
    assert compiled(text, tmp_path, *CHECKED) == printed


def test_a_tensor_that_a_call_stored_weakly_outlives_its_owner(tmp_path):
    text = f"""{TYPES}
      (define (remember! x) (note! x) (tensor-sum x))
      (define (f)
        (let* ((x (tensor '(1.0 2.0))) (s (remember! x)) (r (W-t seen))) (print s (+ x 1)) (print x) r))
      (define r (f))
      (print r (tensor '(3.0 4.0)))
      (print (+ (f) 1))"""
    assert compiled(text, tmp_path, *CHECKED) == interpreted(text)


def test_a_weak_field_may_lead_to_what_is_never_freed(tmp_path):
    text = """(deftype W (t any :weak))
      (define w (mk-W (lambda (q) q)))
      (define (f x) x)
      (print (W-t w))
      (set! (W-t w) f) (set! (W-t w) f) (print (W-t w))
      (set! (W-t w) mk-W) (print (W-t w) (W-t (mk-W car)))
      (print (W-t (mk-W "text")) (W-t (mk-W '(1 2))) (W-t (mk-W 'a)))"""
    assert compiled(text, tmp_path, *CHECKED) == interpreted(text)


def released(function: ir.Function, name: str) -> list[ir.Drop]:
    """The releases of a variable of the program, or of what takes it apart."""
    drops = [each for each in ir.statements(function.body) if isinstance(each, ir.Drop)]
    return [each for each in drops if each.var.name == name]


@pytest.mark.parametrize(
    ("reader", "name"), [("made", "p"), ("by-call", "p"), ("string", "p"), ("apart", "v"), ("taken", "s")]
)
def test_the_certifier_refuses_to_free_what_a_weak_field_leads_to_without_a_look_at_its_count(reader, name):
    text = f"{TYPES}(define ({reader} n) {READERS[reader]})\n(print ({reader} 1))"
    module = analysed(expand_program(text, FILE))
    certify(module)
    drops = released(function_of(module, reader), name)
    assert drops and not any(drop.unique for drop in drops)
    drops[0].unique = "made up"
    with pytest.raises(CompilerBug, match=f"a weak field may lead to {name}"):
        certify(module)


def test_what_no_weak_field_leads_to_is_still_released_statically():
    text = f"""{TYPES}
      (define (owner n) (let* ((p (list n)) (q (vector p p)) (s (list n n))) (note! (car s)) (print q s)))
      (owner (list 1))"""
    function = function_of(analysed(expand_program(text, FILE)), "owner")
    assert [drop.unique for drop in [*released(function, "q"), *released(function, "s")]] == [
        "made by vector",
        "made by list",
    ]
