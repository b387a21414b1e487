/** A fleet for as long as asked: mixed clients through a router, a third of whom leave midway, and a worker that starts anew every now and then. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRng } from '../../../engine/util/rng.ts';
import { childOf } from '../serving/soak.ts';
import { askChat, askSpeech, askTranscript } from './clients.ts';
import type { ChatAsk, Outcome, Target } from './clients.ts';
import type { Router } from './routers.ts';
import { startWorker } from './workers.ts';
import type { FleetTask, Worker } from './workers.ts';

const CLIENTS = 64;
const SENTENCES = ['The ship sails at noon.', 'Bread is on the table.', 'The train was late again.', 'Nobody saw the lamp.'];
const LONGEST_STAY_MS = 400;

export interface FleetSoakOptions {
  readonly minutes: number;
  /** Between two restarts of a worker. */
  readonly restartSeconds: number;
  readonly onProgress: (line: string) => void;
}

export interface FleetSoakReport {
  readonly counts: Readonly<Record<string, number>>;
  /** Answers other than what one worker alone says, and requests that came to nothing. */
  readonly problems: readonly string[];
  /** MiB of a worker's two processes, of those that were never started anew: by minute. */
  readonly memory: readonly number[];
  readonly workers: readonly Worker[];
}

/** A request and what one worker alone answers to it. */
interface Question {
  readonly task: FleetTask;
  readonly expected: string;
  ask(target: Target, signal?: AbortSignal): Promise<string>;
}

const textOf = (outcome: Outcome): string => (outcome.end === 'whole' ? outcome.text : `${outcome.end}: ${outcome.why}`);

/** The questions, answered by a worker alone. */
async function questions(worker: Worker, tasks: readonly FleetTask[]): Promise<readonly Question[]> {
  const chats = Array.from({ length: 24 }, (_, i): ChatAsk => ({
    messages: [{ role: 'user', content: `What do you know of the number ${i * 37}?` }],
    max_tokens: 12 + (i % 3) * 12,
    stream: i % 2 === 0,
  }));
  const clips = await Promise.all(SENTENCES.map(async (text) => (await askSpeech({ base: worker.base.speech }, text)).bytes));
  const spoken = (text: string) => async (target: Target) => {
    const { status, bytes, text: body } = await askSpeech(target, text);
    return status === 200 ? bytes.toString('base64') : `${status} ${body.slice(0, 200)}`;
  };
  const heard = (clip: Buffer) => async (target: Target) => {
    const { status, json, text } = await askTranscript(target, clip);
    return status === 200 ? json.text : `${status} ${text.slice(0, 200)}`;
  };
  const all: readonly Omit<Question, 'expected'>[] = [
    ...chats.map((chat) => ({
      task: 'chat' as const,
      ask: async (target: Target, signal?: AbortSignal) => textOf(await askChat(target, chat, signal)),
    })),
    ...SENTENCES.map((text) => ({ task: 'speech' as const, ask: spoken(text) })),
    ...clips.map((clip) => ({ task: 'transcription' as const, ask: heard(clip) })),
  ];
  const answered: Question[] = [];
  for (const one of all.filter(({ task }) => tasks.includes(task)))
    answered.push({ ...one, expected: await one.ask({ base: worker.base[one.task] }) });
  return answered;
}

/** Runs it; the first worker is never started anew, so that its memory tells. */
export async function fleetSoak(router: Router, workers: readonly Worker[], options: FleetSoakOptions): Promise<FleetSoakReport> {
  const tasks = (['chat', 'speech', 'transcription'] as const).filter((task) => router.base[task] !== undefined);
  const asked = await questions(workers[0]!, tasks);
  const until = performance.now() + options.minutes * 60_000;
  const counts: Record<string, number> = {};
  const problems: string[] = [];
  let next = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < until) {
      const index = next++;
      const question = asked[index % asked.length]!;
      const leaves = question.task === 'chat' && Math.floor(index / asked.length) % 3 === 2;
      const name = leaves ? 'went away' : question.task;
      const stay = leaves ? AbortSignal.timeout(createRng(index).integer(LONGEST_STAY_MS)) : undefined;
      const answer = await question.ask({ base: router.base[question.task]!, headers: router.headers }, stay);
      counts[name] = (counts[name] ?? 0) + 1;
      if (!leaves && answer !== question.expected) problems.push(`${question.task}: ${answer.slice(0, 300)}`);
    }
  };
  const memory: number[] = [];
  const rotate = restarts([...workers], until, options);
  const watch = async (): Promise<void> => {
    while (performance.now() < until) {
      memory.push(residentMib(workers[0]!));
      options.onProgress(`${next} asked, ${problems.length} problems, ${memory.at(-1)!.toFixed(0)} MiB`);
      await sleep(Math.min(60_000, Math.max(0, until - performance.now())));
    }
  };
  const [now] = await Promise.all([rotate, watch(), ...Array.from({ length: CLIENTS }, client)]);
  memory.push(residentMib(workers[0]!));
  return { counts, problems, memory, workers: now };
}

/** Drains the second worker and puts another in its place, every so often. */
async function restarts(workers: Worker[], until: number, { restartSeconds, onProgress }: FleetSoakOptions): Promise<readonly Worker[]> {
  while (performance.now() + restartSeconds * 1000 < until) {
    await sleep(restartSeconds * 1000);
    const leaving = workers[1]!;
    leaving.child.kill('SIGTERM');
    const exit = await leaving.exit;
    workers[1] = await startWorker({ ports: leaving.ports });
    onProgress(`a worker was drained (exit code ${exit}) and started anew`);
  }
  return workers;
}

/** Of the listeners' process and the engine's. */
function residentMib({ child }: Worker): number {
  const of = (pid: number | undefined): number => pid === undefined ? 0 : Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024; // prettier-ignore
  return of(child.pid) + of(child.pid === undefined ? undefined : childOf(child.pid));
}
