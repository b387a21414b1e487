/** A take while it is made: its sound and its levels, sentence by sentence. No browser. */
import { expect, onTestFinished, test, vi } from 'vitest';
import type { SpeechEvent } from '../../engine/api.ts';
import { concatenated } from '../../engine/util/math.ts';
import { peaksOf } from '../../web/src/audio/peaks.ts';
import type { Services } from '../../web/src/services.ts';
import { Take, emptyTake } from '../../web/src/speak/take.ts';
import type { TakeListener } from '../../web/src/speak/take.ts';

const RATE = 100;
const SENTENCES = 40;

const sentence = (index: number): Float32Array => Float32Array.from({ length: 150 }, (_, i) => Math.sin(index + i / 7));
const soundUpTo = (count: number): Float32Array => concatenated(Array.from({ length: count }, (_, i) => sentence(i)));

/** A page whose model speaks the sentences, and what it keeps of them. */
function page(): { readonly services: Services; readonly kept: Float32Array[] } {
  const kept: Float32Array[] = [];
  const synthesize = async function* (): AsyncGenerator<SpeechEvent> {
    yield { type: 'start', seed: 1, sampleRate: RATE };
    // As views of a larger buffer, which is not the page's to keep.
    const all = soundUpTo(SENTENCES);
    for (let i = 0; i < SENTENCES; i++) yield { type: 'audio', text: `Sentence ${i}.`, samples: all.subarray(150 * i, 150 * (i + 1)) };
  };
  const services = {
    engine: async () => ({ synthesize }),
    work: {
      putSound: async (_owner: string, index: number, samples: Float32Array) => void (kept[index] = samples),
      sound: async () => concatenated(kept),
    },
    choices: { voice: 'nova' },
    announcer: { say: () => {} },
  } as unknown as Services;
  return { services, kept };
}

function listener(changed: () => void): TakeListener {
  return { start: () => {}, append: () => {}, changed, finish: () => {} };
}

const make = (take: Take, services: Services, changed: () => void): Promise<void> =>
  take.make(services, listener(changed), undefined, new AbortController().signal);

test('has the sound and the levels of all its sentences so far, whenever they are asked for', async () => {
  const { services, kept } = page();
  const take = new Take(emptyTake('t', 'Many sentences.', 'nova', 1));
  const asked: Promise<Float32Array>[] = [];
  let sentences = 0;
  await make(take, services, () => {
    expect(take.levels.peek()).toEqual(peaksOf(soundUpTo(++sentences)));
    expect(take.seconds.peek()).toBeCloseTo((150 * sentences) / RATE, 6);
    if (sentences % 7 === 0) asked.push(take.sound(services));
  });
  expect(take.status.peek()).toBe('done');
  expect(await Promise.all(asked)).toEqual([7, 14, 21, 28, 35].map(soundUpTo));
  expect(await take.sound(services)).toEqual(soundUpTo(SENTENCES));
  expect(take.parts.peek().at(-1)).toMatchObject({ text: `Sentence ${SENTENCES - 1}.` });
  // What is kept has no more behind it than itself, since the store copies whole buffers.
  expect(kept.map(({ buffer }) => buffer.byteLength)).toEqual(Array.from({ length: SENTENCES }, () => 600));
  // Read from the store, it is the same.
  expect(await new Take(take.data()).sound(services)).toEqual(soundUpTo(SENTENCES));
});

test('copies and looks at each sentence once, however many there were before it', async () => {
  const { services } = page();
  const looks = vi.spyOn(Math, 'abs');
  const copies = vi.spyOn(Float32Array.prototype, 'set');
  onTestFinished(() => void vi.restoreAllMocks());
  const take = new Take(emptyTake('t', 'Many sentences.', 'nova', 1));
  const atEach: number[] = [];
  let before = 0;
  await make(take, services, () => {
    atEach.push(looks.mock.calls.length - before);
    before = looks.mock.calls.length;
  });
  expect(atEach).toEqual(Array.from({ length: SENTENCES }, () => 150));
  // One for the sound that the test's own model speaks.
  expect(copies).toHaveBeenCalledTimes(SENTENCES);
});
