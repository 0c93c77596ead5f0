"""Weights for a synthetic table that another tool made, and what they put right.

    python examples/other_tool.py weighted

The private table is scikit-learn's breast cancer data. The other tool here knows each column by
itself, from what was published about it, and nothing of how they belong together.
"""

import sys

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import counterpoise as cp

SCHEMA = cp.Schema(
    [
        cp.Column.continuous("radius", 0, 40),
        cp.Column.continuous("texture", 0, 50),
        cp.Column.boolean("malignant"),
    ]
)


def tumours() -> pd.DataFrame:
    """The private table: two measurements of 569 tumours, and what they turned out to be."""
    data = load_breast_cancer(as_frame=True)
    measured = data.frame[["mean radius", "mean texture"]].set_axis(["radius", "texture"], axis=1)
    return measured.assign(malignant=data.target == 0)


def other_tool(rows: int) -> pd.DataFrame:
    """Each column by itself."""
    generator = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "radius": generator.normal(14, 3.5, rows).clip(0, 40),
            "texture": generator.normal(19, 4.3, rows).clip(0, 50),
            "malignant": generator.random(rows) < 0.4,
        }
    )


def main(folder: str) -> None:
    """Weigh the other tool's rows by the private ones, and compare."""
    private, synthetic = tumours(), other_tool(2000)

    # The budget is that of the weights alone; what the other tool spent is yours to add.
    release = cp.weigh(private, synthetic, SCHEMA, 1.0, 1e-6, target="malignant", progress=False)
    print(release)

    # Only here, where the private table is public, may the truth be printed beside the estimates.
    truth = private.groupby("malignant")["radius"].mean()
    estimated = release.mean("radius", by="malignant")
    print("\nmean radius      without weights   with weights         truth")
    for malignant in (False, True):
        estimate = estimated[malignant]
        label = "malignant" if malignant else "benign"
        print(f"{label:16} {estimate.unweighted:15.1f}   {estimate!s:18} {truth[malignant]:7.1f}")
    print(f"\nwritten to {release.save(folder, overwrite=True)}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "weighted")
