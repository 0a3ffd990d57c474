"""How Sphinx builds the site; ``make docs`` runs it."""

from __future__ import annotations

import logging
import os
import re
import sys
import zipfile
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

# Figures are drawn into files.
os.environ.setdefault("MPLBACKEND", "Agg")
# The gallery runs KMeans hundreds of times on small data, where threads only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Examples print what they do where kernels are compiled already.
logging.getLogger("evomeans").setLevel(logging.ERROR)

HERE = Path(__file__).parent
# The laboratory is not installed.
sys.path.insert(0, str(HERE.parent))

project = "evomeans"
author = "The evomeans developers"
project_copyright = author
release = version_of("evomeans")
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
]
exclude_patterns = ["_build", "pictures", "gallery/**/GALLERY_HEADER.rst"]
suppress_warnings = [
    "config.cache",  # the gallery is configured by classes, which Sphinx cannot pickle
]
templates_path = ["_templates"]

# Pages ---------------------------------------------------------------------------------------

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["colon_fence", "deflist", "smartquotes"]
myst_heading_anchors = 3
# Indented blocks are commands and their output; Python is fenced and says so.
highlight_language = "none"
pygments_style = "default"

# API reference -------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections name the types
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # HGMeans.fit is fit on the page of HGMeans
numpydoc_show_class_members = False  # the template of classes lists them
numpydoc_xref_param_type = False


def mark_plain_names(
    _app: Sphinx, _kind: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Keep reStructuredText from reading ``best_k_`` as a link and ``|x|`` as a substitution.

    Docstrings are also read at a terminal, where such names are best without any marks. The tables
    of the reference show first sentences, which do not need the marks of their references.
    """
    paragraph = 0
    for i, line in enumerate(lines):
        paragraph += bool(line) and (i == 0 or not lines[i - 1])
        if paragraph == 1:
            line = re.sub(r" ?\[R[0-9a-f]+-\d+\]_", "", line)
        if line.lstrip().startswith((">>>", "...", "|", "+-")):
            continue
        parts = re.split(r"(``.*?``|`.*?`)", line)
        for j in range(0, len(parts), 2):  # outside backticks
            text = re.sub(r"(?<![\w*\]])(\w+)_(?![\w*])", r"\1\\_", parts[j])
            text = text.replace("|", r"\|")
            parts[j] = re.sub(r"docs/([a-z/-]+)\.md", r":doc:`/\1`", text)
        lines[i] = "".join(parts)


def setup(app: Sphinx) -> None:
    """Let numpydoc go first, whose sections the names must not spoil, and the gallery."""
    app.connect("autodoc-process-docstring", mark_plain_names, priority=900)
    app.connect("builder-inited", crop_thumbnails, priority=900)
    app.connect("builder-inited", complete_downloads, priority=900)


# Gallery -------------------------------------------------------------------------------------


def reset_figures(_gallery_conf: dict[str, Any], _name: str) -> None:
    """Draw every example in the same style, whichever ran before it."""
    import matplotlib as mpl

    mpl.rcdefaults()
    mpl.use("Agg")
    mpl.rcParams.update(
        {
            "figure.dpi": 110,
            "savefig.dpi": 110,
            "figure.constrained_layout.use": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )


def crop_thumbnails(app: Sphinx) -> None:
    """Show the left part of a wide picture, where the whole would be too small to recognise."""
    from PIL import Image

    for thumbnail in Path(app.srcdir, "gallery").glob("*/images/thumb/*_thumb.png"):
        name = thumbnail.name.removesuffix("_thumb.png")
        pictures = sorted(thumbnail.parents[1].glob(f"{name}_*.png"))
        if pictures:
            with Image.open(pictures[-1]) as picture:
                width = min(picture.width, round(picture.height * WIDTH / HEIGHT))
                part = picture.crop((0, 0, width, picture.height))
                part.thumbnail((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
                part.save(thumbnail)


WIDTH, HEIGHT = 400, 280
"""Of a thumbnail."""


def complete_downloads(app: Sphinx) -> None:
    """Put the data that an example reads into the archive that its page offers."""
    for data in Path(app.srcdir, "gallery").glob("*/*.npz"):
        for script in data.parent.glob("*.py"):
            if data.name in script.read_text(encoding="utf-8"):
                with zipfile.ZipFile(script.with_suffix(".zip"), "a") as archive:
                    if data.name not in archive.namelist():
                        archive.write(data, data.name)


sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "subsection_order": [
        str(Path("..", "examples", "gallery", folder))
        for folder in ("first_steps", "models", "large_data", "inside")
    ],
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": False,
    "abort_on_example_error": True,
    "backreferences_dir": "api/backreferences",
    "doc_module": ("evomeans",),
    "thumbnail_size": (WIDTH, HEIGHT),
    "copyfile_regex": r".*\.npz",  # what examples read
    "reset_modules": (reset_figures,),
    "matplotlib_animations": False,
    "min_reported_time": 1,
    "remove_config_comments": True,
    "show_signature": False,
    "show_memory": False,
}

# Look ----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"evomeans {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": f"evomeans {release}"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# It has no pages beside it.
html_sidebars = {"index": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
