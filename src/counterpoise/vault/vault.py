"""The vault: the one object that holds private rows, and answers with noise.

It is opened with a table, a public schema and a budget, charges each query to its ledger before
it looks, and is closed when the work is done. Nothing outside this room touches its storage;
what it returns holds noised answers only. There is one door, `_ask`, for one query at a time:
charge it, write the charge down, look behind the boundary, keep the answer.
[PRIVACY: ground rules 1 to 6, 10]
"""

from __future__ import annotations

import os
import threading
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from counterpoise.arguments import column_name, instance_of, seed_or_none
from counterpoise.errors import VaultError
from counterpoise.patience import patiently
from counterpoise.schema import Coded, Schema
from counterpoise.vault import bandwidth as bandwidth_query
from counterpoise.vault import bounds as bounds_query
from counterpoise.vault import categories as categories_query
from counterpoise.vault import cells as cells_query
from counterpoise.vault import counts as counts_query
from counterpoise.vault import descend as descend_query
from counterpoise.vault import domain as domain_query
from counterpoise.vault import minimise as minimise_query
from counterpoise.vault import objective as objective_query
from counterpoise.vault import persons as persons_query
from counterpoise.vault import points as points_query
from counterpoise.vault import quantiles as quantiles_query
from counterpoise.vault import select as select_query
from counterpoise.vault import sums as sums_query
from counterpoise.vault import totals as totals_query
from counterpoise.vault import votes as votes_query
from counterpoise.vault.account import Account
from counterpoise.vault.boundary import NeverCopied, behind, seal, unseal
from counterpoise.vault.budget import REPLACE, Budget, Share
from counterpoise.vault.course import Course
from counterpoise.vault.descent_plan import DescentPlan
from counterpoise.vault.events import DpEvent
from counterpoise.vault.journal import Journal, question
from counterpoise.vault.ledger import Ledger, Spend
from counterpoise.vault.noise import Noise
from counterpoise.vault.perturbation import NoiseLaw
from counterpoise.vault.point_scores import PointDistance
from counterpoise.vault.storage import People, Storage, StorageKind, open_storage

Answer = TypeVar("Answer", np.ndarray, list[str])
Seen = TypeVar("Seen")

# As many digits of a random number tell releases of one account apart.
_RUN_DIGITS = 12


