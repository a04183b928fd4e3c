"""The syntax of numbers, as R7RS has it: prefixes for the radix and for exactness, ratios, exponents,
infinities. A ratio is what `/` gives of its parts; the C runtime reads the same words (`numerals.c`)."""

from __future__ import annotations

import math
import re

DIGITS = {2: "01", 8: "0-7", 10: "0-9", 16: "0-9a-fA-F"}
INTEGERS = {radix: re.compile(rf"[+-]?[{digits}]+\Z") for radix, digits in DIGITS.items()}
RATIOS = {radix: re.compile(rf"([+-]?[{digits}]+)/([{digits}]+)\Z") for radix, digits in DIGITS.items()}
DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+))(?:[eEsSfFdDlL]([+-]?[0-9]+))?\Z")
RADIX = {"x": 16, "d": 10, "o": 8, "b": 2}
SPECIAL = {"+inf.0": math.inf, "-inf.0": -math.inf, "+nan.0": math.nan, "-nan.0": math.nan}
SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1
LONGEST = 4000  # digits: Python refuses more


class TooLarge(ValueError):
    """Digits of an integer that 64 bits do not hold."""


def numeral(word: str, radix: int = 10) -> int | float | None:
    """The number that a word is; None when it is none."""
    exactness = ""
    prefixes = 0
    while word.startswith("#") and len(word) > 2 and prefixes < 2:
        letter = word[1].lower()
        if letter in "ei" and not exactness:
            exactness = letter
        elif letter in RADIX:
            radix = RADIX[letter]
        else:
            return None
        word, prefixes = word[2:], prefixes + 1
    if radix not in DIGITS:
        return None
    number = _real(word, radix)
    if number is None or not exactness:
        return number
    if exactness == "i":
        return float(number)
    if isinstance(number, float):
        if not math.isfinite(number) or number != math.floor(number):
            return None
        return _fitting(int(number))
    return number


def _real(word: str, radix: int) -> int | float | None:
    if INTEGERS[radix].match(word):
        return _integer(word, radix)
    if ratio := RATIOS[radix].match(word):
        over, under = _integer(ratio[1], radix), _integer(ratio[2], radix)
        if under == 0:
            return None
        return _fitting(over // under) if over % under == 0 else float(over) / float(under)
    special = SPECIAL.get(word.lower())
    if special is not None:
        return special
    decimal = DECIMAL.match(word) if radix == 10 else None
    if decimal is None:
        return None
    return float(decimal[1] + (f"e{decimal[2]}" if decimal[2] else ""))


def _integer(word: str, radix: int) -> int:
    if len(word.lstrip("+-0")) > 70:
        raise TooLarge
    return _fitting(int(word, radix))


def _fitting(number: int) -> int:
    if SMALLEST <= number <= LARGEST:
        return number
    raise TooLarge


def is_numeral(word: str) -> bool:
    """Whether a word reads as a number, or would if 64 bits held it."""
    try:
        return numeral(word) is not None
    except TooLarge:
        return True
