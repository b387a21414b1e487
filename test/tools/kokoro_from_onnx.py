"""Kokoro-82M's weights in an ONNX export (int8, fp16 or fp32) under the names of kokoro-v1_0.pth, in f32: the reference for engine/weights/kokoro/.

Every weight is found by the *node* that reads it: node names keep the module's path (/encoder/F0.0/conv1/Conv_quant is predictor.F0.0.conv1),
initialisers' names do not (/encoder/F0.0/Mul_output_0, onnx::LSTM_6930). Needs onnx and numpy.
"""
import re

import numpy as np
from onnx import numpy_helper as nh

CONFIG = {
    "model_type": "kokoro", "sample_rate": 24000, "dim_in": 64, "dropout": 0.2, "hidden_dim": 512, "max_conv_dim": 512, "max_dur": 50,
    "multispeaker": True, "n_layer": 3, "n_mels": 80, "n_token": 178, "style_dim": 128, "text_encoder_kernel_size": 5,
    "istftnet": {"upsample_kernel_sizes": [20, 12], "upsample_rates": [10, 6], "gen_istft_hop_size": 5, "gen_istft_n_fft": 20,
                 "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]], "resblock_kernel_sizes": [3, 7, 11],
                 "upsample_initial_channel": 512},
    "plbert": {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 2048, "max_position_embeddings": 512,
               "num_hidden_layers": 12, "dropout": 0.1},
}
PREDICTOR = ("F0", "N", "F0_proj", "N_proj", "shared", "lstm", "duration_proj")


def canonical(path):
    """Dotted module path as the exporter wrote it (wrappers in front, scopes doubled) -> kokoro-v1_0.pth name."""
    p = path.strip("/").replace("/", ".")
    p = re.sub(r"^(kmodel|model|encoder|decoder\.(?=decoder)|kmodel\.)\.?", "", p)  # the exporter's wrapper modules
    p = re.sub(r"(^|\.)([A-Za-z_0-9]+)\.(\d+)\.\2\.\3\.", r"\1\2.\3.", p)           # cnn.0.cnn.0.0 -> cnn.0.0
    p = re.sub(r"(^|\.)([A-Za-z_0-9]+)\.\2\.(\d+)", r"\1\2.\3", p)                  # asr_res.asr_res.0 -> asr_res.0
    if p.split(".")[0] in PREDICTOR or p.startswith("text_encoder.lstms."):          # called from the wrapper's forward: no predictor in the scope
        p = "predictor." + p
    return p


def module_of(node):
    """/a/b/c/Conv_quant -> a.b.c; suffixes _1, _2 of a module called again (ALBERT's shared layer) are dropped."""
    scope = node.name.rsplit("/", 1)[0]
    parts = [re.sub(r"^(query|key|value|dense|ffn|ffn_output)_\d+$", r"\1", s) for s in scope.split("/")]
    return canonical("/".join(parts))


