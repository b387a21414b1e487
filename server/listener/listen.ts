/** An HTTP(S) server with limits for slow and broken clients, and a close that drains. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES, createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Server as TlsServer } from 'node:https';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import type { TlsOptions } from '../access/tls.ts';
import { bind } from '../http/bind.ts';
import { HttpError } from '../http/errors.ts';
import { STALL_MS } from '../http/sse.ts';

const KEEP_ALIVE_MS = 75_000; // must exceed the idle time of proxies in front
const HEADERS_MS = 15_000;
const CHECK_MS = 5_000;
const MAX_CONNECTIONS = 2048;
/** Refused connections are logged in one line per this time. */
const REFUSED_MS = 10_000;
const MAX_HEADERS = 100;
/** Most requests that a connection may send ahead while one before them is unanswered. */
const MAX_AHEAD = 100;
/** Interval of closing idle sockets while draining: Node's close() only closes those that are idle when it is called. */
const SWEEP_MS = 100;

/** The part of a logger that a listener uses. */
interface RefusalLog {
  warn(fields: object, text: string): void;
}

export interface ListenOptions {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** Time to receive a whole request, in milliseconds; default two minutes. Uploads need longer. */
  readonly requestTimeoutMs?: number;
  /** Serve HTTPS with these options; absent = HTTP. */
  readonly tls?: TlsOptions;
  /** Most open connections, where that is fewer than MAX_CONNECTIONS; further ones are closed at once. */
  readonly maxConnections?: number;
  /** Receives a warning when connections are refused. */
  readonly log?: RefusalLog;
}

export interface Listener {
  readonly port: number;
  /** Stops accepting connections; resolves when all requests are answered and all sockets closed. */
  drain(): Promise<void>;
  /** Changes the certificate of new connections. */
  renewTls(tls: TlsOptions): void;
  /** Closes every socket now. */
  destroy(): void;
}

/** Starts a server for the app; rejects with the system's error if the address cannot be bound. */
export async function listen(app: RequestListener, settings: ListenOptions): Promise<Listener> {
  const { host, port, requestTimeoutMs = 120_000, tls, maxConnections = MAX_CONNECTIONS, log } = settings;
  const options = {
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: Math.min(HEADERS_MS, requestTimeoutMs),
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, requestTimeoutMs / 2),
    noDelay: true,
    // The app refuses a missing Host, with a JSON error.
    requireHostHeader: false,
  };
  const secure = tls && createTlsServer({ ...options, ...tls, handshakeTimeout: HEADERS_MS });
  const server: Server | TlsServer = secure ?? createServer(options);
  server.maxConnections = Math.min(maxConnections, MAX_CONNECTIONS);
  if (log) warnOfRefused(server, log);
  server.maxHeadersCount = MAX_HEADERS;
  const isAnswering = trackAnswers(server);
  server.on('request', inTurns(app, isAnswering));
  // An error cannot be written to a connection on which an answer has begun.
  server.on('clientError', (error, socket) => (isAnswering(socket) ? socket.destroy() : answerBrokenRequest(error, socket as Socket)));
  // Without a listener, Node would close the connection without an answer.
  server.on('connect', (_request, socket) =>
    refuseRaw(
      socket,
      new HttpError(405, 'method_not_allowed', 'CONNECT is not served here', { headers: { allow: 'GET, HEAD, POST, OPTIONS' } }),
    ),
  );
  // 100 Continue is sent only when the body is read, so a request that its headers disqualify never sends one.
  for (const event of ['checkContinue', 'checkExpectation'] as const)
    server.on(event, (...exchange) => server.emit('request', ...exchange));
  closeStalled(server);
  const silent = trackSilent(server);
  await bind(server, port, host);
  return {
    port: (server.address() as AddressInfo).port,
    drain: () => drain(server, silent),
    renewTls: (renewed) => secure?.setSecureContext({ ...renewed }),
    destroy: () => server.closeAllConnections(),
  };
}

/** Logs refused connections: the first at once, later ones together, once per REFUSED_MS. */
function warnOfRefused(server: Server | TlsServer, log: RefusalLog): void {
  let refused = 0;
  let timer: NodeJS.Timeout | undefined;
  const say = (): void => {
    timer = undefined;
    if (refused === 0) return;
    const { port } = (server.address() ?? {}) as Partial<AddressInfo>;
    log.warn({ port, refused, connections: server.maxConnections }, 'connections were closed: as many as there may be are open');
    refused = 0;
    timer = setTimeout(say, REFUSED_MS).unref();
  };
  server.on('drop', () => {
    refused++;
    if (timer === undefined) say();
  });
}

/** Tracks connections that have sent no request yet, which Node does not count as idle. They are keyed by remote address and port, since with TLS a request has another socket. */
function trackSilent(server: Server | TlsServer): ReadonlyMap<string, Socket> {
  const silent = new Map<string, Socket>();
  const endOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
  server.on('connection', (socket: Socket) => {
    const end = endOf(socket);
    silent.set(end, socket);
    socket.on('close', () => silent.get(end) === socket && silent.delete(end));
  });
  server.on('request', (request) => silent.delete(endOf(request.socket)));
  return silent;
}

