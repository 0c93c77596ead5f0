"""Releases of bounded persons, and several releases on one account."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise.bundle.card import protection
from counterpoise.bundle.persons import persons_counted
from counterpoise.curation import rehearse
from counterpoise.curation.plan import plan_release
from counterpoise.errors import BudgetError, BundleError, TableError
from counterpoise.report import release_page
from counterpoise.vault import Vault
from tests.cli.calls import run

pytestmark = pytest.mark.filterwarnings("ignore::counterpoise.CounterpoiseWarning")

SCHEMA = cp.Schema([cp.Column.boolean("ill"), cp.Column.categorical("ward", ["A", "B"])])
BOUND = {"person": "who", "max_rows_per_person": 2}
QUICK = {"rows": 40, "replicates": 0, "synthesizer": "independent", "progress": False}
PERSON = ("--person", "who", "--max-rows-per-person", 2)
BOUNDED = "one person with all their rows, of which at most 2 are used"
PROMISED = "one person with at most 2 rows, as the curator promises that nobody has more"


def visits(persons=300):
    """A person has five rows; the odd ones are always ill."""
    person = np.repeat(np.arange(persons), 5)
    wards = np.where(np.arange(len(person)) % 3, "A", "B")
    return pd.DataFrame({"who": person, "ill": person % 2 == 1, "ward": wards})


def made(table=None, epsilon=1.0, **options):
    asked = QUICK | {"max_rows_per_person": 2, "person": "who"} | options
    return cp.release(visits() if table is None else table, SCHEMA, epsilon, 1e-6, **asked)


@pytest.fixture
def account(tmp_path):
    terms = {"max_rows_per_person": 2, "name": "patients"}
    return cp.Account.create(tmp_path / "account.json", 3.0, 1e-6, **terms)


def test_a_release_counts_the_rows_that_are_used():
    release = made(epsilon=50.0)
    assert release.card["population"] == pytest.approx(600, abs=20)
    assert "who" not in release.table and "who" not in json.dumps(release.card)


def test_weights_are_of_the_rows_that_are_used():
    """Half of the persons are ill, but those have nearly all rows."""
    table = visits().loc[lambda t: t["ill"] | (t.index % 5 == 0)]
    synthetic = pd.DataFrame({"ill": [True, False] * 200, "ward": ["A", "A", "B", "B"] * 100})
    options = {"max_rows_per_person": 1, "replicates": 0, "progress": False}
    bounded = cp.weigh(table, synthetic, SCHEMA, 50.0, 1e-6, person="who", **options)
    promised = cp.weigh(table, synthetic, SCHEMA, 50.0, 1e-6, **options)
    ill = [np.average(one.table["ill"], weights=one.weights) for one in (bounded, promised)]
    assert ill == pytest.approx([1 / 2, 5 / 6], abs=0.03)


def test_what_is_protected_is_said_wherever_privacy_is(tmp_path):
    for options, said in (({}, BOUNDED), ({"person": None}, PROMISED)):
        release = made(**options)
        assert release.protects == said
        assert said in release_page(release)
        release.save(tmp_path / "out", overwrite=True)
        assert cp.load(tmp_path / "out").protects == said
        assert said in run("inspect", tmp_path / "out")
    assert "person" not in made(max_rows_per_person=1, person=None).protects.split(",")[0]


KEPT = "of the rows that were kept, at most 2 of each person"
STATISTICS = {
    "mean": lambda release: release.mean("stay"),
    "means": lambda release: release.mean("stay", by="ward"),
    "rows": lambda release: release.total(),
    "total": lambda release: release.total("stay"),
    "proportion": lambda release: release.proportion("ill"),
    "quantile": lambda release: release.quantile("stay", 0.9),
    "histogram": lambda release: release.histogram("ward"),
    "crosstab": lambda release: release.crosstab("ill", "ward"),
    "corr": lambda release: release.corr("stay", "ill"),
    "cov": lambda release: release.cov(),
    "bootstrap": lambda release: release.bootstrap(lambda table, weights: weights @ table["stay"]),
    "glm": lambda release: release.glm("stay ~ ill"),
    "effect": lambda release: release.effect("ill", "stay", given="ward"),
    "posterior": lambda release: release.posterior("stay ~ ill", chains=2, draws=100, warmup=100),
    "certificate": lambda release: release.certificate("ill", features=["stay"]),
    "cross_validate": lambda release: release.cross_validate(LogisticRegression(), "ill"),
    "rehearsal": lambda release: release.rehearse(2, progress=False).correct(STATISTICS["mean"]),
    "sample": lambda release: release.sample(50).mean("stay"),
    "unweighted": lambda release: release.unweighted().mean("stay"),
    "retarget": lambda release: release.retarget({"ward": {"A": 0.5, "B": 0.5}}).total("stay"),
}


@pytest.fixture(scope="module")
def counted():
    """The same release with persons bounded and without, saved and loaded."""
    generator = np.random.default_rng(0)
    table = visits().assign(stay=generator.integers(0, 10, 1500))
    schema = cp.Schema([*SCHEMA, cp.Column.integer("stay", 0, 9, bins=5)])
    options = QUICK | {"rows": 400, "replicates": 4, "max_rows_per_person": 2, "seed": 1}
    options |= {"synthesizer": "marginals", "weights": "moments"}
    return {
        person: cp.release(table, schema, 10.0, 1e-6, person=person, **options)
        for person in ("who", None)
    }


@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_answer_says_once_that_it_is_of_the_rows_that_were_kept(counted, statistic):
    said = str(STATISTICS[statistic](counted["who"]))
    assert said.count(KEPT) == said.count("were kept") == 1
    assert "were kept" not in str(STATISTICS[statistic](counted[None]))


def test_what_a_release_prints_says_that_it_is_of_the_rows_that_were_kept(counted, tmp_path):
    bounded, promised = counted["who"], counted[None]
    assert KEPT in repr(bounded) and "kept" not in repr(promised)
    assert release_page(bounded).count(KEPT) == 1 and KEPT not in release_page(promised)
    bounded.save(tmp_path / "out")
    said = run("inspect", tmp_path / "out")
    assert said.count(KEPT) == 1 and " that were kept (noisy)" in said
    assert run("analyse", tmp_path / "out", "mean", "stay", "--by", "ward").count(KEPT) == 1
    [found] = json.loads(run("analyse", tmp_path / "out", "total", "--json"))["estimates"]
    assert KEPT in found["note"]
    table, schema = tmp_path / "visits.csv", tmp_path / "schema.json"
    visits().to_csv(table, index=False)
    SCHEMA.write(schema)
    asked = ("--schema", schema, "--epsilon", 9, "--out", tmp_path / "made", "--replicates", 0)
    said = run("release", table, *asked, *PERSON)
    assert f"rows: every number is {KEPT}, about " in said


def test_where_the_number_of_rows_is_public_how_many_somebody_has_is_not_hidden():
    several = {"neighbours": "replace", "max_rows_per_person": 2}
    assert "not how many rows they have" in protection(several, "bounded")
    assert "not how many rows they have" in protection(several, "promised")
    # With one row each, a person is replaced by one with as many.
    assert "not how many" not in protection(several | {"max_rows_per_person": 1}, "bounded")
    assert "not how many" not in protection(several | {"neighbours": "add-remove"}, "bounded")


def test_how_many_rows_of_a_person_are_kept_has_no_default(tmp_path):
    """One row kept 4,044 of 336,776 rows of a table of flights, and nobody had said so."""
    table, synthetic = tmp_path / "nowhere.csv", visits(2)[list(SCHEMA.names)]
    refused = pytest.raises(BudgetError, match=r"max_rows_per_person: state it.*most of a table")
    with refused:
        cp.release(table, SCHEMA, 1.0, person="who")
    with refused:
        cp.weigh(table, synthetic, SCHEMA, 1.0, person="who")
    with refused, Vault(table, SCHEMA, cp.Budget(1.0), person="who"):
        pass
    for command in (("release", table), ("weigh", table, table)):
        asked = ("--schema", tmp_path / "nowhere.json", "--epsilon", 1, "--person", "who")
        said = run(*command, *asked, "--out", tmp_path / "out", code=2)
        assert "--person: state --max-rows-per-person" in said
    assert cp.Budget(1.0) == cp.Budget(1.0, max_rows_per_person=1)


def test_how_many_persons_have_more_is_counted_first_and_for_a_hundredth_of_the_budget():
    # Every one of 300 has five rows.
    for terms, deviation in (((50.0, 1e-6), 3), ((50.0, 0.0), 3)):
        release = cp.release(visits(), SCHEMA, *terms, **BOUND, **QUICK)
        first, *others = release.ledger.spends
        assert (first.stage, first.query) == (
            "persons",
            "persons with at most 2 rows, and with more",
        )
        assert "persons" not in {spend.stage for spend in others}
        found = release.card["persons"]
        assert found["deviation"] < deviation
        assert (found["within"], found["beyond"]) == pytest.approx((0, 300), abs=20)
        assert 0.98 * 50 < release.ledger.epsilon_spent <= 50


def test_without_a_column_of_persons_nobody_is_counted():
    release = made(person=None)
    assert "persons" not in release.card
    assert "persons" not in {spend.stage for spend in release.ledger.spends}
    assert "persons" not in release_page(release)


def test_weights_alone_pay_for_the_persons_too_unless_they_ask_nothing():
    synthetic = visits(20)[list(SCHEMA.names)]
    for method, is_counted in (("moments", True), ("uniform", False)):
        options = {"method": method, "replicates": 0, "progress": False}
        release = cp.weigh(visits(), synthetic, SCHEMA, 20.0, 1e-6, **BOUND, **options)
        assert ("persons" in release.card) == is_counted
        assert bool(release.ledger.spends) == is_counted
        assert release.ledger.epsilon_spent <= 20


@pytest.mark.parametrize("chooses_bins", [False, True])
@pytest.mark.parametrize("stage", ["domain", "synthesizer", "weights", "done"])
def test_a_run_that_goes_on_has_its_persons_and_pays_for_them_once(tmp_path, stage, chooses_bins):
    table = visits().assign(stay=np.arange(1500) % 40)
    added = [cp.Column.integer("stay", 0, 39)] if chooses_bins else []
    schema = cp.Schema([*SCHEMA, *added])
    asked = QUICK | BOUND | {"work": tmp_path / "work"}

    def stop(name, done):
        if name == stage:
            raise KeyboardInterrupt

    if stage != "domain" or chooses_bins:
        with pytest.raises(KeyboardInterrupt):
            cp.release(table, schema, 3.0, 1e-6, **(asked | {"progress": stop}))
    journal = (tmp_path / "work" / "journal").read_text() if (tmp_path / "work").exists() else ""
    release = cp.release(table, schema, 3.0, 1e-6, **asked)
    spends = release.ledger.spends
    assert [spend.stage for spend in spends].count("persons") == 1
    assert (tmp_path / "work" / "journal").read_text().startswith(journal)
    again = cp.release(table, schema, 3.0, 1e-6, **asked)
    assert (again.card["persons"], again.ledger.spends) == (release.card["persons"], spends)


def test_a_damaged_stage_asks_for_no_persons_anew(tmp_path):
    table = visits().assign(stay=np.arange(1500) % 40)
    schema = cp.Schema([*SCHEMA, cp.Column.integer("stay", 0, 39)])
    asked = QUICK | BOUND | {"work": tmp_path / "work"}
    first = cp.release(table, schema, 3.0, 1e-6, **asked)
    (tmp_path / "work" / "domain.npz").write_bytes(b"damaged")
    second = cp.release(table, schema, 3.0, 1e-6, **asked)
    assert second.card["persons"] == first.card["persons"]
    assert second.ledger.spends == first.ledger.spends


def test_a_dry_run_says_what_counting_persons_takes_and_how_noisy_it_is():
    budget = cp.Budget(1.0, 1e-6, max_rows_per_person=50)
    bounded, promised = (plan_release(SCHEMA, budget, person=who) for who in ("who", None))
    first, *others = bounded.describe()
    assert (first.name, first.part) == ("persons", pytest.approx(0.01))
    assert first.asks == "Gaussian-noised counts of persons with at most 50 rows, and with more"
    assert first.noise == "a count of persons: ± 45"
    assert sum(stage.part for stage in (first, *others)) == pytest.approx(1.0)
    assert "persons" not in {stage.name for stage in promised.describe()}


def test_a_release_says_how_many_persons_had_more_rows_than_were_kept(counted, tmp_path):
    release = counted["who"]
    found = persons_counted(release.card)
    assert found.said == "at least 96% of persons have more"
    assert str(release.mean("stay")).endswith(f"{KEPT}; {found.said})")
    assert found.said in repr(release)
    page = release_page(release)
    assert page.count(found.said) == page.count(found.described) == 1
    release.save(tmp_path / "out")
    assert f"persons                {found.described}" in run("inspect", tmp_path / "out")
    kept = json.loads(run("inspect", tmp_path / "out", "--json"))
    assert kept["persons"] == release.card["persons"]


def test_a_run_in_the_shell_says_how_many_persons_had_more_rows(tmp_path):
    table, schema = tmp_path / "visits.csv", tmp_path / "schema.json"
    visits().to_csv(table, index=False)
    SCHEMA.write(schema)
    asked = ("--schema", schema, "--epsilon", 9, "--delta", 1e-6, "--replicates", 0, *PERSON)
    said = run("release", table, *asked, "--out", tmp_path / "made")
    assert "\npersons: about " in said and "of them have more than 2 rows (95%)" in said
    assert "persons" in run("release", table, *asked, "--out", tmp_path / "other", "--dry-run")


def test_a_rehearsal_has_the_shares_that_the_release_had(counted):
    release = counted["who"]
    again, schema = rehearse._plan_of(release), release.schema
    budget, split = release.ledger.budget, release.card["split"]
    made = plan_release(schema, budget, "marginals", split=split, person="who")
    for name in ("synthesizer_share", "weights_share"):
        assert getattr(again, name).amount == pytest.approx(getattr(made, name).amount)


def test_a_person_in_the_schema_is_refused_before_anything_is_read():
    with pytest.raises(TableError, match="person: the column 'ward' says whose a row is"):
        plan_release(SCHEMA, cp.Budget(1.0, 1e-6, max_rows_per_person=2), person="ward")


def test_a_person_in_a_draft_is_refused_before_anything_of_it_has_to_be_settled(tmp_path):
    visits().to_csv(tmp_path / "visits.csv", index=False)
    draft = cp.draft_schema(tmp_path / "visits.csv")
    with pytest.raises(TableError, match=r"'who' says whose a row is.*drop it from the schema"):
        plan_release(draft, cp.Budget(1.0, max_rows_per_person=2), person="who")
    draft.write(tmp_path / "draft.json")
    asked = ["release", tmp_path / "visits.csv", "--schema", tmp_path / "draft.json"]
    with pytest.raises(TableError, match="drop it from the schema"):
        run(*asked, "--epsilon", 1, *PERSON, "--out", tmp_path / "out")


def test_other_persons_or_another_account_are_another_request(account, tmp_path):
    work = tmp_path / "work"
    stop = {"work": work, "progress": lambda stage, done: stage == "weights" and 1 / 0}
    with pytest.raises(ZeroDivisionError):
        made(**stop)
    for options in ({"person": None}, {"account": account}):
        with pytest.raises(BundleError, match=f"it differs in {next(iter(options))}"):
            made(**({"work": work} | options))
    assert not account.charges


def test_several_releases_are_charged_to_one_account_and_their_cards_say_so(account, tmp_path):
    first = made(account=account)
    synthetic = first.table[list(SCHEMA.names)]
    options = {"max_rows_per_person": 2, "replicates": 0, "progress": False}
    second = cp.weigh(visits(), synthetic, SCHEMA, 0.5, 1e-6, account=account._path, **options)
    spends = [charge.spend for charge in account.charges]
    assert spends == [*first.ledger.spends, *second.ledger.spends]
    assert first.card["account"] | {"release": ""} == {
        "id": account.id,
        "name": "patients",
        "release": "",
    }
    assert list(account.to_frame()["release"]) == [
        one.card["account"]["release"] for one in (first, second)
    ]
    assert "account" not in made().card
    first.save(tmp_path / "out")
    assert cp.load(tmp_path / "out").card["account"] == first.card["account"]
    assert f"account                {account.id} 'patients'" in run("inspect", tmp_path / "out")


def test_a_release_that_does_not_fit_is_refused_before_it_begins(account, tmp_path):
    work = tmp_path / "work"
    with pytest.raises(BudgetError, match="account: the release does not fit"):
        made(epsilon=3.5, account=account, work=work)
    assert not work.exists() and not account.charges
    made(epsilon=1.0, account=account, work=work)


def test_a_run_that_was_stopped_pays_its_account_once(account, tmp_path):
    """Though what is left of the account would no longer pay for all of it."""
    stop = {"progress": lambda stage, done: stage == "weights" and 1 / 0}
    options = {"account": account, "work": tmp_path / "work", "epsilon": 2.5}
    with pytest.raises(ZeroDivisionError):
        made(**(options | stop))
    paid = len(account.charges)
    assert paid and account.next_epsilon() < 2.5
    release = made(**options)
    assert [charge.spend for charge in account.charges] == [*release.ledger.spends]
    assert len(account.charges) > paid
