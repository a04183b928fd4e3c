"""Answers that were once wrong in one way to run or in both: each must be right interpreted and compiled."""

import pytest

from tests.purple.compiled import compiled, interpreted

# The programs of a group become one text, so that the C compiler runs once: their names must differ.
PLAIN = {
    "a keyword that every call gives may be the number that marks an absent one": (
        "(define (scaled x :by 2) (* x by)) (print (scaled 3 :by 42))",
        "126",
    ),
    "a keyword may be any number that the runtime uses as a mark": (
        "(define (shown :n 1) (+ n 0)) (print (map (lambda (n) n) (list (shown :n 2) (shown :n 10)"
        " (shown :n 18) (shown :n 26) (shown :n 34) (shown :n 42) (shown :n 50) (shown :n 0))))",
        "(2 10 18 26 34 42 50 0)",
    ),
    "an integer shifted to the right may become any that is nearer to nothing": (
        "(define (moved n by) (- (arithmetic-shift n by) 4611686018427387904))"
        "(print (* 4 (moved 4611686018427387904 -62)) (* 4 (moved 4611686018427387904 0)))",
        "-18446744073709551612 0",
    ),
    "a product of integers may outgrow 64 bits where it is one of several results": (
        "(define (grown f k) (list (try (if k (raise 1) 'none) (lambda (e) (* 9223372036854775807 18)))"
        " (try (if k (raise 1) 'none) (lambda (e) (quotient -9223372036854775808 -1)))"
        " (if (f k) 'none (- -9223372036854775808 1)) (if (f k) 0.5 (+ 9223372036854775807 1))))"
        "(print (grown not 1) (grown null? 1))",
        "(166020696663385964526 9223372036854775808 -9223372036854775809 9223372036854775808)"
        " (166020696663385964526 9223372036854775808 -9223372036854775809 9223372036854775808)",
    ),
    "what is no procedure is named although an argument calls one that an expression gives": (
        "(define (outer-called x) (try ((car x) ((car (list (lambda (y) y))) 1)) error-message))"
        "(define (key-called x) (try ((car x) 1 :by ((car (list (lambda (y) y))) 1)) error-message))"
        "(print (outer-called '(5)) (key-called '(6)) (outer-called (list list)))",
        "5 is not a procedure 6 is not a procedure (1)",
    ),
    "what is no finite number is no count, and has no divisor": (
        "(define (refused f . xs) (try (apply f xs) error-message))"
        "(print (refused iota (sqrt -1.0)) (refused range 0 (/ 1.0 0)) (refused gcd (/ 1.0 0) 3))"
        "(print (refused lcm 4 (sqrt -1.0)) (gcd 32.0 -36) (lcm 32.0 -36) (iota 2.5) (range 1 4) (gcd))",
        "iota: expected a finite number, got +nan.0 range: expected a finite number, got +inf.0"
        " gcd: expected a finite number, got +inf.0\n"
        "lcm: expected a finite number, got +nan.0 4.0 288.0 (0 1) (1 2 3) 0",
    ),
    "a keyword may be a float that every call gives": (
        "(define (halved x :part 0.5) (* x part)) (print (halved 2.0 :part 42.0))",
        "84.0",
    ),
    "a keyword may be a boolean that every call gives": (
        "(define (chosen a :on #t) (if on a 0)) (print (chosen 1 :on #f) (chosen 1 :on #t))",
        "0 1",
    ),
    "a keyword may be a character, nil or the unspecified value": (
        "(define (kept :x 7) x) (print (kept :x nil) (kept :x #\\*) (kept :x (if #f #f)) (kept))",
        "() * #<unspecified> 7",
    ),
    "operands are all evaluated before arithmetic on three of them": (
        "(print (try (+ 9223372036854775807 1 (vector-ref (vector) 0)) error-kind))",
        "index",
    ),
    "a procedural macro brings in its own names and takes the user's": (
        "(define-syntax exchange! (er-macro-transformer (lambda (form rename compare)"
        " `(,(rename 'let) ((,(rename 'tmp) ,(cadr form))) (,(rename 'set!) ,(cadr form) ,(caddr form))"
        " (,(rename 'set!) ,(caddr form) ,(rename 'tmp))))))"
        "(print (let ((tmp 1) (y 2) (let 3)) (exchange! tmp y) (list tmp y let)))",
        "(2 1 3)",
    ),
    "what is kept and given back is one object": (
        "(define (kept-by b x) (set-box! b x) x) (define held (box nil))"
        "(print (eq? (kept-by held (list 1)) (unbox held)))",
        "#t",
    ),
    "a procedure shows the name that it was given where it was made": (
        """(print (let ((r (lambda (x) x))) r) (let ((r (let () (lambda (x) x)))) r))
           (define (adder n) (let ((adds (lambda (x) (+ x n)))) adds))
           (print (guard (e (#t e)) (lambda () 1)) (adder 1) adder)""",
        "#<procedure r> #<procedure lambda>\n#<procedure lambda> #<procedure adds> #<procedure adder>",
    ),
    "the unspecified value shows itself": (
        "(print (list (if #f #f) 1)) (print (if #f #f))",
        "(#<unspecified> 1)\n#<unspecified>",
    ),
    "recursion without end is an error of kind memory": (
        "(define (endless n) (+ 1 (endless n))) (print (try (endless 1) error-kind))",
        "memory",
    ),
    "letters of every script have cases": (
        '(print (char-upcase #\\é) (char-downcase #\\Σ) (string-upcase "Straße") (string-downcase "ÀÉ")'
        ' (string-foldcase "Straße"))',
        "É σ STRASSE àé strasse",
    ),
    "letters and digits of every script are known as such": (
        "(print (map char-alphabetic? '(#\\é #\\λ #\\1 #\\中)) (char-numeric? #\\x0664)"
        " (digit-value #\\x0664) (char-whitespace? #\\x00a0) (char-upper-case? #\\É)"
        " (char-lower-case? #\\ß))",
        "(#t #t #f #t) #t 4 #t #t #t",
    ),
    "a symbol in bars is read and written": (
        "(write '(|a b| |abc| || |1| |nil| |x\\|y| 1+ + ...)) (newline) (define |my var| 3) (print |my var|)",
        "(|a b| abc || |1| |nil| |x\\|y| 1+ + ...)\n3",
    ),
    "a hash table prints the pairs that hash-table->list gives": (
        "(define ages (hash-table 'ada 36)) (print ages (hash-table->list ages))",
        "#<table (ada . 36)> ((ada . 36))",
    ),
    "an error names the procedure that was called, and what was wrong": (
        '(print (try (substring "abc" 2 1) error-message) (try (take (list 1 2) 5) error-message))',
        "substring: the start 2 lies behind the end 1 take: index 5 is out of range for length 2",
    ),
    "numbers and booleans of R7RS": (
        r"""
(print (nan? nan) (finite? 1.5) (exact 2.0) (inexact 1) (boolean=? #t #t #f) (symbol=? 'a 'a)
  (bitwise-not 5))""",
        """\
#t #t 2 1.0 #f #t -6""",
    ),
    "characters and strings of R7RS": (
        r"""
(print (char<? #\a #\b #\c) (char-ci=? #\a #\A) (string>? "b" "a") (string-ci=? "Straße" "STRASSE")
  (string<=? "a" "a" "b"))
(print (string-copy "hello" 1 3) (string-map char-upcase "abc") (string-index "hello" #\l) (string-pad
  "7" 3) (string-pad-right "ab" 4 #\.) (vector->string #(#\a)))""",
        """\
#t #t #t #t #t
el ABC 2   7 ab.. a""",
    ),
    "lists and vectors of R7RS": (
        r"""
(define xs (list 1 2 3)) (list-set! xs 1 'b) (print xs (make-list 2 'x) (list-copy xs) (memv 3 xs)
  (assv 2 '((1 . a) (2 . b))))
(print (foldl cons nil '(1 2 3)) (foldr cons nil '(1 2 3)) (delete-duplicates '(1 2 1)) (vector-sort
  (vector 3 1 2) <))
(print (vector-copy #(1 2 3) 1) (vector-copy #(1 2 3) 0 2) (vector-map + #(1 2) #(10 20)))""",
        """\
(1 b 3) (x x) (1 b 3) (3) (2 . b)
(3 2 1) (1 2 3) (1 2) #(1 2 3)
#(2 3) #(1 2) #(11 22)""",
    ),
    "a list that holds itself is refused where its length counts": (
        """(define ring (list 1 2)) (set-cdr! (cdr ring) ring)
           (define lasso (iota 23)) (set-cdr! (list-tail lasso 22) (list-tail lasso 15))
           (for-each
             (lambda (f)
               (for-each (lambda (xs) (print (substring (try (f xs) error-message) 0 8))) (list ring lasso)))
             (list length reverse list->vector list->string
                   (lambda (xs) (append xs (list 1))) (lambda (xs) (apply + xs))))
           (print (try (tensor-cat ring 0) error-kind) (map (lambda (n) (length (iota n))) '(0 1 7 8 9 17)))
           (set-cdr! (cdr ring) nil) (set-cdr! (list-tail lasso 22) nil)""",
        "length: \nlength: \nreverse:\nreverse:\nlist->ve\nlist->ve\nlist->st\nlist->st\n"
        "append: \nappend: \napply: e\napply: e\ntensor (0 1 7 8 9 17)",
    ),
    "guard takes the first clause that fits, or raises again": (
        r"""
(define (f n) (guard (e ((symbol? e) (list 'symbol e)) ((string? e) => identity) ((error? e)
  (error-object-message e))) (case n ((0) (raise 'x)) ((1) (raise "s")) ((2) (error "bad thing:" 1
  "two")) (else 'fine))))
(print (map f '(0 1 2 3)) (try (guard (e ((string? e) e)) (raise 5)) (lambda (e) (list 'out e))))""",
        """\
((symbol x) #t bad thing: fine) (out 5)""",
    ),
    "dynamic-wind runs its last procedure however it is left": (
        r"""
(define notes nil)
(define (note x) (set! notes (cons x notes)))
(print (dynamic-wind (lambda () (note 'in)) (lambda () 42) (lambda () (note 'out))) (reverse notes))
(try (dynamic-wind (lambda () (note 'a)) (lambda () (error "x")) (lambda () (note 'b))) (lambda (e) 1))
  (print notes)""",
        """\
42 (in out)
(b a out in)""",
    ),
    "parameters, promises and case-lambda": (
        r"""
(define p (make-parameter 10 (lambda (x) (* x 2))))
(print (p) (parameterize ((p 3)) (p)) (p))
(define q (delay (begin (note 'forced) 7))) (print (force q) (force q) (force 3) (promise? q) (car
  notes))
(define area (case-lambda ((r) (* r r)) ((a b) (* a b)) ((a . more) (cons a more))))
(print (area 3) (area 2 5) (area 1 2 3))""",
        """\
20 6 20
7 7 3 #t forced
9 10 (1 2 3)""",
    ),
    "several values are bound by let*-values, receive and define-values": (
        r"""
(let*-values (((a b) (values 1 2)) ((c) (values (+ a b)))) (print a b c))
(receive (a . rest) (values 1 2 3) (print a rest))
(define-values (u v . w) (values 1 2 3 4)) (print u v w)
(define (g) (define-values (x y) (values 5 6)) (+ x y)) (print (g))""",
        """\
1 2 3
1 (2 3)
1 2 (3 4)
11""",
    ),
    "records of R7RS": (
        r"""
(define-record-type point (make-point x y) point? (x point-x set-point-x!) (y point-y) (z point-z))
(define pt (make-point 1 2)) (set-point-x! pt 10) (print (point-x pt) (point-y pt) (point-z pt) (point?
  pt) (point? 1) pt)
(define-record-type <thing> (thing a) is-thing? (a thing-a)) (print (thing-a (thing 5)) (is-thing? 5))""",
        """\
10 2 #f #t #f #<point x: 10 y: 2 z: #f>
5 #f""",
    ),
    "Scheme's do loops, and Purple's do is a sequence": (
        r"""
(print (do ((i 0 (+ i 1)) (acc nil (cons i acc))) ((= i 3) acc)))
(do ((i 0 (+ i 1))) ((= i 2)) (display i)) (newline)
(print (do (display "seq ") 5))""",
        """\
(2 1 0)
01
seq 5""",
    ),
    "a keyword may be assigned to while a part of what it was is in use": (
        "(define (parts :k (list 2 34)) (list (car k) (begin (set! k k) k) (begin (set! k (cdr k)) k)))"
        "(print (parts) (parts :k '(1)))",
        "(2 (2 34) (34)) (1 (1) ())",
    ),
    "integer division and vectors in place": (
        r"""
(letrec* ((a 1) (b (+ a 1))) (print b))
(let-values (((q r) (floor/ -7 2)) ((s t) (exact-integer-sqrt 17))) (print q r s t))
(let ((v (vector 1 2 3 4))) (vector-copy! v 1 #(9 8)) (vector-fill! v 0 3) (print v))
(print (try (area) error-message) (exact 2.5))""",
        """\
2
-4 1 4 1
#(1 9 8 0)
no clause of case-lambda takes these arguments: () 5/2""",
    ),
}
WITH_TENSORS = {
    "what an operator in place gives is its operand": (
        "(define (grown x) (tensor-mul! (tensor-add! x 1.0) 2.0)) (define grows (tensor '(1.0 2.0)))"
        "(print (eq? (grown grows) grows) grows (tensor-sub! :other 1.0 :self grows)"
        " (map tensor-neg! (list (tensor '(3.0)))) (evaluate! (list grows)))",
        "#t tensor([3., 5.]) tensor([3., 5.]) (tensor([-3.])) (tensor([3., 5.]))",
    ),
    "a tensor of one element decides": (
        "(define loss (tensor 0.5)) (print (if (< loss 0.1) 'converged 'not-yet) (if (< loss 1) 'yes 'no))",
        "not-yet yes",
    ),
    "and, or, not, cond and while ask a tensor too": (
        "(define left (tensor 3)) (print (and (tensor 0) 1) (or (tensor 0) 2) (not (tensor '(0.0)))"
        " (cond ((tensor #f) 1) (else 2))) (while (> left 0) (set! left (- left 1))) (print left)",
        "tensor(0) 2 #t 2\ntensor(0)",
    ),
    "a tensor of several elements is neither true nor false": (
        "(print (try (if (tensor '(1 2)) 1 2) error-message) (try (not (tensor '())) error-kind)"
        " (try (filter (lambda (x) (tensor '(1 1))) '(1)) error-message))",
        "a tensor of 2 elements is neither true nor false tensor "
        "a tensor of 2 elements is neither true nor false",
    ),
    "equal? compares the numbers of tensors, their dtypes and shapes": (
        "(print (equal? (tensor '(1 2)) (tensor '(1 2))) (equal? (tensor '(1 2)) (tensor '(1 3)))"
        " (equal? (tensor '(1 2)) (tensor '(1.0 2.0))) (equal? (tensor '((1 2))) (tensor '(1 2)))"
        " (equal? (list (tensor nan)) (list (tensor nan))) (equal? (tensor 0.0) (tensor -0.0))"
        " (eq? (tensor 1) (tensor 1)) (member (tensor 2) (list 1 (tensor 2) 3)))",
        "#t #f #f #f #t #f #f (tensor(2) 3)",
    ),
    "evaluate! gives what it was given": (
        "(print (evaluate! (tensor 1)) (evaluate! (list (tensor 2))))",
        "tensor(1) (tensor(2))",
    ),
    "a convolution may be padded by 42": (
        "(print (tensor-shape (forward (conv2d 1 4 3 :padding 42) (tensor-ones '(1 1 4 4)))))",
        "(1 4 86 86)",
    ),
    "layers and random tensors take booleans by keyword": (
        "(print (length (parameters (linear 2 2 :bias #f)))"
        " (requires-grad? (tensor-randn 10 10 :requires-grad t)))",
        "1 #t",
    ),
    "momentum remembers tensors of several elements": (
        "(define weights (parameter (tensor '(1.0 2.0))))"
        " (define fast (sgd (list weights) :lr 0.5 :momentum 0.5))"
        " (dotimes (i 2) (backward (tensor-sum (* weights weights))) (optimizer-step fast) (zero-grad fast))"
        " (print (tensor->list weights))",
        "(-0.5 -1.0)",
    ),
    "what does not fit is told in the same words": (
        "(define wide (tensor '((1.0 2.0 3.0) (4.0 5.0 6.0)))) (define four (tensor '(1.0 2.0 3.0 4.0)))"
        " (define (told thunk) (try (thunk) (lambda (e) (print (error-kind e) (error-message e)))))"
        " (told (lambda () (+ wide four))) (told (lambda () (tensor-matmul wide four)))"
        " (told (lambda () (tensor-softmax wide 7))) (told (lambda () (tensor-add wide four :alpha 2)))"
        " (told (lambda () (tensor-ref wide 0 5))) (told (lambda () (tensor '((1 2) (3)))))"
        " (told (lambda () (tensor-cat (list wide four)))) (told (lambda () (forward (linear 2 2) wide)))"
        " (told (lambda () (tensor-relu 1))) (told (lambda () (apply tensor-item (list four))))"
        " (told (lambda () (backward wide))) (told (lambda () (backward (tensor-sum wide))))",
        """\
tensor +: cannot take float32 (2 3), float32 (4)
tensor tensor-matmul: cannot take float32 (2 3), float32 (4)
tensor tensor-softmax: cannot take float32 (2 3), 7
tensor tensor-add: cannot take float32 (2 3), float32 (4), :alpha 2
tensor tensor-ref: cannot take float32 (2 3), 0, 5
tensor tensor: cannot take ((1 2) (3))
tensor tensor-cat: cannot take (float32 (2 3) float32 (4))
tensor tensor-linear: cannot take float32 (2 3), float32 (2 2), float32 (2)
tensor tensor-relu: cannot take 1
tensor tensor-item: a tensor of 4 elements is no number
tensor backward: a tensor of 6 elements has no gradient of its own
tensor backward: nothing that this tensor was computed from asks for gradients""",
    ),
    "gradients of functions of numbers, tensors and lists": (
        r"""
(define (cubed x) (* x x x))
(print ((grad cubed) 2.0) (tensor->list ((grad (lambda (x) (tensor-sum (* x x)))) (tensor '(1.0 2.0)))))
(let-values (((y g) ((value-and-grad (lambda (x a) (tensor-sum (* a (* x x))))) (tensor '(1.0 3.0))
  2.0))) (print (tensor-item y) (tensor->list g)))
(print (gradient-of (lambda (theta) (+ (* (first theta) (second theta)) (tensor-sum (third theta))))
  (list 2.0 3.0 (tensor '(1.0 1.0)))))
(print (try ((grad (lambda (x) (* x 2))) (tensor '(1.0 2.0))) error-message))
(print (tensor->list (build-tensor '(2 3) (lambda (i j) (+ (* 10 i) j)))))
(print (tensor->list ((vmap (lambda (x y) (tensor-sum (* x y)))) (tensor '((1.0 2.0) (3.0 4.0)))
  (tensor '((1.0 1.0) (2.0 2.0))))))
(print (no-grad (gradient-of cubed 1.0)))""",
        """\
tensor(12.) (2.0 4.0)
20.0 (4.0 12.0)
(tensor(3.) tensor(2.) tensor([1., 1.]))
backward: a tensor of 2 elements has no gradient of its own
((0 1 2) (10 11 12))
(3.0 14.0)
tensor(3.)""",
    ),
}
MODELS = """
(define (make) (sequential (linear 2 3) (batch-norm 3) (relu) (linear 3 1)))
(define x (tensor '((1.0 2.0) (3.0 -4.0))))
(define taught (make))
(forward taught x)
(save-model taught "{0}")
(define fresh (load-model! (make) "{0}"))
(evaluating! taught)
(evaluating! fresh)
(print (equal? (tensor->list (forward taught x)) (tensor->list (forward fresh x))))
(print (try (load-model! (linear 2 2) "{0}") error-message))"""


