"""Draw the parts of a model of the power plant data: docs/pictures/ccpp_effects.png.

python tools/draw_effects.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np

import sparserf as srf

ROOT = Path(__file__).parents[1]


def main():
    file = ROOT / "tools/data/ccpp.csv"
    names = file.read_text().splitlines()[0].split(",")
    data = np.loadtxt(file, delimiter=",", skiprows=1)
    X, y = data[:, :-1], data[:, -1]
    model = srf.harfe(X, y, order=2, n_components=5_000, n_nonzero_coefs=80, alpha=1e-2, rng=0, workers=-1)
    srf.plot.effects(model, X, names=names[:-1], n_panels=8).savefig(ROOT / "docs/pictures/ccpp_effects.png", dpi=100)


if __name__ == "__main__":
    main()
