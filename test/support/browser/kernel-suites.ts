/** Every file of kernel cases, which tell of themselves when they are read. Built, they are one file: many small ones compress badly and come one by one. */
export const files = import.meta.glob('../../kernels/*.test.ts', { eager: true });
