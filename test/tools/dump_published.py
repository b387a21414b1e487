"""Writes a checkpoint of a published shape with random weights, and what PyTorch computes with it, into a folder outside the repository.

    python test/tools/dump_published.py NAME FOLDER    then: npm run bench -- published FOLDER

Needs torch, transformers and safetensors, for kokoro-82m also the `kokoro` package from PyPI (modules.py and istftnet.py) and onnx, and six bytes of memory a
weight. Weights are random in f16 (so is the file), arithmetic is f32.
"""
import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

PROMPT = 9
GENERATED = 6
# Values made at a time: what is drawn and rounded needs room beside the weights.
CHUNK = 2**24

GEMMA3 = dict(
    model_type="gemma3_text", vocab_size=262144, num_attention_heads=4, num_key_value_heads=1, head_dim=256, query_pre_attn_scalar=256, sliding_window=512,
    max_position_embeddings=32768, tie_word_embeddings=True,
)
# As their config.json says on the hub.
SHAPES = {
    "qwen3_5-0.8b": dict(
        model_type="qwen3_5_text", vocab_size=248320, hidden_size=1024, num_hidden_layers=24, num_attention_heads=8, num_key_value_heads=2, head_dim=256,
        intermediate_size=3584, linear_num_key_heads=16, linear_num_value_heads=16, linear_key_head_dim=128, linear_value_head_dim=128, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=10000000.0, partial_rotary_factor=0.25, mrope_section=[11, 11, 10], mrope_interleaved=True),
    ),
    "gemma3-270m": dict(GEMMA3, hidden_size=640, num_hidden_layers=18, intermediate_size=2048),
    "gemma3-1b": dict(GEMMA3, hidden_size=1152, num_hidden_layers=26, intermediate_size=6912),
    "lfm2-350m": dict(
        model_type="lfm2", vocab_size=65536, hidden_size=1024, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=8, intermediate_size=6656,
        block_multiple_of=256, full_attn_idxs=[2, 5, 8, 10, 12, 14], tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
    ),
}

WHISPER = dict(eos_token_id=50257, bos_token_id=50257, pad_token_id=50257, decoder_start_token_id=50258)
WHISPERS = {
    "whisper-small": dict(
        WHISPER, vocab_size=51865, num_mel_bins=80, d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12,
        encoder_ffn_dim=3072, decoder_ffn_dim=3072,
    ),
    "whisper-turbo-4": dict(
        WHISPER, vocab_size=51866, num_mel_bins=128, d_model=1280, encoder_layers=4, decoder_layers=4, encoder_attention_heads=20, decoder_attention_heads=20,
        encoder_ffn_dim=5120, decoder_ffn_dim=5120,
    ),
}
SECONDS = 4

KOKORO = "kokoro-82m"
SENTENCE = "hello, brave world."


