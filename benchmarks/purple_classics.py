"""The small classics by which compiled Purple is timed beside Scheme compilers: one text for all of them.

Each ends with (print RESULT); Scheme reads it after `SCHEME`."""

from __future__ import annotations

SCHEME = "(define nil '()) (define (print x) (display x) (newline))"
CLASSICS = {
    "fib": """
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(print (fib 32))""",
    "tak": """
(define (tak x y z) (if (not (< y x)) z (tak (tak (- x 1) y z) (tak (- y 1) z x) (tak (- z 1) x y))))
(define (repeat n) (if (= n 0) (tak 18 12 6) (begin (tak 18 12 6) (repeat (- n 1)))))
(print (repeat 200))""",
    "nqueens": """
(define (count-to n) (let loop ((i n) (l nil)) (if (= i 0) l (loop (- i 1) (cons i l)))))
(define (place x y z)
  (if (null? x)
      (if (null? y) 1 0)
      (+ (if (ok? (car x) 1 z) (place (append (cdr x) y) nil (cons (car x) z)) 0)
         (place (cdr x) (cons (car x) y) z))))
(define (ok? row dist placed)
  (if (null? placed)
      #t
      (and (not (= (car placed) (+ row dist)))
           (not (= (car placed) (- row dist)))
           (ok? row (+ dist 1) (cdr placed)))))
(print (place (count-to 10) nil nil))""",
    "deriv": """
(define (all xs) (if (null? xs) nil (cons (deriv (car xs)) (all (cdr xs)))))
(define (over xs) (if (null? xs) nil (cons (list '/ (deriv (car xs)) (car xs)) (over (cdr xs)))))
(define (deriv a)
  (cond ((not (pair? a)) (if (eq? a 'x) 1 0))
        ((eq? (car a) '+) (cons '+ (all (cdr a))))
        ((eq? (car a) '-) (cons '- (all (cdr a))))
        ((eq? (car a) '*) (list '* a (cons '+ (over (cdr a)))))
        (else (error "no rule for" a))))
(define (repeat n)
  (if (= n 0)
      (deriv '(+ (* 3 x x) (* a x x) (* b x) 5))
      (begin (deriv '(+ (* 3 x x) (* a x x) (* b x) 5)) (repeat (- n 1)))))
(print (repeat 400000))""",
    "sort": """
(define (make n seed)
  (let loop ((i 0) (s seed) (l nil))
    (if (= i n) l (loop (+ i 1) (modulo (+ (* s 1103515245) 12345) 2147483648) (cons s l)))))
(define (merge-lists a b)
  (cond ((null? a) b)
        ((null? b) a)
        ((< (car a) (car b)) (cons (car a) (merge-lists (cdr a) b)))
        (else (cons (car b) (merge-lists a (cdr b))))))
(define (halve l)
  (let loop ((slow l) (fast l) (front nil))
    (if (or (null? fast) (null? (cdr fast)))
        (cons (reverse front) slow)
        (loop (cdr slow) (cdr (cdr fast)) (cons (car slow) front)))))
(define (merge-sort l)
  (if (or (null? l) (null? (cdr l)))
      l
      (let ((halves (halve l))) (merge-lists (merge-sort (car halves)) (merge-sort (cdr halves))))))
(define (repeat n) (if (= n 0) 'sorted (begin (merge-sort (make 50000 n)) (repeat (- n 1)))))
(print (repeat 10))""",
    "sieve": """
(define (sieve n)
  (let ((marks (make-vector (+ n 1) #t)))
    (let outer ((i 2) (found 0))
      (cond ((> i n) found)
            ((vector-ref marks i)
             (let inner ((j (* 2 i)))
               (if (<= j n) (begin (vector-set! marks j #f) (inner (+ j i)))))
             (outer (+ i 1) (+ found 1)))
            (else (outer (+ i 1) found))))))
(print (sieve 3000000))""",
    "mandelbrot": """
(define (escapes cr ci)
  (let loop ((n 0) (zr 0.0) (zi 0.0))
    (let ((rr (* zr zr)) (ii (* zi zi)))
      (if (or (= n 200) (> (+ rr ii) 4.0))
          n
          (loop (+ n 1) (+ (- rr ii) cr) (+ (* 2.0 (* zr zi)) ci))))))
(define (total size)
  (let rows ((y 0) (sum 0))
    (if (= y size)
        sum
        (rows (+ y 1)
              (let columns ((x 0) (sum sum))
                (if (= x size)
                    sum
                    (columns (+ x 1)
                             (+ sum (escapes (- (/ (* 3.0 x) size) 2.0) (- (/ (* 2.0 y) size) 1.0))))))))))
(print (total 400))""",
    "nbody": """
(define (body x y vx vy m) (vector x y vx vy m))
(define bodies
  (list (body 0.0 0.0 0.0 0.0 39.47) (body 4.84 -1.16 0.6 2.81 0.037) (body 8.34 4.12 -1.01 1.82 0.011)
        (body 12.89 -15.11 1.08 0.86 0.0017) (body 15.37 -25.91 0.97 0.59 0.002)))
(define (pull! a b dt)
  (let* ((dx (- (vector-ref a 0) (vector-ref b 0))) (dy (- (vector-ref a 1) (vector-ref b 1)))
         (d2 (+ (* dx dx) (* dy dy))) (mag (/ dt (* d2 (sqrt d2)))))
    (vector-set! a 2 (- (vector-ref a 2) (* dx (vector-ref b 4) mag)))
    (vector-set! a 3 (- (vector-ref a 3) (* dy (vector-ref b 4) mag)))
    (vector-set! b 2 (+ (vector-ref b 2) (* dx (vector-ref a 4) mag)))
    (vector-set! b 3 (+ (vector-ref b 3) (* dy (vector-ref a 4) mag)))))
(define (pull-all! bs dt)
  (if (not (null? bs))
      (begin (for-each (lambda (b) (pull! (car bs) b dt)) (cdr bs)) (pull-all! (cdr bs) dt))))
(define (move! b dt)
  (vector-set! b 0 (+ (vector-ref b 0) (* dt (vector-ref b 2))))
  (vector-set! b 1 (+ (vector-ref b 1) (* dt (vector-ref b 3)))))
(define (run n)
  (if (> n 0)
      (begin (pull-all! bodies 0.01) (for-each (lambda (b) (move! b 0.01)) bodies) (run (- n 1)))
      (< (vector-ref (car bodies) 0) 1000.0)))
(print (run 100000))""",
    "ackermann": """
(define (ack m n) (cond ((= m 0) (+ n 1)) ((= n 0) (ack (- m 1) 1)) (else (ack (- m 1) (ack m (- n 1))))))
(print (ack 3 9))""",
    "closures": """
(define (compose-all fs)
  (lambda (x) (let loop ((fs fs) (x x)) (if (null? fs) x (loop (cdr fs) ((car fs) x))))))
(define (adder n) (lambda (x) (+ x n)))
(define (numbers n) (let loop ((i n) (l nil)) (if (= i 0) l (loop (- i 1) (cons i l)))))
(define chain (compose-all (map adder (numbers 20))))
(define (repeat n sum)
  (if (= n 0) sum (repeat (- n 1) (+ sum (apply + (map chain (map (lambda (x) (* x x)) (numbers 20))))))))
(print (repeat 20000 0))""",
    "tree": """
(define (make depth) (if (= depth 0) (cons nil nil) (cons (make (- depth 1)) (make (- depth 1)))))
(define (check tree) (if (null? (car tree)) 1 (+ 1 (check (car tree)) (check (cdr tree)))))
(define (repeat n sum) (if (= n 0) sum (repeat (- n 1) (+ sum (check (make 14))))))
(print (repeat 60 0))""",
    "strings": """
(define (digits n)
  (if (< n 10) (number->string n) (string-append (digits (quotient n 10)) (number->string (modulo n 10)))))
(define (palindrome? s)
  (let loop ((i 0) (j (- (string-length s) 1)))
    (cond ((>= i j) #t)
          ((char=? (string-ref s i) (string-ref s j)) (loop (+ i 1) (- j 1)))
          (else #f))))
(define (run n found) (if (= n 0) found (run (- n 1) (if (palindrome? (digits n)) (+ found 1) found))))
(print (run 300000 0))""",
}
