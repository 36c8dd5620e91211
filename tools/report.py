"""The page of an experiment, of its records: tables as its file declares them, pictures, and where
the records were made.

A table has a row for each set (with rows = "contender", for each contender of each set), the
`columns` that are declared, and with a `cell` one for each contender. Both are templates, of which
a list is tried in turn: {name} is what the file says of the set, or the mean of a measure over
seeds, {name_sd}, {name_geo}, {name_short}, ... are others; {WHO[name]} is of a contender.
"""

import re
import textwrap
import tomllib
from collections import defaultdict
from fnmatch import fnmatch
from itertools import product
from pathlib import Path

import data_sets
import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

MARK = re.compile(r"(<!-- table: (\w+) -->)\n.*?(<!-- end -->)", re.DOTALL)
PICTURE = re.compile(r"!\[[^]]*\]\((?:docs/)?pictures/(\w+\.png)\)")
PAGES = tomllib.loads(Path(__file__).with_name("pages.toml").read_text())
WRAP = textwrap.TextWrapper(126, break_long_words=False, break_on_hyphens=False).fill
WHERE = "machine versions threads commit".split()
# Ratios of errors below this are drawn apart, or at the edge: they would squeeze the others.
NEAR, TICKS = 0.5, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2.0)
LEVEL = 0.9, 1.1  # sets within have no name in a picture


def write(experiment, sets, records, folder):
    """The page, and its pictures beside it; of an experiment without one, what pages ask for is
    made by `fill`."""
    page = folder / experiment.get("page", f"tables/{Path(experiment['name']).stem}.md")
    page.parent.mkdir(parents=True, exist_ok=True)
    records, text = (
        ordered(sets, records),
        [f"# {experiment['title']}", f"`python tools/run.py --only {experiment['name']}`"],
    )
    text += [experiment["about"].strip()] if "about" in experiment else []
    for group, of in experiment["groups"].items():
        mine = {
            name: one
            for name, one in sets.items()
            if one["group"] == group and any(r["set"] == name for r in records)
        }
        text += [
            form.format(of[key].strip())
            for key, form in (("title", "## {}"), ("about", "{}"))
            if mine and key in of
        ]
        for some in (
            [{name: one} for name, one in mine.items()] if of.get("each") else [mine] * bool(mine)
        ):
            there = [r for r in records if r["set"] in some]
            name, one = next(iter(some.items()))
            about = WRAP(one.get("about", "").format_map(one))
            text += [f"## {name}", about] if of.get("each") else []
            text += part(some, there, page)
        text += [of["after"].strip()] if "after" in of and mine else []
    page.write_text("\n\n".join([*text, *provenance(records)]) + "\n")


def ordered(sets, records):
    """Those of sets and contenders that are declared, in that order; in place of one that quotes
    others, theirs."""
    order = {
        (name, who): k for name, one in sets.items() for k, who in enumerate(one["contenders"])
    }
    some = [r for r in records if (r["set"], r["contender"]) in order]
    return [
        one
        for r in sorted(some, key=lambda r: (order[r["set"], r["contender"]], r["seed"]))
        for one in parted(r)
    ]


def parted(record):
    """The record; or of `each` contender that it quotes one, all with its set, seed, and where it
    was made."""
    common = {key: record[key] for key in ("set", "seed", *WHERE) if key in record}
    return (
        [common | {"contender": who} | one for who, one in record["each"].items()]
        if "each" in record
        else [record]
    )


def fill(text, stored):
    """The text of a page, with the tables of pages.toml where its marks name them; stored(name):
    its sets and records."""
    return MARK.sub(lambda found: f"{found[1]}\n{asked_for(found[2], stored)}\n{found[3]}", text)


def commits_on(text, stored):
    """The commits of the records that the tables and pictures of a page are made of."""
    asked = [name for _, name, _ in MARK.findall(text) if name in PAGES]
    found = [one for name in asked for table in PAGES[name] for one in of_table(table, stored)]
    if drawn := set(PICTURE.findall(text)):
        for name in ("pictures", "shapes"):
            sets, records = stored(name)
            for r in records:
                spec = sets[r["set"]]["contenders"].get(r["contender"], {})
                files = {spec.get("file"), *re.findall(r"\w+\.png", spec.get("command", ""))}
                found += [(name, sets, [r])] * bool(files & drawn)
    return commits_of([r for *_, records in found for r in records])


