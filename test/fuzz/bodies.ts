/** Good bodies of every route that takes JSON, and what is made of them. */
import type { ListenerName } from './case.ts';
import { HOSTILE_TEXTS, mutateJson, mutateText, randomText } from './json.ts';
import { between, chance, choose, logBetween } from './rng.ts';
import type { Rng } from './rng.ts';

export interface JsonRequest {
  readonly listener: ListenerName;
  readonly target: string;
  readonly body: object;
}

const QUESTIONS = ['Hi', 'What is the capital of France?', 'Tell me about rain.', 'Sing!', 'Why?'];
export const TOOL = { type: 'function', function: { name: 'weather', description: 'The weather of a town', parameters: { type: 'object', properties: { town: { enum: ['Rome', 'Oslo'] }, hot: { type: 'boolean' } }, required: ['town', 'hot'], additionalProperties: false } } }; // prettier-ignore

/** A chat request of a few tokens. */
export const chatBody = (rng: Rng, more: object = {}): object => ({
  model: 'parley-chat',
  messages: [{ role: 'user', content: choose(rng, QUESTIONS) }],
  max_tokens: between(rng, 1, 12),
  ...more,
});

const chat = (rng: Rng, more: object = {}): JsonRequest => ({
  listener: 'chat',
  target: '/v1/chat/completions',
  body: chatBody(rng, more),
});

const conversation = (rng: Rng): object[] => [
  { role: 'system', content: 'Be short.' },
  { role: 'user', content: [{ type: 'text', text: choose(rng, QUESTIONS) }] },
  { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"town":"Rome","hot":true}' } }] }, // prettier-ignore
  { role: 'tool', tool_call_id: 'call_1', content: 'hot' },
  { role: 'user', name: 'Ann', content: 'And tomorrow?' },
];

const speech = (rng: Rng, more: object = {}): JsonRequest => ({
  listener: 'speech',
  target: '/v1/audio/speech',
  body: {
    model: 'tts-1',
    input: choose(rng, ['Hi.', 'One. Two.', 'A dog!', '3 cats']),
    voice: 'oni',
    response_format: choose(rng, ['wav', 'pcm', 'mp3', 'opus', 'aac', 'flac']),
    ...more,
  },
});

type Maker = (rng: Rng) => JsonRequest;

