"""`counterpoise demo`: a release of scikit-learn's breast cancer table, made and used.

The bounds in the schema are round numbers that a clinician would state without looking at these
patients. A demo may print the truth beside the estimates; a real release never does.
"""

from pathlib import Path

import click
import pandas as pd
from rich.console import Console
from rich.table import Table

import counterpoise
from counterpoise.schema import Column, Schema

SCHEMA = Schema(
    [
        Column.categorical("diagnosis", ["benign", "malignant"]),
        Column.continuous("mean radius", 5, 30),
        Column.continuous("mean texture", 5, 40),
        Column.continuous("mean area", 100, 2600),
        Column.continuous("mean smoothness", 0.04, 0.18),
        Column.continuous("mean concavity", 0, 0.5),
        Column.continuous("mean symmetry", 0.1, 0.32),
    ]
)


def patients() -> pd.DataFrame:
    """The breast cancer table that comes with scikit-learn, with its diagnosis as text."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    table = data.frame.assign(diagnosis=data.frame["target"].map({0: "malignant", 1: "benign"}))
    return table[list(SCHEMA.names)]


@click.command("demo", epilog="Example: counterpoise demo --out demo-release")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("demo-release"), show_default=True
)
@click.option("--epsilon", type=float, default=1.0, show_default=True)
def command(out: Path, epsilon: float) -> None:
    """Make a release of bundled data, load it as an analyst would, and compare with the truth."""
    console = Console()
    truth = patients()
    console.print(f"[bold]Curator[/bold]: {len(truth)} patients, {len(SCHEMA)} columns")
    made = counterpoise.release(truth, SCHEMA, epsilon=epsilon, delta=1e-6)
    made.save(out, overwrite=True)
    ledger = made.ledger
    click.echo(f"{str(ledger).splitlines()[0]}, in {len(ledger.spends)} looks at the table")

    release = counterpoise.load(out)
    console.print("\n[bold]Analyst[/bold]: loads the release, never sees the patients")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("estimate", "private table", "release"):
        table.add_column(heading, justify="left" if heading == "estimate" else "right")
    for label, private, released in _comparison(truth, release.table):
        table.add_row(label, f"{private:.3g}", f"{released:.3g}")
    console.print(table)
    click.echo(f"\nrelease: {out}\nreport:  {out / 'report.html'}")


def _comparison(truth: pd.DataFrame, synthetic: pd.DataFrame) -> list[tuple[str, float, float]]:
    rows = [
        (
            "share malignant",
            float((truth["diagnosis"] == "malignant").mean()),
            _weighted_mean(synthetic, (synthetic["diagnosis"] == "malignant").astype(float)),
        )
    ]
    for name in ("mean radius", "mean concavity"):
        for diagnosis in ("benign", "malignant"):
            private = truth.loc[truth["diagnosis"] == diagnosis, name].mean()
            released = synthetic[synthetic["diagnosis"] == diagnosis]
            rows.append(
                (f"{name}, {diagnosis}", float(private), _weighted_mean(released, released[name]))
            )
    return rows


def _weighted_mean(table: pd.DataFrame, values: pd.Series) -> float:
    return float((table["weight"] * values).sum() / table["weight"].sum())
