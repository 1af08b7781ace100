import { accessSync, constants, statSync } from 'node:fs'
import { connect } from 'node:net'
import type { AgentView } from '../../shared/contracts/engine/agents.ts'
import { paint } from '../../shared/data/print.ts'
import type { Context } from '../command.ts'
import { CliError, EXIT, type ExitCode } from '../errors.ts'
import { filesOfCredentials } from './tools/credentials.ts'
import type { AgentFile } from './tools/file.ts'
import { type Named, programFault, programsIn, sandboxFault } from './tools/sandbox.ts'
import { keyWords } from './tools/seal.ts'

/** Clouds give the role of the machine there to every program that asks. */
const METADATA = '169.254.169.254'
const METADATA_MS = 1000
/** Signatures of clouds are refused from a few minutes on. */
const MOST_SKEW_MS = 30_000

type Finding = { ok: boolean; text: string }
const good = (text: string): Finding => ({ ok: true, text })
const bad = (text: string): Finding => ({ ok: false, text })

/** Every file with a secret that the agent's file names, by its place there. */
const secretsOf = ({ kubernetes, credentials }: AgentFile) => [
  ...filesOfCredentials(credentials),
  ...Object.entries(kubernetes?.clusters ?? {}).map(
    ([name, { kubeconfig }]) => [`kubernetes/clusters/${name}/kubeconfig`, kubeconfig] as const,
  ),
]

/** Why this process cannot use a file: the code of the error. */
const faultOf = (path: string, mode: number): string | undefined => {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}

/** The programs and secrets that the file names and this process cannot use: their jobs will fail. */
export const missingIn = (file: AgentFile): string[] =>
  [
    ...programsIn(file).map(({ place, path }) => [place, path, constants.X_OK] as const),
    ...secretsOf(file).map(([place, path]) => [place, path, constants.R_OK] as const),
  ].flatMap(([place, path, mode]) => {
    const code = faultOf(path, mode)
    return code === undefined ? [] : [`/${place} is ${path}, which cannot be used now: ${code}.`]
  })

const program =
  (file: AgentFile) =>
  (one: Named): Finding => {
    const { place, path } = one
    const code = faultOf(path, constants.X_OK)
    if (code !== undefined)
      return bad(`${place}: ${path} cannot be run (${code}). Install it, or correct its path in the file.`)
    const fault = programFault(file, one)
    return fault === undefined ? good(`${place}: ${path}`) : bad(fault)
  }

const secret = ([place, path]: readonly [string, string]): Finding => {
  const code = faultOf(path, constants.R_OK)
  if (code !== undefined) return bad(`${place}: ${path} cannot be read (${code}). Write the value there.`)
  if ((statSync(path).mode & 0o077) === 0) return good(`${place}: ${path}`)
  return bad(`${place}: other users may read ${path}. Run: chmod 600 ${path}`)
}

/** Jobs and their programs as each user of jobs; a sandbox that does not start is named once. */
const jobs = (file: AgentFile): Finding[] => {
  const { sandbox, ...open } = file
  const [bwrap, programs] = [{ place: 'sandbox/bwrap', path: sandbox?.bwrap ?? '' }, programsIn(file)]
  const fault = sandboxFault(file)
  if (!sandbox) {
    const none = bad('sandbox: jobs see the files and processes of this machine. Set `sandbox` in the file.')
    return [...programs.map(program(open)), none]
  }
  return [
    program(open)(bwrap),
    ...programs.map(program(fault === undefined ? file : open)),
    fault === undefined
      ? good('sandbox: jobs run in namespaces of their own')
      : bad(`sandbox: ${fault} The kernel must allow user namespaces to the users that jobs run as.`),
  ]
}

const server = async ({ api }: Context): Promise<Finding[]> => {
  try {
    const { headers } = await api.send<{ items: AgentView[] }>('GET', '/api/v1/agents')
    const skew_ms = Math.abs(Date.parse(headers.get('date') ?? '') - Date.now())
    return [
      good(`server: ${api.url} knows this machine`),
      skew_ms > MOST_SKEW_MS
        ? bad(
            `clock: ${Math.round(skew_ms / 1000)} s from that of ${api.url}. Let NTP set it: clouds refuse signatures.`,
          )
        : good('clock: as that of the server'),
    ]
  } catch (error) {
    if (error instanceof CliError) return [bad(`server: ${error.lines.join(' ').replace(/\s+/g, ' ')}`)]
    throw error
  }
}

/** Whether this address answers a user: rules of the machine's firewall differ by user. Only one may be asked at a time. */
export const answers = async (address: { host: string; port: number }, uid: number | undefined): Promise<boolean> => {
  const root = process.getuid?.() === 0 && uid !== undefined
  try {
    if (root) process.setegid?.(uid)
    if (root) process.seteuid?.(uid)
    return await new Promise<boolean>((resolve) => {
      const socket = connect({ ...address, timeout: METADATA_MS })
      const end = (answered: boolean) => () => {
        socket.destroy()
        resolve(answered)
      }
      socket.on('error', end(false)).on('timeout', end(false)).on('connect', end(true))
    })
  } finally {
    if (root) process.seteuid?.(0)
    if (root) process.setegid?.(0)
  }
}

const metadata = async ({ known, uids }: AgentFile): Promise<Finding> => {
  const own = [...known.values()].flatMap(({ uid }) => uid ?? [])
  const users = new Set<number | undefined>([...(uids.length > 0 ? uids : [undefined]), ...own])
  for (const uid of users)
    if (await answers({ host: METADATA, port: 80 }, uid))
      return bad(
        `metadata: ${METADATA} answers ${uid === undefined ? 'jobs' : `uid ${uid}`}, so each job may act in the role of this machine. Block it for their users.`,
      )
  return good(`metadata: ${METADATA} does not answer`)
}

/** Prints for each need of an agent whether this machine meets it. Takes no work. */
export const examine = async (context: Context, file: AgentFile): Promise<ExitCode> => {
  const findings = [
    good(`file: takes work of ${file.pools.join(', ')}`),
    ...jobs(file),
    ...secretsOf(file).map(secret),
    ...(await server(context)),
    await metadata(file),
  ]
  for (const { ok, text } of findings)
    context.out.print(`${ok ? paint('ok   ', 'green') : paint('fault', 'red')} ${text}`)
  if (file.tofu || file.kubernetes) context.out.note(keyWords(file))
  return findings.every(({ ok }) => ok) ? EXIT.done : EXIT.failed
}
