/** Reads a multipart form with one file into memory, within limits; exceeding one is an error, and nothing is truncated. */
import { Dicer } from '@fastify/busboy';
import type { Request } from 'express';
import { HttpError, notAnUpload, requestTooLarge, unsupportedMediaType } from '../http/errors.ts';
import { Blocks } from './blocks.ts';
import { askForBody, checkEncoding } from './json-body.ts';
import type { Upload, UploadBudget } from './upload-budget.ts';

const LIMITS = { fields: 30, parts: 40, fieldNameLength: 100, fieldBytes: 64 << 10, headerPairs: 50, headerBytes: 8 << 10 };
/** RFC 2046 allows 70 characters; the parser takes 250. */
const MAX_BOUNDARY = 200;
/** Most bytes of a form besides its file: fields, headers, boundaries. */
const MAX_REST_BYTES = 4 << 20;

/** The content of a form. */
export interface Form {
  /** Values by field name, `[]` removed; a field that was not sent is absent. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
  /** Bytes of the part `file`. */
  readonly file: Blocks | undefined;
}

/** A form, and the upload that counts its memory, which the receiver must close. */
export interface HeldForm {
  readonly form: Form;
  readonly upload: Upload;
}

/** Parses the request's form while it is received, counted against the budget. Throws HttpError 400, 408, 413, 415 or 503; also when `signal` is aborted. */
export async function readForm(request: Request, maxFileBytes: number, budget: UploadBudget, signal?: AbortSignal): Promise<HeldForm> {
  const boundary = boundaryOf(request.get('content-type') ?? '');
  checkEncoding(request);
  const maxBytes = maxFileBytes + MAX_REST_BYTES;
  // A chunked upload does not declare its size.
  const size = Number(request.get('content-length') ?? maxBytes);
  if (size > maxBytes) throw tooLarge(maxFileBytes);
  const parser = new FormParser(boundary, maxFileBytes);
  const reader = {
    pause: () => void request.pause(),
    resume: () => void request.resume(),
    stop: (error: HttpError) => parser.onError(error),
  };
  const upload = budget.open(request.socket.remoteAddress ?? '', size, reader);
  // ListenerContext.job answers with the abort's own reason, which says more.
  signal?.addEventListener('abort', () => parser.onError(malformed('the form ended early')));
  askForBody(request);
  try {
    const form = await collect(request, parser, upload, maxBytes);
    upload.complete();
    return { form, upload };
  } catch (error) {
    upload.close();
    throw error;
  }
}

const malformed = (message: string, cause?: unknown): HttpError => new HttpError(400, 'invalid_value', message, { cause });
const tooLarge = (maxFileBytes: number): HttpError => requestTooLarge(`the file is larger than ${maxFileBytes} bytes`, 'file');

function boundaryOf(type: string): string {
  const parameters = /^\s*multipart\/form-data\s*(;.*)$/i.exec(type)?.[1] ?? '';
  const boundary = parameterOf(parameters, 'boundary') ?? '';
  if (boundary === '') throw unsupportedMediaType(`Content-Type must be multipart/form-data with a boundary, got '${type.slice(0, 100)}'`);
  if (boundary.length > MAX_BOUNDARY)
    throw malformed(`the form's boundary has ${boundary.length} characters; at most ${MAX_BOUNDARY} are read`);
  return boundary;
}

