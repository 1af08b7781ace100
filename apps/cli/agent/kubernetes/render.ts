import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, extname, join, relative } from 'node:path'
import { parseAllDocuments, type Scalar, visit } from 'yaml'
import { digest } from '../../../shared/data/digest.ts'
import { isObject } from '../../../shared/data/pointer.ts'
import { type Taken, takeSource } from '../tools/checkout.ts'
import { named } from '../tools/file.ts'
import { writeOwn } from '../tools/host.ts'
import { filesOf } from '../tools/source.ts'
import { Ended, failed, type Job, refusal, runTool, stopped } from '../tools/types.ts'
import { bare, type KubeObject } from './fields.ts'
import { isSound } from './set.ts'

const INSIDE = /^(?!.*(^|\/)\.{1,2}(\/|$))[A-Za-z0-9._/-]{1,200}$/
const NAME = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/
const FILES = ['.yaml', '.yml', '.json']
const SKIPPED = /^\.git$/
const GRACE_S = 5
const MAX_OBJECTS = 2000
const MAX_TEXT = 64 * 1024 * 1024

/** Manifests from a source or from the step itself. */
export type Rendered = { objects: KubeObject[]; taken: Taken; namespace: string; set: string }

const broken = (message: string) =>
  new Ended(failed('render_failed', `${message.replace(/[.\s]+$/, '')}. No change was made.`, false))

/** Renders the objects of the step: plain files, a kustomization, a Helm chart, or objects listed in the step. */
export const render = async (job: Job, server: string): Promise<Rendered> => {
  const inputs = job.work.inputs as Record<string, unknown>
  const { source, path = '.', render: how = 'none', namespace, set, values = {}, objects } = inputs
  for (const [member, value] of Object.entries({ namespace, set }))
    if (typeof value !== 'string' || !NAME.test(value)) throw refusal(`"${member}" must be a Kubernetes name.`)
  const names = { namespace: String(namespace), set: String(set) }
  if (objects !== undefined) {
    if (source !== undefined || !Array.isArray(objects))
      throw refusal('"objects" must be a list, and excludes "source".')
    const own = objects.flatMap((object) => unfold(object, '"objects"'))
    if (own.some(({ kind }) => kind === 'Secret'))
      throw refusal('A Secret comes from a source of the agent, never from the inputs of a step.')
    return { ...names, objects: own, taken: { source_digest: digest(own) } }
  }
  const found = named(job.file.kubernetes?.sources, source)
  if (!found) throw refusal(`The agent's file names no source "${source}" of manifests.`)
  if (typeof path !== 'string' || (path !== '.' && !INSIDE.test(path)))
    throw refusal('"path" must be a path in the source.')
  const root = join(job.folder, 'source')
  const taken = await takeSource(job, { name: String(source), found, skipped: SKIPPED }, root)
  const dir = join(root, path)
  if (!existsSync(dir))
    throw new Ended(failed('source_missing', `The source "${source}" has no path "${path}".`, false))
  const made =
    how === 'none'
      ? plain(dir)
      : how === 'kustomize'
        ? objectsOf(await outputOf(job, job.file.kubernetes?.program, ['kustomize', dir]), 'kustomize')
        : how === 'helm' && isObject(values)
          ? await helm(job, { dir, server, values, ...names })
          : undefined
  if (!made) throw refusal('"render" must be none, kustomize or helm, and "values" an object.')
  if (made.length === 0 || made.length > MAX_OBJECTS)
    throw broken(`The source "${source}" has ${made.length} objects; a set has 1 to ${MAX_OBJECTS}.`)
  const source_digest = digest({ source_digest: taken.source_digest, path, how, values })
  return { ...names, objects: made, taken: { ...taken, source_digest } }
}

/** A folder of manifests, or one file. */
const plain = (path: string): KubeObject[] =>
  (statSync(path).isFile() ? [path] : filesOf(path))
    .filter((file) => FILES.includes(extname(file)))
    .flatMap((file) => objectsOf(readFileSync(file, 'utf8'), relative(path, file) || basename(file)))

