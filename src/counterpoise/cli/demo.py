"""`counterpoise demo`: a release of invented patients, made by a curator and used by an analyst.

A demo may print the truth beside the estimates, because these patients do not exist; a real
release never does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from counterpoise.cli.console import echo
from counterpoise.cli.options import PATH

if TYPE_CHECKING:
    import pandas as pd

    from counterpoise.bundle.release import Release


DEMO = Path("demo-release")
# Fewer leave nothing to show, and more are no longer a demo.
PATIENTS = click.IntRange(1_000, 1_000_000)


@click.command("demo", epilog="Example: counterpoise demo --out demo-release")
@click.option("-o", "--out", type=PATH, default=DEMO, show_default=True)
@click.option("--epsilon", type=float, default=1.0, show_default=True)
@click.option("--patients", "count", type=PATIENTS, default=12_000, show_default=True)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(out: Path, epsilon: float, count: int, quiet: bool) -> None:
    """Make a release of invented patients, use it as an analyst would, and compare."""
    from threadpoolctl import threadpool_limits

    import counterpoise
    from counterpoise.bundle.files import check_target
    from counterpoise.cli.console import notes, verdict_line
    from counterpoise.cli.hospital import SCHEMA, patients
    from counterpoise.cli.run import check_parents
    from counterpoise.cli.schema import schema_lines
    from counterpoise.cli.summary import places

    check_parents(out)
    # Only the demo's own folder is replaced without a word.
    check_target(out, overwrite=out == DEMO)

    def say(text: str) -> None:
        if not quiet:
            echo(text)

    truth, delta = patients(count), 1e-6
    say(f"The curator has {len(truth):,} patients, whom we invented, and a public schema:\n")
    say(schema_lines(SCHEMA) + "\n")
    with (
        notes(quiet),
        # The matrices are small: on a busy machine several threads wait for each other.
        threadpool_limits(1, "blas"),
    ):
        made = counterpoise.release(
            truth, SCHEMA, epsilon, delta, target="readmitted", progress=not quiet
        )
        made.save(out, overwrite=out == DEMO)
    ledger = made.ledger
    say(f"{str(ledger).splitlines()[0]}, in {len(ledger.spends)} looks at the table")
    say(f"\nThe analyst has the release, {len(made.table):,} synthetic rows, and nothing else:\n")
    # Whatever the verdict says is printed, so that it need not stop the demo.
    release = counterpoise.load(out).use_weights()
    say(verdict_line(release.card) + "\n")
    alone = _alone(made)
    say(_estimates(alone, release, truth))
    say("\nA logistic regression of who is readmitted, on 5,000 other patients:\n")
    say(_models(alone, release, truth, patients(5_000, seed=2025)))
    say("\n" + places(out))


def _alone(release: Release) -> Release:
    """Rows as the synthesizer makes them, before weights chose among them."""
    from counterpoise.bundle.models import Models
    from counterpoise.bundle.release import Release
    from counterpoise.bundle.weight_columns import WEIGHT

    assert isinstance(release.models, Models)
    rows = release.models.synthesizer.sample(len(release.table))
    return Release(rows.assign(**{WEIGHT: 1.0}), release.schema, card={})


def _estimates(alone: Release, release: Release, truth: pd.DataFrame) -> str:
    """Three estimates of the synthesizer's rows, of the release, and of the private table."""
    from counterpoise.analysis.text import aligned, show

    is_heart = truth["diagnosis"] == "heart"
    exact = {
        "mean age of the readmitted": truth.loc[truth["readmitted"], "age"].mean(),
        "readmitted of heart patients": truth.loc[is_heart, "readmitted"].mean(),
        "correlation of age and stay": truth["age"].corr(truth["stay"]),
    }

    def asked(of: Release) -> list[Any]:
        by_outcome: Any = of.mean("age", by="readmitted")
        by_diagnosis: Any = of.proportion("readmitted", by="diagnosis")
        return [by_outcome[True], by_diagnosis["heart"], of.corr("age", "stay")]

    lines = [("estimate", "the synthesizer alone", "the release", "truth")]
    for (label, true), before, found in zip(
        exact.items(), asked(alone), asked(release), strict=True
    ):
        digits = 2 * found.standard_error if found.standard_error else None
        shown = (show(before.value, digits), str(found), show(float(true), digits))
        lines.append((label, *shown))
    return aligned(lines, 1)


def _models(alone: Release, release: Release, truth: pd.DataFrame, others: pd.DataFrame) -> str:
    """How well models that were fitted without a private row rank patients they never saw."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    from counterpoise.analysis.text import aligned
    from counterpoise.bundle.release import Release
    from counterpoise.bundle.weight_columns import WEIGHT

    rows = truth.assign(**{WEIGHT: 1.0})
    private = Release(release.schema.restore(rows), release.schema, card={})
    lines = [("fitted on", "area under the ROC curve")]
    for label, source in {
        "the synthesizer alone": alone,
        "the release": release,
        "the private table": private,
    }.items():
        if source.table["readmitted"].nunique() < 2:
            lines.append((label, "too few rows to fit one"))
            continue
        model = source.fit(LogisticRegression(max_iter=1000), target="readmitted")
        chances = model.predict_proba(others.drop(columns="readmitted"))[:, 1]
        lines.append((label, f"{roc_auc_score(others['readmitted'], chances):.3f}"))
    return aligned(lines, 1)
