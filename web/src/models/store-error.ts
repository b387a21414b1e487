/** Why an operation on the store failed, or on what fills it. */
export class StoreError extends Error {
  readonly kind: 'quota' | 'network' | 'damaged' | 'unavailable' | 'busy';
  constructor(kind: StoreError['kind'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StoreError';
    this.kind = kind;
  }
}
