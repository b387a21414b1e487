"""The chat model is transformers' LlamaForCausalLM in the bundled model's shape."""

import torch
import paths  # noqa: F401 (training/shared)
from safetensors.torch import load_file
from shared.work import MODELS
from tokenizer import EOT
from transformers import LlamaConfig, LlamaForCausalLM


def new(folder=MODELS + '/parley-chat'):
    """A model of this folder's shape, with weights at random."""
    return LlamaForCausalLM(LlamaConfig.from_pretrained(folder))


def load(folder):
    """exported folder -> float32 model (weights as stored, only widened)"""
    net = new(folder)
    net.load_state_dict({k: v.float() for k, v in load_file(folder + '/model.safetensors').items()}, strict=False)  # the output layer is tied
    return net.eval()


def hidden(net, x):
    """x (B, T) ids -> states (B, T, hidden); a token sees the tokens of its own document before it (a document ends with <|endoftext|>)"""
    ends = (x == EOT).long()
    document = ends.cumsum(1) - ends
    mask = (document[:, :, None] == document[:, None, :]).tril()[:, None]
    return net.model(x, attention_mask=mask, use_cache=False).last_hidden_state


def greedy(net, ids, n):
    """The n likeliest tokens after ids, one after the other."""
    out = net.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), do_sample=False, max_new_tokens=n, min_new_tokens=n,
                       eos_token_id=None, pad_token_id=EOT)
    return out[0, len(ids):].tolist()
