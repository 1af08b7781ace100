import { join } from 'node:path'
import { objectIn } from '../../../shared/data/pointer.ts'
import { parseDigits } from '../../../shared/run/exact.ts'
import { readPlain } from '../../../shared/run/plain.ts'
import { copiesIn, letIn } from '../tools/host.ts'
import { failed, refusedBy, runTool, stopped, type Tool } from '../tools/types.ts'

const MAX_OUTPUTS = 64 * 1024
const GRACE_S = 10

type Asked = { program?: string; args?: unknown[]; stdin?: string; timeout_s?: number }

/** `command`: runs a program of the agent's file, never a shell. Outputs: JSON in the file $SIGNALBOX_OUTPUTS. */
export const command: Tool = async (job) => {
  const { program: name, args = [], stdin = '', timeout_s } = job.work.inputs as Asked
  const program = job.file.known.get(String(name))
  if (!program) return refusedBy(`The agent's file names no program "${name}".`)
  const texts = args.map(String)
  const wrong = program.refuse(texts)
  if (wrong !== undefined) return refusedBy(`${name}: ${wrong}.`)
  const { path, options = [], end_of_options = true, memory_mib, uid } = program
  const outputs = join(job.home, 'outputs.json')
  if (uid) letIn(uid, job.folder, job.home, job.env.TMPDIR ?? job.home, ...copiesIn(job))
  const end = await runTool(job, {
    ...{ path, memory_mib, uid, stdin, cwd: job.home, grace_s: GRACE_S },
    args: [...options, ...(end_of_options ? ['--'] : []), ...texts],
    env: { SIGNALBOX_OUTPUTS: outputs, SIGNALBOX_KEY: job.work.key },
    ...(typeof timeout_s === 'number' && { timeout_s }),
  })
  const other = stopped(end, String(name))
  if (other) return other
  if (end.how !== 'not_begun' && end.code !== 0) return failed('exit_code', `${name} exited with code ${end.code}.`)
  return collect(outputs)
}

const collect = async (path: string) => {
  const written = await readPlain(path, MAX_OUTPUTS)
  const outputs =
    written === undefined ? {} : written === 'unfit' ? undefined : objectIn(written.toString(), parseDigits)
  if (outputs) return { status: 'succeeded' as const, outputs }
  return failed('outputs_invalid', `The outputs must be a JSON object of at most ${MAX_OUTPUTS} bytes.`)
}
