/** Copies of the same weights in other types, weights in Mistral's own names, and adapters. */
const NO_MODEL = /^(consolidated|adapter_)|\.(fp16|fp32|bf16|int8)/;

/** The one file of safetensors among a folder's that may be a model's weights under a name of its own, as old GPTQ repositories have it; undefined for none or several. */
export function loneSafetensors(names: readonly string[]): string | undefined {
  const found = names.filter((name) => /^[^/\\]+\.safetensors$/.test(name) && !NO_MODEL.test(name));
  return found.length === 1 ? found[0] : undefined;
}
