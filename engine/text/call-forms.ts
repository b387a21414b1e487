/** The syntaxes in which model families write tool calls. A model's chat template, or else its vocabulary, tells which one it uses. */
import { DEEPSEEK_MARKS, readDeepSeekCalls } from './deepseek-call.ts';
import { readInvokeCalls } from './invoke-call.ts';
import { BufferedCalls, JsonCall, LONGEST_HEAD, readJsonCalls } from './json-call.ts';
import type { CallPart, TaggedCall, Tools, WholeCall } from './json-call.ts';
import { readKeyedCall } from './keyed-call.ts';
import { readGemmaCall, readPythonCalls } from './loose-values.ts';
import { MistralCall } from './mistral-call.ts';
import { readNamedCalls } from './named-call.ts';
import { XmlCall } from './xml-call.ts';

/** One syntax of tool calls: how they are recognised in an answer, and how a grammar or a prompt writes them. */
export interface CallForm {
  /** Tags that begin a call. In free text, the first one triggers the grammar of strict tools. */
  readonly tags: readonly [CallTag, ...CallTag[]];
  /** Special tokens of the syntax, which must not be skipped when an answer is decoded; a model may lack some. */
  readonly tokens: readonly string[];
  /** Whether an answer that is nothing but JSON may be tool calls without tags. */
  readonly untagged: boolean;
  readonly writing: CallWriting;
}

/** A tag that begins tool calls, its closing tag, if there is one, and the parser for what follows. */
export interface CallTag {
  readonly open: string;
  readonly close?: string;
  /** A closing tag that models may write after the call although they did not write its opening one. */
  readonly stray?: string;
  /** Calls begin within reasoning too, which ends there. */
  readonly endsThoughts?: boolean;
  /** Makes a parser for one call, given the tools offered. */
  readonly read: (tools: Tools) => TaggedCall;
}

/** How tool calls are written in grammars and prompts, with JSON arguments: `begin`, then calls joined by `separator`, then `end`. The tags' parsers can read it. */
export interface CallWriting {
  readonly begin: string;
  readonly call: (name: string) => readonly [begin: string, end: string];
  readonly separator: string;
  readonly end: string;
}

const inJson = (name: string): readonly [string, string] => [`{"name": ${JSON.stringify(name)}, "arguments": `, '}'];
const inTags = (open: string, close: string) => (name: string): readonly [string, string] => [`${open}\n${inJson(name)[0]}`, `}\n${close}`]; // prettier-ignore

const HERMES_TAG: CallTag = { open: '<tool_call>', close: '</tool_call>', read: (tools) => new HermesCall(tools) };

/** Hermes: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`. Most models write it, also those that only the system message asks for it. */
export const HERMES: CallForm = {
  tags: [HERMES_TAG],
  tokens: ['<tool_call>', '</tool_call>'],
  untagged: true,
  writing: { begin: '', call: inTags('<tool_call>', '</tool_call>'), separator: '\n', end: '' },
};

/** A JSON list of calls between tags, or after an opening tag alone. */
function listed(open: string, close: string | undefined, read: CallTag['read'], gap = ''): CallForm {
  return {
    tags: [{ open, ...(close !== undefined && { close }), read }],
    tokens: [open, ...(close === undefined ? [] : [close])],
    untagged: false,
    writing: { begin: `${open}${gap}[`, call: inJson, separator: ', ', end: `]${close ?? ''}` },
  };
}

const buffered =
  (...readers: readonly ((text: string, tools: Tools) => readonly WholeCall[])[]): CallTag['read'] =>
  (tools) =>
    new BufferedCalls((text) => readers.map((read) => read(text, tools)).find((calls) => calls.length > 0) ?? []);

function gemma(open: string, close: string, mark: string): CallForm {
  const read = buffered((text, tools) => readGemmaCall(text, tools, mark));
  return {
    tags: [{ open, close, read }],
    tokens: [open, close, mark],
    untagged: false,
    writing: { begin: open, call: (name) => [`call:${name}`, close], separator: open, end: '' },
  };
}

/** Cohere's list of calls, as Command R7B and Command A write it. */
const ACTIONS = listed('<|START_ACTION|>', '<|END_ACTION|>', buffered(readJsonCalls));

/** Seed-OSS's calls, in Qwen3-Coder's form between tags of its own. */
const SEED: CallForm = {
  tags: [{ open: '<seed:tool_call>', close: '</seed:tool_call>', read: (tools) => new HermesCall(tools) }],
  tokens: ['<seed:tool_call>', '</seed:tool_call>'],
  untagged: false,
  writing: { ...HERMES.writing, call: inTags('<seed:tool_call>', '</seed:tool_call>') },
};

/** Apertus's list of calls, each an object with the tool's name as its one key. */
const NAMED = listed('<|tools_prefix|>', '<|tools_suffix|>', buffered(readNamedCalls, readJsonCalls));
const APERTUS: CallForm = {
  ...NAMED,
  tags: [{ ...NAMED.tags[0], endsThoughts: true }],
  writing: { ...NAMED.writing, call: (name) => [`{${JSON.stringify(name)}: `, '}'] },
};

