/** Entry of an engine process with a FakeEngine; `adapter` says how it behaves. */
import { appendFileSync, existsSync } from 'node:fs';
import type { EngineStatus } from '../../engine/api.ts';
import { EngineError } from '../../engine/errors.ts';
import { runEngineProcess } from '../../server/engine/port.ts';
import { FakeEngine } from './fake-engine.ts';

/** Says that GPU work is pending and never finishes it once it has been asked for something. */
class StalledEngine extends FakeEngine {
  override status(): EngineStatus {
    return { ...super.status(), pending: this.chats.length > 0, lastProgress: 5 };
  }
}

/** Loses its device once it has been asked for something. */
class LosingEngine extends FakeEngine {
  override status(): EngineStatus {
    return { ...super.status(), state: this.chats.length > 0 ? 'lost' : 'ready' };
  }
}

/** Blocks its event loop for good once it has been asked for something. */
class HangingEngine extends FakeEngine {
  override chat(): never {
    for (;;);
  }
}

/** `first>later:file` behaves as `first` says in the first life and as `later` says afterwards; `file` gets a letter a life. */
function behaviourOf(adapter: string | undefined): string | undefined {
  const [, first, later, file] = /^(.*)>(.*):(.*)$/.exec(adapter ?? '') ?? [];
  if (file === undefined) return adapter;
  const isFirst = !existsSync(file);
  appendFileSync(file, 'x');
  return isFirst ? first : later;
}

runEngineProcess(async ({ config }, log) => {
  const adapter = behaviourOf(config.adapter);
  log('fake engine starts');
  if (adapter === 'fail') throw new EngineError('no_adapter', 'no adapter is called that');
  if (adapter === 'refuse') {
    process.stderr.write('Warning: what a driver has to say\n');
    throw new EngineError('unsupported', 'config.json: hidden_act is "gelu", expected "silu"');
  }
  if (adapter === 'reset') throw new EngineError('device_lost', 'llvmpipe was lost');
  if (adapter === 'crash') process.kill(process.pid, 'SIGKILL');
  if (adapter === 'leave') {
    process.removeAllListeners('disconnect');
    // Not while Node still hands over the message that got here.
    setImmediate(() => process.disconnect());
    await new Promise((resolve) => setTimeout(resolve, 600));
    process.exit(3);
  }
  // Its models are never loaded.
  if (adapter === 'load') await new Promise(() => {});
  if (adapter === 'stall') return new StalledEngine({ delay: 1e6 });
  if (adapter === 'lose') return new LosingEngine({ delay: 1e6 });
  if (adapter === 'hang') return new HangingEngine();
  if (adapter === 'buggy') return new FakeEngine({ failAfter: 0, failWith: new TypeError('x is not a function') });
  // Says that it has begun, or its first word, and then nothing more.
  if (adapter === 'started') return new FakeEngine({ delays: [0, 1e6] });
  if (adapter === 'half') return new FakeEngine({ delays: [0, 0, 1e6] });
  if (adapter === 'slow') return new FakeEngine({ delay: 1e6 });
  // About a second, and for ever.
  if (adapter === 'steady') return new FakeEngine({ words: Array<string>(50).fill('x'), delay: 20 });
  if (adapter === 'endless') return new FakeEngine({ words: Array<string>(100_000).fill('x'), delay: 20 });
  return new FakeEngine();
});
