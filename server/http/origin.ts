/**
 * Which hosts and origins a listener answers. A page of another site must not use a local server through the visitor's
 * browser: its origin is refused, and so is its host name after DNS rebinding.
 */
import { isIP, isIPv4 } from 'node:net';
import { hostname } from 'node:os';
import { domainToASCII } from 'node:url';

export interface OriginRules {
  /** Origins allowed besides loopback ones and the server's own; `*` = any. */
  readonly corsOrigins: readonly string[];
  /** Host names allowed besides IP addresses, localhost, single labels, *.svc and the machine's own; `*` = any. */
  readonly allowedHosts: readonly string[];
}

export const DEFAULT_ORIGIN_RULES: OriginRules = { corsOrigins: [], allowedHosts: [] };

/** Host header without port and brackets, lower case; undefined if it is anything but a name or an address and perhaps a port. */
export function hostOf(header: string): string | undefined {
  const [, address, name, port = ''] = /^(?:\[([^\]]+)\]|([a-z0-9._~-]+))(?::(\d{0,5}))?$/i.exec(header.trim()) ?? [];
  if (Number(port) > 65535 || (address !== undefined && isIP(address) !== 6)) return undefined;
  return (address ?? name)?.toLowerCase();
}

/** A host name that an operator allows, as `hostOf` gives those of requests; undefined for what is none. */
export function readHost(given: string): string | undefined {
  const [, name = given, port = ''] = /^([^:]*)(:\d+)?$/.exec(given) ?? [];
  if (isIP(given) > 0) return given.toLowerCase();
  // Browsers send names of other scripts in ASCII.
  return hostOf(/^[ -~]*$/.test(name) ? given : domainToASCII(name) + port);
}

/** An origin that an operator allows, as browsers send it: in lower case, in ASCII, and without the port that its scheme has anyway; undefined for what is none. */
export function readOrigin(given: string): string | undefined {
  // Of a page without an address.
  if (given === 'null') return given;
  const isOne = /^[a-z][a-z\d+.-]*:\/\/[^/?#@*\\]+\/?$/i.test(given) && URL.canParse(given);
  const url = isOne ? new URL(given) : undefined;
  // Of schemes that are no web's, such as an extension's, URL has no origin.
  return url ? `${url.protocol}//${url.host}`.toLowerCase() : undefined;
}

/** Whether a Host header names this server: names that a stranger's DNS cannot point here. An empty one comes from no browser. */
export function isHostAllowed(header: string, { allowedHosts }: OriginRules): boolean {
  if (header.trim() === '' || allowedHosts.includes('*')) return true;
  const host = hostOf(header);
  if (host === undefined) return false;
  const isLocal = host.endsWith('.localhost') || host.endsWith('.svc') || host.endsWith('.svc.cluster.local');
  return allowedHosts.includes(host) || isIP(host) > 0 || isLocal || !host.includes('.') || host === hostname().toLowerCase();
}

/** Whether a page of `origin` may use the server reached as `hostHeader`. */
export function isOriginAllowed(origin: string, hostHeader: string, { corsOrigins }: OriginRules): boolean {
  if (corsOrigins.includes('*') || corsOrigins.includes(origin)) return true;
  // The playground lies on the chat listener and talks to all three: same host, other port.
  const host = hostOf(/^https?:\/\/(.*)$/i.exec(origin)?.[1] ?? '');
  return host !== undefined && (isLoopback(host) || host === hostOf(hostHeader));
}

/** Whether a host, parsed whole, is this machine: localhost, a name below it, 127.0.0.0/8 (also written as IPv6), ::1. */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^::ffff:(?=\d+\.)/, '');
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || (isIPv4(address) && address.startsWith('127.'));
}
