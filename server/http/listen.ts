/** One listening socket with limits on slow and broken clients, and a close that drains. */
import { STATUS_CODES, createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Server as TlsServer } from 'node:https';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TlsOptions } from '../access/tls.ts';
import { bind } from './bind.ts';
import { HttpError } from './errors.ts';
import { STALL_MS } from './sse.ts';

const KEEP_ALIVE_MS = 75_000; // must exceed the idle time of proxies in front
const HEADERS_MS = 15_000;
const CHECK_MS = 5_000;
const MAX_CONNECTIONS = 2048;
/** A flood of connections is one line of the log in this time. */
const REFUSED_MS = 10_000;
const MAX_HEADERS = 100;
/** Node closes sockets that are idle at close(), but not those that become idle later: they are swept. */
const SWEEP_MS = 100;

/** What a listener says: numbers, and what they are. */
interface RefusalLog {
  warn(fields: object, text: string): void;
}

export interface ListenOptions {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** Time to receive a whole request; uploads need longer than the rest. */
  readonly requestTimeoutMs?: number;
  /** Serve HTTPS. */
  readonly tls?: TlsOptions;
  /** Connections at once; those beyond are closed. */
  readonly maxConnections?: number;
  /** Gets a warning when connections are closed because there are too many. */
  readonly log?: RefusalLog;
}

export interface Listener {
  readonly port: number;
  /** Stops listening; resolves when every request has been answered and every socket is closed. */
  drain(): Promise<void>;
  /** New connections get another certificate. */
  renewTls(tls: TlsOptions): void;
  /** Closes every socket now. */
  destroy(): void;
}

/** Starts a server for the app; rejects if the address cannot be had. */
export async function listen(app: RequestListener, settings: ListenOptions): Promise<Listener> {
  const { host, port, requestTimeoutMs = 120_000, tls, maxConnections = MAX_CONNECTIONS, log } = settings;
  const options = {
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: Math.min(HEADERS_MS, requestTimeoutMs),
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, requestTimeoutMs / 2),
    noDelay: true,
    // Missing ones are refused by the app, which answers with the JSON error.
    requireHostHeader: false,
  };
  const secure = tls && createTlsServer({ ...options, ...tls, handshakeTimeout: HEADERS_MS }, app);
  const server: Server | TlsServer = secure ?? createServer(options, app);
  server.maxConnections = maxConnections;
  if (log) warnOfRefused(server, log);
  server.maxHeadersCount = MAX_HEADERS;
  const isAnswering = trackAnswers(server);
  // Behind a request whose answer has begun nothing else may be written.
  server.on('clientError', (error, socket) => (isAnswering(socket) ? socket.destroy() : answerBrokenRequest(error, socket as Socket)));
  // Nobody listens: Node would close the connection without a word.
  server.on('connect', (_request, socket) =>
    answerRaw(
      socket,
      new HttpError(405, 'method_not_allowed', 'CONNECT is not served here', { headers: { allow: 'GET, HEAD, POST, OPTIONS' } }),
    ),
  );
  // A body that is waited for is asked for when it is read: what is refused by its headers is never sent.
  for (const event of ['checkContinue', 'checkExpectation'] as const)
    server.on(event, (...exchange) => server.emit('request', ...exchange));
  closeWaiting(server);
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

/** The first connection that is closed for want of room is said at once; those after it are counted, and said together. */
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

/** Connections that have not asked anything yet; Node does not count those as idle. By their other end: with TLS a request has another socket. */
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

/** Whether a connection is being sent an answer. */
function trackAnswers(server: Server | TlsServer): (socket: Duplex) => boolean {
  const answers = new WeakMap<Duplex, Set<ServerResponse>>();
  server.on('request', ({ socket }, response) => {
    const running = answers.get(socket) ?? new Set();
    answers.set(socket, running.add(response));
    response.once('close', () => running.delete(response));
  });
  return (socket) => [...(answers.get(socket) ?? [])].some(({ headersSent }) => headersSent);
}

/**
 * Tells the responses that wait their turn behind others of their connection that it has closed: they have no socket yet, and so Node does not. Their
 * requests would else be computed for nobody, and wait for a reader forever.
 */
function closeWaiting(server: Server | TlsServer): void {
  const waiting = new WeakMap<Socket, Set<ServerResponse>>();
  server.on('request', ({ socket }, response) => {
    if (response.socket !== null) return;
    const queue = waiting.get(socket) ?? new Set();
    if (!waiting.has(socket)) {
      waiting.set(socket, queue);
      socket.once('close', () => {
        for (const one of queue) one.destroy().emit('close');
      });
    }
    queue.add(response);
    // Its turn has come, and Node tells it.
    response.once('socket', () => queue.delete(response));
  });
}

/** Closes the connection of a client that takes nothing of the end of its answer, which nobody waits for. Once that is taken, Node has times of its own. */
function closeStalled(server: Server | TlsServer): void {
  // Before the app, which may end it at once.
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

/** What never became a request still gets the JSON error. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
  else answerRaw(socket, describeBroken(error.code));
}

/** The JSON error on a connection that has no response to write it with. */
function answerRaw(socket: Duplex, { status, body, headers }: HttpError): void {
  const text = JSON.stringify(body);
  const all = {
    connection: 'close',
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  // Whoever has gone already needs no answer.
  socket.on('error', () => {});
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`);
}

function describeBroken(code: string | undefined): HttpError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new HttpError(408, 'request_timeout', 'the request was not received in time', { type: 'timeout_error' });
  }
  if (code === 'HPE_HEADER_OVERFLOW') return new HttpError(431, 'request_too_large', 'the request headers are too large');
  return new HttpError(400, 'invalid_value', 'this is not a valid HTTP request');
}
