/** The part of `parley bench` that measures speech and transcription. */
import { TRANSCRIPTION_RATE } from '../../engine/audio/sample-source.ts';
import type { AdapterReport, ProfileEntry } from '../../engine/index.ts';
import { kernelRows, percentiles, profile } from './bench-report.ts';
import type { AudioRow, Report } from './bench-report.ts';
import { startEngine } from './chat-command.ts';

const TEXT = 'The harbour was quiet that morning, and nobody on the quay had yet heard of the letter.';
/** Seconds of sound that are transcribed. */
const SECONDS = 8;

interface AudioCall {
  readonly path: string;
  readonly clients: readonly number[];
  readonly adapter: string | undefined;
  readonly trace: string | undefined;
  /** Measured speed of the adapter. */
  readonly reach: AdapterReport | { readonly problem: string };
  writeTrace(file: string, adapter: string, kernels: readonly ProfileEntry[] | undefined): Promise<void>;
}

/** Measures `clients` concurrent requests, each of which speaks a sentence or transcribes eight seconds of a voiced sound. */
export async function measureAudio(
  task: 'speech' | 'transcription',
  { path, clients, adapter, trace, reach, writeTrace }: AudioCall,
): Promise<Report> {
  const started = performance.now();
  const engine = await startEngine({ [task]: { path }, ...(adapter !== undefined && { adapter }) });
  try {
    const secondsToReady = (performance.now() - started) / 1000;
    const { id, architecture, parameters, weightBytes, format, voices = [] } = engine.info().models[0]!;
    const sound = hum();
    /** Milliseconds to the first audio, and seconds of audio. */
    const speak = async (): Promise<readonly [number, number]> => {
      const began = performance.now();
      let [first, seconds] = [0, 0];
      for await (const event of engine.synthesize({ text: TEXT, voice: voices[0]!, seed: 1 }, new AbortController().signal)) {
        if (event.type === 'audio') first ||= performance.now() - began;
        if (event.type === 'finish') ({ seconds } = event);
      }
      return [first, seconds];
    };
    const hear = async (): Promise<readonly [number, number]> => {
      const began = performance.now();
      for await (const event of engine.transcribe({ samples: sound, temperature: 0 }, new AbortController().signal)) void event;
      return [performance.now() - began, SECONDS];
    };
    const ask = async (count: number): Promise<AudioRow> => {
      const began = performance.now();
      const all = await Promise.all(Array.from({ length: count }, task === 'speech' ? speak : hear));
      const seconds = all.reduce((sum, [, length]) => sum + length, 0);
      return {
        clients: count,
        timesRealTime: (1000 * seconds) / (performance.now() - began),
        firstAnswer: percentiles(all.map(([first]) => first)),
      };
    };
    await ask(1);
    const rows: AudioRow[] = [];
    for (const count of clients) rows.push(await ask(count));
    const profiled = await profile(engine, () => ask(1));
    if (trace !== undefined) await writeTrace(trace, engine.info().adapter.name, profiled);
    return {
      date: new Date().toISOString(),
      model: { id, task, architecture, parameters, weightBytes, ...(format !== undefined && { format }) },
      adapter: reach,
      secondsToReady,
      rows,
      // Only the device knows how many keys a decoder's tokens attend to, so their loads are left out.
      ...(profiled && { kernels: kernelRows(profiled, 'speed' in reach ? reach.speed : undefined, 0) }),
    };
  } finally {
    await engine.close();
  }
}

/** A sound like a voice, so that it is not skipped as silence. */
function hum(): Float32Array {
  const wave = (i: number, hertz: number): number => Math.sin((2 * Math.PI * hertz * i) / TRANSCRIPTION_RATE);
  return Float32Array.from(
    { length: SECONDS * TRANSCRIPTION_RATE },
    (_, i) => 0.2 * (wave(i, 140) + wave(i, 700) + wave(i, 1200)) * (0.6 + 0.4 * wave(i, 4)),
  );
}