class Vault(NeverCopied):
    """Private rows behind a ledger.

    `table` is a path to a CSV or Parquet file, a pandas, polars or Arrow table, a DuckDB relation,
    a frame of Spark's, or "spark:database.table", a table of the active session. `schema` is a
    `Schema`, a Table Schema dict, or the path of one; every value in it has to be public knowledge.
    `storage` is "memory", "duckdb" (a file or relation stays where it is, and may be larger than
    memory), "spark" or "auto": files below 64 MB go to memory. A `seed` makes the noise repeatable,
    for tests and teaching, and everything that comes out `private=False`. A `ledger` of earlier
    work under the same budget is carried on. With a `journal` every charge is on disk before the
    look, and an answer that was paid for earlier is given again, not drawn anew.
    With `person`, the name of a column that says whose a row is, at most the budget's
    `max_rows_per_person` rows of each person are used, and the budget has to state that number;
    else it is the curator's promise.
    The column is never coded or kept, and a row without a person is not used.
    With an `account`, or the path of one, every charge goes there first.
    Several threads may ask; one is answered at a time. A process that is forked gets no answers.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> table = pd.DataFrame({"sex": ["F", "M", "F", "F"]})
    >>> schema = Schema((Column.categorical("sex", ["F", "M"]),))
    >>> with Vault(table, schema, Budget(epsilon=50.0, delta=1e-6), seed=1) as vault:
    ...     [answer] = vault.counts([["sex"]], vault.budget.whole)
    >>> answer.values
    array([3, 1])
    >>> vault.counts([["sex"]], vault.budget.whole)
    Traceback (most recent call last):
    counterpoise.errors.VaultError: the vault is closed; open another to ask more
    """

    def __init__(
        self,
        table: Any,
        schema: Any,
        budget: Budget,
        *,
        storage: StorageKind = "auto",
        seed: int | None = None,
        ledger: Ledger | None = None,
        journal: Journal | None = None,
        person: str | None = None,
        account: Account | str | os.PathLike[str] | None = None,
    ):
        table = seal(table)  # from here on no frame shows it
        self._open_storage: Storage | None = None
        public = Schema.read(schema)
        public.require_public()
        # What is derived or made up is never looked for in the table.
        public = public.modelled
        # Spellings and the dialect serve to read the table; what comes out of it has neither.
        self.schema = public.as_released()
        self.budget = instance_of("budget", budget, Budget, "a Budget", VaultError)
        if ledger is not None:
            instance_of("ledger", ledger, Ledger, "a Ledger, or None", VaultError)
            if account is not None:
                raise VaultError("ledger: an account does not know its charges; state one of them")
        if journal is not None:
            instance_of("journal", journal, Journal, "a Journal, or None", VaultError)
        self._noise = Noise(seed_or_none(seed))
        self._journal = journal
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._is_looking = False
        # The last answer to `total`, which may be looked at again for nothing.
        self.counted_rows: totals_query.NoisyTotal | None = None
        # Courses of many steps hold rows while they are open, and end with the vault.
        self._courses: weakref.WeakSet[Course] = weakref.WeakSet()
        if journal is not None:
            if ledger is not None:
                raise VaultError("ledger: a journal has its own; state one of the two")
            ledger = journal.ledger()
        if ledger is None:
            set_aside = domain_query.threshold_delta(public, budget.delta)
            ledger = Ledger(budget, self._noise.private, threshold_delta=set_aside)
        self.ledger = ledger
        if self.ledger.budget != budget:
            raise VaultError("ledger: expected one under the budget that the vault is opened with")
        self.ledger.private = self.ledger.private and self._noise.private
        # What tells this work from other work on the same account.
        self._run = uuid.uuid4().hex if journal is None else journal.run
        self._account = None if account is None else self._usable(Account.of(account))
        people = None
        if person is not None:
            budget.require_stated_rows()
            people = People(column_name("person", person, VaultError), budget.max_rows_per_person)
        self.bounds_people = people is not None
        self._open_storage = behind(
            lambda: open_storage(unseal(table), public, storage, people), "opening the table"
        )

    @property
    def private(self) -> bool:
        """Whether what comes out is private: False when any noise came from a seed."""
        return self.ledger.private

    @property
    def charged_to(self) -> dict[str, str] | None:
        """The account that is charged, by its public id and name, and this work's number in it."""
        if self._account is None:
            return None
        run = self._run[:_RUN_DIGITS]
        return {"id": self._account.id, "name": self._account.name, "release": run}

    def counts(
        self, cliques: Sequence[Sequence[str]], share: Share
    ) -> list[counts_query.NoisyCounts]:
        """Noisy contingency tables over sets of columns; one event for all of them."""
        return counts_query.counts(self, cliques, share)

    def total(self, share: Share | None = None) -> totals_query.NoisyTotal:
        """The noisy number of rows; free when it is public (replace-one)."""
        return totals_query.total(self, share)

    def persons(self, share: Share) -> persons_query.NoisyPersons:
        """How many persons had all their rows kept, and how many had more; one event."""
        return persons_query.persons(self, share)

    def sums(
        self, features: sums_query.FeatureMap, bound: float, share: Share
    ) -> sums_query.NoisySums:
        """Noisy sums of features, each row clipped to norm `bound`; one event."""
        return sums_query.sums(self, features, bound, share)

    def minimise(
        self,
        features: sums_query.FeatureMap,
        bound: float,
        synthetic: Coded,
        share: Share,
        *,
        rows: float,
        regularisation: float,
        noise: NoiseLaw = "gaussian",
        scale: float | None = None,
        centre: np.ndarray | None = None,
        outputs: np.ndarray | None = None,
        loss: minimise_query.Loss | None = None,
    ) -> minimise_query.NoisyMinimiser:
        """A noisy linear classifier of private and synthetic rows; one event."""
        return minimise_query.minimise(
            self,
            features,
            bound,
            synthetic,
            share,
            rows=rows,
            regularisation=regularisation,
            noise=noise,
            scale=scale,
            centre=centre,
            outputs=outputs,
            loss=loss,
        )

    def minimise_perturbed(
        self,
        features: sums_query.FeatureMap,
        bound: float,
        synthetic: Coded,
        share: Share,
        *,
        rows: float,
        regularisation: float,
        centre: np.ndarray | None = None,
    ) -> objective_query.PerturbedMinimiser:
        """The same classifier with the noise in what is minimised; one pure event."""
        return objective_query.minimise_perturbed(
            self,
            features,
            bound,
            synthetic,
            share,
            rows=rows,
            regularisation=regularisation,
            centre=centre,
        )

    def descent(self, plan: DescentPlan) -> descend_query.Descent:
        """Noisy gradients of a network over private rows, step by step; one event for all steps."""
        return descend_query.descent(self, plan)

    def teachers(self, plan: votes_query.TeacherPlan) -> votes_query.Teachers:
        """Noisy votes of networks that are trained on parts of the private rows; one event."""
        return votes_query.teachers(self, plan)

    def select(
        self, candidates: Sequence[Sequence[str]], score: select_query.Score, share: Share
    ) -> int:
        """The index of a candidate with a high score; one exponential mechanism."""
        return select_query.select(self, candidates, score, share)

    def select_points(
        self,
        count: int,
        share: Share,
        *,
        candidates: Coded | None = None,
        rows: float | None = None,
        sampler: str = "exact",
        distance: PointDistance | None = None,
        repeats: int = 1,
        moves: int = points_query.MOVES,
    ) -> points_query.NoisyPoints:
        """Sets of points that stand for the private rows; one event for all choices."""
        return points_query.select_points(
            self,
            count,
            share,
            candidates=candidates,
            rows=rows,
            sampler=sampler,
            distance=distance,
            repeats=repeats,
            moves=moves,
        )

    def select_bandwidth(
        self, points: Coded, widths: Sequence[float], share: Share, law: str = "exponential"
    ) -> float:
        """A bandwidth for a kernel density around public points; one event."""
        return bandwidth_query.select_bandwidth(self, points, widths, share, law)

    def quantiles(
        self, column: str, probabilities: Sequence[float], share: Share
    ) -> quantiles_query.NoisyQuantiles:
        """Quantiles of a numeric column; one exponential mechanism a level of halving."""
        return quantiles_query.quantiles(self, column, probabilities, share)

    def bounds(self, column: str, share: Share) -> bounds_query.NoisyBounds:
        """Bounds of a column that the schema leaves open; one event."""
        return bounds_query.bounds(self, column, share)

    def categories(
        self, column: str, share: Share, delta: float
    ) -> categories_query.NoisyCategories:
        """Frequent categories of a column that the schema leaves open; one event and `delta`."""
        return categories_query.categories(self, column, share, delta)

    def learn_domain(self, share: Share, delta: float = 0.0) -> Schema:
        """Pay for all that the schema leaves open, and go on with the complete schema."""
        return domain_query.learn_domain(self, share, delta)

    def choose_bins(self, share: Share | None = None) -> Schema:
        """Choose the number of bins where none is stated, by the number of rows; see `total`."""
        return cells_query.choose_bins(self, share)

    def choose_cells(self, share: Share, rows_share: Share | None = None) -> Schema:
        """Choose fine and coarse cells where no bins are stated; two events, and see `total`."""
        return cells_query.choose_cells(self, share, rows_share)

    def require_rows(self, method: str) -> None:
        """Refuse a method that needs the rows themselves where they stay away; charges nothing."""
        with self._lock:
            self._storage.require_batches(method)

    def close(self) -> None:
        """Let go of the private rows; a closed vault answers nothing."""
        with self._lock:
            for course in list(self._courses):
                course.close()
            if self._open_storage is not None:
                behind(self._open_storage.close, "closing the table")
                self._open_storage = None

    def __enter__(self) -> Vault:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._open_storage is None else "open"
        return f"<Vault, {state}: {', '.join(self.schema.names)}; {self.ledger!r}>"

    @property
    def _storage(self) -> Storage:
        self._require_open()
        assert self._open_storage is not None
        return self._open_storage

    def _ask(
        self,
        query: str,
        event: DpEvent,
        look: Callable[[Storage, Noise], Answer],
        asked: Mapping[str, Any] | None = None,
        *,
        delta: float = 0.0,
    ) -> Answer:
        """The one door: charge, write the charge down, look, keep the answer.

        `look` gets the private rows and returns what is noised; `asked` is what, beside the query's
        name and its charge, tells it from others. A closed vault charges nothing.
        """
        with self._lock:
            self._require_idle(query)
            spend = Spend(self.ledger.stage, query, event, delta)
            wanted = question(spend.stage, spend.to_dict(), asked or {})
            if self._journal is not None:
                known = self._journal.answer(wanted)
                if known is not None:
                    return known  # type: ignore[return-value]
            with patiently(wait=self._journal is not None):
                self._charge(spend)
                if self._journal is not None:
                    self._journal.charge(spend, wanted)
                answer = self._look(query, look)
                if self._journal is not None:
                    self._journal.keep(answer)
            return answer

    def _pay(self, query: str, event: DpEvent, asked: Mapping[str, Any]) -> int | None:
        """Charge all looks of a course before the first; its number in the journal, if any.

        A course that an earlier run has paid for is not charged again.
        """
        with self._lock:
            self._require_idle(query)
            spend = Spend(self.ledger.stage, query, event)
            wanted = question(spend.stage, spend.to_dict(), asked)
            paid = None if self._journal is None else self._journal.resume(wanted)
            if paid is not None:
                return paid
            with patiently(wait=self._journal is not None):
                self._charge(spend)
                return None if self._journal is None else self._journal.start(spend, wanted)

    def _charge(self, spend: Spend) -> None:
        """Charge the account, where there is one, and the ledger; or raise, and charge neither."""
        # What the ledger refuses is not charged to the account, which forgets nothing.
        if self._account is not None and self.ledger.fits(spend.event, spend.delta):
            self._account.charge(self._run[:_RUN_DIGITS], spend)
        self.ledger.spend(spend.query, spend.event, spend.delta)

    def _usable(self, account: Account) -> Account:
        """The account, once it is clear that it pays for such work."""
        if not self.private:
            raise VaultError(
                "account: what comes from a seed is not private, and is never charged; leave out "
                "the seed, or the account"
            )
        account.require_terms(self.budget)
        account.require_charges(self._run[:_RUN_DIGITS], self.ledger.spends)
        unspent = self.ledger.delta_set_aside - sum(spend.delta for spend in self.ledger.spends)
        account.require_room(self.ledger.left, unspent)
        return account

    def _look(self, query: str, look: Callable[[Storage, Noise], Seen]) -> Seen:
        """Look at the rows, once what it costs has been charged; one look at a time."""
        with self._lock:
            self._require_idle(query)
            storage = self._storage
            self._is_looking = True
            try:
                return behind(lambda: look(storage, self._noise), query)
            finally:
                self._is_looking = False

    def _require_idle(self, query: str) -> None:
        self._require_open()
        if self._is_looking:
            raise VaultError(f"{query!r}: a query cannot be asked from within another one")

    def _public_rows(self) -> int:
        """The number of rows, where it is public."""
        if self.budget.neighbours is not REPLACE:
            raise VaultError("the number of rows is private under add/remove")
        with self._lock:
            return behind(self._storage.rows, "number of rows")

    def _require_portable(self, work: Any) -> None:
        """Refuse what cannot be sent to where the rows are."""
        with self._lock:
            self._storage.require_portable(work)

    def _require_unsettled(self) -> None:
        """Refuse when it is too late to say more of the domain."""
        with self._lock:
            self._storage.require_uncoded()

    def _require_open(self) -> None:
        if os.getpid() != self._process:
            # Its budget would be spent twice, and noise that was drawn ahead come twice.
            raise VaultError("the vault was opened by another process; open one where it is asked")
        if self._open_storage is None:
            raise VaultError("the vault is closed; open another to ask more")

    def _settle(self, schema: Schema) -> None:
        """Go on with a schema whose open parts have been paid for."""
        schema.require_complete()
        with self._lock:
            self._storage.settle(schema)
            self.schema = schema
