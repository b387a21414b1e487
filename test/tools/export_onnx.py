"""Writes a Llama checkpoint as ONNX for transformers.js in the benchmarks: export_onnx.py CHECKPOINT FOLDER [fused].

FOLDER gets onnx/model.onnx in f32 and the checkpoint's config and tokenizer. Attention is made of MatMul and Softmax, as PyTorch exports it; with `fused` it
is GroupQueryAttention, as ONNX Runtime's model builder writes it, which on llvmpipe never returns (onnxruntime-node 1.30). Batches of one only.
Needs numpy, onnx, safetensors; checks nothing itself: the benchmark compares tokens before it measures.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

source, target, fused = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] == ["fused"]
config = json.loads((source / "config.json").read_text())
weights = {name: value.astype(np.float32) for name, value in load_file(source / "model.safetensors").items()}
hidden, layers, vocabulary = config["hidden_size"], config["num_hidden_layers"], config["vocab_size"]
heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
head_dim, eps = config.get("head_dim") or hidden // heads, config["rms_norm_eps"]
assert config["model_type"] == "llama" and not config.get("attention_bias"), "Llama without biases only"

nodes, constants = [], []


def constant(name, value):
    constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
    return name


def node(op, inputs, outputs, domain="", **attributes):
    nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes))
    return outputs[0]


def matmul(x, weight, out):
    return node("MatMul", [x, constant(f"{out}.weight", weights[weight].T)], [out])


def norm(x, weight, out):
    return node("SimplifiedLayerNormalization", [x, constant(f"{out}.weight", weights[weight])], [out], axis=-1, epsilon=eps, stash_type=1)


positions = np.arange(config["max_position_embeddings"], dtype=np.float64)[:, None]
angles = positions / config["rope_theta"] ** (np.arange(0, head_dim, 2) / head_dim)
cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
if fused:
    cos, sin = constant("cos_cache", cos), constant("sin_cache", sin)
    # Positions are counted from the attention mask.
    node("ReduceSum", ["attention_mask", constant("axis 1", np.array([1], np.int64))], ["lengths"], keepdims=0)
    node("Sub", ["lengths", constant("one", np.array(1, np.int64))], ["last positions"])
    node("Cast", ["last positions"], ["seqlens_k"], to=TensorProto.INT32)
    node("Shape", ["attention_mask"], ["mask shape"])
    node("Gather", ["mask shape", constant("second", np.array(1, np.int64))], ["total length"], axis=0)
    node("Cast", ["total length"], ["total_sequence_length"], to=TensorProto.INT32)
else:
    # [1, 1, S, D] of this step's rows, and [1, 1, 1, S, T] that adds -1e9 to what comes later.
    for name, table in (("cos", cos), ("sin", sin)):
        node("Gather", [constant(f"{name} table", np.concatenate([table, table], axis=1)), "position_ids"], [f"{name} rows"], axis=0)
        node("Unsqueeze", [f"{name} rows", constant(f"{name} axis", np.array([1], np.int64))], [f"{name} now"])
    node("Shape", ["attention_mask"], ["total length"], start=1, end=2)
    node("Squeeze", ["total length"], ["total"])
    node("Range", [constant("zero", np.array(0, np.int64)), "total", constant("one", np.array(1, np.int64))], ["all positions"])
    node("Unsqueeze", ["position_ids", constant("last axis", np.array([2], np.int64))], ["own positions"])
    node("LessOrEqual", ["all positions", "own positions"], ["visible"])
    hide = constant("hide", np.array(-1e9, np.float32))
    node("Where", ["visible", constant("show", np.array(0, np.float32)), hide], ["mask of rows"])
    node("Unsqueeze", ["mask of rows", constant("head axes", np.array([1, 2], np.int64))], ["mask"])


def rotate(x, out):
    first, second = node("Split", [x], [f"{out}.first", f"{out}.second"], axis=-1, num_outputs=2), f"{out}.second"
    turned = node("Concat", [node("Neg", [second], [f"{out}.minus"]), first], [f"{out}.turned"], axis=-1)
    straight = node("Mul", [x, "cos now"], [f"{out}.straight"])
    return node("Add", [straight, node("Mul", [turned, "sin now"], [f"{out}.across"])], [f"{out}.rotated"])


def split_heads(x, count, out):
    shaped = node("Reshape", [x, constant(f"{out}.shape", np.array([1, -1, count, head_dim], np.int64))], [f"{out}.shaped"])
    return node("Transpose", [shaped], [f"{out}.heads"], perm=[0, 2, 1, 3])


def plain_attention(at, query, key, value, past, present):
    query = rotate(split_heads(query, heads, f"{at}.q"), f"{at}.q")
    node("Concat", [past[0], rotate(split_heads(key, kv_heads, f"{at}.k"), f"{at}.k")], [present[0]], axis=2)
    node("Concat", [past[1], split_heads(value, kv_heads, f"{at}.v")], [present[1]], axis=2)
    # [1, K, H / K, S, D] against [1, K, 1, T, D]: the heads of a group share keys and values.
    group = constant(f"{at}.group", np.array([1, kv_heads, heads // kv_heads, -1, head_dim], np.int64))
    query = node("Reshape", [query, group], [f"{at}.q.grouped"])
    axis = constant(f"{at}.axis", np.array([2], np.int64))
    keys = node("Unsqueeze", [node("Transpose", [present[0]], [f"{at}.k.transposed"], perm=[0, 1, 3, 2]), axis], [f"{at}.k.columns"])
    values = node("Unsqueeze", [present[1], axis], [f"{at}.v.grouped"])
    scores = node("Mul", [node("MatMul", [query, keys], [f"{at}.dots"]), constant(f"{at}.scale", np.array(head_dim**-0.5, np.float32))], [f"{at}.scores"])
    weights = node("Softmax", [node("Add", [scores, "mask"], [f"{at}.masked"])], [f"{at}.weights"], axis=-1)
    mixed = node("MatMul", [weights, values], [f"{at}.mixed"])
    merged = node("Transpose", [mixed], [f"{at}.merged"], perm=[0, 3, 1, 2, 4])
    return node("Reshape", [merged, constant(f"{at}.flat", np.array([1, -1, heads * head_dim], np.int64))], [f"{at}.attended"])


def fused_attention(at, query, key, value, past, present):
    inputs = [query, key, value, *past, "seqlens_k", "total_sequence_length", cos, sin]
    options = {"num_heads": heads, "kv_num_heads": kv_heads, "do_rotary": 1, "scale": head_dim**-0.5}
    return node("GroupQueryAttention", inputs, [f"{at}.attended", *present], domain="com.microsoft", **options)


x = node("Gather", [constant("embedding", weights["model.embed_tokens.weight"]), "input_ids"], ["embedded"], axis=0)
for i in range(layers):
    at = f"model.layers.{i}"
    normed = norm(x, f"{at}.input_layernorm.weight", f"{at}.normed")
    query, key, value = (matmul(normed, f"{at}.self_attn.{p}_proj.weight", f"{at}.{p}") for p in "qkv")
    past = [f"past_key_values.{i}.{side}" for side in ("key", "value")]
    present = [f"present.{i}.{side}" for side in ("key", "value")]
    attended = (fused_attention if fused else plain_attention)(at, query, key, value, past, present)
    middle = node("Add", [x, matmul(attended, f"{at}.self_attn.o_proj.weight", f"{at}.o")], [f"{at}.middle"])
    normed = norm(middle, f"{at}.post_attention_layernorm.weight", f"{at}.normed again")
    gate, up = (matmul(normed, f"{at}.mlp.{p}_proj.weight", f"{at}.{p}") for p in ("gate", "up"))
    silu = node("Mul", [gate, node("Sigmoid", [gate], [f"{at}.sigmoid"])], [f"{at}.silu"])
    down = matmul(node("Mul", [silu, up], [f"{at}.activated"]), f"{at}.mlp.down_proj.weight", f"{at}.down")
    x = node("Add", [middle, down], [f"{at}.out"])
x = norm(x, "model.norm.weight", "last normed")
head = "model.embed_tokens.weight" if config.get("tie_word_embeddings") else "lm_head.weight"
matmul(x, head, "logits")

cache = ["batch_size", kv_heads, "past_sequence_length", head_dim]
grown = ["batch_size", kv_heads, "total_sequence_length", head_dim]
values = [(i, side) for i in range(layers) for side in ("key", "value")]
graph = helper.make_graph(
    nodes,
    "llama",
    [
        helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
        helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"]),
        *([] if fused else [helper.make_tensor_value_info("position_ids", TensorProto.INT64, ["batch_size", "sequence_length"])]),
        *(helper.make_tensor_value_info(f"past_key_values.{i}.{side}", TensorProto.FLOAT, cache) for i, side in values),
    ],
    [
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", vocabulary]),
        *(helper.make_tensor_value_info(f"present.{i}.{side}", TensorProto.FLOAT, grown) for i, side in values),
    ],
    constants,
)
opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
(target / "onnx").mkdir(parents=True, exist_ok=True)
onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), target / "onnx" / "model.onnx")
for path in source.iterdir():
    if path.suffix == ".json":
        shutil.copy(path, target)
