"""Train on synthetic rows, test on real ones: our AIM against the published figures of another.

The figures are table 2 of Zhou et al. 2024 (Bounding the Excess Risk for Linear Models Trained on
Marginal-Preserving, Differentially-Private, Synthetic Data): accuracy, ROC-AUC and empirical risk
of a logistic regression on the codes as numbers, at delta 1/n^2. Two protocols:

- published: AIM sees all rows, with a workload of 4-way marginals; the classifier is trained on
  80% of the synthetic rows and tested on 20% of the rows that AIM has seen, 10 splits a synthesis.
- honest: AIM sees 80% of the rows, with our default of 3-way marginals; the classifier is trained
  on all synthetic rows and tested on the other 20% of the real ones.

    python benchmarks/tstr.py --data DIR --reference FILE [--sets heart,law] [--repetitions 10]

Noise is seeded by the repetition, so that a run can be repeated; a repetition that already has a
row in `results/tstr.csv` is not run again. The tables, of all rows there, go to `results/tstr.md`;
with `--repetitions 0` they are all that is made.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import peers
from counterpoise import Budget, Vault
from counterpoise.synthesizers import Aim
from synthesizers import schema_of

SETS = ("heart", "compas", "churn", "law", "dutch", "adult")
METRICS = {"accuracy": 1, "roc_auc": 1, "empirical_risk": -1}  # 1: higher is better
PROTOCOLS = {"published": 4, "honest": 3}  # and the columns of the largest marginals
JUDGED = ("1", "2")  # the epsilons at which a verdict is printed
KEY = ["protocol", "data", "epsilon", "repetition"]
REAL = "real"  # in place of an epsilon: the classifier trained on real rows

# Published figures have three places: a rounding error of this standard deviation.
ROUNDING = 0.001 / math.sqrt(12)

NOTES = """\
The domain files of these sets equal the values observed in the data, so they are no public
knowledge, and epsilon describes the algorithm alone. Ours are means over repetitions with their
standard errors. Differences are in standard errors of ours, the rounding of the published
figures included, and positive where ours is better; the published ones come without errors, so
theirs are not in it."""


def repeat(table: peers.Table, protocol: str, epsilon: str, repetition: int, splits: int) -> dict:
    """One synthesis and its classifiers: the means of the metrics over the splits."""
    generator = np.random.default_rng(repetition)
    if protocol == "honest":
        seen, unseen = table.split(repetition)
        pairs = [(seen, unseen)] if epsilon == REAL else None
    else:
        seen, unseen, pairs = table.codes, None, None
    start = time.process_time()
    if epsilon == REAL:
        synthetic = None
        pairs = pairs or [_split(table.codes, generator) for _ in range(splits)]
    else:
        budget = Budget(float(epsilon), 1 / len(seen) ** 2)
        with Vault(seen, schema_of(table.domain), budget, seed=repetition) as vault:
            model = Aim(degree=PROTOCOLS[protocol]).fit(vault, budget.whole)
        synthetic = model.sample(len(seen), seed=repetition).astype(int)
    seconds = time.process_time() - start
    if synthetic is not None and unseen is not None:
        pairs = [(synthetic, unseen)]
    elif synthetic is not None:
        pairs = [
            (_split(synthetic, generator)[0], _split(table.codes, generator)[1])
            for _ in range(splits)
        ]
    scores = pd.DataFrame([test(train, held_out) for train, held_out in pairs or []])
    return {**scores.mean().to_dict(), "cpu_seconds": round(seconds, 3)}


def test(train: pd.DataFrame, held_out: pd.DataFrame) -> dict[str, float]:
    """Fit a logistic regression of the last column to `train`, and score it on `held_out`."""
    features, target = list(train.columns[:-1]), train.columns[-1]
    truth = held_out[target].to_numpy()
    if train[target].nunique() < 2:
        # One class only: that class is predicted, with the certainty that log_loss allows.
        chance = np.full(len(truth), float(train[target].iloc[0]))
    else:
        classifier = LogisticRegression(max_iter=10_000, solver="lbfgs")
        classifier.fit(train[features].to_numpy(), train[target].to_numpy())
        chance = classifier.predict_proba(held_out[features].to_numpy())[:, 1]
    return {
        "accuracy": float(accuracy_score(truth, chance > 0.5)),
        "roc_auc": float(roc_auc_score(truth, chance)),
        "empirical_risk": float(log_loss(truth, chance, labels=[0, 1])),
    }


def _split(rows: pd.DataFrame, generator: np.random.Generator) -> tuple[pd.DataFrame, ...]:
    order = generator.permutation(len(rows))
    cut = round(0.8 * len(order))
    return rows.iloc[order[:cut]], rows.iloc[order[cut:]]


def run(chosen: argparse.Namespace, out: Path) -> pd.DataFrame:
    """Run the repetitions that have no row yet; return all there are of what was asked for."""
    rows = pd.read_csv(out, dtype={"epsilon": str}).to_dict("records") if out.exists() else []
    wanted = [
        (protocol, data, epsilon, repetition)
        for data in chosen.sets
        for protocol in chosen.protocols
        for epsilon in (*chosen.epsilons, REAL)
        for repetition in range(chosen.repetitions)
    ]
    finished = {tuple(row[name] for name in KEY) for row in rows}
    for key in wanted:
        if key in finished:
            continue
        protocol, data, epsilon, repetition = key
        table = peers.load(data, chosen.data)
        figures = repeat(table, protocol, epsilon, repetition, chosen.splits)
        rows.append(dict(zip(KEY, key, strict=True)) | figures)
        pd.DataFrame(rows).to_csv(out, index=False)
        print(*key, " ".join(f"{name} {value:.4f}" for name, value in figures.items()), flush=True)
    results = pd.DataFrame(rows)
    asked = set(itertools.product(chosen.protocols, chosen.sets, (*chosen.epsilons, REAL)))
    settings = results[KEY[:3]].itertuples(index=False, name=None)
    return results[[setting in asked for setting in settings]]


def tables(results: pd.DataFrame, reference: pd.DataFrame) -> Iterator[str]:
    """A table a protocol, ours beside the published figures, as lines of Markdown."""
    published = reference.set_index(["dataset", "metric", "epsilon"])["value"]
    for protocol, here in results.groupby("protocol", sort=False):
        verdicts = []
        yield f"\n## {protocol}: {PROTOCOLS[str(protocol)]}-way marginals\n"
        shown = [f"{metric} | published | difference" for metric in METRICS]
        yield "| data | epsilon | repetitions | CPU s | " + " | ".join(shown) + " |"
        yield "| --- " * (4 + 3 * len(METRICS)) + "|"
        for (data, epsilon), rows in here.groupby(["data", "epsilon"], sort=False):
            cells = [str(data), str(epsilon), str(len(rows)), f"{rows['cpu_seconds'].mean():.2f}"]
            differences = []
            for metric, sign in METRICS.items():
                mean, theirs = rows[metric].mean(), published[data, metric, epsilon]
                error = rows[metric].std(ddof=1) / math.sqrt(len(rows))
                difference = sign * (mean - theirs) / math.hypot(error, ROUNDING)
                differences.append(difference)
                cells += [f"{mean:.4f} ± {error:.4f}", f"{theirs:.3f}", f"{difference:+.1f}"]
            yield "| " + " | ".join(cells) + " |"
            if epsilon in JUDGED:
                verdicts.append((data, epsilon, differences))
        yield "\nWithin two standard errors of the published figure, or better:\n"
        for data, epsilon, differences in verdicts:
            worse = [m for m, d in zip(METRICS, differences, strict=True) if d < -2]
            said = "NO: " + ", ".join(worse) if worse else "yes"
            if math.isnan(differences[0]):
                said = "unknown, with one repetition"
            yield f"- {data}, epsilon {epsilon}: {said}"


def main() -> None:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data, reference = map(os.environ.get, ("COUNTERPOISE_DATA", "COUNTERPOISE_REFERENCE"))
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument(
        "--reference",
        type=Path,
        default=reference,
        required=reference is None,
        help="CSV of the published figures: dataset, metric, epsilon, value",
    )
    parser.add_argument("--sets", type=names, default=list(SETS))
    parser.add_argument("--epsilons", type=names, default=["0.25", "0.5", "1", "2"])
    parser.add_argument("--protocols", type=names, default=list(PROTOCOLS))
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--splits", type=int, default=10, help="in the published protocol")
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    results = run(chosen, chosen.out / "tstr.csv")
    figures = pd.read_csv(chosen.reference, dtype={"epsilon": str})
    text = "\n".join([*tables(results, figures), "", NOTES, ""])
    (chosen.out / "tstr.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
