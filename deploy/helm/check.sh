#!/usr/bin/env bash
# Lints the chart, renders deploy/helm/renders/*.values.yaml and checks what comes out: every object against Kubernetes' own schemas or its
# CRD's, the values that must be refused, and the committed renders. `--write` writes the renders instead of comparing them.
#   deploy/helm/check.sh [--write]     needs Go and Python; what it fetches (Go's module proxy, PyPI) goes into CHECK_FOLDER, default a temporary one
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${CHECK_FOLDER:-$(mktemp -d)}
mkdir -p "$folder"
[ -x "$folder/helm" ] || GOBIN="$folder" go install helm.sh/helm/v3/cmd/helm@v3.22.0
[ -x "$folder/venv/bin/python" ] || { python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install --quiet kubernetes-validate==1.37.0; }

# Modules that carry the CRDs; nothing of them is built. A path in each, and the kind that it defines.
crd() { go mod download -json "$1" | "$folder/venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["Dir"])'; }
extension=$(crd sigs.k8s.io/gateway-api-inference-extension@v1.5.0)/config/crd/bases/inference.networking.k8s.io_inferencepools.yaml
routes=$(crd sigs.k8s.io/gateway-api@v1.6.3)/config/crd/standard/gateway.networking.k8s.io_httproutes.yaml
keda=$(crd github.com/kedacore/keda/v2@v2.21.0)/config/crd/bases/keda.sh_scaledobjects.yaml
operator=$(crd github.com/prometheus-operator/prometheus-operator@v0.85.0)/example/prometheus-operator-crd
PATH="$folder:$PATH" exec "$folder/venv/bin/python" "$here/check.py" "${1:-}" "$extension" "$routes" "$keda" \
  "$operator/monitoring.coreos.com_servicemonitors.yaml" "$operator/monitoring.coreos.com_prometheusrules.yaml"
