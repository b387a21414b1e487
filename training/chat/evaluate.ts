/**
 * Evaluates a chat checkpoint through Parley: the written test prompts with their grader, free generations that must not loop, JSON
 * requests that must parse, and the perplexity of held-out dialogues (Parley's decoder on whole dialogues).
 *
 *   npx tsx training/chat/evaluate.ts [--model models/parley-chat] [--prompts training/chat/test_prompts.jsonl] [--held a.jsonl ...] [--grades-only]
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { ChatMessage, ChatRequest, ResponseFormat } from '../../engine/api.ts';
import type { Engine } from '../../engine/protocol.ts';
import { DecoderHarness } from '../../test/support/decoder-harness.ts';
import { testDevice } from '../../test/support/device.ts';
import { openEngine } from '../through-parley.ts';
import { isRepetitive, problemOf } from './grade.ts';
import type { TestAnswer, TestPrompt } from './grade.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
/** Requests in flight: the engine batches them. */
const AT_ONCE = 8;
const FREE_GENERATIONS = 200;
const JSON_REQUESTS = 100;
const TEMPERATURE = 0.8;
const ANSWER_TOKENS = 200;
const JSON_TOKENS = 400;
/** Dialogues a held-out file, and their longest. */
const HELD_DIALOGUES = 200;
const HELD_TOKENS = 480;

const PERSON = { type: 'object', properties: { name: { type: 'string', maxLength: 40 }, age: { type: 'integer', minimum: 0, maximum: 150 } }, required: ['name', 'age'], additionalProperties: false }; // prettier-ignore
const LIST = { type: 'object', properties: { items: { type: 'array', items: { type: 'string', maxLength: 40 }, minItems: 1, maxItems: 5 } }, required: ['items'], additionalProperties: false }; // prettier-ignore
const FORMATS: readonly ResponseFormat[] = [{ type: 'json_object' }, { type: 'json_schema', schema: PERSON }, { type: 'json_schema', schema: LIST }]; // prettier-ignore

const readLines = <T>(path: string): T[] => readFileSync(path, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line) as T); // prettier-ignore

/** What a program asks for: 'json_object' with the keys in the text, or a schema. */
const JSON_ASKED = readFileSync(join(HERE, 'json_requests.txt'), 'utf8').trimEnd().split('\n');

function messagesOf({ system, turns }: TestPrompt): ChatMessage[] {
  const said = turns.map((content, i): ChatMessage => ({ role: i % 2 === 0 ? 'user' : 'assistant', content }));
  return system === undefined ? said : [{ role: 'system', content: system }, ...said];
}

async function answer(engine: Engine, request: ChatRequest): Promise<TestAnswer> {
  let text = '';
  let ended = false;
  for await (const event of engine.chat(request, new AbortController().signal)) {
    if (event.type === 'delta') text += event.text;
    if (event.type === 'finish') ended = event.reason === 'stop';
  }
  return { text, ended };
}

