/** Calls of tools as the families of models write them: which form a template asks for, and what is read of it. */
import { describe, expect, test, vi } from 'vitest';
import { callFormOf, HERMES } from '../../engine/text/call-forms.ts';
import { JsonScan } from '../../engine/text/json-scan.ts';
import { OutputParser, merge } from '../../engine/text/output-parser.ts';
import type { OutputEvent, OutputParserOptions } from '../../engine/text/output-parser.ts';

const TOOLS = ['weather', 'time', 'run'];
const none = (): boolean => false;

/** What of a template tells the form: the tags as published templates have them. */
const TEMPLATES = {
  hermes: 'return a json object within <tool_call></tool_call> XML tags',
  qwenCoder: '<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>',
  mistral: "{{- '[TOOL_CALLS] [' }}{%- if tool_call.id|length != 9 %}",
  ministral: "{{- '[TOOL_CALLS]' + name + '[ARGS]' + arguments }}",
  gemma4: "{{- '<|tool_call>call:' + function['name'] + '{' -}}{{- '<|\"|>' + argument + '<|\"|>' -}}{{- '}<tool_call|>' -}}",
  functionGemma: "{{- '<start_function_call>call:' -}}<escape>{{- '}<end_function_call>' -}}",
  lfm2: '{{- "<|tool_call_start|>[" + (tool_calls_ns.tool_calls | join(", ")) + "]<|tool_call_end|>" -}}',
  olmo3: "{{ '<function_calls>' + calls + '</function_calls>' }}",
  phi4: "{{- '<|tool_call|>' + (tool_call['function'] | tojson) + '<|/tool_call|>' -}}",
  glm: '<tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key>\n<arg_value>{arg-value-1}</arg_value>',
  cohere: '<|START_ACTION|>[{"tool_call_id": "{{ i }}", "tool_name": "{{ name }}", "parameters": {{ arguments|tojson }}}]<|END_ACTION|>',
  seed: '{%- set toolcall_begin_token = "<seed:tool_call>" -%}<function=example_function_name>\n<parameter=example_parameter_1>value_1</parameter>',
  nemotronNano2:
    '<TOOLCALL>[{{"name": "tool_name1", "arguments": "tool_args1"}}, {{"name": "tool_name2", "arguments": "tool_args2"}}]</TOOLCALL>',
  deepSeek:
    "{{'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + tool['function']['name'] + '\\n' + '```json' + '\\n' + tool['function']['arguments'] + '\\n' + '```' + '<｜tool▁call▁end｜>'}}",
  deepSeek31:
    "{{'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>'+ tool['function']['name'] + '<｜tool▁sep｜>' + tool['function']['arguments'] + '<｜tool▁call▁end｜>'}}",
  miniMax:
    '{%- set toolcall_begin_token = \'<minimax:tool_call>\' -%}<invoke name="tool-name-1">\n<parameter name="param-key-1">param-value-1</parameter>',
  apertus:
    "{%- set tool_calls_token = '<|tools_prefix|>' -%}{%- set end_tool_calls_token = '<|tools_suffix|>' -%}{{- '{\"' + function.name + '\": ' + function.arguments + '}' }}",
  granite: 'respond only with <|tool_call|> followed by a JSON list of tools used',
} as const;

interface Parsed {
  readonly content: string;
  readonly calls: readonly (readonly [name: string, args: string])[];
}

/** Adds the events up as a client does. */
function parse(pieces: readonly string[], options: OutputParserOptions): Parsed {
  const parser = new OutputParser({ tools: TOOLS, ...options });
  const events: OutputEvent[] = [...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()];
  const calls: [string, string][] = [];
  let content = '';
  for (const event of events) {
    if (event.type === 'content') content += event.text;
    else if (event.type === 'call') calls[event.index] = [event.name, ''];
    else if (event.type === 'arguments') calls[event.index]![1] += event.text;
  }
  return { content, calls };
}

