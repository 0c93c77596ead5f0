"""`evaluate`: everything that a curator wants to know of a release before it is published.

Distances, tables, models and attacks are tasks without order, done by threads: private rows are
never handed to another process, nor written to be shared with one. It spends no budget, because
nothing of it may leave the curator; see `confidential`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import counterpoise
from counterpoise.arguments import column_name, truth_value, whole_number
from counterpoise.bundle.card import CHOSEN_FROM
from counterpoise.bundle.release import Release
from counterpoise.errors import CounterpoiseError, CounterpoiseWarning
from counterpoise.evaluation import statistics
from counterpoise.evaluation.certificates import exact_certificate, excess_risk
from counterpoise.evaluation.coefficients import compare_coefficients
from counterpoise.evaluation.compared import Compared, compare, plain_frame
from counterpoise.evaluation.measured import DISTANCES, TAKEN
from counterpoise.evaluation.models import LINEAR, MODELS, measures_of, train_and_test
from counterpoise.evaluation.progress import Progress, shown
from counterpoise.evaluation.result import Evaluation
from counterpoise.evaluation.utility import coefficient_error
from counterpoise.schema import Coded
from counterpoise.schema.tables import read_table

# Sets of three columns whose tables are compared.
TRIPLES = 50
# More columns than this are not all predicted from the others.
MOST_PREDICTED = 30
# The part of the private rows that models are tested on where there is no hold-out.
TESTED = 0.25
# A column of which more private values than this have no place in the schema is told of.
STRANGE = 0.01
SIDES = ("private", "unweighted", "weighted")

Task = Callable[[], Any]


def evaluate(
    release: Release,
    private: Any,
    holdout: Any = None,
    *,
    schema: Any = None,
    targets: str | Sequence[str] | None = None,
    attacks: bool = True,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | Progress = True,
) -> Evaluation:
    """Compare a release with the private rows that it was made of. The result is confidential.

    `private` and `holdout` are files or tables as for `cp.release`; the hold-out has rows of the
    same population that the release never saw. `schema` is the one that the release was made
    with, needed where it says how a file is spelled. All models predict the `targets`, by default
    the target that the release was told of, or else the last column; the linear one predicts every
    column. Nothing is charged: what comes out may not be published.

    >>> import pandas as pd, counterpoise as cp
    >>> rows = pd.DataFrame({"age": range(100), "ill": [False, False, True, False] * 25})
    >>> schema = cp.Schema([cp.Column.integer("age", 0, 99), cp.Column.boolean("ill")])
    >>> made = cp.release(rows, schema, 1.0, seed=1)
    >>> found = cp.evaluate(made, rows, attacks=False, workers=1)
    >>> found.worst("columns")["columns"].tolist()
    ['ill', 'age']
    """
    seed = whole_number("seed", seed, 0, 2**32 - 1)
    attacks = truth_value("attacks", attacks)
    workers = whole_number("workers", os.cpu_count() if workers is None else workers)
    compared = compare(release, private, holdout, schema, seed)
    chosen = _targets(release, compared, targets)
    _warn_of_strange_values(compared)
    tasks: dict[tuple[str, ...], Task] = {}
    for name, take in TAKEN.items():
        for side, tables in _sides(compared).items():
            tasks["distances", name, side] = partial(take, *tables, seed)
    tasks["marginals",] = lambda: statistics.marginal_distances(compared, TRIPLES, seed)
    tasks["statistics",] = lambda: statistics.column_statistics(compared)
    tasks["shares",] = lambda: statistics.cell_shares(compared)
    tasks["correlations",] = lambda: statistics.correlations(compared)
    tasks |= _model_tasks(compared, chosen, seed)
    plain = _plain(compared, private, holdout, schema)
    for target in chosen:
        tasks["certificates", target] = partial(_certificates, release, plain[0], target)
    if attacks:
        tasks["attacks",] = lambda: _attacks(release, *plain, seed)
    with shown(progress) as said:
        found = _done(tasks, workers, said)
    return Evaluation(
        about=_about(release, compared, chosen, seed),
        distances=_distances(found),
        marginals=found["marginals",],
        statistics=found["statistics",],
        shares=found["shares",],
        correlations=found["correlations",],
        utility=_utility(compared, found, chosen),
        coefficients=_coefficients(found, chosen),
        certificates=pd.concat(
            [found["certificates", target] for target in chosen], ignore_index=True
        ),
        attacks=found.get(("attacks",), pd.DataFrame(columns=list(ATTACK_COLUMNS))),
    )


ATTACK_COLUMNS = (
    *("attack", "measure", "columns", "value", "low", "high"),
    *("baseline", "baseline_low", "baseline_high", "says"),
)


def _done(tasks: dict[tuple[str, ...], Task], workers: int, said: Progress) -> dict[Any, Any]:
    """The results of all tasks, by as many threads; libraries' own threads only get in the way."""
    found: dict[Any, Any] = {}
    with threadpool_limits(1):
        if workers == 1:
            for place, (key, task) in enumerate(tasks.items()):
                said(key[0], place / len(tasks))
                found[key] = task()
            said("done", 1.0)
            return found
        with warnings.catch_warnings(), ThreadPoolExecutor(workers) as pool:
            # Filters are shared by all threads: one that puts its own back would end another's.
            for quiet in (ConvergenceWarning, CounterpoiseWarning):
                warnings.simplefilter("ignore", quiet)
            # What takes longest goes first, so that nothing long is left for the end.
            order = sorted(
                tasks, key=lambda key: key[0] not in ("attacks", "certificates", "models")
            )
            waiting = {pool.submit(tasks[key]): key for key in order}
            try:
                for place, future in enumerate(as_completed(waiting)):
                    found[waiting[future]] = future.result()
                    said(waiting[future][0], (place + 1) / len(tasks))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return found


