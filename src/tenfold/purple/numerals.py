"""The syntax of numbers, as R7RS has it: prefixes for the radix and for exactness, ratios, exponents,
infinities. The C runtime reads the same words (`numerals.c`)."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TypeAlias

Number: TypeAlias = int | float | Fraction

DIGITS = {2: "01", 8: "0-7", 10: "0-9", 16: "0-9a-fA-F"}
INTEGERS = {radix: re.compile(rf"[+-]?[{digits}]+\Z") for radix, digits in DIGITS.items()}
RATIOS = {radix: re.compile(rf"([+-]?[{digits}]+)/([{digits}]+)\Z") for radix, digits in DIGITS.items()}
DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+))(?:[eEsSfFdDlL]([+-]?[0-9]+))?\Z")
RADIX = {"x": 16, "d": 10, "o": 8, "b": 2}
SPECIAL = {"+inf.0": math.inf, "-inf.0": -math.inf, "+nan.0": math.nan, "-nan.0": math.nan}
SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1
MOST_BITS = 1 << 22  # of an integer; `wholes.c` has the same
PIECE = 4000  # digits that Python converts at once: it refuses more than 4,300


class TooLarge(ValueError):
    """A number that has more than MOST_BITS."""


def numeral(word: str, radix: int = 10) -> Number | None:
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
    number = _real(word, radix, exactness == "e")
    return to_float(number) if number is not None and exactness == "i" else number


def _real(word: str, radix: int, exact: bool) -> Number | None:
    if INTEGERS[radix].match(word):
        return _integer(word, radix)
    if ratio := RATIOS[radix].match(word):
        over, under = _integer(ratio[1], radix), _integer(ratio[2], radix)
        return whole(Fraction(over, under)) if under else None
    special = SPECIAL.get(word.lower())
    if special is not None:
        return None if exact else special
    decimal = DECIMAL.match(word) if radix == 10 else None
    if decimal is None:
        return None
    if exact:
        return _exact_decimal(decimal[1], decimal[2] or "0")
    return float(decimal[1] + (f"e{decimal[2]}" if decimal[2] else ""))


def _exact_decimal(digits: str, exponent: str) -> int | Fraction:
    before, _, after = digits.partition(".")
    mantissa = _integer(before + after, 10)
    if mantissa == 0:
        return 0
    power = int(exponent) - len(after) if len(exponent.lstrip("+-0")) < 10 else MOST_BITS
    if abs(power) > MOST_BITS // 3:  # ten has more than three bits
        raise TooLarge
    scale = fitting(10 ** abs(power))
    return fitting(mantissa * scale) if power >= 0 else whole(Fraction(mantissa, scale))


def _integer(word: str, radix: int) -> int:
    sign, digits = word[0] == "-", word.lstrip("+-").lstrip("0")
    if len(digits) > MOST_BITS:
        raise TooLarge
    return fitting(-_magnitude(digits, radix) if sign else _magnitude(digits, radix))


def _magnitude(digits: str, radix: int) -> int:
    if len(digits) <= PIECE:
        return int(digits or "0", radix)
    half = len(digits) // 2
    return _magnitude(digits[:-half], radix) * radix**half + _magnitude(digits[-half:], radix)


def decimal_text(number: int) -> str:
    """An integer's digits, however many there are."""
    if number.bit_length() < 3 * PIECE:
        return str(number)
    if number < 0:
        return "-" + decimal_text(-number)
    half = number.bit_length() * 3 // 20  # about half of the digits
    over, under = divmod(number, 10**half)
    return decimal_text(over) + decimal_text(under).rjust(half, "0")


def fitting(number: int) -> int:
    """The number itself, unless it is too long."""
    if number.bit_length() > MOST_BITS:
        raise TooLarge
    return number


def whole(number: Fraction) -> int | Fraction:
    """An integer where a ratio is one."""
    return number.numerator if number.denominator == 1 else number


def to_float(number: Number) -> float:
    """The nearest float, infinite where a number is beyond all of them."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def is_numeral(word: str) -> bool:
    """Whether a word reads as a number, or would if it were not too large."""
    try:
        return numeral(word) is not None
    except TooLarge:
        return True
