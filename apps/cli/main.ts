import './older-node.ts'
import { watchDoor } from '../shared/run/door.ts'
import { EXIT } from './errors.ts'
import { run } from './run.ts'

// A reader may stop early: `signalbox … | head` is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit()
  process.stderr.write(`The output cannot be written: ${error.message}\n`)
  process.exit(EXIT.error)
})
watchDoor(() => process.kill(process.pid, 'SIGTERM'))
// Words that nobody reads change no exit code.
process.stderr.on('error', () => {})
// No top-level await: the packaged client is one CommonJS file (apps/platform/package.ts).
void run(process.argv.slice(2)).then((code) => {
  // A request that waits for news would hold the process.
  if (code === EXIT.interrupted) process.exit(code)
  process.exitCode = code
})
