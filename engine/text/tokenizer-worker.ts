/** Worker thread that tokenises long texts. */
import type { Platform, WorkerPort } from '../platform/platform.ts';
import { serveThread } from '../platform/thread.ts';
import { once } from '../util/once.ts';
import { value } from '../util/rpc.ts';
import { openModelFolder } from '../weights/open-model-folder.ts';
import { Tokenizer } from './tokenizer.ts';

/** A text to encode, and the tokenizer to load for it. */
export interface EncodeRequest {
  /** Path of the model folder, and the model's vocabulary size. */
  readonly path: string;
  readonly size: number;
  readonly text: string;
  readonly addSpecialTokens: boolean;
}

export const TOKENIZER_OPERATIONS = { encode: value<EncodeRequest, readonly number[]>() };

/** Serves the port until the thread is ended. */
export function main(platform: Platform, port: WorkerPort): void {
  // A thread serves one LongTexts, whose requests all name the same tokenizer.
  let load: (() => Promise<Tokenizer>) | undefined;
  const encode = async ({ path, size, text, addSpecialTokens }: EncodeRequest): Promise<readonly number[]> => {
    load ??= once(async () => Tokenizer.load(await openModelFolder(platform, path), size));
    return (await load()).encode(text, { addSpecialTokens });
  };
  serveThread(TOKENIZER_OPERATIONS, { encode }, port, (line) => platform.log(line));
}
