"""The confidential page in a real browser: its figures are the API's, and nothing is asked for."""

import re

import pytest

from tests.browser.test_report import CHROMIUM, FRAME, LOGGING, browse, complaints, title_of
from tests.evaluation.evaluations import evaluated

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

WIDTH = "this.contentDocument.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return evaluated().to_html(tmp_path_factory.mktemp("browser") / "confidential.html")


@pytest.fixture(scope="module")
def browsed(page, tmp_path_factory):
    profile = tmp_path_factory.mktemp("profile")
    return browse(profile, *LOGGING, "--dump-dom", page.as_uri())


def test_the_figures_in_the_page_are_those_of_the_api(browsed):
    dumped = browsed.stdout
    assert dumped.count("<svg") > 40
    for kind, sides in (
        ("columns", ["unweighted", "weighted", "floor"]),
        ("pairs", ["unweighted", "weighted", "floor"]),
        ("models", ["unweighted", "weighted"]),
    ):
        [table] = re.findall(rf'<table[^>]* id="worst-{kind}">(.*?)</table>', dumped, re.S)
        shown = [float(value) for value in re.findall(r'data-value="([^"]*)"', table)]
        assert shown == evaluated().worst(kind)[sides].to_numpy().ravel().tolist()
    [table] = re.findall(r'<table[^>]* id="all-distances">(.*?)</table>', dumped, re.S)
    shown = [float(value) for value in re.findall(r'data-value="([^"]*)"', table)]
    expected = evaluated().distances[["unweighted", "weighted", "floor"]]
    assert shown == expected.to_numpy().ravel().tolist()


def test_nothing_is_complained_of_and_nothing_asked_for(browsed, page, tmp_path):
    assert complaints(browsed) == []
    # The policy of the page is what keeps it from asking, and its breach would be seen.
    spoiled = tmp_path / "spoiled.html"
    spoiled.write_text(
        page.read_text("utf-8").replace("<h1>", '<img src="https://example.org/x.png"><h1>')
    )
    assert complaints(browse(tmp_path / "profile", *LOGGING, "--dump-dom", spoiled.as_uri()))


@pytest.mark.parametrize("width", [380, 1200])
def test_the_page_is_not_wider_than_the_window(page, tmp_path, width):
    frame = FRAME.format(page=page.as_uri(), width=width)
    assert int(title_of(frame, tmp_path)) <= width


def test_it_is_light_or_dark_as_the_reader_likes_it(page, tmp_path):
    pictures = []
    for place, words in enumerate(((), ("--blink-settings=preferredColorScheme=0",))):
        picture = tmp_path / f"{place}.png"
        shot = (f"--screenshot={picture}", "--window-size=1000,1500")
        browse(tmp_path / f"profile{place}", *words, *shot, page.as_uri())
        pictures.append(picture.read_bytes())
    # A blank page of this size compresses to a few kilobytes.
    assert min(map(len, pictures)) > 40_000
    assert pictures[0] != pictures[1]


def test_the_notice_stands_clear_of_the_title(page, tmp_path):
    gap = (
        "[...this.contentDocument.querySelectorAll('.stamp, h1')].slice(0, 2)"
        ".map(each => each.getBoundingClientRect())"
        ".reduce((box, title) => Math.round(title.top - box.bottom))"
    )
    frame = FRAME.format(page=page.as_uri(), width=1200).replace(WIDTH, gap)
    # As far as a line of the text is high, about.
    assert int(title_of(frame, tmp_path)) >= 16
