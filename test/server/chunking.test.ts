/** What a transcription form says of speech and silence, and of the segments of a stream. */
import { describe, expect, test } from 'vitest';
import { writeWav } from '../../engine/audio/wav.ts';
import { postForm, startListeners } from '../support/listeners.ts';
import type { FormParts } from '../support/listeners.ts';
import { tone } from '../support/wav-file.ts';

const PATH = '/v1/audio/transcriptions';
const GOOD: FormParts = [
  ['file', writeWav(tone(440, 16000, 0.5), 16000)],
  ['model', 'parley-transcribe'],
];
/** As OpenAI's clients send an object. */
const IN_PARTS: FormParts = [['chunking_strategy[type]', 'server_vad']];
const strategy = (value: string): FormParts => [['chunking_strategy', value]];

describe('chunking_strategy and vad_filter', () => {
  test('reach the engine', async () => {
    const { transcription, engine } = await startListeners();
    const cases: readonly (readonly [FormParts, unknown])[] = [
      [[], undefined],
      [strategy('auto'), undefined],
      [strategy('{"type":"server_vad"}'), { threshold: 0.5, prefixPaddingMs: 300, silenceDurationMs: 200 }],
      [
        strategy('{"type":"server_vad","threshold":0.25,"prefix_padding_ms":0,"silence_duration_ms":700}'),
        { threshold: 0.25, prefixPaddingMs: 0, silenceDurationMs: 700 },
      ],
      // An object as OpenAI's clients send it.
      [
        [
          ['chunking_strategy[type]', 'server_vad'],
          ['chunking_strategy[silence_duration_ms]', '500'],
        ],
        { threshold: 0.5, prefixPaddingMs: 300, silenceDurationMs: 500 },
      ],
      [[['vad_filter', 'true']], true],
      [[['vad_filter', 'false']], false],
    ];
    for (const [more, wanted] of cases) {
      expect((await postForm(transcription + PATH, [...GOOD, ...more])).status).toBe(200);
      expect(engine.transcriptions.at(-1)!.vad).toEqual(wanted);
    }
  });

  test('are refused with the field at fault', async () => {
    const { transcription, engine } = await startListeners();
    const part = (name: string, value: string): FormParts => [...IN_PARTS, [`chunking_strategy[${name}]`, value]];
    const cases: readonly (readonly [FormParts, string])[] = [
      [strategy('manual'), 'chunking_strategy'],
      [strategy('{"type":"semantic_vad"}'), 'chunking_strategy'],
      [strategy('{"type":'), 'chunking_strategy'],
      [strategy('["server_vad"]'), 'chunking_strategy'],
      [strategy('{"type":"server_vad","eagerness":1}'), 'chunking_strategy'],
      [strategy('{"type":"server_vad","threshold":2}'), 'chunking_strategy.threshold'],
      [strategy('{"type":"server_vad","threshold":"0.5"}'), 'chunking_strategy.threshold'],
      [strategy('{"type":"server_vad","prefix_padding_ms":0.5}'), 'chunking_strategy.prefix_padding_ms'],
      [part('silence_duration_ms', '-1'), 'chunking_strategy.silence_duration_ms'],
      [part('threshold', 'much'), 'chunking_strategy.threshold'],
      [[...strategy('auto'), ...IN_PARTS], 'chunking_strategy'],
      [[...strategy('{"type":"server_vad"}'), ['vad_filter', 'false']], 'vad_filter'],
      [[['vad_filter', 'perhaps']], 'vad_filter'],
    ];
    for (const [more, param] of cases) {
      const { status, json } = await postForm(transcription + PATH, [...GOOD, ...more]);
      expect({ more, status, param: json.error?.param, type: json.error?.type }).toEqual({
        more,
        status: 400,
        param,
        type: 'invalid_request_error',
      });
    }
    expect(engine.transcriptions).toHaveLength(0);
  });
});

describe('a stream', () => {
  const ask = async (more: FormParts) => {
    const { transcription, engine } = await startListeners();
    const { text } = await postForm(transcription + PATH, [...GOOD, ['stream', 'true'], ...more]);
    const events = text.match(/(?<=^data: )\{.*$/gm)!.map((line) => JSON.parse(line) as { readonly type: string });
    return { events, request: engine.transcriptions[0]! };
  };

  test('tells of segments and their times where they are asked for, after the text', async () => {
    const { events, request } = await ask([['timestamp_granularities[]', 'segment']]);
    expect(request.timestamps).toBe('segment');
    expect(events.map(({ type }) => type.replace('transcript.text.', ''))).toEqual(['delta', 'segment', 'delta', 'segment', 'done']);
    expect(events[1]).toEqual({ type: 'transcript.text.segment', id: 'seg_0', start: 0, end: 1, text: ' Heard' });
    expect(events[3]).toEqual({ type: 'transcript.text.segment', id: 'seg_1', start: 1, end: 2, text: ' 0.50 seconds.' });
  });

  test('has text alone where they are not, and where words are', async () => {
    for (const more of [[], [['timestamp_granularities[]', 'word']]] as const satisfies readonly FormParts[]) {
      const { events, request } = await ask(more);
      expect(request.timestamps).toBeUndefined();
      expect(events.map(({ type }) => type.replace('transcript.text.', ''))).toEqual(['delta', 'delta', 'done']);
    }
  });
});
