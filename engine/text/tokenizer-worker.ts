/** Worker thread that tokenises long texts. */
import type { Platform, WorkerPort } from '../platform/platform.ts';
import { serveThread } from '../platform/thread.ts';
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
  const tokenizers = new Map<string, Promise<Tokenizer>>();
  const encode = async ({ path, size, text, addSpecialTokens }: EncodeRequest): Promise<readonly number[]> => {
    const tokenizer = tokenizers.get(path) ?? openModelFolder(platform, path).then((folder) => Tokenizer.load(folder, size));
    tokenizers.set(path, tokenizer);
    return (await tokenizer).encode(text, { addSpecialTokens });
  };
  serveThread(TOKENIZER_OPERATIONS, { encode }, port, (line) => platform.log(line));
}
