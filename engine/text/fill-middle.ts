/**
 * Prompts for what stands between two texts, as editors ask for it (fill in the middle). Models of code are trained on such prompts, marked with tokens of their own.
 * Source: Bavarian et al., "Efficient Training of Language Models to Fill in the Middle" (2022); the tokens and their order are those of the models' cards.
 */

/** How a model marks the parts. */
export interface MiddleForm {
  /** The prompt for what stands between two texts. */
  readonly write: (prefix: string, suffix: string) => string;
  /** Ids of tokens that begin something else, so that the middle ends before them. */
  readonly ends: readonly number[];
}

/** Spellings of the tokens before the prefix, before the suffix and before the middle. */
type Marks = readonly [prefix: string, suffix: string, middle: string];

const QWEN: Marks = ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>'];
const STARCODER: Marks = ['<fim_prefix>', '<fim_suffix>', '<fim_middle>'];
const DEEPSEEK: Marks = ['<｜fim▁begin｜>', '<｜fim▁hole｜>', '<｜fim▁end｜>'];
const CODESTRAL: Marks = ['[PREFIX]', '[SUFFIX]', '[MIDDLE]'];

/** Qwen2.5-Coder, Qwen3-Coder, CodeGemma and newer Granite; StarCoder and Granite Code; DeepSeek-Coder; Codestral, which has the suffix first and marks no middle. */
const FORMS: readonly Marks[] = [QWEN, STARCODER, DEEPSEEK, CODESTRAL];

/** What else models of code write behind a middle: padding, or the beginning of another file or repository. */
const OTHER_ENDS = ['<|fim_pad|>', '<fim_pad>', '<|file_sep|>', '<file_sep>', '<|file_separator|>', '<|repo_name|>', '<repo_name>'];

/** The form of a model's vocabulary, where `tokenId` gives the id of a spelling; undefined for a model without such tokens. */
export function middleFormOf(tokenId: (spelling: string) => number | undefined): MiddleForm | undefined {
  const marks = FORMS.find((form) => form.every((mark) => tokenId(mark) !== undefined));
  if (!marks) return undefined;
  const [before, behind, middle] = marks;
  const ends = [...marks, ...OTHER_ENDS].map(tokenId).filter((id) => id !== undefined);
  const write = (prefix: string, suffix: string): string =>
    marks === CODESTRAL ? behind + suffix + before + prefix : before + prefix + behind + suffix + middle;
  return { write, ends };
}
