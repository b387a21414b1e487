"""Whisper encoder-decoder in plain PyTorch with Hugging Face parameter names (WhisperForConditionalGeneration), any size.
Training extras (dropped at export): a CTC phone head, and timestamp embeddings expressed through a smooth sinusoid basis."""

import math, json, torch, torch.nn as nn, torch.nn.functional as F


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

    def forward(s, x, kv=None, mask=None, cache=None):
        q = s.split(s.q_proj(x)) * (x.shape[-1] // s.h) ** -0.5
        if cache is not None and kv is not None and 'k' in cache:
            k, v = cache['k'], cache['v']  # cross attention, computed once
        else:
            src = x if kv is None else kv
            k, v = s.split(s.k_proj(src)), s.split(s.v_proj(src))
            if cache is not None:
                if kv is None and 'k' in cache:
                    k, v = torch.cat([cache['k'], k], 2), torch.cat([cache['v'], v], 2)
                cache['k'], cache['v'] = k, v
        a = q @ k.transpose(-1, -2)
        if mask is not None:
            a = a + mask
        a = a.softmax(-1)
        o = a @ v
        if s.training and kv is not None:
            s.att = a
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
        x = x + F.dropout(s.self_attn(s.self_attn_layer_norm(x)), p, s.training)
        return x + F.dropout(s.fc2(F.gelu(s.fc1(s.final_layer_norm(x)))), p, s.training)


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

    def forward(s, x, enc, mask, cache=None, p=0.0):
        x = x + F.dropout(s.self_attn(s.self_attn_layer_norm(x), None, mask, cache and cache['s']), p, s.training)
        x = x + F.dropout(s.encoder_attn(s.encoder_attn_layer_norm(x), enc, None, cache and cache['x']), p, s.training)
        return x + F.dropout(s.fc2(F.gelu(s.fc1(s.final_layer_norm(x)))), p, s.training)


def conv(m, x):
    """Conv1d (kernel 3, padding 1) as unfold + matmul, (B, C, T) -> (B, T', D): faster on CPU, and torch 1.13's oneDNN Conv1d backward returned inf here."""
    u = F.pad(x, (1, 1)).unfold(2, 3, m.stride[0]).transpose(1, 2)
    return F.linear(u.reshape(u.shape[0], u.shape[1], -1), m.weight.flatten(1), m.bias)


class _Contig(torch.autograd.Function):
    """Identity whose gradient is made contiguous (torch 1.13's CPU GELU backward misreads strided gradients: inf/nan)."""

    @staticmethod
    def forward(ctx, x):
        return x.contiguous()

    @staticmethod
    def backward(ctx, g):
        return g.contiguous()


def gelu(x):
    return _Contig.apply(F.gelu(x.contiguous()))


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
        x = gelu(conv(s.conv2, gelu(conv(s.conv1, mel)).transpose(1, 2)))
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
            torch.arange(s.N_BASIS // 2)[None]
            t = torch.arange(nt)[:, None] / nt
            w = torch.exp(torch.linspace(math.log(0.5), math.log(300.0), s.N_BASIS // 2))[None] * 2 * math.pi
            s.register_buffer('basis', torch.cat([(t * w).sin(), (t * w).cos()], 1))
            s.ts = nn.Linear(s.N_BASIS, c['d_model'])
            nn.init.normal_(s.ts.weight, std=0.01)

    def emb(s):
        e = s.model.decoder.embed_tokens.weight
        return torch.cat([e[: s.t0], e[s.t0 :] + s.ts(s.basis)]) if hasattr(s, 'ts') else e

    def decode(s, ids, enc, cache=None, pos=0, p=0.0, e=None, last=False):
        e = s.emb() if e is None else e
        d = s.model.decoder
        T = ids.shape[1]
        x = F.embedding(ids, e) + d.embed_positions.weight[pos : pos + T]
        x = F.dropout(x, p, s.training)
        mask = torch.full((T, T), float('-inf'), device=x.device).triu(1) if T > 1 else None
        for i, l in enumerate(d.layers):
            x = l(x, enc, mask, cache and cache[i], p)
        x = d.layer_norm(x[:, -1:] if last else x)
        return F.linear(x, e)

    def new_cache(s):
        return [dict(s={}, x={}) for _ in s.model.decoder.layers]

    def hf_state(s):
        """Plain HF tensors: training extras folded in or dropped; proj_out is tied to embed_tokens."""
        sd = {k: v.detach().float().cpu() for k, v in s.state_dict().items() if k.startswith('model.')}
        sd['model.decoder.embed_tokens.weight'] = s.emb().detach().float().cpu().clone()
        return sd


def config(d=256, heads=4, enc=4, dec=2, ffn=1024, vocab=2910, ids=None):
    i = ids or dict(eot=1400, sot=1401)
    return dict(
        model_type='whisper',
        architectures=['WhisperForConditionalGeneration'],
        vocab_size=vocab,
        num_mel_bins=80,
        d_model=d,
        encoder_layers=enc,
        decoder_layers=dec,
        num_hidden_layers=enc,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=ffn,
        decoder_ffn_dim=ffn,
        max_source_positions=1500,
        max_target_positions=448,
        activation_function='gelu',
        scale_embedding=False,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        init_std=0.02,
        is_encoder_decoder=True,
        use_cache=True,
        tie_word_embeddings=True,
        bos_token_id=i['eot'],
        eos_token_id=i['eot'],
        pad_token_id=i['eot'],
        decoder_start_token_id=i['sot'],
        begin_suppress_tokens=None,
        suppress_tokens=None,
        forced_decoder_ids=None,
        max_length=448,
        torch_dtype='float16',
    )


# ---- minimal safetensors ----
def save_st(path, tensors, dtype=torch.float16, meta=None):

    names = {torch.float16: 'F16', torch.float32: 'F32', torch.int64: 'I64', torch.int32: 'I32'}
    hdr, off, blobs = {'__metadata__': meta or {'format': 'pt'}}, 0, []
    for k in sorted(tensors):
        t = tensors[k]
        t = t.to(dtype) if dtype and t.is_floating_point() else t
        b = t.contiguous().numpy().tobytes()
        hdr[k] = dict(dtype=names[t.dtype], shape=list(t.shape), data_offsets=[off, off + len(b)])
        off += len(b)
        blobs.append(b)
    h = json.dumps(hdr, separators=(',', ':')).encode()
    h += b' ' * (-len(h) % 8)
    with open(path + '.tmp', 'wb') as f:
        f.write(len(h).to_bytes(8, 'little') + h + b''.join(blobs))
    import os

    os.replace(path + '.tmp', path)


def load_st(path):
    import numpy as np

    b = open(path, 'rb').read()
    n = int.from_bytes(b[:8], 'little')
    h = json.loads(b[8 : 8 + n])
    h.pop('__metadata__', None)
    dt = {'F16': np.float16, 'F32': np.float32, 'I64': np.int64, 'I32': np.int32}
    return {
        k: torch.from_numpy(
            np.frombuffer(b[8 + n + v['data_offsets'][0] : 8 + n + v['data_offsets'][1]], dt[v['dtype']]).reshape(v['shape']).copy()
        )
        for k, v in h.items()
    }
