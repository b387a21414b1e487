/** Heads of requests: who is asked, who asks, how long the body is, and what a proxy could misread. */
import { chatBody } from './bodies.ts';
import type { Expectation, FuzzCase } from './case.ts';
import { HOSTILE_TEXTS } from './json.ts';
import { chunked, plainRequest, toBytes, withHeader } from './request.ts';
import type { HeaderList, PlainRequest, Situation } from './request.ts';
import { chance, choose, logBetween } from './rng.ts';
import type { Rng } from './rng.ts';

interface Head {
  readonly name: string;
  readonly request: PlainRequest;
  /** Default: one answer. */
  readonly expect?: Partial<Expectation>;
  /** Bytes that follow the request on the same connection. */
  readonly after?: Buffer;
}

const REFUSED = [400, 403];
const LOCAL_ORIGIN = 'http://localhost:5173';

/** A chat request of one token. */
export function smallChat(rng: Rng, situation: Situation): PlainRequest {
  const bytes = Buffer.from(JSON.stringify(chatBody(rng, { max_tokens: 1 })));
  return plainRequest(situation, 'chat', '/v1/chat/completions', { type: 'application/json', bytes });
}

const list = (situation: Situation): PlainRequest => plainRequest(situation, 'chat', '/v1/models');
const set = (request: PlainRequest, name: string, value: string | undefined): PlainRequest => ({
  ...request,
  headers: withHeader(request.headers, name, value),
});

/** Host names: ours, strangers', and what only looks like one. */
function host(rng: Rng, situation: Situation): Head {
  const request = choose(rng, [smallChat(rng, situation), list(situation)]);
  const [value, status] = choose<readonly [string, readonly number[] | undefined]>(rng, [
    ['localhost', [200]],
    ['127.0.0.1:80', [200]],
    ['[::1]:4300', [200]],
    ['evil.com', REFUSED],
    ['evil.com:80', REFUSED],
    ['evil.com:80:80', REFUSED],
    ['127.0.0.1.evil.com', REFUSED],
    ['evil.com#.localhost', REFUSED],
    ['evil.com/.localhost', REFUSED],
    ['evil.com@localhost', undefined],
    ['localhost@evil.com', REFUSED],
    ['localhost.evil.com', REFUSED],
    ['evil.com\t.localhost', REFUSED],
    ['[::1', REFUSED],
    ['[::1].evil.com', REFUSED],
    ['[evil.com]', REFUSED],
    ['localhost:99999', undefined],
    ['localhost:', undefined],
    ['', undefined],
    ['a'.repeat(logBetween(rng, 10, 8000)) + '.com', REFUSED],
    [choose(rng, HOSTILE_TEXTS).replace(/[\r\n\0]/g, ''), undefined],
  ]);
  return { name: `Host: ${value.slice(0, 60)}`, request: set(request, 'Host', value), ...(status && { expect: { status } }) };
}

function hostCount(rng: Rng, situation: Situation): Head {
  const request = smallChat(rng, situation);
  const twice = { ...request, headers: [...request.headers, ['Host', choose(rng, ['evil.com', 'localhost'])] as const] };
  return choose<Head>(rng, [
    { name: 'no Host', request: set(request, 'Host', undefined), expect: { status: [400] } },
    { name: 'two Hosts', request: twice, expect: { status: REFUSED } },
    { name: 'HTTP/1.0 without Host', request: { ...set(request, 'Host', undefined), version: 'HTTP/1.0' } },
  ]);
}

