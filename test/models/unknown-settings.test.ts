/** What no family knows is refused by name, in every one of them: never run as if it were absent. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { decoderFor } from '../../engine/models/registry.ts';
import type { Json } from '../../engine/util/json.ts';
import { isObject } from '../../engine/util/json.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/llama-tiny-random', import.meta.url));

/** The rotary parameters with another type, of every kind of layer that has its own. */
function withRopeType(parameters: unknown, type: string): Json {
  if (!isObject(parameters)) return { rope_type: type };
  const kinds = Object.entries(parameters).filter(([, own]) => isObject(own));
  if (kinds.length === 0) return { ...parameters, rope_type: type };
  return Object.fromEntries(kinds.map(([kind, own]) => [kind, withRopeType(own, type)]));
}

describe.each(readdirSync(FIXTURES))('%s', (name) => {
  const config = JSON.parse(readFileSync(join(FIXTURES, name, 'config.json'), 'utf8')) as Json;
  const parse = (fields: Json) => () => decoderFor(config).parseConfig({ ...config, ...fields });
  // A file has one of them.
  const activation = ['activation_function', 'hidden_activation'].find((field) => config[field] !== undefined) ?? 'hidden_act';

  test('is known as it is', () => {
    expect(parse({})).not.toThrow();
  });

  test.each([
    ['an activation', { [activation]: 'mystery' }],
    ['a rope type', { rope_parameters: withRopeType(config['rope_parameters'], 'mystery'), per_layer_config: undefined }],
    [
      'a rope type as transformers 4 wrote it',
      { rope_parameters: undefined, rope_scaling: { rope_type: 'mystery', type: 'mystery', factor: 2 } },
    ],
    ['a kind of layer', { layer_types: Array(Number(config['num_hidden_layers'] ?? 8)).fill('mystery') }],
  ] as const)('refuses %s', (_, fields) => {
    // Gemma 4 has no rope_scaling, whatever stands in it, and Nemotron-H no rotation.
    expect(parse(fields)).toThrow(/mystery|rope_(scaling|parameters) is an object/);
  });
});
