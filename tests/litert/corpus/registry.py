"""The list of all cases: name to a function that gives a judge.Made.

Families are loaded when asked for, as TensorFlow takes seconds to import."""

import importlib

from . import single

# family: module with `all_cases()` that yields single.Single or (name, maker).
FAMILIES = {"weights": "ops_weights", "elementwise": "ops_elementwise", "shape": "ops_shape",
            "reduce": "ops_reduce", "image": "ops_image", "recurrent": "recurrent",
            "sound": "ops_sound",
            "control": "control", "files": "files", "networks": "networks",
            "open": "open_sizes", "wheels": "wheels", "wide": "ops_wide", "narrow": "narrow",
            "probed": "probed", "flex": "flex", "empty": "empty"}

# Families that need more than requirements.txt, which are made only where they are asked for by name.
OTHERS = {"torch": "torch_networks"}


def entries(family):
    """What a family's module lists."""
    return importlib.import_module(f"corpus.{(FAMILIES | OTHERS)[family]}").all_cases()


def cases(family):
    """Ordered dict of one family."""
    found = {}
    for entry in entries(family):
        pairs = single.cases(entry) if isinstance(entry, single.Single) else [entry]
        for name, maker in pairs:
            if name in found:
                raise ValueError(f"two cases are called {name}")
            found[name] = maker
    return found
