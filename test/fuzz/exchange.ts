/** Sends a case over connections of its own to 127.0.0.1 and notes what comes back. */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { AnswerReader } from './answer.ts';
import type { HttpAnswer } from './answer.ts';
import type { FuzzCase } from './case.ts';

export interface Exchange {
  /** Answers that came whole. */
  readonly answers: readonly HttpAnswer[];
  /** The one that was cut off. */
  readonly broken: HttpAnswer | undefined;
  /** What was not HTTP. */
  readonly problem: string | undefined;
  /** The server said nothing, and did not end the connection, for this long after everything was sent. */
  readonly silentMs: number | undefined;
  /** Error code of the connection. */
  readonly error: string | undefined;
  readonly ms: number;
}

/** Quiet after which a sender of half a request ends its side. */
const QUIET_MS = 250;

/** Resolves when the case is over; `limitMs` bounds every silence. */
export async function perform(fuzz: FuzzCase, port: number, limitMs: number): Promise<Exchange> {
  const { companions = [] } = fuzz.delivery;
  const others = await Promise.all(companions.map(() => open(port)));
  for (const [i, socket] of others.entries()) socket.write(companions[i]!);
  try {
    return await talk(fuzz, await open(port), limitMs);
  } finally {
    for (const socket of others) socket.resetAndDestroy();
  }
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
  socket.on('error', () => {});
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  return socket;
}

async function talk(fuzz: FuzzCase, socket: Socket, limitMs: number): Promise<Exchange> {
  const { delivery, expect, method } = fuzz;
  const started = performance.now();
  const reader = new AnswerReader(method);
  let error: string | undefined;
  let silentMs: number | undefined;
  let over!: () => void;
  const isOver = new Promise<void>((resolve) => (over = resolve));
  // Silence counts from the last byte in either direction. Half a request is ended after a short one.
  let timer: NodeJS.Timeout | undefined;
  let isSent = false;
  let hasEnded = false;
  const listen = (): void => {
    clearTimeout(timer);
    if (isSent && expect.answers === 'optional' && !hasEnded) timer = setTimeout(endSending, QUIET_MS);
    else timer = setTimeout(() => ((silentMs = limitMs), over()), limitMs);
  };
  const endSending = (): void => {
    hasEnded = true;
    socket.end();
    listen();
  };
  socket.on('data', (bytes: Buffer) => {
    reader.push(bytes);
    listen();
    if (delivery.leave === 'answer') over();
    if (expect.answers === 'one' && isSent && (reader.answers.length >= (expect.atMost ?? 1) || reader.problem !== undefined)) over();
  });
  socket.on('end', () => over());
  socket.on('close', () => over());
  socket.on('error', (cause: NodeJS.ErrnoException) => (error = cause.code ?? cause.message));
  listen();
  await deliver(fuzz, socket);
  isSent = true;
  listen();
  if (expect.answers === 'none' && delivery.leave !== 'answer') over();
  else if (expect.answers === 'one' && reader.answers.length >= (expect.atMost ?? 1)) over();
  await isOver;
  clearTimeout(timer);
  const broken = reader.end();
  socket.resetAndDestroy();
  return { answers: reader.answers, broken, problem: reader.problem, silentMs, error, ms: performance.now() - started };
}

/** Writes the bytes as the case wants them written. */
async function deliver({ bytes, delivery }: FuzzCase, socket: Socket): Promise<void> {
  const { cut, pauses = [], pauseMs = 0, deafMs, leave } = delivery;
  const whole = cut ? bytes.subarray(0, cut.at) : bytes;
  const offsets = [...new Set([0, ...pauses.filter((at) => at > 0 && at < whole.length), whole.length])].sort((a, b) => a - b);
  if (deafMs !== undefined) socket.pause();
  for (let i = 1; i < offsets.length && socket.writable; i++) {
    if (i > 1) await sleep(pauseMs);
    await write(socket, whole.subarray(offsets[i - 1], offsets[i]));
  }
  if (deafMs !== undefined) {
    await sleep(deafMs);
    socket.resume();
  }
  if (typeof leave === 'number') await sleep(leave);
  if (cut?.how === 'end') socket.end();
}

/** Resolves when the system has taken the bytes, or the connection has gone. */
function write(socket: Socket, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const onClose = (): void => resolve();
    socket.once('close', onClose);
    socket.write(bytes, () => {
      socket.off('close', onClose);
      resolve();
    });
  });
}
