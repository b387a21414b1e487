// Step 2: run the npm package `phonemizer` (espeak-ng, en-us) over texts and apply phoneme_rules.json.
// usage: node phonemize.mjs in.tsv out.tsv   (id<TAB>text  ->  id<TAB>text<TAB>tokens<TAB>raw ipa)
import fs from "node:fs";
import { phonemize } from "phonemizer";
const rules = JSON.parse(fs.readFileSync(new URL("../../models/parley-speech/phoneme_rules.json", import.meta.url), "utf8"));
const inv = new Set(rules.inventory);
export function normalise(ipa) {
  for (const [a, b] of rules.replace) ipa = ipa.split(a).join(b);
  ipa = [...ipa].filter((c) => inv.has(c)).join("");
  return ipa.replace(/ +/g, " ").trim();
}
export async function ipaOf(text) {
  let out = "";
  for (const part of text.split(/(\s*[;:,.!?—…"“”()]+\s*)/)) {
    if (!part) continue;
    out += /[;:,.!?—…"“”()]/.test(part) ? part : (await phonemize(part, "en-us")).join(" ");
  }
  return out.trim();
}
const [inp, outp] = process.argv.slice(2);
const rows = fs.readFileSync(inp, "utf8").split("\n").filter(Boolean);
const res = [];
for (const r of rows) { const [id, t] = r.split("\t"); const ipa = await ipaOf(t); res.push([id, t, normalise(ipa), ipa].join("\t")); }
fs.writeFileSync(outp, res.join("\n") + "\n");
process.exit(0);
