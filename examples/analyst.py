"""The analyst: a release is all there is, and estimates say how uncertain they are.

    python examples/analyst.py my-release

`examples/curator.py` makes the release.
"""

import sys

import pandas as pd
from sklearn.linear_model import LogisticRegression

import counterpoise as cp


def main(folder: str) -> None:
    """Estimate, regress, predict and draw more rows."""
    release = cp.load(folder)
    print(release)

    # Each estimate has an interval, privacy noise included, and what it is without the weights.
    members = release.proportion("member", True)
    print("\nunion members:", members, "  without weights:", round(members.unweighted, 3))
    print("\nage of members and others:")
    print(release.mean("age", by="member"))
    print("\nmedian hours:", release.quantile("hours", 0.5))

    # A regression with standard errors that include the privacy noise.
    print("\nwho is a member:")
    print(release.glm("member ~ age + sector"))

    # Any scikit-learn estimator that takes sample weights; it predicts on raw tables.
    model = release.fit(LogisticRegression(max_iter=1000), target="member")
    people = pd.DataFrame(
        {
            "age": [25, 60],
            "sector": ["services", "industry"],
            "education": ["middle", "basic"],
            "hours": [38.0, 40.0],
        }
    )
    print("\nchance of being a member:", model.predict_proba(people)[:, 1].round(2))

    # The model behind the rows is in the folder, so more rows are free.
    print("\nmore rows:", release.sample(10_000, seed=1))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "my-release")
