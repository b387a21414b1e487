/** What a chat request means for the model: prompt, sampling settings, constraint. No state. */
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
import type { LongTexts } from '../text/long-texts.ts';
import { HARMONY_CALLS, HARMONY_CONTENT } from '../text/harmony.ts';
import type { ParserOptions } from './chat-choice.ts';

/** Temperatures below this are greedy. */
const GREEDY_BELOW = 1e-6;

/** Characters that are tokenised for their own sake: some seconds of a thread that all long texts share. */
const MOST_TOKENIZED = 1_000_000;

/** What of the chat engine a request is resolved against. */
interface ModelContext {
  readonly texts: LongTexts;
  readonly template: ChatTemplate;
  readonly samplingDefaults: SamplingDefaults;
  readonly vocabulary: number;
  readonly eos: ReadonlySet<number>;
}

/**
 * The prompt's tokens, and its text as far as the answer's meaning hangs on it. A text without a template gets the tokenizer's special tokens.
 * `check` may refuse the text by throwing.
 */
export async function encodePrompt(
  { texts, template, vocabulary }: Pick<ModelContext, 'texts' | 'template' | 'vocabulary'>,
  request: ChatRequest,
  check: (text: string, param: string) => void,
): Promise<{ readonly tokens: readonly number[]; readonly text: string }> {
  const { prompt } = request;
  if (typeof prompt === 'object') {
    checkTokens(prompt, vocabulary, 'prompt');
    return { tokens: prompt, text: '' };
  }
  const text = prompt ?? renderPrompt(template, request);
  check(text, prompt === undefined ? 'messages' : 'prompt');
  return { tokens: await texts.encode(text, { addSpecialTokens: prompt !== undefined || template.isPlain }), text };
}

/** Throws EngineError for a text that is too long to be tokenised for its own sake; a prompt is held to the context instead. */
export function checkTokenized(text: string, param: string): void {
  if (text.length <= MOST_TOKENIZED) return;
  throw new EngineError('invalid_request', `'${param}' has ${text.length} characters; at most ${MOST_TOKENIZED} are tokenised at once`, {
    param,
  });
}

/** Throws EngineError for tokens that do not exist. */
export function checkTokens(tokens: readonly number[], vocabulary: number, param: string, shown = param): void {
  const at = tokens.findIndex((token) => !Number.isInteger(token) || token < 0 || token >= vocabulary);
  if (at < 0) return;
  throw new EngineError('invalid_request', `'${shown}' names token ${tokens[at]}; this model has tokens 0 to ${vocabulary - 1}`, { param });
}

/** The prompt's text. Tools go to the template, or into a system message where the template does not know them. */
function renderPrompt(template: ChatTemplate, request: ChatRequest): string {
  const tools = request.toolChoice === 'none' ? [] : (request.tools ?? []);
  const messages = tools.length > 0 ? withTools(request.messages, tools, template) : request.messages;
  // gpt-oss's template joins the description to other text, there or not.
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
  if (request.continueFinalMessage) return withoutOpenThoughts(template.renderOpen(messages, variables), request, template);
  const text = withoutOpenThoughts(template.render(messages, variables), request, template);
  return text + (template.isHarmony ? harmonyOpening(request, template) : '');
}

/** A prompt that begins the model's thoughts ends them where a grammar holds all of the answer: that has none, and would be taken for one. */
function withoutOpenThoughts(prompt: string, request: ChatRequest, template: ChatTemplate): string {
  const { thoughts } = template;
  if (!thoughts || !prompt.trimEnd().endsWith(thoughts.open)) return prompt;
  const constraint = constraintOf(request, template);
  // As templates write it that are told not to think.
  return constraint && constraint.type !== 'text_and_calls' ? `${prompt.trimEnd()}\n\n${thoughts.close}\n\n` : prompt;
}

/** The header of the only message that an answer has which is held to a grammar. */
function harmonyOpening(request: ChatRequest, template: ChatTemplate): string {
  const constraint = constraintOf(request, template);
  if (!constraint) return '';
  return constraint.type === 'tool_calls' ? HARMONY_CALLS : HARMONY_CONTENT;
}

const asOpenAi = ({ strict: _, ...tool }: ToolDefinition): unknown => ({ type: 'function', function: tool });

const asText = ({ strict: _, ...tool }: ToolDefinition): string => JSON.stringify(tool);

