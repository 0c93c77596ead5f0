"""Twenty questions about a raw table, asked of a release and of another library's table.

The table is adult as it was published: 48,842 rows, 15 columns, texts, `?` for null. A release
is made of the file at one epsilon, in a process of its own whose time and memory are reported.
Then twenty questions of an analyst (means by group, crosstabs, regressions) are answered from it
with its weights and without, and from the table that dpmm makes of the same codes at the same
epsilon and delta. Truth is the answer of the private table itself.

    python benchmarks/adult.py --data DIR [--peer mst|aim|none] [--epsilon 1] [--out DIR]

The categories are those of the data set's documentation (UCI, `adult.names`), as the rows show
them. Bounds and bins of the other columns are stated by hand, and not blindly: the bounds of age,
education-num, capital-gain and hours-per-week are the range of the published rows. That is no
public knowledge, so the epsilon describes the mechanisms alone. Both methods get the same schema.
The peer is told the number of rows, which the release pays for; the release is told that `income`
will be predicted, for which the peer has no option, and nine of the questions concern it. The
release's noise has a seed, dpmm's cannot have one.

Errors are relative to a scale, as in `Question`; an answer that a table cannot give counts as
wrong by one whole scale. The column `bins alone` has the errors of the private table itself with
its values drawn anew within their bins: no noise, but what unweighted rows of these codes lose by
the bins. The intervals are those of the weighted answers, at 95%; weights are used here whatever
the verdict on them, which is printed. Times are of the release alone, without saving it; peak
memory includes the imports. What was made is kept in `--out`, and not made again while it is
there. One seed is one draw of the noise: differences may be luck.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.analysis.result import Estimate, Estimates
from counterpoise.formulas.matrices import read_formula
from counterpoise.schema import Column, Schema
from peers import ONE_THREAD, Job, memory_mb, peer_command, run_job

FILE = "adult.csv.gz"
TARGET = "income"
NULL = "?"


def _categories(name: str, categories: str, nullable: bool = False) -> Column:
    """A column of categories, of which the documentation has none with a space."""
    return Column.categorical(name, categories.split(), nullable=nullable)


def _integer(name: str, *edges: int) -> Column:
    return Column.integer(name, edges[0], edges[-1], bins=edges)


SCHEMA = Schema(
    [
        _integer("age", 17, 20, *range(25, 75, 5), 80, 90),
        _categories(
            "workclass",
            "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay "
            "Never-worked",
            nullable=True,
        ),
        _integer("fnlwgt", *range(0, 500_000, 50_000), 500_000, 1_500_000),
        Column.ordinal(
            "education",
            [
                *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"),
                *("HS-grad", "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters"),
                *("Prof-school", "Doctorate"),
            ],
        ),
        Column.integer("education-num", 1, 16),
        _categories(
            "marital-status",
            "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
            "Married-AF-spouse",
        ),
        _categories(
            "occupation",
            "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
            "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
            "Priv-house-serv Protective-serv Armed-Forces",
            nullable=True,
        ),
        _categories(
            "relationship", "Wife Own-child Husband Not-in-family Other-relative Unmarried"
        ),
        _categories("race", "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"),
        _categories("sex", "Female Male"),
        # Most people have no gain and no loss, so zero has a bin of its own.
        _integer("capital-gain", 0, 1, 2500, 5000, 7500, 10_000, 20_000, 50_000, 99_998, 99_999),
        _integer("capital-loss", 0, 1, 1000, 1500, 1750, 2000, 2250, 2500, 5000),
        # So has the full-time week.
        _integer("hours-per-week", 1, 10, 20, 30, 35, 40, 41, 45, 50, 55, 60, 70, 99),
        _categories(
            "native-country",
            "United-States Cambodia England Puerto-Rico Canada Germany "
            "Outlying-US(Guam-USVI-etc) India Japan Greece South China Cuba Iran Honduras "
            "Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France "
            "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua "
            "Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru Hong "
            "Holand-Netherlands",
            nullable=True,
        ),
        _categories(TARGET, "<=50K >50K"),
    ],
    missing_values=("", NULL),
)

COVERAGE = ("intervals", "covered")

Ask = Callable[[cp.Release], list[tuple[Any, Estimate]]]


@dataclass(frozen=True)
class Question:
    """What is asked, and what an error is relative to.

    `scale` takes the true answers to one scale for each: for a mean the standard deviation of
    its column over all rows, for a share that of the category, for a coefficient the mean size
    of the model's true ones, all as effects of one standard deviation of their feature. The
    error of a question is the mean of its answers' errors, except that of a crosstab
    (`is_crosstab`), which is the share of people in a wrong cell.
    """

    text: str
    ask: Ask
    scale: Callable[[cp.Release, np.ndarray], np.ndarray]
    is_crosstab: bool = False


def _listed(found: Any) -> list[tuple[Any, Estimate]]:
    return found.items() if isinstance(found, Estimates) else [("", found)]


def _mean(column: str, *by: str) -> Question:
    def scale(private: cp.Release, truth: np.ndarray) -> np.ndarray:
        return np.full(len(truth), private.table[column].to_numpy(dtype=float).std())

    text = f"mean {column}" + (f" by {', '.join(by)}" if by else "")
    return Question(text, lambda release: _listed(release.mean(column, by=list(by) or None)), scale)


def _share(*by: str) -> Question:
    def scale(private: cp.Release, truth: np.ndarray) -> np.ndarray:
        share = (private.table[TARGET] == ">50K").mean()
        return np.full(len(truth), math.sqrt(share * (1 - share)))

    def ask(release: cp.Release) -> list[tuple[Any, Estimate]]:
        return _listed(release.proportion(TARGET, ">50K", by=list(by)))

    return Question(f"share of >50K by {', '.join(by)}", ask, scale)


def _crosstab(row: str, column: str) -> Question:
    # Total variation: half of the sum of |p_hat - p| over the cells.
    return Question(
        f"crosstab of {row} and {column}",
        lambda release: _listed(release.crosstab(row, column)),
        lambda private, truth: np.full(len(truth), 2.0),
        is_crosstab=True,
    )


def _regression(formula: str) -> Question:
    def ask(release: cp.Release) -> list[tuple[Any, Estimate]]:
        found = release.glm(formula).coefficients.items()
        return [(term, each) for term, each in found if term != "Intercept"]

    def scale(private: cp.Release, truth: np.ndarray) -> np.ndarray:
        made = read_formula(formula, private.schema).matrices(private.table, coded=[TARGET])
        deviations = made.features[:, [term != "Intercept" for term in made.terms]].std(axis=0)
        # |b_hat_j - b_j| s_j, of the mean of |b_k| s_k
        return np.asarray((np.abs(truth) * deviations).mean() / deviations)

    return Question(formula.replace("`", ""), ask, scale)


QUESTIONS = (
    _mean("age"),
    _mean("hours-per-week"),
    _mean("age", TARGET),
    _mean("age", "marital-status"),
    _mean("hours-per-week", "sex"),
    _mean("hours-per-week", "education"),
    _mean("hours-per-week", "occupation"),
    _mean("education-num", "race"),
    _mean("capital-gain", TARGET),
    _share("sex"),
    _share("education"),
    _share("occupation"),
    _share("sex", "race"),
    _crosstab("education", TARGET),
    _crosstab("marital-status", "sex"),
    _crosstab("occupation", "sex"),
    _crosstab("relationship", "race"),
    _regression("income ~ age + `education-num` + `hours-per-week` + C(sex)"),
    _regression("income ~ `education-num` + C(relationship)"),
    _regression("`hours-per-week` ~ age + `education-num` + C(sex)"),
)


@dataclass(frozen=True)
class Cost:
    """What making a table took, and by which methods."""

    made_by: str
    wall_seconds: float
    cpu_seconds: float
    peak_mb: float

    def __str__(self) -> str:
        return (
            f"{self.made_by}: {self.wall_seconds:.0f} s wall, {self.cpu_seconds:.0f} s CPU,"
            f" peak memory {self.peak_mb:.0f} MB"
        )


def private_table(path: Path) -> cp.Release:
    """The private table in the dress of a release, so that it is asked in the same way."""
    return _plain(pd.read_csv(path, na_values=NULL, keep_default_na=False))


def our_release(path: Path, rows: int, epsilon: float, seed: int, out: Path) -> cp.Release:
    """The release of the file, made in a process of its own unless it is there already."""
    folder = _release_path(epsilon, seed, out)
    if not folder.exists():
        request = {"path": str(path), "rows": rows, "epsilon": epsilon, "seed": seed}
        command = [sys.executable, __file__, "--make", json.dumps(request | {"to": str(folder)})]
        subprocess.run(command, check=True, env=os.environ | ONE_THREAD)
    return cp.load(folder)


def make(path: str, rows: int, epsilon: float, seed: int, to: str) -> None:
    """Make and save a release in this process, and write what it took beside it."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = cp.release(path, SCHEMA, epsilon, 1 / rows**2, target=TARGET, seed=seed)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # ru_maxrss may come down from the parent; the high-water mark of /proc does not.
    peak = memory_mb(os.getpid())[1] or kilobytes / 1024
    methods = " and ".join(made.card[part]["method"] for part in ("synthesizer", "weights"))
    # The cost first: a release that is there is taken for finished.
    _write_cost(Path(to), Cost(f"counterpoise ({methods} weights)", wall, cpu, peak))
    made.save(to)


