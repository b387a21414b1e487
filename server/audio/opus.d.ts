/** Types of @evan/opus's WebAssembly build; the package's own are those of its native one. */
declare module '@evan/opus/wasm/index.mjs' {
  interface Options {
    readonly channels: 1 | 2;
    readonly sample_rate: number;
    readonly application?: 'voip' | 'audio' | 'restricted_lowdelay';
  }

  export class Decoder {
    constructor(options: Options);
    /** Decodes a packet to interleaved samples, 16 bit, little-endian. */
    decode(packet: Uint8Array): Uint8Array;
    ctl(command: number, value: number): number;
    /** Frees its memory. */
    drop(): void;
  }

  export class Encoder {
    constructor(options: Options);
    /** Encodes one frame of interleaved samples, 16 bit, little-endian, as a packet. */
    encode(samples: Uint8Array): Uint8Array;
    ctl(command: number, value?: number): number;
    drop(): void;
  }
}
