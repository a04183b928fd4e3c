"""R7RS-small: ports, continuations that escape, handlers, bytevectors, libraries. Each runs both ways."""

import pytest

from tests.purple.compiled import compiled, interpreted
from tests.purple.test_both_ways import printed

PROGRAMS = {
    "a continuation leaves at once, past handlers and with what must still be done": (
        r"""
(define trace nil)
(print (call/cc (lambda (k) (guard (e (#t 'caught)) (+ 1 (k 'left))))))
(print (call/cc (lambda (k) (try (k 'past) (lambda (e) 'caught)))))
(print (call-with-current-continuation
  (lambda (k) (dynamic-wind (lambda () (set! trace (cons 'in trace))) (lambda () (k 1))
                            (lambda () (set! trace (cons 'out trace)))))) (reverse trace))
(print (call-with-values (lambda () (call/cc (lambda (k) (k 1 2)))) list))
(define kept nil)
(call/cc (lambda (k) (set! kept k)))
(print (try (kept 1) error-message))""",
        "left\npast\n1 (in out)\n(1 2)\nthis continuation has returned already: Purple's can only escape",
    ),
    "a handler answers what can go on, and only that": (
        r"""
(print (with-exception-handler (lambda (e) 10) (lambda () (+ 1 (raise-continuable 'oops)))))
(print (guard (e (#t (list 'outer (error-object? e))))
  (with-exception-handler (lambda (e) 'ignored) (lambda () (+ 1 (raise 'oops))))))
(print (call/cc (lambda (k) (with-exception-handler (lambda (e) (k (list 'handled (error-kind e))))
  (lambda () (car 5))))))
(print (with-exception-handler (lambda (e) 1)
  (lambda () (with-exception-handler (lambda (e) (+ 1 (raise-continuable e)))
    (lambda () (* 10 (raise-continuable 'x)))))))
(print (with-exception-handler (lambda (e) 'handler)
  (lambda () (guard (e (#t 'guard)) (raise-continuable 1)))))""",
        "11\n(outer #t)\n(handled type)\n20\nguard",
    ),
    "strings are read and written as ports": (
        r"""
(define in (open-input-string "one\ntwo λx"))
(print (read-line in) (read-char in) (peek-char in) (read-string 3 in)
  (read-char in) (read-char in) (read-char in))
(define out (open-output-string))
(write 'sym out) (display " text" out) (newline out) (write-char #\! out) (write-string "abcdef" out 2 4)
(write (get-output-string out))
(newline)
(print (with-output-to-string (lambda () (print 1 "two") (write "three"))))
(define bytes (open-output-bytevector))
(write-u8 7 bytes) (write-bytevector #u8(1 2 3 4) bytes 1 3)
(print (get-output-bytevector bytes) (read-u8 (open-input-bytevector #u8(9))) (eof-object? (eof-object)))
(close-port in)
(print (try (read-char in) error-message) (input-port-open? in) (display->string in))
(print (try (write 1 in) error-message))""",
        'one t w wo  λ x #<eof>\n"sym text\\n!cd"\n1 two\n"three"\n#u8(7 2 3) 9 #t\n'
        "read-char: this port is closed #f #<port>\nwrite: this port is for input",
    ),
    "data are read from text, with labels and every prefix": (
        r"""
(define (data text) (read (open-input-string text)))
(write (list (data "(a #;b . #(1 \"x\\ny\" #\\space)) rest") (data "'(1 ,x ,@y `z)") (data "#u8(1 255)")
  (data "#| note |# |a b|") (data "#!fold-case ABC") (data "#xff") (data ":key")))
(newline)
(define ring (data "#0=(1 2 . #0#)"))
(print (list-ref ring 5) (try (data "(1 . )") error-kind)
  (try (data "(1") error-kind) (eof-object? (data "")))
(print (try (data "(1 #3#)") error-message) (try (data "#0=#0#") error-kind) (data "(#1=2 #1#)"))
(set-cdr! (cdr ring) nil)""",
        '((a . #(1 "x\\ny" #\\space)) (quote (1 (unquote x) (unquote-splicing y) (quasiquote z))) #u8(1 255)'
        " |a b| abc 255 :key)\n2 read read #t\nread: the label #3# stands for nothing read (2 2)",
    ),
    "control characters are written as they are read, and colons alone name no keyword": (
        r"""
(define text (string #\a #\alarm #\x1 #\delete #\newline #\null))
(write text) (newline)
(print (equal? text (read (open-input-string (write->string text)))))
(define-syntax listed (syntax-rules ::: () ((_ x :::) '(x ::: ...))))
(define (data text) (read (open-input-string text)))
(print (listed 1 2) (symbol? '::) (symbol? (data ":::")) (keyword? (data ":a")))""",
        '"a\\x7;\\x1;\\x7f;\\n\\0"\n#t\n(1 2 ...) #t #t #t',
    ),
    "what holds itself is written with labels": (
        r"""
(define loop (list 1 2))
(set-cdr! (cdr loop) loop)
(write loop) (newline)
(set-cdr! (cdr loop) nil)
(define v (vector 1 nil))
(vector-set! v 1 (list v))
(write v) (newline)
(vector-set! v 1 nil)
(define part (list 'a))
(write (list part part)) (newline)
(write-shared (list part part)) (newline)""",
        "#0=(1 2 . #0#)\n#0=#(1 (#0#))\n((a) (a))\n(#0=(a) #0#)",
    ),
    "bytes, radices and ranges": (
        r"""
(define b (make-bytevector 3 7))
(bytevector-u8-set! b 1 255)
(bytevector-copy! b 0 #u8(1 2 3 4) 2 4)
(print b (bytevector-append b #u8(0)) (utf8->string #u8(206 187)) (string->utf8 "λ")
  (equal? #u8(1) (bytevector 1)))
(print (number->string 255 16) (string->number "-ff" 16) (string->number "1e2") (string->number "3/4")
  (string->number "6/3") (string->number "+inf.0") (string->number "1/0") (string->number "#e1.5") '|+inf.0|)
(print (string->list "abcd" 1 3) (vector->list #(1 2 3) 1) (string->vector "abc" 2) (string<? "a" "b" "c")
  (member 2.0 '(1 2 3) =) (assoc "B" '(("a" . 1) ("b" . 2)) string-ci=?) (log 8 2))
(print (integer? 3.0) (exact-integer? 3.0) (rational? +inf.0) (numerator 0.75) (denominator 0.75)
  (call-with-values (lambda () (truncate/ -5.0 2)) list))
(print (try (bytevector-u8-ref b 9) error-message) (try (bytevector 256) error-message)
  (try (number->string 1 7) error-message) (try (apply +) error-kind))""",
        "#u8(3 4 7) #u8(3 4 7 0) λ #u8(206 187) #t\nff -255 100.0 3/4 2 +inf.0 #f 3/2 +inf.0\n"
        "(b c) (2 3) #(c) #t (2 3) (b . 2) 3.0\n#t #f #f 3.0 4.0 (-2.0 -1.0)\n"
        "bytevector-u8-ref: index 9 is out of range for length 3"
        " bytevector: 256 is no byte: it is from 0 to 255"
        " number->string: 7 is no radix: it is 2, 8, 10 or 16 arity",
    ),
    "integers of any size and ratios": (
        r"""
(define (factorial n) (if (= n 0) 1 (* n (factorial (- n 1)))))
(define (total n sum) (if (= n 0) sum (total (- n 1) (+ sum (* n 4611686018427387904)))))
(define big (factorial 30))
(print big (- big) (total 100 0) (+ 9223372036854775807 1) (* 4294967296 4294967296) (- (- big 1) big))
(print (quotient (factorial 40) (factorial 37)) (remainder (- big) 1000007) (modulo (- big) 1000007)
  (quotient (expt 10 100) (+ (expt 10 50) 1)) (gcd big (expt 6 30)) (exact->inexact (factorial 25)))
(print (/ 1 3) (+ 1/3 1/6) (* 2/3 3/2) (- 1/2 1) (floor -7/2) (truncate -7/2) (max 1/2 1/3) (expt 2/3 -5)
  (rationalize 3/10 1/10) (* 1.5 1/3) (number->string -1/255 16) (exact->inexact 1/3) (< 1/3 0.3333))
(print (arithmetic-shift (- (expt 3 80)) -50) (bitwise-and (- big) (expt 2 100)) (bitwise-xor big -1)
  (number->string (expt 2 100) 16) (string->number "#e1.2e-3") (string->number "#x-ffffffffffffffffffff/2"))
(let ((table (make-hash-table)))
  (hash-table-set! table (expt 2 70) 'long)
  (hash-table-set! table 1/2 'half)
  (print (hash-table-ref table (* 1024 (expt 2 60))) (hash-table-ref table (/ 2 4))
    (hash-table-ref table 0.5 'none)))
(call-with-values (lambda () (exact-integer-sqrt (+ 5 (* big big)))) print)
(print (equal? big (* 30 (factorial 29))) (eqv? 2/4 1/2) (= (expt 2 70) (expt 2.0 70)) (= 1/2 0.5)
  (eqv? 1/2 0.5) (exact 0.1) '(1/2 . 123456789012345678901234567890) (log (expt 10 400)) (sqrt (expt 10 40)))
(deftype Account (balance int))
(define account (mk-Account 9223372036854775807))
(set! (Account-balance account) (+ (Account-balance account) 1))
(print (Account-balance account) (try (vector-ref (vector 1) big) error-message))""",
        "265252859812191058636308480000000 -265252859812191058636308480000000 23289014393058308915200"
        " 9223372036854775808 18446744073709551616 -1\n59280 -790627 209380 "
        + "9"
        * 50
        + " 320979616137216 1.5511210043330986e25\n"
        "1/3 1/2 1 -1/2 -4 -3 1/2 243/32 1/3 0.5 -1/ff 0.3333333333333333 #f\n"
        "-131280612526959149125435 0 -265252859812191058636308480000001 1"
        + "0"
        * 25
        + " 3/2500 -1208925819614629174706175/2\nlong half none\n265252859812191058636308480000000 5\n"
        "#t #t #t #t #f 3602879701896397/36028797018963968 (1/2 . 123456789012345678901234567890)"
        " 921.0340371976182 100000000000000000000\n9223372036854775808"
        " vector-ref: 265252859812191058636308480000000 does not fit in 64 bits",
    ),
    "libraries are defined, imported, and chosen by what there is": (
        r"""
(define-library (a stack)
  (export push (rename pop-one pop))
  (import (scheme base))
  (begin (define (push x s) (cons x s)) (define (pop-one s) (cdr s))))
(import (scheme base) (only (scheme write) display) (prefix (a stack) s:) (rename (scheme base) (car head)))
(print (s:pop (s:push 1 '(2))) (head '(9 8)))
(cond-expand ((and r7rs (library (a stack)) (not no-such)) (define chosen 'first))
  (else (define chosen 'second)))
(print chosen (cond-expand (no-such 1) (else 2)) (if (memq 'r7rs (features)) #t #f))""",
        "(2) 9\nfirst 2 #t",
    ),
    "macros and records may be a body's own": (
        r"""
(define (area)
  (define-record-type square (make-square side) square? (side side-of set-side!))
  (define s (make-square 3))
  (set-side! s 4)
  (list (* (side-of s) (side-of s)) (square? s) (square? 1)))
(print (area))
(define x 'outer)
(print (let-syntax ((it (syntax-rules () ((_) x)))) (let ((x 'inner)) (it))))
(print (letrec-syntax ((my-or (syntax-rules () ((_) #f) ((_ e) e)
    ((_ e r ...) (let ((t e)) (if t t (my-or r ...)))))))
  (let ((t 5)) (my-or #f t))))
(define-values () (values))
(define-syntax alias let)
(print (alias ((y 1)) y))""",
        "(16 #t #f)\nouter\n5\n1",
    ),
    "promises run in constant space, and once": (
        r"""
(define count 0)
(define p (delay (begin (set! count (+ count 1)) count)))
(print (force p) (force p) (promise? p) (force 7))
(define (countdown n) (if (= n 0) (delay 'done) (delay-force (countdown (- n 1)))))
(print (force (countdown 20000)))""",
        "1 1 #t 7\ndone",
    ),
}


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return printed(PROGRAMS, lambda text: compiled(text, tmp_path_factory.mktemp("scheme")))


@pytest.fixture(scope="module")
def python():
    return printed(PROGRAMS, interpreted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_interpreted(name, python):
    assert python[name] == PROGRAMS[name][1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled(name, native):
    assert native[name] == PROGRAMS[name][1]


def test_files_are_written_and_read_by_ports_in_both_ways(tmp_path):
    program = """
(define path (car (list "%s")))
(call-with-output-file path (lambda (port) (write '(1 "two") port) (newline port)))
(with-output-to-file (string-append path "2") (lambda () (print "hello")))
(print (call-with-input-file path read) (with-input-from-file (string-append path "2") read-line))
(print (try (open-input-file "/no/such/file") file-error?))
(let ((port (open-binary-output-file path))) (write-u8 200 port) (close-port port))
(print (read-u8 (open-binary-input-file path)))"""
    wanted = "(1 two) hello\n#t\n200\n"
    assert interpreted(program % (tmp_path / "one")) == wanted
    assert compiled(program % (tmp_path / "two"), tmp_path) == wanted
