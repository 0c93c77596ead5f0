"""The vault: the only room with private rows. Budget, ledger, noise, queries, storage.

A query is a file here: its sensitivity and charge in the opening paragraph, a look that takes the
rows and returns noised values only, which it hands to `Vault._ask` with its event, a method of
`Vault` that calls it, and an audit in `tests/audits`.
"""

from counterpoise.vault.account import Account
from counterpoise.vault.boundary import seal
from counterpoise.vault.bounds import NoisyBounds
from counterpoise.vault.budget import ADD_REMOVE, REPLACE, Budget, Share
from counterpoise.vault.categories import NoisyCategories
from counterpoise.vault.cells import MOST_BINS, most_codes
from counterpoise.vault.counting import count_noise
from counterpoise.vault.counts import NoisyCounts
from counterpoise.vault.descend import Descent
from counterpoise.vault.descent_plan import DescentPlan
from counterpoise.vault.domain import threshold_delta
from counterpoise.vault.journal import Journal, Kept
from counterpoise.vault.ledger import Ledger, Spend
from counterpoise.vault.minimise import LogisticLoss, Loss, NoisyMinimiser
from counterpoise.vault.objective import PerturbedMinimiser
from counterpoise.vault.persons import NoisyPersons
from counterpoise.vault.perturbation import NoiseLaw, Perturbation, operator_norm, perturbation_for
from counterpoise.vault.point_scores import PointDistance, checked_width
from counterpoise.vault.points import NoisyPoints
from counterpoise.vault.quantiles import NoisyQuantiles
from counterpoise.vault.select import Dependence, MarginalError, Score
from counterpoise.vault.storage.people import People
from counterpoise.vault.sums import FeatureMap, NoisySums
from counterpoise.vault.totals import NoisyTotal
from counterpoise.vault.vault import Vault
from counterpoise.vault.votes import TeacherPlan, Teachers

__all__ = [
    "ADD_REMOVE",
    "MOST_BINS",
    "REPLACE",
    "Account",
    "Budget",
    "Dependence",
    "Descent",
    "DescentPlan",
    "FeatureMap",
    "Journal",
    "Kept",
    "Ledger",
    "LogisticLoss",
    "Loss",
    "MarginalError",
    "NoiseLaw",
    "NoisyBounds",
    "NoisyCategories",
    "NoisyCounts",
    "NoisyMinimiser",
    "NoisyPersons",
    "NoisyPoints",
    "NoisyQuantiles",
    "NoisySums",
    "NoisyTotal",
    "People",
    "Perturbation",
    "PerturbedMinimiser",
    "PointDistance",
    "Score",
    "Share",
    "Spend",
    "TeacherPlan",
    "Teachers",
    "Vault",
    "checked_width",
    "count_noise",
    "most_codes",
    "operator_norm",
    "perturbation_for",
    "seal",
    "threshold_delta",
]