/** Returns a function that tells whether an answer is being sent on a connection. */
function trackAnswers(server: Server | TlsServer): (socket: Duplex) => boolean {
  const answers = new WeakMap<Duplex, Set<ServerResponse>>();
  server.on('request', ({ socket }, response) => {
    const running = answers.get(socket) ?? new Set();
    answers.set(socket, running.add(response));
    response.once('close', () => running.delete(response));
  });
  // An answer that waits behind another has no socket yet.
  return (socket) => [...(answers.get(socket) ?? [])].some((response) => response.headersSent && response.socket !== null);
}

/** What a connection has sent ahead of the answers. */
interface Pipeline {
  /** Starts of requests that wait for a turn. */
  readonly starts: (() => void)[];
  /** Responses that wait behind others of the connection. */
  readonly waiting: Set<ServerResponse>;
}

/**
 * Gives requests to the app. Those that a connection has pipelined, thousands of which may come in one piece, start one in each turn of the event loop, so that those of
 * other connections are served in between; a connection with more than MAX_AHEAD is closed.
 */
function inTurns(app: RequestListener, isAnswering: (socket: Duplex) => boolean): RequestListener {
  const pipelines = new WeakMap<Socket, Pipeline>();
  return (request, response) => {
    // Of a connection that was closed, what came before still arrives.
    if (request.socket.destroyed || request.socket.writableEnded) return;
    if (response.socket !== null) return app(request, response);
    let pipeline = pipelines.get(request.socket);
    if (pipeline === undefined) pipelines.set(request.socket, (pipeline = openPipeline(request.socket)));
    const { starts, waiting } = pipeline;
    if (waiting.size === MAX_AHEAD) return refuseAhead(request.socket, isAnswering(request.socket));
    waiting.add(response);
    // From now on Node itself closes it.
    response.once('socket', () => waiting.delete(response));
    starts.push(() => app(request, response));
    if (starts.length === 1) setImmediate(startNext, pipeline);
  };
}

/** Starts the next request of a connection, and the others in later turns. */
function startNext(pipeline: Pipeline): void {
  pipeline.starts.shift()?.();
  if (pipeline.starts.length > 0) setImmediate(startNext, pipeline);
}

/**
 * The pipeline of a connection, whose waiting responses are closed when the connection closes. Node does not, since they have no socket yet; their requests would be
 * computed for nobody and wait for a reader forever.
 */
function openPipeline(socket: Socket): Pipeline {
  const pipeline: Pipeline = { starts: [], waiting: new Set() };
  socket.once('close', () => {
    pipeline.starts.length = 0;
    for (const response of pipeline.waiting) response.destroy().emit('close');
  });
  return pipeline;
}

/** Closes a connection that has sent too many requests ahead, with an error where that would not be in the midst of other answers. */
function refuseAhead(socket: Socket, isAnswering: boolean): void {
  if (isAnswering || socket.writableLength > 0) return void socket.destroy();
  refuseRaw(
    socket,
    new HttpError(
      400,
      'invalid_value',
      `at most ${MAX_AHEAD} requests may wait behind another on a connection; wait for answers or open more`,
    ),
  );
}

/** Closes the connection of a client that does not read the end of its answer, for which no handler waits. Afterwards Node's own timeouts apply. */
function closeStalled(server: Server | TlsServer): void {
  // Registered before the app's handler, which may end the response at once.
  server.prependListener('request', (_request, response) => response.once('prefinish', () => void response.setTimeout(STALL_MS)));
}

async function drain(server: Server | TlsServer, silent: ReadonlyMap<string, Socket>): Promise<void> {
  const sweep = setInterval(() => {
    server.closeIdleConnections();
    for (const socket of silent.values()) socket.destroy();
  }, SWEEP_MS);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  clearInterval(sweep);
}

/** Answers a connection whose request could not be parsed with a JSON error. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  // It has its answer, and what came behind its request is no request either.
  if (socket.writableEnded && error.code !== 'ECONNRESET') return;
  if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
  else refuseRaw(socket, describeBroken(error.code));
}

/** Writes a JSON error to a connection that has no response object, and ends it. */
function refuseRaw(socket: Duplex, { status, body, headers }: HttpError): void {
  const text = JSON.stringify(body);
  const all = {
    'x-request-id': randomUUID(),
    connection: 'close',
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  // The client may have gone already.
  socket.on('error', () => {});
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`);
  // Node's parser may be in the midst of a piece.
  setImmediate(() => {
    // What else comes is none of the parser's.
    socket.removeAllListeners('data');
    discardRest(socket);
  });
}

/** Bytes that a refused client may still send, and for how many milliseconds. */
const REST_BYTES = 64 << 20;
const REST_MS = 10_000;

/**
 * Reads and discards what a client that was refused is still sending, up to a limit. A connection that is closed with bytes unread is reset, which can take the answer from a
 * client that has not read it yet.
 */
export function discardRest(stream: Readable): void {
  let left = REST_BYTES;
  const timer = setTimeout(() => stream.destroy(), REST_MS);
  stream.on('data', (chunk: Buffer) => (left -= chunk.length) < 0 && stream.destroy());
  stream.on('close', () => clearTimeout(timer));
  stream.resume();
}

function describeBroken(code: string | undefined): HttpError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new HttpError(408, 'request_timeout', 'the request was not received in time', { type: 'timeout_error' });
  }
  if (code === 'HPE_HEADER_OVERFLOW') return new HttpError(431, 'request_too_large', 'the request headers are too large');
  return new HttpError(400, 'invalid_value', 'this is not a valid HTTP request');
}
