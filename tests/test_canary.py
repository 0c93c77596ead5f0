"""No path lets a canary out: not an object, not a file, not a log line, not an error."""

import base64
import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import counterpoise as cp
from counterpoise.cli import group
from counterpoise.errors import CounterpoiseError
from counterpoise.networks import Inputs, Network
from counterpoise.synthesizers import SYNTHESIZERS
from counterpoise.testing.trials import WeighterTrial
from counterpoise.vault import Budget, DescentPlan, MarginalError, Share, TeacherPlan, Vault
from counterpoise.weights import WEIGHTERS
from tests import canary
from tests.shorter import shorter

BUDGET = Budget(1.0, 1e-9)

# A noisy count may happen to equal the exact one, which is no leak but would look like one; with
# this seed it does not happen.
SEED = 2


@pytest.fixture(scope="module")
def private_table():
    return canary.table()


@pytest.fixture(scope="module")
def private_files(private_table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("private")
    private_table.to_csv(folder / "table.csv", index=False)
    private_table.to_parquet(folder / "table.parquet")
    return folder


@pytest.fixture(autouse=True)
def no_canary_in_logs(caplog, capfd):
    caplog.set_level(logging.DEBUG)
    yield
    out, err = capfd.readouterr()
    assert canary.traces_in_text(caplog.text + out + err) == []


ANN = pd.DataFrame({"name": ["Ann"], "ill": ["no"], "wealth": [1.0]})


class Features:
    names = ("wealth", "ill")

    def __call__(self, rows):
        return rows.units[:, [2, 1]]


def test_the_search_finds_what_it_should(private_table):
    assert set(canary.search({"a": [private_table[:100]]})) >= {"text", "number", "date"}
    assert canary.search([("x", np.array([1, canary.ILL]))]) == ["ill"]
    assert canary.search(ValueError(f"bad value {canary.TEXT}")) == ["text"]
    try:
        try:
            raise KeyError(canary.TEXT)
        except KeyError:
            raise ValueError("hidden") from None
    except ValueError as error:
        assert canary.search(error) == []
    assert canary.traces_in_text("there are 90,001 rows") == ["rows"]


def courses(vault: Vault, part: Share) -> list[object]:
    """What comes out of a descent and of teachers, and what is left of them when closed."""
    inputs = Inputs(vault.schema)
    network = Network((inputs.size, 3, 1))
    descent_plan = DescentPlan.within(
        vault,
        part,
        inputs=inputs,
        network=network,
        loss="logistic",
        rate=0.001,
        lot=90.0,
        clip=1.0,
        steps=3,
    )
    teacher_plan = TeacherPlan.within(
        vault, part, queries=5, inputs=inputs, network=network, teachers=4
    )
    public = np.zeros((5, inputs.size))
    with vault.descent(descent_plan) as descent, vault.teachers(teacher_plan) as teachers:
        gradient = descent.gradient(np.zeros(network.size))
        teachers.train(public, 2)
        votes = teachers.votes(public)
        shown = [repr(descent), repr(teachers)]
    return [gradient, votes, shown, vars(descent), vars(teachers)]


def points_of(vault, part):
    """Points out of a public pool, by a chain, and the width of a density around them."""
    public = pd.DataFrame({"name": ["Ann"] * 3, "ill": ["no"] * 3, "wealth": [1.0, 9.0, 50.0]})
    pool = canary.SCHEMA.encode(public)
    chain = {"sampler": "metropolis", "rows": 1000, "moves": 40}
    return [
        vault.select_points(4, part, candidates=pool, rows=1000),
        vault.select_points(4, part, **chain),
        vault.select_bandwidth(pool, (0.1, 0.2), part),
    ]


@pytest.mark.parametrize("source", ["frame", "table.csv", "table.parquet"])
@pytest.mark.parametrize("storage", ["memory", "duckdb"])
def test_queries(private_table, private_files, source, storage):
    if source == "frame" and storage == "duckdb":
        pytest.skip("a frame is always in memory")
    table = private_table if source == "frame" else private_files / source
    with Vault(table, canary.SCHEMA, BUDGET, storage=storage, seed=SEED) as vault:
        part = vault.budget.whole.part(0.09)
        score = MarginalError([np.zeros(2)] * 2, np.ones(2), np.zeros(2))
        answers = [
            vault.counts([("name",), ("ill", "wealth")], part),
            vault.total(part),
            vault.sums(Features(), 2.0, part),
            vault.minimise(
                Features(),
                2.0,
                canary.SCHEMA.encode(ANN),
                part,
                rows=1000,
                regularisation=0.1,
            ),
            vault.minimise_perturbed(
                Features(), 2.0, canary.SCHEMA.encode(ANN), part, rows=1000, regularisation=0.1
            ),
            vault.select([("ill",), ("ill",)], score, part),
            vault.quantiles("wealth", [0.5, 0.9], part),
            *points_of(vault, part.part(0.5)),
            courses(vault, part),
            repr(vault),
            str(vault.ledger),
            vault.ledger.to_dict(),
        ]
    assert canary.search(answers) == []
    # What is left of a closed vault holds nothing either.
    assert canary.search(vars(vault)) == []


def test_the_paid_domain(private_table):
    schema = cp.Schema(
        [cp.Column.categorical("name"), cp.Column.continuous("wealth"), cp.Column.date("born")]
    )
    schema = schema.pay("name").pay("wealth").pay("born")
    release = cp.release(private_table, schema, 1.0, 1e-9, rows=500, seed=SEED)
    assert canary.search(release) == []


@pytest.mark.parametrize("synthesizer", list(SYNTHESIZERS))
def test_models(private_table, synthesizer):
    with Vault(private_table, canary.SCHEMA, BUDGET, seed=SEED) as vault:
        model = SYNTHESIZERS.make(shorter(synthesizer)).fit(vault, vault.budget.whole)
    assert canary.search(model) == []
    assert canary.search(model.sample(1000, seed=1)) == []
    assert canary.search(model.to_arrays()) == []


@pytest.mark.parametrize("weights", list(WEIGHTERS))
def test_weights(private_table, weights):
    method = WEIGHTERS.make(shorter(weights))
    with Vault(private_table, canary.SCHEMA, BUDGET, seed=SEED) as vault:
        synthetic = SYNTHESIZERS.make("independent").fit(vault, vault.budget.whole.part(0.5))
        rows = synthetic.sample(500, seed=1)
        model = WeighterTrial(method).fit_on(vault, rows, vault.budget.whole.part(0.5))
    assert canary.search([model, model.weigh(rows)]) == []


def test_the_search_looks_into_archives(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", counts=np.array([1.0, canary.ILL]))
    np.savez_compressed(tmp_path / "b.npz", notes=np.array(f'{{"seen": "{canary.TEXT}"}}'))
    # Encoded bytes are looked through as what they are, and not as letters.
    hidden = b"\0" * 300 + np.float64(canary.NUMBER).tobytes()
    (tmp_path / "journal").write_bytes(b'{"state": "' + base64.b64encode(hidden) + b'"}')
    chance = b"A" * 400 + str(canary.ILL).encode() + b"A" * 399
    (tmp_path / "other").write_bytes(b'{"state": "' + chance + b'"}')
    assert sorted(canary.traces_in_files(tmp_path)) == [
        "a.npz: ill",
        "b.npz: text",
        "journal: number, in binary",
    ]


@pytest.mark.parametrize("synthesizer", list(SYNTHESIZERS))
def test_a_release_its_bundle_and_the_folder_of_its_work(private_table, tmp_path, synthesizer):
    release = cp.release(
        private_table,
        canary.SCHEMA,
        1.0,
        1e-9,
        synthesizer=shorter(synthesizer),
        rows=1000,
        replicates=5,
        seed=SEED,
        work=tmp_path / "work",
    )
    assert (tmp_path / "work" / "weights.npz").exists()
    assert canary.traces_in_files(tmp_path / "work") == []
    release.save(tmp_path / "out", csv=True)
    assert (tmp_path / "out" / "model.npz").exists()
    assert canary.search(release) == []
    loaded = cp.load(tmp_path / "out")
    assert canary.search([loaded, loaded.sample(500, seed=1)]) == []
    assert canary.traces_in_files(tmp_path) == []


def test_work_that_was_interrupted(private_table, tmp_path):
    class Stop(Exception):
        pass

    def stop(stage, done):
        if stage == "sampling":
            raise Stop

    schema = cp.Schema([cp.Column.categorical("name"), cp.Column.continuous("wealth")])
    schema = schema.pay("name").pay("wealth")
    with pytest.raises(Stop) as caught:
        cp.release(private_table, schema, 1.0, 1e-9, seed=SEED, work=tmp_path, progress=stop)
    assert canary.search(caught.value) == []
    assert (tmp_path / "synthesizer.npz").exists()
    assert canary.traces_in_files(tmp_path) == []


@pytest.mark.filterwarnings("ignore::counterpoise.errors.CounterpoiseWarning")
def test_weights_for_a_table_made_elsewhere(private_table, tmp_path):
    synthetic = pd.DataFrame(
        {"name": ["Ann", "Bob"] * 500, "ill": ["no", "yes"] * 500, "wealth": 1.0 * np.arange(1000)}
    )
    made = cp.weigh(private_table, synthetic, canary.SCHEMA, 1.0, 1e-9, replicates=5, seed=SEED)
    made.save(tmp_path / "out")
    assert canary.search(made) == []
    assert canary.traces_in_files(tmp_path) == []


def test_whose_rows_they_are_is_in_nothing_that_is_written(tmp_path, private_files):
    """Neither a person nor the name of the column that tells them apart, finished or not."""
    table = pd.read_parquet(private_files / "table.parquet").head(2000)
    table["whose"] = np.where(
        np.arange(len(table)) % 3, canary.TEXT, "Canary-Other-" + table["ill"]
    )
    (tmp_path / "private").mkdir()
    table.to_parquet(tmp_path / "private" / "rows.parquet")
    account = tmp_path / "account.json"
    cp.Account.create(account, 2.0, 1e-6, max_rows_per_person=500)
    options = {"person": "whose", "max_rows_per_person": 500, "rows": 50, "replicates": 0}
    released = {"work": tmp_path / "work", "account": account, "synthesizer": "independent"}
    private = tmp_path / "private" / "rows.parquet"
    made = cp.release(private, canary.SCHEMA, 1.0, 1e-9, **options, **released)
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) >= ["domain.npz", "journal"]
    assert (canary.search(made), "whose" in made.table) == ([], False)
    work = [path.read_bytes() for path in (tmp_path / "work").iterdir()]
    made.save(tmp_path / "out")
    rest = [path.read_bytes() for path in (tmp_path / "out").iterdir()]
    for content in (*work, *rest, account.read_bytes()):
        for trace in (b"Canary-Other", b"whose", canary.TEXT.encode(), str(tmp_path).encode()):
            assert trace not in content


def test_the_command_line(private_files, tmp_path):
    schema = tmp_path / "schema.json"
    canary.SCHEMA.write(schema)
    out = tmp_path / "out"
    words = ["release", str(private_files / "table.csv"), "--schema", str(schema)]
    words += ["--epsilon", "1", "--delta", "1e-9", "--seed", str(SEED), "--out", str(out)]
    words += ["--rows", "2000"]
    run = CliRunner().invoke(group, words)
    assert run.exit_code == 0, run.output
    shown = CliRunner().invoke(group, ["inspect", str(out)])
    assert canary.traces_in_text(run.output + shown.output) == []
    assert canary.traces_in_files(tmp_path) == []


def broken(folder: Path, kind: str) -> Path:
    """The private file, damaged so that readers are tempted to quote it."""
    content = (folder / "table.csv").read_bytes()
    file = folder / f"{kind}.csv"
    line = f"{canary.TEXT},no,{canary.NUMBER},{canary.DATE}".encode()
    if kind == "ragged":
        file.write_bytes(content.replace(line, line + b",one,more"))
    elif kind == "quote":
        file.write_bytes(content.replace(line, b'"' + line))
    elif kind == "encoding":
        file.write_bytes(content.replace(line, line + b"\xff\xfe"))
    elif kind == "parquet":
        file = folder / "truncated.parquet"
        whole = (folder / "table.parquet").read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
    return file


@pytest.mark.parametrize("kind", ["ragged", "quote", "encoding", "parquet"])
@pytest.mark.parametrize("storage", ["memory", "duckdb"])
def test_errors_about_a_damaged_file(private_files, kind, storage):
    file = broken(private_files, kind)
    try:
        with Vault(file, canary.SCHEMA, BUDGET, storage=storage, seed=SEED) as vault:
            answer = vault.counts([("name",)], vault.budget.whole)
    except CounterpoiseError as error:
        assert canary.search(error) == []
    else:
        assert canary.search(answer) == []


def test_errors_about_wrong_types(private_table):
    """A column of the wrong type codes to something; it never raises, and never quotes."""
    schema = cp.Schema(
        [
            cp.Column.integer("name", 0, 9),
            cp.Column.date(
                "wealth", pd.Timestamp("2000-01-01").date(), pd.Timestamp("2001-01-01").date()
            ),
        ]
    )
    with Vault(private_table, schema, BUDGET, seed=SEED) as vault:
        assert canary.search(vault.counts([("name", "wealth")], vault.budget.whole)) == []
