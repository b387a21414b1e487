/** Resolves a chat request against the model, without state: prompt tokens, sampling settings, constraint, options of the output parser. */
import type { ChatMessage, ChatRequest, ToolDefinition } from '../api.ts';
import { EngineError } from '../errors.ts';
import { CUT_NAMES, PENALTY_NAMES, samplingNumbers } from '../sampling.ts';
import type { CutName, PenaltyName, SamplingDefaults } from '../sampling.ts';
import { isPenalized } from '../scheduler/sequence.ts';
import type { LogitOptions, ResolvedSampling } from '../scheduler/sequence.ts';
import { textOf } from '../text/chat-template.ts';
import type { ChatTemplate } from '../text/chat-template.ts';
import { GRAMMAR_LIMITS, findArgumentsProblem, refuseArguments, refuseMalformed } from '../text/grammar.ts';
import type { Constraint } from '../text/grammar.ts';
import type { MiddleForm } from '../text/fill-middle.ts';
import type { LongTexts } from '../text/long-texts.ts';
import { HARMONY_CALLS, HARMONY_CONTENT } from '../text/harmony.ts';
import type { ParserOptions } from './chat-choice.ts';

/** Temperatures below this mean greedy decoding. */
const GREEDY_BELOW = 1e-6;

/** Most characters that a tokenize request may have: they take some seconds of the one thread that tokenises long texts. */
const MOST_TOKENIZED = 1_000_000;

/** The parts of the chat engine that a request is resolved against. */
interface ModelContext {
  readonly texts: LongTexts;
  readonly template: ChatTemplate;
  readonly samplingDefaults: SamplingDefaults;
  readonly vocabulary: number;
  readonly eos: ReadonlySet<number>;
  readonly middle?: MiddleForm | undefined;
}

/**
 * Tokenises a request's prompt. Also returns its text, from whose end the output parser sees whether the answer begins within reasoning; '' for a
 * prompt given as token ids. The tokenizer adds its special tokens (BOS) only to a text that no template has rendered. `check` may refuse the text
 * by throwing; `constraint` is what the answer will be held to. Throws EngineError for token ids outside the vocabulary, and for a suffix that the model has no tokens for.
 */
export async function encodePrompt(
  { texts, template, vocabulary, middle }: Pick<ModelContext, 'texts' | 'template' | 'vocabulary' | 'middle'>,
  request: ChatRequest,
  check: (text: string, param: string) => void,
  constraint?: Constraint,
): Promise<{ readonly tokens: readonly number[]; readonly text: string }> {
  const { prompt, suffix } = request;
  if (typeof prompt === 'object') {
    if (suffix !== undefined) throw new EngineError('invalid_request', "'suffix' goes with a prompt that is a text", { param: 'suffix' });
    checkTokens(prompt, vocabulary, 'prompt');
    return { tokens: prompt, text: '' };
  }
  const text = suffix === undefined ? (prompt ?? renderPrompt(template, request, constraint)) : writeMiddle(prompt ?? '', suffix, middle);
  check(text, prompt === undefined ? 'messages' : 'prompt');
  return { tokens: await texts.encode(text, { addSpecialTokens: prompt !== undefined || template.isPlain }), text };
}

/** The prompt for what stands between two texts. Throws EngineError if the model has no tokens for that. */
function writeMiddle(prefix: string, suffix: string, middle: MiddleForm | undefined): string {
  if (middle) return middle.write(prefix, suffix);
  throw new EngineError('unsupported', "this model has no tokens for filling in what stands between a prompt and a 'suffix'", {
    param: 'suffix',
  });
}

/** Tokens that end the answer to a request. */
export function endsOf({ suffix }: ChatRequest, { eos, middle }: Pick<ModelContext, 'eos' | 'middle'>): ReadonlySet<number> {
  return suffix === undefined || !middle ? eos : new Set([...eos, ...middle.ends]);
}

