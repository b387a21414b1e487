/** A file on the network of which only the header is read. */
import type { SlicedFile } from '../../../engine/platform/browser.ts';
import { fetchRange } from '../models/fetch-range.ts';
import type { RemoteFile } from '../models/fetch-range.ts';
import type { HubAccess } from '../models/hub-authorization.ts';

/** Fewest bytes per request: most headers and small files fit. */
const LEAST_BYTES = 256 * 1024;

/** Fetches the file's beginning once, as far as it is read. */
export class RangeFile implements SlicedFile {
  readonly size: number;
  readonly #file: RemoteFile;
  readonly #access: HubAccess | undefined;
  #head: Uint8Array<ArrayBuffer> = new Uint8Array();

  constructor(file: RemoteFile, access?: HubAccess) {
    this.#file = file;
    this.#access = access;
    this.size = file.size;
  }

  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> } {
    return { arrayBuffer: () => this.#bytes(start, Math.min(end, this.size)) };
  }

  async #bytes(start: number, end: number): Promise<ArrayBuffer> {
    if (start > this.#head.length) return (await this.#fetch(start, end)).buffer;
    if (end > this.#head.length) {
      const to = Math.min(this.size, Math.max(end, this.#head.length + LEAST_BYTES));
      const more = await this.#fetch(this.#head.length, to);
      const head = new Uint8Array(to);
      head.set(this.#head);
      head.set(more, this.#head.length);
      this.#head = head;
    }
    return this.#head.slice(start, end).buffer;
  }

  async #fetch(start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(end - start);
    let filled = 0;
    for await (const part of fetchRange(this.#file, start, end, { access: this.#access })) {
      bytes.set(part, filled);
      filled += part.length;
    }
    return bytes;
  }
}
