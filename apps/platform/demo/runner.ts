import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../base/paths.ts'
import { createProcess, type Managed, type UnitEvents } from '../base/process.ts'
import { streamedPools } from '../servers/pools.ts'
import { run, which } from '../servers/sources.ts'
import type { Person } from './client.ts'

/** What the runner of the demo can show, with the program that it takes for that. */
const TOOLS = {
  opentofu: {
    programs: ['tofu', 'terraform'],
    shows: 'OpenTofu: three pages of a site; the reviewed plan file is the one applied',
  },
  git: { programs: ['git'], shows: 'git: a commit is reviewed, approved and pushed unchanged' },
} as const
export type DemoTool = keyof typeof TOOLS
export type Door = { dir: string; gateway_url: () => string }

const POOL = 'demo'
const MACHINE = 'demo-runner'
const AGENT = join(ROOT, 'apps/cli/main.ts')

const programOf = (tool: DemoTool): string | undefined =>
  TOOLS[tool].programs.map(which).find((path) => path !== undefined)
const placesOf = (dir: string) => {
  const folder = join(dir, 'demo')
  return { folder, key: join(folder, 'key'), file: join(folder, 'agent.json'), site: join(folder, 'site') }
}

/** Each tool's scenario; `lacks`: why it cannot be shown on this machine. */
export const demoTools = (dir: string): { name: DemoTool; shows: string; lacks: string | undefined }[] =>
  (Object.keys(TOOLS) as DemoTool[]).map((name) => {
    const lacks = programOf(name) ? undefined : `put ${TOOLS[name].programs.join(' or ')} on PATH and start again`
    const here = existsSync(placesOf(dir).key)
    return { name, shows: TOOLS[name].shows, lacks: lacks ?? (here ? undefined : 'comes with npm start and its demo') }
  })

const MODULE = (pages: string) => `variable "release" {
  type = string
}
resource "terraform_data" "page" {
  for_each         = toset(["eu1", "us1", "ap1"])
  triggers_replace = [var.release]
  provisioner "local-exec" {
    command     = "echo \\"$REGION serves $RELEASE\\" > \\"$REGION.txt\\""
    working_dir = ${JSON.stringify(pages)}
    environment = { REGION = each.key, RELEASE = var.release }
  }
}
`

/** The runner's machine and key, its file, and the site that its tools work on. A repeat keeps what exists. */
const ensureRunner = async (ada: Person, dir: string): Promise<void> => {
  const { folder, key, file, site } = placesOf(dir)
  for (const name of ['module', 'pages', 'state']) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, 'module/main.tf'), MODULE(join(folder, 'pages')))
  const tofu = programOf('opentofu')
  const git = programOf('git')
  if (git && !existsSync(site)) await makeSite(git, site)
  const sources = { site: { path: join(folder, 'module'), state: join(folder, 'state') } }
  const repos = { site: { url: site, push: ['signalbox/*'] } }
  const document = {
    ...{ format: 'signalbox/agent@1', pools: [POOL], state_dir: join(folder, 'state') },
    ...(process.getuid?.() === 0 && { uid: 0 }),
    ...(tofu && { tofu: { program: tofu, sources } }),
    ...(git && { git: { program: git, repos } }),
  }
  writeFileSync(file, JSON.stringify(document))
  if (existsSync(key)) return
  const { items } = await ada.get<{ items: { id: string; username: string }[] }>('/v1/admin/users?q=olga')
  const owner = items.find(({ username }) => username === 'olga')?.id
  const body = { name: MACHINE, owners: [owner] }
  const { body: machine } = await ada.post<{ id: string }>('/v1/admin/machines', body, MACHINE)
  await ada.post(
    '/v1/admin/grants',
    { subject_type: 'user', subject_id: machine.id, role: 'viewer' },
    `${MACHINE} role`,
  )
  const credential = { kind: 'key', name: 'demo', permissions: ['operation:read'] }
  const made = await ada.post<{ key: string }>(`/v1/admin/machines/${machine.id}/credentials`, credential)
  writeFileSync(key, made.body.key, { mode: 0o600 })
}

