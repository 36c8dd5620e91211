"""The lowest version that pyproject.toml admits of each package, as constraints for pip."""

import re
import tomllib
from pathlib import Path

pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
project = pyproject["project"]
optional = [
    requirement for extra in project["optional-dependencies"].values() for requirement in extra
]
for requirement in sorted(
    {*project["dependencies"], *optional, *pyproject["dependency-groups"]["test"]}
):
    name, version = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement).groups()
    print(f"{name}=={version}")
print("pyparsing<3.2")  # later ones warn of what matplotlib 3.8 calls
