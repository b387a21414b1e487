/** What a fleet behind a router must show: its routes, the cached prefixes, and what a drain and a kill cost. */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { postJson, send } from '../../support/listeners.ts';
import type { Answer } from '../../support/listeners.ts';
import { askChat, askSpeech, askTranscript, crowd } from './clients.ts';
import type { ChatAsk, Outcome, Target } from './clients.ts';
import type { Router } from './routers.ts';
import { startWorker } from './workers.ts';
import type { FleetTask, Worker } from './workers.ts';

const CONVERSATIONS = 16;
const TURNS = 8;
const CLIENTS = 40;
const WEATHER = { type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: { town: { enum: ['Rome', 'Oslo'] } }, required: ['town'], additionalProperties: false } } }; // prettier-ignore
const user = (content: string) => ({ role: 'user', content });

/** The chats that every router must pass on unchanged. */
const ASKS: Readonly<Record<string, ChatAsk>> = {
  chat: { messages: [user('Tell me about the sea.')] },
  stream: { messages: [user('Tell me about the moon.')], stream: true },
  tools: { messages: [user('What is the weather in Rome?')], tools: [WEATHER], tool_choice: 'required', max_tokens: 60 },
};

/** One line a route: `same` = what the worker itself answers. */
export async function routes(router: Router, worker: Worker): Promise<Readonly<Record<string, string>>> {
  const results: Record<string, string> = {};
  const through = (task: FleetTask): Target | undefined => router.base[task] === undefined ? undefined : { base: router.base[task], headers: router.headers }; // prettier-ignore
  for (const [name, ask] of Object.entries(ASKS)) {
    const [here, there] = await Promise.all([askChat({ base: worker.base.chat }, ask), askChat(through('chat')!, ask)]);
    results[name] = verdict(saidBy(here), saidBy(there));
  }
  const spoken = await askSpeech({ base: worker.base.speech }, 'The ship sails at noon.');
  const speech = through('speech');
  results['speech'] = speech ? speechVerdict(spoken, await askSpeech(speech, 'The ship sails at noon.')) : 'not routed';
  const heard = await askTranscript({ base: worker.base.transcription }, spoken.bytes);
  const transcription = through('transcription');
  results['transcription'] = transcription ? verdict(heard.json.text, textOf(await askTranscript(transcription, spoken.bytes))) : 'not routed'; // prettier-ignore
  return results;
}

/** A router that forgets the seed gets another reading of the same words: a WAV file of about the same length. */
function speechVerdict(expected: Answer, found: Answer): string {
  if (found.bytes.equals(expected.bytes)) return 'same';
  const [length, ours] = [found.bytes.length, expected.bytes.length];
  const isSpeech = found.status === 200 && found.bytes.toString('latin1', 0, 4) === 'RIFF' && Math.abs(length - ours) < ours / 3;
  return isSpeech ? 'read with another seed' : `DIFFERS: ${found.status} ${found.text.slice(0, 200)}`;
}

const textOf = ({ status, text, json }: Awaited<ReturnType<typeof askTranscript>>): string => status === 200 ? json.text : `${status} ${text.slice(0, 200)}`; // prettier-ignore
const saidBy = (outcome: Outcome): string => (outcome.end === 'whole' ? outcome.text : `${outcome.end}: ${outcome.why}`);
const verdict = (expected: string, found: string): string => expected === found && expected.length > 0 ? 'same' : `DIFFERS: ${found.slice(0, 200)}`; // prettier-ignore

export interface Prefixes {
  /** Share of the prompt tokens that were cached. */
  readonly share: number;
  readonly seconds: number;
  readonly tokensPerSecond: number;
}

/** Conversations that grow by a turn each time, several at once. */
export async function prefixes(target: Target): Promise<Prefixes> {
  const [prompt, cached, tokens] = [[0], [0], [0]];
  const from = performance.now();
  await crowd(8, CONVERSATIONS, async (index) => {
    // A long beginning of its own: what a cache-aware router tells conversations apart by.
    const rules = `Conversation ${index}. ${`Rule ${index * 7919}: answer in few words, as friend ${index} would. `.repeat(8)}`;
    const messages = [{ role: 'system', content: rules }];
    for (let turn = 0; turn < TURNS; turn++) {
      messages.push(user(`Turn ${turn}: what do you know of the number ${index * 100 + turn}?`));
      const outcome = await askChat(target, { messages, max_tokens: 12 });
      if (outcome.end !== 'whole') throw new Error(`a turn was ${outcome.end}: ${outcome.why}`);
      prompt[0]! += outcome.prompt;
      cached[0]! += outcome.cached;
      tokens[0]! += outcome.tokens;
      messages.push({ role: 'assistant', content: outcome.text });
    }
  });
  const seconds = (performance.now() - from) / 1000;
  return { share: cached[0]! / prompt[0]!, seconds, tokensPerSecond: tokens[0]! / seconds };
}

