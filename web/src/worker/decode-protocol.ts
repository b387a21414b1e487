/** Messages between the page and the worker that decodes sound files. */

/** Message from the page, once: the file, and the longest sound it may hold. */
export interface DecodeMessage {
  readonly file: Blob;
  /** Sample rate of the result, in Hz. */
  readonly rate: number;
  readonly maxSeconds: number;
}

/** Messages from the worker: shares from 0 to 1, then one of the others. */
export type DecodeAnswer =
  | { readonly type: 'progress'; readonly done: number }
  | { readonly type: 'decoded'; readonly samples: Float32Array<ArrayBuffer>; readonly levels: Float32Array<ArrayBuffer> }
  | { readonly type: 'failed'; readonly message: string };
