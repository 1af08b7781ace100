import { accessSync, closeSync, constants, existsSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { NatsConnection } from 'nats'
import { type Anchor, type SealedHead, signAnchor } from '../../../db/audit.anchors.ts'
import { AUDIT_LOGS } from '../../../db/audit.ts'
import type { Db } from '../../../db/client.ts'
import { appendAudit } from '../../../db/operations/facts/state.ts'
import { appendAnchor, readHeads } from '../../relay/audit/anchors.ts'
import { loadRelayConfig } from '../../relay/config.ts'
import { findLost, type LostEvent, type Teller, TOLD } from '../../relay/events/lost.ts'
import { isRestoreHeld, raiseEpoch, renewStreams } from '../../relay/events/restore.ts'
import { connectNats, ensureStreams, prefixed } from '../../shared/events/events.ts'
import { readKeyFile } from '../../shared/service/keys.ts'
import { signalboxDir } from '../base/paths.ts'
import { OpsError, operator, printTable, settingOf, withDb } from '../ops/access.ts'
import { anchorsOfFile, anchorsOfStream, distinct } from '../ops/audit-anchors.ts'
import { auditKeysOf } from '../ops/verify-audit.ts'
import { closeAccessAgain } from './access.ts'
import { refillProjections } from './refill.ts'

const SHOWN = 50

/**
 * `accept-restore [--dry-run] [--keep-access]`: after Postgres was restored to an earlier state, no event goes out and
 * no node starts, because NATS knows a future that the database lost. This reports that future, and makes the
 * database's state the only one. The steps may be repeated; the last one lets every app resume (reliability.md 4.13).
 */
export const acceptRestores = async (dry_run: boolean, keep_access: boolean): Promise<number> => {
  settingOf('relay', 'NATS__URL')
  const config = loadRelayConfig()
  const prefix = config.SIGNALBOX__NATS__PREFIX
  requireAnchorFile(config.RELAY__AUDIT__ANCHOR_FILE)
  const audit_key = auditKeysOf('operations')[0] as Buffer
  const nc = await connectNats(config.RELAY__NATS__URL, 'ops').catch((error: Error) => {
    throw new OpsError(`NATS does not answer: ${error.message}`)
  })
  try {
    return await withDb('relay', async (db) => {
      const place = { pool: db.$client, prefix }
      const lost = (
        await Promise.all(Object.keys(TOLD).map((schema) => findLost(place.pool, nc, prefix, schema as Teller)))
      ).flat()
      if (lost.length === 0 && !(await isRestoreHeld(place))) {
        console.log('The relay holds back no events: no restore of the database was found.')
        return 0
      }
      print(lost)
      const found = [anchorsOfFile(), await anchorsOfStream()]
      const anchors = distinct(found)
      const epoch =
        1 +
        Math.max(await epochOf(db), ...lost.map((one) => one.epoch), ...anchors.map((one) => one.restored?.epoch ?? 0))
      const heads = await lostHeads(db, anchors)
      console.log(`Anchored rows of the audit logs that are lost with it: ${heads.length}.`)
      if (dry_run) {
        console.log(`No change was made. Without --dry-run, this command accepts the state as epoch ${epoch}.`)
        return 3
      }
      const file = keep(epoch, lost)
      if (!keep_access) await closeAccessAgain(lost)
      await refillProjections(db)
      await renewStreams(place, nc, lost)
      await anchor(nc, prefix, {
        at: new Date().toISOString(),
        heads: await readHeads(place.pool),
        restored: { epoch, lost: heads },
      })
      await audit(audit_key, epoch, lost.length, keep_access)
      await raiseEpoch(place, epoch, lost)
      console.log(
        `Accepted as epoch ${epoch}: the events of the database are published again. The lost ones are in ${file}.`,
      )
      console.log('Now settle what the engine still runs: npm run ops -- reconcile --apply')
      return 0
    })
  } finally {
    await nc.close()
  }
}

/** Before the first change: a restore accepted without its anchor would look like a forged log. */
const requireAnchorFile = (file: string) => {
  try {
    accessSync(existsSync(file) ? file : dirname(file), constants.R_OK | constants.W_OK)
  } catch {
    throw new OpsError(
      `The relay's anchor file ${file} cannot be written here. Run this where the relay keeps it, or mount it at this path.`,
    )
  }
}

const print = (lost: readonly LostEvent[]) => {
  console.log(`Events that NATS has but the database does not: ${lost.length}`)
  const rows = lost.slice(0, SHOWN).map((event) => [event.schema, aboutOf(event), whatOf(event), event.occurred_at])
  printTable(['WHERE', 'ABOUT', 'WHAT', 'AT'], rows)
  if (lost.length > SHOWN) console.log(`… and ${lost.length - SHOWN} more`)
}

const aboutOf = ({ agg_type = '', agg_id = '', agg_version = 0, user_id, user_ids }: LostEvent): string =>
  Array.isArray(user_ids)
    ? `users ${user_ids.join(', ')}`
    : typeof user_id === 'string'
      ? `user ${user_id}`
      : `${agg_type} ${agg_id} v${agg_version}`

/** A message of operations contains several events of one operation. */
const whatOf = ({ type, to, events }: LostEvent): string => {
  if (Array.isArray(events)) return [...new Set(events.map((event: { type?: string }) => event.type ?? ''))].join(', ')
  return typeof to === 'string' ? `${type} to ${to}` : type
}

const epochOf = async (db: Db): Promise<number> => {
  const { rows } = await db.$client.query<{ epoch: number }>(
    `select coalesce(max(epoch), 0)::int as epoch from operations.relay_state where name = 'restored'`,
  )
  return rows[0]?.epoch ?? 0
}

/** Written to disk before anything is discarded. */
const keep = (epoch: number, lost: readonly LostEvent[]): string => {
  const file = join(signalboxDir(), `lost-${epoch}.jsonl`)
  const handle = openSync(file, 'a', 0o600)
  try {
    for (const event of lost) writeSync(handle, `${JSON.stringify(event)}\n`)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  return file
}

/** Heads that are anchored but not in the logs; the verifier would miss them forever. */
const lostHeads = async (db: Db, anchors: readonly Anchor[]): Promise<SealedHead[]> => {
  const gone = new Set(anchors.flatMap(({ restored }) => restored?.lost ?? []).map(nameOf))
  const said = new Map(anchors.flatMap(({ heads }) => heads.map((head) => [nameOf(head), head])))
  const lost: SealedHead[] = []
  for (const { table: log } of AUDIT_LOGS) {
    const heads = [...said.values()].filter((head) => head.log === log && !gone.has(nameOf(head)))
    const { rows } = await db.$client.query<{ seal_seq: string; seal_hash: string }>(
      `select seal_seq::text, seal_hash from ${log} where seal_seq = any($1::bigint[])`,
      [heads.map(({ seal_seq }) => seal_seq)],
    )
    const there = new Set(rows.map((row) => nameOf({ log, ...row })))
    lost.push(...heads.filter((head) => !there.has(nameOf(head))))
  }
  return lost
}
const nameOf = ({ log, seal_seq, seal_hash }: SealedHead): string => `${log} ${seal_seq} ${seal_hash}`

const anchor = async (nc: NatsConnection, prefix: string, what: Anchor) => {
  const line = signAnchor(what, readKeyFile('RELAY__AUDIT__KEY_FILE', settingOf('relay', 'AUDIT__KEY_FILE')))
  appendAnchor(settingOf('relay', 'AUDIT__ANCHOR_FILE'), line)
  await ensureStreams(nc, prefix, ['AUDIT'], { raise: false })
  await nc.jetstream().publish(prefixed(prefix, 'audit.anchor'), line)
}

const audit = (key: Buffer, epoch: number, lost: number, keep_access: boolean) =>
  withDb('operations', (db) =>
    db.transaction((tx) =>
      appendAudit(tx, key, {
        actor: operator(),
        action: 'restore.accept',
        object: `restore:${epoch}`,
        outcome: 'done',
        reason: `events lost: ${lost}${keep_access ? '; access was kept as restored' : ''}`,
      }),
    ),
  )
