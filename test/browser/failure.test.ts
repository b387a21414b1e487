/** Failures as the page tells them, without a browser. */
import { expect, test } from 'vitest';
import { EngineError, LOAD_AS_F32, toPlainError } from '../../engine/errors.ts';
import { failureOf, toFailure } from '../../web/src/failure.ts';
import { tooLarge } from '../support/too-large.ts';

test('what the engine refuses is told without the flags of a command line, with what can be set on this page', () => {
  for (const { message, remedies } of [toFailure(tooLarge()), failureOf(toPlainError(tooLarge()))]) {
    expect(message).toMatch(/^large does not fit: .* may be taken\. It may fit when both graphics cards share it \(under Device\)\.$/);
    expect(message).not.toMatch(/--/);
    expect(remedies).toEqual(['manageModels', 'useServer']);
  }
  expect(toFailure(new EngineError('invalid_model', 'too large', { remedies: [LOAD_AS_F32] })).message).toBe('too large');
});
