import type { MessagePortLike } from '../../../engine/host.ts';

/**
 * Wraps a MessagePort for the engine's client and host. Ports do not report when the other side dies: `closed` resolves when the caller
 * knows that it did.
 */
export function messagePort(port: MessagePort, closed?: Promise<unknown>): MessagePortLike {
  return {
    post: (message, transfer = []) => port.postMessage(message, [...transfer]),
    onMessage: (callback) => {
      port.onmessage = (event) => callback(event.data);
    },
    onClose: (listener) => void closed?.then(listener),
  };
}
