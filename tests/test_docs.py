"""The documentation as a whole: its links lead somewhere, and what it names is there.

`make docs` checks the same of the built site, strictly; these tests need nothing but the files.
"""

import importlib
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

import counterpoise
from counterpoise.synthesizers import SYNTHESIZERS
from counterpoise.weights import WEIGHTERS

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
)
API = sorted((ROOT / "docs" / "api").glob("*.md"))


def names(page):
    return page.relative_to(ROOT).as_posix()


def text_of(page):
    """A page without its code, in which brackets are no links."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)


def anchors(page):
    """The headings of a page as mkdocs and GitHub name them."""
    content = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    headings = re.findall(r"^#+ (.+)$", content, re.M)
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"\s+", "-", heading) for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_every_path_of_the_tree_that_a_page_names_is_there(page):
    said = re.findall(
        r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+)`", page.read_text("utf-8")
    )
    former = page.name == "CHANGELOG.md"
    assert [path for path in said if not (ROOT / path).exists()] == [] or former


def found(name):
    """What a dotted name stands for."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise AssertionError(name)


def described():
    return [
        name for page in API for name in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.M)
    ]


@pytest.mark.parametrize("name", described())
def test_the_reference_describes_what_is_there(name):
    assert found(name).__doc__


def test_the_reference_has_everything_that_the_package_hands_out():
    shown = [found(name) for name in described()]
    shown += [getattr(room, name) for room in shown for name in getattr(room, "__all__", ())]
    errors = [
        value for value in vars(found("counterpoise.errors")).values() if isinstance(value, type)
    ]
    missing = {
        name
        for name in set(counterpoise.__all__) - {"__version__"}
        if getattr(counterpoise, name) not in [*shown, *errors]
    }
    assert missing == set()


def test_every_page_has_its_place_in_the_site():
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)
    there = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(there)


@pytest.mark.parametrize("drawing", sorted((ROOT / "docs").rglob("*.svg")), ids=names)
def test_a_drawing_is_whole_and_loads_nothing(drawing):
    content = drawing.read_text(encoding="utf-8")
    root = ElementTree.fromstring(content)
    assert root.find("{http://www.w3.org/2000/svg}title").text
    assert re.findall(r"https?://(?!www\.w3\.org/)|<script|@import|<image", content) == []
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, wide, high = (float(box.attrib[side]) for side in ("x", "y", "width", "height"))
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= y + high <= height


def test_the_site_asks_for_no_fonts_from_elsewhere():
    assert re.search(r"^  font: false$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)


def test_the_version_has_its_entry_in_the_changelog_and_the_citation():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert re.search(rf"^## \[?{version}\b", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_the_index_leads_to_every_page_and_counts_the_methods():
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    pages = (ROOT / "docs").rglob("*.md")
    wanted = {page.relative_to(ROOT / "docs").as_posix() for page in pages if page not in API}
    assert wanted - set(re.findall(r"\]\(([^)#]+)", index)) == {"index.md"}
    assert int(re.search(r"There are (\d+) synthesizers", index)[1]) == len(list(SYNTHESIZERS))
    assert int(re.search(r"There are (\d+) ways to \[weigh", index)[1]) == len(list(WEIGHTERS))
