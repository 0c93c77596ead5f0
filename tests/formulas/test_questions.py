"""Questions are texts that say what will be asked, and that a schema can answer or not."""

import pytest

import counterpoise as cp
from counterpoise import Question
from counterpoise.errors import CounterpoiseError, MethodError
from counterpoise.formulas.questions import questions_in, read_questions

SCHEMA = cp.Schema(
    [
        cp.Column.boolean("ill"),
        cp.Column.integer("age", 0, 99),
        cp.Column.continuous("first charge", 0, 1000),
        cp.Column.categorical("ward", ["a", "b", "c"]),
        cp.Column.categorical("sex", ["f", "m"]),
        cp.Column.integer("visits", 0, 20, nullable=True),
        cp.Column.derived("old", "age > 60"),
        cp.Column.identifier("id"),
    ]
)
MADE = {
    "ill ~ age + C(ward)": Question.model("ill ~ age + C(ward)"),
    "poisson: visits ~ age": Question.model("visits ~ age", "poisson"),
    "mean(age)": Question.mean("age"),
    "mean(`first charge`) by ward + sex": Question.mean("first charge", by=["ward", "sex"]),
    "ward x sex": Question.table("ward", "sex"),
    "effect(sex) on ill given age + ward": Question.effect("sex", "ill", "age + ward"),
}


@pytest.mark.parametrize("text", MADE)
def test_a_question_is_read_from_its_text_and_written_back(text):
    assert Question.read(text) == MADE[text]
    assert str(MADE[text]) == text
    assert Question.read(str(Question.read(text))) == Question.read(text)


def test_names_that_are_not_plain_stand_in_backticks():
    odd = "a`b\\c x"
    for question in (Question.mean(odd, by=odd + "2"), Question.table("x", odd)):
        assert Question.read(str(question)) == question


def test_a_question_is_one_line_however_it_was_written():
    assert str(Question.read("  ill ~ age\n   + ward ")) == "ill ~ age + ward"


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("ill ~ log1p(age) * ward", ("ill", "age", "ward")),
        ("mean(`first charge`) by sex", ("first charge", "sex")),
        ("sex x ward", ("ward", "sex")),
        ("effect(sex) on ill given age", ("ill", "age", "sex")),
        ("log1p(age) ~ .", ("ill", "age", "first charge", "ward", "sex", "visits")),
    ],
)
def test_a_question_joins_its_columns_in_the_order_of_the_schema(text, joined):
    assert Question.read(text).joined(SCHEMA) == joined


@pytest.mark.parametrize(
    "wrong", ["", "  ", "age", "mean(age) of ward", "mean()", "a x", "a x b x c", 3, None, b"y ~ x"]
)
def test_what_is_no_question_is_refused_with_the_forms_there_are(wrong):
    with pytest.raises(MethodError, match="expected a formula such as 'y ~ x'"):
        Question.read(wrong)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ill ~ shoe", "no column 'shoe'"),
        ("shoe ~ age", "no column 'shoe'"),
        ("mean(shoe)", "no column 'shoe'"),
        ("mean(age) by shoe", "no column 'shoe'"),
        ("ward x shoe", "no column 'shoe'"),
        ("ward x ward", "different columns"),
        ("mean(age) by age", "different columns"),
        ("mean(ward) by sex", "has no mean; ask for a table"),
        ("effect(ill) on sex given age", "ask for a table, or have it declared boolean"),
        ("ill ~ age +", "formula"),
        ("ill ~ __import__('os')", "formula"),
        ("gaussian: ward ~ age", "not for it"),
        ("old ~ age", "neither derived nor identifiers"),
        ("ill ~ old", "neither derived nor identifiers"),
        ("effect(ward) on ill given age", "true or false"),
        ("effect(sex) on ward given age", "has no mean"),
        ("effect(sex) on ill given ill", "neither its treatment nor its outcome"),
        ("effect(sex) on sex given age", "different columns"),
    ],
)
def test_what_a_schema_cannot_answer_is_refused_with_the_question_and_the_reason(text, why):
    with pytest.raises(MethodError, match="questions: ") as refused:
        Question.read(text).joined(SCHEMA)
    assert why in str(refused.value)
    assert text[:12] in str(refused.value)


def test_categories_that_are_still_to_be_paid_for_may_turn_out_to_fit():
    opened = cp.Schema([cp.Column.categorical("ward", None), cp.Column.integer("age", 0, 9)])
    assert Question.read("ward ~ age").joined(opened) == ("ward", "age")


def test_questions_are_a_list_in_which_each_comes_once():
    asked = ["mean(age)", Question.mean("age"), "mean( age )"]
    assert read_questions(asked) == ("mean(age)",)
    assert read_questions(None) == read_questions([]) == ()
    for wrong in ("mean(age)", Question.mean("age"), 3):
        with pytest.raises(MethodError, match="expected a list of questions"):
            read_questions(wrong)
    with pytest.raises(MethodError, match="at most 100"):
        read_questions([f"mean(a{place})" for place in range(101)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Question.model("y ~ x", "weibull"),
        lambda: Question.model(3),
        lambda: Question.mean(3),
        lambda: Question.mean("a", by=3),
        lambda: Question.table("a", None),
        lambda: Question.effect("t", "y", ""),
        lambda: Question("median", ("a",)),
    ],
)
def test_odd_arguments_are_refused(make):
    with pytest.raises(CounterpoiseError):
        make()


def test_a_file_has_a_question_a_line(tmp_path):
    file = tmp_path / "asked.txt"
    file.write_text("# what the board wants\nmean(age) by ward\n\n  ill ~ age  \n")
    assert questions_in(file) == ("mean(age) by ward", "ill ~ age")
    for content in (b"", b"# nothing\n", b"\xff\xfe"):
        file.write_bytes(content)
        with pytest.raises(MethodError, match="questions: "):
            questions_in(file)
    with pytest.raises(MethodError, match="cannot be read"):
        questions_in(tmp_path / "nowhere.txt")