def commits_of(records):
    return list(dict.fromkeys(r["commit"] for r in records))


def faults(pages, stored, experiments):
    """What is wrong with pages, {name: text}, and with the records of experiments, as sentences."""
    found = [
        f"{name}: run `python tools/run.py --report`"
        for name, text in pages.items()
        if fill(text, stored) != text
    ]
    made = {name: commits_on(text, stored) for name, text in pages.items()}
    made |= {f"tables/{name}.jsonl": commits_of(stored(name)[1]) for name in experiments}
    return found + [
        f"{name} has figures of several commits ({', '.join(commits)}): make them at one, by "
        "`python tools/run.py --all`"
        for name, commits in made.items()
        if len(commits) > 1
    ]


def of_table(table, stored):
    """(experiment, its sets, its records), of those that a table is about."""
    for of in table["of"]:
        there, found = stored(of)
        mine = narrowed(there, table)
        some = ordered(mine, found)
        if table.get("kind") == "verdicts":  # experiments have sets of the same name
            mine = {f"{of}: {name}": one for name, one in mine.items()}
            some = [one | {"set": f"{of}: {one['set']}"} for one in some]
        yield of, mine, some


def asked_for(name, stored):
    if name == "data_sets":
        return "\n".join(data_sets.lines(stored))
    text, made = [], {}
    for table in PAGES[name]:
        sets, records = {}, []
        for of, mine, some in of_table(table, stored):
            sets, records = sets | mine, records + some
            made[of] = made.get(of, []) + some
        text += [table["about"].strip()] if "about" in table else []
        text.append(
            "\n".join(TABLES[table.get("kind", "plain")](table, sets, records))
            if records
            else "Not run yet."
        )
    told = made.items() if PAGES[name][0].get("made", True) else ()
    text += [
        WRAP(f"`python tools/run.py --only {of}`. {' '.join(provenance(some))}")
        for of, some in told
    ]
    return "\n\n".join(text)


def narrowed(sets, table):
    """The sets that a table is about, with the contenders that it is about."""

    def select(named, key):
        patterns = table.get(key, "*")
        return {n: one for n, one in named.items() if any(fnmatch(n, p) for p in patterns)}

    return {
        name: one | {"contenders": select(one["contenders"], "contenders")}
        for name, one in select(sets, "sets").items()
    }


def part(sets, records, page):
    """Tables and pictures of some sets of a group."""
    text, name, one = [], *next(iter(sets.items()))
    for table in one["tables"]:
        text += [table["about"].strip()] if "about" in table else []
        text.append("\n".join(TABLES[table.get("kind", "plain")](table, sets, records)))
    for picture in one["pictures"]:
        figure = PICTURES[picture["kind"]](
            picture, sets, [r for r in records if "skipped" not in r]
        )
        if figure is not None:
            file = picture["file"].format(set=name)
            figure.savefig(page.parent / file, dpi=110)
            plt.close(figure)
            text.append(f"![{picture['title'].format(set=name)}]({file})")
    return text


def provenance(records):
    """Where the records were made."""
    made = defaultdict(lambda: ({}, {}))
    for r in records:
        threads = f"{r['threads']} thread{'s' * (r['threads'] > 1)}"
        versions, commits = made[f"{r['machine']}, {threads}"]
        versions |= dict.fromkeys(r["versions"].split(", "))
        commits[r["commit"]] = None
    return [
        WRAP(f"Made on {', '.join([of, *found])}; commit {', '.join(commits)}.")
        for of, (found, commits) in made.items()
    ]


def measures(records):
    """The summaries over seeds of the measures of a contender on a set."""
    values, found = defaultdict(list), {}
    for key, value in (
        (key, value)
        for r in records
        if "skipped" not in r
        for key, value in r.items()
        if value is not None
    ):
        values[key].append(value)
    for key, each in values.items():
        found.setdefault(key, each[0])
        if all(isinstance(value, int | float) for value in each):
            found[key], geo, sd = (
                np.mean(each),
                np.exp(np.mean(np.log(np.maximum(each, 1e-300)))),
                np.std(each),
            )
            more = {
                "sd": sd * (sd > 1e-12 * abs(found[key])),
                "geo": geo,
                "median": np.median(each),
                "n": len(each),
            }
            more |= {"max": max(each), "short": short(geo)}
            found |= {f"{key}_{what}": more[what] for what in more if f"{key}_{what}" not in values}
    if {"mb", "rows", "inputs"} <= set(found):
        found["bytes_a_cell"] = found["mb"] * 2**20 / (found["rows"] * found["inputs"])
    return found


