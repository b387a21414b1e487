/** A checkpoint's Jinja chat template: it renders messages and tools into a prompt, and reveals how the model writes reasoning and tool calls. */
import type { ChatMessage } from '../api.ts';
import { EngineError } from '../errors.ts';
import { describe, isObject } from '../util/json.ts';
import type { ModelFolder } from '../weights/model-folder.ts';
import { BoundedTemplate, BudgetError } from './bounded-template.ts';
import { callFormOf, HERMES } from './call-forms.ts';
import type { CallForm } from './call-forms.ts';
import { isHarmony } from './harmony.ts';
import { THINK } from './output-parser.ts';
import type { ThoughtTags } from './output-parser.ts';
import { callReader, fitToolMessages, showsTools } from './tool-messages.ts';
import type { PlainMessage } from './tool-messages.ts';
import type { Tokenizer } from './tokenizer.ts';

const FILE = 'chat_template.jinja';
/** The processor's template file of a vision model, whose tokenizer may come without a template (Mistral Small 3.1). */
const PROCESSORS = 'chat_template.json';
/** Marks the end of a message that the model is to continue: private-use characters, which no template writes or trims. */
const OPEN_END = '\u{f8fe}\u{f8ff}\u{f8fe}';

/** Known tags of reasoning. A model uses the first whose opening token is in its vocabulary. */
const THOUGHTS: readonly ThoughtTags[] = [
  // Apertus, whose vocabulary has the next ones too, unused.
  { open: '<|inner_prefix|>', close: '<|inner_suffix|>', tokens: ['<|inner_prefix|>', '<|inner_suffix|>'] },
  THINK,
  { open: '<|channel>thought', close: '<channel|>', tokens: ['<|channel>', '<channel|>'] },
  { open: '<|START_THINKING|>', close: '<|END_THINKING|>', tokens: ['<|START_THINKING|>', '<|END_THINKING|>'] },
  { open: '<seed:think>', close: '</seed:think>', tokens: ['<seed:think>', '</seed:think>'] },
  { open: '[THINK]', close: '[/THINK]', tokens: ['[THINK]', '[/THINK]'] },
];

/** Renders messages into a prompt with a checkpoint's template; the Jinja library supplies raise_exception, strftime_now and tojson. */
export class ChatTemplate {
  readonly #template: BoundedTemplate | undefined;
  readonly #source: string;
  readonly #variables: Readonly<Record<string, unknown>>;
  /** How the model writes tool calls. */
  readonly callForm: CallForm;
  /** Tags that the model writes around its reasoning; undefined for a model without reasoning. */
  readonly thoughts: ThoughtTags | undefined;

  /**
   * `source` is undefined for a base model without a template: its prompt is the text of the messages, joined by line breaks. `variables` are the template's
   * constants, such as bos_token. `hasToken` tells whether the vocabulary has a token of that spelling. Throws EngineError('invalid_model') for a template that does not parse.
   */
  constructor(source: string | undefined, variables: Readonly<Record<string, unknown>> = {}, hasToken = (_: string): boolean => false) {
    this.#source = source ?? '';
    this.callForm = this.knowsTools ? callFormOf(this.#source, hasToken) : HERMES;
    this.thoughts = THOUGHTS.find(({ tokens: [token] }) => hasToken(token!));
    this.#variables = variables;
    try {
      this.#template = source === undefined ? undefined : new BoundedTemplate(source);
    } catch (error) {
      throw new EngineError(
        'invalid_model',
        `the chat template does not parse (${error instanceof Error ? error.message : String(error)})`,
        { cause: error },
      );
    }
  }

  /**
   * Reads the template of a folder: chat_template.jinja, else `chat_template` of tokenizer_config.json (of several, the one named `default`), else that of
   * chat_template.json. Throws EngineError('invalid_model') for a template that does not parse or takes too long.
   */
  static async load(folder: ModelFolder, tokenizer: Tokenizer): Promise<ChatTemplate> {
    const source = (await folder.has(FILE))
      ? await folder.text(FILE)
      : (configuredTemplate('tokenizer_config.json', tokenizer.config.chat_template) ??
        configuredTemplate(PROCESSORS, (await folder.json(PROCESSORS, { optional: true }))['chat_template']));
    const variables = { bos_token: tokenizer.special('bos_token') ?? '', eos_token: tokenizer.special('eos_token') ?? '' };
    const template = new ChatTemplate(source, variables, (token) => tokenizer.tokenId(token) !== undefined);
    template.#tryOut();
    return template;
  }

  /** Refuses a template that exceeds its budget on one short message. Other errors are let pass: the template may just want other messages. */
  #tryOut(): void {
    try {
      this.render([{ role: 'user', content: 'Hi' }]);
    } catch (error) {
      const { cause } = error as EngineError;
      if (cause instanceof BudgetError) throw new EngineError('invalid_model', `the chat template cannot be used: for one short message ${cause.message}`); // prettier-ignore
    }
  }

