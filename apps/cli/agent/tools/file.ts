import { isIP } from 'node:net'
import Type, { type Static } from 'typebox'
import { Closed } from '../../../shared/contracts/shapes.ts'
import { compileSchema } from '../../../shared/data/json-schema.ts'
import { matcherOf } from '../../../shared/data/pattern.ts'
import { pointerOf } from '../../../shared/data/pointer.ts'
import { Programs, programsOf } from '../../../shared/data/programs.ts'
import { readDocument } from '../../command.ts'
import { usageError } from '../../errors.ts'
import { Credentials, checkConditions } from './credentials.ts'

const Name = Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' })
const Path = Type.String({ pattern: '^/', maxLength: 1000 })
const Uid = Type.Integer({ minimum: 0 })

/** A source in a folder of this machine. */
const Folder = Closed({ path: Path })
/** A source in a repository of `git`, each time at one commit. */
const Checkout = Closed({
  repo: Name,
  /** Branches whose commits may be used; * matches any text. */
  refs: Type.Array(Type.String({ pattern: '^[A-Za-z0-9*][A-Za-z0-9._/*-]{0,199}$' }), { minItems: 1, maxItems: 100 }),
  /** A folder in the repository. */
  path: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$' })),
  /** The credential that reads the repository; its `jobs` name "source". Jobs get none of its variables. */
  credentials: Type.Optional(Name),
})
export type Folder = Static<typeof Folder>
export type Checkout = Static<typeof Checkout>
const Of = {
  /** Where a module without its own backend keeps the state of each workspace. */
  state: Type.Optional(Path),
  /** Settings of the module's backend. Of those with *, steps choose the value; it stands for any text. */
  backend: Type.Optional(
    Type.Record(Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' }), Type.String({ minLength: 1, maxLength: 1000 })),
  ),
}
const Vars = Type.Optional(Type.Record(Type.String(), Type.Unknown()))

/** Addresses that steps may name; * matches any text. */
const Hosts = Type.Array(Type.String({ minLength: 1, maxLength: 253 }), { minItems: 1, maxItems: 1000 })

/** The permissions that the owner of an agent gives it. No plan can change them. */
export const AgentFile = Closed({
  format: Type.Literal('signalbox/agent@1'),
  /** Tells it apart in the list of agents; the name of its host by default. */
  name: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$' })),
  pools: Type.Array(Name, { minItems: 1, maxItems: 20 }),
  labels: Type.Optional(Type.Record(Type.String(), Type.String())),
  concurrency: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  /** A collector that gets each attempt as a span by OTLP/HTTP, such as http://collector:4318. */
  traces: Type.Optional(Type.String({ pattern: '^https?://' })),
  /** Holds the key that seals saved plans, and the plugin cache. */
  state_dir: Path,
  /** The user that jobs run as; 0 must be stated explicitly. A list has one for each job that runs at once. */
  uid: Type.Optional(Type.Union([Uid, Type.Array(Uid, { minItems: 1, maxItems: 100, uniqueItems: true })])),
  /** Programs run in namespaces of their own, made by bubblewrap. They see /usr, and only these of the other paths. */
  sandbox: Type.Optional(
    Closed({
      /** The program bwrap. */
      bwrap: Path,
      read: Type.Optional(Type.Array(Path, { maxItems: 100 })),
      write: Type.Optional(Type.Array(Path, { maxItems: 100 })),
    }),
  ),
  programs: Type.Optional(Programs),
  tofu: Type.Optional(
    Closed({
      /** tofu or terraform. */
      program: Path,
      /** Root modules by name. */
      sources: Type.Record(
        Name,
        Type.Union([Closed({ ...Folder.properties, ...Of }), Closed({ ...Checkout.properties, ...Of })]),
      ),
      /** A mirror of providers, as `providers mirror` writes it; no registry is contacted. */
      providers: Type.Optional(Path),
      grace_s: Type.Optional(Type.Integer({ minimum: 1, maximum: 600 })),
    }),
  ),
  ssh: Type.Optional(
    Closed({
      /** The OpenSSH client. */
      program: Path,
      hosts: Hosts,
      users: Type.Array(Type.String({ pattern: '^[a-z_][a-z0-9_-]{0,31}$' }), { minItems: 1, maxItems: 100 }),
      programs: Type.Optional(Programs),
    }),
  ),
  git: Type.Optional(
    Closed({
      program: Path,
      /** The author of the commits: a name and an address. */
      author: Type.Optional(Type.String({ pattern: '^[^<>\\r\\n]+ <[^<>\\r\\n ]+>$', maxLength: 200 })),
      repos: Type.Record(
        Name,
        Closed({
          url: Type.String({ pattern: '^(ssh://|https://|/)[^\\s]+$', maxLength: 1000 }),
          host_keys: Type.Optional(Type.Array(Type.String())),
          /** Branches that jobs may write to; * matches any text. */
          push: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
          /** Branches that jobs may merge into. */
          merge: Type.Optional(Type.Array(Type.String())),
        }),
      ),
    }),
  ),
  ansible: Type.Optional(
    Closed({
      program: Path,
      hosts: Hosts,
      /** Folders with playbooks. `vars` apply to every host, such as ansible_connection; a step cannot set them. */
      sources: Type.Record(
        Name,
        Type.Union([Closed({ ...Folder.properties, vars: Vars }), Closed({ ...Checkout.properties, vars: Vars })]),
      ),
    }),
  ),
  kubernetes: Type.Optional(
    Closed({
      /** kubectl. */
      program: Path,
      helm: Type.Optional(Path),
      /** Folders with manifests, kustomizations and charts. */
      sources: Type.Optional(Type.Record(Name, Type.Union([Folder, Checkout]))),
      clusters: Type.Record(
        Name,
        Closed({
          kubeconfig: Path,
          context: Type.Optional(Type.String({ minLength: 1, maxLength: 253 })),
          /** Namespaces that jobs may change; * matches any text. */
          namespaces: Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 1000 }),
          /** Cluster-scoped kinds that jobs may change. */
          cluster_kinds: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 1000 })),
        }),
      ),
    }),
  ),
  credentials: Type.Optional(Credentials),
})
type Known = ReturnType<typeof programsOf>
type Given = Static<typeof AgentFile>
/** `known` are programs on this machine, `remote` those on the hosts that ssh reaches. `uid` is that of one job. */
export type AgentFile = Omit<Given, 'uid'> & { uid?: number | undefined; uids: number[]; known: Known; remote: Known }

