import { Template } from '@huggingface/jinja';
import { expect, test } from 'vitest';
import { BoundedTemplate, BudgetError } from '../../engine/text/bounded-template.ts';
import { ChatTemplate } from '../../engine/text/chat-template.ts';

const many = Array.from({ length: 2000 }, (_, i) => `value ${i}`);

test.each([
  ['a long range', '{% for i in range(10**9) %}x{% endfor %}'],
  ['a range that is only made', '{% set x = range(10**9) %}'],
  ['loops in loops', '{% for i in range(9999) %}{% for j in range(9999) %}{{ i }}{% endfor %}{% endfor %}'],
  ['empty loops', '{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}'],
  ['loops over the input', '{% for i in many %}{% for j in many %}{% for k in many %}{% endfor %}{% endfor %}{% endfor %}'],
  ['filtered loops', '{% for i in many %}{% for j in many if j == i %}{% for k in many if j == k %}{% endfor %}{% endfor %}{% endfor %}'],
  ['a text that doubles', "{% set n = namespace(s='x') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s }}"],
  ['a list that doubles', '{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}'],
  [
    'a long text often',
    "{% set n = namespace(s='X') %}{% for i in range(20) %}{% set n.s = n.s ~ n.s %}{% endfor %}{% for i in range(9999) %}{% set z = n.s | lower %}{% endfor %}",
  ],
  [
    'methods of a long text',
    "{% set n = namespace(s='X') %}{% for i in range(20) %}{% set n.s = n.s ~ n.s %}{% endfor %}{% for i in range(9999) %}{% set z = n.s.split('y') %}{% endfor %}",
  ],
  ['JSON over and over', '{% for i in range(99999) %}{% set z = many | tojson %}{% endfor %}'],
  ...[
    ['printed', '{{ n.s }}'],
    ['as JSON', '{{ n.s | tojson }}'],
    ['as indented JSON', '{{ n.s | tojson(indent=2) }}'],
    ['as a text', '{% set x = n.s | string %}'],
    ['in capitals', '{{ n.s | upper }}'],
    ['joined', "{{ n.s | join(',') }}"],
    ['behind a text', "{% set x = '' ~ n.s %}"],
    ['added to a text', "{% set x = '' + n.s %}"],
    ['filtered one by one', "{% set x = [n.s] | map('tojson') | list %}"],
    ['in its namespace', '{{ n }}'],
  ].map(([how, use]) => [
    `a list that holds itself twice, ${how}`,
    `{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = [n.s, {'a': n.s}] %}{% endfor %}${use}`,
  ]),
  ['looking through a list', "{% for i in range(99999) %}{% if 'q' in many %}{% endif %}{% endfor %}"],
])('%s ends at the budget', (_, source) => {
  expect(() => new BoundedTemplate(source).render({ many })).toThrow(BudgetError);
});

test.each(['raise_exception', 'strftime_now', 'range'])('%s takes no list, which would be spelled or copied', (name) => {
  const source = `{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ ${name}(n.s) }}`;
  expect(() => new BoundedTemplate(source).render({})).toThrow('a list or an object stands where a text or a number is expected');
});

test.each([
  ['blanks without end', `a${' '.repeat(2 ** 18)}b`, 'it has 262144 characters of white space in a row; at most 512 are read'],
  ['blanks in a statement', `{{${'\n'.repeat(600)}a }}`, 'it has 600 characters of white space in a row; at most 512 are read'],
  ['a template without end', 'a'.repeat(2 ** 20 + 1), 'it has 1048577 characters; at most 1048576 are read'],
])('%s are refused before they are parsed', (_, source, message) => {
  expect(() => new ChatTemplate(source)).toThrow(`the chat template does not parse (${message})`);
  expect(new BoundedTemplate(`a${' '.repeat(512)}b`).render({})).toHaveLength(514);
});

test('it renders what the library renders, with its globals', () => {
  const source = `{% macro m(a) %}<{{ a }}>{% endmacro %}{% for i in range(2, 9, 3) %}{{ m(i) }}{% endfor %}{{ range(3) | list }}{{ range(5, 0, -2) | list }}
{{ True and not false }}{{ none is none }}{{ strftime_now('%Y') }}{{ many[:2] | tojson }}{% for k, v in {'a': 1}.items() %}{{ k ~ v }}{% endfor %}{{ missing is defined }}`;
  expect(new BoundedTemplate(source).render({ many })).toBe(new Template(source).render({ many }));
  expect(() => new BoundedTemplate("{{ raise_exception('no') }}").render({})).toThrow('no');
});

