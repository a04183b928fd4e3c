"""Ownership: each value is released after its last use, on every branch, and shared only where it is used
again."""

from tenfold.purple import ir
from tenfold.purple.emit_c import analysed
from tenfold.purple.interpret import expand_program
from tests.purple.compiled import FILE


def function(text: str, name: str) -> ir.Function:
    module = analysed(expand_program(text, FILE))
    return next(f for f in module.functions if f.name == name)


def kinds(block: ir.Block, kind: type) -> list:
    return [each for each in ir.statements(block) if isinstance(each, kind)]


def dropped(f: ir.Function, name: str) -> list[ir.Drop]:
    return [each for each in kinds(f.body, ir.Drop) if each.var.name == name]


def test_a_value_that_is_passed_on_moves():
    f = function("(define (f x) (g x)) (define (g x) (list x x)) (print (f '(1)))", "f")
    assert not kinds(f.body, ir.Dup) and not kinds(f.body, ir.Drop)


def test_a_value_that_is_used_again_is_shared():
    f = function("(define (f x) (list x (length x))) (print (f '(1)))", "f")
    assert not kinds(f.body, ir.Dup)  # its length is taken before the list takes it over
    g = function("(define (g x) (cons (list x) x)) (print (g (list 1)))", "g")
    assert [each.var.name for each in kinds(g.body, ir.Dup)] == ["x"]


def test_a_value_passes_through_a_function_that_gives_it_back_under_another_name():
    program = """(define (f x to) (let ((y (if to (tensor-to x to) x))) (print y) y))
                 (print (f (tensor-ones 2) nil) (f (tensor-ones 3) nil))"""
    f = function(program, "f")
    assert not f.params[0].borrowed and not kinds(f.body, ir.Dup)


def test_a_branch_drops_what_it_does_not_need():
    f = function("(define (f c x y) (if c x y)) (print (f #t (list 1) (list 2)))", "f")
    branch = kinds(f.body, ir.If)[0]
    assert [each.var.name for each in kinds(branch.then, ir.Drop)] == ["y"]
    assert [each.var.name for each in kinds(branch.otherwise, ir.Drop)] == ["x"]


def test_an_unused_parameter_that_unknown_callers_hand_over_is_dropped_first():
    f = function("(define (f x) 1) (print ((car (list f)) 1))", "f")
    assert isinstance(f.body[0], ir.Drop)


def test_a_parameter_that_is_only_looked_at_stays_its_callers():
    f = function("(define (f x) (+ 1 (length x))) (print (f (list 1)))", "f")
    assert f.params[0].borrowed and not dropped(f, "x")


def test_a_parameter_that_is_kept_is_owned():
    for kept in ("(list x)", "(set-box! b x)", "(lambda () x)", "(begin (h x) 1)"):
        text = f"(define b (box 0)) (define (h x) (set-box! b x)) (define (f x) {kept}) (print (f (list 1)))"
        assert not function(text, "f").params[0].borrowed, kept


def test_walking_a_list_that_is_borrowed_counts_nothing():
    text = "(define (sum xs total) (if (null? xs) total (sum (cdr xs) (+ total (car xs)))))"
    f = function(text + "(print (sum '(1 2) 0))", "sum")
    assert f.params[0].borrowed and not dropped(f, "xs") and not kinds(f.body, ir.Dup)


def test_a_part_is_not_lent_over_a_write_to_such_parts():
    written = "(define (f x) (let ((a (car x))) (set-car! x 2) (length a))) (print (f (list (list 1))))"
    other = (
        "(define (f x v) (let ((a (car x))) (vector-set! v 0 2) (length a))) (print (f '((1)) (vector 1)))"
    )
    for text, is_lent in ((written, False), (other, True)):
        part = next(let.var for let in kinds(function(text, "f").body, ir.Let) if let.var.name == "a")
        assert (part.lender is not None) == is_lent


