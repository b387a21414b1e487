/** As batch-invariance.test.ts, of tiny random models, which compile more than they compute. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { FEW, MATRIX, describeInvariance, tokenRequests } from '../support/invariance.ts';
import type { Asked } from '../support/invariance.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A tiny random checkpoint with a tokenizer. */
function randomModel(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-'));
  cpSync(join(ROOT, 'test/fixtures/llama-tiny-random', name), folder, { recursive: true });
  writeNumberTokenizer(folder, 160);
  afterAll(() => rmSync(folder, { recursive: true }));
  return folder;
}

const random = randomModel('llama');
const experts = randomModel('qwen3_moe');
const deltaNets = randomModel('qwen3_5-last');
const convolutions = randomModel('lfm2');

const MODELS: readonly Asked[] = [
  { name: 'tiny random checkpoint', folder: random, requests: tokenRequests(160), configs: MATRIX, kvCacheDtype: 'auto' },
  { name: 'tiny random checkpoint, int8 pages', folder: random, requests: tokenRequests(160), configs: FEW, kvCacheDtype: 'int8' },
  // Steps of few rows, where nothing is sorted by expert, beside those of many.
  { name: 'mixture of experts', folder: experts, requests: tokenRequests(160), configs: FEW, kvCacheDtype: 'auto' },
  // States, which go back to the last certain token where a guess was wrong.
  { name: 'gated delta-nets', folder: deltaNets, requests: tokenRequests(160), configs: FEW, kvCacheDtype: 'auto' },
  { name: 'short convolutions', folder: convolutions, requests: tokenRequests(160), configs: FEW, kvCacheDtype: 'auto' },
  { name: 'tiny random checkpoint, fast', folder: random, requests: tokenRequests(160), configs: MATRIX, numerics: 'fast' },
  { name: 'mixture of experts, fast', folder: experts, requests: tokenRequests(160), configs: FEW, numerics: 'fast' },
  { name: 'gated delta-nets, fast', folder: deltaNets, requests: tokenRequests(160), configs: FEW, numerics: 'fast' },
];
MODELS.forEach(describeInvariance);
