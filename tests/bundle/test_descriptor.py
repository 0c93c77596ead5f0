"""`datapackage.json`: every change of it is found, and what is made on purpose is held to rules."""

import json
import shutil

import pytest

import counterpoise as cp
from counterpoise.bundle.descriptor import digest_of
from counterpoise.errors import BundleError
from tests.bundle.fuzz_bundle import (
    edit_bytes,
    edit_values,
    make_bundle,
    retarget_bundle,
    run,
)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return make_bundle(tmp_path_factory.mktemp("original"))


@pytest.fixture
def bundle(original, tmp_path):
    return shutil.copytree(original, tmp_path / "copy")


def edit(bundle, change, anew=True):
    """Change the values of the descriptor, and its digest too if that is made `anew`."""
    file = bundle / "datapackage.json"
    descriptor = json.loads(file.read_text(encoding="utf-8"))
    change(descriptor)
    if anew:
        descriptor["counterpoise"]["digest"] = digest_of(descriptor)
    file.write_text(json.dumps(descriptor), encoding="utf-8")


def test_random_edits_of_bytes_are_found_or_change_nothing(original):
    counted = run(original, 240, seed=1, edit=edit_bytes)
    assert counted["refused"] > 200
    assert set(counted) <= {"refused", "equal"}


def test_random_values_are_refused_in_our_words_or_can_be_used(original):
    counted = run(original, 80, seed=2, edit=edit_values)
    assert counted["refused"] > 40
    assert counted["works"] > 0


def test_random_values_of_a_retargeted_release_are_refused_or_can_be_used(original, tmp_path):
    counted = run(retarget_bundle(original, tmp_path), 80, seed=3, edit=edit_values)
    assert counted["refused"] > 20
    assert counted["works"] > 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"epsilon": 1.0', '"epsilon": 0.1'),
        ('"private": false', '"private": true'),
        ('"seeded": true', '"seeded": false'),
        ('"maximum": 99', '"maximum": 98'),
        ('"Oslo"', '"Olso"'),
        ('"population": ', '"population": 1'),
        ('"title": "S', '"title": "s'),
    ],
)
def test_a_changed_word_is_found_by_the_digest(bundle, old, new):
    file = bundle / "datapackage.json"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BundleError, match="does not have the digest that it states"):
        cp.load(bundle)


def test_the_digest_is_of_the_values_and_not_of_their_order_or_spaces(bundle):
    file = bundle / "datapackage.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(values, indent=7, sort_keys=True), encoding="utf-8")
    assert len(cp.load(bundle).table) == 40


def test_the_digest_is_what_the_documentation_says(bundle):
    """Anybody can compute it: sorted keys, no spaces, ASCII, SHA-256."""
    import hashlib

    values = json.loads((bundle / "datapackage.json").read_text(encoding="utf-8"))
    stated = values["counterpoise"].pop("digest")
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    assert stated == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xfe{}", "not text in UTF-8"),
        (b'{"name": "\\ud800"}', "not text in UTF-8"),
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": -Infinity}', "not JSON"),
        (b'{"a": 1e999}', "not JSON"),
        (b'{"a": 1, "a": 2}', "says something twice"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
        (b'{"a":' * 100_000, "nested too deeply|not JSON"),
        (b"[" * 200 + b"]" * 200, "nested too deeply"),
        (b"[]", "does not describe a release"),
        (b'{"counterpoise": []}', "does not describe a release"),
        (b'{"counterpoise": {"format": "2"}}', "does not describe a release"),
        (b'{"counterpoise": {"format": true}}', "does not describe a release"),
        (b'{"counterpoise": {"format": 2}}', "digest"),
    ],
)
def test_what_is_no_description_is_refused(bundle, content, reason):
    (bundle / "datapackage.json").write_bytes(content)
    with pytest.raises(BundleError, match=reason):
        cp.load(bundle)


def test_a_release_of_the_first_format_is_said_to_be_older(bundle):
    edit(bundle, lambda found: found["counterpoise"].update(format=1), anew=False)
    with pytest.raises(
        BundleError, match=r"written by an older version of counterpoise \(format 1"
    ):
        cp.load(bundle)


def _resources(change):
    return lambda found: change(found["resources"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda all_: all_[0].update(path="../../etc/passwd"), "is not a file of a release"),
        (lambda all_: all_[0].update(path="/etc/passwd"), "is not a file of a release"),
        (lambda all_: all_[0].update(path="./synthetic.parquet"), "is not a file of a release"),
        (lambda all_: all_[1].update(name="synthetic"), "is not a file of a release"),
        (lambda all_: all_.append(all_[2]), "is listed twice"),
        (lambda all_: all_.pop(0), r"'synthetic\.parquet' is not listed"),
        (lambda all_: all_.pop(1), r"'synthetic\.csv' is not listed"),
        (lambda all_: all_[2].update(bytes=5), r"report\.html is damaged"),
        (lambda all_: all_[2].update(hash="sha256:0"), r"report\.html is damaged"),
        (lambda all_: all_[1].pop("schema"), "schema is not one"),
        (lambda all_: all_[0]["schema"]["fields"].pop(), "schema is not one"),
        (lambda all_: all_[0]["schema"]["fields"].append("x"), "schema is not valid"),
        (lambda all_: all_.clear(), "is not listed"),
    ],
)
def test_files_are_listed_once_by_their_own_names_and_lie_in_the_folder(bundle, change, reason):
    edit(bundle, _resources(change))
    with pytest.raises(BundleError, match=reason):
        cp.load(bundle)