/** Answers in the order of the requests, `AT_ONCE` of them in flight. */
async function answerAll(engine: Engine, requests: readonly ChatRequest[]): Promise<TestAnswer[]> {
  const answers: TestAnswer[] = [];
  const waiting = requests.entries();
  const worker = async (): Promise<void> => {
    for (const [i, request] of waiting) answers[i] = await answer(engine, request);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return answers;
}

async function gradePrompts(engine: Engine, prompts: readonly TestPrompt[]) {
  const answers = await answerAll(
    engine,
    prompts.map((prompt) => ({ messages: messagesOf(prompt), sampling: { temperature: 0 }, maxTokens: ANSWER_TOKENS })),
  );
  return prompts.map((prompt, i) => ({ prompt, answer: answers[i]!, problem: problemOf(prompt, answers[i]!) }));
}

function printGrades(graded: Awaited<ReturnType<typeof gradePrompts>>): void {
  for (const { prompt, answer, problem } of graded) {
    console.log(`${problem ? 'FAIL' : 'pass'} [${prompt.group}] ${prompt.turns.at(-1)}\n     ${answer.text.replaceAll('\n', ' / ')}`);
    if (problem) console.log(`     (${problem})`);
  }
  console.log('\n| group | sensible |\n|---|---|');
  for (const group of new Set(graded.map(({ prompt }) => prompt.group))) {
    const members = graded.filter(({ prompt }) => prompt.group === group);
    console.log(`| ${group} | ${members.filter(({ problem }) => !problem).length} of ${members.length} |`);
  }
  console.log(`| all | ${graded.filter(({ problem }) => !problem).length} of ${graded.length} |\n`);
}

/** Sampled answers to the test prompts, over and over with another seed, that go round in circles or do not end. */
async function freeGenerations(engine: Engine, prompts: readonly TestPrompt[]) {
  const requests = Array.from({ length: FREE_GENERATIONS }, (_, seed) => ({
    messages: messagesOf(prompts[seed % prompts.length]!),
    sampling: { temperature: TEMPERATURE, seed },
    maxTokens: ANSWER_TOKENS,
  }));
  const answers = await answerAll(engine, requests);
  const looping = answers.filter(({ text }) => isRepetitive(text));
  const endless = answers.filter(({ ended }) => !ended);
  console.log(
    `free generations: ${answers.length}, repetitive ${looping.length}, not ended after ${ANSWER_TOKENS} tokens ${endless.length}`,
  );
  for (const { text } of new Set([...looping, ...endless])) console.log(`  ${text.slice(0, 300).replaceAll('\n', ' / ')}`);
}

/** Sampled answers to JSON requests with constrained decoding; each must parse, those with a schema must have its keys. */
async function jsonRequests(engine: Engine) {
  const formats = Array.from({ length: JSON_REQUESTS }, (_, i) => FORMATS[i % FORMATS.length]!);
  const requests = formats.map((responseFormat, seed): ChatRequest => ({
    messages: [{ role: 'user', content: JSON_ASKED[seed % JSON_ASKED.length]! }],
    sampling: { temperature: TEMPERATURE, seed },
    maxTokens: JSON_TOKENS,
    responseFormat,
  }));
  const answers = await answerAll(engine, requests);
  const failed = answers.filter(({ text }, i) => {
    try {
      const value = JSON.parse(text) as object;
      const format = formats[i]!;
      const required = format.type === 'json_schema' ? (format.schema as { required: string[] }).required : [];
      return required.some((key) => !(key in value));
    } catch {
      return true;
    }
  });
  console.log(`JSON requests with constrained decoding: ${answers.length - failed.length} of ${answers.length} parse`);
  for (const { text, ended } of failed) console.log(`  ${ended ? '' : '(cut) '}${text.slice(0, 300).replaceAll('\n', ' / ')}`);
}

interface HeldOut {
  readonly messages?: readonly { readonly role: string; readonly content: string }[];
}

/** Tokens of a dialogue in ChatML and which of them the assistant writes. */
async function tokensOf(engine: Engine, messages: NonNullable<HeldOut['messages']>): Promise<{ tokens: number[]; own: boolean[] }> {
  const tokens: number[] = [];
  const own: boolean[] = [];
  const add = async (prompt: string, assistant: boolean): Promise<void> => {
    for (const token of await engine.tokenize({ prompt, addSpecialTokens: false })) {
      tokens.push(token);
      own.push(assistant);
    }
  };
  for (const { role, content } of messages) {
    await add(`<|im_start|>${role}\n`, false);
    await add(`${content}<|im_end|>`, role === 'assistant');
    await add('\n', false);
  }
  return { tokens, own };
}

function surprise(logits: Float32Array, token: number): number {
  const top = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  return Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0)) + top - logits[token]!;
}

/** Perplexity of the assistant's tokens of a file of held-out dialogues. */
async function perplexity(engine: Engine, harness: DecoderHarness, path: string) {
  let [sum, count] = [0, 0];
  for (const { messages } of readLines<HeldOut>(path).slice(0, HELD_DIALOGUES)) {
    if (!messages) continue;
    const { tokens, own } = await tokensOf(engine, messages);
    if (tokens.length > HELD_TOKENS) continue;
    const logits = await harness.step([{ sequence: 0, start: 0, tokens }]);
    for (let i = 1; i < tokens.length; i++) {
      if (!own[i]) continue;
      sum += surprise(logits[i - 1]!, tokens[i]!);
      count++;
    }
  }
  console.log(`held-out ${path}: perplexity ${Math.exp(sum / count).toPrecision(4)} over ${count} tokens of the assistant`);
}

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: join(HERE, '../../models/parley-chat') },
    prompts: { type: 'string', default: join(HERE, 'test_prompts.jsonl') },
    held: { type: 'string', multiple: true, default: [] },
    'grades-only': { type: 'boolean', default: false },
  },
});
const engine = await openEngine({ chat: values.model });
const prompts = readLines<TestPrompt>(values.prompts);
printGrades(await gradePrompts(engine, prompts));
if (!values['grades-only']) {
  await freeGenerations(engine, prompts);
  await jsonRequests(engine);
}
if (values.held.length > 0) {
  const device = await testDevice();
  const harness = await DecoderHarness.load(device, values.model, { sequences: 1 });
  for (const path of values.held) await perplexity(engine, harness, path);
}
await engine.close();
process.exit(0);
