"""What the expressions of random programs look like: for each type its literals and the forms that make it.

`{int}` stands for an expression of type int, `{int ?x:list}` for one that may use the list ?x; `?x` is a new
name, and `?k…` one that nothing assigns to. Loops are bounded by literals, so that every program ends.
"""

from __future__ import annotations

OPENING = """
(deftype Point x y)
(deftype Node (value int) next (owner :weak))
(define-syntax either (syntax-rules () ((_ a b) (let ((first a)) (if first first b)))))
(define-syntax swapped (syntax-rules () ((_ a b body) (let ((t a)) (set! a b) (set! b t) body))))
(define-syntax each-of
  (syntax-rules (in) ((_ x in items body) (for-each (lambda (x) body) items))))
(define-syntax chain (syntax-rules () ((_ x) x) ((_ x (f y ...) more ...) (chain (f x y ...) more ...))))
(define (exact-integer-sqrt-of n)
  (call-with-values (lambda () (exact-integer-sqrt (abs n))) (lambda (root rest) root)))
(define (walk node k)
  (if (or (null? node) (< k 1)) nil (cons (Node-value node) (walk (Node-next node) (- k 1)))))
"""

LITERALS = {
    "int": (
        "0", "1", "2", "3", "7", "-1", "-5", "10", "100", "4611686018427387904", "9223372036854775807",
        "-9223372036854775808", "18446744073709551616", "-340282366920938463463374607431768211457",
        # the words by which C marks nil, #f, #t, what is unspecified, undefined, absent, and a call to come
        "2", "10", "18", "26", "34", "42", "50",
    ),
    "float": (
        "0.0", "1.5", "-2.25", "1e10", "0.1", "3.0", "-0.0", "42.0", "nan", "inf",
    ),
    "ratio": (
        "1/2", "-2/3", "7/4", "18446744073709551616/3", "-1/9223372036854775807", "5",
    ),
    "bool": (
        "#t", "#f",
    ),
    "string": (
        '""', '"a"', '"héllo"', '"x y\\n"', '"z"',
    ),
    "char": (
        "#\\a", "#\\é", "#\\space", "#\\9", "#\\*", "#\\ß", "#\\x0664",
    ),
    "symbol": (
        "'a", "'b", "'else", "':key",
    ),
    "list": (
        "nil", "(list 1 2 3)", "'(3 1 2)", "(list 5)", "'(1 1 4)",
    ),
    "mixed": (
        "nil", '\'(1 a "s" #\\c (2.5))', "(list 'k (list 1 2))", "'((a . 1) (b . 2))",
    ),
    "point": (
        "(mk-Point 1 (list 2))", "(mk-Point 0 nil)",
    ),
    "vector": (
        "(vector 1 2 3)", "(make-vector 2 0)", "(vector)",
    ),
    "function": (
        "(lambda (x) (+ x 1))", "(lambda (x) x)", "abs", "1+",
    ),
    "predicate": (
        "odd?", "(lambda (x) (> x 2))", "null?",
    ),
    "node": (
        "(mk-Node 1 nil nil)", "(mk-Node 2 (mk-Node 3 nil nil) nil)",
    ),
    "box": (
        "(box 1)", "(box 5)",
    ),
    "table": (
        "(make-hash-table)", "(hash-table 1 2 3 4)",
    ),
    "bytes": (
        "#u8(1 2 3)", "(bytevector)", "(bytevector 255 0)",
    ),
    "tensor": (
        "(tensor '(1.0 2.0 -3.0))", "(tensor-ones 3)", "(tensor '(0.5 4.0 8.0))", "(tensor '(1 2 3))",
    ),
}  # fmt: skip

