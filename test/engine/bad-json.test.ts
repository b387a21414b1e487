/** tokenizer.json and config.json with something changed: each is read, or refused in one line that names the file; memory stays bounded. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { parseKokoroConfig } from '../../engine/models/kokoro/config.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { parseWhisperConfig } from '../../engine/models/whisper/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { ModelFolder } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { mutateBytes, mutateJson } from '../support/mutate-json.ts';

const MUTATIONS = 100;
/** The largest of the files has 0.2 MB. */
const MEMORY = 256 * 2 ** 20;
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const platform = createNodePlatform({ log: () => undefined });

const PREPROCESSOR = JSON.parse(readFileSync(join(ROOT, 'models/parley-transcribe/preprocessor_config.json'), 'utf8')) as Record<
  string,
  unknown
>;

interface Kind {
  readonly file: string;
  /** Does with it what loading does before weights are read. */
  readonly read: (folder: ModelFolder) => Promise<unknown>;
}

const KINDS: readonly Kind[] = [
  {
    file: 'models/parley-chat/tokenizer.json',
    read: async (folder) => {
      const tokenizer = await Tokenizer.load(folder);
      tokenizer.decode(tokenizer.encode('A fox, 12 geese and <|im_end|> é.'));
    },
  },
  { file: 'models/parley-chat/config.json', read: async (folder) => parseChat(await folder.json('config.json')) },
  {
    file: 'models/parley-transcribe/config.json',
    read: async (folder) => parseWhisperConfig(await folder.json('config.json'), PREPROCESSOR),
  },
  { file: 'models/parley-speech/config.json', read: async (folder) => parseKokoroConfig(await folder.json('config.json')) },
];

const parseChat = (json: Readonly<Record<string, unknown>>): unknown => decoderFor(json).parseConfig(json);

test.each(KINDS)(
  `$file with one of ${MUTATIONS} mutations is read, or refused in a line that names what is wrong`,
  async ({ file, read }) => {
    const path = mkdtempSync(join(tmpdir(), 'parley-'));
    onTestFinished(() => rmSync(path, { recursive: true }));
    const bytes = new Uint8Array(readFileSync(join(ROOT, file)));
    const text = new TextDecoder().decode(bytes);
    const name = basename(file);
    if (name !== 'config.json') writeFileSync(join(path, 'config.json'), '{}');
    writeFileSync(join(path, name), bytes);
    const folder = await openModelFolder(platform, path);
    await read(folder);
    const before = process.memoryUsage().rss;
    let refused = 0;
    let most = before;
    for (let i = 0; i < MUTATIONS; i++) {
      const rng = createRng(9000 + i);
      writeFileSync(join(path, name), rng.uniform() < 0.15 ? mutateBytes(rng, bytes) : mutateJson(rng, text));
      const error: unknown = await read(folder).catch((reason: unknown) => reason);
      most = Math.max(most, process.memoryUsage().rss);
      if (error === undefined || !(error instanceof Error)) continue;
      refused++;
      const problem = error instanceof EngineError ? error.message : `mutation ${i} is no refusal: ${error.stack}`;
      expect(['invalid_model', 'unsupported'], problem).toContain((error as EngineError).code);
      expect(problem).toContain(name);
      expect(problem).not.toMatch(/\n|TypeError|RangeError|Cannot read|is not a function|not iterable/);
      expect(problem.length).toBeLessThan(1000);
    }
    console.log(`${file}: ${refused} of ${MUTATIONS} refused, ${((most - before) / 2 ** 20).toFixed(0)} MiB more at most`);
    expect(refused).toBeGreaterThan(MUTATIONS / 8);
    expect(most - before).toBeLessThan(MEMORY);
  },
  60_000,
);

test.each([
  ['normalizer', 'normalizers', { type: 'Replace', pattern: { String: 'I' }, content: 'II' }],
  ['pre_tokenizer', 'pretokenizers', { type: 'Metaspace', replacement: '  ' }],
  ['decoder', 'decoders', { type: 'Replace', pattern: { String: 'I' }, content: 'II' }],
])('a %s that doubles what it is given over and over is refused', async (field, list, step) => {
  const path = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  const json = JSON.parse(readFileSync(join(ROOT, 'models/parley-chat/tokenizer.json'), 'utf8')) as object;
  writeFileSync(join(path, 'config.json'), '{}');
  writeFileSync(join(path, 'tokenizer.json'), JSON.stringify({ ...json, [field]: { type: 'Sequence', [list]: Array(40).fill(step) } }));
  const loading = Tokenizer.load(await openModelFolder(platform, path));
  const message = `${join(path, 'tokenizer.json')}: ${field} makes texts more than 256 times as long`;
  await expect(loading).rejects.toMatchObject({ code: 'invalid_model', message });
});
