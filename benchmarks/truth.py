"""Whether intervals are as wide as their errors, over everything an analyst asks of a table.

Private tables are samples of populations whose own answers are known: seven public tables and
seven laws. Each is released with nothing stated, with a target, or with questions, and everything
is asked of it: every mean, total, quantile and share, every cell of every pair of columns with few
categories, the mean of every number in every group of at least a hundredth of the population, every
correlation, and twenty regressions that a public seed draws, linear and logistic, some with
interactions and some on rare categories. The private sample answers the same with a bootstrap.

    python benchmarks/truth.py --data DIR --half choose --rows 5000 --epsilons 1 --tables 12
    python benchmarks/truth.py --data DIR --half check --report results/truth.csv

Rules are chosen on the half of the populations called `choose`; the half called `check` is for one
look at the end. A release is one file of the folder `--out`, so an interrupted study goes on; the
report reads what is there. Of every kind of answer, mark and population it says

- `covered`: the part of the 95% intervals that hold the population's answer, and `own`, the same of
  the private sample's intervals;
- `price`: the median of an interval's width over the private sample's own;
- `fit`: the width over 3.92 root mean square errors, both in units of the private sample's standard
  error, and so 1 where intervals are as wide as errors are large;
- `error`: that root mean square error;
- `refused`: the part that got no interval or no answer;
- `nulls` and `rejects`: how many slopes and correlations are zero in the population, or within a
  tenth of the private sample's standard error of it, and the part of their intervals without zero.

Beside single intervals stand those of a family together (`Estimates.simultaneous`): all cells of a
pair of columns, the means of a number in all groups of a column, all coefficients of a model. A
family is one line, covered where all of it is.

Noise comes from seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import traceback
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import counterpoise as cp
from truth_populations import CHECK, CHOOSE, Population, population

LEVEL, BOOTSTRAPS = 0.95, 60
# Kinds of families whose intervals are to hold together begin so, and their names with the family.
TOGETHER, BETWEEN = "simultaneous ", ": "
# Of these kinds a truth of zero is no relation; nearly zero is within this part of the private
# sample's standard error, where a test at 5% rejects 5.1%.
RELATIONS, NEARLY_ZERO = ("linear", "logistic", "correlation"), 0.1
QUANTILES = (0.1, 0.5, 0.9, 0.98)
WAYS = ("nothing", "target", "questions")


def answers(asked: Population, release: cp.Release) -> Iterator[tuple[str, str, Any]]:
    """Everything that is asked: the kind, a name, and the estimate, or None where it is refused."""
    for name in asked.numbers:
        yield "mean", name, _or_none(partial(release.mean, name))
        yield "total", name, _or_none(partial(release.total, name))
        for q in QUANTILES:
            yield "quantile", f"{name} {q}", _or_none(partial(release.quantile, name, q))
    for name, labels in asked.groups.items():
        found = _or_none(partial(release.histogram, name))
        for label in asked.schema[name].categories or ():
            yield "share", f"{name}={label}", _of(found, label)
        for number in asked.numbers:
            means = _or_none(partial(release.mean, number, by=name))
            of_all = _together(means)
            for label in labels:
                one = f"{number} of {name}={label}"
                yield "group mean", one, _of(means, label)
                yield f"{TOGETHER}group mean", f"{number} of {name}: {one}", _of(of_all, label)
    for one, other in combinations(asked.few, 2):
        cells = _or_none(partial(release.crosstab, one, other))
        of_all = _together(cells)
        labels = product(asked.schema[one].categories or (), asked.schema[other].categories or ())
        for pair in labels:
            cell = f"{one}={pair[0]}, {other}={pair[1]}"
            yield "cell", cell, _of(cells, pair)
            yield f"{TOGETHER}cell", f"{one} x {other}: {cell}", _of(of_all, pair)
    for one, other in combinations([*asked.numbers, *_truths(asked)], 2):
        yield "correlation", f"{one}, {other}", _or_none(partial(release.corr, one, other))
    for kind, formula in asked.regressions:
        model = _or_none(partial(release.glm, formula))
        if model is None:
            yield kind, formula, None
            continue
        of_all = _together(model)
        for term, found in model.items():
            if term != "Intercept":
                yield kind, f"{formula}: {term}", found
            yield f"{TOGETHER}coefficients", f"{formula}: {term}", of_all[term]


def _truths(asked: Population) -> list[str]:
    return [each.name for each in asked.schema if each.category_type == "boolean"]


def _or_none(ask: Any) -> Any:
    try:
        return ask()
    except cp.CounterpoiseError:
        return None


def _together(found: Any) -> Any:
    """With intervals that hold together; as it is where there are none, as in a population."""
    return found and (_or_none(found.simultaneous) or found)


def _of(found: Any, label: Any) -> Any:
    return found[label] if found is not None and label in found else None


def lines(asked: Population, release: cp.Release) -> pd.DataFrame:
    """The answers as a frame: value, ends of the interval, and mark."""
    made = []
    for kind, name, found in answers(asked, release):
        value, ends, support = np.nan, None, ""
        if found is not None and found.value is not None:
            value, ends, support = float(found.value), found.interval(LEVEL), found.support
        low, high = map(float, ends or (np.nan, np.nan))
        made.append((kind, name, value, low, high, support))
    frame = pd.DataFrame(made, columns=["kind", "name", "value", "low", "high", "support"])
    return frame.drop_duplicates(["kind", "name"])


def plain(asked: Population, rows: pd.DataFrame, replicates: np.ndarray | None) -> pd.DataFrame:
    """The answers of rows as they are, with those bootstrap replicates."""
    card = {"ledger": {"private": False}, "rows": len(rows), "weights": {}}
    table = rows.reset_index(drop=True).assign(weight=1.0)
    return lines(asked, cp.Release(table, asked.schema, card, replicates))


def truth(name: str, data: Path | None, out: Path) -> pd.DataFrame:
    """The population's own answers, worked out once."""
    file = out / f"truth-{name}.parquet"
    if not file.exists():
        known = population(name, data)
        found = plain(known, known.rows, None).set_index(["kind", "name"])["value"]
        total = found.index.get_level_values("kind") == "total"
        found[total] /= len(known.rows)  # a row's part, to be scaled to samples
        found.to_frame().to_parquet(file)
    return pd.read_parquet(file)


