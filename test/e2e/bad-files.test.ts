/** A damaged file of each published format as a server's model: what loading it throws ends a server with 2, and one server shows the line. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { EngineError } from '../../engine/errors.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { exitCodeOf } from '../../server/serve.ts';
import { zipOf } from '../support/archives.ts';
import { kokoroFormat } from '../support/kokoro-formats.ts';
import { spawnAt } from '../support/server-process.ts';

const MAIN = new URL('../../server/main.ts', import.meta.url);
const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url));
const ADAPTER = process.env['PARLEY_ADAPTER'];

const copy = (fixture: string): string => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-'));
  cpSync(join(FIXTURES, fixture), folder, { recursive: true });
  return folder;
};

test.each([
  ['model.safetensors', () => copy('llama-tiny-random/qwen3')],
  ['model.safetensors', () => copy('fp8/channel')],
  ['model.bin', () => copy('ctranslate2-tiny-random/float16')],
  ['kokoro.int8.onnx', () => kokoroFormat('onnx-int8')],
  ['kokoro-v1_0.pth', () => kokoroFormat('pth')],
  ['voices/af_one.pt', () => kokoroFormat('pth')],
  ['voices-v1.0.bin', () => kokoroFormat('onnx')],
  ['tokenizer.json', () => copy('../../models/parley-chat')],
  ['config.json', () => copy('../../models/parley-chat')],
])('%s cut in half is refused in one line that names it, and with 2', async (file, make) => {
  const path = make();
  onTestFinished(() => rmSync(path, { recursive: true }));
  truncateSync(join(path, file), readFileSync(join(path, file)).length >> 1);
  const read = async (): Promise<void> => {
    const folder = await openModelFolder(createNodePlatform(), path);
    await folder.json('config.json');
    if (await folder.has('tokenizer.json')) await folder.json('tokenizer.json');
    for (const weights of file.startsWith('voices') ? ['voices.safetensors'] : ['model.safetensors'])
      await withWeights(folder, async (checkpoint) => {
        for (const name of checkpoint.names()) await checkpoint.read(name);
      }, weights); // prettier-ignore
  };
  const error = await read().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(EngineError);
  expect((error as EngineError).message).toContain(file);
  expect((error as EngineError).message).not.toContain('\n');
  expect(exitCodeOf(error as EngineError)).toBe(2);
});

/** What os.system('touch FILE') looks like in a pickle of protocol 2. */
function pickledCall(file: string): Buffer {
  const text = Buffer.from(`touch ${file}`);
  return Buffer.concat([Buffer.from([0x80, 2]), Buffer.from('cposix\nsystem\n'), Buffer.from([0x58, text.length, 0, 0, 0]), text, Buffer.from([0x85, 0x52, 0x2e])]); // prettier-ignore
}

test('a voice that calls a program ends the server with 2 and one line, and the program is not run', async () => {
  const path = kokoroFormat('pth');
  onTestFinished(() => rmSync(path, { recursive: true }));
  const touched = join(path, 'touched');
  writeFileSync(join(path, 'voices/af_one.pt'), zipOf([{ path: 'af_one/data.pkl', content: pickledCall(touched) }]));
  const { child, exit, lines } = spawnAt(MAIN, ['--chat-model=none', '--speech-model', path, '--transcription-model=none', ...(ADAPTER === undefined ? [] : ['--adapter', ADAPTER])]); // prettier-ignore
  onTestFinished(() => void child.kill('SIGKILL'));
  expect(await exit).toBe(2);
  // The plan for memory is made of headers, before voices are read.
  const said = lines.filter((line) => !line.startsWith('memory '));
  expect(said).toHaveLength(1);
  expect(said[0]).toContain(join(path, 'voices/af_one.pt'));
  expect(said[0]).toMatch(/names posix\.system, which is not run/);
  expect(existsSync(touched)).toBe(false);
});
