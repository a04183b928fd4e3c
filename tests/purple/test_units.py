"""Programs of several files: a C file for each, compiled again only where its text changed."""

import random
import subprocess
from pathlib import Path

import pytest

from tenfold.purple import build as builder, emit_units
from tenfold.purple.emit_units import compile_units
from tenfold.purple.interpret import expand_program
from tests.purple.compiled import CHECKED, FILE, compiled, interpreted

FILES = {
    "shapes.purple": """
(module shapes (export Shape area scale same even-length?))
(deftype Shape (name string) width height)
(define unit "cm")
(define (area s :factor 1) (* factor (* (Shape-width s) (Shape-height s))))
(define (scale s k) (mk-Shape (string-append (Shape-name s) unit) (* k (Shape-width s)) (Shape-height s)))
(define same car)
(define (even-length? xs) (if (null? xs) #t (odd-length? (cdr xs))))
(define (odd-length? xs) (if (null? xs) #f (even-length? (cdr xs))))
""",
    "lists.purple": """
(module lists (export joined areas first-of make-counter checked marks mark same-mark?))
(import "shapes.purple")
(define marks '(a "b" (1.5 c)))
(define (mark x :by '(none)) (if x by x))
(define (same-mark? x) (eq? x (mark #t)))
(define (areas shapes) (map area shapes))
(define (first-of pick xs) (pick xs))
(define (make-counter) (let ((n 0)) (lambda () (set! n (+ n 1)) n)))
(define (joined xs) (string-join xs "-"))
(define (checked xs) (try (first-of same xs) (lambda (e) (error-message e))))
""",
    "main.purple": """
(import "shapes.purple")
(import "lists.purple" :as l)
(define shapes (list (mk-Shape "a" 2 3) (scale (mk-Shape "b" 1 1) 5)))
(define next (l/make-counter))
(next)
(print (l/areas shapes) (area (car shapes) :factor 10) (map Shape-name shapes) (next) l/marks)
(print (l/first-of same (list 7 8)) (l/checked 5) (even-length? (list 1 2 3 4)) (eq? same car))
(print (l/joined (list "x" "y")) (string-join (list "p" "q") "+"))
(print (map even-length? (list nil (list 1))) (eq? (car l/marks) 'a))
(print (l/same-mark? (l/mark 1)) (l/same-mark? '(none)))
""",
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path / "main.purple"


@pytest.fixture
def compiled_units(monkeypatch, tmp_path):
    """The names of the C files that the C compiler was given, by build; the cache is empty at first."""
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path / "cache"))
    names: list[str] = []
    run = builder.run

    def noting(command: list[str], file: str) -> None:
        names.extend(Path(each).stem for each in command if each.endswith(".c") and "tmp" in each)
        run(command, file)

    monkeypatch.setattr(builder, "run", noting)
    return names


def test_a_program_of_several_files_prints_the_same_both_ways_and_releases_everything(files, monkeypatch):
    program = expand_program(files.read_text(), str(files))
    assert len(compile_units(program)) == 4  # the files', and one of the prelude
    output = str(files.parent / "program")
    builder.build_program(program, output, options=("-Werror", *CHECKED))
    done = subprocess.run([output], capture_output=True, text=True, check=False)
    monkeypatch.chdir(files.parent)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", interpreted(files.read_text()))


