"""The small install works: the core alone, in an environment of its own, makes a release."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MARGINAL_PATH = """
import importlib.util, sys
import numpy as np, pandas as pd
import counterpoise as cp

for heavy in ("pyarrow", "polars", "pyspark", "jax", "torch", "mbi"):
    assert importlib.util.find_spec(heavy) is None, heavy

rows = pd.DataFrame({"ill": [True, False] * 200, "dose": np.linspace(0, 9, 400)})
schema = cp.Schema([cp.Column.boolean("ill"), cp.Column.continuous("dose", 0, 10)])
rows.to_csv("table.csv", index=False)
release = cp.release("table.csv", schema, epsilon=1.0, delta=1e-6)
release.save("out")
assert cp.load("out").table.equals(release.table)
with cp.Vault("out/synthetic.parquet", schema, cp.Budget(1.0, 1e-6), storage="duckdb") as vault:
    vault.counts([("ill", "dose")], vault.budget.whole)
try:
    schema.decode(np.zeros((1, 2), dtype=int), np.random.default_rng(0), format="polars")
except cp.CounterpoiseError as error:
    assert "polars" in str(error)
print("made a release with the core alone")
"""


def test_the_core_alone_makes_a_release(tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(ROOT)]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode != 0 and "Could not find a version" in done.stderr:
        pytest.skip("the package registry cannot be reached from here")
    assert done.returncode == 0, done.stderr
    made = subprocess.run(
        [python, "-c", MARGINAL_PATH], cwd=tmp_path, capture_output=True, text=True
    )
    assert "made a release" in made.stdout, made.stderr
    assert sys.version_info >= (3, 11)
