#!/usr/bin/env python3
"""What the reference package says with published Kokoro weights: the reference of test/models/real-kokoro.test.ts.

    python3 test/tools/real_speech.py FOLDER OUT

Needs torch, transformers, safetensors, numpy, onnx and the `kokoro` package from PyPI (modules.py and istftnet.py). FOLDER has an ONNX export of Kokoro-82M,
vocab.json and voices/*.bin. The first 12 American sentences of test/fixtures/misaki-phonemes.json are spoken by 12 voices, in f32:

* `audio`: with the noise that Parley has for a seed (check_checkpoints.py), and the source's phases summed in f64, as Parley's are kept below one cycle
* `package`: as the package does it, with torch's noise and phases summed in f32
* `other`: the same with other noise, which says how far two true answers are apart

OUT/kokoro.safetensors holds these. test/fixtures/kokoro-real gets ids, frames of each id, and of the first two sentences the log band energies of `audio`: 80
bands, Hann windows of 1,024 samples every 256, the logarithm of the energy + 1e-5. Distances are the mean of their differences, in nepers. Four sentences at other
speeds too (CLOSE) get their curves of pitch and energy, and every 61st sample of `audio`.
"""
import glob
import json
import math
import os
import sys

import numpy as np
import onnx
import torch
from safetensors.torch import save_file

from check_checkpoints import ReferenceKokoro, seeded_noise
from kokoro_from_onnx import CONFIG, convert

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURE = os.path.join(HERE, "..", "fixtures", "kokoro-real")
VOICES = "af_heart af_bella af_nova af_sarah am_michael am_fenrir am_onyx am_puck bf_emma bf_isabella bm_george bm_lewis".split()
SEED = 1
# Sentence and speed of those whose numbers are compared one by one; the fixture has every STRIDE-th sample of them.
CLOSE = [(0, 1.0), (1, 1.4), (4, 0.75), (8, 1.0)]
STRIDE = 61


def main():
    folder, out = sys.argv[1:3]
    torch.set_num_threads(2)
    [path] = glob.glob(os.path.join(folder, "*.onnx"))
    weights, _, _ = convert(onnx.load(path))
    vocab = json.load(open(os.path.join(folder, "vocab.json"), encoding="utf-8"))["vocab"]
    model = ReferenceKokoro(CONFIG).eval()
    # The export has weight norms folded: the plain weight is what stands there.
    for module in model.modules():
        if hasattr(module, "weight_g"):
            torch.nn.utils.remove_weight_norm(module)
    missing, unexpected = model.load_state_dict({k: torch.tensor(v) for k, v in weights.items()}, strict=False)
    left = [k for k in missing if not k.endswith(("norm.weight", "norm.bias", "position_ids", "stft.window")) and "pooler" not in k]
    if left or unexpected:
        raise SystemExit(f"missing {left}, unexpected {list(unexpected)}")
    sentences = json.load(open(os.path.join(HERE, "..", "fixtures", "misaki-phonemes.json"), encoding="utf-8"))["en-us"][: len(VOICES)]
    golden = {}
    # The two kinds of phases one after the other: the package's modules are changed for the second.
    for kind, noise in (
        ("package", lambda shape: torch.randn(shape, generator=torch.Generator().manual_seed(1))),
        ("other", lambda shape: torch.randn(shape, generator=torch.Generator().manual_seed(2))),
        ("audio", lambda shape: torch.tensor(seeded_noise(SEED, math.prod(shape))).reshape(shape)),
    ):
        if kind == "audio":
            model.use_double_source()
        for i, (sentence, voice) in enumerate(zip(sentences, VOICES)):
            ids = [vocab[c] for c in sentence["misaki"] if c in vocab]
            styles = np.fromfile(os.path.join(folder, "voices", f"{voice}.bin"), "<f4").reshape(-1, 1, 2 * CONFIG["style_dim"])
            stages = model.stages(torch.tensor([[0, *ids, 0]]), torch.from_numpy(styles[len(ids) - 1].copy()), noise)
            golden[f"{i}.ids"] = torch.tensor(ids, dtype=torch.int32)
            golden[f"{i}.durations"] = stages["pred_dur"].int()
            golden[f"{i}.{kind}"] = stages["audio"][0].contiguous()
            print(kind, voice, len(ids), flush=True)
    close = speak_close(model, folder, vocab, sentences)
    os.makedirs(out, exist_ok=True)
    save_file(golden, os.path.join(out, "kokoro.safetensors"))
    write_fixture(golden, sentences, close)


