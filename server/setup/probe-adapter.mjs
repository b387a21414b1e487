/** Prints one line of JSON about the WebGPU adapter that Parley would use. Otherwise exits with the reason on stderr: with 1, or with 2 if no driver would help. */
const { create } = await import('webgpu').catch((error) => {
  console.error(`the npm package webgpu does not run on this system: ${error.message.split('\n')[0]}`);
  process.exit(2);
});

// Held until the process ends: collected earlier, Dawn corrupts the heap.
globalThis.dawn = create([]);
const adapter = await globalThis.dawn.requestAdapter({ powerPreference: 'high-performance' });
if (!adapter) {
  console.error('Dawn offers no adapter');
  process.exit(1);
}
globalThis.device = await adapter.requestDevice();
const { description, device, vendor, isFallbackAdapter } = adapter.info;
console.log(JSON.stringify({ name: description || device || vendor || 'unnamed adapter', software: isFallbackAdapter }));
process.exit(0);
