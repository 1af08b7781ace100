import { listPackUses, listPackVersions, listScheduledPacks } from '../../../db/operations/packs.ts'
import { operations, schedules } from '../../../db/operations/tables/index.ts'
import { allow } from '../../shared/auth/http.ts'
import { PackList, type PackView } from '../../shared/contracts/operations/plans.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import type { Pack, Procedure } from '../graph/types.ts'
import { visibleSql } from '../policies/authority.ts'

/** The packs that this deployment has loaded now, and earlier ones. */
export const packsRoutes = routes<Uses<'db' | 'library'>>('plans', (app, { deps: { db, library } }) => {
  app.get('/v1/packs', {
    operationId: 'listPacks',
    summary: 'List packs',
    description:
      'Lists every version of every pack ever loaded, with its procedures and the operations that use it. A faulty pack is never listed: operations refuses to start with it.',
    response: { 200: PackList },
    preHandler: allow('operation:read', { kind: 'R' }),
    handler: async ({ caller }) => {
      const [known, uses, scheduled] = await Promise.all([
        listPackVersions(db),
        listPackUses(db, visibleSql(caller, operations)),
        listScheduledPacks(db, visibleSql(caller, schedules)),
      ])
      // The newest version of a pack comes first in the library.
      const current = new Set([...Map.groupBy(library.packs, ({ pack }) => pack).values()].map(([newest]) => newest))
      const viewOf = (one: Pick<Pack, 'pack' | 'version' | 'digest'>, status: PackView['status'], of: Procedure[]) => ({
        ...{ pack: one.pack, version: one.version, digest: one.digest, status },
        loaded_at: known.find((row) => isSame(row, one))?.loaded_at ?? null,
        procedures: of.map(procedureOf),
        used_by: {
          operations: uses.find((row) => isSame(row, one))?.operations ?? 0,
          schedules: status === 'current' ? (scheduled.get(one.pack) ?? 0) : 0,
        },
      })
      const retired = known.filter((row) => !library.packs.some((pack) => isSame(row, pack)))
      return {
        items: [
          ...library.packs.map((pack) => viewOf(pack, current.has(pack) ? 'current' : 'loaded', pack.procedures)),
          ...retired.map((row) => viewOf(row, 'retired', [])),
        ],
      }
    },
  })
})

type Named = { pack: string; version: string }
const isSame = (a: Named, b: Named): boolean => a.pack === b.pack && a.version === b.version

const procedureOf = ({ key, kind, title, match, steps, gates }: Procedure) => ({
  ...{ key, kind, title, resource_type: match.resource_type ?? null },
  steps: steps.map(({ id, name, executor }) => ({ id, name, executor })),
  gates: [...new Set(gates.map(({ policy }) => policy))],
})
