/** The part of App that work on conversations, takes and transcripts uses: no views, and no work of another kind. */
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
  /**
   * Returns a task's engine, in the tab or on a server as chosen, once it is loaded; throws what `toFailure` can describe when it cannot
   * run.
   */
  engine(task: ModelTask, signal: AbortSignal): Promise<TaskEngine>;
}
