/** The parts of the playground that need no browser. */
import { createHash } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { RemoteEngine } from '../../web/src/backend/remote-engine.ts';
import { guessServers } from '../../web/src/backend/servers.ts';
import { sseData } from '../../web/src/backend/sse.ts';
import { promptOf } from '../../web/src/chat/prompt.ts';
import type { ConversationData, MessageData } from '../../web/src/chat/conversation-data.ts';
import { answerTo, append, chain, endOf, mark, takeOut, update } from '../../web/src/chat/record.ts';
import { samplingOf, titleOf } from '../../web/src/chat/sampling.ts';
import { ServerGoneError, failure, isAbort, toFailure } from '../../web/src/failure.ts';
import { CHUNK_BYTES, chunkCount } from '../../web/src/models/manifest.ts';
import { Sha256 } from '../../web/src/models/sha256.ts';
import { DEFAULT_SETTINGS } from '../../web/src/settings.ts';
import { ACTION_WORDS, describeSession } from '../../web/src/state-words.ts';
import type { SessionState } from '../../web/src/backend/session-state.ts';
import type { Environment } from '../../web/src/environment.ts';
import { describeWork } from '../../web/src/speak/work-words.ts';
import { formatTranscript } from '../../web/src/transcribe/formats.ts';
import { clockTime } from '../../engine/util/subtitles.ts';
import { Deletions, UNDO_MS } from '../../web/src/storage/deletions.ts';
import { formatBytes, formatTenths, formatTime } from '../../web/src/util.ts';
import { SentenceSplitter, speakable } from '../../web/src/voice/sentences.ts';
import { collect } from '../support/collect.ts';

const STATES: readonly SessionState[] = [
  { name: 'idle' },
  { name: 'downloading', done: 5, total: 10 },
  { name: 'checking', done: 5, total: 10 },
  { name: 'elsewhere' },
  { name: 'loading' },
  { name: 'ready', info: { adapter: {} as never, models: [] } },
  { name: 'lost' },
  { name: 'failed', failure: failure('quota', 'no space') },
];

describe('what the page says of a state', () => {
  test.each(STATES.map((state) => [state.name, state] as const))(
    '%s has a word, and unless it is ready a sentence and an action',
    (name, state) => {
      const words = describeSession(state, 'ready', 1e7, false);
      expect(words.word).not.toBe('');
      expect(words.sentence === undefined).toBe(name === 'ready');
      expect(words.actions.length > 0).toBe(name !== 'ready');
      for (const action of words.actions) expect(ACTION_WORDS[action]).not.toBe('');
    },
  );

  test.each(['insecure', 'no-webgpu', 'no-adapter'] as const satisfies Environment[])(
    '%s comes before every other state and offers the server',
    (why) => {
      const sentences = STATES.map((state) => describeSession(state, why, 1e7, false));
      expect(new Set(sentences.map(({ sentence }) => sentence)).size).toBe(1);
      expect(sentences[0]!.actions).toContain('useServer');
      expect(sentences[0]!.isProblem).toBe(true);
    },
  );

  test('a model that is not here names its size before it is fetched; a stored one does not', () => {
    expect(describeSession({ name: 'idle' }, 'ready', 11_000_000, false).sentence).toContain(
      '11 MB to download, once, in about 4 s at 20\u00a0Mbit/s',
    );
    expect(describeSession({ name: 'idle' }, 'ready', 11_000_000, false, false).sentence).toMatch(
      /not stored in this browser, and there is no network/,
    );
    expect(describeSession({ name: 'idle' }, 'ready', 11_000_000, true, false).sentence).toMatch(/^The model is stored/);
    expect(describeSession({ name: 'idle' }, 'ready', 0, false).sentence).toBe('The model is not here yet.');
    expect(describeSession({ name: 'idle' }, 'ready', 11_000_000, true).sentence).not.toContain('MB');
  });

  test('a download of unknown size shows no share of it', () => {
    const words = describeSession({ name: 'downloading', done: 0, total: 0 }, 'ready', 0, false);
    expect(words.sentence).toBe('Downloading the model: 0 B');
    expect(words).not.toHaveProperty('progress');
    const known = describeSession({ name: 'downloading', done: 3e6, total: 11e6, left: 5.2 }, 'ready', 0, false);
    expect(known.sentence).toBe('Downloading the model: 3.0 MB of 11 MB, 5 s left');
  });

  test('a full disk offers to run without storing', () => {
    expect(describeSession(STATES.at(-1)!, 'ready', 1, false).actions).toContain('runWithoutStoring');
  });
});