COMMON = (
    "(if {bool} {wanted} {wanted})",
    "(let ((?x {some})) {wanted ?x:some})",
    "(let* ((?x {some}) (?y {other ?x:some})) {wanted ?x:some ?y:other})",
    "((lambda (?x) {wanted ?x:some}) {some})",
    "(try {wanted} (lambda (e) {wanted}))",
    "(try {wanted} (lambda (e) (if (error? e) {wanted} (raise e))))",
    "(let loop-?k ((?k 3) (?x {wanted})) (if (= ?k 0) ?x (loop-?k (- ?k 1) {wanted ?k:int ?x:wanted})))",
    "(let loop-?k ((?k 2) (?x {wanted})) (cond ((= ?k 0) ?x) ({bool ?k:int ?x:wanted} {wanted"
    " ?x:wanted}) (else (loop-?k (- ?k 1) ?x))))",
    "(let ((?x {wanted})) (dotimes (?k 3) (set! ?x {wanted ?x:wanted ?k:int})) ?x)",
    "(let ((?x {wanted}) (?k 0)) (while (< ?k 3) (set! ?k (+ ?k 1)) (set! ?x {wanted ?x:wanted ?k:int})) ?x)",
    "(let ((?x {some})) (set! ?x {some}) {wanted ?x:some})",
    "(let ((?x {some}) (?y {some})) (swapped ?x ?y {wanted ?x:some ?y:some}))",
    "(let* ((?n 0) (?f (lambda (?x) (set! ?n (+ ?n ?x)) {wanted ?x:int}))) (?f 1) (if (> ?n 100)"
    ' (error "large" ?n)) (?f ?n))',
    "(let ((?f (lambda (?x :by {int} . ?more) {wanted ?x:some ?more:mixed}))) (begin (?f {some}) (?f"
    " {some} 1)))",
    "(letrec ((?f (lambda (?k) (if (< ?k 1) {wanted} (?g (- ?k 1))))) (?g (lambda (?k) (?f (- ?k"
    " 1))))) (?f 4))",
    "(match {list} ((cons ?x ?y) {wanted ?x:int ?y:list}) (_ {wanted}))",
    "(match {point} ((Point ?x ?y) :when {bool ?x:int ?y:list} {wanted ?x:int ?y:list}) (_ {wanted}))",
    "(match {mixed} ((list ?x ?y) {wanted}) ((list* 'k ?x) {wanted ?x:mixed}) ((or 'a nil) {wanted})"
    " ((as ?x (cons _ _)) {wanted ?x:mixed}) (_ {wanted}))",
    "(case {int} ((0 1 2) {wanted}) ((3) {wanted}) (else {wanted}))",
    "(case {symbol} ((a) {wanted}) ((b else) {wanted}) (else {wanted}))",
    "(cond ({bool} {wanted}) ((assoc 1 (list (cons {int} 5))) => (lambda (?x) {wanted})) (else {wanted}))",
    "(begin {some} {wanted})",
    "(let-values (((?x ?y) (values {some} {other}))) {wanted ?x:some ?y:other})",
    "(let ((?b (box {wanted}))) (for-each (lambda (?x) (set-box! ?b {wanted ?x:int})) {list}) (unbox ?b))",
    "(car (list {wanted} {some}))",
    "(vector-ref (vector {some} {wanted}) 1)",
    "(Point-y (mk-Point {some} {wanted}))",
    "(let ((?t (make-hash-table))) (hash-table-set! ?t {some} {wanted}) (hash-table-ref ?t {some} {wanted}))",
    "(apply (lambda (?x ?y) {wanted ?x:some ?y:other}) (list {some} {other}))",
    "(either {wanted} {wanted})",
    "(let ((?f (car (list {function} car)))) (try (begin (?f {int} :nope {some}) {wanted})"
    " (lambda (e) {wanted})))",
    "((car (list (lambda (?x) {wanted ?x:some}))) {some})",
    "(fold (lambda (?a ?x) {wanted ?a:wanted ?x:int}) {wanted} {list})",
    "(begin (unless {bool} (raise {symbol})) {wanted})",
    '(begin (when {bool} (error "boom" {some} \'why)) {wanted})',
    "(guard (?e ((symbol? ?e) {wanted}) ((error? ?e) {wanted})) {wanted})",
    "(guard (?e ({bool} => (lambda (?x) {wanted}))) (begin (when {bool} (raise-continuable {int}))"
    " {wanted}))",
    "(call/cc (lambda (?kc) (begin (if {bool} (?kc {wanted})) {wanted})))",
    "(call/cc (lambda (?kc) (for-each (lambda (?x) (if {bool ?x:int} (?kc {wanted ?x:int}))) {list})"
    " {wanted}))",
    "(call/cc (lambda (?kc) (try (begin (if {bool} (?kc {wanted})) {wanted}) (lambda (e) {wanted}))))",
    "(with-exception-handler (lambda (?e) {wanted}) (lambda () (if {bool} (raise-continuable {symbol})"
    " {wanted})))",
    "(let ((?n 0)) (try (dynamic-wind (lambda () (set! ?n 1)) (lambda () {wanted ?n:int})"
    " (lambda () (set! ?n 2)))"
    " (lambda (e) {wanted ?n:int})))",
    "(force (delay {wanted}))",
    "((case-lambda ((?x) {wanted ?x:some}) ((?x ?y) {wanted ?x:some ?y:other})) {some} {other})",
    "(let () (define-record-type pair-?k (make-?k left-?k) is-?k? (left-?k left-of-?k))"
    " (left-of-?k (make-?k {wanted})))",
    "(do ((?k 0 (+ ?k 1)) (?x {wanted} {wanted ?x:wanted ?k:int})) ((= ?k 2) ?x))",
    "(let loop-?k ((?x {list}) (?y {wanted})) (if (pair? ?x) (loop-?k (cdr ?x) {wanted ?y:wanted}) ?y))",
    "(let* ((?x {list}) (?y (if (pair? ?x) (cdr ?x) nil))) {wanted ?x:list ?y:list})",
)  # fmt: skip

