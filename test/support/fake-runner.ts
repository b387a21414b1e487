/** Stands in for ModelRunner: the "model" is a function of the tokens before, and steps complete when awaited. No GPU. */
import type { StepResult } from '../../engine/runner/model-runner.ts';
import { FROM_HEAD, isOfPrompt } from '../../engine/scheduler/batch.ts';
import type { Batch, BatchItem } from '../../engine/scheduler/batch.ts';
import type { Sequence } from '../../engine/scheduler/sequence.ts';

export type FakeModel = (tokens: readonly number[]) => number;

/** The next token is a hash of everything before: any lost, repeated or foreign token changes all that follow. */
export const hashModel: FakeModel = (tokens) =>
  tokens.reduce((hash, token) => (Math.imul(hash ^ token, 16777619) >>> 0) % 1000003, 7) % 997;

/** Hangs on the last two tokens and, now and then, on the position: answers repeat themselves, but not for ever. */
export const repeatingModel: FakeModel = (tokens) => hashModel([...tokens.slice(-2), Math.floor(tokens.length / 13) % 3]) % 6;

/** Tokens a model generates after a prompt. */
export function expectedTokens(model: FakeModel, prompt: readonly number[], count: number): number[] {
  const tokens = [...prompt];
  for (let i = 0; i < count; i++) tokens.push(model(tokens));
  return tokens.slice(prompt.length);
}

/**
 * Checks what a real device would rely on: every position in a page of its sequence that was computed after the same tokens,
 * tokens from the device only where the step before sampled them, states that were left behind the same tokens and that nobody else writes,
 * and of layers that see a window only every position of it, with everything that the step writes written before. Where prompts are computed apart, every position
 * by the kernels that it would have alone.
 */
export class FakeRunner {
  readonly batches: Batch[] = [];
  /** Positions computed so far: what a prefix cache saves is missing here. */
  computed = 0;
  readonly #model: FakeModel;
  readonly #pageSize: number;
  /** What "KV" holds: page slot -> position, token, and the tokens before it, which keys and values depend on; and by which kernels it was made. */
  readonly #slots = new Map<
    number,
    { readonly position: number; readonly token: number; readonly before: number; readonly ofPrompt: boolean }
  >();
  /** The same of the layers that see `window` positions only. */
  readonly #windowSlots = new Map<number, { readonly position: number; readonly chain: number }>();
  readonly #window: number | undefined;
  readonly #promptsApart: boolean;
  /** What slots for states hold: how many tokens went into one, and which. */
  readonly #states = new Map<number, { readonly length: number; readonly hash: number }>();
  /** What the head that guesses has kept, by block table row: the positions that the last step of a sequence has sampled at, or its last one. */
  readonly #kept = new Map<number, { readonly sequence: Sequence; readonly first: number; readonly end: number }>();
  /** Last token sampled by block table row. */
  readonly #lastTokens = new Map<number, number>();

  constructor(model: FakeModel = hashModel, pageSize = 4, window?: number, promptsApart = false) {
    this.#model = model;
    this.#pageSize = pageSize;
    this.#window = window;
    this.#promptsApart = promptsApart;
  }

