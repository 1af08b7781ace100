import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { initPack } from '../../../apps/platform/packs/main.ts'
import { compileCacheDir } from '../../../apps/platform/run/compile-cache.ts'
import { CLI } from '../../support/cli.ts'
import { scratchFolder } from '../../support/servers.ts'
import { startStack } from '../../support/stack.ts'
import { until } from '../../support/until.ts'

export type Gate = {
  gate_id: string
  status: string
  digest: string
  round: number
  // biome-ignore lint/suspicious/noExplicitAny: previews of any tool
  subject: { bound_outputs: { value: any }[] }
}

/**
 * A site as its authors build it: the pack that `pack init` makes, an agent with the real tool, resources in the real
 * catalog. `fileOf` fills the folder and returns the agent's file; it gets a path below the folder.
 */
export const startSite = async (
  pack: string,
  kind: 'opentofu' | 'kubernetes',
  fileOf: (place: (name: string) => string) => Promise<object>,
) => {
  const folder = scratchFolder()
  const place = (name: string) => join(folder, name)
  initPack(place(pack), kind)
  mkdirSync(place('packs'))
  writeFileSync(place(`packs/${pack}.yaml`), readFileSync(place(`${pack}/pack.yaml`)))
  rmSync(place(`${pack}/source`), { recursive: true })
  for (const name of [`${pack}/source`, 'tfstate', 'state']) mkdirSync(place(name))
  const own = await fileOf(place)
  const pool = { destinations: [], secrets: [], mode: 'nats', agents: ['machine:runner'], max_in_flight: 4 }
  const pools = { default: { destinations: [], secrets: [] }, infra: pool }
  writeFileSync(place('policy.yaml'), JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
  const stack = await startStack({
    apps: ['gateway', 'session', 'identity', 'credential', 'token', 'catalog', 'operations', 'worker', 'relay'],
    env_overrides: { WORKER__EXECUTORS__POLICY_FILE: place('policy.yaml'), OPERATIONS__PACKS__DIR: place('packs') },
  })
  const people = await stack.people()
  const { ada, olga, eva } = people
  const { items } = await ada.get<{ items: { id: string; username: string }[] }>('/v1/admin/users')
  const owner = items.find(({ username }) => username === 'olga')?.id
  const { body: machine } = await ada.post<{ id: string }>('/v1/admin/machines', { name: 'runner', owners: [owner] })
  await ada.post('/v1/admin/grants', { subject_type: 'user', subject_id: machine.id, role: 'viewer' })
  const credential = { kind: 'key', name: 'agent', permissions: ['operation:read'] }
  const made = await ada.post<{ key: string }>(`/v1/admin/machines/${machine.id}/credentials`, credential)
  const file = { format: 'signalbox/agent@1', pools: ['infra'], uid: 0, state_dir: place('state'), ...own }
  writeFileSync(place('agent.json'), JSON.stringify(file))
  const agent = spawn(process.execPath, [...CLI, 'agent', '--file', place('agent.json')], {
    env: {
      ...{ PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCacheDir(), HOME: folder },
      ...{ SIGNALBOX_URL: stack.gateway_url, SIGNALBOX_TOKEN: made.body.key },
    },
    stdio: 'ignore',
  })
  const gatesOf = (operation_id: string) => `/v1/operations/${operation_id}/gates`
  return {
    ...{ place, people },
    /** States an intent once the projection has its targets, plans it and starts the plan. */
    start: async (intent: object): Promise<string> => {
      const stated = await until(() => olga.post<{ intent_id: string }>('/v1/intents', intent), {
        timeout_ms: 30_000,
        what: 'the targets in the projection',
      })
      const previewed = `/v1/intents/${stated.body.intent_id}/plan-preview`
      const { body: plan } = await olga.post<{ plan_id: string; plan_hash: string }>(previewed, {})
      const reviewed = { reviewed_plan_hash: plan.plan_hash }
      return (await olga.post<{ operation_id: string }>(`/v1/plans/${plan.plan_id}/start`, reviewed)).body.operation_id
    },
    /** The next gate that waits, with its subject. */
    asked: async (operation_id: string) => {
      const { gate_id } = await until(
        async () =>
          (await eva.get<{ items: Gate[] }>(gatesOf(operation_id))).items.find(({ status }) => status === 'waiting'),
        { timeout_ms: 60_000, every_ms: 200, what: 'the gate' },
      )
      return eva.get<Gate>(`${gatesOf(operation_id)}/${gate_id}`)
    },
    approve: (operation_id: string, { gate_id, digest, round }: Gate) =>
      eva.post(`${gatesOf(operation_id)}/${gate_id}/approve`, { reviewed_digest: digest, round }),
    ends: (operation_id: string, ending = 'succeeded') =>
      until(
        async () => {
          const { status } = await olga.get<{ status: string }>(`/v1/operations/${operation_id}`)
          if (status === 'failed') throw new Error('it failed')
          return status === ending
        },
        { timeout_ms: 90_000, every_ms: 200, what: `${operation_id} ${ending}` },
      ),
    stop: async () => {
      if (agent.exitCode === null) {
        agent.kill('SIGKILL')
        await once(agent, 'exit')
      }
      await stack.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
export type Site = Awaited<ReturnType<typeof startSite>>
