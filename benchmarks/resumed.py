"""Studies that go on where they stopped: what has rows in the file is not run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed


def resumed(
    one: Callable[..., Any],
    wanted: Sequence[tuple[Any, ...]],
    key: Sequence[str],
    out: Path,
    jobs: int,
    every: int,
) -> pd.DataFrame:
    """All rows of `out`, after `one(*key)` has given those of every key that had none.

    The file is written after `every` so many, and at the end.
    """
    done = pd.read_csv(out) if out.exists() else pd.DataFrame(columns=list(key))
    finished = set(done[list(key)].itertuples(index=False, name=None))
    missing = [each for each in wanted if each not in finished]
    parts = [done] if len(done) else []
    run = Parallel(n_jobs=jobs, return_as="generator_unordered")
    for count, found in enumerate(run(delayed(one)(*each) for each in missing), 1):
        parts.append(pd.DataFrame(found))
        if count % every == 0 or count == len(missing):
            pd.concat(parts).to_csv(out, index=False)
            print(f"{count}/{len(missing)}", flush=True)
    return pd.concat(parts) if parts else done
