/** Fields of requests that no route knows: ignored, and listed in the log for whoever asks for it. */
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { writeWav } from '../../engine/audio/wav.ts';
import { GOOD_CHAT } from '../support/chat-body.ts';
import { ROUTES } from '../support/each-listener.ts';
import { postForm, postJson, startListeners } from '../support/listeners.ts';
import { tone } from '../support/wav-file.ts';

type Line = Readonly<Record<string, unknown>>;

async function logged(level: string) {
  const lines: Line[] = [];
  const log = pino({ level, base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as Line) });
  const started = await startListeners({}, { log });
  const unknown = () => lines.filter(({ fields }) => fields !== undefined);
  return { ...started, unknown };
}

const SPEECH = { model: 'tts-1', input: 'Hello.', voice: 'nona' };
const FORM = [['model', 'whisper-1'], ['file', writeWav(tone(440, 16_000, 0.5), 16_000)]] as const; // prettier-ignore

test('unknown fields of every route are listed by name, once for each set of them', async () => {
  const { chat, speech, transcription, unknown } = await logged('debug');
  for (let i = 0; i < 2; i++) {
    expect((await postJson(chat + ROUTES.chat, { ...GOOD_CHAT, max_token: 5, temperatur: 'secret' })).status).toBe(200);
    expect((await postJson(chat + ROUTES.chat, { ...GOOD_CHAT, temperatur: 1, max_token: 6 })).status).toBe(200);
  }
  await postJson(chat + ROUTES.chat, { ...GOOD_CHAT, max_token: 5 });
  await postJson(`${chat}/v1/completions`, { model: 'parley-chat', prompt: 'a', max_token: 5 });
  await postJson(`${chat}/v1/tokenize`, { prompt: 'a', add_special_token: true });
  await postJson(speech + ROUTES.speech, { ...SPEECH, sped: 2 });
  await postJson(speech + ROUTES.speech, { text: 'Hello.', voice_ref: 'nona.wav', sed: 2 });
  await postForm(transcription + ROUTES.transcription, [...FORM, ['langauge', 'en']]);
  const msg = 'unknown fields of a request are ignored';
  expect(unknown()).toMatchObject([
    { level: 20, listener: 'chat', route: '/v1/chat/completions', fields: ['max_token', 'temperatur'], msg },
    { route: '/v1/chat/completions', fields: ['max_token'] },
    { route: '/v1/completions', fields: ['max_token'] },
    { route: '/v1/tokenize', fields: ['add_special_token'] },
    { listener: 'speech', fields: ['sped'] },
    { listener: 'speech', fields: ['sed'] },
    { listener: 'transcription', fields: ['langauge'] },
  ]);
  expect(JSON.stringify(unknown())).not.toContain('secret');
});

test('known fields are not listed, also in other forms of a body and as lists of a form', async () => {
  const { chat, speech, transcription, unknown } = await logged('debug');
  await postJson(chat + ROUTES.chat, { ...GOOD_CHAT, n: 1, seed: 5, audio: null, prompt_cache_key: 'a', stream_options: null, user: 'b' });
  await postJson(`${chat}/v1/fim/completions`, { model: 'parley-chat', prompt: 'a', suffix: 'b', random_seed: 5 });
  await postJson(speech + ROUTES.speech, { text: 'Hello.', voice_ref: 'nona.wav', seed: 2 });
  await postForm(transcription + ROUTES.transcription, [...FORM, ['timestamp_granularities[]', 'word'], ['response_format', 'verbose_json'], ['language', 'en']]); // prettier-ignore
  expect(unknown()).toEqual([]);
});

test('names are cut, long lists are counted, and a client cannot fill the log', async () => {
  const { chat, unknown } = await logged('debug');
  const many = Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`${'x'.repeat(60)}${i}`, 1]));
  await postJson(chat + ROUTES.chat, { ...GOOD_CHAT, ...many });
  expect(unknown()).toMatchObject([{ fields: Array(10).fill('x'.repeat(40)), more: 5 }]);
  for (let i = 0; i < 120; i++) await postJson(chat + ROUTES.chat, { ...GOOD_CHAT, [`a${i}`]: 1 });
  expect(unknown()).toHaveLength(100);
});

test('at level info none is', async () => {
  const { chat, unknown } = await logged('info');
  await postJson(chat + ROUTES.chat, { ...GOOD_CHAT, max_token: 5 });
  expect(unknown()).toEqual([]);
});