const perth = ['weather', '{"city": "Perth"}'] as const;
const now = ['time', '{}'] as const;

/** Of a template: what is written, the calls, and the content. */
const CASES: [keyof typeof TEMPLATES, string, Parsed['calls'], string?][] = [
  ['mistral', '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Perth"}}]', [perth]],
  ['mistral', '[TOOL_CALLS][{"arguments": {"city": "Perth"}, "name": "weather"}, {"name": "time", "arguments": {}}]', [perth, now]],
  ['mistral', 'I look.[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "a]\\"}"}, "id": "abcdefghi"}]', [['weather', '{"city":"a]\\"}"}']], 'I look.'],
  ['mistral', '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Perth"}}]\nDone.', [perth], 'Done.'],
  ['mistral', '[{"name": "weather", "arguments": {"city": "Perth"}}]', [perth]],
  ['ministral', '[TOOL_CALLS]weather[ARGS]{"city": "Perth"}', [perth]],
  ['ministral', 'Well.[TOOL_CALLS]weather[ARGS]{"city": "Perth"}[TOOL_CALLS]time[ARGS]{}', [perth, now], 'Well.'],
  ['ministral', '[TOOL_CALLS]weather[CALL_ID]abcdefghi[ARGS]{"city": "Perth"}', [perth]],
  ['ministral', '[TOOL_CALLS]weather{"city": "Perth"}', [perth]],
  ['ministral', '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Perth"}}]', [perth]],
  ['ministral', '[TOOL_CALLS]run[ARGS]{"code": "a\n\tb", "n": [1, {"x": "]}"}]}', [['run', '{"code": "a\\n\\tb", "n": [1, {"x": "]}"}]}']]],
  ['gemma4', '<|tool_call>call:weather{city:<|"|>Perth<|"|>}<tool_call|>', [perth]],
  ['gemma4', '<|tool_call>call:time{}<tool_call|><|tool_call>call:weather{city:<|"|>Perth<|"|>}<tool_call|>', [now, perth]],
  ['gemma4', '<|tool_call>call:run{a:-1.5e3,b:true,c:null,d:[1,<|"|>x, }<|"|>],e:{f:<|"|>say "hi"\n<|"|>,g:[]}}<tool_call|>', [['run', '{"a": -1.5e3, "b": true, "c": null, "d": [1, "x, }"], "e": {"f": "say \\"hi\\"\\n", "g": []}}']]],
  ['gemma4', '<|tool_call>call:weather{"city": "Perth"}<tool_call|>', [perth]],
  ['gemma4', '<|tool_call>call:weather{city:Perth}<tool_call|>', [perth]],
  ['functionGemma', '<start_function_call>call:weather{city:<escape>Perth<escape>}<end_function_call>', [perth]],
  ['lfm2', '<|tool_call_start|>[weather(city="Perth")]<|tool_call_end|>', [perth]],
  ['lfm2', "<|tool_call_start|>[weather(city='Perth'), time()]<|tool_call_end|>I look.", [perth, now], 'I look.'],
  ['lfm2', "<|tool_call_start|>[run(a=3, b=-0.5, c=True, d=None, e=['x', (1, 2)], f={'g': false})]<|tool_call_end|>", [['run', '{"a": 3, "b": -0.5, "c": true, "d": null, "e": ["x", [1, 2]], "f": {"g": false}}']]],
  ['lfm2', "<|tool_call_start|>[run(code='sed -n '1,9p' it\\'s \\u00e9\\n')]<|tool_call_end|>", [['run', '{"code": "sed -n \'1,9p\' it\'s é\\n"}']]],
  ['lfm2', '<|tool_call_start|>[run(code="""a "b"\nc""")]<|tool_call_end|>', [['run', '{"code": "a \\"b\\"\\nc"}']]],
  ['lfm2', '<|tool_call_start|>[run(month=07, big=12345678901234567890)]<|tool_call_end|>', [['run', '{"month": 7, "big": 12345678901234567890}']]],
  ['lfm2', '<|tool_call_start|>[{"name": "weather", "arguments": {"city": "Perth"}}]<|tool_call_end|>', [perth]],
  ['lfm2', '<|tool_call_start|>[weather(city="Perth")]', [perth]],
  ['nemotronNano2', 'I look.\n<TOOLCALL>[{"name": "weather", "arguments": {"city": "Perth"}}, {"name": "time", "arguments": {}}]</TOOLCALL>', [perth, now], 'I look.\n'],
  ['deepSeek', 'I look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{"city": "Perth"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>time\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>', [['weather', '{"city":"Perth"}'], now], 'I look.'],
  ['deepSeek', '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>run\n```json\n{"code": "```json\\n1```"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>', [['run', '{"code":"```json\\n1```"}']]],
  ['deepSeek31', '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "Perth"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>time<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>', [['weather', '{"city":"Perth"}'], now]],
  ['apertus', 'I look.<|tools_prefix|>[{"weather": {"city": "Perth"}}, {"time": {}}]<|tools_suffix|>', [perth, now], 'I look.'],
  ['apertus', '<|tools_prefix|>[{"run": {"code": "[{\\"time\\":\\n\\n {}},\\n 1]<|tools_suffix", "n": [1, {"x": 2}], "e": []}}]', [['run', '{"code": "[{\\"time\\":\\n\\n {}},\\n 1]<|tools_suffix", "n": [1, {"x": 2}], "e": []}']]],
  ['apertus', '<|tools_prefix|>{"time": {}}<|tools_suffix|>', [now]],
  ['apertus', '<|tools_prefix|>[{"name": "weather", "arguments": {"city": "Perth"}}]<|tools_suffix|>', [perth]],
  ['apertus', '<|tools_prefix|>[{"weather": {"city": "Perth"}, "time": {}}]<|tools_suffix|>', [], '<|tools_prefix|>[{"weather": {"city": "Perth"}, "time": {}}]<|tools_suffix|>'],
  ['apertus', '<|tools_prefix|>[{"tides": {}}, {"time": {}}]<|tools_suffix|>', [], '<|tools_prefix|>[{"tides": {}}, {"time": {}}]<|tools_suffix|>'],
  ['miniMax', 'I look.\n<minimax:tool_call>\n<invoke name="weather">\n<parameter name="city">Perth</parameter>\n</invoke>\n<invoke name="time">\n</invoke>\n</minimax:tool_call>', [perth, now], 'I look.\n'],
  ['miniMax', '<minimax:tool_call>\n<invoke name="run">\n<parameter name="code">a\n  <b></parameter></b> "</invoke>"</parameter>\n</invoke>\n</minimax:tool_call>', [['run', '{"code": "a\\n  <b></parameter></b> \\"</invoke>\\""}']]],
  ['miniMax', '<minimax:tool_call>[{"name": "weather", "arguments": {"city": "Perth"}}]</minimax:tool_call>', [perth]],
  ['miniMax', '<minimax:tool_call>\n<invoke name="tides">\n</invoke>\n</minimax:tool_call>', [], '<minimax:tool_call>\n<invoke name="tides">\n</invoke>\n</minimax:tool_call>'],
  ['deepSeek31', '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tides<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>', [], '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tides<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'],
  ['olmo3', "<function_calls>\nweather(city='Perth')\ntime()\n</function_calls>", [perth, now]],
  ['glm', 'Well.\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Perth</arg_value>\n</tool_call>\n<tool_call>time</tool_call>', [perth, now], 'Well.\n'],
  ['glm', '<tool_call>{"name": "weather", "arguments": {"city": "Perth"}}</tool_call>', [perth]],
  ['glm', '<tool_call>run<arg_key>code</arg_key>\n<arg_value>a\n"b" </arg_value>\n<arg_key>n</arg_key><arg_value>[1, 2]</arg_value></tool_call>', [['run', '{"code": "a\\n\\"b\\" ", "n": [1, 2]}']]],
  ['glm', '<tool_call>weather <arg_key>city</arg_key> Perth</tool_call>', [], '<tool_call>weather <arg_key>city</arg_key> Perth</tool_call>'],
  ['glm', '<tool_call>other\n</tool_call>', [], '<tool_call>other\n</tool_call>'],
  ['cohere', '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "weather", "parameters": {"city": "Perth"}},\n    {"tool_call_id": "1", "tool_name": "time", "parameters": {}}\n]<|END_ACTION|>', [['weather', '{"city":"Perth"}'], now]],
  ['seed', 'Well.\n<seed:tool_call>\n<function=weather>\n<parameter=city>Perth</parameter>\n</function>\n</seed:tool_call>', [perth], 'Well.\n'],
  ['seed', '<seed:tool_call>\n<function=run>\n<parameter=code>a\n  b</parameter>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=time>\n</function>\n</seed:tool_call>', [['run', '{"code": "a\\n  b"}'], now]],
  ['seed', '<seed:tool_call>\n{"name": "weather", "arguments": {"city": "Perth"}}\n</seed:tool_call>', [perth]],
  ['phi4', '<|tool_call|>[{"name": "weather", "arguments": {"city": "Perth"}}]<|/tool_call|>', [perth]],
  ['phi4', '<|tool_call|>{"type": "function", "function": {"name": "weather", "parameters": {"city": "Perth"}}}<|/tool_call|>', [['weather', '{"city":"Perth"}']]],
  ['granite', '<|tool_call|>[{"name": "weather", "arguments": {"city": "Perth"}}, {"name": "time", "arguments": {}}]', [perth, now]],
  ['hermes', '<tool_call>\n[{"name": "weather", "arguments": {"city": "Perth"}}]\n</tool_call>', [perth]],
  ['hermes', '<tool_call>\n{"arguments": {"city": "Perth"}, "name": "weather"}\n</tool_call>', [perth]],
  ['hermes', '<tool_call>\n{"name": "weather", "arguments": "{\\"city\\": \\"Perth\\"}"}\n</tool_call>', [['weather', '{"city":"Perth"}']]],
  ['hermes', '<tool_call>\n{"name": "weather", "arguments": {"city": "Perth"}}', [perth]],
  ['hermes', '<tool_call>{"name": "run", "arguments": {"code": "a\n b"}}</tool_call>', [['run', '{"code": "a\\n b"}']]],
  ['qwenCoder', '<tool_call>\n<function=weather>\n<parameter=city>\nPerth\n</parameter>\n</function>\n</tool_call>', [perth]],
  ['qwenCoder', 'I look.\n<function=weather>\n<parameter=city>\nPerth\n</parameter>\n</function>\n</tool_call>', [perth], 'I look.\n'],
  ['qwenCoder', '<function=weather>\n<parameter=city>\nPerth\n</parameter>\n</function>\n<function=time>\n</function>\nDone.', [perth, now], 'Done.'],
  ['qwenCoder', '<function=run>\n<parameter=code>\n<a></function></a>\n</parameter>\n</function>', [['run', '{"code": "<a></function></a>"}']]],
  // A closing tag in a string of the arguments.
  ['hermes', '<tool_call>{"name": "run", "arguments": {"code": "say </tool_call>"}}</tool_call>Done.', [['run', '{"code": "say </tool_call>"}']], 'Done.'],
  ['hermes', '<tool_call>\n{"name": "run", "arguments": {"a": "</tool_call>", "b": ["\\"</tool_call>\\n<tool_call>"]}}\n</tool_call>\n<tool_call>{"name": "time", "arguments": {}}</tool_call>', [['run', '{"a": "</tool_call>", "b": ["\\"</tool_call>\\n<tool_call>"]}'], now]],
  ['hermes', '<tool_call>{"name": "run", "arguments": {"code": "</tool_call>"}</tool_call>', [['run', '{"code": "</tool_call>"}']]],
  // As Python, and JavaScript, would have it.
  ['hermes', `<tool_call>\n{"name": "run", "arguments": {'code': 'say "x"', n: True, "at": [None,],}}\n</tool_call>`, [['run', '{"code": "say \\"x\\"", "n": true, "at": [null]}']]],
  ['hermes', `<tool_call>\n{'name': 'weather', 'arguments': {'city': 'Perth'}}\n</tool_call>`, [['weather', '{"city":"Perth"}']]],
  ['hermes', `<tool_call>\n{"name": "weather", "arguments": "{'city': 'Perth'}"}\n</tool_call>`, [['weather', '{"city":"Perth"}']]],
  ['hermes', `{"name": "weather", "arguments": {'city': 'Perth',}}\n{"name": "time", "parameters": {}}`, [perth, now]],
  ['hermes', '{"name": "run", "arguments": {"code": "a\n b"}}', [['run', '{"code": "a\\n b"}']]],
  ['mistral', `[TOOL_CALLS] [{"name": "weather", "arguments": {'city': 'Perth'}},] Done.`, [perth], 'Done.'],
  ['ministral', `[TOOL_CALLS]weather[ARGS]{'city': 'Perth', }[TOOL_CALLS]time[ARGS]{}`, [['weather', '{"city": "Perth" }'], now]],
  ['phi4', `<|tool_call|>[{'name': 'weather', 'arguments': {'city': 'Perth'}}]<|/tool_call|>`, [['weather', '{"city":"Perth"}']]],
  ['hermes', `<tool_call>{"name": "run", "arguments": {"code": "grep -o '\\d' a", "n": 1}}</tool_call>`, [['run', `{"code": "grep -o '\\\\d' a", "n": 1}`]]],
  // A bracket was forgotten, or two.
  ['hermes', '<tool_call>\n{"name": "weather", "arguments": {"city": "Perth"}\n</tool_call>', [perth]],
  ['hermes', '<tool_call>{"name": "run", "arguments": {"a": [1, 2</tool_call>', [['run', '{"a": [1, 2]}']]],
]; // prettier-ignore

