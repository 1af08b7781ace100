import type { FastifyRequest } from 'fastify'
import { allow, requireScope } from '../../shared/auth/http.ts'
import type { CatalogDeps } from '../deps.ts'
import { accessOf } from './access.ts'
import type { Reader } from './lists.ts'

/** The two listeners with the same reads: people see the rows of their grants, services (below /internal) see all. */
export type Side = {
  path: <P extends string>(path: P) => string
  guard: () => ReturnType<typeof allow> | ReturnType<typeof requireScope>
  reader: (req: FastifyRequest) => Reader
  tags: string[]
}

export const publicSide = ({ registry, clock }: CatalogDeps): Side => ({
  path: (path) => path,
  guard: () => allow('catalog:read', { kind: 'R' }),
  reader: ({ caller }) => ({
    name: `user:${caller.user_id}`,
    access: accessOf(caller, 'catalog:read', registry.types, clock),
  }),
  tags: ['catalog'],
})

export const internalSide: Side = {
  path: (path) => `/internal${path}`,
  guard: () => requireScope('catalog:read'),
  reader: ({ service }) => ({ name: `svc:${service.name}`, access: 'all' }),
  tags: ['internal'],
}
