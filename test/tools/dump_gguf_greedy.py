"""Writes the greedy tokens that transformers gives in f32 on the dequantised weights of a GGUF file, for five prompts:

  python test/tools/dump_gguf_greedy.py FILE.gguf OUT.json [TOKENS]    (needs gguf, torch, transformers; made with 0.19.0, 2.15.0, 5.23.0)

Prompts' tokens are transformers' own, made from the file's tokenizer. `gaps` are the differences of the two best log probabilities. The architecture
is llama, qwen2, qwen3 or gemma3.
"""
import json
import sys
from pathlib import Path

import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n",
    "Water boils at 100 degrees Celsius because",
    "1, 2, 3, 4, 5,",
]
TOP = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}
PARTS = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
FOUR_NORMS = {
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
}


def load(path: str, rope: dict | None = None):
    """The model of a file in f32; `rope` overrides its rope_parameters."""
    reader = GGUFReader(path)
    value = lambda key, default=None: reader.fields[key].contents() if key in reader.fields else default
    arch = value("general.architecture")
    get = lambda key, default=None: value(f"{arch}.{key}", default)
    shapes = {t.name: [int(n) for n in reversed(t.shape)] for t in reader.tensors}
    heads, kv = get("attention.head_count"), get("attention.head_count_kv")
    gemma = arch == "gemma3"
    rope = rope or {"rope_type": "default", "rope_theta": get("rope.freq_base", 10000.0)}
    own = {}
    if gemma:
        own = dict(sliding_window=get("attention.sliding_window"), query_pre_attn_scalar=get("attention.key_length"))
        rope = {"full_attention": rope, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
    config = AutoConfig.for_model(
        "gemma3_text" if gemma else arch, **own, hidden_size=get("embedding_length"), intermediate_size=get("feed_forward_length"), num_hidden_layers=get("block_count"),
        num_attention_heads=heads, num_key_value_heads=kv, head_dim=get("attention.key_length", get("embedding_length") // heads),
        rms_norm_eps=get("attention.layer_norm_rms_epsilon"), max_position_embeddings=get("context_length"), vocab_size=shapes["token_embd.weight"][0],
        tie_word_embeddings="output.weight" not in shapes, rope_parameters=rope,
    )
    state = {}
    for tensor in reader.tensors:
        data = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy()).float().reshape(shapes[tensor.name])
        if gemma and "norm" in tensor.name:
            data = data - 1
        if tensor.name in TOP:
            state[TOP[tensor.name]] = data
            continue
        if tensor.name == "rope_freqs.weight":
            continue
        _, layer, part, kind = tensor.name.split(".")
        if arch == "llama" and part in ("attn_q", "attn_k"):
            n = heads if part == "attn_q" else kv
            data = data.reshape(n, data.shape[0] // n // 2, 2, *data.shape[1:]).transpose(1, 2).reshape(data.shape)
        name = (FOUR_NORMS if gemma else {}).get(part) or PARTS[part]
        state[f"model.layers.{layer}.{name}.{kind}"] = data
    model = AutoModelForCausalLM.from_config(config).float().eval()
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    return model


def main() -> None:
    path, out, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 64
    tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    model = load(str(path))
    # All prompts at once, padded at the left: a step reads the weights once.
    prompts = [tokenizer(prompt).input_ids for prompt in PROMPTS]
    width = max(map(len, prompts))
    batch = torch.tensor([[0] * (width - len(ids)) + ids for ids in prompts])
    mask = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts])
    model.generation_config.eos_token_id = None
    with torch.no_grad():
        answer = model.generate(
            input_ids=batch, attention_mask=mask, max_new_tokens=count, do_sample=False, pad_token_id=0, output_logits=True, return_dict_in_generate=True
        )
    best = torch.log_softmax(torch.stack(answer.logits, 1).double(), -1).topk(2)
    cases = []
    for row, prompt in enumerate(PROMPTS):
        ids = best.indices[row, :, 0].tolist()
        gaps = [round(gap, 5) for gap in (best.values[row, :, 0] - best.values[row, :, 1]).tolist()]
        cases.append({"prompt": prompt, "prompt_ids": prompts[row], "ids": ids, "gaps": gaps})
        print(repr(tokenizer.decode(ids)), min(gaps), flush=True)
    lines = ",\n".join("    " + json.dumps(case) for case in cases)
    Path(out).write_text(f'{{\n  "file": {json.dumps(path.name)},\n  "cases": [\n{lines}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
