#!/usr/bin/env python3
"""CKPT/last.pt -> out/ (config, f16 model.safetensors with HF names, the other files of the bundled model). `--fixtures` also writes golden tensors;
`--blend FILE SHARE` takes that share of the weights from another export of the same run (a mean of two is often better than either);
`--round FILE BITS` rounds the tensors that differ from that export's to so many bits of mantissa: the repository's history then grows by little (equal tensors cost nothing)."""

import argparse, json, os, shutil
import torch
import paths
import decode, feat, model as M, tok
from safetensors.torch import load_file, save_file

BEAMS = 5
FIXTURE = paths.HERE + '/../../test/fixtures/parley-transcribe/'  # its clip stays, what is heard in it changes
SAMPLES = paths.DATA + '/../models/transcription/samples/'
NOTE = ('float32 arithmetic on the f16 weights; ids above eot are suppressed except timestamps in timestamp mode; ids, text and samples by beam '
        'search; conv_out is after the second GELU, before positions (first 64 positions); encoder_layer0_out likewise')


def rounded(w, bits):
    """The nearest numbers of so many bits of mantissa."""
    mantissa, exponent = torch.frexp(w)
    return torch.ldexp((mantissa * 2**(bits + 1)).round() / 2**(bits + 1), exponent)


def export(a):
    s = torch.load(a.ckpt, map_location='cpu')
    tk = tok.Tok()
    net = M.Whisper(M.config(), len(s['net']['ctc.bias']) - 1, tk.t0)
    net.load_state_dict(s['net'], strict=False)
    weights = net.hf_state()
    if a.blend:
        other = load_file(a.blend[0])
        weights = {k: w.lerp(other[k].float(), float(a.blend[1])) for k, w in weights.items()}
    if a.round:
        same = load_file(a.round[0])
        weights = {k: w if torch.equal(w.half(), same[k]) else rounded(w, int(a.round[1])) for k, w in weights.items()}
    save_file({k: w.half().contiguous() for k, w in weights.items()}, 'out/model.safetensors', {'format': 'pt'})
    for name in ('config.json', 'generation_config.json', 'preprocessor_config.json'):
        shutil.copy(f'{paths.MODELS}/parley-transcribe/{name}', 'out')
    print('exported step', s['step'], os.path.getsize('out/model.safetensors') / 1e6, 'MB')


def hear(path):
    return feat.read_wav(path)[1]


@torch.no_grad()
def fixtures():
    """Tensors on the way through the model and what is heard in the clip."""
    net, tk = decode.load()
    os.makedirs('out/fixtures', exist_ok=True)
    shutil.copy(FIXTURE + 'clip.wav', 'out/fixtures/clip.wav')
    clip = hear(FIXTURE + 'clip.wav')
    mel = torch.from_numpy(feat.whisper_input(clip))[None]
    encoder, prompt = net.model.encoder, [tk.sot, tk.en, tk.tr, tk.nots]
    enc = encoder(mel)
    x = encoder.conv(mel)
    first = encoder.layers[0](x + encoder.embed_positions.weight)
    logits = net.decode(torch.tensor([prompt]), enc)
    ids, timed_ids = decode.greedy(net, tk, mel[0]), decode.greedy(net, tk, mel[0], True)
    tensors = dict(input_features=mel, conv_out=x[:, :64], encoder_layer0_out=first[:, :64], encoder_out=enc, prompt_logits=logits)
    tensors.update(prompt_ids=torch.tensor([prompt]), greedy_ids=torch.tensor([ids]), greedy_ids_timestamps=torch.tensor([timed_ids]))
    save_file({k: t.contiguous() for k, t in tensors.items()}, 'out/fixtures/golden.safetensors')
    search = lambda x, stamps=False: decode.beam_search(net, tk, torch.from_numpy(feat.whisper_input(x)), BEAMS, stamps)
    found, timed = search(clip), search(clip, True)
    listed = json.load(open(SAMPLES + 'samples.json'))[:5] if os.path.exists(SAMPLES) else []
    golden = dict(clip='clip.wav', reference=json.load(open(FIXTURE + 'golden.json'))['reference'], prompt_ids=prompt, greedy_ids=ids,
                  greedy_text=tk.decode(ids), timestamp_prompt_ids=prompt[:3], greedy_ids_timestamps=timed_ids,
                  greedy_text_timestamps=tk.decode(timed_ids, True), beams=BEAMS, ids=found, text=tk.decode(found),
                  text_timestamps=tk.decode(timed, True), note=NOTE,
                  samples=[dict(wav=s['wav'], output=tk.decode(search(hear(SAMPLES + s['wav'])))) for s in listed],
                  first_logits_top5=[[int(i), round(float(logits[0, -1, i]), 4)] for i in logits[0, -1].topk(5).indices],
                  encoder_out_stats=dict(mean=float(enc.mean()), std=float(enc.std()), absmax=float(enc.abs().max())))
    with open('out/fixtures/golden.json', 'w') as f:
        json.dump(golden, f, indent=1)
    print(golden['text'])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('ckpt', nargs='?', default='ckpt/last.pt')
    ap.add_argument('--blend', nargs=2, metavar=('FILE', 'SHARE'))
    ap.add_argument('--round', nargs=2, metavar=('FILE', 'BITS'))
    ap.add_argument('--fixtures', action='store_true')
    a = ap.parse_args()
    torch.set_num_threads(1)
    fixtures() if a.fixtures else export(a)


if __name__ == '__main__':
    main()
