/** The project's .wgsl files by their path below shaders/, inlined by the bundler. */
export function bundledShaders(): ReadonlyMap<string, string> {
  const files = import.meta.glob<string>('../../../shaders/**/*.wgsl', { query: '?raw', import: 'default', eager: true });
  return new Map(Object.entries(files).map(([path, text]) => [path.replace('../../../shaders/', ''), text]));
}
