import { describe, expect, test } from 'vitest';
import { createLogMel, createLogMelWorkspace, logMel, magnitude, melFilters, melInput, melRows } from '../../engine/ops/spectral.ts';
import type { MelSettings } from '../../engine/ops/spectral.ts';
import { alignUp } from '../../engine/util/math.ts';
import * as reference from '../reference/spectral.ts';
import { describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

const SETTINGS = { sampleRate: 16000, fftSize: 400, hop: 160, mels: 80 };

/** [mel, bin, weight] and sums over bins from transformers.audio_utils.mel_filter_bank (Slaney scale and norm). */
const GOLDEN: readonly (readonly [number, number, number])[] = [
  [0, 1, 0.024862593984176087],
  [1, 2, 0.022871772096078023],
  [20, 20, 0.013890393982586886],
  [40, 43, 0.014735565741439168],
  [60, 93, 0.006591092774765085],
  [79, 192, 0.003164711739176461],
  [60, 90, 0.001434534354105327],
  [20, 100, 0.0],
];
const GOLDEN_SUMS = [0.024862593984176087, 0.026664860534783265, 0.024925339738858847];

interface MelOptions {
  readonly settings?: MelSettings;
  readonly decibels?: number;
}

/** What logMel asks of the kernel. */
function denoise(heard: number, decibels: number | undefined): { denoise?: reference.Denoise } {
  if (decibels === undefined) return {};
  const [quiet, least] = [Math.floor(0.3 * heard), Math.floor(0.05 * heard)];
  return { denoise: { heard, quiet, least, over: 1.5, spread: 4, keep: 10 ** (-decibels / 10) } };
}

/** A swept tone with an echo of noise: loud and quiet bins in every frame. */
function melCase(frames: number, filled: number, { settings = SETTINGS, decibels }: MelOptions = {}): KernelCase {
  const { hop, mels } = settings;
  const noise = decibels === undefined ? '' : ` and takes noise down by ${decibels} dB`;
  const heard = Math.ceil(filled / hop);
  return {
    name: `log_mel handles ${filled} samples in a window of ${frames} frames of ${mels} mels${noise}`,
    build(rng) {
      // Loud enough for it to be taken out of the tone as well.
      const hiss = decibels === undefined ? 1e-3 : 0.05;
      const tone = (i: number): number => 0.4 * Math.sin(0.05 * i + 1e-5 * i * i) + hiss * rng.normal();
      const samples = Float32Array.from({ length: filled }, (_, i) => tone(i));
      const columns = alignUp(mels, 4);
      const rows = melInput(settings, samples, frames * hop);
      return {
        inputs: { samples: { dtype: 'f32', shape: [melRows(settings, frames), hop], values: rows } },
        outputs: { out: { dtype: 'f32', shape: [frames, columns] } },
        run(rec, t, device) {
          const workspace = createLogMelWorkspace(device, settings, frames);
          const denoise = decibels === undefined ? undefined : { heard, decibels };
          logMel(rec, { logMel: createLogMel(device, settings), workspace, samples: t['samples']!, out: t['out']!, frames, denoise });
        },
        expected: {
          out: reference.logMel(
            { ...settings, samples, length: frames * hop, filters: melFilters(settings), ...denoise(heard, decibels) },
            columns,
          ),
        },
      };
    },
  };
}

function magnitudeCase(frames: number, bins: number): KernelCase {
  return {
    name: `magnitude handles ${frames} frames of ${bins} bins`,
    build(rng) {
      const x = randomTensor(rng, [frames, 2 * bins], 3);
      return {
        inputs: { x },
        outputs: { out: { dtype: 'f32', shape: [frames, bins] } },
        run: (rec, t) => magnitude(rec, { x: t['x']!, out: t['out']!, frames }),
        expected: { out: reference.magnitude(x.values, frames, bins) },
      };
    },
  };
}

describeKernels('spectral', [
  ...[1, 3, 63, 64, 65, 257].map((frames) => magnitudeCase(frames, 129)),
  magnitudeCase(3, 1),
  melCase(3, 480),
  melCase(63, 63 * 160),
  melCase(65, 4321),
  melCase(64, 64 * 160, { settings: { ...SETTINGS, mels: 128 } }),
  melCase(9, 400, { settings: { sampleRate: 8000, fftSize: 100, hop: 60, mels: 7 } }),
  // Digital silence: everything is at the floor.
  melCase(3, 0),
  ...[3, 63, 64, 65, 257].map((frames) => melCase(frames, frames * 160, { decibels: 9 })),
  // Silence follows, of which no noise is learnt; none at all, and one frame.
  melCase(65, 4321, { decibels: 9 }),
  melCase(65, 4321, { decibels: 0 }),
  melCase(3, 100, { decibels: 60 }),
  melCase(3, 0, { decibels: 9 }),
]);

describe('melFilters', () => {
  test('agrees with the filter bank of transformers', () => {
    const filters = melFilters(SETTINGS);
    for (const [mel, bin, weight] of GOLDEN) expect(filters[mel * 201 + bin]!).toBeCloseTo(weight, 10);
    const sums = [0, 40, 79].map((mel) => filters.subarray(mel * 201, (mel + 1) * 201).reduce((a, b) => a + b, 0));
    sums.forEach((sum, i) => expect(sum).toBeCloseTo(GOLDEN_SUMS[i]!, 10));
  });
});
