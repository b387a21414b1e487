/// <reference types="vite/client" />

/** Made by the build: every .wgsl file by its path below shaders/. */
declare module 'virtual:shaders' {
  export function readShaders(): Promise<Readonly<Record<string, string>>>;
}
