"""Compiled programs: what they print is what the interpreter prints, in constant space where calls are tail
calls."""

import shutil
from pathlib import Path

import pytest

import tenfold as tn
from tenfold.command.demo import digits
from tenfold.purple.build import build_program
from tenfold.purple.deep_stack import with_deep_stack
from tenfold.purple.errors import PurpleError, report
from tenfold.purple.interpret import Session, expand_program
from tests.purple.compiled import CHECKED, FILE, build, compiled, interpreted, run

PROGRAMS = {
    "what is compared with itself": """
(define (same x) (let ((s (if (> x 1) 'left 'right))) (list (eq? s s) (equal? s s) (= x x) (< x x))))
(print (same 3) (same 0))
""",
    "arithmetic": """
      (print (+) (+ 1) (+ 1 2 3) (- 5) (- 1 2 3) (* 2 3.5) (/ 1 2) (/ 6 3) (/ 2) (quotient -7 2) (% -7 2)
      (modulo -7 2))
      (print (expt 2 62) (expt 2.0 0.5) (sqrt 16) (sqrt 2) (floor -1.5) (round 2.5) (min 1 2.0) (max 3 1 2)
      (abs -4))
      (print 4611686018427387904 (+ 4611686018427387903 1) (- -4611686018427387904 1) -9223372036854775808)
      (print 0.1 1e20 1e-7 100.0 1e16 123456789.125 (/ 1.0 0.0) (- (/ 1.0 0.0)) (/ 0.0 0.0) -0.0)
      (print (< 1 2 3) (< 1 3 2) (= 1 1.0) (< 9007199254740993 9007199254740992.0) (arithmetic-shift 1 40)
      (bitwise-and 12 10))
      (print inf -inf nan (arithmetic-shift -1 63) (->int -9223372036854775808.0) (number->fixed nan 2))
      (print (try (arithmetic-shift 1 63) error-message) (try (->int 1e19) error-message))""",
    "lists": """
      (define xs (list 1 2.5 "a" #\\b 'sym :kw nil #t #f))
      (write xs) (newline)
      (print (cons 1 2) '(1 (2 . 3) #(4 "x")) (append '(1) '(2 3) 4) (reverse '(1 2 3)) (list-ref '(a b c) 1))
      (print (map + '(1 2 3) '(10 20 30)) (filter odd? (iota 10)) (fold-right cons nil '(1 2)) (sort '(3 1 2)
      >) (zip '(1 2) '(a b)))
      (print (assoc 2 '((1 . one) (2 . two))) (member 3 '(1 2 3 4)) (list? '(1 . 2)) (equal? '(1 (2 #(3)))
      (list 1 (list 2 (vector 3)))))""",
    "closures": """
      (define (counter) (let ((n 0)) (lambda () (set! n (+ n 1)) n)))
      (define a (counter)) (define b (counter))
      (a) (a) (print (a) (b) a car)
      (define (compose-all . fs) (if (null? fs) (lambda (x) x) (lambda (x) ((car fs) ((apply compose-all (cdr
      fs)) x)))))
      (print ((compose-all 1+ 1+ (lambda (x) (* x 10))) 5))
      (define (make-pair x) (letrec ((left (lambda () x)) (both (lambda () (list (left) (left) x)))) both))
      (print ((make-pair 3)))
      (define fs (map (lambda (i) (lambda () (* i i))) '(1 2 3)))
      (print (map (lambda (f) (f)) fs))""",
    "parameters": """
      (define (f a :scale 2 :name "x" . rest) (list a scale name rest))
      (print (f 1) (f 1 :name "y") (f 1 2 3 :scale 5) (apply f '(1 2 3)))
      (define g f)
      (print (g 1 :scale 7) (try (g) error-message) (try (g 1 :nope 2) error-message))
      (print (try (car) error-message) (try ((lambda (x) x)) error-message))""",
    "records": """
      (deftype Point x (y int))
      (define p (mk-Point "a" 2))
      (print p (Point? p) (Point? 1) (Point-y p))
      (define (kind x) (match x ((Point a b) 'point) (_ 'other)))
      (print (kind #f) (let ((n (+ 1 1))) (Point? n)) (let ((f (* 2.0 1.5))) (Point? f)))
      (print (match #f ((Point a b) a) (_ 7)))
      (set! (Point-x p) (list p 1)) (set! (Point-x p) 0)
      (print p (equal? p (mk-Point 0 2)) (try (mk-Point 1 "no") error-message) (try (Point-x 5)
      error-message))
      (deftype Tree value (children list) (parent :weak))
      (define root (mk-Tree 1 nil nil))
      (set! (Tree-children root) (list (mk-Tree 2 nil root)))
      (print root (Tree-value (Tree-parent (car (Tree-children root)))))
      (define (orphan) (mk-Tree 3 nil (mk-Tree 4 nil nil)))
      (print (Tree-parent (orphan)))""",
    "errors": """
      (define (risky n) (if (= n 0) (error "deep" 'n n) (+ 1 (risky (- n 1)))))
      (print (try (risky 3) (lambda (e) (list (error-message e) (error-irritants e) (error-kind e)
      (error-place e)))))
      (print (try (raise '(1 2)) (lambda (e) e)) (try (try (car 1) (lambda (e) (raise e))) error-message))
      (print (try (vector-ref (vector 1 2) 5) error-message) (try (hash-table-ref (make-hash-table) 'k)
      error-message))
      (print (try (+ 9223372036854775807 1) error-message) (try (/ 1 0) error-message) (try (match 5 ((list)
      1)) error-message))
      (define (late) (undefined-yet 1))
      (define (undefined-yet x) (* 2 x))
      (print (late) (try ("no procedure" 1) error-message) (try (length '(1 . 2)) error-message))""",
    "tables and vectors": """
      (define t (make-hash-table))
      (for-each (lambda (k) (hash-table-set! t k (list k))) '(b "a" 3 2.5 (1 2)))
      (hash-table-delete! t 3)
      (hash-table-set! t 'b 'again)
      (print t (hash-table-ref t (list 1 2)) (hash-table-count t) (hash-table-contains? t 3) (hash-table->list
      t))
      (define v (make-vector 3 'x)) (vector-set! v 1 (list v)) (vector-set! v 1 0)
      (print v (vector->list v) (list->vector '(1 2)))
      (define big (make-hash-table))
      (dotimes (i 1000) (hash-table-set! big i (* i i)))
      (print (hash-table-ref big 999) (hash-table-count big))""",
    "likeness": """
      (deftype Node value next)
      (define (ring) (let ((n (mk-Node 1 nil))) (set! (Node-next n) n) n))
      (define (endless) (let ((l (list 1 2 3))) (set-cdr! (cddr l) l) l))
      (print (equal? (ring) (ring)) (equal? (endless) (endless)) (equal? (iota 20000) (iota 20000)))
      (define t (make-hash-table))
      (define key (ring))
      (hash-table-set! t key 'ring)
      (hash-table-set! t (list (box 1) 2) 'nested)
      (print (hash-table-ref t (ring) 'none) (hash-table-ref t (list (box 1) 2) 'none))
      (set! (Node-next key) nil)
      (define k (list 1 2))
      (hash-table-set! t k 'k)
      (print (hash-table-ref t (list 1 2) 'none))
      (set-car! k 5)
      (print (hash-table-ref t (list 1 2) 'none) (hash-table-ref t (list 5 2) 'none) t)""",
    "printing what holds itself": """
      (deftype Link value next)
      (define link (mk-Link 1 nil)) (set! (Link-next link) (list link))
      (print link (try (car link) error-message))
      (set! (Link-next link) nil)
      (define loop (list 1 2 3)) (set-cdr! (cddr loop) (cdr loop)) (print loop (vector loop loop))
      (set-cdr! (cddr loop) nil)
      (define self (hash-table 'me 1)) (hash-table-set! self 'me (box (vector self))) (print self)
      (hash-table-delete! self 'me)
      (print (let ((s (list 1))) (list s s)) (string-length (write->string (map list (iota 20000)))))""",
    "procedures": """
      (define (const y) (lambda () y))
      (define (counter) (let ((n 0)) (lambda () (set! n (+ n 1)) n)))
      (define (forever) (letrec ((loop (lambda (n) (loop n)))) loop))
      (print (eq? (const 1.5) (const 1.5)) (eq? (const 1) (const 2)))
      (print (eq? (const (const 1)) (const (const 1))))
      (print (eq? (counter) (counter)) (eq? (forever) (forever)) (let ((c (counter))) (eq? c c)))
      (print (hash-table-ref (hash-table (const 1) 'one (counter) 'two) (const 1) 'none))
      (print (try (letrec ((a-b? c-d!) (c-d! 2)) a-b?) error-message))""",
    "lists that end in a call": """
      (define (ends-in-apply n) (if (< n 1) (apply list '(1 2)) (cons n (ends-in-apply (- n 1)))))
      (define (ends-in-call n f) (if (< n 1) (f n) (cons n (ends-in-call (- n 1) f))))
      (define (fails n) (if (< n 1) (apply car '(5)) (cons n (fails (- n 1)))))
      (define (skips n) (cond ((= n 0) '(end)) ((= n 3) (cons n (skips 2)))
        (else (apply skips (list (- n 1))))))
      (print (ends-in-apply 3) (ends-in-apply 0) (ends-in-call 3 list) (try (fails 3) error-message))
      (print (skips 100000))""",
    "text": """
      (print (string-length "héllo") (substring "héllo" 1 3) (string-ref "héllo" 1) (string-append "a" "é")
      (string<? "a" "b"))
      (write "q\\"\\n\\\\") (write #\\space) (write #\\a) (write (string->list "aé")) (newline)
      (write (map integer->char '(1 7 127 128 160 161 173 888 8203 57344 65535))) (newline)
      (print (string->symbol "x y") (symbol->string 'abc) (string->number "1e3") (string->number "x")
      (map string->number '("#xFf" "#b12" "-#o7" "#o-17" "00000000000000000000000000000007" "1." "1e" "."))
      (number->string 2.0))
      (print (string-search "lo" "hello") (list->string '(#\\a #\\b)) (number->fixed 3.14159 2) (char->integer
      #\\A))""",
    "control": """
      (define-syntax swap! (syntax-rules () ((_ a b) (let ((tmp a)) (set! a b) (set! b tmp)))))
      (define x 1) (define y 2) (swap! x y) (print x y)
      (let loop ((i 0) (acc nil)) (if (< i 5) (loop (+ i 1) (cons (* i i) acc)) (print acc)))
      (define i 0) (while (< i 3) (set! i (+ i 1))) (print i)
      (let-values (((q r) (values 7 3))) (print q r))
      (let-values (((q . more) (values 7 3 1)) (every (values 1 2)) ((one . none) 5))
        (print q more every one none))
      (print (call-with-values (lambda () (values 4 5)) list) (call-with-values (lambda () 4) list))
      (print (gcd) (gcd 12) (gcd 12 18 30) (lcm) (lcm 4 6 10))
      (print (try (let-values (((a b . c) (values 1))) a) error-message) `(1 ,@'(2 . 3)) `(,@'(1) ,@'(2)))
      (print (case 3 ((1 2) 'low) ((3 4) 'mid) (else 'high)) (cond ((assoc 1 '((1 . 2))) => cdr) (else 0))
      (case 3 ((1) 0) ((2 3) => -) (else => list)) (case 9 ((1) 0) (else => list)) `(a . `(b ,(c ,(+ 1 2)))))
      (print (match '(1 (2 3)) ((list a (list b c)) (list c b a)) (_ 'no)) `(1 ,(+ 1 1) ,@(list 3 4) . 5))""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_program_prints_what_the_interpreter_prints(name, tmp_path):
    text = PROGRAMS[name]
    assert compiled(text, tmp_path) == interpreted(text)


EXAMPLES = Path(__file__).parents[2] / "examples" / "purple"


def run_example(name: str, folder: Path, *arguments: str) -> str:
    text = (EXAMPLES / f"{name}.purple").read_text(encoding="utf-8")
    done = run(build(text, folder, "-O1"), *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name", ["characters", "json", "life", "seeds", "training", "xor"])
def test_an_example_prints_the_same_both_ways(name, tmp_path):
    text = (EXAMPLES / f"{name}.purple").read_text(encoding="utf-8")
    assert run_example(name, tmp_path) == interpreted(text)


@pytest.mark.parametrize("name", ["digits_mlp", pytest.param("digits_cnn", marks=pytest.mark.slow)])
def test_digits_are_learnt_by_compiled_programs(name, tmp_path):
    named = {}
    for part, (images, labels) in zip(("train", "test"), digits.load()):
        named |= {f"{part}-images": images.reshape(-1, 64), f"{part}-labels": labels}
    tn.save(named, str(tmp_path / "digits.safetensors"))
    assert run_example(name, tmp_path, str(tmp_path / "digits.safetensors")) == "accuracy above 0.95\n"


def test_tail_calls_of_every_kind_take_constant_space(tmp_path):
    text = """
      (define (down n) (if (= n 0) 'self (down (- n 1))))
      (define (ping n) (if (= n 0) 'mutual (pong (- n 1))))
      (define (pong n) (if (= n 0) 'mutual (ping (- n 1))))
      (define (through f n) (if (= n 0) 'closure (f f (- n 1))))
      (define (spread n) (if (= n 0) 'applied (apply spread (list (- n 1)))))
      (define (caught n) (if (= n 0) 'handled (try (error "again") (lambda (e) (caught (- n 1))))))
      (print (down 10000000) (ping 10000000) (through through 3000000) (spread 1000000) (caught 100000))
      (let loop ((i 0)) (if (< i 10000000) (loop (+ i 1)) (print i)))"""
    program = build(text, tmp_path, "-O1")
    done = run("/bin/sh", "-c", f"ulimit -v 1400000; {program}")
    assert done.stdout == "self mutual closure applied handled\n10000000\n", done.stderr


def test_a_long_list_is_freed_without_recursion(tmp_path):
    text = """
      (define (build n xs) (if (= n 0) xs (build (- n 1) (cons n xs))))
      (print (length (build 3000000 nil)))"""
    assert compiled(text, tmp_path, "-O1") == "3000000\n"


DYING = """
(deftype Node value next)
(define shared (list 1 2 3))
(define (tree n)
  (if (= n 0)
      (list shared (vector shared 1.5 (list 2.5)) (box (list 1)))
      (cons (tree (- n 1)) (tree (- n 1)))))
(define (chain n end)
  (let loop ((i 0) (rest end))
    (if (= i n) rest (loop (+ i 1) (cons (if (odd? i) 1.5 (mk-Node i rest)) rest)))))
(define v (make-vector 3 (list 9)))
(define (put! i x) (try (begin (vector-set! v i x) (write->string v)) error-message))
(dotimes (i 3) (tree 4) (chain 300 shared) (chain 10 (cons (tree 2) (vector 2 (list 3)))))
(print (put! 0 (list 1 2)) (put! 1 2.5) (put! 2 'x) (put! 3 (list 1)) (put! -1 1) (put! 0 nil))
(print (put! 1.5 (list 2)) (put! (expt 2 70) (list 2)) (try (vector-set! (list 1) 0 (list 2)) error-message))
(print (length (tree 5)) (length (chain 5000 shared)) (car (chain 10 (cons 1 (vector 2 3)))) shared)
"""


@pytest.mark.parametrize("options", [(), CHECKED, ("-O2",)])
def test_what_dies_takes_along_what_it_alone_holds(options, tmp_path):
    assert compiled(DYING, tmp_path, *options) == interpreted(DYING)


def test_a_call_that_is_refused_leaves_its_keywords_alone(tmp_path):
    text = """
      (define (f a :scale 2 :name "x" . rest) (list a scale name rest))
      (define (plain a) a)
      (define callees (list f plain car "no procedure" (lambda (a :scale) a)))
      (define (tried g) (try (g (list 1) :nope (list 2)) error-message))
      (define (tail g) (g (list 1) :nope (list 2)))
      (dotimes (i 4)
        (print (map tried callees) (map (lambda (g) (try (tail g) error-message)) callees))
        (print ':nope ':scale))"""
    assert compiled(text, tmp_path, *CHECKED) == interpreted(text)


def test_an_uncaught_error_shows_its_place_the_line_and_the_calls(tmp_path):
    done = run(build("(define (f x) (+ 1 (car x)))\n(define (g x) (list (f x)))\n(g 5)", tmp_path))
    assert done.returncode == 1
    assert f"{FILE}:1:20: error: car: expected a pair, got 5" in done.stderr
    assert f"in (f …) at {FILE}:2:21" in done.stderr
    assert f"in (g …) at {FILE}:3:1" in done.stderr


def test_both_ways_a_traceback_names_what_was_written_and_nothing_that_a_form_became(tmp_path):
    text = """(define (while f) (+ 1 (f 5)))
(define (g f)
  (+ 1 (dotimes (i 3)
    (+ 1 (match i (7 8) ((or (list a) a) :when (= i 0) (+ 1 (while f))))))))
(g (lambda (y) (+ 1 (car y))))"""
    with pytest.raises(PurpleError) as caught:
        Session().run_text(text, FILE)
    shown = report(caught.value, {})
    assert [line.strip() for line in shown.splitlines()[1:]] == [
        f"in (lambda …) at {FILE}:1:24",
        f"in (while …) at {FILE}:4:61",
        f"in (g …) at {FILE}:5:1",
    ]
    assert run(build(text, tmp_path)).stderr.strip() == shown


def test_recursion_that_is_too_deep_is_an_error_that_can_be_caught(tmp_path):
    text = "(define (deep n) (+ 1 (deep (+ n 1)))) (print (try (deep 0) error-message))"
    assert compiled(text, tmp_path, "-O1") == "recursion is too deep\n"


def test_a_weak_field_makes_no_cycle(tmp_path):
    text = """
      (deftype Node (next any) (back :weak))
      (define a (mk-Node nil nil))
      (set! (Node-next a) (mk-Node nil a))
      (print 1)"""
    done = run(build(text, tmp_path))
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_weak_field_keeps_a_number(tmp_path):
    text = """
      (deftype Node (held any :weak))
      (define (half x) (/ x 2.0))
      (define node (mk-Node (half 0.2)))
      (define (hold! x) (set! (Node-held node) x) (print (Node-held node)))
      (print (Node-held node))
      (hold! (half 0.5))
      (hold! (expt 2 80))
      (hold! (/ 1 3))
      (hold! (+ (expt 2 61) 3))"""
    done = run(build(text, tmp_path))
    assert done.stderr == "" and done.stdout == interpreted(text)
    assert done.stdout.split() == ["0.1", "0.25", "1208925819614629174706176", "1/3", "2305843009213693955"]


def test_exit_ends_the_program_with_its_status(tmp_path):
    assert run(build("(display 1) (exit 3) (display 2)", tmp_path)).returncode == 3


def test_arguments_and_input_reach_the_program(tmp_path):
    program = build("(print (command-line)) (print (read-line) (read-line) (read-line))", tmp_path)
    done = run(program, "a", "b c", input="first\nsecond")
    assert done.stdout == "(a b c)\nfirst second #<eof>\n"


def test_foreign_functions_are_called_with_checked_values(tmp_path):
    text = """
      (ffi-declare c-abs (int32) int32 :symbol "abs")
      (ffi-declare c-pow (float float) float :symbol "pow")
      (ffi-declare c-strlen (string) int :symbol "strlen")
      (ffi-declare hypot (float float) float :library "libm.so.6")
      (ffi-declare cosh (float) float :library "m")
      (ffi-declare let-go ((own string)) void :symbol "free")
      (let-go "copied")
      (print (c-abs -5) (c-pow 2 10) (c-strlen "héllo") (hypot 3 4) (map cosh '(0 1)))
      (print (try (c-abs "x") error-message) (try (c-strlen "a\\0b") error-message))"""
    assert compiled(text, tmp_path) == interpreted(text)


@pytest.mark.parametrize(
    ("where", "said"),
    [("", "the C library has no function nope"), (':library "libnone.so"', "no library libnone.so")],
)
def test_a_foreign_function_that_is_not_there_is_an_error_with_its_place(where, said, tmp_path):
    with pytest.raises(PurpleError, match=said) as caught:
        build(f"(print 1)\n(ffi-declare nope (int) int {where})\n(print (nope 1))", tmp_path)
    assert caught.value.place.line == 2


def test_memory_that_cannot_be_had_is_an_error_that_can_be_caught(tmp_path):
    text = "(print (try (make-vector 1000000000000 0) (lambda (e) (list (error-kind e) (error-message e)))))"
    assert compiled(text, tmp_path) == interpreted(text) == "(memory out of memory)\n"


def test_an_argument_of_a_wrong_call_of_a_primitive_is_released_and_no_error_of_the_c_compiler(tmp_path):
    text = """
      (define (f x) (car 1 x))
      (print (try (f 2) error-message))
      (print (try (cons (list 1 2)) error-message) (try (box (list 1) 2) error-message))"""
    assert compiled(text, tmp_path) == interpreted(text)


@pytest.mark.parametrize("compiler", [name for name in ("gcc", "clang") if shutil.which(name)])
def test_the_c_is_clean_under_strict_warnings(compiler, tmp_path):
    build("\n".join(PROGRAMS.values()), tmp_path, "-O2", compiler=compiler)


def test_debug_builds_keep_the_lines_of_the_source(tmp_path):
    program = expand_program("(define (f x)\n  (car x))\n(print (f '(1)))", FILE)
    build_program(program, str(tmp_path / "program"), debug=True)
    assert run(str(tmp_path / "program")).stdout == "1\n"


def test_a_missing_c_compiler_is_an_error_that_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(PurpleError, match="no C compiler"):
        build("(print 1)", tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "(define (f x) (car x))\n(define (g)\n  (list (f 5)))\n(print 1 (g))",
        "(define (f a b) a)\n(define (g h) (list (h 1)))\n(print (g f))",
        "(deftype P (x int) y)\n(define make mk-P)\n(make 1)",
        "(deftype P (x int) y)\n(print (map P-x '(1 2)))",
        "(print 'π (sort '(3 a 1) <))",
        "(print (+ 1\n  (car 1 2)))",
        "(apply (lambda (a b) a) '(1))",
        "(print (map car))",
        "(try (car 1) (lambda () 1))",
        "(define f (compose car cdr))\n(f '(1))",
        "(match 5 ((or (list a) (vector a)) a))",
        "(dotimes (i 3) (print (vector-ref (vector 1) i)))",
        "(define (f xs) (map (lambda (x) (car x)) xs))\n(print (f '(1)))",
        "(define (f xs) (sort xs (lambda (a b) (< (car a) (car b)))))\n(print (f '(1 2)))",
        "(define (f p x) (p x))\n(print (f even? 'a))",
        "(define (f p . x) (apply p x))\n(print (f string-pad 5 5))",
        "(define (f) (dynamic-wind list (lambda () (vector-map car 5)) list))\n(print (f))",
        "(define (f x) (guard (e ((string? e) 1)) (string-join x)))\n(print (f '(1)))",
        "(define-record-type p (make-p x) p? (x p-first))\n(define (f a) (+ 1 (p-first a)))\n(print (f 5))",
    ],
)
def test_an_error_that_nobody_catches_is_reported_alike_both_ways(text, tmp_path):
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    session = Session()
    with pytest.raises(PurpleError) as caught:
        with_deep_stack(lambda: session.run_text(text, FILE))
    done = run(build(text, tmp_path, "-O2"), cwd=tmp_path)
    assert done.stderr == report(caught.value, session.sources) + "\n"


def test_large_and_deep_literals_are_soon_compiled(tmp_path):
    quoted = ["(" * 100_000 + ")" * 100_000, "(" + "1 " * 20_000 + ")", "#(" + "a " * 10_000 + ")"]
    text = "(print (null? '{}) (length '{}) (vector-length '{}))".format(*quoted)
    assert compiled(text, tmp_path) == "#f 20000 10000\n"


def test_constructors_and_fields_are_the_same_procedures_wherever_they_are_mentioned(tmp_path):
    text = "(deftype P x) (print (eq? mk-P mk-P) (eq? P-x P-x) (eq? P-x P?) (map P-x (map mk-P '(1 2))) mk-P)"
    assert compiled(text, tmp_path) == interpreted(text) == "#t #t #f (1 2) #<procedure mk-P>\n"


def test_constants_of_a_wrong_kind_are_no_error_of_the_c_compiler(tmp_path):
    wrong = ["(cdr x)", "(car x)", "(+ x 1)", "(* x 0.5)", "(append '(1) x 2 x)", "(vector-ref x 0)", "(x)"]
    functions = [f"(define (f{i} x) {body})" for i, body in enumerate(wrong)]
    calls = [
        f"(print (try (f{i} {constant}) error-message))"
        for i in range(len(wrong))
        for constant in ("5", "'a", "nil", '"s"', "(lambda (y) y)")
    ]
    text = "\n".join([*functions, *calls])
    assert compiled(text, tmp_path, "-O2") == interpreted(text)
