import { afterAll, expect, test } from 'vitest';
import type { PlatformWorker } from '../../engine/platform/platform.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Phonemizer } from '../../engine/text/phonemizer.ts';
import { DEFAULT_PHONEME_RULES, fromIpa, spellingsFor, toIpa } from '../../engine/text/phonemes.ts';

const vocab = new Map(Array.from(' abdefhijklmnopstuvwzæðŋɑɔəɛɜɡɪɹʃʊʌʒˈˌː.,!', (symbol, id) => [symbol, id] as const));
const wanted = async (text: string) => fromIpa(await toIpa(text), DEFAULT_PHONEME_RULES, vocab);
const workers: PlatformWorker[] = [];
const node = createNodePlatform();
const platform = {
  startWorker: (url: URL) => {
    const worker = node.startWorker!(url);
    workers.push(worker);
    return worker;
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
  const pending = phonemizer.ids('Never heard.');
  const refused = expect(pending).rejects.toMatchObject({ code: 'internal', message: expect.stringContaining('ended') });
  await workers.at(-1)!.terminate();
  await refused;
  expect(await phonemizer.ids('Heard again.')).toEqual(await wanted('Heard again.'));
  expect(workers).toHaveLength(2);
});

test('works where there are no threads', async () => {
  expect(await new Phonemizer({}, spellingsFor(vocab), vocab).ids('In a tab.')).toEqual(await wanted('In a tab.'));
});

test('reads in British English where it is asked for, whatever was read before', async () => {
  const american = await toIpa('Water for the bath', 'en-us');
  const british = await toIpa('Water for the bath', 'en-gb');
  expect([american, british]).toEqual(['wˈɔːɾɚ fɚðə bˈæθ', 'wˈɔːtə fəðə bˈaθ']);
  expect(await toIpa('Water for the bath')).toBe(american);
});