def test_a_change_in_a_file_compiles_that_file_again_and_no_other(files, compiled_units):
    def build() -> set[str]:
        compiled_units.clear()
        program = expand_program(files.read_text(), str(files))
        builder.build_program(program, str(files.parent / "program"), options=("-O0",))
        return {name for name in compiled_units if name == "program" or name.startswith("unit_")}

    assert build() == {"program", "unit_shapes", "unit_lists", "unit_prelude"}
    assert build() == set()
    shapes = files.parent / "shapes.purple"
    shapes.write_text(shapes.read_text().replace("(* k (Shape-width s))", "(* k k (Shape-width s))"))
    assert build() == {"unit_shapes"}
    done = subprocess.run([files.parent / "program"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("(6 25)")


def test_a_change_in_one_of_fifty_files_changes_the_c_of_that_file_alone(tmp_path):
    for i in range(50):
        imported = f'(import "m{i - 1}.purple")\n' if i else ""
        called = f"(work{i - 1} xs)" if i else "0"
        text = f"(module m{i} (export work{i}))\n{imported}(define (helper x) (+ x {i}))\n"
        text += f"(define (work{i} xs) (+ {called} (fold (lambda (sum x) (+ sum (helper x))) 0 xs)))\n"
        (tmp_path / f"m{i}.purple").write_text(text)
    main = tmp_path / "main.purple"
    main.write_text('(import "m49.purple")\n(print (work49 (list 1 2 3)))\n')

    def units() -> dict[str, str]:
        return compile_units(expand_program(main.read_text(), str(main)))

    before = units()
    assert len(before) == 51
    changed = tmp_path / "m20.purple"
    changed.write_text(changed.read_text().replace("(+ x 20)", "(let ((y (* x x))) (+ y y 20))"))
    after = units()
    assert [name for name in after if after[name] != before[name]] == ["unit_m20"]


# What each file may hold: its changes reach other files by types, ownership, keywords, records and macros.
VARIED = {
    "base.purple": {
        "number": ("3", "2.5", "(expt 10 30)", "1/3", '(string->number "7")'),
        "kept": ("x", "(list x x)", "(car (list x))", "(vector-ref (vector x 1) 0)"),
        "default": ("1", "2.0", "'(none)", "#f", "(list number)"),
        "wrapped": ("(list e e)", "(let ((t e)) (list t 'once))", "(vector e)", "`(,e . ,number)"),
        "fields": ("value", "value (count int)", "value next"),
    },
    "middle.purple": {
        "stored": ("(set! seen (cons x seen))", "x", "(set! seen (list x))"),
        "given": ("(keep x)", "(keep (list x))", "(keep x :as 5)", "(wrap (keep x))", "(wrap x)"),
        "made": ("(make x)", "(make (keep x))", "(list (make x))"),
    },
}
VARIED_TEXTS = {
    "base.purple": """
(module base (export number keep wrap make Item))
(deftype Item FIELDS)
(define number NUMBER)
(define (make x) (mk-Item x BLANKS))
(define (keep x :as DEFAULT) (if (equal? as 5) (list x as) KEPT))
(define-syntax wrap (syntax-rules () ((_ e) WRAPPED)))
""",
    "middle.purple": """
(module middle (export work item seen-so-far))
(import "base.purple")
(define seen nil)
(define (seen-so-far) seen)
(define (work x) STORED GIVEN)
(define (item x) MADE)
""",
    "main.purple": """
(import "base.purple")
(import "middle.purple" :as m)
(define (total xs) (fold + 0 (map (lambda (x) (if (number? x) (* x number) 1)) xs)))
(define items (map m/item (list 1 "b" (list 2 3))))
(print (map m/work (list 1 2.5 "a" '(1 2))) (m/work number) (keep 4) (keep 4 :as 5))
(print (map (lambda (i) (if (Item? i) (Item-value i) i)) items) items)
(print (total (list 1 2 'x)) (wrap (length (m/seen-so-far))))
""",
}


def varied(chance: random.Random) -> dict[str, str]:
    """The files with one of their variants each."""
    chosen = {word: chance.choice(each) for kinds in VARIED.values() for word, each in kinds.items()}
    blanks = {"value": "", "value (count int)": "0", "value next": "nil"}
    found = {}
    for name, text in VARIED_TEXTS.items():
        for word, variant in chosen.items():
            text = text.replace(word.upper(), variant)
        found[name] = text.replace("BLANKS", blanks[chosen["fields"]])
    return found


def test_random_changes_of_files_give_what_a_build_from_nothing_gives(tmp_path, monkeypatch, compiled_units):
    chance, main = random.Random(7), tmp_path / "main.purple"
    monkeypatch.chdir(tmp_path)
    for turn in range(8):
        for name, text in varied(chance).items():
            if turn == 0 or chance.random() < 0.6:  # the others stay as they were
                (tmp_path / name).write_text(text)
        program = expand_program(main.read_text(), str(main))
        builder.build_program(program, "program", options=("-O0", "-DPURPLE_CHECK_UNIQUE"))
        done = subprocess.run(["./program"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, interpreted(main.read_text())), done.stderr
        assert "released" not in done.stderr
    assert len(compiled_units) > len(set(compiled_units))  # not all of them every time, nor just once


def test_a_long_file_is_compiled_in_parts_that_are_one_program(tmp_path, monkeypatch):
    text = (Path(__file__).parent / "programs" / "interpreter.purple").read_text()
    text += "\n".join(FILES["shapes.purple"].strip().splitlines()[1:])
    text += '\n(print (area (scale (mk-Shape "b" 1 1) 5)) (map even-length? (list nil (list 1 2))))'
    assert list(compile_units(expand_program(text, FILE))) == ["program"]
    monkeypatch.setattr(emit_units, "LONG", 60)
    assert len(compile_units(expand_program(text, FILE))) > 3
    assert compiled(text, tmp_path) == interpreted(text)
