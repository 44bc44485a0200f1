"""Checks examples/kubernetes against the schemas of Kubernetes and KServe: check.py CRD.

CRD is KServe's `config/crd/full/serving.kserve.io_servingruntimes.yaml`. Needs `kubernetes-validate` and `jsonschema`.
Fields that a schema does not know, which a cluster would drop, are errors here.
"""

import pathlib
import subprocess
import sys

import jsonschema
import yaml

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/kubernetes"


def strict(schema):
    """The schema without fields that it does not name, and without what JSON's schemas lack."""
    if isinstance(schema, list):
        return [strict(it) for it in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: strict(it) for name, it in schema.items()}
    if schema.pop("x-kubernetes-int-or-string", False):
        return {"type": ["integer", "string"]}
    if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        schema.setdefault("additionalProperties", False)
    return schema


def problems(definition, document):
    group, _, version = document["apiVersion"].partition("/")
    assert definition["spec"]["group"] == group and definition["spec"]["names"]["kind"] == document["kind"]
    found = next(it for it in definition["spec"]["versions"] if it["name"] == version)
    schema = strict(found["schema"]["openAPIV3Schema"])
    # Of every object, and not part of a definition.
    schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
    errors = jsonschema.Draft202012Validator(schema).iter_errors(document)
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]


def main():
    # Beside the interpreter, so that an environment need not be entered.
    program = pathlib.Path(sys.executable).with_name("kubernetes-validate")
    subprocess.run([program, "--strict", EXAMPLES / "deployment.yaml"], check=True)
    definition = yaml.safe_load(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    runtime = yaml.safe_load((EXAMPLES / "serving-runtime.yaml").read_text(encoding="utf-8"))
    found = problems(definition, runtime)
    assert not found, "\n".join(found)
    # That it would find something.
    runtime["spec"]["protocolVersion"] = runtime["spec"].pop("protocolVersions")
    runtime["spec"]["containers"][0]["ports"][0]["containerPort"] = "x"
    assert len(problems(definition, runtime)) == 2
    print("serving-runtime.yaml fits KServe's definition")


main()
