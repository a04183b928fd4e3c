"""The certifier finds every program that would leak or release twice."""

import pytest

from tenfold.purple import ir
from tenfold.purple.certify import CompilerBug, certify
from tenfold.purple.emit_c import analysed
from tenfold.purple.interpret import expand_program
from tests.purple.compiled import FILE
from tests.purple.generate_programs import batch

TEXT = """
(define (pick c x y) (if c (list x) (cons y (length x))))
(define (walk xs acc) (if (null? xs) (reverse acc) (walk (cdr xs) (cons (car xs) acc))))
(define (twice x) (cons (list x) x))
(define (guard x) (try (list (car x) x) (lambda (e) (list e x))))
(print (pick #t (list 1) (list 2)) (walk '(1 2) nil) (twice (list 1)) (guard '(1))
       (map (lambda (z) (list z TEXT)) '(1)))
""".replace("TEXT", '"t"')


def blocks(block: ir.Block):
    yield block
    for each in block:
        if isinstance(each, ir.If):
            yield from blocks(each.then)
            yield from blocks(each.otherwise)
        elif isinstance(each, ir.Loop):
            yield from blocks(each.body)


def everywhere(module: ir.Module):
    """Each place of each block of a program."""
    for function in [*module.functions, module.main]:
        for block in blocks(function.body):
            for i in range(len(block)):
                yield block, i


def test_a_compiled_program_passes():
    assert certify(analysed(expand_program(TEXT, FILE))) > 10


def test_leaving_out_any_one_release_is_found():
    module = analysed(expand_program(TEXT, FILE))
    drops = [(block, i) for block, i in everywhere(module) if isinstance(block[i], ir.Drop)]
    assert len(drops) > 5
    for block, i in drops:
        removed = block.pop(i)
        with pytest.raises(CompilerBug):
            certify(module)
        block.insert(i, removed)
    certify(module)


def test_releasing_anything_twice_is_found():
    module = analysed(expand_program(TEXT, FILE))
    for block, i in [(b, i) for b, i in everywhere(module) if isinstance(b[i], ir.Drop)]:
        block.insert(i, block[i])
        with pytest.raises(CompilerBug):
            certify(module)
        del block[i]


def test_leaving_out_any_one_share_is_found():
    module = analysed(expand_program(TEXT, FILE))
    shares = [(block, i) for block, i in everywhere(module) if isinstance(block[i], ir.Dup)]
    assert shares
    for block, i in shares:
        removed = block.pop(i)
        with pytest.raises(CompilerBug):
            certify(module)
        block.insert(i, removed)


def test_an_error_path_that_forgets_a_value_is_found():
    module = analysed(expand_program(TEXT, FILE))
    found = [
        b[i]
        for b, i in everywhere(module)
        if isinstance(b[i], ir.Let) and ir.can_fail(b[i].op) and b[i].on_error
    ]
    assert len(found) > 5
    for let in found:
        kept, let.on_error = let.on_error, let.on_error[1:]
        with pytest.raises(CompilerBug):
            certify(module)
        let.on_error = kept


def test_a_lent_part_that_outlives_its_container_is_found():
    text = "(define (f n) (let ((x (list n))) (if (eq? (car x) 'a) (list x) nil))) (print (f 'a))"
    module = analysed(expand_program(text, FILE))
    f = module.functions[0]
    let = next(each for each in ir.statements(f.body) if isinstance(each, ir.Let) and each.var.lender)
    f.body.insert(f.body.index(let) + 1, ir.Drop(let.var.lender, "too early", let.place))
    with pytest.raises(CompilerBug, match="not owned|nobody is known to hold it"):
        certify(module)


def test_a_lent_part_that_is_looked_at_after_a_write_is_found():
    text = "(define (f x) (let ((a (car x))) (vector-set! (vector 1) 0 2) (length a))) (print (f '((1))))"
    module = analysed(expand_program(text, FILE))
    certify(module)
    for each in ir.statements(module.functions[0].body):
        if isinstance(each, ir.Let) and isinstance(each.op, ir.Prim) and each.op.name == "vector-set!":
            each.op.name = "set-car!"
    with pytest.raises(CompilerBug, match="nobody is known to hold it"):
        certify(module)


def test_a_borrowed_parameter_that_is_given_away_is_found():
    module = analysed(expand_program("(define (f x) (list x)) (print (f (list 1)))", FILE))
    module.functions[0].params[0].borrowed = True
    with pytest.raises(CompilerBug, match="only lent"):
        certify(module)


def test_a_release_that_looks_at_no_count_of_what_is_shared_is_found():
    module = analysed(expand_program(TEXT, FILE))
    counted = [b[i] for b, i in everywhere(module) if isinstance(b[i], ir.Drop) and not b[i].unique]
    shared = {b[i].var for b, i in everywhere(module) if isinstance(b[i], ir.Dup)}
    wrong = [drop for drop in counted if drop.var in shared]
    for drop in wrong:
        drop.unique = "so it is said"
        with pytest.raises(CompilerBug, match="one owner"):
            certify(module)
        drop.unique = ""
    text = (
        "(define xs (list (list 1))) (define (f ys) (print (length (let ((y (car ys))) (set-car! ys 1) y))))"
    )
    module = analysed(expand_program(text + "(f xs) (print (length xs))", FILE))
    drops = [b[i] for b, i in everywhere(module) if isinstance(b[i], ir.Drop)]
    drop = next(each for each in drops if each.counted.startswith("car gives"))
    drop.unique = "so it is said"
    with pytest.raises(CompilerBug, match="something else holds"):
        certify(module)


def test_random_programs_pass():
    assert certify(analysed(expand_program(batch(77, 40, tensors=0.2), FILE))) > 500
