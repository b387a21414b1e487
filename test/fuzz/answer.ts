/** Reads HTTP/1.1 answers from a connection's bytes, strictly: whatever a strict client would not understand is a problem. */

export interface HttpAnswer {
  readonly status: number;
  /** By lower-case name; values of a repeated one are joined by ", ". */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  /** Whether it came to its end. */
  readonly isWhole: boolean;
}

interface Running {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly chunks: Buffer[];
  /** Bytes still to come of the body or of a chunk; Infinity = until the connection ends. */
  left: number;
  readonly isChunked: boolean;
  /** Where in a chunked body the reader is. */
  place: 'size' | 'data' | 'after data' | 'trailers';
}

const EMPTY = Buffer.alloc(0);

export class AnswerReader {
  /** Final answers that came to their end. Interim ones (1xx) are passed over. */
  readonly answers: HttpAnswer[] = [];
  #problem: string | undefined;
  readonly #method: string;
  #rest: Buffer = EMPTY;
  #running: Running | undefined;

  /** `method` is that of the first request: HEAD has no body. */
  constructor(method: string) {
    this.#method = method;
  }

  /** What is not HTTP about the bytes. */
  get problem(): string | undefined {
    return this.#problem;
  }

  push(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    while (this.#problem === undefined && this.#step());
  }

  /** The connection has ended; returns the answer that was cut off, if one was. */
  end(): HttpAnswer | undefined {
    const running = this.#running;
    if (running?.left === Infinity && !running.isChunked) this.#finish(running);
    else if (running) return toAnswer(running, false);
    // A parser that refuses a request does not know that it was HEAD, and sends its error's body.
    else if (this.#rest.length > 0 && this.#method !== 'HEAD')
      this.#problem ??= `bytes that are no answer: ${JSON.stringify(this.#rest.toString('latin1', 0, 200))}`;
    return undefined;
  }

  /** Takes one element off the rest; false when it needs more bytes. */
  #step(): boolean {
    const running = this.#running;
    if (!running) return this.#head();
    if (!running.isChunked || running.place === 'data') return this.#data(running);
    const line = this.#line();
    if (line === undefined) return false;
    if (running.place === 'after data') running.place = line === '' ? 'size' : this.#fail('a chunk longer than its size');
    else if (running.place === 'trailers') {
      if (line === '') this.#finish(running);
    } else if (!/^[0-9a-f]+$/i.test(line)) this.#fail(`a chunk size that is no number: ${line.slice(0, 40)}`);
    else {
      running.left = parseInt(line, 16);
      running.place = running.left === 0 ? 'trailers' : 'data';
    }
    return true;
  }

  #head(): boolean {
    const end = this.#rest.indexOf('\r\n\r\n');
    if (end < 0) return false;
    const [first = '', ...lines] = this.#rest.toString('latin1', 0, end).split('\r\n');
    this.#rest = this.#rest.subarray(end + 4);
    const status = Number(/^HTTP\/1\.[01] (\d{3})( |$)/.exec(first)?.[1] ?? NaN);
    if (Number.isNaN(status)) return this.#fail(`not a status line: ${JSON.stringify(first.slice(0, 100))}`) === 'size';
    const headers = new Map<string, string>();
    for (const line of lines) {
      const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
      if (name === undefined) this.#fail(`not a header: ${JSON.stringify(line.slice(0, 100))}`);
      else headers.set(name.toLowerCase(), [headers.get(name.toLowerCase()), value].filter((part) => part !== undefined).join(', '));
    }
    if (status < 200) return true;
    const isChunked = headers.get('transfer-encoding') === 'chunked';
    const declared = headers.get('content-length');
    const isEmpty = (this.#method === 'HEAD' && this.answers.length === 0) || status === 204 || status === 304;
    const left = isEmpty ? 0 : declared === undefined ? Infinity : Number(declared);
    if (Number.isNaN(left)) this.#fail(`Content-Length: ${declared}`);
    const running: Running = { status, headers, chunks: [], left, isChunked: isChunked && !isEmpty, place: 'size' };
    this.#running = running;
    if (left === 0 && !running.isChunked) this.#finish(running);
    return true;
  }

  #data(running: Running): boolean {
    if (this.#rest.length === 0) return false;
    const taken = this.#rest.subarray(0, Math.min(running.left, this.#rest.length));
    this.#rest = this.#rest.subarray(taken.length);
    running.chunks.push(taken);
    running.left -= taken.length;
    if (running.left > 0) return true;
    if (running.isChunked) running.place = 'after data';
    else this.#finish(running);
    return true;
  }

  #line(): string | undefined {
    const end = this.#rest.indexOf('\r\n');
    if (end < 0) return undefined;
    const line = this.#rest.toString('latin1', 0, end);
    this.#rest = this.#rest.subarray(end + 2);
    return line;
  }

  #finish(running: Running): void {
    this.answers.push(toAnswer(running, true));
    this.#running = undefined;
  }

  #fail(problem: string): 'size' {
    this.#problem = problem;
    return 'size';
  }
}

const toAnswer = ({ status, headers, chunks }: Running, isWhole: boolean): HttpAnswer => ({ status, headers, body: Buffer.concat(chunks), isWhole }); // prettier-ignore
