/**
 * config.json as transformers reads it (test/tools/dump_config_fields.py): every field that its code reads is felt here or refused by name, a field that a file
 * lacks has the value that transformers gives it, and positions are rotated with its frequencies however a file says how.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import type { DecoderStackConfig } from '../../engine/models/layers/stack-config.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { ropeAt, ropeFrequencies } from '../../engine/ops/rope.ts';
import type { RopeConfig } from '../../engine/ops/rope.ts';
import type { Json } from '../../engine/util/json.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures', import.meta.url));

interface Rotation {
  readonly scaling: number;
  readonly frequencies: readonly number[];
}
interface Fields {
  readonly reads: readonly string[];
  readonly absent: Readonly<Record<string, Json | null>>;
  readonly ropes: readonly { readonly fields: Json; readonly rotations: Readonly<Record<string, Rotation>> | null }[];
}
const { models } = JSON.parse(readFileSync(join(FIXTURES, 'config-fields.json'), 'utf8')) as { models: Record<string, Fields> };

/** Fields that change no answer: of training, of how transformers computes or what it returns, of tokens that padding is made of, and of types of stored numbers. */
const INDIFFERENT: readonly RegExp[] = [
  /dropout$|_pdrop$|^layerdrop$|^initializer_range$|^router_aux_loss_coef$|^(input|router)_jitter_noise$|^gradient_checkpointing$/,
  /^use_cache$|^return_dict$|^output_|^(mamba_)?chunk_size$|^use_mamba_kernels$|^reorder_and_upcast_attn$/,
  /^pad_token_id$|^dtype$/,
  // Of how a state-space model is trained from nothing. transformers also raises the time steps of Nemotron-H's prompts, not those of later tokens, to
  // time_step_min; NVIDIA's own code does not.
  /^rescale_prenorm_residual$|^time_step_(floor|min|max)$/,
];
/** What a field may need beside it to be felt. */
const BESIDE: readonly Json[] = [
  {},
  { use_sliding_window: true, sliding_window: 5, layer_types: undefined },
  { rope_parameters: undefined },
  { rope_parameters: { full_attention: { rope_type: 'proportional' }, sliding_attention: { rope_type: 'default' } }, rope_theta: 7 },
  { num_kv_shared_layers: 1, layer_types: new Array<string>(8).fill('full_attention') },
  { layer_types: undefined },
  { num_local_experts: 4 },
];
/** Values that no field of any kind has by chance. */
const OTHERS: readonly unknown[] = ['mystery', true, false, 3, 0.37, 1000, 24, [], { rope_type: 'mystery' }, { '0': { hidden_size: 8 } }];

const configOf = (name: string): Json => JSON.parse(readFileSync(join(FIXTURES, 'llama-tiny-random', name, 'config.json'), 'utf8')) as Json;
/** What is read of a file, or the message that refuses it. */
function readOrRefused(config: Json): string {
  try {
    return JSON.stringify(decoderFor(config).parseConfig(config));
  } catch (error) {
    if (error instanceof EngineError) return `refused: ${error.message}`;
    throw error;
  }
}

/** Whether another value of a field is read as something else, or refused. */
function isFelt(config: Json, field: string): boolean {
  const asItIs = readOrRefused(config);
  return OTHERS.some((value) => readOrRefused({ ...config, [field]: value }) !== asItIs);
}

test('every tiny model has been looked at', () => {
  expect(Object.keys(models)).toEqual(readdirSync(join(FIXTURES, 'llama-tiny-random')));
});

describe.each(Object.entries(models))('%s', (name, { reads, absent, ropes }) => {
  const config = configOf(name);
  test('feels or refuses every field that transformers reads', () => {
    const felt = (field: string): boolean => BESIDE.some((beside) => isFelt({ ...config, ...beside }, field));
    const looked = reads.filter((field) => !INDIFFERENT.some((pattern) => pattern.test(field)));
    expect(looked.filter((field) => !felt(field))).toEqual([]);
  });

  test('gives fields that a file lacks the values that transformers gives them', () => {
    const wrong = Object.entries(absent).flatMap(([field, changes]) => {
      // Where a text ends is also known from generation_config.json and the tokenizer.
      if (field === 'eos_token_id') return [];
      // A file that does not say it has a head of its own where it has that tensor.
      if (field === 'tie_word_embeddings' && (changes?.[field] ?? config[field]) === false) return [];
      const { [field]: _, ...rest } = config;
      const mine = readOrRefused(rest);
      if (changes === null || mine.startsWith('refused')) return [];
      return mine === readOrRefused({ ...config, ...changes }) ? [] : [field];
    });
    expect(wrong).toEqual([]);
  });

  if (ropes.length === 0) return;
  test('rotates with the frequencies of transformers', () => {
    for (const { fields, rotations } of ropes) {
      if (rotations === null) continue;
      const given = Object.fromEntries(Object.entries({ ...config, ...fields }).filter(([, value]) => value !== null));
      const stack = decoderFor(given).parseConfig(given) as unknown as DecoderStackConfig;
      for (const [kind, rotation] of Object.entries(rotations)) {
        const mine = rotated(ropeOfKind(stack, kind));
        const beside = { frequencies: mine.frequencies.length, unlike: unlike(mine, rotation) };
        expect(beside, `${JSON.stringify(fields)} ${kind}`).toEqual({ frequencies: rotation.frequencies.length });
      }
    }
  });
});

/** The rotation of layers of a kind. */
function ropeOfKind({ rope, kinds }: DecoderStackConfig, kind: string): RopeConfig {
  if (kind === 'all') return rope;
  const found = kinds!.find(({ window }) => (window !== undefined) === (kind === 'sliding_attention'));
  return found!.rope;
}

/** As transformers has it before a text is known: of a short one. */
function rotated(rope: RopeConfig): Rotation {
  const short = ropeAt(rope, 1);
  const { scaling } = short;
  const attention = scaling?.kind === 'yarn' || scaling?.kind === 'factors' ? scaling.attentionFactor : undefined;
  const { rotary = rope.headDim } = rope;
  return { scaling: attention ?? 1, frequencies: [...ropeFrequencies(short)].slice(0, rotary / 2) };
}

/** The first number that is not theirs, which is f32. */
function unlike(mine: Rotation, theirs: Rotation): string | undefined {
  const pairs = [[mine.scaling, theirs.scaling], ...mine.frequencies.map((value, i) => [value, theirs.frequencies[i] ?? NaN])] as [
    number,
    number,
  ][];
  const found = pairs.find(([one, other]) => !(Math.abs(one - other) <= 1e-6 * Math.abs(other)));
  return found && `${found[0]} is ${found[1]}`;
}
