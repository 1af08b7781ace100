import { chmodSync, chownSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Credential } from './credentials.ts'
import type { Job } from './types.ts'

/** The credential's variable that holds a private key, and its file in the attempt. */
const KEY = 'SIGNALBOX_SSH_KEY'
const IDENTITY = 'identity'
/** Matches a host on a command line, never an option. */
export const ADDRESS = /^[A-Za-z0-9]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?$/
const HOST_KEY = /^((?:ssh|ecdsa|sk)-[a-z0-9@.-]+) ([A-Za-z0-9+/]{40,16000}={0,2})(?: [^\r\n]*)?$/
/** The name under which pinned keys are known, whatever the address. */
const ALIAS = 'pinned'
const CONNECT_S = 10

/**
 * Lets one user into the folder of an attempt, and owns these parts of it. The folder itself stays the agent's: its jobs
 * cannot replace what the agent writes there by links.
 */
export const letIn = (uid: number, folder: string, ...parts: string[]): void => {
  chownSync(folder, process.getuid?.() ?? uid, uid)
  chmodSync(folder, 0o710)
  for (const path of parts) chownSync(path, uid, uid)
}

/** Writes a file that only the jobs of this attempt can read. */
export const writeOwn = (job: Pick<Job, 'file' | 'folder'>, name: string, text: string | Buffer): string => {
  const path = join(job.folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  if (job.file.uid) chownSync(path, job.file.uid, job.file.uid)
  return path
}

const COPY = 'credential.'
/** Writes the files of a credential, which go with the attempt; returns the variables that name them. */
export const writeCredential = (
  job: Pick<Job, 'file' | 'folder'>,
  files: Credential['files'],
): Record<string, string> =>
  Object.fromEntries(Object.entries(files).map(([key, bytes]) => [key, writeOwn(job, COPY + key, bytes)]))
export const copiesIn = ({ folder }: Job): string[] =>
  readdirSync(folder).flatMap((name) => (name.startsWith(COPY) ? [join(folder, name)] : []))

/** Removes the private key from the attempt, before programs run that must not read it. */
export const dropKey = ({ folder }: Job): void => rmSync(join(folder, IDENTITY), { force: true })

/** Pinned keys as type and base64; `undefined` if one of them is not a public key. */
export const hostKeysOf = (given: unknown): string[] | undefined => {
  if (!Array.isArray(given)) return undefined
  const keys = given.map((key) => HOST_KEY.exec(String(key)))
  return keys.every((key) => key !== null) ? keys.map((key) => `${key[1]} ${key[2]}`) : undefined
}

/**
 * Options that let OpenSSH trust exactly these keys, under one alias or as lines that name their host. OpenSSH then
 * reads no configuration, agent or key of the machine.
 */
export const sshOptions = (job: Job, lines: readonly string[], alias = true): string[] => {
  const known = writeOwn(job, 'known_hosts', lines.map((line) => `${alias ? `${ALIAS} ` : ''}${line}\n`).join(''))
  const key = job.env[KEY]
  const identity = key === undefined ? 'none' : writeOwn(job, IDENTITY, `${key}\n`)
  delete job.env[KEY]
  const options = {
    ...{ BatchMode: 'yes', StrictHostKeyChecking: 'yes', UserKnownHostsFile: known, GlobalKnownHostsFile: '/dev/null' },
    ...{
      CheckHostIP: 'no',
      UpdateHostKeys: 'no',
      VerifyHostKeyDNS: 'no',
      IdentityAgent: 'none',
      IdentitiesOnly: 'yes',
    },
    ...{ PreferredAuthentications: 'publickey', ControlMaster: 'no', ControlPath: 'none', ClearAllForwardings: 'yes' },
    ...{ ConnectTimeout: CONNECT_S, ServerAliveInterval: 5, ServerAliveCountMax: 3, IdentityFile: identity },
    ...{ RequestTTY: 'no', ForwardAgent: 'no', ForwardX11: 'no' },
    ...(alias && { HostKeyAlias: ALIAS }),
  }
  return [
    '-F',
    'none',
    '-T',
    '-a',
    '-x',
    ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
  ]
}

/** Returns the message if OpenSSH reports that a host's key is not pinned. */
export const hostKeyFault = (said: string, name: string): string | undefined => {
  if (!/Host key verification failed|No \S+ host key is known/.test(said)) return undefined
  const [offered = 'another key'] = /SHA256:[A-Za-z0-9+/]+/.exec(said) ?? []
  return `${name} does not have a pinned host key: it offers ${offered}. Compare it with the key on the host, then correct the pinned keys.`
}