describe('failures', () => {
  test('keep the engine code and say what can be done', () => {
    expect(toFailure(new EngineError('device_lost', 'gone'))).toEqual({
      code: 'device_lost',
      message: 'gone',
      remedies: ['restart', 'useServer'],
    });
    expect(toFailure(new ServerGoneError('it is gone'))).toEqual({ code: 'server', message: 'it is gone', remedies: ['retry', 'useTab'] });
    expect(toFailure('odd')).toEqual({ code: 'internal', message: 'odd', remedies: ['retry'] });
  });

  test('what the person stopped is none', () => {
    expect(isAbort(new EngineError('aborted', 'x'))).toBe(true);
    expect(isAbort(new DOMException('x', 'AbortError'))).toBe(true);
    expect(isAbort(new EngineError('internal', 'x'))).toBe(false);
  });
});

describe('what the model is given of a conversation', () => {
  test('is every turn, after the system prompt', () => {
    const turns = [
      { role: 'user', text: 'Hi' },
      { role: 'assistant', text: 'Hello' },
      { role: 'user', text: 'And?' },
    ] as const;
    const messages = turns.map(({ role, text }) => ({ role, content: text }));
    expect(promptOf(turns, ' Be brief. ')).toEqual([{ role: 'system', content: 'Be brief.' }, ...messages]);
    expect(promptOf(turns, ' ')).toEqual(messages);
  });

  test('an answer that failed before its first word is no turn, and roles go on alternating', () => {
    const turns = [
      { role: 'user', text: 'One?' },
      { role: 'assistant', text: '' },
      { role: 'user', text: 'Two?' },
    ] as const;
    expect(promptOf(turns, '')).toEqual([{ role: 'user', content: 'One?\n\nTwo?' }]);
  });

  test('an answer that was stopped in the middle is one', () => {
    const turns = [
      { role: 'user', text: 'One?' },
      { role: 'assistant', text: 'Half of' },
    ] as const;
    expect(promptOf(turns, '').at(-1)).toEqual({ role: 'assistant', content: 'Half of' });
  });
});

test('a take that was stopped before its first sound has no speed', () => {
  expect(describeWork({ status: 'stopped', seconds: 0, firstSound: 0, work: 1.2 })).toBe('stopped before the first sound');
  expect(describeWork({ status: 'done', seconds: 2, firstSound: 0.5, work: 1 })).toBe(
    '2.0 s · first sound after 0.5 s · made at 2.0× real time',
  );
});

describe('sentences of a growing answer', () => {
  const pieces = (text: string, size: number): string[] => text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g'))!;

  test.each([1, 3, 7, 1000])('are the same whatever the pieces (%s characters)', (size) => {
    const splitter = new SentenceSplitter();
    const text = 'It costs 3.50 euros today. “Is that so?” she asked. Yes! It is. And this has no end';
    const found = pieces(text, size).flatMap((piece) => splitter.push(piece));
    expect([...found, ...splitter.flush()]).toEqual([
      'It costs 3.50 euros today.',
      '“Is that so?”',
      'she asked. Yes!',
      'It is. And this has no end',
    ]);
  });

  test('come after 200 characters without an end, at a space', () => {
    const splitter = new SentenceSplitter();
    const [first] = splitter.push('word '.repeat(60));
    expect(first!.length).toBeLessThanOrEqual(200);
    expect(first!.endsWith('word')).toBe(true);
  });

  test.each([1, 3, 7, 1000])('leave out code, and only code (pieces of %s characters)', (size) => {
    const splitter = new SentenceSplitter();
    const text =
      'Here is code:\n```js\nconst a = f(1);\nconst b = "```";\n```\nThis prints both values. Run ```a``` twice.\n~~~\nx. y. z.\n~~~\nThat is all.\n\n```py\nprint(1)';
    const found = pieces(text, size).flatMap((piece) => splitter.push(piece));
    expect([...found, ...splitter.flush()].filter((sentence) => sentence !== '')).toEqual([
      'Here is code:',
      'This prints both values.',
      'Run ```a``` twice.',
      'That is all.',
    ]);
    expect(splitter.push('The next answer begins. ')).toEqual(['The next answer begins.']);
  });

  test('are spoken without the marks of Markdown', () => {
    expect(speakable('## Title\n- **bold** and `code`, see [this](http://x)\n```js\nx\n```')).toBe('Title bold and code, see this');
  });
});

describe('transcripts as files', () => {
  const segments = [
    { start: 0, end: 2.5, text: ' Hello.' },
    { start: 3661.0004, end: 3662.9996, text: 'Later.' },
  ];

  test('SRT and VTT have the right marks and carry hours', () => {
    expect(clockTime(3661.9996, ',')).toBe('01:01:02,000');
    expect(formatTranscript('srt', segments)).toBe(
      '1\n00:00:00,000 --> 00:00:02,500\nHello.\n\n2\n01:01:01,000 --> 01:01:03,000\nLater.\n\n',
    );
    expect(formatTranscript('vtt', segments)).toBe(
      'WEBVTT\n\n00:00:00.000 --> 00:00:02.500\nHello.\n\n01:01:01.000 --> 01:01:03.000\nLater.\n\n',
    );
  });

  test('text and JSON hold the words', () => {
    expect(formatTranscript('txt', segments)).toBe('Hello.\nLater.\n');
    expect(JSON.parse(formatTranscript('json', segments))).toEqual({
      segments: [
        { start: 0, end: 2.5, text: 'Hello.' },
        { start: 3661.0004, end: 3662.9996, text: 'Later.' },
      ],
    });
  });
});

