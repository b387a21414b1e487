/**
 * Which hosts and origins a listener accepts. A page of another site must not use a local server through its visitor's browser, so its origin is refused, and so
 * is its host name, which after DNS rebinding would resolve to this machine.
 */
import { isIP, isIPv4 } from 'node:net';
import { hostname } from 'node:os';
import { domainToASCII } from 'node:url';

export interface OriginRules {
  /** Origins allowed besides loopback ones and the server's own; `*` = any. */
  readonly corsOrigins: readonly string[];
  /** Host names allowed besides IP addresses, localhost, single labels, *.svc, a container's names of its host, and the machine's own; `*` = any. */
  readonly allowedHosts: readonly string[];
}

export const DEFAULT_ORIGIN_RULES: OriginRules = { corsOrigins: [], allowedHosts: [] };

/** The host of a Host header, in lower case, without port and brackets; undefined if the header is malformed. */
export function hostOf(header: string): string | undefined {
  const [, address, name, port = ''] = /^(?:\[([^\]]+)\]|([a-z0-9._~-]+))(?::(\d{0,5}))?$/i.exec(header.trim()) ?? [];
  if (Number(port) > 65535 || (address !== undefined && isIP(address) !== 6)) return undefined;
  return (address ?? name)?.toLowerCase();
}

/** Normalises a host name from the settings to the form that `hostOf` returns; undefined if it is none. */
export function readHost(given: string): string | undefined {
  const [, name = given, port = ''] = /^([^:]*)(:\d+)?$/.exec(given) ?? [];
  if (isIP(given) > 0) return given.toLowerCase();
  // Browsers send internationalised names in ASCII (Punycode).
  return hostOf(/^[ -~]*$/.test(name) ? given : domainToASCII(name) + port);
}

/** Normalises an origin from the settings to the form that browsers send: lower case, ASCII, without its scheme's default port; undefined if it is none. */
export function readOrigin(given: string): string | undefined {
  // The origin of sandboxed pages and local files.
  if (given === 'null') return given;
  const isOne = /^[a-z][a-z\d+.-]*:\/\/[^/?#@*\\]+\/?$/i.test(given) && URL.canParse(given);
  const url = isOne ? new URL(given) : undefined;
  // URL.origin is 'null' for schemes other than the web's, such as an extension's.
  return url ? `${url.protocol}//${url.host}`.toLowerCase() : undefined;
}

/**
 * The names by which containers of Docker and of Podman reach their host. ICANN keeps `.internal` for private use, so nobody can register a name below it, and no stranger's
 * DNS is asked for one: a page of another site can have none of them lead here.
 */
const HOST_OF_CONTAINERS: readonly string[] = ['host.docker.internal', 'host.containers.internal'];

/** Whether a Host header is accepted: it is allowed by the settings, or no stranger's DNS can define it. No browser sends an empty one. */
export function isHostAllowed(header: string, { allowedHosts }: OriginRules): boolean {
  if (header.trim() === '' || allowedHosts.includes('*')) return true;
  const host = hostOf(header);
  if (host === undefined) return false;
  const isLocal = ['.localhost', '.svc', '.svc.cluster.local'].some((end) => host.endsWith(end)) || HOST_OF_CONTAINERS.includes(host);
  return allowedHosts.includes(host) || isIP(host) > 0 || isLocal || !host.includes('.') || host === hostname().toLowerCase();
}

/** Whether a page of `origin` may use this server, which it reached as `hostHeader`. */
export function isOriginAllowed(origin: string, hostHeader: string, { corsOrigins }: OriginRules): boolean {
  if (corsOrigins.includes('*') || corsOrigins.includes(origin)) return true;
  // The playground is served by the chat listener and talks to all three, on the same host but other ports.
  const host = hostOf(/^https?:\/\/(.*)$/i.exec(origin)?.[1] ?? '');
  return host !== undefined && (isLoopback(host) || host === hostOf(hostHeader));
}

/** Whether a host name or address is this machine: localhost or a subdomain of it, 127.0.0.0/8 (also as mapped IPv6), ::1. */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^::ffff:(?=\d+\.)/, '');
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || (isIPv4(address) && address.startsWith('127.'));
}
