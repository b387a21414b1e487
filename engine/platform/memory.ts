/** Determines the memory of an adapter from the operating system, since WebGPU does not tell it. */
import type { AdapterInfo } from '../api.ts';

export interface AdapterMemory {
  /** Free bytes; if `sure` is false, an upper bound for a trial allocation. */
  readonly bytes: number;
  /** Where the number comes from, for the operator. */
  readonly from: string;
  readonly sure: boolean;
}

/** Access to the operating system, as far as it is needed here. */
export interface SystemProbe {
  /** Bytes of system memory that the process may still allocate; `totalBytes` are all that the machine has. */
  freeBytes(): number;
  totalBytes(): number;
  /** Standard output of a program, or undefined when it is missing or fails. */
  run(program: string, args: readonly string[]): Promise<string | undefined>;
  /** Contents of a file, or undefined. */
  read(path: string): string | undefined;
  /** Names in a folder; none if it is missing. */
  list(path: string): readonly string[];
}

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** Share for a software adapter, which uses system memory like everything else. */
const SOFTWARE_SHARE = 1 / 2;
/** Share of the machine's memory for a browser tab, which is one of many. */
const TAB_SHARE = 1 / 16;
/** Share for an integrated GPU, which uses system memory. */
const INTEGRATED_SHARE = 1 / 2;
/** An AMD GPU with less memory of its own is an integrated one with a carve-out. */
const CARVE_OUT = 2 * GIB;
/** Most bytes of a trial allocation: a driver may promise more than it has (WDDM, Metal), so a larger one proves little. */
const MOST_TRIED = 8 * GIB;

/** Memory of an adapter: from nvidia-smi for NVIDIA, from sysfs for AMD, a share of the system's for software adapters and integrated GPUs; otherwise unknown. */
export async function adapterMemory({ software, vendor, name }: AdapterInfo, system: SystemProbe): Promise<AdapterMemory> {
  const sure = (bytes: number, from: string): AdapterMemory => ({ bytes: Math.floor(bytes), from, sure: true });
  if (software) return sure(system.freeBytes() * SOFTWARE_SHARE, 'half of the free system memory');
  const maker = `${vendor} ${name}`.toLowerCase();
  if (maker.includes('nvidia')) {
    const bytes = await nvidiaFree(name, system);
    if (bytes !== undefined) return sure(bytes, 'nvidia-smi');
  }
  if (/\bamd\b|radeon|advanced micro/.test(maker)) {
    const bytes = amdFree(system);
    if (bytes !== undefined && bytes >= CARVE_OUT) return sure(bytes, 'amdgpu');
    if (bytes !== undefined) return sure(system.freeBytes() * INTEGRATED_SHARE, 'half of the free system memory');
  }
  // macOS counts its file cache as used, so its free memory says little.
  if (maker.includes('apple')) return sure(system.totalBytes() * INTEGRATED_SHARE, 'half of the system memory');
  if (maker.includes('intel') && !maker.includes('arc')) {
    return sure(system.freeBytes() * INTEGRATED_SHARE, 'half of the free system memory');
  }
  return { bytes: MOST_TRIED, from: 'trial allocation', sure: false };
}

/** Free bytes by nvidia-smi: the least among the cards of that name, or among all cards if none has it. */
async function nvidiaFree(name: string, system: SystemProbe): Promise<number | undefined> {
  const text = await system.run('nvidia-smi', ['--query-gpu=name,memory.free', '--format=csv,noheader,nounits']);
  const cards = (text ?? '').split('\n').flatMap((line) => {
    const [, card, free] = /^(.*),\s*(\d+)\s*$/.exec(line) ?? [];
    return card === undefined ? [] : [{ card, bytes: Number(free) * MIB }];
  });
  const named = cards.filter(({ card }) => name.includes(card) || card.includes(name));
  const chosen = named.length > 0 ? named : cards;
  return chosen.length === 0 ? undefined : Math.min(...chosen.map(({ bytes }) => bytes));
}

/** Most free bytes of any amdgpu card. */
function amdFree(system: SystemProbe): number | undefined {
  const cards = system.list('/sys/class/drm').flatMap((card) => {
    const [total, used] = ['total', 'used'].map((what) => Number(system.read(`/sys/class/drm/${card}/device/mem_info_vram_${what}`)));
    return total! > 0 ? [total! - (used! || 0)] : [];
  });
  return cards.length === 0 ? undefined : Math.max(...cards);
}

/** What a page tells: how much memory the machine has, coarsely, or nothing. */
export function tabMemory({ software }: AdapterInfo, deviceMemoryGib: number | undefined): AdapterMemory {
  const machine = (deviceMemoryGib ?? 4) * GIB;
  if (software) return { bytes: machine * TAB_SHARE, from: "a sixteenth of the machine's memory", sure: true };
  return { bytes: Math.min(machine, MOST_TRIED), from: 'trial allocation', sure: false };
}