CARDS = [
    ("rows", 41, "does not have the 41 rows"),
    ("rows", -1, "rows: expected a whole number from 0"),
    ("rows", 40.0, "rows: expected a whole number from 0"),
    ("population", -5, r"population: expected a number from 0 to 1e\+15, or null"),
    ("population", 1e300, "population: expected a number"),
    ("population", "many", "population: expected a number"),
    ("population", 10**400, "population: expected a number"),
    ("seeded", 0, "seeded: expected true or false"),
    ("seeded", False, None),
    ("versions", {"numpy": 2}, "versions: expected an object of texts"),
    ("caveat", 5, "caveat: expected a text"),
    ("covers", "nothing", "covers: expected one of 'weights'"),
    ("guarantee", "private", "guarantee: it is not the one that follows"),
    ("model", {"saved": False, "reason": None}, "disagree on whether there is a model"),
    ("model", {}, r"model\.saved is missing"),
    ("replicates", None, "schema is not one that counterpoise writes"),
    ("replicates.count", 2, "replicates.scale is not that of their number and part"),
    ("replicates.part", 0, "replicates.scale is not that of their number and part"),
    ("replicates.effective_sample_sizes", [1.0], "expected one a replicate"),
    ("replicates.effective_sample_sizes", [-1.0], "expected a list of numbers from 0"),
    ("replicates.worst_effective_sample_size", "few", "expected a number from 0"),
    ("replicates.bounded", -1, "expected a whole number from 0"),
    ("weights.effective_sample_size", 41, "more than the rows"),
    ("weights.effective_sample_size", None, r"expected a number from 0"),
    ("weights.largest_share", 1.5, r"largest_share: expected a number from 0 to 1"),
    ("measured", "all", r"measured: expected an object"),
    ("measured.counts", "all", r"counts: expected a list of lists of columns, or null"),
    ("measured.products", [["age", 3]], r"products: expected a list of lists of columns"),
    ("weights.verdict", "fine", r"weights\.verdict: expected an object"),
    ("weights.verdict.level", "good", r"level: expected one of 'fine'"),
    ("weights.verdict.reason", None, r"reason: expected a text"),
    ("ledger", {}, "ledger.budget is missing"),
    ("ledger.private", True, "a seeded release cannot have a private ledger"),
    ("ledger.epsilon_spent", 0.5, "not what its spends add up to"),
    ("ledger.spends", [], "not what its spends add up to"),
    ("ledger.spends", [5], r"spends\.0: expected an object"),
    ("ledger.budget.epsilon", 1e-9, "the card's ledger is not valid"),
    ("ledger.budget.neighbours", "x", "the card's ledger is not valid"),
    ("an unknown field", [1, {"x": None}], None),
]


@pytest.mark.parametrize(("field", "value", "reason"), CARDS)
def test_every_field_of_a_card_keeps_its_rule(bundle, field, value, reason):
    def change(found):
        *outer, name = field.split(".")
        inside = found["counterpoise"]
        for part in outer:
            inside = inside[part]
        inside[name] = value

    edit(bundle, change)
    if reason is None:
        assert cp.load(bundle).card[field] == value
    else:
        with pytest.raises(BundleError, match=reason):
            cp.load(bundle)


@pytest.mark.parametrize(
    ("column", "key", "value"),
    [
        ("sex", "enum", ["X", "Y"]),
        ("town", "enum", ["Paris", "other"]),
        ("age", "maximum", 5),
        ("income", "minimum", 900.0),
        ("seen", "minimum", "2022-12-01"),
        ("grade", "required", True),
    ],
)
def test_a_table_that_does_not_fit_its_schema_is_refused(bundle, column, key, value):
    """Read by such a schema, some values would silently become others."""

    def change(found):
        for resource in found["resources"][:2]:
            field = next(f for f in resource["schema"]["fields"] if f["name"] == column)
            field["constraints"] = field.get("constraints", {}) | {key: value}
            if column in ("income", "seen"):
                field.pop("bins")

    edit(bundle, change)
    with pytest.raises(BundleError, match=f"column '{column}' of the table holds values"):
        cp.load(bundle)


def test_files_of_other_names_are_nobodys_business(bundle):
    (bundle / "README.txt").write_text("ask us")
    assert len(cp.load(bundle).table) == 40
