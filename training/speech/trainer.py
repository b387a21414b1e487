"""What the two training steps share: options, checkpoints, the learning rate, the averaged weights."""

import argparse, math, os, time
import numpy as np, torch, torch.nn as nn
import paths  # noqa: F401 (training/shared)
from model import Model
from shared.work import Run, save, seconds_until
from voices import NAMES


def arguments(ckpt, batch, lr):
    ap = argparse.ArgumentParser()
    ap.add_argument("end", help="seconds to train, or the clock time HH:MM (UTC) at which the learning rate reaches its end")
    ap.add_argument("--device", default="cpu")
    ap.add_argument("--batch", type=int, default=batch)
    ap.add_argument("--lr", type=float, default=lr)
    ap.add_argument("--lr_end", type=float, default=1e-4)
    ap.add_argument("--from_ema", action="store_true", help="start from the averaged weights (warm restart without optimiser state)")
    ap.set_defaults(ckpt=ckpt)
    return ap


def prosody_side(cfg):
    m = Model(cfg)
    return nn.ModuleDict(dict(bert=m.bert, bert_encoder=m.bert_encoder, predictor=m.predictor, style=nn.Embedding(len(NAMES), cfg["style_dim"])))


class Trainer:
    """Goes on from a checkpoint until the time is up; saves now and then; the rate falls along a cosine after `warm` steps."""

    def __init__(self, a, net, ema, others, warm, clip):
        """others: further state to keep, {name: module or optimiser}; every optimiser steps, the one called opt with the rate a.lr"""
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        self.a, self.net, self.ema, self.others, self.warm, self.clip, self.step, self.sums = a, net, ema.eval(), others, warm, clip, 0, []
        self.params = list(others["opt"].param_groups[0]["params"])
        self.ema.load_state_dict(net.state_dict())
        if os.path.exists(a.ckpt):
            state = torch.load(a.ckpt, map_location=a.device)
            self.net.load_state_dict(state["ema" if a.from_ema or "net" not in state else "net"])
            self.ema.load_state_dict(state["ema"])
            for name, part in others.items():
                if name in state:
                    part.load_state_dict(state[name])
            self.step = state["step"]
        self.first = self.step
        self.run = Run(seconds_until(a.end))

    def save(self):
        parts = dict(net=self.net, ema=self.ema, **self.others)
        save(dict({k: v.state_dict() for k, v in parts.items()}, step=self.step), self.a.ckpt)

    def goes_on(self):
        """Whether there is time for a step; sets its rate."""
        fall = 0.5 * (1 + math.cos(math.pi * min(1, self.run.spent / self.run.seconds)))
        self.lr = min((self.step - self.first + 1) / self.warm, 1) * (self.a.lr_end + (self.a.lr - self.a.lr_end) * fall)
        for group in self.others["opt"].param_groups:
            group["lr"] = self.lr
        self.net.train()
        return not self.run.stopping

    def update(self, loss, parts, form, every=50):
        """One step; parts: what is averaged and told in `form` every so many steps."""
        optimisers = [o for o in self.others.values() if isinstance(o, torch.optim.Optimizer)]
        for o in optimisers:
            o.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.params, self.clip)
        for o in optimisers if torch.isfinite(norm) else []:
            o.step()
        self.step += 1
        with torch.no_grad():
            torch._foreach_lerp_(list(self.ema.parameters()), list(self.net.parameters()), 1 - min(0.998, (self.step + 1) / (self.step + 50)))
        self.sums.append([x.item() for x in parts])
        if self.step % every == 0:
            told, self.sums = form % tuple(np.mean(self.sums, 0)), []
            print(f"{time.strftime('%H:%M:%S')} step {self.step} {self.run.spent:.0f} s lr {self.lr:.2e} gn {norm:.2f} {told}", flush=True)
        if self.run.due():
            self.save()