def _targets(
    release: Release, compared: Compared, targets: str | Sequence[str] | None
) -> tuple[str, ...]:
    names = compared.schema.names
    if targets is None:
        parts = (release.card.get(part) or {} for part in ("weights", "synthesizer"))
        stated = [(part.get("parameters") or {}).get("target") for part in parts]
        return (next((name for name in stated if name in names), names[-1]),)
    listed = [targets] if isinstance(targets, str) else targets
    found = tuple(column_name("targets", name) for name in listed)
    for name in found:
        compared.schema.index(name)
    return found


def _warn_of_strange_values(compared: Compared) -> None:
    strange = [name for name, share in compared.unplaced.items() if share > STRANGE]
    if strange:
        listed = ", ".join(map(repr, strange[:6])) + (" and more" if len(strange) > 6 else "")
        warnings.warn(
            f"the schema of the release has no place for some private values of {listed}; if they "
            "are only spelled differently, state the schema that the release was made with",
            CounterpoiseWarning,
            stacklevel=3,
        )


def _sides(compared: Compared) -> dict[str, tuple[Coded, Coded, np.ndarray | None]]:
    return {
        "unweighted": (compared.synthetic, compared.private, None),
        "weighted": (compared.synthetic, compared.private, compared.weights),
        "floor": (*compared.floor, None),
    }


def _distances(found: dict[Any, Any]) -> pd.DataFrame:
    sides = {
        side: {
            name: value
            for key, values in found.items()
            if key[0] == "distances" and key[2] == side
            for name, value in values.items()
        }
        for side in ("unweighted", "weighted", "floor")
    }
    lines = [
        (each.name, *(sides[side][each.name] for side in sides), each.better, each.says)
        for each in DISTANCES
    ]
    return pd.DataFrame(lines, columns=["measure", *sides, "better", "says"])


def _model_tasks(
    compared: Compared, targets: tuple[str, ...], seed: int
) -> dict[tuple[str, ...], Task]:
    if len(compared.schema) < 2:
        return {}
    if compared.holdout is not None:
        trained, test = compared.private, compared.holdout
    else:
        order = np.random.default_rng(seed).permutation(len(compared.private))
        part = int(len(order) * TESTED)
        test = compared.private.take(order[:part])
        trained = compared.private.take(order[part:])
    tables = {
        "private": (trained, None),
        "unweighted": (compared.synthetic, None),
        "weighted": (compared.synthetic, compared.weights),
    }
    tasks: dict[tuple[str, ...], Task] = {}
    predicted = dict.fromkeys([*targets, *compared.schema.names[:MOST_PREDICTED]])
    for target in predicted:
        for model in MODELS if target in targets else (LINEAR,):
            for side, (table, weights) in tables.items():
                tasks["models", target, model, side] = partial(
                    train_and_test, table, test, target, model, weights, seed=seed
                )
    for target in targets:
        tasks["coefficients", target] = partial(compare_coefficients, compared, target)
        for side, weights in (("unweighted", None), ("weighted", compared.weights)):
            tasks["errors", target, side] = partial(
                coefficient_error, compared.synthetic, compared.private, target, weights
            )
    return tasks


