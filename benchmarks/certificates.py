"""Certificates beside what they bound: published bound, ours, the curator's, and the excess risk.

Tables, targets and budgets are those of Zhou et al. 2024 (Bounding the Excess Risk for Linear
Models Trained on Marginal-Preserving, Differentially-Private, Synthetic Data). Every release is of
all pairs (`marginals`), or by AIM, unweighted and by default weights; a certificate is asked for at
each norm and loss. Columns of more than 32 values are cut into 16 bins of equal width. Three parts:

- bounds: for each release the published bound (theorems 3.1 and 3.2 with constants, by the true
  distance of pairs, order 2), the sharper chain, ours, ours by the true moments, the excess risk.
- orders: the published bound and the chain by the true distance of tables of 2, 3 and 4 columns,
  with the polynomials that such tables determine, for unweighted rows at the first epsilon.
- figures: risk, accuracy and AUC over epsilon as in figure 3 (table 2), classifiers and targets as
  in figure 5; figure 4 is made by `private_training.py`.

    python benchmarks/certificates.py --data DIR [--sets heart,compas] [--repetitions 5]

Noise is seeded by the repetition. What has rows in `results/certificates.csv` is not run again.
The tables go to `results/certificates.md`, the plots to `results/certificates_*.png`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import counterpoise as cp
import peers
from counterpoise.analysis.certificate_chains import published_bound, sharper_bound
from counterpoise.analysis.margin_losses import LOSSES
from counterpoise.evaluation import exact_certificate, excess_risk, marginal_distance
from resumed import resumed

SETS = ("heart", "compas", "churn", "law", "dutch", "adult")
MOST_VALUES, BINS = 32, 16
NORMS = (0.1, 0.3, 1.0, 3.0)
ORDERS = (2, 3, 4)
SYNTHESIZERS = ("marginals", "aim")
KEY = ["data", "epsilon", "synthesizer", "weights", "repetition"]
ORDER_KEY = ["data", "epsilon", "synthesizer", "repetition"]
FIGURE_5 = {
    "dutch": ("occupation", "prev_residence_place", "sex"),
    "adult": ("income>50K", "sex", "relationship"),
    "law": ("pass_bar", "race", "fulltime"),
}

NOTES = """\
The domain files of these sets equal the values observed in the data, so they are no public
knowledge, and epsilon describes the algorithm alone; delta is 1/n^2. Failure 0.05, order 2.
"""


def schema_of(table: peers.Table) -> cp.Schema:
    """Codes as numbers, the classifier's way; many values in bins; the target as two categories."""
    *names, target = table.domain
    columns = [
        cp.Column.integer(name, 0, size - 1, **({"bins": BINS} if size > MOST_VALUES else {}))
        for name, size in ((name, table.domain[name]) for name in names)
    ]
    return cp.Schema([*columns, cp.Column.categorical(target, [0, 1])])