FORMS = {
    "int": (
        "(+ {int} {int})", "(- {int} {int})", "(* {int} {int})", "(+ {int} 1 {int})", "(- {int})",
        "(max {int} {int} 3)", "(quotient {int} {int})", "(% {int} {int})", "(modulo {int} {int})",
        "(length {list})", "(car {list})", "(cadr {list})", "(fold + 0 {list})", "({function} {int})",
        "(Point-x {point})", "(vector-ref {vector} {int})", "(string-length {string})", "(->int {float})",
        "(list-ref {list} (modulo {int} 4))", "(apply + {list})", "(apply max 0 {list})", "(unbox {box})",
        "(Node-value {node})", "(count {predicate} {list})", "(hash-table-count {table})",
        "(vector-length {vector})", "(hash-table-ref {table} {int} {int})", "(char->integer {char})",
        "(reduce + 0 {list})", "(abs {int})", "(bitwise-and {int} {int})", "(arithmetic-shift {int} 2)",
        "(length {mixed})", "(chain {int} (+ {int}) (* 2))",
        "(let ((?n 0)) (each-of ?x in {list} (set! ?n (+ ?n ?x))) ?n)", "(round (/ {int} 2))",
        "(fold-right (lambda (?x ?a) {int ?x:int ?a:int}) {int} {list})",
        "(either (list-index {predicate} {list}) {int})", "(bytevector-u8-ref {bytes} 0)",
        "(bytevector-length {bytes})", "(either (string->number (number->string {int} 16) 16) 0)",
        "(exact (floor (min 1e9 (max -1e9 {float}))))", "(floor {ratio})", "(round {ratio})",
        "(numerator {ratio})", "(expt {int} (modulo {int} 5))", "(bitwise-xor {int} {int})",
        "(arithmetic-shift {int} (- (modulo {int} 70) 35))", "(exact-integer-sqrt-of {int})",
        "(read (open-input-string (write->string {int})))",
    ),
    "float": (
        "(+ {float} {float})", "(- {float} {float})", "(* {float} {float})", "(/ {float} {float})",
        "(+ {int} {float})", "(->float {int})", "(sqrt (abs {float}))", "(floor {float})",
        "(min {float} 2.5)", "(/ {int} 4.0)", "(fold (lambda (?a ?x) (+ ?a (* 0.5 ?x))) {float} {list})",
        "(- {float})", "(->float {ratio})", "(* {ratio} {float})",
    ),
    "ratio": (
        "(/ {int} {int})", "(+ {ratio} {ratio})", "(- {ratio} {int})", "(* {ratio} {ratio})",
        "(/ {ratio} {ratio})", "(exact (min 1e9 (max -1e9 {float})))", "(expt {ratio} (modulo {int} 4))",
        "(min {ratio} {ratio})", "(abs {ratio})", "(- {ratio})", "(sqrt (* {ratio} {ratio}))",
        "(string->number (number->string {ratio}))", "(read (open-input-string (write->string {ratio})))",
        "(rationalize {ratio} 1/10)",
    ),
    "bool": (
        "(< {int} {int})", "(= {int} {int})", "(>= {float} {float})", "(< {int} {float})", "(not {bool})",
        "(and {bool} {bool})", "(or {bool} {bool})", "(null? {list})", "(equal? {list} {list})",
        "(even? {int})", "(equal? {point} {point})", "(equal? {mixed} {mixed})", "(eq? {symbol} {symbol})",
        "(string=? {string} {string})", "(< {int} {int} {int})", "({predicate} {int})", "(Point? {point})",
        "(pair? {mixed})", "(if (memq {symbol} '(a b)) #t #f)", "(every {predicate} {list})",
        "(if (any {predicate} {list}) #t #f)", "(eqv? {float} {float})",
        "(hash-table-contains? {table} {int})", "(char<? {char} {char})", "(string<? {string} {string})",
        "(equal? {vector} {vector})", "(< {ratio} {ratio})", "(= {ratio} {float})", "(eqv? {ratio} {ratio})",
        "(exact? {ratio})",
    ),
    "string": (
        "(string-append {string} {string})", "(number->string {int})", "(number->string {float})",
        "(number->string {ratio} 2)",
        "(write->string {mixed})", "(write->string {point})", "(display->string {vector})",
        "(substring {string} 1)", "(substring {string} 0 {int})", "(string-upcase {string})",
        "(symbol->string {symbol})", "(string {char} {char})",
        '(string-join (map number->string {list}) ",")', "(list->string (reverse (string->list {string})))",
        '(format "~a/~s" {int} {string})', "(write->string {table})",
        "(with-output-to-string (lambda () (write {mixed}) (display {int}) (newline)))",
        "(let ((?o (open-output-string))) (write {string} ?o) (write-char {char} ?o) (get-output-string ?o))",
        "(let ((?i (open-input-string {string}))) (let ((?x (read-line ?i))) (if (string? ?x) ?x {string})))",
        "(utf8->string (string->utf8 {string}))",
        "(write->string (read (open-input-string (write->string {mixed}))))",
        "(write->string {bytes})", "(string-copy {string} 0 (min 1 (string-length {string})))",
        "(string-repeat {string} (modulo {int} 3))", '(try (begin {mixed} "fine") error-message)',
    ),
    "char": (
        "(string-ref {string} 0)", "(char-upcase {char})", "(integer->char (+ 97 (modulo {int} 20)))",
    ),
    "symbol": (
        "(string->symbol {string})", "(if {bool} {symbol} {symbol})",
        "(error-kind (try (car {int}) identity))",
    ),
    "list": (
        "(cons {int} {list})", "(list {int} {int})", "(map (lambda (?x) {int ?x:int}) {list})",
        "(filter (lambda (?x) {bool ?x:int}) {list})", "(map {function} {list})", "(reverse {list})",
        "(append {list} {list})", "(cdr {list})", "(sort {list} <)",
        "(sort {list} (lambda (?x ?y) (> ?x ?y)))", "(Point-y {point})", "(vector->list {vector})",
        "`(1 ,{int} ,@{list})", "(iota (modulo {int} 6))", "(map + {list} {list})", "(walk {node} 4)",
        "(take {list} 2)", "(append-map (lambda (?x) (list ?x {int ?x:int})) {list})",
        "(let ((?l {list})) (if (pair? ?l) (set-car! ?l {int ?l:list})) ?l)", "(delete {int} {list})",
        "(hash-table-keys {table})", "(list-tail {list} 1)", "(filter {predicate} {list})",
        "(let ((?l nil)) (dotimes (?k 4) (set! ?l (cons {int ?k:int ?l:list} ?l))) ?l)",
        "(let loop-?k ((?k 4)) (if (= ?k 0) {list} (cons {int ?k:int} (loop-?k (- ?k 1)))))",
        "(map (lambda (?f) (?f {int})) (list {function} {function}))",
        "(map (lambda (?f) (?f)) (map (lambda (?x) (lambda () {int ?x:int})) {list}))",
        "(let ((?l (list {int} {int}))) (set-cdr! ?l (list {int ?l:list}))"
        " (map (lambda (?x) {int ?x:int}) ?l))",
        "(let ((?l {list}) (?y (list {int}))) (if (and (pair? ?l) (< (length ?l) 30))"
        " (set-cdr! (list-tail ?l (- (length ?l) 1)) ?y))"
        " (reverse ?y))",
        "(let loop-?k ((?x {list}) (?y {list})) (if (pair? ?x) (loop-?k (cdr ?x)"
        " (cons {int ?x:list} ?y)) ?y))",
    ),
    "mixed": (
        "(list {int} {string} {point})", "(cons {symbol} {mixed})", "(list {float} {char} {bool})",
        "(list {ratio} {int})",
        "(zip {list} {list})", "(cons {list} {mixed})", "`(a (b ,{float}) ,@{list} . c)",
        "(hash-table->list {table})", "(append {mixed} {list})", "(list (try {int} identity))",
        "(list {vector} (vector {string}))", "(map (lambda (?x) (cons ?x {some})) {list})",
        "(reverse {mixed})", "(let-values (((?x ?y) (values {int} {mixed}))) (list ?y ?x))",
        "(assoc {int} (zip {list} {list}))",
        "(let ((?l (list {mixed} {string}))) (set-car! ?l {some ?l:mixed}) (map (lambda (?x) (list ?x)) ?l))",
        "(let ((?y (list {mixed})) (?l (list {string} {point}))) (set-cdr! ?l ?y)"
        " (list (map write->string ?l) ?y))",
        "(let ((?y {mixed}) (?l (list {mixed} {mixed}))) (set-car! (cdr ?l) ?y) (cons ?y (reverse ?l)))",
        "(let loop-?k ((?x (list {mixed} {string} {some})) (?y nil)) (if (pair? ?x) (loop-?k (cdr ?x)"
        " (cons (car ?x) ?y)) ?y))",
        "(let* ((?p {point}) (?x (Point-y ?p))) (set! (Point-y ?p) {list ?x:list}) (list ?x ?p))",
        "(let ((?v (vector {mixed} {string}))) (let ((?x (vector-ref ?v 0))) (vector-set! ?v 0 {some})"
        " (list ?x ?v)))",
    ),
    "point": (
        "(mk-Point {int} {list})", "(mk-Point {int} {list})",
        "(let ((?p {point})) (set! (Point-x ?p) {int ?p:point}) ?p)",
        "(let ((?p {point})) (set! (Point-y ?p) (append {list ?p:point} (Point-y ?p))) ?p)",
    ),
    "vector": (
        "(list->vector {list})", "(let ((?v {vector})) (vector-set! ?v 1 {int ?v:vector}) ?v)",
        "(vector-map (lambda (?x) {int ?x:int}) {vector})", "(vector {int} {int})",
        "(let ((?v (make-vector 3 0))) (dotimes (?k 3) (vector-set! ?v ?k {int ?k:int})) ?v)",
        "(vector-append {vector} {vector})", "(subvector {vector} 0 1)",
    ),
    "function": (
        "(lambda (?x) {int ?x:int})", "(lambda (?x) {int ?x:int})", "(compose {function} {function})",
        "(let ((?n {int})) (lambda (?x) (set! ?n (+ ?n 1)) (+ ?x ?n)))", "(if {bool} {function} {function})",
        "(car (list {function}))", "(let ((?p {point})) (lambda (?x) (+ ?x (Point-x ?p))))",
        "(lambda (?x . ?more) {int ?x:int ?more:mixed})",
    ),
    "predicate": (
        "(lambda (?x) {bool ?x:int})", "(compose not {predicate})",
        "(let ((?y {int})) (lambda (?x) (< ?x ?y)))",
    ),
    "node": (
        "(mk-Node {int} {node} nil)", "(let ((?n {node})) (set! (Node-value ?n) {int ?n:node}) ?n)",
        "(let ((?n {node}) (?m {node})) (set! (Node-owner ?n) ?m) (mk-Node {int} ?n ?m))",
        "(let ((?n {node})) (set! (Node-next ?n) {node ?n:node}) ?n)",
        "(let ((?n {node})) (if (null? (Node-next ?n)) ?n (Node-next ?n)))",
        "(let ((?n {node})) (mk-Node 9 nil (mk-Node 8 ?n nil)))",
        "(let ((?n {node}) (?m {node})) (set! (Node-owner ?n) ?m)"
        " (set! (Node-value (Node-owner ?n)) 4) (walk ?m 1) ?m)",
    ),
    "box": (
        "(box {int})", "(let ((?b {box})) (set-box! ?b {int ?b:box}) ?b)",
    ),
    "table": (
        "(let ((?t {table})) (hash-table-set! ?t {int} {int ?t:table}) ?t)",
        "(let ((?t {table})) (hash-table-delete! ?t {int}) ?t)",
        "(let ((?t {table})) (hash-table-update! ?t {int} {function} 0) ?t)",
    ),
    "bytes": (
        "(bytevector-append {bytes} {bytes})", "(string->utf8 {string})", "(bytevector-copy {bytes} 1)",
        "(let ((?b (bytevector-copy {bytes}))) (bytevector-u8-set! ?b 0 {int ?b:bytes}) ?b)",
        "(make-bytevector (modulo {int} 4) 7)", "(bytevector (modulo {int} 256) 0)",
    ),
    "tensor": (),
}  # fmt: skip