/** Pages that may write, and pages that may not. */
function origin(rng: Rng, situation: Situation): Head {
  const evil = choose(rng, ['http://evil.com', 'null', 'http://127.0.0.1.evil.com', 'http://127.evil.com', 'http://localhost.evil.com', 'http://evil.com#.localhost', 'http://evil.com:80:80', 'https://evil.com/localhost', 'file://', 'http://localhost@evil.com', 'chrome-extension://abc', 'http://', 'evil', `http://${'a'.repeat(logBetween(rng, 10, 8000))}.com`]); // prettier-ignore
  if (chance(rng, 0.3)) {
    const good = choose(rng, [LOCAL_ORIGIN, 'http://127.0.0.1:4300', 'http://[::1]:9', 'https://localhost']);
    return { name: `Origin: ${good}`, request: set(smallChat(rng, situation), 'Origin', good), expect: { status: [200] } };
  }
  const request = set(smallChat(rng, situation), 'Origin', evil);
  const asked = chance(rng, 0.3) ? { ...set(request, 'Access-Control-Request-Method', 'POST'), method: 'OPTIONS' } : request;
  const status = asked.method === 'OPTIONS' ? undefined : [403];
  return { name: `${asked.method}, Origin: ${evil.slice(0, 60)}`, request: asked, expect: { ...(status && { status }), withoutHeader: 'access-control-allow-origin' } }; // prettier-ignore
}

/** With a key set: who has it. Without: any header of that name is fine. */
function key(rng: Rng, situation: Situation): Head {
  const target = choose(rng, ['/v1/chat/completions', '/v1/models', '/flush_cache', '/abort_request', '/get_server_info', '/tokenize']);
  const base = target === '/v1/models' || target === '/get_server_info' ? plainRequest(situation, 'chat', target) : { ...smallChat(rng, situation), target }; // prettier-ignore
  const wrong = choose(rng, [undefined, '', 'Bearer', 'Bearer ', 'Bearer wrong', `Bearer ${situation.key ?? ''}x`, `Basic ${situation.key ?? 'a'}`, situation.key ?? 'a', 'Bearer \u00ff', `Bearer ${'k'.repeat(logBetween(rng, 10, 12_000))}`, `Bearer wrong, Bearer ${situation.key ?? ''}`]); // prettier-ignore
  if (chance(rng, 0.3)) {
    const scheme = choose(rng, ['Bearer', 'bearer', 'BEARER']);
    const request = set(list(situation), 'Authorization', `${scheme} ${situation.key ?? 'any'}`);
    return { name: `${scheme} and the key`, request, expect: { status: [200] } };
  }
  const name = `${target}, Authorization: ${String(wrong).slice(0, 40)}`;
  return { name, request: set(base, 'Authorization', wrong), ...(situation.key !== undefined && { expect: { status: [401] } }) };
}

/** What the client expects before it sends its body. */
function expectHeader(rng: Rng, situation: Situation): Head {
  const value = choose(rng, ['100-continue', '100-CONTINUE', 'foo', '', '100-continue, foo', '200-ok', 'x'.repeat(4000)]);
  const request = set(smallChat(rng, situation), 'Expect', value);
  return { name: `Expect: ${value.slice(0, 40)}`, request, ...(value === 'foo' && { expect: { status: [417] } }) };
}

/** Lengths that are not the body's. */
function length(rng: Rng, situation: Situation): Head {
  const request = smallChat(rng, situation);
  const { length: size } = request.body!;
  const one = (value: string): HeaderList => [['Content-Length', value]];
  const [name, framing] = choose<readonly [string, HeaderList]>(rng, [
    ['none', []],
    ['too large', one(String(size + logBetween(rng, 1, 1e9)))],
    ['too small', one(String(Math.max(0, size - logBetween(rng, 1, size))))],
    ['zero', one('0')],
    ['negative', one(`-${size}`)],
    ['with a sign', one(`+${size}`)],
    ['hexadecimal', one(`0x${size.toString(16)}`)],
    ['with a fraction', one(`${size}.0`)],
    ['with an exponent', one('1e3')],
    ['a list', one(`${size}, ${size}`)],
    ['empty', one('')],
    ['beyond 64 bits', one('99999999999999999999999')],
    ['beyond what is accepted', one(String(2 ** 40))],
    ['twice the same', [...one(String(size)), ...one(String(size))]],
    ['twice, different', [...one(String(size)), ...one('5')]],
    ['with spaces', one(`  ${size}  `)],
    ['with a letter', one(`${size}a`)],
  ]);
  // What is left of the body is one broken request more.
  return { name: `Content-Length ${name}`, request: { ...request, framing }, expect: { answers: 'optional', atMost: 2 } };
}