/** Requests that are right, by kind. */
export const GOOD_BODIES: Readonly<Record<string, Maker>> = {
  plain: (rng) => chat(rng, { temperature: 0 }),
  stream: (rng) => chat(rng, { stream: true, stream_options: { include_usage: chance(rng, 0.5) } }),
  sampling: (rng) => chat(rng, { temperature: 1.2, top_p: 0.9, top_k: 20, min_p: 0.05, seed: rng.integer(1 << 30), presence_penalty: 0.5, frequency_penalty: -0.5, repetition_penalty: 1.1, logit_bias: { 17: -100, 300: 5 }, stop: ['.', '\n'], stop_token_ids: [2], min_tokens: 1 }), // prettier-ignore
  logprobs: (rng) => chat(rng, { logprobs: true, top_logprobs: between(rng, 0, 20), stream: chance(rng, 0.5) }),
  choices: (rng) => chat(rng, { n: between(rng, 2, 5), stream: chance(rng, 0.5) }),
  tools: (rng) => chat(rng, { tools: [TOOL], tool_choice: choose(rng, ['auto', 'required', 'none', { type: 'function', function: { name: 'weather' } }]), parallel_tool_calls: chance(rng, 0.5), max_tokens: 40, stream: chance(rng, 0.5) }), // prettier-ignore
  conversation: (rng) => chat(rng, { messages: conversation(rng), tools: [TOOL], chat_template_kwargs: { enable_thinking: false }, reasoning_effort: 'low' }), // prettier-ignore
  object: (rng) => chat(rng, { response_format: { type: 'json_object' }, max_tokens: 30 }),
  schema: (rng) => chat(rng, { response_format: { type: 'json_schema', json_schema: { name: 's', strict: true, schema: TOOL.function.parameters } }, max_tokens: 40 }), // prettier-ignore
  continued: (rng) => chat(rng, { messages: [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hel' }], continue_final_message: true, ignore_eos: true }), // prettier-ignore
  completion: (rng) => ({
    listener: 'chat',
    target: '/v1/completions',
    body: { model: 'parley-chat', prompt: choose<unknown>(rng, ['Once', ['One', 'Two'], [5, 6, 7], [[5], [6]]]), max_tokens: 8, echo: chance(rng, 0.3), n: 1, stream: chance(rng, 0.3) }, // prettier-ignore
  }),
  middle: (rng) => ({ listener: 'chat', target: '/v1/fim/completions', body: { model: 'parley-chat', prompt: 'Once ', suffix: choose(rng, [' a time.', '', '🎉']), max_tokens: 8, random_seed: 5, stream: chance(rng, 0.3) } }), // prettier-ignore
  tokenize: (rng) => ({ listener: 'chat', target: '/tokenize', body: { prompt: choose<unknown>(rng, ['Hello', ['a', 'b']]), add_special_tokens: true } }), // prettier-ignore
  'tokenize messages': (rng) => ({ listener: 'chat', target: '/tokenize', body: { model: 'parley-chat', messages: conversation(rng) } }),
  detokenize: (rng) => ({
    listener: 'chat',
    target: '/detokenize',
    body: {
      tokens: choose<unknown>(rng, [
        [1, 2, 300],
        [[5], [6, 7]],
      ]),
    },
  }),
  abort: (rng) => ({ listener: 'chat', target: '/abort_request', body: choose(rng, [{ rid: `nobody-${rng.integer(9)}` }, { abort_all: true }]) }), // prettier-ignore
  speech: (rng) => speech(rng, { seed: rng.integer(1 << 30), speed: choose(rng, [0.5, 1, 2, 4]) }),
  'speech in pieces': (rng) => speech(rng, { stream_format: choose(rng, ['audio', 'sse']) }),
  'earlier speech': (rng) => ({ listener: 'speech', target: '/v1/audio/speech', body: { text: 'Hello.', voice_ref: 'gaius.wav', seed: rng.integer(99) } }), // prettier-ignore
};

/** Texts and prompts that are many tokens, phonemes or characters. */
function longBody(rng: Rng): { readonly name: string; readonly request: JsonRequest } {
  const text = choose(rng, ['🎉', '9', 'a', 'ab ', '1/2 ', '…', '\u0301', 'ﷺ', '. ', '1,000,000 ', 'http://x.yz ', 'Hello there. ', ...HOSTILE_TEXTS.slice(2, 7)]); // prettier-ignore
  const repeated = text.repeat(logBetween(rng, 20, chance(rng, 0.1) ? 1_000_000 : 4096));
  // What must be made whole before a byte comes back may take longer than an answer may; so a text of words is asked for in pieces.
  const asSpeech = [...repeated].slice(0, 4096).join('');
  const request = choose<() => JsonRequest>(rng, [
    () => chat(rng, { messages: [{ role: 'user', content: repeated }] }),
    () => ({ listener: 'chat', target: '/v1/completions', body: { model: 'parley-chat', prompt: repeated, max_tokens: 2 } }),
    () => ({ listener: 'chat', target: '/tokenize', body: { prompt: repeated } }),
    () => speech(rng, { input: asSpeech, stream_format: choose(rng, ['audio', 'sse']), speed: 4 }),
    () => speech(rng, { input: '🎉'.repeat(logBetween(rng, 100, 4096)), speed: 4 }),
    () => chat(rng, { stop: Array.from({ length: 16 }, () => repeated.slice(0, 50_000)) }),
    () => chat(rng, { messages: Array.from({ length: logBetween(rng, 2, 5000) }, () => ({ role: 'user', content: text })) }),
  ])();
  return { name: `long ${request.target}, ${repeated.length} of ${JSON.stringify(text)}`, request };
}

/** A body as bytes for one of the routes, and what was done to it. */
export interface JsonBytes {
  readonly name: string;
  readonly listener: ListenerName;
  readonly target: string;
  readonly bytes: Buffer;
}

/** A good body, mostly with something changed. */
export function anyBody(rng: Rng): JsonBytes {
  if (chance(rng, 0.06)) {
    const { name, request } = longBody(rng);
    return { name, ...request, bytes: Buffer.from(JSON.stringify(request.body)) };
  }
  const kind = choose(rng, Object.keys(GOOD_BODIES));
  const { listener, target, body } = GOOD_BODIES[kind]!(rng);
  const how = rng.uniform();
  if (how < 0.15) return { name: `good ${kind}`, listener, target, bytes: Buffer.from(JSON.stringify(body)) };
  if (how < 0.3) return { name: `text of ${kind}`, listener, target, bytes: mutateText(rng, JSON.stringify(body)) };
  const mutated = chance(rng, 0.2) ? { ...body, [randomText(rng, 5)]: randomText(rng, 5) } : mutateJson(rng, body);
  return { name: `value of ${kind}`, listener, target, bytes: Buffer.from(JSON.stringify(mutated)) };
}
