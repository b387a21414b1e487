/** Stands in for ModelRunner: the "model" is a function of the tokens before, and steps complete when awaited. No GPU. */
import type { StepResult } from '../../engine/runner/model-runner.ts';
import type { Batch } from '../../engine/scheduler/batch.ts';
import type { Sequence } from '../../engine/scheduler/sequence.ts';

export type FakeModel = (tokens: readonly number[]) => number;

/** The next token is a hash of everything before: any lost, repeated or foreign token changes all that follow. */
export const hashModel: FakeModel = (tokens) =>
  tokens.reduce((hash, token) => (Math.imul(hash ^ token, 16777619) >>> 0) % 1000003, 7) % 997;

/** Tokens a model generates after a prompt. */
export function expectedTokens(model: FakeModel, prompt: readonly number[], count: number): number[] {
  const tokens = [...prompt];
  for (let i = 0; i < count; i++) tokens.push(model(tokens));
  return tokens.slice(prompt.length);
}

/**
 * Checks what a real device would rely on: positions in order, every position in a page of its sequence, no page written by two sequences,
 * tokens from the device only where the step before sampled them.
 */
export class FakeRunner {
  readonly batches: Batch[] = [];
  readonly #model: FakeModel;
  readonly #pageSize: number;
  /** What "KV" holds: page slot -> sequence and token. */
  readonly #slots = new Map<number, { readonly sequence: Sequence; readonly position: number; readonly token: number }>();
  /** Last token sampled by block table row. */
  readonly #lastTokens = new Map<number, number>();

  constructor(model: FakeModel = hashModel, pageSize = 4) {
    this.#model = model;
    this.#pageSize = pageSize;
  }

  run(batch: Batch): StepResult {
    this.batches.push(batch);
    const tokens: number[] = [];
    for (const { sequence, start, count, samples, fromDevice } of [...batch.decodes, ...batch.prefills]) {
      for (let position = start; position < start + count; position++) {
        const token = fromDevice ? this.#lastTokens.get(sequence.row) : sequence.tokens[position];
        if (token === undefined) throw new Error(`sequence ${sequence.id} has no token at ${position}`);
        this.#slots.set(this.#slot(sequence, position), { sequence, position, token });
      }
      if (samples) tokens.push(this.#model(this.#history(sequence, start + count)));
    }
    batch.sampled.forEach(({ sequence }, i) => this.#lastTokens.set(sequence.row, tokens[i]!));
    return { tokens: () => Promise.resolve(Uint32Array.from(tokens)) };
  }

  /** What attention would read: every earlier position from its page. */
  #history(sequence: Sequence, length: number): number[] {
    return Array.from({ length }, (_, position) => {
      const slot = this.#slots.get(this.#slot(sequence, position));
      if (slot?.sequence !== sequence || slot.position !== position) {
        throw new Error(`position ${position} of sequence ${sequence.id} is not in its page (sequence ${slot?.sequence.id}, position ${slot?.position})`); // prettier-ignore
      }
      return slot.token;
    });
  }

  #slot(sequence: Sequence, position: number): number {
    const page = sequence.pages[Math.floor(position / this.#pageSize)];
    if (page === undefined) throw new Error(`sequence ${sequence.id} has no page for position ${position}`);
    return page * this.#pageSize + (position % this.#pageSize);
  }
}
