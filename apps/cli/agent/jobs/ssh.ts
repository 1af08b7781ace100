import { randomUUID } from 'node:crypto'
import { namesHost } from '../tools/file.ts'
import { ADDRESS, hostKeyFault, hostKeysOf, sshOptions } from '../tools/host.ts'
import { failed, type Job, refusedBy, runTool, type Tool, type Verdict } from '../tools/types.ts'

/**
 * Runs on the host. Its text is fixed; arguments arrive as base64, so no shell interprets them. It begins only after
 * the agent answers its "ready" line, so a connection lost before that has no effect. When the connection ends, it
 * stops the program: otherwise a program that keeps running unseen would overlap its own repeat. Its last line says
 * whether the program was stopped, because the agent may ask for it when the program has already ended.
 */
const REMOTE = [
  'n=$1; t=; shift; i=$#',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the host's shell reads it
  'while [ "$i" -gt 0 ]; do a=$(printf %s "$1" | base64 -d) || exit 1; shift; set -- "$@" "${a%x}"; i=$((i - 1)); done',
  'printf "\\n%s ready\\n" "$n" >&2',
  'IFS= read -r in || exit 1',
  'exec 3<&0 </dev/null',
  '{ read -r _ <&3; trap "" TERM; kill -TERM -$$; sleep 5; kill -KILL -$$; } >/dev/null 2>&1 &',
  'w=$!; trap t=1 TERM',
  'printf %s "$in" | base64 -d | "$@" 3<&-',
  'c=$? e=$t; kill -KILL "$w"',
  'printf "\\n%s end %s %s\\n" "$n" "$c" "$e" >&2',
].join('\n')

const GRACE_S = 10
const MAX_ARGS = 64 * 1024
/** How many bytes of the end of the program's output are returned. */
const MAX_STDOUT = 16 * 1024

type Asked = { name: string; stdin: string; codes: unknown[]; options: string[]; argv: string[]; timeout_s?: number }

/** `ssh`: runs a program that the agent's file names, on a host whose key is pinned. No shell interprets a value. */
export const ssh: Tool = async (job) => {
  const asked = askedOf(job)
  if ('status' in asked) return asked
  const { name, stdin, codes, options, argv, timeout_s } = asked
  const nonce = randomUUID()
  const encoded = argv.map((arg) => Buffer.from(`${arg}x`).toString('base64'))
  let begun = false
  let code: number | undefined
  let asked_to_end = false
  let out = ''
  let said = ''
  let begin = (_: string): void => {}
  const input = new Promise<string>((resolve) => {
    begin = resolve
  })
  const log: Job['log'] = (text, line) => {
    if (line?.stream === 'stderr' && text === `${nonce} ready`) {
      begun = true
      return begin(`${Buffer.from(stdin).toString('base64')}\n`)
    }
    const [, ended, by_request] =
      line?.stream === 'stderr' ? (new RegExp(`^${nonce} end (\\d+) (1?)$`).exec(text) ?? []) : []
    if (ended !== undefined) [code, asked_to_end] = [Number(ended), by_request === '1']
    else if (line?.stream === 'stdout') out = `${out}${job.mask(text, line)}\n`.slice(-MAX_STDOUT)
    else if (!begun) said = `${said}${job.mask(text, line)}\n`.slice(-4000)
    if (ended === undefined && text !== '') job.log(text, line)
  }
  const end = await runTool(job, {
    ...{ path: job.file.ssh?.program ?? '', cwd: job.folder, grace_s: GRACE_S, ask: 'EOF', stdin: input, log },
    args: [...options, `exec sh -c '${REMOTE}' sh ${nonce} ${encoded.join(' ')}`],
    ...(timeout_s !== undefined && { timeout_s }),
  })
  if (end.how === 'not_begun') return failed('refused', `ssh could not be started: ${end.message}`)
  if (!begun) return neverBegan(end.how, said, name)
  if (code === undefined) {
    const late = `${name} ran out of time and was stopped.`
    const why = end.how === 'timeout' ? late : `The connection was lost after ${name} started.`
    return {
      ...{ status: 'unknown', class: end.how === 'timeout' ? 'timeout' : 'connection_lost' },
      message: `${why} Check the host before you decide.`,
    }
  }
  if (asked_to_end && end.how === 'timeout')
    return failed('timeout', `${name} ran out of time and ended on request.`, false)
  if (asked_to_end && end.how === 'told') return failed('cancelled', `${name} was canceled and ended.`)
  if (!codes.includes(code)) return failed('exit_code', `${name} exited with code ${code}.`)
  return { status: 'succeeded', outputs: { exit_code: code, stdout: out } }
}

type Given = Partial<Pick<Asked, 'stdin' | 'timeout_s'>> & {
  program?: string
  args?: unknown[]
  exit_codes?: unknown[]
  host?: Record<string, unknown>
}
const askedOf = (job: Job): Asked | Verdict => {
  const { ssh: rules, remote } = job.file
  if (!rules) return refusedBy('The agent\'s file has no "ssh".')
  const inputs = job.work.inputs as Given
  const { program: called, args = [], stdin = '', exit_codes = [0], timeout_s } = inputs
  const { address, port = 22, user, host_keys } = (inputs.host ?? {}) as Record<string, unknown>
  if (typeof address !== 'string' || !ADDRESS.test(address) || !namesHost(rules.hosts, address))
    return refusedBy(`The agent's file names no host "${address}".`)
  if (!Number.isInteger(port) || Number(port) < 1 || Number(port) > 65_535)
    return refusedBy('"host.port" must be a port.')
  const as = user ?? rules.users[0]
  if (!rules.users.includes(String(as))) return refusedBy(`The agent's file does not name the user "${as}" for hosts.`)
  const keys = hostKeysOf(host_keys ?? [])
  if (!keys)
    return failed(
      'host_key',
      'One of "host.host_keys" is not a public key: give "type base64", as ssh-keyscan prints it.',
      false,
    )
  if (keys.length === 0)
    return failed('host_key', `No host key of ${address} is pinned. Add it to "host.host_keys".`, false)
  const program = remote.get(String(called))
  if (!program) return refusedBy(`The agent's file does not name the program "${called}" for hosts.`)
  const texts = args.map(String)
  const wrong = program.refuse(texts)
  if (wrong !== undefined) return refusedBy(`${called}: ${wrong}.`)
  const { path, options = [], end_of_options = true } = program
  const argv = [path, ...options, ...(end_of_options ? ['--'] : []), ...texts]
  if (Buffer.byteLength(argv.join('')) > MAX_ARGS) return refusedBy(`The arguments are longer than ${MAX_ARGS} bytes.`)
  return {
    ...{ name: `${called} at ${address}`, stdin, codes: exit_codes, argv },
    options: [...sshOptions(job, keys), '-p', String(port), '-l', String(as), '--', address],
    ...(typeof timeout_s === 'number' && { timeout_s }),
  }
}

const neverBegan = (how: 'ended' | 'timeout' | 'told', said: string, name: string): Verdict => {
  const fault = hostKeyFault(said, name.replace(/^.* at /, ''))
  if (fault !== undefined) return failed('host_key', `${fault} The program was not started.`, false)
  if (how === 'told') return failed('cancelled', `${name} was not started: the work was canceled.`)
  if (how === 'timeout') return failed('timeout', `${name} was not started: the host did not answer in time.`)
  const last = said.trim().split('\n').at(-1) || 'the connection ended'
  return failed('unreachable', `${name} was not started: ${last}`)
}