def speak_close(model, folder, vocab, sentences):
    """Curves and samples by number in CLOSE, and the frames of each id; the noise is the seed's, the phases are in f64."""
    tensors, frames = {}, []
    for i, (sentence, speed) in enumerate(CLOSE):
        ids = [vocab[c] for c in sentences[sentence]["misaki"] if c in vocab]
        styles = np.fromfile(os.path.join(folder, "voices", f"{VOICES[sentence]}.bin"), "<f4").reshape(-1, 1, 2 * CONFIG["style_dim"])
        noise = lambda shape: torch.tensor(seeded_noise(SEED, math.prod(shape))).reshape(shape)
        stages = model.stages(torch.tensor([[0, *ids, 0]]), torch.from_numpy(styles[len(ids) - 1].copy()), noise, speed)
        tensors[f"close.{i}.F0"], tensors[f"close.{i}.N"] = stages["F0"][0].contiguous(), stages["N"][0].contiguous()
        tensors[f"close.{i}.audio"] = stages["audio"][0][::STRIDE].contiguous()
        frames.append(stages["pred_dur"].tolist())
    return tensors, frames


def write_fixture(golden, sentences, close):
    spoken, bands = [], close[0]
    for i, (sentence, voice) in enumerate(zip(sentences, VOICES)):
        audio, package, other = (log_bands(golden[f"{i}.{kind}"]) for kind in ("audio", "package", "other"))
        apart = {"other": float((package - other).abs().mean()), "audio": float((package - audio).abs().mean())}
        numbers = {"ids": golden[f"{i}.ids"].tolist(), "frames": golden[f"{i}.durations"].tolist()}
        spoken.append({"voice": voice, "text": sentence["text"], **numbers, "package with other noise": round(apart["other"], 4)})
        if i < 2:
            bands[f"{i}.bands"] = audio.half().contiguous()
        seconds = len(golden[f"{i}.audio"]) / CONFIG["sample_rate"]
        print(f"{voice:12} {seconds:5.2f} s  package and other noise {apart['other']:.4f}, and the seed's {apart['audio']:.4f}", flush=True)
    os.makedirs(FIXTURE, exist_ok=True)
    save_file(bands, os.path.join(FIXTURE, "golden.safetensors"))
    with open(os.path.join(FIXTURE, "golden.json"), "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in spoken)
        rows = [{"sentence": sentence, "speed": speed, "frames": frames} for (sentence, speed), frames in zip(CLOSE, close[1])]
        more = ",\n".join(json.dumps(row) for row in rows)
        file.write(f'{{"seed": {SEED}, "stride": {STRIDE}, "spoken": [\n{lines}\n], "close": [\n{more}\n]}}\n')


def log_bands(audio, rate=CONFIG["sample_rate"]):
    """[frames, 80], as test/support/log-mel.ts has them."""
    power = torch.stft(audio, 1024, 256, window=torch.hann_window(1024), center=False, return_complex=True).abs() ** 2
    hertz = 700 * (10 ** (torch.linspace(0, 2595 * math.log10(1 + rate / 2 / 700), 82) / 2595) - 1)
    low, mid, high, bins = hertz[:-2, None], hertz[1:-1, None], hertz[2:, None], torch.linspace(0, rate / 2, 513)
    bank = torch.minimum((bins - low) / (mid - low), (high - bins) / (high - mid)).clamp(min=0)
    return torch.log(bank @ power + 1e-5).T


if __name__ == "__main__":
    with torch.no_grad():
        main()
