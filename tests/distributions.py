"""A distribution as an installer leaves it: modules and the entry points that it declares.

It stands in a folder of its own on the path, where Python's own machinery finds it.
"""

import importlib
import sys
from pathlib import Path


def install(folder: Path, monkeypatch, files: dict[str, str], entries: dict[str, list[str]]):
    """Put modules and entry points on the path until the test is over."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    about = folder / "third_party-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    lines = [line for group, names in entries.items() for line in (f"[{group}]", *names)]
    (about / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    modules = {Path(name).parts[0].removesuffix(".py") for name in files}
    for module in [name for name in sys.modules if name.partition(".")[0] in modules]:
        monkeypatch.delitem(sys.modules, module)