def convert(model):
    """Weights by name, names of initialisers that were read, and all initialisers of an onnx.ModelProto."""
    g = model.graph
    init = {t.name: t for t in g.initializer}
    val = lambda n: nh.to_array(init[n])
    cons = {}
    for n in g.node:
        for i in n.input: cons.setdefault(i, []).append(n)
    for n in g.node:                                              # Constant nodes count as initialisers
        if n.op_type == "Constant": init[n.output[0]] = n.attribute[0].t
    out, used = {}, {}

    def put(name, array, *sources):
        array = np.ascontiguousarray(array, np.float32)
        if name in out:
            assert np.array_equal(out[name], array), f"{name} twice, different"
        out[name] = array
        for s in sources: used[s] = name

    def scale_of(node, weight):
        """The f32 scale of a ConvInteger/MatMulInteger weight: <weight>_scale, or what its *_scales_mul multiplies (equal ones are merged)."""
        base = weight[: -len("_quantized")]
        mul = next((n for n in g.node if n.name == node.name + "_scales_mul"), None)
        names = [i for i in (mul.input if mul else ()) if i in init] or [base + "_scale"]
        return val(names[0]), names[0]

    for n in g.node:
        op = n.op_type
        if op in ("ConvInteger", "MatMulInteger"):
            w = n.input[1]
            if w not in init: continue                            # activations x activations (attention)
            q = val(w).astype(np.int32)
            zp_name = n.input[3] if len(n.input) > 3 and n.input[3] else None
            zp = val(zp_name).astype(np.int32) if zp_name else np.int32(0)
            s, s_name = scale_of(n, w)
            if op == "MatMulInteger":
                put(module_of(n) + ".weight", ((q - zp) * s).T, w, s_name, zp_name)      # [in, out] -> [out, in]; scale per out
            else:
                shape = (-1, 1, 1) if s.ndim == 1 and s.size > 1 else ()
                put(module_of(n) + ".weight", (q - zp.reshape(shape or zp.shape)) * s.reshape(shape or s.shape), w, s_name, zp_name)
        elif op in ("Conv", "ConvTranspose") and n.input[1] in init:
            if "stft" in n.name or "stft" in n.input[1]: continue  # bases of the STFT written as convolutions
            put(module_of(n) + ".weight", val(n.input[1]), n.input[1])
            if len(n.input) > 2 and n.input[2] in init: put(module_of(n) + ".bias", val(n.input[2]), n.input[2])
        elif op in ("MatMul", "Gemm", "FusedMatMul") and n.input[1] in init and len(init[n.input[1]].dims) == 2:
            a = val(n.input[1])
            trans = op == "Gemm" and any(x.name == "transB" and x.i for x in n.attribute)
            put(module_of(n) + ".weight", a if trans else a.T, n.input[1])
            if op == "Gemm" and len(n.input) > 2: put(module_of(n) + ".bias", val(n.input[2]), n.input[2])
        elif op == "Gather" and n.input[0] in init and len(init[n.input[0]].dims) == 2:
            a = val(n.input[0])
            if a.dtype in (np.int64, np.int32): continue
            if a.dtype in (np.int8, np.uint8):
                dq = next(c for c in cons[n.output[0]] if c.op_type == "DequantizeLinear")
                zp = val(dq.input[2]).astype(np.int32) if len(dq.input) > 2 else 0
                put(module_of(n) + ".weight", (a.astype(np.int32) - zp) * val(dq.input[1]), n.input[0], dq.input[1], dq.input[2])
            else: put(module_of(n) + ".weight", a, n.input[0])
        elif op in ("LSTM", "DynamicQuantizeLSTM"):
            W, R, B = val(n.input[1]), val(n.input[2]), val(n.input[3])
            used.update({i: module_of(n) for i in n.input[1:4]})
            if op == "DynamicQuantizeLSTM":                       # [D, in, 4H] int8, a scale and a zero point per direction (or per column)
                sw, zw, sr, zr = (val(n.input[i]) for i in (8, 9, 10, 11))
                used.update({n.input[i]: module_of(n) for i in (8, 9, 10, 11)})
                wide = lambda v: np.asarray(v, np.float32).reshape(W.shape[0], 1, -1)
                W = ((W.astype(np.float32) - wide(zw)) * wide(sw)).transpose(0, 2, 1)
                R = ((R.astype(np.float32) - wide(zr)) * wide(sr)).transpose(0, 2, 1)
            h = R.shape[2]
            order = np.concatenate([np.arange(k * h, (k + 1) * h) for k in (0, 2, 3, 1)])   # ONNX iofc -> PyTorch ifgo
            m = module_of(n)
            for d, suffix in enumerate(("l0", "l0_reverse")[: W.shape[0]]):
                put(f"{m}.weight_ih_{suffix}", W[d][order]); put(f"{m}.weight_hh_{suffix}", R[d][order])
                put(f"{m}.bias_ih_{suffix}", B[d][: 4 * h][order]); put(f"{m}.bias_hh_{suffix}", B[d][4 * h :][order])
    for name, t in init.items():                                  # biases, alphas, norms: float and under their own names
        if t.data_type in (1, 10, 16) and re.search(r"\.(bias|gamma|beta|weight|weight_[gv]|alpha[12]\.\d+)$", name) and not name.startswith("/"):
            if "stft" in name: continue
            if re.search(r"\.norm\.(weight|bias)$", name):            # affine of an InstanceNorm: 1 and 0 in v1.0, exporters keep some of them
                used[name] = "dropped"; assert np.all(val(name) == (1 if name.endswith("weight") else 0)), name; continue
            put(canonical(name.replace("decoder.decoder.", "decoder.", 1)), val(name), name)
    return out, used, init
