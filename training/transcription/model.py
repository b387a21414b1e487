"""Whisper encoder-decoder in plain PyTorch with Hugging Face parameter names (WhisperForConditionalGeneration), any size, any length of window.
Training extras (dropped at export): a CTC phone head, and timestamp embeddings expressed through a smooth sinusoid basis."""

import json, math
import torch, torch.nn as nn, torch.nn.functional as F
from paths import MODELS


def sinusoids(n, d):
    inv = torch.exp(-math.log(10000) / (d // 2 - 1) * torch.arange(d // 2))
    a = torch.arange(n)[:, None] * inv[None]
    return torch.cat([a.sin(), a.cos()], 1)


class Attention(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.h = h
        s.k_proj = nn.Linear(d, d, bias=False)
        s.v_proj, s.q_proj, s.out_proj = (nn.Linear(d, d) for _ in range(3))

    def forward(s, x, kv=None, cache=None):
        """x (B, T, D) attends to what came before it, or to all of kv; `cache` holds k and v between decoding steps. While training the
        probabilities stay in s.att."""
        split = lambda t: t.unflatten(2, (s.h, -1)).transpose(1, 2)
        q = split(s.q_proj(x))
        if kv is not None and cache:
            k, v = cache['k'], cache['v']
        else:
            k, v = (split(p(x if kv is None else kv)) for p in (s.k_proj, s.v_proj))
            if kv is None and cache:
                k, v = torch.cat([cache['k'], k], 2), torch.cat([cache['v'], v], 2)
            if cache is not None:
                cache['k'], cache['v'] = k, v
        causal = kv is None and x.shape[1] > 1
        if s.training:  # by hand: the probabilities are needed, and on CPU the backward pass of the fused attention is slower
            a = (q * q.shape[-1]**-0.5) @ k.transpose(-1, -2)
            if causal:
                a = a + torch.full(a.shape[-2:], float('-inf'), dtype=a.dtype, device=a.device).triu(1)
            s.att = a.softmax(-1)
            o = s.att @ v
        else:
            o = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return s.out_proj(o.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(s, d, h, f, decoder=False):
        super().__init__()
        s.self_attn, s.self_attn_layer_norm = Attention(d, h), nn.LayerNorm(d)
        if decoder:
            s.encoder_attn, s.encoder_attn_layer_norm = Attention(d, h), nn.LayerNorm(d)
        s.fc1, s.fc2, s.final_layer_norm = nn.Linear(d, f), nn.Linear(f, d), nn.LayerNorm(d)

    def forward(s, x, enc=None, cache=None):
        """An encoder's layer, or with `enc` a decoder's."""
        y = s.self_attn_layer_norm(x)
        x = x + (s.self_attn(y, y) if enc is None else s.self_attn(y, None, cache and cache['s']))
        if enc is not None:
            x = x + s.encoder_attn(s.encoder_attn_layer_norm(x), enc, cache and cache['x'])
        return x + s.fc2(F.gelu(s.fc1(s.final_layer_norm(x))))


class Encoder(nn.Module):
    def __init__(s, c):
        super().__init__()
        d = c['d_model']
        s.conv1, s.conv2 = nn.Conv1d(c['num_mel_bins'], d, 3, padding=1), nn.Conv1d(d, d, 3, 2, 1)
        s.embed_positions = nn.Embedding.from_pretrained(sinusoids(c['max_source_positions'], d))
        s.layers = nn.ModuleList(Layer(d, c['encoder_attention_heads'], c['encoder_ffn_dim']) for _ in range(c['encoder_layers']))
        s.layer_norm = nn.LayerNorm(d)

    def conv(s, mel):
        return F.gelu(s.conv2(F.gelu(s.conv1(mel)))).transpose(1, 2)

    def forward(s, mel, off=0):
        """mel (B, 80, T); positions start at `off` (training crops use random offsets)."""
        x = s.conv(mel)
        x = x + s.embed_positions.weight[off:off + x.shape[1]]
        for l in s.layers:
            x = l(x)
        return s.layer_norm(x)


class Decoder(nn.Module):
    def __init__(s, c):
        super().__init__()
        d = c['d_model']
        s.embed_tokens, s.embed_positions = nn.Embedding(c['vocab_size'], d), nn.Embedding(c['max_target_positions'], d)
        s.layers = nn.ModuleList(Layer(d, c['decoder_attention_heads'], c['decoder_ffn_dim'], True) for _ in range(c['decoder_layers']))
        s.layer_norm = nn.LayerNorm(d)


class PhoneEncoder(nn.Module):
    """Training only: stands in for the audio encoder on text-only steps (phones upsampled to encoder positions), so that the decoder
    learns spelling and language from many more sentences than the audio steps can cover."""

    def __init__(s, n, d):
        super().__init__()
        s.emb, s.mix, s.norm, s.ps = nn.Embedding(n + 1, d), nn.Linear(5 * d, d), nn.LayerNorm(d), nn.Parameter(torch.tensor(0.3))

    def forward(s, ids, pos):
        x = s.emb(ids)
        u = F.pad(x, (0, 0, 2, 2)).unfold(1, 5, 1).flatten(2)
        return s.norm(x + F.gelu(s.mix(u)) + s.ps * pos[:x.shape[1]])


class Whisper(nn.Module):
    N_BASIS = 96

    def __init__(s, c, n_phones=0, t0=None):
        super().__init__()
        s.model = nn.ModuleDict(dict(encoder=Encoder(c), decoder=Decoder(c)))
        s.t0 = t0
        for m in s.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                m.bias is not None and nn.init.zeros_(m.bias)
            if isinstance(m, nn.Embedding) and m.weight.requires_grad:
                nn.init.normal_(m.weight, std=0.03)
        for name, q in s.named_parameters():
            if name.endswith(('out_proj.weight', 'fc2.weight')):
                q.data *= (2 * (c['encoder_layers'] + c['decoder_layers']))**-0.5 * 1.5
        if n_phones:  # training only
            s.ctc, s.phone_enc, s.ts = nn.Linear(c['d_model'], n_phones + 1), PhoneEncoder(n_phones, c['d_model']), nn.Linear(s.N_BASIS, c['d_model'])
            nn.init.normal_(s.phone_enc.emb.weight, std=0.5)
            nn.init.normal_(s.ts.weight, std=0.01)
            t = torch.arange(c['vocab_size'] - t0)[:, None] / (c['vocab_size'] - t0)
            w = torch.exp(torch.linspace(math.log(0.5), math.log(300.0), s.N_BASIS // 2))[None] * 2 * math.pi
            s.register_buffer('basis', torch.cat([(t * w).sin(), (t * w).cos()], 1))

    def emb(s):
        e = s.model.decoder.embed_tokens.weight
        return torch.cat([e[:s.t0], e[s.t0:] + s.ts(s.basis)]) if hasattr(s, 'ts') else e

    def decode(s, ids, enc, cache=None, pos=0, keep=None):
        """Logits of ids (B, T) after `pos` cached ones, given the encoder's states; of all, or those at the flat positions `keep`."""
        e, d = s.emb(), s.model.decoder
        x = F.embedding(ids, e) + d.embed_positions.weight[pos:pos + ids.shape[1]]
        for i, l in enumerate(d.layers):
            x = l(x, enc, cache and cache[i])
        return F.linear(d.layer_norm(x if keep is None else x.flatten(0, 1)[keep]), e)

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
