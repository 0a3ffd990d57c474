"""
Resume after a kill
===================

A long search survives the end of its process. The command line keeps the state of the search in a
file next to the output; the same command with ``--resume`` continues, and ends with the same bits
as a search that was never interrupted.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

folder = tempfile.TemporaryDirectory()
table = Path(folder.name, "digits.csv")
names = ",".join(f"pixel{i}" for i in range(64))
np.savetxt(table, load_digits().data, fmt="%g", delimiter=",", header=names, comments="")


def command(run, *more):
    """Return the command that clusters the table into the folder ``run``."""
    fit = [sys.executable, "-m", "evomeans", "fit", str(table), "-k", "25", "--seed", "1"]
    limits = ["--n-iter-no-change", "1000", "--max-offspring", "600"]
    return [*fit, *limits, "--quiet", "-o", str(Path(folder.name, run)), *more]


# %%
# The first process is killed while it searches. It catches SIGTERM, writes its best solution so
# far, and exits with status 143. A process that dies at once, as by ``kill -9``, loses at most
# the last half minute.

process = subprocess.Popen(command("disturbed"), stderr=subprocess.DEVNULL)
checkpoint = Path(folder.name, "disturbed.checkpoint")
while not checkpoint.exists() and process.poll() is None:
    time.sleep(0.05)
time.sleep(0.6)
process.terminate()
print("exit status", process.wait())


def read(run):
    """Read what a run has written: its result, and the inertia of every solution."""
    result = json.loads(Path(folder.name, run, "run.json").read_text(encoding="utf-8"))["result"]
    path = Path(folder.name, run, "history.csv")
    history = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    return result, history


_, before = read("disturbed")

# %%
# The same command with ``--resume``, and one search from beginning to end for comparison.

subprocess.run(command("disturbed", "--resume"), check=True)
subprocess.run(command("undisturbed"), check=True)
resumed, history = read("disturbed")
whole, _ = read("undisturbed")
print("resumed    ", resumed["inertia"])
print("undisturbed", whole["inertia"])
assert resumed["inertia"] == whole["inertia"]

# %%
# The history of the resumed search contains both parts.

gap = 100 * (history["best"] / resumed["inertia"] - 1) + 1e-4
fig, ax = plt.subplots(figsize=(8, 4))
number = np.arange(len(gap))
ax.scatter(number, 100 * (history["inertia"] / resumed["inertia"] - 1) + 1e-4, s=6, color="0.7")
n_before = len(before)
ax.step(number[: n_before + 1], gap[: n_before + 1], color="#0072B2", linewidth=2.5)
ax.step(number[n_before:], gap[n_before:], color="#009E73", linewidth=2.5)
ax.axvline(n_before, color="#D55E00", linestyle="--")
ax.text(n_before, ax.get_ylim()[1], " killed here", color="#D55E00", va="top")
ax.set(xlabel="solutions made", ylabel="percent above the best, plus 0.0001", yscale="log")
ax.set_title("Digits, k = 25: one search in two processes", loc="left")
plt.show()
folder.cleanup()
