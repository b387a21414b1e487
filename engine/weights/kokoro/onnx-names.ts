/** Maps the scopes that exporters write into node names to the modules of Kokoro's PyTorch code. */

/** Modules that the exporter wraps around the model. */
const WRAPPER = /^(kmodel|model|encoder|decoder(?=\.decoder\.))\./;
/** Submodules of `predictor` that are called without it. */
const PREDICTOR = /^(F0|N|F0_proj|N_proj|shared|lstm|duration_proj|text_encoder\.lstms)\./;
/** ALBERT's layers are one layer that is called repeatedly. */
const REPEATED = /^(query|key|value|dense|ffn|ffn_output)_\d+$/;

/** The module whose weight a node reads: `/encoder/F0.0/conv1/Conv_quant` is `predictor.F0.0.conv1`. */
export function moduleOf(node: string): string {
  const scope = node.split('/').slice(0, -1);
  return canonicalName(`${scope.map((part) => part.replace(REPEATED, '$1')).join('/')}/`).replace(/\.$/, '');
}

/** A dotted or slashed path, as exporters write it, as the checkpoint's name. */
export function canonicalName(path: string): string {
  const name = path
    .replace(/^\/+/, '')
    .replaceAll('/', '.')
    .replace(WRAPPER, '')
    // Scopes of lists are doubled: cnn.0.cnn.0.0 and asr_res.asr_res.0.
    .replace(/(^|\.)(\w+)\.(\d+)\.\2\.\3\./, '$1$2.$3.')
    .replace(/(^|\.)(\w+)\.\2\.(\d+)/, '$1$2.$3');
  return PREDICTOR.test(name) ? `predictor.${name}` : name;
}
