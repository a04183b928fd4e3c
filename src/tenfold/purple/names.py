"""The primitives: for each its name, what it takes, what it gives, and one line of documentation.

Both the interpreter (`prims/`) and the compiler's C runtime implement exactly these. Everything else
that a program may call by name is written in Purple, in `prelude.purple`. Names that begin with `%` are
for the prelude alone. The tensor operators `tensor-NAME` and `tensor-NAME!` are rows of the op table:
`row_of` finds them.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

from tenfold.ops import TABLE
from tenfold.ops.table import Row


class Primitive(NamedTuple):
    """`parameters` are kinds (see below); the last repeats when `rest`. `maximum` is None then."""

    name: str
    parameters: tuple[str, ...]
    minimum: int
    rest: bool
    keywords: tuple[str, ...]
    result: str
    doc: str
    family: str

    @property
    def maximum(self) -> int | None:
        return None if self.rest else len(self.parameters)

    def signature(self) -> str:
        parts = [
            kind if i < self.minimum else f"[{kind}]"
            for i, kind in enumerate(self.parameters[: -1 if self.rest else None])
        ]
        parts += [f"{self.parameters[-1]} …"] if self.rest else []
        parts += [f":{keyword}" for keyword in self.keywords]
        return f"({' '.join([self.name, *parts])}) → {self.result}"


# Kinds: any, number (int, ratio or float), int (as a result one of 64 bits; integer is a result of any
# size), float, bool, string, char, symbol, keyword, list (nil or a pair that ends in nil), pair, vector,
# bytevector, table, box, procedure, environment, tensor, error, pointer, module, void (unspecified).
# `number*` is a number or a tensor, `bool*` a boolean or a tensor; `index` what `tensor-ref` takes. A value
# of another kind than its parameter's is an error of kind `type`. In brackets: may be left out. `...`: the
# kind before it any number of times, none included.
FAMILIES = {
    "numbers": """
(+ number* ...) -> number* : The sum; 0 of nothing. Integers and ratios are exact.
(- number* number* ...) -> number* : The first less the others; of one argument, its negative.
(* number* ...) -> number* : The product; 1 of nothing.
(/ number* number* ...) -> number* : The first divided by the others: integers give an integer or a
    ratio.
(= number* number* ...) -> bool* : Whether numbers are equal, each to the next; elementwise on tensors.
(< number* number* ...) -> bool* : Whether each number is less than the next; elementwise on two tensors.
(> number* number* ...) -> bool* : Whether each number is greater than the next; elementwise on two tensors.
(<= number* number* ...) -> bool* : Whether no number is greater than the next; elementwise on two tensors.
(>= number* number* ...) -> bool* : Whether no number is less than the next; elementwise on two tensors.
(quotient int int) -> integer : Integer division that truncates towards zero.
(% number number) -> number : The remainder of truncating division: it has the dividend's sign.
(modulo number number) -> number : The remainder of flooring division: it has the divisor's sign.
(expt number number) -> number : A power; exact for exact numbers and a whole exponent.
(exp number) -> float : e to a power.
(log number [number]) -> float : The natural logarithm, or that to a base; of 0 it is -inf.0, of negative
    numbers +nan.0.
(sin number) -> float : The sine.
(cos number) -> float : The cosine.
(tan number) -> float : The tangent.
(asin number) -> float : The arc sine; nan outside -1 to 1.
(acos number) -> float : The arc cosine; nan outside -1 to 1.
(atan number [number]) -> float : The arc tangent; of two arguments that of y/x, in the right quadrant.
(sqrt number) -> number : The square root: exact for exact numbers that are squares, else a float; nan
    below 0.