describe('changes of a stored conversation', () => {
  const message = (id: string, status: MessageData['status'] = 'done'): MessageData => ({ id, role: id.startsWith('q') ? 'user' : 'assistant', text: id, status }); // prettier-ignore
  const record = (...ids: readonly string[]): ConversationData => ({ id: 'c', title: 't', created: 1, updated: 1, system: '', messages: ids.map((id) => message(id)) }); // prettier-ignore
  const idsOf = ({ messages }: ConversationData): string[] => messages.map(({ id }) => id);

  test('keep what another tab has added meanwhile', () => {
    // Stored by another tab since this one last looked: q2 and a2.
    const stored = record('q1', 'a1', 'q2', 'a2');
    expect(idsOf(append(message('q3'), message('a3'))(stored))).toEqual(['q1', 'a1', 'q2', 'a2', 'q3', 'a3']);
    expect(idsOf(chain(takeOut('a1'), answerTo('q1', message('b1')))(stored))).toEqual(['q1', 'b1', 'q2', 'a2']);
    expect(idsOf(chain(takeOut('q1', 'a1'), append(message('q4')))(stored))).toEqual(['q2', 'a2', 'q4']);
    expect(idsOf(answerTo('gone', message('b1'))(stored)).at(-1)).toBe('b1');
  });

  test('put a message in its own place, and not back once it is taken out', () => {
    const stored = record('q1', 'a1', 'q2');
    expect(update({ ...message('a1'), text: 'new' })(stored).messages[1]!.text).toBe('new');
    expect(idsOf(update(message('b1'))(stored))).toEqual(['q1', 'a1', 'q2']);
  });

  test('end an answer that nobody writes, and touch no other', () => {
    const stored = { ...record('q1'), messages: [message('q1'), message('a1', 'writing')] };
    expect(endOf('a1')(stored).messages[1]!.status).toBe('stopped');
    const ended = record('q1', 'a1');
    expect(endOf('a1')(ended)).toBe(ended);
  });

  test('delete by a mark, which a new turn takes away; the first question is the title', () => {
    const removed = mark(5)(record('q1'));
    expect(removed.removed).toBe(5);
    expect(mark(undefined)(removed)).not.toHaveProperty('removed');
    expect(append(message('q2'))(removed)).not.toHaveProperty('removed');
    expect(append(message('q1'))({ ...record(), title: '' }).title).toBe('q1');
  });
});

