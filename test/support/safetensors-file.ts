/** Writes checkpoints: the counterpart of engine/weights/safetensors.ts, for tests and conversions. */

/** Values by tensor name, row-major. */
export type Tensors = Record<string, { readonly shape: readonly number[]; readonly data: Float32Array }>;

/** Bytes of a .safetensors file that holds the tensors as F32. */
export function safetensorsFile(tensors: Tensors): Uint8Array {
  let offset = 0;
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  for (const [name, { shape, data }] of Object.entries(tensors)) {
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, (offset += data.byteLength)] };
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const padded = Math.ceil(text.length / 8) * 8;
  const file = new Uint8Array(8 + padded + offset).fill(0x20, 8, 8 + padded);
  new DataView(file.buffer).setBigUint64(0, BigInt(padded), true);
  file.set(text, 8);
  let at = 8 + padded;
  for (const { data } of Object.values(tensors)) {
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return file;
}