def test_a_global_that_never_changes_lends_its_value():
    constant = function("(define xs (list 1 2)) (define (f) (length xs)) (print (f))", "f")
    assert not dropped(constant, "xs")
    changing = function("(define xs (list 1)) (define (f) (length xs)) (set! xs nil) (print (f))", "f")
    assert len(dropped(changing, "xs")) == 1


def test_a_tensor_is_handed_over_so_that_it_can_go_early():
    f = function("(define (f x) (tensor-exp (tensor-exp x))) (print (f (tensor 1.0)))", "f")
    assert not f.params[0].borrowed


def test_numbers_need_no_ownership():
    f = function("(define (f x) (* x x)) (print (f 2))", "f")
    assert not kinds(f.body, ir.Drop) and not f.params[0].is_managed


def test_a_failing_call_releases_what_is_owned_then():
    text = "(define (f x y) (list (vector-length x) x y)) (print (f (vector 1) (list 2)))"
    lets = kinds(function(text, "f").body, ir.Let)
    failing = next(let for let in lets if isinstance(let.op, ir.Prim) and "vector-length" in let.op.name)
    assert {var.name for var in failing.on_error} == {"x", "y"}


def test_the_parts_of_a_dying_pair_move_out_of_it():
    text = "(define (f n) (let* ((x (list n 1)) (a (car x)) (b (cdr x))) (cons b a))) (print (f '(1)))"
    f = function(text, "f")
    assert kinds(f.body, ir.Uncons) and not kinds(f.body, ir.Dup) and not kinds(f.body, ir.Drop)


def test_a_part_that_is_only_looked_at_is_not_shared():
    text = "(define (f n) (let ((x (list n))) (if (eq? (car x) 'a) (list x) nil))) (print (f 'a))"
    lets = kinds(function(text, "f").body, ir.Let)
    looked = next(let for let in lets if isinstance(let.op, ir.Prim) and let.op.name == "car")
    assert looked.var.lender is not None and looked.var.lender.name == "x"


def test_a_parameter_that_callers_only_look_at_is_shared_where_it_is_kept():
    text = "(define xs (list 1)) (define b (box 0)) (define (f x) (set-box! b x) (length x))"
    f = function(text + "(define (g) (+ 1 (f xs))) (print (g) (g))", "f")
    assert f.params[0].borrowed and not dropped(f, "x")
    assert [let.op.args[0] for let in kinds(f.body, ir.Let) if isinstance(let.op, ir.Share)] == f.params


def test_an_unknown_procedure_writes_only_what_escaping_functions_write():
    text = "(define (f x g) (let ((a (car x))) (g) (length a))) (define v (vector 1))"
    for written, is_lent in (("(vector-set! v 0 2)", True), ("(set-car! y 2)", False)):
        call = f"(define y (list (list 1))) (print (f y (car (list (lambda () {written})))))"
        part = next(let.var for let in kinds(function(text + call, "f").body, ir.Let) if let.var.name == "a")
        assert (part.lender is not None) == is_lent, written


def test_what_an_operator_in_place_gives_is_its_operand():
    text = "(define x (tensor 1.0)) (define (f y) (tensor-add! y 1) (tensor-exp! y)) (print (f x))"
    assert not kinds(function(text, "f").body, ir.Drop)


def test_a_value_made_here_and_never_shared_is_freed_statically():
    f = function("(define (f x) (let ((v (vector x))) (vector-length v))) (print (f 1))", "f")
    assert [each.unique for each in kinds(f.body, ir.Drop) if each.var.name == "v"] == ["made by vector"]
    g = function("(define (g x) (let ((v (vector x))) (make-vector 2 v) 1)) (print (g 1))", "g")
    kept = next(each for each in kinds(g.body, ir.Drop) if each.var.name == "v")
    assert kept.unique == "" and kept.counted == "kept at line 1"


def test_walking_a_list_that_is_needed_afterwards_counts_nothing():
    text = (
        "(define (f n) (let ((xs (list n n))) (let ((s (map not xs))) (list s (length xs))))) (print (f 1))"
    )
    f = function(text, "f")
    assert not kinds(f.body, ir.Dup) and all(drop.unique for drop in kinds(f.body, ir.Drop))
