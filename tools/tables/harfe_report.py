"""What harfe.py writes: the tables in Markdown, and Figure 3."""

import subprocess
from pathlib import Path


def pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def draw_figure3(rows, folder):
    fig, axes = pyplot().subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
    for ax, m in zip(axes, (250, 500, 1000), strict=True):
        some = [row for row in rows if row["m"] == m]
        for key, label in (("srfe", "SRFE"), ("harfe", "HARFE"), ("plain", "HARFE, as the paper ran it")):
            ax.plot([row["N"] for row in some], [row[key] for row in some], "o-", label=label)
        ax.set(title=f"m = {m}, d = {some[0]['d']}", xlabel="N", yscale="log")
    axes[0].set_ylabel("seconds")
    axes[0].legend(frameon=False, fontsize=8)
    fig.savefig(folder / "harfe_figure3.png", dpi=120)


def commit():
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent)
    return git.stdout.strip()


def report(results, sets, about):
    """The page, of what there is of {part: {commit, result}}; `sets` are the parts of Table 4."""
    text = "# HARFE: the paper's tables and figures\n\n"
    text += "`python tools/tables/harfe.py --data DIR`, each part at the commit that it names.\n\n"
    text += about.split("\n\n")[2].split(" Without")[0].strip() + "\n"
    for part, write in (("table1", report1), ("table2", report2)):
        if part in results:
            text += write(results[part]["result"]) + f"\nCommit {results[part]['commit']}.\n"
    text += report4([results[name] for name in sets if name in results])
    for part, title in (
        ("figure3", "Figure 3: seconds against the number of features"),
        ("figure45", "Figures 4 and 5: inputs of the selected features"),
    ):
        if part in results:
            text += f"\n## {title}\n\n![{title.split(':')[0]}](harfe_{part}.png)\n\nCommit {results[part]['commit']}.\n"
    return text


def report1(rows):
    text = "\n## Table 1: relative test error in percent, median of 10\n\n"
    text += "| function | q | paper | as it ran, positive | as it ran, magnitude | at its best |\n|---|---|---|---|---|---|\n"
    for r in rows:
        name, ours = r["function"].replace("|", "\\|"), [f"{r[key]:.2f}" for key in ("positive", "magnitude", "best")]
        text += f"| {name} | {r['q']} | {r['paper']} | {' | '.join(ours)} |\n"
    return text


def report2(rows):
    text = "\n## Table 2: mean squared error, mean ± sd of 100\n\n"
    text += "The paper's HARFE is on clean targets, its ANOVA on noisy ones.\n\n"
    text += (
        "| | q | paper | positive, clean | magnitude, clean | best, clean | ANOVA | positive, noisy | best, noisy | chosen |\n"
    )
    text += "|---|---|---|---|---|---|---|---|---|---|\n"
    cell = "{0[0]:.2f} ± {0[1]:.2f}".format
    for r in rows:
        text += f"| {r['function']} | {r['q']} | {r['paper']} | {cell(r['positive clean'])} | {cell(r['magnitude clean'])} | "
        text += f"{cell(r['best clean'])} | {r['anova']} | {cell(r['positive noisy'])} | {cell(r['best noisy'])} | "
        text += f"{r['chosen']} |\n"
    return text + WHY2


WHY2 = """
Between "best" and the paper's mode on f2 the difference is the choice of settings. At the paper's own (positive, q = 2), over
the first 20 samples, the default algorithm has 1.72, 1.31 and 10.5 on f1, f2 and f3, the paper's mode 1.70, 1.26 and 10.5. The
noise of f2 has a variance of 15.6: on one sample's held-out rows the ten best of 720 settings and sizes were within 2.5 % of
each other.
"""


def report4(made):
    text = "\n## Table 4: mean squared error on real sets, mean ± sd over random splits (the protocol's split)\n\n"
    text += "| set | paper (terms) | positive, N(0,1) | positive, U[-1,1] | magnitude, N(0,1) | magnitude, U[-1,1] "
    text += "| best | terms | chosen | commit |\n|---|---|---|---|---|---|---|---|---|---|\n"
    cell = "{0[1]:.3g} ± {0[2]:.2g} ({0[0]:.3g})".format
    for r, commit in ((one["result"], one["commit"]) for one in made):
        keys = ("positive normal", "positive uniform", "magnitude normal", "magnitude uniform", "best")
        cells = [cell(r[key]) for key in keys] + [f"{r['terms']:.0f}", r["chosen"], commit]
        text += f"| {r['set']} | {r['paper']:.3g} ({r['paper_terms']}) | {' | '.join(cells)} |\n"
    return text + WHY4


WHY4 = """
Housing, music, insulin, telemonitor and ccpp: on the protocol's split, positive with U[-1,1] is within 1 % of the published
figures, which are those of that split. Over 20 random splits of housing and music the same fits have .53 ± .24 and .75 ± .07;
the settings chosen have .48 and .83. On music and forestfires the paper's settings do better than those that are chosen on
held-out quarters.

Galaxy: the paper's mode takes one or two steps and stops. The default goes on to a lower training error (2.4e-5 against 4.0e-5
at the paper's settings, 1,000 of 10,000 features on 2,000 rows, the mean of ten splits) and a higher test error (1.0e-4 against
6.3e-5): it overfits.

Galaxy and ccpp, at the commit that they name: settings were chosen on 500 rows, from alphas of 1e-10, 1e-6, 1e-3 and 0.1, or
for positive coefficients 1e-3.
"""
