/**
 * Derives tokenizer.json and tokenizer_config.json from a GGUF file: byte-level BPE (`gpt2`), SentencePiece BPE with scores (`llama`) and
 * with merges (`gemma4`).
 */
import type { Json } from '../../util/json.ts';
import type { Metadata } from './metadata.ts';
import { PRE_TOKENIZERS } from './pre-tokenizers.ts';
import type { PreTokenizer } from './pre-tokenizers.ts';
import { KIND, expectLength, readVocabulary } from './vocabulary.ts';
import type { GgufVocabulary } from './vocabulary.ts';

/** Tokenizer pipelines by `tokenizer.ggml.model`. */
const PIPELINES: ReadonlyMap<string, (metadata: Metadata, vocabulary: GgufVocabulary) => Json> = new Map([
  ['gpt2', byteLevel],
  ['llama', sentencePiece],
  ['gemma4', gemma],
]);

/** The file's tokenizer.json; throws EngineError('invalid_model') that says what is missing, wrong or not known. */
export function tokenizerOf(metadata: Metadata): Json {
  const vocabulary = readVocabulary(metadata);
  const pipeline = pipelineOf(metadata, vocabulary);
  const { tokens, kinds } = vocabulary;
  const takesSpace = isPhi3(metadata);
  const added = tokens.flatMap((content, id) => {
    const special = kinds[id] === KIND.control || kinds[id] === KIND.unknown;
    const rstrip = takesSpace && !PLAIN_IN_PHI3.has(content);
    return special || kinds[id] === KIND.added
      ? [{ id, content, single_word: false, lstrip: false, rstrip, normalized: false, special }]
      : [];
  });
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added,
    post_processor: framing(metadata, vocabulary),
    ...pipeline,
  };
}

/**
 * Whether added tokens take the white space after them, as those of Phi-3 and 3.5 do: the template writes it, but the model never saw it.
 * No key says so. llama.cpp knows these models by their names (src/llama-vocab.cpp), which others' files change; they are the only ones of
 * this architecture with SentencePiece.
 */
function isPhi3(metadata: Metadata): boolean {
  return metadata.text('general.architecture') === 'phi3' && metadata.text('tokenizer.ggml.model') === 'llama';
}

/** Added tokens of Phi-3 that take no white space. */
const PLAIN_IN_PHI3: ReadonlySet<string> = new Set(['<unk>', '<s>', '<|endoftext|>']);

/** The file's tokenizer_config.json: the chat template, and the tokens that templates may write. */
export function tokenizerConfigOf(metadata: Metadata): Json {
  const vocabulary = readVocabulary(metadata);
  const { tokens, bos, ends, unknown } = vocabulary;
  const spelled = (id: number | undefined): string | null => (id === undefined ? null : tokens[id]!);
  return {
    tokenizer_class: 'PreTrainedTokenizerFast',
    clean_up_tokenization_spaces: false,
    bos_token: spelled(bos),
    eos_token: spelled(ends[0]),
    unk_token: spelled(unknown),
    chat_template: templateOf(metadata, vocabulary),
  };
}

/**
 * The chat template, with BOS put first if the file adds BOS and the template does not write it. llama.cpp adds BOS to a rendered prompt in
 * any case (common/chat.cpp), so exporters remove it from templates (unsloth, fix_tokenizer_bos_token); here a rendered prompt has what its
 * template writes.
 */
function templateOf(metadata: Metadata, { tokens, bos }: GgufVocabulary): string | null {
  const template = metadata.text('tokenizer.chat_template') ?? null;
  if (template === null || bos === undefined || !addsBos(metadata)) return template;
  return template.includes('bos_token') || template.includes(tokens[bos]!) ? template : `{{ bos_token }}${template}`;
}

