"""Word error rate with pocketsphinx en-us (16 kHz). wer.py ref.tsv dir  -> mean WER over dir/<id>.wav"""

import sys, re, os, numpy as np, scipy.signal as ss, scipy.io.wavfile as wf
from pocketsphinx import Decoder

M = "/usr/share/pocketsphinx/model/en-us"


def make():
    c = Decoder.default_config()
    for k, v in (("-hmm", M + "/en-us"), ("-lm", M + "/en-us.lm.bin"), ("-dict", M + "/cmudict-en-us.dict"), ("-logfn", "/dev/null")):
        c.set_string(k, v)
    return Decoder(c)


def cut(x, sr):
    """A clip with 0.08 s before its first and 0.16 s after its last sound."""
    loud = np.nonzero(np.abs(x) > 0.02 * np.abs(x).max())[0]
    return x[max(0, loud[0] - int(0.08 * sr)) : loud[-1] + int(0.16 * sr)]


def recog(d, path, same_silence=False):
    """What pocketsphinx hears. It adapts its cepstral mean from clip to clip, to silence too: with `same_silence` every clip has as much."""
    sr, x = wf.read(path)
    x = x.astype(np.float32) / 32768
    x = cut(x, sr) if same_silence else x
    x = ss.resample_poly(x, 2, 3) if sr == 24000 else (ss.resample_poly(x, 1, 2) if sr == 32000 else x)
    x = np.pad(x, (3200, 4800)) + 1e-4 * np.random.default_rng(0).standard_normal(len(x) + 8000)
    d.start_utt()
    d.process_raw((np.clip(x, -1, 1) * 32767).astype("<i2").tobytes(), False, True)
    d.end_utt()
    return d.hyp().hypstr if d.hyp() else ""


def norm(t):
    return re.sub(r"[^a-z' ]", " ", t.lower().replace("favourite", "favorite").replace("colour", "color")).split()


def edit(a, b):
    d = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        p, d[0] = d[0], i
        for j, y in enumerate(b, 1):
            p, d[j] = d[j], min(d[j] + 1, d[j - 1] + 1, p + (x != y))
    return d[-1]


def run(ref, folder, verbose=False):
    d = make()
    e = n = 0
    for l in open(ref):
        i, t = l.rstrip("\n").split("\t")[:2]
        p = "%s/%s.wav" % (folder, i)
        if not os.path.exists(p):
            continue
        h = recog(d, p)
        r = norm(t)
        k = edit(r, norm(h))
        e += k
        n += len(r)
        if verbose:
            print(i, k, len(r), "|", h)
    return e / max(n, 1), n


if __name__ == "__main__":
    print("WER %.3f over %d words" % run(sys.argv[1], sys.argv[2], True))
