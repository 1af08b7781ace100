import type { Reporter, SerializedError, TestCase, TestModule, TestSuite } from 'vitest/node'

const FRAMES = 6

/** Prints each failure when it happens: the report at the end is lost if the run is stopped, and far away if not. */
export default class Failures implements Reporter {
  onTestCaseResult(test: TestCase): void {
    print(`${test.module.relativeModuleId} > ${test.fullName}`, test.result().errors)
  }
  /** A hook has failed: its tests have no failure of their own. */
  onTestSuiteResult(suite: TestSuite): void {
    print(`${suite.module.relativeModuleId} > ${suite.fullName}`, suite.errors())
  }
  /** The file could not be loaded, or a hook outside of every suite has failed. */
  onTestModuleEnd(module: TestModule): void {
    print(module.relativeModuleId, module.errors())
  }
}

const print = (name: string, errors: readonly SerializedError[] = []): void => {
  for (const { message, stack } of errors) {
    const frames = (stack ?? '')
      .split('\n')
      .filter((line) => /^\s+at .*\/(test|apps|db|workflows|activities)\//.test(line))
    console.error([`FAILED ${name}`, message, ...frames.slice(0, FRAMES)].join('\n'))
  }
}
