#!/usr/bin/env python3
"""Loads the bundled checkpoints into the reference PyTorch code and compares with their golden fixtures.

    python test/tools/check_checkpoints.py [models folder] [fixtures folder]

Needs torch, transformers, safetensors, numpy and the `kokoro` package from PyPI (only its modules.py and istftnet.py are
used, so its phonemizer dependencies may be missing). Prints one line a stage; exits 1 if a stage is out of its bound.
"""
import importlib.util
import json
import math
import os
import sys
import types

import numpy as np
import torch
from safetensors.torch import load_file

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "models")
FIXTURES = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "test", "fixtures")
failures = []


def read_json(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return json.load(file)


def compare(name, got, want, bound):
    """Normalised mean squared error and largest difference; fails above `bound` (NMSE)."""
    got, want = got.detach().double().flatten(), want.double().flatten()
    if got.shape != want.shape:
        failures.append(name)
        print(f"  {name:26s} SHAPE {tuple(got.shape)} against {tuple(want.shape)}")
        return
    nmse = float(((got - want) ** 2).sum() / max(float((want**2).sum()), 1e-30))
    worst = float((got - want).abs().max())
    ok = nmse <= bound
    if not ok:
        failures.append(name)
    print(f"  {name:26s} nmse {nmse:9.2e}  max |diff| {worst:9.2e}  bound {bound:.0e}  {'ok' if ok else 'DIFFERS'}")


def equal(name, got, want):
    ok = got == want
    if not ok:
        failures.append(name)
    print(f"  {name:26s} {'equal' if ok else f'DIFFERS: {got} against {want}'}")


def check_chat():
    from transformers import AutoTokenizer, LlamaForCausalLM

    print("parley-chat in transformers.LlamaForCausalLM, f32 arithmetic")
    folder = os.path.join(MODELS, "parley-chat")
    golden = read_json(FIXTURES, "parley-chat", "golden.json")
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer.apply_chat_template(golden["messages"], tokenize=False, add_generation_prompt=True)
    equal("chat template", prompt, golden["prompt"])
    ids = tokenizer(prompt, add_special_tokens=False).input_ids
    equal("prompt ids", ids, golden["prompt_ids"])
    inputs = torch.tensor([ids])
    logits = model(inputs).logits[0, -1]
    compare("logits of the last token", logits, torch.tensor(golden["logits_last"]), 1e-9)
    count = len(golden["greedy_ids"])
    out = model.generate(inputs, attention_mask=torch.ones_like(inputs), do_sample=False, max_new_tokens=count, eos_token_id=None)
    equal("greedy ids", out[0, len(ids) :].tolist(), golden["greedy_ids"])
    print(f"  parameters {sum(p.numel() for p in model.parameters()):,}; text: {tokenizer.decode(golden['greedy_ids'])!r}")


def check_transcription():
    import soundfile
    from transformers import AutoTokenizer, WhisperFeatureExtractor, WhisperForConditionalGeneration

    print("parley-transcribe in transformers.WhisperForConditionalGeneration, f32 arithmetic")
    folder, fixtures = os.path.join(MODELS, "parley-transcribe"), os.path.join(FIXTURES, "parley-transcribe")
    model = WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    golden = read_json(fixtures, "golden.json")
    tensors = load_file(os.path.join(fixtures, "golden.safetensors"))
    samples, rate = soundfile.read(os.path.join(fixtures, "clip.wav"), dtype="float32")
    features = WhisperFeatureExtractor.from_pretrained(folder)(samples, sampling_rate=rate, return_tensors="pt").input_features
    compare("log-mel", features, tensors["input_features"], 1e-7)
    encoder = model.model.encoder
    taps = {}
    encoder.layers[0].register_forward_pre_hook(lambda _, args: taps.update(first=args[0]))
    encoder.layers[0].register_forward_hook(lambda _, __, out: taps.update(layer0=out[0] if isinstance(out, tuple) else out))
    encoded = encoder(tensors["input_features"]).last_hidden_state
    positions = encoder.embed_positions.weight[:64]
    compare("conv stem", taps["first"].reshape(1, -1, encoded.shape[-1])[:, :64] - positions, tensors["conv_out"], 1e-9)
    compare("encoder layer 0", taps["layer0"].reshape(1, -1, encoded.shape[-1])[:, :64], tensors["encoder_layer0_out"], 1e-9)
    compare("encoder", encoded, tensors["encoder_out"], 1e-9)
    outputs = (encoded,)
    logits = model(encoder_outputs=outputs, decoder_input_ids=tensors["prompt_ids"]).logits
    compare("logits of the prompt", logits, tensors["prompt_logits"], 1e-9)
    eot = model.config.eos_token_id
    for key, prompt, timestamps in (("greedy_ids", "prompt_ids", False), ("greedy_ids_timestamps", "timestamp_prompt_ids", True)):
        ids, first_timestamp = list(golden[prompt]), read_json(folder, "generation_config.json")["no_timestamps_token_id"] + 1
        produced = []
        while len(produced) < 100:
            step = model(encoder_outputs=outputs, decoder_input_ids=torch.tensor([ids])).logits[0, -1]
            step[eot + 1 : first_timestamp if timestamps else None] = -math.inf
            token = int(step.argmax())
            if token == eot:
                break
            produced.append(token)
            ids.append(token)
        equal(key.replace("_", " "), produced, golden[key])
    print(f"  parameters {sum(p.numel() for p in model.parameters()):,}; text: {tokenizer.decode(golden['greedy_ids'])!r}")


def reference_kokoro():
    """modules.py and istftnet.py of the installed `kokoro` package, without running its __init__ (which wants a G2P)."""
    spec = importlib.util.find_spec("kokoro")
    package = types.ModuleType("kokoro")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["kokoro"] = package
    # custom_stft.py imports `attr` without using it.
    sys.modules.setdefault("attr", types.SimpleNamespace(attr=None))
    return importlib.import_module("kokoro.modules"), importlib.import_module("kokoro.istftnet")


class ReferenceKokoro(torch.nn.Module):
    """KModel with the widths that the package hard-codes (1024 decoder, 64 asr_res, 128 style) taken from the config."""

    def __init__(self, config):
        from transformers import AlbertConfig

        super().__init__()
        modules, istftnet = reference_kokoro()
        width, residual, style = config.get("decoder_dim", 1024), config.get("asr_res_dim", 64), config["style_dim"]
        hidden, net = config["hidden_dim"], config["istftnet"]
        self.istftnet, self.style_dim = istftnet, style
        self.bert = modules.CustomAlbert(AlbertConfig(vocab_size=config["n_token"], **config["plbert"]))
        self.bert_encoder = torch.nn.Linear(config["plbert"]["hidden_size"], hidden)
        self.predictor = modules.ProsodyPredictor(style, hidden, config["n_layer"], config["max_dur"], config["dropout"])
        self.text_encoder = modules.TextEncoder(hidden, config["text_encoder_kernel_size"], config["n_layer"], config["n_token"])
        decoder = istftnet.Decoder(hidden, style, config["n_mels"], **net)
        block, joined = istftnet.AdainResBlk1d, width + 2 + residual
        decoder.encode = block(hidden + 2, width, style)
        decoder.decode = torch.nn.ModuleList([block(joined, width, style) for _ in range(3)])
        decoder.decode.append(block(joined, net["upsample_initial_channel"], style, upsample=True))
        decoder.asr_res = torch.nn.Sequential(torch.nn.utils.weight_norm(torch.nn.Conv1d(hidden, residual, kernel_size=1)))
        self.decoder = decoder

    def use_double_source(self):
        """Phases accumulated in f64, as the fixture's are (the package accumulates them in f32)."""
        source = self.decoder.generator.m_source.double()
        source.register_forward_pre_hook(lambda _, args: (args[0].double(),))
        source.register_forward_hook(lambda _, __, y: tuple(part.float() for part in y))
        range_tensor = torch.FloatTensor
        source.l_sin_gen.register_forward_pre_hook(lambda *_: setattr(torch, "FloatTensor", torch.DoubleTensor))
        source.l_sin_gen.register_forward_hook(lambda *_: setattr(torch, "FloatTensor", range_tensor))

    @torch.no_grad()
    def stages(self, ids, style, noise, speed=1):
        """Every stage of KModel.forward_with_tokens, `duration` at speed 1; `noise(shape)` stands for torch.randn_like of the source's sine noise."""
        out = {}
        lengths, mask = torch.tensor([ids.shape[1]]), torch.zeros(1, ids.shape[1], dtype=torch.bool)
        decoder_style, prosody_style = style[:, : self.style_dim], style[:, self.style_dim :]
        out["bert"] = self.bert(ids, attention_mask=(~mask).int())
        hidden = self.bert_encoder(out["bert"])
        out["d_en"] = hidden
        out["d"] = self.predictor.text_encoder(hidden.transpose(-1, -2), prosody_style, lengths, mask)
        x, _ = self.predictor.lstm(out["d"])
        out["duration"] = torch.sigmoid(self.predictor.duration_proj(x)).sum(-1)
        out["pred_dur"] = torch.round(out["duration"] / speed).clamp(min=1).long().squeeze()
        index = torch.repeat_interleave(torch.arange(ids.shape[1]), out["pred_dur"])
        out["F0"], out["N"] = self.predictor.F0Ntrain(out["d"].transpose(-1, -2)[:, :, index], prosody_style)
        out["t_en"] = self.text_encoder(ids, lengths, mask)
        out["asr"] = out["t_en"][:, :, index]
        decoder, taps = self.decoder, []
        taps.append(decoder.encode.register_forward_hook(lambda _, __, y: out.update(decoder_encode=y)))
        taps.append(decoder.decode[-1].register_forward_hook(lambda _, __, y: out.update(decoder_out=y)))
        taps.append(decoder.generator.m_source.register_forward_hook(lambda _, __, y: out.update(har_source=y[0].squeeze(-1))))
        randn_like = torch.randn_like
        torch.randn_like = lambda like: noise(like.shape) if like.shape[-1] == 9 else torch.zeros_like(like)
        try:
            out["audio"] = decoder(out["asr"], out["F0"], out["N"], decoder_style).reshape(1, -1)
        finally:
            torch.randn_like = randn_like
            for tap in taps:
                tap.remove()
        return out


def seeded_noise(seed, count):
    """The fixture's noise: mulberry32 uniforms through Box-Muller, float64 [count]."""
    mask, index = 0xFFFFFFFF, np.arange(1, 2 * count + 1, dtype=np.uint64)
    state = (np.uint64(seed) + index * np.uint64(0x6D2B79F5)) & np.uint64(mask)
    t = ((state ^ (state >> np.uint64(15))) * (state | np.uint64(1))) & np.uint64(mask)
    t ^= (t + (((t ^ (t >> np.uint64(7))) * (t | np.uint64(61))) & np.uint64(mask))) & np.uint64(mask)
    uniform = ((t ^ (t >> np.uint64(14))) & np.uint64(mask)).astype(np.float64) / 4294967296.0
    return np.sqrt(-2 * np.log(np.maximum(uniform[0::2], 1e-12))) * np.cos(2 * np.pi * uniform[1::2])


def log_mel_distance(a, b, rate):
    """Mean |difference| of log mel-like band energies (80 bands, 1024 window, 256 hop), in nepers."""
    def bands(x):
        spectrum = torch.stft(x.flatten().float(), 1024, 256, window=torch.hann_window(1024), return_complex=True).abs() ** 2
        mel = torch.linspace(0, 2595 * math.log10(1 + rate / 2 / 700), 82)
        hertz = 700 * (10 ** (mel / 2595) - 1)
        bins = torch.linspace(0, rate / 2, 513)
        low, mid, high = hertz[:-2, None], hertz[1:-1, None], hertz[2:, None]
        bank = torch.clamp(torch.minimum((bins - low) / (mid - low), (high - bins) / (high - mid)), min=0)
        return torch.log(bank @ spectrum + 1e-5)
    return float((bands(a) - bands(b)).abs().mean())


def check_speech():
    print("parley-speech in kokoro's TextEncoder, ProsodyPredictor, Decoder and transformers' AlbertModel, f32 arithmetic")
    folder, fixtures = os.path.join(MODELS, "parley-speech"), os.path.join(FIXTURES, "parley-speech")
    config = read_json(folder, "config.json")
    golden, tensors = read_json(fixtures, "golden.json"), load_file(os.path.join(fixtures, "golden.safetensors"))
    model = ReferenceKokoro(config)
    weights = {k: v.float() for k, v in load_file(os.path.join(folder, "model.safetensors")).items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    left = [k for k in missing if not k.endswith(("norm.weight", "norm.bias", "position_ids", "stft.window")) and "pooler" not in k]
    equal("names the class lacks", list(unexpected), [])
    equal("names the file lacks", left, [])
    model.eval()
    vocab = config["vocab"]
    ids = [0, *(vocab[c] for c in golden["tokens"]), 0]
    equal("input ids", ids, tensors["input_ids"].tolist())
    style = load_file(os.path.join(folder, "voices.safetensors"))[golden["voice"]]
    ids = torch.tensor([ids])
    seed = golden["seed"]
    noisy = model.stages(ids, style, lambda shape: torch.tensor(seeded_noise(seed, math.prod(shape)), dtype=torch.float32).reshape(shape))
    equal("durations", noisy["pred_dur"].tolist(), tensors["pred_dur"].tolist())
    for stage in ("bert", "d_en", "d", "duration", "F0", "N", "t_en", "asr", "decoder_encode", "decoder_out"):
        got = noisy[stage]
        want = tensors[stage]
        compare(stage, got if got.shape == want.shape else got.transpose(-1, -2), want, 1e-9)
    single = model.stages(ids, style, torch.zeros)
    compare("source, f32 phases", single["har_source"], tensors["har_source_zero_noise"], 5e-6)
    compare("audio, f32 phases", single["audio"], tensors["audio_zero_noise"], 1e-3)
    model.use_double_source()
    double = model.stages(ids, style, lambda shape: torch.zeros(shape, dtype=torch.float64))
    noisy = model.stages(ids, style, lambda shape: torch.tensor(seeded_noise(seed, math.prod(shape))).reshape(shape))
    compare("source, f64 phases", double["har_source"], tensors["har_source_zero_noise"], 1e-7)
    compare("source with noise", noisy["har_source"], tensors["har_source"], 1e-7)
    # An f32 source moves the STFT phase of near-silent bins across +-pi, so only f64 phases give the same waveform.
    compare("audio, f64 phases", double["audio"], tensors["audio_zero_noise"], 1e-6)
    compare("audio with noise", noisy["audio"], tensors["audio"], 1e-6)
    for name, got, want in (("without", double, "audio_zero_noise"), ("with", noisy, "audio")):
        print(f"  log-mel distance           {log_mel_distance(got['audio'], tensors[want], 24000):.4f} nepers {name} noise")
    print(f"  parameters {sum(v.numel() for v in weights.values()):,}; {tensors['audio'].shape[-1] / 24000:.2f} s of audio")


if __name__ == "__main__":
    with torch.no_grad():
        torch.set_num_threads(2)
        check_chat()
        check_transcription()
        check_speech()
    print("all fixtures agree" if not failures else f"{len(failures)} stages differ: {', '.join(failures)}")
    sys.exit(1 if failures else 0)