# Exact in any order of evaluation, and so the same on both engines.
TENSOR_FORMS = {
    "int": (
        "(tensor-count {tensor})", "(car (tensor-shape {tensor}))", "(tensor-rank {tensor})",
    ),
    "float": (
        "(tensor-item (tensor-sum {tensor}))", "(tensor-ref {tensor} 0)", "(tensor-ref {tensor} 1)",
    ),
    "bool": (
        "(tensor-item (tensor-any (> {tensor} {tensor})))", "(tensor? {tensor})",
    ),
    "string": (
        "(write->string {tensor})", "(display->string (list {tensor} {int}))",
    ),
    "mixed": (
        "(tensor->list {tensor})", "(list {tensor} {tensor})", "(list (tensor-dtype {tensor}))",
    ),
    "tensor": (
        "(+ {tensor} {tensor})", "(- {tensor} {tensor})", "(* {tensor} {tensor})", "(* 2 {tensor})",
        "(- 1.5 {tensor})", "(+ {tensor} {int})", "(tensor-relu {tensor})", "(tensor-abs {tensor})",
        "(tensor-neg {tensor})", "(tensor-sign {tensor})", "(tensor-floor (tensor-to {tensor} :float32))",
        "(tensor-maximum {tensor} {tensor})", "(tensor-flip {tensor} '(0))",
        "(tensor-cat (list (tensor-ref {tensor} '(0 1)) {tensor}) 0)", "(tensor-reshape {tensor} '(3))",
        "(tensor-reshape {tensor} '(3 1))", "(tensor-sum {tensor} :dim 0)",
        "(tensor-where (> {tensor} 0) {tensor} {tensor})", "(tensor-clone {tensor})", "(no-grad {tensor})",
        "(tensor-ref {tensor} '(0 2))", "(tensor-unsqueeze {tensor} 0)",
        "(tensor-stack (list {tensor} {tensor}))",
        "(let ((?t (tensor-clone {tensor}))) (tensor-set! ?t 5 0) ?t)",
        "(tensor-clamp {tensor} :min -2 :max 2)", "(let ((?t {tensor})) (tensor-mul! ?t 2) ?t)",
        "(tensor {list})", "(tensor-to {tensor} :int32)",
        "(let ((?w (tensor '(1.0 2.0 3.0) :requires-grad #t))) (backward (tensor-sum (* ?w"
        " {tensor}))) (tensor-grad ?w))",
        "(let ((?w (tensor '(2.0 1.0 3.0) :requires-grad #t))) (backward (tensor-sum (* ?w {tensor"
        " ?w:tensor}))) (tensor-grad ?w))",
        "(let ((?t {tensor})) (let ((?u (tensor-ref ?t '(0 1)))) (tensor-add! ?t 1) (tensor-cat"
        " (list ?t ?u) 0)))",
    ),
}  # fmt: skip
