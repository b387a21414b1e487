/** Every file of kernel cases of a page's kernels, which tell of themselves when they are read. Built, they are one file: many small ones compress badly and come one by one. */
export const files = import.meta.glob(['../../kernels/*.test.ts', '!../../kernels/linear-matrix.test.ts'], { eager: true });