/** Refuses a tokenize request whose text is too long; throws EngineError. The prompt of a chat is held to the context length instead. */
export function checkTokenized(text: string, param: string): void {
  if (text.length <= MOST_TOKENIZED) return;
  throw new EngineError('invalid_request', `'${param}' has ${text.length} characters; at most ${MOST_TOKENIZED} are tokenised at once`, {
    param,
  });
}

/** Throws EngineError for a token id outside the vocabulary; `shown` is the field's name in the message, if it is not `param`. */
export function checkTokens(tokens: readonly number[], vocabulary: number, param: string, shown = param): void {
  const at = tokens.findIndex((token) => !Number.isInteger(token) || token < 0 || token >= vocabulary);
  if (at < 0) return;
  throw new EngineError('invalid_request', `'${shown}' names token ${tokens[at]}; this model has tokens 0 to ${vocabulary - 1}`, { param });
}

/** Renders messages and tools with the chat template. Tools go into a system message if the template does not handle them. */
function renderPrompt(template: ChatTemplate, request: ChatRequest, constraint: Constraint | undefined): string {
  const tools = request.toolChoice === 'none' ? [] : (request.tools ?? []);
  const messages = tools.length > 0 ? withTools(request.messages, tools, template) : request.messages;
  // gpt-oss's template concatenates the description without checking that there is one.
  const variables = {
    ...request.templateKwargs,
    ...(tools.length > 0 &&
      template.knowsTools && { tools: tools.map((tool) => asOpenAi(template.isHarmony ? { description: '', ...tool } : tool)) }),
    ...(tools.length > 0 && template.takesXmlTools && { xml_tools: tools.map(asText) }),
  };
  if (request.continueFinalMessage && messages.at(-1)?.role !== 'assistant') {
    const param = { param: 'continueFinalMessage' };
    throw new EngineError('invalid_request', "the message to be continued must be the last one, of role 'assistant'", param);
  }
  if (request.continueFinalMessage) return withoutOpenThoughts(template.renderOpen(messages, variables), template, constraint);
  const text = withoutOpenThoughts(template.render(messages, variables), template, constraint);
  return text + (template.isHarmony ? harmonyOpening(constraint) : '');
}

/**
 * Closes a reasoning block that the template opened at the prompt's end, if a grammar holds the answer from its first token: such an answer has no
 * reasoning, and would itself be written, and parsed, as reasoning.
 */
function withoutOpenThoughts(prompt: string, { thoughts }: ChatTemplate, constraint: Constraint | undefined): string {
  if (!thoughts || !prompt.trimEnd().endsWith(thoughts.open)) return prompt;
  // Written as by templates that are told not to think.
  return constraint && constraint.type !== 'text_and_calls' ? `${prompt.trimEnd()}\n\n${thoughts.close}\n\n` : prompt;
}

/** Header of the one Harmony message that a constrained answer consists of; '' for an answer without a constraint. */
function harmonyOpening(constraint: Constraint | undefined): string {
  if (!constraint) return '';
  return constraint.type === 'tool_calls' ? HARMONY_CALLS : HARMONY_CONTENT;
}

const asOpenAi = ({ strict: _, ...tool }: ToolDefinition): unknown => ({ type: 'function', function: tool });

const asText = ({ strict: _, ...tool }: ToolDefinition): string => JSON.stringify(tool);

/** Adds the tools to the messages, if the template does not take them as a variable. */
function withTools(messages: readonly ChatMessage[], tools: readonly ToolDefinition[], template: ChatTemplate): readonly ChatMessage[] {
  if (!template.knowsTools) return withToolPrompt(messages, tools);
  if (!template.takesToolsInMessage) return messages;
  const isFirst = isInstruction(messages[0]);
  const system = isFirst ? messages[0]! : { role: 'system' as const, content: 'You are a helpful assistant with some tools.' };
  return [{ ...system, tools: `[${tools.map(asText).join(',')}]` } as ChatMessage, ...messages.slice(isFirst ? 1 : 0)];
}

