"""Private training on the rows themselves, the yardstick of synthetic rows: appendix D.2.

A release serves any number of models; a model that is trained privately serves itself. What the
release costs beside it is measured here, for a logistic regression of the last column (Zhou et al.
2024, figure 4). All methods see the same 80% of the rows, have the same budget, each for itself,
and are tested on the other 20%; features are the codes from -1 to 1 and an intercept.

- real: a logistic regression without privacy.
- release: the default release, its weights used, and the same regression on its rows.
- dp-sgd: noisy gradients (`vault.descent`) of a linear network; the mean of the second half.
- output: the perturbed minimiser (`vault.minimise`) with Gaussian noise.
- objective: the minimiser of a perturbed objective (`vault.minimise_perturbed`), which is pure: a
  budget of the same epsilon without a delta. Its penalty is the one with which the determinant
  takes a tenth of epsilon.
- pate: teachers (`vault.teachers`) vote on 100 rows (20 of heart) that are taken for public and
  left out of the private ones, without labels; a regression learns from those and the votes.

A private row enters a vault as y (1, x), which depends on that row alone and has a label of one
for everybody, so that the vault's queries for telling private rows from others train a classifier.
Whatever is set below was set before any result was seen, the same for all tables. The number of
rows is taken for public where a rate or a penalty is divided by it, and the domains were read off
the rows: epsilon describes the algorithms alone.

    python benchmarks/private_training.py --data DIR [--sets compas,heart,churn] [--repetitions 5]

What has a row in `results/private_training.csv` is not run again; the table goes to
`results/private_training.md`, the plot to `results/private_training.png`.
"""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import counterpoise as cp
import peers
from certificates import schema_of
from counterpoise.networks import Inputs, Network, Optimiser
from counterpoise.vault.descent_plan import DescentPlan
from counterpoise.vault.objective import CURVATURE
from counterpoise.vault.votes import TeacherPlan
from resumed import resumed

KEY = ["data", "epsilon", "method", "repetition"]
METRICS = ("accuracy", "auc", "risk")
# dp-sgd: each row in a lot with this chance, so many steps, norm and rate of learning
RATE, STEPS, CLIP, LEARNING = 0.1, 200, 1.0, 1.0
# output: the penalty
PENALTY = 0.03
# objective: the part of epsilon for k log(1 + R^2 / (4 L)), from which the penalty L follows
BEND_PART = 0.1
# pate: rows a teacher, steps of training, public rows
ROWS_A_TEACHER, TEACHER_STEPS, PUBLIC, PUBLIC_OF_FEW, FEW = 25, 300, 100, 20, 1000

NOTES = """\
Delta is 1/n^2. The domains equal the values observed in the data, so that epsilon describes the
algorithms alone. Means over repetitions and their standard errors; a repetition fixes the split.
"""


