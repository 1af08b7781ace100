import { accessSync, constants, statSync } from 'node:fs'
import { connect } from 'node:net'
import type { AgentView } from '../../shared/contracts/engine/agents.ts'
import { paint } from '../../shared/data/print.ts'
import type { Context } from '../command.ts'
import { CliError, EXIT, type ExitCode } from '../errors.ts'
import type { AgentFile } from './tools/file.ts'
import { sandboxFault } from './tools/sandbox.ts'
import { keyWords } from './tools/seal.ts'

/** Clouds give the role of the machine there to every program that asks. */
const METADATA = '169.254.169.254'
const METADATA_MS = 1000
/** Signatures of clouds are refused from a few minutes on. */
const MOST_SKEW_MS = 30_000

type Finding = { ok: boolean; text: string }
const good = (text: string): Finding => ({ ok: true, text })
const bad = (text: string): Finding => ({ ok: false, text })

/** Every program and file that the agent's file names, by its place there. */
const placesIn = ({ known, tofu, ssh, git, ansible, kubernetes, credentials = {}, sandbox }: AgentFile) => ({
  programs: [
    ...[...known].map(([name, { path }]) => [`programs/${name}`, path] as const),
    ...Object.entries({ tofu, ssh, git, ansible, kubernetes }).flatMap(([name, tool]) =>
      tool ? [[`${name}/program`, tool.program] as const] : [],
    ),
    ...(kubernetes?.helm === undefined ? [] : [['kubernetes/helm', kubernetes.helm] as const]),
    ...(sandbox ? [['sandbox/bwrap', sandbox.bwrap] as const] : []),
  ],
  secrets: [
    ...Object.entries(credentials).flatMap(([name, { env }]) =>
      Object.entries(env).map(([key, { file }]) => [`credentials/${name}/env/${key}`, file] as const),
    ),
    ...Object.entries(kubernetes?.clusters ?? {}).map(
      ([name, { kubeconfig }]) => [`kubernetes/clusters/${name}/kubeconfig`, kubeconfig] as const,
    ),
  ],
})

const program = ([place, path]: readonly [string, string]): Finding => {
  try {
    accessSync(path, constants.X_OK)
    return good(`${place}: ${path}`)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return bad(`${place}: ${path} cannot be run (${code}). Install it, or correct its path in the file.`)
  }
}

const secret = ([place, path]: readonly [string, string]): Finding => {
  try {
    accessSync(path, constants.R_OK)
    if ((statSync(path).mode & 0o077) === 0) return good(`${place}: ${path}`)
    return bad(`${place}: other users may read ${path}. Run: chmod 600 ${path}`)
  } catch (error) {
    return bad(`${place}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code}). Write the value there.`)
  }
}

const sandbox = (file: AgentFile): Finding => {
  if (!file.sandbox) return bad('sandbox: jobs see the files and processes of this machine. Set `sandbox` in the file.')
  const fault = sandboxFault(file)
  if (fault === undefined) return good('sandbox: jobs run in namespaces of their own')
  return bad(`sandbox: ${fault} The kernel must allow user namespaces to the users that jobs run as.`)
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

const metadata = (): Promise<Finding> =>
  new Promise((resolve) => {
    const socket = connect({ host: METADATA, port: 80, timeout: METADATA_MS })
    const end = (finding: Finding) => {
      socket.destroy()
      resolve(finding)
    }
    const closed = () => end(good(`metadata: ${METADATA} does not answer`))
    socket.on('error', closed)
    socket.on('timeout', closed)
    socket.on('connect', () =>
      end(
        bad(
          `metadata: ${METADATA} answers, so each job may act in the role of this machine. Block it for their users.`,
        ),
      ),
    )
  })

/** Prints for each need of an agent whether this machine meets it. Takes no work. */
export const examine = async (context: Context, file: AgentFile): Promise<ExitCode> => {
  const { programs, secrets } = placesIn(file)
  const findings = [
    good(`file: takes work of ${file.pools.join(', ')}`),
    ...programs.map(program),
    ...secrets.map(secret),
    sandbox(file),
    ...(await server(context)),
    await metadata(),
  ]
  for (const { ok, text } of findings)
    context.out.print(`${ok ? paint('ok   ', 'green') : paint('fault', 'red')} ${text}`)
  if (file.tofu || file.kubernetes) context.out.note(keyWords(file))
  return findings.every(({ ok }) => ok) ? EXIT.done : EXIT.failed
}
