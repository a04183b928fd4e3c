"""Procedural macros: `(er-macro-transformer (lambda (form rename compare) …))`.

The procedure runs in an interpreter of its own while the program is expanded, so it can use the language and
the prelude but not what the program defines. It is given the use as a datum. `rename` makes of a symbol a
name that means what it means where the macro is defined; `compare` tells whether two names mean the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tenfold.purple.core import Place
from tenfold.purple.errors import PurpleError
from tenfold.purple.reader import Datum, Name, Sequence, Vector
from tenfold.purple.scope import Alias, Scope, Transformer
from tenfold.purple.syntax import count_data, is_name, same_meaning
from tenfold.purple.values import NIL, Pair, Symbol

# Makes of an expression that stands alone the procedure that it gives.
Evaluate: TypeAlias = Callable[[Datum], Callable[..., Any]]
USAGE = "(er-macro-transformer (lambda (form rename compare) …))"


def is_transformer(datum: Datum) -> bool:
    return isinstance(datum, Sequence) and is_name(datum.value[0], "er-macro-transformer")


def parse_transformer(name: Name, datum: Datum, scope: Scope, evaluate: Evaluate) -> Transformer:
    """The macro whose procedure a datum describes."""
    if not isinstance(datum, Sequence) or len(datum.value) != 2 or datum.tail is not None:
        raise PurpleError(f"a procedural macro is written {USAGE}", "syntax", datum.place)
    return Transformer(name.value, evaluate(datum.value[1]), scope, datum.place)


def transform(macro: Transformer, use: Sequence, scope: Scope, made: list[int]) -> Datum:
    """What a macro's procedure makes of a use of it. `made` counts data over all expansions."""
    expansion = _Expansion(macro, use.place, scope)
    try:
        given = macro.procedure(expansion.value(use), expansion.rename, expansion.compare)
    except PurpleError as error:
        raise error.note(f"{macro.name} is used here", use.place) from None
    datum = expansion.datum(given)
    count_data(datum, use, made)
    return datum


class ValuesAsData:
    """Makes of values the data that they are written as, for `giver`. They stand at `place`; with `apart`
    each list stands behind the one before it, so that no two places are the same."""

    def __init__(self, place: Place, giver: str, apart: bool = False):
        self.place, self.giver, self.apart = place, giver, apart
        self.names: dict[Symbol, Name] = {}
        self.places: dict[int, tuple[Pair, Place]] = {}
        self.open: set[int] = set()  # the pairs and vectors whose data are being made

    def named(self, symbol: Symbol) -> Name:
        return self.names.get(symbol) or Name(symbol.name, self.place)

    def datum(self, value: Any) -> Datum:
        """The datum that a value is written as."""
        if isinstance(value, Symbol):
            return self.named(value)
        if not isinstance(value, (Pair, list)):
            return Datum(value, self.place)
        entered: list[int] = []
        try:
            if isinstance(value, list):
                self._enter(value, entered)
                return Vector([self.datum(each) for each in value], self.place)
            if self.apart:
                self.place = self.place._replace(column=self.place.column + 1)
            place = self.places[id(value)][1] if id(value) in self.places else self.place
            items: list[Datum] = []
            rest: Any = value
            while isinstance(rest, Pair):
                self._enter(rest, entered)
                items.append(self.datum(rest.car))
                rest = rest.cdr
            return Sequence(items, place, None if rest is NIL else self.datum(rest))
        finally:
            self.open.difference_update(entered)

    def _enter(self, value: Pair | list[Any], entered: list[int]) -> None:
        """Note that a pair or vector is being made a datum; one that is within itself has none."""
        if id(value) in self.open:
            raise PurpleError(f"{self.giver} gives a list that holds itself", "syntax", self.place)
        self.open.add(id(value))
        entered.append(id(value))


class _Expansion(ValuesAsData):
    """One use of a macro. `names`: the symbols, equal to none that are read, that stand for names that are
    more than their text."""

    def __init__(self, macro: Transformer, place: Place, scope: Scope):
        super().__init__(place, f"the macro {macro.name}")
        self.macro, self.scope = macro, scope
        self.known: dict[Any, Symbol] = {}
        self.renamed: dict[Symbol, Symbol] = {}

    def value(self, datum: Datum) -> Any:
        """A datum as the value that `quote` would give."""
        if isinstance(datum, Name):
            return Symbol(datum.value) if datum.alias is None else self.symbol(datum)
        if isinstance(datum, Vector):
            return [self.value(each) for each in datum.value]
        if not isinstance(datum, Sequence):
            return datum.value
        made: Any = NIL if datum.tail is None else self.value(datum.tail)
        for each in reversed(datum.value):
            made = Pair(self.value(each), made)
        self.places[id(made)] = made, datum.place
        return made

    def symbol(self, name: Name) -> Symbol:
        found = self.known.get(name.alias)
        if found is None:
            found = self.known[name.alias] = Symbol.unread(name.value)
            self.names[found] = name
        return found

    def rename(self, symbol: Any) -> Symbol:
        name = self.name("rename", symbol)
        if symbol not in self.renamed:
            alias = Alias(name.value, name.key, self.macro.scope)
            self.renamed[symbol] = self.symbol(Name(name.value, self.place, alias))
        return self.renamed[symbol]

    def compare(self, one: Any, other: Any) -> bool:
        if not isinstance(one, Symbol) or not isinstance(other, Symbol):
            return one is other
        first, second = self.name("compare", one), self.name("compare", other)
        return same_meaning(first, self.scope, second, self.scope)

    def name(self, procedure: str, symbol: Any) -> Name:
        if not isinstance(symbol, Symbol):
            raise PurpleError(f"{procedure} takes a symbol", "type", self.place)
        return self.named(symbol)