/** Whether a message is a system message; most templates treat the newer role `developer` as one. */
const isInstruction = (message: ChatMessage | undefined): boolean => message?.role === 'system' || message?.role === 'developer';

/** Describes the tools in the system message, in the Hermes form, which the output parser reads and most models with tool calls were trained on. */
function withToolPrompt(messages: readonly ChatMessage[], tools: readonly ToolDefinition[]): ChatMessage[] {
  const text = [
    'You may call functions. Their signatures:',
    '<tools>',
    ...tools.map((tool) => JSON.stringify(asOpenAi(tool))),
    '</tools>',
    'To call one, answer with <tool_call>{"name": <name>, "arguments": <arguments as a JSON object>}</tool_call>',
  ].join('\n');
  const [first, ...rest] = messages;
  // Templates take at most one system message.
  if (!first || !isInstruction(first)) return [{ role: 'system', content: text }, ...messages];
  return [{ ...first, content: `${textOf(first)}\n\n${text}` }, ...rest];
}

/** Sampling settings with the model's defaults filled in. Throws EngineError for token ids outside the vocabulary. */
export function resolveSampling(
  { sampling, logprobs, minTokens = 0, stopTokenIds = [], ignoreEos = false }: ChatRequest,
  { samplingDefaults, vocabulary, eos }: Pick<ModelContext, 'samplingDefaults' | 'vocabulary' | 'eos'>,
  constrained: boolean,
): ResolvedSampling {
  const resolve = (name: CutName | PenaltyName | 'temperature'): number => sampling[name] ?? samplingDefaults[name];
  const temperature = resolve('temperature');
  checkTokens(stopTokenIds, vocabulary, 'stopTokenIds', 'stop_token_ids');
  const logits: LogitOptions = {
    ...samplingNumbers(PENALTY_NAMES, resolve),
    bias: readBias(sampling.logitBias ?? {}, vocabulary),
    logprobs,
    constrained,
    minTokens,
    endTokens: minTokens > 0 ? [...new Set([...(ignoreEos ? [] : eos), ...stopTokenIds])].filter((token) => token < vocabulary) : [],
  };
  return {
    temperature: temperature < GREEDY_BELOW ? 0 : temperature,
    // A negative cut is off, as top-k -1 is. A larger top-k would wrap in its word of 32 bits.
    ...samplingNumbers(CUT_NAMES, (name) => Math.min(Math.max(0, resolve(name)), 2 ** 32 - 1)),
    seed: sampling.seed ?? Math.floor(Math.random() * Number.MAX_SAFE_INTEGER),
    ...((isPenalized(logits) || logits.bias.length > 0 || logprobs !== undefined || constrained || logits.endTokens.length > 0) && {
      logits,
    }),
  };
}

/** Reads a logit bias into pairs of token id and bias. Each id occurs once, as the device needs it, though keys may spell it twice, as 7 and 07. */
function readBias(bias: Readonly<Record<string, number>>, vocabulary: number): (readonly [number, number])[] {
  const read = Object.entries(bias).map(([key, value]) => {
    const token = Number(key);
    if (!Number.isInteger(token) || token < 0 || token >= vocabulary) {
      throw new EngineError('invalid_request', `a bias is given for token ${key}; this model has tokens 0 to ${vocabulary - 1}`, { param: 'sampling.logitBias' }); // prettier-ignore
    }
    return [token, value] as const;
  });
  return [...new Map(read)];
}

/**
 * Most characters of JSON that strict tools may have to be held to a grammar when `toolChoice` does not force a call. Larger ones take longer to compile
 * than the grammar is worth: 40 tools of ten properties are 24,000 characters and take 3 s with a vocabulary of 151,665.
 */
const STRICT_CHARACTERS = 32_768;

