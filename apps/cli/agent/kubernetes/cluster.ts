import { chownSync, mkdirSync, readFileSync } from 'node:fs'
import { Agent, request as ask } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { matcherOf } from '../../../shared/data/pattern.ts'
import { isObject, objectIn } from '../../../shared/data/pointer.ts'
import { parseExact, writeExact } from '../../../shared/run/exact.ts'
import { named } from '../tools/file.ts'
import { writeOwn } from '../tools/host.ts'
import { Ended, failed, type Job, refusal, runTool, type Verdict } from '../tools/types.ts'

export type Answer = { code: number; body: Record<string, unknown> }
export type Call = { body?: object; patch?: boolean; query?: Record<string, string> }
/** How a kind of a group and version is addressed in the cluster. */
type Kind = { plural: string; namespaced: boolean }

/** One cluster of the agent's file, open for one attempt. */
export type Cluster = {
  name: string
  /** A write was sent, other than a dry run. */
  wrote: () => boolean
  /** Returns an answer of any status; throws if the cluster does not answer. */
  request: (method: string, path: string, call?: Call) => Promise<Answer>
  /** `undefined` if the cluster has no such kind. */
  kindOf: (apiVersion: string, kind: string) => Promise<Kind | undefined>
  /** Why the agent's file refuses an object there. */
  refuse: (kind: string, namespace: string | undefined) => string | undefined
  version: string
  /** The uid of the namespace kube-system: it identifies the cluster behind the name. */
  uid: string
  close: () => Promise<void>
}

const GRACE_S = 5
const ANSWER_MS = 70_000
const TRIES = 4
const LATER = new Set([429, 503, 504])
const MOST_CALLS = 8

/** The cluster did not answer: a write may have been applied. */
export class NoAnswer extends Error {}

const unreachable = (name: string, why: string): Verdict =>
  failed('unreachable', `The cluster "${name}" is not answering: ${why} No change was made.`, true)

/** Opens the step's cluster by kubectl, which can sign in every way; its API is a socket in the attempt's folder. */
export const openCluster = async (job: Job): Promise<Cluster> => {
  const { cluster } = job.work.inputs as Record<string, unknown>
  const name = String(cluster)
  const rules = job.file.kubernetes
  const found = named(rules?.clusters, name)
  if (!rules || !found) throw refusal(`The agent's file names no cluster "${name}".`)
  const config = writeOwn(job, 'kubeconfig', readConfig(name, found.kubeconfig))
  const place = join(job.folder, 'kube')
  mkdirSync(place, { mode: 0o700 })
  if (job.file.uid) chownSync(place, job.file.uid, job.file.uid)
  const socketPath = join(place, 's')
  const done = new AbortController()
  const options = ['--kubeconfig', config, ...(found.context ? ['--context', found.context] : [])]
  const agent = new Agent({ keepAlive: true, maxSockets: MOST_CALLS })
  const bySocket = { agent, socketPath }
  let said = ''
  let proxy: Promise<void> | undefined
  let serving: Promise<void> | undefined
  const serve = async () => {
    let over = false
    // The proxy outlives a stop of the work, so the request in flight is still answered.
    proxy = runTool(
      { ...job, signal: done.signal },
      {
        ...{ path: rules.program, cwd: place, grace_s: GRACE_S, aside: true },
        args: ['proxy', ...options, '--unix-socket', socketPath],
        log: (text, line) => {
          if (text.trim() !== '') said = job.mask(text, line)
        },
      },
    ).then((end) => {
      over = true
      serving = undefined
      if (end.how === 'not_begun') said = end.message
    })
    while (!(await send(bySocket, 'GET', '/version', {}).then(Boolean, () => false))) {
      if (over) throw new NoAnswer(`kubectl proxy ended: ${said}.`)
      if (job.signal.aborted) throw new NoAnswer('The work was stopped.')
      if (/^(?!Starting to serve).*\berror\b/i.test(said)) throw new NoAnswer(said)
      await delay(50)
    }
  }
  const close = async () => {
    done.abort()
    await proxy
  }
  let wrote = false
  const request: Cluster['request'] = async (method, path, call = {}) => {
    if (method !== 'GET' && call.query?.dryRun === undefined) {
      wrote = true
      job.began()
    }
    for (let turn = 1; ; turn += 1) {
      // If kubectl was killed, another one serves. Each write can be repeated: it names the version that it replaces.
      serving ??= serve()
      const used = serving
      const answer = await used
        .then(() => send(bySocket, method, path, call))
        .catch((error: unknown) => (error instanceof NoAnswer ? error : Promise.reject(error)))
      const none = answer instanceof NoAnswer
      if (!none && (!LATER.has(answer.code) || turn === TRIES)) return answer
      await delay(500 * turn)
      if (none && (turn === TRIES || serving === used)) throw answer
    }
  }
  try {
    const version = await request('GET', '/version')
    const system = await request('GET', '/api/v1/namespaces/kube-system')
    const uid = isObject(system.body.metadata) ? String(system.body.metadata.uid) : undefined
    if (uid === undefined) throw new Ended(failed('refused', `${wordsOf(system)} No change was made.`, false))
    const within = found.namespaces.map(matcherOf)
    const outside = (found.cluster_kinds ?? []).map(matcherOf)
    return {
      ...{ name, request, uid, close, version: String(version.body.gitVersion), kindOf: discovery(request) },
      wrote: () => wrote,
      refuse: (kind, namespace) =>
        namespace === undefined
          ? outside.some((fits) => fits(kind))
            ? undefined
            : `The agent's file does not allow steps to change a ${kind} in "${name}".`
          : within.some((fits) => fits(namespace))
            ? undefined
            : `The agent's file does not allow steps to change the namespace "${namespace}" in "${name}".`,
    }
  } catch (error) {
    await close()
    if (!(error instanceof NoAnswer)) throw error
    const stopped = failed('cancelled', 'The work was stopped. No change was made.')
    throw new Ended(job.signal.aborted ? stopped : unreachable(name, error.message))
  }
}

