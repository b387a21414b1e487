/** A whole Kokoro, from phonemes to samples, beside its export (test/tools/export_kokoro_onnx.py) through ONNX Runtime's WebGPU provider on the same adapter. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as ort from 'onnxruntime-node';
import { floatStorage } from '../../../engine/config.ts';
import type { Device } from '../../../engine/gpu/device.ts';
import { writeFrames, writeText } from '../../../engine/models/kokoro/batch.ts';
import { parseKokoroConfig } from '../../../engine/models/kokoro/config.ts';
import { createKokoroWorkspace, forwardDecoder, forwardHead, forwardSource, forwardStage, forwardText, loadKokoro, maxKokoroFrames } from '../../../engine/models/kokoro/model.ts'; // prettier-ignore
import { withWeights } from '../../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../../engine/weights/open-model-folder.ts';
import { openSafetensors } from '../../../engine/weights/safetensors.ts';
import type { Contender } from '../harness.ts';
import { IDLE_SESSION } from '../rival.ts';

const SCRIPT = fileURLToPath(new URL('../../tools/export_kokoro_onnx.py', import.meta.url));

/** What the export is fed. */
interface Input {
  readonly ids: readonly number[];
  /** The decoder's half of a voice, then the prosody's. */
  readonly style: readonly number[];
}

export interface WholeDuel {
  /** Both without noise, host memory to host memory. */
  readonly contenders: readonly [Contender, Contender];
  /** The samples that PyTorch computes. */
  readonly samples: Float32Array;
  /** What the rival gives its vocoder, and what PyTorch does. */
  readonly decoded: readonly [Float32Array, Float32Array];
}

/** Exports `model` to `folder`; undefined where that has been done, else why it could not be. */
export function exportWhole(model: string, folder: string): string | undefined {
  const python = process.env['PARLEY_PYTHON'] ?? 'python3';
  const { status, stderr } = spawnSync(python, [SCRIPT, model, folder], { encoding: 'utf8' });
  if (status === 0) return undefined;
  return `${python} could not export ${model}, which takes torch, transformers, safetensors, onnx and kokoro (PARLEY_PYTHON): ${stderr.trim().split('\n').at(-1)}`; // prettier-ignore
}

/** A model folder and its export. */
export async function wholeDuel(device: Device, model: string, folder: string): Promise<WholeDuel> {
  const input = JSON.parse(readFileSync(join(folder, 'input.json'), 'utf8')) as Input;
  const golden = await openSafetensors(device.platform, folder, 'golden.safetensors');
  const samples = await golden.read('audio');
  const ours = await parleyWhole(device, model, input);
  const rival = await ortWhole(join(folder, 'model.onnx'), input);
  const theirs: Contender = { name: 'ORT webgpu', run: () => rival('audio') };
  return { contenders: [ours, theirs], samples, decoded: [await rival('decoded'), await golden.read('decoded')] };
}

async function parleyWhole(device: Device, path: string, { ids, style }: Input): Promise<Contender> {
  const folder = await openModelFolder(device.platform, path);
  const config = parseKokoroConfig(await folder.json('config.json'));
  const weights = await withWeights(folder, (checkpoint) => loadKokoro(device, checkpoint, config, floatStorage('f32')));
  const frames = maxKokoroFrames(device, config, ids.length * config.maxDuration);
  const ws = createKokoroWorkspace(device, config, weights, ids.length, Math.min(frames, 512));
  const values = Float32Array.from(style);
  const sentence = { ids: Uint32Array.from(ids), decoder: values.slice(0, config.styleDim), prosody: values.slice(config.styleDim) };
  return {
    name: 'Parley',
    async run() {
      const text = writeText(device, config, ws, [sentence]);
      const first = device.record('text');
      forwardText(first, weights, config, ws, text);
      const durations = first.readback(ws.prosody.durations);
      first.submit();
      const counts = [...new Float32Array(await durations.data())].map((duration) => Math.max(1, Math.round(duration)));
      const index = Uint32Array.from(counts.flatMap((count, token) => Array<number>(count).fill(token)));
      const batch = writeFrames(device, ws.frameInput, text, 0, [{ index, seed: 0, firstSample: 0 }]);
      const rec = device.record('frames');
      forwardDecoder(rec, weights, config, ws, batch);
      forwardSource(rec, weights, config, ws, batch, 0);
      config.generator.upsampleRates.forEach((_, stage) => forwardStage(rec, weights, ws, stage, batch));
      forwardHead(rec, weights, ws, batch);
      const audio = rec.readback(ws.generator.audio, index.length * 2 * config.samplesPerF0Frame * 4);
      rec.submit();
      return new Float32Array(await audio.data());
    },
  };
}

/** The export: runs all of it and hands back one of its outputs. */
async function ortWhole(file: string, { ids, style }: Input): Promise<(output: string) => Promise<Float32Array>> {
  const session = await ort.InferenceSession.create(file, { executionProviders: ['webgpu'], ...IDLE_SESSION });
  const feeds = {
    ids: new ort.Tensor('int64', BigInt64Array.from(ids, BigInt), [1, ids.length]),
    style: new ort.Tensor('float32', Float32Array.from(style), [1, style.length]),
  };
  return async (output) => (await session.run(feeds, [output]))[output]!.data as Float32Array;
}
