"""What `release` and `weigh` have in common: a budget, a place to write, and what is said of it.

Both make a plan, show it, or carry it out in a working folder beside the output, save what was
made and tell of it. What is asked of the plan is each command's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from counterpoise.cli.console import echo
from counterpoise.cli.plan import Guess
from counterpoise.disk import plainly
from counterpoise.errors import BundleError

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release
    from counterpoise.curation.plan import Plan
    from counterpoise.vault import Account


def all_questions(asked: tuple[str, ...], file: Path | None) -> tuple[str, ...]:
    """The questions of the command line, and after them those of a file."""
    if file is None:
        return asked
    from counterpoise.formulas.questions import questions_in

    return (*asked, *questions_in(file))


@dataclass(frozen=True)
class Run:
    """The options that both commands take, under the names that click gives them."""

    schema_path: Path
    epsilon: float
    delta: float | None
    neighbours: str
    max_rows_per_person: int | None
    person: str | None
    account: Path | None
    replicates: int
    seed: int | None
    out: Path | None
    work: Path | None
    csv: bool
    csv_verbatim: bool
    overwrite: bool
    dry_run: bool
    private_rows: int | None
    private_persons: int | None
    as_json: bool
    quiet: bool
    verbose: bool

    def plan(self, planned: Callable[..., Plan], *request: Any, **options: Any) -> Plan:
        """The plan that `planned` makes of the schema, the budget and a request."""
        from counterpoise.cli.schema_settle import require_settled
        from counterpoise.curation.plan import check_person
        from counterpoise.schema import Schema
        from counterpoise.vault.budget import WHY_ROWS_ARE_STATED, Budget

        if self.person is None and self.private_persons is not None:
            raise click.UsageError(
                "--private-persons: rows are only left out where --person says whose they are"
            )
        if self.person is not None and self.max_rows_per_person is None:
            raise click.UsageError(
                f"--person: state --max-rows-per-person beside it: {WHY_ROWS_ARE_STATED}"
            )
        delta = 0.0 if self.delta is None else self.delta
        budget = Budget(self.epsilon, delta, self.neighbours, self.max_rows_per_person)  # type: ignore[arg-type]
        schema = Schema.read(self.schema_path)
        check_person(schema, self.person)
        require_settled(schema, self.schema_path)
        return planned(schema, budget, *request, person=self.person, **options)

    def carry_out(
        self,
        plan: Plan,
        make: Callable[..., Release],
        asked: Callable[[int, int | None, Account | None], dict[str, Any]],
        table: Path,
        rows: int | None = None,
    ) -> None:
        """Show the plan, or do what it says, save it and tell of it.

        `asked` is the request with the replicates, the seed and the account, `table` the private
        table; `rows` is how many private ones there may be, where nobody said.
        """
        from counterpoise.bundle.files import check_target
        from counterpoise.cli.console import notes
        from counterpoise.cli.plan import plan_lines, show_plan
        from counterpoise.cli.summary import show_release
        from counterpoise.curation.progress import lines
        from counterpoise.curation.unstated_delta import tell_of_delta

        if self.private_rows is not None or self.private_persons is not None:
            rows = self.private_rows
        guess = Guess(rows, self.private_persons)
        if self.dry_run:
            show_plan(plan, self.as_json, self.replicates, guess)
            account = self._show_account(plan)
            with notes(self.quiet):
                tell_of_delta(plan, account, self.delta)
            return
        if self.out is None:
            raise click.UsageError("state the folder to write with --out, or --dry-run")
        work = self.work or self.out.parent / f".{self.out.name}.work"
        for place in (self.out, work):
            check_parents(place)
        if not self.overwrite and (done := self._released(work, plan, asked, table)) is not None:
            show_release(done, self.out, self.as_json, self.quiet)
            return
        check_target(self.out, self.overwrite)
        if self.verbose:
            echo(plan_lines(plan, self.replicates, guess), err=True)
        with notes(self.quiet):
            made = make(
                schema=plan.released,
                epsilon=self.epsilon,
                delta=self.delta,
                replicates=self.replicates,
                neighbours=self.neighbours,
                max_rows_per_person=self.max_rows_per_person,
                person=self.person,
                account=self.account,
                seed=self.seed,
                progress=lines(plan) if self.verbose else not (self.quiet or self.as_json),
                work=work,
            )
            made.save(
                self.out,
                overwrite=self.overwrite,
                csv="verbatim" if self.csv_verbatim else self.csv,
            )
        show_release(made, self.out, self.as_json, self.quiet)

    def _released(
        self,
        work: Path,
        plan: Plan,
        asked: Callable[[int, int | None, Account | None], dict[str, Any]],
        table: Path,
    ) -> Release | None:
        """The release that the same request made before, if it is there and whole.

        What a kill left beside it is removed, and its page made where it is missing.
        """
        from counterpoise.bundle.descriptor import CSV, DESCRIPTOR, TABLE
        from counterpoise.bundle.files import has_page, load
        from counterpoise.cli.console import notes
        from counterpoise.curation.work import discard, is_begun, is_left_of, is_made_by
        from counterpoise.disk import only_writer
        from counterpoise.vault import Account

        assert self.out is not None
        wants_csv = self.csv or self.csv_verbatim
        if not (self.out / DESCRIPTOR).is_file() or (wants_csv and not (self.out / CSV).is_file()):
            return None
        account = None if self.account is None else Account.of(self.account)
        try:
            made = load(self.out)
            is_left = is_left_of(work, plan, made) or not is_begun(work)
        except BundleError:
            return None
        is_newer = table.exists() and _changed(table) > _changed(self.out / TABLE)
        if is_newer or not is_made_by(made, asked(self.replicates, self.seed, account)):
            return None
        if not self.quiet:
            echo(
                f"{self.out} is there, of this very request: nothing private was read or spent\n"
                "hint:  --overwrite makes another, which pays again",
                err=True,
            )
        with plainly(self.out):
            with only_writer(Path(os.path.realpath(self.out))):
                pass  # which has put right what was left beside it
            if is_left:
                discard(work)
            if not has_page(self.out):
                with notes(self.quiet):
                    made.add_page(self.out)
        return made

    def _show_account(self, plan: Plan) -> Account | None:
        """Say whether the account could pay for the plan; nothing is charged."""
        if self.account is None:
            return None
        from counterpoise.curation.stages import usable_account

        account = usable_account(self.account, plan, self.seed)
        assert account is not None
        if not self.as_json:
            echo(f"account {account.id} could pay for it")
        return account


def _changed(file: Path) -> int:
    """When a file was changed last."""
    return file.stat().st_mtime_ns


def check_parents(place: Path) -> None:
    """Refuse a folder within a file, before anything is spent."""
    for parent in place.parents:
        if parent.exists():
            if not parent.is_dir():
                raise BundleError(f"{parent} is a file, and no folder fits in it; state another")
            return
