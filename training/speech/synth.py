#!/usr/bin/env python3
"""Synthesise every voice with its teacher -> data/raw/<voice>/<id>.wav + .seg (phone, end time).
usage: synth.py [n_per_voice]"""

import os, subprocess, sys
from voices import NAMES, VOICES
from shared.htsvoice import edit_htsvoice
from shared.work import WORK

SCHEME = """(voice_cmu_us_slt_arctic_hts)
(set! hts_engine_params '((\"-m\" \"%s\") (\"-g\" 0.0) (\"-b\" 0.0) (\"-u\" 0.5) (\"-r\" %g)))
(define (go id text)
 (let ((u (utt.synth (eval (list 'Utterance 'Text text)))) (fd nil))
  (utt.save.wave u (string-append "%s/" id ".wav"))
  (set! fd (fopen (string-append "%s/" id ".seg") "w"))
  (mapcar (lambda (s) (format fd "%%s %%f\\n" (item.name s) (item.feat s "end"))) (utt.relation.items u 'Segment))
  (fclose fd)))
"""


def run_hts(name, p, rows, out):
    vf, scm = (os.path.join(WORK, "data", f"hts_{name}.{end}") for end in ("htsvoice", "scm"))
    edit_htsvoice(vf, p["alpha"], p["f0"], p["range"])
    with open(scm, "w") as f:
        f.write(SCHEME % (vf, p["rate"], out, out))
        f.writelines('(go "%s" "%s")\n' % (i, t.replace('"', "")) for i, t in rows)
    subprocess.run(["festival", "-b", scm], check=True, stdout=subprocess.DEVNULL)


def run_flite(name, p, rows, out):
    lines, w = "".join("%s\t%s\n" % r for r in rows), p["warp"]
    command = [WORK + "/flite_teacher", p["v"], str(p["f0"] / w), str(p["sd"] / w), str(p["stretch"] * w), out]
    subprocess.run(command, input=lines.encode(), check=True)


def speak(name, rows, out):
    """rows: (id, text) of sentences -> OUT/id.wav and OUT/id.seg in this voice"""
    (run_hts if VOICES[name]["t"] == "hts" else run_flite)(name, VOICES[name], rows, out)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 230
    rows = [tuple(l.rstrip("\n").split("\t")[:2]) for l in open(WORK + "/data/texts.tsv")]
    for k, name in enumerate(NAMES):
        out = os.path.join(WORK, "data/raw", name)
        if os.path.exists(out + "/done"):
            continue
        os.makedirs(out, exist_ok=True)
        # consecutive slices (wrapping) so that together the voices cover every sentence
        speak(name, [rows[(k * n + j) % len(rows)] for j in range(min(n, len(rows)))], out)
        open(out + "/done", "w").close()
        print(name, flush=True)


if __name__ == "__main__":
    main()