  /** Its Jinja source; undefined for a base model without one. */
  get source(): string | undefined {
    return this.isPlain ? undefined : this.#source;
  }

  /** Whether there is no template (a base model). The tokenizer then has to add the special tokens that a template would write. */
  get isPlain(): boolean {
    return this.#template === undefined;
  }

  /** Whether the model answers in gpt-oss's Harmony format. */
  get isHarmony(): boolean {
    return isHarmony(this.#source);
  }

  /** Whether the template shows tools to the model. */
  get knowsTools(): boolean {
    return showsTools(this.#source);
  }

  /** Whether the template takes tools from the `tools` field of the system message, as Phi-4-mini's does. */
  get takesToolsInMessage(): boolean {
    return /['"]tools['"] in message/.test(this.#source);
  }

  /** Whether the template takes tools as strings in the variable `xml_tools`, as SmolLM3's does. */
  get takesXmlTools(): boolean {
    return this.#source.includes('xml_tools');
  }

  /** Renders the prompt up to the end of the last message's text, so that the model continues that message. Throws like `render`. */
  renderOpen(messages: readonly ChatMessage[], extra: Readonly<Record<string, unknown>> = {}): string {
    const last = messages.at(-1);
    if (!last) return this.render(messages, extra);
    // A mark is needed: a short text such as '<' may also occur in what the template writes after it.
    const open = { ...last, content: textOf(last).trimEnd() + OPEN_END };
    const prompt = this.render([...messages.slice(0, -1), open], { ...extra, add_generation_prompt: false });
    const at = prompt.lastIndexOf(OPEN_END);
    return at < 0 ? prompt : prompt.slice(0, at);
  }

  /** Renders the prompt, with the header of the answer at its end. Throws EngineError('invalid_request') if the template refuses the messages. */
  render(messages: readonly ChatMessage[], extra: Readonly<Record<string, unknown>> = {}): string {
    const read = callReader(this.#source);
    const given = messages.map((message) => this.#plain(message, read));
    try {
      const plain = fitToolMessages(given, this.#source, this.callForm.writing);
      if (!this.#template) return plain.map(({ content }) => content).join('\n');
      return this.#template.render({
        ...this.#variables,
        add_generation_prompt: true,
        ...extra,
        messages: plain,
      });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new EngineError('invalid_request', `the model's chat template refuses these messages: ${reason}`, { param: 'messages', cause: error }); // prettier-ignore
    }
  }

  /** Converts a message to what templates expect: content as one string, a role that they know, and arguments as `read` gives them. */
  #plain(message: ChatMessage, read: (call: unknown) => unknown): PlainMessage {
    const text = textOf(message);
    const role = message.role === 'developer' && !this.#source.includes('developer') ? 'system' : message.role;
    const { tool_calls: made = [], ...others } = message;
    // Templates only ask whether `tool_calls` is there, and so take an empty list, which some clients send beside text, for calls.
    const calls = made.length > 0 ? { tool_calls: made.map(read) } : {};
    return { ...others, role, content: text, ...calls, ...this.#thinking(message, text) };
  }

  /** gpt-oss's template calls reasoning `thinking`, and refuses it beside a tool call that also has content. */
  #thinking({ reasoning_content: thinking, tool_calls: calls }: ChatMessage, text: string): { readonly thinking?: string } {
    return this.isHarmony && thinking !== undefined && !(calls && text !== '') ? { thinking } : {};
  }
}

/** The `chat_template` of a JSON file: a string, or a list of named ones. Throws EngineError('invalid_model') for anything else. */
function configuredTemplate(file: string, configured: unknown): string | undefined {
  if (configured === undefined || configured === null) return undefined;
  const named = Array.isArray(configured) ? configured.filter(isObject) : [];
  const source = typeof configured === 'string' ? configured : (named.find(({ name }) => name === 'default') ?? named[0])?.['template'];
  if (typeof source === 'string') return source;
  throw new EngineError('invalid_model', `${file}: chat_template is ${describe(configured)}, expected a text, or a list of { name, template }`); // prettier-ignore
}

/** The text of a message: its content, or its text parts concatenated. */
export function textOf({ content }: ChatMessage): string {
  return typeof content === 'string' ? content : (content ?? []).map((part) => part.text).join('');
}
