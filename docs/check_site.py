"""Check that every link and picture inside the built site leads somewhere.

Run ``python docs/check_site.py docs/_build/html``. Links to other sites are not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page and the anchors it offers."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag names and where it leads."""
        values = {name: value for name, value in attrs if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif tag in {"img", "script", "source"} and "src" in values:
            self.links.add(values["src"])
        elif tag == "link" and values.get("rel") == "stylesheet" and "href" in values:
            self.links.add(values["href"])

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


def main() -> int:
    """Print what is broken, and count it in the exit status."""
    if len(sys.argv) != 2 or not Path(sys.argv[1], "index.html").exists():
        print("usage: python docs/check_site.py FOLDER, where FOLDER is a built site")
        return 2
    folder = Path(sys.argv[1])
    broken = broken_links(folder)
    for line in broken:
        print(line)
    print(f"{len(pages_of(folder))} pages, {len(broken)} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
