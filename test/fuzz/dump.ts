/** Writes what is needed to see a fault again: the case's bytes, the answer, and commands that repeat it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FuzzCase } from './case.ts';
import type { Exchange } from './exchange.ts';

export interface Found {
  readonly seed: number;
  readonly index: number;
  readonly fuzz: FuzzCase;
  readonly exchange: Exchange | undefined;
  readonly faults: readonly string[];
  /** Lines the server wrote meanwhile. */
  readonly log: readonly string[];
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Writes `seed-S-case-N.txt` and the bytes beside it; returns the text's path. */
export function writeDump(folder: string, { seed, index, fuzz, exchange, faults, log }: Found): string {
  mkdirSync(folder, { recursive: true });
  const base = join(folder, `seed-${seed}-case-${index}`);
  writeFileSync(`${base}.http`, fuzz.bytes);
  const { body, command } = asCurl(fuzz, `${base}.body`);
  if (body) writeFileSync(`${base}.body`, body);
  const answers = [...(exchange?.answers ?? []), ...(exchange?.broken ? [exchange.broken] : [])].map(
    ({ status, headers, body: bytes, isWhole }) =>
      `${status}${isWhole ? '' : ' (cut off)'}\n${[...headers].map(([name, value]) => `${name}: ${value}`).join('\n')}\n\n${bytes.toString('utf8', 0, 4000)}`,
  );
  const { companions, ...delivery } = fuzz.delivery;
  const text = [
    `seed ${seed}, case ${index}: ${fuzz.name}`,
    ...faults.map((fault) => `fault: ${fault}`),
    '',
    '# again, with a server of its own',
    `npm run bench -- fuzz 60 ${seed} --case ${index}`,
    '# against a server of yours (fill in the port)',
    ...(command === undefined ? [] : [command]),
    `nc -q 60 127.0.0.1 PORT < ${base}.http    # ${fuzz.listener} listener; delivery ${JSON.stringify({ ...delivery, companions: companions?.map(String) })}`,
    '',
    ...answers.flatMap((answer, number) => [`# answer ${number + 1}`, answer]),
    ...(exchange ? [`# after ${exchange.ms.toFixed(0)} ms; connection: ${exchange.error ?? 'no error'}`] : []),
    ...(log.length > 0 ? ['# log', ...log] : []),
  ].join('\n');
  writeFileSync(`${base}.txt`, `${text}\n`);
  return `${base}.txt`;
}

/** The curl command of a request that curl can send. */
function asCurl({ bytes }: FuzzCase, file: string): { readonly body?: Buffer; readonly command?: string } {
  const end = bytes.indexOf('\r\n\r\n');
  const [line = '', ...headers] = bytes.toString('latin1', 0, Math.max(0, end)).split('\r\n');
  const [, method, target] = /^([A-Z]+) (\/\S*) HTTP\/1\.1$/.exec(line) ?? [];
  const isPlain = headers.every((header) => /^[\w-]+: [\x20-\x7e]*$/.test(header) && !/^transfer-encoding/i.test(header));
  if (method === undefined || target === undefined || !isPlain) return {};
  const body = bytes.subarray(end + 4);
  const named = headers.filter((header) => !/^content-length/i.test(header)).map((header) => ` -H ${quoted(header)}`);
  const data = body.length > 0 ? ` --data-binary @${file}` : '';
  return { ...(body.length > 0 && { body }), command: `curl -m 60 -i --path-as-is -X ${method}${named.join('')}${data} ${quoted(`http://127.0.0.1:PORT${target}`)}` }; // prettier-ignore
}
