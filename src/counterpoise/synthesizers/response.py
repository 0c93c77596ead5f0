"""How a graphical model answers to a change of its measurements, to first order, on given rows.

The fitted potentials theta make  M p - y + tau s^2 theta  vanish, cell by cell (see the fit). Put
the model's own tables M p in the place of y and change them by e: the potentials move by

    dtheta = (n C + tau s^2)^-1 (e - tau s^2 theta),

with C the covariance of the cells' indicators under p. The last term is the pull towards the
prior, which a fit to the model's tables suffers again; theta is what is added to the logarithm of
the prior. Where the answers of single columns make the prior, the changed ones make another: with b
what that adds to its logarithm, prior and potentials together move by
(n C + tau s^2)^-1 (e - tau s^2 (theta - b)). C is taken from rows drawn from the model, and one
factorisation, in single precision and refined, serves all changes; a fit for each would take
hundreds of passes through the junction tree. The tables then move by n C dtheta, and the rows'
weights are raked to them: rows are drawn with the counts of their model, not independently, and so
would those of the moved one be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from counterpoise.synthesizers.graphical import GraphicalModel, Measurement, Prior
from counterpoise.synthesizers.graphical.columns_prior import LEAST, likely_answers, towards_columns
from counterpoise.synthesizers.graphical.measurements import combine, pull
from counterpoise.synthesizers.redraw import RedrawnTables, Table

# Rows that C is taken from, and cells whose potentials move, those with the largest counts. What
# is beyond hardly moves by itself: its noise is larger than its counts.
MOST_ROWS = 10_000
MOST_CELLS = 4_000
CELLS_AT_ONCE = 100
# What conjugate gradients may leave of the right side, and how often they are tried.
NEAR_ENOUGH = 1e-8
MOST_REFINEMENTS = 8
# About how many cells have their likely counts worked out at once.
LIKELY_AT_ONCE = 10_000


@dataclass(frozen=True, eq=False)
class Response:
    """The tables of a model, one after the other, and what moves them."""

    tables: tuple[Table, ...]
    columns: tuple[tuple[int, ...], ...]  # the places of each table's columns
    shapes: tuple[tuple[int, ...], ...]
    largest: tuple[int, ...]  # the tables that are not in a larger one
    indicators: sparse.csr_array  # some of the rows x cells
    expected: np.ndarray  # n p
    penalty: np.ndarray  # tau s^2
    potentials: np.ndarray  # theta
    answers: tuple[np.ndarray | None, ...]  # of single columns that make the prior
    total: float

    @classmethod
    def of(
        cls,
        graph: GraphicalModel,
        measured: Sequence[Measurement],
        codes: np.ndarray,
        prior: Prior = "uniform",
    ) -> Response:
        """The response of a model fitted to these measurements, on rows drawn from it."""
        merged = combine(graph.domain, measured)
        tau = pull(merged, graph.total)
        base = towards_columns(merged, graph.total)[1] if prior == "columns" else {}
        theta = {frozenset(factor.columns): factor for factor in graph.potentials}
        position = graph.domain.position
        tables, columns, shapes, expected, penalty, potentials = [], [], [], [], [], []
        answers = [part.values if part.columns in base else None for part in merged]
        for part, table in zip(
            merged, graph.marginals([part.columns for part in merged]), strict=True
        ):
            places = tuple(codes[:, position[name]] for name in part.columns)
            # Of many rows and tables, these are most of what is held.
            cells = np.ravel_multi_index(places, table.shape).astype(np.int32)
            tables.append(Table(cells, table.size, part.scale))
            columns.append(tuple(position[name] for name in part.columns))
            shapes.append(table.shape)
            expected.append(table.reshape(-1))
            penalty.append(np.full(table.size, tau * part.scale**2))
            potential = theta[frozenset(part.columns)].transpose(part.columns).values
            if part.columns in base:
                potential = potential - base[part.columns]
            potentials.append(potential.reshape(-1))
        sets = [set(part.columns) for part in merged]
        largest = tuple(i for i, one in enumerate(sets) if not any(one < other for other in sets))
        return cls(
            tuple(tables),
            tuple(columns),
            tuple(shapes),
            largest,
            _indicators(tables, max(1, len(codes) // MOST_ROWS)),
            np.concatenate(expected),
            np.concatenate(penalty),
            np.concatenate(potentials),
            tuple(answers),
            graph.total,
        )

    def redrawn(self, changes: np.ndarray) -> RedrawnTables:
        """The tables after the changes of counts, a column each; smaller ones follow from them."""
        counts = np.maximum(self.expected[:, None] + self._moves(self._right(changes)), 0.0)
        places = self._places()
        return RedrawnTables(
            tuple(self.columns[i] for i in self.largest),
            tuple(self.shapes[i] for i in self.largest),
            tuple(counts[places[i]] for i in self.largest),
            self.total,
        )

    def _places(self) -> list[slice]:
        """Where the cells of each table are among those of all."""
        ends = np.cumsum([table.size for table in self.tables])
        return [slice(end - table.size, end) for table, end in zip(self.tables, ends, strict=True)]

    def _right(self, changes: np.ndarray) -> np.ndarray:
        """What moves the potentials: e - tau s^2 (theta - b)."""
        right = changes - (self.penalty * self.potentials)[:, None]
        for place, table, noisy in zip(self._places(), self.tables, self.answers, strict=True):
            if noisy is None:
                continue
            before = likely_answers(noisy, table.deviation, self.total)
            # A cell moves in proportion to its prior, but by no more rows than the prior does.
            least = LEAST * self.total / table.size
            unit = np.maximum(np.maximum(before.counts, self.expected[place]), least)
            step = max(1, LIKELY_AT_ONCE // table.size)
            for start in range(0, changes.shape[1], step):
                some = slice(start, start + step)
                changed = noisy + changes[place, some].T
                after = likely_answers(changed, table.deviation, self.total)
                right[place, some] += (after.answers - before.answers - (changed - noisy)).T
                moved = ((after.counts - before.counts) / unit).T
                right[place, some] += self.penalty[place, None] * moved
        return right

    def _moves(self, right: np.ndarray) -> np.ndarray:
        """How the counts of all cells move: n C (n C + tau s^2)^-1 right."""
        rows = self.indicators
        scale = self.total / max(1, rows.shape[0])
        chosen = np.sort(np.argsort(self.expected)[-MOST_CELLS:])
        right = right[chosen]  # the rest is let go before the largest matrix is made
        values = _centred_values(rows[:, chosen], scale, self.penalty[chosen], right)
        found: np.ndarray = scale * (rows.T @ values)
        return found


def _centred_values(
    rows: sparse.csr_array, scale: float, penalty: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """B dtheta for B = rows less their mean, and (scale B'B + penalty) dtheta = right."""
    if rows.shape[0] < rows.shape[1]:
        # B (scale B'B + P)^-1 = (scale B P^-1 B' + 1)^-1 B P^-1
        scaled = rows / penalty
        inner = scale * _centred(_centred((scaled @ rows.T).toarray()).T)
        inner[np.diag_indices_from(inner)] += 1
        return _solve(inner, _centred(scaled @ right))
    return _centred(rows @ _solve_in_cells(rows, scale, penalty, right))


def _solve_in_cells(
    rows: sparse.csr_array, scale: float, penalty: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """The solution of (scale B'B + penalty) dtheta = right, B = rows less their mean.

    Thousands of cells squared are the largest there is, so they are held in single precision, and
    the factor of that matrix leads conjugate gradients in double precision, which need B alone.
    """
    try:
        factor = linalg.cho_factor(
            _gram(rows, scale, penalty, np.float32),
            lower=True,
            overwrite_a=True,
            check_finite=False,
        )
        means, by_cell = np.asarray(rows.mean(axis=0)).reshape(-1), rows.T.tocsr()

        def apply(cells: np.ndarray) -> np.ndarray:
            found = by_cell @ (rows @ cells)
            found -= np.outer(rows.shape[0] * means, means @ cells)
            found *= scale
            found += penalty[:, None] * cells
            return found

        return _refined(apply, factor, right)
    except linalg.LinAlgError:
        # With hardly any noise the penalty is lost in single precision.
        lower = np.tril(_gram(rows, scale, penalty, np.float64))
        return _solve(lower + np.tril(lower, -1).T, right)


def _gram(
    rows: sparse.csr_array, scale: float, penalty: np.ndarray, kind: type[np.floating]
) -> np.ndarray:
    """The lower half of scale B'B + penalty, made in place, some cells at a time."""
    means = np.asarray(rows.mean(axis=0)).reshape(-1)
    rows = rows.astype(np.float32)  # in which counts of rows are exact
    by_row, by_cell = rows.T, rows.tocsc()
    gram = np.empty((rows.shape[1], rows.shape[1]), dtype=kind, order="F")
    for start in range(0, rows.shape[1], CELLS_AT_ONCE):
        some = slice(start, start + CELLS_AT_ONCE)
        counted = (by_row @ by_cell[:, some]).toarray(order="F")[start:]
        centred = np.multiply.outer(means[some], -rows.shape[0] * means[start:]).T
        centred += counted
        centred *= scale
        gram[start:, some] = centred
    gram[np.diag_indices_from(gram)] += penalty.astype(kind)
    return gram


def _refined(
    apply: Callable[[np.ndarray], np.ndarray], factor: tuple[np.ndarray, bool], right: np.ndarray
) -> np.ndarray:
    """Conjugate gradients for each column of `right`, led by a factor in single precision."""

    def lead(columns: np.ndarray) -> np.ndarray:
        found: np.ndarray = linalg.cho_solve(
            factor, columns.astype(np.float32), overwrite_b=True, check_finite=False
        )
        return found.astype(float)

    found = lead(right)
    rest = right - apply(found)
    goal = NEAR_ENOUGH * np.linalg.norm(right, axis=0)
    led = lead(rest)
    direction, product = led.copy(), (rest * led).sum(axis=0)
    for _ in range(MOST_REFINEMENTS):
        if (np.linalg.norm(rest, axis=0) <= goal).all():
            return found
        applied = apply(direction)
        length = product / np.maximum((direction * applied).sum(axis=0), np.finfo(float).tiny)
        found += length * direction
        rest -= length * applied
        led = lead(rest)
        before, product = product, (rest * led).sum(axis=0)
        direction *= product / np.maximum(before, np.finfo(float).tiny)
        direction += led
    raise linalg.LinAlgError("the factor in single precision does not lead far enough")


def _centred(values: np.ndarray) -> np.ndarray:
    return values - values.mean(axis=0)


def _solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution for a symmetric matrix, which is lost on the way."""
    diagonal = matrix.diagonal().copy()
    try:
        factor = linalg.cho_factor(matrix, overwrite_a=True)
        found: np.ndarray = linalg.cho_solve(factor, right)
    except linalg.LinAlgError:
        # With hardly any noise the penalty is lost in the rounding of the rows' part, and what
        # that leaves undetermined does not move them. The factor took the upper half's place.
        lower = np.tril(matrix, -1)
        found = linalg.pinvh(lower + lower.T + np.diag(diagonal)) @ right
    return found


def _indicators(tables: Sequence[Table], step: int) -> sparse.csr_array:
    """A row of zeros and ones for every so many rows: which cell of every table each is in."""
    ends = np.cumsum([table.size for table in tables], dtype=np.int32)
    starts = ends - [table.size for table in tables]
    columns = np.stack([table.cells[::step] for table in tables], axis=1)
    columns += starts.astype(np.int32)
    rows, each = columns.shape
    places = np.arange(0, rows * each + 1, each, dtype=np.int32)
    return sparse.csr_array(
        (np.ones(rows * each), columns.reshape(-1), places), shape=(rows, int(ends[-1]))
    )