def short(x):
    return f"{x:.0f}" if x >= 99.5 else f"{x:.2g}"


def by_contender(records):
    return {
        who: [r for r in records if r["contender"] == who]
        for who in dict.fromkeys(r["contender"] for r in records)
    }


def spaces(table, sets, records):
    """The names of each row: what is said of a set (of each contender, its own), measures, costs
    beside the first's."""
    for name, one in sets.items():
        each, over = (
            by_contender([r for r in records if r["set"] == name]),
            f"{table.get('over', 'seconds')}_geo",
        )
        of = {who: measures(some) for who, some in each.items()}
        base = next((found[over] for found in of.values() if over in found), None)
        for found in (found for found in of.values() if over in found):
            found["times"] = found[over] / base
        beside = {
            w: r for w in list(of)[1:] if not np.isnan(r := ratio(records, name, next(iter(of)), w))
        }
        for who, times in beside.items():
            of[who]["beside"] = times
        rivals = [(r, w) for w, r in beside.items() if w in one.get("rivals", beside)]
        worst, rival = max(rivals, default=(np.nan, None))
        best = {
            "rival": rival,
            "ratio": worst,
            "rival_error": (error := of.get(rival, {}).get("error_geo", np.nan)),
        }
        best |= {
            "ours": worst * error,
            "rank": 1 + sum(r > 1 for r, _ in rivals),
            "ranked": 1 + len(rivals),
        }
        for who in each if table.get("rows") == "contender" else list(each)[:1]:
            said = {
                key: value.get(who) if isinstance(value, dict) else value
                for key, value in one.items()
            }
            skipped = (
                {"skipped": f"skipped: {each[who][0]['skipped']}"}
                if "skipped" in each[who][0]
                else {}
            )
            yield (said | best | of[who] | {"of": of, "set": name, "contender": who} | skipped | of)


def cell(templates, space):
    """The first of the templates whose names all have a value."""
    for template in [templates] if isinstance(templates, str) else templates:
        try:
            return template.format_map(space).replace("|", "\\|").strip().replace("\n", "<br>")
        except (KeyError, TypeError):
            continue
    return ""


def answer(expression, space):
    """Of a row; False where it asks for what has no record."""
    try:
        return eval(expression, {}, space)
    except (NameError, KeyError):
        return False


def markdown(head, rows):
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def plain(table, sets, records):
    order, there = (
        dict.fromkeys(who for one in sets.values() for who in one["contenders"]),
        by_contender(records),
    )
    who = [
        w for w in order if "cell" in table and any("skipped" not in r for r in there.get(w, ()))
    ]
    found = [
        space for space in spaces(table, sets, records) if answer(table.get("where", "True"), space)
    ]
    found.sort(key=lambda space: answer(table.get("sort", "0"), space))
    of_set = [[cell(template, space) for template in table["columns"].values()] for space in found]
    of_contenders = [[cell(table["cell"], space.get(w, {})) for w in who] for space in found]
    return markdown([*table["columns"], *who], map(list.__add__, of_set, of_contenders))


def ratios(records, name, ours, theirs, measure="error"):
    """ours / theirs on a set, of each seed that both have; no terms count as one."""
    of = {
        (r["contender"], r["seed"]): r[measure]
        for r in records
        if r["set"] == name and measure in r
    }
    return [
        (of[ours, s] or 1) / (of[theirs, s] or 1)
        for who, s in of
        if who == ours and (theirs, s) in of
    ]


def ratio(records, name, ours, theirs, measure="error"):
    """The geometric mean of `ratios`, nan where there is none."""
    found = ratios(records, name, ours, theirs, measure)
    return np.exp(np.mean(np.log(found))) if found else np.nan


def geometric(ratios):
    return float(np.exp(np.nanmean(np.log(ratios))))


def named(who, table):
    """The name of a contender in full, where a table has one."""
    return table.get("names", {}).get(who, who)