def features(rows: pd.DataFrame, domain: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """An intercept and the codes from -1 to 1, and labels -1 and 1."""
    *names, target = domain
    scale = np.array([max(domain[name] - 1, 1) for name in names])
    scaled = 2 * rows[names].to_numpy() / scale - 1
    return np.column_stack([np.ones(len(rows)), scaled]), 2.0 * rows[target].to_numpy() - 1


def fitted(rows: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """A logistic regression, hardly penalised."""
    if len(np.unique(labels)) < 2:
        return np.append(4.0 * labels[0], np.zeros(rows.shape[1] - 1))
    model = LogisticRegression(max_iter=5000, fit_intercept=False, C=100.0)
    return model.fit(rows, labels, weights).coef_[0]


def open_vault(
    rows: np.ndarray, labels: np.ndarray, budget: cp.Budget, seed: int
) -> tuple[cp.Vault, cp.Schema]:
    """A vault of the rows y (1, x)."""
    names = [f"z{place}" for place in range(rows.shape[1])]
    schema = cp.Schema([cp.Column.continuous(name, -1, 1, bins=4) for name in names])
    table = pd.DataFrame(rows * labels[:, None], columns=names)
    return cp.Vault(table, schema, budget, seed=seed), schema


def by_descent(rows: np.ndarray, labels: np.ndarray, budget: cp.Budget, seed: int) -> np.ndarray:
    vault, schema = open_vault(rows, labels, budget, seed)
    with vault:
        inputs = Inputs(schema)
        plan = DescentPlan.within(
            vault,
            budget.whole,
            inputs=inputs,
            network=Network((inputs.size, 1)),
            loss="logistic",
            rate=RATE,
            lot=RATE * len(rows),
            clip=CLIP,
            steps=STEPS,
        )
        course = vault.descent(plan)
        point, kept = np.zeros(plan.network.size), []
        for step in range(STEPS):
            gradient = course.gradient(point)
            # There is an intercept among the inputs; the network's own offset stays at zero.
            gradient[-1] = 0.0
            point = point - LEARNING / math.sqrt(1 + step / 10) * gradient
            kept.append(point[:-1])
    return np.mean(kept[STEPS // 2 :], axis=0)


class Signed:
    """What a vault of rows y (1, x) sums: the rows themselves."""

    def __init__(self, names: tuple[str, ...]):
        self.names = names

    def __call__(self, rows: cp.schema.Coded) -> np.ndarray:
        return 2 * rows.units - 1


def by_output(rows: np.ndarray, labels: np.ndarray, budget: cp.Budget, seed: int) -> np.ndarray:
    vault, schema = open_vault(rows, labels, budget, seed)
    none = schema.encode(pd.DataFrame({name: np.empty(0) for name in schema.names}))
    with vault:
        answer = vault.minimise(
            Signed(schema.names),
            math.sqrt(rows.shape[1]),
            none,
            budget.whole,
            rows=len(rows),
            regularisation=PENALTY,
        )
    return answer.values


def by_objective(rows: np.ndarray, labels: np.ndarray, budget: cp.Budget, seed: int) -> np.ndarray:
    pure = cp.Budget(budget.epsilon)
    vault, schema = open_vault(rows, labels, pure, seed)
    none = schema.encode(pd.DataFrame({name: np.empty(0) for name in schema.names}))
    bound = math.sqrt(rows.shape[1])
    penalty = CURVATURE * bound**2 / math.expm1(BEND_PART * pure.epsilon)
    with vault:
        answer = vault.minimise_perturbed(
            Signed(schema.names), bound, none, pure.whole, rows=1.0, regularisation=penalty
        )
    return answer.values


def by_votes(rows: np.ndarray, labels: np.ndarray, budget: cp.Budget, seed: int) -> np.ndarray:
    public = PUBLIC_OF_FEW if len(rows) < FEW else PUBLIC
    unlabelled, rows, labels = rows[:public], rows[public:], labels[public:]
    vault, schema = open_vault(rows, labels, budget, seed)
    with vault:
        inputs = Inputs(schema)
        plan = TeacherPlan.within(
            vault,
            budget.whole,
            queries=public,
            inputs=inputs,
            network=Network((inputs.size, 1)),
            teachers=max(2, len(rows) // ROWS_A_TEACHER),
            optimiser=Optimiser(rate=0.05),
        )
        course = vault.teachers(plan)
        # Either label is as likely in these: what tells private rows from them is the label.
        course.train(np.concatenate([unlabelled, -unlabelled]), TEACHER_STEPS)
        votes = course.votes(unlabelled)
    return fitted(unlabelled, np.where(votes > plan.teachers / 2, 1.0, -1.0))


def by_release(
    seen: pd.DataFrame, domain: dict[str, int], budget: cp.Budget, seed: int
) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = cp.release(
            seen,
            schema=schema_of(peers.Table("", seen, domain)),
            epsilon=budget.epsilon,
            delta=budget.delta,
            replicates=0,
            seed=seed,
            progress=False,
        )
    rows, labels = features(made.table[list(domain)].astype(int), domain)
    return fitted(rows, labels, made.weights)


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "dp-sgd": by_descent,
    "output": by_output,
    "objective": by_objective,
    "pate": by_votes,
}


def one(
    folder: Path, data: str, epsilon: float, method: str, repetition: int
) -> list[dict[str, object]]:
    """Train one model and test it."""
    table = peers.load(data, folder)
    seen, unseen = table.split(repetition)
    rows, labels = features(seen, table.domain)
    test, truth = features(unseen, table.domain)
    budget = cp.Budget(epsilon, 1 / len(seen) ** 2)
    start = time.process_time()
    if method == "real":
        model = fitted(rows, labels)
    elif method == "release":
        model = by_release(seen, table.domain, budget, repetition)
    else:
        model = METHODS[method](rows, labels, budget, repetition)
    seconds = time.process_time() - start
    scores = np.clip(test @ model, -30, 30)
    found = {
        "accuracy": accuracy_score(truth > 0, scores > 0),
        "auc": roc_auc_score(truth > 0, scores),
        "risk": log_loss(truth > 0, 1 / (1 + np.exp(-scores))),
        "cpu_seconds": seconds,
    }
    return [dict(zip(KEY, (data, epsilon, method, repetition), strict=True)) | found]


def table_of(results: pd.DataFrame) -> str:
    """Means and their standard errors, as Markdown."""
    lines = ["| data | epsilon | method | repetitions | accuracy | AUC | risk | CPU s |"]
    lines.append("|" + " --- |" * 8)
    for key, rows in results.groupby(KEY[:3], sort=False):
        count = len(rows)
        cells = [*map(str, key), str(count)]
        for metric in METRICS:
            error = rows[metric].std(ddof=1) / math.sqrt(count) if count > 1 else math.nan
            cells.append(f"{rows[metric].mean():.3f} ± {error:.3f}")
        lines.append("| " + " | ".join([*cells, f"{rows['cpu_seconds'].mean():.1f}"]) + " |")
    return "\n".join(lines)


def draw(results: pd.DataFrame, out: Path) -> None:
    """Accuracy by method, a panel a set, as figure 4 of the paper."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sets = list(dict.fromkeys(results["data"]))
    methods = ["real", "release", *METHODS]
    plot, axes = plt.subplots(1, len(sets), figsize=(3.6 * len(sets), 3.4), squeeze=False)
    for axis, name in zip(axes[0], sets, strict=True):
        here = results[results["data"] == name]
        for number, (epsilon, rows) in enumerate(here.groupby("epsilon")):
            each = rows.groupby("method")["accuracy"]
            means, errors = each.mean().reindex(methods), each.sem().reindex(methods)
            places = np.arange(len(methods)) + 0.35 * number - 0.17
            axis.bar(places, means, 0.34, yerr=errors, label=f"epsilon {epsilon:g}")
        axis.set_xticks(range(len(methods)), methods, rotation=30)
        axis.set(title=name, ylim=(0.4, None))
    axes[0][0].set_ylabel("accuracy on held-out rows")
    axes[0][-1].legend(fontsize=8)
    plot.tight_layout()
    plot.savefig(out / "private_training.png", dpi=110)


def main() -> None:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("COUNTERPOISE_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument("--sets", type=names, default=["compas", "heart", "churn"])
    parser.add_argument("--epsilons", type=names, default=["1", "2"])
    parser.add_argument("--methods", type=names, default=["real", "release", *METHODS])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    wanted = [
        (data, float(epsilon), method, repetition)
        for repetition in range(chosen.repetitions)
        for data in chosen.sets
        for epsilon in chosen.epsilons
        for method in chosen.methods
    ]

    def trained(*key: object) -> list[dict[str, object]]:
        return one(chosen.data, *key)

    results = resumed(trained, wanted, KEY, chosen.out / "private_training.csv", 1, 1)
    order = {name: place for place, name in enumerate(["real", "release", *METHODS])}
    results = results.sort_values(
        ["data", "epsilon", "method"], key=lambda c: c.map(order) if c.name == "method" else c
    )
    text = "\n".join([table_of(results), "", NOTES])
    (chosen.out / "private_training.md").write_text(text)
    print(text)
    draw(results, chosen.out)


if __name__ == "__main__":
    main()
