/** Which schemas tools may have: those of tools that must be called are enforced, others only shown to the model. */
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { constraintOf } from '../../engine/tasks/chat-request.ts';
import type { ChatRequest } from '../../engine/api.ts';
import { HERMES } from '../../engine/text/call-forms.ts';
import { findSchemaProblem } from '../../engine/text/json-schema.ts';
import { takesEmpty } from '../../engine/text/schema-pattern.ts';

const tool = (name: string, property: unknown) => ({ name, parameters: { type: 'object', properties: { x: property } } });

const model = { callForm: HERMES, isHarmony: false };

/** The error, or what the answer is held to. */
function heldTo(tools: ChatRequest['tools'], toolChoice?: ChatRequest['toolChoice']): unknown {
  try {
    return constraintOf({ messages: [], sampling: {}, ...(tools && { tools }), ...(toolChoice && { toolChoice }) }, model);
  } catch (error) {
    return error;
  }
}

describe('schemas of tools', () => {
  // What MCP servers, OpenAPI documents and Pydantic write.
  test.each<[string, unknown]>([
    ['uniqueItems', { type: 'array', items: { type: 'string' }, uniqueItems: true }],
    ['not', { not: {} }],
    ['if', { if: { type: 'string' }, then: { minLength: 1 } }],
    ['several of allOf', { allOf: [{ type: 'object' }, { properties: { a: { type: 'integer' } } }] }],
    ['look-around', { type: 'string', pattern: '^(?=[\\d.]{1,7}$)\\d*\\.\\d*$' }],
    ['a pattern of another language', { type: 'string', pattern: '^[\\w-.]+$' }],
    ['unknown keywords', { type: 'string', 'x-order': 1, dependentRequired: { a: ['b'] } }],
    ['references elsewhere', { $ref: 'https://example.com/a.json' }],
    ['a level below what is not enforced', { if: { type: 'bogus' } }],
    ['256 properties', { properties: Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`p${i}`, {}])) }],
  ])('with %s: shown where the tool need not be called, refused where it must', (_, property) => {
    const tools = [tool('f', property), tool('g', { type: 'string' })];
    for (const choice of [undefined, 'auto', 'none'] as const) expect(heldTo(tools, choice)).toBeUndefined();
    expect(heldTo(tools, { name: 'g' })).toMatchObject({ tools: [{ name: 'g' }], single: true });
    for (const choice of ['required', { name: 'f' }] as const) {
      expect(heldTo(tools, choice)).toMatchObject({ code: 'invalid_json_schema', param: 'tools[0].parameters' });
    }
  });

  test('that allow no object: shown where the tool need not be called, refused where it must', () => {
    for (const parameters of [{ type: 'string' }, { type: ['string', 'null'] }, { anyOf: [{ type: 'null' }, { type: 'string' }] }]) {
      const tools = [tool('g', { type: 'string' }), { name: 'f', parameters }];
      expect(heldTo(tools)).toBeUndefined();
      for (const choice of ['required', { name: 'f' }] as const)
        expect(heldTo(tools, choice)).toMatchObject({
          code: 'invalid_json_schema',
          param: 'tools[1].parameters',
          message: "schema at /: the arguments of a tool are an object ('type')",
        });
      const request = { messages: [], sampling: {}, tools, responseFormat: { type: 'json_object' } } as const;
      expect(constraintOf(request, model)).toMatchObject({ calls: { tools: [tools[0], { name: 'f', parameters: { type: 'object' } }] } });
    }
  });

  test('an answer with a format may call tools that it need not call: by their schemas, where these can be enforced', () => {
    const [f, g] = [tool('f', { not: {} }), tool('g', { type: 'string' })];
    const responseFormat = { type: 'json_object' } as const;
    const held = (more: Partial<ChatRequest>): unknown =>
      constraintOf({ messages: [], sampling: {}, responseFormat, tools: [f, g], ...more }, model);
    const calls = { type: 'tool_calls', tools: [{ name: 'f', parameters: { type: 'object' } }, g], single: false, form: HERMES };
    expect(held({})).toEqual({ type: 'json_or_calls', json: responseFormat, calls });
    expect(held({ toolChoice: 'auto', parallelToolCalls: false })).toMatchObject({ calls: { single: true } });
    expect(held({ tools: [tool('h', { type: 'string', description: 'x'.repeat(300_000) })] })).toMatchObject({
      calls: { tools: [{ name: 'h', parameters: { type: 'object' } }] },
    });
    for (const more of [{ toolChoice: 'none' }, { tools: [] }] as const) expect(held(more)).toBe(responseFormat);
    expect(held({ toolChoice: { name: 'g' } })).toMatchObject({ type: 'tool_calls' });
  });

  test('strict tools are held to their schemas where the model may also talk, and refused where that cannot be', () => {
    const [f, g] = [{ ...tool('f', { type: 'string' }), strict: true }, tool('g', { not: {} })];
    const loose = { ...g, parameters: { type: 'object' } };
    for (const choice of [undefined, 'auto'] as const)
      expect(heldTo([f, g], choice)).toEqual({ type: 'text_and_calls', calls: { type: 'tool_calls', tools: [f, loose], single: false, form: HERMES } }); // prettier-ignore
    expect(heldTo([f, g], 'none')).toBeUndefined();
    expect(heldTo([f, g], { name: 'f' })).toMatchObject({ type: 'tool_calls', tools: [f] });
    const wrong = [f, { ...g, strict: true }];
    expect(heldTo(wrong)).toMatchObject({ code: 'invalid_json_schema', param: 'tools[1].parameters' });
    expect(heldTo(wrong, 'none')).toBeUndefined();
    const large = { ...f, description: 'x'.repeat(40_000) };
    expect(heldTo([large])).toBeUndefined();
    expect(heldTo([large], 'required')).toMatchObject({ type: 'tool_calls' });
    // Its answers have headers of their own, which no grammar holds.
    const request = { messages: [], sampling: {}, tools: [f] };
    expect(constraintOf(request, { ...model, isHarmony: true })).toBeUndefined();
  });

  test.each<[string, unknown, RegExp]>([
    ['an unknown type', { type: 'bogus' }, /\/properties\/x: unknown type "bogus"/],
    ['an unknown type behind what is not enforced', { uniqueItems: true, items: { anyOf: [{ not: {} }, { type: 'bogus' }] } }, /\/properties\/x\/items\/anyOf\/1/], // prettier-ignore
    ['a number for a schema', 5, /a schema is an object/],
    ['a list of properties', { properties: [] }, /maps names to schemas/],
    ['one schema for anyOf', { anyOf: {} }, /list of schemas/],
    ['a text for required', { required: 'a' }, /list of names/],
    ['a text for minLength', { type: 'string', minLength: '3' }, /whole number/],
    ['a text for maximum', { type: 'number', maximum: '3' }, /is a number/],
    ['one value for enum', { enum: 'a' }, /list of at least one value/],
  ])('with %s: refused, where it need not be called too', (_, property, message) => {
    for (const choice of [undefined, 'none', { name: 'g' }] as const) {
      const error = heldTo([tool('g', { type: 'string' }), tool('f', property)], choice);
      expect(error).toBeInstanceOf(EngineError);
      expect(error).toMatchObject({ code: 'invalid_json_schema', param: 'tools[1].parameters', message: expect.stringMatching(message) });
    }
  });

  // Matching these here would stop every other request for years, or for hours.
  test.each<[string, Record<string, unknown>, string | undefined]>([
    ['a length beside what takes the empty text in many ways', { pattern: '(a*|b*){60}c', minLength: 1 }, undefined],
    ['a length beside what may be empty', { pattern: '^(?:a*|b*){60}$', minLength: 1 }, 'minLength'],
    ['a long text that is nearly what the pattern wants', { pattern: 'a*a*b', enum: ['a'.repeat(60_000)] }, 'pattern'],
    ['short texts', { pattern: '^[a-z]+$', enum: ['one', 'two'] }, undefined],
  ])('%s is judged at once', (_, keywords, refused) => {
    const property = { type: 'string', ...keywords };
    expect(findSchemaProblem(property)?.keyword).toBe(refused);
    expect(heldTo([tool('f', property)])).toBeUndefined();
  });

  test.each([
    ['a', false], ['a?', true], ['a+?', false], ['a*?', true], ['a??', true], ['a{0}', true], ['a{2,3}?', false], ['^$|^b+$', true], ['(a|)b', false], ['(?:a|b*)+', true],
    ['(?:(?:a?){3}|c)(?:b|)', true], ['[*?]', false], ['\\?', false], ['^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$', false],
  ])('whether %s takes the empty text', (pattern, takes) => {
    expect(takesEmpty(pattern)).toBe(takes);
    expect(new RegExp(pattern, 'u').test('')).toBe(takes);
  }); // prettier-ignore
});