/** DeepSeek's calls, with what stands before and behind the arguments of each. */
function deepSeek(head: (name: string) => string, tail: string): CallForm {
  const { begin, end, call, separator, callEnd } = DEEPSEEK_MARKS;
  return {
    tags: [{ open: begin, close: end, read: buffered(readDeepSeekCalls) }],
    tokens: [begin, end, call, separator, callEnd],
    untagged: false,
    writing: { begin, call: (name) => [call + head(name), tail + callEnd], separator: '\n', end },
  };
}

const mistral: CallTag['read'] = (tools) => new MistralCall(tools);

/**
 * Known syntaxes. The first whose marks all occur in the template is used; if there is none, the first whose `token` is in the vocabulary.
 */
const FORMS: readonly { readonly marks: readonly string[]; readonly token?: string; readonly form: CallForm }[] = [
  {
    marks: ['[TOOL_CALLS]', '[ARGS]'],
    form: {
      tags: [{ open: '[TOOL_CALLS]', read: mistral }],
      tokens: ['[TOOL_CALLS]', '[ARGS]', '[CALL_ID]'],
      untagged: false,
      writing: { begin: '[TOOL_CALLS]', call: (name) => [`${name}[ARGS]`, ''], separator: '[TOOL_CALLS]', end: '' },
    },
  },
  { marks: ['[TOOL_CALLS]'], form: { ...listed('[TOOL_CALLS]', undefined, mistral, ' '), untagged: true } },
  { marks: ['<|tool_call>'], form: gemma('<|tool_call>', '<tool_call|>', '<|"|>') },
  { marks: ['<start_function_call>'], form: gemma('<start_function_call>', '<end_function_call>', '<escape>') },
  { marks: ['<|tool_call_start|>'], token: '<|tool_call_start|>', form: listed('<|tool_call_start|>', '<|tool_call_end|>', buffered(readPythonCalls, readJsonCalls)) },
  { marks: ['<｜tool▁calls▁begin｜>', '```json'], form: deepSeek((name) => `function${DEEPSEEK_MARKS.separator}${name}\n\`\`\`json\n`, '\n```') },
  { marks: ['<｜tool▁calls▁begin｜>'], form: deepSeek((name) => name + DEEPSEEK_MARKS.separator, '') },
  { marks: ['<function_calls>'], form: listed('<function_calls>', '</function_calls>', buffered(readPythonCalls, readJsonCalls)) },
  { marks: ['<seed:tool_call>'], form: SEED },
  { marks: ['<minimax:tool_call>'], form: listed('<minimax:tool_call>', '</minimax:tool_call>', buffered(readInvokeCalls, readJsonCalls)) },
  { marks: ['<|tools_prefix|>'], form: APERTUS },
  { marks: ['<TOOLCALL>'], form: listed('<TOOLCALL>', '</TOOLCALL>', buffered(readJsonCalls)) },
  { marks: ['<tool_call>', '<function='], form: { ...HERMES, tags: [HERMES_TAG, { open: '<function=', stray: '</tool_call>', read: (tools) => new XmlCall(tools, '<function=') }] } },
  { marks: ['<tool_call>', '<arg_key>'], form: { ...HERMES, tags: [{ ...HERMES_TAG, read: buffered(readKeyedCall, readJsonCalls) }] } },
  { marks: ['<tool_call>'], form: HERMES },
  { marks: ['<|START_ACTION|>', '"tool_name"'], form: { ...ACTIONS, writing: { ...ACTIONS.writing, call: (name) => [`{"tool_name": ${JSON.stringify(name)}, "parameters": `, '}'] } } },
  { marks: ['<|/tool_call|>'], token: '<|/tool_call|>', form: { ...listed('<|tool_call|>', '<|/tool_call|>', buffered(readJsonCalls)), untagged: true } },
  { marks: ['<|tool_call|>'], form: { ...listed('<|tool_call|>', undefined, mistral), untagged: true } },
]; // prettier-ignore

/** The call syntax of a model whose template handles tools; Hermes if none is recognised. `hasToken` tells whether the vocabulary has a token of that spelling. */
export function callFormOf(template: string, hasToken: (token: string) => boolean): CallForm {
  const shown = FORMS.find(({ marks }) => marks.every((mark) => template.includes(mark)));
  return (shown ?? FORMS.find(({ token }) => token !== undefined && hasToken(token)))?.form ?? HERMES;
}

/** A call between tags: JSON, or the XML form of Qwen3-Coder, as its first characters tell. */
class HermesCall implements TaggedCall {
  readonly #tools: Tools;
  #call: TaggedCall | undefined;
  #begun = '';

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  get text(): string {
    return this.#call?.text ?? this.#begun;
  }

  get started(): boolean {
    return this.#call?.started ?? false;
  }

  push(piece: string): CallPart[] {
    if (this.#call) return this.#call.push(piece);
    this.#begun += piece;
    const begun = this.#begun.trimStart();
    if (begun.length < 2 && this.#begun.length <= LONGEST_HEAD) return [];
    this.#call = begun.startsWith('<f') ? new XmlCall(this.#tools) : new JsonCall(this.#tools);
    return this.#call.push(this.#begun);
  }

  end(): CallPart[] {
    return this.#call?.end() ?? [];
  }

  cut(): CallPart[] {
    return this.#call?.cut?.() ?? [];
  }

  goesOn(text: string, close: string): number | undefined {
    return this.#call?.goesOn ? this.#call.goesOn(text, close) : 0;
  }
}
