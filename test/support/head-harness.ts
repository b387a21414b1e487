/** Runs the head that guesses for one sequence, without scheduler and sampler: what a runner uploads, and the logits of every guess. */
import { BlockTable } from '../../engine/cache/block-table.ts';
import { floatStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createDecoderKV } from '../../engine/models/decoder.ts';
import type { DecoderDefinition, DecoderWorkspace } from '../../engine/models/decoder.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { WeightLoader } from '../../engine/models/weight-loader.ts';
import type { KVCache } from '../../engine/ops/kv.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { HeadSteps, keptStates } from '../../engine/runner/head-steps.ts';
import { Sampler } from '../../engine/runner/sampler.ts';
import { StepEncoder } from '../../engine/runner/step-encoder.ts';
import { StepInput } from '../../engine/runner/step-input.ts';
import { StepTensors } from '../../engine/runner/step-tensors.ts';
import { GREEDY_SAMPLING } from '../../engine/sampling.ts';
import { FROM_HEAD } from '../../engine/scheduler/batch.ts';
import type { BatchItem } from '../../engine/scheduler/batch.ts';
import { Sequence } from '../../engine/scheduler/sequence.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';

const PAGE = 16;
const PAGES = 8;
const LIMITS = { maxRunning: 3, prefillChunk: 64, draftRows: 9, headDrafts: 3, hasWindows: false, context: PAGE * PAGES };
const ROWS = LIMITS.maxRunning + LIMITS.prefillChunk;

/** One sequence in front of a model and its head. */
export class HeadHarness {
  readonly #device: Device;
  readonly #vocabulary: number;
  readonly #workspace: DecoderWorkspace;
  readonly #kv: KVCache;
  readonly #encoder: StepEncoder;
  readonly #input: StepInput;
  readonly #tensors: StepTensors;
  readonly #head: HeadSteps;
  readonly #sampler: Sampler;
  readonly #sequence: Sequence;

  private constructor(device: Device, shape: ReturnType<DecoderDefinition['parseConfig']>, workspace: DecoderWorkspace, kv: KVCache) {
    const { vocabulary } = shape;
    const limits = { ...LIMITS, columns: PAGES, vocabulary };
    const table = new BlockTable(limits.maxRunning, PAGES);
    this.#device = device;
    this.#vocabulary = vocabulary;
    this.#workspace = workspace;
    this.#kv = kv;
    this.#encoder = new StepEncoder(table, PAGE, limits);
    this.#input = new StepInput(limits);
    this.#tensors = new StepTensors(device, { shape }, limits);
    this.#head = new HeadSteps(device, LIMITS, PAGE);
    this.#sampler = new Sampler(device, vocabulary, LIMITS.maxRunning, LIMITS.maxRunning + LIMITS.draftRows, LIMITS.headDrafts);
    this.#sequence = new Sequence({ id: 0, promptTokens: [0], maxTokens: 1, sampling: GREEDY_SAMPLING, choice: 0 });
    this.#sequence.tokens.pop();
    // Not the first row, and pages that are no neighbours.
    table.takeRow();
    this.#sequence.row = table.takeRow()!;
    this.#sequence.pages = Array.from({ length: PAGES }, (_, i) => (i * 3 + 1) % PAGES);
    table.set(this.#sequence.row, 0, this.#sequence.pages);
  }

  static async load(device: Device, folder: string, kvType: 'f32' | 'int8' = 'f32'): Promise<HeadHarness> {
    const model = await openModelFolder(createNodePlatform(), folder);
    const json = await model.json('config.json');
    const definition = decoderFor(json).withHead!;
    const decoder = await withWeights(model, (checkpoint) =>
      definition.load(new WeightLoader(device, checkpoint, floatStorage('f32')), json, LIMITS.context),
    );
    const shape = { layers: decoder.shape.pages, pageSize: PAGE, dtype: kvType };
    const kv = await createDecoderKV(device, decoder, shape, { limit: PAGES }, { limit: 1 });
    const workspace = decoder.createWorkspace(device, ROWS, LIMITS.maxRunning + LIMITS.draftRows, keptStates(LIMITS));
    return new HeadHarness(device, decoder.shape, workspace, kv);
  }

  /** Computes tokens of the sequence. */
  async step(tokens: readonly number[]): Promise<void> {
    const item = this.#item(tokens.length, []);
    this.#sequence.tokens.push(...tokens);
    const [decodes, prefills] = tokens.length === 1 ? [[item], []] : [[], [item]];
    const batch = { decodes, prefills, sampled: [{ sequence: this.#sequence, position: item.start + item.count }] };
    this.#encoder.encode(batch, this.#input);
    const shape = this.#tensors.upload(this.#input);
    this.#head.uploadFollow(batch, shape.rows);
    const rec = this.#device.record('step');
    const input = this.#tensors.forwardInput(shape, this.#tensors.tokens(shape));
    this.#workspace.forward(rec, { ...input, follow: this.#head.follow() }, this.#kv);
    await rec.submit().finished();
    this.#sequence.computed += tokens.length;
  }

  /** Logits of as many guesses one after the other behind `token`, which comes next. */
  async guess(token: number, rounds: number): Promise<Float32Array[]> {
    this.#sequence.tokens.push(token);
    const item = this.#item(1 + rounds, new Array<number>(rounds).fill(FROM_HEAD));
    this.#head.uploadDrafts({ decodes: [], prefills: [item], sampled: [] });
    this.#sequence.tokens.pop();
    const { rows, ids, tokens } = this.#head;
    const rec = this.#device.record('guesses');
    this.#sampler.resolve(rec, tokens, ids, rows);
    const copies = Array.from({ length: rounds }, (_, round) => {
      const batch = this.#tensors.forwardInput(this.#tensors.decodeShape(rows, 1), ids);
      const logits = this.#workspace.draft!(rec, this.#head.draftInput(round, batch), this.#kv);
      const copy = this.#device.tensor('logits of a guess', 'f32', [this.#vocabulary]);
      rec.copy(logits, copy, copy.byteLength);
      this.#sampler.draft(rec, { logits, settings: this.#head.settings(round), ids, rows });
      return copy;
    });
    rec.submit();
    return Promise.all(copies.map(async (copy) => (await this.#device.read(copy)) as Float32Array));
  }

  #item(count: number, drafts: readonly number[]): BatchItem {
    const start = this.#sequence.computed;
    const state = { read: start === 0 ? undefined : 0, write: 0 };
    return { sequence: this.#sequence, start, count, samples: 1 + drafts.length, fromDevice: false, drafts, state };
  }
}
