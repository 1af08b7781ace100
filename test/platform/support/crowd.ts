import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Connection } from '@temporalio/client'
import pg from 'pg'
import type { Installation } from '../../../apps/platform/base/installation.ts'
import { holderOf } from '../../../apps/platform/base/record.ts'
import { readDemo } from '../../../apps/platform/demo/accounts.ts'
import { ENDLESS, signIn } from '../../../apps/platform/demo/client.ts'
import { STAMP, sourceHash } from '../../../apps/platform/run/console-build.ts'
import type { Run } from '../../../apps/platform/run/supervisor.ts'
import { processesWith } from '../../support/pids.ts'
import { until } from '../../support/until.ts'
import { type Running, runVerb } from './verb.ts'

/** Processes that only take the cores away. */
export const burn = (count: number) => {
  const spinning: ChildProcess[] = []
  for (let i = 0; i < count; i++) spinning.push(spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }))
  return () => {
    for (const child of spinning) child.kill('SIGKILL')
  }
}

/** Other tests build and check the console. */
const fakeConsole = (into: string) => {
  mkdirSync(join(into, 'console/.vite'), { recursive: true })
  writeFileSync(join(into, 'console/index.html'), '<!doctype html><title>Signalbox</title>')
  writeFileSync(join(into, 'console', STAMP), sourceHash())
}

/** One `npm start` with its own folder, at the ports that every member wants: with a demo of so many hosts, or none. */
export const member = (hosts: number, env: Record<string, string> = {}) => {
  const home = mkdtempSync(join(tmpdir(), 'signalbox-member-'))
  const dir = join(home, 'data')
  const scratch = join(home, 'tmp')
  mkdirSync(scratch, { mode: 0o755 })
  fakeConsole(dir)
  const readJson = <T>(name: string): T => JSON.parse(readFileSync(join(dir, name), 'utf8')) as T
  const run = () => readJson<Run>('run.json')
  return {
    dir,
    run,
    installation: () => readJson<Installation>('installation.json'),
    start: (by: typeof runVerb = runVerb): Running =>
      by('start', hosts === 0 ? ['--no-demo'] : ['--hosts', String(hosts)], {
        env: { ...env, SIGNALBOX_DIR: dir, TMPDIR: scratch },
      }),
    /** The process id of the supervisor itself. */
    supervisor: () => holderOf(dir) as number,
    /** Every process that runs for this folder, whatever started it. */
    processes: () => processesWith('TMPDIR', scratch),
    /** The seed creates the account, and it may have only just begun. */
    signIn: async (username: string, timeout_ms: number) => {
      const known = () => {
        const demo = readDemo(dir)
        return demo?.hosts === undefined ? undefined : demo.users.find((user) => user.username === username)
      }
      const account = await until(known, { timeout_ms, every_ms: 250, what: `the account of ${username}` })
      return signIn(run().gateway, account, ENDLESS)
    },
    remove: () => rmSync(home, { recursive: true, force: true }),
  }
}
export type Member = ReturnType<typeof member>

/** Where each part of a platform listens. */
export const addressesOf = ({ run }: Member): string[] => {
  const { apps, postgres, redis, nats, temporal } = run()
  const ports = Object.values(apps).flatMap(({ port, internal }) => [...new Set([port, internal])])
  return [...[postgres, redis, nats].map((url) => new URL(url).port), temporal.split(':')[1], ...ports].map(String)
}

/** The operations of a platform by its own rows, and by its engine. */
export const operationsOf = async (one: Member): Promise<{ rows: string[]; engine: string[] }> => {
  const { postgres, temporal } = one.run()
  const client = new pg.Client({ connectionString: postgres })
  await client.connect()
  const { rows } = await client.query<{ operation_id: string }>('select operation_id from operations.operations')
  await client.end()
  const connection = await Connection.connect({ address: temporal })
  const { namespace } = one.installation()
  const { executions } = await connection.workflowService.listWorkflowExecutions({ namespace, pageSize: 1000 })
  await connection.close()
  return {
    rows: rows.map(({ operation_id }) => operation_id).sort(),
    engine: (executions ?? []).map(({ execution }) => String(execution?.workflowId)).sort(),
  }
}
