"""Shared helpers: safetensors IO, wav IO, assembling the full model from the two checkpoints."""

import os, json, struct, numpy as np, torch, wave
from model import Model, load_config

ROOT = os.path.abspath(os.environ.get("PARLEY_WORK", "work"))
DT = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}


def st_save(path, tensors, meta=None):
    head, off, blobs = {}, 0, []
    if meta:
        head["__metadata__"] = {k: str(v) for k, v in meta.items()}
    for k, v in tensors.items():
        v = np.ascontiguousarray(v)
        name = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.int64): "I64", np.dtype(np.int32): "I32"}[v.dtype]
        b = v.tobytes()
        head[k] = dict(dtype=name, shape=list(v.shape), data_offsets=[off, off + len(b)])
        off += len(b)
        blobs.append(b)
    h = json.dumps(head).encode()
    h += b" " * (-len(h) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(h)))
        f.write(h)
        for b in blobs:
            f.write(b)


def st_load(path):
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    h = json.loads(b[8 : 8 + n])
    out = {}
    for k, v in h.items():
        if k == "__metadata__":
            continue
        s, e = v["data_offsets"]
        out[k] = np.frombuffer(b[8 + n + s : 8 + n + e], DT[v["dtype"]]).reshape(v["shape"])
    return out


def wav_save(path, x, sr=24000):
    with wave.open(path, "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(sr)
        w.writeframes((np.clip(np.asarray(x), -1, 1) * 32767).astype("<i2").tobytes())


def wav_load(path):
    import scipy.io.wavfile as wf

    sr, x = wf.read(path)
    return sr, x.astype(np.float32) / 32768


def assemble(dec=ROOT + "/ckpt/dec.pt", pro=ROOT + "/ckpt/pro.pt", which="ema"):
    """-> Model in eval mode, voices [V, 2*style_dim]; F0_proj brought to Hz"""
    cfg = load_config(ROOT + "/config.json")
    m = Model(cfg).eval()
    d = torch.load(dec, map_location="cpu")[which]
    sub = lambda sd, p: {k[len(p) + 1 :]: v for k, v in sd.items() if k.startswith(p + ".")}
    m.text_encoder.load_state_dict(sub(d, "text_encoder"))
    m.decoder.load_state_dict(sub(d, "decoder"))
    sd = cfg["style_dim"]
    style = d["style.weight"].clone()
    if os.path.exists(pro):
        p = torch.load(pro, map_location="cpu")[which]
        m.bert.load_state_dict(sub(p, "bert"))
        m.bert_encoder.load_state_dict(sub(p, "bert_encoder"))
        m.predictor.load_state_dict(sub(p, "predictor"))
        with torch.no_grad():
            m.predictor.F0_proj.weight.mul_(100)
            m.predictor.F0_proj.bias.mul_(100)
        style[:, sd:] = p["style.weight"]
    return m, style


def load_export(out=ROOT + "/out"):
    cfg = load_config(out + "/config.json")
    m = Model(cfg).eval()
    sd = {k: torch.from_numpy(v.astype(np.float32)) for k, v in st_load(out + "/model.safetensors").items()}
    print(m.load_state_dict(sd, strict=True))
    v = {k: torch.from_numpy(x.astype(np.float32)).flatten() for k, x in st_load(out + "/voices.safetensors").items()}
    return m, v


def ids_of(tokens, vocab):
    return [0] + [vocab[c] for c in tokens] + [0]
