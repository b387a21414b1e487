/** What the page's work needs of the app: no views, and no work of another kind. */
import type { TaskEngine } from './backend/remote-engine.ts';
import type { ModelTask } from './models/manifest.ts';
import type { ModelChoices } from './models/model-choices.ts';
import type { Settings } from './settings.ts';
import type { Deletions } from './storage/deletions.ts';
import type { Tabs } from './storage/tabs.ts';
import type { WorkStore } from './storage/work-store.ts';
import type { Announcer } from './ui/announcer.ts';

export interface Services {
  readonly settings: Settings;
  readonly choices: ModelChoices;
  readonly announcer: Announcer;
  readonly tabs: Tabs;
  readonly deletions: Deletions;
  readonly work: WorkStore;
  /** The engine of a task where the person wants it, once it is loaded; throws what `toFailure` explains when it cannot run. */
  engine(task: ModelTask, signal: AbortSignal): Promise<TaskEngine>;
}
