"""Writes test/fixtures/config-fields.json: what transformers makes of config.json, for every model of test/fixtures/llama-tiny-random.

    python test/tools/dump_config_fields.py [NAME...]  all models, or some, whose lines are written anew

Needs torch and transformers; for some models alone, the version of transformers that the file names. For each model:

* `reads`: the fields that the model's code reads while it is made and computes a prompt
* `absent`: for each field of the file, what transformers changes where the field is not there; null where it refuses
* `ropes`: other ways to say how positions are rotated, with the frequencies that come of it and what rotated queries and keys are multiplied with, by kind of layer
"""
import copy
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
MODELS = FIXTURES / "llama-tiny-random"
# Files of transformers that compute; all others only carry the configuration about.
COMPUTING = ("modeling_", "masking_utils", "cache_utils")
# What says nothing of the model: versions, types of stored numbers, and fields that only other files are named by.
LABELS = {"architectures", "model_type", "transformers_version", "dtype", "quantization_config"}

YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=32)
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)
NO_ROPE = dict(rope_parameters=None)
LONG = dict(short_factor=[1.0, 1.1, 1.2, 1.3, 1.4], long_factor=[2.0, 3.0, 4.0, 5.0, 6.0])
# Fields that are put in the place of a file's own; None takes one away.
ROPES = {
    "llama": [
        dict(NO_ROPE),
        dict(NO_ROPE, rope_theta=7000.0),
        dict(NO_ROPE, rope_theta=7000.0, rope_scaling=dict(type="linear", factor=3.0)),
        dict(NO_ROPE, rope_scaling=dict(rope_type="dynamic", factor=2.0)),
        dict(rope_parameters=dict(rope_type="linear", factor=3.0)),
        dict(rope_parameters=dict(rope_type="linear", factor=3.0), rope_theta=7000.0),
        dict(rope_parameters=dict(LLAMA3, original_max_position_embeddings=64)),
        dict(rope_parameters=LLAMA3),
        dict(rope_parameters=dict(LLAMA3, original_max_position_embeddings=64), original_max_position_embeddings=128),
        dict(rope_parameters=YARN),
        dict(rope_parameters=YARN, original_max_position_embeddings=128),
        dict(rope_parameters={key: value for key, value in YARN.items() if not key.startswith("original")}),
        dict(rope_parameters=dict(YARN, attention_factor=1.5, beta_fast=None, beta_slow=None)),
        dict(rope_parameters=dict(YARN, mscale=1.0, mscale_all_dim=0.5, beta_fast=16.0, beta_slow=2.0)),
        dict(rope_parameters=dict(YARN, mscale=1.0, truncate=False)),
        dict(rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, original_max_position_embeddings=32, short_factor=[1.5] * 8, long_factor=[3.0] * 8)),
        dict(rope_parameters=dict(rope_type="proportional", rope_theta=10000.0, partial_rotary_factor=0.5)),
    ],
    "smollm3": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "mistral": [dict(NO_ROPE), dict(rope_parameters=YARN)],
    "qwen3": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=1000000.0, rope_scaling=dict(YARN, rope_theta=1000000.0))],
    "granite": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0)],
    "granitemoehybrid": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=YARN), dict(NO_ROPE, rope_theta=7000.0, rope_scaling=None)],
    "olmo2": [dict(NO_ROPE), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "olmo3": [
        # Not rope_theta alone: transformers 5 gives it to layers that see everything and forgets the others, unlike the transformers 4 of such files.
        dict(NO_ROPE),
        dict(NO_ROPE, rope_scaling=dict(YARN, rope_theta=500000.0)),
        dict(rope_parameters=dict(full_attention=dict(rope_type="linear", factor=2.0))),
        dict(rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=7000.0))),
    ],
    "gemma2": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "gemma3": [
        dict(NO_ROPE),
        dict(NO_ROPE, rope_theta=2000000.0, rope_local_base_freq=5000.0),
        dict(NO_ROPE, rope_scaling=dict(rope_type="linear", factor=8.0)),
        dict(rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0))),
        dict(rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=7000.0))),
    ],
    "gemma3n": [
        dict(NO_ROPE),
        dict(NO_ROPE, rope_theta=2000000.0, rope_local_base_freq=5000.0),
        dict(NO_ROPE, rope_scaling=dict(rope_type="linear", factor=8.0)),
        dict(rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0))),
    ],
    "gemma4": [
        dict(NO_ROPE),
        dict(rope_parameters=dict(full_attention=dict(rope_type="linear", factor=2.0, rope_theta=7000.0), sliding_attention=dict(rope_type="default", rope_theta=6000.0))),
        dict(rope_parameters=dict(full_attention=dict(rope_type="proportional", rope_theta=7000.0), sliding_attention=dict(rope_type="default", rope_theta=6000.0))),
    ],
    "qwen3_5": [
        dict(NO_ROPE),
        dict(NO_ROPE, rope_theta=7000.0),
        dict(NO_ROPE, rope_theta=7000.0, partial_rotary_factor=0.5),
        dict(rope_parameters=dict(rope_type="default", rope_theta=7000.0)),
        dict(rope_parameters=dict(rope_type="default", rope_theta=7000.0), partial_rotary_factor=0.5),
        dict(rope_parameters=dict(YARN, partial_rotary_factor=0.5)),
    ],
    "qwen3_moe": [dict(NO_ROPE), dict(rope_parameters=YARN)],
    "gemma": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0)],
    "mixtral": [dict(NO_ROPE), dict(rope_parameters=YARN)],
    "granitemoe": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0)],
    "olmoe": [dict(NO_ROPE), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    # Not rope_theta alone: transformers 5 takes 12,000,000 whatever it says, unlike the transformers 4 of such files.
    "apertus": [
        dict(NO_ROPE),
        dict(NO_ROPE, rope_theta=7000.0, rope_scaling=dict(LLAMA3, rope_theta=7000.0, original_max_position_embeddings=64)),
        dict(rope_parameters=dict(rope_type="default", rope_theta=7000.0)),
    ],
    "flex_olmo": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "lfm2": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "lfm2_moe": [dict(NO_ROPE), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "gpt_oss": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=dict(YARN, rope_theta=150000.0)), dict(NO_ROPE, rope_scaling=dict(rope_type="yarn", factor=4.0))],
    "ministral3": [dict(NO_ROPE), dict(rope_parameters=dict(YARN, type="yarn", mscale=1.0, mscale_all_dim=1.0))],
    "cohere": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "cohere2": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0)],
    "ernie4_5": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "ernie4_5_moe": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "hunyuan_v1_dense": [
        dict(NO_ROPE),
        dict(NO_ROPE, rope_theta=7000.0, rope_scaling=dict(type="dynamic", factor=1.0, alpha=1000.0)),
        dict(rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0)),
        dict(rope_parameters=dict(rope_type="linear", factor=2.0)),
    ],
    "hunyuan_v1_moe": [
        dict(NO_ROPE),
        dict(NO_ROPE, rope_theta=7000.0, rope_scaling=dict(type="dynamic", factor=1.0, alpha=1000.0)),
        dict(rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0)),
    ],
    "minimax_m2": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0, rotary_dim=4), dict(rope_parameters=dict(YARN, partial_rotary_factor=0.5))],
    "dots1": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=YARN)],
    "seed_oss": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=YARN)],
    "glm": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0, partial_rotary_factor=0.25), dict(rope_parameters=dict(rope_type="default", rope_theta=7000.0))],
    "glm4": [dict(NO_ROPE), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "exaone4": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "starcoder2": [dict(NO_ROPE), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "stablelm": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0, partial_rotary_factor=0.5), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    "falcon_h1": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=YARN)],
    "deepseek_v2": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=dict(YARN, mscale=0.707, mscale_all_dim=0.707))],
    "deepseek_v3": [
        dict(NO_ROPE),
        dict(NO_ROPE, rope_theta=7000.0, rope_scaling=dict(type="yarn", factor=4, original_max_position_embeddings=32, mscale=1.0, mscale_all_dim=1.0)),
        dict(rope_parameters=dict(YARN, mscale=1.0, mscale_all_dim=0.5)),
    ],
    "minicpm3": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=YARN)],
    "glm4_moe_lite": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=YARN)],
    "nemotron": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0, partial_rotary_factor=0.25)],
    "gpt_neox": [
        dict(NO_ROPE),
        dict(NO_ROPE, rotary_emb_base=7000.0, rotary_pct=0.5),
        dict(NO_ROPE, rotary_pct=1.0, rope_scaling=dict(type="linear", factor=2.0)),
        dict(rope_parameters=dict(rope_type="linear", factor=2.0)),
    ],
    "phi": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0, partial_rotary_factor=0.5), dict(rope_parameters=dict(rope_type="linear", factor=2.0))],
    # Not LongRoPE: transformers infers a factor that its code does not use, but short_mscale.
    "phimoe": [dict(NO_ROPE), dict(NO_ROPE, rope_theta=7000.0), dict(rope_parameters=dict(rope_type="default", rope_theta=7000.0))],
    "phi3": [
        dict(NO_ROPE),
        dict(NO_ROPE, rope_theta=7000.0, partial_rotary_factor=0.625),
        dict(NO_ROPE, partial_rotary_factor=0.625, rope_scaling=dict(type="longrope", **LONG)),
        dict(rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.625, attention_factor=1.25, **LONG)),
    ],
}


