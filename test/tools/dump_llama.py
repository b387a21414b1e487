"""Writes test/fixtures/llama-tiny-random: tiny random decoders and what PyTorch computes with them.

    python test/tools/dump_llama.py            all tiny models
    python test/tools/dump_llama.py FOLDER     golden tokens of a converted folder (test/tools/convert-llama2c.ts) to stdout

Needs torch, transformers and safetensors. Weights are random in f16 (so are the files), arithmetic is f32.
"""
import hashlib
import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

OUT = Path(__file__).resolve().parent.parent / "fixtures" / "llama-tiny-random"
VOCABULARY = 160
PROMPT = 37
GENERATED = 64

COMMON = dict(
    vocab_size=VOCABULARY, num_hidden_layers=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0,
)
MODELS = {
    # Heads share keys in pairs, tied head, Llama 3.1's position scaling with an original context the prompt exceeds.
    "llama": dict(
        COMMON, model_type="llama", hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=16, intermediate_size=100,
        tie_word_embeddings=True, rms_norm_eps=1e-5,
        rope_parameters=dict(
            rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32,
        ),
    ),
    # Three key/value heads, a head dim that is not hidden / heads, a head of its own, biases, linear scaling.
    "llama-odd": dict(
        COMMON, model_type="llama", hidden_size=60, num_attention_heads=6, num_key_value_heads=3, head_dim=24, intermediate_size=84,
        tie_word_embeddings=False, attention_bias=True, rope_parameters=dict(rope_type="linear", rope_theta=5000.0, factor=2.0),
    ),
    "qwen2": dict(
        COMMON, model_type="qwen2", hidden_size=56, num_attention_heads=7, num_key_value_heads=1, intermediate_size=64,
        tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
    ),
    "qwen3": dict(
        COMMON, model_type="qwen3", hidden_size=48, num_attention_heads=4, num_key_value_heads=4, head_dim=16, intermediate_size=64,
        tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
    ),
    # Squared ReLU without a gate; a head dim of 48, five query heads on one of keys.
    "arcee": dict(
        COMMON, model_type="arcee", hidden_size=40, num_attention_heads=5, num_key_value_heads=1, head_dim=48, intermediate_size=72,
        tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
}


def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = torch.randn(parameter.shape, generator=generator)
            # Large enough that next tokens differ and the two best are apart.
            scale = 0.3 if parameter.ndim == 1 else 2.5 / parameter.shape[1] ** 0.5
            parameter.copy_((1 + 0.3 * value if "norm" in name else scale * value).half().float())


def greedy(model, prompt, count):
    """Greedy tokens, and how far the second best logit was at the closest step."""
    tokens, margin = [], float("inf")
    with torch.no_grad():
        for _ in range(count):
            logits = model(torch.tensor([prompt + tokens])).logits[0, -1]
            best = logits.topk(2).values
            margin = min(margin, float(best[0] - best[1]))
            tokens.append(int(logits.argmax()))
    return tokens, margin


def dump(name, settings, seed):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    config = AutoConfig.for_model(**settings)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    randomise(model, seed)
    stages = {}
    hooks = [model.model.embed_tokens.register_forward_hook(lambda m, i, o: stages.update({"embedding": o[0]}))]
    for index, layer in enumerate(model.model.layers):
        hook = lambda m, i, o, index=index: stages.update({f"layer {index}": (o if torch.is_tensor(o) else o[0]).reshape(PROMPT, -1)})
        hooks.append(layer.register_forward_hook(hook))
    prompt = torch.randint(3, VOCABULARY, (PROMPT,), generator=torch.Generator().manual_seed(seed + 1)).tolist()
    with torch.no_grad():
        stages["logits"] = model(torch.tensor([prompt])).logits[0]
    for hook in hooks:
        hook.remove()
    tokens, margin = greedy(model, prompt, GENERATED)
    save_file({key: value.contiguous().clone() for key, value in stages.items()}, folder / "golden.safetensors")
    about = dict(prompt=prompt, greedy=tokens, margin=margin, transformers=transformers.__version__, torch=torch.__version__, script=script_hash())
    (folder / "golden.json").write_text(json.dumps(about) + "\n")
    model.half().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    print(name, "margin", margin, "tokens", tokens[:12])


def script_hash():
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]


def dump_folder(folder, prompt, count):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    tokens, margin = greedy(model, prompt, count)
    print(json.dumps(dict(prompt=prompt, greedy=tokens, margin=margin, transformers=transformers.__version__, script=script_hash())))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        dump_folder(sys.argv[1], [int(id) for id in sys.argv[2].split(",")], 96)
    else:
        for number, (name, settings) in enumerate(MODELS.items()):
            dump(name, settings, 100 * number + 7)
