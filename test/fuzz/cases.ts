/** Case number N of a seed: what is sent, and how. */
import { anyBody } from './bodies.ts';
import type { Delivery, Expectation, FuzzCase } from './case.ts';
import { anyAdminRoute, anyFile } from './files.ts';
import { anyHead, smallChat } from './headers.ts';
import { anyForm, plainForm } from './multipart.ts';
import { chunked, plainRequest, toBytes } from './request.ts';
import type { Situation } from './request.ts';
import { between, caseRng, chance, choose, logBetween, weighted } from './rng.ts';
import type { Rng } from './rng.ts';
import { anySchemaBody } from './schemas.ts';

type Undelivered = Omit<FuzzCase, 'delivery'>;
type Maker = (rng: Rng, situation: Situation) => Undelivered;

const FORM_TARGET = '/v1/audio/transcriptions';

function jsonCase(family: string, make: typeof anyBody): Maker {
  return (rng, situation) => {
    const { name, listener, target, bytes } = make(rng);
    const request = plainRequest(situation, listener, target, { type: 'application/json', bytes });
    const framed = chance(rng, 0.1) ? { ...request, framing: [['Transfer-Encoding', 'chunked']] as const, body: chunked(rng, bytes) } : request; // prettier-ignore
    return { name: `${family}/${name}`, listener, method: 'POST', bytes: toBytes(framed), expect: { answers: 'one' } };
  };
}

const formCase: Maker = (rng, situation) => {
  const { name, type, bytes } = anyForm(rng);
  // A prefix of the path is another route, where nobody expects a form.
  const target = chance(rng, 0.95) ? FORM_TARGET : choose(rng, ['/v1/audio/translations', '/audio/transcriptions', '/v1/audio']);
  const request = plainRequest(situation, 'transcription', target, { type, bytes });
  return { name: `form/${name}`, listener: 'transcription', method: 'POST', bytes: toBytes(request), expect: { answers: 'one' } };
};

const MAKERS: readonly (readonly [weight: number, make: Maker])[] = [
  [25, jsonCase('body', anyBody)],
  [22, jsonCase('schema', anySchemaBody)],
  [20, formCase],
  [18, anyHead],
  [8, anyFile],
  [4, anyAdminRoute],
];

/** A good request among connections that declare an upload, or begin a request, and send nothing more. */
function siege(rng: Rng, situation: Situation): FuzzCase {
  const count = between(rng, 1, 80);
  if (chance(rng, 0.3)) {
    const bytes = toBytes(smallChat(rng, situation));
    const companions = Array.from({ length: count }, () => bytes.subarray(0, rng.integer(bytes.length)));
    return { name: `siege/${count} chats that do not come`, listener: 'chat', method: 'POST', bytes, delivery: { companions }, expect: { answers: 'one', status: [200] } }; // prettier-ignore
  }
  const good = plainRequest(situation, 'transcription', FORM_TARGET, plainForm(rng));
  const companions = Array.from({ length: count }, () => {
    // Large ones first fill a budget nearly, small ones the rest of it.
    const declared = choose(rng, [25 << 20, 25 << 20, 8 << 20, 1 << 20, 100_000]);
    return toBytes({ ...good, framing: [['Content-Length', String(declared)]], body: Buffer.alloc(between(rng, 0, 20), '-') });
  });
  // A chunked upload does not say how much it brings.
  const sent = chance(rng, 0.5) ? good : { ...good, framing: [['Transfer-Encoding', 'chunked']] as const, body: chunked(rng, good.body!) };
  return {
    name: `siege/${count} uploads that do not come`,
    listener: 'transcription',
    method: 'POST',
    bytes: toBytes(sent),
    delivery: { companions },
    expect: { answers: 'one', status: [200] },
  };
}

/** Several requests at once on a connection. */
function pipelined(rng: Rng, situation: Situation): FuzzCase {
  const count = between(rng, 2, 6);
  const bytes = Buffer.concat(Array.from({ length: count }, () => toBytes(smallChat(rng, situation))));
  const expect: Expectation = { answers: 'one', atMost: count, status: [200] };
  return { name: `pipeline/${count} chats`, listener: 'chat', method: 'POST', bytes, delivery: {}, expect };
}

/** How the bytes of a case are sent: mostly at once, else by somebody slow, deaf, or gone. */
function delivered(rng: Rng, made: Undelivered): FuzzCase {
  const { length } = made.bytes;
  const none: Expectation = { answers: 'none', atMost: 9 };
  const plain = { ...made, delivery: {} };
  if (chance(rng, 0.75)) return plain;
  // A request that is answered before its body came and then ends is answered once more: its rest is no request.
  const as = (how: string, delivery: Delivery, expect = made.expect): FuzzCase => ({ ...made, name: `${made.name}, ${how}`, delivery, expect }); // prettier-ignore
  return choose<() => FuzzCase>(rng, [
    () => as('slowly', { pauses: Array.from({ length: between(rng, 1, 8) }, () => rng.integer(length)), pauseMs: between(rng, 1, 60) }),
    () => as('byte by byte', { pauses: Array.from({ length: Math.min(60, length) }, (_, i) => i), pauseMs: 2 }),
    () =>
      as('ended early', { cut: { at: rng.integer(length), how: 'end' } }, { answers: 'optional', atMost: (made.expect.atMost ?? 1) + 1 }),
    () => as('reset early', { cut: { at: rng.integer(length), how: 'reset' } }, none),
    () => as('reset after it was sent', { leave: logBetween(rng, 1, 300) }, none),
    () => as('reset at the first byte of the answer', { leave: 'answer' }, none),
    () => as('not read at first', { deafMs: between(rng, 10, 500) }),
  ])();
}

/** The case; the same for the same seed, number and situation. */
export function makeCase(seed: number, index: number, situation: Situation): FuzzCase {
  const rng = caseRng(seed, index);
  const special = rng.uniform();
  if (special < 0.004) return siege(rng, situation);
  if (special < 0.015) return pipelined(rng, situation);
  return delivered(rng, weighted(rng, MAKERS)(rng, situation));
}
