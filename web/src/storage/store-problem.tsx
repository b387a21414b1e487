/** Says that work is not kept, or that stored work is left out; renders nothing when all is well. */
import type { ReadonlySignal } from '@preact/signals';

export function StoreProblem({ of }: { of: readonly { readonly problem: ReadonlySignal<string> }[] }) {
  const problems = of.map(({ problem }) => problem.value).filter((text) => text !== '');
  return problems.map((text) => (
    <p key={text} class="label" role="alert">
      {text}
    </p>
  ));
}
