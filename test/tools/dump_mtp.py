"""Writes test/fixtures/mtp-tiny-random: tiny random Qwen3.5 checkpoints with the head that guesses (`mtp.*`), and what PyTorch computes with them.

    python test/tools/dump_mtp.py [NAME...]

Needs torch, transformers and safetensors. transformers leaves `mtp.*` out, so the head is put together here, of transformers' own decoder layer and norms, as
vLLM's Qwen3_5MultiTokenPredictor (vllm/model_executor/models/qwen3_5_mtp.py) and SGLang's (sglang/srt/models/qwen3_5_mtp.py) have it: the embedding's half of `fc`
comes first, the hidden state is what the model's last norm leaves, and of a guess that follows a guess what the head's own norm leaves.
Weights are random in f16 (so are the files), arithmetic is f32.
"""
import copy
import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.qwen3_5 import modeling_qwen3_5 as dense
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as experts

from dump_llama import MODELS, PROMPT, VOCABULARY, randomise

OUT = Path(__file__).resolve().parent.parent / "fixtures" / "mtp-tiny-random"
GUESSES = 3

# The parts of transformers that a head is made of, by the model's type.
PARTS = {
    "qwen3_5_text": (dense.Qwen3_5DecoderLayer, dense.Qwen3_5RMSNorm, dense.Qwen3_5TextRotaryEmbedding),
    "qwen3_5_moe_text": (experts.Qwen3_5MoeDecoderLayer, experts.Qwen3_5MoeRMSNorm, experts.Qwen3_5MoeTextRotaryEmbedding),
}
NAMES = ["qwen3_5-last", "qwen3_5_moe"]


class Head(torch.nn.Module):
    """Row t has the hidden state of position t and the token of position t + 1, and guesses the token of position t + 2."""

    def __init__(self, config):
        super().__init__()
        layer, norm, rotary = PARTS[config.model_type]
        own = copy.deepcopy(config)
        own.num_hidden_layers, own.layer_types = 1, ["full_attention"]
        self.config = own
        self.pre_fc_norm_embedding = norm(config.hidden_size, eps=config.rms_norm_eps)
        self.pre_fc_norm_hidden = norm(config.hidden_size, eps=config.rms_norm_eps)
        self.fc = torch.nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layers = torch.nn.ModuleList([layer(own, 0)])
        self.norm = norm(config.hidden_size, eps=config.rms_norm_eps)
        self.rotary = rotary(own)

    def forward(self, embeddings, hidden):
        """Of rows from position 0 on, each of which sees those before it."""
        rows = hidden.shape[1]
        x = self.fc(torch.cat([self.pre_fc_norm_embedding(embeddings), self.pre_fc_norm_hidden(hidden)], dim=-1))
        positions = torch.arange(rows)[None]
        mask = torch.full((rows, rows), float("-inf")).triu(1)[None, None]
        x = self.layers[0](x, position_embeddings=self.rotary(x, positions), attention_mask=mask, position_ids=positions)
        return self.norm(x[0] if isinstance(x, tuple) else x)


def guess(model, head, prompt, first):
    """Logits of guesses one after the other, the first of which follows the token `first` that the model gave."""
    hidden = model.model(torch.tensor([prompt])).last_hidden_state
    tokens, logits = prompt[1:] + [first], []
    for _ in range(GUESSES):
        out = head(model.model.embed_tokens(torch.tensor([tokens])), hidden)
        logits.append(model.lm_head(out[0, -1]))
        tokens = tokens + [int(logits[-1].argmax())]
        hidden = torch.cat([hidden, out[:, -1:]], dim=1)
    return torch.stack(logits)


def dump(name):
    settings = dict(MODELS[name], mtp_num_hidden_layers=1)
    seed = 10_000 + 100 * NAMES.index(name)
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    config = AutoConfig.for_model(**settings)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    randomise(model, seed)
    head = Head(model.config).eval()
    head.config._attn_implementation = "eager"
    randomise(head, seed + 1)
    prompt = torch.randint(3, VOCABULARY, (PROMPT,), generator=torch.Generator().manual_seed(seed + 2)).tolist()
    with torch.no_grad():
        ids = torch.tensor([prompt])
        hidden = model.model(ids).last_hidden_state
        first = int(model.lm_head(hidden[0, -1]).argmax())
        known = model.lm_head(head(model.model.embed_tokens(ids[:, 1:]), hidden[:, :-1])[0])
        guesses = guess(model, head, prompt, first)
    save_file({"known": known.contiguous(), "guesses": guesses.contiguous()}, folder / "golden.safetensors")
    about = dict(prompt=prompt, first=first, transformers=transformers.__version__, torch=torch.__version__)
    (folder / "golden.json").write_text(json.dumps(about) + "\n")
    model.half().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    stored = load_file(folder / "model.safetensors")
    # One by one, as transformers writes a model's.
    for key, value in head.half().state_dict().items():
        stored.update(unpacked(f"mtp.{key}", value.contiguous()))
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    print(name, "first", first, "guesses", guesses.argmax(-1).tolist())


def unpacked(name, value):
    """Experts one by one, as transformers writes a model's."""
    if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
        return {name: value}
    at, part = name.rsplit(".", 1)
    found = {}
    for number, matrix in enumerate(value):
        parts = zip(("gate_proj", "up_proj"), matrix.chunk(2)) if part == "gate_up_proj" else [("down_proj", matrix)]
        for own, values in parts:
            found[f"{at}.{number}.{own}.weight"] = values.contiguous().clone()
    return found


if __name__ == "__main__":
    for chosen in sys.argv[1:] or NAMES:
        dump(chosen)
