/** Finds the declarations of kernels in a module, and compares them with their WGSL. */
import type { Access, Kernel } from '../../engine/gpu/kernel.ts';

/** Whether a value was made by defineKernel. */
export function isKernel(value: unknown): value is Kernel {
  return typeof value === 'object' && value !== null && 'spec' in value && typeof (value as Kernel).spec.file === 'string';
}

/** The accesses of a declaration in WGSL's terms. */
const IN_WGSL: Readonly<Record<Access, string>> = {
  read: 'read',
  write: 'read_write',
  update: 'read_write',
  texels: 'texture_storage_2d',
  'f32 texels': 'texture_storage_2d',
};

/** Lists the differences between a declaration and its WGSL text, one line each; empty if they agree. Needs no GPU. */
export function checkKernel(kernel: Kernel, wgsl: string): string[] {
  const { spec } = kernel;
  const text = wgsl.replace(/\/\/[^\n]*/g, '').replace(/\/\*[\s\S]*?\*\//g, '');
  const problems: string[] = [];
  const expect = (what: string, declared: string, found: string): void => {
    if (declared !== found) problems.push(`${what}: declared (${declared}), WGSL has (${found})`);
  };
  const wanted = Object.entries(spec.bindings).map(([name, access]) => `${name} ${IN_WGSL[access]}`);
  const found: string[] = [];
  const pattern = /@group\((\d+)\)\s*@binding\((\d+)\)\s*var(?:<\s*(\w+)\s*(?:,\s*(\w+)\s*)?>)?\s*(\w+)\s*:\s*(\w+)/g;
  for (const [, group, index, space, access, name, type] of text.matchAll(pattern)) {
    if (group !== '0') problems.push(`binding ${name} is in group ${group}, expected 0`);
    found[Number(index)] = space === 'uniform' ? `${name} uniform` : `${name} ${space === undefined ? type : (access ?? 'read')}`;
  }
  expect('bindings', [...wanted, 'params uniform'].join(', '), found.join(', '));
  const struct = /struct\s+Params\s*\{([^}]*)\}/.exec(text)?.[1] ?? '';
  const fields = [...struct.matchAll(/(\w+)\s*:\s*(\w+)/g)].map(([, name, type]) => `${name}: ${type}`);
  expect(
    'params',
    Object.entries(spec.params)
      .map(([name, type]) => `${name}: ${type}`)
      .join(', '),
    fields.join(', '),
  );
  const overrides = [...text.matchAll(/override\s+(\w+)\s*:\s*(\w+)/g)].map(([, name, type]) => `${name}: ${type}`).sort();
  expect(
    'overrides',
    Object.entries(spec.overrides ?? {})
      .map(([name, type]) => `${name}: ${type}`)
      .sort()
      .join(', '),
    overrides.join(', '),
  );
  for (const name of spec.consts ?? []) {
    if (!new RegExp(`\\b${name}\\b`).test(text)) problems.push(`'${name}' is declared but the text never uses it`);
  }
  if (!/@compute[\s\S]*fn\s+main\s*\(/.test(text)) problems.push('no entry point named main');
  if (/^\s*(enable|requires|diagnostic)\b/m.test(text)) problems.push('directives belong to the variant, not to the file');
  return problems;
}
