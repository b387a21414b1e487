/** Whisper's logits of given tokens, for comparison with PyTorch. */
import type { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import { createDecoderCache, createDecoderWorkspace, decode } from '../../engine/models/whisper/decoder.ts';
import { createEncoderWorkspace, encodeAudio, encodeKeyValues } from '../../engine/models/whisper/encoder.ts';
import type { EncoderArgs } from '../../engine/models/whisper/encoder.ts';
import type { WhisperModel } from '../../engine/models/whisper/load.ts';
import { melInput } from '../../engine/ops/spectral.ts';
import { ceilDiv } from '../../engine/util/math.ts';

/** Records, submits and reads one tensor back. */
export async function compute(device: Device, out: Tensor, record: (rec: Recorder) => void): Promise<Float32Array> {
  const rec = device.record('test');
  record(rec);
  rec.submit();
  return (await device.read(out)) as Float32Array;
}

/** Rows that read their window's keys and values together; the prompts are longer. */
const TILE = 3;

/** Logits of every position of `ids` after the window in `samples`, all in one step. */
export async function forcedLogits(
  device: Device,
  model: WhisperModel,
  samples: Float32Array,
  ids: readonly number[],
): Promise<Float32Array> {
  const { config, weights } = model;
  const rows = ids.length;
  const encoder: EncoderArgs = { ...model, workspace: createEncoderWorkspace(device, config), frames: config.frames };
  const cache = createDecoderCache(device, config, { slots: 2, lanes: 1, copies: 2 });
  const workspace = createDecoderWorkspace(device, config, rows, rows);
  const slot = 1;
  const u32 = (shape: readonly number[], value: (i: number) => number): Tensor =>
    device.upload(
      'input',
      'u32',
      shape,
      Uint32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => value(i)),
    );
  const input = {
    ids: u32([rows], (i) => ids[i]!),
    positions: u32([rows], (i) => i),
    cacheRows: u32([rows], (i) => slot * cache.selfRows + i),
    selfTiles: { tiles: u32([rows, 4], (i) => [slot * cache.selfRows, (i >> 2) + 1, i >> 2, 1][i % 4]!), count: rows, rows: 1 },
    crossTiles: {
      tiles: u32([ceilDiv(rows, TILE), 4], (i) => {
        const first = TILE * (i >> 2);
        return [slot * cache.crossRows, config.sourcePositions, first, Math.min(TILE, rows - first)][i % 4]!;
      }),
      count: ceilDiv(rows, TILE),
      rows: Math.min(TILE, rows),
    },
    sampledRows: u32([rows], (i) => i),
    rows,
    samples: rows,
  };
  device.write(encoder.workspace.samples, melInput(config.mel, samples, config.frames * config.mel.hop));
  return compute(device, workspace.logits, (rec) => {
    encodeKeyValues(rec, encoder, { out: cache.cross, first: slot * cache.crossRows, rows: encodeAudio(rec, encoder) });
    decode(rec, { config, weights, workspace, cache, input });
  });
}
