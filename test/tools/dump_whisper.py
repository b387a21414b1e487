#!/usr/bin/env python3
"""Makes a tiny random Whisper checkpoint and golden values of every stage, computed by transformers in f32.

    python test/tools/dump_whisper.py [folder]          (default test/fixtures/whisper-tiny-random)

Needs torch, transformers, safetensors, numpy. Odd sizes on purpose: 20 channels a head, unequal feed-forward widths, 26 mel bins,
a vocabulary that is no multiple of anything. `golden.safetensors` holds the audio, the features and the outputs; `golden_short.safetensors` the
encoder's output for a window that is not padded to its full length; `golden.json` the token ids.
"""
import json
import os
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration
from transformers.generation.logits_process import WhisperTimeStampLogitsProcessor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "test", "fixtures", "whisper-tiny-random")
SEED = 20261121
POSITIONS = 75  # 1.5 s windows
VOCABULARY = 269
EOS, START, EN, DE, TRANSCRIBE, NO_SPEECH, NO_TIMESTAMPS = 180, 181, 182, 183, 184, 185, 186
STEPS = 64
SHORT_SAMPLES, SHORT_FRAMES = 6400, 64  # 40 frames of sound, the rest silence

torch.manual_seed(SEED)
config = WhisperConfig(
    vocab_size=VOCABULARY, num_mel_bins=26, d_model=60, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
    decoder_attention_heads=3, encoder_ffn_dim=100, decoder_ffn_dim=132, max_source_positions=POSITIONS, max_target_positions=100,
    eos_token_id=EOS, bos_token_id=EOS, pad_token_id=EOS, decoder_start_token_id=START, suppress_tokens=[], begin_suppress_tokens=[],
    forced_decoder_ids=None, attn_implementation="eager",
)  # fmt: skip
model = WhisperForConditionalGeneration(config).eval()
with torch.no_grad():
    for name, parameter in model.named_parameters():
        # Larger than the default, so that attention is not uniform and 64 greedy tokens vary.
        if parameter.dim() > 1 and "embed_positions" not in name:
            parameter.normal_(0, 2.5 / parameter.shape[1] ** 0.5 if parameter.dim() == 2 else 0.15)
        elif parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.model.decoder.embed_positions.weight.normal_(0, 1.0)
    model.model.decoder.embed_tokens.weight.normal_(0, 0.3)
    # What is stored is f16: half the bytes, and the reference runs on exactly these values.
    for parameter in model.parameters():
        parameter.copy_(parameter.half().float())

extractor = WhisperFeatureExtractor(feature_size=26, chunk_length=30)
extractor.n_samples = POSITIONS * 2 * 160
rng = np.random.default_rng(SEED)
length = 20000  # shorter than the window: the rest is silence
time = np.arange(length) / 16000
audio = (0.3 * np.sin(2 * np.pi * (200 + 900 * time) * time) * (time % 0.4 < 0.3) + 0.01 * rng.standard_normal(length)).astype(np.float32)
padded = np.zeros(extractor.n_samples, dtype=np.float32)
padded[:length] = audio
features = torch.from_numpy(extractor._torch_extract_fbank_features(padded[None]))

golden = {"audio": torch.from_numpy(audio), "features": features[0]}
hooks = []


def keep(name):
    def hook(_module, _inputs, output):
        golden[name] = (output[0] if isinstance(output, tuple) else output).detach()[0].clone()

    return hook


encoder = model.model.encoder
for i, layer in enumerate(encoder.layers):
    hooks.append(layer.register_forward_hook(keep(f"encoder_layer{i}")))
