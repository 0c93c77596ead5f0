"""Whether importance weights help, which ones, and when they are worth their share of a budget.

Every table is split 80 : 20. A synthesizer gets its share of the budget, and the weighters, each
in turn, get the rest to weigh the same synthetic rows; so every method has the same total
epsilon, and the ledger's figure for it is in the results. "uniform" at the share 0 is the release
without weights, whose synthesizer has all of the budget; "uniform" at another share shows the
very rows that the others weigh. Measures are taken on the held-out rows, weighted throughout.

    python benchmarks/weights.py --data DIR --jobs 2
    python benchmarks/weights.py --data DIR --sets breast --synthesizers aim --seeds 2
    python benchmarks/weights.py --data DIR --split
    python benchmarks/weights.py --data DIR --default --seeds 3 --sets compas,adult
    python benchmarks/weights.py --report [--split | --default]

`--default` asks whether the library's own default, `counterpoise.release` with nothing said, is at
least as good as the same with weights="uniform", whose synthesizer has all of the budget: as many
synthetic rows as private ones, and the measures that need no network. `--split` asks when weights
are worth their share: 0, 5, 20, 50 and 80% of the budget. Rows are appended to
`results/weights.csv` as they are finished, with their seconds of CPU time, and what has a row is
not run again. The tables go to `results/weights.md` and the plot to
`results/weights.png` (`weights_split` with `--split`, `weights_default.md` with `--default`);
`--report` makes them from what is there.

"moments-target" is told which column models will predict; "moments" is not. "beta-noised" is
logistic weighting with Laplace noise on the coefficients (Ji and Elkan 2013) as its guarantee
needs it; "beta-published" has the scale that the papers state, D2 / epsilon, and is shown with
what that really costs, which is more than the budget. "gaussian" among the synthesizers is a
probe that is not private: its epsilon is that of the weights alone.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config

import weights_report
from counterpoise import Budget, CounterpoiseError, Schema, Vault, evaluation, release
from counterpoise.schema import Coded
from counterpoise.synthesizers import SYNTHESIZERS
from counterpoise.vault import Ledger, Share
from counterpoise.weights import WEIGHTERS, Weighter
from counterpoise.weights.protocol import redrawable
from weighted_tables import SOURCES, ShrunkenGaussian, Table, load

GAUSSIAN = "gaussian"
# The library's own way from rows to a release, whatever methods it chooses.
AUTO, DEFAULT = "auto", weights_report.DEFAULT
SYNTHESIZERS_HERE = ("independent", GAUSSIAN, "privbayes", "mst", "aim")
METHODS = (
    "uniform",
    "moments",
    "moments-target",
    "logistic",
    "logistic-outputs",
    "beta-noised",
    "beta-published",
)
ADDED_METHODS = ("moments-target", "beta-noised", "beta-published")
SHARE, SPLIT = 0.2, (0.0, 0.05, 0.2, 0.5, 0.8)
DELTA = 1e-5
BINS_PART = 0.01  # of the budget, for the number of rows by which the library chooses bins
# Added to seeds, so that no two uses of a seed draw the same numbers.
SAMPLING, WEIGHING = 1_000_003, 2_000_003
PENALTY = 0.1  # lambda of the papers' logistic regression

# What a measurement may cost at most: rows of the linear model and the sliced distance (more are
# represented by so many of equal weight), points of the network, and directions.
MOST_ROWS, MLP_POINTS, DIRECTIONS = 40_000, 2_000, 50

# Three-way marginals of more columns than this take AIM minutes: pairs instead.
MOST_COLUMNS_OF_TRIPLES = 30


@dataclass(frozen=True)
class Run:
    """One synthesizer's fit; all methods and numbers of rows go from it."""

    data: str
    synthesizer: str
    epsilon: float
    share: float  # the weights' part of the budget
    seed: int


@dataclass(frozen=True)
class Wanted:
    """What a run is to make: a method, and how many times the private rows it weighs."""

    method: str
    multiple: int


KEY = [*(field.name for field in fields(Run)), *(field.name for field in fields(Wanted))]


@lru_cache(maxsize=2)
def table_of(name: str, directory: Path) -> Table:
    return load(name, directory)


