import { listKeys } from '../../../db/identity/passkeys.ts'
import { allow } from '../../shared/auth/http.ts'
import { PersonKey } from '../../shared/contracts/identity/passkeys.ts'
import { PageQuery, pageOf } from '../../shared/contracts/identity/users.ts'
import { pick } from '../../shared/data/pick.ts'
import { createPages } from '../../shared/http/pages.ts'
import { routes } from '../../shared/http/routes.ts'
import type { ReadDeps } from '../deps.ts'
import { jwkOf } from './jwk.ts'

export const passkeysRoutes = routes<ReadDeps>('audit', (app, { deps }) => {
  const pages = createPages([deps.keys.page])

  app.get('/v1/admin/passkeys', {
    operationId: 'listPersonKeys',
    summary: 'List whose passkeys are which',
    description:
      'Lists the public keys of all passkeys with their people, oldest first. Kept apart from the server, the list shows whose key signed a vote in the evidence.',
    querystring: PageQuery,
    response: { 200: pageOf(PersonKey) },
    preHandler: allow('audit:read', { kind: 'R' }),
    handler: async ({ query: { page_size, page_token } }) => {
      const list = { route: 'passkeys' }
      const [after] = pages.after(page_token, list) ?? []
      const rows = await listKeys(deps.db, after ?? undefined, page_size + 1)
      const { items, next_page_token } = pages.cut(rows, page_size, list, ({ id }) => [id])
      return { items: items.map(viewOf), next_page_token, as_of: deps.clock.now().toISOString() }
    },
  })
})

const viewOf = (row: Awaited<ReturnType<typeof listKeys>>[number]): PersonKey => ({
  ...pick(row, 'user_id', 'username', 'credential_id'),
  jwk: jwkOf(new Uint8Array(Buffer.from(row.public_key, 'base64url'))),
  created_at: new Date(row.created_at).toISOString(),
})
