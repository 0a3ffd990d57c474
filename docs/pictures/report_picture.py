"""Draws docs/images/report.png: the first screens of a report, light and dark.

Run it from a clone with the extra ``report`` and a chromium:

    python docs/pictures/report_picture.py docs/images/report.png
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib import image
from PIL import Image
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from evomeans import HGMeans

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 1100, 1350


def main(target: Path) -> None:
    """Fit, write the report, and take its picture in both themes."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("This needs a chromium; on Debian: apt-get install chromium")
    frame = load_wine(as_frame=True).data
    scaler = StandardScaler().fit(frame)
    X = scaler.transform(frame)
    model = HGMeans(8, random_state=1).fit(X)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report = model.report(
            X,
            folder / "report.html",
            title="Wines",
            feature_names=list(frame.columns),
            standardization=(scaler.mean_, scaler.scale_),
        )
        halves = [screenshot(browser, report, theme, folder) for theme in ("light", "dark")]
    pixels = np.rint(255 * np.concatenate(halves, axis=1)[:, :, :3]).astype(np.uint8)
    # Few colours make a small file. Those of the clusters cover few pixels, and must not be mixed.
    few = Image.fromarray(pixels).quantize(256, method=Image.Quantize.MAXCOVERAGE)
    few.save(target, optimize=True)


def screenshot(browser: str, report: Path, theme: str, folder: Path) -> np.ndarray:
    """Open the page in a theme, and return its first screen as an array."""
    page = report.read_text(encoding="utf-8")
    file, picture = folder / f"{theme}.html", folder / f"{theme}.png"
    file.write_text(
        page.replace('<html lang="en">', f'<html lang="en" data-theme="{theme}">'), encoding="utf-8"
    )
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}", file.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    # The window is taller than the page that it shows.
    return image.imread(picture)[:HEIGHT, :WIDTH]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/report.png"))
