/**
 * Words for every state of a task: one word for the rail, one sentence and one action for its view. Pure functions, so that tests can cover
 * them as a table.
 */
import type { SessionState } from './backend/session-state.ts';
import type { Environment } from './environment.ts';
import type { Remedy } from './failure.ts';
import { formatSeconds } from '../../sources/index.ts';
import { formatBytes, sentence } from './util.ts';

/** Assumed speed of a connection, in bits per second, for a first estimate of a download's time. */
const USUAL_LINE = 20e6;

export interface StateWords {
  readonly word: string;
  /** Absent when there is nothing to say. */
  readonly sentence?: string;
  /** Progress 0..1, where it is known. */
  readonly progress?: number;
  readonly actions: readonly ('load' | 'cancel' | Remedy)[];
  readonly isProblem: boolean;
}

const ENVIRONMENTS: Partial<Record<Environment, string>> = {
  insecure:
    'This address is plain http, and browsers hide WebGPU, the microphone and storage there. Open the page as http://localhost or over https to compute in this tab. A Parley server works from here too.',
  'no-webgpu':
    'This browser has no WebGPU. Current Chrome, Edge, Safari 26 and Firefox 145 have it; until then a Parley server can do the work.',
  'no-adapter':
    'This browser has WebGPU but offers no graphics adapter (a blocked driver, or a machine without one). In Chrome, chrome://gpu says why. A Parley server can do the work meanwhile.',
};

/** Says why the tab cannot run an engine; undefined where it can. */
export const whyNotHere = (environment: Environment): string | undefined => ENVIRONMENTS[environment];

/** Returns what a view says about its engine in the tab. `bytes` is the model's size, `stored` whether the store has it already. */
export function describeSession(state: SessionState, environment: Environment, bytes: number, stored: boolean, online = true): StateWords {
  const why = whyNotHere(environment);
  if (why !== undefined) return { word: 'no WebGPU', sentence: why, actions: ['useServer', 'device'], isProblem: true };
  switch (state.name) {
    case 'idle': {
      return {
        word: stored ? 'stored' : 'not loaded',
        sentence: stored ? 'The model is stored in this browser and not loaded yet.' : absentWords(bytes, online),
        actions: ['load'],
        isProblem: false,
      };
    }
    case 'downloading': {
      const amount = `${formatBytes(state.done)}${state.total > 0 ? ` of ${formatBytes(state.total)}` : ''}`;
      return {
        word: 'downloading',
        sentence: `Downloading the model: ${amount}${state.left === undefined ? '' : `, ${formatSeconds(state.left)} left`}`,
        ...shareOf(state),
        actions: ['cancel'],
        isProblem: false,
      };
    }
    case 'elsewhere':
      return {
        word: 'waiting',
        sentence: 'This model is being downloaded already, perhaps in another tab. It is loaded when that is done.',
        actions: ['cancel'],
        isProblem: false,
      };
    case 'checking':
      return {
        word: 'checking',
        sentence: 'Checking the stored model',
        ...shareOf(state),
        actions: ['cancel'],
        isProblem: false,
      };
    case 'loading':
      return { word: 'loading', sentence: 'Moving the model to the GPU and compiling its kernels', actions: ['cancel'], isProblem: false };
    case 'ready':
      return { word: environment === 'software' ? 'ready, software adapter' : 'ready', actions: [], isProblem: false };
    case 'lost':
      return {
        word: 'GPU lost',
        sentence: 'The GPU was reset, so the engine in this tab stopped. What is on this page is safe.',
        actions: ['restart', 'useServer'],
        isProblem: true,
      };
    case 'failed':
      return { word: 'failed', sentence: sentence(state.failure.message), actions: state.failure.remedies, isProblem: true };
  }
}

/** Words for a model that is not stored, without its size where that is not known yet. */
function absentWords(bytes: number, online: boolean): string {
  if (!online) return 'The model is not stored in this browser, and there is no network to fetch it.';
  if (bytes === 0) return 'The model is not here yet.';
  return `The model is not here yet: ${formatBytes(bytes)} to download, once, in about ${formatSeconds(Math.max(1, (bytes * 8) / USUAL_LINE))} at 20\u00a0Mbit/s.`;
}

/** The share that is done; absent where the total is not known. */
function shareOf({ done, total }: { readonly done: number; readonly total: number }): Pick<StateWords, 'progress'> {
  return total > 0 ? { progress: done / total } : {};
}

export const ACTION_WORDS: Readonly<Record<'load' | 'cancel' | Remedy, string>> = {
  load: 'Load the model',
  cancel: 'Cancel',
  retry: 'Try again',
  restart: 'Restart the engine',
  newConversation: 'New conversation',
  runWithoutStoring: 'Run once without storing',
  manageModels: 'Manage models',
  useServer: 'Use a server',
  useTab: 'Compute in this tab',
  device: 'Device details',
};