def release_of(
    table: peers.Table, epsilon: float, synthesizer: str, weights: str, repetition: int
) -> cp.Release:
    """A release with seeded noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cp.release(
            table.codes,
            schema=schema_of(table),
            epsilon=epsilon,
            delta=1 / len(table.codes) ** 2,
            synthesizer=synthesizer,
            weights=weights,
            replicates=0,
            seed=repetition,
            progress=False,
        )


def certify(
    folder: Path, data: str, epsilon: float, synthesizer: str, weights: str, repetition: int
) -> list[dict]:
    """One release, and its certificates at every norm."""
    table = peers.load(data, folder)
    target = list(table.domain)[-1]
    key = dict(zip(KEY, (data, epsilon, synthesizer, weights, repetition), strict=True))
    release = release_of(table, epsilon, synthesizer, weights, repetition).use_weights()
    distance = marginal_distance(release, table.codes, 2)
    features = len(table.domain) - 1
    rows = []
    for name, norm in itertools.product(("logistic", "squared", "hinge"), NORMS):
        if name != "logistic" and norm != NORMS[1]:
            continue
        start = time.process_time()
        found = release.certificate(target, loss=name, norm=norm)
        seconds = time.process_time() - start
        exact = exact_certificate(release, table.codes, target, loss=name, norm=norm)
        chain = {"features": features + 1, "order": 2, "norm": norm}
        rows.append(
            key
            | {
                "loss": name,
                "norm": norm,
                "published": published_bound(LOSSES[name], distance, **chain),
                "chain": sharper_bound(LOSSES[name], distance, **chain).bound,
                "ours": found.bound,
                "curator": exact.bound,
                "excess": excess_risk(release, table.codes, target, loss=name, norm=norm),
                "trivial": found.trivial,
                "gain": found.gain,
                "raw": found.raw_bound,
                "distance": distance,
                "unmeasured": len(found.unmeasured),
                "cpu_seconds": seconds,
            }
        )
    return rows


def by_order(
    folder: Path, data: str, epsilon: float, synthesizer: str, repetition: int
) -> list[dict]:
    """The bounds that go through the distance of tables, for tables of more and more columns."""
    table = peers.load(data, folder)
    key = dict(zip(ORDER_KEY, (data, epsilon, synthesizer, repetition), strict=True))
    release = release_of(table, epsilon, synthesizer, "uniform", repetition)
    rows = []
    for order in ORDERS:
        distance = marginal_distance(release, table.codes, order)
        for norm in NORMS:
            chain = {"features": len(table.domain), "order": order, "norm": norm}
            sharper = sharper_bound(LOSSES["logistic"], distance, **chain)
            rows.append(
                key
                | {
                    "order": order,
                    "norm": norm,
                    "distance": distance,
                    "published": published_bound(LOSSES["logistic"], distance, **chain),
                    "chain": sharper.bound,
                    "polynomial": 4 * sharper.polynomial.error,
                }
            )
    return rows


@lru_cache(maxsize=1)
def made_rows(folder: Path, data: str, epsilon: float, repetition: int) -> pd.DataFrame:
    """AIM's rows for 80% of a table; all targets of a table are learnt from the same ones."""
    table = peers.load(data, folder)
    seen, _ = table.split(repetition)
    part = peers.Table(data, seen, table.domain)
    made = release_of(part, epsilon, "aim", "uniform", repetition).table
    return made[list(seen.columns)].astype(int)


def predict(
    folder: Path, data: str, epsilon: float, target: str, repetition: int
) -> list[dict[str, object]]:
    """Figures 3 and 5: a logistic regression on 80% of the rows by AIM, tested on the real 20%.

    An epsilon of zero stands for real rows. Ours is trained on the rows of 80% of the table only.
    """
    table = peers.load(data, folder)
    seen, unseen = table.split(repetition)
    trained = made_rows(folder, data, epsilon, repetition) if epsilon else seen
    names = [name for name in seen.columns if name != target]
    classifier = LogisticRegression(max_iter=2000)
    scale = np.array([max(table.domain[name] - 1, 1) for name in names])
    classifier.fit(trained[names].to_numpy() / scale, trained[target])
    chance = classifier.predict_proba(unseen[names].to_numpy() / scale)
    truth = unseen[target].to_numpy()
    found = {
        "accuracy": accuracy_score(truth, classifier.classes_[chance.argmax(axis=1)]),
        "risk": np.nan,
        "auc": np.nan,
    }
    if table.domain[target] == 2 and len(classifier.classes_) == 2:
        found["risk"] = log_loss(truth, chance[:, 1], labels=[0, 1])
        found["auc"] = roc_auc_score(truth, chance[:, 1])
    key = {"data": data, "epsilon": epsilon, "target": target, "repetition": repetition}
    return [key | found]


def table_of(results: pd.DataFrame) -> str:
    """Means over repetitions, as Markdown."""
    group = ["loss", "data", "synthesizer", "weights", "epsilon", "norm"]
    shown = ["published", "chain", "ours", "curator", "excess", "gain", "trivial"]
    lines = ["| " + " | ".join([*group, *shown, "holds", "ours / excess"]) + " |"]
    lines.append("|" + " --- |" * (len(group) + len(shown) + 2))
    for key, rows in results.groupby(group, sort=False):
        held = int((rows["excess"] <= rows["ours"]).sum())
        ratio = rows["ours"].mean() / max(rows["excess"].mean(), 1e-12)
        cells = [*map(str, key), *(f"{rows[name].mean():.3g}" for name in shown)]
        lines.append("| " + " | ".join([*cells, f"{held} of {len(rows)}", f"{ratio:.0f}"]) + " |")
    return "\n".join(lines)


