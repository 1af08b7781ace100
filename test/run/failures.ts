import type { Reporter, TestCase } from 'vitest/node'

const FRAMES = 6

/** Prints each failure when it happens: the report at the end is lost if the run is stopped, and far away if not. */
export default class Failures implements Reporter {
  onTestCaseResult(test: TestCase): void {
    for (const { message, stack } of test.result().errors ?? []) {
      const frames = (stack ?? '')
        .split('\n')
        .filter((line) => /^\s+at .*\/(test|apps|db|workflows|activities)\//.test(line))
      console.error(
        [`FAILED ${test.module.relativeModuleId} > ${test.fullName}`, message, ...frames.slice(0, FRAMES)].join('\n'),
      )
    }
  }
}
