#!/usr/bin/env python3
"""Runs every step of the three recipes on a handful of examples in a temporary folder: one line a step, with what it took, or why it was
skipped. A step that needs a voice, a tool or data that is not here is skipped; what later steps need of it is made up (noise, guessed phones).
usage: smoke.py [chat] [speech] [transcription]   (KEEP=1 keeps the folder)"""

import glob, gzip, json, os, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.append(HERE)
from shared.work import DATA  # noqa: E402

PY, LINES, LIMIT = sys.executable, 400, 900  # lines of every public text; seconds a step may take
FLITE = 'festival flite praat'.split()
failed = []


def step(recipe, name, *command, needs=(), work=None, data=DATA):
    """Runs a command in a recipe's folder; -> whether it went well. needs: the commands and files without which it cannot run."""
    lacking = [n for n in needs if not (os.path.exists(n) if '/' in n else shutil.which(n))]
    if lacking:
        print(f'skip  {recipe:13} {name:34} needs {", ".join(lacking)}', flush=True)
        return False
    env = dict(os.environ, PARLEY_WORK=work, PARLEY_DATA=data)
    start = time.time()
    done = subprocess.run(list(map(str, command)), cwd=f'{HERE}/{recipe}', env=env, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode and 'no_adapter' in done.stderr:
        print(f'skip  {recipe:13} {name:34} needs a WebGPU adapter', flush=True)
        return False
    said = [l for l in (done.stderr + done.stdout).splitlines() if l.strip() and 'leaked' not in l and 'nanobind' not in l] or ['']
    print(f'{"FAIL" if done.returncode else "ok":5} {recipe:13} {name:34} {time.time() - start:5.1f} s  {said[-1][:90]}', flush=True)
    if done.returncode:
        failed.append(name)
        print('\n'.join('      ' + l for l in said[-12:]), flush=True)
    return not done.returncode


def few(folder):
    """A data folder with the beginnings of the public texts."""
    os.makedirs(folder + '/text')
    for path in glob.glob(DATA + '/text/*.gz'):
        with gzip.open(path, 'rt', encoding='utf-8', errors='replace') as f, gzip.open(f'{folder}/text/{os.path.basename(path)}', 'wt') as out:
            out.writelines(l for _, l in zip(range(LINES), f))
    os.symlink(DATA + '/speech', folder + '/speech')
    return folder


def chat(work, data):
    run = lambda name, *command, **more: step('chat', name, *command, work=work, data=data, **more)
    w = lambda name: f'{work}/{name}'
    run('make_prompts', PY, 'make_prompts.py', work)
    run('prepare filter', PY, 'prepare.py', 'filter', '--text', data + '/text', '--out', w('real'))
    run('generate_dialogues', PY, 'generate_dialogues.py', '--n', 10, '--exclude-prompts', 'exclude.txt', '--out', w('syn.jsonl'))
    run('skills', PY, 'skills.py', '--n', 10, '--words', w('real/prose.jsonl'), '--exclude-prompts', 'exclude.txt', '--out', w('skills.jsonl'))
    run('tokenizer', PY, 'tokenizer.py', '--out', w('tok'), '--vocab', 300, w('syn.jsonl'), w('skills.jsonl'))
    run('prepare pack', PY, 'prepare.py', 'pack', '--tok', w('tok'), '--out', w('mix'), w('syn.jsonl'), w('skills.jsonl'))
    train = PY, 'train.py', '--data', w('mix'), '--total-tokens', 1500, '--batch', 512
    run('train', *train, '--ckpt', w('ckpt'), '--bf16', '--stop-tokens', 700)
    run('train, resumed, on assistant tokens', *train, '--ckpt', w('ckpt'), '--bf16', '--other-weight', 0)
    run('export', PY, 'export.py', '--ckpt', w('ckpt/last.pt'), '--tok', w('tok'), '--out', w('model'), '--golden', w('golden.json'))
    run('train --init', *train, '--ckpt', w('ckpt2'), '--init', w('model'))
    run('export --blend', PY, 'export.py', '--ckpt', w('ckpt/last.pt'), '--tok', w('tok'), '--out', w('mean'), '--blend', w('model'), 0.5)
    with open(HERE + '/chat/test_prompts.jsonl') as f, open(w('ten.jsonl'), 'w') as out:
        out.writelines(l for _, l in zip(range(10), f))
    run('evaluate.ts (the bundled model)', 'npx', 'tsx', 'evaluate.ts', '--prompts', w('ten.jsonl'), '--grades-only', needs=['npx'])


def stand_in_packs(work):
    """What prepare.py makes of ten sentences a voice, made up: noise as long as the tokens."""
    import numpy as np

    rng = np.random.default_rng(1)
    os.makedirs(work + '/data/pack')
    for name in json.load(open(HERE + '/speech/data/voices.json')):
        tok, dur = rng.integers(1, 100, (10, 20)), rng.integers(6, 12, (10, 20))
        frames = dur.sum(1)
        parts = dict(tok=tok.astype(np.int16), dur=dur.astype(np.int16), wave=rng.normal(0, 2000, frames.sum() * 480).astype(np.int16),
                     f0=rng.uniform(90, 200, frames.sum() * 2).astype(np.float32), n=rng.normal(0, 1, frames.sum() * 2).astype(np.float32))
        lengths = dict(tok=[20] * 10, dur=[20] * 10, wave=frames * 480, f0=frames * 2, n=frames * 2)
        np.savez(f'{work}/data/pack/{name}.npz', **{k: v.ravel() for k, v in parts.items()}, **{k + '_len': v for k, v in lengths.items()})


def speech(work, data):
    run = lambda name, *command, **more: step('speech', name, *command, work=work, data=data, **more)
    run('texts', PY, 'texts.py')
    with open(work + '/data/texts.tsv') as f:
        ten = [next(f) for _ in range(10)]
    with open(work + '/data/texts.tsv', 'w') as f:
        f.writelines(ten)
    run('phonemize.ts', 'npx', 'tsx', 'phonemize.ts', work + '/data/texts.tsv', work + '/data/phones.tsv', needs=['npx'])
    libraries = '-lflite_cmu_us_slt -lflite_cmu_us_rms -lflite_cmu_us_awb -lflite_cmu_us_kal16 -lflite_usenglish -lflite_cmulex -lflite -lm'
    run('flite_teacher', 'gcc', '-O2', '-o', work + '/flite_teacher', 'flite_teacher.c', *libraries.split(), needs=['gcc', 'flite'])
    run('synth', PY, 'synth.py', 10, needs=FLITE)
    if not run('prepare', PY, 'prepare.py', needs=FLITE):
        stand_in_packs(work)
    run('train_decoder', PY, 'train_decoder.py', 1)
    run('train_prosody', PY, 'train_prosody.py', 1)
    run('train_decoder --from_ema --pred', PY, 'train_decoder.py', 1, '--bf16', '--from_ema', '--pred', 0.8)
    run('export', PY, 'export.py')
    run('export --keep', PY, 'export.py', '--keep', ROOT + '/models/parley-speech')
    run('from_export', PY, 'from_export.py', ROOT + '/models/parley-speech', 15642)
    run('evaluate teacher', PY, 'evaluate.py', 'teacher', needs=FLITE)
    run('evaluate.ts (the bundled model)', 'npx', 'tsx', 'evaluate.ts', work + '/spoken', '--limit', 1, needs=['npx'])
    run('evaluate', PY, 'evaluate.py', work + '/spoken', needs=[*FLITE, '/usr/share/pocketsphinx/model/en-us/'])


def stand_in_shards(work):
    """Shards of ten clips of LJ Speech with guessed phones, as synth.py and real_prep.py write them."""
    code = ('import os, sys\nsys.path[0] = os.getcwd()\nimport numpy as np, soundfile, paths, feat, synth\n'
            'rows = [l.rstrip("\\n").split("\\t") for _, l in zip(range(10), open(paths.DATA + "/speech/ljspeech/transcripts.tsv"))]\n'
            'mel = lambda f: feat.log10_mel(feat.to16k(*soundfile.read(f"{paths.DATA}/speech/ljspeech/{f}", dtype="float32"))).astype(np.float16)\n'
            'for name, voice in (("s0000", "slt"), ("real_lj_100", "real:lj"), ("own_0000", "own:nona")):\n'
            '    synth.write_shard("data/" + name, [(t, "hh eh l ow " * 6, voice, mel(f)) for f, _, t in rows])\n'
            'open("text/phones.tsv", "w").writelines(f"{t}\\t" + "hh eh l ow " * 6 + "\\n" for _, _, t in rows * 5)\n')
    step('transcription', 'stand-in shards', PY, '-c', code, work=work)


def transcription(work, data):
    run = lambda name, *command, **more: step('transcription', name, *command, work=work, data=data, **more)
    bundled, many = ROOT + '/models/parley-transcribe', work + '/flite_many'
    run('text_prep', PY, 'text_prep.py')
    run('tok', PY, 'tok.py')
    run('real_prep list', PY, 'real_prep.py', 'list')
    run('text_more', PY, 'text_more.py')
    libraries = '-lflite_cmu_us_slt -lflite_cmu_us_rms -lflite_cmu_us_awb -lflite_cmu_us_kal16 -lflite_cmu_us_kal -lflite_usenglish -lflite_cmulex'
    run('flite_many', 'gcc', '-O2', '-o', many, 'flite_many.c', *libraries.split(), '-lflite', '-lm', needs=['gcc', 'flite'])
    run('text_words', PY, 'text_words.py', needs=['/usr/share/wordnet/data.noun', '/usr/share/dictd/gcide.dict.dz', '/usr/share/dict/american-english'])
    os.makedirs(work + '/book/src/epub/text')
    with open(work + '/book/src/epub/text/chapter-1.xhtml', 'w') as f:
        f.write(''.join(f'<p>The {n} ships lay in the harbour, and nobody knew why they had come.</p>' for n in ('two', 'three', 'four', 'five')))
    run('text_books', PY, 'text_books.py', work + '/book')
    run('text_phones', PY, 'text_phones.py', needs=[many])
    run('synth', PY, 'synth.py', 0, 1, '--minutes', 0.1, needs=[many, 'festival', 'espeak-ng'])
    run('real_prep', PY, 'real_prep.py', needs=[many])
    if not run('own_voices', PY, 'own_voices.py', 0, 1, needs=[many, 'npx']):
        stand_in_shards(work)
    train = PY, 'train.py', '--frames', 2000, '--text_batch', 10
    run('train --init --settle', *train, '--end', 10, '--init', bundled + '/model.safetensors', '--settle', 1, needs=[bundled])
    run('train --decay', *train, '--end', 10, '--decay', 0.1)
    if shutil.which('torchrun', path=os.path.dirname(PY)):
        torchrun = os.path.dirname(PY) + '/torchrun', '--standalone', '--nproc_per_node', 2
        run('train, two processes', *torchrun, *train[1:], '--end', 10)
    run('train --resume --only', *train, '--end', 10, '--resume', 'ckpt/trunk.pt', '--only', 'decoder.layers.*(fc|norm)', '--text_every', 1)
    old = bundled + '/model.safetensors'
    run('export --blend --round', PY, 'export.py', '--blend', old, 0.5, '--round', old, 5)
    run('eval_make', PY, 'eval_make.py', needs=['flite', 'festival', 'espeak-ng'])
    run('export --fixtures', PY, 'export.py', '--fixtures')
    if not os.path.exists(work + '/eval/refs.json'):
        clip = os.path.abspath(ROOT + '/test/fixtures/parley-transcribe/clip.wav')
        shutil.copy(clip, work + '/eval')
        json.dump({'clip': [['eval/clip.wav', 'The watch was in the station.']]}, open(work + '/eval/refs.json', 'w'))
    run('evaluate.ts (the bundled model)', 'npx', 'tsx', 'evaluate.ts', work, '--limit', 2, needs=['npx'])
    run('eval_ps', PY, 'eval_ps.py', needs=['/usr/share/pocketsphinx/model/en-us/'])


def main():
    folder = tempfile.mkdtemp(prefix='parley-smoke-')
    data = few(folder + '/shared/data')
    for recipe in (chat, speech, transcription):
        if recipe.__name__ in (sys.argv[1:] or [recipe.__name__]):
            os.makedirs(f'{folder}/{recipe.__name__}')
            recipe(f'{folder}/{recipe.__name__}', data)
    os.environ.get('KEEP') or shutil.rmtree(folder)
    print('failed:', ', '.join(failed) or 'none')
    sys.exit(bool(failed))


if __name__ == '__main__':
    main()
