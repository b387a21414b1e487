/** The script of the page's engine workers, and of its self-test, which thereby runs the engine's own kernels. */
import './engine-worker.ts';
import { SELF_TEST } from './protocol.ts';

if (self.name === SELF_TEST)
  import('../../../test/support/browser/self-test.ts').then(({ runSelfTest }) => runSelfTest()).catch(self.reportError);
