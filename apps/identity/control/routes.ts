import Type from 'typebox'
import type { Db } from '../../../db/client.ts'
import { listChanges } from '../../../db/identity/changes.ts'
import { allow } from '../../shared/auth/http.ts'
import {
  ChangeState,
  Changes,
  type ChangeView,
  DecidedChange,
  EnrolmentHalf,
  Reviewed,
} from '../../shared/contracts/identity/changes.ts'
import { PageQuery } from '../../shared/contracts/identity/users.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { createPages } from '../../shared/http/pages.ts'
import { CommandHeaders, markReplayed, routes, sendStored } from '../../shared/http/routes.ts'
import type { ChangeDeps } from '../deps.ts'
import { endedOf } from '../mutations.ts'
import { askedOf, closeUnmade, confirmChange, type Measures, viewOf } from './changes.ts'
import { controlOf } from './dual.ts'
import { halfOf } from './halves.ts'
import { digestOf, subjectOf } from './subject.ts'

const Query = Type.Object({ ...PageQuery.properties, status: Type.Optional(ChangeState) })
const Params = Type.Object({ change_id: text('0195f0c2-0000-7000-8000-000000000009', { maxLength: 64 }) })
const arm = allow('identity:admin', { kind: 'A' })

/** Changes that need two administrators: read them, confirm one, and get your half of the link that it creates. */
export const changesRoutes = routes<ChangeDeps, { measures: Measures }>('changes', (app, { deps, measures }) => {
  const pages = createPages(deps.keys.page)
  app.get('/v1/admin/changes', {
    operationId: 'listChanges',
    summary: 'List changes that need two administrators',
    description: 'The newest first, with the digest to confirm, and whether two administrators check each other.',
    querystring: Query,
    response: { 200: Changes },
    preHandler: allow('identity:read', { kind: 'R' }),
    handler: async (req) => {
      const { page_size, page_token, status: state } = req.query
      const list = { route: 'changes', state }
      const [before] = pages.after(page_token, list) ?? []
      const rows = await listChanges(deps.db, { state, before: before ?? undefined, limit: page_size + 1 })
      const { items, next_page_token } = pages.cut(rows, page_size, list, ({ id }) => [id])
      const control = await controlOf(deps.db)
      // One at a time: a long list must not take every connection.
      const views: ChangeView[] = []
      for (const row of items) views.push(await viewOfNow(deps.db, row))
      return { items: views, next_page_token, as_of: deps.clock.now().toISOString(), control }
    },
  })
  app.post('/v1/admin/changes/:change_id/confirm', {
    operationId: 'confirmChange',
    summary: 'Confirm a change',
    description: 'Makes a change that another administrator requested, if its digest is the one that was reviewed.',
    params: Params,
    headers: CommandHeaders,
    body: Reviewed,
    'x-errors': [412],
    response: { 200: DecidedChange },
    preHandler: arm,
    handler: async (req, reply) => {
      const stored = await confirmChange(deps, measures, req, { ...req.params, ...req.body })
      const { change } = JSON.parse(stored.body.toString('utf8')) as { change: ChangeView }
      const { kind, subject } = change
      if (kind !== 'user.recover' || subject.id === null) return sendStored(reply, stored)
      const body = { change, sessions: await endedOf(deps, subject.id) }
      return sendStored(reply, { ...stored, body: Buffer.from(JSON.stringify(body)) })
    },
  })
  app.post('/v1/admin/changes/:change_id/half', {
    operationId: 'createEnrolmentHalf',
    summary: 'Get your half of an enrolment link',
    description:
      'Returns one half of the link that a confirmed change makes: one for its requester, one for its confirmer.',
    params: Params,
    headers: CommandHeaders,
    response: { 200: EnrolmentHalf },
    preHandler: arm,
    handler: async (req, reply) => {
      const { replayed, body } = await halfOf(deps, req, req.params.change_id)
      markReplayed(reply, { replayed })
      return reply.code(200).send(body)
    },
  })
})

/** A pending change with the current state of its subject. */
const viewOfNow = async (db: Db, row: Parameters<typeof viewOf>[0]) => {
  if (row.state !== 'pending') return viewOf(row)
  const subject = await subjectOf(db, askedOf(row))
  return viewOf({ ...row, subject, digest: digestOf(row.id, askedOf(row), subject) })
}

const ENDINGS = [
  {
    verb: 'reject',
    operationId: 'rejectChange',
    summary: 'Reject a change',
    status: 'rejected',
    description: 'Ends a change that waits for a second administrator.',
  },
  {
    verb: 'withdraw',
    operationId: 'withdrawChange',
    summary: 'Withdraw a change',
    status: 'withdrawn',
    description: 'Ends a change that the caller requested.',
  },
] as const

/** Endings of a change that do not make it. */
export const changeEndingRoutes = routes<ChangeDeps>('changes', (app, { deps }) => {
  for (const { verb, operationId, summary, status, description } of ENDINGS) {
    app.post(`/v1/admin/changes/:change_id/${verb}`, {
      operationId,
      summary,
      description,
      params: Params,
      headers: CommandHeaders,
      response: { 200: DecidedChange },
      preHandler: allow('identity:admin', { kind: 'S' }),
      handler: async (req, reply) => sendStored(reply, await closeUnmade(deps, req, req.params.change_id, status)),
    })
  }
})
