"""Check that links and pictures of the built site lead somewhere, and that no markup shows.

Run ``python docs/check_site.py docs/_build/html``. Links to other sites are not followed.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MARKUP = re.compile(r"\w*\\_|:(?:class|meth|func|mod|doc|ref):`|\]\([\w./-]+\.md")
"""An escaped underscore, or a link of reStructuredText or Markdown that was not resolved."""
VERBATIM = {"pre", "script", "style"}


class Page(HTMLParser):
    """The links of a page, the anchors it offers, and markup that its readers see."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.markup: list[str] = []
        self.verbatim = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag names and where it leads."""
        self.verbatim += tag in VERBATIM
        values = {name: value for name, value in attrs if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif tag in {"img", "script", "source"} and "src" in values:
            self.links.add(values["src"])
        elif tag == "link" and values.get("rel") == "stylesheet" and "href" in values:
            self.links.add(values["href"])

    def handle_endtag(self, tag: str) -> None:
        """Leave a block whose text is shown as it is."""
        self.verbatim -= tag in VERBATIM

    def handle_data(self, data: str) -> None:
        """Note markup in the text."""
        if not self.verbatim:
            self.markup += MARKUP.findall(data)

    def offers(self, anchor: str) -> bool:
        """Tell whether a link to the anchor finds it; without an anchor, it is the page itself."""
        return not anchor or anchor in self.anchors


def read_page(path: Path) -> Page:
    """Parse one HTML file."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def pages_of(folder: Path) -> list[Path]:
    """Return the pages of a site, without the templates that the theme keeps among its files."""
    return [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts]


def broken_links(folder: Path) -> list[str]:
    """List the links that lead nowhere, each with the page it is on."""
    pages = {path.resolve(): read_page(path) for path in pages_of(folder)}
    broken = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                reason = "there is no such file"
            elif target in pages and not pages[target].offers(unquote(parts.fragment)):
                reason = "the page has no such anchor"
            else:
                continue
            broken.append(f"{path.relative_to(folder.resolve())}: {link}: {reason}")
    return broken


def visible_markup(folder: Path) -> list[str]:
    """List the markup that readers see, each with the page it is on."""
    return [
        f"{path.relative_to(folder)}: {text}: markup in the text"
        for path in pages_of(folder)
        for text in read_page(path).markup
    ]


def main() -> int:
    """Print what is broken; the exit status is 1 if anything is."""
    if len(sys.argv) != 2 or not Path(sys.argv[1], "index.html").exists():
        print("usage: python docs/check_site.py FOLDER, where FOLDER is a built site")
        return 2
    folder = Path(sys.argv[1])
    broken, markup = broken_links(folder), visible_markup(folder)
    for line in broken + markup:
        print(line)
    n_pages = len(pages_of(folder))
    print(f"{n_pages} pages, {len(broken)} broken links, {len(markup)} marks in texts")
    return 1 if broken or markup else 0


if __name__ == "__main__":
    sys.exit(main())