def standing(table, sets, records):
    """The first contender beside each other, over sets that say the same `by`: ratios of the error,
    and means of `costs`'; `names` are those in full. `mean = false`: without the mean over sets, on
    which a few of them decide."""
    has_mean = table.get("mean", True)
    ours, *others = [*by_contender([r for r in records if "error" in r])] or [None]
    by, costs, groups, rows = table.get("by", ()), table.get("costs", {}), defaultdict(list), []
    for name, one in sets.items():
        groups[", ".join(str(one.get(key, "")) for key in by)].append(name)
    for (group, names), other in product(groups.items(), others):
        each = [r for name in names if not np.isnan(r := ratio(records, name, ours, other))]
        cost = [
            [ratio(records, name, ours, other, key) for name in names] for key in costs.values()
        ]
        if each:
            what = [
                len(each),
                f"{np.median(each):.2f}",
                *([f"{geometric(each):.2f}"] if has_mean else []),
                sum(r < 1 for r in each),
                f"{max(each):.2f}",
            ]
            means = ("" if np.isnan(c).all() else short(geometric(c)) for c in cost)
            rows.append(
                (
                    geometric(each),
                    [group] * bool(by) + [named(other, table), *map(str, what), *means],
                )
            )
    rows = [
        row
        for _, row in sorted(rows, key=lambda row: answer(table.get("sort", "0"), {"mean": row[0]}))
    ]
    head = ["sets of"] * bool(by) + [
        "beside",
        "sets",
        "median",
        *(["geometric mean"] if has_mean else []),
        "ahead on",
        "worst",
        *costs,
    ]
    return markdown(head, rows)


def ranks(table, sets, records):
    """The first contender and its rivals by their mean ranks, over the sets that have all of them;
    our error over theirs; `names` are those in full."""
    each, rows = [], []
    for name, one in sets.items():
        ours = next(iter(by_contender([r for r in records if r["set"] == name])), None)
        over = {ours: 1.0} | {who: ratio(records, name, ours, who) for who in one["rivals"]}
        each += [] if np.isnan([*over.values()]).any() else [over]
    for who in each[0] if each else ():
        places, over = (
            [1 + sum(other > of[who] for other in of.values()) for of in each],
            [of[who] for of in each],
        )
        what = [
            f"{np.mean(places):.1f}",
            str(places.count(1)),
            f"{geometric(over):.2f}",
            f"{max(over):.2f}",
        ]
        rows.append((np.mean(places), [named(who, table), *what]))
    head = [
        "",
        f"mean rank on {len(each)} sets",
        "first on",
        "our error over its, geometric mean",
        "worst",
    ]
    return markdown(head, [row for _, row in sorted(rows)])


def verdicts(table, sets, records):
    """Of each of the `kinds` of tables, patterns of sets, on how many the first contender is ahead
    of, level with (within 2 %) or behind each of `beside`; sizes and seconds are medians."""
    head = ["tables", "beside", "ahead", "level", "behind", "error over its", "the worst"]
    head += ["our terms", "our seconds", "its leaves", "its seconds"]
    rows = []
    for kind, patterns in table["kinds"].items():
        names = [name for name in sets if any(fnmatch(name, one) for one in patterns)]
        mine = [r for r in records if r["set"] in names]
        ours = next(iter(by_contender(mine)), None)
        for other in table["beside"]:
            each = [ratio(mine, name, ours, other) for name in names]
            each = [one for one in each if not np.isnan(one)]
            if not each:
                continue
            counts = (
                sum(one < 0.98 for one in each),
                sum(0.98 <= one <= 1.02 for one in each),
                sum(one > 1.02 for one in each),
            )
            costs = [
                np.median([r[key] for r in mine if r["contender"] == who and key in r] or [np.nan])
                for who in (ours, other)
                for key in ("size", "seconds")
            ]
            rows.append(
                [kind, other, *map(str, counts), f"{geometric(each):.2f}", f"{max(each):.2f}"]
                + [
                    "" if np.isnan(cost) else f"{cost:,.0f}" if cost >= 10 else short(cost)
                    for cost in costs
                ]
            )
    return markdown(head, rows)


def means(table, sets, records):
    """Of each contender, its measures over all sets, as elsewhere over seeds."""
    each = by_contender([r for r in records if "skipped" not in r])
    spaces = [measures(some) | {"contender": who} for who, some in each.items()]
    return markdown(
        [*table["columns"]],
        [[cell(template, space) for template in table["columns"].values()] for space in spaces],
    )


