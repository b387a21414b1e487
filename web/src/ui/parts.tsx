/** Elements of many parts, of which only those are rendered again that are other objects than before. */
import type { ComponentChildren, VNode } from 'preact';
import { Component } from 'preact';

/** Parts that are looked at together: where none has changed, none is looked at by itself. */
const TOGETHER = 50;

/** Renders parts, each the same way; `element` is the same function each time. */
export function parts<T>(all: readonly T[], element: (part: T) => ComponentChildren): VNode[] {
  const groups: VNode[] = [];
  for (let at = 0; at < all.length; at += TOGETHER) {
    groups.push(<Group key={at} parts={all.slice(at, at + TOGETHER)} element={element as (part: unknown) => ComponentChildren} />);
  }
  return groups;
}

interface GroupProps {
  readonly parts: readonly unknown[];
  readonly element: (part: unknown) => ComponentChildren;
}

class Group extends Component<GroupProps> {
  override shouldComponentUpdate({ parts: next }: GroupProps): boolean {
    const { parts: now } = this.props;
    return next.length !== now.length || next.some((part, index) => part !== now[index]);
  }

  override render({ parts: all, element }: GroupProps) {
    return all.map((part, index) => <Part key={index} part={part} element={element} />);
  }
}

interface PartProps {
  readonly part: unknown;
  readonly element: (part: unknown) => ComponentChildren;
}

class Part extends Component<PartProps> {
  override shouldComponentUpdate({ part }: PartProps): boolean {
    return part !== this.props.part;
  }

  override render({ part, element }: PartProps) {
    return element(part);
  }
}
