"""Writes test/fixtures/lora-tiny-random: tiny random LoRA adapters of PEFT, and what PyTorch computes with them.

    python test/tools/dump_lora.py [NAME...]  all adapters, or some

Needs torch, transformers, peft and safetensors. The base models are those of test/fixtures/llama-tiny-random; arithmetic is f32.
"""
import json
import shutil
import sys
from pathlib import Path

import peft
import torch
import transformers
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
OUT = FIXTURES / "lora-tiny-random"
GENERATED = 64
# Last rows of the prompt whose logits are kept.
ROWS = 8
# Least distance of a greedy token's logit to the next: far above the rounding of f32.
LEAST_MARGIN = 2e-3

# By name: the base model, and the adapter's config.
ADAPTERS = {
    # The usual targets, all of one rank.
    "queries-values": ("llama", dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"])),
    # Every projection, of ranks and scales that differ.
    "all-linear": (
        "llama",
        dict(
            r=6, lora_alpha=5, use_rslora=True, target_modules="all-linear", rank_pattern={"down_proj": 3, "layers.1.self_attn.k_proj": 9},
            alpha_pattern={"o_proj": 11},
        ),
    ),
    # One layer's keys and MLP.
    "one-layer": ("llama", dict(r=2, lora_alpha=4, target_modules=["k_proj", "up_proj"], layers_to_transform=[1])),
    # Norms of queries and keys behind the projections.
    "qwen3": ("qwen3", dict(r=3, lora_alpha=6, target_modules=r".*\.(q_proj|k_proj|o_proj|gate_proj)")),
    # Projections that the checkpoint stacks in one tensor, with a part of a head's channels rotated.
    "phi3": ("phi3", dict(r=4, lora_alpha=6, target_modules=["qkv_proj", "gate_up_proj", "down_proj"])),
    # Attention beside experts.
    "mixtral": ("mixtral", dict(r=3, lora_alpha=6, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])),
    # Norms behind the halves, sliding windows.
    "gemma2": ("gemma2", dict(r=4, lora_alpha=4, target_modules=["q_proj", "v_proj", "o_proj", "down_proj"])),
}


def adapted(base, options, seed):
    """The base model with a random adapter; B is not zero, as it would be before any training."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(FIXTURES / "llama-tiny-random" / base, dtype=torch.float32, attn_implementation="eager")
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **options))
    for name, weight in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight, std=0.4 if "lora_A" in name else 0.25)
    return model.eval()


@torch.no_grad()
def greedy(model, prompt):
    """64 greedy tokens, and the least distance of one's logit to the next largest."""
    tokens, margin = list(prompt), float("inf")
    for _ in range(GENERATED):
        best = model(torch.tensor([tokens])).logits[0, -1].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        tokens.append(best.indices[0].item())
    return tokens[len(prompt):], margin


@torch.no_grad()
def dump(name, base, options):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    prompt = json.loads((FIXTURES / "llama-tiny-random" / base / "golden.json").read_text())["prompt"]
    for seed in range(100):
        model = adapted(base, options, seed)
        tokens, margin = greedy(model, prompt)
        if margin >= LEAST_MARGIN:
            break
    else:
        raise SystemExit(f"{name}: no seed leaves greedy tokens that rounding cannot change")
    with model.disable_adapter():
        plain, _ = greedy(model, prompt)
    assert plain != tokens, f"{name}: the adapter changes nothing"
    logits = model(torch.tensor([prompt])).logits[0, -ROWS:]
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = base
    config["target_modules"] = sorted(config["target_modules"]) if isinstance(config["target_modules"], list) else config["target_modules"]
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    (folder / "adapter_model.safetensors").chmod(0o644)
    save_file({"logits": logits.contiguous()}, folder / "golden.safetensors")
    (folder / "golden.safetensors").chmod(0o644)
    about = dict(base=base, prompt=prompt, greedy=tokens, margin=margin, seed=seed, peft=peft.__version__, transformers=transformers.__version__, torch=torch.__version__, script="test/tools/dump_lora.py")
    (folder / "golden.json").write_text(json.dumps(about) + "\n")
    print(name, f"margin {margin:.4f}", f"seed {seed}", sum(file.stat().st_size for file in folder.iterdir()), "bytes")


for name, (base, options) in ADAPTERS.items():
    if not sys.argv[1:] or name in sys.argv[1:]:
        dump(name, base, options)
