#!/usr/bin/env python3
"""Checkpoint -> Hugging Face LlamaForCausalLM folder with float16 weights, and a golden fixture made with exactly those weights.

python3 export.py --ckpt DIR/last.pt --tok TOKDIR --out OUT/model [--golden OUT/golden.json] [--average A.pt B.pt]
"""

import argparse, json, os, shutil, struct
import numpy as np, torch
from train import CFG, Llama
from tokenizer import Tokenizer, EOT, IM_END


def write_safetensors(path, tensors):
    head, off, blobs = {'__metadata__': {'format': 'pt'}}, 0, []
    for k, v in tensors.items():
        b = np.ascontiguousarray(v.astype('<f2')).tobytes()
        head[k] = {'dtype': 'F16', 'shape': list(v.shape), 'data_offsets': [off, off + len(b)]}
        off += len(b)
        blobs.append(b)
    h = json.dumps(head, separators=(',', ':')).encode()
    h += b' ' * (-len(h) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(h)) + h)
        [f.write(b) for b in blobs]


def read_safetensors(path):
    d = open(path, 'rb').read()
    n = struct.unpack('<Q', d[:8])[0]
    head = json.loads(d[8:8 + n])
    o = {}
    for k, v in head.items():
        if k != '__metadata__':
            a, b = v['data_offsets']
            o[k] = torch.from_numpy(np.frombuffer(d[8 + n + a:8 + n + b], '<f2').astype(np.float32).reshape(v['shape']))
    return o


def load(folder):
    """exported folder -> float32 model (weights as stored, only widened)"""
    c = json.load(open(os.path.join(folder, 'config.json')))
    net = Llama(c)
    net.load_state_dict(read_safetensors(os.path.join(folder, 'model.safetensors')))
    return net.eval()


@torch.no_grad()
def greedy(net, ids, n, stop=(IM_END, EOT)):
    ids = list(ids)
    out = []
    for _ in range(n):
        t = int(net.logits(torch.tensor([ids]))[0, -1].argmax())
        out.append(t)
        ids.append(t)
        if t in stop:
            break
    return out


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    A = ap.add_argument
    A('--ckpt', required=True)
    A('--tok', required=True)
    A('--out', required=True)
    A('--golden')
    A('--average', nargs='*', default=[], help='further checkpoints, averaged in')
    A('--blend', nargs=2, metavar=('FOLDER', 'SHARE'), help='an exported folder whose weights make this share of the result')
    A('--threads', type=int, default=1)
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    st = torch.load(a.ckpt, map_location='cpu')
    c = {k: st['cfg'][k] for k in CFG}
    sd = st['model']
    for f in a.average:
        o = torch.load(f, map_location='cpu')['model']
        sd = {k: sd[k] + o[k] for k in sd}
    sd = {k: v / (1 + len(a.average)) for k, v in sd.items()}
    if a.blend:
        share = float(a.blend[1])
        old = load(a.blend[0]).state_dict()
        sd = {k: (1 - share) * v + share * old[k] for k, v in sd.items()}
    os.makedirs(a.out, exist_ok=True)
    write_safetensors(os.path.join(a.out, 'model.safetensors'), {k: v.float().numpy() for k, v in sd.items()})
    cfg = dict(architectures=['LlamaForCausalLM'],
               model_type='llama',
               **c,
               head_dim=c['hidden_size'] // c['num_attention_heads'],
               hidden_act='silu',
               attention_bias=False,
               mlp_bias=False,
               attention_dropout=0.0,
               initializer_range=0.02,
               pretraining_tp=1,
               rope_scaling=None,
               tie_word_embeddings=True,
               bos_token_id=None,
               eos_token_id=IM_END,
               pad_token_id=EOT,
               torch_dtype='float16',
               use_cache=True)
    json.dump(cfg, open(os.path.join(a.out, 'config.json'), 'w'), indent=2)
    json.dump(dict(do_sample=False, eos_token_id=[IM_END, EOT], pad_token_id=EOT, max_new_tokens=200),
              open(os.path.join(a.out, 'generation_config.json'), 'w'),
              indent=2)
    for f in ('tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json'):
        shutil.copy(os.path.join(a.tok, f), a.out)
    print(sum(v.numel() for v in sd.values()), 'parameters ->', a.out, os.path.getsize(os.path.join(a.out, 'model.safetensors')), 'bytes')
    if a.golden:
        net = load(a.out)
        tok = Tokenizer(a.out)
        ms = [{'role': 'user', 'content': 'Tell me a short story about a fox.'}]
        ids, _ = tok.chat(ms)
        with torch.no_grad():
            lg = net.logits(torch.tensor([ids]))[0, -1]
        g = greedy(net, ids, 40, stop=())
        json.dump(
            {
                'messages': ms, 'prompt': tok.decode(
                    ids, False), 'prompt_ids': ids, 'logits_last': [float(x) for x in lg], 'greedy_ids': g, 'greedy_text': tok.decode(
                        g, False), 'note': 'float32 arithmetic on the float16 weights of this folder; greedy without a stop token'
            }, open(a.golden, 'w'))
        print(repr(tok.decode(g, False)))