/** Value of a header's parameter: `; name=value` or `; name="value"`. Browsers escape quotes as %22, curl as \". */
function parameterOf(parameters: string, name: string): string | undefined {
  for (const [, key = '', quoted, bare] of parameters.matchAll(/;\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))/g)) {
    if (key.toLowerCase() === name) return quoted?.replace(/\\(["\\])/g, '$1') ?? bare;
  }
  return undefined;
}

/** Feeds the parser until the form or the body ends. The end of the body settles the promise even if the parser reports nothing. */
function collect(request: Request, parser: FormParser, upload: Upload, maxBytes: number): Promise<Form> {
  return new Promise<Form>((resolve, reject) => {
    parser.onForm = resolve;
    parser.onError = reject;
    request.on('data', (chunk: Buffer) => {
      const mayGoOn = upload.take(chunk.length);
      if (upload.received > maxBytes) reject(requestTooLarge(`the form is larger than ${maxBytes} bytes`));
      else {
        if (!mayGoOn) request.pause();
        parser.write(chunk);
      }
    });
    if (upload.waiting) request.pause();
    request.on('end', () => parser.end());
    request.on('error', reject);
    request.on('close', () => {
      if (!request.complete) reject(malformed('the form ended early'));
    });
  }).finally(() => {
    // Later bytes are not for the parser.
    request.removeAllListeners('data');
    parser.discard();
    if (request.listenerCount('data') === 0 && !request.complete) request.pause();
  });
}

/**
 * Collects the parts of a form as fields and a file. Dicer finds the parts; its own back-pressure would wait for readers that it may have lost, so its buffers
 * never fill: everything is taken at once, and the budget slows the sender down.
 */
class FormParser {
  onForm: (form: Form) => void = () => {};
  onError: (error: Error) => void = () => {};
  readonly #dicer: Dicer;
  readonly #maxFileBytes: number;
  readonly #fields = new Map<string, string[]>();
  #file: Blocks | undefined;
  #hasFile = false;
  #parts = 0;
  #fieldCount = 0;
  /** Number of parts that have begun but not properly ended. */
  #open = 0;

  constructor(boundary: string, maxFileBytes: number) {
    this.#maxFileBytes = maxFileBytes;
    const config = { boundary, partHwm: Number.MAX_SAFE_INTEGER, maxHeaderPairs: LIMITS.headerPairs, maxHeaderSize: LIMITS.headerBytes };
    this.#dicer = new Dicer(config);
    this.#dicer.on('part', (part) => this.#begin(part));
    this.#dicer.on('error', (cause) => this.onError(malformed('the form is malformed or ends early', cause)));
    this.#dicer.on('finish', () => this.#finish());
  }

  write(chunk: Buffer): void {
    if (this.#dicer.writable) this.#dicer.write(chunk);
  }

  /** Ends the form; onForm or onError is then called. */
  end(): void {
    if (this.#dicer.writable) this.#dicer.end();
    // The parser reports the rest before the next turn of the event loop; if it reports nothing, this does.
    setImmediate(() => setImmediate(() => this.onError(malformed('the form is malformed or ends early'))));
  }

  discard(): void {
    this.onForm = this.onError = () => {};
    this.#dicer.destroy();
  }

  #finish(): void {
    // Dicer does not count a part whose last bytes came in an earlier chunk than its boundary, so such a part may end after this.
    setImmediate(() => {
      if (this.#open > 0) this.onError(malformed('a part of the form has no end or no headers'));
      else this.onForm({ fields: this.#fields, file: this.#file });
    });
  }

  #begin(part: Dicer.PartStream): void {
    this.#open++;
    part.on('error', (cause) => this.onError(malformed('the form ends inside a part', cause)));
    if (++this.#parts > LIMITS.parts) return this.onError(malformed(`the form has more than ${LIMITS.parts} parts`));
    part.on('header', (header) => {
      const { 'content-disposition': disposition, 'content-type': type } = header as Record<string, string[] | undefined>;
      const parameters = /^form-data\s*(;[\s\S]*)$/i.exec(disposition?.[0] ?? '')?.[1] ?? '';
      const name = parameterOf(parameters, 'name');
      if (name === undefined) return this.onError(malformed("a part of the form has no 'Content-Disposition: form-data' with a name"));
      if (name.length > LIMITS.fieldNameLength)
        return this.onError(malformed(`the name of a form field is longer than ${LIMITS.fieldNameLength} characters`));
      // Some clients send a name beyond ASCII as RFC 5987 has it, in the second form alone.
      const hasName = ['filename', 'filename*'].some((key) => parameterOf(parameters, key) !== undefined);
      const isFile = hasName || type?.[0]?.toLowerCase() === 'application/octet-stream';
      if (isFile) this.#takeFile(part, name);
      else this.#takeField(part, Buffer.from(name, 'latin1').toString('utf8'));
    });
  }

  #takeField(part: Dicer.PartStream, name: string): void {
    if (++this.#fieldCount > LIMITS.fields) return this.onError(malformed(`the form has more than ${LIMITS.fields} fields`));
    const value = new Blocks();
    part.on('data', (chunk: Buffer) => {
      value.push(chunk);
      if (value.length <= LIMITS.fieldBytes) return;
      // A field that long is audio that was sent without a filename.
      this.onError(name === 'file' ? notAnUpload() : malformed(`the form field '${name}' is longer than ${LIMITS.fieldBytes} bytes`));
    });
    part.on('end', () => {
      this.#open--;
      const key = name.replace(/\[\]$/, '');
      this.#fields.set(key, [...(this.#fields.get(key) ?? []), Buffer.from(value.subarray(0)).toString('utf8')]);
    });
  }

  #takeFile(part: Dicer.PartStream, name: string): void {
    if (this.#hasFile) return this.onError(malformed('the form has more than 1 file'));
    this.#hasFile = true;
    const bytes = new Blocks();
    part.on('data', (chunk: Buffer) => {
      if (bytes.length + chunk.length > this.#maxFileBytes) return this.onError(tooLarge(this.#maxFileBytes));
      if (name === 'file') bytes.push(chunk);
    });
    part.on('end', () => {
      this.#open--;
      if (name === 'file') this.#file = bytes;
    });
  }
}
