#!/usr/bin/env python3
"""Step 11: word errors (pocketsphinx) and mel distance of 100 unseen sentences, sentence i in voice i mod 19.
usage: 11_wer.py teacher | MODEL_DIR   (MODEL_DIR holds config.json, model.safetensors, voices.safetensors); prints one line, writes JSON beside the audio in $PARLEY_WORK/wer/NAME"""

import importlib, json, os, subprocess, sys, time
import numpy as np, scipy.signal as ss, torch
from common import ROOT, ids_of, load_export, wav_load, wav_save
from losses import mel_fb
from voices import NAMES, VOICES
import wer

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS, PHONES, BASE = HERE + "/eval_texts.tsv", ROOT + "/eval_phones100.tsv", ROOT + "/wer"


def teacher(rows, out):
    """The teachers' own audio, brought to 24 kHz and to the level of the training data."""
    synth = importlib.import_module("03_synth")
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


def logmel(path):
    x = torch.from_numpy(wav_load(path)[1])
    z = torch.stft(x, 1024, 480, 1024, torch.hann_window(1024), return_complex=True).abs() * (4 / 1024)
    return torch.log(mel_fb(1024, 24000, 80, "cpu") @ z + 1e-4).numpy().T


def dtw_l1(a, b):
    """Mean absolute log-mel difference along the best path."""
    D = np.sqrt(((a[:, None] - b[None]) ** 2).mean(-1))
    n, k = D.shape
    C = np.full((n + 1, k + 1), np.inf)
    C[0, 0] = 0
    for i in range(1, n + 1):
        best, cur, row = np.minimum(C[i - 1, 1:], C[i - 1, :-1]), C[i], D[i - 1]
        for j in range(1, k + 1):
            cur[j] = row[j - 1] + min(best[j - 1], cur[j - 1])
    i, j, s = n, k, []
    while i > 0 and j > 0:
        s.append(np.abs(a[i - 1] - b[j - 1]).mean())
        m = int(np.argmin((C[i - 1, j - 1], C[i - 1, j], C[i, j - 1])))
        i, j = i - (m != 2), j - (m != 1)
    return float(np.mean(s))


def main():
    what = sys.argv[1]
    name = "teacher" if what == "teacher" else (sys.argv[2] if len(sys.argv) > 2 else os.path.basename(what.rstrip("/")))
    if not os.path.exists(PHONES):
        subprocess.run(["node", HERE + "/02_phonemize.mjs", TEXTS, PHONES], check=True)
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
            dist = round(float(np.mean([dtw_l1(logmel(f"{out}/{r[0]}.wav"), logmel(f"{BASE}/teacher/{r[0]}.wav")) for r in rows])), 4)
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