test('a deletion can be undone for ten seconds, once', () => {
  vi.useFakeTimers();
  try {
    const deletions = new Deletions();
    const said: string[] = [];
    const offer = (id: string): void => deletions.offer({ id, label: id, undo: () => said.push(`undo ${id}`), purge: () => said.push(`purge ${id}`) }); // prettier-ignore
    for (const id of ['a', 'b']) offer(id);
    vi.advanceTimersByTime(UNDO_MS - 1);
    const [a] = deletions.list.value;
    deletions.undo(a!);
    deletions.undo(a!);
    expect(said).toEqual(['undo a']);
    vi.advanceTimersByTime(1);
    expect(said).toEqual(['undo a', 'purge b']);
    expect(deletions.list.value).toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});

describe('chat settings', () => {
  test('an empty seed is random, lines are stop strings', () => {
    const chat = { ...DEFAULT_SETTINGS.chat, stop: 'END\n\n  ###  ', seed: ' ' };
    expect(samplingOf(chat).sampling).not.toHaveProperty('seed');
    expect(samplingOf(chat).stop).toEqual(['END', '###']);
    expect(samplingOf({ ...chat, seed: ' 42 ' }).sampling.seed).toBe(42);
  });

  test('a title is the beginning of the first line', () => {
    expect(titleOf('  short\nmore')).toBe('short');
    expect(titleOf('x'.repeat(100))).toHaveLength(48);
    expect(titleOf(`${'x'.repeat(46)}🙂🙂`)).not.toMatch(/\p{Surrogate}/u);
  });
});

describe('server addresses', () => {
  test('are beside the page when a Parley server serves it', () => {
    expect(guessServers('http://192.168.1.5:8000/#/chat', true)).toEqual({
      chat: 'http://192.168.1.5:8000/v1',
      speech: 'http://192.168.1.5:8001/v1',
      transcription: 'http://192.168.1.5:8002/v1',
    });
  });

  test('are on this machine when a static host does', () => {
    expect(guessServers('https://example.org/parley/', false).speech).toBe('http://localhost:3001/v1');
    expect(guessServers('http://127.0.0.1:9999/', false).chat).toBe('http://127.0.0.1:3000/v1');
  });
});

describe('the remote engine', () => {
  const answer = (text: string): Response => new Response(text, { headers: { 'content-type': 'text/event-stream' } });
  test('reads events whatever their line ends, without comments', async () => {
    expect(await collect(sseData(answer(': hello\n\ndata: a\r\n\r\ndata:b\n\ndata: cut')))).toEqual(['a', 'b']);
  });

  const answerOnce = async (answers: Response[], act: (engine: RemoteEngine) => Promise<unknown>): Promise<void> => {
    const engine = new RemoteEngine({ servers: { chat: 'http://x/v1', speech: '', transcription: '' }, apiKey: '' });
    const original = globalThis.fetch;
    globalThis.fetch = async () => answers.shift()!;
    try {
      await act(engine);
    } finally {
      globalThis.fetch = original;
    }
  };
  const models = (): Response => Response.json({ data: [{ id: 'm' }] });
  const chat = (engine: RemoteEngine): Promise<unknown[]> =>
    collect(engine.chat({ messages: [{ role: 'user', content: 'x' }], sampling: {} }, new AbortController().signal));
  const WORD = 'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n';
  const END = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';

  test('a stream with a finish_reason or [DONE] at its end is an answer; one that just ends is none', async () => {
    const going = 'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}\n\n';
    for (const whole of [`${WORD}${END}data: [DONE]\n\n`, WORD + END, `${WORD}data: [DONE]\n\n`]) {
      await answerOnce([models(), answer(whole)], async (engine) => {
        expect((await chat(engine)).at(-1)).toMatchObject({ type: 'finish', reason: 'stop' });
      });
    }
    for (const cut of ['', WORD, going]) {
      await answerOnce([models(), answer(cut)], async (engine) => {
        await expect(chat(engine)).rejects.toThrow('The server at http://x/v1 went away before its answer was complete.');
      });
    }
  });

  test('a server that dies in the middle of an answer is named', async () => {
    const dying = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(new TypeError('network error')),
      start: (controller) => controller.enqueue(new TextEncoder().encode(WORD)),
    });
    await answerOnce([models(), new Response(dying)], async (engine) => {
      await expect(chat(engine)).rejects.toThrow(ServerGoneError);
    });
  });

  test.each(['reasoning_content', 'reasoning'])('thoughts come as %s, and count as tokens', async (field) => {
    const thought = `data: {"choices":[{"index":0,"delta":{"${field}":"Hm"}}]}\n\n`;
    await answerOnce([models(), answer(`${thought}${WORD}${END}data: [DONE]\n\n`)], async (engine) => {
      expect(await chat(engine)).toEqual([
        { type: 'delta', index: 0, text: '', tokens: 1, reasoning: 'Hm' },
        { type: 'delta', index: 0, text: 'Hello', tokens: 1 },
        expect.objectContaining({ type: 'finish', completionTokens: 2 }),
      ]);
    });
  });

  test('a server that refuses is quoted with its code and field', async () => {
    const body = { error: { message: 'temperature is too high', code: 'invalid_value', param: 'temperature' } };
    await answerOnce([models(), Response.json(body, { status: 400 })], async (engine) => {
      await expect(chat(engine)).rejects.toMatchObject({
        code: 'invalid_request',
        param: 'temperature',
        message: expect.stringContaining('temperature is too high'),
      });
    });
  });
});

test('a file is stored in chunks of 8 MiB, an empty one in one', () => {
  expect([0, 1, CHUNK_BYTES, CHUNK_BYTES + 1].map(chunkCount)).toEqual([1, 1, 1, 2]);
});

test.each([0, 1, 55, 56, 63, 64, 65, 119, 120, 1000, 70_001])('the SHA-256 of %s bytes in pieces is the one of all at once', (length) => {
  const data = Uint8Array.from({ length }, (_, i) => (i * i) >> 3);
  const hash = new Sha256();
  for (let at = 0; at < length; at += 777) hash.update(data.subarray(at, at + 777));
  expect(hash.hex()).toBe(createHash('sha256').update(data).digest('hex'));
});

test('numbers for people', () => {
  expect([999, 10_957_152, 1_500, 3.2e9].map(formatBytes)).toEqual(['999 B', '11 MB', '1.5 kB', '3.2 GB']);
  expect([0, 1.33, 59.96].map(formatTenths)).toEqual(['0:00.0', '0:01.3', '1:00.0']);
  expect([0, 59.9, 61, 3600].map(formatTime)).toEqual(['0:00', '0:59', '1:01', '60:00']);
});
