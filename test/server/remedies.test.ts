/** What the engine says in its own words, as an operator and a client of the API read it. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { EngineError, LOAD_AS_F32, fromPlainError, toPlainError } from '../../engine/errors.ts';
import type { Remedy } from '../../engine/errors.ts';
import { toHttpError } from '../../server/http/errors.ts';
import { inFlags } from '../../server/remedies.ts';
import { FLAGS } from '../../server/settings/flags.ts';
import { tooLarge } from '../support/too-large.ts';

test('a model that does not fit tells the operator the flags, also from another process', () => {
  const message =
    /^large does not fit: .*\. Ways out: split the model over two devices, about half of it on each \(--tp-size 2 or --pp-size 2\); .*\(--kv-cache-dtype int8\); .*\(--max-running-requests or --chunked-prefill-size\); .*\(--mem-fraction-static\); say how much memory there really is \(--device-memory\)\.$/;
  expect(inFlags(tooLarge())).toMatch(message);
  expect(inFlags(fromPlainError(structuredClone(toPlainError(tooLarge()))))).toMatch(message);
});

test('one remedy follows the fault, a switch has no value, and no remedy changes nothing', () => {
  expect(inFlags(new EngineError('invalid_model', 'too large', { remedies: [LOAD_AS_F32] }))).toBe('too large; load it with --dtype f32');
  const trust: Remedy[] = [{ does: 'allow it', settings: [{ name: 'trustRemoteCode', value: true }] }];
  expect(inFlags(new EngineError('invalid_model', 'it is code', { remedies: trust }))).toBe(
    'it is code; allow it with --trust-remote-code',
  );
  const without: Remedy[] = [{ does: 'do without', settings: [{ name: 'speculativeMtp', value: false }] }];
  expect(inFlags(new EngineError('unsupported', 'it has no head', { remedies: without }))).toBe(
    'it has no head; do without with --no-speculative-mtp',
  );
  expect(inFlags(new EngineError('unsupported', 'for speech', { details: { modelTask: 'speech' } }))).toBe(
    'for speech; --speech-model takes it',
  );
  expect(inFlags(new EngineError('internal', 'a bug'))).toBe('a bug');
  const own = ['seed', 'context-length'];
  expect(inFlags(new EngineError('unsupported', 'for speech', { details: { modelTask: 'speech' } }), own)).toBe(
    "for speech; 'npm start' serves it with --speech-model",
  );
  expect(inFlags(new EngineError('invalid_model', 'too large', { remedies: [LOAD_AS_F32] }), own)).toBe("too large; load it with --dtype f32 of 'npm start'"); // prettier-ignore
  expect(inFlags(tooLarge(), own)).toMatch(/\. Ways out of 'npm start': split the model .*\(--mem-fraction-static\); /);
  const shorter: Remedy = { does: 'shorten it', settings: [{ name: 'contextLength' }, { name: 'pageSize' }] };
  expect(inFlags(new EngineError('out_of_memory', 'too long', { remedies: [LOAD_AS_F32, shorter] }), own)).toBe('too long; shorten it with --context-length'); // prettier-ignore
  expect(inFlags(new EngineError('no_adapter', 'none'))).toBe("none; 'npx parley adapters' lists what there is");
});

test('every setting that the engine names is a flag', () => {
  const engine = fileURLToPath(new URL('../../engine', import.meta.url));
  const files = readdirSync(engine, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const named = files.flatMap((file) =>
    [...readFileSync(join(engine, file), 'utf8').matchAll(/settings: \[(.*?)\]/gs)].flatMap(([, list]) =>
      [...list!.matchAll(/name: '(\w+)'/g)].map(([, name]) => name!),
    ),
  );
  expect(new Set(named).size).toBeGreaterThan(6);
  expect(named.filter((name) => !FLAGS.some(({ key }) => key === name))).toEqual([]);
});

test.each([
  ['sampling.logitBias', 'logit_bias'],
  ['stopTokenIds', 'stop_token_ids'],
  ['responseFormat.schema', 'response_format.json_schema.schema'],
  ['tools[3].parameters', 'tools[3].function.parameters'],
  ['continueFinalMessage', 'continue_final_message'],
  ['samples', 'file'],
  ['task', 'model'],
  ['messages', 'messages'],
])("the engine's field %s is %s of a request", (param, field) => {
  expect(toHttpError(new EngineError('invalid_request', 'wrong', { param })).param).toBe(field);
});

test('its numbers have the names of the API', () => {
  const error = new EngineError('context_length_exceeded', 'too long', { details: { promptTokens: 9, contextLength: 8 } });
  expect(toHttpError(error).body.error).toMatchObject({ param: 'messages', n_prompt_tokens: 9, n_ctx: 8 });
  expect(toHttpError(new EngineError('invalid_audio', 'cut')).param).toBe('file');
});