(%integer-root int) -> integer : The greatest integer whose square is not above it.
(floor number) -> number : The nearest whole number not above; an integer for exact numbers.
(ceiling number) -> number : The nearest whole number not below; an integer for exact numbers.
(round number) -> number : The nearest whole number, an integer for exact ones; halves go to the even one.
(truncate number) -> number : The number without its fraction; an integer for exact numbers.
(abs number) -> number : The absolute value.
(min number number ...) -> number : The least; a float if any is one.
(max number number ...) -> number : The greatest; a float if any is one.
(->int number) -> integer : The number without its fraction, as an integer.
(->float number) -> float : The number as a float.
(exact number) -> number : The integer or the ratio that a number is.
(%numerator number) -> integer : The number above the line of an exact number in lowest terms.
(%denominator number) -> integer : The number below it.
(number? any) -> bool : Whether it is an integer, a ratio or a float.
(exact-rational? any) -> bool : Whether it is an integer or a ratio.
(exact-integer? any) -> bool : Whether it is an integer that is no float.
(float? any) -> bool : Whether it is a float.
(bitwise-and int int) -> integer : The bits that both have.
(bitwise-or int int) -> integer : The bits that either has.
(bitwise-xor int int) -> integer : The bits in which they differ.
(arithmetic-shift int int) -> integer : Shifted left, or right for a negative count.
(number->string number [int]) -> string : The number as `display` shows it; exact ones also in radix 2, 8 or
    16.
(string->number string [int]) -> any : The number that the text is, read as a literal, in radix 10 or another;
    #f when it is none.
