/** Kokoro's stages for one sentence beside PyTorch's, without noise. */
import type { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import { floatStorage } from '../../engine/config.ts';
import { writeFrames, writeText } from '../../engine/models/kokoro/batch.ts';
import { parseKokoroConfig } from '../../engine/models/kokoro/config.ts';
import { createKokoroWorkspace, forwardDecoder, forwardHead, forwardSource, forwardStage, forwardText, loadKokoro } from '../../engine/models/kokoro/model.ts'; // prettier-ignore
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { expectEqual, nmse } from './compare.ts';

interface Spoken {
  /** With the zeros at both ends. */
  readonly prompt: readonly number[];
  /** Of each id. */
  readonly frames?: readonly number[];
}

/** NMSE by stage, of a checkpoint in f32 and what test/tools/dump_published.py wrote beside it. Throws where an id has other frames. */
export async function kokoroErrors(
  device: Device,
  folder: string,
  golden: Checkpoint,
  { prompt, frames = [] }: Spoken,
): Promise<Record<string, number>> {
  const model = await openModelFolder(device.platform, folder);
  const config = parseKokoroConfig(await model.json('config.json'));
  const weights = await withWeights(model, (checkpoint) => loadKokoro(device, checkpoint, config, floatStorage('f32')));
  const index = Uint32Array.from(frames.flatMap((count, token) => new Array<number>(count).fill(token)));
  const ws = createKokoroWorkspace(device, config, weights, 64, index.length);
  const run = async (label: string, forward: (rec: Recorder) => void): Promise<void> => {
    const rec = device.record(label);
    forward(rec);
    await rec.submit().finished();
  };
  const rows = 2 * index.length;
  const { samplesPerF0Frame, generator } = config;
  const errors: Record<string, number> = {};
  const compare = async (stage: string, values: ArrayLike<number>): Promise<void> => {
    errors[stage] = nmse(values, await golden.read(stage));
  };

  const style = await golden.read('style');
  const sentence = { ids: Uint32Array.from(prompt), decoder: style.slice(0, config.styleDim), prosody: style.slice(config.styleDim) };
  const text = writeText(device, config, ws, [sentence]);
  await run('text', (rec) => forwardText(rec, weights, config, ws, text));
  const durations = (await device.read(ws.prosody.durations)).slice(0, prompt.length);
  expectEqual(
    'frames',
    [...durations].map((duration) => Math.max(1, Math.round(duration))),
    frames,
  );
  await compare('duration', durations);
  const batch = writeFrames(device, ws.frameInput, text, 0, [{ index, seed: 0, firstSample: 0 }]);
  await run('decoder', (rec) => forwardDecoder(rec, weights, config, ws, batch));
  await compare('F0', await firstColumns(device, ws.curves.f0, rows, 1));
  await compare('N', await firstColumns(device, ws.curves.energy, rows, 1));
  await compare('decoder_out', transposed(await firstColumns(device, ws.decoder.out, rows, generator.channels), rows));
  // A phase is the sum of all pitch before it, 10,000 cycles of the highest overtone here: roundings of pitch would be all that is seen.
  device.write(ws.curves.f0, widened(await golden.read('F0'), 1, ws.curves.f0.shape[1]!));
  await run('source', (rec) => forwardSource(rec, weights, config, ws, batch, 0));
  await compare('har_source', (await device.read(ws.generator.source)).slice(0, rows * samplesPerF0Frame));
  // Angles near pi come out as -pi in another order of sums, so spectra are compared as complex numbers, and the vocoder gets PyTorch's.
  const columns = generator.nFft + 2;
  const spectra = transposed(await golden.read('har'), columns);
  const mine = await firstColumns(device, ws.generator.harmonics, spectra.length / columns, columns);
  errors['spectrum'] = nmse(complex(mine, columns), complex(spectra, columns));
  device.write(ws.generator.harmonics, widened(spectra, columns, ws.generator.harmonics.shape[1]!));
  await run('vocoder', (rec) => {
    generator.upsampleRates.forEach((_, stage) => forwardStage(rec, weights, ws, stage, batch));
    forwardHead(rec, weights, ws, batch);
  });
  await compare('waveform', (await device.read(ws.generator.audio)).slice(0, rows * samplesPerF0Frame));
  return errors;
}

/** The first `rows` x `columns`. */
async function firstColumns(device: Device, tensor: Tensor, rows: number, columns: number): Promise<Float32Array> {
  const stride = tensor.shape[1] ?? 1;
  const data = await device.read(tensor);
  return Float32Array.from({ length: rows * columns }, (_, i) => data[Math.floor(i / columns) * stride + (i % columns)]!);
}

/** [rows, columns] -> [columns, rows]. */
function transposed(values: Float32Array, rows: number): Float32Array {
  const columns = values.length / rows;
  return Float32Array.from(values, (_, i) => values[(i % rows) * columns + Math.floor(i / rows)]!);
}

/** Rows of `columns`, each followed by zeros up to `width`. */
function widened(values: Float32Array, columns: number, width: number): Float32Array {
  const out = new Float32Array((values.length / columns) * width);
  values.forEach((value, i) => (out[Math.floor(i / columns) * width + (i % columns)] = value));
  return out;
}

/** Rows of magnitudes and angles as real and imaginary parts. */
function complex(polar: Float32Array, columns: number): Float32Array {
  const bins = columns / 2;
  return polar.map((value, i) => (i % columns < bins ? value * Math.cos(polar[i + bins]!) : polar[i - bins]! * Math.sin(value)));
}