def table_of_orders(orders: pd.DataFrame) -> str:
    """Means over repetitions, as Markdown."""
    shown = ["distance", "published", "chain", "polynomial"]
    group = ["data", "synthesizer", "epsilon", "norm", "order"]
    lines = ["| " + " | ".join([*group, *shown]) + " |", "|" + " --- |" * (len(group) + 4)]
    for key, rows in orders.groupby(group, sort=False):
        cells = [*map(str, key), *(f"{rows[name].mean():.3g}" for name in shown)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(results: pd.DataFrame, orders: pd.DataFrame, figures: pd.DataFrame, out: Path) -> None:
    """Bounds over epsilon a set and over the order, and figures 3 and 5 of the paper."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    here = results[
        (results["loss"] == "logistic")
        & (results["norm"] == NORMS[1])
        & (results["synthesizer"] == "marginals")
        & (results["weights"] == "uniform")
    ]
    sets = [name for name in SETS if name in set(here["data"])]
    marks = {
        "published": "v",
        "chain": "s",
        "ours": "o",
        "curator": "^",
        "excess": "x",
        "gain": "_",
    }
    plot, axes = plt.subplots(1, max(len(sets), 1), figsize=(3.2 * max(len(sets), 1), 3.6))
    for axis, name in zip(np.atleast_1d(axes), sets, strict=False):
        means = here[here["data"] == name].groupby("epsilon")[list(marks)].mean()
        for label, mark in marks.items():
            style = "--" if label == "gain" else "-"
            axis.plot(means.index, means[label], style, marker=mark, label=label)
        axis.set(title=name, xscale="log", yscale="log", xlabel="epsilon")
        axis.set_xticks(means.index, [f"{epsilon:g}" for epsilon in means.index])
        axis.minorticks_off()
    np.atleast_1d(axes)[0].set_ylabel(f"logistic risk, norm {NORMS[1]:g}")
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    plot.legend(handles, labels, loc="lower center", ncol=len(marks), frameon=False)
    plot.tight_layout(rect=(0, 0.08, 1, 1))
    plot.savefig(out / "certificates_bounds.png", dpi=110)
    _draw_orders(plt, orders, out)
    _draw_figure_3(plt, figures, out)
    _draw_figure_5(plt, figures, out)


def _draw_orders(plt: object, orders: pd.DataFrame, out: Path) -> None:
    here = orders[orders["synthesizer"] == SYNTHESIZERS[0]]
    sets = [name for name in SETS if name in set(here["data"])]
    plot, axes = plt.subplots(1, max(len(sets), 1), figsize=(3.2 * max(len(sets), 1), 3.6))
    for axis, name in zip(np.atleast_1d(axes), sets, strict=False):
        for number, (norm, rows) in enumerate(here[here["data"] == name].groupby("norm")):
            means = rows.groupby("order")[["published", "chain"]].mean()
            colour, label = f"C{number}", f"norm {norm:g}"
            axis.plot(means.index, means["chain"], "o-", color=colour, label=label)
            axis.plot(means.index, means["published"], "v:", color=colour, linewidth=1)
        axis.set(title=name, yscale="log", xlabel="order", xticks=ORDERS)
    np.atleast_1d(axes)[0].set_ylabel("bound (dotted: published)")
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    plot.legend(handles, labels, loc="lower center", ncol=len(NORMS), frameon=False)
    plot.tight_layout(rect=(0, 0.08, 1, 1))
    plot.savefig(out / "certificates_orders.png", dpi=110)


def _draw_figure_3(plt: object, figures: pd.DataFrame, out: Path) -> None:
    sets = [name for name in SETS if name in set(figures["data"])]
    plot, axes = plt.subplots(1, 3, figsize=(12, 3.6))
    for axis, metric in zip(axes, ("accuracy", "auc", "risk"), strict=True):
        for number, name in enumerate(sets):
            last = figures[figures["data"] == name]["target"].iloc[0]
            rows = figures[(figures["data"] == name) & (figures["target"] == last)]
            means = rows.groupby("epsilon")[metric].mean()
            synthetic = means[means.index > 0]
            axis.plot(synthetic.index, synthetic, marker="o", color=f"C{number}", label=name)
            if 0 in means.index:
                axis.axhline(means[0], color=f"C{number}", linestyle=":", linewidth=1)
        axis.set(title=metric, xlabel="epsilon (dotted: trained on real rows)")
    axes[0].legend(fontsize=8)
    plot.tight_layout()
    plot.savefig(out / "certificates_figure3.png", dpi=110)


def _draw_figure_5(plt: object, figures: pd.DataFrame, out: Path) -> None:
    chosen = [
        (name, target)
        for name, targets in FIGURE_5.items()
        for target in targets
        if ((figures["data"] == name) & (figures["target"] == target)).any()
    ]
    if not chosen:
        return
    plot, axes = plt.subplots(2, 1, figsize=(10, 6), sharex=True)
    # An accuracy may be that of the larger class alone; the AUC, of two classes, tells.
    for axis, metric in zip(axes, ("accuracy", "auc"), strict=True):
        for place, (name, target) in enumerate(chosen):
            rows = figures[(figures["data"] == name) & (figures["target"] == target)]
            for shift, epsilon in ((-0.2, 0.0), (0.2, 1.0)):
                values = rows[rows["epsilon"] == epsilon][metric]
                axis.bar(place + shift, values.mean(), 0.38, color="C7" if epsilon == 0 else "C0")
        axis.set(ylabel=metric, ylim=(0, 1))
    labels = [f"{name}\n{target}" for name, target in chosen]
    axes[1].set_xticks(range(len(chosen)), labels, fontsize=7)
    axes[0].set_title("trained on real rows (grey) and on AIM's at epsilon 1 (blue)")
    plot.tight_layout()
    plot.savefig(out / "certificates_figure5.png", dpi=110)


def main() -> None:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("COUNTERPOISE_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument("--sets", type=names, default=list(SETS))
    parser.add_argument("--epsilons", type=names, default=["0.5", "1", "2", "8"])
    parser.add_argument("--order-sets", type=names, help="of the sets; by default all")
    parser.add_argument("--figure-epsilons", type=names, default=["0.25", "0.5", "1", "2"])
    parser.add_argument("--synthesizers", type=names, default=list(SYNTHESIZERS))
    parser.add_argument("--weights", type=names, default=["uniform", "moments"])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--figure-repetitions", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    wanted = [
        (data, float(epsilon), synthesizer, weights, repetition)
        for repetition in range(chosen.repetitions)
        for data in chosen.sets
        for epsilon in chosen.epsilons
        for synthesizer in chosen.synthesizers
        for weights in chosen.weights
    ]

    def one(*key: object) -> list[dict]:
        return certify(chosen.data, *key)

    out = chosen.out / "certificates.csv"
    results = resumed(one, wanted, KEY, out, chosen.jobs, 1)
    in_orders = [
        (data, float(chosen.epsilons[0]), synthesizer, repetition)
        for repetition in range(chosen.repetitions)
        for data in (chosen.sets if chosen.order_sets is None else chosen.order_sets)
        for synthesizer in chosen.synthesizers
    ]

    def ordered(*key: object) -> list[dict]:
        return by_order(chosen.data, *key)

    out = chosen.out / "certificates_orders.csv"
    orders = resumed(ordered, in_orders, ORDER_KEY, out, chosen.jobs, 1)
    pairs = [
        (data, float(epsilon), list(peers.load(data, chosen.data).domain)[-1])
        for data in chosen.sets
        for epsilon in (*chosen.figure_epsilons, "0")
    ]
    pairs += [
        (data, epsilon, target)
        for data in chosen.sets
        for target in FIGURE_5.get(data, ())[1:]
        for epsilon in (0.0, 1.0)
    ]
    # Targets of one release next to each other.
    wanted_figures = [
        (*pair, repetition)
        for repetition in range(chosen.figure_repetitions)
        for pair in sorted(set(pairs), key=lambda pair: pair[:2])
    ]

    def another(*key: object) -> list[dict]:
        return predict(chosen.data, *key)

    key = ["data", "epsilon", "target", "repetition"]
    figures = resumed(
        another, wanted_figures, key, chosen.out / "certificates_figures.csv", chosen.jobs, 1
    )
    text = "\n".join([table_of(results), "", table_of_orders(orders), "", NOTES])
    (chosen.out / "certificates.md").write_text(text)
    print(text)
    draw(results, orders, figures, chosen.out)


if __name__ == "__main__":
    main()