/** Whether text begins with BOS: as the file says, or as llama.cpp decides it for the kind of tokenizer. */
function addsBos(metadata: Metadata): boolean {
  const isByteLevel = metadata.text('tokenizer.ggml.model') === 'gpt2';
  return metadata.flag('tokenizer.ggml.add_bos_token') ?? (!isByteLevel || preTokenizerOf(metadata).addBos === true);
}

/** The file's generation_config.json: end tokens only, since a file has no sampling settings. */
export function generationOf(metadata: Metadata): Json {
  const { bos, ends } = readVocabulary(metadata);
  return { bos_token_id: bos ?? null, eos_token_id: [...ends] };
}

function pipelineOf(metadata: Metadata, vocabulary: GgufVocabulary): Json {
  const model = metadata.text('tokenizer.ggml.model') ?? metadata.refuse('tokenizer.ggml.model is missing: it has no tokenizer');
  const pipeline = PIPELINES.get(model);
  if (!pipeline) metadata.refuse(`its tokenizer is ${JSON.stringify(model)}; tokenizers ${[...PIPELINES.keys()].join(', ')} are read`);
  return pipeline(metadata, vocabulary);
}

/** The post-processor: text with special tokens begins with BOS and ends with EOS as the file says; null for neither. */
function framing(metadata: Metadata, { tokens, bos, ends }: GgufVocabulary): Json | null {
  const first = addsBos(metadata) ? bos : undefined;
  const last = metadata.flag('tokenizer.ggml.add_eos_token') ? ends[0] : undefined;
  const frame = (id: number | undefined): readonly Json[] => (id === undefined ? [] : [{ SpecialToken: { id: tokens[id], type_id: 0 } }]);
  const framed = [...frame(first), { Sequence: { id: 'A', type_id: 0 } }, ...frame(last)];
  if (framed.length === 1) return null;
  const special = [first, last].flatMap((id) =>
    id === undefined ? [] : [[tokens[id]!, { id: tokens[id], ids: [id], tokens: [tokens[id]] }] as const],
  );
  return {
    type: 'TemplateProcessing',
    single: framed,
    pair: [...framed, { Sequence: { id: 'B', type_id: 1 } }],
    special_tokens: Object.fromEntries(special),
  };
}

/** Token ids by token. Unused tokens, which pad the vocabulary, are left out. A token may be called __proto__. */
function idsOf({ tokens, kinds }: GgufVocabulary): Readonly<Record<string, number>> {
  return Object.fromEntries(tokens.flatMap((token, id) => (kinds[id] === KIND.unused ? [] : [[token, id] as const])));
}

const BPE = { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: false, byte_fallback: false, ignore_merges: false }; // prettier-ignore

function preTokenizerOf(metadata: Metadata): PreTokenizer {
  const name = metadata.text('tokenizer.ggml.pre') ?? 'default';
  return PRE_TOKENIZERS.get(name) ?? metadata.refuse(`its pre-tokenizer is ${JSON.stringify(name)} (tokenizer.ggml.pre); known are ${[...PRE_TOKENIZERS.keys()].join(', ')}`); // prettier-ignore
}

function byteLevel(metadata: Metadata, vocabulary: GgufVocabulary): Json {
  const pre = preTokenizerOf(metadata);
  const splits = pre.patterns.map((pattern) => ({ type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false }));
  // `add_space_prefix` is ignored: llama.cpp reads it for SentencePiece only, and here it would apply to every piece that the patterns
  // split off.
  const bytes = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
  return {
    normalizer: pre.composed ? { type: 'NFC' } : null,
    pre_tokenizer: { type: 'Sequence', pretokenizers: [...splits, bytes] },
    decoder: bytes,
    model: { ...BPE, ignore_merges: pre.ignoreMerges ?? false, vocab: idsOf(vocabulary), merges: givenMerges(metadata) },
  };
}

