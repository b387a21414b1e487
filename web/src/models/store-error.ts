/** Why an operation on the model store, or a download into it, failed. */
export class StoreError extends Error {
  readonly kind: 'quota' | 'network' | 'damaged' | 'unavailable' | 'busy';
  constructor(kind: StoreError['kind'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StoreError';
    this.kind = kind;
  }
}
