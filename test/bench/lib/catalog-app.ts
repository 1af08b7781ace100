import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { createPorts } from '../../../apps/platform/base/ports.ts'
import { sequenceOnce } from '../../../apps/relay/events/sequencer.ts'
import { createDb } from '../../../db/client.ts'
import { until } from '../../support/until.ts'

const MAIN = fileURLToPath(new URL('../../../apps/catalog/main.ts', import.meta.url))

export type CatalogApp = {
  pid: number
  public_url: string
  internal_url: string
  /** From the start of the process until the graph was in memory, and the graph's own figures. */
  warm: { start_ms: number; load_ms: number; count_ms: number; bytes: number; nodes: number; edges: number }
  stop: () => Promise<void>
}

/** The catalog as a separate process; resolves when its graph is in memory. */
export const startApp = async (env: Record<string, string>, profile: string | undefined): Promise<CatalogApp> => {
  const ports = createPorts()
  const [http, internal] = [await ports.take('catalog', 0), await ports.take('catalog internal', 0)]
  const started = performance.now()
  const flags = profile ? ['--cpu-prof', `--cpu-prof-dir=${profile}`] : []
  const child = spawn(process.execPath, [...flags, MAIN], {
    env: {
      ...process.env,
      CATALOG__HTTP__PORT: String(http),
      CATALOG__INTERNAL__PORT: String(internal),
      CATALOG__SECRET__KEYS: JSON.stringify([randomBytes(32).toString('base64')]),
      SIGNALBOX__NATS__PREFIX: `b${randomBytes(4).toString('hex')}`,
      SIGNALBOX_LOG_LEVEL: 'info',
      // The generator shares the machine, which is no overload of the app.
      SIGNALBOX__PRESSURE__UTILISATION: '1',
      SIGNALBOX__PRESSURE__DELAY_MS: '60000',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  let warm: CatalogApp['warm'] | undefined
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    for (const line of lines) {
      if (warm || !line.includes('the graph is in memory')) continue
      const { load_ms, count_ms, bytes, nodes, edges } = JSON.parse(line)
      warm = { start_ms: performance.now() - started, load_ms, count_ms, bytes, nodes, edges }
    }
  })
  const stop = async () => {
    child.kill('SIGTERM')
    await exited
  }
  const internal_url = `http://127.0.0.1:${internal}`
  try {
    await until(
      async () => {
        if (child.exitCode !== null) throw new Error(`the catalog ended with ${child.exitCode}`)
        return warm && (await fetch(`${internal_url}/health/live`)).ok
      },
      { timeout_ms: 120_000, every_ms: 10, what: 'the graph in memory' },
    )
  } catch (error) {
    await stop()
    throw error
  }
  const public_url = `http://127.0.0.1:${http}`
  return { pid: child.pid ?? 0, public_url, internal_url, warm: warm as CatalogApp['warm'], stop }
}

/** Numbers committed events as the relay does, here in the benchmark's own process. */
export const startSequencer = async (url: string) => {
  const { pool } = createDb(url, { app: 'test', max: 2, statement_timeout_ms: 10_000 })
  await pool.query(`insert into catalog.relay_state (name, epoch, next) values ('relay', 1, 1) on conflict do nothing`)
  let stopped = false
  const loop = (async () => {
    while (!stopped) {
      const numbered = await sequenceOnce(pool, 'catalog', 1)
      if (numbered === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    }
  })()
  return {
    stop: async () => {
      stopped = true
      await loop
      await pool.end()
    },
  }
}

const ticks = (pid: number | string, fields: number[]): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const parts = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.reduce((sum, field) => sum + Number(parts[field]), 0)
}
const parentOf = (pid: number | string): number =>
  Number(
    readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')[1],
  )
const TICK_MS = 10

/** CPU of all processes of the database server, including ended ones, in milliseconds since it started. Linux only. */
export const databaseCpu = async (client: pg.Pool): Promise<() => number> => {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const postmaster = parentOf(rows[0]?.pid ?? 0)
  return () => {
    // User, system, and the same of children that have ended.
    let sum = ticks(postmaster, [11, 12, 13, 14])
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        if (parentOf(pid) === postmaster) sum += ticks(pid, [11, 12])
      } catch {
        // it has ended in between and counts with the postmaster's children
      }
    }
    return sum * TICK_MS
  }
}
