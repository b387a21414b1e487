/** Multipart forms of the transcription listener: good ones, and forms that lost their shape. */
import { HOSTILE_TEXTS, randomText } from './json.ts';
import { between, chance, choose, logBetween, randomBytes } from './rng.ts';
import type { Rng } from './rng.ts';
import { anySound, goodWav } from './wav.ts';

/** A form as bytes, with the Content-Type that announces it. */
export interface Form {
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

interface Part {
  readonly head: string;
  readonly body: Buffer;
}

const field = (name: string, value: string): Part => ({ head: `Content-Disposition: form-data; name="${name}"`, body: Buffer.from(value) });
const file = (bytes: Buffer, name = 'clip.wav'): Part => ({
  head: `Content-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: audio/wav`,
  body: bytes,
});

function serialise(parts: readonly Part[], boundary: string, { newline = '\r\n', end = '--' } = {}): Buffer {
  const pieces = parts.flatMap(({ head, body }) => [
    Buffer.from(`--${boundary}${newline}${head}${newline}${newline}`, 'latin1'),
    body,
    Buffer.from(newline),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}${end}${newline}`)]);
}

const typeFor = (boundary: string): string => `multipart/form-data; boundary=${boundary}`;

function goodParts(rng: Rng, sound: Buffer): readonly Part[] {
  return [file(sound), field('model', 'whisper-1'), field('response_format', choose(rng, ['json', 'text', 'verbose_json', 'srt', 'vtt']))];
}

/** A field of the API with a value that may be wrong. */
function oddField(rng: Rng): Part {
  const name = choose(rng, ['model', 'language', 'prompt', 'temperature', 'response_format', 'stream', 'timestamp_granularities[]', 'include[]', 'chunking_strategy', 'task', 'vad_filter', 'file', 'hotwords', randomText(rng, 8).replaceAll('"', '')]); // prettier-ignore
  const value = choose(rng, ['', 'en', 'English', 'xx', '0.5', '1e-1', '-1', 'NaN', 'true', 'yes', 'json', 'segment', 'word', 'segment,word', 'auto', 'translate', ...HOSTILE_TEXTS, 'x'.repeat(logBetween(rng, 100, 200_000))]); // prettier-ignore
  return field(name, value);
}

type Maker = (rng: Rng) => Form;

const BOUNDARY = 'XX';
const form = (name: string, parts: readonly Part[]): Form => ({ name, type: typeFor(BOUNDARY), bytes: serialise(parts, BOUNDARY) });

/** Forms of one idea each. */
const SHAPES: Readonly<Record<string, Maker>> = {
  good: (rng) => form('good', goodParts(rng, goodWav(rng).bytes)),
  sound: (rng) => {
    const { name, bytes } = anySound(rng);
    return form(name, goodParts(rng, bytes));
  },
  fields: (rng) =>
    form('fields', [...goodParts(rng, goodWav(rng).bytes), ...Array.from({ length: between(rng, 1, 4) }, () => oddField(rng))]),
  'no disposition': (rng) => {
    const size = logBetween(rng, 1, 200_000);
    const part = { head: 'X-A: b', body: Buffer.alloc(size) };
    const parts = choose(rng, [[part], [part, ...goodParts(rng, goodWav(rng).bytes)], [...goodParts(rng, goodWav(rng).bytes), part]]);
    return form(`a part of ${size} bytes without Content-Disposition`, parts);
  },
  disposition: (rng) => {
    const head = choose(rng, ['Content-Disposition: attachment; name="file"', 'Content-Disposition: form-data', 'Content-Disposition: form-data; filename="a.wav"', "Content-Disposition: form-data; name*=utf-8''file", 'Content-Disposition:', 'Content-Disposition: form-data; name="file', 'Content-Disposition: form-data; name="file"; filename="../../a\0.wav"', 'Content-Disposition: form-data; name="__proto__"', 'Content-Disposition: form-data; name=file; filename*=bogus\'\'%ff%zz', `Content-Disposition: form-data; name="${'n'.repeat(logBetween(rng, 10, 20_000))}"`]); // prettier-ignore
    return form(`odd ${head.slice(0, 70)}`, [{ head, body: Buffer.alloc(logBetween(rng, 1, 60_000), 'y') }, field('model', 'whisper-1')]);
  },
  boundary: (rng) => {
    const boundary = choose(rng, [
      'b'.repeat(logBetween(rng, 60, 6000)),
      '-'.repeat(between(rng, 1, 80)),
      "a'()+_,-./:=?",
      'a b',
      '',
      '\t',
      'ü',
    ]);
    const type = choose(rng, [typeFor(boundary), `multipart/form-data; boundary="${boundary}"`, `multipart/form-data;xboundary=${boundary}`, `multipart/form-data; boundary=${boundary}; boundary=other`, `multipart/form-data; charset=utf-16; boundary=${boundary}`]); // prettier-ignore
    return { name: `boundary of ${boundary.length}, ${type.slice(0, 60)}`, type, bytes: serialise(goodParts(rng, goodWav(rng).bytes), boundary) }; // prettier-ignore
  },
  'content type': (rng) => {
    const type = choose(rng, ['multipart/form-data', 'multipart/form-data;', 'multipart/mixed; boundary=XX', 'multipart/form-data; boundary', 'multipart/form-data; boundary=', 'multipart/form-data; boundary=YY', 'multipart/form-data;xboundary=XX', 'multipart/form-data; boundary="XX', 'multipart/form-data; boundary=XX; x="', 'application/x-www-form-urlencoded', 'audio/wav', '', 'MULTIPART/FORM-DATA; BOUNDARY=XX']); // prettier-ignore
    return { ...SHAPES['good']!(rng), name: `content type ${type}`, type };
  },
  many: (rng) => {
    const count = logBetween(rng, 2, 3000);
    return form(`${count} parts`, [...Array.from({ length: count }, (_, i) => choose(rng, [field(`f${i}`, 'v'), field('model', 'whisper-1'), file(Buffer.from('RIFF'))])), ...goodParts(rng, goodWav(rng).bytes)]); // prettier-ignore
  },
  headers: (rng) => {
    const count = logBetween(rng, 2, 3000);
    const head = choose(rng, [Array.from({ length: count }, (_, i) => `X-H${i}: v`).join('\r\n'), `X-Long: ${'v'.repeat(count * 20)}`, 'X'.repeat(count * 10), `: empty\r\n${' folded\r\n'.repeat(count % 50)}X: y`]); // prettier-ignore
    return form(`part with ${count} headers`, [{ head: `${head}\r\nContent-Disposition: form-data; name="file"; filename="a"`, body: goodWav(rng).bytes }, field('model', 'whisper-1')]); // prettier-ignore
  },
  newlines: (rng) => {
    const newline = choose(rng, ['\n', '\r', '\n\r', '\r\r\n']);
    return { name: `newline ${JSON.stringify(newline)}`, type: typeFor(BOUNDARY), bytes: serialise(goodParts(rng, goodWav(rng).bytes), BOUNDARY, { newline }) }; // prettier-ignore
  },
  cut: (rng) => {
    const { bytes, type } = SHAPES['good']!(rng);
    const at = rng.integer(bytes.length);
    return { name: `ends after ${at} of ${bytes.length} bytes`, type, bytes: bytes.subarray(0, at) };
  },
  open: (rng) => ({ name: 'no last boundary', type: typeFor(BOUNDARY), bytes: serialise(goodParts(rng, goodWav(rng).bytes), BOUNDARY, { end: choose(rng, ['', '-', '---', 'x']) }) }), // prettier-ignore
  surroundings: (rng) => {
    const { bytes, type } = SHAPES['good']!(rng);
    const noise = choose(rng, [randomBytes(rng, logBetween(rng, 1, 50_000)), Buffer.from('--XX--\r\n'), Buffer.from('--XX'.repeat(logBetween(rng, 1, 5000))), Buffer.from('\r\n'.repeat(5000))]); // prettier-ignore
    return { name: 'preamble or epilogue', type, bytes: Buffer.concat(chance(rng, 0.5) ? [noise, bytes] : [bytes, noise]) };
  },
  flipped: (rng) => {
    const { bytes, type } = SHAPES['good']!(rng);
    for (let i = between(rng, 1, 10); i > 0; i--) bytes[rng.integer(Math.min(bytes.length, chance(rng, 0.7) ? 160 : bytes.length))] = rng.integer(256); // prettier-ignore
    return { name: 'bytes changed', type, bytes };
  },
  large: (rng) => {
    const size = choose(rng, [1 << 20, (25 << 20) - 1000, (25 << 20) + 1, 30 << 20]);
    return form(`a file of ${size} bytes`, [file(Buffer.alloc(size, chance(rng, 0.5) ? 0 : 'R')), field('model', 'whisper-1')]);
  },
};

/** Any of the forms; the sounds most often, the large ones rarely. */
export function anyForm(rng: Rng): Form {
  const names = Object.keys(SHAPES).filter((name) => name !== 'large');
  const name = chance(rng, 0.02) ? 'large' : chance(rng, 0.35) ? 'sound' : choose(rng, names);
  return SHAPES[name]!(rng);
}

/** A form that is answered with 200. */
export const plainForm = (rng: Rng): Form => form('plain', [file(goodWav(rng).bytes), field('model', 'whisper-1')]);
