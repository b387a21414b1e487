/** The part of @evan/opus that runs in WebAssembly; its own types are those of the native one. */
declare module '@evan/opus/wasm/index.mjs' {
  interface Options {
    readonly channels: 1 | 2;
    readonly sample_rate: number;
    readonly application?: 'voip' | 'audio' | 'restricted_lowdelay';
  }

  export class Decoder {
    constructor(options: Options);
    /** A packet to interleaved samples, 16 bit, little-endian. */
    decode(packet: Uint8Array): Uint8Array;
    ctl(command: number, value: number): number;
    /** Frees its memory. */
    drop(): void;
  }

  export class Encoder {
    constructor(options: Options);
    /** Interleaved samples of one frame, 16 bit, little-endian, to a packet. */
    encode(samples: Uint8Array): Uint8Array;
    ctl(command: number, value?: number): number;
    drop(): void;
  }
}
