"""The plan of a release: its methods and shares, fixed and checked before anything is read.

Where persons are bounded, a small part goes to how many of them have more rows than are kept. The
domain stage pays for bounds and categories that the schema leaves open; where no bins are
stated, for the number of rows by which they are chosen, and for a fine histogram of each such
column and of long lists of categories, unless bins of equal width are asked for. The weights get
their part unless their method is free, the synthesizer the rest; where the number of rows is known
first, it says how large that part is, within what is planned here (see `weights_share`). Whatever
can be wrong with a request is found here, so that a mistake costs no budget.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from counterpoise.arguments import (
    column_name,
    instance_of,
    plain_text,
    real_number,
    truth_value,
    whole_number,
)
from counterpoise.bundle.models import model_type
from counterpoise.curation.best_synthesizer import best_synthesizer
from counterpoise.errors import BudgetError, MethodError, SchemaError
from counterpoise.formulas.questions import Question, read_questions
from counterpoise.registry import only_as_instance
from counterpoise.schema import Schema
from counterpoise.schema.feasibility import require_possible
from counterpoise.synthesizers import SYNTHESIZERS, Histogram, SupportPoints, Synthesizer
from counterpoise.synthesizers.protocol import MOST_ROWS
from counterpoise.vault import REPLACE, Budget, People, Share, threshold_delta
from counterpoise.weights import WEIGHTERS, Moments, Weighter
from counterpoise.weights.discriminator import has_critic
from counterpoise.weights.replicates import MOST_REPLICATES

if TYPE_CHECKING:
    from counterpoise.curation.outlook import Stage

# The part of the budget that the domain gets when any of it is paid for.
DOMAIN_FRACTION = 0.1

# The part that the number of rows gets, when bins or cells are to be chosen by it.
ROWS_FRACTION = 0.01

# The part that the fine histograms get, by which cells of numbers and groups of categories are
# chosen.
CELLS_FRACTION = 0.15

# The part that goes to how many persons have more rows than are kept. Of whole persons, so that
# their rows do not multiply the noise: at epsilon 1 and delta 1e-6 its deviation is 45 persons. All
# other noise grows by half of a hundredth (by a hundredth, where delta is 0). A round number, the
# same as for the number of rows; not studied.
PERSONS_FRACTION = 0.01

# The part of what is then left that the weights get at most, when their method needs any: the best
# of the shares that the study tried on small tables (docs/methods/choosing-weights.md).
WEIGHTS_FRACTION = 0.2

# The same where they are asked questions: these are answered by the weights' sum.
ASKED_FRACTION = 0.4


@dataclass(frozen=True)
class Plan:
    """What will be asked of the vault; a share is None for a stage that asks nothing.

    The synthesizer is None when only weights are asked for. `schema` has the modelled columns
    alone; `released` is what was stated, with all its rules.
    """

    schema: Schema
    released: Schema
    budget: Budget
    synthesizer: Synthesizer | None
    weighter: Weighter
    domain_share: Share | None
    chooses_bins: bool
    rows_share: Share | None  # for the number of rows, by which bins or cells are chosen
    cells_share: Share | None  # for fine histograms, where they are asked for
    synthesizer_share: Share | None
    weights_share: Share | None
    threshold_delta: float  # the part of delta set aside for private lists of categories
    split: float | None  # the weights' part of what domain and cells leave
    splits_by_rows: bool = False  # whether the number of rows, once known, makes it smaller
    rows: int | None = None  # how many synthetic rows; None for as many as there are private ones
    person: str | None = None  # the column that says whose a row is, where persons are bounded
    persons_share: Share | None = None  # for how many persons have more rows than are kept

    @property
    def most_split(self) -> float:
        """The largest part that the weights get by themselves."""
        return ASKED_FRACTION if getattr(self.weighter, "questions", ()) else WEIGHTS_FRACTION

    @property
    def questions(self) -> tuple[str, ...]:
        """What was asked for in advance, as texts."""
        own = (getattr(method, "questions", ()) for method in (self.synthesizer, self.weighter))
        return tuple(dict.fromkeys(question for questions in own for question in questions))

    def describe(
        self,
        private_rows: int | None = None,
        replicates: int = 80,
        private_persons: int | None = None,
    ) -> tuple[Stage, ...]:
        """The stages, with their shares, mechanisms, noise, time and memory; nothing is read.

        `private_rows` is a guess at the number of rows, from which the noise on a mean, the time
        and the memory follow. Where persons are bounded, `private_persons` is one at theirs: no
        more rows are kept than that many times `max_rows_per_person`, and without it all are.
        """
        from counterpoise.curation.outlook import rows_guessed, stages_of

        guessed = rows_guessed(self, private_rows, private_persons)
        replicates = whole_number("replicates", replicates, 0, MOST_REPLICATES)
        return stages_of(self, guessed, replicates)


def plan_release(
    schema: Any,
    budget: Budget,
    synthesizer: str | Synthesizer = "auto",
    weights: str | Weighter = "moments",
    rows: int | None = None,
    target: str | None = None,
    split: float | None = None,
    fine: bool = True,
    questions: Sequence[str | Question] | None = None,
    person: str | None = None,
) -> Plan:
    """Check a request and share the budget; the shares add up to no more than all of it.

    >>> from counterpoise.schema import Column
    >>> schema = Schema([Column.boolean("ill"), Column.integer("children", 0, 7)])
    >>> plan = plan_release(schema, Budget(1.0, 1e-6), target="ill")
    >>> plan.synthesizer, plan.weighter
    (Histogram(most_cells=2000000, parts=True), Moments(target='ill', blocks=None, questions=()))
    >>> round(plan.weights_share.amount / plan.budget.whole.amount, 3)
    0.2
    """
    released = _checked_schema(schema, budget, person)
    require_possible(released)
    public = released.modelled
    rows = None if rows is None else whole_number("rows", rows, most=MOST_ROWS)
    is_auto = isinstance(synthesizer, str) and plain_text(synthesizer) == "auto"
    chosen = best_synthesizer(public, budget) if is_auto else synthesizer
    method = SYNTHESIZERS.make(chosen)
    if hasattr(method, "is_free"):
        raise MethodError("synthesizer: this is a way to weigh rows; state it as `weights`")
    if isinstance(method, SupportPoints):
        method = method.for_rows(rows)
    if budget.is_pure and _needs_delta(method):
        raise BudgetError(
            f"synthesizer {SYNTHESIZERS.name_of(method)!r} needs delta > 0: state a delta, such as "
            "1e-9, or choose 'privbayes'"
        )
    if isinstance(method, Histogram) and public.is_complete:
        method.check(public)
    weighter = _checked_weighter(weights, budget)
    _check_critic(weighter, model_type(type(method)))
    if target is not None:
        _check_target(released, target)
        if not (_takes(method, "target") or _takes(weighter, "target")):
            raise MethodError(
                "target: none of the chosen methods takes one; leave it out, or choose the "
                "synthesizer 'aim' or the weights 'moments'"
            )
        method, weighter = _aimed(method, target), _aimed(weighter, target)
    asked = read_questions(questions, released)
    if asked:
        if not (_takes(method, "questions") or _takes(weighter, "questions")):
            raise MethodError(
                "questions: none of the chosen methods takes any; leave them out, or choose the "
                "synthesizer 'aim' or the weights 'moments'"
            )
        method, weighter = _asked(method, asked), _asked(weighter, asked)
    _check_methods(public, budget, method, weighter)
    if split is not None:
        split = real_number("split", split, "a number between 0 and 1", above=0, below=1)
    set_aside = threshold_delta(public, budget.delta)
    whole = budget.whole_beside(set_aside)
    domain_part = 0.0 if public.is_complete else DOMAIN_FRACTION
    has_fine = truth_value("fine", fine) and any(column.has_open_cells for column in public)
    cells_part = CELLS_FRACTION if has_fine else 0.0
    chooses_bins = has_fine or any(column.has_open_bins for column in public)
    # The number of rows is public when records are replaced, and costs nothing then.
    rows_part = ROWS_FRACTION if chooses_bins and budget.neighbours is not REPLACE else 0.0
    persons_part = 0.0 if person is None else PERSONS_FRACTION
    rest = 1 - domain_part - cells_part - rows_part - persons_part
    usual = ASKED_FRACTION if getattr(weighter, "questions", ()) else WEIGHTS_FRACTION
    of_rest = 0.0 if weighter.is_free else usual if split is None else split
    weights_part = of_rest * rest
    return Plan(
        schema=public,
        released=released,
        budget=budget,
        synthesizer=method,
        weighter=weighter,
        domain_share=whole.part(domain_part) if domain_part else None,
        chooses_bins=chooses_bins,
        cells_share=whole.part(cells_part) if cells_part else None,
        rows_share=whole.part(rows_part) if rows_part else None,
        synthesizer_share=whole.part(rest - weights_part),
        weights_share=whole.part(weights_part) if weights_part else None,
        threshold_delta=set_aside,
        split=of_rest or None,
        splits_by_rows=(
            split is None
            and isinstance(weighter, Moments)
            and (rows_part > 0 or budget.neighbours is REPLACE)
        ),
        rows=rows,
        person=person,
        persons_share=whole.part(persons_part) if persons_part else None,
    )


def plan_weigh(
    schema: Any,
    budget: Budget,
    method: str | Weighter = "moments",
    target: str | None = None,
    questions: Sequence[str | Question] | None = None,
    person: str | None = None,
) -> Plan:
    """Check a request for weights alone; the budget is theirs, but for a count of bounded persons.

    The schema has to be complete: the synthetic table was made by one that was. Bins that it
    leaves open matter only to features of cells, and are as many as `Column` takes by itself.

    >>> from counterpoise.schema import Column
    >>> plan = plan_weigh(Schema([Column.boolean("ill")]), Budget(1.0, 1e-6))
    >>> plan.weights_share == plan.budget.whole
    True
    """
    released = _checked_schema(schema, budget, person)
    public = released.modelled
    open_columns = ", ".join(repr(column.name) for column in public if not column.is_complete)
    if open_columns:
        raise SchemaError(
            f"the schema leaves something of {open_columns} open, and the weights do not pay for "
            "it; state it as the tool knew it that made the synthetic table"
        )
    weighter = _checked_weighter(method, budget)
    _check_critic(weighter, None)
    if target is not None:
        _check_target(released, target)
        if not _takes(weighter, "target"):
            raise MethodError(
                "target: these weights take none; leave it out, or choose the weights 'moments'"
            )
        weighter = _aimed(weighter, target)
    asked = read_questions(questions, released)
    if asked:
        if not _takes(weighter, "questions"):
            raise MethodError(
                "questions: these weights take none; leave them out, or choose the weights "
                "'moments'"
            )
        weighter = _asked(weighter, asked)
    _check_methods(public, budget, weighter)
    # Weights that ask nothing say nothing of private rows, and so not of which were kept.
    persons_part = 0.0 if person is None or weighter.is_free else PERSONS_FRACTION
    whole = budget.whole
    return Plan(
        schema=public,
        released=released,
        budget=budget,
        synthesizer=None,
        weighter=weighter,
        domain_share=None,
        chooses_bins=False,
        rows_share=None,
        cells_share=None,
        synthesizer_share=None,
        weights_share=None if weighter.is_free else whole.part(1 - persons_part),
        threshold_delta=0.0,
        split=None,
        person=person,
        persons_share=whole.part(persons_part) if persons_part else None,
    )


def _check_names(schema: Schema) -> None:
    """The release adds the columns `weight`, `weight_1`, `weight_2` and so on."""
    for name in schema.names:
        if re.fullmatch(r"weight(_\d+)?", name.casefold()):
            raise MethodError(
                f"column {name!r}: the release needs this name for weights; rename it"
            )


def check_person(schema: Schema, person: str | None) -> None:
    """Refuse a column of persons that would be counted.

    Before what the schema leaves open is: that need not be settled for a column that has to go.
    """
    if person is not None:
        People(column_name("person", person), 1).require_apart(schema.modelled)


def _check_open_parts(schema: Schema, budget: Budget) -> None:
    """What is missing has to be marked as paid for: an oversight must not spend budget."""
    paid = set(schema.paid)
    for column in schema:
        if any((column.name, key) not in paid for key in column.missing):
            column.require_complete()
        if budget.is_pure and "enum" in column.missing:
            raise BudgetError(
                f"the categories of {column.name!r} can only be paid for with delta > 0: state "
                "them in the schema, or state a delta, such as 1e-9"
            )


def _checked_schema(schema: Any, budget: Budget, person: str | None) -> Schema:
    instance_of("budget", budget, Budget, "a Budget", BudgetError)
    if person is not None:
        budget.require_stated_rows()
    public = Schema.read(schema)
    check_person(public, person)
    public.require_public()
    _check_names(public)
    _check_open_parts(public, budget)
    return public


def _checked_weighter(weights: str | Weighter, budget: Budget) -> Weighter:
    if isinstance(weights, str) and (given := only_as_instance(WEIGHTERS.get(weights))):
        raise MethodError(f"weights {weights!r} cannot be had by name: {given}")
    weighter = WEIGHTERS.make(weights)
    if budget.is_pure and _needs_delta(weighter):
        raise BudgetError(
            f"weights {WEIGHTERS.name_of(weighter)!r} need delta > 0: state a delta, such as 1e-9, "
            "or choose 'moments'; in Python, noise='laplace' does without a delta too"
        )
    return weighter


def check_seed(plan: Plan, seed: int | None) -> None:
    """Refuse methods that look without noise, before anything is paid for, if nothing stamps it."""
    rooms: tuple[tuple[Any, Any], ...] = (
        (SYNTHESIZERS, plan.synthesizer),
        (WEIGHTERS, plan.weighter),
    )
    for registry, method in rooms:
        if getattr(method, "needs_seed", False) and seed is None:
            raise MethodError(
                f"{registry.name_of(method)!r} looks at private rows without noise; state a seed, "
                "which stamps the release as not private, or choose another method"
            )


def _check_methods(schema: Schema, budget: Budget, *methods: Any) -> None:
    """Let methods that can tell refuse a schema or a budget, before anything is paid for."""
    for method in methods:
        if hasattr(method, "check_plan"):
            method.check_plan(schema, budget)


def _check_critic(weighter: Weighter, made_by: type | None) -> None:
    """Refuse weights of a critic, before anything is paid for, where the rows will have none."""
    if getattr(weighter, "needs_critic", False) and not has_critic(made_by):
        raise MethodError(
            f"weights {WEIGHTERS.name_of(weighter)!r} ask the critic of the GAN that made the "
            "rows; choose the synthesizer 'dpgan', 'dpcgan' or 'pategan', or other weights"
        )


def _needs_delta(method: Any) -> bool:
    """Whether a method says that it needs delta > 0, by its mark or by its choice of noise."""
    return bool(getattr(method, "needs_delta", False)) or (
        getattr(method, "noise", None) == "gaussian"
    )


def _takes(method: Any, name: str) -> bool:
    return is_dataclass(method) and any(field.name == name for field in fields(method))


def _check_target(schema: Schema, target: Any) -> None:
    name = column_name("target", target)
    if not schema[name].is_modelled:
        raise MethodError(
            f"target: {name!r} is not asked of the private table; name a column that is neither "
            "derived nor an identifier"
        )


def _aimed(method: Any, target: str) -> Any:
    """The method with the target, if it takes one; its own has to be the same."""
    if not _takes(method, "target"):
        return method
    if method.target not in (None, target):
        raise MethodError(
            f"target: {type(method).__name__} has a target of its own, {method.target!r}, and "
            f"target={target!r} is another; state one of them"
        )
    return replace(method, target=target)


def _asked(method: Any, questions: tuple[str, ...]) -> Any:
    """The method with the questions beside its own, if it takes any."""
    if not _takes(method, "questions"):
        return method
    return replace(method, questions=tuple(dict.fromkeys((*method.questions, *questions))))
