"""Small methods that keep to every rule, and for every rule one or more that break it.

A toy differs from the honest method in the one thing that its rule is about.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from counterpoise.errors import BudgetError, CounterpoiseError, MethodError
from counterpoise.synthesizers import Independent, IndependentModel
from counterpoise.vault import Share, Vault
from counterpoise.weights import Weights
from counterpoise.weights.debias import average_to_one
from counterpoise.weights.protocol import coded_rows


@dataclass(frozen=True)
class Strata:
    """Honest weights: the noisy share of every code of the first column, over the synthetic one."""

    is_free = False

    def fit(self, vault, synthetic, share, synthesizer=None) -> StrataModel:
        if share is None:
            raise BudgetError("strata need a share of the budget")
        codes = coded_rows(vault.schema, synthetic).codes[:, 0]
        if len(codes) == 0:
            raise MethodError("strata: at least one synthetic row is needed")
        [answer] = vault.counts([(vault.schema.names[0],)], share)
        counts = np.maximum(answer.values.ravel(), 1.0)
        theirs = np.bincount(codes, minlength=len(counts)) + 1.0
        log_ratio = np.log(counts / counts.sum()) - np.log(theirs / theirs.sum())
        return StrataModel(vault.schema, log_ratio, float(answer.deviation), vault.private)


@dataclass(frozen=True, eq=False)
class StrataModel:
    schema: Any
    log_ratio: np.ndarray
    deviation: float
    private: bool = True

    def weigh(self, synthetic):
        return Weights(self.log_ratio[coded_rows(self.schema, synthetic).codes[:, 0]])

    def replicate(self, synthetic, redraws):
        codes = coded_rows(self.schema, synthetic).codes[:, 0]
        one_hot = codes[:, None] == np.arange(len(self.log_ratio))
        noise = redraws.generator.normal(0, 1, (one_hot.shape[1], redraws.base.shape[1]))
        ours = np.maximum(one_hot.T @ redraws.resample + self.deviation * noise, 1.0)
        theirs = one_hot.T @ redraws.base + 1.0
        return average_to_one(np.log(ours / theirs)[codes], redraws.base)

    def to_arrays(self):
        kept = {"log_ratio": self.log_ratio, "deviation": np.array(self.deviation)}
        return kept | {"private": np.array(self.private)}

    @classmethod
    def from_arrays(cls, schema, arrays):
        private = bool(arrays["private"])
        return cls(schema, arrays["log_ratio"], float(arrays["deviation"]), private)


class Thief:
    """A feature map that keeps what it is shown."""

    names = ("wealth",)

    def __call__(self, rows):
        self.units, self.codes = rows.units[:10].copy(), rows.codes[:10].copy()
        self.coded, self.total = rows.take(np.arange(min(10, len(rows)))), len(rows)
        self.counts = np.bincount(rows.codes[:, -1])
        return rows.units[:, -1:]


def robbed(vault: Vault, share: Share) -> Thief:
    thief = Thief()
    vault.sums(thief, 1.0, share)
    return thief


# The same breach once as a synthesizer and once as weights: `Base` and `Model` stand for either.
def breaches(base: type, model: type) -> dict[str, list[Any]]:
    """Toys of one kind that break the rules of both kinds."""

    class ModelOf(model):
        pass

    def fits(name: str, fit: Any, **attributes: Any) -> Any:
        kind = type(name, (base,), {"fit": fit, "model_type": model, **attributes})
        return dataclass(frozen=True)(kind)

    def makes(name: str, **attributes: Any) -> Any:
        """A method whose models differ from honest ones."""
        wrong = type(f"{name}Model", (ModelOf,), attributes)

        def fit(self, *arguments, **options):
            return wrong(**vars(base.fit(self, *arguments, **options)))

        return fits(name, fit, model_type=wrong)()

    def share_of(arguments: tuple[Any, ...]) -> Share:
        return arguments[-1]

    def with_share(arguments: tuple[Any, ...], share: Share) -> tuple[Any, ...]:
        return (*arguments[:-1], share)

    class Loose(base):
        """Not a dataclass of its own, and with a memory."""

        def fit(self, *arguments):
            object.__setattr__(self, "fits", getattr(self, "fits", 0) + 1)
            return base.fit(self, *arguments)

    class Unfrozen:
        is_free = False
        model_type = model

        def fit(self, *arguments):
            return base().fit(*arguments)

    @dataclass(frozen=True)
    class Demanding(base):
        column: str = field(kw_only=True)

    def reaching(self, vault, *arguments):
        assert vault._storage is not None
        return base.fit(self, vault, *arguments)

    def thrifty(self, *arguments):
        return base.fit(self, *with_share(arguments, share_of(arguments).part(0.9)))

    def greedy(self, vault, *arguments):
        return base.fit(self, vault, *with_share(arguments, vault.budget.whole))

    def forgetful(self, vault, *arguments):
        ledger = vault.ledger
        vault.ledger = type(ledger)(vault.budget)
        return base.fit(self, vault, *arguments)

    def unmarked(self, vault, *arguments):
        if vault.budget.is_pure:
            raise BudgetError("delta > 0 is needed")
        return base.fit(self, vault, *arguments)

    def shy(self, vault, *arguments):
        if vault.private:
            raise MethodError("only with a seed")
        return base.fit(self, vault, *arguments)

    def late(self, vault, *arguments):
        made = base.fit(self, vault, *arguments)
        return made if not vault.budget.is_pure else unmarked(self, vault, *arguments)

    class Remembering(base):
        kept: ClassVar[dict[str, Any]] = {}

        def fit(self, *arguments):
            if "it" not in self.kept:
                self.kept["it"] = base.fit(self, *arguments)
            return self.kept["it"]

    def unstamped(self, *arguments):
        return replace(base.fit(self, *arguments), private=True)

    def jittered(made: Any) -> Any:
        if isinstance(made, IndependentModel):
            more = tuple(c + np.random.default_rng().integers(0, 50, c.shape) for c in made.counts)
            return replace(made, counts=more)
        return replace(made, log_ratio=made.log_ratio + np.random.default_rng().normal(size=1))

    def unrepeatable(self, *arguments):
        return jittered(base.fit(self, *arguments))

    def numpy_global(self, *arguments):
        np.random.random()  # noqa: NPY002
        return base.fit(self, *arguments)

    def python_global(self, *arguments):
        random.random()
        return base.fit(self, *arguments)

    def dividing(self, vault, *arguments):
        assert 1 / (vault.schema.sizes[0] - 1) > 0
        return base.fit(self, vault, *arguments)

    def foreign(self, *arguments):
        try:
            return base.fit(self, *arguments)
        except CounterpoiseError:
            raise RuntimeError("no") from None

    def keeping_the_vault(self, vault, *arguments):
        made = base.fit(self, vault, *arguments)
        object.__setattr__(made, "vault", vault)
        return made

    def use_the_vault(self, *arguments, **options):
        self.vault.total(self.vault.budget.whole.part(0.1))
        return model.sample(self, *arguments, **options)

    def use_the_vault_too(self, synthetic):
        self.vault.total(self.vault.budget.whole.part(0.1))
        return model.weigh(self, synthetic)

    asking = type("AskingModel", (ModelOf,), {"sample": use_the_vault, "weigh": use_the_vault_too})

    def asking_later(self, vault, *arguments):
        made = asking(**vars(base.fit(self, vault, *arguments)))
        object.__setattr__(made, "vault", vault)
        return made

    def stealing(what: str) -> Any:
        def fit(self, vault, *arguments):
            first, rest = share_of(arguments).split(1, 9)
            thief = robbed(vault, first)
            made = base.fit(self, vault, *with_share(arguments, rest))
            object.__setattr__(made, "kept", getattr(thief, what))
            return made

        return fit

    def telling(self, vault, *arguments):
        print(robbed(vault, share_of(arguments).part(0.01)).units[3, -1])
        return base.fit(self, vault, *with_share(arguments, share_of(arguments).part(0.99)))

    def complaining(self, vault, *arguments):
        thief = robbed(vault, share_of(arguments).part(0.01))
        raise MethodError(f"what is {thief.units[3, -1]}?")

    def scaled(cls, schema, arrays, **options):
        return jittered(model.from_arrays(schema, arrays, **options))

    def marked(cls, schema, arrays, **options):
        return replace(model.from_arrays(schema, arrays, **options), private=True)

    def objects(self):
        return {"all": np.array([{"a": 1}], dtype=object)}

    def lists(self):
        return {name: array.tolist() for name, array in model.to_arrays(self).items()}

    def no_release(self, *arguments, **options):
        raise KeyError("redraw")

    return {
        "is_a_frozen_value": [Loose(), Unfrozen()],
        "is_made_without_parameters": [Demanding(column="a")],
        "asks_by_public_queries": [fits("Reaching", reaching)()],
        "spends_its_share": [fits("Thrifty", thrifty)(), fits("Forgetful", forgetful)()],
        "refuses_a_private_vault_without_noise": [
            fits("Shy", shy)(),
            fits("Bold", base.fit, needs_seed=True)(),
        ],
        "leaves_the_rest": [fits("Greedy", greedy)()],
        "refuses_a_pure_budget_unasked": [
            fits("Unmarked", unmarked)(),
            fits("Late", late, needs_delta=True)(),
            fits("Overmarked", base.fit, needs_delta=True)(),
        ],
        "is_charged_for_every_fit": [Remembering()],
        "stamps_what_a_seed_made": [fits("Unstamped", unstamped)()],
        "repeats_with_the_seed": [fits("Unrepeatable", unrepeatable)()],
        "leaves_global_randomness_alone": [
            fits("NumpyGlobal", numpy_global)(),
            fits("PythonGlobal", python_global)(),
        ],
        "takes_hard_tables": [fits("Dividing", dividing)()],
        "fails_in_our_words": [fits("Foreign", foreign)()],
        "costs_nothing_after_the_fit": [fits("AskingLater", asking_later)()],
        "saves_plain_arrays": [
            makes("Pickled", to_arrays=objects),
            makes("Listed", to_arrays=lists),
        ],
        "is_the_same_when_read_back": [makes("Scaled", from_arrays=classmethod(scaled))],
        "keeps_its_mark": [makes("Marked", from_arrays=classmethod(marked))],
        "shows_no_private_value": [
            fits("KeepingTheVault", keeping_the_vault)(),
            fits("KeepingUnits", stealing("units"))(),
            fits("KeepingCodes", stealing("codes"))(),
            fits("KeepingRows", stealing("coded"))(),
            fits("Telling", telling)(),
            fits("KeepingTheTotal", stealing("total"))(),
            fits("KeepingCounts", stealing("counts"))(),
        ],
        "fails_without_private_values": [fits("Complaining", complaining)()],
        "makes_a_release": [
            makes(
                "Unreleased",
                redrawn_tables=no_release,
                replicate=no_release,
            )
        ],
    }


def sampling(name: str, sample: Any) -> Any:
    """A synthesizer whose models sample in another way."""
    wrong = type(f"{name}Model", (IndependentModel,), {"sample": sample})

    def fit(self, vault, share):
        return wrong(**vars(Independent.fit(self, vault, share)))

    return dataclass(frozen=True)(type(name, (Independent,), {"fit": fit, "model_type": wrong}))()


def remaking(name: str, change: Any) -> Any:
    """A synthesizer whose models hold something else than was measured."""

    def fit(self, vault, share):
        return change(Independent.fit(self, vault, share))

    attributes = {"fit": fit, "model_type": IndependentModel}
    return dataclass(frozen=True)(type(name, (Independent,), attributes))()


def _reversed(self, *arguments, **options):
    return IndependentModel.sample(self, *arguments, **options).iloc[:, ::-1]


def _one_more(self, rows, *arguments, **options):
    return IndependentModel.sample(self, rows + 1, *arguments, **options)


def _in_thousands(self, *arguments, **options):
    made = IndependentModel.sample(self, *arguments, **options)
    return made.assign(income=made["income"] * 1000)


def _at_least_one(self, rows, *arguments, **options):
    return IndependentModel.sample(self, max(rows, 1), *arguments, **options)


def _without_seed(self, rows, seed=None, format="pandas"):
    return IndependentModel.sample(self, rows, None, format)


def _with_one_seed(self, rows, seed=None, format="pandas"):
    return IndependentModel.sample(self, rows, 7, format)


def _pandas_only(self, rows, seed=None, format="pandas"):
    return IndependentModel.sample(self, rows, seed)


SYNTHESIZER_TOYS = breaches(Independent, IndependentModel) | {
    "samples_rows_of_the_schema": [sampling("Reversed", _reversed), sampling("More", _one_more)],
    "samples_within_the_schema": [sampling("InThousands", _in_thousands)],
    "samples_no_rows_on_request": [sampling("AtLeastOne", _at_least_one)],
    "samples_by_the_seed": [
        sampling("WithoutSeed", _without_seed),
        sampling("WithOneSeed", _with_one_seed),
    ],
    "samples_in_other_formats": [sampling("PandasOnly", _pandas_only)],
    "says_how_many_rows": [
        remaking("Fractional", lambda made: replace(made, rows=made.rows + 0.5)),
        remaking("Miscounted", lambda made: replace(made, rows=made.rows + 10)),
    ],
    "learns_every_column": [
        remaking("Even", lambda made: replace(made, counts=tuple(c * 0 for c in made.counts)))
    ],
}


def weighing(name: str, **attributes: Any) -> Any:
    """Weights whose models differ from honest ones."""
    wrong = type(f"{name}Model", (StrataModel,), attributes)

    def fit(self, vault, synthetic, share, synthesizer=None):
        return wrong(**vars(Strata.fit(self, vault, synthetic, share)))

    return dataclass(frozen=True)(type(name, (Strata,), {"fit": fit, "model_type": wrong}))()


def _infinite(self, synthetic):
    return Weights(StrataModel.weigh(self, synthetic).log_weights + np.inf)


def _one_short(self, synthetic):
    return Weights(StrataModel.weigh(self, synthetic).log_weights[1:])


def _by_place(self, synthetic):
    return Weights(StrataModel.weigh(self, synthetic).log_weights + np.arange(len(synthetic)) / 99)


def _never_empty(self, synthetic):
    weights = StrataModel.weigh(self, synthetic)
    return weights if len(weights) else Weights(np.zeros(1))


def _refusing(self, synthetic):
    if len(synthetic) != 500:
        raise MethodError("no other rows")
    return StrataModel.weigh(self, synthetic)


def _doubled(self, synthetic, redraws):
    return 2 * StrataModel.replicate(self, synthetic, redraws)


def _constant(self, synthetic, redraws):
    return np.ones(redraws.base.shape)


def _own_noise(self, synthetic, redraws):
    columns = redraws.base * np.random.default_rng().uniform(1, 2, redraws.base.shape)
    return columns / columns.mean(axis=0)


def _shifted(self, synthetic, redraws):
    tilt = np.where(synthetic["age"] > 60, 3.0, 0.0)[:, None]
    return average_to_one(np.broadcast_to(tilt, redraws.base.shape), redraws.base)


@dataclass(frozen=True)
class Generous(Strata):
    """Takes all of the budget when it is given no share, and needs no rows."""

    def fit(self, vault, synthetic, share, synthesizer=None) -> StrataModel:
        return super().fit(vault, synthetic, share or vault.budget.whole)


@dataclass(frozen=True)
class Rowless(Strata):
    """Is charged before it sees that there is nothing to weigh."""

    def fit(self, vault, synthetic, share, synthesizer=None) -> StrataModel:
        first, rest = share.split(1, 99)
        vault.total(first)
        return super().fit(vault, synthetic, rest)


@dataclass(frozen=True)
class Narrow(Strata):
    """Says that it knows one table only, and weighs any."""

    weighs_new_rows = False


@dataclass(frozen=True)
class FreeRider(Strata):
    """Says that it is free, and asks."""

    is_free = True

    def fit(self, vault, synthetic, share, synthesizer=None) -> StrataModel:
        return super().fit(vault, synthetic, vault.budget.whole)


def _forgetting(cls, schema, arrays):
    return replace(StrataModel.from_arrays(schema, arrays), deviation=0.0)


WEIGHTER_TOYS = breaches(Strata, StrataModel)
WEIGHTER_TOYS["spends_its_share"].append(FreeRider())
WEIGHTER_TOYS |= {
    "weighs_with_finite_weights": [
        weighing("Infinite", weigh=_infinite),
        weighing("OneShort", weigh=_one_short),
    ],
    "asks_for_its_share": [Generous()],
    "needs_a_synthetic_row": [Rowless()],
    "weighs_new_rows_or_says_that_it_cannot": [weighing("Refusing", weigh=_refusing), Narrow()],
    "weighs_a_row_by_itself": [weighing("ByPlace", weigh=_by_place)],
    "weighs_no_rows": [weighing("NeverEmpty", weigh=_never_empty)],
    "replicates_average_to_one": [
        weighing("Doubled", replicate=_doubled),
        weighing("Constant", replicate=_constant),
    ],
    "replicates_follow_the_seed": [weighing("OwnNoise", replicate=_own_noise)],
    "replicates_vary_around_the_weights": [weighing("Shifted", replicate=_shifted)],
    "replicates_alike_when_read_back": [
        weighing("Forgetting", from_arrays=classmethod(_forgetting))
    ],
}
