#!/usr/bin/env bash
# Checks the alerts and their tests, the scrape configuration, and the dashboard's queries, with promtool (Debian: prometheus) and Node.
set -euo pipefail
cd "$(dirname "$0")"
promtool check config prometheus.yml
promtool test rules alerts.test.yaml
queries=$(mktemp --suffix .yaml)
trap 'rm -f "$queries"' EXIT
# As rules, because promtool reads queries in no other file; Grafana's variables get a value. JSON is YAML too.
node -e '
  const { panels } = JSON.parse(require("fs").readFileSync("dashboard.json", "utf8"));
  const exprs = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "1m").replaceAll(/\$\w+/g, "x")));
  console.log(JSON.stringify({ groups: [{ name: "dashboard", rules: exprs.map((expr, i) => ({ record: `panel:query${i}`, expr })) }] }));
' > "$queries"
promtool check rules "$queries" | tail -n +2
