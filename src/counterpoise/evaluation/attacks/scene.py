"""What every attack starts from: the release as an attacker has it, and the people to be attacked.

The people are rows of the private table, and of a hold-out from the same population that the
release never saw, sampled where they are many. The hold-out has two uses. Its first half are the
strangers with whom private rows are compared; the second is what an attacker may know of the
population. Weights are used as far as they are certain: the replicates show how far each may be
off, and a weight w with a relative deviation c counts as w / (1 + c^2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.arguments import instance_of, whole_number
from counterpoise.bundle.release import Release
from counterpoise.errors import MethodError
from counterpoise.evaluation.attacks.space import Neighbours, Space
from counterpoise.schema import Coded, Schema, read_table

# People who are attacked, of the private rows and of the hold-out's first half, at most.
MOST_PEOPLE = 4000
# Of them, those of whom halves of the columns are looked at.
MOST_HALVED = 1500
# Fewer people than these show nothing.
LEAST_PEOPLE = 20
# Released rows that are looked at around a person.
NEIGHBOURS = 20
# A weight of nothing is a very small one.
LEAST_WEIGHT = 1e-6
# Guesses of numbers are right within this part of the width of the private rows.
TOLERANCE = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class Scene:
    """The release, coded, and the rows to attack, coded and in random order.

    `weights` average to one. `tolerance` is, for each column, by how many units a number may be
    off. `known_frame` has the rows in `known` as they were given.
    """

    release: Release
    released: Coded
    weights: np.ndarray
    private: Coded
    holdout: Coded | None
    members: Coded
    strangers: Coded | None
    known: Coded | None
    known_frame: pd.DataFrame
    tolerance: np.ndarray
    seed: int

    @cached_property
    def space(self) -> Space:
        """The space of all columns."""
        return Space(self.released)

    @cached_property
    def of_members(self) -> Neighbours:
        """The neighbours of private rows."""
        return self.space.nearest(self.space.place(self.members), NEIGHBOURS)

    @cached_property
    def of_strangers(self) -> Neighbours:
        """The neighbours of the hold-out's rows."""
        assert self.strangers is not None
        return self.space.nearest(self.space.place(self.strangers), NEIGHBOURS)

    @cached_property
    def halves(self) -> tuple[Space, ...]:
        """The spaces of two halves of the columns, chosen at random; none for a single column."""
        columns = self.generator("halves").permutation(len(self.released.schema))
        middle = len(columns) // 2
        if middle == 0:
            return ()
        return tuple(
            Space(self.released, np.sort(half).tolist())
            for half in (columns[:middle], columns[middle:])
        )

    @cached_property
    def middles(self) -> np.ndarray:
        """The median of every column of the release, in units."""
        return np.asarray(np.median(self.released.units, axis=0))

    @cached_property
    def members_by_half(self) -> tuple[Neighbours, ...]:
        """The neighbours of the first private rows, in either half of the columns."""
        return self._by_half(self.people(MOST_HALVED)[0])

    @cached_property
    def strangers_by_half(self) -> tuple[Neighbours, ...]:
        """The neighbours of the first strangers, in either half of the columns."""
        strangers = self.people(MOST_HALVED)[1]
        assert strangers is not None
        return self._by_half(strangers)

    def _by_half(self, people: Coded) -> tuple[Neighbours, ...]:
        return tuple(half.nearest(half.place(people), NEIGHBOURS) for half in self.halves)

    def people(self, most: int) -> tuple[Coded, Coded | None]:
        """The first so many private rows, and as many strangers."""
        few = (
            None
            if self.strangers is None
            else self.strangers.take(np.arange(len(self.strangers)) < most)
        )
        return self.members.take(np.arange(len(self.members)) < most), few

    def generator(self, use: str) -> np.random.Generator:
        """The randomness of one use, by the seed."""
        return np.random.default_rng([self.seed, *use.encode()])

    def weights_for(self, knows_weights: bool) -> np.ndarray | None:
        """What an attacker knows of weights."""
        return self.weights if knows_weights else None

    @property
    def population(self) -> float:
        """How many private rows there are, as the card says or as there are released ones."""
        stated = self.release.card.get("population")
        return float(len(self.released) if stated is None else stated)