def _utility(compared: Compared, found: dict[Any, Any], targets: tuple[str, ...]) -> pd.DataFrame:
    lines: list[tuple[Any, ...]] = []
    pairs = dict.fromkeys(key[1:3] for key in found if key[0] == "models")
    for target, model in pairs:
        scores = [found["models", target, model, side] for side in SIDES]
        for measure in measures_of(compared.schema, target):
            values = [each.get(measure, np.nan) for each in scores]
            if not np.isnan(values).all():
                lines.append((target, model, measure, *values))
    for target in targets if pairs else ():
        errors = [found["errors", target, side] for side in SIDES[1:]]
        lines.append((target, LINEAR, "coefficient MSE", 0.0, *errors))
        terms = found["coefficients", target]
        overlaps = [float(terms[f"overlap_{side}"].mean()) for side in SIDES[1:]]
        lines.append((target, LINEAR, "interval overlap", 1.0, *overlaps))
    return pd.DataFrame(lines, columns=["target", "model", "measure", *SIDES])


def _coefficients(found: dict[Any, Any], targets: tuple[str, ...]) -> pd.DataFrame:
    frames = [found["coefficients", each] for each in targets if ("coefficients", each) in found]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"target": []})


def _plain(compared: Compared, private: Any, holdout: Any, schema: Any) -> tuple[Any, Any]:
    """The private rows and the hold-out as the schema of the release reads them."""
    if schema is None:
        return private, holdout
    other = None if compared.holdout is None else plain_frame(compared.holdout)
    return plain_frame(compared.private), other


def _certificates(release: Release, private: Any, target: str) -> pd.DataFrame:
    """Bounds on the excess risk of a linear model of a target of two categories, and the risk.

    Empty for another target, and where the release measured too little for a bound.
    """
    lines: list[tuple[Any, ...]] = []
    columns = ["target", "loss", "norm", "measure", *SIDES[1:]]
    if release.schema[target].ungrouped.cells != 2 or len(release.schema.modelled) < 2:
        return pd.DataFrame(lines, columns=columns)
    released = release.use_weights()
    rows = read_table(private, release.schema.modelled.names)
    measures: dict[str, Callable[[bool], float]] = {
        "excess risk": lambda weighted: excess_risk(released, rows, target, weighted=weighted),
        "bound by private moments": lambda weighted: (
            exact_certificate(released, rows, target, weighted=weighted).bound
        ),
        "bound that may be published": lambda weighted: (
            released.certificate(target, weighted=weighted).bound
        ),
    }
    for measure, bound in measures.items():
        with suppress(CounterpoiseError):
            lines.append((target, "logistic", 1.0, measure, bound(False), bound(True)))
    return pd.DataFrame(lines, columns=columns)


def _attacks(release: Release, private: Any, holdout: Any, seed: int) -> pd.DataFrame:
    from counterpoise.evaluation.attacks import attack_all

    found = [
        None if table is None else read_table(table, release.schema.modelled.names)
        for table in (private, holdout)
    ]
    return attack_all(release, *found, seed=seed)[list(ATTACK_COLUMNS)]


def _about(
    release: Release, compared: Compared, targets: tuple[str, ...], seed: int
) -> dict[str, Any]:
    return {
        "confidential": True,
        "counterpoise": counterpoise.__version__,
        "guarantee": release.guarantee,
        "synthesizer": str(release.card.get("synthesizer", {}).get("method", "unknown")),
        "weights": str(release.card.get("weights", {}).get("method", "unknown")),
        "verdict": (release.card.get("weights", {}).get("verdict") or {}).get("level", "none"),
        "released_rows": len(compared.synthetic),
        "chosen_from": release.card.get(CHOSEN_FROM),
        "private_rows": len(compared.private),
        "holdout_rows": None if compared.holdout is None else len(compared.holdout),
        "columns": len(compared.schema),
        "floor": compared.floor_is,
        "targets": list(targets),
        "seed": seed,
    }
