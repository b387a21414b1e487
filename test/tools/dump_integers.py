#!/usr/bin/env python3
"""Makes test/fixtures/integers: tiny random decoders whose weights are quantised to integers as published checkpoints have them.

    python3 test/tools/dump_integers.py [NAME...]

Needs torch, transformers, safetensors, compressed-tensors, bitsandbytes and mlx[cpu]. Each folder has a config.json, a model.safetensors, and golden.json
with the SHA-256 of every dequantised matrix in f32 (and its values, where scales cannot be kept as they are), and with the logits that transformers
computes from these in f32. What compressed-tensors, bitsandbytes and MLX store is written and read by those packages. GPTQ's and AWQ's packages need CUDA:
their layouts are written from the definition (AutoGPTQ's QuantLinear.pack, AutoAWQ's WQLinear_GEMM.from_linear), a code at a time.
"""
import hashlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

OUT = Path(__file__).resolve().parent.parent / "fixtures" / "integers"
VOCABULARY, PROMPT, ROWS = 64, 12, 2
COMMON = dict(
    vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
    tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, pad_token_id=0, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
)
LLAMA, QWEN2 = dict(COMMON, model_type="llama", head_dim=16), dict(COMMON, model_type="qwen2")
# For codes of a byte, and for bitsandbytes' groups of 64 columns.
SMALL, EVEN = dict(LLAMA, intermediate_size=32), dict(LLAMA, intermediate_size=64)


def halves(generator, shape, least=0.004, most=0.02):
    """Positive random scales that f16 and f32 hold."""
    return generator.uniform(least, most, shape).astype(np.float16)


