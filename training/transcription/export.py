#!/usr/bin/env python3
"""Ckpt/last.pt -> out/ (config, f16 model.safetensors with HF names, preprocessor and generation configs). `--fixtures` also writes golden tensors and samples;
`--blend FILE SHARE` takes that share of the weights from another export of the same run (a mean of two is often better than either);
`--round FILE BITS` rounds the tensors that differ from that export's to so many bits of mantissa: the repository's history then grows by little (equal tensors cost nothing)."""

import json, os, sys, shutil, torch
import torch.nn.functional as F
import paths  # noqa: F401 (enters the work folder)
import model as M, tok, feat, evaluate as E

O = 'out/'
BEAMS = 5
torch.set_num_threads(1)
ck = sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].startswith('-') else 'ckpt/last.pt'
option = lambda name: sys.argv[sys.argv.index(name) + 1:][:2] if name in sys.argv else None
blend, rounding = option('--blend'), option('--round')


def rounded(w, bits):
    """The nearest numbers of so many bits of mantissa."""
    mantissa, exponent = torch.frexp(w)
    return torch.ldexp((mantissa * 2**(bits + 1)).round() / 2**(bits + 1), exponent)


tk = tok.Tok()
v = tk.vocab
if os.path.exists(ck):
    s = torch.load(ck, map_location='cpu')
    cfg = dict(s['cfg'])
    net = M.Whisper(cfg, len(s['net']['ctc.bias']) - 1, tk.t0)
    net.load_state_dict(s['net'], strict=False)
    cfg['begin_suppress_tokens'] = []
    cfg['suppress_tokens'] = []
    cfg['median_filter_width'] = 7
    cfg['num_hidden_layers'] = cfg['encoder_layers']
    json.dump(cfg, open(O + 'config.json', 'w'), indent=2)
    weights = net.hf_state()
    if blend:
        other = M.load_st(blend[0])
        weights = {k: w.lerp(other[k].float(), float(blend[1])) for k, w in weights.items()}
    if rounding:
        same = M.load_st(rounding[0])
        weights = {k: w if torch.equal(w.half(), same[k]) else rounded(w, int(rounding[1])) for k, w in weights.items()}
    M.save_st(O + 'model.safetensors', weights, torch.float16)
    print('exported step', s['step'], os.path.getsize(O + 'model.safetensors') / 1e6, 'MB')
sup = [v[t] for t in tok.SPECIAL if t not in ('<|endoftext|>', '<|notimestamps|>')]
json.dump(dict(bos_token_id=tk.eot,
               decoder_start_token_id=tk.sot,
               eos_token_id=tk.eot,
               pad_token_id=tk.eot,
               is_multilingual=True,
               lang_to_id={'<|en|>': tk.en},
               task_to_id=dict(transcribe=tk.tr, translate=v['<|translate|>']),
               no_timestamps_token_id=tk.nots,
               prev_sot_token_id=v['<|startofprev|>'],
               max_initial_timestamp_index=50,
               max_length=448,
               num_beams=BEAMS,
               return_timestamps=False,
               begin_suppress_tokens=[],
               suppress_tokens=sup,
               forced_decoder_ids=None,
               transformers_version='4.40.0'),
          open(O + 'generation_config.json', 'w'),
          indent=2)
json.dump(dict(chunk_length=30,
               feature_extractor_type='WhisperFeatureExtractor',
               feature_size=80,
               hop_length=160,
               n_fft=400,
               n_samples=480000,
               nb_max_frames=3000,
               padding_side='right',
               padding_value=0.0,
               processor_class='WhisperProcessor',
               return_attention_mask=False,
               sampling_rate=16000,
               dither=0.0,
               window_seconds=10,
               window_padding_seconds=0.5),
          open(O + 'preprocessor_config.json', 'w'),
          indent=2)
