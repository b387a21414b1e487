/** 1 for the same sound however loud, near 0 for another or a shifted one; as far as both go. */
export function likeness(a: Float32Array, b: Float32Array): number {
  let [product, left, right] = [0, 0, 0];
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    product += a[i]! * b[i]!;
    left += a[i]! ** 2;
    right += b[i]! ** 2;
  }
  return product / Math.sqrt(left * right);
}
