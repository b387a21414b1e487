#!/usr/bin/env python3
"""Makes test/fixtures/fp8: what PyTorch reads in FP8 codes, and matrices with scales as published checkpoints have them.

    python3 test/tools/dump_fp8.py

Needs torch, transformers, compressed-tensors and safetensors. codes.json has the bits of the f32 behind each of the 256 codes. Each folder has a config.json,
a model.safetensors (or two shards) and golden.safetensors with the same names in f32, dequantised by the library that defines the convention where it can
read the shape (transformers wants whole blocks), else by multiplying what is stored.
"""
import json
import os
import shutil

import torch
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize
from safetensors.torch import save_file
from transformers.integrations.finegrained_fp8 import Fp8Dequantize

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "fp8")
MOST = torch.finfo(torch.float8_e4m3fn).max
generator = torch.Generator().manual_seed(8)


def bits(dtype):
    codes = torch.arange(256, dtype=torch.uint8).view(dtype).float()
    return [None if value.isnan() else int(value.view(torch.int32)) & 0xFFFFFFFF for value in codes]


def quantised(shape, block, scale_dtype=torch.float32):
    """A random matrix with outliers as FP8 in blocks, its scales, and both multiplied."""
    weight = 0.05 * torch.randn(shape, generator=generator) * (1 + 20 * (torch.rand(shape, generator=generator) > 0.97))
    rows, columns = (-(-size // step) for size, step in zip(shape, block))
    wide = lambda scales: scales.float().repeat_interleave(block[0], 0)[: shape[0]].repeat_interleave(block[1], 1)[:, : shape[1]]
    padded = torch.zeros(rows * block[0], columns * block[1])
    padded[: shape[0], : shape[1]] = weight
    largest = padded.reshape(rows, block[0], columns, block[1]).abs().amax((1, 3))
    scales = (2.0 ** torch.ceil(torch.log2(largest / MOST)) if scale_dtype == torch.float8_e8m0fnu else largest / MOST).to(scale_dtype)
    stored = (weight / wide(scales)).clamp(-MOST, MOST).to(torch.float8_e4m3fn)
    return stored, scales, stored.float() * wide(scales)


def write(name, config, tensors, golden, shards=None):
    folder = os.path.join(OUT, name)
    os.makedirs(folder)
    json.dump({"model_type": "qwen3", "quantization_config": config} if config else {"model_type": "qwen3"}, open(os.path.join(folder, "config.json"), "w"))
    if shards:
        for file, names in shards.items():
            save_file({key: tensors[key] for key in names}, os.path.join(folder, file))
        index = {"weight_map": {key: file for file, names in shards.items() for key in names}}
        json.dump(index, open(os.path.join(folder, "model.safetensors.index.json"), "w"))
    else:
        save_file(tensors, os.path.join(folder, "model.safetensors"))
    save_file({key: value.float().contiguous() for key, value in golden.items()}, os.path.join(folder, "golden.safetensors"))


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    codes = {"F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "F8_E8M0": torch.float8_e8m0fnu}
    json.dump({name: bits(dtype) for name, dtype in codes.items()}, open(os.path.join(OUT, "codes.json"), "w"))
    norm = torch.randn(24, generator=generator).bfloat16()

    # DeepSeek's and Qwen's: blocks at whose ends something is left over, in two shards, the scales apart from their weights.
    first, second = quantised((36, 24), (16, 16)), quantised((32, 48), (16, 16), torch.float8_e8m0fnu)
    assert torch.equal(Fp8Dequantize(None)._dequantize_one(second[0], second[1], torch.float32), second[2])
    tensors = {"a.weight": first[0], "a.weight_scale_inv": first[1], "b.weight": second[0], "b.weight_scale_inv": second[1], "norm.weight": norm}
    shards = {"1.safetensors": ["a.weight", "b.weight_scale_inv", "norm.weight"], "2.safetensors": ["b.weight", "a.weight_scale_inv"]}
    fp8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [16, 16]}
    write("block", fp8, tensors, {"a.weight": first[2], "b.weight": second[2], "norm.weight": norm}, shards)

    # compressed-tensors: a scale for each row, in bf16 as llm-compressor writes it, and static activations.
    channel = quantised((20, 24), (1, 24), torch.bfloat16)
    args = QuantizationArgs(num_bits=8, type="float", strategy="channel", symmetric=True, dynamic=False)
    assert torch.equal(dequantize(channel[0], channel[1].float(), args=args), channel[2])
    group = {"weights": json.loads(args.model_dump_json()), "input_activations": None, "targets": ["Linear"]}
    compressed = {"quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed", "config_groups": {"group_0": group}, "ignore": ["lm_head"]}
    tensors = {"a.weight": channel[0], "a.weight_scale": channel[1], "a.input_scale": torch.ones(1), "attn.k_scale": torch.ones(1), "norm.weight": norm}
    write("channel", compressed, tensors, {"a.weight": channel[2], "norm.weight": norm})

    # One scale a matrix, as a number without dimensions and as a list of one, with a static scale of activations.
    first, second = quantised((20, 24), (20, 24)), quantised((8, 24), (8, 24))
    tensors = {"a.weight": first[0], "a.weight_scale": first[1].reshape(()), "a.input_scale": torch.ones(()), "b.weight": second[0], "b.weight_scale": second[1].reshape(1)}
    write("tensor", {"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None}, tensors, {"a.weight": first[2], "b.weight": second[2]})

    # Plain E5M2, which has the range of half precision.
    plain = (0.05 * torch.randn(12, 24, generator=generator)).to(torch.float8_e5m2)
    write("plain", None, {"a.weight": plain}, {"a.weight": plain})


if __name__ == "__main__":
    main()
