/** What ranks exchange: parts of sums and samples within a stage, hidden states and tokens between stages. */
import { COMPLETED, arrivals, handOvers } from './group-memory.ts';
import type { GroupMemory, Part, StepPlace, Topology } from './group-memory.ts';
import type { Signals } from './signals.ts';

/** A rank's place in a split model. */
export interface RankPlace extends Topology {
  /** Among the ranks of its stage. */
  readonly rank: number;
  readonly stage: number;
}

export class Link {
  readonly #place: RankPlace;
  readonly #memory: GroupMemory;
  readonly #signals: Signals;
  /** Exchanges so far; its lowest bit is the set of parts in use. */
  #exchanges = 0;

  constructor(place: RankPlace, memory: GroupMemory, signals: Signals) {
    this.#place = place;
    this.#memory = memory;
    this.#signals = signals;
  }

  /** Where this rank's part of the next exchange goes. */
  get mine(): Part {
    return this.#set[this.#place.rank]!;
  }

  /**
   * Waits until every rank of the stage has written its part; returns all of them, in the order of ranks. They hold until this rank has
   * done another exchange: whoever arrives at that one has read these, and only then may they be overwritten.
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

  /** Adds the first `length` values of every rank's part, in the order of ranks, into `out`. */
  async allReduce(length: number, out: Float32Array): Promise<void> {
    const parts = await this.exchange();
    out.set(parts[0]!.floats.subarray(0, length));
    for (let rank = 1; rank < parts.length; rank++) {
      const { floats } = parts[rank]!;
      for (let i = 0; i < length; i++) out[i]! += floats[i]!;
    }
  }

  /** Where this stage's hidden state of a step goes. */
  handOver(place: StepPlace): Part {
    return place.handOvers[this.#place.stage]!;
  }

  /** Tells the next stage that the hidden state is there. */
  handedOver(): void {
    this.#signals.raise(handOvers(this.#place, this.#place.stage));
  }

  /** The hidden state of step number `step` (from 1) from the stage before. */
  async received(place: StepPlace, step: number): Promise<Part> {
    const before = this.#place.stage - 1;
    const wait = this.#signals.reached(handOvers(this.#place, before), step);
    if (wait) await wait;
    return place.handOvers[before]!;
  }

  /** Waits until step number `step` is complete: its tokens are known. */
  async completed(step: number): Promise<void> {
    const wait = this.#signals.reached(COMPLETED, step);
    if (wait) await wait;
  }

  /** Says that the next step is complete. */
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
