"""`tenfold completion SHELL`: what a shell needs to complete commands, options and choices, read off the
parser itself, so that it never lags behind."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

SHELLS = ("bash", "zsh", "fish")
INSTALL = {
    "bash": 'eval "$(tenfold completion bash)"      # in ~/.bashrc',
    "zsh": 'eval "$(tenfold completion zsh)"       # in ~/.zshrc, after compinit',
    "fish": "tenfold completion fish > ~/.config/fish/completions/tenfold.fish",
}


class Word(NamedTuple):
    """A word that may follow some commands, and what it is for."""

    after: tuple[str, ...]
    text: str
    meaning: str


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The completions of a parser for a shell."""
    words = list(_words(parser, ()))
    lines = _fish(words) if shell == "fish" else _bash(words)
    head = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return f"# {INSTALL[shell]}\n{head}" + "\n".join(lines) + "\n"


def _words(parser: argparse.ArgumentParser, after: tuple[str, ...]) -> Iterator[Word]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            meanings = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, inner in action.choices.items():
                yield Word(after, name, meanings.get(name, ""))
                yield from _words(inner, (*after, name))
            continue
        for option in action.option_strings:
            if option.startswith("--"):
                yield Word(after, option, (action.help or "").replace("%(default)s", str(action.default)))
        for choice in action.choices or ():
            if not action.option_strings:
                yield Word(after, str(choice), "")


def _bash(words: list[Word]) -> list[str]:
    """A function that looks at the commands before the cursor; files are completed where no word fits."""
    by_command: dict[tuple[str, ...], list[str]] = {}
    for word in words:
        by_command.setdefault(word.after, []).append(word.text)
    cases = [
        f'        "{" ".join(after)}") words="{" ".join(texts)}" ;;' for after, texts in by_command.items()
    ]
    return [
        "_tenfold() {",
        "    local words command=() each",
        '    for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do [[ $each == -* ]] || command+=("$each"); done',
        # The longest run of words that is a command: what follows it are its arguments.
        f'    local known=" {"|".join(" ".join(after) for after in by_command)} "',
        r'    while [[ ${#command[@]} -gt 0 && $known != *[\ \|]"${command[*]}"[\ \|]* ]]; do',
        "        unset 'command[-1]'; done",
        '    case "${command[*]}" in',
        *cases,
        "    esac",
        '    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
        "}",
        "complete -o default -F _tenfold tenfold",
    ]


def _fish(words: list[Word]) -> list[str]:
    lines = []
    for after, text, meaning in words:
        if after:
            condition = " ; and ".join(f"__fish_seen_subcommand_from {each}" for each in after)
        else:
            condition = "__fish_use_subcommand"
        option = f"-l {text[2:]}" if text.startswith("--") else f"-a {text}"
        note = meaning.replace("\\", "").replace("'", "\\'")
        lines.append(f"complete -c tenfold -n '{condition}' {option} -d '{note}'")
    return lines