def special_float(fields):
    """An infinite number, which transformers writes as an object."""
    return float(fields["__float__"]) if fields.keys() == {"__float__"} else fields


def written(settings):
    """A configuration as transformers keeps it, without labels."""
    config = AutoConfig.for_model(**copy.deepcopy(settings))
    return {key: value for key, value in json.loads(config.to_json_string(use_diff=False)).items() if key not in LABELS}


def made(settings):
    """The configuration of the text part, and a model of it."""
    config = AutoConfig.for_model(**copy.deepcopy(settings))
    return AutoModelForCausalLM.from_config(config, attn_implementation="eager", experts_implementation="eager").eval()


def fields_read(settings):
    kind = type(AutoConfig.for_model(**copy.deepcopy(settings)).get_text_config())
    reads, original = set(), kind.__getattribute__

    def recording(self, name):
        file = os.path.basename(sys._getframe(1).f_code.co_filename)
        if not name.startswith("_") and file.startswith(COMPUTING) and file != "modeling_utils.py":
            reads.add(name)
        return original(self, name)

    kind.__getattribute__ = recording
    try:
        model = made(settings)
        with torch.no_grad():
            model(torch.arange(3, 43)[None], use_cache=True)
    finally:
        kind.__getattribute__ = original
    # What a class has of its own is no field, except layers of their own, which a property hands out.
    return sorted(name for name in reads if name in kind.__dataclass_fields__ or not hasattr(kind, name) or name == "per_layer_config")


