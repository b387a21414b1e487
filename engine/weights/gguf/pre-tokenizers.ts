/**
 * Pre-tokenizers by their names in `tokenizer.ggml.pre`: how text is split before BPE merges. A file has the name alone; the patterns are
 * llama.cpp's (src/llama-vocab.cpp), which equal those of the models' tokenizer.json. Each pattern splits the pieces that the previous one
 * left into its matches and what lies between.
 */

/** What a name in `tokenizer.ggml.pre` stands for. */
export interface PreTokenizer {
  readonly patterns: readonly string[];
  /** A piece that is itself a token is not merged. */
  readonly ignoreMerges?: boolean;
  /** Whether text begins with BOS, where the file does not say. */
  readonly addBos?: boolean;
  /** Text is normalised to Unicode NFC first. */
  readonly composed?: boolean;
}

const GPT2 = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
const CONTRACTIONS = String.raw`'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]`;
const REST = String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
const LLAMA3 = String.raw`(?:${CONTRACTIONS})|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|${REST}`;
const QWEN2 = String.raw`(?:${CONTRACTIONS})|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|${REST}`;
const QWEN35 = String.raw`(?:${CONTRACTIONS})|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
const UPPER = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`;
const LOWER = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`;
const CASED_REST = String.raw` ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
const TEKKEN = String.raw`[^\r\n\p{L}\p{N}]?${UPPER}*${LOWER}+|[^\r\n\p{L}\p{N}]?${UPPER}+${LOWER}*|\p{N}|${CASED_REST}`;
const GPT4O = String.raw`[^\r\n\p{L}\p{N}]?${UPPER}*${LOWER}+(?:${CONTRACTIONS})?|[^\r\n\p{L}\p{N}]?${UPPER}+${LOWER}*(?:${CONTRACTIONS})?|\p{N}{1,3}|${CASED_REST}`;
const HAN = String.raw`\p{Script=Han}`;
// Letters that are not Han, which are pieces of their own.
const KIMI_UPPER = String.raw`(?:(?!${HAN})${UPPER})`;
const KIMI_LOWER = String.raw`(?:(?!${HAN})${LOWER})`;
const KIMI = String.raw`${HAN}+|[^\r\n\p{L}\p{N}]?${KIMI_UPPER}*${KIMI_LOWER}+(?:${CONTRACTIONS})?|[^\r\n\p{L}\p{N}]?${KIMI_UPPER}+${KIMI_LOWER}*(?:${CONTRACTIONS})?|\p{N}{1,3}|${REST}`;
const SEED_CODER = String.raw`(?:${CONTRACTIONS})|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`;
const PORO = String.raw` ?[^(\s|.,!?…。，、।۔،)]+`;

// prettier-ignore
const DEEPSEEK_LLM = [
  String.raw`[\r\n]`,
  String.raw`\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+`,
  String.raw`\s?[!-/:-~！-／：-～‘-‟　-。]+`,
  String.raw`\s+$`,
  String.raw`[一-龥ࠀ-一가-퟿]+`,
  String.raw`\p{N}+`,
];

// prettier-ignore
const DEEPSEEK_CODER = [
  String.raw`[\r\n]`,
  String.raw`\s?\p{L}+`,
  String.raw`\s?\p{P}+`,
  String.raw`[一-龥ࠀ-一가-퟿]+`,
  String.raw`\p{N}`,
];

// prettier-ignore
const DEEPSEEK_V3 = [
  String.raw`\p{N}{1,3}`,
  String.raw`[一-龥぀-ゟ゠-ヿ]+`,
  String.raw`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_${"`"}{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
];

/** Used by llama.cpp for files that lack the key, and for "default". */
const DEFAULT: PreTokenizer = {
  patterns: [
    String.raw`[\p{P}\$\+<=>\^~\|]+`,
    String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)`,
    String.raw`\p{N}+`,
    String.raw`[0-9][0-9][0-9]`,
  ],
};

const NAMES: readonly (readonly [names: readonly string[], is: PreTokenizer])[] = [
  [['default'], DEFAULT],
  [
    ['gpt-2', 'phi-2', 'mpt', 'olmo', 'jais', 'gigachat', 'a.x-4.0', 'mellum', 'trillion', 'granite-docling', 'exaone4'],
    { patterns: [GPT2] },
  ],
  [['smollm', 'starcoder', 'refact', 'command-r', 'codeshell', 'exaone', 'minerva-7b'], { patterns: [String.raw`\p{N}`, GPT2] }],
  [['llama-bpe', 'llama3', 'llama-v3', 'falcon3', 'pixtral', 'midm-2.0', 'lfm2'], { patterns: [LLAMA3], ignoreMerges: true, addBos: true }],
  [['dbrx', 'smaug-bpe', 'chatglm-bpe'], { patterns: [LLAMA3] }],
  [['glm4'], { patterns: [LLAMA3], ignoreMerges: true }],
  [['qwen2'], { patterns: [QWEN2], composed: true }],
  [['qwen35'], { patterns: [QWEN35], composed: true }],
  [['deepseek-r1-qwen', 'stablelm2', 'megrez', 'hunyuan', 'kormo'], { patterns: [QWEN2] }],
  [['tekken'], { patterns: [TEKKEN], ignoreMerges: true, addBos: true }],
  [['gpt-4o', 'llama4', 'minimax-m2'], { patterns: [GPT4O] }],
  [['kimi-k2'], { patterns: [KIMI] }],
  [['seed-coder'], { patterns: [SEED_CODER] }],
  [['poro-chat'], { patterns: [PORO] }],
  [['viking'], { patterns: [PORO, String.raw`\p{N}`] }],
  [['deepseek-llm'], { patterns: DEEPSEEK_LLM }],
  [['deepseek-coder'], { patterns: DEEPSEEK_CODER }],
  [['deepseek-v3', 'hunyuan-dense'], { patterns: DEEPSEEK_V3 }],
];

/** Pre-tokenizers by name. */
export const PRE_TOKENIZERS: ReadonlyMap<string, PreTokenizer> = new Map(NAMES.flatMap(([names, is]) => names.map((name) => [name, is])));