def run(job: Run, wanted: Sequence[Wanted], directory: Path) -> list[dict[str, Any]]:
    """Fit the synthesizer once, then weigh and measure for everything that is wanted."""
    if job.synthesizer == AUTO:
        return [run_release(job, one, directory) for one in wanted]
    table = table_of(job.data, directory)
    train, held_out = table.split(job.seed)
    budget = Budget(job.epsilon, DELTA)
    test = table.evaluation_schema.encode(held_out)
    true_model = evaluation.fit_linear(test, table.target)
    start = time.process_time()
    schema, sample, ledger, model = fitted_synthesizer(job, table, train, budget)
    fitting = time.process_time() - start
    results = []
    for multiple in sorted({one.multiple for one in wanted}):
        synthetic = sample(multiple * len(train))
        coded = table.evaluation_schema.encode(synthetic)
        for one in (one for one in wanted if one.multiple == multiple):
            row = dict(zip(KEY, (*astuple(job), *astuple(one)), strict=True))
            row |= {"private_rows": len(train), "synthetic_rows": len(synthetic)}
            start = time.process_time()
            try:
                found, spent = weigh(
                    one.method, table.target, job, train, schema, synthetic, budget, ledger, model
                )
                weighed = time.process_time()
                measured = measures(coded, test, table.target, found, true_model)
                row |= {"status": "ok", "epsilon_spent": spent, **measured}
            except CounterpoiseError as error:
                weighed, row["status"] = time.process_time(), f"refused: {error}"
            row |= {
                "fit_seconds": round(fitting, 2),
                "weigh_seconds": round(weighed - start, 2),
                "measure_seconds": round(time.process_time() - weighed, 2),
            }
            results.append(row)
    return results


def run_release(job: Run, one: Wanted, directory: Path) -> dict[str, Any]:
    """A release as the library makes it, with its own weights or without any, measured."""
    table = table_of(job.data, directory)
    train, held_out = table.split(job.seed)
    test = table.evaluation_schema.encode(held_out)
    start = time.process_time()
    weights = "uniform" if one.method == "uniform" else "moments"
    made = release(
        train,
        table.schema,
        job.epsilon,
        DELTA,
        weights=weights,
        rows=one.multiple * len(train),
        replicates=0,
        seed=job.seed,
        progress=False,
    )
    released = time.process_time()
    coded = table.evaluation_schema.encode(made.table)
    true_model = evaluation.fit_linear(test, table.target)
    return dict(zip(KEY, (*astuple(job), *astuple(one)), strict=True)) | {
        "private_rows": len(train),
        "synthetic_rows": len(coded),
        "status": "ok",
        "epsilon_spent": made.ledger.epsilon_spent,
        **measures(coded, test, table.target, made.weights, true_model, networks=False),
        "fit_seconds": round(released - start, 2),
        "weigh_seconds": 0.0,
        "measure_seconds": round(time.process_time() - released, 2),
    }


def fitted_synthesizer(
    job: Run, table: Table, train: pd.DataFrame, budget: Budget
) -> tuple[Schema, Callable[[int], pd.DataFrame], Ledger, Any]:
    """The schema with its bins, a way to draw rows, the ledger of what it took, and the model."""
    part = (1 - BINS_PART) * (1 - job.share)
    with Vault(train, table.schema, budget, seed=job.seed) as vault:
        schema = vault.choose_bins(budget.whole.part(BINS_PART))
        if job.synthesizer == GAUSSIAN:
            probe, seed = ShrunkenGaussian(), SAMPLING + job.seed
            return schema, lambda rows: probe.sample(train, schema, rows, seed), vault.ledger, None
        wide = job.synthesizer == "aim" and len(schema) > MOST_COLUMNS_OF_TRIPLES
        method = SYNTHESIZERS.make(job.synthesizer, **({"degree": 2} if wide else {}))
        model = method.fit(vault, budget.whole.part(part))
        seed = SAMPLING + job.seed
        return schema, lambda rows: model.sample(rows, seed=seed), vault.ledger, model