/** A string that nothing closes: the closing tag in it is one. */
const UNCLOSED: typeof CASES = [
  ['hermes', '<tool_call>{"name": "run", "arguments": {"code": "a</tool_call>\nDone.', [['run', '{"code": "a']], 'Done.'],
  ['hermes', '<tool_call>{"name": "run", "arguments": {"code": "a</tool_call>\n<tool_call>{"name": "time", "arguments": {}}</tool_call>', [['run', '{"code": "a'], now]],
  ['hermes', '<tool_call>{"name": "run", "arguments": {"code": "a</tool_call> said "b"', [['run', '{"code": "a']], 'said "b"'],
]; // prettier-ignore

/** Arguments that are passed on as they are written, because they can be read in no way, or in several; or were cut. */
const UNREADABLE: [keyof typeof TEMPLATES, string, string][] = [
  ['hermes', '<tool_call>{"name": "run", "arguments": {"code": "d = {"k": "v", "w": "x"}"}}</tool_call>', '{"code": "d = {"k": "v", "w": "x"}"}'],
  ['hermes', '<tool_call>{"name": "run", "arguments": {"path": "C:\\Users\\name", "n": True}}</tool_call>', '{"path": "C:\\Users\\name", "n": True}'],
  ['hermes', '<tool_call>{"name": "run", "arguments": {"code": "a</tool_call>', '{"code": "a'],
  ['hermes', '<tool_call>{"name": "run", "arguments": {"a": [1, Tru', '{"a": [1, Tru'],
  ['hermes', '<tool_call>{"name": "run", "arguments": {"a": "x", ', '{"a": "x", '],
  ['ministral', '[TOOL_CALLS]run[ARGS]{"a": [1, "x\\', '{"a": [1, "x\\'],
]; // prettier-ignore

