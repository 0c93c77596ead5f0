"""The report in a real browser: it renders, is not blank, and fits a wide and a narrow window."""

import re
import shutil
import subprocess

import pandas as pd
import pytest

import counterpoise as cp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

# Chromium's headless window is no narrower than 500 pixels, so a page of 400 is put in a frame.
FRAME = """<iframe src="{page}" style="width: {width}px; height: 4000px; border: 0"
  onload="document.title = this.contentDocument.documentElement.scrollWidth"></iframe>"""

# How far each name reaches into what is drawn beside it, in the charts that have names.
INTO_CELLS = """<iframe src="{page}" style="width: {width}px; height: 4000px; border: 0"
  onload="document.title = [...this.contentDocument.querySelectorAll('.maps svg, .column svg')]
    .map(chart => [
      [...chart.querySelectorAll('text')].filter(each => +each.getAttribute('x') == 0
        && each.getAttribute('text-anchor') != 'end' && /[A-Za-z]/.test(each.textContent)
        && !/%/.test(each.textContent)),
      [...chart.querySelectorAll('rect')]])
    .filter(([names, cells]) => names.length && cells.length)
    .map(([names, cells]) => Math.round(
      Math.max(...names.map(each => each.getBBox().x + each.getBBox().width))
      - Math.min(...cells.map(each => each.getBBox().x))))"></iframe>"""
LOGGING = ("--enable-logging=stderr", "--v=0")
CATEGORIES = ["WOMEN WHO WERE WARM IN THE MORNING", "WOMEN WHO WERE WARM IN THE EVENING"]


def browse(profile, *words):
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    access = "--allow-file-access-from-files"
    command = [CHROMIUM, *flags, access, f"--user-data-dir={profile}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def complaints(browsed):
    """What a page wrote to the console: errors, and what its policy kept it from loading."""
    return re.findall(r"CONSOLE.*", browsed.stderr)


def title_of(frame, folder):
    """What a frame around a page makes its title."""
    file = folder / "frame.html"
    file.write_text(frame)
    words = ("--dump-dom", "--window-size=1400,4200", file.as_uri())
    return re.search(r"<title>(.*?)</title>", browse(folder / "profile", *words).stdout)[1]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    schema = cp.Schema(
        [
            cp.Column.boolean("ill"),
            cp.Column.continuous("dose", 0, 10),
            cp.Column.continuous("cost", 0, 1e9, bins=(0, 10, 1000, 100_000, 1e9)),
            cp.Column.categorical("HOW_MANY_WOMEN_AND_MEN_WERE_WARM_MMWW", CATEGORIES),
            cp.Column.categorical("a_rather_long_name_of_a_column_without_spaces", ["a", "b"]),
        ]
    )
    rows = pd.DataFrame(
        {"ill": [True, False] * 400, "dose": [1.0, 5.0] * 400, "cost": [5.0, 500.0] * 400}
    )
    rows[schema.names[-1]] = ["a", "a", "b", "b"] * 200
    rows[schema.names[-2]] = CATEGORIES * 400
    made = cp.release(rows, schema, 2.0, 1e-6, rows=200, synthesizer="independent")
    return made.save(tmp_path_factory.mktemp("browser") / "out") / "report.html"


def test_the_report_renders(report, tmp_path):
    dumped = browse(tmp_path / "profile", "--dump-dom", report.as_uri()).stdout
    assert "What was spent" in dumped
    # a chart of the budget, of the weights, and of every column, at the least
    assert dumped.count("<svg") >= 5
    picture = tmp_path / "report.png"
    browse(
        tmp_path / "profile2",
        f"--screenshot={picture}",
        "--window-size=1200,3000",
        report.as_uri(),
    )
    # A blank page of this size compresses to a few kilobytes.
    assert picture.stat().st_size > 40_000


def test_the_report_may_take_nothing_from_elsewhere_and_complains_of_nothing(report, tmp_path):
    words = (*LOGGING, "--dump-dom")
    assert complaints(browse(tmp_path / "profile", *words, report.as_uri())) == []
    # What would be asked for, or run, is kept from it by the page's policy.
    for place, spoilt in enumerate(
        ('<img src="https://example.org/x.png">', "<script>document.title = 1</script>")
    ):
        file = tmp_path / f"{place}.html"
        file.write_text(report.read_text("utf-8").replace("<h1>", f"{spoilt}<h1>"), "utf-8")
        assert complaints(browse(tmp_path / f"profile{place}", *words, file.as_uri()))


@pytest.mark.parametrize("width", [400, 1200])
def test_the_report_is_not_wider_than_the_window(report, tmp_path, width):
    frame = FRAME.format(page=report.as_uri(), width=width)
    assert int(title_of(frame, tmp_path)) <= width


@pytest.mark.parametrize("width", [400, 1200])
def test_no_name_runs_into_the_cells_beside_it(report, tmp_path, width):
    frame = INTO_CELLS.format(page=report.as_uri(), width=width)
    into = [int(each) for each in title_of(frame, tmp_path).split(",")]
    # The map of pairs, and the columns of categories: three of them.
    assert len(into) >= 4
    assert max(into) < 0