/** Transfer codings, and bodies whose end two servers could see in different places. */
function coding(rng: Rng, situation: Situation): Head {
  const request = smallChat(rng, situation);
  const body = request.body!;
  const te = (value: string): HeaderList => [['Transfer-Encoding', value]];
  const whole = chunked(rng, body);
  const both: HeaderList = [...te('chunked'), ['Content-Length', choose(rng, ['4', '0', String(body.length), String(whole.length)])]];
  if (chance(rng, 0.15))
    return { name: 'chunked', request: { ...request, framing: te('chunked'), body: whole }, expect: { status: [200] } };
  const [name, framing, bytes] = choose<readonly [string, HeaderList, Buffer]>(rng, [
    ['chunked and a length', both, whole],
    ['chunked twice', [...te('chunked'), ...te('identity')], whole],
    [choose(rng, ['xchunked', 'identity', 'gzip, chunked', 'chunked, gzip', 'Chunked', ' chunked', '\tchunked', '"chunked"', 'chunked;q=1', ', chunked']), [], whole], // prettier-ignore
    ['a size that is no number', te('chunked'), Buffer.from('zz\r\nabc\r\n0\r\n\r\n')],
    ['a negative size', te('chunked'), Buffer.from('-1\r\nabc\r\n0\r\n\r\n')],
    ['a size beyond 64 bits', te('chunked'), Buffer.from(`${'f'.repeat(20)}\r\nabc\r\n0\r\n\r\n`)],
    ['a size too small', te('chunked'), Buffer.from('2\r\nabcdef\r\n0\r\n\r\n')],
    ['bare line feeds', te('chunked'), Buffer.from(whole.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')],
    ['extensions', te('chunked'), Buffer.from(`${body.length.toString(16)};${'x=y;'.repeat(logBetween(rng, 1, 8000))}\r\n${body.toString()}\r\n0\r\n\r\n`)], // prettier-ignore
    [
      'trailers',
      te('chunked'),
      Buffer.concat([whole.subarray(0, -2), Buffer.from(`${'X-T: v\r\n'.repeat(logBetween(rng, 1, 4000))}\r\n`)]),
    ],
    ['no last chunk', te('chunked'), whole.subarray(0, -5)],
    ['a request behind the end', te('chunked'), whole],
  ]);
  const smuggled = Buffer.from('GET /v1/models?smuggled HTTP/1.1\r\nHost: evil.com\r\n\r\n');
  const after = name === 'chunked and a length' || name === 'a request behind the end' ? smuggled : undefined;
  const expect: Partial<Expectation> = { answers: 'optional', atMost: name === 'chunked and a length' ? 1 : 2 };
  const lengths = framing.length > 0 ? framing : te(name);
  return { name: `Transfer-Encoding, ${name}`, request: { ...request, framing: lengths, body: bytes }, expect, ...(after && { after }) };
}

/** The request line. */
function line(rng: Rng, situation: Situation): Head {
  const request = choose(rng, [smallChat(rng, situation), list(situation)]);
  const method = choose(rng, ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'OPTIONS', 'PROPFIND', 'CONNECT', 'FOO', 'get', '', 'G\0T', 'PRI', 'M'.repeat(200)]); // prettier-ignore
  const target = choose(rng, ['/', '*', '/v1', '/v1/', '//v1//models', '/V1/MODELS', '/v1/models/', '/v1/models/%00', '/v1/models/%ff', '/v1/models/%', '/v1/models/../..', '/v1/models?a[b]=c&a[__proto__]=1', `/v1/models/${'a'.repeat(logBetween(rng, 10, 20_000))}`, 'http://evil.com/v1/models', 'http://localhost/v1/models', 'evil.com:443', '/v1/chat/completions#x', '/v1/chat completions', '/\u00fc', '', '?', '/v1/models/parley-chat', '/health', '/metrics', '/openapi.json']); // prettier-ignore
  const version = choose(rng, [
    'HTTP/1.1',
    'HTTP/1.1',
    'HTTP/1.1',
    'HTTP/1.0',
    'HTTP/0.9',
    'HTTP/2.0',
    'HTTP/9.9',
    'http/1.1',
    'HTTP/1.1 ',
    'HTTP',
    '',
  ]);
  const name = `${method.slice(0, 12)} ${target.slice(0, 40)} ${version}`;
  // Whatever reads as a request gets an answer, though its method or its target may exist nowhere.
  const isRequest = /^[A-Z]+$/.test(method) && /^[\x21-\x7e]+$/.test(target) && version === 'HTTP/1.1';
  return {
    name,
    request: { ...request, method, target, version },
    expect: { answers: isRequest ? 'one' : 'optional', atMost: isRequest ? 1 : 2 },
  };
}

/** Headers that are too many, too long, or no headers. */
function others(rng: Rng, situation: Situation): Head {
  const request = smallChat(rng, situation);
  const extra = (...headers: HeaderList): PlainRequest => ({ ...request, headers: [...request.headers, ...headers] });
  const text = choose(rng, HOSTILE_TEXTS);
  return choose<() => Head>(rng, [
    () => ({ name: 'many headers', request: extra(...Array.from({ length: logBetween(rng, 50, 3000) }, (_, i) => [`X-${i}`, 'v'] as const)) }), // prettier-ignore
    () => ({ name: 'a long header', request: extra(['X-Long', 'v'.repeat(logBetween(rng, 1000, 100_000))]) }),
    () => ({ name: 'a folded header', request: extra(['X-Folded', 'a\r\n b']) }),
    () => ({ name: 'a header without a name', request: extra(['', 'v']) }),
    () => ({ name: 'a space in a name', request: extra(['X Y', 'v'], ['Content-Length ', '3']) }),
    () => ({ name: 'a bare CR', request: extra(['X-CR', 'a\rb']) }),
    () => ({ name: 'NUL', request: extra(['X-NUL', 'a\0b']) }),
    () => ({ name: `X-Request-Id: ${JSON.stringify(text)}`, request: extra(['X-Request-Id', text]) }),
    () => ({ name: 'Upgrade', request: extra(['Connection', 'Upgrade'], ['Upgrade', choose(rng, ['websocket', 'h2c', 'foo', text])]) }),
    () => ({ name: 'Connection', request: extra(['Connection', choose(rng, ['close', 'keep-alive', 'host', 'content-length', text])]) }),
    () => ({ name: 'Content-Encoding', request: extra(['Content-Encoding', choose(rng, ['gzip', 'br', 'identity', 'deflate, gzip', text])]) }), // prettier-ignore
    () => ({ name: 'Accept', request: extra(['Accept', choose(rng, ['application/xml', 'text/html', '*/*;q=0', text])]) }),
    () => ({ name: 'Content-Type', request: set(request, 'Content-Type', choose(rng, ['text/plain', 'application/json; charset=utf-16', 'application/json;', 'application/jsonx', 'multipart/form-data', text, undefined])) }), // prettier-ignore
  ])();
}

/** Any of the above, as a case. Those whose line or framing may be wrong get an answer or a closed connection. */
export function anyHead(rng: Rng, situation: Situation): Omit<FuzzCase, 'delivery'> {
  const make = choose(rng, [host, host, hostCount, origin, origin, key, expectHeader, length, coding, line, others]);
  const { name, request, expect = {}, after } = make(rng, situation);
  // What Node's parser refuses is answered and closed at once, so the rest of what was sent may reset the connection.
  const isPlain = make !== others && request.headers.every(([, value]) => !/[\0\r\n\x01-\x08\x0b-\x1f\x7f]/.test(value) && value.length < 7000); // prettier-ignore
  const answers = expect.answers ?? (isPlain ? 'one' : 'optional');
  return {
    name: `head/${name}`,
    listener: request.listener,
    method: request.method,
    bytes: Buffer.concat([toBytes(request), after ?? Buffer.alloc(0)]),
    expect: { ...expect, answers, ...(answers === 'optional' && { atMost: expect.atMost ?? 2 }) },
  };
}