if '--fixtures' in sys.argv:
    net, tk, cfg = E.load()
    refs = json.load(open('eval/refs.json'))
    os.makedirs(O + 'fixtures', exist_ok=True)
    os.makedirs(O + 'samples', exist_ok=True)
    kept = paths.HERE + '/../../test/fixtures/parley-transcribe/'  # its clip stays, what is heard in it changes
    p, ref = kept + 'clip.wav', json.load(open(kept + 'golden.json'))['reference']
    shutil.copy(p, O + 'fixtures/clip.wav')
    mel = torch.from_numpy(feat.whisper_input(E.wav(p)))[None]
    with torch.no_grad():
        enc = net.model.encoder(mel)
        x = F.gelu(M.conv(net.model.encoder.conv2, F.gelu(M.conv(net.model.encoder.conv1, mel.transpose(1, 2)))))
        l0 = net.model.encoder.layers[0](x + net.model.encoder.embed_positions.weight)
        pre = [tk.sot, tk.en, tk.tr, tk.nots]
        lo = net.decode(torch.tensor([pre]), enc)
        g, gs = E.greedy(net, tk, mel)[0], E.greedy(net, tk, mel, True)[0]
    M.save_st(
        O + 'fixtures/golden.safetensors',
        dict(input_features=mel,
             conv_out=x[:, :64].clone(),
             encoder_layer0_out=l0[:, :64].clone(),
             encoder_out=enc,
             prompt_logits=lo,
             prompt_ids=torch.tensor([pre]),
             greedy_ids=torch.tensor([g]),
             greedy_ids_timestamps=torch.tensor([gs])), None)
    shared = paths.DATA + '/../models/transcription/samples/'
    listed = json.load(open(shared + 'samples.json'))[:5] if os.path.exists(shared) else []
    search = lambda x, stamps=False: E.beam_search(net, tk, torch.from_numpy(feat.whisper_input(x)), BEAMS, stamps)
    found, timed = search(E.wav(p)), search(E.wav(p), True)
    json.dump(dict(
        clip='clip.wav',
        reference=ref,
        prompt_ids=pre,
        greedy_ids=g,
        greedy_text=tk.decode(g),
        timestamp_prompt_ids=pre[:3],
        greedy_ids_timestamps=gs,
        greedy_text_timestamps=tk.decode(gs, True),
        beams=BEAMS,
        ids=found,
        text=tk.decode(found),
        text_timestamps=tk.decode(timed, True),
        samples=[dict(wav=s['wav'], output=tk.decode(search(E.wav(shared + s['wav'])))) for s in listed],
        first_logits_top5=[[int(i), round(float(lo[0, -1, i]), 4)] for i in lo[0, -1].topk(5).indices],
        note=
        'float32 arithmetic on the f16 weights; ids above eot are suppressed except timestamps in timestamp mode; ids, text and samples by beam search; conv_out is after the second GELU, before positions (first 64 positions); encoder_layer0_out likewise',
        encoder_out_stats=dict(mean=float(enc.mean()), std=float(enc.std()), absmax=float(enc.abs().max()))),
              open(O + 'fixtures/golden.json', 'w'),
              indent=1)
    print(open(O + 'fixtures/golden.json').read())
    res = []
    for k, i in [('everyday_seen_voices', 0), ('everyday_seen_voices', 4), ('everyday_unseen_ked', 4), ('seen_flite_slt', 5),
                 ('seen_flite_rms', 4), ('unseen_festival_ked', 1), ('numbers_slt_rms', 3), ('noise_10dB', 4), ('long_under_30s', 0),
                 ('real_lj_heldout', 0)]:
        p, ref = refs[k][i]
        x = E.wav(p)
        n = f'{len(res):02d}_{k}.wav'
        shutil.copy(p, O + 'samples/' + n)
        h = search(x)
        res.append(dict(wav=n, reference=ref, output=tk.decode(h), ids=h))
        print(k, '|', ref, '|', tk.decode(h))
    json.dump(res, open(O + 'samples/samples.json', 'w'), indent=1)
