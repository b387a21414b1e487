"""Whisper encoder-decoder in plain PyTorch with Hugging Face parameter names (WhisperForConditionalGeneration), any size.
Training extras (dropped at export): a CTC phone head, and timestamp embeddings expressed through a smooth sinusoid basis."""

import json, math
import torch, torch.nn as nn, torch.nn.functional as F
import fastops
from paths import MODELS


def gelu(x):
    return fastops.Gelu.apply(x) if fastops.lib and x.dtype == torch.bfloat16 and x.device.type == 'cpu' and x.is_contiguous() else F.gelu(x)


def sinusoids(n, d):
    inv = torch.exp(-math.log(10000) / (d // 2 - 1) * torch.arange(d // 2))
    a = torch.arange(n)[:, None] * inv[None]
    return torch.cat([a.sin(), a.cos()], 1)


class Attn(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.h = h
        s.k_proj = nn.Linear(d, d, bias=False)
        s.v_proj = nn.Linear(d, d)
        s.q_proj = nn.Linear(d, d)
        s.out_proj = nn.Linear(d, d)

    def split(s, x):
        B, T, D = x.shape
        return x.view(B, T, s.h, D // s.h).transpose(1, 2)

    def forward(s, x, kv=None, causal=False, cache=None, seen=False):
        """x (B, T, D) attends to itself or to kv; `cache` holds k and v between decoding steps; `seen` keeps the probabilities in s.att."""
        if kv is None:
            w = torch.cat([s.q_proj.weight, s.k_proj.weight, s.v_proj.weight])
            q, k, v = F.linear(x, w, torch.cat([s.q_proj.bias, torch.zeros_like(s.q_proj.bias), s.v_proj.bias])).chunk(3, 2)
            q, k, v = s.split(q), s.split(k), s.split(v)
            if cache is not None:
                if 'k' in cache:
                    k, v = torch.cat([cache['k'], k], 2), torch.cat([cache['v'], v], 2)
                cache['k'], cache['v'] = k, v
        else:
            q = s.split(s.q_proj(x))
            if cache is not None and 'k' in cache:
                k, v = cache['k'], cache['v']
            else:
                k, v = F.linear(kv, torch.cat([s.k_proj.weight, s.v_proj.weight])).chunk(2, 2)
                k, v = s.split(k), s.split(v + s.v_proj.bias)
                if cache is not None:
                    cache['k'], cache['v'] = k, v
        if s.training:  # by hand: on CPU the backward pass of the fused attention is slower
            a = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
            if causal:
                a = a + torch.full(a.shape[-2:], float('-inf'), dtype=a.dtype, device=a.device).triu(1)
            a = a.softmax(-1)
            s.att = a if seen else None
            o = a @ v
        else:
            o = F.scaled_dot_product_attention(q, k, v, is_causal=causal and x.shape[1] > 1)
        return s.out_proj(o.transpose(1, 2).reshape(x.shape))


class EncLayer(nn.Module):
    def __init__(s, d, h, f):
        super().__init__()
        s.self_attn = Attn(d, h)
        s.self_attn_layer_norm = nn.LayerNorm(d)
        s.fc1 = nn.Linear(d, f)
        s.fc2 = nn.Linear(f, d)
        s.final_layer_norm = nn.LayerNorm(d)

    def forward(s, x, p=0.0):
        if s.training and fastops.lib and x.dtype == torch.bfloat16 and x.device.type == 'cpu' and not p:
            return fastops.enc_layer(s, x)
        x = x + F.dropout(s.self_attn(s.self_attn_layer_norm(x)), p, s.training)
        return x + F.dropout(s.fc2(gelu(s.fc1(s.final_layer_norm(x)))), p, s.training)


class DecLayer(nn.Module):
    def __init__(s, d, h, f):
        super().__init__()
        s.self_attn = Attn(d, h)
        s.self_attn_layer_norm = nn.LayerNorm(d)
        s.encoder_attn = Attn(d, h)
        s.encoder_attn_layer_norm = nn.LayerNorm(d)
        s.fc1 = nn.Linear(d, f)
        s.fc2 = nn.Linear(f, d)
        s.final_layer_norm = nn.LayerNorm(d)

    def forward(s, x, enc, cache=None, p=0.0):
        x = x + F.dropout(s.self_attn(s.self_attn_layer_norm(x), None, True, cache and cache['s']), p, s.training)
        x = x + F.dropout(s.encoder_attn(s.encoder_attn_layer_norm(x), enc, False, cache and cache['x'], s.training), p, s.training)
        return x + F.dropout(s.fc2(gelu(s.fc1(s.final_layer_norm(x)))), p, s.training)


class _Taps(torch.autograd.Function):
    """(B, T, C) -> (B, T', 3 C): each position beside its neighbours (zeros outside), every `stride` positions."""

    @staticmethod
    def forward(ctx, x, stride):
        ctx.stride, ctx.T = stride, x.shape[1]
        p = F.pad(x, (0, 0, 1, 1))
        B, T, C = p.shape
        return p.as_strided((B, (T - 3) // stride + 1, 3 * C), (T * C, stride * C, 1))

    @staticmethod
    def backward(ctx, g):
        B, n, C = g.shape[0], g.shape[1], g.shape[2] // 3
        x = g.new_zeros(B, ctx.T + 2, C)
        for k in range(3):
            x[:, k : k + (n - 1) * ctx.stride + 1 : ctx.stride] += g[..., k * C : (k + 1) * C]
        return x[:, 1:-1], None


def conv(m, x):
    """Conv1d (kernel 3, padding 1) as a matrix product, (B, T, C) -> (B, T', D): faster on CPU."""
    return F.linear(_Taps.apply(x, m.stride[0]), m.weight.transpose(1, 2).flatten(1), m.bias)


class Encoder(nn.Module):
    def __init__(s, c):
        super().__init__()
        d = c['d_model']
        s.conv1 = nn.Conv1d(c['num_mel_bins'], d, 3, padding=1)
        s.conv2 = nn.Conv1d(d, d, 3, 2, 1)
        s.embed_positions = nn.Embedding(c['max_source_positions'], d)
        s.embed_positions.weight.data = sinusoids(c['max_source_positions'], d)
        s.embed_positions.weight.requires_grad = False
        s.layers = nn.ModuleList(EncLayer(d, c['encoder_attention_heads'], c['encoder_ffn_dim']) for _ in range(c['encoder_layers']))
        s.layer_norm = nn.LayerNorm(d)

    def forward(s, mel, off=0, p=0.0):
        """mel (B, 80, T); positions start at `off` (training crops use random offsets)."""
        x = gelu(conv(s.conv2, gelu(conv(s.conv1, mel.transpose(1, 2)))))
        x = F.dropout(x + s.embed_positions.weight[off : off + x.shape[1]], p, s.training)
        for l in s.layers:
            x = l(x, p)
        return s.layer_norm(x)


class Decoder(nn.Module):
    def __init__(s, c):
        super().__init__()
        d = c['d_model']
        s.embed_tokens = nn.Embedding(c['vocab_size'], d)
        s.embed_positions = nn.Embedding(c['max_target_positions'], d)
        s.layers = nn.ModuleList(DecLayer(d, c['decoder_attention_heads'], c['decoder_ffn_dim']) for _ in range(c['decoder_layers']))
        s.layer_norm = nn.LayerNorm(d)


class Core(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.encoder = Encoder(c)
        s.decoder = Decoder(c)


class PhoneEncoder(nn.Module):
    """Training only: stands in for the audio encoder on text-only steps (phones upsampled to encoder positions), so that the decoder
    learns spelling and language from many more sentences than the audio steps can cover."""

    def __init__(s, n, d):
        super().__init__()
        s.emb = nn.Embedding(n + 1, d)
        s.mix = nn.Linear(5 * d, d)
        s.norm = nn.LayerNorm(d)
        s.ps = nn.Parameter(torch.tensor(0.3))
        nn.init.normal_(s.emb.weight, std=0.5)

    def forward(s, ids, pos):
        x = s.emb(ids)
        u = F.pad(x, (0, 0, 2, 2)).unfold(1, 5, 1).flatten(2)
        x = x + gelu(s.mix(u)) + s.ps * pos[: x.shape[1]]
        return s.norm(x)


class Whisper(nn.Module):
    N_BASIS = 96

    def __init__(s, c, n_phones=0, t0=None):
        super().__init__()
        s.c = c
        s.model = Core(c)
        s.t0 = t0
        for m in s.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                m.bias is not None and nn.init.zeros_(m.bias)
            if isinstance(m, nn.Embedding) and m.weight.requires_grad:
                nn.init.normal_(m.weight, std=0.03)
        n = c['encoder_layers'] + c['decoder_layers']
        for nme, q in s.named_parameters():
            if nme.endswith(('out_proj.weight', 'fc2.weight')):
                q.data *= (2 * n) ** -0.5 * 1.5
        if n_phones:  # training only
            s.ctc = nn.Linear(c['d_model'], n_phones + 1)
            s.phone_enc = PhoneEncoder(n_phones, c['d_model'])
            nt = c['vocab_size'] - t0
            t = torch.arange(nt)[:, None] / nt
            w = torch.exp(torch.linspace(math.log(0.5), math.log(300.0), s.N_BASIS // 2))[None] * 2 * math.pi
            s.register_buffer('basis', torch.cat([(t * w).sin(), (t * w).cos()], 1))
            s.ts = nn.Linear(s.N_BASIS, c['d_model'])
            nn.init.normal_(s.ts.weight, std=0.01)

    def emb(s):
        e = s.model.decoder.embed_tokens.weight
        return torch.cat([e[: s.t0], e[s.t0 :] + s.ts(s.basis)]) if hasattr(s, 'ts') else e

    def decode(s, ids, enc, cache=None, pos=0, p=0.0, e=None, last=False, keep=None):
        """Logits of ids (B, T) after `pos` cached ones, given the encoder's states; only the last, or those at the flat positions `keep`."""
        e = s.emb() if e is None else e
        d = s.model.decoder
        T = ids.shape[1]
        x = F.embedding(ids, e) + d.embed_positions.weight[pos : pos + T]
        x = F.dropout(x, p, s.training)
        for i, l in enumerate(d.layers):
            x = l(x, enc, cache and cache[i], p)
        x = x[:, -1:] if last else x if keep is None else x.flatten(0, 1)[keep]
        return F.linear(d.layer_norm(x), e)

    def new_cache(s):
        return [dict(s={}, x={}) for _ in s.model.decoder.layers]

    def hf_state(s):
        """Plain HF tensors: training extras folded in or dropped; proj_out is tied to embed_tokens."""
        sd = {k: v.detach().float().cpu() for k, v in s.state_dict().items() if k.startswith('model.')}
        sd['model.decoder.embed_tokens.weight'] = s.emb().detach().float().cpu().clone()
        return sd


def config():
    """The bundled model's configuration."""
    return json.load(open(MODELS + '/parley-transcribe/config.json'))