(number->fixed number int) -> string : The number with so many digits after the point (C's `%.*f`).
""",
    "truth and equality": """
(not any) -> bool : #t for nil, #f and a tensor whose only element is 0, else #f.
(eq? any any) -> bool : Whether they are the same object; equal numbers of one type, characters and
    symbols are.
(eqv? any any) -> bool : The same as eq?.
(equal? any any) -> bool : Whether they are alike: pairs, vectors, strings, records, tables and tensors
    by their contents.
(boolean? any) -> bool : Whether it is #t or #f.
""",
    "lists": """
(cons any any) -> pair : A new pair.
(car pair) -> any : The first of a pair.
(cdr pair) -> any : What follows the first of a pair.
(set-car! pair any) -> void : Replaces the first of a pair.
(set-cdr! pair any) -> void : Replaces what follows the first of a pair.
(caar pair) -> any : (car (car x)).
(cadr pair) -> any : (car (cdr x)), the second of a list.
(cdar pair) -> any : (cdr (car x)).
(cddr pair) -> any : (cdr (cdr x)).
(caddr pair) -> any : The third of a list.
(pair? any) -> bool : Whether it is a pair.
(null? any) -> bool : Whether it is the empty list.
(list? any) -> bool : Whether it is a list that ends in nil.
(list any ...) -> list : A new list.
(length list) -> int : How many elements a list has.
(append any ...) -> any : Lists joined; the last argument is the tail and may be anything.
(reverse list) -> list : A new list, backwards.
(list-ref list int) -> any : The element at an index, from 0.
(list-tail list int) -> any : The list without its first elements.
(take list int) -> list : The first elements of a list, so many of them.
(drop list int) -> any : The same as list-tail.
""",
    "symbols and characters": """
(symbol? any) -> bool : Whether it is a symbol.
(symbol->string symbol) -> string : A symbol's name.
(string->symbol string) -> symbol : The symbol of a name.
(keyword? any) -> bool : Whether it is a keyword.
(string->keyword string) -> keyword : The keyword of a name.
(keyword->string keyword) -> string : A keyword's name, without the colon.
(char? any) -> bool : Whether it is a character.
(char->integer char) -> int : A character's code point.
(integer->char int) -> char : The character of a code point.
(char-alphabetic? char) -> bool : Whether it is a letter.
(char-numeric? char) -> bool : Whether it is a decimal digit, of any script.
(char-whitespace? char) -> bool : Whether it is a space, a tab or the end of a line.
(char-upper-case? char) -> bool : Whether it is a capital letter.
(char-lower-case? char) -> bool : Whether it is a small letter.
(char-upcase char) -> char : The capital letter, where that is one character.
(char-downcase char) -> char : The small letter, where that is one character.
(char-foldcase char) -> char : The letter that stands for all its cases.
(digit-value char) -> any : The value of a decimal digit; #f for other characters.
""",
    "strings": """
(string? any) -> bool : Whether it is a string.
(string-length string) -> int : How many characters a string has.
(string-ref string int) -> char : The character at an index, from 0.
(substring string int [int]) -> string : The characters from a start up to an end (the string's own by
    default).
(string-append string ...) -> string : Strings joined.
(string=? string string ...) -> bool : Whether strings are the same text.
(string<? string string ...) -> bool : Whether each string comes before the next, by code points.
(string-upcase string) -> string : The string in capital letters.
(string-downcase string) -> string : The string in small letters.
(string-foldcase string) -> string : The string with letters that stand for all their cases.
(string->list string [int] [int]) -> list : The characters of a string, or those from a start up to an end.
(list->string list) -> string : The string of a list of characters.
(string-search string string [int]) -> any : Where the first string occurs in the second, from a start
    on; #f if nowhere.
""",
    "vectors": """
(vector any ...) -> vector : A new vector.
(make-vector int [any]) -> vector : A vector of so many elements, all the same (0 by default).
(vector? any) -> bool : Whether it is a vector.
(vector-length vector) -> int : How many elements a vector has.
(vector-ref vector int) -> any : The element at an index, from 0.
(vector-set! vector int any) -> void : Replaces the element at an index.
(vector->list vector [int] [int]) -> list : The elements of a vector, or those from a start up to an end.
(list->vector list) -> vector : A vector of a list's elements.
""",
    "bytevectors": """
(bytevector? any) -> bool : Whether it is a bytevector.
(bytevector int ...) -> bytevector : A new bytevector of numbers from 0 to 255.
(make-bytevector int [int]) -> bytevector : A bytevector of so many bytes, all the same (0 by default).
(bytevector-length bytevector) -> int : How many bytes there are.
(bytevector-u8-ref bytevector int) -> int : The byte at an index, from 0.
(bytevector-u8-set! bytevector int int) -> void : Replaces the byte at an index.
(bytevector-copy bytevector [int] [int]) -> bytevector : A new one of the same bytes, or of those from a start
    up to an end.
(bytevector-append bytevector ...) -> bytevector : Bytevectors joined.
(utf8->string bytevector [int] [int]) -> string : The text that bytes are in UTF-8.
(string->utf8 string [int] [int]) -> bytevector : The bytes of a text in UTF-8.
""",
    "hash tables": """
(make-hash-table) -> table : A new hash table; keys are compared by equal?, and keep the order in which
    they came.
(hash-table? any) -> bool : Whether it is a hash table.
(hash-table-ref table any [any]) -> any : The value of a key; without it the third argument, or an error
    of kind `key`.
(hash-table-set! table any any) -> void : Sets the value of a key.
(hash-table-delete! table any) -> void : Removes a key, if it is there.
(hash-table-contains? table any) -> bool : Whether the key is there.
(hash-table-count table) -> int : How many keys there are.
(hash-table->list table) -> list : A list of pairs (key . value).
""",
    "boxes": """
(box any) -> box : A place that holds one value.
(box? any) -> bool : Whether it is a box.
(unbox box) -> any : What a box holds.
(set-box! box any) -> void : Replaces what a box holds.
""",
    "control": """
(procedure? any) -> bool : Whether it can be called.
(procedure-arity procedure) -> int : How many arguments it needs.
(apply procedure any any ...) -> any : Calls with the arguments given, the last of which is a list of more.
(values any ...) -> any : Several values at once, for let-values; one value is itself.
(%values->vector any int) -> vector : The values as a vector; another count than expected (-1 - n stands for
    n or more) is an error of kind `arity`.
(error string any ...) -> any : Fails with a message and irritants, which the message shows as `write` does.
(raise any) -> any : Fails with any value; an error value fails again as it was.
(error? any) -> bool : Whether it is an error value.
(error-message error) -> string : An error's message.
(error-place error) -> string : Where an error happened: "file:line:column".
(error-kind error) -> symbol : error, type, arity, index, arithmetic, unbound, key, match, file, tensor,
    memory or foreign.
(error-irritants error) -> list : The irritants given to `error`.
(%fail-as symbol string) -> any : Fails with a kind of error and a message.
(eval any [environment]) -> any : The value of a datum that is an expression or a definition; interpreted
    programs only.
(environment list ...) -> environment : What import sets such as (scheme base) bind; interpreted
    programs only.
(scheme-report-environment int) -> environment : The language's names; interpreted programs only.
(null-environment int) -> environment : The same; interpreted programs only.
(interaction-environment) -> environment : The program's own names; interpreted programs only.
(load string [environment]) -> void : Runs a file's forms; interpreted programs only.
(%match-failed any) -> any : Fails with kind `match` and the value that no clause took.
(exit [int]) -> any : Ends the program with a status (0 by default).
""",
    "input and output": """
(display any ...) -> void : Prints values for people, strings as they are, nothing between them. A port at the
    end is where they go.
(write any [port]) -> void : Prints a value as the reader takes it, strings in quotes; what holds itself has
    labels: #0=(1 . #0#).
(write-shared any [port]) -> void : The same as `write`, with labels for all that is met twice.
(print any ...) -> void : Prints values as `display` does, spaces between them, and ends the line.
(newline [port]) -> void : Ends the line.
(%send string [port]) -> void : Prints a text.
(%send-byte int port) -> void : Writes a byte.
(%output-port) -> any : The port that output goes to; #f for the terminal.
(%set-output! port) -> void : Makes output go to a port.
(%open-output string string) -> int : Opens a file to be written, by C's mode.
(%close-output int) -> void : Closes it.
(%flush-output any) -> void : Writes what is waiting.
(%read-bytes string) -> bytevector : A file's bytes.
(%console-line) -> any : The next line of the input with its end; #f after the last.
(display->string any) -> string : What `display` prints.
(write->string any) -> string : What `write` prints.
(%complain string) -> void : Prints a line on the error output.
(read-file string) -> string : A file's text, which must be UTF-8.
(write-file string string) -> void : Makes or replaces a file with this text.
(append-file string string) -> void : Adds text at the end of a file.
(file-exists? string) -> bool : Whether there is a file or folder at this path.
(delete-file string) -> void : Removes a file.
(command-line) -> list : The arguments given to the program, as strings.
(%environment) -> list : Names and values of environment variables.
(getenv string) -> any : The value of an environment variable, or #f.
(current-second) -> float : Seconds since 1970.
(clock) -> float : Seconds on a clock that only goes forward.
""",
    "tensors": """
(tensor any :dtype :device :requires-grad) -> tensor : A tensor of a number, a (nested) list or a vector
    of numbers.
(tensor? any) -> bool : Whether it is a tensor.
(tensor-ref tensor index ...) -> number* : A number when every dimension has an integer index, else a view.
(tensor-set! tensor any index ...) -> void : Writes a number or tensor (the second argument) at the indices.
(tensor->list tensor) -> any : The elements as nested lists; a number for a tensor of no dimensions.
(tensor-item tensor) -> any : The number, or the truth value, in a tensor of one element.
(tensor-shape tensor) -> list : The sizes of the dimensions.
(tensor-rank tensor) -> int : How many dimensions there are.
(tensor-count tensor) -> int : How many elements there are.
(tensor-dtype tensor) -> keyword : The dtype, such as :float32.
(tensor-device tensor) -> string : The device, such as "cpu" or "cuda:0".
(tensor-to tensor any) -> tensor : The tensor with another dtype (a keyword) or on another device (a string).
(tensor-load string) -> any : A table of tensors by name from a safetensors file.
(tensor-save string any) -> void : Writes a table of tensors by name, or one tensor, as a safetensors file.
(jit-load string) -> module : A TorchScript file's module, which can be called.
(backward tensor [tensor]) -> void : Adds the gradients of a tensor to the tensors that asked for them.
(tensor-grad tensor) -> any : The gradient that backward left, or nil.
(requires-grad! tensor [any]) -> tensor : Asks for gradients of a tensor (or, with #f, no more); gives
    the tensor.
(requires-grad? tensor) -> bool : Whether gradients of it are asked for.
(detach tensor) -> tensor : The same numbers, outside of gradients.
(clear-grad! tensor) -> void : Forgets the gradient that backward left.
(evaluate! any) -> any : Computes a tensor, or a list of them, now rather than when it is needed; gives it.
(cuda-available?) -> bool : Whether tensors can be on a CUDA device here.
(live-tensors) -> int : How many tensors the program holds (compiled programs; -1 when interpreted).
""",
    "random numbers": """
(manual-seed int) -> void : Starts the random numbers anew; programs begin with seed 0.
(random [int]) -> number : A float from 0 up to 1, or an integer from 0 up to the argument.
(%uniform list) -> tensor : float32 numbers from 0 up to 1 in the sizes given.
(%normal list) -> tensor : float32 numbers of the normal distribution in the sizes given.
(%permutation int) -> tensor : The integers below n (int64) in random order.
""",
}


def _parse(line: str, family: str) -> Primitive:
    head, _, doc = line.partition(" : ")
    call, _, result = head.partition(" -> ")
    name, *words = call[1:-1].split()
    keywords = tuple(word[1:] for word in words if word.startswith(":"))
    words = [word for word in words if not word.startswith(":")]
    rest = words[-1:] == ["..."]
    kinds = words[:-1] if rest else words
    minimum = sum(not kind.startswith("[") for kind in kinds) - rest
    return Primitive(
        name, tuple(kind.strip("[]") for kind in kinds), minimum, rest, keywords, result, doc, family
    )


PRIMITIVES: dict[str, Primitive] = {
    found.name: found
    for family, text in FAMILIES.items()
    for found in (_parse(line, family) for line in text.strip().replace("\n    ", " ").splitlines())
}


def row_of(name: str) -> tuple[list[Row], bool] | None:
    """The rows of the operator that `tensor-NAME` means, and whether it is in place (`tensor-NAME!`)."""
    if not name.startswith("tensor-") or name in PRIMITIVES:
        return None
    inplace = name.endswith("!")
    rows = TABLE.get(aten_name(name))
    drawn = name.removesuffix("!") in defined_by_prelude()
    if rows is None or drawn or (inplace and not any(row.inplace for row in rows)):
        return None
    return rows, inplace


@functools.cache
def defined_by_prelude() -> frozenset[str]:
    """Operators that the prelude defines instead: so both ways to run draw the same numbers."""
    text = Path(__file__).with_name("prelude.purple").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^\(define \((tensor-[^ )]+)", text, re.MULTILINE))


def aten_name(name: str) -> str:
    """`log_softmax` for `tensor-log-softmax`."""
    plain = name.removeprefix("tensor-").removesuffix("!")
    return _SPELLED.get(plain, plain)


_SPELLED = {name.replace("_", "-"): name for name in TABLE}


def is_primitive(name: str) -> bool:
    return name in PRIMITIVES or row_of(name) is not None


def takes_keywords(name: str) -> bool:
    known = PRIMITIVES.get(name)
    return bool(known.keywords) if known else True


def row_names() -> list[str]:
    """Every `tensor-NAME` of the table."""
    plain = [f"tensor-{spelled}" for spelled in _SPELLED]
    return [name for each in plain for name in (each, each + "!") if row_of(name) is not None]