const SOURCE = /^\/(tofu|ansible|kubernetes)\/sources\/[^/]+/

/** All faults of a document, one a line, with their places. */
const faultsIn = (path: string, document: unknown): string[] => {
  const faults = compileSchema(AgentFile)(document).map(({ pointer, message }) => {
    const [source] = SOURCE.exec(pointer) ?? []
    return source === undefined
      ? `${path}${pointer} ${message}.`
      : `${path}${source} must be a folder, {path: /…}, or in a repository, {repo, refs, path?}.`
  })
  return [...new Set(faults)]
}

const LABEL = /^[a-z][a-z0-9_-]{0,62}$/
/** Labels with names that are unlike those of other agents. They count, because steps may already ask for them. */
export const oddLabelsIn = ({ labels = {} }: AgentFile): string[] =>
  Object.keys(labels)
    .filter((name) => !LABEL.test(name))
    .map((name) => `${pointerOf('labels', name)} counts, but should be named with a-z, 0-9, _ and - only.`)

/** Reads the agent's file; the error for a broken one names each faulty member. */
export const readAgentFile = (path: string): AgentFile => {
  const document = readDocument(path)
  const faults = faultsIn(path, document)
  if (faults.length > 0) throw usageError(faults.join('\n'))
  const file = document as Given
  if (process.getuid?.() === 0 && file.uid === undefined)
    throw usageError(`${path} must name a uid, because this agent runs as root.`, 'Name the uid that jobs run as.')
  try {
    return settle(file)
  } catch (error) {
    throw usageError(`${path}${(error as Error).message}`)
  }
}

/** Makes a document of the right form the agent's file. Throws "/member: reason" for a fault that no schema finds. */
export const settle = (file: Given): AgentFile => {
  const known = { known: programsOf(file.programs ?? {}), remote: programsOf(file.ssh?.programs ?? {}) }
  const uids = usersOf(file)
  checkConditions(file.credentials)
  checkBackends(file)
  return { ...file, ...known, uids, uid: uids[0] }
}

const checkBackends = ({ tofu }: Given): void => {
  for (const [name, { state, backend }] of Object.entries(tofu?.sources ?? {}))
    if (state !== undefined && backend !== undefined)
      throw new Error(`/tofu/sources/${name}: "state" is for a module without the backend that "backend" sets.`)
}

/** The users of the jobs. What one of them wrote outside of its attempt, the others could not change. */
const usersOf = ({ uid, concurrency = 1, tofu }: Given): number[] => {
  if (!Array.isArray(uid)) return uid === undefined ? [] : [uid]
  if (uid.length < concurrency) throw new Error(`/uid: it lists ${uid.length} users for ${concurrency} jobs at once.`)
  const [name] = Object.entries(tofu?.sources ?? {}).find(([, { state }]) => state !== undefined) ?? []
  if (name !== undefined)
    throw new Error(`/tofu/sources/${name}/state: it belongs to one user. Give the module a backend, or name one uid.`)
  return uid
}

/** A pattern of numbers matches IP addresses only: anyone may own a name that begins like one. */
const NUMERIC = /^[0-9.*]*[0-9][0-9.*]*$|:/

/** Whether the agent's file names a host: * in one of its patterns stands for any run of characters. */
export const namesHost = (patterns: readonly string[], address: string): boolean =>
  patterns.some((one) => matcherOf(one)(address) && (!NUMERIC.test(one) || isIP(address) !== 0))

/** A member that the agent's file names, not one that every object has, such as "constructor". */
export const named = <T>(members: Record<string, T> | undefined, name: unknown): T | undefined =>
  members && Object.hasOwn(members, String(name)) ? members[String(name)] : undefined
