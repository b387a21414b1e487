/** The fixtures of test/tools/dump_kokoro_formats.py, unpacked where they are packed. */
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

const FIXTURE = fileURLToPath(new URL('../fixtures/kokoro-formats/', import.meta.url));

/** A folder of its own with one of the fixture's formats: safetensors, pth, onnx, onnx-int8. The caller removes it. */
export function kokoroFormat(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-'));
  cpSync(join(FIXTURE, name), folder, { recursive: true });
  for (const file of readdirSync(folder).filter((one) => one.endsWith('.gz'))) {
    writeFileSync(join(folder, file.slice(0, -3)), gunzipSync(readFileSync(join(folder, file))));
    rmSync(join(folder, file));
  }
  return folder;
}
