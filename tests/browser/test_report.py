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


def browse(profile, *words):
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    access = "--allow-file-access-from-files"
    command = [CHROMIUM, *flags, access, f"--user-data-dir={profile}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    schema = cp.Schema(
        [
            cp.Column.boolean("ill"),
            cp.Column.continuous("dose", 0, 10),
            cp.Column.continuous("cost", 0, 1e9, bins=(0, 10, 1000, 100_000, 1e9)),
            cp.Column.categorical("a_rather_long_name_of_a_column_without_spaces", ["a", "b"]),
        ]
    )
    rows = pd.DataFrame(
        {"ill": [True, False] * 400, "dose": [1.0, 5.0] * 400, "cost": [5.0, 500.0] * 400}
    )
    rows[schema.names[-1]] = ["a", "a", "b", "b"] * 200
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


@pytest.mark.parametrize("width", [400, 1200])
def test_the_report_is_not_wider_than_the_window(report, tmp_path, width):
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(page=report.as_uri(), width=width))
    dumped = browse(
        tmp_path / "profile", "--dump-dom", "--window-size=1400,4200", frame.as_uri()
    ).stdout
    assert int(re.search(r"<title>(\d+)</title>", dumped).group(1)) <= width