/**
 * The grammar that the answer is held to; undefined = none. With optional tool calls there is one only for a response format or for strict tools,
 * since the model may also just talk. Throws EngineError for tool parameters that are not a valid schema or cannot be enforced where they must be.
 */
export function constraintOf(
  { responseFormat, tools = [], toolChoice, parallelToolCalls = true }: ChatRequest,
  { callForm: form, isHarmony }: Pick<ChatTemplate, 'callForm' | 'isHarmony'>,
): Constraint | undefined {
  const named = typeof toolChoice === 'object';
  const forced = named ? tools.filter(({ name }) => name === toolChoice.name) : toolChoice === 'required' ? tools : [];
  const strict = toolChoice === 'none' || isHarmony ? [] : tools.filter((tool) => tool.strict === true);
  tools.forEach((tool, i) => {
    // The other tools are only shown to the model, so their schemas may use keywords that cannot be enforced.
    const check = forced.includes(tool) || (forced.length === 0 && strict.includes(tool)) ? refuseArguments : refuseMalformed;
    if (tool.parameters !== undefined) check(tool.parameters, `tools[${i}].parameters`);
  });
  const calls = { type: 'tool_calls', single: named || !parallelToolCalls, form } as const;
  if (named || toolChoice === 'required') return { ...calls, tools: forced };
  if (toolChoice === 'none' || tools.length === 0) return responseFormat;
  const asObject = (tool: ToolDefinition): ToolDefinition => ({ ...tool, parameters: { type: 'object' } });
  if (responseFormat) {
    // Optional tools whose schema cannot be enforced must not make the request fail: any object is accepted for them.
    const isLarge = JSON.stringify(tools).length > GRAMMAR_LIMITS.toolCharacters;
    const loose = tools.map((tool) => (isLarge || findArgumentsProblem(tool.parameters ?? {}) ? asObject(tool) : tool));
    return { type: 'json_or_calls', json: responseFormat, calls: { ...calls, tools: loose } };
  }
  if (strict.length === 0 || JSON.stringify(strict).length > STRICT_CHARACTERS) return undefined;
  return { type: 'text_and_calls', calls: { ...calls, tools: tools.map((tool) => (tool.strict === true ? tool : asObject(tool))) } };
}

/** Options of the output parser for this request; `constraint` is the answer's grammar, `prompt` the text before it. */
export function parserOptions(
  request: ChatRequest,
  prompt: string,
  { isHarmony, callForm: form, thoughts }: Pick<ChatTemplate, 'isHarmony' | 'callForm' | 'thoughts'>,
  constraint: Constraint | undefined,
): ParserOptions {
  if (request.prompt !== undefined) return {};
  const { toolChoice } = request;
  const forced = toolChoice === 'required' || typeof toolChoice === 'object';
  const offered = toolChoice === 'none' ? [] : (request.tools ?? []);
  const tools = offered.map(({ name }) => name);
  const separate = request.separateReasoning !== false;
  // A constrained answer is one Harmony message whose header is in the prompt, so it is parsed as plain text.
  if (isHarmony && !constraint)
    return { harmony: { prompt, separate, tools, ...(request.parallelToolCalls === false && { single: true }) } };
  // An answer held to a grammar from its first token has no reasoning, but its strings may contain text that looks like reasoning tags.
  const mayThink = !constraint || constraint.type === 'text_and_calls';
  const reasoning = thoughts && separate && mayThink ? { opened: prompt.trimEnd().endsWith(thoughts.open), tags: thoughts } : undefined;
  const held = !forced && request.responseFormat !== undefined;
  return {
    reasoning,
    ...(tools.length > 0 && { tools, parameters: offered.map(({ parameters }) => parameters), form }),
    tokens: [...(tools.length > 0 ? form.tokens : []), ...(thoughts?.tokens ?? [])],
    forced,
    held,
    continued: request.continueFinalMessage === true,
    single: request.parallelToolCalls === false,
  };
}
