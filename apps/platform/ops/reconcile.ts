import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'drizzle-orm'
import type { Db } from '../../../db/client.ts'
import { createInspection, type Inspection } from '../../relay/commands/inspect.ts'
import { adoptEngine, createEngine, type Engine, refuseOther } from '../../relay/commands/temporal.ts'
import { loadRelayConfig } from '../../relay/config.ts'
import { signalboxDir } from '../base/paths.ts'
import { OpsError, printTable, settingOf, withDb } from './access.ts'

type Open = Record<string, unknown> & {
  operation_id: string
  title: string
  engine_status: string
  last_seq: number
  sent_seq: number
  record_seq: number
}
/** A difference between row and engine; `runs`: the engine has a running workflow for it. */
type Difference = { operation_id: string; title: string; status: string; found: string; runs: boolean; row: boolean }

/**
 * `reconcile [--apply]`: compares the open operations with the workflows that the engine runs, in both directions, as
 * after a restore of Postgres or Temporal. Finds rows whose workflow is gone, workflows without a row, and workflows
 * that are ahead of their row. With --apply, those that the engine still runs are saved and terminated, and operations
 * pauses the rows as engine_lost. Exits 3 if anything differs.
 */
export const reconcile = async (apply: boolean): Promise<number> => {
  settingOf('relay', 'DATABASE__URL')
  const config = loadRelayConfig()
  const engine = createEngine(config)
  const inspection = createInspection(config)
  try {
    await engine.health().catch((error: Error) => {
      throw new OpsError(`Temporal does not answer: ${error.message}`)
    })
    return await withDb('relay', async (db) => {
      await refuseOther(db.$client, engine).catch((error: Error) => {
        if (!apply) throw new OpsError(error.message)
      })
      const { open, found } = await compare(db, engine, inspection)
      if (apply) await adoptEngine(db.$client, engine)
      const lines = found.map(({ operation_id, title, status, found }) => [operation_id, title, status, found])
      printTable(['OPERATION', 'TITLE', 'STATUS', 'ENGINE'], lines)
      console.log(`Open operations: ${open}. Disagreements between operations and workflows: ${found.length}.`)
      if (found.length === 0) return 0
      if (!apply) console.log('With --apply rows are paused as engine_lost; workflows are saved and terminated.')
      else for (const one of found) await settle(db, inspection, one)
      return 3
    })
  } finally {
    await Promise.all([engine.close(), inspection.close()])
  }
}

const compare = async (db: Db, engine: Engine, inspection: Inspection) => {
  const { rows: elsewhere } = await db.execute<{ namespace: string }>(sql`
    select engine_ref ->> 'namespace' as namespace from operations.operations
    where ended_at is null and engine_ref ->> 'namespace' <> ${engine.namespace} limit 1`)
  if (elsewhere[0])
    throw new OpsError(
      `Operations of this database run in the namespace "${elsewhere[0].namespace}"; the relay is set to "${engine.namespace}".`,
    )
  // Reads the engine first, so anything that begins meanwhile already has its row.
  const running = await inspection.listRunning()
  const open = await openOperations(db)
  const found: Difference[] = []
  for (const { operation_id, title, engine_status: status } of open.values()) {
    const said = running.has(operation_id) ? 'running' : await engine.describe(operation_id)
    const of = { operation_id, title, status, row: true }
    if (said !== 'running') found.push({ ...of, found: said, runs: false })
    else {
      const word = await standing(db, inspection, operation_id)
      if (word) found.push({ ...of, found: word, runs: true })
    }
  }
  for (const [operation_id, title] of running)
    if (!open.has(operation_id) && !(await isKnown(db, operation_id)))
      found.push({ operation_id, title, status: '', found: 'without a row', runs: true, row: false })
  return { open: open.size, found }
}

/** Operations that were started, have not ended and are not given up, with the last command and fact in their rows. */
const openOperations = async (db: Db, id: string | null = null): Promise<Map<string, Open>> => {
  const { rows } = await db.execute<Open>(
    sql`select o.operation_id, o.title, o.engine_status, o.record_seq::int as record_seq,
          (select coalesce(max(k.seq), 0)::int from operations.operation_commands k where k.operation_id = o.operation_id) as last_seq,
          (select coalesce(max(k.seq), 0)::int from operations.operation_commands k
            where k.operation_id = o.operation_id and k.kind <> 'start' and k.status in ('delivered', 'applied') and k.payload is not null) as sent_seq
        from operations.operations o join operations.operation_control c using (operation_id)
        where not c.ended and c.pause_reason is distinct from 'engine_lost' and (${id}::uuid is null or o.operation_id = ${id}::uuid) and exists (select 1 from operations.operation_commands k
          where k.operation_id = o.operation_id and k.kind = 'start' and k.status in ('delivered', 'applied'))
        order by o.operation_id`,
  )
  return new Map(rows.map((row) => [row.operation_id, row]))
}

/** Its row exists, so it is about to begin or to end. */
const isKnown = async (db: Db, operation_id: string): Promise<boolean> => {
  const { rows } = await db.execute(sql`select 1 from operations.operations where operation_id = ${operation_id}`)
  return rows.length > 0
}

const TRIES = 6
const PAUSE_MS = 500

/** A lasting difference between a workflow and its row: not a fact that is being recorded, nor a signal in flight. */
const standing = async (db: Db, inspection: Inspection, operation_id: string): Promise<string | undefined> => {
  for (let n = 1; ; n++) {
    const state = await inspection.progressOf(operation_id)
    const row = (await openOperations(db, operation_id)).get(operation_id)
    if (!row) return undefined
    if (!state) {
      console.log(`${operation_id}: no worker answers for its workflow, so its progress is unknown.`)
      return undefined
    }
    const ahead = state.record_seq > row.record_seq || state.last_seq > row.last_seq
    const behind = state.record_seq < row.record_seq || state.last_seq < row.sent_seq
    if (!ahead && !behind) return undefined
    if (n === TRIES) return ahead ? 'ahead of its row' : 'behind its row'
    await delay(PAUSE_MS)
  }
}

const settle = async (db: Db, inspection: Inspection, { operation_id, found, runs, row }: Difference) => {
  if (runs) {
    const dir = join(signalboxDir(), 'lost')
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    const file = join(dir, `${operation_id}.json`)
    writeFileSync(file, await inspection.historyOf(operation_id), { mode: 0o600 })
    await inspection.terminate(operation_id, `reconcile: ${found}`)
    console.log(`${operation_id}: its workflow is saved in ${file} and terminated.`)
  }
  if (!row) return
  await db.execute(sql`insert into operations.engine_findings (operation_id, found) values (${operation_id}, ${found})`)
  console.log(`${operation_id}: handed to operations, which pauses it as engine_lost.`)
}
