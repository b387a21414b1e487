/** Runs in each test file: at its end the codec threads that its tests shared end too. */
import { afterAll } from 'vitest';
import { closeSharedCodec } from './codec.ts';

afterAll(closeSharedCodec);
