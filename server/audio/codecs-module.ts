/** Instantiates the WebAssembly module of codecs/. An instance decodes or encodes a single file, and its memory is freed with it. */
import { readFileSync } from 'node:fs';

let compiled: WebAssembly.Module | undefined;

/** Returns the exports of a new instance, typed as `Exports`. The instance calls `read` to copy bytes of the file that it decodes into its memory. */
export function instantiateCodecs<Exports>(read: (at: number, to: number, length: number) => number): Exports {
  // Compiled once per worker.
  compiled ??= new WebAssembly.Module(readFileSync(new URL('./codecs/codecs.wasm', import.meta.url)));
  return new WebAssembly.Instance(compiled, { host: { read } }).exports as unknown as Exports;
}
