#!/usr/bin/env python3
"""Synthesise every voice with its teacher -> data/raw/<voice>/<id>.wav + .seg (phone, end time).
usage: synth.py [n_per_voice] [texts.tsv] [outdir] [voice ...]"""

import os, re, struct, subprocess, sys, math
from voices import VOICES, NAMES

ROOT = os.path.abspath(os.environ.get("PARLEY_WORK", "work"))
HTS = "/usr/share/festival/voices/us/cmu_us_slt_arctic_hts/hts/cmu_us_slt_arctic_hts.htsvoice"


def edit_htsvoice(dst, alpha, f0, rng):
    """Shift/scale the log-F0 stream and set the spectral all-pass constant inside an .htsvoice file."""
    b = open(HTS, "rb").read()
    cut = b.index(b"[DATA]\n") + 7
    head, data = b[:cut].decode("latin1"), bytearray(b[cut:])
    pos = {m[1]: (int(m[2]), int(m[3])) for m in re.finditer(r"(\w+(?:\[\w+\])?):(\d+)-(\d+)", head)}
    lo, hi = pos["STREAM_PDF[LF0]"]
    ns = 5
    counts = struct.unpack_from("<%di" % ns, data, lo)
    assert lo + 4 * ns + sum(counts) * 7 * 4 == hi + 1, (counts, lo, hi)
    off = lo + 4 * ns
    n = sum(counts)
    rows = [list(struct.unpack_from("<7f", data, off + 28 * i)) for i in range(n)]
    voiced = [r[0] for r in rows if r[6] > 0.5]
    mean = sum(voiced) / len(voiced)
    for i, r in enumerate(rows):
        r[0] = mean + (r[0] - mean) * rng + math.log(f0)
        r[1] *= rng
        r[2] *= rng
        for k in (3, 4, 5):
            r[k] *= rng * rng
        struct.pack_into("<7f", data, off + 28 * i, *r)
    lo, hi = pos["GV_PDF[LF0]"]  # global variance of log-F0: int counts, then mean/var pairs
    gc = struct.unpack_from("<i", data, lo)[0]
    for i in range(gc):
        o = lo + 4 + 8 * i
        m, v = struct.unpack_from("<2f", data, o)
        struct.pack_into("<2f", data, o, m * rng * rng, v * rng**4)
    head = re.sub(r"ALPHA=[0-9.]+", "ALPHA=%g" % alpha, head)
    open(dst, "wb").write(head.encode("latin1") + bytes(data))


def run_hts(name, p, rows, out):
    vf = os.path.join(ROOT, "data", "hts_%s.htsvoice" % name)
    edit_htsvoice(vf, p["alpha"], p["f0"], p["range"])
    scm = os.path.join(ROOT, "data", "hts_%s.scm" % name)
    with open(scm, "w") as f:
        f.write(
            "(voice_cmu_us_slt_arctic_hts)\n(set! hts_engine_params '((\"-m\" \"%s\") (\"-g\" 0.0) (\"-b\" 0.0) (\"-u\" 0.5) (\"-r\" %g)))\n"
            % (vf, p["rate"]))
        f.write('''(define (go id text)
 (let ((u (utt.synth (eval (list 'Utterance 'Text text)))) (fd nil))
  (utt.save.wave u (string-append "%s/" id ".wav"))
  (set! fd (fopen (string-append "%s/" id ".seg") "w"))
  (mapcar (lambda (s) (format fd "%%s %%f\\n" (item.name s) (item.feat s "end"))) (utt.relation.items u 'Segment))
  (fclose fd)))\n''' % (out, out))
        for i, t in rows:
            f.write('(go "%s" "%s")\n' % (i, t.replace('"', "")))
    subprocess.run(["nice", "-n", "5", "festival", "-b", scm], check=True, stdout=subprocess.DEVNULL)


def run_flite(name, p, rows, out):
    inp = "".join("%s\t%s\n" % r for r in rows).encode()
    w = p["warp"]
    subprocess.run(["nice", "-n", "5", ROOT + "/flite_teacher", p["v"],
                    str(p["f0"] / w),
                    str(p["sd"] / w),
                    str(p["stretch"] * w), out],
                   input=inp,
                   check=True)


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 230
    texts = sys.argv[2] if len(sys.argv) > 2 else ROOT + "/data/texts.tsv"
    outd = sys.argv[3] if len(sys.argv) > 3 else ROOT + "/data/raw"
    only = sys.argv[4:] or NAMES
    rows = [tuple(l.rstrip("\n").split("\t")[:2]) for l in open(texts)]
    for k, name in enumerate(NAMES):
        if name not in only:
            continue
        out = os.path.join(outd, name)
        if os.path.exists(out + "/done"):
            continue
        os.makedirs(out, exist_ok=True)
        # consecutive slices (wrapping) so that together the voices cover every sentence
        sel = [rows[(k * n + j) % len(rows)] for j in range(min(n, len(rows)))]
        (run_hts if VOICES[name]["t"] == "hts" else run_flite)(name, VOICES[name], sel, out)
        open(out + "/done", "w").write("ok")
        print(name, len(sel), flush=True)