def weigh(
    name: str,
    target: str,
    job: Run,
    train: pd.DataFrame,
    schema: Schema,
    synthetic: pd.DataFrame,
    budget: Budget,
    before: Ledger,
    synthesizer: Any,
) -> tuple[np.ndarray, float]:
    """The weights of a method, and the true epsilon of the release with them."""
    share = budget.whole.part((1 - BINS_PART) * job.share) if job.share else None
    if name == "beta-published":
        assert share is not None
        method, share = published(share, schema)
        # Its true charge does not fit the budget, so it is composed under a larger one.
        budget = Budget(1000 * budget.epsilon, budget.delta)
    else:
        method = weighter(name, target)
    ledger = Ledger(budget, private=False)
    for spend in before.spends:
        ledger.spend(spend.query, spend.event, spend.delta)
    with Vault(train, schema, budget, seed=WEIGHING + job.seed, ledger=ledger) as vault:
        weights_share = None if method.is_free else share
        model = method.fit(vault, synthetic, weights_share, redrawable(synthesizer))
    return model.weigh(synthetic).normalised, ledger.epsilon_spent


def weighter(name: str, target: str) -> Weighter:
    """A method of the study: a registered name, or the papers' own."""
    if name == "moments-target":
        return WEIGHTERS.make("moments", target=target)
    if name == "beta-noised":
        return WEIGHTERS.make("logistic", noise="laplace", debias=False, regularisation=PENALTY)
    return WEIGHTERS.make(name)


def published(share: Share, schema: Schema) -> tuple[Weighter, Share]:
    """Laplace noise of the published scale, claimed to cost the share; and what it does cost."""
    from counterpoise.weights.classification import TOTAL_FRACTION

    claimed = share.epsilon * math.sqrt(1 - TOTAL_FRACTION)
    method = WEIGHTERS.make(
        "logistic",
        noise="laplace",
        debias=False,
        regularisation=PENALTY,
        published_epsilon=claimed,
    )
    # epsilon = sqrt(p) times the claim for p coefficients, the intercept among them, and
    # rho = epsilon^2 / 2; with a margin for rounding.
    coefficients = len(schema) + 1
    rho = coefficients * claimed**2 / 2
    return method, Share(1.001 * rho / (1 - TOTAL_FRACTION), pure=False)


def measures(
    synthetic: Coded,
    test: Coded,
    target: str,
    weights: np.ndarray,
    true_model: evaluation.LinearModel,
    networks: bool = True,
) -> dict[str, float]:
    """Everything that is measured of a weighted table, on held-out rows."""
    fewer, few_weights = synthetic, weights
    if len(synthetic) > MOST_ROWS:
        fewer, few_weights = evaluation.equal_points(synthetic, weights, MOST_ROWS), None
    model = evaluation.fit_linear(fewer, target, few_weights)
    found = {
        "wasserstein": evaluation.wasserstein(synthetic, test, weights),
        "sliced_wasserstein": evaluation.sliced_wasserstein(
            fewer, test, few_weights, directions=DIRECTIONS
        ),
        "mmd": evaluation.mmd(synthetic, test, weights, points=2000),
        "mean_error": evaluation.mean_error(synthetic, test, weights),
        "marginal_error": evaluation.marginal_error(synthetic, test, 2, weights),
        "coefficient_error": float(np.mean((model.coefficients - true_model.coefficients) ** 2)),
        "linear_score": model.score(test),
        "effective_share": float(weights.sum() ** 2 / (weights**2).sum() / len(weights)),
    }
    if networks:
        found["mlp_score"] = evaluation.mlp_score(
            synthetic, test, target, weights, points=MLP_POINTS
        )
    return found


def plan(chosen: argparse.Namespace) -> Iterator[tuple[Run, list[Wanted]]]:
    """Every run that is asked for, seed by seed, so that an interrupted study is balanced."""
    shares = SPLIT if chosen.split else (0.0, chosen.share)
    for seed in range(chosen.seeds):
        for data in chosen.sets:
            for synthesizer in chosen.synthesizers:
                for epsilon in chosen.epsilons:
                    for share in shares:
                        if share == 0 and synthesizer == GAUSSIAN:
                            continue  # it takes nothing, so leaving it more changes nothing
                        methods = ["uniform"] if share == 0 else chosen.methods
                        if synthesizer == AUTO and share:
                            methods = [DEFAULT]
                        wanted = [Wanted(m, rows) for rows in chosen.multiples for m in methods]
                        yield Run(data, synthesizer, epsilon, share, seed), wanted


