#!/usr/bin/env python3
"""Checkpoint -> Hugging Face LlamaForCausalLM folder with float16 weights, and a golden fixture made with exactly those weights.

python3 export.py --ckpt DIR/last.pt --tok TOKDIR --out OUT/model [--golden OUT/golden.json] [--blend FOLDER SHARE]
"""

import argparse, json, os, shutil
import torch
import model as M
from safetensors.torch import save_file
from shared.work import MODELS
from tokenizer import CONFIGURATION, Tokenizer


def golden(folder, path):
    net, tok = M.load(folder), Tokenizer(folder)
    messages = [{'role': 'user', 'content': 'Tell me a short story about a fox.'}]
    ids, _ = tok.chat(messages)
    with torch.no_grad():
        logits = net(torch.tensor([ids])).logits[0, -1].tolist()
    said = M.greedy(net, ids, 40)
    with open(path, 'w') as f:
        json.dump(dict(messages=messages, prompt=tok.decode(ids, False), prompt_ids=ids, logits_last=logits, greedy_ids=said,
                       greedy_text=tok.decode(said, False),
                       note='float32 arithmetic on the float16 weights of this folder; greedy without a stop token'), f)
    print(repr(tok.decode(said, False)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--ckpt', required=True)
    ap.add_argument('--tok', required=True)
    ap.add_argument('--out', required=True)
    ap.add_argument('--golden')
    ap.add_argument('--blend', nargs=2, metavar=('FOLDER', 'SHARE'), help='an exported folder whose weights make this share of the result')
    a = ap.parse_args()
    torch.set_num_threads(1)
    weights = torch.load(a.ckpt, map_location='cpu')['model']
    if a.blend:
        share, old = float(a.blend[1]), M.load(a.blend[0]).state_dict()
        weights = {k: (1 - share) * v + share * old[k] for k, v in weights.items()}
    os.makedirs(a.out, exist_ok=True)
    save_file({k: v.half().contiguous() for k, v in weights.items() if k != 'lm_head.weight'}, a.out + '/model.safetensors', {'format': 'pt'})
    for name in ('config.json', 'generation_config.json'):
        shutil.copy(f'{MODELS}/parley-chat/{name}', a.out)
    for name in ('tokenizer.json', *CONFIGURATION):
        shutil.copy(f'{a.tok}/{name}', a.out)
    print(sum(v.numel() for k, v in weights.items() if k != 'lm_head.weight'), 'parameters ->', a.out)
    if a.golden:
        golden(a.out, a.golden)


if __name__ == '__main__':
    main()
