#!/usr/bin/env python3
"""Write out/config.json, model.safetensors (f16, weight_norm kept as weight_g/weight_v), voices.safetensors,
phoneme_rules.json, and the golden fixtures (computed with the f16-rounded weights, f32 arithmetic).
usage: export.py [--keep MODEL_FOLDER]   (a model whose prosody side stays bit-identical in a decoder-only update)"""

import argparse, json, os, shutil
import torch
import paths
from common import assemble, ids_of, load_export
from model import seeded_noise
from safetensors.torch import load_file, save_file
from shared.work import MODELS, WORK
from voices import APART, NAMES

OUT = WORK + "/out"
NORM = "unfolded: weight_g, weight_v (w = g * v / ||v||, norm over all dims but the first)"
SAID = dict(text="Hello world.", tokens="həlˈO wˈɚld.", voice="aus-female-1", seed=1234)
GOLDEN = json.load(open(paths.HERE + "/data/golden.json"))  # what is said about the tensors


def weights(keep):
    """-> Model, {voice: style vector}"""
    m, style = assemble(WORK + "/ckpt/dec.pt", WORK + "/ckpt/pro.pt")
    if keep:
        old = load_file(keep + "/model.safetensors")
        m.load_state_dict({k: v.float() for k, v in old.items() if not k.startswith(("decoder.", "text_encoder."))}, strict=False)
        kept = load_file(keep + "/voices.safetensors")
        style[:, m.sd:] = torch.cat([kept[n] for n in NAMES])[:, m.sd:]
    else:
        for voice, (other, share) in APART.items():
            a, b = NAMES.index(voice), NAMES.index(other)
            style[a, m.sd:] += share * (style[a, m.sd:] - style[b, m.sd:])
    return m, {n: style[i:i + 1].clone() for i, n in enumerate(NAMES)}


def golden():
    m, voices = load_export(OUT)
    ids, voice, t = ids_of(SAID["tokens"], m.cfg["vocab"]), voices[SAID["voice"]], {}
    m.infer(ids, voice, noise_seed=SAID["seed"], tap=t)
    g = {k: v.detach() for k, v in t.items()}
    g.update(input_ids=torch.tensor(ids), style=voice, noise_first_90=torch.from_numpy(seeded_noise(SAID["seed"], 10)))
    # the same utterance with the noise switched off: a seed-free check of everything after the source
    silent, quiet = torch.zeros(1, t["F0"].shape[1] * m.decoder.generator.scale, 9), {}
    g["audio_zero_noise"] = m.decoder(t["asr"], t["F0"], t["N"], voice[None, :m.sd], silent, quiet).detach()
    g["har_source_zero_noise"] = quiet["har_source"].detach()
    g = {k: (v.float() if v.is_floating_point() else v.int()).contiguous() for k, v in g.items()}
    save_file(g, OUT + "/golden.safetensors")
    phones = WORK + "/data/phones.tsv"
    examples = [l.rstrip("\n").split("\t") for l in open(phones)][:8] if os.path.exists(phones) else []
    with open(OUT + "/golden.json", "w") as f:
        json.dump(dict(SAID, phonemize_examples=[dict(text=r[1], phonemizer=r[3], tokens=r[2]) for r in examples],
                       shapes={k: list(v.shape) for k, v in g.items()}, **GOLDEN), f, ensure_ascii=False, indent=1)
    print("golden", len(g), "tensors, durations", g["pred_dur"].tolist(), "audio rms", float(g["audio"].square().mean().sqrt()))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--keep")
    a = ap.parse_args()
    torch.set_num_threads(1)
    os.makedirs(OUT, exist_ok=True)
    m, voices = weights(a.keep)
    for name in ("config.json", "phoneme_rules.json"):
        shutil.copy(f"{MODELS}/parley-speech/{name}", OUT)
    save_file({k: v.half().contiguous() for k, v in m.state_dict().items()}, OUT + "/model.safetensors", dict(format="pt", weight_norm=NORM))
    save_file(voices, OUT + "/voices.safetensors", dict(layout="[1, 2*style_dim]: first half decoder, second half predictor"))
    print("parameters", sum(p.numel() for p in m.parameters()), "bytes", os.path.getsize(OUT + "/model.safetensors"))
    golden()


if __name__ == "__main__":
    main()