def study(chosen: argparse.Namespace, out: Path) -> None:
    """Do the runs that are not in `out` yet, and append their rows."""
    finished: set[tuple] = set()
    if out.exists():
        finished = set(pd.read_csv(out)[KEY].itertuples(index=False, name=None))
    left = []
    for job, wanted in plan(chosen):
        missing = [one for one in wanted if (*astuple(job), *astuple(one)) not in finished]
        if missing:
            left.append((job, missing))
    # One thread a process: the processes are what runs side by side.
    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=chosen.jobs, return_as="generator_unordered")
        made = pool(delayed(run)(job, wanted, chosen.data) for job, wanted in left)
        for done, rows in enumerate(made, 1):
            frame = pd.DataFrame(rows).reindex(columns=COLUMNS)
            frame.to_csv(out, mode="a", header=not out.exists(), index=False)
            said = [f"{rows[0][name]}" for name in KEY[:5]]
            print(f"{done}/{len(left)}", *said, _cost(rows), flush=True)


COLUMNS = [
    *KEY,
    "private_rows",
    "synthetic_rows",
    "status",
    "epsilon_spent",
    *weights_report.MEASURES,
    "fit_seconds",
    "weigh_seconds",
    "measure_seconds",
]


def _cost(rows: Iterable[dict[str, Any]]) -> str:
    frame = pd.DataFrame(rows)
    fit, weigh_, measure = (
        frame["fit_seconds"].iloc[0],
        frame["weigh_seconds"].sum(),
        frame["measure_seconds"].sum(),
    )
    return f"fit {fit:.1f}, weigh {weigh_:.1f}, measure {measure:.1f} CPU s"


def main() -> None:
    def names(text: str) -> list[str]:
        return text.split(",")

    def numbers(text: str) -> list[float]:
        return [float(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("COUNTERPOISE_DATA"))
    parser.add_argument("--sets", type=names, default=list(SOURCES))
    parser.add_argument("--synthesizers", type=names, default=list(SYNTHESIZERS_HERE))
    parser.add_argument("--methods", type=names, help=f"registered, or {ADDED_METHODS}")
    parser.add_argument("--epsilons", type=numbers, default=[1.0, 6.0])
    parser.add_argument("--multiples", type=numbers, default=[1.0, 10.0], help="rows, times n")
    parser.add_argument("--share", type=float, default=SHARE, help="of the weights")
    parser.add_argument("--seeds", type=int, default=10, help="how many: 0, ..., SEEDS - 1")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--split", action="store_true", help="study the split of the budget")
    parser.add_argument("--default", action="store_true", help="study the library's default")
    parser.add_argument("--report", action="store_true", help="make the tables, run nothing")
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    if chosen.default:
        chosen.synthesizers, chosen.multiples = [AUTO], [1]
    known = (*WEIGHTERS, *ADDED_METHODS)
    chosen.methods = chosen.methods or (["moments"] if chosen.split else list(METHODS))
    for given, there in ((chosen.sets, SOURCES), (chosen.synthesizers, (*SYNTHESIZERS_HERE, AUTO))):
        if unknown := set(given) - set(there):
            parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(there)}")
    if not chosen.report and (unknown := set(chosen.methods) - set(known)):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    if chosen.split and len(chosen.methods) != 1:
        parser.error("--split studies one method at a time")
    chosen.multiples = [int(multiple) for multiple in chosen.multiples]
    chosen.out.mkdir(parents=True, exist_ok=True)
    out = chosen.out / "weights.csv"
    if not chosen.report:
        if chosen.data is None:
            parser.error("state the data directory with --data or COUNTERPOISE_DATA")
        study(chosen, out)
    results = pd.read_csv(out)
    is_auto = results["synthesizer"] == AUTO
    if chosen.default:
        weights_report.write_default(results[is_auto], chosen.out)
        return
    results = results[~is_auto]
    if chosen.split:
        weights_report.write_split(results, chosen.methods[0], chosen.out)
    else:
        weights_report.write(results[results["share"].isin([0.0, chosen.share])], chosen.out)


if __name__ == "__main__":
    main()
