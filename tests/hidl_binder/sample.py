"""Copies some vectors: this number of the small files, at equal distances. sample.py FROM TO NUMBER"""

import json
import shutil
import sys
from pathlib import Path

source, target, number = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
manifest = json.loads((source / "manifest.json").read_text())
small = [file for file in manifest["files"] if (source / file["path"]).stat().st_size < 6000]
manifest["files"] = small[:: max(1, len(small) // number)][:number]
for file in manifest["files"]:
    to = target / file["path"]
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / file["path"], to)
(target / "manifest.json").write_text(json.dumps(manifest))
