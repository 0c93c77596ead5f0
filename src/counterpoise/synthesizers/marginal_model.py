"""The model that every marginal method makes: a graphical model fitted to noisy counts.

It holds noisy answers only: the measured tables, and the maximum-entropy distribution that fits
them. Rows are drawn from it, conditionally too; marginals are answered exactly from the
distribution, with a standard error where the table, or a larger one, was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from counterpoise.arguments import column_sets
from counterpoise.errors import MethodError
from counterpoise.schema import Schema
from counterpoise.synthesizers.graphical import (
    Domain,
    GraphicalModel,
    Measurement,
    Prior,
    estimate_total,
    fit,
)
from counterpoise.synthesizers.protocol import checked_draw
from counterpoise.synthesizers.redraw import RedrawnTables, Remeasurement
from counterpoise.synthesizers.response import Response
from counterpoise.vault import REPLACE, NoisyCounts, Vault

# The most cells a junction tree may have: 80 MB of doubles, as in AIM's paper.
MOST_CELLS = 10_000_000


@dataclass(frozen=True)
class MarginalAnswer:
    """A marginal of a model: expected counts, and their standard error where it is known.

    The standard error is that of the measurements alone; the fit, which weighs them against each
    other, is usually closer.
    """

    columns: tuple[str, ...]
    values: np.ndarray
    standard_error: float | None


@dataclass(frozen=True, eq=False)
class MarginalModel:
    """A graphical model of a table, with the noisy counts that it was fitted to."""

    schema: Schema
    graph: GraphicalModel
    measured: tuple[Measurement, ...]
    private: bool = True

    prior: ClassVar[Prior] = "uniform"  # what the fit was pulled towards

    @property
    def rows(self) -> int:
        """The noisy (or public) number of private rows."""
        return max(1, round(self.graph.total))

    @property
    def rows_deviation(self) -> float | None:
        """The deviation of the noise in `rows`, where they are not public."""
        return self._standard_error(())

    @property
    def measured_columns(self) -> tuple[tuple[str, ...], ...]:
        """The sets of columns whose counts were measured."""
        return tuple(measurement.columns for measurement in self.measured)

    def sample(
        self,
        rows: int,
        seed: int | None = None,
        format: str = "pandas",
        *,
        given: Mapping[str, Any] | None = None,
        method: str = "rounding",
    ) -> Any:
        """Draw rows; `given` fixes the values of some columns.

        With "rounding" the counts of the sample are those of the model, rounded at random; with
        "plain" rows are drawn independently of each other.
        """
        rows, seed, format = checked_draw(rows, seed, format)
        generator = np.random.default_rng(seed)
        schema, places = self._listed(given)
        fixed = {name: self._code(name, place) for name, place in places.items()}
        codes = self.graph.sample(rows, generator, fixed, method)
        for name, place in places.items():
            codes[:, schema.index(name)] = place
        return schema.decode(codes, generator, format=format)

    def marginal(self, columns: Sequence[str]) -> MarginalAnswer:
        """The expected counts of the combinations of `columns`."""
        [names] = column_sets("columns", (columns,))
        self.schema.shape(names)
        return MarginalAnswer(names, self.graph.marginal(names), self._standard_error(names))

    def redrawn_tables(
        self,
        codes: np.ndarray,
        resample: np.ndarray,
        weights: np.ndarray,
        generator: np.random.Generator,
    ) -> RedrawnTables:
        """The tables of refitted models, a column a replicate, as these rows tell of them."""
        again = Remeasurement(codes, resample, weights, self.graph.total, generator)
        response = Response.of(self.graph, self.measured, codes, self.prior)
        return response.redrawn(again.shifts(response.tables))

    def to_arrays(self) -> Mapping[str, np.ndarray]:
        """The model as named arrays, for saving without pickle."""
        arrays = dict(self.graph.to_arrays())
        for index, measurement in enumerate(self.measured):
            arrays[f"measured_columns_{index}"] = np.array(measurement.columns, dtype=np.str_)
            arrays[f"measured_values_{index}"] = measurement.values
            arrays[f"measured_scale_{index}"] = np.array(measurement.scale)
        return arrays

    @classmethod
    def from_arrays(
        cls, schema: Schema, arrays: Mapping[str, np.ndarray], private: bool = True
    ) -> MarginalModel:
        """The inverse of `to_arrays`."""
        measured: list[Measurement] = []
        while f"measured_columns_{len(measured)}" in arrays:
            index = len(measured)
            columns = tuple(str(name) for name in arrays[f"measured_columns_{index}"])
            scale = float(arrays[f"measured_scale_{index}"])
            measured.append(Measurement(columns, arrays[f"measured_values_{index}"], scale))
        return cls(schema, GraphicalModel.from_arrays(arrays), tuple(measured), private)

    def _listed(self, given: Mapping[str, Any] | None) -> tuple[Schema, dict[str, int]]:
        """The codes of given values in a schema that tells those apart which share one here."""
        schema, codes = self.schema, dict[str, int]()
        if given is None:
            return schema, codes
        if not isinstance(given, Mapping):
            raise MethodError("given: expected a dict from columns to values")
        for name, value in given.items():
            column = self.schema[name].ungrouped
            schema = schema.replace(column)
            # Coded as if it might be null, so that a value without a place shows as null.
            lenient = Schema((replace(column, nullable=True, other=None),))
            code = int(lenient.encode(pd.DataFrame({name: [value]})).codes[0, 0])
            is_null = code == column.cells
            if is_null and not (value is None and column.nullable):
                raise MethodError(f"given: column {name!r} has no value {value!r}")
            codes[name] = code
        return schema, codes

    def _code(self, name: str, place: int) -> int:
        grouping = self.schema[name].grouping
        return place if grouping is None else int(grouping.code_of_place[place])

    def _standard_error(self, columns: tuple[str, ...]) -> float | None:
        """Inverse-variance pooling of the measured tables that contain the columns."""
        cells = self.graph.domain.cells(columns)
        precision = 0.0
        for measurement in self.measured:
            if set(columns) <= set(measurement.columns):
                # A cell of the marginal is a sum over this many measured cells.
                summed = measurement.values.size / cells
                precision += 1 / (measurement.scale**2 * summed)
        return precision**-0.5 if precision > 0 else None


def domain_of(schema: Schema) -> Domain:
    """The columns of a schema and the number of their codes, for the engine."""
    return Domain(schema.names, schema.sizes)


def measurement_of(counts: NoisyCounts) -> Measurement:
    """Noisy counts as the engine takes them."""
    return Measurement(counts.columns, counts.values.astype(float), counts.deviation)


def total_of(vault: Vault, measured: Iterable[Measurement]) -> float:
    """The number of rows: public under replace-one, else pooled from the measured tables."""
    if vault.budget.neighbours is REPLACE:
        return max(1.0, float(vault.total().value))
    return max(1.0, estimate_total(measured))


def fit_model(
    schema: Schema,
    measured: Sequence[Measurement],
    *,
    total: float,
    private: bool,
    warm_start: GraphicalModel | None = None,
) -> MarginalModel:
    """The maximum-entropy model of noisy counts, as a model to sample from."""
    graph = fit(domain_of(schema), measured, total=total, warm_start=warm_start)
    return MarginalModel(schema, graph, tuple(measured), private)