def peer_table(
    private: cp.Release, method: str, epsilon: float, seed: int, out: Path
) -> cp.Release | None:
    """The table of dpmm, run on the codes of the schema unless it is there already."""
    path = _peer_path(method, epsilon, seed, out)
    if not path.exists():
        rows = len(private.table)
        codes = pd.DataFrame(SCHEMA.encode(private.table).codes, columns=list(SCHEMA.names))
        job = Job("dpmm", method, "adult", seed=seed, epsilon=epsilon)
        domain = dict(zip(SCHEMA.names, SCHEMA.sizes, strict=True))
        outcome = run_job(peer_command(job), job, codes, domain, 1 / rows**2)
        if outcome.synthetic is None:
            print(f"dpmm: {outcome.status}")
            return None
        cost = Cost(f"dpmm ({method})", outcome.wall_seconds, outcome.cpu_seconds, outcome.peak_mb)
        _write_cost(path, cost)
        made = outcome.synthetic[list(SCHEMA.names)].to_numpy(dtype=np.int32)
        # Values rather than codes, so that what is kept does not depend on the schema's order.
        SCHEMA.decode(made, np.random.default_rng(seed)).to_csv(path, index=False)
    return _plain(pd.read_csv(path, na_values="", keep_default_na=False))


def compare(
    private: cp.Release, release: cp.Release, others: dict[str, cp.Release]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The errors of every question, and every answer behind them."""
    errors, answers = [], []
    for question in QUESTIONS:
        # A group that the private table does not have has no true answer.
        true = {
            label: float(each.value)
            for label, each in question.ask(private)
            if math.isfinite(each.value)
        }
        truth = np.array(list(true.values()))
        ours = dict(question.ask(release))
        found = {
            "weighted": _values(true, {label: each.value for label, each in ours.items()}),
            "unweighted": _values(true, {label: each.unweighted for label, each in ours.items()}),
        }
        for name, other in others.items():
            asked = question.ask(other)
            found[name] = _values(true, {label: each.value for label, each in asked})
        spans = [ours[label].interval() if label in ours else None for label in true]
        low, high = np.array([(math.nan, math.nan) if span is None else span for span in spans]).T
        part = pd.DataFrame({"truth": truth, "scale": question.scale(private, truth), **found})
        part = part.assign(low=low, high=high, covered=(low <= truth) & (truth <= high))
        part.insert(0, "question", question.text)
        part.insert(1, "answer", [_text(label) for label in true])
        answers.append(part)
        row: dict[str, Any] = {"question": question.text, "answers": len(part)}
        for name in found:
            off = ((part[name] - part["truth"]).abs() / part["scale"]).fillna(1.0)
            row[name] = off.sum() if question.is_crosstab else off.mean()
        row["intervals"], row["covered"] = part["low"].notna().sum(), part["covered"].sum()
        errors.append(row)
    return pd.DataFrame(errors), pd.concat(answers)


def show(errors: pd.DataFrame) -> str:
    """The errors as one aligned table, with the median and the mean over the questions."""
    methods = [name for name in errors if name not in ("question", "answers", *COVERAGE)]
    shown = errors[["question", "answers", *methods]].copy()
    for name in methods:
        shown[name] = [f"{value:.4f}" for value in errors[name]]
    pairs = zip(errors["covered"], errors["intervals"], strict=True)
    shown["covered"] = [f"{covered} of {count}" for covered, count in pairs]
    everything = f"{errors['covered'].sum()} of {errors['intervals'].sum()}"
    for summary in ("median", "mean"):
        values = [f"{getattr(errors[name], summary)():.4f}" for name in methods]
        shown.loc[len(shown)] = [summary, errors["answers"].sum(), *values, everything]
    width = max(map(len, shown["question"]))
    shown["question"] = shown["question"].str.ljust(width)
    return str(shown.to_string(index=False, justify="right"))


def _plain(table: pd.DataFrame) -> cp.Release:
    """A table in which every row counts once."""
    restored = SCHEMA.restore(table)
    return cp.Release(restored.assign(weight=1.0), SCHEMA, card={})


def _values(wanted: Iterable[Any], found: dict[Any, Any]) -> np.ndarray:
    """The values with the labels wanted; not a number where there is none."""
    return np.array([found.get(label) for label in wanted], dtype=float)


def _text(label: Any) -> str:
    return " x ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _release_path(epsilon: float, seed: int, out: Path) -> Path:
    return out / f"adult-release-{epsilon:g}-{seed}"


def _peer_path(method: str, epsilon: float, seed: int, out: Path) -> Path:
    return out / f"adult-dpmm-{method}-{epsilon:g}-{seed}.csv"


def _cost_path(made: Path) -> Path:
    return made.with_name(made.name + ".cost.json")


def _write_cost(made: Path, cost: Cost) -> None:
    made.parent.mkdir(parents=True, exist_ok=True)
    _cost_path(made).write_text(json.dumps(vars(cost)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("COUNTERPOISE_DATA")
    parser.add_argument("--data", type=Path, default=data)
    parser.add_argument("--peer", choices=("mst", "aim", "none"), default="mst")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--make", type=json.loads, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.make is not None:
        make(**chosen.make)
        return
    if chosen.data is None:
        parser.error("--data or COUNTERPOISE_DATA: expected the folder that has adult.csv.gz")
    out, epsilon, seed = chosen.out, chosen.epsilon, chosen.seed
    path = Path(chosen.data) / FILE
    private = private_table(path)
    rows = len(private.table)
    release = our_release(path, rows, epsilon, seed, out)
    others = {}
    if chosen.peer != "none":
        peer = peer_table(private, chosen.peer, epsilon, seed, out)
        if peer is not None:
            others[f"dpmm {chosen.peer}"] = peer
    codes = SCHEMA.encode(private.table).codes
    others["bins alone"] = _plain(SCHEMA.decode(codes, np.random.default_rng(seed)))
    errors, answers = compare(private, release.use_weights(), others)
    errors.to_csv(out / "adult.csv", index=False)
    answers.to_csv(out / "adult-answers.csv", index=False)
    print(f"adult, {rows:,} rows x {len(SCHEMA)} columns, epsilon {epsilon:g}, seed {seed}")
    for made in (_release_path(epsilon, seed, out), _peer_path(chosen.peer, epsilon, seed, out)):
        if _cost_path(made).exists():
            print(Cost(**json.loads(_cost_path(made).read_text())))
    weights = release.card["weights"]
    size = weights["effective_sample_size"]
    print(
        f"verdict on the weights: {weights['verdict']['level']}, effective sample size {size:,.0f}"
    )
    print(show(errors))


if __name__ == "__main__":
    main()