def changes(table, sets, records):
    """Of each contender but the first its measures over the first's, geometric means over the sets
    and seeds of both, with the standard error of the first measure, and its worst set."""
    first, *others = [*by_contender([r for r in records if "skipped" not in r])] or [None]
    head, rows = [], []
    for name in table["measures"]:
        head += [name] if head else [name, "±", "worst set"]
    for other in others:
        row = []
        for measure in table["measures"].values():
            each = {name: ratios(records, name, other, first, measure) for name in sets}
            logs = np.log([r for of_set in each.values() for r in of_set] or [np.nan])
            worst = max((geometric(of_set) for of_set in each.values() if of_set), default=np.nan)
            beside = [f"{logs.std() / np.sqrt(len(logs)):.3f}", f"{worst:.2f}"]
            row += [f"{np.exp(logs.mean()):.3f}"] + ([] if row else beside)
        rows.append([other, *row])
    return markdown(["", *head], rows)


def quoted(table, sets, records):
    """What a program said."""
    said = next(spaces(table, sets, records), {"says": ""})["says"].splitlines()
    return ["```", *map(str.rstrip, said), "```"]


def lines(picture, sets, records):
    """Curves of one list of numbers against another; a level where a record has one number; crosses
    at a paper's."""
    panels = [
        (name, y)
        for name in sets
        for y in picture["y"]
        if any(r["set"] == name and y in r for r in records)
    ]
    if not panels:
        return None
    columns = min(len(panels), 2 if len(panels) == 4 else 3)
    shape = -(-len(panels) // columns), columns
    figure, axes = plt.subplots(
        *shape, figsize=(4.2 * columns + 1, 3.8 * shape[0]), layout="constrained", squeeze=False
    )
    for ax, (name, y) in zip(axes.flat, panels, strict=False):
        for k, (who, some) in enumerate(
            by_contender([r for r in records if r["set"] == name and r.get(y)]).items()
        ):
            curves(ax, picture, y, who, some, f"C{k}")
            if who in sets[name].get("points", {}):
                ax.plot(
                    *sets[name]["points"][who],
                    "X",
                    ms=10,
                    color=f"C{k}",
                    mec="k",
                    label=f"{who}, the paper's",
                )
        ax.set(title=name, **{"xlabel": picture["x"], "ylabel": y} | picture.get("axes", {}))
        ax.legend(frameon=False, fontsize=8)
    return figure


def curves(ax, picture, y, who, some, colour):
    """One of each seed; of those with the same x their mean, and the range."""
    x = picture["x"]
    if picture.get("bars"):
        ax.bar(some[0][x], some[0][y], color=colour, label=who)
    elif not isinstance(some[0][y], list):
        ax.axhline(np.mean([r[y] for r in some]), color=colour, ls="--", lw=1, label=who)
    elif any(r[x] != some[0][x] for r in some):
        for k, r in enumerate(some):
            ax.plot(r[x], r[y], "-", color=colour, alpha=0.5, label=None if k else who)
    else:
        values = np.array([r[y] for r in some], dtype=float)
        ax.plot(some[0][x], values.mean(axis=0), "o-", ms=4, color=colour, label=who)
        ax.fill_between(
            some[0][x], values.min(axis=0), values.max(axis=0), color=colour, alpha=0.2, lw=0
        )
        if "dashed" in picture:
            ax.plot(
                some[0][x],
                np.array(some[0][picture["dashed"]], dtype=float),
                "--",
                color=colour,
                alpha=0.6,
            )


def dots(picture, sets, records):
    """Ratios of errors, of the first contender to each other on each set; those far below 1 have a
    panel of their own, where there are any."""
    first, *others = by_contender([r for r in records if "error" in r])
    each = {other: np.array([ratio(records, n, first, other) for n in sets]) for other in others}
    low, high = (
        bound([r for of in each.values() for r in of if not np.isnan(r)], initial=1.0)
        for bound in (np.min, np.max)
    )
    far = low < NEAR
    figure, axes = plt.subplots(
        1, 1 + far, figsize=(9, 0.32 * len(sets) + 1.6), layout="constrained", sharey=True,
        squeeze=False, width_ratios=[1, 3][-1 - far :],
    )  # fmt: skip
    for ax in axes.flat:
        for k, (other, of) in enumerate(each.items()):
            here = np.where((of >= NEAR) == (ax is axes.flat[-1]), of, np.nan)
            ax.plot(here, range(len(sets)), "osD^v<>P"[k % 8], alpha=0.8, label=other)
        ax.set(xscale="log")
    near = axes.flat[-1]
    near.axvline(1.0, color="grey", linewidth=0.8)
    near.set(xlim=(max(low, NEAR) / 1.05, high * 1.05), xlabel=picture["xlabel"])
    ticks = [tick for tick in TICKS if max(low, NEAR) / 1.05 < tick < high * 1.05]
    near.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    near.minorticks_off()
    if far:
        axes.flat[0].set(xlim=(low / 1.5, NEAR * 1.5))
    axes.flat[0].set_yticks(range(len(sets)), list(sets))
    axes.flat[0].invert_yaxis()
    figure.legend(*near.get_legend_handles_labels(), fontsize=8, loc="outside right")
    return figure


def seconds(picture, sets, records):
    """The error of each contender over that of `beside` against its seconds for a fit: medians over
    the sets, and the quartiles of the error; `names` are those in full, and which have a point."""
    names = picture["names"]
    figure, ax = plt.subplots(figsize=(9, 3.8), layout="constrained")
    for k, (who, name) in enumerate(names.items()):
        error, time = (
            [r for n in sets if not np.isnan(r := ratio(records, n, who, picture["beside"], key))]
            for key in ("error", "seconds")
        )
        if not error:
            continue
        unit = np.median([r["seconds"] for r in records if r["contender"] == picture["beside"]])
        low, at, high = np.quantile(error, [0.25, 0.5, 0.75])
        x, is_ours = unit * np.median(time), k == 0
        ax.plot([x, x], [low, high], color=f"C{k}", lw=3 if is_ours else 1.5, alpha=0.5)
        ax.plot(x, at, "D" if is_ours else "o", color=f"C{k}", ms=9 if is_ours else 7, label=name)
    ax.axhline(1.0, color="grey", lw=0.8)
    ax.set(xscale="log", yscale="log", xlabel=picture["xlabel"], ylabel=picture["ylabel"])
    ax.margins(x=0.15)
    low, high = ax.get_ylim()
    ticks = [tick for tick in TICKS if low < tick < high]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    figure.legend(*ax.get_legend_handles_labels(), fontsize=9, loc="outside right")
    return figure


def points(picture, sets, records):
    """The error of the first contender over that of `beside`, against its size and its seconds: a
    point for each set, named where it is off the middle; far below 1 an arrow has the ratio."""
    first = next(iter(by_contender(records)))
    figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained", sharey=True)
    of = {name: ratio(records, name, first, picture["beside"]) for name in sets}
    of = {name: r for name, r in of.items() if not np.isnan(r)}
    top = max(of.values(), default=1.0) * 1.06
    for ax, measure in zip(axes, ("size", "seconds"), strict=True):
        ours = {n: [r for r in records if (r["set"], r["contender"]) == (n, first)] for n in of}
        at = {name: max(np.mean([r[measure] for r in some]), 0.1) for name, some in ours.items()}
        below = defaultdict(list)  # the names of arrows, by their places
        for name, r in of.items():
            ax.plot(at[name], max(r, NEAR), "o" if r >= NEAR else "v", color="C0", ms=7)
            if r < NEAR:
                below[round(20 * np.log10(at[name]))].append(name)
            elif not LEVEL[0] < r < LEVEL[1]:
                ax.annotate(name, (at[name], r), (7, -3), textcoords="offset points", fontsize=8)
        for names in below.values():
            said = ",\n".join(f"{name} {of[name]:.2g}" for name in names)
            ax.annotate(
                said, (at[names[0]], NEAR), (0, 9), textcoords="offset points", rotation=40,
                fontsize=8,
            )  # fmt: skip
        ax.axhline(1.0, color="grey", lw=0.8)
        ax.set(xscale="log", yscale="log", ylim=(NEAR * 0.94, top), xlabel=picture[measure])
        ax.margins(x=0.2)
    ticks = [tick for tick in TICKS if NEAR <= tick < top]
    axes[0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0].minorticks_off()
    axes[0].set_ylabel(picture["ylabel"])
    return figure


TABLES = {
    "plain": plain,
    "standing": standing,
    "ranks": ranks,
    "means": means,
    "changes": changes,
    "verdicts": verdicts,
    "quoted": quoted,
}
PICTURES = {"lines": lines, "dots": dots, "points": points, "seconds": seconds}
