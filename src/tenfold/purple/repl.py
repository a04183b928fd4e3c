"""Talking with Purple: a line at a time, with history, completion that documents, and editing that knows
parentheses.

`Repl` holds what needs no terminal. prompt_toolkit, which draws, is loaded when a terminal is there to
draw on.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tenfold.base.errors import MissingEngine, TenfoldError, did_you_mean
from tenfold.purple import memory
from tenfold.purple.deep_stack import with_deep_stack
from tenfold.purple.documentation import describe, known_names
from tenfold.purple.errors import PurpleError, report
from tenfold.purple.interpret import Session, expand_program
from tenfold.purple.prims import control, ports
from tenfold.purple.printing import write_text
from tenfold.purple.reader import Incomplete, read, read_source, to_value
from tenfold.purple.values import UNSPECIFIED
from tenfold.tensor import Tensor

COMMANDS = {
    ",help": "what can be said here",
    ",doc NAME": "what a name means",
    ",stages EXPRESSION": "a tensor's program at each stage, from Trace to StableHLO",
    ",time EXPRESSION": "the value, and how long it took",
    ",load FILE": "run a file's forms here",
    ",expand FORM": "the form with the macro at its head expanded",
    ",memory": "where what was typed so far frees its memory, were it compiled",
    ",quit": "leave (as does Ctrl-D)",
}
WORD = re.compile(r"[^\s()\[\]\"';`,]*\Z")
EARLIER = re.compile(r"\*[123](?=[\s()]|\Z)")
HISTORY = Path("~/.purple_history")


class Repl:
    def __init__(self) -> None:
        self.session = Session(late=True)
        self.lines = 0
        self.typed: list[str] = []  # what ran to its end

    def answer(self, text: str) -> str:
        """What to show for a line: the value, or what a command or an error says. Empty for nothing."""
        try:
            stripped = text.strip()
            if stripped.startswith(",") and stripped[1:2].isalpha():
                return self.command(stripped)
            value = self.evaluate(text)
            return "" if value is UNSPECIFIED else with_deep_stack(lambda: write_text(value))
        except PurpleError as error:
            return report(error, self.session.sources)
        except TenfoldError as error:  # a tensor that is computed only when it is shown
            return report(PurpleError(error.message, "tensor"), {})

    def evaluate(self, text: str) -> Any:
        self.lines += 1
        file = f"<{self.lines}>"
        value = with_deep_stack(lambda: self.session.run_text(text, file))
        if not EARLIER.search(text):  # which no compiler knows
            self.typed.append(text)
        if value is not UNSPECIFIED:
            self.remember(value)
        return value

    def remember(self, value: Any) -> None:
        """The last values go by the names *1, *2 and *3."""
        names = [self.session.unit.global_name(each) for each in ("*3", "*2", "*1")]
        space = self.session.namespace
        for older, newer in itertools.pairwise(names):
            if newer in space:
                space[older] = space[newer]
        space[names[-1]] = value

    def command(self, text: str) -> str:
        name, _, rest = text.partition(" ")
        if name == ",help":
            width = max(map(len, COMMANDS))
            lines = [f"{usage:{width}}  {what}" for usage, what in COMMANDS.items()]
            return "\n".join(["Type an expression, or one of these:", *lines])
        if name == ",doc":
            return self.doc(rest.strip())
        if name == ",stages":
            value = self.evaluate(rest)
            if not isinstance(value, Tensor):
                raise PurpleError(f"{write_text(value)} is not a tensor", "type")
            return str(value.show())
        if name == ",time":
            start = time.perf_counter()
            value = self.evaluate(rest)
            if isinstance(value, Tensor):
                value.eval()
            elapsed = time.perf_counter() - start
            shown = "" if value is UNSPECIFIED else write_text(value) + "\n"
            return f"{shown}{elapsed:.3f} s"
        if name == ",load":
            path = rest.strip().strip('"')
            text = read_source(path)
            with_deep_stack(lambda: self.session.run_text(text, path))
            self.typed.append(text)
            return f"loaded {path}"
        if name == ",expand":
            return self.expand(rest)
        if name == ",memory":
            return memory.report(expand_program("\n".join([*self.typed, rest]), "<memory>"))
        if name == ",quit":
            raise EOFError
        known = [each.partition(" ")[0] for each in COMMANDS]
        raise PurpleError(
            f"there is no command {name}", "syntax", help=did_you_mean(name, known) or "try ,help"
        )

    def expand(self, text: str) -> str:
        expander = self.session.expander
        data = read(text)
        if len(data) != 1:
            raise PurpleError(",expand takes one form", "syntax")
        return write_text(to_value(expander.expand_head(data[0], expander.main.scope)))

    def doc(self, name: str) -> str:
        entry = describe(name, self.session.expander)
        if entry is None:
            help = did_you_mean(name, known_names(self.session.expander))
            raise PurpleError(f"{name} is not defined", "unbound", help=help)
        return f"{entry.usage}\n  {entry.doc}" if entry.doc else entry.usage

    def completions(self, before: str) -> Iterator[tuple[str, int, str]]:
        """For the text before the cursor: names that fit, how much of it they replace, and a line about
        each.
        """
        match = WORD.search(before)
        word = match.group() if match else ""
        if before.startswith(",") and " " not in before:
            for usage, what in COMMANDS.items():
                if usage.startswith(before):
                    yield usage.partition(" ")[0], len(before), what
            return
        if not word:
            return
        for name in known_names(self.session.expander):
            if name.startswith(word):
                entry = describe(name, self.session.expander)
                yield name, len(word), f"{entry.usage}  {entry.doc}" if entry else ""

    def is_complete(self, text: str) -> bool:
        """Whether the text is whole, so that Enter ends it rather than beginning another line."""
        if text.lstrip().startswith(","):
            return True
        try:
            read(text)
        except Incomplete:
            return False
        except PurpleError:
            return True
        return True


def main() -> int:
    """Talk on a terminal; without one, answer the lines of the input."""
    repl = Repl()
    if not sys.stdin.isatty():
        return answer_lines(repl)
    session = terminal(repl)
    print("Purple. ,help tells what can be said here.")
    while True:
        try:
            text = session.prompt("purple> ")
            shown = repl.answer(text) if text.strip() else ""
        except KeyboardInterrupt:
            ports.State.output = None  # what redirected it was left
            print("interrupted (Ctrl-D leaves)")
            continue
        except EOFError:
            return 0
        except control.Exit as left:
            return left.status
        if shown:
            print(shown)


def answer_lines(repl: Repl) -> int:
    """Answer the input, a datum at a time as lines complete one."""
    text = ""
    for line in sys.stdin:
        text += line
        if not repl.is_complete(text):
            continue
        try:
            shown = repl.answer(text) if text.strip() else ""
        except EOFError:
            return 0
        except control.Exit as left:
            return left.status
        text = ""
        if shown:
            print(shown, flush=True)
    if text.strip():
        print(repl.answer(text))
    return 0


def terminal(repl: Repl) -> Any:
    """prompt_toolkit's session: loaded here, since only a terminal needs it."""
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import Completer, Completion
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.lexers import SimpleLexer  # noqa: F401  (makes sure that the package is whole)
    except ImportError:
        raise MissingEngine(
            "talking with Purple needs prompt_toolkit", help="pip install prompt_toolkit"
        ) from None

    class Completions(Completer):
        def get_completions(self, document: Any, complete_event: Any) -> Iterator[Any]:
            for name, replaced, about in repl.completions(document.text_before_cursor):
                yield Completion(name, start_position=-replaced, display_meta=about)

    keys = KeyBindings()

    @keys.add("enter", filter=Condition(lambda: not repl.is_complete(session.default_buffer.text)))
    def _(event: Any) -> None:
        buffer = event.current_buffer
        buffer.insert_text("\n" + " " * indentation(buffer.document.text_before_cursor))

    session: Any = PromptSession(
        history=FileHistory(os.path.expanduser(str(HISTORY))),
        completer=Completions(),
        key_bindings=keys,
        lexer=highlighter(),
        prompt_continuation=lambda width, line, wrapped: "." * (width - 1) + " ",
        complete_while_typing=True,
    )
    return session