with torch.no_grad():
    stem = torch.nn.functional.gelu(encoder.conv1(features))
    stem = torch.nn.functional.gelu(encoder.conv2(stem)).permute(0, 2, 1) + encoder.embed_positions.weight
    golden["stem"] = stem[0]
    encoded = encoder(features).last_hidden_state
    golden["encoder"] = encoded[0]
    for i, layer in enumerate(model.model.decoder.layers):
        golden[f"cross_key{i}"] = layer.encoder_attn.k_proj(encoded)[0]
        golden[f"cross_value{i}"] = layer.encoder_attn.v_proj(encoded)[0]
    forced = [START, EN, TRANSCRIBE, NO_TIMESTAMPS] + rng.integers(0, EOS, 13).tolist()
    decode = lambda ids: model(encoder_outputs=(encoded,), decoder_input_ids=torch.tensor([ids])).logits[0]  # noqa: E731
    golden["forced_logits"] = decode(forced)
    # Greedy, with everything that is not text suppressed (the end too: random weights never mean it).
    ids, margins = forced[:4], []
    for _ in range(STEPS):
        logits = decode(ids)[-1]
        best = logits[:EOS].topk(2)
        margins.append(float(best.values[0] - best.values[1]))
        ids.append(int(best.indices[0]))
    # With timestamps, by transformers' own rules.
    rules = WhisperTimeStampLogitsProcessor(
        GenerationConfig(no_timestamps_token_id=NO_TIMESTAMPS, eos_token_id=EOS, bos_token_id=EOS, max_initial_timestamp_index=50), begin_index=3
    )
    timed, timed_margins = forced[:3], []
    for _ in range(STEPS):
        logits = decode(timed)[-1]
        logits[EOS:NO_TIMESTAMPS] = -torch.inf
        # The end is suppressed, so a window that is used up has nothing left to say.
        allowed = rules(torch.tensor([timed]), logits[None].clone())[0]
        if not torch.isfinite(allowed).any():
            break
        best = allowed.topk(2)
        timed_margins.append(min(float(best.values[0] - best.values[1]), 99.0))
        timed.append(int(best.indices[0]))
    at_start = decode([START])[-1]
    language = EN if at_start[EN] > at_start[DE] else DE
    no_speech = float(torch.log_softmax(at_start, -1)[NO_SPEECH])
for hook in hooks:
    hook.remove()

# transformers takes full windows only: a model with the first positions is what an unpadded window means.
short_model = WhisperForConditionalGeneration(WhisperConfig(**{**config.to_dict(), "max_source_positions": SHORT_FRAMES // 2}))
short_state = dict(model.state_dict())
short_state["model.encoder.embed_positions.weight"] = short_state["model.encoder.embed_positions.weight"][: SHORT_FRAMES // 2]
short_model.load_state_dict(short_state)
short_audio = np.zeros(SHORT_FRAMES * 160, dtype=np.float32)
short_audio[:SHORT_SAMPLES] = audio[:SHORT_SAMPLES]
with torch.no_grad():
    short = short_model.eval().model.encoder(torch.from_numpy(extractor._torch_extract_fbank_features(short_audio[None]))).last_hidden_state[0]

os.makedirs(FOLDER, exist_ok=True)
state = {name: value.half().contiguous() for name, value in model.state_dict().items() if name != "proj_out.weight"}
save_file(state, os.path.join(FOLDER, "model.safetensors"))
save_file({name: value.float().contiguous() for name, value in golden.items()}, os.path.join(FOLDER, "golden.safetensors"))
save_file({"encoder": short.contiguous()}, os.path.join(FOLDER, "golden_short.safetensors"))


def write(name, value):
    with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


kept = ["vocab_size", "num_mel_bins", "d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads",
        "encoder_ffn_dim", "decoder_ffn_dim", "max_source_positions", "max_target_positions", "activation_function", "scale_embedding",
        "eos_token_id", "decoder_start_token_id"]  # fmt: skip
write("config.json", {"model_type": "whisper", **{name: getattr(config, name) for name in kept}})
write("generation_config.json", {
    "eos_token_id": EOS, "decoder_start_token_id": START, "is_multilingual": True, "lang_to_id": {"<|en|>": EN, "<|de|>": DE},
    "task_to_id": {"transcribe": TRANSCRIBE}, "no_timestamps_token_id": NO_TIMESTAMPS, "suppress_tokens": list(range(EOS, NO_TIMESTAMPS)), "begin_suppress_tokens": [],
})  # fmt: skip
write("preprocessor_config.json", {"feature_size": 26, "sampling_rate": 16000, "n_fft": 400, "hop_length": 160, "chunk_length": 1.5})
write("golden.json", {
    "made_by": f"test/tools/dump_whisper.py, torch {torch.__version__}, transformers {transformers.__version__}, seed {SEED}",
    "forced": forced, "greedy": ids[4:], "greedy_timestamps": timed[3:], "timestamp_margins": [round(m, 5) for m in timed_margins],
    "language": language, "no_speech_logprob": no_speech, "smallest_margin": min(margins), "margins": [round(m, 5) for m in margins],
})  # fmt: skip
print("timed", timed[3:], min(timed_margins))
print("language", language, no_speech)
print("smallest margin", min(margins), "distinct tokens", len(set(ids[4:])))
print("bytes", sum(os.path.getsize(os.path.join(FOLDER, name)) for name in os.listdir(FOLDER)))