def one(
    name: str, way: str, rows: int, epsilon: float, seed: int, data: Path | None, out: Path
) -> Path:
    """Draw a private table, release it, ask everything, and keep the answers in a file."""
    file = out / f"{name}-{way}-{rows}-{epsilon:g}-{seed}.parquet"
    if file.exists():
        return file
    known = population(name, data)
    private = known.draw(rows, seed)
    questions = [formula for _, formula in known.regressions[:3]]
    more: dict[str, Any] = {
        "nothing": {},
        "target": {"target": known.target},
        "questions": {"questions": questions},
    }[way]
    own = file.with_name(f"own-{name}-{rows}-{seed}.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not own.exists():
            generator = np.random.default_rng([seed, rows, 53])
            counts = generator.multinomial(rows, np.full(rows, 1 / rows), BOOTSTRAPS).T
            plain(known, private, counts.astype(float)).to_parquet(own)
        made = cp.release(
            private, known.schema, epsilon, 1 / rows**2, seed=seed, progress=False, **more
        )
        verdict = made.card.get("weights", {}).get("verdict", {})
        found = lines(known, made.use_weights())
    found["verdict"] = str(verdict.get("level") if isinstance(verdict, dict) else verdict)
    found["asked"] = found["name"].str.partition(BETWEEN)[0].isin(questions)
    found.to_parquet(file)
    return file


def collected(out: Path, names: list[str], data: Path | None) -> pd.DataFrame:
    """All answers that are there, beside the truth and the private sample's own."""
    parts = []
    for name in names:
        files = sorted(out.glob(f"{name}-*-*.parquet"))
        if not files:
            continue
        known = truth(name, data, out)
        for file in files:
            _, way, rows, epsilon, seed = file.stem.rsplit("-", 4)
            found = pd.read_parquet(file)
            own = pd.read_parquet(out / f"own-{name}-{rows}-{seed}.parquet")
            own = own.set_index(["kind", "name"])[["value", "low", "high"]].add_prefix("own_")
            # What the population tells and a release does not is refused, as a model that it lacks.
            found = found.set_index(["kind", "name"]).reindex(known.index)
            found = found.assign(truth=known["value"], support=found["support"].fillna(""))
            found = found.reset_index()
            found = found.join(own, on=["kind", "name"])
            scale = np.where(found["kind"] == "total", int(rows), 1.0)
            found["truth"] *= scale
            key = {"population": name, "way": way, "rows": int(rows), "epsilon": float(epsilon)}
            parts.append(found.assign(**key, seed=int(seed)))
    frame = pd.concat(parts, ignore_index=True)
    # What a population itself does not tell, as a model that does not exist for it, is not asked.
    return frame[np.isfinite(frame["truth"])]


def report(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Coverage, widths and errors of the answers, by some columns."""
    setting = ["population", "rows", "kind", "name"]
    # What the private sample misses by, from its bootstrap: the middle one of all samples.
    own = frame.drop_duplicates([*setting, "seed"])
    squares = (own["own_value"] - own["truth"]) ** 2
    boot = (own["own_high"] - own["own_low"]) ** 2 / 3.92**2
    unit = pd.concat([own[setting], np.sqrt(boot.where(boot > 0, squares)).rename("unit")], axis=1)
    unit = unit.groupby(setting)["unit"].median()
    frame = frame.join(unit, on=setting)
    frame = frame[frame["unit"] > 0].copy()
    has = np.isfinite(frame["low"])
    frame["refused"] = (~has).astype(float)
    near = 1e-9 * frame["truth"].abs()
    held = (frame["low"] - near <= frame["truth"]) & (frame["truth"] <= frame["high"] + near)
    frame["covered"] = held.astype(float).where(has)
    own_held = (frame["own_low"] - near <= frame["truth"]) & (
        frame["truth"] <= frame["own_high"] + near
    )
    frame["own"] = own_held.astype(float).where(np.isfinite(frame["own_low"]))
    width = (frame["high"] - frame["low"]).where(has)
    frame["width"] = width / 3.92 / frame["unit"]
    frame["price"] = width / (frame["own_high"] - frame["own_low"]).replace(0, np.nan)
    frame["squared"] = ((frame["value"] - frame["truth"]) / frame["unit"]) ** 2
    is_zero = frame["kind"].isin(RELATIONS) & (frame["truth"].abs() < NEARLY_ZERO * frame["unit"])
    frame["null"] = is_zero
    rejects = (frame["low"] > 0) | (frame["high"] < 0)
    frame["rejects"] = rejects.astype(float).where(is_zero & has)
    frame = _by_family(frame)
    grouped = frame.groupby(by, observed=True)
    table = pd.DataFrame(
        {
            "answers": grouped.size(),
            "covered": grouped["covered"].mean(),
            "own": grouped["own"].mean(),
            "price": grouped["price"].median(),
            "width": np.sqrt(grouped["width"].agg(lambda each: (each**2).mean())),
            "error": np.sqrt(grouped["squared"].mean()),
            "median_error": np.sqrt(grouped["squared"].median()) / 0.6745,
            "refused": grouped["refused"].mean(),
            "nulls": grouped["null"].sum(),
            "rejects": grouped["rejects"].mean(),
        }
    )
    table["fit"] = table["width"] / table["error"]
    table["median_fit"] = grouped["width"].median() / table["median_error"]
    return table.round(3)


def _by_family(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with one line for every family: what holds only in part does not hold.

    Widths and errors in units of single intervals are not for intervals that hold together.
    """
    of_family = frame["kind"].str.startswith(TOGETHER)
    if not of_family.any():
        return frame
    members = frame[of_family].assign(support="of all together", width=np.nan, squared=np.nan)
    members["name"] = members["name"].str.partition(BETWEEN)[0]
    how = dict.fromkeys(members.columns, "first")
    how |= {"covered": "min", "own": "min", "price": "median", "refused": "mean"}
    key = ["population", "way", "rows", "epsilon", "seed", "kind", "name"]
    made = members.groupby(key, as_index=False, observed=True).agg(how)
    return pd.concat([frame[~of_family], made], ignore_index=True)


def run(chosen: argparse.Namespace, names: list[str]) -> None:
    """Make what is missing, and say how far it is."""
    wanted = [
        (name, way, rows, epsilon, seed)
        for seed, rows, epsilon, way, name in product(
            range(chosen.first, chosen.first + chosen.tables),
            chosen.rows,
            chosen.epsilons,
            chosen.ways,
            names,
        )
    ]
    for name in names:
        truth(name, chosen.data, chosen.out)
    parallel = Parallel(n_jobs=chosen.jobs, return_as="generator_unordered")
    made = parallel(delayed(_one)(*each, chosen.data, chosen.out) for each in wanted)
    for count, _ in enumerate(made, 1):
        if count % max(1, len(wanted) // 20) == 0 or count == len(wanted):
            print(f"{count}/{len(wanted)}", flush=True)


def _one(*key: Any) -> None:
    try:
        one(*key)
    except Exception:
        print(json.dumps([str(part) for part in key]), traceback.format_exc(limit=-3), flush=True)


def main() -> None:
    def several(kind: type) -> Any:
        return lambda text: [kind(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("COUNTERPOISE_DATA"))
    parser.add_argument("--half", choices=("choose", "check", "both"), default="choose")
    parser.add_argument("--populations", type=several(str))
    parser.add_argument("--ways", type=several(str), default=["nothing"])
    parser.add_argument("--tables", type=int, default=12)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=several(int), default=[1000, 5000])
    parser.add_argument("--epsilons", type=several(float), default=[1.0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/truth"))
    parser.add_argument("--report", type=Path, help="only report, and write the table as CSV too")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    halves = {"choose": CHOOSE, "check": CHECK, "both": (*CHOOSE, *CHECK)}
    names = chosen.populations or list(halves[chosen.half])
    if chosen.report is None:
        run(chosen, names)
    frame = collected(chosen.out, names, chosen.data)
    setting = ["way", "rows", "epsilon"]
    for by in (["kind"], ["support"], ["population", "kind"], ["population", "kind", "support"]):
        table = report(frame, [*setting, *by])
        print(table.to_string(), end="\n\n")
    if chosen.report is not None:
        table.to_csv(chosen.report)


if __name__ == "__main__":
    main()
