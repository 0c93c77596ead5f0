"""A release: the synthetic table, its weights, and the card that says how it was made.

The methods here are the front door to what one does with it, in the rooms `analysis` and `report`:
this is the one file that imports from rooms further down, and only when a method is called.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from counterpoise.arguments import shown, truth_value
from counterpoise.bundle.card import (
    guarantee,
    protection,
    rows_counted,
    vouches_for_all,
    without_sums,
    without_target,
)
from counterpoise.bundle.saved_replicates import SavedReplicates
from counterpoise.bundle.stored_rows import ReplicatesWhenAsked, StoredRows, TableWhenAsked
from counterpoise.bundle.weight_columns import WEIGHT
from counterpoise.disk import as_path, plainly
from counterpoise.errors import BundleError, CounterpoiseError, CounterpoiseWarning
from counterpoise.schema import Schema
from counterpoise.vault import Ledger

if TYPE_CHECKING:
    from counterpoise.analysis.certificate import Certificate
    from counterpoise.analysis.glm import Glm
    from counterpoise.analysis.learn import CrossValidation
    from counterpoise.analysis.posterior import Posterior, Prior
    from counterpoise.analysis.rehearsals import Rehearsal
    from counterpoise.analysis.result import Estimate, Estimates
    from counterpoise.bundle.models import Models, SavedModels

By = str | Sequence[str] | None
# What a large release has in its file is read from there when it is asked for.
REPLICATES_WHEN_ASKED: Any = ReplicatesWhenAsked("replicates")


@dataclass(frozen=True)
class Release:
    """What leaves the curator: nothing in it depends on private rows except through noise.

    `table` has the columns of the schema and `weight`, which averages to one. `card` says what
    was spent, by which methods, and what the weights look like. `replicates` are rows x R
    replicate weights, each column averaging to one, from which standard errors come; those of a
    large release stay in its file until they are asked for. The rows of a very large one stay
    there too: `table` and `replicates` then refuse to fill the memory and say what to do instead,
    `read` reads some columns, and estimates read what they need. `accepted` says that the weights
    are used whatever the verdict on them. `models` are what new rows are drawn from, and `work` is
    the folder in which unfinished work was kept, until it is saved.
    """

    table: pd.DataFrame
    schema: Schema
    card: dict[str, Any]
    replicates: np.ndarray | None = field(default=REPLICATES_WHEN_ASKED, compare=False)
    accepted: bool = False
    models: Models | SavedModels | None = field(default=None, repr=False, compare=False)
    work: Path | None = field(default=None, repr=False, compare=False)
    # What the analyst was told already, so that a warning comes once a release.
    told: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    @property
    def rows(self) -> int:
        """The number of synthetic rows."""
        return len(vars(self)["_table"])

    @property
    def replicate_count(self) -> int:
        """The number of replicate weights."""
        found = vars(self)["_replicates"]
        if isinstance(found, StoredRows):
            return found.replicates
        if isinstance(found, SavedReplicates):
            return len(found.names)
        return 0 if found is None else int(found.shape[1])

    @property
    def replicate_part(self) -> float:
        """The part of the way from the weight that replicate weights go.

        What a statistic moves by with a replicate is that part of what it could well have been.
        """
        found = self.card.get("replicates")
        # What is said of other replicates says nothing of these.
        if not isinstance(found, Mapping) or found.get("count") != self.replicate_count:
            return 1.0
        return float(found.get("part", 1.0))

    @property
    def stored(self) -> StoredRows | None:
        """The rows where they are in a file; None where they are in memory."""
        found = vars(self)["_table"]
        return found if isinstance(found, StoredRows) else None

    @property
    def weights(self) -> np.ndarray:
        """The weight of every row."""
        return self.table[WEIGHT].to_numpy() if self.stored is None else self.stored.weights

    def read(self, *columns: str) -> pd.DataFrame:
        """Some columns of the table, or all and the weight, whatever memory they take.

        >>> import pandas as pd, counterpoise as cp
        >>> table = pd.DataFrame({"age": [20, 40], "weight": [0.5, 1.5]})
        >>> cp.Release(table, cp.Schema([cp.Column.integer("age", 0, 99)]), {}).read("age").shape
        (2, 1)
        """
        known = (*self.schema.names, WEIGHT)
        for name in columns:
            if not isinstance(name, str) or name not in known:
                raise BundleError(f"columns: the release has no column {shown(name)}")
        if self.stored is not None:
            return self.stored.read(columns or None)
        return self.table[list(columns or known)]

    def take(self, places: np.ndarray) -> pd.DataFrame:
        """Some rows of the table with their weights, by positions in order, each once."""
        places = np.asarray(places)
        if places.ndim != 1 or places.dtype.kind not in "iu" or (np.diff(places) <= 0).any():
            raise BundleError("places: expected positions of rows, in order and each once")
        if len(places) and not 0 <= places[0] <= places[-1] < self.rows:
            raise BundleError(f"places: expected positions from 0 to {self.rows - 1:,}")
        if self.stored is not None:
            return self.stored.read(places=places)
        return self.table.iloc[places].reset_index(drop=True)

    def part(self, rows: int = 1_000_000) -> Release:
        """The release of fewer rows: every so many-th, with its weights, in memory.

        For what takes all rows at once, such as fits of scikit-learn. Rows are in no order, so it
        is a smaller release of the same population; its weights are judged anew.
        """
        from counterpoise.bundle.assemble import part

        return part(self, rows)

    @property
    def private(self) -> bool:
        """Whether its ledger vouches for all of it; `guarantee` says what it vouches for.

        Not when the noise was drawn from a seed, for teaching; nor when the rows or the weights
        were handed in, so that what they cost is not in the ledger.
        """
        ledger = self.card.get("ledger", {})
        return bool(ledger.get("private", False)) and vouches_for_all(self.card)

    @property
    def protects(self) -> str:
        """Who is protected by the guarantee: a row, or a person with so many rows."""
        return protection(self.card["ledger"]["budget"], self.card.get("person"))

    @property
    def guarantee(self) -> str:
        """What is promised of privacy, in a sentence: how much, and of which part."""
        return guarantee(self.card)

    @property
    def ledger(self) -> Ledger:
        """What was spent, as a ledger."""
        if "ledger" not in self.card:
            raise BundleError("the card of this release has no ledger: nothing says what it cost")
        return Ledger.from_dict(self.card["ledger"])

    def save(
        self,
        path: str | Path,
        overwrite: bool = False,
        csv: bool | Literal["verbatim"] = False,
    ) -> Path:
        """Write the release as a Data Package; the folder is there in full or not at all.

        With `csv` the rows are written as CSV too; texts and names that a spreadsheet would run as
        a formula have an apostrophe before them there, unless it is "verbatim". Where saving fails
        nothing is lost: the release can be saved elsewhere, and what was at `path` is still there.
        The page comes last: where it cannot be made, the release is there without it, and a warning
        says how to make it. A folder in which unfinished work was kept is removed when all is
        written.
        """
        from counterpoise.bundle.descriptor import TABLE
        from counterpoise.bundle.files import write_bundle
        from counterpoise.curation.work import discard

        folder = as_path("path", path)
        overwrite = truth_value("overwrite", overwrite, BundleError)
        if not (isinstance(csv, str) and csv == "verbatim"):
            if not isinstance(csv, bool | np.bool_):
                raise BundleError("csv: expected True or False, or 'verbatim'")
            csv = bool(csv)
        write_bundle(self, folder, overwrite=overwrite, csv=csv)
        if self.stored is not None:
            self.stored.follow(folder / TABLE)
        self.add_page(folder)
        if self.work is not None:
            try:
                with plainly(self.work, "removed"):
                    discard(self.work)
            except BundleError as error:
                warnings.warn(
                    f"the release is saved, but {error}", CounterpoiseWarning, stacklevel=2
                )
        return folder

    def add_page(self, folder: Path) -> None:
        """Write the page into the folder of the release, or warn that it cannot be made."""
        try:
            self.report(folder)
        except Exception as error:
            # Whatever it is, and be it memory: nobody pays for the same rows twice over a page.
            reason = error if isinstance(error, CounterpoiseError) else type(error).__name__
            warnings.warn(
                f"the release is saved, but without its page ({reason}): make it with "
                f"`counterpoise report {folder}`, or release.report({str(folder)!r})",
                CounterpoiseWarning,
                stacklevel=3,
            )

    def report(self, path: str | Path) -> Path:
        """Write the page of the release, `report.html`, anew into the folder where it is saved."""
        from counterpoise.bundle.descriptor import REPORT
        from counterpoise.bundle.files import write_page
        from counterpoise.report import release_page

        folder = as_path("path", path)
        write_page(self, folder, release_page)
        return folder / REPORT

    def changed(self, **changes: Any) -> Release:
        """The release with other fields; what is in a file stays there."""
        kept = {
            each.name: vars(self).get(f"_{each.name}", vars(self).get(each.name))
            for each in fields(self)
            if each.init
        }
        return Release(**{**kept, **changes})

    def sample(self, rows: int, seed: int | None = None) -> Release:
        """New rows from the model behind the release, with weights and replicates; free."""
        from counterpoise.analysis.retarget import follow
        from counterpoise.bundle.assemble import sample

        return follow(sample(self, rows, seed), self.card, seed)

    def mean(self, column: str, by: By = None) -> Estimate | Estimates:
        """The mean of a column, with its interval; nulls are left out."""
        from counterpoise.analysis.estimates import mean

        return mean(self, column, by)

    def total(
        self, column: str | None = None, category: Any = None, by: By = None
    ) -> Estimate | Estimates:
        """The sum of a column over the population, or the number of rows of a category."""
        from counterpoise.analysis.estimates import total

        return total(self, column, category, by)

    def proportion(self, column: str, category: Any = None, by: By = None) -> Estimate | Estimates:
        """The share of a category among the rows that are not null; by default of each."""
        from counterpoise.analysis.estimates import proportion

        return proportion(self, column, category, by)

    def quantile(self, column: str, q: float = 0.5, by: By = None) -> Estimate | Estimates:
        """A quantile of numbers, dates or ordinal categories; the median by default."""
        from counterpoise.analysis.quantiles import quantile

        return quantile(self, column, q, by)

    def histogram(self, column: str, bins: Sequence[Any] | None = None, by: By = None) -> Estimates:
        """The share of every category or bin of a column."""
        from counterpoise.analysis.tables import histogram

        return histogram(self, column, bins, by)

    def crosstab(self, row: str, column: str, of: str = "all") -> Estimates:
        """The shares of all combinations of two columns, of "all", "rows" or "columns"."""
        from counterpoise.analysis.tables import crosstab

        return crosstab(self, row, column, of)

    def corr(self, *columns: str) -> Estimate | Estimates:
        """The correlation of two columns, or of all pairs of several."""
        from counterpoise.analysis.tables import corr

        return corr(self, *columns)

    def cov(self, *columns: str) -> Estimate | Estimates:
        """The covariance of two columns, or of all pairs of several."""
        from counterpoise.analysis.tables import cov

        return cov(self, *columns)

    def fit(
        self,
        estimator: Any,
        target: str,
        features: Sequence[str] | None = None,
        encode: bool = True,
        seed: int | None = None,
    ) -> Any:
        """A scikit-learn pipeline, fitted with the weights, that predicts on raw tables."""
        from counterpoise.analysis.learn import fit

        return fit(self, estimator, target, features, encode, seed)

    def cross_validate(
        self,
        estimator: Any,
        target: str,
        features: Sequence[str] | None = None,
        folds: int = 5,
        metric: Any = None,
        encode: bool = True,
        seed: int | None = None,
    ) -> CrossValidation:
        """How well an estimator predicts rows it was not fitted on, weighted throughout."""
        from counterpoise.analysis.learn import cross_validate

        return cross_validate(self, estimator, target, features, folds, metric, encode, seed)

    def glm(self, formula: str, family: str = "auto", prior_deviation: float = 0.75) -> Glm:
        """A "gaussian", "binomial", "poisson" or "multinomial" model, by a formula.

        `prior_deviation` widens coefficients that nothing measured; see `analysis.glm`.
        """
        from counterpoise.analysis.glm import glm

        return glm(self, formula, family, prior_deviation)

    def effect(self, treatment: str, outcome: str, given: str) -> Estimate:
        """The average effect of a treatment, adjusted for terms such as "age + stay".

        `treatment` is true or false, or has two categories, the second of which is treated;
        `outcome` has numbers, or is true or false. Both are modelled by the terms in `given`.
        """
        from counterpoise.analysis.effects import effect

        return effect(self, treatment, outcome, given)

    def certificate(
        self,
        target: str,
        loss: str = "logistic",
        norm: float = 1.0,
        features: Sequence[str] | None = None,
        failure: float = 0.05,
        weighted: bool = True,
    ) -> Certificate:
        """How much worse a linear model trained here is, at most, than on the private rows.

        It comes from the noise of what was measured alone, and may be published.
        """
        from counterpoise.analysis.certificate import certificate

        return certificate(self, target, loss, norm, features, failure, weighted)

    def posterior(
        self,
        formula: str,
        family: str = "auto",
        prior: Prior | float | None = None,
        size: str | float = "combined",
        replicates: bool | None = None,
        chains: int = 4,
        draws: int = 1000,
        warmup: int = 300,
        seed: int | None = None,
    ) -> Posterior:
        """Draws from the weighted posterior of a regression; needs the extra `bayes`."""
        from counterpoise.analysis.posterior import posterior

        return posterior(
            self, formula, family, prior, size, replicates, chains, draws, warmup, seed
        )

    def resample(self, rows: int | None = None, seed: int | None = None) -> pd.DataFrame:
        """A table without weights: rows drawn in proportion to them."""
        from counterpoise.analysis.resampling import resample

        return resample(self, rows, seed)

    def duplicate(self, factor: float = 10.0) -> pd.DataFrame:
        """A table without weights: every row repeated in proportion to its own, rounded up."""
        from counterpoise.analysis.resampling import duplicate

        return duplicate(self, factor)

    def bootstrap(
        self,
        statistic: Callable[..., Any],
        takes_weights: bool = True,
        seed: int | None = None,
    ) -> Estimate | Estimates:
        """Any statistic of a table and its weights, with an interval."""
        from counterpoise.analysis.resampling import bootstrap

        return bootstrap(self, statistic, takes_weights, seed)

    def rehearse(
        self,
        runs: int = 10,
        seed: int | None = None,
        progress: bool | Callable[[str, float], None] = True,
    ) -> Rehearsal:
        """The release run again on its own rows, to see its bias and take it off; free.

        A rehearsal corrects estimates: `rehearsal.correct(lambda release: release.mean("age"))`.
        Each of the `runs` takes about as long as the release took without its replicates.
        """
        from counterpoise.curation.rehearse import rehearse

        return rehearse(self, runs, seed, progress)

    def unweighted(self) -> Release:
        """The release as if it had no weights; its estimates have no intervals."""
        rows = self.rows
        uniform = {
            "method": "uniform",
            "parameters": {},
            "effective_sample_size": float(rows),
            "largest_share": 1 / rows if rows else 0.0,
        }
        table: Any
        if self.stored is None:
            table = self.table.assign(**{WEIGHT: np.ones(rows)})
        else:
            table = replace(self.stored, is_uniform=True, replicates=0)
        model = {"saved": False, "reason": "its weights were set aside"}
        made = {"weights": uniform, "replicates": None, "model": model}
        card = without_target(self.card) | without_sums(self.card) | made
        return replace(self, table=table, card=card, replicates=None, models=None)

    def reweighted(
        self,
        weights: np.ndarray,
        replicates: np.ndarray | None = None,
        part: float | None = None,
    ) -> Release:
        """The release with other weights, such as refined ones, and a new verdict on them.

        `weights` has a number for each row, `replicates` is rows x R or None, and each column is
        brought to a mean of one. Without replicates there are no standard errors. `part` is how
        much of the way from the weights the replicates go: by default as much as the release's own
        do, which they are taken to be made of, or all of it if they are more or fewer.
        """
        from counterpoise.bundle.assemble import reweighted

        return reweighted(self, weights, replicates, part)

    def retarget(
        self,
        margins: Mapping[Any, Any] | Sequence[Mapping[str, Any]] | None = None,
        modifier: str | Callable[[pd.DataFrame], Any] | Sequence[float] | None = None,
        labelled: Any = None,
        label: str | None = None,
        population: float | None = None,
        seed: int | None = None,
    ) -> Release:
        """The release turned to another population by its weights; free.

        `margins` are known shares or means, as {"sex": {"F": 0.51, "M": 0.49}, "age": 41.3};
        `modifier` is a factor for every row: an expression over the columns, a function of the
        frame, or the factors themselves; `labelled` rows have some of the columns and a `label`,
        true for those in the target, or a factor above zero. `population` is the number of people
        in the target, for totals. `seed` is that of the learned factors in the replicates.
        """
        from counterpoise.analysis.retarget import retarget

        return retarget(self, margins, modifier, labelled, label, population, seed)

    def use_weights(self) -> Release:
        """The release with its weights accepted, whatever the verdict on them says."""
        return self.changed(accepted=True)

    def __repr__(self) -> str:
        stamp = ""
        if "ledger" not in self.card:
            stamp = ", no ledger"
        elif not self.card["ledger"]["private"]:
            stamp = ", NOT PRIVATE (seeded)"
        elif not self.private:
            stamp = f", {self.guarantee}"
        columns = len(self.schema)
        counted = rows_counted(self.card)
        kept = f", {counted}" if counted else ""
        return f"<Release: {self.rows:,} rows x {columns} columns{kept}{stamp}>"


# Not in the class, where it would be the default of a field that has none.
Release.table = TableWhenAsked("table")  # type: ignore[assignment]
