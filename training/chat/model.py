"""A small Llama-shaped model (RMSNorm, RoPE in the half-split HF form, grouped-query attention, SwiGLU, tied embeddings) with Hugging Face's
parameter names; its shape is the bundled model's."""

import json, math
import torch, torch.nn as nn, torch.nn.functional as F
import paths  # noqa: F401 (training/shared)
from safetensors.torch import load_file
from shared.work import MODELS
from tokenizer import EOT


def config(folder=MODELS + '/parley-chat'):
    return json.load(open(folder + '/config.json'))


def linear(n, m, std=0.02):
    layer = nn.Linear(n, m, bias=False)
    nn.init.normal_(layer.weight, std=std)
    return layer


def rope(x, cos, sin):
    """x (B, T, H, D), half-split"""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    def __init__(s, c):
        super().__init__()
        d, s.h, s.kv = c['hidden_size'], c['num_attention_heads'], c['num_key_value_heads']
        s.d = d // s.h
        s.q_proj, s.k_proj, s.v_proj = linear(d, s.h * s.d), linear(d, s.kv * s.d), linear(d, s.kv * s.d)
        s.o_proj = linear(s.h * s.d, d, 0.02 / math.sqrt(2 * c['num_hidden_layers']))

    def forward(s, x, cos, sin, mask):
        B, T, _ = x.shape
        q = rope(s.q_proj(x).view(B, T, s.h, s.d), cos, sin)
        k = rope(s.k_proj(x).view(B, T, s.kv, s.d), cos, sin)
        v = s.v_proj(x).view(B, T, s.kv, s.d).to(q.dtype)
        y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), attn_mask=mask, enable_gqa=True)
        return s.o_proj(y.transpose(1, 2).reshape(B, T, s.h * s.d))


class MLP(nn.Module):
    def __init__(s, c):
        super().__init__()
        d, i = c['hidden_size'], c['intermediate_size']
        s.gate_proj, s.up_proj = linear(d, i), linear(d, i)
        s.down_proj = linear(i, d, 0.02 / math.sqrt(2 * c['num_hidden_layers']))

    def forward(s, x):
        return s.down_proj(F.silu(s.gate_proj(x)) * s.up_proj(x))


class Block(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.self_attn, s.mlp = Attention(c), MLP(c)
        s.input_layernorm, s.post_attention_layernorm = (nn.RMSNorm(c['hidden_size'], c['rms_norm_eps']) for _ in range(2))

    def forward(s, x, cos, sin, mask):
        x = x + s.self_attn(s.input_layernorm(x), cos, sin, mask)
        return x + s.mlp(s.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.c, s.model = c, nn.Module()
        s.model.embed_tokens = nn.Embedding(c['vocab_size'], c['hidden_size'])
        nn.init.normal_(s.model.embed_tokens.weight, std=0.02)
        s.model.layers = nn.ModuleList(Block(c) for _ in range(c['num_hidden_layers']))
        s.model.norm = nn.RMSNorm(c['hidden_size'], c['rms_norm_eps'])

    def hidden(s, x):
        """x (B, T) ids -> states (B, T, hidden); a token sees the tokens of its own document before it (a document ends with <|endoftext|>)"""
        T, D = x.shape[1], s.c['head_dim']
        f = torch.outer(torch.arange(T, device=x.device), s.c['rope_theta']**(-torch.arange(0, D, 2, device=x.device) / D))
        cos, sin = f.cos()[:, None], f.sin()[:, None]
        ends = (x == EOT).long()
        document = ends.cumsum(1) - ends
        mask = (document[:, :, None] == document[:, None, :]).tril()[:, None]
        h = s.model.embed_tokens(x)
        for b in s.model.layers:
            h = b(h, cos, sin, mask)
        return s.model.norm(h)

    def logits(s, h):
        return F.linear(h, s.model.embed_tokens.weight)

    @torch.no_grad()
    def greedy(s, ids, n):
        """The n likeliest tokens after ids, one after the other."""
        ids = torch.tensor([ids])
        for _ in range(n):
            ids = torch.cat([ids, s.logits(s.hidden(ids)[:, -1:]).argmax(-1)], 1)
        return ids[0, -n:].tolist()


def load(folder):
    """exported folder -> float32 model (weights as stored, only widened)"""
    net = Llama(config(folder))
    net.load_state_dict({k: v.float() for k, v in load_file(folder + '/model.safetensors').items()})
    return net.eval()
