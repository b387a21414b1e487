/** What a fuzz case is: bytes for one of the listeners, how they are sent, and what must come back. */
export type ListenerName = 'chat' | 'speech' | 'transcription';

/** How the bytes get onto the wire. */
export interface Delivery {
  /** Offsets at which the sender pauses. */
  readonly pauses?: readonly number[];
  readonly pauseMs?: number;
  /** Only this many bytes are sent; then the connection is ended or reset. */
  readonly cut?: { readonly at: number; readonly how: 'end' | 'reset' };
  /** Everything is sent, and the connection reset this long after the last byte or, with 'answer', when the first bytes of the answer come. */
  readonly leave?: number | 'answer';
  /** Nothing is read for this long. */
  readonly deafMs?: number;
  /** Connections that are opened before, send one of these each, and stay until the case is over. */
  readonly companions?: readonly Buffer[];
}

/** What must hold besides the error contract. */
export interface Expectation {
  /**
   * `one`: the request is whole, so an answer is due. `optional`: it is not, so there may be none, but the connection must end once its sender
   * has ended it. `none`: the sender goes away.
   */
  readonly answers: 'one' | 'optional' | 'none';
  /** Final answers there may be; more means that bytes of a body were taken for a request. Default 1. */
  readonly atMost?: number;
  /** Statuses the first answer may have; default: any that the contract allows. */
  readonly status?: readonly number[];
  /** Headers that the first answer may not have. */
  readonly withoutHeader?: string;
}

export interface FuzzCase {
  /** What it tries, e.g. "schema/reference ring of 40". What is before the slash is its family. */
  readonly name: string;
  readonly listener: ListenerName;
  /** Method of the first request: an answer to HEAD has no body. */
  readonly method: string;
  readonly bytes: Buffer;
  readonly delivery: Delivery;
  readonly expect: Expectation;
}

export const familyOf = ({ name }: Pick<FuzzCase, 'name'>): string => name.split('/')[0]!;
