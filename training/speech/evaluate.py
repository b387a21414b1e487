#!/usr/bin/env python3
"""Word errors (pocketsphinx) and mel distance of 100 unseen sentences, sentence i in voice i mod 19.
usage: evaluate.py teacher | MODEL_DIR   (MODEL_DIR holds config.json, model.safetensors, voices.safetensors); prints one line, writes JSON beside the audio in $PARLEY_WORK/wer/NAME"""

import json, os, subprocess, sys, time
import numpy as np, scipy.signal as ss, torch
from common import ROOT, ids_of, load_export, wav_load, wav_save
from losses import align, logmel
from voices import NAMES, VOICES
import synth, wer

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS, PHONES, BASE = HERE + "/eval_texts.tsv", ROOT + "/eval_phones100.tsv", ROOT + "/wer"


def teacher(rows, out):
    """The teachers' own audio, brought to 24 kHz and to the level of the training data."""
    for k, name in enumerate(NAMES):
        raw = f"{BASE}/raw/{name}"
        os.makedirs(raw, exist_ok=True)
        sel = [(r[0], r[1]) for i, r in enumerate(rows) if i % len(NAMES) == k]
        (synth.run_hts if VOICES[name]["t"] == "hts" else synth.run_flite)(name, VOICES[name], sel, raw)
        for i, _ in sel:
            sr, x = wav_load(f"{raw}/{i}.wav")
            eff = int(round(sr * VOICES[name].get("warp", 1.0) / 10) * 10)
            x = ss.resample_poly(x, 2400, eff // 10)
            x = wer.cut(x, 24000)
            en = np.sqrt(np.convolve(x**2, np.ones(240) / 240, "same"))
            wav_save(f"{out}/{i}.wav", x * 0.085 / np.sqrt((en[en > 0.1 * np.percentile(en, 95)] ** 2).mean()))


def distance(a, b):
    """Mean absolute log-mel difference of two clips along the best path."""
    a, b = (logmel(wav_load(p)[1]) for p in (a, b))
    return float(np.mean([np.abs(a[i] - b[j]).mean() for i, j in reversed(align(a, b))]))


def main():
    what = sys.argv[1]
    name = "teacher" if what == "teacher" else (sys.argv[2] if len(sys.argv) > 2 else os.path.basename(what.rstrip("/")))
    if not os.path.exists(PHONES):
        subprocess.run(["node", HERE + "/phonemize.mjs", TEXTS, PHONES], check=True)
    rows = [l.rstrip("\n").split("\t") for l in open(PHONES)]
    out = f"{BASE}/{name}"
    os.makedirs(out, exist_ok=True)
    rtf, dist = None, None
    if what == "teacher":
        teacher(rows, out)
    else:
        m, voices = load_export(what)
        t0, sec = time.process_time(), 0.0
        for i, r in enumerate(rows):
            y, _ = m.infer(ids_of(r[2], m.cfg["vocab"]), voices[NAMES[i % len(NAMES)]], noise_seed=1)
            wav_save(f"{out}/{r[0]}.wav", y.numpy())
            sec += len(y) / 24000
        rtf = round((time.process_time() - t0) / sec, 3)
        if os.path.exists(f"{BASE}/teacher"):
            dist = round(float(np.mean([distance(f"{out}/{r[0]}.wav", f"{BASE}/teacher/{r[0]}.wav") for r in rows])), 4)
    dec, hyps, err, tot, per = wer.make(), [], 0, 0, {n: [0, 0] for n in NAMES}
    for i, r in enumerate(rows):
        h, ref = wer.recog(dec, f"{out}/{r[0]}.wav"), wer.norm(r[1])
        e = wer.edit(ref, wer.norm(h))
        err, tot = err + e, tot + len(ref)
        p = per[NAMES[i % len(NAMES)]]
        p[0], p[1] = p[0] + e, p[1] + len(ref)
        hyps.append([r[0], r[1], h, e])
    res = dict(
        wer=round(err / tot, 4), words=tot, mel_l1_dtw=dist, cpu_rtf=rtf, per_voice={k: round(e / n, 3) for k, (e, n) in per.items()}
    )
    json.dump(dict(res, hyps=hyps), open(f"{BASE}/{name}.json", "w"), indent=1)
    print(name, res, flush=True)


if __name__ == "__main__":
    main()