/** The messages, which bring the tools where the template has no other place for them. */
function withTools(messages: readonly ChatMessage[], tools: readonly ToolDefinition[], template: ChatTemplate): readonly ChatMessage[] {
  if (!template.knowsTools) return withToolPrompt(messages, tools);
  if (!template.takesToolsInMessage) return messages;
  const isFirst = isInstruction(messages[0]);
  const system = isFirst ? messages[0]! : { role: 'system' as const, content: 'You are a helpful assistant with some tools.' };
  return [{ ...system, tools: `[${tools.map(asText).join(',')}]` } as ChatMessage, ...messages.slice(isFirst ? 1 : 0)];
}

/** A message of the newer role is a system message to most templates. */
const isInstruction = (message: ChatMessage | undefined): boolean => message?.role === 'system' || message?.role === 'developer';

/** The Hermes form, which the output parser reads and most models with tools were trained on. */
function withToolPrompt(messages: readonly ChatMessage[], tools: readonly ToolDefinition[]): ChatMessage[] {
  const text = [
    'You may call functions. Their signatures:',
    '<tools>',
    ...tools.map((tool) => JSON.stringify(asOpenAi(tool))),
    '</tools>',
    'To call one, answer with <tool_call>{"name": <name>, "arguments": <arguments as a JSON object>}</tool_call>',
  ].join('\n');
  const [first, ...rest] = messages;
  // Templates take one such message, if any.
  if (!first || !isInstruction(first)) return [{ role: 'system', content: text }, ...messages];
  return [{ ...first, content: `${textOf(first)}\n\n${text}` }, ...rest];
}

/** Settings with the model's defaults; throws EngineError for tokens that do not exist. */
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
    // No cut is negative: -1 as top-k is off.
    ...samplingNumbers(CUT_NAMES, (name) => Math.max(0, resolve(name))),
    seed: sampling.seed ?? Math.floor(Math.random() * Number.MAX_SAFE_INTEGER),
    ...((isPenalized(logits) || logits.bias.length > 0 || logprobs !== undefined || constrained || logits.endTokens.length > 0) && {
      logits,
    }),
  };
}

/** Each token once, as the device wants it: keys may spell one in several ways, such as 7 and 07. */
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

/** Of strict tools that need not be called: a grammar of more takes longer than it is worth (40 tools of ten properties, 24,000: 3 s with 151,665 tokens). */
const STRICT_CHARACTERS = 32_768;

/** What the answer is held to by construction; with tools of choice `auto` only where it has a format: else the model may also just talk. */
export function constraintOf(
  { responseFormat, tools = [], toolChoice, parallelToolCalls = true }: ChatRequest,
  { callForm: form, isHarmony }: Pick<ChatTemplate, 'callForm' | 'isHarmony'>,
): Constraint | undefined {
  const named = typeof toolChoice === 'object';
  const forced = named ? tools.filter(({ name }) => name === toolChoice.name) : toolChoice === 'required' ? tools : [];
  const strict = toolChoice === 'none' || isHarmony ? [] : tools.filter((tool) => tool.strict === true);
  tools.forEach((tool, i) => {
    // Others are only shown to the model: their schemas may say what cannot be enforced.
    const check = forced.includes(tool) || (forced.length === 0 && strict.includes(tool)) ? refuseArguments : refuseMalformed;
    if (tool.parameters !== undefined) check(tool.parameters, `tools[${i}].parameters`);
  });
  const calls = { type: 'tool_calls', single: named || !parallelToolCalls, form } as const;
  if (named || toolChoice === 'required') return { ...calls, tools: forced };
  if (toolChoice === 'none' || tools.length === 0) return responseFormat;
  const asObject = (tool: ToolDefinition): ToolDefinition => ({ ...tool, parameters: { type: 'object' } });
  if (responseFormat) {
    // What of them cannot be enforced must not keep the answer from being given.
    const isLarge = JSON.stringify(tools).length > GRAMMAR_LIMITS.toolCharacters;
    const loose = tools.map((tool) => (isLarge || findArgumentsProblem(tool.parameters ?? {}) ? asObject(tool) : tool));
    return { type: 'json_or_calls', json: responseFormat, calls: { ...calls, tools: loose } };
  }
  if (strict.length === 0 || JSON.stringify(strict).length > STRICT_CHARACTERS) return undefined;
  return { type: 'text_and_calls', calls: { ...calls, tools: tools.map((tool) => (tool.strict === true ? tool : asObject(tool))) } };
}

/** How the answer's text is taken apart; `constraint` is what holds it. */
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
  // What a grammar holds has no messages of its own.
  if (isHarmony && !constraint)
    return { harmony: { prompt, separate, tools, ...(request.parallelToolCalls === false && { single: true }) } };
  // What a grammar holds from its first token on has no thoughts, and may say what looks like them.
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
