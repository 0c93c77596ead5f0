"""The account: what all releases of the same people cost together, in one file.

Every release has a ledger of its own. Those who are in the tables of several releases are protected
by what all of them spent, and that is kept here: a vault with an account charges it first, and
looks only once the charge is on the disk. All charges of all releases are added up by one ledger
under the account's budget, at one Renyi order that is fixed when the account is created, so that it
does not matter in which order releases ask, nor that later ones are planned in the light of earlier
ones (see `ledger`); looks of several processes are one sequence, in the order of their charges. A
course of many steps is charged whole before its first one.

A charge is one step under a lock of the file: read it whole, refuse what does not fit, write the
new file under another name, flush it, rename it. So two processes never pay with the same money; a
process that is killed leaves the file with its charge or without, and looks only in the first case;
and what was charged stays charged, though its answer may never come. A file that cannot be read,
believed, locked or written is an account from which nothing can be paid.
[PRIVACY: ground rules 2, 10 and 12]
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from counterpoise.arguments import instance_of, real_number
from counterpoise.disk import as_path, has_locks, only_one, plainly, require_file, write_whole
from counterpoise.errors import BudgetError, BundleError
from counterpoise.vault.account_file import Charge, Content, Terms
from counterpoise.vault.budget import MOST_EPSILON, Budget, Share, neighbours_name
from counterpoise.vault.domain import DELTA_FRACTION
from counterpoise.vault.events import PureDpEvent, ZCDpEvent
from counterpoise.vault.ledger import Ledger, Spend

# How long a charge waits for those of other processes, in seconds; each takes some milliseconds.
PATIENCE = 60.0

_LONGEST_NAME = 200
_SEARCH_STEPS = 60


class Account:
    """The account in a file that `create` made; it may be open in any number of processes.

    `wait` is for how many seconds a charge waits for its turn. Everything is read from the file
    when it is asked for, so that it is what all processes have spent by then.

    >>> import tempfile
    >>> from counterpoise.vault.events import GaussianDpEvent
    >>> folder = tempfile.TemporaryDirectory()
    >>> account = Account.create(Path(folder.name) / "people.account.json", 4.0, 1e-6)
    >>> account.charge("first", Spend("weights", "sums", GaussianDpEvent(2.0)))
    >>> round(account.ledger.epsilon_spent, 2), round(account.next_epsilon(), 2)
    (2.43, 2.99)
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, wait: float = PATIENCE):
        # A rename replaces a link by a file, and there would be two accounts.
        self._path = Path(os.path.realpath(as_path("account", path)))
        self._wait = real_number(
            "wait", wait, "a number from 0", BudgetError, above=0, inclusive=True
        )
        self._guard = threading.RLock()
        self._known: tuple[Content, Ledger] | None = None
        self._read()

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        epsilon: float,
        delta: float = 0.0,
        *,
        neighbours: str = "add-remove",
        max_rows_per_person: int | None = None,
        name: str = "",
        wait: float = PATIENCE,
    ) -> Account:
        """Create an account; nothing that is there already is replaced.

        All of its releases have its `neighbours` and `max_rows_per_person`, by default one. Its
        `name` is public: the cards of its releases carry it. A tenth of `delta` is set aside for
        lists of categories that releases pay for.
        """
        place = Path(os.path.realpath(as_path("account", path)))
        budget = Budget(epsilon, delta, neighbours, max_rows_per_person)  # type: ignore[arg-type]
        set_aside = Ledger(budget, True, DELTA_FRACTION * budget.delta).delta_set_aside
        title = instance_of("name", name, str, "a text", BudgetError)
        if len(title) > _LONGEST_NAME or not title.isprintable():
            raise BudgetError(f"name: expected one line of at most {_LONGEST_NAME} characters")
        terms = Terms(uuid.uuid4().hex[:12], title, _now(), budget, set_aside)
        with _alone(
            place, real_number("wait", wait, "a number", BudgetError, above=0, inclusive=True)
        ):
            if os.path.lexists(place):
                raise BundleError(f"account: {place} is there already; state another path")
            write_whole(place, lambda file: file.write(Content(terms).to_bytes()), lasting=True)
        return cls(place, wait=wait)

    @classmethod
    def of(cls, account: Account | str | os.PathLike[str]) -> Account:
        """An account, or the one in the file at a path."""
        return account if isinstance(account, Account) else cls(account)

    @property
    def id(self) -> str:
        """What tells the account from others; public."""
        return self._content.terms.id

    @property
    def name(self) -> str:
        """What it was named; public."""
        return self._content.terms.name

    @property
    def budget(self) -> Budget:
        """What all releases may spend together."""
        return self._content.terms.budget

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges so far, in order."""
        return self._read()[0].charges

    @property
    def ledger(self) -> Ledger:
        """All charges so far on one ledger, under the account's budget; a copy."""
        content, _ = self._read()
        return _ledger_of(content.terms, content.charges)

    @property
    def left(self) -> Share | None:
        """What is left, as a share; None when there is nothing."""
        return self._read()[1].left

    def next_epsilon(self, delta: float | None = None) -> float:
        """The largest epsilon that a release could have now, with this delta or the account's.

        That is one which spends zCDP, as all but the training of networks does: their noise is
        fitted to the release's budget, and may cost an account of another epsilon more or less.
        """
        left, budget = self.left, self.budget
        if left is None:
            return 0.0
        stated = budget.delta if delta is None else Budget(budget.epsilon, delta).delta
        if budget.is_pure:
            return left.amount if stated == 0 else 0.0
        low, high = 0.0, budget.epsilon
        while high < MOST_EPSILON and _fits(high, stated, left):
            # A smaller delta than the account's is worth a larger epsilon.
            low, high = high, min(2 * high, MOST_EPSILON)
        for _ in range(_SEARCH_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if _fits(middle, stated, left) else (low, middle)
        return low

    def require_terms(self, budget: Budget) -> None:
        """Refuse a release that means others by a neighbour than the account does."""
        own = self.budget
        if budget.neighbours is not own.neighbours:
            raise BudgetError(
                f"account: its neighbours are {neighbours_name(own.neighbours)!r}, and the "  # type: ignore[arg-type]
                f"release's {neighbours_name(budget.neighbours)!r}; they have to be the same"  # type: ignore[arg-type]
            )
        if budget.max_rows_per_person != own.max_rows_per_person:
            raise BudgetError(
                f"account: its max_rows_per_person is {own.max_rows_per_person}, and the "
                f"release's {budget.max_rows_per_person}; they have to be the same"
            )
        if own.is_pure and not budget.is_pure:
            raise BudgetError(
                "account: it has no delta, and the release has; leave the delta out, or create an "
                "account that has one"
            )

    def require_room(self, share: Share | None, threshold_delta: float = 0.0) -> None:
        """Refuse a release that is sure to come to its end before it is done.

        Nothing is set aside for it: another that runs at the same time may be quicker.
        """
        ledger = self._read()[1]
        spent = sum(spend.delta for spend in ledger.spends)
        if threshold_delta > ledger.delta_set_aside - spent:
            raise BudgetError(
                f"account: {ledger.delta_set_aside - spent:.2g} of its delta is left for lists of "
                f"categories, and the release sets {threshold_delta:.2g} aside for its own; state "
                "them in the schema, or release with a smaller delta"
            )
        if share is None:
            return
        event = PureDpEvent(share.amount) if share.pure else ZCDpEvent(share.amount)
        if not ledger.fits(event):
            raise BudgetError(
                f"account: the release does not fit what is left of it, which is enough for "
                f"epsilon {_rounded_down(self.next_epsilon())} at delta {self.budget.delta:g}; "
                "release with less"
            )

    def charge(self, release: str, spend: Spend) -> None:
        """Charge a spend of a release; when this returns, the disk has it. Raises, or charges."""
        with self._guard, self._alone():
            content, ledger = self._read()
            ledger.stage = spend.stage
            if not ledger.fits(spend.event, spend.delta):
                raise BudgetError(
                    f"{spend.query!r} would overspend the account: epsilon "
                    f"{ledger.epsilon_spent:.4g} of {self.budget.epsilon:g} is spent by all of its "
                    "releases; release with less"
                )
            more = content.with_charge(Charge(release, _now(), spend))
            with plainly(self._path):
                self._require_one_name()
            write_whole(self._path, lambda file: file.write(more.to_bytes()), lasting=True)
            ledger.spend(spend.query, spend.event, spend.delta)
            self._known = more, ledger

    def require_charges(self, release: str, spends: Sequence[Spend]) -> None:
        """Refuse a release that goes on from charges which the account does not have."""
        known = [charge.spend for charge in self.charges if charge.release == release]
        for spend in spends:
            if spend not in known:
                raise BudgetError(
                    "account: it lacks what this release has spent already, as if an older copy "
                    "had been put in its place; restore the newer one"
                )
            known.remove(spend)

    def to_frame(self) -> pd.DataFrame:
        """One row a release: when it charged first and last, how often, and its epsilon alone."""
        content, _ = self._read()
        rows = []
        for release in dict.fromkeys(charge.release for charge in content.charges):
            own = [charge for charge in content.charges if charge.release == release]
            rows.append(
                {
                    "release": release,
                    "first charge": _day(own[0].date),
                    "last charge": _day(own[-1].date),
                    "charges": len(own),
                    "epsilon alone": _ledger_of(content.terms, own).epsilon_spent,
                }
            )
        columns = ["release", "first charge", "last charge", "charges", "epsilon alone"]
        return pd.DataFrame(rows, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """The account as JSON values: its terms, its releases, what is spent and what is left."""
        content, ledger = self._read()
        return content.terms.to_dict() | {
            "releases": self.to_frame().to_dict("records"),
            "epsilon_spent": ledger.epsilon_spent,
            "next_epsilon": self.next_epsilon(),
        }

    def __str__(self) -> str:
        content, ledger = self._read()
        budget, frame = content.terms.budget, self.to_frame()
        unit = "record" if budget.max_rows_per_person == 1 else "person"
        named = f" {content.terms.name!r}" if content.terms.name else ""
        head = (
            f"account {content.terms.id}{named}, since {_day(content.terms.created)}\n"
            f"epsilon {ledger.epsilon_spent:.4g} of {budget.epsilon:g} spent, delta "
            f"{budget.delta:g}, {neighbours_name(budget.neighbours)} one {unit}"  # type: ignore[arg-type]
            + (f" of at most {budget.max_rows_per_person} rows" if unit == "person" else "")
        )
        table = frame.to_string(index=False, float_format="{:.4g}".format) if len(frame) else ""
        following = _rounded_down(self.next_epsilon())
        last = f"the next release could have epsilon {following} at delta {budget.delta:g}"
        return "\n".join(part for part in (head, table, last) if part)

    def __repr__(self) -> str:
        return f"<Account {self.id}: {str(self).splitlines()[1]}>"

    @property
    def _content(self) -> Content:
        # The terms never change, so what was read last is good for them.
        assert self._known is not None
        return self._known[0]

    def _alone(self) -> Any:
        return _alone(self._path, self._wait)

    def _read(self) -> tuple[Content, Ledger]:
        """What the file says now, and its charges on a ledger; nothing is believed unchecked."""
        with self._guard:
            require_file(self._path, BundleError)
            with plainly(self._path, "read"):
                self._require_one_name()
                raw = self._path.read_bytes()
            try:
                content = Content.from_bytes(raw)
                if self._known is not None and _goes_on(content, self._known[0]):
                    # A copy: of a file that is refused halfway nothing may stay.
                    ledger = copy(self._known[1])
                    _spend_all(ledger, content.charges[len(ledger.spends) :])
                else:
                    ledger = _ledger_of(content.terms, content.charges)
            except (ValueError, KeyError, TypeError, AttributeError, BudgetError, RecursionError):
                raise BundleError(
                    f"account: {self._path} is damaged, and nothing can be paid from it; restore "
                    "a copy that has all of its charges, or count its whole budget as spent"
                ) from None
            if self._known is not None and not _goes_on(content, self._known[0]):
                raise BudgetError(
                    "account: the file has lost charges that it had, or is that of another "
                    "account; restore the one that has all of them"
                )
            self._known = content, ledger
            return content, ledger

    def _require_one_name(self) -> None:
        if os.stat(self._path).st_nlink > 1:
            raise BundleError(
                f"account: {self._path} has a second name in the file system (a hard link), under "
                "which it would stay as it is; remove one of them"
            )


@contextmanager
def _alone(path: Path, wait: float) -> Iterator[None]:
    """Hold the lock of an account's file; without locks there is no account."""
    if not has_locks():
        raise BundleError("account: this system has no file locks, by which releases take turns")
    lock = path.with_name(f".{path.name}.counterpoise-lock")
    busy = f"account: {path} is in use by other releases"
    with plainly(path), only_one(lock, busy, wait=wait):
        yield


def _ledger_of(terms: Terms, charges: Sequence[Charge]) -> Ledger:
    ledger = Ledger(terms.budget, True, terms.threshold_delta)
    _spend_all(ledger, charges)
    return ledger


def _spend_all(ledger: Ledger, charges: Sequence[Charge]) -> None:
    for charge in charges:
        ledger.stage = charge.spend.stage
        ledger.spend(charge.spend.query, charge.spend.event, charge.spend.delta)


def _goes_on(content: Content, known: Content) -> bool:
    """Whether a file has all that was known of it, and maybe more."""
    count = len(known.digests)
    return content.terms == known.terms and content.digests[:count] == known.digests


def _fits(epsilon: float, delta: float, left: Share) -> bool:
    try:
        share = Budget(epsilon, delta).whole
    except BudgetError:
        # Too small a budget to be one, which the next larger may not be.
        return True
    if share.pure:
        # A pure epsilon is worth epsilon^2 / 2 in zCDP.
        return share.amount**2 / 2 <= left.amount
    return share.amount <= left.amount


def _rounded_down(value: float) -> str:
    """Four digits of a number, so that what is shown can be had."""
    shown = float(f"{value:.4g}")
    return f"{shown if shown <= value else value * (1 - 1e-3):.4g}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _day(moment: str) -> str:
    return moment[:16].replace("T", " ")