type Chart = { dir: string; server: string; values: object; namespace: string; set: string }
const helm = async (job: Job, { dir, server, values, namespace, set }: Chart): Promise<KubeObject[]> => {
  const program = job.file.kubernetes?.helm
  if (!program) throw refusal('The agent\'s file names no program "helm".')
  const file = writeOwn(job, 'values.json', JSON.stringify(values))
  const options = ['--namespace', namespace, '--values', file, '--include-crds', '--skip-tests']
  const text = await outputOf(job, program, ['template', set, dir, ...options, '--kube-version', server])
  const objects = objectsOf(text, 'the chart')
  const hook = objects.find(({ metadata }) => isObject(metadata.annotations) && 'helm.sh/hook' in metadata.annotations)
  if (hook)
    throw new Ended(
      failed(
        'helm_hooks_unsupported',
        `${hook.kind} ${hook.metadata.name} is a Helm hook, which a set of objects cannot run. Turn it off with a value, or make it a step of its own. No change was made.`,
        false,
      ),
    )
  return objects
}

/** Returns a program's output. Its messages are not logged, because they may contain what it renders. */
const outputOf = async (job: Job, program: string | undefined, args: string[]): Promise<string> => {
  const { home } = job
  const lines: string[] = []
  let said = ''
  const end = await runTool(job, {
    ...{ path: program ?? '', args, cwd: home, grace_s: GRACE_S, max_line: MAX_TEXT, aside: true },
    env: { HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home, HELM_DATA_HOME: home },
    log: (text, line) => {
      if (line?.stream === 'stdout') lines.push(text)
      else if (text.trim() !== '') said = job.mask(text, line)
    },
  })
  const other = stopped(end, args[0] ?? '', true)
  if (other) throw new Ended(other)
  if (end.how === 'not_begun' || end.code !== 0) throw broken(`${args[0]} failed: ${said.slice(0, 500)}`)
  return lines.join('\n')
}

/** Parses YAML as kubectl does: YAML 1.1, except that times stay texts (0644 is octal, and 12:30 is not a number). */
export const objectsOf = (text: string, place: string): KubeObject[] => {
  const documents = parseAllDocuments(text, {
    schema: 'yaml-1.1',
    merge: true,
    customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || !isTime(tag)),
  })
  if (!Array.isArray(documents)) return []
  return documents.flatMap((document, i) => {
    const [fault] = document.errors
    if (fault) throw broken(`${place}: ${fault.message.split('\n')[0]}`)
    visit(document, { Scalar: (_, scalar) => refuseRounded(scalar, place) })
    const value = toValue(document, place)
    return value === null || value === undefined ? [] : unfold(value, `${place}, document ${i + 1}`)
  })
}

/** An integer that would reach the cluster with other digits than the manifest has. */
const refuseRounded = ({ value, source = '', format }: Scalar, place: string): void => {
  const rounded = Number.isInteger(value) && !Number.isSafeInteger(value) && format !== 'EXP' && !source.includes('.')
  if (rounded)
    throw broken(
      `${place}: the integer ${source} is too large to be passed on exactly. Write it as a string, or a bound of a schema as ${source}.0.`,
    )
}

const toValue = (document: { toJS: () => unknown }, place: string): unknown => {
  try {
    return document.toJS()
  } catch (error) {
    throw broken(`${place}: ${(error as Error).message}.`)
  }
}

const isTime = (tag: { tag: string; format?: string }) =>
  tag.format === 'TIME' || tag.tag === 'tag:yaml.org,2002:timestamp'

const unfold = (document: unknown, place: string): KubeObject[] => {
  if (!isObject(document) || typeof document.apiVersion !== 'string' || typeof document.kind !== 'string')
    throw broken(`${place} is not a Kubernetes object: it needs apiVersion and kind.`)
  if (document.kind.endsWith('List') && Array.isArray(document.items))
    return document.items.flatMap((item) => unfold(item, place))
  const { name, namespace } = isObject(document.metadata) ? document.metadata : {}
  if (typeof name !== 'string' || !isSound({ apiVersion: 'v1', name }))
    throw broken(`${place}: a ${document.kind} has no valid name. A name generated by the server cannot be approved.`)
  if (!isSound({ apiVersion: document.apiVersion, namespace, name }))
    throw broken(`${place}: the ${document.kind} "${name}" has no valid apiVersion or namespace.`)
  return [withData(bare(document as KubeObject))]
}

/** Moves the texts of a Secret to where the server would put them, so that their removal is seen too. */
const withData = ({ stringData, ...object }: KubeObject): KubeObject => {
  if (object.kind !== 'Secret' || !isObject(stringData))
    return { ...object, ...(stringData !== undefined && { stringData }) } as KubeObject
  const coded = Object.entries(stringData).map(([key, value]) => [key, Buffer.from(String(value)).toString('base64')])
  return { ...object, data: { ...(isObject(object.data) && object.data), ...Object.fromEntries(coded) } } as KubeObject
}