/** Of a template: what is no call, all of which is content. */
const TEXTS: [keyof typeof TEMPLATES, string][] = [
  ['mistral', '[TOOL_CALLS] not JSON at all'],
  ['mistral', '[TOOL_CALLS] [{"name": "rm", "arguments": {}}] so.'],
  ['mistral', '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Pe'],
  ['mistral', '[TOOL'],
  ['ministral', '[TOOL_CALLS]rm[ARGS]{"a": "}"} so.'],
  ['ministral', `[TOOL_CALLS]${'long '.repeat(200)}`],
  ['ministral', '{"name": "weather", "arguments": {}}'],
  ['gemma4', '<|tool_call>call:rm{}<tool_call|>'],
  ['gemma4', '<|tool_call>call:weather{city:<|"|>Perth}<tool_call|> so.'],
  ['gemma4', '<|tool_call>call:weather{city:<|"|>Perth<|"|>} and<tool_call|>'],
  ['gemma4', `<|tool_call>call:run{a:${'['.repeat(10_000)}<tool_call|>`],
  ['lfm2', '<|tool_call_start|>[rm(a=1)]<|tool_call_end|>'],
  ['lfm2', '<|tool_call_start|>[weather(Perth)]<|tool_call_end|>'],
  ['lfm2', "<|tool_call_start|>[weather(city='Perth)]<|tool_call_end|>"],
  ['lfm2', '<|tool_call_start|>[weather(city=perth)]<|tool_call_end|>'],
  ['lfm2', '<|tool_call_start|>[]<|tool_call_end|>'],
  ['lfm2', '[weather(city="Perth")]'],
  ['olmo3', '<function_calls>weather(</function_calls>'],
  ['phi4', '<|tool_call|>[{"name": "weather"}, 5]<|/tool_call|>'],
  ['granite', '<|tool_call|>[{"name": "weather", "arguments": {}}, {"name": "rm", "arguments": {}}]'],
  ['hermes', '<tool_call>{"name": "\\q", "arguments": {}}</tool_call> so.'],
  ['hermes', '<function=weather>\n</function>'],
  ['hermes', '[TOOL_CALLS]weather[ARGS]{}'],
  ['qwenCoder', 'std::<function=rm>(a) and <function'],
]; // prettier-ignore

