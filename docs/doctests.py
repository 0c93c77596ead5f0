"""A hook of mkdocs: doctests in docstrings are shown as code.

Markdown takes a line that begins with `>>>` for a quotation. Examples in our docstrings stand bare,
as doctest has them, so they are fenced before they are rendered; in the pages they are fenced
already and stay as they are.
"""

from collections.abc import Iterable
from typing import Any


def on_config(config: Any) -> Any:
    """Add the fences to what mkdocs, and mkdocstrings within it, do to every text."""
    from markdown import Extension, Markdown

    class Fences(Extension):
        def extendMarkdown(self, md: Markdown) -> None:
            # After line ends are made equal (30), and before fences are looked for (25).
            md.preprocessors.register(Fencing(), "doctests", 28)

    config.markdown_extensions.append(Fences())
    return config


class Fencing:
    """Fences around doctests that have none."""

    def run(self, lines: Iterable[str]) -> list[str]:
        """Lines of Markdown with every bare doctest fenced.

        >>> Fencing().run(["Twice:", ">>> 2 + 2", "4", "", "So."])
        ['Twice:', '```python', '>>> 2 + 2', '4', '```', '', 'So.']
        >>> Fencing().run(["```python", ">>> 2 + 2", "4", "```"])
        ['```python', '>>> 2 + 2', '4', '```']
        """
        made: list[str] = []
        in_fence = in_example = False
        for line in lines:
            if line.lstrip().startswith("```"):
                in_fence = not in_fence
            if not in_fence and not in_example and line.startswith(">>> "):
                in_example = True
                made.append("```python")
            elif in_example and not line.strip():
                in_example = False
                made.append("```")
            made.append(line)
        return [*made, "```"] if in_example else made
