"""A fitted graphical model: a value that answers for marginals, densities and samples.

The model is p(x) = exp(sum_i theta_i(x_i) - log Z) over the rows of a domain, times a total number
of rows. Its potentials theta_i are all that is saved; the clique tables are inferred from them.
Everything in here is post-processing of the noisy marginals that the potentials were fitted to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from counterpoise.errors import MethodError
from counterpoise.synthesizers.graphical.domain import Columns, Domain
from counterpoise.synthesizers.graphical.factor import Array, Factor
from counterpoise.synthesizers.graphical.inference import Workspace, compile_schedule
from counterpoise.synthesizers.graphical.junction_tree import JunctionTree, junction_tree
from counterpoise.synthesizers.graphical.marginals import Marginaliser
from counterpoise.synthesizers.graphical.sampling import draw_rows


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """A distribution over the rows of `domain`, scaled to `total` rows.

    >>> domain = Domain(("a", "b"), (2, 2))
    >>> pull = Factor(("a", "b"), np.log([[4.0, 1.0], [1.0, 4.0]]))
    >>> model = GraphicalModel.from_potentials(domain, [pull], total=100.0)
    >>> model.marginal(("b", "a")).round()
    array([[40., 10.],
           [10., 40.]])
    """

    domain: Domain
    tree: JunctionTree
    potentials: tuple[Factor, ...]  # log-potentials theta_i
    log_partition: float
    beliefs: tuple[Array, ...]  # the probabilities of each clique of `tree`
    total: float

    @classmethod
    def from_potentials(
        cls, domain: Domain, potentials: Iterable[Factor], total: float = 1.0
    ) -> GraphicalModel:
        """The model of these finite log-potentials; those of the same columns add up."""
        summed: dict[Columns, Array] = {}
        for potential in potentials:
            columns = domain.canonical(potential.columns)
            values = potential.transpose(columns).values
            summed[columns] = summed[columns] + values if columns in summed else values
        tree = junction_tree(domain, summed)
        schedule = compile_schedule(tree, frozenset(summed))
        flat = np.zeros(schedule.cells)
        for i, arranged in enumerate(schedule.columns):
            columns = domain.canonical(arranged)
            table = Factor(columns, summed[columns]).transpose(arranged).values
            flat[schedule.offsets[i] : schedule.offsets[i + 1]] = table.reshape(-1)
        workspace = Workspace(schedule)
        log_partition, _ = workspace.marginals(flat)
        return cls.from_workspace(workspace, flat, log_partition, total)

    @classmethod
    def from_workspace(
        cls, workspace: Workspace, potentials: Array, log_partition: float, total: float
    ) -> GraphicalModel:
        """The model of a workspace whose last pass was at `potentials`; takes its tables over."""
        schedule = workspace.schedule
        domain = schedule.tree.domain
        tables = tuple(workspace.tables)
        for table in tables:
            table.flags.writeable = False
        return cls(
            domain=domain,
            tree=schedule.tree,
            potentials=tuple(
                Factor(columns, potentials[place].reshape(domain.shape(columns)))
                for columns, place in zip(schedule.columns, workspace.slices, strict=True)
            ),
            log_partition=log_partition,
            beliefs=tables,
            total=float(total),
        )

    def marginal(self, columns: Sequence[str]) -> Array:
        """The expected counts of the combinations of `columns`, axes in that order."""
        return self.marginals([columns])[0]

    def marginals(self, queries: Iterable[Sequence[str]], *, is_rough: bool = False) -> list[Array]:
        """The marginals of many column sets at once, which share the work they have in common.

        Rough ones are worked out in single precision, to about a millionth, in less time.
        """
        beliefs: Sequence[Array] = self.beliefs
        if is_rough:
            # What is too small for single precision is slow there, and counts for nothing.
            beliefs = [np.where(b < 1e-30, 0, b).astype(np.float32) for b in beliefs]
        asked = [tuple(columns) for columns in queries]
        for columns in asked:
            if len(self.domain.canonical(columns)) != len(columns):
                raise MethodError(f"the query {columns} names a column twice")
        found = Marginaliser(self.tree, beliefs).marginals(asked)
        return [
            np.multiply(factor.transpose(columns).values, self.total, dtype=float)
            for factor, columns in zip(found, asked, strict=True)
        ]

    def sample(
        self,
        rows: int,
        rng: np.random.Generator,
        given: Mapping[str, int] | None = None,
        method: str = "rounding",
    ) -> Array:
        """Draw rows of codes, a column for each of the domain's.

        "rounding" keeps the counts of the sample as close to the model as whole numbers can be,
        "plain" draws rows independently. `given` fixes the codes of some columns; the others are
        drawn given them.
        """
        model = self.condition(given) if given else self
        codes = draw_rows(model.tree, model.beliefs, rows, rng, method)
        for column, code in (given or {}).items():
            codes[:, self.domain.position[column]] = code
        return codes

    def condition(self, given: Mapping[str, int]) -> GraphicalModel:
        """The model of the other columns given these codes.

        The given columns stay in the domain with a single value, code 0, and the total is the
        expected number of rows with the given codes.
        """
        for column, code in given.items():
            if column not in self.domain:
                raise MethodError(f"column {column!r} is not in the domain {self.domain.columns}")
            if not 0 <= code < self.domain[column]:
                raise MethodError(
                    f"column {column!r} takes codes 0 to {self.domain[column] - 1}, not {code}"
                )
        sizes = {column: 1 if column in given else self.domain[column] for column in self.domain}
        reduced = [
            Factor(
                potential.columns,
                potential.values[
                    tuple(
                        slice(given[column], given[column] + 1) if column in given else slice(None)
                        for column in potential.columns
                    )
                ],
            )
            for potential in self.potentials
        ]
        conditioned = GraphicalModel.from_potentials(Domain.from_sizes(sizes), reduced)
        # p(given) = Z(given) / Z; a uniform column counts its values in both.
        share = np.exp(conditioned.log_partition - self.log_partition)
        return replace(conditioned, total=float(self.total * share))

    def log_density(self, codes: Array) -> Array:
        """The log-probability of each row of `codes`, whose columns are the domain's."""
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.domain):
            raise MethodError(f"codes need one column for each of {self.domain.columns}")
        if codes.size and ((codes < 0) | (codes >= np.array(self.domain.sizes))).any():
            raise MethodError("codes must be 0 or more and below the size of their column")
        # log p(x) = sum_i theta_i(x_i) - log Z
        log_density = np.full(len(codes), -self.log_partition)
        for potential in self.potentials:
            places = tuple(codes[:, self.domain.position[column]] for column in potential.columns)
            log_density += potential.values[places]
        return log_density

    @cached_property
    def entropy(self) -> float:
        """The entropy of the distribution of one row, in nats: log Z - sum_i <theta_i, p_i>."""
        answers = self.marginals([potential.columns for potential in self.potentials])
        expected = sum(
            float(np.sum(potential.values * answer))
            for potential, answer in zip(self.potentials, answers, strict=True)
        )
        return self.log_partition - expected / self.total

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays that `from_arrays` reads back; fit for `numpy.savez`, free of pickles."""
        arrays = {
            "columns": np.array(self.domain.columns, dtype=np.str_),
            "sizes": np.array(self.domain.sizes, dtype=np.int64),
            "total": np.array(self.total),
        }
        for i, potential in enumerate(self.potentials):
            places = [self.domain.position[column] for column in potential.columns]
            arrays[f"axes_{i}"] = np.array(places, dtype=np.int64)
            arrays[f"potential_{i}"] = potential.values
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> GraphicalModel:
        """Rebuild a model from `to_arrays`; the clique tables are inferred anew."""
        domain = Domain(
            tuple(str(column) for column in arrays["columns"]),
            tuple(int(size) for size in arrays["sizes"]),
        )
        potentials: list[Factor] = []
        while f"axes_{len(potentials)}" in arrays:
            axes = arrays[f"axes_{len(potentials)}"]
            columns = tuple(domain.columns[axis] for axis in axes)
            potentials.append(Factor(columns, arrays[f"potential_{len(potentials)}"]))
        return cls.from_potentials(domain, potentials, float(arrays["total"]))
