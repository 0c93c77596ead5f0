"""Support: whether what an estimate depends on was measured, follows from less, or never was.

A release is a model of the private table: p(x) proportional to exp(sum of functions of the sets of
columns that were counted or summed), S. L. Lauritzen, Graphical Models, 1996. What the sets hold
together was measured. A sum that noise drowned, or that weights could not reach, relates its
columns and measures nothing of them.
Columns that a chain of sets connects are related as far as the chain tells, and taken as unrelated
beyond it. Columns that nothing connects are independent in the release by assumption, whatever they
are in private.

Within a regression the other terms are held still, so a chain through them tells nothing of a
coefficient: only chains past all columns of the formula do. Summing those other columns out of the
model joins all that they touch; a coefficient whose columns are not joined then is zero by
assumption (the same book, section 3.2). An interaction of columns that were only measured in pairs
is none by assumption as well. The card's `measured` says what was; a release without it has
support unknown.

A release that was retargeted by some columns is p(x) f(of those columns). Whatever is asked of it
depends on how the columns asked about go together with those, unless they are held still; only
what was stated of the target is known by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from counterpoise.bundle.card import RETARGETED
from counterpoise.schema import Column
from counterpoise.schema.expression_trees import Chain, Name, Node, Number, Prefixed

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

MEASURED, IMPLIED, NEVER, UNKNOWN = "measured", "implied", "never", "unknown"
# From the best to the worst; what nobody knows is better than what is known to be assumed.
_ORDER = (MEASURED, IMPLIED, UNKNOWN, NEVER)

# A mark in a table, and what its footnote says.
MARKS = {MEASURED: "", IMPLIED: "~", UNKNOWN: "?", NEVER: "!", "": ""}
FOOTNOTES = {
    IMPLIED: "implied: its columns were not measured together; it follows from smaller "
    "measurements, and assumes no relation beyond them",
    UNKNOWN: "support unknown: nothing says what was measured together",
    NEVER: "never measured: nothing that was measured tells of it, and the release takes the "
    "columns as unrelated",
}
NOT_CARRIED = "implied: what was summed of its columns does not carry it"

BRIEFLY = {IMPLIED: "implied", UNKNOWN: "support unknown", NEVER: "never measured"}

Columns = frozenset[str]
NONE: Columns = frozenset()


def footnote(support: str, assumed: Sequence[float | None] = ()) -> str:
    """What the footnote of a mark says, with what part of each variance is assumption, if known.

    >>> footnote(IMPLIED, [0.83, 0.6])
    'implied: what was summed of its columns does not carry it; about 60% to 83% of the ...'
    >>> footnote(IMPLIED, [None]) == FOOTNOTES[IMPLIED]
    True
    """
    known = [part for part in assumed if part is not None]
    if support != IMPLIED or not known:
        return FOOTNOTES[support]
    if len(known) == len(assumed):
        return f"{NOT_CARRIED}; {assumption(known)}"
    return f"{FOOTNOTES[support]}; where what was summed does not carry it, {assumption(known)}"


def briefly(support: str, assumed: float | None = None) -> str:
    """The mark of one estimate in a word or two; nothing where it was measured.

    >>> briefly(IMPLIED), briefly(IMPLIED, 0.83), briefly(MEASURED)
    ('implied', 'implied; about 83% of the variance is assumption', '')
    """
    said = BRIEFLY.get(support, "")
    return said if support != IMPLIED or assumed is None else f"{said}; {assumption([assumed])}"


def assumption(parts: Sequence[float]) -> str:
    """What part of some variances is assumption, in words.

    >>> assumption([0.83, 0.6])
    'about 60% to 83% of the variance is assumption'
    """
    low, high = f"{min(parts):.0%}", f"{max(parts):.0%}"
    return f"about {low if low == high else f'{low} to {high}'} of the variance is assumption"


def worst(supports: Iterable[str]) -> str:
    """The weakest of several supports; none of them is all that is needed.

    >>> worst([MEASURED, NEVER, IMPLIED]), worst([])
    ('never', 'measured')
    """
    return max(supports, key=_ORDER.index, default=MEASURED)


@dataclass(frozen=True, eq=False)
class Measured:
    """What a release measured, and what follows for columns that an estimate depends on.

    `counts` and `cells` are sets whose tables are known, `products` pairs of which the product of
    the values is, `trends` pairs that one contrast relates, `assumed` the sets of which
    something was summed that does not carry estimates, with the part of the variance that is
    assumption. `nominal` are the columns of
    categories without order, whose values are indicators. `made_of` has the sources of derived
    columns, `obeyed` the columns of each public check, which are related by it, and `merged` the
    categories of columns that share a code with others, so that relations are measured of all of
    these together. `sums` are the derived columns whose mean is made of those of their sources.
    `stated` are the sets whose tables hold in the target by statement (shares of intervals leave
    open what is within them), `stated_means` the columns whose means do, and `factors` the sets of
    columns that it was turned to by.

    >>> found = Measured((frozenset("ab"), frozenset("bc"), frozenset("d")))
    >>> [found.of(names) for names in ("a", "ab", "ac", "ad")]
    ['measured', 'measured', 'implied', 'never']
    """

    counts: tuple[Columns, ...] | None
    cells: tuple[Columns, ...] = ()
    products: tuple[Columns, ...] = ()
    trends: tuple[Columns, ...] = ()
    assumed: Mapping[Columns, float] = field(default_factory=dict)
    nominal: Columns = NONE
    made_of: Mapping[str, Columns] = field(default_factory=dict)
    obeyed: tuple[Columns, ...] = ()
    merged: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    sums: Columns = NONE
    stated: tuple[Columns, ...] = ()
    stated_means: Columns = NONE
    factors: tuple[Columns, ...] = ()

    @classmethod
    def of_release(cls, release: Release) -> Measured:
        """What the card of a release says."""
        stated = release.card.get("measured")
        said: Mapping[str, Any] = stated if isinstance(stated, Mapping) else {}
        counts = said.get("counts")
        rules = release.schema.rules
        steps = (release.card.get(RETARGETED) or {}).get("steps", ())
        # What came before the last step holds no longer.
        raked = steps[-1].get("margins", ()) if steps else ()
        nominal = {column.name for column in release.schema if not column.is_numeric}
        return cls(
            counts=None if counts is None else _as_sets(counts),
            cells=_as_sets(said.get("cells", ())),
            products=_as_sets(said.get("products", ())),
            trends=_as_sets(said.get("trends", ())),
            assumed={frozenset(columns): float(part) for columns, part in said.get("assumed", ())},
            nominal=frozenset(
                column.name for column in release.schema if column.kind == "categorical"
            ),
            made_of={
                column.name: frozenset(rules.needs(expression))
                for column, expression in rules.derived
            },
            obeyed=_as_sets(rules.needs(check) for check in rules.checks),
            sums=frozenset(
                column.name for column, each in rules.derived if _is_sum(each.tree, rules.modelled)
            ),
            merged={column.name: _merged(column) for column in release.schema if column.grouping},
            stated=_as_sets(
                each["columns"]
                for each in raked
                if "mean" not in each and nominal.issuperset(each["columns"])
            ),
            stated_means=frozenset(each["columns"][0] for each in raked if "mean" in each),
            factors=_as_sets(each for step in steps for each in step["columns"]),
        )

    def of(self, columns: Iterable[str], linear: Collection[str] = ()) -> str:
        """The support of a statistic of the joint distribution of some columns.

        `linear` are the columns of which it needs the values' product with the others and no
        more, as a mean does.
        """
        columns = frozenset(columns)
        if self.is_stated(columns):
            return MEASURED
        columns |= self.turned_by
        if self.is_measured(columns, linear):
            return MEASURED
        if self.counts is None:
            return UNKNOWN
        needed, _ = self._sources(columns, ())
        return IMPLIED if needed <= self._reached(next(iter(needed))) else NEVER

    def assumed_part(self, columns: Iterable[str]) -> float | None:
        """The part of the variance that is assumption, where a sum of the columns carries little.

        In another population it is not known.

        >>> found = Measured((frozenset("a"), frozenset("b")), assumed={frozenset("ab"): 0.83})
        >>> found.of("ab"), found.assumed_part("ab"), found.assumed_part("a")
        ('implied', 0.83, None)
        """
        return None if self.factors else self.assumed.get(self.sources(columns))

    @cached_property
    def turned_by(self) -> Columns:
        """The columns that the release was retargeted by.

        >>> found = Measured((frozenset("ab"), frozenset("c")), factors=(frozenset("a"),))
        >>> [found.of(names) for names in ("b", "c")]
        ['measured', 'never']
        """
        return NONE.union(*self.factors)

    def is_stated(self, columns: Iterable[str]) -> bool:
        """Whether the table of some columns is known of the target, and not estimated."""
        return any(each.issuperset(columns) for each in self.stated)

    def of_category(self, support: str, categories: Iterable[tuple[str, Any]]) -> str:
        """The support of a relation of these categories of columns, given that of the columns.

        What holds of categories that share a code is implied for each of them.
        """
        if support == MEASURED and any(
            category in self.merged.get(name, ()) for name, category in categories
        ):
            return IMPLIED
        return support

    def of_mean(self, column: str, by: Iterable[str]) -> str:
        """The support of the mean of a column in groups."""
        by = frozenset(by)
        if self.is_stated({column} | by) or (not by and column in self.stated_means):
            return MEASURED
        parts = self.made_of[column] if column in self.sums else [column]
        return worst(self.of({part, *by}, linear={part}) for part in parts)

    def holding(self, columns: Iterable[str]) -> Held:
        """The same when all of these columns but those asked about are held still.

        >>> chain = Measured((frozenset("ab"), frozenset("bc")))
        >>> chain.holding("ac").of("ac"), chain.holding("abc").of("ac")
        ('implied', 'never')
        """
        still, _ = self._sources(columns, ())
        found = [each & still for each in self._sets]
        left = set(self._neighbours) - still
        while left:
            # What others touch is joined when they are summed out.
            region = self._reached(next(iter(left)), still)
            found.append(region & still)
            left -= region
        apart, _ = self._sources(self.turned_by, ())
        return Held(self, tuple(found), apart - still)

    def sources(self, columns: Iterable[str]) -> Columns:
        """The modelled columns that some are, or are derived from."""
        return self._sources(columns, ())[0]

    def is_measured(self, columns: Iterable[str], linear: Collection[str] = ()) -> bool:
        """Whether some columns were measured together, as far as they are needed."""
        needed, plain = self._sources(columns, linear)
        if not needed:
            return True
        tables, products = self._sets_with.get(next(iter(needed)), ([], []))
        if any(needed <= each for each in tables):
            return True
        # A product of values tells of columns by their values, or by indicators of categories.
        return needed <= plain | self.nominal and any(needed <= each for each in products)

    @cached_property
    def _sets_with(self) -> dict[str, tuple[list[Columns], list[Columns]]]:
        """For every column the tables and the products that hold it: of thousands, a few."""
        found: dict[str, tuple[list[Columns], list[Columns]]] = {}
        for place, sets in enumerate(((*(self.counts or ()), *self.cells), self.products)):
            for each in sets:
                for name in each:
                    found.setdefault(name, ([], []))[place].append(each)
        return found

    def _sources(self, columns: Iterable[str], linear: Collection[str]) -> tuple[Columns, Columns]:
        """The modelled columns behind some, and those of them that are used by their values."""
        columns = frozenset(columns)
        derived = {name for name in columns if name in self.made_of}
        sources = frozenset[str]().union(*(self.made_of[name] for name in derived))
        return (columns - derived) | sources, (frozenset(linear) & columns) - derived - sources

    @property
    def _sets(self) -> tuple[Columns, ...]:
        summed = *self.cells, *self.products, *self.trends, *self.assumed
        made = *(self.counts or ()), *summed, *self.obeyed
        return (*made, *(self._sources(each, ())[0] for each in self.factors))

    @cached_property
    def _neighbours(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for each in self._sets:
            for name in each:
                found.setdefault(name, set()).update(each - {name})
        return found

    def _reached(self, start: str, still: Columns = NONE) -> Columns:
        """The columns that chains lead to, each up to the first column that is held still."""
        reached, ahead = {start}, [start]
        while ahead:
            for name in self._neighbours.get(ahead.pop(), set()) - reached:
                reached.add(name)
                if name not in still:
                    ahead.append(name)
        return frozenset(reached)


@dataclass(frozen=True, eq=False)
class Held:
    """What was measured of columns, and which of them are `joined` by what is not held still.

    `apart` are columns that the release was retargeted by and that are not held still.
    """

    measured: Measured
    joined: tuple[Columns, ...]
    apart: Columns = NONE

    def of(self, columns: Iterable[str], linear: Collection[str] = ()) -> str:
        """The support of how some of the columns go together, the others held still."""
        if self.measured.is_measured(frozenset(columns) | self.apart, linear):
            return MEASURED
        if self.measured.counts is None:
            return UNKNOWN
        needed, _ = self.measured._sources(columns, ())
        return IMPLIED if any(needed <= each for each in self.joined) else NEVER


def _is_sum(tree: Node, modelled: Iterable[Column]) -> bool:
    """Whether a tree adds up modelled columns, perhaps times numbers."""
    if isinstance(tree, Name):
        return any(column.name == tree.name for column in modelled)
    if isinstance(tree, Prefixed):
        return tree.operator == "-" and _is_sum(tree.operand, modelled)
    if not isinstance(tree, Chain):
        return isinstance(tree, Number)
    if set(tree.operators) <= {"+", "-"}:
        return all(_is_sum(part, modelled) for part in tree.operands)
    first, *others = tree.operands
    scaled = set(tree.operators) <= {"*", "/"} and all(isinstance(each, Number) for each in others)
    return scaled and _is_sum(first, modelled)


def _merged(column: Column) -> frozenset[Any]:
    """The categories that do not have a code of their own."""
    assert column.grouping is not None and column.categories is not None
    codes = column.grouping.codes
    sizes = Counter(codes)
    return frozenset(
        category for category, code in zip(column.categories, codes, strict=True) if sizes[code] > 1
    )


def _as_sets(sets: Iterable[Iterable[str]]) -> tuple[Columns, ...]:
    return tuple(frozenset(each) for each in sets)