def set_scene(
    release: Release, private: Any, holdout: Any = None, *, seed: int = 0, most: int = MOST_PEOPLE
) -> Scene:
    """Code a release, the private rows and a hold-out, and choose whom to attack.

    `private` and `holdout` are tables that the schema of the release reads; at most `most` rows
    of the private table, and as many of either half of the hold-out, are attacked.

    >>> import pandas as pd, counterpoise as cp
    >>> schema = cp.Schema([cp.Column.integer("age", 0, 99)])
    >>> rows = pd.DataFrame({"age": range(100)})
    >>> scene = set_scene(cp.release(rows, schema, 1.0, seed=1), rows[:60], rows[60:])
    >>> len(scene.members), len(scene.strangers), len(scene.known)
    (60, 20, 20)
    """
    release = instance_of("release", release, Release, "a Release; write cp.load(folder)")
    seed, most = whole_number("seed", seed, 0), whole_number("most", most, LEAST_PEOPLE)
    schema = _ungrouped(release.schema.modelled)
    released = schema.encode(release.table)
    coded = schema.encode(private)
    if len(released) < LEAST_PEOPLE or len(coded) < LEAST_PEOPLE:
        raise MethodError(
            f"attacks need at least {LEAST_PEOPLE} released and {LEAST_PEOPLE} private rows"
        )
    generator = np.random.default_rng([seed, 0])
    members = coded.take(generator.permutation(len(coded))[:most])
    outside = None if holdout is None else schema.encode(holdout)
    strangers = known = None
    frame = pd.DataFrame()
    if outside is not None and len(outside) < 2 * LEAST_PEOPLE:
        raise MethodError(
            f"holdout: expected at least {2 * LEAST_PEOPLE} rows, half of which are strangers and "
            "half what an attacker knows of people; leave it out where there are fewer"
        )
    if outside is not None:
        order = generator.permutation(len(outside))
        reference = order[len(order) // 2 :][:most]
        frame = read_table(holdout).iloc[reference]
        strangers, known = outside.take(order[: len(order) // 2][:most]), outside.take(reference)
    return Scene(
        release,
        released,
        certain_weights(release),
        coded,
        outside,
        members,
        strangers,
        known,
        frame,
        _tolerance(coded),
        seed,
    )


def _ungrouped(schema: Schema) -> Schema:
    """The schema with a code for every category: those that share one identify people too."""
    return replace(schema, columns=tuple(column.ungrouped for column in schema.columns))


def certain_weights(release: Release) -> np.ndarray:
    """The weights as far as they are certain, averaging to one."""
    weights = np.maximum(release.weights.astype(float), LEAST_WEIGHT)
    replicates = release.replicates
    if replicates is not None and replicates.size:
        squared = np.zeros(len(weights))
        for column in replicates.T:
            squared += (column / weights - 1.0) ** 2
        # w / (1 + c^2), which makes the least mean squared error of what is known up to c.
        weights = weights / (1 + squared / (replicates.shape[1] * release.replicate_part**2))
    return np.asarray(weights / weights.mean())


def _tolerance(private: Coded) -> np.ndarray:
    widths = np.zeros(len(private.schema))
    for position, column in enumerate(private.schema):
        stated = private.units[private.codes[:, position] != column.cells, position]
        if column.is_numeric and len(stated):
            widths[position] = np.diff(np.quantile(stated, [0.01, 0.99]))[0]
    # Rounding may move what is exactly at the limit.
    return TOLERANCE * widths + 1e-9


def are_right(scene: Scene, truth: Coded, position: int, guess: np.ndarray) -> np.ndarray:
    """Whether guesses of a column are right: of numbers within the tolerance, of others exactly.

    Guesses are units of numbers, with nan for null, and codes of categories.
    """
    column, codes = truth.schema.columns[position], truth.codes[:, position]
    if not column.is_numeric:
        return np.asarray(guess == codes)
    is_null = codes == column.cells
    near = np.abs(guess - truth.units[:, position]) <= scene.tolerance[position]
    return np.asarray(np.where(is_null, np.isnan(guess), near))


def values_of(table: Coded, position: int) -> np.ndarray:
    """A column as guesses have it."""
    column = table.schema.columns[position]
    if not column.is_numeric:
        return table.codes[:, position]
    null = table.codes[:, position] == column.cells
    return np.where(null, np.nan, table.units[:, position])
