/// <reference types="vite/client" />

/** Made by the build: every .wgsl file by its path below shaders/. */
declare module 'virtual:shaders' {
  export function readShaders(): Promise<Readonly<Record<string, string>>>;
}

/** Made by the build: the address of the grammar library's WebAssembly; undefined while developing, when it is in the library. */
declare module 'virtual:grammar-wasm' {
  export const grammarWasm: string | undefined;
}