/** Forgets what each worker has cached. */
export async function flush(workers: readonly Worker[]): Promise<void> {
  for (const { base } of workers) {
    const { status, text } = await postJson(`${base.chat}/flush_cache?timeout=30`, {});
    if (status !== 200) throw new Error(`flush_cache: ${text}`);
  }
}

export interface Losses {
  readonly whole: number;
  /** Nothing of the answer had come; it had begun. */
  readonly lost: readonly string[];
  readonly broken: readonly string[];
  /** Whole, and other than what one worker alone says. */
  readonly wrong: number;
}

/** 40 clients with streams and whole answers by turns, while something happens to a worker after a quarter of them. */
async function crowdWhile(router: Router, expected: readonly string[], count: number, happens: () => Promise<void>): Promise<Losses> {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const target = { base: router.base.chat!, headers: router.headers, agent };
  let done = 0;
  let event: Promise<void> | undefined;
  const outcomes = await crowd(CLIENTS, count, async (index) => {
    const outcome = await askChat(target, lossAsk(index));
    if (++done >= count / 4) event ??= happens();
    return outcome;
  });
  await event;
  agent.destroy();
  const of = (end: string): string[] => outcomes.flatMap((one, i) => (one.end === end && one.end !== 'whole' ? [`${lossAsk(i).stream ? 'stream' : 'whole'}: ${one.why}`] : [])); // prettier-ignore
  const wrong = outcomes.filter((one, i) => one.end === 'whole' && one.text !== expected[i % expected.length]).length;
  return { whole: outcomes.length - of('lost').length - of('broken').length, lost: of('lost'), broken: of('broken'), wrong };
}

const LOSS_ASKS = 8;
const lossAsk = (index: number): ChatAsk => ({
  messages: [user(`What do you think of the number ${index % LOSS_ASKS}?`)],
  max_tokens: 48,
  ignore_eos: true,
  stream: Math.floor(index / LOSS_ASKS) % 2 === 0,
});

/** What one worker alone says to what the crowd asks. */
export async function aloneAnswers({ base }: Worker): Promise<readonly string[]> {
  const outcomes = await crowd(1, LOSS_ASKS, (index) => askChat({ base: base.chat }, lossAsk(index)));
  return outcomes.map(saidBy);
}

export interface Departure {
  readonly losses: Losses;
  /** Requests that ran or waited at the worker when it was told to leave. */
  readonly held: number;
  /** Its exit code, and the workers afterwards: another has its place. */
  readonly exit: number | null;
  readonly workers: readonly Worker[];
}

/** Ends the busiest worker in the middle of a crowd, by a drain or at once, and puts another in its place. */
export async function departure(
  router: Router,
  workers: readonly Worker[],
  signal: 'SIGTERM' | 'SIGKILL',
  count: number,
): Promise<Departure> {
  const expected = await aloneAnswers(workers[0]!);
  let [leaving, held] = [workers[0]!, 0];
  const losses = await crowdWhile(router, expected, count, async () => {
    const busy = await Promise.all(workers.map(async (worker) => ({ worker, requests: await requestsAt(worker) })));
    ({ worker: leaving, requests: held } = busy.reduce((most, one) => (one.requests > most.requests ? one : most)));
    leaving.child.kill(signal);
    if (signal === 'SIGTERM') await leaving.exit;
  });
  const exit = await leaving.exit;
  const next = await startWorker({ ports: leaving.ports });
  // Whoever checks once a second has seen it by then.
  await sleep(3000);
  return { losses, held, exit, workers: [...workers.filter((worker) => worker !== leaving), next] };
}

async function requestsAt({ base }: Worker): Promise<number> {
  const loads = JSON.parse((await send(`${base.chat}/get_load`)).text) as readonly { readonly num_reqs: number }[];
  return loads[0]!.num_reqs;
}
