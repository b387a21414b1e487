import type { MessagePortLike } from '../../../engine/host.ts';

/** A MessagePort as the engine's client and host want it. Ports do not say when the other side dies, so whoever knows calls `closed`. */
export function messagePort(port: MessagePort, closed?: Promise<unknown>): MessagePortLike {
  return {
    post: (message, transfer = []) => port.postMessage(message, [...transfer]),
    onMessage: (callback) => {
      port.onmessage = (event) => callback(event.data);
    },
    onClose: (listener) => void closed?.then(listener),
  };
}