TOKENS = re.compile(
    r"""(?P<comment>;.*)|(?P<string>"(?:[^"\\]|\\.)*"?)|(?P<keyword>(?<![^\s(\['`,]):[^\s()\[\]"';`,]+)"""
    r"""|(?P<number>(?<![^\s(\['`,])[+-]?\.?\d[^\s()\[\]"';`,]*)|(?P<head>(?<=\()[^\s()\[\]"';`,]+)"""
)
COLOURS = {
    "comment": "ansibrightblack italic",
    "string": "ansigreen",
    "keyword": "ansimagenta",
    "number": "ansicyan",
    "head": "ansiblue bold",
}


def coloured(line: str) -> list[tuple[str, str]]:
    """A line in parts: the style of each, and its text."""
    parts, at = [], 0
    for match in TOKENS.finditer(line):
        if match.start() > at:
            parts.append(("", line[at : match.start()]))
        parts.append((COLOURS[str(match.lastgroup)], match.group()))
        at = match.end()
    return [*parts, ("", line[at:])] if at < len(line) else parts


def highlighter() -> Any:
    from prompt_toolkit.lexers import Lexer

    class Purple(Lexer):
        def lex_document(self, document: Any) -> Any:
            return lambda number: coloured(document.lines[number])

    return Purple()


def indentation(text: str) -> int:
    """Where the next line begins: two columns in from the parenthesis that is still open."""
    opened: list[int] = []
    for row in text.split("\n"):
        plain = re.sub(r'"(?:[^"\\]|\\.)*"?|;.*', lambda match: " " * len(match.group()), row)
        for column, each in enumerate(plain):
            if each in "([":
                opened.append(column)
            elif each in ")]" and opened:
                opened.pop()
    return opened[-1] + 2 if opened else 0