const makeSite = async (git: string, site: string) => {
  try {
    await run(git, ['init', '--quiet', '--initial-branch=main', site], { timeout_ms: 20_000 })
    writeFileSync(join(site, 'release.txt'), 'none\n')
    const by = ['-c', 'user.name=Demo', '-c', 'user.email=demo@localhost', '-c', 'commit.gpgsign=false']
    for (const args of [
      ['add', '.'],
      [...by, 'commit', '--quiet', '--no-verify', '-m', 'The site'],
    ])
      await run(git, args, { timeout_ms: 20_000, cwd: site })
  } catch (error) {
    rmSync(site, { recursive: true, force: true })
    throw error
  }
}

/** Starts the runner of the demo; undefined if the executor policy has no pool for it. */
export const startRunner = async (
  ada: Person,
  { gateway_url, dir }: Door,
  events: Partial<UnitEvents>,
): Promise<Managed | undefined> => {
  if (!streamedPools().includes(POOL)) return undefined
  await ensureRunner(ada, dir)
  const { folder, file, key } = placesOf(dir)
  const { PATH } = process.env
  const command = () => ({
    command: process.execPath,
    args: [AGENT, 'agent', '--file', file],
    env: { PATH, HOME: folder, SIGNALBOX_URL: gateway_url(), SIGNALBOX_TOKEN: readFileSync(key, 'utf8') },
  })
  // It serves no one: that it runs is all that can be asked.
  const child = createProcess({ name: 'runner', command, probe: async () => {} }, join(dir, 'logs'), events)
  await child.start()
  return child
}

type Job = { job: string; inputs: Record<string, unknown> }
const JOBS: Record<DemoTool, (release: string) => { title: string; plan: Job; act: Job }> = {
  opentofu: (release) => {
    const module = { source: 'site', workspace: 'demo' }
    return {
      title: `site ${release} by OpenTofu`,
      plan: { job: 'opentofu.preview', inputs: { ...module, variables: { release } } },
      act: { job: 'opentofu.apply', inputs: module },
    }
  },
  git: (release) => {
    const commit = { repo: 'site', base: 'main', branch: `signalbox/${release}`, message: `Release ${release}` }
    const inputs = { ...commit, files: { 'release.txt': `${release}\n` } }
    return { title: `site ${release} by git`, plan: { job: 'git.preview', inputs }, act: { job: 'git.push', inputs } }
  },
}

/** A change by that tool: its preview, a gate that binds the preview, and exactly that. */
export const toolIntent = (tool: DemoTool, release: string) => {
  const { title, plan, act } = JOBS[tool](release)
  const node = (node_id: string, name: string, { job, inputs }: Job, more: object) => ({
    ...{ node_id, name, executor: 'external', pool: POOL, with: { job, inputs }, ...more },
  })
  const preview = { preview: { $from: 'nodes/plan/outputs/preview' } }
  return {
    kind: 'graph',
    title,
    reason: 'To see a real tool under approval',
    labels: { environment: 'demo' },
    graph: {
      nodes: [
        node('plan', 'Plan', plan, { idempotent: true, outputs: { preview: '/preview' } }),
        node('apply', 'Apply', { ...act, inputs: { ...act.inputs, ...preview } }, { depends_on: ['plan'] }),
      ],
      gates: [{ gate_id: 'go', guards: ['apply'], policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } } }],
    },
  }
}

/** What the tool has left outside, which no one of us wrote. */
export const toolEffects = async (tool: DemoTool, dir: string, release: string): Promise<string[]> => {
  const { folder, site } = placesOf(dir)
  const pages = join(folder, 'pages')
  if (tool === 'opentofu')
    return readdirSync(pages).map((name) => `${name}: ${readFileSync(join(pages, name), 'utf8').trim()}`)
  const log = ['log', '--oneline', '-2', '--stat', `signalbox/${release}`]
  return (await run(programOf('git') ?? 'git', log, { timeout_ms: 20_000, cwd: site })).trim().split('\n')
}