/** One piece, characters, and pieces of three. */
const cuts = (text: string): readonly (readonly string[])[] => [[text], [...text], text.match(/[^]{1,3}/g) ?? []];

describe('forms of calls', () => {
  test.each(CASES)('%s: %s', (name, text, calls, content = '') => {
    const options = { form: callFormOf(TEMPLATES[name], none) };
    for (const pieces of cuts(text)) expect(parse(pieces, options)).toEqual({ content, calls });
    for (const [, args] of calls) expect(JSON.parse(args)).toBeTypeOf('object');
  });

  test.each(UNCLOSED)('%s: a string without an end: %s', (name, text, calls, content = '') => {
    const options = { form: callFormOf(TEMPLATES[name], none) };
    for (const pieces of cuts(text)) expect(parse(pieces, options)).toEqual({ content, calls });
  });

  test.each(UNREADABLE)('%s: what nobody can read is passed on as it is written: %s', (name, text, args) => {
    const options = { form: callFormOf(TEMPLATES[name], none) };
    for (const pieces of cuts(text)) expect(parse(pieces, options)).toEqual({ content: '', calls: [['run', args]] });
  });

  test.each(TEXTS)('%s: %s is text, and nothing of it is lost', (name, text) => {
    const options = { form: callFormOf(TEMPLATES[name], none) };
    for (const pieces of cuts(text)) expect(parse(pieces, options)).toEqual({ content: text, calls: [] });
  });

  test('where one call is wanted, the first of a list is it', () => {
    for (const [name, text, calls] of CASES.filter(([, , { length }]) => length === 2)) {
      const options = { form: callFormOf(TEMPLATES[name], none), single: true };
      for (const pieces of cuts(text)) expect(parse(pieces, options).calls).toEqual(calls.slice(0, 1));
    }
  });

  test('calls of Apertus begin within its thoughts too, which those of other models do not', () => {
    const events = (name: keyof typeof TEMPLATES, pieces: readonly string[]): OutputEvent[] => {
      const tags = { open: '<|inner_prefix|>', close: '<|inner_suffix|>', tokens: [] };
      const parser = new OutputParser({ tools: TOOLS, form: callFormOf(TEMPLATES[name], none), reasoning: { opened: false, tags } });
      return merge([...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()]);
    };
    const [thought, time] = ['Which hour is it?', '[{"time": {}}]'];
    const called: OutputEvent[] = [{ type: 'reasoning', text: thought }, { type: 'call', index: 0, name: 'time' }, { type: 'arguments', index: 0, text: '{}' }]; // prettier-ignore
    for (const pieces of cuts(`<|inner_prefix|>${thought}<|tools_prefix|>${time}<|tools_suffix|>`))
      expect(events('apertus', pieces)).toEqual(called);
    for (const pieces of cuts(`<|inner_prefix|>${thought}<|inner_suffix|><|tools_prefix|>${time}`))
      expect(events('apertus', pieces)).toEqual(called);
    const text = `${thought}<TOOLCALL>[{"name": "time", "arguments": {}}]</TOOLCALL>`;
    for (const pieces of cuts(`<|inner_prefix|>${text}`)) expect(events('nemotronNano2', pieces)).toEqual([{ type: 'reasoning', text }]);
  });

  test('arguments of newer Mistral models come as they are written', () => {
    const parser = new OutputParser({ tools: TOOLS, form: callFormOf(TEMPLATES.ministral, none) });
    expect(parser.push('[TOOL_CALLS]weather[ARGS]{"ci')).toEqual([
      { type: 'call', index: 0, name: 'weather' },
      { type: 'arguments', index: 0, text: '{"ci' },
    ]);
    expect(parser.push('ty": 1}[TO')).toEqual([{ type: 'arguments', index: 0, text: 'ty": 1}' }]);
  });

  test('the template says the form, and tokens where it does not', () => {
    const has = (token: string) => (other: string) => other === token;
    expect(callFormOf(TEMPLATES.hermes, has('<|tool_call_start|>'))).toBe(HERMES);
    // Granite 4, even if Granite 3's token were in its vocabulary.
    const granite4 = "return a json object with function name and arguments within <tool_call></tool_call> XML tags{{- '<tool_call>\n' }}";
    expect(callFormOf(granite4, has('<|tool_call|>'))).toBe(HERMES);
    const lfm2 = callFormOf(TEMPLATES.lfm2, none);
    expect(callFormOf('List of tools: {{ tools | tojson }}', has('<|tool_call_start|>'))).toBe(lfm2);
    expect(callFormOf('{{ tools }}', none)).toBe(HERMES);
    const forms = Object.values(TEMPLATES).map((template) => callFormOf(template, none));
    expect(new Set(forms).size).toBe(forms.length);
  });

  // Everything that walks a text: what is looked at again and again would be a multiple of its length.
  test.each<[keyof typeof TEMPLATES, string, string, string]>([
    ['hermes', '<tool_call>{"name": "run", "arguments": {"code": "', 'word ', '"}}</tool_call>'],
    ['hermes', '<tool_call>{"name": "', 'word ', '"}}</tool_call>'],
    ['hermes', '<tool_call>', '     ', ''],
    ['hermes', '{"name": "run", "arguments": {"code": "', 'word ', '"}}'],
    ['hermes', '', 'a < b', ''],
    ['qwenCoder', '<tool_call>\n<function=run>\n<parameter=code>\n', 'word ', '\n</function>\n</tool_call>'],
    ['qwenCoder', '<tool_call>\n<function=run>\n', '     ', '</tool_call>'],
    ['qwenCoder', '<function=', 'words', ''],
    ['mistral', '[TOOL_CALLS] [{"name": "run", "arguments": {"code": "', 'word ', '"}}]'],
    ['ministral', '[TOOL_CALLS]run[ARGS]{"code": "', 'word ', '"}'],
    ['ministral', '[TOOL_CALLS]', '     ', ''],
    ['gemma4', '<|tool_call>call:run{code:<|"|>', 'word ', '<|"|>}<tool_call|>'],
    ['lfm2', '<|tool_call_start|>[run(code="', 'word ', '")]<|tool_call_end|>'],
    ['lfm2', '<|tool_call_start|>[run(code="', '"\\" ', '")]<|tool_call_end|>'],
  ])('%s: the work for %s grows with the length, not faster', (name, begin, part, end) => {
    const work = (count: number): number => {
      const pieces = [begin, ...Array.from({ length: count }, () => part), end];
      return workOf(() => parse(pieces, { form: callFormOf(TEMPLATES[name], none) }));
    };
    // Behind what is bounded by a constant.
    const [base, once, twice] = [work(1_000), work(3_000), work(5_000)];
    expect(twice - once).toBeLessThan(1.2 * (once - base) + 1_000);
  });

  test('what may go on behind a closing tag is read once, however long it is and whatever the pieces', () => {
    const push = vi.spyOn(JsonScan.prototype, 'push');
    const code = '</tool_call>'.repeat(20_000);
    const text = `<tool_call>{"name": "run", "arguments": {"code": "${code}"}}</tool_call>`;
    const pieces = text.match(/[^]{1,7}/g)!;
    expect(parse(pieces, { form: HERMES })).toEqual({ content: '', calls: [['run', `{"code": "${code}"}`]] });
    const read = push.mock.calls.reduce((sum, [piece, from = 0]) => sum + piece.length - from, 0);
    push.mockRestore();
    // By the one that looks ahead, and by the one that gives it on.
    expect(read).toBeLessThan(3 * text.length);
  });

  test('a million digits that are no number are text, at once', () => {
    const text = `<|tool_call_start|>[weather(days=${'1'.repeat(1_000_000)}x)]<|tool_call_end|>`;
    expect(parse([text], { form: callFormOf(TEMPLATES.lfm2, none) })).toEqual({ content: text, calls: [] });
  });
});

/** Characters that are walked by the methods of texts and expressions, each call counted with all that it may look at. */
function workOf(run: () => void): number {
  let work = 0;
  const spies = (['indexOf', 'startsWith', 'trimStart', 'trimEnd', 'trim', 'slice', 'replace', 'replaceAll', 'charCodeAt'] as const).map(
    (name) => {
      const original = String.prototype[name] as (...args: unknown[]) => unknown;
      return vi.spyOn(String.prototype, name).mockImplementation(function (this: string, ...args: unknown[]) {
        // These look at one place only.
        const isLocal = name === 'charCodeAt' || name === 'startsWith';
        const result = original.apply(this, args);
        work += isLocal ? 1 : name === 'slice' ? String(result).length : this.length - (name === 'indexOf' ? Number(args[1] ?? 0) : 0);
        return result as never;
      });
    },
  );
  const exec = RegExp.prototype.exec;
  const expression = vi.spyOn(RegExp.prototype, 'exec').mockImplementation(function (this: RegExp, text: string) {
    const found = exec.call(this, text);
    work += this.sticky ? (found?.[0].length ?? 1) : text.length;
    return found;
  });
  try {
    run();
  } finally {
    for (const spy of [...spies, expression]) spy.mockRestore();
  }
  return work;
}
