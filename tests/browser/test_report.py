"""The report in a real browser: it renders, is not blank, and loads nothing from elsewhere."""

import shutil
import subprocess

import pandas as pd
import pytest

import counterpoise as cp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def browse(profile, *words):
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [CHROMIUM, *flags, f"--user-data-dir={profile}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_report_renders(tmp_path):
    schema = cp.Schema([cp.Column.boolean("ill"), cp.Column.continuous("dose", 0, 10)])
    rows = pd.DataFrame({"ill": [True, False] * 100, "dose": [1.0, 5.0] * 100})
    cp.release(rows, schema, 1.0, 1e-6, rows=100).save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").as_uri()
    dumped = browse(tmp_path / "profile", "--dump-dom", page).stdout
    assert "What was spent" in dumped
    assert dumped.count("<svg") == 3
    picture = tmp_path / "report.png"
    browse(tmp_path / "profile2", f"--screenshot={picture}", "--window-size=1000,1400", page)
    # A blank page of this size compresses to a few kilobytes.
    assert picture.stat().st_size > 20_000