function givenMerges(metadata: Metadata): readonly (readonly [string, string])[] {
  const merges = metadata.texts('tokenizer.ggml.merges') ?? metadata.refuse('tokenizer.ggml.merges is missing');
  return merges.map((merge) => {
    // In some converters' files the first part itself begins with a space.
    const at = merge.indexOf(' ', 1);
    return at < 0 || at === merge.length - 1 ? metadata.refuse(`tokenizer.ggml.merges has ${JSON.stringify(merge.slice(0, 80))}, expected two parts`) : [merge.slice(0, at), merge.slice(at + 1)]; // prettier-ignore
  });
}

/** SentencePiece's mark of a space. */
const SPACE = '\u2581';

function sentencePiece(metadata: Metadata, vocabulary: GgufVocabulary): Json {
  const scores = metadata.numbers('tokenizer.ggml.scores') ?? metadata.refuse('tokenizer.ggml.scores is missing');
  expectLength(metadata, 'tokenizer.ggml.scores', scores.length, vocabulary.tokens.length);
  const nan = scores.findIndex((score) => Number.isNaN(score));
  if (nan >= 0) metadata.refuse(`tokenizer.ggml.scores has NaN at token ${nan}`);
  return pieces(vocabulary, metadata.flag('tokenizer.ggml.add_space_prefix') ?? true, mergesOf(metadata, vocabulary, scores));
}

/** Gemma 4's SentencePiece BPE, with merges as the file lists them. */
function gemma(metadata: Metadata, vocabulary: GgufVocabulary): Json {
  return pieces(vocabulary, metadata.flag('tokenizer.ggml.add_space_prefix') ?? false, givenMerges(metadata));
}

/** A SentencePiece BPE: spaces become SPACE, and byte tokens spell what no piece does. */
function pieces(vocabulary: GgufVocabulary, prefixed: boolean, merges: readonly (readonly [string, string])[]): Json {
  const mark = { type: 'Replace', pattern: { String: ' ' }, content: SPACE };
  const unmark = { type: 'Replace', pattern: { String: SPACE }, content: ' ' };
  const strip = { type: 'Strip', content: ' ', start: 1, stop: 0 };
  const { tokens, unknown } = vocabulary;
  return {
    normalizer: { type: 'Sequence', normalizers: [...(prefixed ? [{ type: 'Prepend', prepend: SPACE }] : []), mark] },
    pre_tokenizer: null,
    decoder: { type: 'Sequence', decoders: [unmark, { type: 'ByteFallback' }, { type: 'Fuse' }, ...(prefixed ? [strip] : [])] },
    model: { ...BPE, unk_token: unknown === undefined ? null : tokens[unknown], fuse_unk: true, byte_fallback: true, vocab: idsOf(vocabulary), merges }, // prettier-ignore
  };
}

/** Most merges. Published vocabularies have up to 600,000; a megabyte of runs of a few characters would make a million. */
const MAX_MERGES = 2 ** 20;

/**
 * SentencePiece merges the two neighbours that make the piece with the highest score. As a list of merges, ordered by score: every split of
 * a piece into two pieces (transformers' generate_merges).
 */
function mergesOf(
  metadata: Metadata,
  { tokens, kinds }: GgufVocabulary,
  scores: readonly number[],
): readonly (readonly [string, string])[] {
  const isPiece = (id: number): boolean => kinds[id] === KIND.normal || kinds[id] === KIND.added;
  const pieces = new Set(tokens.filter((_, id) => isPiece(id)));
  const merges: { readonly parts: readonly [string, string]; readonly score: number }[] = [];
  tokens.forEach((token, id) => {
    if (!isPiece(id)) return;
    for (let cut = 1; cut < token.length; cut++) {
      const parts = [token.slice(0, cut), token.slice(cut)] as const;
      if (pieces.has(parts[0]) && pieces.has(parts[1])) merges.push({ parts, score: scores[id]! });
    }
    if (merges.length > MAX_MERGES) metadata.refuse(`its tokens can be merged in more than ${MAX_MERGES} ways; no more are read`);
  });
  return merges.sort((a, b) => b.score - a.score || b.parts[0].length - a.parts[0].length).map(({ parts }) => parts);
}
