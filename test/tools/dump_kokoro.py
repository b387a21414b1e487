"""Makes test/fixtures/kokoro-tiny-random: a small random checkpoint of the Kokoro architecture and what the reference code computes from it.

    python3 test/tools/dump_kokoro.py

Needs torch, transformers, safetensors, numpy and the `kokoro` package from PyPI (hexgrad/kokoro; only modules.py and istftnet.py are used).
Widths are odd on purpose, weights are f32, the source's noise is zero and its phases are summed in f64 (the package does it in f32). Stages are those of KModel.forward_with_tokens.
"""

import json
import os

import torch
from safetensors.torch import save_file

from check_checkpoints import ReferenceKokoro

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "..", "fixtures", "kokoro-tiny-random")
SEED = 20
ANGLE_WEIGHT = 0.004
CONFIG = {
    "model_type": "kokoro", "sample_rate": 24000, "dim_in": 64, "dropout": 0.1, "hidden_dim": 32, "max_conv_dim": 32, "max_dur": 11,
    "multispeaker": True, "n_layer": 2, "n_mels": 80, "n_token": 40, "style_dim": 12, "text_encoder_kernel_size": 5,
    "decoder_dim": 40, "asr_res_dim": 12,
    "istftnet": {
        "upsample_kernel_sizes": [11, 9], "upsample_rates": [5, 3], "gen_istft_hop_size": 5, "gen_istft_n_fft": 20,
        "resblock_dilation_sizes": [[1, 3, 5], [1, 2, 3]], "resblock_kernel_sizes": [3, 5], "upsample_initial_channel": 32,
    },
    "plbert": {
        "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 52, "max_position_embeddings": 64, "num_hidden_layers": 2,
        "dropout": 0.1, "embedding_size": 24,
    },
    "vocab": {c: i + 1 for i, c in enumerate(" ,.!?abcdefghijklmnopqrstuvwxyz")},
}


def randomise(model):
    """Weights large enough that every stage varies: the initial ones leave the vocoder almost silent."""
    generator = torch.Generator().manual_seed(SEED)
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator)
        with torch.no_grad():
            if ".alpha" in name:
                p.copy_(0.5 + noise.abs())
            elif name.endswith("weight_g"):
                p.copy_(0.7 + 0.2 * noise)
            elif p.dim() == 1 and ("norm" in name.lower() or "gamma" in name) and name.endswith(("weight", "gamma")):
                p.copy_(1 + 0.2 * noise)
            elif p.dim() == 1:
                p.copy_(0.2 * noise)
            else:
                p.copy_(noise / (p[0].numel() ** 0.5))
    with torch.no_grad():
        # Voiced throughout: without noise an unvoiced source is a constant, and the angles of its empty bins are rounding noise.
        model.predictor.F0_proj.weight.mul_(60)
        model.predictor.F0_proj.bias.fill_(350)
        model.predictor.duration_proj.linear_layer.weight.mul_(6)
        model.predictor.duration_proj.linear_layer.bias.sub_(1.2)
        model.decoder.generator.conv_post.bias.sub_(3)
        # Angles jump by 2 pi with the last bit of a sum; a trained vocoder hardly listens to them, a random one must be told not to.
        for conv in model.decoder.generator.noise_convs:
            conv.weight[:, CONFIG["istftnet"]["gen_istft_n_fft"] // 2 + 1 :].mul_(ANGLE_WEIGHT)


def tap(module, store, name, before=False):
    if before:
        module.register_forward_pre_hook(lambda _, args: store.update({name: args[0].detach().clone()}))
    else:
        module.register_forward_hook(lambda _, __, y: store.update({name: y.detach().clone()}))


def main():
    torch.manual_seed(SEED)
    model = ReferenceKokoro(CONFIG).eval()
    randomise(model)
    more = {}
    for i, block in enumerate(model.decoder.decode):
        tap(block, more, f"decode_{i}")
    generator = model.decoder.generator
    tap(generator.noise_convs[0], more, "har", before=True)
    for i in range(len(generator.ups)):
        tap(generator.noise_res[i], more, f"noise_res_{i}")
        tap(generator.ups[i], more, f"ups_{i}_in", before=True)
    tap(generator.conv_post, more, "conv_post_in", before=True)
    tap(generator.conv_post, more, "conv_post")
    style = torch.randn(1, 2 * CONFIG["style_dim"], generator=torch.Generator().manual_seed(SEED + 1))
    text = "hello, brave world."
    ids = torch.tensor([[0, *(CONFIG["vocab"][c] for c in text), 0]])
    model.use_double_source()
    stages = model.stages(ids, style, lambda shape: torch.zeros(shape, dtype=torch.float64))
    stages.update(more, input_ids=ids, style=style)

    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, "config.json"), "w") as file:
        json.dump(CONFIG, file, indent=1, ensure_ascii=False)
        file.write("\n")
    weights = {name: p.detach().contiguous() for name, p in model.state_dict().items() if "position_ids" not in name and "stft" not in name}
    save_file(weights, os.path.join(FOLDER, "model.safetensors"), metadata={"made_by": f"test/tools/dump_kokoro.py, seed {SEED}"})
    save_file({"random": style}, os.path.join(FOLDER, "voices.safetensors"))
    golden = {k: v.contiguous() if v.dtype == torch.float32 else v.to(torch.int32).contiguous() for k, v in stages.items()}
    save_file(golden, os.path.join(FOLDER, "golden.safetensors"), metadata={"text": text, "torch": torch.__version__})
    for name, value in golden.items():
        print(f"{name:16} {str(list(value.shape)):18} rms {value.float().pow(2).mean().sqrt():.4g}")
    print(stages["pred_dur"].tolist(), f"voiced {float((stages['F0'] > 10).float().mean()):.2f}", f"{sum(w.numel() for w in weights.values()):,} values")


if __name__ == "__main__":
    main()