  run(batch: Batch): StepResult {
    this.batches.push(batch);
    const tokens: number[] = [];
    const headDrafts: number[] = [];
    const items = [...batch.decodes, ...batch.prefills];
    // As StepEncoder tells a device which rows are of prompts.
    const first = items.length - batch.prefills.filter(isOfPrompt).length;
    for (const [i, { sequence, start, count, samples, fromDevice, drafts }] of items.entries()) {
      for (let position = start; position < start + count; position++) {
        const known = fromDevice && position === start ? this.#lastTokens.get(sequence.row) : sequence.tokens[position];
        const draft = drafts[position - start - count + drafts.length];
        const token = known ?? (draft === FROM_HEAD ? this.#guess(sequence, position, start + count - drafts.length) : draft);
        if (draft === FROM_HEAD && known === undefined) headDrafts.push(token!);
        if (token === undefined) throw new Error(`sequence ${sequence.id} has no token at ${position}`);
        const previous = position === 0 ? undefined : this.#slots.get(this.#slot(sequence, position - 1));
        this.#slots.set(this.#slot(sequence, position), { position, token, before: previous ? chain(previous) : 0, ofPrompt: i >= first });
        this.computed++;
      }
      this.#kept.set(sequence.row, { sequence, first: start + count - Math.max(1, samples), end: start + count });
      for (let i = count - samples; i < count; i++) tokens.push(this.#model(this.#history(sequence, start + i + 1)));
    }
    this.#walkStates(items);
    if (this.#window !== undefined) this.#seeWindows(items, this.#window);
    batch.sampled.forEach(({ sequence }, i) => this.#lastTokens.set(sequence.row, tokens[i]!));
    return { tokens: () => Promise.resolve(Uint32Array.from(tokens)), headDrafts: () => Promise.resolve(Uint32Array.from(headDrafts)) };
  }

  /** What a head would guess for a position behind `known` tokens: mostly what the model says. */
  #guess(sequence: Sequence, position: number, known: number): number {
    const kept = this.#kept.get(sequence.row);
    // The hidden state before the last token that is known.
    if (kept?.sequence !== sequence || known - 2 < kept.first || known - 2 >= kept.end)
      throw new Error(`sequence ${sequence.id} is guessed from position ${known - 2}, kept are ${kept?.first} to ${kept?.end}`);
    const right = this.#model(this.#history(sequence, position));
    return position % 5 === 0 ? right + 1 : right;
  }

  /** What recurrent layers would do: each item goes on from the state behind the position before it, and leaves its own. */
  #walkStates(items: readonly BatchItem[]): void {
    const before = new Map(this.#states);
    const written: number[] = [];
    const read: number[] = [];
    for (const { sequence, start, count, state } of items) {
      if (!state) continue;
      const last = start === 0 ? undefined : this.#slots.get(this.#slot(sequence, start - 1));
      const expected = { length: start, hash: last ? chain(last) : 0 };
      const found = state.read === undefined ? { length: 0, hash: 0 } : before.get(state.read);
      if (found?.length !== expected.length || found.hash !== expected.hash) {
        throw new Error(
          `sequence ${sequence.id} begins at ${start} from the state ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`,
        );
      }
      const behind = (length: number) => ({ length, hash: chain(this.#slots.get(this.#slot(sequence, length - 1))!) });
      const copies = [state.keep, state.certain].filter((copy) => copy !== undefined);
      for (const copy of copies) this.#states.set(copy.slot, behind(start + copy.after));
      this.#states.set(state.write, behind(start + count));
      const own = [state.write, ...copies.map(({ slot }) => slot)];
      written.push(...own);
      // A sequence's own slot may be read and written.
      if (state.read !== undefined && !own.includes(state.read)) read.push(state.read);
    }
    if (new Set(written).size < written.length) throw new Error(`a state is written twice in a step: ${written.join(', ')}`);
    if (read.some((slot) => written.includes(slot)))
      throw new Error(`a state is read and written in a step: ${read.join(', ')}; ${written.join(', ')}`);
  }

  /** What layers that see a window only would write and then read. */
  #seeWindows(items: readonly BatchItem[], window: number): void {
    const slot = ({ id, windows, firstWindow }: Sequence, position: number): number => {
      const page = windows[Math.floor(position / this.#pageSize) - firstWindow];
      if (page === undefined) throw new Error(`sequence ${id} has no page of a window for position ${position}`);
      return page * this.#pageSize + (position % this.#pageSize);
    };
    // What a position holds depends on the tokens before it, which the pages of the other layers tell.
    const expected = (sequence: Sequence, position: number): number => chain(this.#slots.get(this.#slot(sequence, position))!);
    const written = new Set<number>();
    for (const { sequence, start, count } of items) {
      for (let position = start; position < start + count; position++) {
        const at = slot(sequence, position);
        if (written.has(at)) throw new Error(`a place of a window is written twice in a step, by sequence ${sequence.id}`);
        written.add(at);
        this.#windowSlots.set(at, { position, chain: expected(sequence, position) });
      }
    }
    for (const { sequence, start, count } of items) {
      for (let position = Math.max(0, start - window + 1); position < start + count; position++) {
        const found = this.#windowSlots.get(slot(sequence, position));
        if (found?.position !== position || found.chain !== expected(sequence, position)) {
          throw new Error(`position ${position} of sequence ${sequence.id} is not in its window's page: ${JSON.stringify(found)}`);
        }
      }
    }
  }

  /** What attention would read: every earlier position from its page, each computed after the same tokens. */
  #history(sequence: Sequence, length: number): number[] {
    let before = 0;
    return Array.from({ length }, (_, position) => {
      const slot = this.#slots.get(this.#slot(sequence, position));
      const own = sequence.tokens[position];
      if (slot?.position !== position || slot.before !== before || (own !== undefined && own !== slot.token)) {
        throw new Error(`position ${position} of sequence ${sequence.id} is not in its page: ${JSON.stringify(slot)}`);
      }
      if (this.#promptsApart && slot.ofPrompt !== position < sequence.numPrompt)
        throw new Error(
          `position ${position} of sequence ${sequence.id}, with a prompt of ${sequence.numPrompt}, was computed by other kernels`,
        );
      before = chain(slot);
      return slot.token;
    });
  }

  #slot(sequence: Sequence, position: number): number {
    const page = sequence.pages[Math.floor(position / this.#pageSize)];
    if (page === undefined) throw new Error(`sequence ${sequence.id} has no page for position ${position}`);
    return page * this.#pageSize + (position % this.#pageSize);
  }
}

const chain = ({ before, token }: { readonly before: number; readonly token: number }): number => Math.imul(before ^ (token + 1), 16777619) >>> 0; // prettier-ignore
