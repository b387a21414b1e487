import { expect, test } from 'vitest';
import { OPENAI_VOICES, VOICE_TABLE, parseBlend, resolveVoices, withoutAliases } from '../../engine/util/voices.ts';

const BUNDLED = ['_gantry', 'charter', 'gaius', 'nona', 'oni', 'vulcan', ...[1, 2, 3, 4, 5, 6].map((n) => `aus-female-${n}`), ...[1, 2, 3, 4, 5, 6, 7].map((n) => `aus-male-${n}`)]; // prettier-ignore
const OPENAI = [...OPENAI_VOICES];
const KOKORO = 'af_alloy af_aoede af_bella af_heart af_jessica af_nova af_sarah am_echo am_eric am_fenrir am_michael am_onyx am_puck bf_alice bf_emma bf_isabella bf_lily bm_daniel bm_fable bm_george bm_lewis'.split(' '); // prettier-ignore

test('reads a voice and blends of voices, whose shares add up to 1', () => {
  expect(parseBlend('af_heart')).toEqual(new Map([['af_heart', 1]]));
  expect(parseBlend('af_bella(2)+af_sky(1)')).toEqual(new Map([['af_bella', 2 / 3], ['af_sky', 1 / 3]])); // prettier-ignore
  expect(parseBlend('a + b(3)')).toEqual(new Map([['a', 0.25], ['b', 0.75]])); // prettier-ignore
  for (const wrong of ['', '+', 'a(', 'a()', 'a(0)', 'a(-1)', 'a+a', '../a', 'a b', Array.from({ length: 65 }, (_, i) => `v${i}`).join('+')]) expect(parseBlend(wrong), wrong).toBeUndefined(); // prettier-ignore
});

test('a model with the bundled voices has the 13 names of OpenAI besides', () => {
  const names = resolveVoices(VOICE_TABLE, BUNDLED);
  expect([...names.keys()]).toEqual(OPENAI);
  expect(new Set(names.values()).size).toBe(13);
});

test('published Kokoro has the 19 names of the interface and the 13 of OpenAI, all sounding different within each', () => {
  const names = resolveVoices(VOICE_TABLE, KOKORO);
  expect([...names.keys()].sort()).toEqual([...OPENAI, ...BUNDLED].sort());
  for (const list of [OPENAI, BUNDLED]) expect(new Set(list.map((name) => names.get(name))).size).toBe(list.length);
});

test('names whose voices are not there are left out, and a voice of the model keeps its name', () => {
  const table = new Map([['anna', ['x(0.5)+y(0.5)', 'z']], ['z', ['x']], ['ben', ['nobody', 'y']]]); // prettier-ignore
  expect(resolveVoices(table, ['x', 'z'])).toEqual(new Map([['anna', 'z']]));
  expect(resolveVoices(table, ['x', 'y'])).toEqual(new Map([['anna', 'x(0.5)+y(0.5)'], ['z', 'x'], ['ben', 'y']])); // prettier-ignore
});

test('a blend may name voices by their other names', () => {
  const aliases = new Map([['nona', 'af_heart'], ['alloy', 'x(0.5)+y(0.5)']]); // prettier-ignore
  const meant = (text: string): unknown => parseBlend(withoutAliases(text, aliases));
  expect(meant('nona(2)+x(1)')).toEqual(new Map([['af_heart', 0.6667], ['x', 0.3333]])); // prettier-ignore
  expect(meant('alloy+x(3)')).toEqual(new Map([['x', 0.875], ['y', 0.125]])); // prettier-ignore
  expect(withoutAliases('nona+af_heart', aliases)).toBe('af_heart');
  const pairs = Array.from({ length: 8 }, (_, i) => [`n${i}`, `a${i}+b${i}`] as const);
  expect(parseBlend(withoutAliases(pairs.map(([name]) => name).join('+'), new Map(pairs)))!.size).toBe(16);
  const many = Array.from({ length: 63 }, (_, i) => `voice-${i}`);
  expect(parseBlend(withoutAliases(['nona', ...many].join('+'), aliases))!.size).toBe(64);
  for (const text of ['x(2)+y', 'x', 'nobody', '', 'a+a', '+']) expect(withoutAliases(text, aliases)).toBe(text);
  for (const name of OPENAI_VOICES) {
    const published = resolveVoices(VOICE_TABLE, KOKORO);
    const parts = parseBlend(withoutAliases(`${name}(1)+oni(2)`, published))!;
    expect([...parts.keys()].every((part) => KOKORO.includes(part))).toBe(true);
    expect([...parts.values()].reduce((a, b) => a + b)).toBeCloseTo(1, 3);
  }
});
