/** The package has no types. */
declare module '@echogarden/espeak-ng-emscripten' {
  import type { MakeEspeak } from './espeak.ts';
  const make: MakeEspeak;
  export default make;
}