def words(codes, bits, axis):
    """Packs codes [.., n, ..] along an axis, the first in the lowest bits, into int32."""
    codes = np.moveaxis(codes.astype(np.uint32), axis, -1)
    codes = codes.reshape(*codes.shape[:-1], -1, 32 // bits)
    packed = np.zeros(codes.shape[:-1], np.uint32)
    for i in range(32 // bits):
        packed |= codes[..., i] << np.uint32(i * bits)
    return np.moveaxis(packed, -1, axis).view(np.int32).copy()


def tensors_of(arrays):
    return {name: torch.from_numpy(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value.contiguous() for name, value in arrays.items()}


def gptq(bits=4, size=32, symmetric=True, version="gptq", act_order=False, biases=False, eight=()):
    """AutoGPTQ and GPTQModel: w[row, k] = scales[g_idx[k], row] * (code - zero); `eight`: modules with eight bits, as GPTQModel's `dynamic` has them."""
    def make(generator, name, shape):
        rows, columns = shape
        count = 8 if any(part in name for part in eight) else bits
        width = columns if size == -1 else size
        groups = -(-columns // width)
        index = np.arange(columns) // width
        if act_order:
            index = generator.permutation(index)
        codes = generator.integers(0, 2**count, (columns, rows))
        middle = 2 ** (count - 1)
        zeros = np.full((groups, rows), middle) if symmetric else generator.integers(1, 2**count, (groups, rows))
        scales = halves(generator, (groups, rows)) / (1 if count == 4 else 16)
        values = (codes - zeros[index]).astype(np.float32) * scales[index].astype(np.float32)
        stored = {
            "qweight": words(codes, count, 0), "scales": scales, "g_idx": index.astype(np.int32),
            "qzeros": words(zeros - (1 if version == "gptq" else 0), count, 1),
        }
        if biases:
            stored["bias"] = np.zeros(rows, np.float16)
        return stored, values.T
    settings = dict(quant_method="gptq", bits=bits, group_size=size, sym=symmetric, desc_act=act_order, checkpoint_format=version, damp_percent=0.01)
    if eight:
        settings["dynamic"] = {f"+:.*{part}.*": {"bits": 8} for part in eight}
    return make, dict(quantization_config=settings)


AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def awq(size=32):
    """AutoAWQ's GEMM: nibble i of a word has row AWQ_ORDER[i] of eight."""
    def interleaved(codes):
        return words(codes.reshape(codes.shape[0], -1, 8)[:, :, AWQ_ORDER].reshape(codes.shape), 4, 1)

    def make(generator, name, shape):
        rows, columns = shape
        codes = generator.integers(0, 16, (columns, rows))
        zeros = generator.integers(0, 16, (columns // size, rows))
        scales = halves(generator, (columns // size, rows))
        spread = lambda values: np.repeat(values, size, 0)
        values = (codes - spread(zeros)).astype(np.float32) * spread(scales).astype(np.float32)
        return {"qweight": interleaved(codes), "qzeros": interleaved(zeros), "scales": scales}, values.T
    return make, dict(quantization_config=dict(quant_method="awq", version="gemm", bits=4, group_size=size, zero_point=True, modules_to_not_convert=None))


def compressed(bits=4, size=32, symmetric=True, act_order=False, packed=True, activations=False, dtype=torch.bfloat16):
    """compressed-tensors, packed and dequantised by the package; a size of -1 is a scale for each row, 0 one for the matrix."""
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32, unpack_from_int32
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    def make(generator, name, shape):
        rows, columns = shape
        groups = columns // size if size > 0 else 1
        half = 2 ** (bits - 1)
        codes = torch.from_numpy(generator.integers(-half, half, shape).astype(np.int8))
        scales = torch.from_numpy(generator.uniform(0.004, 0.02, (1 if size == 0 else rows, groups)) / (1 if bits == 4 else 16)).to(dtype)
        zeros = None if symmetric else torch.from_numpy(generator.integers(-half, half, scales.shape).astype(np.int8))
        index = torch.from_numpy(generator.permutation(np.arange(columns) // size).astype(np.int32)) if act_order else None
        stored = {"weight_scale": scales}
        if packed:
            stored |= {"weight_packed": pack_to_int32(codes, bits), "weight_shape": torch.tensor(shape)}
            assert torch.equal(unpack_from_int32(stored["weight_packed"], bits, torch.Size(shape)), codes)
            if zeros is not None:
                stored["weight_zero_point"] = pack_to_int32(zeros, bits, packed_dim=0)
        else:
            stored["weight"] = codes
            if zeros is not None:
                stored["weight_zero_point"] = zeros
        if index is not None:
            stored["weight_g_idx"] = index
        if activations:
            stored["input_scale"] = torch.ones(1, dtype=dtype)
        # The package no longer knows weight_g_idx, the group of each column: there groups are put in order first.
        order = torch.arange(columns) if index is None else torch.argsort(index, stable=True)
        values = torch.empty(shape)
        values[:, order] = dequantize(codes[:, order], scales.float(), zeros, args=args, dtype=torch.float32)
        return stored, values.numpy()
    strategy = "group" if size > 0 else "channel" if size < 0 else "tensor"
    args = QuantizationArgs(num_bits=bits, type="int", symmetric=symmetric, strategy=strategy, group_size=size if size > 0 else None)
    weights = dict(num_bits=bits, type="int", symmetric=symmetric, strategy=strategy, group_size=size if size > 0 else None, actorder="group" if act_order else None)
    inputs = dict(num_bits=8, type="int", symmetric=True, strategy="token", dynamic=True) if activations else None
    group = dict(targets=["Linear"], weights=weights, input_activations=inputs, output_activations=None)
    form = "pack-quantized" if packed else "int-quantized"
    return make, dict(quantization_config=dict(quant_method="compressed-tensors", format=form, quantization_status="compressed", config_groups=dict(group_0=group), ignore=["lm_head"]))


def mlx(bits=4, size=32, others=None):
    """mlx-lm: quantised by mlx.core.quantize in bf16, the embedding table too; `others`: bits of modules by a part of their names."""
    import mlx.core as mx

    def bits_of(name):
        return next((own for part, own in (others or {}).items() if part in name), bits)

    def make(generator, name, shape):
        weight = mx.array((generator.standard_normal(shape) * 0.05).astype(np.float32)).astype(mx.bfloat16)
        count = bits_of(name)
        codes, scales, biases = mx.quantize(weight, group_size=size, bits=count)
        scales, biases = (np.array(value.astype(mx.float32)) for value in (scales, biases))
        known = np.array(mx.dequantize(codes, mx.array(scales), mx.array(biases), group_size=size, bits=count))
        # The definition, since MLX may multiply and add at once.
        plain = np.array(mx.dequantize(codes, mx.ones(scales.shape), mx.zeros(scales.shape), group_size=size, bits=count))
        values = plain * np.repeat(scales, size, 1) + np.repeat(biases, size, 1)
        assert np.abs(values - known).max() <= 2**-22
        narrow = lambda value: torch.from_numpy(value).to(torch.bfloat16)
        return {"weight": torch.from_numpy(np.array(codes)), "scales": narrow(scales), "biases": narrow(biases)}, values
    settings = dict(group_size=size, bits=bits)
    for layer, part in enumerate(others or {}):
        settings[f"model.layers.0.{part}"] = dict(group_size=size, bits=others[part])
    return make, dict(quantization=settings, quantization_config=settings)


def nvfp4(divided=True):
    """compressed-tensors, packed and dequantised by the package, and ModelOpt, whose scale of a matrix is the inverse."""
    from compressed_tensors.compressors.nvfp4.helpers import pack_fp4_to_uint8
    steps = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)

    def make(generator, name, shape):
        codes = steps[generator.integers(0, 8, shape)] * generator.choice(np.float32([-1, 1]), shape)
        scales = torch.from_numpy(generator.uniform(1, 448, (shape[0], shape[1] // 16)).astype(np.float32)).to(torch.float8_e4m3fn)
        whole = np.float32(generator.uniform(20000, 40000))
        factor = np.float32(1) / whole
        # Zeros below zero are zeros.
        values = codes * np.repeat(scales.float().numpy() * factor, 16, 1) + np.float32(0)
        # The package divides at once, which may differ in the last bit.
        assert np.allclose(values, codes * np.repeat(scales.float().numpy() / whole, 16, 1), rtol=2**-22, atol=0)
        packed = pack_fp4_to_uint8(torch.from_numpy(codes))
        if divided:
            return {"weight_packed": packed, "weight_scale": scales, "weight_global_scale": np.array([whole]), "input_global_scale": np.array([1], np.float32)}, values
        return {"weight": packed, "weight_scale": scales, "weight_scale_2": np.array(factor), "input_scale": np.array(1, np.float32)}, values
    weights = dict(num_bits=4, type="float", symmetric=True, strategy="tensor_group", group_size=16)
    group = dict(targets=["Linear"], weights=weights, input_activations=dict(num_bits=4, type="float", strategy="tensor_group", group_size=16, dynamic="local"))
    form = dict(quant_method="compressed-tensors", format="nvfp4-pack-quantized", quantization_status="compressed", config_groups=dict(group_0=group), ignore=["lm_head"])
    return make, dict(quantization_config=form if divided else dict(quant_method="modelopt", quant_algo="NVFP4", group_size=16, exclude_modules=["lm_head"]))


def bits_and_bytes(kind="nf4", nested=True):
    """bitsandbytes: 4-bit codes by its own quantiser, with its QuantState beside them; or LLM.int8."""
    import bitsandbytes.functional as F

    def make(generator, name, shape):
        weight = torch.from_numpy((generator.standard_normal(shape) * 0.05).astype(np.float32))
        codes, state = F.quantize_4bit(weight, blocksize=64, quant_type=kind, compress_statistics=nested)
        known = F.dequantize_4bit(codes, state).numpy()
        stored = {"weight": codes} | {f"weight.{key}": value for key, value in state.as_dict(packed=True).items()}
        scales = F.dequantize_blockwise(state.absmax, state.state2) + state.offset if nested else state.absmax
        flat = codes.numpy().reshape(-1)
        order = np.stack([flat >> 4, flat & 15], 1).reshape(-1)
        values = (state.code.numpy()[order].reshape(-1, state.blocksize) * scales.float().numpy()[:, None]).reshape(shape)
        assert np.abs(values - known).max() <= 1e-7
        return stored, values

    def make_bytes(generator, name, shape):
        codes = generator.integers(-127, 128, shape).astype(np.int8)
        most = generator.uniform(0.05, 0.2, shape[0]).astype(np.float32)
        values = codes.astype(np.float32) * (most / np.float32(127))[:, None]
        known = F.int8_vectorwise_dequant(torch.from_numpy(codes), torch.from_numpy(most)).numpy()
        assert np.abs(values - known).max() <= 2e-8
        return {"weight": codes, "SCB": most, "weight_format": np.array(0, np.uint8)}, values
    four = kind != "int8"
    settings = dict(quant_method="bitsandbytes", load_in_4bit=four, load_in_8bit=not four, llm_int8_threshold=6.0, bnb_4bit_quant_type=kind if four else "fp4",
                    bnb_4bit_use_double_quant=nested, bnb_4bit_compute_dtype="bfloat16", bnb_4bit_quant_storage="uint8", llm_int8_skip_modules=None)
    return make if four else make_bytes, dict(quantization_config=settings)


FIXTURES = {
    "gptq": lambda: (LLAMA, gptq(biases=True)),
    "gptq-v2": lambda: (LLAMA, gptq(size=-1, symmetric=False, version="gptq_v2")),
    "gptq-act-order": lambda: (LLAMA, gptq(symmetric=False, act_order=True)),
    "gptq-8": lambda: (SMALL, gptq(bits=8)),
    "gptq-8-mixed": lambda: (LLAMA, gptq(symmetric=False, eight=["o_proj", "down_proj"])),
    "awq": lambda: (QWEN2, awq()),
    "compressed": lambda: (LLAMA, compressed()),
    "compressed-zeros": lambda: (QWEN2, compressed(size=-1, symmetric=False)),
    "compressed-act-order": lambda: (LLAMA, compressed(act_order=True)),
    "compressed-8": lambda: (SMALL, compressed(bits=8)),
    "compressed-bytes": lambda: (SMALL, compressed(bits=8, size=-1, packed=False, activations=True, dtype=torch.float32)),
    "compressed-one": lambda: (SMALL, compressed(bits=8, size=0, packed=False, dtype=torch.float32)),
    "mlx": lambda: (QWEN2, mlx()),
    "mlx-8": lambda: (SMALL, mlx(bits=8)),
    "mlx-mixed": lambda: (LLAMA, mlx(others={"self_attn.q_proj": 2, "self_attn.k_proj": 3, "mlp.up_proj": 5, "mlp.down_proj": 6})),
    "bitsandbytes": lambda: (EVEN, bits_and_bytes()),
    "bitsandbytes-fp4": lambda: (EVEN, bits_and_bytes("fp4", nested=False)),
    "bitsandbytes-8": lambda: (SMALL, bits_and_bytes("int8")),
    "nvfp4": lambda: (LLAMA, nvfp4()),
    "nvfp4-modelopt": lambda: (QWEN2, nvfp4(divided=False)),
}
"""Fixtures by name: a model's config, and how its matrices are made."""


def dump(name, seed):
    settings, (make, quantisation) = FIXTURES[name]()
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    generator = np.random.default_rng(seed)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**settings), attn_implementation="eager").eval().float()
    tensors, digests = {}, {}
    for key, parameter in model.named_parameters():
        is_table = key.startswith("model.embed_tokens")
        if parameter.ndim == 2 and (not is_table or "quantization" in quantisation):
            stored, values = make(generator, key, tuple(parameter.shape))
            values = np.ascontiguousarray(values.astype(np.float32))
            module = key.removesuffix(".weight")
            tensors.update(tensors_of({f"{module}.{end}": value for end, value in stored.items()}))
            digests[key] = hashlib.sha256(values.tobytes()).hexdigest()
        else:
            values = (generator.standard_normal(tuple(parameter.shape)) * 0.1 + (1 if "norm" in key else 0)).astype(np.float16)
            tensors[key] = torch.from_numpy(values)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(values.astype(np.float32)))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = {key: value for key, value in json.loads(model.config.to_json_string()).items() if key not in ("_name_or_path", "transformers_version")}
    (folder / "config.json").write_text(json.dumps(config | quantisation, indent=1) + "\n")
    prompt = generator.integers(3, VOCABULARY, PROMPT).tolist()
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0, -ROWS:]
    golden = dict(prompt=prompt, sha256=digests, logits=[[float(f"{value:.9g}") for value in row] for row in logits.tolist()])
    (folder / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(name, sum(file.stat().st_size for file in folder.iterdir()), "bytes")


if __name__ == "__main__":
    for seed, name in enumerate(FIXTURES):
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            dump(name, seed)
