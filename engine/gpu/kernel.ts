import { EngineError, assert } from '../errors.ts';
import type { Tensor } from './tensor.ts';

/**
 * How a dispatch uses a tensor: `write` and `update` are both `read_write` in WGSL; `update` says that old contents matter; `texels` are read from a storage
 * texture of words (Device.texels) whatever the variant, and `f32 texels` from one of floats.
 */
export type Access = 'read' | 'write' | 'update' | 'texels' | 'f32 texels';
export type ScalarType = 'u32' | 'i32' | 'f32';

/**
 * Declares a kernel beside the function that dispatches it. Three kinds of parameter, never mixed: `params` change per
 * dispatch (a uniform struct), `overrides` specialise the pipeline without changing its text, `consts` are text placed before the
 * file (WGSL cannot override the length of a private array).
 */
export interface KernelSpec {
  /** Path of the WGSL file below shaders/. */
  readonly file: string;
  /** Fragments (files without an entry point) that are placed before the kernel's text. */
  readonly fragments?: (variant: Variant) => readonly string[];
  /** WGSL extensions that all variants need. */
  readonly enables?: readonly string[];
  /** Names of the u32 constants that the text needs. */
  readonly consts?: readonly string[];
  /** Bindings in order; `params` follows as the last one. */
  readonly bindings: Readonly<Record<string, Access>>;
  /** Fields of struct Params in order; all are 4 bytes wide. */
  readonly params: Readonly<Record<string, ScalarType>>;
  readonly overrides?: Readonly<Record<string, ScalarType | 'bool'>>;
}

/** The choices that make one pipeline out of a kernel. */
export interface Variant {
  readonly consts?: Readonly<Record<string, number>>;
  readonly overrides?: Readonly<Record<string, number>>;
  readonly subgroups?: boolean;
  /** Subgroup size to ask for where the adapter could choose; only for kernels with subgroups. */
  readonly subgroupSize?: number | undefined;
  /** Storage of weights or KV pages; `fragments` picks the file that unpacks it (lib/weight_f16.wgsl ...). */
  readonly storage?: string;
  /** The binding, read or written, whose words lie in a storage texture instead of a buffer (Device.texels); `fragments` picks the file that loads or stores them. */
  readonly texture?: string | undefined;
  /** Further bindings that are textures. */
  readonly textures?: readonly string[] | undefined;
}

/** The bindings that are textures in this variant and buffers in others. */
export function inTextures({ texture, textures = [] }: Variant): readonly string[] {
  return texture === undefined ? textures : [texture, ...textures];
}

export interface Kernel<S extends KernelSpec = KernelSpec> {
  readonly name: string;
  readonly spec: S;
}

export type BindingsOf<S extends KernelSpec> = { readonly [K in keyof S['bindings']]: Tensor };
export type ParamsOf<S extends KernelSpec> = { readonly [K in keyof S['params']]: number };

/** Declares a kernel, named after its file. Keeps the literal types, so that misspelt names do not compile. */
export function defineKernel<const S extends KernelSpec>(spec: S): Kernel<S> {
  const name = spec.file.slice(spec.file.lastIndexOf('/') + 1).replace(/\.wgsl$/, '');
  return { name, spec };
}

/** Label of a pipeline, also its key in the profiler, e.g. `rms_norm f16 WG=64 subgroups`. */
export function variantLabel(kernel: Kernel, variant: Variant): string {
  let label = variant.storage ? `${kernel.name} ${variant.storage}` : kernel.name;
  for (const k in variant.consts) label += ` ${k}=${variant.consts[k]}`;
  for (const k in variant.overrides) label += ` ${k}=${variant.overrides[k]}`;
  for (const name of inTextures(variant)) label += ` ${name} in a texture`;
  const size = variant.subgroupSize === undefined ? '' : ` of ${variant.subgroupSize}`;
  return variant.subgroups ? `${label} subgroups${size}` : label;
}

/** The text of a shader module: directives, consts, fragments and the kernel's file. */
export function assembleWgsl(kernel: Kernel, variant: Variant, shaders: ReadonlyMap<string, string>): string {
  const { spec } = kernel;
  const parts: string[] = [];
  if (variant.subgroups) parts.push('enable subgroups;');
  if (variant.subgroupSize !== undefined) parts.push('enable subgroup_size_control;');
  for (const extension of spec.enables ?? []) parts.push(`enable ${extension};`);
  for (const [name, value] of Object.entries(variant.consts ?? {})) parts.push(`const ${name}: u32 = ${value}u;`);
  for (const path of [...(spec.fragments?.(variant) ?? []), spec.file]) {
    const text = shaders.get(path);
    if (text === undefined) throw new EngineError('internal', `kernel ${kernel.name}: shaders/${path} is missing`);
    const sized =
      variant.subgroupSize === undefined ? text : text.replace(/^@compute\b/m, `@compute @subgroup_size(${variant.subgroupSize})`);
    parts.push(path === spec.file ? inTextures(variant).reduce(withTexture, sized) : sized);
  }
  return parts.join('\n');
}

/** Rewrites a kernel's text so that the binding of this name is a texture. */
function withTexture(text: string, name: string): string {
  const declared = new RegExp(`var<storage, (read|read_write)> ${name}: [^;]+;`);
  assert(declared.test(text), `${name} is no binding`);
  return text.replace(
    declared,
    (_, access: string) => `var ${name}: texture_storage_2d<rgba32uint, ${access === 'read' ? 'read' : 'write'}>;`,
  );
}
