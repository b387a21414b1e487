/** The engine's process as it is, that collects its garbage when told. */
import { collectOnSignal } from './collect-garbage.ts';

collectOnSignal();
await import('../../../server/engine/process.ts');