test.each([
  ['nothing', '{{ none | string }}', 'None'],
  ['nothing where it is printed', "{% set x = none %}{{ none }}{% for y in [x] %}{% if true %}{{ y }}{% else %}{% endif %}{% endfor %}{% macro m() %}{{ {}.get('a') }}{% endmacro %}{{ m() }}{{ missing }}{{ x if false }}{# none #}", 'NoneNoneNone'], // prettier-ignore
  ['nothing in a text', '{{ "<default>" ~ none ~ "</default>" }}', '<default>None</default>'],
  ['a variable that is not there', '{{ "a" ~ missing ~ (missing | string) }}', 'a'],
  ['a truth', '{{ true | string }}{{ false ~ "" }}', 'TrueFalse'],
  ['a list', `{{ ['string', "it's", none, 1.5] | string }}`, `['string', "it's", None, 1.5]`],
  ['an object', `{{ {'a': {'b': 'x\\ny'}} | string }}`, `{'a': {'b': 'x\\ny'}}`],
  ['a text and a number', '{{ "a" | string }}{{ "b" ~ 1 }}', 'ab1'],
  ['a loop over nothing', '{% for x in missing %}{{ x }}{% endfor %}{% for x in missing if x %}{{ x }}{% endfor %}.', '.'],
  ['a loop over a text', "{% for x in 'ab' %}[{{ x }}{{ x['type'] == 'image' }}]{% endfor %}", '[afalse][bfalse]'],
  [
    'a list, and what is not there, in capitals',
    "{{ ['string', none] | upper }}{{ missing | upper }}{{ missing | trim }}.",
    "['STRING', NONE].",
  ],
  ['the items of what is not there', '{{ missing | length }}{% for k, v in missing | items %}{{ k }}{% endfor %}.', '0.'],
  [
    'a method whose name is a key',
    "{% set o = {'items': 1, 'get': 2} %}{% for k, v in o.items() %}{{ k ~ v }}{% endfor %}{{ o.get('get') }}{{ o.items }}",
    'items1get221',
  ],
  [
    'a key that is no text',
    "{% set o = {'a': 1} %}{{ o[missing] is defined }}{{ o[['a']] is defined }}{{ o['a'] }}{{ [5][0] }}",
    'falsefalse15',
  ],
  [
    'an object with integers as keys',
    "{% set o = {2048: 'b', 512: 'a'} %}{% for k, v in o | dictsort %}{% if 600 <= k %}{{ v }}{{ k + 1 }}{% endif %}{% endfor %}{{ o[512] }}{{ o[1] is defined }}",
    'b2049afalse',
  ],
  [
    'what is stripped',
    `{{ '\n  a \n'.strip('\n') }}|{{ '\n  a \n'.lstrip('\n') }}|{{ ' ab'.rstrip('ba') }}|{{ ' a '.strip() }}|{{ '😀é😀'.strip('😀') }}|`,
    '  a |  a \n| |a|é|',
  ],
  ['lines that end as in Windows', 'a\r\n{% if true %}\r\nb\r\n{% endif %}\r\n', 'a\nb\n'],
])('%s is what it is in Python', (_, source, expected) => {
  expect(new BoundedTemplate(source).render({})).toBe(expected);
});

test("a conversation that is too long for the budget is the caller's to shorten", () => {
  const template = new ChatTemplate('{% for m in messages %}{% for c in messages %}{{ c.role }}{% endfor %}{% endfor %}');
  const messages = Array.from({ length: 3000 }, () => ({ role: 'user', content: 'x' }) as const);
  expect(template.render(messages.slice(0, 3))).toBe('user'.repeat(9));
  expect(() => template.render(messages)).toThrow("the model's chat template refuses these messages: it takes more than 1000000 steps");
});

test('four thousand messages through the bundled kind of template are well within it', () => {
  const template = new ChatTemplate(
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] | trim }}<|im_end|>\n{% endfor %}",
  );
  const messages = Array.from({ length: 4000 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `text ${i}` }) as const);
  expect(template.render(messages).split('<|im_start|>').length).toBe(4001);
});