const readConfig = (name: string, path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw refusal(`The kubeconfig of the cluster "${name}" cannot be read: ${code}.`)
  }
}

const send = (by: { agent: Agent; socketPath: string }, method: string, path: string, { body, patch, query }: Call) =>
  new Promise<Answer>((resolve, reject) => {
    const fail = (error: Error) => reject(new NoAnswer(error.message))
    const text = body && writeExact(body)
    const headers = {
      ...{ host: 'localhost', accept: 'application/json' },
      // JSON is YAML.
      ...(body && { 'content-type': patch ? 'application/apply-patch+yaml' : 'application/json' }),
      // Node does not frame the body of a DELETE on its own, so its preconditions would be lost.
      ...(text !== undefined && { 'content-length': Buffer.byteLength(text) }),
    }
    const url = query ? `${path}?${new URLSearchParams(query)}` : path
    const req = ask({ ...by, method, path: url, headers, timeout: ANSWER_MS }, (res) => {
      const chunks: Buffer[] = []
      res.on('data', (chunk: Buffer) => chunks.push(chunk))
      res.on('error', fail)
      res.on('end', () => {
        const said = Buffer.concat(chunks).toString()
        const parsed = objectIn(said, parseExact)
        const code = res.statusCode ?? 0
        // A body that is not an object is a message of kubectl, which could not reach the cluster.
        if (!parsed && code >= 500) return fail(new Error(said.trim().slice(0, 300) || `HTTP ${code}.`))
        resolve({ code, body: parsed ?? { message: said.trim().slice(0, 300) } })
      })
    })
    req.on('error', fail)
    req.on('timeout', () => req.destroy(new Error('it took too long.')))
    req.end(text)
  })

/** The server's message about a refused request. */
export const wordsOf = ({ code, body }: Answer): string =>
  typeof body.message === 'string' && body.message !== '' ? `${body.message.replace(/\.?$/, '')}.` : `HTTP ${code}.`

/** The path of a group and version. */
export const rootOf = (apiVersion: string): string =>
  apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`

const discovery = (request: Cluster['request']): Cluster['kindOf'] => {
  const known = new Map<string, Promise<Map<string, Kind>>>()
  const load = async (apiVersion: string) => {
    const answer = await request('GET', rootOf(apiVersion))
    if (answer.code !== 200 && answer.code !== 404)
      throw new Ended(failed('refused', `${wordsOf(answer)} No change was made.`, false))
    const all = (answer.body.resources ?? []) as { name: string; kind: string; namespaced: boolean }[]
    const kinds = all.filter(({ name }) => !name.includes('/'))
    return new Map(kinds.map(({ name, kind, namespaced }) => [kind, { plural: name, namespaced }]))
  }
  return async (apiVersion, kind) => {
    const before = (await known.get(apiVersion))?.get(kind)
    if (before) return before
    // The kind may have come with this very set.
    known.set(apiVersion, load(apiVersion))
    return (await known.get(apiVersion))?.get(kind)
  }
}
