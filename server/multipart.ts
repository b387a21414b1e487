/** Reads a multipart form with one file into memory, within limits; what goes past a limit is an error, never cut off. */
import { Busboy } from '@fastify/busboy';
import type { BusboyInstance } from '@fastify/busboy';
import type { Request } from 'express';
import { HttpError, requestTooLarge, unsupportedMediaType } from './http-error.ts';
import { checkEncoding } from './json-body.ts';

const LIMITS = { files: 1, fields: 30, parts: 40, fieldNameSize: 100, fieldSize: 64 << 10, headerPairs: 50, headerSize: 8 << 10 };

export interface Form {
  /** Values by field name, `[]` removed; a field that was not sent is absent. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
  /** Bytes of the part `file`. */
  readonly file: Uint8Array | undefined;
}

/** Parses the request's form; throws HttpError 400, 413 or 415. */
export async function readForm(request: Request, maxFileBytes: number): Promise<Form> {
  const type = request.get('content-type') ?? '';
  if (!/^multipart\/form-data\s*;.*boundary=/i.test(type)) {
    throw unsupportedMediaType(`Content-Type must be multipart/form-data with a boundary, got '${type.slice(0, 100)}'`);
  }
  checkEncoding(request);
  const parser = new Busboy({ headers: { ...request.headers, 'content-type': type }, limits: { ...LIMITS, fileSize: maxFileBytes } });
  try {
    return await collect(request, parser, maxFileBytes);
  } finally {
    request.unpipe(parser);
    // What still comes is none of the parser's business.
    parser.on('error', () => {});
    parser.destroy();
  }
}

const malformed = (message: string): HttpError => new HttpError(400, 'invalid_value', message);

function collect(request: Request, parser: BusboyInstance, maxFileBytes: number): Promise<Form> {
  const fields = new Map<string, string[]>();
  let file: Uint8Array | undefined;
  return new Promise((resolve, reject) => {
    const tooMany = (what: string, limit: number) => (): void => reject(malformed(`the form has more than ${limit} ${what}`));
    parser.on('partsLimit', tooMany('parts', LIMITS.parts));
    parser.on('fieldsLimit', tooMany('fields', LIMITS.fields));
    parser.on('filesLimit', tooMany('files', LIMITS.files));
    parser.on('field', (name, value, nameCut, valueCut) => {
      if (nameCut || valueCut || (name ?? '').length > LIMITS.fieldNameSize)
        reject(malformed(`a form field is longer than ${LIMITS.fieldSize} bytes`));
      const key = (name ?? '').replace(/\[\]$/, '');
      fields.set(key, [...(fields.get(key) ?? []), value]);
    });
    parser.on('file', (name, stream) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('limit', () => reject(requestTooLarge(`the file is larger than ${maxFileBytes} bytes`, 'file')));
      stream.on('error', (cause) => reject(new HttpError(400, 'invalid_value', 'the form ends inside its file', { cause })));
      stream.on('end', () => {
        if (name === 'file') file = ownBytes(chunks);
      });
    });
    parser.on('error', (cause) => reject(new HttpError(400, 'invalid_value', 'the form is malformed', { cause })));
    parser.on('finish', () => resolve({ fields, file }));
    request.on('error', reject);
    request.on('close', () => {
      if (!request.complete) reject(malformed('the form ended early'));
    });
    request.pipe(parser);
  });
}

/** One buffer of its own (Buffer.concat may share a pool), so that it can be handed to another thread. */
function ownBytes(chunks: readonly Buffer[]): Uint8Array {
  const bytes = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
