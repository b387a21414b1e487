/** Communication between ranks: all-reduce and sampling exchanges within a stage, hidden states and tokens between stages. */
import { COMPLETED, arrivals, handOvers } from './group-memory.ts';
import type { GroupMemory, Part, StepPlace, Topology } from './group-memory.ts';
import type { Signals } from './signals.ts';

/** A rank's place in a split model. */
export interface RankPlace extends Topology {
  /** Tensor-parallel index among the ranks of its stage. */
  readonly rank: number;
  readonly stage: number;
}

/** A rank's view of the group's shared memory and signals. */
export class Link {
  readonly #place: RankPlace;
  readonly #memory: GroupMemory;
  readonly #signals: Signals;
  /** Number of exchanges so far; its lowest bit selects the set of parts in use. */
  #exchanges = 0;

  constructor(place: RankPlace, memory: GroupMemory, signals: Signals) {
    this.#place = place;
    this.#memory = memory;
    this.#signals = signals;
  }

  /** Memory for this rank's part of the next exchange. */
  get mine(): Part {
    return this.#set[this.#place.rank]!;
  }

  /**
   * All-gather: waits until every rank of the stage has written its part, and returns all parts in rank order. They stay valid until this rank's next exchange,
   * because a rank that arrives there has read these, and only then may they be overwritten.
   */
  async exchange(): Promise<readonly Part[]> {
    const { stage, tpSize } = this.#place;
    const parts = this.#set;
    this.#exchanges = (this.#exchanges + 1) | 0;
    this.#signals.raise(arrivals(stage));
    const wait = this.#signals.reached(arrivals(stage), Math.imul(this.#exchanges, tpSize));
    if (wait) await wait;
    return parts;
  }

  /** Sums the first `length` values of all ranks' parts into `out`, in rank order, so that every rank gets the same bits. */
  async allReduce(length: number, out: Float32Array): Promise<void> {
    const parts = await this.exchange();
    out.set(parts[0]!.floats.subarray(0, length));
    for (let rank = 1; rank < parts.length; rank++) {
      const { floats } = parts[rank]!;
      for (let i = 0; i < length; i++) out[i]! += floats[i]!;
    }
  }

  /** Memory for the hidden state that this stage hands to the next one in a step. */
  handOver(place: StepPlace): Part {
    return place.handOvers[this.#place.stage]!;
  }

  /** Signals the next stage that the hidden state has been written. */
  handedOver(): void {
    this.#signals.raise(handOvers(this.#place, this.#place.stage));
  }

  /** Waits for the previous stage's hidden state of step number `step` (counted from 1). */
  async received(place: StepPlace, step: number): Promise<Part> {
    const before = this.#place.stage - 1;
    const wait = this.#signals.reached(handOvers(this.#place, before), step);
    if (wait) await wait;
    return place.handOvers[before]!;
  }

  /** Waits until step number `step` is complete, so that its tokens are known. */
  async completed(step: number): Promise<void> {
    const wait = this.#signals.reached(COMPLETED, step);
    if (wait) await wait;
  }

  /** Signals that another step is complete. */
  complete(): void {
    this.#signals.raise(COMPLETED);
  }

  get lastTokens(): Uint32Array {
    return this.#memory.lastTokens;
  }

  get #set(): readonly Part[] {
    return this.#memory.parts[this.#place.stage]![this.#exchanges & 1]!;
  }
}
