"""Node.js, in which the tests run the JavaScript of a model."""

import json
import math
import shutil
import subprocess

import pytest

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
# Reads [{code, rows}, ...] and writes, for each code, what its functions say of the rows.
RUN = """
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
const answered = (f, row) => {
  try { return f(row); } catch (error) { return { error: `${error.name}: ${error.message}` }; }
};
process.stdout.write(JSON.stringify(asked.map(({ code, rows }) => {
  const module = { exports: {} };
  new Function("module", `"use strict";${code}`)(module);
  return Object.fromEntries(
    Object.entries(module.exports).map(([name, f]) => [name, rows.map(row => answered(f, row))]),
  );
})));
"""


def run(code, rows):
    """Return {name of a function: its answers for the rows} of JavaScript; an error is {"error":
    its words}. Of rows NaN is null."""
    (answers,) = run_all([(code, rows)])
    return answers


def run_all(asked):
    """Return what `run` does of several pairs (code, rows), by one process."""
    asked = [{"code": str(code), "rows": _plain(rows)} for code, rows in asked]
    done = subprocess.run(
        [NODE, "-e", RUN], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rows_of(frame):
    """Return the rows of a data frame as objects, missing cells as None."""
    columns = {name: _plain(column.tolist()) for name, column in frame.items()}
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _plain(value):
    """Return values as JSON has them."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "isoformat"):
        return None if value != value else value.isoformat()
    return None if isinstance(value, float) and math.isnan(value) else value
