/** What is wrong with an exchange: the rules that every answer of every listener must keep. */
import type { HttpAnswer } from './answer.ts';
import { familyOf } from './case.ts';
import type { FuzzCase } from './case.ts';
import type { Exchange } from './exchange.ts';
import { SECRETS } from './files.ts';

const ERROR_TYPES = ['invalid_request_error', 'authentication_error', 'permission_error', 'timeout_error', 'server_error'];
/** Why a server may say 503. */
const REASONS = ['queue_full', 'out_of_memory', 'device_lost', 'model_loading', 'shutting_down'];

/** Every rule that was broken, as a sentence; none where all is well. */
export function judge(fuzz: FuzzCase, exchange: Exchange): readonly string[] {
  const { answers, broken, problem, silentMs, error } = exchange;
  const { expect } = fuzz;
  // Whoever went away has no claim to the rest of what was on its way.
  const shown = expect.answers === 'none' ? answers : [...answers, ...(broken ? [broken] : [])];
  const faults = shown.flatMap((answer, index) => judgeAnswer(fuzz, answer, index));
  if (silentMs !== undefined) faults.push(`nothing came, and the connection was not ended, for ${silentMs / 1000} s`);
  else if (expect.answers === 'one' && answers.length === 0) {
    faults.push(broken ? 'the answer broke off' : `the connection ended without an answer${error === undefined ? '' : ` (${error})`}`);
  }
  if (problem !== undefined && expect.answers !== 'none') faults.push(`not HTTP: ${problem}`);
  if (answers.length > (expect.atMost ?? 1)) faults.push(`${answers.length} answers to what is at most ${expect.atMost ?? 1} requests`);
  return faults;
}

function judgeAnswer(fuzz: FuzzCase, answer: HttpAnswer, index: number): string[] {
  const { status, headers, isWhole } = answer;
  const { expect, method } = fuzz;
  const faults: string[] = [];
  const isHead = method === 'HEAD' && index === 0;
  if (status > 499 && status !== 503) faults.push(`status ${status}`);
  // Another case may have asked that everything be aborted.
  const isAborted = status === 400 && answer.body.includes('"code":"request_aborted"');
  if (index === 0 && expect.status && !expect.status.includes(status) && !isAborted)
    faults.push(`status ${status}, not ${expect.status.join(' or ')}`);
  if (index === 0 && expect.withoutHeader !== undefined && headers.has(expect.withoutHeader)) {
    faults.push(`${expect.withoutHeader}: ${headers.get(expect.withoutHeader)}`);
  }
  for (const [wanted, name] of [
    [401, 'www-authenticate'],
    [405, 'allow'],
    [503, 'retry-after'],
  ] as const) {
    if (status === wanted && !headers.has(name)) faults.push(`status ${status} without ${name}`);
  }
  if (status === 204 || status === 304 || isHead || !isWhole) return faults;
  return [...faults, ...(status >= 400 ? judgeError(answer) : judgeBody(fuzz, answer))];
}

/** An error is JSON with the contract's four keys. */
function judgeError({ status, headers, body }: HttpAnswer): string[] {
  const type = headers.get('content-type') ?? 'none';
  if (!/^application\/json\b/.test(type)) return [`an error body of type ${type}: ${body.toString('utf8', 0, 100)}`];
  const value = tryJson(body.toString('utf8')) as { error?: unknown } | null | undefined;
  return judgeErrorObject(value?.error, status);
}

function judgeErrorObject(error: unknown, status: number): string[] {
  if (typeof error !== 'object' || error === null) return [`an error body without an error object (${status})`];
  const { message, type, param, code } = error as Readonly<Record<string, unknown>>;
  const faults: string[] = [];
  if (typeof message !== 'string' || message === '') faults.push(`error.message is ${JSON.stringify(message)}`);
  if (typeof type !== 'string' || !ERROR_TYPES.includes(type)) faults.push(`error.type is ${JSON.stringify(type)}`);
  if (param !== null && typeof param !== 'string') faults.push(`error.param is ${JSON.stringify(param)}`);
  if (code !== null && typeof code !== 'string') faults.push(`error.code is ${JSON.stringify(code)}`);
  if (status === 503 && !REASONS.includes(String(code))) faults.push(`503 without a reason: ${String(code)}`);
  return faults;
}

/** What came with a status below 400 is what its type says. */
function judgeBody(fuzz: FuzzCase, { status, headers, body }: HttpAnswer): string[] {
  const type = headers.get('content-type') ?? '';
  const family = familyOf(fuzz);
  const text = /json|text/.test(type) ? body.toString('utf8') : body.toString('latin1', 0, 4096);
  if (family === 'file') return SECRETS.filter((secret) => text.includes(secret)).map((secret) => `the answer shows ${secret}`);
  if (type.startsWith('text/event-stream')) return judgeStream(text);
  if (!/^application\/json\b/.test(type)) return type === '' && body.length > 0 ? [`status ${status} and a body without a type`] : [];
  const value = tryJson(text);
  if (value === undefined) return [`JSON that is none: ${text.slice(0, 100)}`];
  return judgeStructured(fuzz, value);
}

/** A stream says that it has ended, and an error in it is one that a status could have been. */
function judgeStream(text: string): string[] {
  const faults: string[] = [];
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data!);
  for (const data of events) {
    if (data === '[DONE]') continue;
    const value = tryJson(data) as { error?: { code?: unknown } } | undefined;
    if (value === undefined) faults.push(`an event that is no JSON: ${data.slice(0, 100)}`);
    else if (value.error !== undefined) {
      faults.push(...judgeErrorObject(value.error, 0));
      if (value.error?.code === 'internal_error') faults.push('internal_error in a stream');
    }
  }
  const last = events.at(-1) ?? '';
  const hasEnded = last === '[DONE]' || last.includes('"speech.audio.done"') || last.includes('"error"');
  return hasEnded ? faults : [...faults, `a stream without an end: ${last.slice(0, 100)}`];
}

/** An answer that was to be JSON and came to its end is JSON. */
function judgeStructured(fuzz: FuzzCase, value: unknown): string[] {
  if (familyOf(fuzz) !== 'schema') return [];
  const choices = (value as { choices?: readonly { finish_reason?: string; message?: { content?: string | null; tool_calls?: readonly { function: { arguments: string } }[] } }[] }).choices ?? []; // prettier-ignore
  return choices.flatMap(({ finish_reason: reason, message }) => {
    const texts = [
      ...(fuzz.bytes.includes('"response_format"') && reason === 'stop' ? [message?.content ?? ''] : []),
      ...(reason === 'tool_calls' ? (message?.tool_calls ?? []).map((call) => call.function.arguments) : []),
    ];
    return texts.filter((text) => tryJson(text) === undefined).map((text) => `not JSON, though finished: ${text.slice(0, 200)}`);
  });
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
