import { afterAll, expect, test } from 'vitest';
import type { PlatformWorker } from '../../engine/platform/platform.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Espeak } from '../../engine/text/espeak.ts';
import { Phonemizer } from '../../engine/text/phonemizer.ts';
import { ONLY_ESPEAK } from '../support/espeak.ts';
import { DEFAULT_PHONEME_RULES, fromIpa, spellingsFor, toIpa } from '../../engine/text/phonemes.ts';

const vocab = new Map(Array.from(' abdefhijklmnopstuvwzæðŋɑɔəɛɜɡɪɹʃʊʌʒˈˌː.,!', (symbol, id) => [symbol, id] as const));
const node = createNodePlatform();
const espeak = await Espeak.start(await node.espeak!());
const wanted = async (text: string) => fromIpa(await toIpa(espeak, text, 'en-us'), DEFAULT_PHONEME_RULES, vocab);
const workers: PlatformWorker[] = [];
/** Whether threads are told nothing, so that a call is sure to wait. */
let isDeaf = false;
const platform = {
  startWorker: (url: URL) => {
    const worker = node.startWorker!(url);
    workers.push(worker);
    return { ...worker, post: (message: unknown) => (isDeaf ? undefined : worker.post(message)) };
  },
};
const phonemizer = new Phonemizer(platform, spellingsFor(vocab), vocab);
afterAll(() => phonemizer.close());

test('finds in its thread what it would find in this one, several at once', async () => {
  const texts = ['Hello there.', 'How are you, my friend?', '...', 'The end!'];
  expect(await Promise.all(texts.map((text) => phonemizer.ids(text)))).toEqual(await Promise.all(texts.map(wanted)));
  expect(workers).toHaveLength(1);
});

test('goes on in a new thread when the old one has ended', async () => {
  isDeaf = true;
  const pending = phonemizer.ids('Never heard.');
  const refused = expect(pending).rejects.toMatchObject({ code: 'internal', message: expect.stringContaining('ended') });
  await workers.at(-1)!.terminate();
  isDeaf = false;
  await refused;
  expect(await phonemizer.ids('Heard again.')).toEqual(await wanted('Heard again.'));
  expect(workers).toHaveLength(2);
});

test('works where there are no threads', async () => {
  expect(await new Phonemizer(ONLY_ESPEAK, spellingsFor(vocab), vocab).ids('In a tab.')).toEqual(await wanted('In a tab.'));
});

test('reads in British English where it is asked for, whatever was read before', async () => {
  const read = async (accent: 'en-us' | 'en-gb') => (await toIpa(espeak, 'Water for the bath', accent)).replaceAll('_', '');
  const american = await read('en-us');
  const british = await read('en-gb');
  expect([american, british]).toEqual(['wˈɔːɾɚ fɚðə bˈæθ', 'wˈɔːtə fəðə bˈaθ']);
  expect(await read('en-us')).toBe(american);
});