def changes_without(settings, field, whole):
    """What transformers has instead where the file lacks a field."""
    rest = {key: value for key, value in settings.items() if key != field}
    try:
        without = written(rest)
    except Exception:
        return None
    return {key: without.get(key) for key in sorted(whole.keys() | without.keys()) if without.get(key) != whole.get(key)}


def rotations(settings):
    """By kind of layer, and `all` of models that have one rotation: the frequencies, and what is multiplied with."""
    try:
        model = made(settings).base_model
    except Exception:
        return None
    rotary = getattr(model, "rotary_emb", None) or model.pos_emb
    found = {}
    for name, frequencies in rotary.named_buffers():
        if name.endswith("inv_freq") and "original" not in name:
            kind = name.removesuffix("inv_freq").rstrip("_") or "all"
            scaling = getattr(rotary, "attention_scaling" if kind == "all" else f"{kind}_attention_scaling")
            found[kind] = dict(scaling=float(scaling), frequencies=[float(f"{value:.8g}") for value in frequencies.tolist()])
    return found


def main():
    written_before = json.loads((FIXTURES / "config-fields.json").read_text())
    chosen = sys.argv[1:]
    if chosen and written_before["transformers"] != transformers.__version__:
        sys.exit(f"config-fields.json is of transformers {written_before['transformers']}, this is {transformers.__version__}: write all models")
    found = dict(written_before["models"]) if chosen else {}
    for folder in sorted(path for path in MODELS.iterdir() if not chosen or path.name in chosen):
        settings = json.loads((folder / "config.json").read_text(), object_hook=special_float)
        settings = {key: value for key, value in settings.items() if key not in LABELS - {"model_type"}}
        whole = written(settings)
        absent = {field: changes_without(settings, field, whole) for field in settings if field != "model_type"}
        ropes = []
        for change in ROPES.get(folder.name, []):
            changed = {**settings, **change}
            ropes.append(dict(fields=change, rotations=rotations({key: value for key, value in changed.items() if value is not None})))
        found[folder.name] = dict(reads=fields_read(settings), absent=absent, ropes=ropes)
        print(folder.name, len(found[folder.name]["reads"]), "fields", len(ropes), "ropes")
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(found.items())]
    (FIXTURES / "config-fields.json").write_text('{"transformers": %s,\n"models": {\n%s\n}}\n' % (json.dumps(transformers.__version__), ",\n".join(lines)))


if __name__ == "__main__":
    main()
