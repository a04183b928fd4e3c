"""From text to data, and every way in which text can be wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from tenfold.purple.errors import PurpleError, report
from tenfold.purple.printing import write_text
from tenfold.purple.reader import Incomplete, Name, Sequence, read, read_source, to_value


def written(text: str) -> str:
    return " ".join(write_text(to_value(each)) for each in read(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1 -2 +3 #xFF #b101 #o17", "1 -2 3 255 5 15"),
        ("1.5 .5 1. 1e3 -2.5e-3", "1.5 0.5 1.0 1000.0 -0.0025"),
        ("9223372036854775807 -9223372036854775808", "9223372036854775807 -9223372036854775808"),
        ("#t #f nil () t", "#t #f () () t"),
        (r'"a\nb" "\u{41}\\\"" "x\x41;y"', r'"a\nb" "A\\\"" "xAy"'),
        ('"two\\\n   lines"', '"twolines"'),
        (r"#\a #\space #\newline #\( #\x41 #\λ", r"#\a #\space #\newline #\( #\A #\λ"),
        (":lr :batch-first", ":lr :batch-first"),
        ("(1 . 2) (1 2 . 3) (1 . (2 3))", "(1 . 2) (1 2 . 3) (1 2 3)"),
        ("#(1 (2) #(3))", "#(1 (2) #(3))"),
        ("'a `(b ,c ,@d)", "(quote a) (quasiquote (b (unquote c) (unquote-splicing d)))"),
        ("1 ; comment\n 2 #;(3 4) 5 #| a #| nested |# b |# 6", "1 2 5 6"),
        ("[a b]", "(a b)"),
        ("a->b! c? + - ... .5", "a->b! c? + - ... 0.5"),
    ],
)
def test_text_reads_as_data(text, shown):
    assert written(text) == shown


def test_every_datum_remembers_its_place():
    (form,) = read("\n  (add\n   x)", "f.purple")
    assert isinstance(form, Sequence)
    assert (form.place.line, form.place.column) == (2, 3)
    name = form.value[1]
    assert isinstance(name, Name)
    assert (name.place.file, name.place.line, name.place.column) == ("f.purple", 3, 4)
    assert "\n  (add\n   x)"[form.place.start : form.place.end] == "(add\n   x)"


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("(a\n (b", "this ( is never closed", 2, 2),
        ("a)", "this ) closes nothing", 1, 2),
        ("(a]", "this ] cannot close a (", 1, 3),
        ("'", "nothing follows this '", 1, 1),
        ("(')", "nothing follows this '", 1, 2),
        ('\n"abc', "this string is never closed", 2, 1),
        ("#| x", "this comment is never closed", 1, 1),
        ("9" * 1300000, "9" * 27 + "… is too long for a number", 1, 1),
        ("1e999", "1e999 does not fit in a float", 1, 1),
        ("(a . b c)", "only one datum may follow the dot", 1, 8),
        ("(. a)", "a dot may stand only before the last datum of a list", 1, 2),
        ("(a .)", "nothing follows the dot", 1, 4),
        ("#(a . b)", "a dot may stand only before the last datum of a list", 1, 5),
        (r"#\nosuch", r"there is no character #\nosuch", 1, 1),
        (r'"\q"', r"\q is no escape of strings", 1, 1),
        (r'"\u{110000}"', r"\u{110000} is no escape of strings", 1, 1),
        ("#what", "#what means nothing", 1, 1),
        ("a\x00b", "a symbol cannot hold the character U+0000", 1, 1),
    ],
)
def test_wrong_text_is_an_error_with_its_place(text, message, line, column):
    with pytest.raises(PurpleError) as caught:
        read(text)
    assert (caught.value.message, caught.value.place.line, caught.value.place.column) == (
        message,
        line,
        column,
    )


@pytest.mark.parametrize("text", ["(", '"', "#|", "'", "(a (b)", "#;"])
def test_text_that_may_go_on_is_incomplete(text):
    with pytest.raises(Incomplete):
        read(text)


def test_nesting_may_be_as_deep_as_memory_allows():
    depth = 100_000
    (form,) = read("(" * depth + ")" * depth)
    assert write_text(to_value(form)) == "(" * depth + ")" * depth


def test_bytes_that_are_not_utf8_are_located(tmp_path):
    path = tmp_path / "bad.purple"
    path.write_bytes(b'(print "ok")\n(print "\xff")\n')
    with pytest.raises(PurpleError) as caught:
        read_source(str(path))
    assert caught.value.message == "byte 0xff is not valid UTF-8"
    assert (caught.value.place.line, caught.value.place.column) == (2, 9)
    assert report(caught.value, {}) == f"{path}:2:9: error: byte 0xff is not valid UTF-8"


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from("()[]'`,@#;|\"\\ \nab1.:-+xtf{}λ\x00"), max_size=60))
def test_any_text_reads_or_is_refused_with_a_place(text):
    try:
        data = read(text)
    except PurpleError as error:
        assert error.place.line >= 1 and error.place.column >= 1
    else:
        again = read(" ".join(write_text(to_value(each)) for each in data))
        assert [write_text(to_value(each)) for each in again] == [write_text(to_value(each)) for each in data]