def randomise(model, seed):
    """Matrices that keep the size of what they multiply, vectors near what they are at first."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            for part in parameter.view(-1).split(CHUNK):
                value = torch.randn(part.shape, generator=generator)
                if parameter.ndim == 1:
                    value = part + 0.1 * value
                else:
                    value *= 0.05 if "embed" in name else parameter[0].numel() ** -0.5
                part.copy_(value.half())


def write(folder, files):
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value) + "\n")


def dump_whisper(name, folder):
    settings = WHISPERS[name]
    config = WhisperConfig(**settings, suppress_tokens=[], begin_suppress_tokens=[], forced_decoder_ids=None, attn_implementation="eager")
    model = WhisperForConditionalGeneration(config).eval()
    randomise(model, 7)
    later = settings["vocab_size"] - 51865
    transcribe, no_times = 50359 + later, 50363 + later
    forced = [50258, 50259, transcribe, no_times] + torch.randint(0, 50000, (4,), generator=torch.Generator().manual_seed(8)).tolist()
    time = np.arange(SECONDS * 16000) / 16000
    audio = (0.3 * np.sin(2 * np.pi * (200 + 300 * time) * time) * (time % 0.4 < 0.3)).astype(np.float32)
    features = WhisperFeatureExtractor(feature_size=settings["num_mel_bins"])(audio, sampling_rate=16000, return_tensors="pt").input_features
    with torch.no_grad():
        logits = model(features, decoder_input_ids=torch.tensor([forced])).logits[0]
    folder.mkdir(parents=True, exist_ok=True)
    save_file({"audio": torch.from_numpy(audio), "logits": logits.contiguous()}, folder / "golden.safetensors")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    model.half().save_pretrained(folder)
    write(folder, {
        "golden.json": dict(name=name, prompt=forced, greedy=[], parameters=parameters, transformers=transformers.__version__, torch=torch.__version__),
        "generation_config.json": dict(
            eos_token_id=50257, decoder_start_token_id=50258, is_multilingual=True, lang_to_id={"<|en|>": 50259}, task_to_id=dict(transcribe=transcribe),
            no_timestamps_token_id=no_times, suppress_tokens=[], begin_suppress_tokens=[],
        ),
        "preprocessor_config.json": dict(feature_size=settings["num_mel_bins"], sampling_rate=16000, n_fft=400, hop_length=160, chunk_length=30),
    })  # fmt: skip
    print(name, parameters, "parameters")


def dump_kokoro(name, folder):
    """Everything but the noise, which is none, and the sum of the source's phases, which is in f64."""
    from check_checkpoints import ReferenceKokoro
    from dump_kokoro import ANGLE_WEIGHT, randomise as randomise_kokoro
    from kokoro_from_onnx import CONFIG

    vocabulary = {letter: i + 1 for i, letter in enumerate(" ,.abcdefghijklmnopqrstuvwxyz")}
    model = ReferenceKokoro(CONFIG).eval()
    randomise_kokoro(model)
    with torch.no_grad():
        model.predictor.duration_proj.linear_layer.bias.sub_(2)
        for parameter in model.parameters():
            parameter.copy_(parameter.half())
    model.use_double_source()
    har = {}
    model.decoder.generator.noise_convs[0].register_forward_pre_hook(lambda _, args: har.update(har=args[0].detach().clone()))
    style = torch.randn(1, 2 * CONFIG["style_dim"], generator=torch.Generator().manual_seed(8))
    ids = torch.tensor([[0, *(vocabulary[letter] for letter in SENTENCE), 0]])
    stages = model.stages(ids, style, lambda shape: torch.zeros(shape, dtype=torch.float64))
    folder.mkdir(parents=True, exist_ok=True)
    golden = {key: stages[key] for key in ("duration", "F0", "N", "decoder_out", "har_source")}
    golden.update(har, waveform=stages["audio"], style=style)
    save_file({key: value.contiguous() for key, value in golden.items()}, folder / "golden.safetensors")
    weights = {key: value.half().contiguous() for key, value in model.state_dict().items() if "position_ids" not in key and "stft" not in key}
    save_file(weights, folder / "model.safetensors")
    parameters = sum(value.numel() for value in weights.values())
    frames = stages["pred_dur"].tolist()
    write(folder, {
        "golden.json": dict(name=name, prompt=ids[0].tolist(), frames=frames, greedy=[], parameters=parameters, transformers=transformers.__version__, torch=torch.__version__),
        "config.json": dict(CONFIG, vocab=vocabulary),
    })  # fmt: skip
    print(name, parameters, "parameters;", sum(frames), "frames; angles by", ANGLE_WEIGHT)
    for key, value in golden.items():
        print(f"{key:12} {str(list(value.shape)):20} rms {value.float().pow(2).mean().sqrt():.4g}")


def dump_decoder(name, folder):
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**SHAPES[name]), attn_implementation="eager").eval()
    randomise(model, 7)
    vocabulary = SHAPES[name]["vocab_size"]
    prompt = torch.randint(3, vocabulary, (PROMPT,), generator=torch.Generator().manual_seed(8)).tolist()
    tokens = []
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0]
        best = logits[-1]
        while len(tokens) < GENERATED:
            tokens.append(int(best.argmax()))
            best = model(torch.tensor([prompt + tokens])).logits[0, -1]
    folder.mkdir(parents=True, exist_ok=True)
    save_file({"logits": logits.contiguous()}, folder / "golden.safetensors")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    about = dict(name=name, prompt=prompt, greedy=tokens, parameters=parameters, transformers=transformers.__version__, torch=torch.__version__)
    write(folder, {"golden.json": about})
    model.half().save_pretrained(folder, max_shard_size="8GB")
    print(name, parameters, "parameters; tokens", tokens)


if __name__ == "__main__":
    torch.set_num_threads(2)
    dump = dump_kokoro if sys.argv[1] == KOKORO else dump_whisper if sys.argv[1] in WHISPERS else dump_decoder
    dump(sys.argv[1], Path(sys.argv[2]))
