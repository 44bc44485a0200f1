"""Copies some vectors.

    sample.py FROM TO NUMBER        this number of the small files, at equal distances
    sample.py FROM TO K/N           part K of N, of which each has files of all sizes
"""

import json
import shutil
import sys
from pathlib import Path

source, target = Path(sys.argv[1]), Path(sys.argv[2])
number, _, parts = sys.argv[3].partition("/")
manifest = json.loads((source / "manifest.json").read_text())
target.mkdir(parents=True, exist_ok=True)
files = sorted(manifest["files"], key=lambda file: file["bytes"])
if parts:
    manifest["files"] = files[int(number) - 1 :: int(parts)]
else:
    small = [file for file in manifest["files"] if file["bytes"] < 6000]
    manifest["files"] = small[:: max(1, len(small) // int(number))][: int(number)]
for file in manifest["files"]:
    to = target / file["path"]
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / file["path"], to)
(target / "manifest.json").write_text(json.dumps(manifest))
