#!/usr/bin/env python3
"""Write out/config.json, model.safetensors (f16, weight_norm kept as weight_g/weight_v), voices.safetensors,
phoneme_rules.json, and the golden fixtures (computed with the f16-rounded weights, f32 arithmetic)."""

import json, os, shutil, sys
import numpy as np, torch
from voices import APART, NAMES
from common import ROOT, assemble, ids_of, load_export, st_load, st_save
from model import seeded_noise

torch.set_num_threads(1)
OUT = ROOT + "/out"
os.makedirs(OUT, exist_ok=True)
here = os.path.dirname(os.path.abspath(__file__))
dec = sys.argv[1] if len(sys.argv) > 1 else ROOT + "/ckpt/dec.pt"
m, style = assemble(dec)
if os.environ.get("KEEP_FROM"):  # a model.safetensors whose prosody side stays bit-identical in a decoder-only update
    old = {
        k: torch.from_numpy(v.astype(np.float32))
        for k, v in st_load(os.environ["KEEP_FROM"]).items() if not k.startswith(("decoder.", "text_encoder."))
    }
    m.load_state_dict(old, strict=False)
    kept = st_load(os.path.dirname(os.environ["KEEP_FROM"]) + "/voices.safetensors")
    style[:, m.sd:] = torch.cat([torch.from_numpy(kept[n].copy()) for n in NAMES])[:, m.sd:]
else:
    for voice, (other, share) in APART.items():
        a, b = NAMES.index(voice), NAMES.index(other)
        style[a, m.sd:] += share * (style[a, m.sd:] - style[b, m.sd:])
cfg = json.load(open(ROOT + "/config.json"))
cfg["model_type"] = "kokoro"
cfg["sample_rate"] = 24000
json.dump(cfg, open(OUT + "/config.json", "w"), ensure_ascii=False, indent=1)
shutil.copy(here + "/../../models/parley-speech/phoneme_rules.json", OUT + "/phoneme_rules.json")
st_save(OUT + "/model.safetensors", {k: v.numpy().astype(np.float16)
                                     for k, v in m.state_dict().items()},
        dict(format="pt", weight_norm="unfolded: weight_g, weight_v (w = g * v / ||v||, norm over all dims but the first)"))
st_save(OUT + "/voices.safetensors", {n: style[i:i + 1].numpy().astype(np.float32)
                                      for i, n in enumerate(NAMES)},
        dict(layout="[1, 2*style_dim]: first half decoder, second half predictor"))
m, voices = load_export(OUT)
print("parameters", sum(p.numel() for p in m.parameters()), "bytes", os.path.getsize(OUT + "/model.safetensors"))
inv = dict(text="Hello world.", tokens="həlˈO wˈɚld.", voice="aus-female-1", seed=1234)
tap = {}
wav, t = m.infer(ids_of(inv["tokens"], cfg["vocab"]), voices[inv["voice"]], noise_seed=inv["seed"], tap=tap)
g = {k: v.detach().numpy() for k, v in tap.items()}
g = {k: (v.astype(np.int32) if v.dtype.kind == "i" else v.astype(np.float32)) for k, v in g.items()}
g["input_ids"] = np.array(ids_of(inv["tokens"], cfg["vocab"]), np.int32)
g["style"] = voices[inv["voice"]].numpy()
g["noise_first_90"] = seeded_noise(inv["seed"], 10)
# the same utterance with the noise switched off: a seed-free check of everything after the source
tz = {}
w0 = m.decoder(tap["asr"], tap["F0"], tap["N"], voices[inv["voice"]][None, :m.sd],
               torch.zeros(1, tap["F0"].shape[1] * m.decoder.generator.scale, 9), tz)
g["audio_zero_noise"] = w0.detach().numpy()
g["har_source_zero_noise"] = tz["har_source"].detach().numpy()
ex = [l.rstrip("\n").split("\t") for l in open(ROOT + "/eval_phones100.tsv")][:8] if os.path.exists(ROOT + "/eval_phones100.tsv") else []
st_save(OUT + "/golden.safetensors", g)
json.dump(dict(
    inv,
    phonemize_examples=[dict(text=r[1], phonemizer=r[3], tokens=r[2]) for r in ex],
    shapes={k: list(v.shape)
            for k, v in g.items()},
    order=[
        "bert", "d_en", "d", "duration", "pred_dur", "F0", "N", "t_en", "asr", "decoder_encode", "decoder_out", "har_source",
        "har_spec_phase", "gen_stage0", "gen_stage1", "spec", "phase", "audio"
    ],
    notes=dict(
        weights="model.safetensors f16 values widened to f32, f32 arithmetic (source phases in f64)",
        noise="see README: mulberry32 + Box-Muller; noise[t][h], 9 per sample",
        tolerance=
        "f32 engine: bert..N rel 1e-3, audio max abs 5e-3 typical; pred_dur exact; a phase bin of har_spec_phase may differ by 2*pi where the value is at +-pi"
    )),
          open(OUT + "/golden.json", "w"),
          ensure_ascii=False,
          indent=1)
print("golden", {k: v.shape for k, v in g.items()}, "dur", g["pred_dur"], "audio rms", float(np.sqrt((g["audio"]**2).mean())))
