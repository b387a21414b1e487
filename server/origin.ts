/**
 * Which hosts and origins a listener answers. A page of another site must not use a local server through the visitor's
 * browser: its origin is refused, and so is its host name after DNS rebinding.
 */
import { hostname } from 'node:os';

export interface OriginRules {
  /** Origins allowed besides loopback ones and the server's own; `*` = any. */
  readonly corsOrigins: readonly string[];
  /** Host names allowed besides IP addresses, localhost, single labels, *.svc and the machine's own; `*` = any. */
  readonly allowedHosts: readonly string[];
}

export const DEFAULT_ORIGIN_RULES: OriginRules = { corsOrigins: [], allowedHosts: [] };

/** Host header without port and brackets, lower case. */
export function hostOf(header: string | undefined): string {
  const host = (header ?? '').trim().toLowerCase();
  return host.startsWith('[') ? host.slice(1, host.indexOf(']')) : host.replace(/:\d*$/, '');
}

/** Whether a Host header names this server: names that a stranger's DNS cannot point here. */
export function isHostAllowed(header: string | undefined, { allowedHosts }: OriginRules): boolean {
  const host = hostOf(header);
  if (host === '' || allowedHosts.includes('*') || allowedHosts.includes(host)) return true;
  const isAddress = host.includes(':') || /^\d+\.\d+\.\d+\.\d+$/.test(host);
  const isLocal = host.endsWith('.localhost') || host.endsWith('.svc') || host.endsWith('.svc.cluster.local');
  return isAddress || isLocal || !host.includes('.') || host === hostname().toLowerCase();
}

/** Whether a page of `origin` may use the server reached as `hostHeader`. */
export function isOriginAllowed(origin: string, hostHeader: string | undefined, { corsOrigins }: OriginRules): boolean {
  if (corsOrigins.includes('*') || corsOrigins.includes(origin)) return true;
  const host = URL.canParse(origin) ? hostOf(new URL(origin).host) : '';
  if (host === '') return false;
  // The playground lies on the chat listener and talks to all three: same host, other port.
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127\./.test(host) || host === hostOf(hostHeader);
}
