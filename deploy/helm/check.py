"""The half of check.sh that reads YAML: see there. Arguments: --write or '', then the files of CRDs."""
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

HERE = Path(__file__).parent
CHART = HERE / "parley"
RENDERS = HERE / "renders"
KUBERNETES = ["1.30", "1.37"]
NAMESPACE = "inference"

# Values that the chart must refuse, each with a part of the reason.
REFUSED = [
    (["drain.graceSeconds=60"], "drain.graceSeconds is 60"),
    (["settings.drain-delay=20"], "drain.graceSeconds is 75"),
    (["replica=2"], "replica"),
    (["settings.port=80"], "port"),
    (["settings.tls-client-ca=/models/ca.pem"], "tls-client-ca"),
    (["secrets.tls=parley-tls", "settings.tls-cert=/models/tls.crt"], "one place"),
    (["accelerator.kind=cuda"], "kind"),
    (["accelerator.kind=dri"], "accelerator"),
    (["listeners.speech.port=3000"], "a port of its own"),
    (["listeners.chat.enabled=false", "listeners.speech.enabled=false", "listeners.transcription.enabled=false"], "at least one"),
    (["gateway.enabled=true"], "parentRefs"),
    (["autoscaling.enabled=true", "autoscaling.source=prometheus"], "prometheusAddress"),
    (["autoscaling.enabled=true", "autoscaling.scaleDownSeconds=30"], "scaleDownSeconds"),
    (["autoscaling.enabled=true", "autoscaling.minReplicas=9"], "minReplicas"),
    (["image.digest=latest"], "digest"),
]


def helm(*arguments):
    return subprocess.run(["helm", *arguments], capture_output=True, text=True)


def template(*arguments):
    return helm("template", "parley", str(CHART), "--namespace", NAMESPACE, "--kube-version", KUBERNETES[-1], *arguments)


def strict(schema):
    """A CRD's schema that refuses fields it does not name, as the API server drops them."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: strict(value) for key, value in schema.items()}
    if isinstance(changed.get("pattern"), str) and "(?i)" in changed["pattern"]:
        # Go takes such a flag anywhere, Python at the beginning.
        changed["pattern"] = "(?i)" + changed["pattern"].replace("(?i)", "")
    if "properties" in changed and not changed.get("x-kubernetes-preserve-unknown-fields"):
        changed.setdefault("additionalProperties", False)
    return changed


def crd_schemas(paths):
    found = {}
    for path in paths:
        crd = next(document for document in yaml.safe_load_all(Path(path).read_text()) if document)["spec"]
        for version in crd["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object"}
            found[f"{crd['group']}/{version['name']}", crd["names"]["kind"]] = schema
    return found


def check(thing, crds):
    schema = crds.get((thing["apiVersion"], thing["kind"]))
    if schema:
        jsonschema.validate(thing, schema)
    else:
        for version in KUBERNETES:
            kubernetes_validate.validate(thing, version, strict=True)


def inputs():
    """What the renders are made of: each file's SHA-256, which a test compares without helm."""
    files = sorted(path for path in [*CHART.rglob("*"), *RENDERS.glob("*.values.yaml")] if path.is_file())
    return {path.relative_to(HERE).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main(write, *crd_files):
    problems = []
    crds = crd_schemas(crd_files)
    rendered = {}
    for values in sorted(RENDERS.glob("*.values.yaml")):
        name = values.name.removesuffix(".values.yaml")
        linted = helm("lint", "--strict", str(CHART), "--values", str(values))
        if linted.returncode != 0:
            problems.append(f"{name}: lint: {linted.stdout}{linted.stderr}")
            continue
        done = template("--values", str(values))
        if done.returncode != 0:
            problems.append(f"{name}: {done.stderr}")
            continue
        things = [thing for thing in yaml.safe_load_all(done.stdout) if thing]
        for thing in things:
            try:
                check(thing, crds)
            except Exception as error:
                problems.append(f"{name}: {thing['kind']} {thing['metadata']['name']}: {str(error)[:600]}")
        kinds = [thing["kind"] for thing in things]
        print(f"{name}: {len(things)} objects ({', '.join(f'{kinds.count(kind)} {kind}' for kind in sorted(set(kinds)))})")
        rendered[RENDERS / f"{name}.json"] = json.dumps(things, indent=2, ensure_ascii=False) + "\n"
    for settings, part in REFUSED:
        done = template(*(word for setting in settings for word in ("--set", setting)))
        if done.returncode == 0:
            problems.append(f"{settings} were rendered; they must be refused")
        elif part not in done.stderr:
            problems.append(f"{settings} were refused without a word of '{part}': {done.stderr}")
    print(f"{len(REFUSED)} sets of values that must be refused")
    rendered[RENDERS / "inputs.json"] = json.dumps(inputs(), indent=2) + "\n"
    for path, text in rendered.items():
        if write:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            problems.append(f"{path.relative_to(HERE)} is not what the chart renders; see --write")
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


main(*sys.argv[1:])
