/**
 * Parses what follows Mistral's [TOOL_CALLS]: a JSON list of calls, as models up to Mistral Small 3.1 write it, or a single call of newer models, whose arguments
 * are streamed:
 *
 *     NAME[ARGS]{...}        NAME[CALL_ID]ID[ARGS]{...}        NAME{...}
 */
import { LONGEST_HEAD, piecesOf, readJsonCalls } from './json-call.ts';
import type { CallPart, TaggedCall, Tools } from './json-call.ts';
import { JsonScan } from './json-scan.ts';

const HEAD = /^\s*([\w-]+)(?:\[CALL_ID\][^[\]\s]*)?(?:\[ARGS\])?\s*(?=\{)/;

/** A list of calls or a single call after [TOOL_CALLS]. */
export class MistralCall implements TaggedCall {
  readonly #tools: Tools;
  readonly #scan = new JsonScan();
  text = '';
  started = false;
  rest: string | undefined;
  #head = '';
  #kind: 'list' | 'call' | undefined;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  push(piece: string): CallPart[] {
    this.text += piece;
    if (this.#kind) return this.#value(piece);
    this.#head += piece;
    const head = HEAD.exec(this.#head);
    const begun = this.#head.trimStart();
    if (head) {
      this.#kind = 'call';
      this.started = this.#tools.has(head[1]!);
      const name: CallPart[] = this.started ? [{ type: 'name', text: head[1]! }] : [];
      return [...name, ...this.#value(this.#head.slice(head[0].length))];
    }
    if (begun.startsWith('[')) {
      this.#kind = 'list';
      return this.#value(begun);
    }
    if (this.#head.length > LONGEST_HEAD) this.rest = '';
    return [];
  }

  /** Parses a list, which is done only when it is complete. */
  end(): CallPart[] {
    if (this.#kind !== 'list' || this.started) return [];
    const calls = readJsonCalls(this.text, this.#tools);
    this.started = calls.length > 0;
    return calls.flatMap(({ name, arguments: text }): CallPart[] => [{ type: 'name', text: name }, { type: 'arguments', text }]); // prettier-ignore
  }

  cut(): CallPart[] {
    return piecesOf(this.#scan.cut());
  }

  #value(piece: string): CallPart[] {
    const { text, taken, ended } = this.#scan.push(piece);
    if (ended) {
      this.rest = piece.slice(taken);
      this.text = this.text.slice(0, this.text.length - this.rest.length);
    }
    if (this.#kind === 'list') return ended ? this.end() : [];
    return this.started ? piecesOf(text) : [];
  }
}
