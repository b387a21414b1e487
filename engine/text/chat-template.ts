/** The Jinja chat template of a checkpoint: messages and tools to the text of a prompt, and what the template tells of the model. */
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
/** Of the processor of a model that also sees, whose tokenizer may have none (Mistral Small 3.1). */
const PROCESSORS = 'chat_template.json';
/** Stands behind a text that the model is to go on with: private characters, which no template writes or trims. */
const OPEN_END = '\u{f8fe}\u{f8ff}\u{f8fe}';

/** A model has those whose first token it has. */
const THOUGHTS: readonly ThoughtTags[] = [
  THINK,
  { open: '<|channel>thought', close: '<channel|>', tokens: ['<|channel>', '<channel|>'] },
  { open: '[THINK]', close: '[/THINK]', tokens: ['[THINK]', '[/THINK]'] },
];

/** Renders messages into a prompt with the Jinja template a checkpoint brings; the library gives templates raise_exception, strftime_now and tojson. */
export class ChatTemplate {
  readonly #template: BoundedTemplate | undefined;
  readonly #source: string;
  readonly #variables: Readonly<Record<string, unknown>>;
  /** How the model writes calls of tools. */
  readonly callForm: CallForm;
  /** What the model writes around its thoughts, if it has any. */
  readonly thoughts: ThoughtTags | undefined;

  /**
   * `source` undefined: a base model without a template, whose prompt is the plain text of the messages. `hasToken` tells the spellings of the model's
   * tokens.
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

  /** Takes chat_template.jinja of the folder, or chat_template of tokenizer_config.json (the one named `default` of several), or else of chat_template.json. */
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

  /** Refuses a template that no conversation can be rendered with; one that raises an exception may want other messages. */
  #tryOut(): void {
    try {
      this.render([{ role: 'user', content: 'Hi' }]);
    } catch (error) {
      const { cause } = error as EngineError;
      if (cause instanceof BudgetError) throw new EngineError('invalid_model', `the chat template cannot be used: for one short message ${cause.message}`); // prettier-ignore
    }
  }

  /** A base model's prompt lacks the special tokens that a template writes: the tokenizer has to add them. */
  get isPlain(): boolean {
    return this.#template === undefined;
  }

  /** Whether answers are in Harmony. */
  get isHarmony(): boolean {
    return isHarmony(this.#source);
  }

  /** Whether the template shows tools to the model. */
  get knowsTools(): boolean {
    return showsTools(this.#source);
  }

  /** Whether it takes them from a message of role `system`, as Phi-4-mini's does. */
  get takesToolsInMessage(): boolean {
    return /['"]tools['"] in message/.test(this.#source);
  }

  /** Whether it names them as SmolLM3's does, and prints each as a text. */
  get takesXmlTools(): boolean {
    return this.#source.includes('xml_tools');
  }

  /** The prompt up to and including the last message's text, for the model to go on with. */
  renderOpen(messages: readonly ChatMessage[], extra: Readonly<Record<string, unknown>> = {}): string {
    const last = messages.at(-1);
    if (!last) return this.render(messages, extra);
    // Looking for the text itself would find a short one, such as '<', in what the template writes behind it.
    const open = { ...last, content: textOf(last).trimEnd() + OPEN_END };
    const prompt = this.render([...messages.slice(0, -1), open], { ...extra, add_generation_prompt: false });
    const at = prompt.lastIndexOf(OPEN_END);
    return at < 0 ? prompt : prompt.slice(0, at);
  }

  /** The prompt; throws EngineError('invalid_request') when the template refuses the conversation. */
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

  /** A message as templates expect it: text content, a role they know, tool arguments as objects. */
  #plain(message: ChatMessage, read: (call: unknown) => unknown): PlainMessage {
    const text = textOf(message);
    const role = message.role === 'developer' && !this.#source.includes('developer') ? 'system' : message.role;
    const { tool_calls: made = [], ...others } = message;
    // Templates ask whether there is such a list, and take an empty one, as clients send it beside a text, for calls.
    const calls = made.length > 0 ? { tool_calls: made.map(read) } : {};
    return { ...others, role, content: text, ...calls, ...this.#thinking(message, text) };
  }

  /** gpt-oss's template has its own name for reasoning, and takes it beside a call only in the place of content. */
  #thinking({ reasoning_content: thinking, tool_calls: calls }: ChatMessage, text: string): { readonly thinking?: string } {
    return this.isHarmony && thinking !== undefined && !(calls && text !== '') ? { thinking } : {};
  }
}

/** chat_template of a JSON file: a text, or several by name. */
function configuredTemplate(file: string, configured: unknown): string | undefined {
  if (configured === undefined || configured === null) return undefined;
  const named = Array.isArray(configured) ? configured.filter(isObject) : [];
  const source = typeof configured === 'string' ? configured : (named.find(({ name }) => name === 'default') ?? named[0])?.['template'];
  if (typeof source === 'string') return source;
  throw new EngineError('invalid_model', `${file}: chat_template is ${describe(configured)}, expected a text, or a list of { name, template }`); // prettier-ignore
}

/** The text of a message, its parts joined. */
export function textOf({ content }: ChatMessage): string {
  return typeof content === 'string' ? content : (content ?? []).map((part) => part.text).join('');
}
