/** The WebAssembly of codecs/: an instance decodes one file or encodes one, and its memory goes with it. */
import { readFileSync } from 'node:fs';

let compiled: WebAssembly.Module | undefined;

/** A new instance as the functions that `Exports` says; `read` copies bytes of the file that is decoded. */
export function instantiateCodecs<Exports>(read: (at: number, to: number, length: number) => number): Exports {
  // Once a worker.
  compiled ??= new WebAssembly.Module(readFileSync(new URL('./codecs/codecs.wasm', import.meta.url)));
  return new WebAssembly.Instance(compiled, { host: { read } }).exports as unknown as Exports;
}
