"""The house layout of Purple: `purple fmt`. Lines stay where their author broke them; what stands at their
start, and between the words of one, follows from the parentheses.

The body of a form is indented by two, and so are a lambda that begins a line, and a call's arguments where
its name has a line of its own; else they stand below the first of them, as the elements of quoted lists do.
What closes a list follows its last element."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tenfold.purple.reader import TOKEN, read

# Forms whose later parts are a body.
BODIES = {
    "begin", "case", "case-lambda", "deftype", "define", "define-library", "define-record-type",
    "define-syntax", "define-values", "delay", "dotimes", "guard", "lambda", "let", "let*",
    "let*-values", "let-syntax", "let-values", "let/cc", "letrec", "letrec*", "letrec-syntax", "match",
    "module", "no-grad", "parameterize", "receive", "syntax-rules", "unless", "when", "while",
    "with-device", "with-grad",
}  # fmt: skip
BLOCK = re.compile(r"#\||\|#")
LAMBDA = re.compile(r"\(\s*lambda\s")


@dataclass
class _List:
    """A list under way: where it opens, what its first word is, and where its first two elements stand."""

    column: int
    opening: str
    quoted: bool
    head: str = ""
    columns: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def indent(self, is_lambda: bool) -> int:
        """Where a line of the list begins, which may begin with a lambda."""
        inside = self.column + len(self.opening)
        if not self.columns:
            return inside
        if self.opening not in "([" or not self.head:
            return self.columns[0]
        if self.head == "else":
            return inside
        beside = len(self.columns) > 1 and self.lines[1] == self.lines[0]
        if self.head in BODIES or is_lambda or not beside:
            return self.column + 2
        return self.columns[1]


def formatted(text: str, file: str = "<text>") -> str:
    """The text in the house layout, the same data in the same order."""
    read(text, file)  # which refuses what is no program, with its place
    return _Layout(text).run()


class _Layout:
    def __init__(self, text: str):
        self.text = text
        self.out: list[str] = []  # finished lines
        self.line = ""
        self.stack: list[_List] = []
        self.glued = True  # whether the next word follows what is there without a space
        self.prefixed = False  # whether it belongs to the prefix before it
        self.comment = ""  # that ends the line
        self.starts = True  # whether nothing stands on the line yet

    def run(self) -> str:
        position, breaks, spaces = 0, 0, 0
        while position < len(self.text):
            found = TOKEN.match(self.text, position)
            assert found is not None
            word, kind = found.group(), str(found.lastgroup)
            position = found.end()
            if kind == "block":
                position = self.block_end(position)
                word = self.text[found.start() : position]
            if kind == "space" and not word.startswith(";"):
                breaks += word.count("\n")
                spaces = len(word) if "\n" not in word else 0
                continue
            if breaks and (kind != "close" or self.comment):  # what closes joins the line before
                self.end_line(breaks)
            self.put(word, kind, found.start(), spaces if not breaks else 0)
            breaks = spaces = 0
        self.end_line(1)
        while self.out and not self.out[-1]:
            self.out.pop()
        return "\n".join(self.out) + "\n"

    def block_end(self, position: int) -> int:
        depth = 1
        while depth:
            found = BLOCK.search(self.text, position)
            assert found is not None
            depth += 1 if found.group() == "#|" else -1
            position = found.end()
        return position

    def end_line(self, breaks: int) -> None:
        if self.line or self.out:
            self.out.append(self.line.rstrip())
            if breaks > 1:
                self.out.append("")
        self.line, self.starts, self.glued, self.comment = "", True, True, ""

    def column(self) -> int:
        return len(self.line) - (self.line.rfind("\n") + 1)

    def put(self, word: str, kind: str, start: int, spaces: int) -> None:
        if self.starts:
            is_lambda = LAMBDA.match(self.text, start) is not None
            self.line = " " * (self.stack[-1].indent(is_lambda) if self.stack else 0)
        elif kind == "space":
            self.line += " " * max(1, spaces)  # a comment after what it is about keeps its distance
        elif not self.glued and kind != "close":
            self.line += " "
        self.starts = False
        at = self.column()
        self.line += word
        if kind == "space":
            self.comment = word
            return
        if kind == "close":
            self.stack.pop()
        elif not self.prefixed:
            self.note(at, word if kind == "atom" else "")
        if kind == "open":
            self.stack.append(_List(at, word, self.prefixed))
        self.glued = kind in ("open", "prefix", "skip")
        self.prefixed = kind in ("prefix", "skip")

    def note(self, at: int, head: str) -> None:
        """Let the list around know of an element."""
        if self.stack:
            around = self.stack[-1]
            if not around.columns:
                around.head = "" if around.quoted else head
            around.columns.append(at)
            around.lines.append(len(self.out))
