#!/usr/bin/env python3
"""Trains the chat model on packed rows.

  python3 train.py --data PREFIX --ckpt DIR --total-tokens 16e6                       # pretraining mix, loss on all tokens
  python3 train.py --data PREFIX2 --ckpt DIR --total-tokens 16e6 --other-weight 0      # tuning, loss on assistant tokens

Resumes by itself from DIR/last.pt (model, optimisers, tokens seen). The learning rate follows tokens seen / total tokens over both
phases: warm-up, then flat, then cosine to zero from --decay-from on (0 = plain cosine).
Matrices are trained with Muon (orthogonalised momentum), embeddings and norms with AdamW.
--bf16 runs the matrix products in bfloat16 with float32 weights (on a GPU, and on CPUs with AVX512-BF16).
"""

import argparse, json, math, os, time
import numpy as np, torch, torch.nn.functional as F
import model as M
from shared.work import Run, save, seconds_until


class Data:
    """packed rows of two lengths; batches of about the same number of tokens, in a fresh random order each epoch"""

    def __init__(s, prefix, batch, seed):
        s.info, s.rows, s.batch, s.rng = json.load(open(prefix + '.json')), {}, batch, np.random.RandomState(seed)
        for T, i in s.info['buckets'].items():
            read = lambda kind, dtype: np.fromfile(f'{prefix}.{T}.{kind}', dtype).reshape(i['rows'], int(T))
            s.rows[int(T)] = read('tok', np.uint16), read('own', np.uint8)

    def __iter__(s):
        """-> ids, and whose tokens they are: 1 the assistant's, 2 others, 0 padding"""
        while True:
            batches = []
            for T, (tok, _) in s.rows.items():
                p = s.rng.permutation(len(tok))
                n = max(1, s.batch // T)
                batches += [(T, p[i:i + n]) for i in range(0, len(p), n)]
            s.rng.shuffle(batches)
            for T, rows in batches:
                tok, own = (x[np.sort(rows)] for x in s.rows[T])
                yield torch.from_numpy(tok.astype(np.int64)), torch.from_numpy(own)


def arguments():
    ap = argparse.ArgumentParser()
    A = ap.add_argument
    A('--data', required=True, help='prefix written by prepare.py pack')
    A('--ckpt', required=True)
    A('--init', help='exported folder to start from where there is no checkpoint')
    A('--total-tokens', type=float, required=True, help='of all phases together')
    A('--stop-tokens', type=float, default=math.inf, help='end this run here')
    A('--stop-at', default='inf', help='HH:MM (UTC) to save and stop')
    A('--device', default='cpu')
    A('--bf16', action='store_true')
    A('--batch', type=int, default=8192, help='tokens per step')
    A('--other-weight', type=float, default=1.0, help='loss weight of tokens that the assistant does not write')
    A('--lr-muon', type=float, default=0.02)
    A('--lr', type=float, default=4e-3, help='AdamW')
    A('--warmup', type=float, default=0.01)
    A('--decay-from', type=float, default=0.0)
    return ap.parse_args()


def rate(a, done):
    """Share of the full rates when a share `done` of all tokens was seen."""
    fall = max(0.0, min(1.0, (done - a.decay_from) / (1 - a.decay_from)))
    return (min(1.0, done / a.warmup) if a.warmup else 1.0) * 0.5 * (1 + math.cos(math.pi * fall))


def backward(net, x, y, wt, bf16):
    """Gradients of the mean loss of the targets y with the weights wt; -> the loss"""
    keep = wt > 0
    with torch.autocast(x.device.type, torch.bfloat16, enabled=bf16):
        z = net.lm_head(M.hidden(net, x).flatten(0, 1)[keep]).float()
    loss = (F.cross_entropy(z, y[keep], reduction='none') * wt[keep]).sum() / wt.sum()
    loss.backward()
    return loss.item()


def main():
    a = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    last = a.ckpt + '/last.pt'
    net = M.new().to(a.device)
    matrices = [p for n, p in net.named_parameters() if p.ndim == 2 and 'proj' in n]
    norms = [p for p in net.parameters() if p.ndim == 1]
    embedding = net.model.embed_tokens.weight
    muon = torch.optim.Muon(matrices, lr=a.lr_muon, weight_decay=0.01, momentum=0.95)
    adam = torch.optim.AdamW([dict(params=[embedding], weight_decay=0.01), dict(params=norms, weight_decay=0.0)], a.lr, (0.9, 0.97), 1e-9)
    seen = step = 0
    if os.path.exists(last):
        state = torch.load(last, map_location='cpu')
        net.load_state_dict(state['model'])
        muon.load_state_dict(state['muon'])
        adam.load_state_dict(state['adam'])
        seen, step = state['seen'], state['step']
    elif a.init:
        net.load_state_dict(M.load(a.init).state_dict())
    data = Data(a.data, a.batch, 1 + step)
    print(sum(p.numel() for p in net.parameters()), 'parameters; start at', seen, 'tokens; data', json.dumps(data.info['buckets']), flush=True)
    run = Run(seconds_until(a.stop_at))
    losses, told, before = [], time.time(), seen
    for x, own in data:
        x, own = x.to(a.device), own.to(a.device)
        share = rate(a, seen / a.total_tokens)
        whose = F.pad(own[:, 1:], (0, 1)).flatten()
        wt = (whose == 1).float() + (whose == 2).float() * a.other_weight
        y = F.pad(x[:, 1:], (0, 1)).flatten()
        losses.append(backward(net, x, y, wt, a.bf16))
        torch.nn.utils.clip_grad_norm_([embedding, *norms], 1.0)
        for optimiser, lr in ((muon, a.lr_muon), (adam, a.lr)):
            for group in optimiser.param_groups:
                group['lr'] = lr * share
            optimiser.step()
            optimiser.zero_grad()
        seen += int((own > 0).sum())
        step += 1
        if step % 20 == 0:
            speed = (seen - before) / (time.time() - told)
            print(f'{time.strftime("%H:%M:%S", time.gmtime())} step {step} tokens {seen / 1e6:.3f}M loss {np.mean(losses):.4f} '
                  f'lr {share:.3f} {speed:.0f} tok/s', flush=True)
            losses, told, before = [], time.time(), seen
        done = seen >= min(a.total_tokens, a.stop_tokens) or run.stopping
        if run.due() or done:
            save(dict(model=net.state_dict(), muon=muon.state_dict(), adam=adam.state_dict(), seen=seen, step=step), last)
        if done:
            break
    print('saved at', seen, 'tokens,', step, 'steps', flush=True)


if __name__ == '__main__':
    main()
