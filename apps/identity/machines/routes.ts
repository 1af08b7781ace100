import Type, { type Static } from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { PendingCredential } from '../../shared/contracts/identity/changes.ts'
import {
  EndingCredential,
  Machines,
  MachineView,
  MadeCredential,
  NewCredential,
  NewMachine,
  Rotation,
} from '../../shared/contracts/identity/machines.ts'
import { PageQuery } from '../../shared/contracts/identity/users.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { createPages } from '../../shared/http/pages.ts'
import { CommandHeaders, markReplayed, routes, sendStored } from '../../shared/http/routes.ts'
import type { IdentityDeps } from '../deps.ts'
import { addOwner, createMachine, pageOfMachines } from './commands.ts'
import { createCredential, revokeCredential, rotateKey } from './credentials.ts'

const uuid = (n: number) => text(`0195f0c2-0000-7000-8000-00000000000${n}`, { maxLength: 64 })
const MachineParams = Type.Object({ machine_id: uuid(1) })
const OwnerParams = Type.Object({ machine_id: uuid(1), user_id: uuid(2) })
const CredentialParams = Type.Object({ machine_id: uuid(1), credential_id: uuid(3) })
const command = { headers: CommandHeaders }
const arm = allow('identity:admin', { kind: 'A' })

/** Service accounts, which command the platform without being people. */
export const machinesRoutes = routes<IdentityDeps>('machines', (app, { deps }) => {
  const pages = createPages(deps.keys.page)
  const pageFor = async ({ page_size, page_token }: Static<typeof PageQuery>, owner_id?: string) => {
    const list = { route: 'machines', ...(owner_id && { owner_id }) }
    const [after] = pages.after(page_token, list) ?? []
    const rows = await pageOfMachines(deps.db, { owner_id, after: after ?? undefined, limit: page_size + 1 })
    const { items, next_page_token } = pages.cut(rows, page_size, list, ({ username }) => [username])
    return { items, next_page_token, as_of: deps.clock.now().toISOString() }
  }
  app.get('/v1/users/me/machines', {
    operationId: 'listOwnMachines',
    summary: 'List the machines that you answer for',
    description: 'Machines of which the caller is an owner, by name, with owners and credentials.',
    querystring: PageQuery,
    response: { 200: Machines },
    preHandler: allow('self', { kind: 'R' }),
    handler: (req) => pageFor(req.query, req.caller.user_id),
  })
  app.get('/v1/admin/machines', {
    operationId: 'listMachines',
    summary: 'List machines',
    description: 'Machines by name, with owners and credentials.',
    querystring: PageQuery,
    response: { 200: Machines },
    preHandler: allow('identity:read', { kind: 'R' }),
    handler: (req) => pageFor(req.query),
  })
  app.post('/v1/admin/machines', {
    ...command,
    operationId: 'createMachine',
    summary: 'Create a machine',
    description: 'Creates an account without a password, rights or credentials.',
    body: NewMachine,
    response: { 201: MachineView },
    preHandler: arm,
    handler: async (req, reply) => sendStored(reply, await createMachine(deps, req, req.body)),
  })
  app.put('/v1/admin/machines/:machine_id/owners/:user_id', {
    ...command,
    operationId: 'addMachineOwner',
    summary: 'Add an owner to a machine',
    description: 'A person who answers for the machine. A machine without an active owner gets no tokens.',
    params: OwnerParams,
    response: { 204: Type.Null() },
    preHandler: arm,
    handler: async (req, reply) =>
      sendStored(reply, await addOwner(deps, req, req.params.machine_id, req.params.user_id)),
  })
})

export const machineCredentialsRoutes = routes<IdentityDeps>('machines', (app, { deps }) => {
  const response = { 201: MadeCredential, 202: PendingCredential }
  app.post('/v1/admin/machines/:machine_id/credentials', {
    ...command,
    operationId: 'createMachineCredential',
    summary: 'Give a machine a credential',
    description: 'An API key, a public key or a trust in CI tokens; 202 if a second administrator must confirm it.',
    params: MachineParams,
    body: NewCredential,
    response,
    preHandler: arm,
    handler: async (req, reply) => {
      const made = await createCredential(deps, req, req.params.machine_id, req.body)
      markReplayed(reply, made)
      return reply.code(made.status as 201).send(made.body as never)
    },
  })
  app.post('/v1/admin/machines/:machine_id/credentials/:credential_id/rotate', {
    ...command,
    operationId: 'rotateMachineKey',
    summary: 'Rotate an API key',
    description:
      'Creates a second key with the same rights, and as long a life unless another is asked for; the first one works until the overlap ends.',
    params: CredentialParams,
    body: Rotation,
    response,
    preHandler: arm,
    handler: async (req, reply) => {
      const made = await rotateKey(deps, req, req.params, req.body)
      markReplayed(reply, made)
      return reply.code(made.status as 201).send(made.body as never)
    },
  })
  app.delete('/v1/admin/machines/:machine_id/credentials/:credential_id', {
    ...command,
    operationId: 'revokeMachineCredential',
    summary: 'Revoke a credential of a machine',
    description: 'Ends a credential and its tokens; 202 while its tokens are still being ended.',
    params: CredentialParams,
    response: { 202: EndingCredential, 204: Type.Null() },
    preHandler: allow('identity:admin', { kind: 'S' }),
    handler: async (req, reply) => sendStored(reply, await revokeCredential(deps, req, req.params)),
  })
})
