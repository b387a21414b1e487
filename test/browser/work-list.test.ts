/** Lists of takes and transcripts, without a browser. */
import { expect, test, vi } from 'vitest';
import { Deletions } from '../../web/src/storage/deletions.ts';
import type { Tabs } from '../../web/src/storage/tabs.ts';
import { WorkList } from '../../web/src/storage/work-list.ts';
import type { WorkData, WorkStore } from '../../web/src/storage/work-store.ts';

test('what is stored is shown at once, newest first, without what cannot be read', async () => {
  const records: readonly WorkData[] = Array.from({ length: 5 }, (_, at) => ({ id: `${at}`, created: at }));
  const list = new WorkList<WorkData, WorkData & { data(): WorkData }>(
    {
      work: { all: async () => records } as unknown as WorkStore,
      tabs: { listen: () => undefined } as unknown as Tabs,
      deletions: new Deletions(),
    },
    {
      kind: 'take',
      isReadable: ({ id }) => id !== '3',
      isRunning: () => false,
      revive: (data) => ({ ...data, data: () => data }),
      labelOf: ({ id }) => id,
      leave: () => undefined,
    },
  );
  const shown = vi.fn();
  list.items.subscribe((items) => shown(items.map(({ id }) => id)));
  expect(list.problem.value).toBe('');
  await list.restore();
  expect(shown.mock.calls).toEqual([[[]], [['4', '2', '1', '0']]]);
  expect(list.problem.value).toBe('Some takes are not shown: another version of this page stored them, which keeps them differently.');
});
