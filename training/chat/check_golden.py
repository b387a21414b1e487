#!/usr/bin/env python3
"""Recomputes the golden fixture with a separate numpy forward pass, written after HF's LlamaForCausalLM (rotate_half, repeat_kv).
python3 check_golden.py OUT/model OUT/golden.json"""

import json, struct, sys
import numpy as np

folder, gold = sys.argv[1:3]
c = json.load(open(folder + '/config.json'))
d = open(folder + '/model.safetensors', 'rb').read()
n = struct.unpack('<Q', d[:8])[0]
head = json.loads(d[8:8 + n])
W = {
    k: np.frombuffer(d[8 + n + v['data_offsets'][0]:8 + n + v['data_offsets'][1]], '<f2').reshape(v['shape']).astype(np.float32)
    for k, v in head.items() if k != '__metadata__'
}
H, KV, hd = c['num_attention_heads'], c['num_key_value_heads'], c['head_dim']


def norm(x, w):
    return w * (x / np.sqrt((x * x).mean(-1, keepdims=True) + c['rms_norm_eps']))


def rot(x):
    a, b = np.split(x, 2, -1)
    return np.concatenate((-b, a), -1)


def forward(ids):
    T = len(ids)
    x = W['model.embed_tokens.weight'][ids]
    inv = 1.0 / c['rope_theta']**(np.arange(0, hd, 2, dtype=np.float32) / hd)
    f = np.outer(np.arange(T, dtype=np.float32), inv)
    e = np.concatenate((f, f), -1)
    cos, sin = np.cos(e).astype(np.float32), np.sin(e).astype(np.float32)
    for i in range(c['num_hidden_layers']):
        p = f'model.layers.{i}.'
        w = lambda k: W[p + k + '.weight']
        h = norm(x, w('input_layernorm'))
        sp = lambda k, m: (h @ w('self_attn.' + k).T).reshape(T, m, hd).transpose(1, 0, 2)
        q, k, v = sp('q_proj', H), sp('k_proj', KV), sp('v_proj', KV)
        q = q * cos + rot(q) * sin
        k = k * cos + rot(k) * sin
        k, v = np.repeat(k, H // KV, 0), np.repeat(v, H // KV, 0)
        s = q @ k.transpose(0, 2, 1) / np.sqrt(hd) + np.triu(np.full((T, T), -1e9, np.float32), 1)
        s = np.exp(s - s.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)
        x = x + (s @ v).transpose(1, 0, 2).reshape(T, H * hd) @ w('self_attn.o_proj').T
        h = norm(x, w('post_attention_layernorm'))
        g = h @ w('mlp.gate_proj').T
        x = x + (g / (1 + np.exp(-g)) * (h @ w('mlp.up_proj').T)) @ w('mlp.down_proj').T
    return norm(x, W['model.norm.weight']) @ W['model.embed_tokens.weight'].T


G = json.load(open(gold))
ids = list(G['prompt_ids'])
lg = forward(ids)[-1]
print('largest logit difference', float(np.abs(lg - np.array(G['logits_last'], np.float32)).max()), 'of range', float(lg.max() - lg.min()))
out = []
for _ in range(len(G['greedy_ids'])):
    t = int(forward(ids + out)[-1].argmax())
    out.append(t)
print('greedy tokens equal:', out == G['greedy_ids'])
sys.exit(out != G['greedy_ids'])