def test_a_model_is_saved_and_loaded_with_its_running_statistics_both_ways(tmp_path):
    text = MODELS.format(tmp_path / "model.safetensors")
    wanted = "#t\nload-model!: the file holds 8 tensors, and the model has 2\n"
    assert interpreted(text) == wanted
    assert compiled(text, tmp_path) == wanted


MARK = "-- the next program --"


def printed(group: dict[str, tuple[str, str]], run) -> dict[str, str]:
    """What each program of a group prints."""
    parts = run(f'\n(print "{MARK}")\n'.join(text for text, _ in group.values())).split(MARK + "\n")
    return {name: part.rstrip("\n") for name, part in zip(group, parts)}


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    def build(group):
        return printed(group, lambda text: compiled(text, tmp_path_factory.mktemp("both")))

    return {**build(PLAIN), **build(WITH_TENSORS)}


@pytest.fixture(scope="module")
def python():
    return {**printed(PLAIN, interpreted), **printed(WITH_TENSORS, interpreted)}


ALL = {**PLAIN, **WITH_TENSORS}


@pytest.mark.parametrize("name", ALL)
def test_interpreted(name, python):
    assert python[name] == ALL[name][1]


@pytest.mark.parametrize("name", ALL)
def test_compiled(name, native):
    assert native[name] == ALL[name][1]
