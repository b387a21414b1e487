import type { ChatMessage } from '../../../engine/api.ts';

interface Turn {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

/**
 * Builds the model's prompt from a conversation. Empty answers (failed, or stopped at once) are left out, and questions that become
 * neighbours are joined, because most chat templates want roles to alternate.
 */
export function promptOf(turns: readonly Turn[], system: string): ChatMessage[] {
  const messages: { role: 'system' | 'user' | 'assistant'; content: string }[] = [];
  if (system.trim() !== '') messages.push({ role: 'system', content: system.trim() });
  for (const { role, text } of turns) {
    if (role === 'assistant' && text.trim() === '') continue;
    const last = messages.at(-1);
    if (last?.role === role) last.content += `\n\n${text}`;
    else messages.push({ role, content: text });
  }
  return messages;
}
