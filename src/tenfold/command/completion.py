"""`tenfold completion SHELL`: what a shell needs to complete commands, options and their values, read off the
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
    """A word that may follow some commands, what it is for, and the values that it takes, if they are few."""

    after: tuple[str, ...]
    text: str
    meaning: str
    values: tuple[str, ...] = ()
    takes_value: bool = False

    @property
    def is_option(self) -> bool:
        return self.text.startswith("--")


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The completions of a parser for a shell."""
    words = list(_words(parser, ()))
    lines = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](words)
    return f"# {INSTALL[shell]}\n" + "\n".join(lines) + "\n"


def _words(parser: argparse.ArgumentParser, after: tuple[str, ...]) -> Iterator[Word]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            meanings = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, inner in action.choices.items():
                yield Word(after, name, meanings.get(name, ""))
                yield from _words(inner, (*after, name))
            continue
        choices = tuple(map(str, action.choices or ()))
        for option in action.option_strings:
            if option.startswith("--"):
                meaning = (action.help or "").replace("%(default)s", str(action.default))
                yield Word(after, option, meaning, choices, action.nargs != 0)
        if not action.option_strings:
            yield from (Word(after, choice, "") for choice in choices)


def _by_command(words: list[Word]) -> dict[tuple[str, ...], list[Word]]:
    found: dict[tuple[str, ...], list[Word]] = {}
    for word in words:
        found.setdefault(word.after, []).append(word)
    return found


def _bash(words: list[Word]) -> list[str]:
    """A function that looks at the commands before the cursor. Where no word fits, bash completes files."""
    commands = _by_command(words)
    known = "|".join(" ".join(after) for after in commands)
    values = [
        f'        "{" ".join((*word.after, word.text))}") words="{" ".join(word.values)}" options="" ;;'
        for word in words
        if word.is_option and word.values
    ]
    cases = []
    for after, following in commands.items():
        plain = " ".join(word.text for word in following if not word.is_option)
        options = " ".join(word.text for word in following if word.is_option)
        cases.append(f'        "{" ".join(after)}") words="{plain}" options="{options}" ;;')
    return [
        "_tenfold() {",
        '    local words options each command=() current="${COMP_WORDS[COMP_CWORD]}"',
        '    for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do [[ $each == -* ]] || command+=("$each"); done',
        # The longest run of words that is a command: what follows it are its arguments.
        f'    local known=" {known} "',
        r'    while [[ ${#command[@]} -gt 0 && $known != *[\ \|]"${command[*]}"[\ \|]* ]]; do',
        "        unset 'command[-1]'; done",
        '    case "${command[*]}" in',
        *cases,
        "    esac",
        '    case "${command[*]} ${COMP_WORDS[COMP_CWORD-1]}" in',
        *values,
        "    esac",
        '    [[ $current == -* ]] && words="$options"',
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "complete -o default -F _tenfold tenfold",
    ]


def _zsh(words: list[Word]) -> list[str]:
    """The same for zsh, which shows what each word is for."""
    commands = _by_command(words)
    described = lambda following: " ".join(
        _quoted(f"{word.text}:{word.meaning}" if word.meaning else word.text) for word in following
    )
    cases = []
    for after, following in commands.items():
        plain = described([word for word in following if not word.is_option])
        options = described([word for word in following if word.is_option])
        cases.append(f"        {_quoted(' '.join(after))}) offered=({plain}) options=({options}) ;;")
    values = [
        f"        {_quoted(' '.join((*word.after, word.text)))}) offered=({' '.join(word.values)}) ;;"
        for word in words
        if word.is_option and word.values
    ]
    return [
        "_tenfold() {",
        "    local -a command offered options known",
        "    local each",
        '    for each in "${(@)words[2,CURRENT-1]}"; do [[ $each == -* ]] || command+=("$each"); done',
        f"    known=({' '.join(_quoted(' '.join(after)) for after in commands if after)})",
        "    while (( $#command )) && (( ! ${known[(Ie)${(j: :)command}]} )); do command[-1]=(); done",
        '    case "${(j: :)command}" in',
        *cases,
        "    esac",
        '    case "${(j: :)command} ${words[CURRENT-1]}" in',
        *values,
        "    esac",
        "    if [[ ${words[CURRENT]} == -* ]]; then _describe -o option options",
        "    elif (( $#offered )); then _describe command offered",
        "    else _files; fi",
        "}",
        "compdef _tenfold tenfold",
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(words: list[Word]) -> list[str]:
    seen = "__fish_seen_subcommand_from"
    commands = _by_command(words)
    lines = []
    for word in words:
        parents = sorted({after[-2] for after in commands if len(after) > 1 and after[-1] in word.after})
        foreign = [parent for parent in parents if parent not in word.after]
        inner = [each.text for each in commands[word.after] if not each.is_option]
        conditions = [f"{seen} {each}" for each in word.after] or ["__fish_use_subcommand"]
        conditions += [f"not {seen} {' '.join(foreign)}"] if foreign else []
        conditions += [f"not {seen} {' '.join(inner)}"] if word.after and not word.is_option else []
        offer = f"-l {word.text[2:]}" if word.is_option else f"-f -a {word.text}"
        if word.values:
            offer += f" -x -a '{' '.join(word.values)}'"
        elif word.takes_value:
            offer += " -r"
        note = word.meaning.replace("\\", "").replace("'", "\\'")
        lines.append(f"complete -c tenfold -n '{' ; and '.join(conditions)}' {offer} -d '{note}'")
    return lines
